// Which splits cannot be the best, from plain sums, whose errors have bounds. Only splits within
// these bounds of the best are scored exactly.

#pragma once

#include <vector>

#include "records/records.hpp"
#include "regression/histograms.hpp"
#include "regression/plain_sums.hpp"

namespace branchwise {

// What the columns of a node have in common.
template <typename Sums>
struct PlainNode {
    Sums all;               // of all rows
    double centre, factor;  // a distance is (number - centre) * factor
    double steps;           // in which distances are added up exactly
    double off;             // scores of codes may be off by this
    double off_list;        // and those of lists by this
    bool certain = true;    // which rows are events
};

// Between these is the best that a column can do, as a share of the node's squares.
struct NumberBounds {
    double most = no_score;
    double least = no_score;
    bool varies = false;
};

// W is uint32_t where rows count as one, double where they have weights.
template <typename W, bool poisson>
class PlainScorer {
  public:
    using Rows = Records<W, NumberOf<W>>;
    using Entry = Ranked<NumberOf<W>>;
    static constexpr bool weighted = Rows::weighted;
    static constexpr bool simple = !weighted && !poisson;  // a row is a case, and a weight of 1
    using Sums = std::conditional_t<simple, Plain, WeighedPlain>;
    using Node = PlainNode<Sums>;
    using Whole = PlainWhole<Sums, poisson>;
    static constexpr double noise = poisson ? poisson_noise : variance_noise;

    PlainScorer(const Problem& problem, const Rows& records)
        : problem_(problem),
          records_(records),
          fewest_(std::max(problem.cases_in_leaf, problem.cases_in_branch)),
          first_(problem.columns.size()) {
        size_t at = 0;
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            if (records.is_list(j)) continue;
            first_[j] = at;
            at += records.missing_code(j) + 1;
        }
        counters_.resize(at);
    }

