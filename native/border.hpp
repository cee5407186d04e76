// What crosses the border between Python and the kernel: arrays, checked when they come
// in and owned by Python when they go out.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "problem.hpp"

namespace branchwise {

namespace nb = nanobind;

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

[[noreturn]] inline void refuse(const std::string& complaint) { throw nb::value_error(complaint.c_str()); }

template <typename T>
uint32_t largest(const T* codes, size_t n) {
    T top = 0;
    for (size_t i = 0; i < n; ++i) top = std::max(top, codes[i]);
    return static_cast<uint32_t>(top);
}

template <typename T>
bool read_codes(nb::handle data, size_t n_rows, Column& column) {
    Vector<T> codes;
    if (!nb::try_cast(data, codes, false)) return false;
    if (codes.shape(0) != n_rows) refuse("a column must have one entry for each row");
    if (largest(codes.data(), n_rows) >= column.n_codes) refuse("a code is not below n_codes");
    column.width = sizeof(T);
    column.codes = codes.data();
    return true;
}

inline Column read_column(nb::handle data, uint32_t n_codes, size_t n_rows) {
    Column column;
    Vector<double> numbers;
    if (nb::try_cast(data, numbers, false)) {
        if (numbers.shape(0) != n_rows) refuse("a column must have one entry for each row");
        column.numeric = true;
        column.numbers = numbers.data();
        return column;
    }
    if (n_codes < 1) refuse("n_codes must count the missing code at least");
    column.n_codes = n_codes;
    if (!read_codes<uint8_t>(data, n_rows, column) && !read_codes<uint16_t>(data, n_rows, column) &&
        !read_codes<uint32_t>(data, n_rows, column))
        refuse("a column must be a contiguous array of uint8, uint16, uint32 or float64");
    return column;
}

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

// The rows of a table: codes, numbers, labels and weights, all of them within bounds.
inline void read_rows(Problem& problem, nb::list columns, const std::vector<uint32_t>& n_codes,
                      const Vector<uint32_t>& labels, int n_classes, nb::object weights, bool fractions,
                      double weight_step, double case_step) {
    problem.n_rows = labels.shape(0);
    problem.n_classes = n_classes;
    if (n_classes < 1) refuse("n_classes must be at least 1");
    if (problem.n_rows < 1 || problem.n_rows >= size_t(1) << 31) refuse("between 1 and 2**31 - 1 rows");
    if (n_codes.size() != nb::len(columns)) refuse("n_codes must have one entry for each column");
    problem.labels = labels.data();
    if (largest(problem.labels, problem.n_rows) >= static_cast<uint32_t>(n_classes)) refuse("a label is not below n_classes");
    for (size_t j = 0; j < n_codes.size(); ++j)
        problem.columns.push_back(read_column(columns[j], n_codes[j], problem.n_rows));
    if (!weights.is_none()) {
        const auto given = nb::cast<Vector<double>>(weights);
        if (given.shape(0) != problem.n_rows) refuse("weights must have one entry for each row");
        problem.weights = given.data();
    }
    // Without weights a record has one number for both, so both must be on one grid.
    if (weights.is_none() && weight_step != case_step) refuse("without weights, weight_step must equal case_step");
    problem.fractions = fractions;
    problem.weight_step = weight_step;
    problem.case_step = case_step;
}

// Growth counts weights in steps of their grid, so that they must lie on it, and the sum
// of all steps must be exact.
constexpr double most_steps = 9007199254740992.0;  // 2^53

inline bool are_on_grid(const double* weights, size_t n, double step) {
    bool whole = true;
    double total = 0;
    for (size_t i = 0; i < n; ++i) {
        const double steps = weights[i] / step;
        whole &= steps >= 0 && steps == std::rint(steps);
        total += steps;
    }
    return whole && total <= most_steps;
}

inline void check_grids(const Problem& problem) {
    if (problem.weights && !are_on_grid(problem.weights, problem.n_rows, problem.weight_step))
        refuse("weights must be whole multiples of weight_step, 2**53 together at most");
    const double row = 1.0;
    size_t n_cases = problem.n_rows;  // rows of weight 0 are none
    if (problem.weights)
        n_cases -= static_cast<size_t>(std::count(problem.weights, problem.weights + problem.n_rows, 0.0));
    if (!are_on_grid(&row, 1, problem.case_step) || static_cast<double>(n_cases) / problem.case_step > most_steps)
        refuse("a row must be a whole multiple of case_step, and all rows together at most 2**53");
}

// The watch over long work: passes Ctrl-C on, and reports progress if somebody listens.
class PythonWatch {
  public:
    explicit PythonWatch(nb::object progress) : progress_(std::move(progress)), report_(!progress_.is_none()) {}

    bool operator()(size_t n_nodes) {
        nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) {
            interrupted_ = true;
            return false;
        }
        if (report_) progress_(n_nodes);
        return true;
    }

    bool interrupted() const { return interrupted_; }

  private:
    nb::object progress_;
    const bool report_;
    bool interrupted_ = false;
};

// The arrays of tree.py.
struct TreeArrays {
    Array<int64_t> column, n_children, missing_to, unseen_to, n_codes, codes;
    Array<double> cut, weights, cases;

    void resize(size_t n, size_t classes) {
        for (auto* array : {&column, &n_children, &missing_to, &unseen_to, &n_codes}) array->resize(n);
        for (auto* array : {&cut, &cases}) array->resize(n);
        weights.resize(n * classes);
    }

    nb::dict hand_over(size_t classes) {
        const size_t n = column.size();
        const size_t total_codes = codes.size();
        nb::dict tree;
        tree["column"] = own(std::move(column), n);
        tree["cut"] = own(std::move(cut), n);
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
