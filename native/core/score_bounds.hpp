// Scores near enough to tell which columns cannot be the best, without a logarithm.
//
// Logarithms of fractional weights have no table and must round as the reference does;
// each is a long chain of steps. But of a node's columns, most are worse than the best
// by far more than a rough logarithm is off: only the others are scored exactly.

#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/choose.hpp"

namespace branchwise {

// Between these, at least and at most, is a score.
struct Bounds {
    double least = no_score;
    double most = no_score;
};

// Of a column: its score, and what it gains.
struct ScoreEstimate {
    Bounds score;
    Bounds gain;

    // Of what is known exactly.
    static ScoreEstimate exact(const Candidate& candidate, const Scale& scale) {
        ScoreEstimate estimate;
        if (candidate.drop < 0) return estimate;
        const double gain = scale.gain(candidate.drop);
        estimate.score = {candidate.score, candidate.score};
        estimate.gain = {gain, gain};
        return estimate;
    }

    // A drop and its information, each off by `off` at most.
    static ScoreEstimate rough(double drop, double information, double off, const Scale& scale) {
        ScoreEstimate estimate;
        const double least = std::max(drop - off, 0.0), most = std::max(drop + off, 0.0);
        estimate.gain = {least / scale.total, most / scale.total};
        if (scale.criterion != Criterion::gain_ratio)
            estimate.score = estimate.gain;
        else if (information <= 2 * off)
            estimate.score = {0.0, std::numeric_limits<double>::infinity()};
        else
            estimate.score = {least / (information + off), most / (information - off)};
        return estimate;
    }

    // One of the two.
    void add(const ScoreEstimate& other) {
        add(score, other.score);
        add(gain, other.gain);
    }

  private:
    static void add(Bounds& bounds, const Bounds& other) {
        bounds.least = bounds.most == no_score ? other.least : std::min(bounds.least, other.least);
        bounds.most = std::max(bounds.most, other.most);
    }
};

// x log2 x, off by less than `slack * x`: a parabola between two entries of a table.
class LogBounds {
  public:
    static constexpr double slack = 1e-9;
    static constexpr bool takes_long = true;  // compared to a table

    static const LogBounds& shared() {
        static const LogBounds made;
        return made;
    }

    // Of normal numbers and of 0. A call would take longer than what is done here.
    [[gnu::always_inline]] inline double x_log2_x(double weight) const {
        uint64_t bits;
        std::memcpy(&bits, &weight, sizeof bits);
        const Entry& entry = entries_[bits >> (52 - size_bits) & (size - 1)];
        const uint64_t beyond = (bits & beyond_mask) | one;  // 1 + how far beyond the entry's begin
        double distance;
        std::memcpy(&distance, &beyond, sizeof distance);
        const auto exponent = double(int(bits >> 52) - 1023);
        distance -= 1.0;
        return weight *
               (exponent + (entry.log + distance * (entry.slope + distance * entry.curve)));
    }

  private:
    LogBounds() {
        for (size_t i = 0; i < size; ++i) {
            const double begin = 1.0 + double(i) / size;
            const double half = std::log2(1.0 + 0.5 / (begin * size)) * size;
            const double whole = std::log2(1.0 + 1.0 / (begin * size)) * size;
            entries_[i].log = std::log2(begin);
            entries_[i].slope = 4 * half - whole;
            entries_[i].curve = (2 * whole - 4 * half) * size;
        }
    }

    // A parabola through both ends and the middle of 1 / 512 is off by less than
    // (1 / 512)^3 / (36 sqrt 3 ln 2) < 0.2e-9.
    static constexpr int size_bits = 9;
    static constexpr size_t size = size_t(1) << size_bits;
    static constexpr uint64_t one = uint64_t(1023) << 52;
    static constexpr uint64_t beyond_mask = (uint64_t(1) << (52 - size_bits)) - 1;

    struct Entry {
        double log;
        double slope;
        double curve;
    };
    std::array<Entry, size> entries_;
};

// The same more roughly, in fewer steps and from a smaller table: a line between two entries.
// Nearly all columns differ by more than it is off.
class RoughLogs {
  public:
    static constexpr double slack = 4e-7;

    static const RoughLogs& shared() {
        static const RoughLogs made;
        return made;
    }

    // Of normal numbers and of 0.
    [[gnu::always_inline]] inline double x_log2_x(double weight) const {
        uint64_t bits;
        std::memcpy(&bits, &weight, sizeof bits);
        const Entry& entry = entries_[bits >> (52 - size_bits) & (size - 1)];
        const uint64_t of_one = (bits & mantissa_mask) | one;  // between 1 and 2
        double mantissa;
        std::memcpy(&mantissa, &of_one, sizeof mantissa);
        const auto exponent = double(int(bits >> 52));
        return weight * (exponent + (entry.log + mantissa * entry.slope));
    }

