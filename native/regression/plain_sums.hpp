// Plain sums of distances, and how far scores made of them may be off.
//
// Distances from the mean of a node, scaled by its spread, have squares that add up to 1 at most.
// So do the squares of sums by which a split is scored, and the error of a plain sum of n of them
// has a bound. By Poisson's criterion it is the numbers themselves, scaled likewise, that add up
// to 1 at most.

#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "regression/moments.hpp"

namespace branchwise {

// ---- errors ------------------------------------------------------------------------

// How far scores of a node may be off by variance: with rows that count as one, a plain sum of n
// distances is off by at most n^1.5 2^-53, and a square of one over the number of its terms by
// twice that. With weights, it is the root of the weight of all rows in terms of that of the
// smaller branch that takes the place of n^0.5. `added` are the additions that make a sum.
inline double off_by_sums(double added, double weight, double smallest) {
    return added * std::sqrt(weight / smallest) * 0x1p-50 + 0x1p-46;
}

// By Poisson's criterion: sums are off by 2^-53 for each addition, and logarithms are less than
// 128.
inline double off_by_rates(double added) { return added * 0x1p-44; }

// Sums of lists are those of blocks of rows, so that far fewer roundings add up.
constexpr size_t summed_together = 128;
inline double added_in_blocks(size_t n) {
    return double(n) / summed_together + summed_together + 32;
}
inline double added_one_by_one(size_t n) { return double(n) + 8; }

inline double off_by(size_t n) { return off_by_sums(added_one_by_one(n), double(n), 1.0); }
inline double off_by_blocks(size_t n) { return off_by_sums(added_in_blocks(n), double(n), 1.0); }

// Numbers of a histogram are off by half a step each, and so is the centre.
inline double off_by_histogram(size_t n, double factor, double steps) {
    const double one = factor / steps;
    return off_by(n) + 8 * one * std::sqrt(double(n)) + 8 * one * one * double(n);
}

// Distances in whole steps, the sums of which are exact, as none is more than the root of the
// weight. So a sum is off by half a step for each term.
inline double steps_for(double weight) { return std::ldexp(1.0, 59 - std::ilogb(weight) / 2); }

template <typename TermOf>
double sum_in_steps(size_t n, double steps, const TermOf& term_of) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; ++i) sum += uint64_t(int64_t(bounded(std::rint(term_of(i) * steps))));
    return double(int64_t(sum)) / steps;
}

// Exact scores of a node are equal if they are no further apart.
constexpr double variance_noise = double(moment_noise_units) / double(int64_t(1) << variance_bits);
constexpr double poisson_noise = double(moment_noise_units) / double(int64_t(1) << poisson_bits);

// Scores that are further apart than the first are not equal by the tie rule, and those nearer
// than the second are.
inline double surely_apart(double top, double noise = variance_noise) {
    return 2.5 * (tie * std::fabs(top) + 2 * noise);
}
inline double surely_equal(double top, double noise = variance_noise) {
    return std::max(tie * std::fabs(top), noise) / 4;
}

// ---- sums --------------------------------------------------------------------------

// The number and sum of the distances of some rows that count as one.
struct Plain {
    double sum = 0, n = 0;

    double square() const { return n > 0 ? sum * (sum / n) : 0.0; }
    void operator+=(const Plain& other) {
        sum += other.sum;
        n += other.n;
    }
    Plain operator-(const Plain& other) const { return {sum - other.sum, n - other.n}; }
};

// The same of rows that have weights, or that are compared by Poisson's criterion: n is their
// weight, and events are those with a number above 0.
struct WeighedPlain {
    double sum = 0, n = 0, cases = 0, events = 0;

    void operator+=(const WeighedPlain& other) {
        sum += other.sum;
        n += other.n;
        cases += other.cases;
        events += other.events;
    }
    WeighedPlain operator-(const WeighedPlain& other) const {
        return {sum - other.sum, n - other.n, cases - other.cases, events - other.events};
    }
};

// By variance, or by Poisson's criterion: what the branches of a split have more of than the node
// is what the split drops.
template <bool poisson, typename Rows>
double value_of(const Rows& rows) {
    if (!(rows.n > 0)) return 0.0;
    if constexpr (poisson)
        return rows.sum > 0 ? rows.sum * std::log2(rows.sum / rows.n) : 0.0;
    else
        return rows.sum * (rows.sum / rows.n);
}

// A split into two, as a ratio that need not be divided to be compared: what it drops is
// square / sides times the weight of all rows. By variance, that is the square of the distance of
// a sum from what it would be if all had the same mean, over the product of both weights.
struct PlainSplit {
    double square, sides;
};

// The rows that are split, and what all splits of them share.
template <typename Rows, bool poisson>
struct PlainWhole {
    Rows rows;
    double mean, value;

    explicit PlainWhole(const Rows& rows)
        : rows(rows),
          mean(poisson ? 0.0 : rows.sum / rows.n),
          value(poisson ? value_of<poisson>(rows) : 0.0) {}

    PlainSplit split(const Rows& left) const {
        if constexpr (poisson) {
            const double branches = value_of<poisson>(left) + value_of<poisson>(rows - left);
            return {std::max(branches - value, 0.0), rows.n};
        }
        const double off_mean = left.sum - left.n * mean;
        return {off_mean * off_mean, left.n * (rows.n - left.n)};
    }
    double drop(const Rows& left) const {
        const PlainSplit found = split(left);
        return found.square / found.sides * rows.n;
    }
};

// ---- values of a category ----------------------------------------------------------

template <typename Rows>
bool by_mean(const Rows& a, const Rows& b) {
    return a.sum * b.n < b.sum * a.n;
}

// What two groups of values drop at most. Values with nearly the same mean may be in another
// order: then fewer of the groupings have enough rows, or others. So all have.
template <typename Rows, bool poisson>
double most_of_groups(std::vector<Rows>& groups, const PlainWhole<Rows, poisson>& whole) {
    std::sort(groups.begin(), groups.end(), by_mean<Rows>);
    double top = no_score;
    Rows left;
    for (size_t g = 0; g + 1 < groups.size(); ++g) {
        left += groups[g];
        top = std::max(top, whole.drop(left));
    }
    return top;
}

// The same with missing rows in either group, and with single values as groups.
template <typename Rows, bool poisson>
double most_with_missing(std::vector<Rows>& groups, const PlainWhole<Rows, poisson>& all,
                         const Rows& missing) {
    double top = no_score;
    const auto add = [&](Rows left) {
        for (int turn = 0; turn < 2; ++turn) {
            top = std::max(top, all.drop(left));
            left += missing;
        }
    };
    std::sort(groups.begin(), groups.end(), by_mean<Rows>);
    if (groups.size() < 2) return top;
    Rows left;
    for (size_t g = 0; g + 1 < groups.size(); ++g) {
        left += groups[g];
        add(left);
    }
    for (const Rows& group : groups) add(group);
    return top;
}

template <bool poisson, typename Rows>
double most_of_values(const std::vector<Rows>& groups, const Rows& known) {
    double sum = 0;
    for (const Rows& group : groups) sum += value_of<poisson>(group);
    return groups.size() < 2 ? no_score : sum - value_of<poisson>(known);
}

}  // namespace branchwise
