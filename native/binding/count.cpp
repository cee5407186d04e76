// Adds the rows of a part of a table to counts by (node, code, class): what engines do
// that see their rows part by part. Counts are tables of all cells, one after the
// other; cell (node, code, class) lies at (node * n_codes + code) * n_classes + class.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "binding/tree_arrays.hpp"

using namespace branchwise;

namespace {

// A row is in an open node, or in none.
constexpr int32_t nowhere = -1;
// So many rows, with their nodes and labels, stay in the nearest cache from column to column.
constexpr size_t block = 4096;

struct Tables {
    uint64_t* rows = nullptr;   // by (node, code, class), or with weights by (node, code)
    double* weights = nullptr;  // by (node, code, class)
};

struct Part {
    std::vector<Column> columns;
    const uint32_t* labels;
    const int32_t* nodes;
    const double* weights;
    size_t n_rows;
    size_t n_classes;
};

template <typename Code>
void add_block(const Part& part, const Column& column, size_t begin, size_t end,
               const Tables& out) {
    const auto* codes = static_cast<const Code*>(column.codes);
    const size_t n_codes = column.n_codes;
    for (size_t i = begin; i < end; ++i) {
        if (part.nodes[i] == nowhere) continue;
        const size_t pair = size_t(part.nodes[i]) * n_codes + codes[i];
        const size_t cell = pair * part.n_classes + part.labels[i];
        if (part.weights) {
            out.weights[cell] += part.weights[i];
            ++out.rows[pair];
        } else {
            ++out.rows[cell];
        }
    }
}

void add_rows(const Part& part, const std::vector<Tables>& out) {
    for (size_t begin = 0; begin < part.n_rows; begin += block) {
        const size_t end = std::min(begin + block, part.n_rows);
        for (size_t j = 0; j < part.columns.size(); ++j) {
            const Column& column = part.columns[j];
            if (column.width == 1) add_block<uint8_t>(part, column, begin, end, out[j]);
            if (column.width == 2) add_block<uint16_t>(part, column, begin, end, out[j]);
            if (column.width == 4) add_block<uint32_t>(part, column, begin, end, out[j]);
        }
    }
}

// The product of sizes, refused where no array could be as large.
size_t cells_by_node(size_t n_nodes, size_t n_codes, size_t n_classes) {
    const size_t pairs = n_nodes * n_codes;  // each below 2^31
    if (pairs > std::numeric_limits<size_t>::max() / sizeof(double) / n_classes)
        refuse("n_classes must not be so large");
    return pairs * n_classes;
}

void tally(nb::list columns, nb::list n_codes, nb::handle labels, int64_t n_classes,
           nb::handle nodes, int64_t n_nodes, nb::object weights, nb::list rows, nb::list sums) {
    Table given;
    Arrays arrays;
    const std::vector<uint32_t> sizes = read_sizes(n_codes, "n_codes", 1, most_codes);
    read_rows(given, arrays, columns, sizes, labels, n_classes);
    const auto node = arrays.vector<int32_t>(nodes, "nodes", given.n_rows);
    check_whole("n_nodes", n_nodes, 1, most_codes);
    for (size_t i = 0; i < node.size(); ++i)
        if (node[i] < nowhere || node[i] >= n_nodes) refuse("nodes must be below n_nodes, or -1");
    const bool weighted = !weights.is_none();
    if (weighted) given.weights = arrays.vector<double>(weights, "weights", given.n_rows).data();
    const nb::tuple row_tables = items_of(rows), sum_tables = items_of(sums);
    if (row_tables.size() != sizes.size()) refuse("rows must have one table for each column");
    if (sum_tables.size() != (weighted ? sizes.size() : 0))
        refuse("sums must have one table for each column with weights, and none without");
    std::vector<Tables> out(sizes.size());
    for (size_t j = 0; j < out.size(); ++j) {
        if (given.columns[j].numeric) refuse(item("columns", j) + " must hold codes");
        const size_t cells = cells_by_node(size_t(n_nodes), sizes[j], size_t(n_classes));
        const size_t pairs = cells / size_t(n_classes);
        // Counts that overflow start again: unsigned, that is no error.
        const auto table =
            arrays.writable<int64_t>(row_tables[j], item("rows", j), weighted ? pairs : cells);
        out[j].rows = reinterpret_cast<uint64_t*>(table.data());
        if (weighted)
            out[j].weights = arrays.writable<double>(sum_tables[j], item("sums", j), cells).data();
    }
    const Part part{given.columns, given.labels, node.data(),
                    given.weights, given.n_rows, size_t(n_classes)};
    ReleasedGil released;
    add_rows(part, out);
}

// The same for the moments of cases, all in one node, by code; these are sums that are exact in any
// order. `rows` are the rows of the cases, `shares` how much of a case each is.
template <typename Code>
void add_moments(const Code* codes, const Span<const int64_t>& rows, const double* shares,
                 const double* moments, size_t width, const Span<int64_t>& counts, double* cases,
                 double* sums) {
    for (size_t i = 0; i < rows.size(); ++i) {
        const size_t code = codes[size_t(rows[i])];
        ++counts[code];
        cases[code] += shares ? shares[i] : 1.0;
        for (size_t k = 0; k < width; ++k) sums[code * width + k] += moments[i * width + k];
    }
}

void tally_moments(nb::handle codes, int64_t n_codes, nb::handle rows, nb::object shares,
                   nb::handle moments, nb::handle counts, nb::handle cases, nb::handle sums) {
    Arrays arrays;
    check_whole("n_codes", n_codes, 1, most_codes);
    const Py_buffer& view = arrays.view(codes, "codes");
    const auto n_rows = size_t(view.len / std::max<Py_ssize_t>(view.itemsize, 1));
    const Column column = read_column(arrays, codes, "codes", uint32_t(n_codes), n_rows);
    if (column.numeric) refuse_type("codes must be an array of uint8, uint16 or uint32");
    const auto taken = arrays.vector<int64_t>(rows, "rows");
    for (int64_t row : taken)
        if (row < 0 || size_t(row) >= n_rows) refuse("rows must be numbers of codes");
    const Py_buffer& given = arrays.view(moments, "moments", 2);
    const auto entries = Arrays::entries<const double>(given, "moments");
    const auto width = size_t(given.shape[1]);
    if (size_t(given.shape[0]) != taken.size())
        refuse("moments must have one row for each of rows");
    if (width < 1 || width > 1000) refuse("moments must have between 1 and 1000 columns");
    const double* parts =
        shares.is_none() ? nullptr : arrays.vector<double>(shares, "shares", taken.size()).data();
    const auto cells = size_t(n_codes);
    const auto n = arrays.writable<int64_t>(counts, "counts", cells);
    double* of_cases = arrays.writable<double>(cases, "cases", cells).data();
    double* to = arrays.writable<double>(sums, "sums", cells * width).data();
    ReleasedGil released;
    const auto add = [&](const auto* cell) {
        add_moments(cell, taken, parts, entries.data(), width, n, of_cases, to);
    };
    if (column.width == 1) add(static_cast<const uint8_t*>(column.codes));
    if (column.width == 2) add(static_cast<const uint16_t*>(column.codes));
    if (column.width == 4) add(static_cast<const uint32_t*>(column.codes));
}

}  // namespace

void bind_counting(nb::module_& m) {
    m.def("tally_moments", &tally_moments, nb::arg("codes"), nb::arg("n_codes"), nb::arg("rows"),
          nb::arg("shares").none(), nb::arg("moments"), nb::arg("counts"), nb::arg("cases"),
          nb::arg("sums"));
    m.def("tally", &tally, nb::arg("columns"), nb::arg("n_codes"), nb::arg("labels").none(),
          nb::arg("n_classes"), nb::arg("nodes").none(), nb::arg("n_nodes"),
          nb::arg("weights").none(), nb::arg("rows"), nb::arg("sums"));
}
