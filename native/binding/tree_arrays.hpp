// What crosses the border between Python and the kernel: tables and trees, every size,
// index, sum and weight of which is checked before it is used, and arrays that Python
// owns when they go out. Nothing behind the border checks them again.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <utility>

#include "binding/arguments.hpp"
#include "core/problem.hpp"

namespace branchwise {

template <typename T>
nb::object own(Array<T>&& data, size_t rows, size_t columns = 0) {
    auto* kept = new Array<T>(std::move(data));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Array<T>*>(p); });
    if (columns) {
        size_t shape[2] = {rows, columns};
        return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), 2, shape, owner));
    }
    size_t shape[1] = {rows};
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), 1, shape, owner));
}

// ---- tables ----------------------------------------------------------------------

constexpr uint32_t most_codes = 0x7fffffff;
constexpr size_t most_rows = 0x7fffffff;

template <typename T>
uint32_t largest(const T* codes, size_t n) {
    T top = 0;
    for (size_t i = 0; i < n; ++i) top = std::max(top, codes[i]);
    return uint32_t(top);
}

// Codes or numbers, one for each row. Codes are not looked at.
inline Column read_cells(Arrays& arrays, nb::handle data, const std::string& name, size_t n_rows) {
    const Py_buffer& view = arrays.view(data, name);
    Column column;
    size_t n = 0;
    const auto take = [&](const auto& cells, const void*& to, int width) {
        to = cells.data();
        column.width = width;
        n = cells.size();
    };
    const void* numbers = nullptr;
    if (holds<uint8_t>(view))
        take(Arrays::entries<const uint8_t>(view, name), column.codes, 1);
    else if (holds<uint16_t>(view))
        take(Arrays::entries<const uint16_t>(view, name), column.codes, 2);
    else if (holds<uint32_t>(view))
        take(Arrays::entries<const uint32_t>(view, name), column.codes, 4);
    else if (holds<double>(view))
        take(Arrays::entries<const double>(view, name), numbers, 8);
    else
        refuse_type(name + " must be an array of uint8, uint16, uint32 or float64");
    if (n != n_rows)
        refuse(name + " must have one entry for each of " + std::to_string(n_rows) + " rows. Got " +
               std::to_string(n));
    column.numeric = column.width == 8;
    column.numbers = static_cast<const double*>(numbers);
    return column;
}

// Whether a number is missing; infinite ones, which have no midpoint, are refused.
inline bool check_numbers(const double* numbers, size_t n, const std::string& name) {
    bool infinite = false, missing = false;
    for (size_t i = 0; i < n; ++i) {
        infinite |= std::fabs(numbers[i]) > std::numeric_limits<double>::max();
        missing |= numbers[i] != numbers[i];
    }
    if (infinite) refuse(name + " must hold finite numbers, or NaN where one is missing");
    return missing;
}

// Codes without a number of them are bins, ranges of numbers in ascending order; the largest code
// that there may be stands for missing.
inline void read_bins(Column& column, const std::string& name, size_t n_rows) {
    if (column.width > 2) refuse(name + " must hold bins as uint8 or uint16");
    column.numeric = true;
    column.has_missing =
        column.width == 1
            ? largest(static_cast<const uint8_t*>(column.codes), n_rows) == column.missing_bin()
            : largest(static_cast<const uint16_t*>(column.codes), n_rows) == column.missing_bin();
}

inline Column read_column(Arrays& arrays, nb::handle data, const std::string& name,
                          uint32_t n_codes, size_t n_rows) {
    Column column = read_cells(arrays, data, name, n_rows);
    if (n_codes == 0 && !column.numeric) {
        read_bins(column, name, n_rows);
        return column;
    }
    if (column.numeric) {
        column.has_missing = check_numbers(column.numbers, n_rows, name);
        return column;
    }
    column.n_codes = n_codes;
    const uint32_t top =
        column.width == 1   ? largest(static_cast<const uint8_t*>(column.codes), n_rows)
        : column.width == 2 ? largest(static_cast<const uint16_t*>(column.codes), n_rows)
                            : largest(static_cast<const uint32_t*>(column.codes), n_rows);
    if (top >= n_codes)
        refuse(name + " must hold codes below " + std::to_string(n_codes) + ". Got " +
               std::to_string(top));
    column.has_missing = top == column.missing_code();
    return column;
}

