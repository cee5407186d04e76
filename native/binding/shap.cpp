// The border of Shapley values.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>

#include "binding/tree_arrays.hpp"
#include "core/thread_pool.hpp"
#include "shap/set_shap.hpp"
#include "shap/tree_shap.hpp"

using namespace branchwise;

namespace {

// The columns that a tree tests.
std::vector<bool> used_columns(const TreeView& tree, const SurrogateView& surrogates,
                               size_t n_columns) {
    std::vector<bool> used(n_columns);
    for (const int64_t column : tree.column)
        if (column >= 0) used[size_t(column)] = true;
    for (const int64_t column : surrogates.column) used[size_t(column)] = true;
    return used;
}

// The cells of the columns in use: codes up to that of unseen values, or numbers.
std::vector<Column> read_used(Arrays& arrays, const nb::list& columns, const char* name,
                              const std::vector<uint32_t>& values, const std::vector<bool>& used,
                              size_t n_rows) {
    const nb::tuple given = items_of(columns);
    if (given.size() != values.size())
        refuse(std::string(name) + " must have one entry for each column");
    std::vector<Column> cells(given.size());
    for (size_t j = 0; j < cells.size(); ++j) {
        if (!used[j]) continue;
        const std::string label = item(name, j);
        cells[j] = read_cells(arrays, given[j], label, n_rows);
        if (cells[j].numeric != (values[j] == 0))
            refuse(label + (cells[j].numeric ? " must hold codes" : " must hold numbers"));
        if (cells[j].numeric) continue;
        uint32_t top = 0;
        for (size_t i = 0; i < n_rows; ++i) top = std::max(top, cells[j].at(i));
        if (top > values[j] + 1)
            refuse(label + " must hold no code that is beyond that of unseen values");
    }
    return cells;
}

// Rows of a block: so many that groups are worth it, few enough that all threads have one.
size_t rows_of_block(size_t n_rows, unsigned n_threads) {
    constexpr size_t most = 16384, least = 256;
    const size_t n_blocks = std::max<size_t>((n_rows + most - 1) / most, n_threads);
    return std::max((n_rows + n_blocks - 1) / n_blocks, least);
}

// Whether a value that is missing or unseen, and so may divide a row, is among the cells in use.
bool has_unknown(const std::vector<Column>& cells, const std::vector<uint32_t>& values,
                 size_t n_rows) {
    for (size_t j = 0; j < cells.size(); ++j) {
        const Column& column = cells[j];
        for (size_t i = 0; column.numeric && i < n_rows; ++i)
            if (column.numbers[i] != column.numbers[i]) return true;
        for (size_t i = 0; column.codes && i < n_rows; ++i)
            if (column.at(i) >= values[j]) return true;
    }
    return false;
}

// Explain all rows, block by block; false if the watch gave up. `Shap` is TreeShap or SetShap.
template <typename Shap>
bool add_blocks(const ShapProblem& problem, const std::vector<Column>& columns, size_t n_rows,
                unsigned n_threads, double* out, const Watch& watch) {
    const size_t each = rows_of_block(n_rows, n_threads), n_blocks = (n_rows + each - 1) / each;
    const size_t size = problem.n_columns * (problem.pairs ? problem.n_columns : 1);
    const auto do_block = [&](Shap& shap, size_t block, const auto& go_on) {
        const size_t first = block * each, n = std::min(each, n_rows - first);
        const ShapRows rows = ShapRows::of(columns, first, n);
        return shap.add(rows, out + first * size * problem.n_outputs, go_on);
    };
    if (n_threads == 1 || n_blocks == 1) {
        InterruptCheck interrupts(watch);
        Shap shap(problem);
        for (size_t block = 0; block < n_blocks; ++block)
            if (!do_block(shap, block, [&](size_t work) { return interrupts.go_on(16 * work, 0); }))
                return false;
        return true;
    }
    std::atomic<size_t> next{0};
    std::atomic<bool> given_up{false};
    ThreadPool pool(unsigned(std::min<size_t>(n_threads, n_blocks)), 0);
    pool.run(
        [&](unsigned) {
            Shap shap(problem);
            const auto go_on = [&](size_t) { return !given_up.load(std::memory_order_relaxed); };
            for (size_t block; (block = next.fetch_add(1)) < n_blocks;)
                if (!do_block(shap, block, go_on)) return;
        },
        [&] {
            if (!watch(0)) given_up = true;
        });
    return !given_up;
}

// Add the Shapley values of a tree, or the interactions of pairs of columns, to `out`.
void add_shap(nb::dict tree, nb::object surrogates, nb::handle sizes, nb::list values,
              nb::handle node_values, nb::list columns, size_t n_rows, nb::object background,
              nb::handle weights, bool pairs, int64_t n_threads, nb::handle out) {
    Arrays arrays;
    const std::vector<uint32_t> n_values = read_sizes(values, "values", 0, most_codes - 2);
    std::vector<uint32_t> limits = n_values;
    std::replace(limits.begin(), limits.end(), 0u, 2u);  // the sides of a threshold
    Fields fields("tree", tree);
    const TreeView view = read_tree(arrays, fields, limits);
    fields.check_all_taken();
    const SurrogateView others = read_surrogates(arrays, surrogates, view, limits);
    const auto size = arrays.vector<double>(sizes, "sizes", view.n_nodes());
    check_finite("sizes", size);
    for (const double one : size)
        if (!(one > 0)) refuse("sizes must be larger than 0");
    const Py_buffer& given = arrays.view(node_values, "node_values", 2);
    const auto numbers = Arrays::entries<const double>(given, "node_values");
    if (size_t(given.shape[0]) != view.n_nodes() || given.shape[1] < 1)
        refuse("node_values must have one line for each node");
    const auto n_outputs = size_t(given.shape[1]);
    if (n_rows > most_rows) refuse("n_rows must be below 2**31");
    check_whole("n_threads", n_threads, 1, 256);
    const std::vector<bool> used = used_columns(view, others, n_values.size());
    const std::vector<Column> cells = read_used(arrays, columns, "columns", n_values, used, n_rows);
    ShapRows other_rows;
    bool unknown = false;
    Span<const double> weight;
    if (!background.is_none()) {
        if (!PyList_Check(background.ptr())) refuse_type("background must be a list or None");
        weight = arrays.vector<double>(weights, "weights");
        if (!weight.size() || weight.size() > most_rows)
            refuse("weights must have between 1 and 2**31 - 1 entries");
        check_finite("weights", weight);
        const std::vector<Column> other_cells = read_used(
            arrays, nb::borrow<nb::list>(background), "background", n_values, used, weight.size());
        other_rows = ShapRows::of(other_cells, 0, weight.size());
        unknown = has_unknown(other_cells, n_values, weight.size()) ||
                  has_unknown(cells, n_values, n_rows);
    }
    size_t length = n_rows;
    for (const size_t factor : {n_values.size(), pairs ? n_values.size() : 1, n_outputs}) {
        if (factor && length > (size_t(1) << 40) / factor) refuse("out must be smaller");
        length *= factor;
    }
    const auto to = arrays.writable<double>(out, "out", length);
    PythonInterruptCheck python{nb::none()};
    const Watch watch = [&](size_t n) { return python(n); };
    {
        ReleasedGil released;
        const ColumnTests tests(view, others, size, n_values);
        const ShapProblem problem{tests,
                                  numbers.data(),
                                  n_outputs,
                                  n_values.size(),
                                  pairs,
                                  n_rows,
                                  background.is_none() ? nullptr : &other_rows,
                                  weight.data()};
        const auto add = SetShap::applies(problem, unknown && tests.divides())
                             ? &add_blocks<SetShap>
                             : &add_blocks<TreeShap>;
        add(problem, cells, n_rows, unsigned(n_threads), to.data(), watch);
    }
    if (python.interrupted()) throw nb::python_error();
}

}  // namespace

void bind_shap(nb::module_& m) {
    m.def("add_shap", &add_shap, nb::arg("tree"), nb::arg("surrogates").none(),
          nb::arg("sizes").none(), nb::arg("values"), nb::arg("node_values").none(),
          nb::arg("columns"), nb::arg("n_rows"), nb::arg("background").none(),
          nb::arg("weights").none(), nb::arg("pairs"), nb::arg("n_threads"), nb::arg("out").none());
}
