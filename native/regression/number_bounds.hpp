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
#include "regression/histograms.hpp"
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

// Sums of lists are those of blocks of rows, so that far fewer roundings add up.
constexpr size_t summed_together = 128;
inline double off_by_blocks(size_t n) {
    const auto rows = double(n);
    return (rows / summed_together + summed_together + 32) * std::sqrt(rows) * 0x1p-50 + 0x1p-46;
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

// Numbers of a histogram are off by half a step each, and so is the centre.
inline double off_by_histogram(size_t n, double factor, double steps) {
    const double one = factor / steps;
    return off_by(n) + 8 * one * std::sqrt(double(n)) + 8 * one * one * double(n);
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

// What the columns of a node have in common.
struct PlainNode {
    Plain all;              // of all rows
    double centre, factor;  // a distance is (number - centre) * factor
    double off;             // scores of codes may be off by this
    double off_list;        // and those of lists by this

    PlainNode() = default;
    PlainNode(const Plain& all, const NodeMoments& moments, size_t n)
        : all(all),
          centre(moments.centre()),
          factor(moments.factor()),
          off(off_by(n)),
          off_list(off_by_blocks(n)) {}
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

    // The same from a histogram of the node, as distances from its centre in whole steps.
    void take(const Histograms& histograms, const Histogram& histogram,
              const std::vector<uint32_t>& columns, const PlainNode& node) {
        const double unit = node.factor / histograms.steps();
        const auto centre = int64_t(std::rint(node.centre * histograms.steps()));
        for (uint32_t j : columns) {
            if (records_.is_list(j)) continue;
            const Tally* tally = histograms.of_column(histogram, j);
            Plain* to = &counters_[first_[j]];
            for (uint32_t code = 0; code <= records_.missing_code(j); ++code)
                to[code] = {double(tally[code].sum - tally[code].n * centre) * unit,
                            double(tally[code].n)};
        }
    }

    // May be called by several threads, each with groups of its own.
    NumberBounds bounds(const RecordJob& job, size_t j, const PlainNode& node,
                        std::vector<Plain>& groups) const {
        if (records_.is_list(j)) return bounds_of_list(job, j, node);
        groups.clear();
        const Plain* counters = &counters_[first_[j]];
        for (uint32_t code = 0; code < records_.missing_code(j); ++code)
            if (counters[code].n > 0) groups.push_back(counters[code]);
        const Plain missing = counters[records_.missing_code(j)];
        const Plain known{node.all.sum - missing.sum, node.all.n - missing.n};
        const bool ordered = records_.is_numeric(j);
        double most = no_score;
        if (learns_side(missing)) {
            if (ordered)
                each_rank_with_missing(j, node.all, missing,
                                       [&](uint32_t, uint32_t, double square, double sides, bool) {
                                           most = std::max(most, square / sides * node.all.n);
                                       });
            else
                most = most_with_missing(groups, node.all, missing);
            return bounds_of(most, groups.size(), node, known, missing, ordered,
                             learned_off * node.off);
        }
        if (ordered)
            each_rank(j, known, [&](uint32_t, uint32_t, double square, double sides) {
                most = std::max(most, square / sides * known.n);
            });
        else if (problem_.branching == Branching::values)
            most = most_of_values(groups, known);
        else
            most = most_of_groups(groups, known);
        return bounds_of(most, groups.size(), node, known, missing, ordered || fewest_ <= 1.0,
                         node.off);
    }

    // The best threshold of a column with these bounds, if it is certain: the ranks beside it,
    // and what it drops at least. It is the first of all that may be the best, and is as good as
    // the best of them.
    struct Certain {
        uint32_t low = 0, high = 0;
        double least = no_score;
        int32_t missing_to = stop_here;
    };
    Certain certain_threshold(const RecordJob& job, size_t j, const NumberBounds& bounds,
                              const PlainNode& node) const {
        if (!records_.is_list(j)) {
            const Plain missing = counters_[first_[j] + records_.missing_code(j)];
            const Plain known{node.all.sum - missing.sum, node.all.n - missing.n};
            if (learns_side(missing))
                return certain_of(node.all.n, bounds, learned_off * node.off,
                                  [&](const auto& visit) {
                                      each_rank_with_missing(j, node.all, missing, visit);
                                  });
            return certain_of(known.n, bounds, node.off,
                              [&](const auto& visit) { each_rank(j, known, visit); });
        }
        const size_t slot = records_.slot(j), n = job.n_ranked[slot];
        const Ranked<double>* entry = records_.ranked(job, slot);
        const Plain known = known_of(job, entry, n, node);
        const Plain missing{node.all.sum - known.sum, node.all.n - known.n};
        if (learns_side(missing))
            return certain_of(
                node.all.n, bounds, learned_off * node.off_list,
                [&](const auto& visit) { each_with_missing(entry, n, missing, node, visit); });
        return certain_of(double(n), bounds, node.off_list, [&](const auto& visit) {
            each_threshold(entry, n, known, node,
                           [&](size_t i, double square, double sides, bool apart) {
                               if (apart) visit(entry[i].rank, entry[i + 1].rank, square, sides);
                           });
        });
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

    // `each` visits thresholds between ranks of n rows.
    template <typename Each>
    static Certain certain_of(double n, const NumberBounds& bounds, double off, const Each& each) {
        const double top = bounds.most - off;
        const double least = (top - 2 * off - surely_apart(top)) / n;
        Certain found;
        size_t number = 0;
        each([&](uint32_t low, uint32_t high, double square, double sides,
                 int32_t missing_to = stop_here) {
            if (square < least * sides) return;
            if (++number == 1) found = {low, high, square / sides * n - off, missing_to};
        });
        const bool equal = found.least + off >= top - surely_equal(top) + 2 * off;
        return number == 1 || equal ? found : Certain();
    }

    // What a split into some rows and all others drops: the square of the distance of their sum
    // from what it would be if all had the same mean, over the product of both numbers, times the
    // number of all.
    static double square_of(const Plain& left, const Plain& known) {
        const double off_mean = left.sum - left.n * (known.sum / known.n);
        return off_mean * off_mean;
    }

    // visit(low, high, square, sides) for the thresholds between the ranks of a column.
    template <typename Visit>
    void each_rank(size_t j, const Plain& known, const Visit& visit) const {
        const Plain* counters = &counters_[first_[j]];
        Plain left;
        uint32_t low = 0;
        for (uint32_t rank = 0; rank < records_.missing_code(j); ++rank) {
            if (!(counters[rank].n > 0)) continue;
            const double right = known.n - left.n;
            if (std::min(left.n, right) >= fewest_)
                visit(low, rank, square_of(left, known), left.n * right);
            left.sum += counters[rank].sum;
            left.n += counters[rank].n;
            low = rank;
        }
    }

    // Sums of missing rows are off, too.
    static constexpr double learned_off = 3;

    bool learns_side(const Plain& missing) const {
        return problem_.missing == Policy::learned && missing.n > 0;
    }

    // visit(square, sides, side of missing rows) for a split of known rows, with the others on
    // either side, the larger one first.
    template <typename Visit>
    void with_missing(const Plain& left, const Plain& all, const Plain& missing,
                      const Visit& visit) const {
        const bool first = right_is_larger(left.n, all.n - missing.n - left.n);
        for (const bool on_right : {first, !first}) {
            Plain joined = left;
            if (!on_right) {
                joined.sum += missing.sum;
                joined.n += missing.n;
            }
            const double right = all.n - joined.n;
            if (std::min(joined.n, right) >= fewest_)
                visit(square_of(joined, all), joined.n * right, on_right);
        }
    }

    // As each_rank, and each_threshold.
    template <typename Visit>
    void each_rank_with_missing(size_t j, const Plain& all, const Plain& missing,
                                const Visit& visit) const {
        const Plain* counters = &counters_[first_[j]];
        Plain left;
        uint32_t low = 0;
        for (uint32_t rank = 0; rank < records_.missing_code(j); ++rank) {
            if (!(counters[rank].n > 0)) continue;
            if (left.n > 0)
                with_missing(left, all, missing, [&](double square, double sides, bool on_right) {
                    visit(low, rank, square, sides, on_right);
                });
            left.sum += counters[rank].sum;
            left.n += counters[rank].n;
            low = rank;
        }
    }
    template <typename Visit>
    void each_with_missing(const Ranked<double>* entry, size_t n, const Plain& missing,
                           const PlainNode& node, const Visit& visit) const {
        double before = 0, sum = 0;
        for (size_t i = 0; i + 1 < n; ++i) {
            sum += (entry[i].target - node.centre) * node.factor;
            if (i % summed_together == summed_together - 1) {
                before += sum;
                sum = 0;
            }
            if (entry[i].rank == entry[i + 1].rank) continue;
            with_missing({before + sum, double(i + 1)}, node.all, missing,
                         [&](double square, double sides, bool on_right) {
                             visit(entry[i].rank, entry[i + 1].rank, square, sides, on_right);
                         });
        }
    }

    // All groupings have enough rows, as below.
    static double most_with_missing(std::vector<Plain>& groups, const Plain& all,
                                    const Plain& missing) {
        double top = no_score;
        const auto add = [&](Plain left) {
            for (int turn = 0; turn < 2; ++turn) {
                top = std::max(top, square_of(left, all) / (left.n * (all.n - left.n)) * all.n);
                left.sum += missing.sum;
                left.n += missing.n;
            }
        };
        std::sort(groups.begin(), groups.end(), by_mean);
        if (groups.size() < 2) return top;
        Plain left;
        for (size_t g = 0; g + 1 < groups.size(); ++g) {
            left.sum += groups[g].sum;
            left.n += groups[g].n;
            add(left);
        }
        for (const Plain& group : groups) add(group);
        return top;
    }

    static bool by_mean(const Plain& a, const Plain& b) { return a.sum * b.n < b.sum * a.n; }

    // Values with nearly the same mean may be in another order: then fewer of the groupings have
    // enough rows, or others. So all have.
    static double most_of_groups(std::vector<Plain>& groups, const Plain& known) {
        std::sort(groups.begin(), groups.end(), by_mean);
        double top = no_score;
        Plain left;
        for (size_t g = 0; g + 1 < groups.size(); ++g) {
            left.sum += groups[g].sum;
            left.n += groups[g].n;
            top = std::max(top, square_of(left, known) / (left.n * (known.n - left.n)) * known.n);
        }
        return top;
    }

    static double most_of_values(const std::vector<Plain>& groups, const Plain& known) {
        double sum = 0;
        for (const Plain& group : groups) sum += group.square();
        return groups.size() < 2 ? no_score : sum - known.square();
    }

    // visit(i, square, sides, apart) after each entry; see square_of. There is a threshold if the
    // next rank is another: what is likely depends on the table, so visit() decides.
    template <typename Visit>
    void each_threshold(const Ranked<double>* entry, size_t n, const Plain& known,
                        const PlainNode& node, const Visit& visit) const {
        const auto least = size_t(std::min(std::ceil(fewest_), 4e9));
        if (n < 2 * least) return;
        const double centre = node.centre, factor = node.factor, rows = double(n);
        const double mean = known.sum / known.n;
        double before = 0;
        for (size_t i = 0; i + least < n;) {
            double sum = 0;
            for (const size_t end = std::min(i + summed_together, n - least); i < end; ++i) {
                sum += (entry[i].target - centre) * factor;
                const auto left = double(i + 1);
                const double off_mean = before + sum - left * mean;
                visit(i, off_mean * off_mean, left * (rows - left),
                      (entry[i].rank != entry[i + 1].rank) & (i + 1 >= least));
            }
            before += sum;
        }
    }

    static Plain known_of(const RecordJob& job, const Ranked<double>* entry, size_t n,
                          const PlainNode& node) {
        if (n == job.n) return node.all;
        return {
            sum_in_steps(n, node.centre, node.factor, [&](size_t i) { return entry[i].target; }),
            double(n)};
    }

    NumberBounds bounds_of_list(const RecordJob& job, size_t j, const PlainNode& node) const {
        const size_t slot = records_.slot(j), n = job.n_ranked[slot];
        const Ranked<double>* entry = records_.ranked(job, slot);
        const Plain known = known_of(job, entry, n, node);
        const size_t values = n == 0 ? 0 : entry[0].rank == entry[n - 1].rank ? 1 : 2;
        const Plain missing{node.all.sum - known.sum, node.all.n - known.n};
        double top = -1;
        if (learns_side(missing)) {
            each_with_missing(entry, n, missing, node,
                              [&](uint32_t, uint32_t, double square, double sides, bool) {
                                  if (square > top * sides) top = square / sides;
                              });
            return bounds_of(top < 0 ? no_score : top * node.all.n, values, node, known, missing,
                             true, learned_off * node.off_list);
        }
        each_threshold(entry, n, known, node, [&](size_t, double square, double sides, bool apart) {
            if ((square > top * sides) & apart) top = square / sides;
        });
        return bounds_of(top < 0 ? no_score : top * double(n), values, node, known, missing, true,
                         node.off_list);
    }

    // From what the known branches, of so many values, drop at most.
    NumberBounds bounds_of(double top, size_t values, const PlainNode& node, const Plain& known,
                           const Plain& missing, bool certain, double off) const {
        const bool own = problem_.missing == Policy::branch && missing.n > 0;
        NumberBounds bounds;
        bounds.varies = values + (own && values > 0) >= 2;
        if (own && values > 0) {
            // Known against missing may be all there is, and missing ones may be too few.
            bounds.most =
                std::max(top, 0.0) + known.square() + missing.square() - node.all.square() + off;
        } else if (top > no_score) {
            bounds.most = top + off;
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
