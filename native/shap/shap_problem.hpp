// What is explained: a tree, the values of its nodes, and the background.

#pragma once

#include "shap/column_tests.hpp"

namespace branchwise {

// What is the same for all blocks of rows.
struct ShapProblem {
    const ColumnTests& tests;
    const double* node_values;  // n_outputs of each node
    size_t n_outputs;
    size_t n_columns;
    bool pairs;
    size_t n_rows;               // in all blocks
    const ShapRows* background;  // null: the shares of the training cases
    const double* weights;       // of the rows of the background
};

}  // namespace branchwise
