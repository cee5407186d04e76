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

// x log2 x, off by less than `slack * x`: a line between two entries of a table.
class LogBounds {
  public:
    static constexpr double slack = 1e-6;

    static const LogBounds& shared() {
        static const LogBounds made;
        return made;
    }

    // Of normal numbers and of 0.
    double x_log2_x(double weight) const {
        uint64_t bits;
        std::memcpy(&bits, &weight, sizeof bits);
        const Entry& entry = entries_[bits >> (52 - size_bits) & (size - 1)];
        const uint64_t beyond = (bits & beyond_mask) | one;  // 1 + how far beyond the entry's begin
        double distance;
        std::memcpy(&distance, &beyond, sizeof distance);
        const auto exponent = double(int(bits >> 52) - 1023);
        return weight * (exponent + entry.log + (distance - 1.0) * entry.slope);
    }

  private:
    LogBounds() {
        for (size_t i = 0; i < size; ++i) {
            const double begin = 1.0 + double(i) / size;
            entries_[i].log = std::log2(begin);
            entries_[i].slope = std::log2(1.0 + 1.0 / (begin * size)) * size;
        }
    }

    // A line over 1 / 512 is off by less than (1 / 512)^2 / 8 / ln 2 < 0.7e-6.
    static constexpr int size_bits = 9;
    static constexpr size_t size = size_t(1) << size_bits;
    static constexpr uint64_t one = uint64_t(1023) << 52;
    static constexpr uint64_t beyond_mask = (uint64_t(1) << (52 - size_bits)) - 1;

    struct Entry {
        double log;
        double slope;
    };
    std::array<Entry, size> entries_;
};

// What BranchImpurities adds up, roughly, and as plain numbers rather than fixed point.
class ImpurityBounds {
  public:
    // Whether scores of a problem are to be estimated: those of gains that would need
    // logarithms, if the best may be chosen without knowing all gains.
    static bool serve(const Problem& problem, const Impurities& impurities) {
        const bool needs_logs = problem.criterion != Criterion::gini && !impurities.has_table();
        const bool ratio = problem.criterion == Criterion::gain_ratio;
        const bool needs_gains = problem.quinlan || (ratio && problem.min_gain > 0);
        return needs_logs && !needs_gains &&
               problem.weight_step >= std::numeric_limits<double>::min();
    }

    // For a column of a node that has these classes.
    void clear(const std::vector<uint32_t>& classes) {
        present_ = &classes;
        in_branches_ = 0;
        sizes_ = 0;
        branches_ = 0;
    }

    void expect(double impurity) { known_ = impurity; }

    void set_known(const double* weights, double total, double unknown) {
        known_ = logs_.x_log2_x(total);
        for (uint32_t c : *present_) known_ -= logs_.x_log2_x(weights[c]);
        sizes_ += logs_.x_log2_x(unknown);
    }

    void add_branch(const double* cell, double size) {
        const double of_size = logs_.x_log2_x(size);
        ++branches_;
        sizes_ += of_size;
        in_branches_ += of_size;
        for (uint32_t c : *present_) in_branches_ -= logs_.x_log2_x(cell[c]);
    }

    // `size_impurity` is that of the node's weight.
    Bounds bounds(const Scale& scale, double size_impurity) const {
        // A weight is part of up to four sums here; there, every term is rounded to a unit.
        const double terms = double((branches_ + 2) * (present_->size() + 2));
        const double off = 4 * LogBounds::slack * scale.total + terms * scale.unit;
        const double drop = std::max(known_ - in_branches_, 0.0);
        if (scale.criterion != Criterion::gain_ratio)
            return {(drop - off) / scale.total, (drop + off) / scale.total};
        const double information = size_impurity - sizes_;
        if (information <= 2 * off) return {0.0, std::numeric_limits<double>::infinity()};
        return {(drop - off) / (information + off), (drop + off) / (information - off)};
    }

  private:
    const LogBounds& logs_ = LogBounds::shared();
    const std::vector<uint32_t>* present_ = nullptr;
    double known_ = 0, in_branches_ = 0, sizes_ = 0;
    size_t branches_ = 0;
};

// Leave the columns that may be the best. `top` is the best score of others.
inline void keep_hopeful(std::vector<uint32_t>& columns, const std::vector<Bounds>& bounds,
                         double top, const Scale& scale) {
    for (uint32_t j : columns) top = std::max(top, bounds[j].least);
    const double least = scale.least(top);
    const auto hopeless = [&](uint32_t j) {
        return bounds[j].most < least || bounds[j].most == no_score;
    };
    columns.erase(std::remove_if(columns.begin(), columns.end(), hopeless), columns.end());
}

}  // namespace branchwise
