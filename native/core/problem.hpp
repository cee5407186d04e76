// What is to be grown, what limits it, and what comes out: the border of the kernel.

#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/impurity.hpp"
#include "core/date_threshold.hpp"
#include "core/tree.hpp"

namespace branchwise {

// What a missing or unseen value does; see branchwise/tree/splits.py.
enum class Policy { branch, split, largest, node, error, learned, surrogate };

// Whether a category has a branch for each value, for each group of values, or two.
enum class Branching { values, groups, two_way };

// A column of codes 0 .. n_codes - 1, the last of which is "missing"; or, if numeric,
// of numbers, NaN being missing, or of their bins as codes.
struct Column {
    bool numeric = false;
    int width = 1;  // bytes of a code: 1, 2 or 4; 8 for numbers
    const void* codes = nullptr;
    uint32_t n_codes = 1;
    const double* numbers = nullptr;
    bool has_missing = false;

    uint32_t missing_code() const { return n_codes - 1; }
    bool binned() const { return numeric && codes; }
    uint32_t missing_bin() const { return width == 1 ? 0xff : 0xffff; }
    uint32_t at(size_t row) const {
        switch (width) {
            case 1:
                return static_cast<const uint8_t*>(codes)[row];
            case 2:
                return static_cast<const uint16_t*>(codes)[row];
            default:
                return static_cast<const uint32_t*>(codes)[row];
        }
    }
};

// The rows of a table.
struct Table {
    size_t n_rows = 0;
    int n_classes = 0;
    std::vector<Column> columns;
    const uint32_t* labels = nullptr;
    const double* weights = nullptr;  // null: every row weighs 1
    const uint8_t* times = nullptr;   // how often rows count, instead of weights; null: once
    bool fractions = false;           // cases may be split
    double weight_step = 1.0;
    double case_step = 1.0;
};

// A weight, or a part of a case, as a whole multiple of a step: native implementation of on_grid in
// branchwise/data/weights.py.
inline double on_grid(double amount, double step) { return std::rint(amount / step) * step; }

// How a tree is grown.
struct Options {
    Criterion criterion = Criterion::gain;
    int64_t max_depth = -1;  // -1: no limit
    double cases_to_split = 2;
    double cases_in_leaf = 1;
    double cases_in_branch = 0;  // of two branches at least
    double weight_in_leaf = 0;
    double min_gain = 0;
    bool weights_are_cases = false;  // a row of weight 2 is two cases
    Branching branching = Branching::values;
    bool quinlan_thresholds = false;  // C4.5's thresholds of numbers
    bool average_gain = false;        // splits gain about as much as those of a node on average
    bool corrects_values = false;     // groups of many values have lower scores,
    size_t few_values_to_group = 0;   // which are more than these
    std::vector<Position> positions;  // of thresholds, by column
    std::vector<bool> few_values;     // columns that count for the average gain
    Policy missing = Policy::branch;
    Policy unseen = Policy::node;
    bool tests_splits = false;   // only significant splits are made
    double max_log_p = 0;        // logarithm of their largest p-value
    size_t max_features = 0;     // columns that are drawn at a node; 0: all
    uint64_t draw_key = 0;       // of the root
    bool random_splits = false;  // a column has one split at a node, drawn at random

    int bits = 0;                // impurities are in units of 2^-bits
    std::vector<double> series;  // of logarithms
    double total = 0;            // weight of all rows of the table, which may be more than these
    bool whole = true;           // weights are whole numbers

    unsigned n_threads = 1;
    size_t worth_sharing = 0;  // a node of fewer cells (rows x columns) is left to one thread

    // Whether the best column is the one of the largest score, whatever the others do, and so is
    // the best threshold.
    bool takes_largest_score() const { return !quinlan_thresholds && !average_gain; }
    bool takes_largest_gain() const {
        return criterion != Criterion::gain_ratio && takes_largest_score();
    }

    // C4.5 chooses among thresholds by gain, and only then between columns by ratio.
    bool thresholds_by_ratio() const {
        return criterion == Criterion::gain_ratio && !quinlan_thresholds;
    }
};

struct Problem : Table, Options {};

// What is held against the fewest cases that a node or a branch must have.
template <typename W>
double cases_for_bars(const Problem& problem, W size, double cases) {
    return problem.weights_are_cases ? double(size) : cases;
}

// Told the number of nodes so far; returns false to give up.
using Watch = std::function<bool(size_t)>;

// Tests the watch every 50 ms or so; looks at the clock only after some work.
class InterruptCheck {
  public:
    explicit InterruptCheck(const Watch& watch) : watch_(watch), last_(Clock::now()) {}

    bool go_on(size_t work, size_t n_nodes) {
        work_ += work;
        if (work_ < enough_work) return true;
        work_ = 0;
        const auto now = Clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return true;
        last_ = now;
        return watch_(n_nodes);
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr size_t enough_work = 1 << 18;
    const Watch& watch_;
    Clock::time_point last_;
    size_t work_ = 0;
};

}  // namespace branchwise
