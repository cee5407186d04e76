// Adds the rows of a part of a table to counts by (node, code, class): what engines do
// that see their rows part by part. Counts are tables of all cells, one after the
// other; cell (node, code, class) lies at (node * n_codes + code) * n_classes + class.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <vector>

#include "border.hpp"

using namespace branchwise;

namespace {

template <typename T>
using Writable = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A row is in an open node, or in none.
constexpr int32_t nowhere = -1;
// So many rows, with their nodes and labels, stay in the nearest cache from column to column.
constexpr size_t block = 4096;

struct Tables {
    int64_t* rows = nullptr;      // by (node, code, class), or with weights by (node, code)
    double* weights = nullptr;    // by (node, code, class)
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
void add_block(const Part& part, const Column& column, size_t begin, size_t end, const Tables& out) {
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

template <typename T>
T* table(nb::list tables, size_t j, size_t cells) {
    const auto array = nb::cast<Writable<T>>(tables[j]);
    if (array.shape(0) != cells) refuse("a table must have one entry for each cell");
    return array.data();
}

void tally(nb::list columns, const std::vector<uint32_t>& n_codes, const Vector<uint32_t>& labels, size_t n_classes,
           const Vector<int32_t>& nodes, size_t n_nodes, nb::object weights, nb::list rows, nb::list sums) {
    Problem given;
    read_rows(given, columns, n_codes, labels, int(n_classes), weights, false, 1.0, 1.0);
    if (nodes.shape(0) != given.n_rows) refuse("nodes must have one entry for each row");
    if (n_nodes < 1 || n_nodes >= size_t(1) << 31) refuse("between 1 and 2**31 - 1 nodes");
    const int32_t* node = nodes.data();
    for (size_t i = 0; i < given.n_rows; ++i)
        if (node[i] < nowhere || node[i] >= int64_t(n_nodes)) refuse("a node is not below n_nodes");
    const bool weighted = given.weights != nullptr;
    if (nb::len(rows) != n_codes.size() || nb::len(sums) != (weighted ? n_codes.size() : 0))
        refuse("one table for each column");
    std::vector<Tables> out(n_codes.size());
    for (size_t j = 0; j < out.size(); ++j) {
        if (given.columns[j].numeric) refuse("numbers must be given as codes");
        const size_t pairs = n_nodes * n_codes[j];
        out[j].rows = table<int64_t>(rows, j, weighted ? pairs : pairs * n_classes);
        if (weighted) out[j].weights = table<double>(sums, j, pairs * n_classes);
    }
    const Part part{given.columns, given.labels, node, given.weights, given.n_rows, n_classes};
    nb::gil_scoped_release released;
    add_rows(part, out);
}

}  // namespace

void bind_tallying(nb::module_& m) {
    m.def("tally", &tally, nb::arg("columns"), nb::arg("n_codes"), nb::arg("labels"), nb::arg("n_classes"),
          nb::arg("nodes"), nb::arg("n_nodes"), nb::arg("weights").none(), nb::arg("rows"), nb::arg("sums"));
}
