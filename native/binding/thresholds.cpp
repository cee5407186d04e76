// The border of the thresholds of one node: a column and the cases of the node come in, segments of
// its codes go out.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/options.hpp"
#include "records/node_thresholds.hpp"

namespace branchwise {

namespace {

ThresholdRules read_rules(const nb::dict& given) {
    ThresholdRules rules;
    Fields fields("rules", given);
    rules.gini = fields.flag("gini");
    rules.by_ratio = fields.flag("by_ratio");
    rules.weights_are_cases = fields.flag("weights_are_cases");
    rules.fewest_cases = fields.number("fewest_cases", 0);
    rules.fewest_weight = fields.number("fewest_weight", 0);
    const double most = std::numeric_limits<double>::max();
    rules.whole = fields.number("whole", -most, most);
    rules.total = fields.number("total", std::numeric_limits<double>::min(), most);
    rules.information = fields.number("information", -most, most);
    rules.unit = fields.number("unit", std::numeric_limits<double>::min(), most);
    rules.resolution = fields.number("resolution", 0, most);
    rules.min_gain = fields.number("min_gain", 0);
    rules.joining_cases = fields.number("joining_cases", 0, most);
    rules.step = fields.number("step", std::numeric_limits<double>::min(), most);
    fields.check_all_taken();
    return rules;
}

// How many cases have a number.
template <typename Code>
size_t check_codes(const NodeCases& node, const Code* codes, uint32_t n_codes) {
    bool sound = true;
    size_t n_known = 0;
    for (size_t i = 0; i < node.n; ++i) {
        const uint32_t code = codes[node.row(i)];
        sound &= code < n_codes;
        n_known += code + 1 < n_codes;
    }
    if (!sound) refuse("codes must be below n_codes");
    return n_known;
}

// Terms of all whole weights that a side may have.
const int64_t* read_table(Arrays& arrays, const nb::object& table, const ThresholdRules& rules,
                          const NodeCases& node, size_t n_known) {
    if (table.is_none() || node.weights) return nullptr;
    const auto terms = arrays.vector<int64_t>(table, "table");
    auto most = double(n_known);
    if (rules.joining)
        for (size_t c = 0; c < node.n_classes; ++c) most += rules.joining[c];
    if (most >= double(terms.size())) refuse("table must have an entry for every weight of a side");
    return terms.data();
}

NodeCases read_cases(Arrays& arrays, size_t n_rows, nb::object rows, nb::handle labels,
                     int64_t n_classes, nb::object weights, nb::object cases) {
    NodeCases node;
    check_whole("n_classes", n_classes, 1, most_codes);
    const auto given = arrays.vector<uint32_t>(labels, "labels");
    node.n = given.size();
    node.labels = given.data();
    node.n_classes = size_t(n_classes);
    if (node.n > most_rows) refuse("labels must be fewer than 2**31");
    if (node.n && largest(node.labels, node.n) >= node.n_classes)
        refuse("labels must be below n_classes");
    if (rows.is_none()) {
        if (node.n != n_rows) refuse("labels must have one entry for each of the codes");
    } else {
        const auto taken = arrays.vector<int64_t>(rows, "rows", node.n);
        for (int64_t row : taken)
            if (row < 0 || size_t(row) >= n_rows) refuse("rows must be numbers of codes");
        node.rows = taken.data();
    }
    const auto amounts = [&](const nb::object& array, const char* name) -> const double* {
        if (array.is_none()) return nullptr;
        const auto numbers = arrays.vector<double>(array, name, node.n);
        check_finite(name, numbers);
        return numbers.data();
    };
    node.weights = amounts(weights, "weights");
    node.cases = amounts(cases, "cases");
    return node;
}

template <typename Label, typename Code>
Segments found_in(const NodeCases& node, const Code* codes, uint32_t n_codes,
                  const ThresholdRules& rules) {
    const SortedCases<Label> sorted(node, codes, n_codes);
    return NodeThresholds<Label>(node, sorted, rules).find();
}

nb::tuple threshold_segments(nb::handle codes, int64_t n_codes, nb::object rows, nb::handle labels,
                             int64_t n_classes, nb::object weights, nb::object cases,
                             nb::dict rules, nb::object values, nb::object joining,
                             nb::object table) {
    Arrays arrays;
    check_whole("n_codes", n_codes, 1, most_codes);
    const Py_buffer& view = arrays.view(codes, "codes");
    const auto n_rows = size_t(view.len / std::max<Py_ssize_t>(view.itemsize, 1));
    const Column column = read_cells(arrays, codes, "codes", n_rows);
    if (column.numeric) refuse_type("codes must be an array of uint8, uint16 or uint32");
    const NodeCases node = read_cases(arrays, n_rows, rows, labels, n_classes, weights, cases);
    ThresholdRules given = read_rules(rules);
    const auto size = uint32_t(n_codes);
    if (!values.is_none())
        given.values = arrays.vector<double>(values, "values", size_t(size) - 1).data();
    if (!joining.is_none()) {
        const auto more = arrays.vector<double>(joining, "joining", node.n_classes);
        check_finite("joining", more);
        given.joining = more.data();
    }
    const auto find = [&](const auto* cells) {
        given.table = read_table(arrays, table, given, node, check_codes(node, cells, size));
        ReleasedGil released;
        // Fewer bytes, fewer misses of the cache.
        if (node.n_classes <= 256) return found_in<uint8_t>(node, cells, size, given);
        return found_in<uint32_t>(node, cells, size, given);
    };
    Segments found = column.width == 1   ? find(static_cast<const uint8_t*>(column.codes))
                     : column.width == 2 ? find(static_cast<const uint16_t*>(column.codes))
                                         : find(static_cast<const uint32_t*>(column.codes));
    const size_t n = found.first.size();
    return nb::make_tuple(found.n_thresholds, found.n_codes, own(std::move(found.first), n),
                          own(std::move(found.last), n),
                          own(std::move(found.weights), n, node.n_classes),
                          own(std::move(found.cases), n));
}

}  // namespace

}  // namespace branchwise

void bind_thresholds(nanobind::module_& m) {
    namespace nb = nanobind;
    m.def("threshold_segments", &branchwise::threshold_segments, nb::arg("codes"),
          nb::arg("n_codes"), nb::arg("rows").none(), nb::arg("labels"), nb::arg("n_classes"),
          nb::arg("weights").none(), nb::arg("cases").none(), nb::arg("rules"),
          nb::arg("values").none(), nb::arg("joining").none(), nb::arg("table").none());
}
