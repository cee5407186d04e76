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
#include "predict/jump_table.hpp"

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
    return static_cast<uint32_t>(top);
}

// Codes or numbers, one for each row. Codes are not looked at.
inline Column read_cells(Arrays& arrays, nb::handle data, const std::string& name, size_t n_rows) {
    const Py_buffer& view = arrays.view(data, name);
    Column column;
    size_t n = 0;
    const auto take = [&](const auto& cells, const void*& to, int width) {
        to = cells.data;
        column.width = width;
        n = cells.size;
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

inline Column read_column(Arrays& arrays, nb::handle data, const std::string& name,
                          uint32_t n_codes, size_t n_rows) {
    Column column = read_cells(arrays, data, name, n_rows);
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

// Codes, numbers, labels and classes, all of them within bounds.
inline void read_rows(Problem& problem, Arrays& arrays, const nb::list& columns,
                      const std::vector<uint32_t>& n_codes, nb::handle labels, int64_t n_classes) {
    check_whole("n_classes", n_classes, 1, most_codes);
    const auto given = arrays.vector<uint32_t>(labels, "labels");
    if (given.size < 1 || given.size > most_rows)
        refuse("labels must have between 1 and 2**31 - 1 entries");
    problem.n_rows = given.size;
    problem.n_classes = int(n_classes);
    problem.labels = given.data;
    if (largest(problem.labels, problem.n_rows) >= static_cast<uint32_t>(n_classes))
        refuse("labels must be below n_classes");
    const nb::tuple cells = items_of(columns);
    if (n_codes.size() != cells.size()) refuse("columns must have one entry for each of n_codes");
    if (cells.size() > most_codes) refuse("columns must be fewer than 2**31");
    for (size_t j = 0; j < n_codes.size(); ++j)
        problem.columns.push_back(
            read_column(arrays, cells[j], item("columns", j), n_codes[j], problem.n_rows));
}

// Tables by code and class may have so many cells: in proportion to the rows, unless
// they are small. Beyond that they would be all but empty.
inline size_t most_cells(size_t n_rows) { return (size_t(1) << 22) + 256 * n_rows; }

// The cells of the largest table; whoever has no codes has tables for something else.
inline size_t check_cells(const Problem& problem) {
    size_t n_codes = 64;
    for (const Column& column : problem.columns)
        n_codes = std::max<size_t>(n_codes, column.n_codes);
    const size_t cells = n_codes * static_cast<size_t>(problem.n_classes);
    if (cells > most_cells(problem.n_rows))
        refuse("n_codes and n_classes must have a product of at most " +
               std::to_string(most_cells(problem.n_rows)) + " for " +
               std::to_string(problem.n_rows) + " rows. Got " + std::to_string(cells));
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
    for (size_t i = 0; i < weights.size; ++i) {
        const double steps = weights[i] / step;
        whole &= steps >= 0 && steps == std::rint(steps);
        total += steps;
    }
    if (!whole || !(total <= most_steps))
        refuse("weights must be whole multiples of weight_step, 2**53 of them together at most");
    return total * step;
}

// The weight of every row, if rows have weights, and the grids of weights and cases;
// returns the weight of all rows.
inline double read_weights(Problem& problem, Arrays& arrays, nb::handle weights, bool fractions,
                           double weight_step, double case_step) {
    for (const auto& [name, step] :
         {std::pair{"weight_step", weight_step}, std::pair{"case_step", case_step}}) {
        check_power_of_two(name, step);
        check_number(name, step, 0, longest_step);
    }
    if (case_step > (fractions ? coarsest_case : 1.0))
        refuse("case_step must be at most 1, or 2**-20 with fractions");
    problem.fractions = fractions;
    problem.weight_step = weight_step;
    problem.case_step = case_step;
    size_t n_cases = problem.n_rows;
    double total = double(n_cases);
    if (!weights.is_none()) {
        const auto given = arrays.vector<double>(weights, "weights", problem.n_rows);
        total = sum_on_grid(given, weight_step);
        n_cases -= size_t(
            std::count(given.data, given.data + given.size, 0.0));  // rows of weight 0 are none
        problem.weights = given.data;
    } else if (weight_step != case_step) {
        // A record has one number for both then, so both must be on one grid.
        refuse("weight_step must equal case_step where there are no weights");
    }
    if (double(n_cases) / case_step > most_steps)
        refuse("case_step must not divide the rows into more than 2**53 steps");
    return total;
}

// ---- impurities ----------------------------------------------------------------------

// Sums of impurities are below 2^61, so that what is added to or taken from one of them is no
// overflow: `bits` must be no more than ImpuritySums64 of grow/criteria.py finds for the total, and
// not so few that nothing is left.
inline void check_impurities(int64_t bits, double total, bool whole, double total_of_rows,
                             const Problem& problem) {
    check_number("total", total, std::numeric_limits<double>::min(), 1e301);
    if (total_of_rows > total) refuse("total must be the weight of all rows at least");
    if (whole && (problem.fractions || problem.weight_step != 1.0))
        refuse("whole must be False where weights may be fractions");
    if (problem.fractions && !(problem.weight_step <= std::ldexp(total, -40)))
        refuse("weight_step must be 2**-40 of the total at most");
    check_whole("bits", bits, -1100, 1100);
    const double logarithm = std::log2(total);
    const double largest_sum =
        total * (whole ? std::max(logarithm, 1.0) : std::fabs(logarithm) + 54);
    const double scaled =
        std::ldexp(largest_sum, int(bits) - 61);  // between a half and 1, as ImpuritySums64 has it
    if (!(scaled > 1e-12 && scaled < 1 + 1e-9))
        refuse("bits must be those of impurities of the total");
}

// ---- trees -----------------------------------------------------------------------

struct GivenTree {
    nb::handle column, threshold, n_children, missing_to, unseen_to, n_codes, codes;
};

// A tree whose nodes are numbered level by level, so that children and their codes lie
// in the order of their parents: one pass checks all. `values` has the number of values
// of each column, two for the sides of a threshold.
inline TreeView read_tree(Arrays& arrays, const GivenTree& given,
                          const std::vector<uint32_t>& values) {
    const auto column = arrays.vector<int64_t>(given.column, "column");
    const size_t n = column.size;
    if (n < 1 || n > most_codes)
        refuse("column must have between 1 and 2**31 - 1 entries, one for each node");
    const auto threshold = arrays.vector<double>(given.threshold, "threshold", n);
    const auto n_children = arrays.vector<int64_t>(given.n_children, "n_children", n);
    const auto missing_to = arrays.vector<int64_t>(given.missing_to, "missing_to", n);
    const auto unseen_to = arrays.vector<int64_t>(given.unseen_to, "unseen_to", n);
    const auto n_codes = arrays.vector<int64_t>(given.n_codes, "n_codes", n);
    const auto codes = arrays.vector<int64_t>(given.codes, "codes");
    if (codes.size > most_codes) refuse("codes must have fewer than 2**31 entries");
    if (n_codes[0] != 0) refuse("n_codes must be 0 for the root, to which no codes lead");
    size_t child = 1;
    size_t code = 0;
    for (size_t i = 0; i < n; ++i) {
        const auto refuse_node = [&](const std::string& name, const char* complaint) {
            refuse(name + " of node " + std::to_string(i) + " must be " + complaint);
        };
        const int64_t branches = n_children[i];
        // Else a node would be its own child, or that of one below it.
        if (i >= child) refuse_node("n_children", "such that a node before it leads there");
        if (branches < 0 || size_t(branches) > n - child)
            refuse_node("n_children", "a number of nodes that are left");
        if (column[i] < -1 || column[i] >= int64_t(values.size()) ||
            (column[i] < 0) != (branches == 0))
            refuse_node("column", "the number of a column, or -1 for a leaf");
        for (const auto& [name, to] :
             {std::pair{"missing_to", missing_to[i]}, std::pair{"unseen_to", unseen_to[i]}})
            if (to < every_branch || to >= branches)
                refuse_node(name, "one of its branches, -1 or -2");
        const int64_t limit = branches ? values[size_t(column[i])] : 0;
        for (const size_t last = child + size_t(branches); child < last; ++child) {
            if (n_codes[child] < 0 || size_t(n_codes[child]) > codes.size - code)
                refuse_node("n_codes of the children", "numbers of codes that are left");
            for (const size_t end = code + size_t(n_codes[child]); code < end; ++code)
                if (codes[code] < 0 || codes[code] >= limit)
                    refuse_node("codes of the children", "values of the column that it tests");
        }
    }
    if (child != n) refuse("n_children must add up to the number of nodes but the root");
    if (code != codes.size) refuse("n_codes must add up to the number of codes");
    return {
        n,          column.data,    n_children.data, missing_to.data, unseen_to.data, n_codes.data,
        codes.data, threshold.data, nullptr,         nullptr};
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

// ---- watch and results -----------------------------------------------------------

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

// The arrays of tree/tree.py.
struct TreeArrays {
    Array<int64_t> column, n_children, missing_to, unseen_to, n_codes, codes;
    Array<double> threshold, weights, cases;

    void resize(size_t n, size_t classes) {
        for (auto* array : {&column, &n_children, &missing_to, &unseen_to, &n_codes})
            array->resize(n);
        for (auto* array : {&threshold, &cases}) array->resize(n);
        weights.resize(n * classes);
    }

    nb::dict hand_over(size_t classes) {
        const size_t n = column.size();
        const size_t total_codes = codes.size();
        nb::dict tree;
        tree["column"] = own(std::move(column), n);
        tree["threshold"] = own(std::move(threshold), n);
        tree["n_children"] = own(std::move(n_children), n);
        tree["missing_to"] = own(std::move(missing_to), n);
        tree["unseen_to"] = own(std::move(unseen_to), n);
        tree["n_codes"] = own(std::move(n_codes), n);
        tree["codes"] = own(std::move(codes), total_codes);
        tree["weights"] = own(std::move(weights), n, classes);
        tree["cases"] = own(std::move(cases), n);
        return tree;
    }
};

}  // namespace branchwise
