// The border of the thresholds of one node: a column and the cases of the node come in, segments of
// its codes go out.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "binding/limbs.hpp"
#include "binding/options.hpp"
#include "records/node_thresholds.hpp"
#include "regression/node_numbers.hpp"

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

const double* read_amounts(Arrays& arrays, const nb::object& array, const char* name, size_t n) {
    if (array.is_none()) return nullptr;
    const auto numbers = arrays.vector<double>(array, name, n);
    check_finite(name, numbers);
    return numbers.data();
}

// So many cases, of a table with codes for so many rows; `of_cases` names what there is one of for
// each of them.
NodeCases read_cases(Arrays& arrays, size_t n, const char* of_cases, size_t n_rows,
                     const nb::object& rows, const nb::object& cases) {
    NodeCases node;
    node.n = n;
    if (n > most_rows) refuse(std::string(of_cases) + " must be fewer than 2**31");
    if (rows.is_none()) {
        if (n != n_rows)
            refuse(std::string(of_cases) + " must have one entry for each of the codes");
    } else {
        const auto taken = arrays.vector<int64_t>(rows, "rows", n);
        for (int64_t row : taken)
            if (row < 0 || size_t(row) >= n_rows) refuse("rows must be numbers of codes");
        node.rows = taken.data();
    }
    node.cases = read_amounts(arrays, cases, "cases", n);
    return node;
}

// The codes of a column, of so many rows.
Column read_codes(Arrays& arrays, nb::handle codes, int64_t n_codes, size_t& n_rows) {
    check_whole("n_codes", n_codes, 1, most_codes);
    const Py_buffer& view = arrays.view(codes, "codes");
    n_rows = size_t(view.len / std::max<Py_ssize_t>(view.itemsize, 1));
    const Column column = read_cells(arrays, codes, "codes", n_rows);
    if (column.numeric) refuse_type("codes must be an array of uint8, uint16 or uint32");
    return column;
}

// find(codes), of whatever type they are.
template <typename Find>
Segments found_by(const Column& column, const Find& find) {
    if (column.width == 1) return find(static_cast<const uint8_t*>(column.codes));
    if (column.width == 2) return find(static_cast<const uint16_t*>(column.codes));
    return find(static_cast<const uint32_t*>(column.codes));
}

nb::tuple handed_over(Segments&& found, size_t width) {
    const size_t n = found.first.size();
    return nb::make_tuple(found.n_thresholds, found.n_codes, own(std::move(found.first), n),
                          own(std::move(found.last), n), own(std::move(found.weights), n, width),
                          own(std::move(found.cases), n));
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
    size_t n_rows;
    const Column column = read_codes(arrays, codes, n_codes, n_rows);
    check_whole("n_classes", n_classes, 1, most_codes);
    const auto classes = arrays.vector<uint32_t>(labels, "labels");
    NodeCases node = read_cases(arrays, classes.size(), "labels", n_rows, rows, cases);
    node.labels = classes.data();
    node.n_classes = size_t(n_classes);
    if (node.n && largest(node.labels, node.n) >= node.n_classes)
        refuse("labels must be below n_classes");
    node.weights = read_amounts(arrays, weights, "weights", node.n);
    ThresholdRules given = read_rules(rules);
    const auto size = uint32_t(n_codes);
    if (!values.is_none())
        given.values = arrays.vector<double>(values, "values", size_t(size) - 1).data();
    if (!joining.is_none()) {
        const auto more = arrays.vector<double>(joining, "joining", node.n_classes);
        check_finite("joining", more);
        given.joining = more.data();
    }
    Segments found = found_by(column, [&](const auto* cells) {
        given.table = read_table(arrays, table, given, node, check_codes(node, cells, size));
        ReleasedGil released;
        // Fewer bytes, fewer misses of the cache.
        if (node.n_classes <= 256) return found_in<uint8_t>(node, cells, size, given);
        return found_in<uint32_t>(node, cells, size, given);
    });
    return handed_over(std::move(found), node.n_classes);
}

// ---- numbers ------------------------------------------------------------------------

NumberRules read_number_rules(Fields& fields) {
    const double most = std::numeric_limits<double>::max();
    NumberRules rules;
    rules.weights_are_cases = fields.flag("weights_are_cases");
    rules.joins = fields.flag("joins");
    rules.branch = fields.flag("branch");
    rules.fewest_cases = fields.number("fewest_cases", 0);
    rules.fewest_weight = fields.number("fewest_weight", 0);
    rules.unit = fields.number("unit", std::numeric_limits<double>::min(), most);
    rules.noise = fields.number("noise", 0, most);
    rules.missing_cases = fields.number("missing_cases", 0, most);
    return rules;
}

void read_steps(NodeMoments& node, Fields& fields) {
    const double most = std::numeric_limits<double>::max();
    const double least = std::numeric_limits<double>::min();
    const double centre = fields.number("centre", -most, most);
    const double factor = fields.number("factor", least, most);
    const double step = fields.number("step", least, most);
    node.set_steps(centre, factor, step, fields.number("low_step", least, most));
}