// Codes and numbers, all of them within bounds.
inline void read_columns(Table& table, Arrays& arrays, const nb::list& columns,
                         const std::vector<uint32_t>& n_codes, size_t n_rows) {
    if (n_rows < 1 || n_rows > most_rows)
        refuse("columns must have between 1 and 2**31 - 1 rows, as many as labels or values");
    table.n_rows = n_rows;
    const nb::tuple cells = items_of(columns);
    if (n_codes.size() != cells.size()) refuse("columns must have one entry for each of n_codes");
    if (cells.size() > most_codes) refuse("columns must be fewer than 2**31");
    for (size_t j = 0; j < n_codes.size(); ++j)
        table.columns.push_back(
            read_column(arrays, cells[j], item("columns", j), n_codes[j], table.n_rows));
}

// The same with labels and classes.
inline void read_rows(Table& table, Arrays& arrays, const nb::list& columns,
                      const std::vector<uint32_t>& n_codes, nb::handle labels, int64_t n_classes) {
    check_whole("n_classes", n_classes, 1, most_codes);
    const auto given = arrays.vector<uint32_t>(labels, "labels");
    read_columns(table, arrays, columns, n_codes, given.size());
    table.n_classes = int(n_classes);
    table.labels = given.data();
    if (largest(table.labels, table.n_rows) >= uint32_t(n_classes))
        refuse("labels must be below n_classes");
}

// Tables by code and class may have so many cells: in proportion to the rows, unless
// they are small. Beyond that they would be all but empty.
inline size_t most_cells(size_t n_rows) { return (size_t(1) << 22) + 256 * n_rows; }

// The cells of the largest table; whoever has no codes has tables for something else.
inline size_t cells_of(size_t n_codes, size_t n_classes) {
    return std::max<size_t>(n_codes, 64) * n_classes;
}

inline size_t check_cells(const Table& table) {
    size_t n_codes = 1;
    for (const Column& column : table.columns) n_codes = std::max<size_t>(n_codes, column.n_codes);
    const size_t cells = cells_of(n_codes, size_t(table.n_classes));
    if (cells > most_cells(table.n_rows))
        refuse("n_codes and n_classes must have a product of at most " +
               std::to_string(most_cells(table.n_rows)) + " for " + std::to_string(table.n_rows) +
               " rows. Got " + std::to_string(cells));
    return cells;
}

// ---- weights ---------------------------------------------------------------------

// Weights and cases are counted in steps of their grids, so that they must lie on these,
// and the sum of all steps must be exact.
constexpr double most_steps = 9007199254740992.0;  // 2^53
constexpr double coarsest_case = 1.0 / (1 << 20);  // where cases are fractional
constexpr double longest_step = 1e289;             // most steps of which are finite

inline double sum_on_grid(const Span<const double>& weights, double step) {
    bool whole = true;
    double total = 0;
    for (double weight : weights) {
        const double steps = weight / step;
        whole &= steps >= 0 && steps == std::rint(steps);
        total += steps;
    }
    if (!whole || !(total <= most_steps))
        refuse("weights must be whole multiples of weight_step, 2**53 of them together at most");
    return total * step;
}

// The weight of every row, if rows have weights, and the grids of weights and cases;
// returns the weight of all rows.
inline double read_weights(Table& table, Arrays& arrays, nb::handle weights, Fields& grid) {
    table.fractions = grid.flag("fractions");
    for (const auto& [name, step] :
         {std::pair{"weight_step", &table.weight_step}, std::pair{"case_step", &table.case_step}}) {
        *step = grid.number(name, 0, longest_step);
        check_power_of_two(name, *step);
    }
    if (table.case_step > (table.fractions ? coarsest_case : 1.0))
        refuse("case_step must be at most 1, or 2**-20 with fractions");
    size_t n_cases = table.n_rows;
    double total = double(n_cases);
    if (!weights.is_none()) {
        const auto given = arrays.vector<double>(weights, "weights", table.n_rows);
        total = sum_on_grid(given, table.weight_step);
        // Rows of weight 0 are none.
        n_cases -= size_t(std::count(given.begin(), given.end(), 0.0));
        table.weights = given.data();
    } else if (table.weight_step != table.case_step) {
        // A record has one number for both then, so both must be on one grid.
        refuse("weight_step must equal case_step where there are no weights");
    }
    if (double(n_cases) / table.case_step > most_steps)
        refuse("case_step must not divide the rows into more than 2**53 steps");
    return total;
}

