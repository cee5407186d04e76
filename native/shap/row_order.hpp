// Rows in an order in which those that a tree treats alike are near each other.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shap/column_tests.hpp"

namespace branchwise {

// A walk goes through the rows of a node group by group. Groups differ by the first tests of the
// tree before all, so rows that are sorted by the outcomes of these tests are visited in runs.
class RowOrder {
  public:
    explicit RowOrder(size_t n_columns) : lookup_(n_columns) {}

    // Sort rows by the first tests, as long as they leave enough rows together.
    void sort(const ColumnTests& tests, const ShapRows& rows) {
        order_.resize(rows.n_rows);
        for (uint32_t i = 0; i < rows.n_rows; ++i) order_[i] = i;
        nodes_.clear();
        size_t n_runs = 1;
        for (uint32_t node = 0; node < tests.n_nodes(); ++node) {
            if (tests.is_leaf(node)) continue;
            n_runs *= tests.n_children(node);
            if (n_runs * least_in_run_ > rows.n_rows) break;
            nodes_.push_back(node);
        }
        // The last test first: each keeps the order of those before.
        for (size_t i = nodes_.size(); i--;) sort_by(tests, nodes_[i], rows);
        take_cells(rows);
    }

    // The cells of the sorted rows, and the number of each row.
    const ShapRows& rows() const { return rows_; }
    uint32_t operator[](size_t i) const { return order_[i]; }

  private:
    static constexpr size_t least_in_run_ = 64;

    void sort_by(const ColumnTests& tests, uint32_t node, const ShapRows& rows) {
        tests.find_outcomes(node, 0, rows, order_, lookup_, outcomes_);
        // Outcomes that are no branch come last.
        const uint32_t n = tests.n_children(node);
        starts_.assign(n + 2, 0);
        for (uint32_t& outcome : outcomes_) {
            outcome = std::min(outcome, n);
            ++starts_[outcome + 1];
        }
        for (size_t k = 1; k < starts_.size(); ++k) starts_[k] += starts_[k - 1];
        sorted_.resize(order_.size());
        for (size_t i = 0; i < order_.size(); ++i) sorted_[starts_[outcomes_[i]]++] = order_[i];
        order_.swap(sorted_);
    }

    void take_cells(const ShapRows& rows) {
        rows_.n_rows = rows.n_rows;
        rows_.codes.resize(rows.codes.size());
        rows_.numbers.resize(rows.numbers.size());
        const auto take = [&](const auto& from, auto& to) {
            to.resize(from.size());
            for (size_t i = 0; i < from.size(); ++i) to[i] = from[order_[i]];
        };
        for (size_t j = 0; j < rows.codes.size(); ++j) take(rows.codes[j], rows_.codes[j]);
        for (size_t j = 0; j < rows.numbers.size(); ++j) take(rows.numbers[j], rows_.numbers[j]);
    }

    std::vector<std::vector<uint32_t>> lookup_;
    std::vector<uint32_t> nodes_, order_, sorted_, outcomes_, starts_;
    ShapRows rows_;
};

}  // namespace branchwise
