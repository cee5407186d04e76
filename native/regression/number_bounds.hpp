// Which splits cannot be the best, from plain sums: for rows that count as one, by variance.
//
// Distances from the mean of a node, scaled by its spread, have squares that add up to 1 at most.
// So do the squares of sums by which a split is scored, and the error of a plain sum of n of them
// has a bound. Only splits within these bounds of the best are scored exactly.

#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "records/records.hpp"
#include "regression/moments.hpp"

namespace branchwise {

// How far scores of a node of n rows may be off: a plain sum of distances is off by at most
// n^1.5 2^-53, and a square of one over the number of its terms by twice that.
inline double off_by(size_t n) {
    const auto rows = double(n);
    return (rows + 8) * std::sqrt(rows) * 0x1p-50 + 0x1p-46;
}

// Distances in whole steps, the sums of which are exact, as none is more than sqrt(n). So a sum
// is off by half a step for each term.
inline double steps_for(size_t n) { return std::ldexp(1.0, 59 - std::ilogb(double(n)) / 2); }
inline double off_by_steps(size_t n) {
    const auto rows = double(n);
    return 8 * rows / steps_for(n) + std::sqrt(rows) * 0x1p-49 + 0x1p-46;
}

// The sum of the distances of numbers.
template <typename NumberOf>
double sum_in_steps(size_t n, double centre, double factor, const NumberOf& number_of) {
    const double steps = steps_for(n);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += uint64_t(int64_t(bounded(std::rint((number_of(i) - centre) * (factor * steps)))));
    return double(int64_t(sum)) / steps;
}

// Scores that are further apart than the first are not equal by the tie rule, and those nearer
// than the second are.
inline double surely_apart(double top) { return 2.5 * (tie * std::fabs(top) + 0x1p-48); }
inline double surely_equal(double top) { return std::max(tie * std::fabs(top), 0x1p-49) / 4; }

// The number and sum of the distances of some rows.
struct Plain {
    double sum = 0, n = 0;

    double square() const { return n > 0 ? sum * (sum / n) : 0.0; }
};

// Between these is the best that a column can do, as a share of the node's squares.
struct NumberBounds {
    double most = no_score;
    double least = no_score;
    bool varies = false;
};

class PlainScorer {
  public:
    using Rows = Records<uint32_t, double>;

    PlainScorer(const Problem& problem, const Rows& records)
        : problem_(problem),
          records_(records),
          fewest_(std::max(
              {problem.cases_in_leaf, problem.cases_in_branch, problem.weight_in_leaf, 1.0})),
          first_(problem.columns.size()) {
        size_t at = 0;
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            if (records.is_list(j)) continue;
            first_[j] = at;
            at += records.missing_code(j) + 1;
        }
        counters_.resize(at);
    }