    // How the rows of a node are added up, one after the other; distances are by row, scaled, and
    // have the weight of the row in them.
    Node add_up(const RecordJob& job, const NodeMoments& moments, const double* distances,
                bool exact) {
        Node node;
        node.centre = moments.centre();
        node.factor = moments.factor();
        node.steps = poisson ? 0x1p60 : steps_for(moments.weight());
        node.all.sum = sum_in_steps(job.n, node.steps, [&](size_t i) { return distances[i]; });
        node.all.n = moments.weight();
        double smallest = 1.0;
        if constexpr (!simple) {
            const uint8_t* record = records_.first(job);
            smallest = moments.weight();
            for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
                smallest = std::min(smallest, double(records_.weight(record)));
                node.all.cases += records_.share(record);
                node.all.events += records_.target(record) > 0;
                if (poisson && distances[i] > 0)
                    node.certain = node.certain && distances[i] >= moments.least_distance();
            }
            all_admitted_ = !problem_.fractions && !problem_.weights_are_cases && fewest_ <= 1 &&
                            problem_.weight_in_leaf <= smallest;
            smallest = std::max(smallest, problem_.weight_in_leaf);
        } else {
            all_admitted_ = std::max(fewest_, problem_.weight_in_leaf) <= 1;
        }
        const auto off = [&](double added) {
            if (!poisson) return off_by_sums(added, moments.weight(), smallest);
            return off_by_rates(exact ? 16.0 : added);
        };
        node.off = off(added_one_by_one(job.n));
        node.off_list = off(added_in_blocks(job.n));
        return node;
    }

    // Add up the columns of codes among some, row by row; distances are by row.
    void count(const RecordJob& job, const std::vector<uint32_t>& columns,
               const double* distances) {
        narrow_.clear();
        wide_.clear();
        for (uint32_t j : columns) {
            if (records_.is_list(j)) continue;
            std::fill_n(&counters_[first_[j]], records_.missing_code(j) + 1, Sums());
            auto& places = records_.layout().width[j] == 1 ? narrow_ : wide_;
            places.push_back({j, records_.layout().code[j], &counters_[first_[j]]});
        }
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
            const Sums row = sums_of(record, distances[i]);
            for (const Place& place : narrow_) place.counters[record[place.code]] += row;
            for (const Place& place : wide_)
                place.counters[records_.code(record, place.column)] += row;
        }
    }

    // The same from a histogram of the node, as distances from its centre in whole steps.
    void take(const Histograms& histograms, const Histogram& histogram,
              const std::vector<uint32_t>& columns, const Node& node) {
        static_assert(simple, "histograms are those of rows that count as one");
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
    NumberBounds bounds(const RecordJob& job, size_t j, const Node& node,
                        std::vector<Sums>& groups) const {
        if (records_.is_list(j)) return bounds_of_list(job, j, node);
        groups.clear();
        const Sums* counters = &counters_[first_[j]];
        bool admitted = all_admitted_;
        for (uint32_t code = 0; code < records_.missing_code(j); ++code) {
            if (!(counters[code].n > 0)) continue;
            groups.push_back(counters[code]);
            if constexpr (poisson) admitted = admitted && counters[code].events > 0;
        }
        const Sums missing = counters[records_.missing_code(j)];
        const Sums known = node.all - missing;
        const bool ordered = records_.is_numeric(j);
        double most = no_score;
        if (learns_side(missing)) {
            const Whole all(node.all);
            if (ordered)
                each_rank_with_missing(j, all, missing,
                                       [&](uint32_t, uint32_t, const PlainSplit& found, bool) {
                                           most = std::max(most, drop_of(found, node.all));
                                       });
            else
                most = most_with_missing(groups, all, missing);
            return bounds_of(most, groups.size(), node, known, missing, ordered,
                             learned_off * node.off);
        }
        const Whole whole(known);
        if (ordered)
            each_rank(j, whole, [&](uint32_t, uint32_t, const PlainSplit& found) {
                most = std::max(most, drop_of(found, known));
            });
        else if (problem_.branching == Branching::values)
            most = most_of_values<poisson>(groups, known);
        else
            most = most_of_groups(groups, whole);
        return bounds_of(most, groups.size(), node, known, missing, ordered || admitted, node.off);
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
                              const Node& node) const {
        if (!records_.is_list(j)) {
            const Sums missing = counters_[first_[j] + records_.missing_code(j)];
            const Sums known = node.all - missing;
            if (learns_side(missing))
                return certain_of(node.all.n, bounds, learned_off * node.off,
                                  [&](const auto& visit) {
                                      each_rank_with_missing(j, Whole(node.all), missing, visit);
                                  });
            return certain_of(known.n, bounds, node.off,
                              [&](const auto& visit) { each_rank(j, Whole(known), visit); });
        }
        const List list = list_of(job, j, node);
        if (learns_side(list.missing))
            return certain_of(node.all.n, bounds, learned_off * node.off_list,
                              [&](const auto& visit) { each_with_missing(list, node, visit); });
        return certain_of(list.known.n, bounds, node.off_list, [&](const auto& visit) {
            each_threshold(list, node, [&](size_t i, const PlainSplit& found, bool admitted) {
                if (admitted) visit(list.entry[i].rank, list.entry[i + 1].rank, found);
            });
        });
    }

  private:
    struct Place {
        uint32_t column;
        size_t code;
        Sums* counters;
    };

    // The sorted numbers of a column.
    struct List {
        const Entry* entry;
        size_t n;
        const uint8_t* records;
        Sums known, missing;
    };

    // ---- rows --------------------------------------------------------------------

    Sums sums_of(const uint8_t* record, double distance) const {
        if constexpr (simple)
            return {distance, 1.0};
        else
            return {distance, double(records_.weight(record)), records_.share(record),
                    double(records_.target(record) > 0)};
    }
    Sums sums_of(const Entry& entry, const Node& node, const uint8_t* base) const {
        const double number = number_of_target(entry.target);
        const double distance = (number - node.centre) * node.factor;
        if constexpr (simple) {
            return {distance, 1.0};
        } else {
            double weight = 1;
            if constexpr (weighted) weight = entry.target.whole_steps * problem_.weight_step;
            const double cases =
                problem_.fractions ? records_.share(base + entry.position * records_.size()) : 1.0;
            return {distance * weight, weight, cases, double(number > 0)};
        }
    }

    List list_of(const RecordJob& job, size_t j, const Node& node) const {
        const size_t slot = records_.slot(j);
        List list{records_.ranked(job, slot), job.n_ranked[slot], records_.first(job), {}, {}};
        if (list.n == job.n) {
            list.known = node.all;
            return list;
        }
        for (size_t i = 0; i < list.n; ++i)
            list.known += sums_of(list.entry[i], node, list.records);
        list.known.sum = sum_in_steps(list.n, node.steps, [&](size_t i) {
            return sums_of(list.entry[i], node, list.records).sum;
        });
        list.missing = node.all - list.known;
        return list;
    }

    // Whether two branches may be so.
    bool admits(const Sums& left, const Sums& right) const {
        const double lighter = std::min(left.n, right.n);
        if constexpr (simple) {
            return lighter >= std::max({fewest_, problem_.weight_in_leaf, 1.0});
        } else {
            const double cases =
                problem_.weights_are_cases ? lighter : std::min(left.cases, right.cases);
            return cases >= fewest_ && lighter >= problem_.weight_in_leaf &&
                   (!poisson || std::min(left.events, right.events) > 0);
        }
    }

    // ---- thresholds ----------------------------------------------------------------

    // `each` visits thresholds between ranks of rows with this weight.
    template <typename Each>
    static Certain certain_of(double weight, const NumberBounds& bounds, double off,
                              const Each& each) {
        const double top = bounds.most - off;
        const double least = (top - 2 * off - surely_apart(top, noise)) / weight;
        Certain found;
        size_t number = 0;
        each([&](uint32_t low, uint32_t high, const PlainSplit& split,
                 int32_t missing_to = stop_here) {
            if (split.square < least * split.sides) return;
            if (++number == 1)
                found = {low, high, split.square / split.sides * weight - off, missing_to};
        });
        const bool equal = found.least + off >= top - surely_equal(top, noise) + 2 * off;
        return number == 1 || equal ? found : Certain();
    }

    static double drop_of(const PlainSplit& split, const Sums& whole) {
        return split.square / split.sides * whole.n;
    }

    // visit(low, high, split) for the thresholds between the ranks of a column.
    template <typename Visit>
    void each_rank(size_t j, const Whole& whole, const Visit& visit) const {
        const Sums* counters = &counters_[first_[j]];
        Sums left;
        uint32_t low = 0;
        for (uint32_t rank = 0; rank < records_.missing_code(j); ++rank) {
            if (!(counters[rank].n > 0)) continue;
            if (left.n > 0 && admits(left, whole.rows - left)) visit(low, rank, whole.split(left));
            left += counters[rank];
            low = rank;
        }
    }

    // Sums of missing rows are off, too.
    static constexpr double learned_off = 3;

    bool learns_side(const Sums& missing) const {
        return problem_.missing == Policy::learned && missing.n > 0;
    }

    // visit(split, side of missing rows) for a split of known rows, with the others on either
    // side, the larger one first.
    template <typename Visit>
    void with_missing(const Sums& left, const Whole& all, const Sums& missing,
                      const Visit& visit) const {
        const bool first = right_is_larger(left.n, all.rows.n - missing.n - left.n);
        for (const bool on_right : {first, !first}) {
            Sums joined = left;
            if (!on_right) joined += missing;
            if (admits(joined, all.rows - joined)) visit(all.split(joined), on_right);
        }
    }

    // As each_rank, and each_threshold.
    template <typename Visit>
    void each_rank_with_missing(size_t j, const Whole& all, const Sums& missing,
                                const Visit& visit) const {
        const Sums* counters = &counters_[first_[j]];
        Sums left;
        uint32_t low = 0;
        for (uint32_t rank = 0; rank < records_.missing_code(j); ++rank) {
            if (!(counters[rank].n > 0)) continue;
            if (left.n > 0)
                with_missing(left, all, missing, [&](const PlainSplit& found, bool on_right) {
                    visit(low, rank, found, on_right);
                });
            left += counters[rank];
            low = rank;
        }
    }
    template <typename Visit>
    void each_with_missing(const List& list, const Node& node, const Visit& visit) const {
        const Whole all(node.all);
        const Entry* entry = list.entry;
        Sums left;
        double before = 0;
        for (size_t i = 0; i + 1 < list.n; ++i) {
            left += sums_of(entry[i], node, list.records);
            if (i % summed_together == summed_together - 1) {
                before += left.sum;
                left.sum = 0;
            }
            if (entry[i].rank == entry[i + 1].rank) continue;
            Sums whole_left = left;
            whole_left.sum += before;
            with_missing(whole_left, all, list.missing,
                         [&](const PlainSplit& found, bool on_right) {
                             visit(entry[i].rank, entry[i + 1].rank, found, on_right);
                         });
        }
    }

    // visit(i, split, admitted) after each entry. There is a threshold if the next rank is another:
    // what is likely depends on the table, so visit() decides.
    template <typename Visit>
    void each_threshold(const List& list, const Node& node, const Visit& visit) const {
        if constexpr (simple)
            each_threshold_of_rows(list, node, visit);
        else
            each_threshold_of_weights(list, node, visit);
    }

    template <typename Visit>
    void each_threshold_of_rows(const List& list, const Node& node, const Visit& visit) const {
        const Entry* entry = list.entry;
        const size_t n = list.n;
        const double fewest = std::max({fewest_, problem_.weight_in_leaf, 1.0});
        const auto least = size_t(std::min(std::ceil(fewest), 4e9));
        if (n < 2 * least) return;
        const double centre = node.centre, factor = node.factor, rows = double(n);
        const double mean = list.known.sum / list.known.n;
        double before = 0;
        for (size_t i = 0; i + least < n;) {
            double sum = 0;
            for (const size_t end = std::min(i + summed_together, n - least); i < end; ++i) {
                sum += (entry[i].target - centre) * factor;
                const auto left = double(i + 1);
                const double off_mean = before + sum - left * mean;
                visit(i, PlainSplit{off_mean * off_mean, left * (rows - left)},
                      (entry[i].rank != entry[i + 1].rank) & (i + 1 >= least));
            }
            before += sum;
        }
    }

    template <typename Visit>
    void each_threshold_of_weights(const List& list, const Node& node, const Visit& visit) const {
        const Entry* entry = list.entry;
        if (list.n < 2) return;
        const Whole whole(list.known);
        Sums left;
        double before = 0;
        for (size_t i = 0; i + 1 < list.n;) {
            double sum = 0;
            for (const size_t end = std::min(i + summed_together, list.n - 1); i < end; ++i) {
                const Sums row = sums_of(entry[i], node, list.records);
                sum += row.sum;
                left += row;
                left.sum = before + sum;
                const bool apart = entry[i].rank != entry[i + 1].rank;
                if constexpr (poisson) {  // logarithms take long
                    if (apart && admits(left, whole.rows - left)) visit(i, whole.split(left), true);
                } else {
                    visit(i, whole.split(left), apart & admits(left, whole.rows - left));
                }
            }
            before += sum;
        }
    }

    NumberBounds bounds_of_list(const RecordJob& job, size_t j, const Node& node) const {
        const List list = list_of(job, j, node);
        const size_t values = list.n == 0                                         ? 0
                              : list.entry[0].rank == list.entry[list.n - 1].rank ? 1
                                                                                  : 2;
        double top = -1;
        if (learns_side(list.missing)) {
            each_with_missing(list, node, [&](uint32_t, uint32_t, const PlainSplit& found, bool) {
                if (found.square > top * found.sides) top = found.square / found.sides;
            });
            return bounds_of(top < 0 ? no_score : top * node.all.n, values, node, list.known,
                             list.missing, true, learned_off * node.off_list);
        }
        each_threshold(list, node, [&](size_t, const PlainSplit& found, bool admitted) {
            if ((found.square > top * found.sides) & admitted) top = found.square / found.sides;
        });
        return bounds_of(top < 0 ? no_score : top * list.known.n, values, node, list.known,
                         list.missing, true, node.off_list);
    }

    // From what the known branches, of so many values, drop at most.
    NumberBounds bounds_of(double top, size_t values, const Node& node, const Sums& known,
                           const Sums& missing, bool certain, double off) const {
        const bool own = problem_.missing == Policy::branch && missing.n > 0;
        NumberBounds bounds;
        bounds.varies = values + (own && values > 0) >= 2;
        if (own && values > 0) {
            // Known against missing may be all there is, and missing ones may be too few.
            bounds.most = std::max(top, 0.0) + value_of<poisson>(known) +
                          value_of<poisson>(missing) - value_of<poisson>(node.all) + off;
        } else if (top > no_score) {
            bounds.most = top + off;
            if (certain) bounds.least = bounds.most - 2 * off;
        }
        return bounds;
    }

    const Problem& problem_;
    const Rows& records_;
    const double fewest_;        // cases of a branch
    bool all_admitted_ = true;   // any two branches that have rows
    std::vector<size_t> first_;  // counters of columns
    std::vector<Sums> counters_;
    std::vector<Place> narrow_, wide_;
};

}  // namespace branchwise
