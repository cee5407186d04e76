// Adds the rows of a part of a table to counts by (node, code, class): what engines do
// that see their rows part by part. Counts are tables of all cells, one after the
// other; cell (node, code, class) lies at (node * n_codes + code) * n_classes + class.
// Counts the cases of classes down a finished tree, too.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "binding/tree_arrays.hpp"
#include "predict/class_cases.hpp"

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

// ---- cases of classes ---------------------------------------------------------------

nb::object class_cases(nb::list columns, nb::list n_codes, nb::handle labels, int64_t n_classes,
                       nb::object weights, nb::dict tree, nb::handle shares, nb::dict options) {
    Table table;
    Arrays arrays;
    read_rows(table, arrays, columns, read_sizes(n_codes, "n_codes", 1, most_codes), labels,
              n_classes);
    check_cells(table);
    Fields grid("options", options);
    read_weights(table, arrays, weights, grid);
    grid.check_all_taken();
    std::vector<uint32_t> values;
    for (const Column& tested : table.columns)
        values.push_back(tested.numeric ? 2 : tested.missing_code());
    Fields given("tree", tree);
    const TreeView view = read_tree(arrays, given, values);
    given.check_all_taken();
    const auto share = arrays.vector<double>(shares, "shares", view.n_nodes());
    if (!std::all_of(share.begin(), share.end(), [](double s) { return s >= 0 && s <= 1; }))
        refuse("shares must be numbers from 0 to 1");
    Array<double> out(cells_by_node(view.n_nodes(), 1, size_t(n_classes)), 0.0);
    PythonInterruptCheck python{nb::none()};
    const Watch watch = std::ref(python);
    {
        ReleasedGil released;
        ClassCases(table, view, share, out.data()).count(watch);
    }
    if (python.interrupted()) throw nb::python_error();
    return own(std::move(out), view.n_nodes(), size_t(n_classes));
}

// ---- moments ------------------------------------------------------------------------

// So many cases, with their moments, stay in the nearest cache from column to column.
constexpr size_t block_of_moments = 1024;
// Moments of up to so many columns are added up by loops that compilers unroll.
constexpr size_t few_moments = 16;
// A column and the tables of its sums, by code.
struct MomentTables {
    Column column;
    uint64_t* counts = nullptr;
    double* cases = nullptr;
    double* sums = nullptr;
};

// The cases of one node. `shares` are how much of a case each is.
struct MomentCases {
    const int64_t* rows;  // null: all rows
    const double* shares;
    const double* moments;
    size_t n, width;
};

template <typename Code>
void find_cells(const MomentTables& out, const MomentCases& given, size_t begin, size_t end,
                uint32_t* cells) {
    const auto* codes = static_cast<const Code*>(out.column.codes);
    for (size_t i = begin; i < end; ++i)
        cells[i - begin] = codes[given.rows ? size_t(given.rows[i]) : i];
}

// `fixed` is the number of moments, or 0.
template <size_t fixed>
void add_moments(const uint32_t* cells, size_t n, const double* moments, size_t width,
                 double* sums) {
    const size_t size = fixed ? fixed : width;
    for (size_t i = 0; i < n; ++i) {
        double* const to = &sums[cells[i] * size];
        for (size_t k = 0; k < size; ++k) to[k] += moments[i * size + k];
    }
}

using AddMoments = void (*)(const uint32_t*, size_t, const double*, size_t, double*);

template <size_t fixed = few_moments>
AddMoments adder_of(size_t width) {
    if constexpr (fixed == 0)
        return add_moments<0>;
    else
        return width == fixed ? add_moments<fixed> : adder_of<fixed - 1>(width);
}

// Sums are exact in any order.
void add_all_moments(const MomentCases& given, const std::vector<MomentTables>& out) {
    const AddMoments add = adder_of(given.width);
    uint32_t cells[block_of_moments];
    for (size_t begin = 0; begin < given.n; begin += block_of_moments) {
        const size_t end = std::min(begin + block_of_moments, given.n);
        for (const MomentTables& to : out) {
            if (to.column.width == 1) find_cells<uint8_t>(to, given, begin, end, cells);
            if (to.column.width == 2) find_cells<uint16_t>(to, given, begin, end, cells);
            if (to.column.width == 4) find_cells<uint32_t>(to, given, begin, end, cells);
            for (size_t i = 0; i < end - begin; ++i) ++to.counts[cells[i]];
            if (given.shares)
                for (size_t i = begin; i < end; ++i) to.cases[cells[i - begin]] += given.shares[i];
            add(cells, end - begin, &given.moments[begin * given.width], given.width, to.sums);
        }
    }
}

