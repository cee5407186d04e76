// The border of pruning: a tree comes in as arrays and goes out as arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/tree_arrays.hpp"
#include "prune/fractional_rows.hpp"
#include "prune/whole_rows.hpp"

using namespace branchwise;

namespace {

// A tree that can be changed, from arrays that are sound.
PruneTree as_prune_tree(const TreeView& given, size_t classes, const double* weights,
                        const double* cases) {
    const size_t n = given.n_nodes;
    PruneTree tree{classes, std::vector<PruneNode>(n), {weights, weights + n * classes}, {}};
    uint32_t child = 1, code = 0;
    for (size_t i = 0; i < n; ++i) {
        PruneNode& node = tree.nodes[i];
        node.column = given.column[i];
        node.threshold = given.threshold[i];
        node.missing_to = given.missing_to[i];
        node.unseen_to = given.unseen_to[i];
        node.cases = cases[i];
        for (int64_t branch = 0; branch < given.n_children[i]; ++branch, ++child) {
            node.children.push_back(child);
            tree.nodes[child].code_begin = code;
            code += uint32_t(given.n_codes[child]);
            tree.nodes[child].code_end = code;
        }
    }
    tree.codes.assign(given.codes, given.codes + code);
    return tree;
}

Span<const double> read_node_weights(Arrays& arrays, nb::handle weights, size_t n_nodes,
                                     size_t n_classes) {
    const Py_buffer& view = arrays.view(weights, "weights", 2);
    const auto given = Arrays::entries<const double>(view, "weights");
    if (size_t(view.shape[0]) != n_nodes || size_t(view.shape[1]) != n_classes)
        refuse("weights must have a row for each node and a column for each class");
    check_finite("weights", given);
    return given;
}

// Number the nodes that are left level by level.
TreeArrays lay_out(const PruneTree& tree) {
    std::vector<uint32_t> order{0};
    for (size_t i = 0; i < order.size(); ++i) {
        const std::vector<uint32_t>& children = tree.nodes[order[i]].children;
        order.insert(order.end(), children.begin(), children.end());
    }
    TreeArrays arrays;
    arrays.resize(order.size(), tree.classes);
    for (size_t i = 0; i < order.size(); ++i) {
        const PruneNode& node = tree.nodes[order[i]];
        arrays.column[i] = node.column;
        arrays.threshold[i] = node.threshold;
        arrays.n_children[i] = int64_t(node.children.size());
        arrays.missing_to[i] = node.missing_to;
        arrays.unseen_to[i] = node.unseen_to;
        arrays.n_codes[i] = node.code_end - node.code_begin;
        for (uint32_t k = node.code_begin; k < node.code_end; ++k)
            arrays.codes.push_back(tree.codes[k]);
        arrays.cases[i] = node.cases;
        std::copy_n(tree.at(order[i]), tree.classes, &arrays.weights[i * tree.classes]);
    }
    return arrays;
}

// False if the watch gave up.
bool prune(const Problem& problem, const Estimate& estimate, const Watch& watch, bool collapses,
           bool prunes, bool raises, bool new_values, PruneTree& tree) {
    PruneState state(estimate, raises, tree);
    if (collapses) state.collapse();
    if (!prunes || state.decide_from_counts()) return true;
    if (problem.fractions) return FractionalRows(problem, new_values, state).prune(watch);
    return WholeRows(problem, new_values, state).prune(watch);
}

nb::dict prune_tree(nb::list columns, nb::list n_codes_of_columns, nb::handle labels,
                    int64_t n_classes, nb::object row_weights, bool fractions, double weight_step,
                    double case_step, nb::handle column, nb::handle threshold,
                    nb::handle n_children, nb::handle missing_to, nb::handle unseen_to,
                    nb::handle n_codes, nb::handle codes, nb::handle weights, nb::handle cases,
                    double log_confidence, double z, int64_t bits, int64_t slack, bool collapses,
                    bool prunes, bool raises, bool new_values) {
    Problem problem;
    Arrays arrays;
    const std::vector<uint32_t> sizes =
        read_sizes(n_codes_of_columns, "n_codes_of_columns", 1, most_codes);
    read_rows(problem, arrays, columns, sizes, labels, n_classes);
    check_cells(problem);
    read_weights(problem, arrays, row_weights, fractions, weight_step, case_step);
    std::vector<uint32_t> values;
    for (const Column& tested : problem.columns)
        values.push_back(tested.numeric ? 2 : tested.missing_code());
    const TreeView given = read_tree(
        arrays, {column, threshold, n_children, missing_to, unseen_to, n_codes, codes}, values);
    const auto node_weights = read_node_weights(arrays, weights, given.n_nodes, size_t(n_classes));
    const auto node_cases = arrays.vector<double>(cases, "cases", given.n_nodes);
    check_finite("cases", node_cases);
    check_number("log_confidence", log_confidence, -1e6, 0);
    check_number("z", z, -1e6, 1e6);
    check_whole("bits", bits, -1100, 60);
    check_whole("slack", slack, 0, Estimate::most_units);
    PruneTree tree = as_prune_tree(given, size_t(n_classes), node_weights.data, node_cases.data);
    const Estimate estimate{log_confidence, z, int(bits), slack};
    PythonInterruptCheck python{nb::none()};
    const Watch watch = std::ref(python);
    TreeArrays pruned;
    {
        ReleasedGil released;
        if (prune(problem, estimate, watch, collapses, prunes, raises, new_values, tree))
            pruned = lay_out(tree);
    }
    if (python.interrupted()) throw nb::python_error();
    return pruned.hand_over(tree.classes);
}

}  // namespace

void bind_pruning(nb::module_& m) {
    m.def("prune", &prune_tree, nb::arg("columns"), nb::arg("n_codes_of_columns"),
          nb::arg("labels").none(), nb::arg("n_classes"), nb::arg("row_weights").none(),
          nb::arg("fractions"), nb::arg("weight_step"), nb::arg("case_step"),
          nb::arg("column").none(), nb::arg("threshold").none(), nb::arg("n_children").none(),
          nb::arg("missing_to").none(), nb::arg("unseen_to").none(), nb::arg("n_codes").none(),
          nb::arg("codes").none(), nb::arg("weights").none(), nb::arg("cases").none(),
          nb::arg("log_confidence"), nb::arg("z"), nb::arg("bits"), nb::arg("slack"),
          nb::arg("collapses"), nb::arg("prunes"), nb::arg("raises"), nb::arg("new_values"));
}