  private:
    // The logarithm lies above a line between two of its points: lines are raised by half of the
    // most that it does.
    RoughLogs() {
        constexpr double width = 1.0 / size;
        const double curvature = 1 / std::log(2.0);
        for (size_t i = 0; i < size; ++i) {
            const double begin = 1.0 + double(i) * width;
            const double low = std::log2(begin), high = std::log2(begin + width);
            entries_[i].slope = (high - low) * size;
            entries_[i].log = low - begin * entries_[i].slope - 1023 +
                              width * width * curvature / (16 * begin * begin);
        }
    }

    // Between both ends of 1 / 512 it rises above the line by (1 / 512)^2 / (8 ln 2) < 0.7e-6.
    static constexpr int size_bits = 9;
    static constexpr size_t size = size_t(1) << size_bits;
    static constexpr uint64_t one = uint64_t(1023) << 52;
    static constexpr uint64_t mantissa_mask = (uint64_t(1) << 52) - 1;

    struct Entry {
        double log;  // less the exponent's offset
        double slope;
    };
    std::array<Entry, size> entries_;
};

// What BranchImpurities adds up, roughly, and as plain numbers rather than fixed point.
class ImpurityBounds {
  public:
    // Whether scores of a problem are to be estimated: those of gains that would need
    // logarithms, if the best may be chosen without knowing any gain exactly.
    static bool serve(const Problem& problem, const Impurities& impurities) {
        const bool needs_logs = problem.criterion != Criterion::gini && !impurities.has_table();
        const bool needs_gains = !problem.takes_largest_gain() && problem.min_gain > 0;
        return needs_logs && !needs_gains && are_sound(problem);
    }
    static bool are_sound(const Problem& problem) {
        return problem.weight_step >= std::numeric_limits<double>::min();
    }

    // For a column of a node that has these classes.
    void clear(const std::vector<uint32_t>& classes) {
        present_ = &classes;
        in_branches_ = 0;
        sizes_ = 0;
        unknown_ = 0;
        branches_ = 0;
    }

    void expect(double impurity) { known_ = impurity; }

    void set_known(const double* weights, double total, double unknown) {
        known_ = impurity_of(weights, logs_.x_log2_x(total));
        unknown_ = unknown;
    }

    void add_branch(const double* cell, double size) {
        const double of_size = logs_.x_log2_x(size);
        ++branches_;
        sizes_ += of_size;
        in_branches_ += impurity_of(cell, of_size);
    }

    // `size_impurity` is that of the node's weight.
    ScoreEstimate estimate(const Scale& scale, double size_impurity) const {
        // A weight is part of up to four sums here; there, every term is rounded to a unit.
        const double terms = double((branches_ + 2) * (present_->size() + 2));
        const double off = 4 * RoughLogs::slack * scale.total + terms * scale.unit;
        double information = 0;
        if (scale.criterion == Criterion::gain_ratio)
            information = size_impurity - sizes_ - logs_.x_log2_x(unknown_);
        return ScoreEstimate::rough(known_ - in_branches_, information, off, scale);
    }

  private:
    // A sum of its own: one in memory would be read and written for each class.
    double impurity_of(const double* weights, double of_all) const {
        for (uint32_t c : *present_) of_all -= logs_.x_log2_x(weights[c]);
        return of_all;
    }

    const RoughLogs& logs_ = RoughLogs::shared();
    const std::vector<uint32_t>* present_ = nullptr;
    double known_ = 0, in_branches_ = 0, sizes_ = 0, unknown_ = 0;
    size_t branches_ = 0;
};

// Leave the columns that may be the best. `top` is the best score of others.
inline void keep_hopeful(std::vector<uint32_t>& columns,
                         const std::vector<ScoreEstimate>& estimates, double top,
                         const Scale& scale) {
    for (uint32_t j : columns) top = std::max(top, estimates[j].score.least);
    const double least = scale.least(top);
    size_t n_hopeful = 0;
    for (uint32_t j : columns) {  // without a branch: which are is anybody's guess
        const double most = estimates[j].score.most;
        columns[n_hopeful] = j;
        n_hopeful += (most >= least) & (most != no_score);
    }
    columns.resize(n_hopeful);
}

// Leave the columns that gain as much as columns do on average, as far as that is sure; returns
// whether it is of all of them.
inline bool keep_average(std::vector<uint32_t>& columns,
                         const std::vector<ScoreEstimate>& estimates, const Problem& problem) {
    constexpr double rounding = 1e-12;
    AverageGain least, most;
    for (uint32_t j : columns) {
        if (estimates[j].gain.most == no_score || !problem.few_values[j]) continue;
        least.add(estimates[j].gain.least);
        most.add(estimates[j].gain.most);
    }
    const double sure = most.least() * (1 + rounding) + rounding;
    const double perhaps = least.least() * (1 - rounding) - rounding;
    bool all_sure = true;
    const auto hopeless = [&](uint32_t j) {
        const Bounds& gain = estimates[j].gain;
        if (gain.most == no_score || gain.most < perhaps) return true;
        all_sure = all_sure && gain.least >= sure;
        return false;
    };
    columns.erase(std::remove_if(columns.begin(), columns.end(), hopeless), columns.end());
    return all_sure;
}

}  // namespace branchwise
