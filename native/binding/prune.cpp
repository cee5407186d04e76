// The border of pruning: a tree comes in as arrays and goes out as arrays.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <limits>
#include <memory>

#include "binding/tree_arrays.hpp"
#include "prune/fractional_rows.hpp"
#include "prune/whole_rows.hpp"

using namespace branchwise;

namespace {

// A tree that can be changed, from arrays that are sound.
PruneTree as_prune_tree(const TreeView& given, size_t classes, const Span<const double>& weights,
                        const Span<const double>& cases) {
    const size_t n = given.n_nodes();
    PruneTree tree{classes, std::vector<PruneNode>(n), {weights.begin(), weights.end()}, {}};
    uint32_t child = 1, code = 0;
    for (size_t i = 0; i < n; ++i) {
        PruneNode& node = tree.nodes[i];
        node.column = int32_t(given.column[i]);
        node.threshold = given.threshold[i];
        node.missing_to = int32_t(given.missing_to[i]);
        node.unseen_to = int32_t(given.unseen_to[i]);
        node.cases = cases[i];
        node.origin = uint32_t(i);
        node.children.reserve(size_t(given.n_children[i]));
        for (int64_t branch = 0; branch < given.n_children[i]; ++branch, ++child) {
            node.children.push_back(child);
            tree.nodes[child].code_begin = code;
            code += uint32_t(given.n_codes[child]);
            tree.nodes[child].code_end = code;
        }
    }
    tree.codes.assign(given.codes.begin(), given.codes.end());
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

// Number the nodes that are left level by level. `origin`: the nodes before pruning whose splits
// they have, -1 for leaves.
TreeArrays lay_out(const PruneTree& tree, Array<int64_t>& origin) {
    std::vector<uint32_t> order{0};
    for (size_t i = 0; i < order.size(); ++i) {
        const std::vector<uint32_t>& children = tree.nodes[order[i]].children;
        order.insert(order.end(), children.begin(), children.end());
    }
    size_t n_codes = 0;
    for (uint32_t at : order) n_codes += tree.nodes[at].code_end - tree.nodes[at].code_begin;
    TreeArrays arrays(order.size(), tree.classes, n_codes);
    const uint32_t* codes = tree.codes.data();
    for (size_t i = 0; i < order.size(); ++i) {
        const PruneNode& node = tree.nodes[order[i]];
        arrays.write(i, node, node.children.size(), node.cases);
        arrays.write_weights(i, tree.at(order[i]));
        arrays.write_codes(i, codes + node.code_begin, codes + node.code_end);
        origin.push_back(node.is_leaf() ? -1 : int64_t(node.origin));
    }
    return arrays;
}

// What is done to the tree.
struct Steps {
    bool collapses, prunes, raises, new_values;
};

// False if the watch gave up.
bool prune(const Table& table, const SurrogateRoutes& surrogates, const Estimate& estimate,
           const Watch& watch, const Steps& steps, PruneTree& tree) {
    PruneState state(estimate, steps.raises, tree);
    if (steps.collapses) state.collapse();
    if (!steps.prunes || state.decide_from_counts()) return true;
    if (table.fractions || surrogates.any())
        return FractionalRows(table, surrogates, steps.new_values, state).prune(watch);
    return WholeRows(table, steps.new_values, state).prune(watch);
}

Estimate read_estimate(Fields& given, size_t classes) {
    Estimate estimate{given.number("log_confidence", -1e6, 0), given.number("z", -1e6, 1e6),
                      int(given.whole("bits", -1100, 60)),
                      given.whole("slack", 0, Estimate::most_units)};
    constexpr double most = std::numeric_limits<double>::max();
    estimate.costs = read_numbers(given.list("costs"), "costs", 0, most);
    estimate.case_factors = read_numbers(given.list("case_factors"), "case_factors", 0, most);
    estimate.usual_costs = read_numbers(given.list("usual_costs"), "usual_costs", 0, most);
    const size_t rows = estimate.costs.empty() ? 0 : classes;
    if (estimate.costs.size() != rows * classes)
        refuse("costs must be empty or have one entry for each pair of classes");
    if (estimate.case_factors.size() != rows || estimate.usual_costs.size() != rows)
        refuse(
            "case_factors and usual_costs must have one entry for each class if there are costs");
    return estimate;
}

nb::dict prune_tree(nb::list columns, nb::list n_codes, nb::handle labels, int64_t n_classes,
                    nb::object weights, nb::dict tree, nb::object surrogates, nb::dict options) {
    Table table;
    Arrays arrays;
    read_rows(table, arrays, columns, read_sizes(n_codes, "n_codes", 1, most_codes), labels,
              n_classes);
    check_cells(table);
    Fields given("options", options);
    read_weights(table, arrays, weights, given);
    const Estimate estimate = read_estimate(given, size_t(n_classes));
    const Steps steps{given.flag("collapses"), given.flag("prunes"), given.flag("raises"),
                      given.flag("new_values")};
    given.check_all_taken();
    std::vector<uint32_t> values;
    for (const Column& tested : table.columns)
        values.push_back(tested.numeric ? 2 : tested.missing_code());
    Fields given_tree("tree", tree);
    const TreeView view = read_tree(arrays, given_tree, values);
    const auto node_weights =
        read_node_weights(arrays, given_tree.take("weights"), view.n_nodes(), size_t(n_classes));
    const auto node_cases =
        arrays.vector<double>(given_tree.take("cases"), "cases", view.n_nodes());
    check_finite("cases", node_cases);
    given_tree.check_all_taken();
    const SurrogateView others = read_surrogates(arrays, surrogates, view, values);
    const SurrogateRoutes routes(table, others);
    PruneTree pruned = as_prune_tree(view, size_t(n_classes), node_weights, node_cases);
    PythonInterruptCheck python{nb::none()};
    const Watch watch = std::ref(python);
    std::unique_ptr<TreeArrays> result;
    Array<int64_t> origin;
    {
        ReleasedGil released;
        if (prune(table, routes, estimate, watch, steps, pruned))
            result = std::make_unique<TreeArrays>(lay_out(pruned, origin));
    }
    if (python.interrupted()) throw nb::python_error();
    nb::dict given_back = hand_over(std::move(*result));
    const size_t n_nodes = origin.size();
    given_back["origin"] = own(std::move(origin), n_nodes);
    return given_back;
}

}  // namespace

void bind_pruning(nb::module_& m) {
    m.def("prune", &prune_tree, nb::arg("columns"), nb::arg("n_codes"), nb::arg("labels").none(),
          nb::arg("n_classes"), nb::arg("weights").none(), nb::arg("tree"),
          nb::arg("surrogates").none(), nb::arg("options"));
}