// ---- trees -----------------------------------------------------------------------

// A tree whose nodes are numbered level by level: one pass checks all. `values` has the number
// of values of each column, two for the sides of a threshold.
inline TreeView read_tree(Arrays& arrays, Fields& given, const std::vector<uint32_t>& values) {
    TreeView tree;
    tree.for_each_array([&](const char* name, auto& array) {
        using Entry = std::remove_const_t<std::remove_reference_t<decltype(array[0])>>;
        const nb::object entries = given.take(name);
        const bool by_node = std::string(name) != "column" && std::string(name) != "codes";
        array = by_node ? arrays.vector<Entry>(entries, name, tree.n_nodes())
                        : arrays.vector<Entry>(entries, name);
    });
    const size_t n = tree.n_nodes();
    if (n < 1 || n > most_codes)
        refuse("column must have between 1 and 2**31 - 1 entries, one for each node");
    if (tree.codes.size() > most_codes) refuse("codes must have fewer than 2**31 entries");
    if (tree.n_codes[0] != 0) refuse("n_codes must be 0 for the root, to which no codes lead");
    size_t child = 1;
    size_t code = 0;
    for (size_t i = 0; i < n; ++i) {
        const auto refuse_node = [&](const std::string& name, const char* complaint) {
            refuse(name + " of node " + std::to_string(i) + " must be " + complaint);
        };
        const int64_t branches = tree.n_children[i];
        // Else a node would be its own child, or that of one below it.
        if (i >= child) refuse_node("n_children", "such that a node before it leads there");
        if (branches < 0 || size_t(branches) > n - child)
            refuse_node("n_children", "a number of nodes that are left");
        if (tree.column[i] < -1 || tree.column[i] >= int64_t(values.size()) ||
            (tree.column[i] < 0) != (branches == 0))
            refuse_node("column", "the number of a column, or -1 for a leaf");
        for (const auto& [name, to] : {std::pair{"missing_to", tree.missing_to[i]},
                                       std::pair{"unseen_to", tree.unseen_to[i]}})
            if (to < every_branch || to >= branches)
                refuse_node(name, "one of its branches, -1 or -2");
        const int64_t limit = branches ? values[size_t(tree.column[i])] : 0;
        for (const size_t last = child + size_t(branches); child < last; ++child) {
            if (tree.n_codes[child] < 0 || size_t(tree.n_codes[child]) > tree.codes.size() - code)
                refuse_node("n_codes of the children", "numbers of codes that are left");
            for (const size_t end = code + size_t(tree.n_codes[child]); code < end; ++code)
                if (tree.codes[code] < 0 || tree.codes[code] >= limit)
                    refuse_node("codes of the children", "values of the column that it tests");
        }
    }
    if (child != n) refuse("n_children must add up to the number of nodes but the root");
    if (code != tree.codes.size()) refuse("n_codes must add up to the number of codes");
    return tree;
}

// The surrogates of a tree, or none. `values`: the codes of each column, 2 for numbers.
inline SurrogateView read_surrogates(Arrays& arrays, const nb::object& given, const TreeView& tree,
                                     const std::vector<uint32_t>& values) {
    SurrogateView surrogates;
    if (given.is_none()) return surrogates;
    if (!PyDict_Check(given.ptr())) refuse_type("surrogates must be a dict or None");
    Fields fields("surrogates", nb::borrow<nb::dict>(given));
    surrogates.number =
        arrays.vector<int64_t>(fields.take("n_surrogates"), "n_surrogates", tree.n_nodes());
    surrogates.column = arrays.vector<int64_t>(fields.take("surrogate_column"), "surrogate_column");
    const size_t n = surrogates.column.size();
    if (n > most_codes) refuse("surrogate_column must have fewer than 2**31 entries");
    surrogates.threshold =
        arrays.vector<double>(fields.take("surrogate_threshold"), "surrogate_threshold", n);
    surrogates.n_codes =
        arrays.vector<int64_t>(fields.take("surrogate_n_codes"), "surrogate_n_codes", 2 * n);
    surrogates.codes = arrays.vector<int64_t>(fields.take("surrogate_codes"), "surrogate_codes");
    fields.check_all_taken();
    size_t s = 0, code = 0;
    for (size_t node = 0; node < tree.n_nodes(); ++node) {
        const int64_t number = surrogates.number[node];
        if (number < 0 || size_t(number) > n - s || (number && tree.n_children[node] != 2))
            refuse("n_surrogates must be numbers of surrogates that are left, of two branches");
        for (const size_t end = s + size_t(number); s < end; ++s) {
            const int64_t column = surrogates.column[s];
            if (column < 0 || column >= int64_t(values.size()))
                refuse("surrogate_column must hold numbers of columns");
            for (size_t side = 2 * s; side < 2 * s + 2; ++side) {
                const int64_t n_codes = surrogates.n_codes[side];
                if (n_codes < 0 || size_t(n_codes) > surrogates.codes.size() - code)
                    refuse("surrogate_n_codes must be numbers of codes that are left");
                for (const size_t last = code + size_t(n_codes); code < last; ++code)
                    if (surrogates.codes[code] < 0 ||
                        surrogates.codes[code] >= int64_t(values[size_t(column)]))
                        refuse("surrogate_codes must hold values of their columns");
            }
        }
    }
    if (s != n) refuse("n_surrogates must add up to the number of surrogates");
    if (code != surrogates.codes.size())
        refuse("surrogate_n_codes must add up to the number of codes");
    return surrogates;
}