// The limbs of moments that have so many columns.
NumberScale read_scale(const nb::list& sum_exponents, size_t width) {
    NumberScale scale;
    scale.sums = read_exponents(sum_exponents, "sum_exponents");
    if (width <= scale.sums.size()) refuse("moments must have a weight and the limbs of sums");
    scale.squares.resize(width - 1 - scale.sums.size());
    scale.set_steps();
    return scale;
}

struct GivenMoments {
    const double* of_cases;
    size_t n, width;
};

GivenMoments read_moments(Arrays& arrays, nb::handle moments) {
    const Py_buffer& given = arrays.view(moments, "moments", 2);
    const auto entries = Arrays::entries<const double>(given, "moments");
    return {entries.data(), size_t(given.shape[0]), size_t(given.shape[1])};
}

// What is found in a column of which the known cases are so far from the mean.
template <bool poisson>
Segments numbers_found_in(const NodeNumbers& numbers, const NumberScale& scale,
                          const NodeMoments& node, const SortedCases<uint32_t>& sorted,
                          const NumberRules& rules, const Distance& known) {
    if (numbers.cases.weights || numbers.cases.cases)
        return NumberThresholds<poisson, false>(numbers, scale, node, sorted, rules).find(known);
    return NumberThresholds<poisson, true>(numbers, scale, node, sorted, rules).find(known);
}

nb::tuple number_segments(nb::handle codes, int64_t n_codes, nb::object rows, nb::object weights,
                          nb::object cases, nb::handle moments, nb::handle distances,
                          nb::list sum_exponents, nb::dict rules, nb::handle missing,
                          bool poisson) {
    Arrays arrays;
    size_t n_rows;
    const Column column = read_codes(arrays, codes, n_codes, n_rows);
    const GivenMoments given = read_moments(arrays, moments);
    NodeNumbers numbers;
    numbers.cases = read_cases(arrays, given.n, "moments", n_rows, rows, cases);
    numbers.moments = given.of_cases;
    numbers.cases.weights = read_amounts(arrays, weights, "weights", given.n);
    numbers.distances = arrays.vector<double>(distances, "distances", 2 * given.n).data();
    const NumberScale scale = read_scale(sum_exponents, given.width);
    const std::vector<double> series;
    NodeMoments node(scale, series);
    Fields fields("rules", rules);
    NumberRules known = read_number_rules(fields);
    read_steps(node, fields);
    fields.check_all_taken();
    const auto without = arrays.vector<double>(missing, "missing", 3);
    for (double each : without)
        if (!std::isfinite(each)) refuse("missing must be finite");
    known.missing = {without[0], without[1], without[2]};
    const auto size = uint32_t(n_codes);
    Segments found = found_by(column, [&](const auto* cells) {
        check_codes(numbers.cases, cells, size);
        ReleasedGil released;
        Distance sum;
        for (size_t i = 0; i < given.n; ++i)
            if (cells[numbers.cases.row(i)] + 1u < size) sum += numbers.distance(i);
        NodeCases unweighted = numbers.cases;  // weights are with the distances
        unweighted.weights = nullptr;
        const SortedCases<uint32_t> sorted(unweighted, cells, size);
        if (poisson) return numbers_found_in<true>(numbers, scale, node, sorted, known, sum);
        return numbers_found_in<false>(numbers, scale, node, sorted, known, sum);
    });
    return handed_over(std::move(found), 3);
}

// Distances of cases from the mean of their node: Moments64.statistics.
void number_distances(nb::handle moments, nb::list sum_exponents, nb::dict steps, nb::handle out) {
    Arrays arrays;
    const GivenMoments given = read_moments(arrays, moments);
    const NumberScale scale = read_scale(sum_exponents, given.width);
    const std::vector<double> series;
    NodeMoments node(scale, series);
    Fields fields("steps", steps);
    read_steps(node, fields);
    fields.check_all_taken();
    const auto to = arrays.writable<double>(out, "out", 2 * given.n);
    ReleasedGil released;
    for (size_t i = 0; i < given.n; ++i) {
        const double* const own = &given.of_cases[i * given.width];
        const Distance found = node.distance(own[0], own + 1);
        to[2 * i] = found.high;
        to[2 * i + 1] = found.low;
    }
}

}  // namespace

}  // namespace branchwise

void bind_thresholds(nanobind::module_& m) {
    namespace nb = nanobind;
    m.def("threshold_segments", &branchwise::threshold_segments, nb::arg("codes"),
          nb::arg("n_codes"), nb::arg("rows").none(), nb::arg("labels"), nb::arg("n_classes"),
          nb::arg("weights").none(), nb::arg("cases").none(), nb::arg("rules"),
          nb::arg("values").none(), nb::arg("joining").none(), nb::arg("table").none());
    m.def("number_segments", &branchwise::number_segments, nb::arg("codes"), nb::arg("n_codes"),
          nb::arg("rows").none(), nb::arg("weights").none(), nb::arg("cases").none(),
          nb::arg("moments"), nb::arg("distances"), nb::arg("sum_exponents"), nb::arg("rules"),
          nb::arg("missing"), nb::arg("poisson"));
    m.def("number_distances", &branchwise::number_distances, nb::arg("moments"),
          nb::arg("sum_exponents"), nb::arg("steps"), nb::arg("out"));
}