size_t rows_of(Arrays& arrays, nb::handle column) {
    const Py_buffer& view = arrays.view(column, item("columns", 0));
    return size_t(view.len / std::max<Py_ssize_t>(view.itemsize, 1));
}

MomentCases read_moment_cases(Arrays& arrays, const nb::object& rows, const nb::object& shares,
                              nb::handle moments, size_t n_rows) {
    const Py_buffer& given = arrays.view(moments, "moments", 2);
    const auto entries = Arrays::entries<const double>(given, "moments");
    MomentCases cases{nullptr, nullptr, entries.data(), size_t(given.shape[0]),
                      size_t(given.shape[1])};
    if (cases.width < 1 || cases.width > 1000)
        refuse("moments must have between 1 and 1000 columns");
    if (rows.is_none()) {
        if (cases.n != n_rows) refuse("moments must have one row for each of the codes");
    } else {
        const auto taken = arrays.vector<int64_t>(rows, "rows");
        if (taken.size() != cases.n) refuse("moments must have one row for each of rows");
        for (int64_t row : taken)
            if (row < 0 || size_t(row) >= n_rows) refuse("rows must be numbers of codes");
        cases.rows = taken.data();
    }
    if (!shares.is_none()) cases.shares = arrays.vector<double>(shares, "shares", cases.n).data();
    return cases;
}

void tally_moments(nb::list columns, nb::list n_codes, nb::object rows, nb::object shares,
                   nb::handle moments, nb::list counts, nb::list cases, nb::list sums) {
    Arrays arrays;
    const std::vector<uint32_t> sizes = read_sizes(n_codes, "n_codes", 1, most_codes);
    const nb::tuple cells = items_of(columns);
    const nb::tuple of_rows = items_of(counts), of_cases = items_of(cases), to = items_of(sums);
    const size_t n = cells.size();
    const size_t n_shared = shares.is_none() ? 0 : n;
    if (sizes.size() != n || of_rows.size() != n || to.size() != n)
        refuse("n_codes, counts and sums must have one entry for each column");
    if (of_cases.size() != n_shared)
        refuse("cases must have one table for each column with shares, and none without");
    if (!n) return;
    const size_t n_rows = rows_of(arrays, cells[0]);
    const MomentCases given = read_moment_cases(arrays, rows, shares, moments, n_rows);
    std::vector<MomentTables> out(n);
    for (size_t j = 0; j < n; ++j) {
        out[j].column = read_column(arrays, cells[j], item("columns", j), sizes[j], n_rows);
        if (out[j].column.numeric) refuse(item("columns", j) + " must hold codes");
        const auto table = arrays.writable<int64_t>(of_rows[j], item("counts", j), sizes[j]);
        // Counts that overflow start again: unsigned, that is no error.
        out[j].counts = reinterpret_cast<uint64_t*>(table.data());
        if (n_shared)
            out[j].cases = arrays.writable<double>(of_cases[j], item("cases", j), sizes[j]).data();
        const size_t size = sizes[j] * given.width;
        out[j].sums = arrays.writable<double>(to[j], item("sums", j), size).data();
    }
    ReleasedGil released;
    add_all_moments(given, out);
}

// ---- moments below thresholds -------------------------------------------------------

// So many sums are kept in registers.
constexpr size_t most_kept = 8;

template <typename Code>
void find_below(const Column& column, uint32_t above, const MomentCases& given, size_t begin,
                size_t end, double* below) {
    const auto* codes = static_cast<const Code*>(column.codes);
    for (size_t i = begin; i < end; ++i)
        below[i - begin] = codes[given.rows ? size_t(given.rows[i]) : i] < above ? 1.0 : 0.0;
}