inline nb::dict hand_over(TreeArrays&& tree) {
    nb::dict arrays;
    const size_t n = tree.n_nodes();
    tree.for_each_array([&](const char* name, auto& array) {
        const size_t length = array.size();
        arrays[name] = own(std::move(array), length);
    });
    arrays["weights"] = own(std::move(tree.weights), n, tree.width);
    arrays["cases"] = own(std::move(tree.cases), n);
    const auto give = [&](const char* name, auto& array) {
        const size_t length = array.size();
        arrays[name] = own(std::move(array), length);
    };
    if (!tree.mean.empty()) {
        give("mean", tree.mean);
        give("deviation", tree.deviation);
    }
    if (tree.n_surrogates.empty()) return arrays;
    give("n_surrogates", tree.n_surrogates);
    give("surrogate_column", tree.surrogate_column);
    give("surrogate_threshold", tree.surrogate_threshold);
    give("surrogate_n_codes", tree.surrogate_n_codes);
    give("surrogate_codes", tree.surrogate_codes);
    return arrays;
}

// ---- the GIL ---------------------------------------------------------------------

// When the interpreter shuts down while daemon threads work, Python (before 3.14) ends
// each of them with pthread_exit where it tests for the GIL, which unwinds the C++ frames
// as an exception that must not be caught and that no destructor lets pass: the process
// would abort. Such a thread sleeps until the process has ended, as it does in 3.14.
inline bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

template <typename Call>
void survive_finalization(const Call& call) {
    try {
        call();
    } catch (...) {
        if (is_finalizing())
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        throw;
    }
}

// Releases the GIL for a scope.
class ReleasedGil {
  public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;
    ~ReleasedGil() {
        survive_finalization([&] { PyEval_RestoreThread(state_); });
    }

  private:
    PyThreadState* const state_;
};

// Holds the GIL for a scope.
class HeldGil {
  public:
    HeldGil() {
        survive_finalization([&] { state_ = PyGILState_Ensure(); });
    }
    HeldGil(const HeldGil&) = delete;
    HeldGil& operator=(const HeldGil&) = delete;
    ~HeldGil() { PyGILState_Release(state_); }

  private:
    PyGILState_STATE state_;
};

// ---- interrupts -----------------------------------------------------------------

// The watch over long work: passes Ctrl-C on, and reports progress if somebody listens.
class PythonInterruptCheck {
  public:
    explicit PythonInterruptCheck(nb::object progress)
        : progress_(std::move(progress)), report_(!progress_.is_none()) {
        if (report_ && !PyCallable_Check(progress_.ptr()))
            refuse_type("progress must be callable, or None");
    }

    bool operator()(size_t n_nodes) {
        const HeldGil held;
        if (PyErr_CheckSignals() != 0) {
            interrupted_ = true;
            return false;
        }
        if (report_) survive_finalization([&] { progress_(n_nodes); });
        return true;
    }

    bool interrupted() const { return interrupted_; }

  private:
    nb::object progress_;
    const bool report_;
    bool interrupted_ = false;
};

}  // namespace branchwise
