// The border of pruning: a tree comes in as arrays and goes out as arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "border.hpp"
#include "parted_rows.hpp"
#include "whole_rows.hpp"

using namespace branchwise;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

uint32_t codes_of(const Problem& problem, int64_t column) {
    const Column& asked = problem.columns[static_cast<size_t>(column)];
    return asked.numeric ? 2 : asked.n_codes - 1;
}

// Nodes are numbered level by level, so children come in the order of their parents.
PruneTree read_tree(const Problem& problem, const Vector<int64_t>& column, const Vector<double>& cut,
                    const Vector<int64_t>& n_children, const Vector<int64_t>& missing_to,
                    const Vector<int64_t>& unseen_to, const Vector<int64_t>& n_codes, const Vector<int64_t>& codes,
                    const Matrix& weights, const Vector<double>& cases) {
    const size_t n = column.shape(0);
    const auto classes = static_cast<size_t>(problem.n_classes);
    if (n < 1 || n >= size_t(1) << 31) refuse("between 1 and 2**31 - 1 nodes");
    for (size_t length : {cut.shape(0), n_children.shape(0), missing_to.shape(0), unseen_to.shape(0),
                          n_codes.shape(0), weights.shape(0), cases.shape(0)})
        if (length != n) refuse("arrays must have one entry for each node");
    if (weights.shape(1) != classes) refuse("weights must have one column for each class");
    PruneTree tree{classes, std::vector<PruneNode>(n), {weights.data(), weights.data() + n * classes}, {}};
    if (n_codes.data()[0] != 0) refuse("codes that lead to the root");
    size_t child = 1, code = 0;
    for (size_t i = 0; i < n; ++i) {
        PruneNode& node = tree.nodes[i];
        const int64_t branches = n_children.data()[i];
        node.column = column.data()[i];
        if (branches < 0 || size_t(branches) > n - child) refuse("children beyond the arrays");
        if (node.column < -1 || node.column >= int64_t(problem.columns.size()) || (node.column < 0) != (branches == 0))
            refuse("a column that is not there");
        node.cut = cut.data()[i];
        node.missing_to = missing_to.data()[i];
        node.unseen_to = unseen_to.data()[i];
        node.cases = cases.data()[i];
        for (int64_t to : {node.missing_to, node.unseen_to})
            if (to < every_branch || to >= branches) refuse("a branch that is not there");
        for (const size_t last = child + size_t(branches); child < last; ++child) {
            node.children.push_back(uint32_t(child));
            const int64_t count = n_codes.data()[child];
            if (count < 0 || size_t(count) > codes.shape(0) - code) refuse("codes beyond the arrays");
            tree.nodes[child].code_begin = uint32_t(code);
            tree.nodes[child].code_end = uint32_t(code + size_t(count));
            for (const size_t end = code + size_t(count); code < end; ++code) {
                const int64_t value = codes.data()[code];
                if (value < 0 || value >= codes_of(problem, node.column)) refuse("a code that is no value of its column");
                tree.codes.push_back(uint32_t(value));
            }
        }
    }
    if (child != n || code != codes.shape(0)) refuse("children or codes that do not add up");
    return tree;
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
        arrays.cut[i] = node.cut;
        arrays.n_children[i] = int64_t(node.children.size());
        arrays.missing_to[i] = node.missing_to;
        arrays.unseen_to[i] = node.unseen_to;
        arrays.n_codes[i] = node.code_end - node.code_begin;
        for (uint32_t k = node.code_begin; k < node.code_end; ++k) arrays.codes.push_back(tree.codes[k]);
        arrays.cases[i] = node.cases;
        std::copy_n(tree.at(order[i]), tree.classes, &arrays.weights[i * tree.classes]);
    }
    return arrays;
}

// False if the watch gave up.
bool prune(const Problem& problem, const Estimate& estimate, const Watch& watch, bool collapses, bool prunes,
           bool raises, bool new_values, PruneTree& tree) {
    PruneState state(estimate, raises, tree);
    if (collapses) state.collapse();
    if (!prunes || state.decide_from_counts()) return true;
    if (problem.fractions) return PartedRows(problem, new_values, state).prune(watch);
    return WholeRows(problem, new_values, state).prune(watch);
}

nb::dict prune_tree(nb::list columns, const std::vector<uint32_t>& n_codes_of_columns, const Vector<uint32_t>& labels,
               int n_classes, nb::object row_weights, bool fractions, double weight_step, double case_step,
               const Vector<int64_t>& column, const Vector<double>& cut, const Vector<int64_t>& n_children,
               const Vector<int64_t>& missing_to, const Vector<int64_t>& unseen_to, const Vector<int64_t>& n_codes,
               const Vector<int64_t>& codes, const Matrix& weights, const Vector<double>& cases,
               double log_confidence, double z, int bits, int64_t slack, bool collapses, bool prunes, bool raises,
               bool new_values) {
    Problem problem;
    read_rows(problem, columns, n_codes_of_columns, labels, n_classes, row_weights, fractions, weight_step, case_step);
    PruneTree tree =
        read_tree(problem, column, cut, n_children, missing_to, unseen_to, n_codes, codes, weights, cases);
    const Estimate estimate{log_confidence, z, bits, slack};
    PythonWatch python{nb::none()};
    const Watch watch = std::ref(python);
    TreeArrays arrays;
    {
        nb::gil_scoped_release released;
        if (prune(problem, estimate, watch, collapses, prunes, raises, new_values, tree)) arrays = lay_out(tree);
    }
    if (python.interrupted()) throw nb::python_error();
    return arrays.hand_over(tree.classes);
}

}  // namespace

void bind_pruning(nb::module_& m) {
    m.def("prune", &prune_tree, nb::arg("columns"), nb::arg("n_codes_of_columns"), nb::arg("labels"), nb::arg("n_classes"),
          nb::arg("row_weights").none(), nb::arg("fractions"), nb::arg("weight_step"), nb::arg("case_step"),
          nb::arg("column"), nb::arg("cut"), nb::arg("n_children"), nb::arg("missing_to"), nb::arg("unseen_to"),
          nb::arg("n_codes"), nb::arg("codes"), nb::arg("weights"), nb::arg("cases"), nb::arg("log_confidence"),
          nb::arg("z"), nb::arg("bits"), nb::arg("slack"), nb::arg("collapses"), nb::arg("prunes"), nb::arg("raises"), nb::arg("new_values"));
}