// Adds some of the moments of the cases that are below; no branch, which would be guessed wrong for
// every other case.
template <size_t fixed>
void add_below(const double* below, size_t n, const double* moments, size_t width, double* to) {
    double sums[fixed] = {};
    for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < fixed; ++k) sums[k] += below[i] * moments[i * width + k];
    for (size_t k = 0; k < fixed; ++k) to[k] += sums[k];
}

using AddBelow = void (*)(const double*, size_t, const double*, size_t, double*);

template <size_t fixed = most_kept>
AddBelow adder_below(size_t n) {
    if constexpr (fixed == 1)
        return add_below<1>;
    else
        return n >= fixed ? add_below<fixed> : adder_below<fixed - 1>(n);
}

void add_all_below(const MomentCases& given, const std::vector<Column>& columns,
                   const std::vector<uint32_t>& above, double* cases, double* sums) {
    double below[block_of_moments];
    for (size_t begin = 0; begin < given.n; begin += block_of_moments) {
        const size_t end = std::min(begin + block_of_moments, given.n), n = end - begin;
        for (size_t j = 0; j < columns.size(); ++j) {
            const Column& own = columns[j];
            if (own.width == 1) find_below<uint8_t>(own, above[j], given, begin, end, below);
            if (own.width == 2) find_below<uint16_t>(own, above[j], given, begin, end, below);
            if (own.width == 4) find_below<uint32_t>(own, above[j], given, begin, end, below);
            for (size_t i = 0; i < n; ++i)
                cases[j] += given.shares ? below[i] * given.shares[begin + i] : below[i];
            for (size_t k = 0; k < given.width; k += most_kept)
                adder_below(given.width - k)(below, n, &given.moments[begin * given.width + k],
                                             given.width, &sums[j * given.width + k]);
        }
    }
}

// Of cases whose codes are below one, by column: their number and the sums of their moments.
void moments_below(nb::list columns, nb::list above, nb::object rows, nb::object shares,
                   nb::handle moments, nb::handle cases, nb::handle sums) {
    Arrays arrays;
    const std::vector<uint32_t> limits = read_sizes(above, "above", 0, most_codes);
    const nb::tuple cells = items_of(columns);
    if (limits.size() != cells.size()) refuse("above must have one entry for each column");
    if (limits.empty()) return;
    const size_t n_rows = rows_of(arrays, cells[0]);
    const MomentCases given = read_moment_cases(arrays, rows, shares, moments, n_rows);
    std::vector<Column> read;
    for (size_t j = 0; j < cells.size(); ++j) {
        read.push_back(read_cells(arrays, cells[j], item("columns", j), n_rows));
        if (read.back().numeric) refuse(item("columns", j) + " must hold codes");
    }
    const auto n = arrays.writable<double>(cases, "cases", read.size());
    const auto to = arrays.writable<double>(sums, "sums", read.size() * given.width);
    ReleasedGil released;
    add_all_below(given, read, limits, n.data(), to.data());
}

}  // namespace

void bind_counting(nb::module_& m) {
    m.def("class_cases", &class_cases, nb::arg("columns"), nb::arg("n_codes"),
          nb::arg("labels").none(), nb::arg("n_classes"), nb::arg("weights").none(),
          nb::arg("tree"), nb::arg("shares").none(), nb::arg("options"));
    m.def("tally_moments", &tally_moments, nb::arg("columns"), nb::arg("n_codes"),
          nb::arg("rows").none(), nb::arg("shares").none(), nb::arg("moments"), nb::arg("counts"),
          nb::arg("cases"), nb::arg("sums"));
    m.def("moments_below", &moments_below, nb::arg("columns"), nb::arg("above"),
          nb::arg("rows").none(), nb::arg("shares").none(), nb::arg("moments"), nb::arg("cases"),
          nb::arg("sums"));
    m.def("tally", &tally, nb::arg("columns"), nb::arg("n_codes"), nb::arg("labels").none(),
          nb::arg("n_classes"), nb::arg("nodes").none(), nb::arg("n_nodes"),
          nb::arg("weights").none(), nb::arg("rows"), nb::arg("sums"));
}