    // Add up the columns of codes among some, row by row; distances are by row.
    void count(const RecordJob& job, const std::vector<uint32_t>& columns,
               const double* distances) {
        narrow_.clear();
        wide_.clear();
        for (uint32_t j : columns) {
            if (records_.is_list(j)) continue;
            std::fill_n(&counters_[first_[j]], records_.missing_code(j) + 1, Plain());
            auto& places = records_.layout().width[j] == 1 ? narrow_ : wide_;
            places.push_back({j, records_.layout().code[j], &counters_[first_[j]]});
        }
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
            for (const Place& place : narrow_)
                add(place.counters[record[place.code]], distances[i]);
            for (const Place& place : wide_)
                add(place.counters[records_.code(record, place.column)], distances[i]);
        }
    }

    // May be called by several threads, each with groups of its own.
    NumberBounds bounds(const RecordJob& job, size_t j, const Plain& all,
                        const NodeMoments& moments, std::vector<Plain>& groups) const {
        if (records_.is_list(j)) return bounds_of_list(job, j, all, moments);
        groups.clear();
        const Plain* counters = &counters_[first_[j]];
        for (uint32_t code = 0; code < records_.missing_code(j); ++code)
            if (counters[code].n > 0) groups.push_back(counters[code]);
        const Plain missing = counters[records_.missing_code(j)];
        const bool ordered = records_.is_numeric(j);
        if (!ordered && problem_.branching == Branching::values)
            return bounds_of_values(groups, all, missing, off_by(job.n));
        if (!ordered)
            std::sort(groups.begin(), groups.end(),
                      [](const Plain& a, const Plain& b) { return a.sum * b.n < b.sum * a.n; });
        Plain left;
        const Plain known{all.sum - missing.sum, all.n - missing.n};
        double top = no_score;
        // Values with nearly the same mean may be in another order: then fewer of the groupings
        // have enough rows, or others.
        const double fewest = ordered ? fewest_ : 1.0;
        for (size_t g = 0; g + 1 < groups.size(); ++g) {
            left.sum += groups[g].sum;
            left.n += groups[g].n;
            top = std::max(top, of_sides(left, known, fewest));
        }
        return bounds_of(top, groups.size(), all, known, missing, ordered || fewest_ <= 1.0,
                         off_by(job.n));
    }

    // The best threshold of a list, if it is certain: the position of the last entry at most it,
    // and what it drops at least. It is the first of all that may be the best, and is as good as
    // the best of them.
    static constexpr size_t none = ~size_t(0);
    struct Certain {
        size_t last = none;
        double least = no_score;
    };
    Certain certain_threshold(const RecordJob& job, size_t j, const Plain& all,
                              const NodeMoments& moments) const {
        const size_t slot = records_.slot(j), n = job.n_ranked[slot];
        const Ranked<double>* entry = records_.ranked(job, slot);
        const Plain known = known_of(job, entry, n, all, moments);
        double top = no_score;
        each_threshold(entry, n, known, moments, [&](size_t, double score) {
            top = std::max(top, score);
            return true;
        });
        const double base = known.square(), off = off_by_steps(job.n);
        const double least = top - 2 * off - surely_apart(top - base);
        Certain found;
        size_t number = 0;
        each_threshold(entry, n, known, moments, [&](size_t i, double score) {
            if (score < least) return true;
            if (++number == 1) found = {i, score - base - off};
            return true;
        });
        const bool equal = found.least + off + base >= top - surely_equal(top - base) + 2 * off;
        return number == 1 || equal ? found : Certain();
    }

  private:
    struct Place {
        uint32_t column;
        size_t code;
        Plain* counters;
    };

    static void add(Plain& to, double distance) {
        to.sum += distance;
        to.n += 1;
    }

    static double of_sides(const Plain& left, const Plain& known, double fewest) {
        const double n_right = known.n - left.n, right = known.sum - left.sum;
        if (std::min(left.n, n_right) < fewest) return no_score;
        return (left.sum * left.sum * n_right + right * right * left.n) / (left.n * n_right);
    }

    // visit(i, score) for the threshold after each entry, until it returns false.
    template <typename Visit>
    void each_threshold(const Ranked<double>* entry, size_t n, const Plain& known,
                        const NodeMoments& moments, const Visit& visit) const {
        const auto least = size_t(std::min(std::ceil(fewest_), 4e9));
        if (n < 2 * least) return;
        const double centre = moments.centre(), steps = steps_for(n),
                     factor = moments.factor() * steps, unit = 1 / steps;
        uint64_t sum = 0;  // may overflow where moments contradict one another
        const auto step = [&](size_t i) {
            sum += uint64_t(int64_t(bounded(std::rint((entry[i].target - centre) * factor))));
        };
        size_t i = 0;
        for (; i + 1 < least; ++i) step(i);
        for (; i + least < n; ++i) {
            step(i);
            if (entry[i].rank == entry[i + 1].rank) continue;
            const auto left = double(i + 1), right = double(n - i - 1);
            const double own = double(int64_t(sum)) * unit, other = known.sum - own;
            if (!visit(i, (own * own * right + other * other * left) / (left * right))) return;
        }
    }

    static Plain known_of(const RecordJob& job, const Ranked<double>* entry, size_t n,
                          const Plain& all, const NodeMoments& moments) {
        if (n == job.n) return all;
        return {sum_in_steps(n, moments.centre(), moments.factor(),
                             [&](size_t i) { return entry[i].target; }),
                double(n)};
    }

    NumberBounds bounds_of_list(const RecordJob& job, size_t j, const Plain& all,
                                const NodeMoments& moments) const {
        const size_t slot = records_.slot(j), n = job.n_ranked[slot];
        const Ranked<double>* entry = records_.ranked(job, slot);
        const Plain known = known_of(job, entry, n, all, moments);
        double top = no_score;
        each_threshold(entry, n, known, moments, [&](size_t, double score) {
            top = std::max(top, score);
            return true;
        });
        const size_t values = n == 0 ? 0 : entry[0].rank == entry[n - 1].rank ? 1 : 2;
        return bounds_of(top, values, all, known, {all.sum - known.sum, all.n - known.n}, true,
                         off_by_steps(job.n));
    }

    NumberBounds bounds_of_values(const std::vector<Plain>& groups, const Plain& all,
                                  const Plain& missing, double off) const {
        double sum = 0;
        for (const Plain& group : groups) sum += group.square();
        const Plain known{all.sum - missing.sum, all.n - missing.n};
        return bounds_of(groups.size() < 2 ? no_score : sum, groups.size(), all, known, missing,
                         fewest_ <= 1.0, off);
    }

    // From the best sum of squares of the known branches, of so many values.
    NumberBounds bounds_of(double top, size_t values, const Plain& all, const Plain& known,
                           const Plain& missing, bool certain, double off) const {
        const bool own = problem_.missing == Policy::branch && missing.n > 0;
        NumberBounds bounds;
        bounds.varies = values + (own && values > 0) >= 2;
        if (own && values > 0) {
            // Known against missing may be all there is, and missing ones may be too few.
            top = std::max(top, known.square());
            bounds.most = top + missing.square() - all.square() + off;
        } else if (top > no_score) {
            bounds.most = top - known.square() + off;
            if (certain) bounds.least = bounds.most - 2 * off;
        }
        return bounds;
    }

    const Problem& problem_;
    const Rows& records_;
    const double fewest_;
    std::vector<size_t> first_;  // counters of columns
    std::vector<Plain> counters_;
    std::vector<Place> narrow_, wide_;
};

}  // namespace branchwise
