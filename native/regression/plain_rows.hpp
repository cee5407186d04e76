// The rows of a node as plain sums: of codes, and of sorted numbers.

#pragma once

#include <vector>

#include "core/random_splits.hpp"
#include "records/records.hpp"
#include "regression/histograms.hpp"
#include "regression/plain_sums.hpp"

namespace branchwise {

// What the columns of a node have in common.
template <typename Sums>
struct PlainNode {
    Sums all;                 // of all rows
    const double* distances;  // by row, times its weight: (number - centre) * factor
    double centre, factor;
    double steps;         // in which distances are added up exactly
    double off;           // scores of codes may be off by this
    double off_list;      // and those of lists by this
    bool certain = true;  // which rows are events
};

// W is uint32_t where rows count as one, Times where they are repeated, double where they have
// weights.
template <typename W, bool poisson>
class PlainRows {
  public:
    using Rows = Records<W, double>;
    static constexpr bool weighted = Rows::weighted;
    static constexpr bool counted = !weighted && !poisson;      // weights are numbers of cases
    static constexpr bool simple = counted && !Rows::repeated;  // a row is one
    using Sums = std::conditional_t<counted, Plain, WeighedPlain>;
    using Node = PlainNode<Sums>;

    PlainRows(const Problem& problem, const Rows& records)
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
        node.distances = distances;
        node.centre = moments.centre();
        node.factor = moments.factor();
        node.steps = poisson ? 0x1p60 : steps_for(moments.weight());
        node.all.sum = sum_in_steps(job.n, node.steps, [&](size_t i) { return distances[i]; });
        node.all.n = moments.weight();
        double smallest = 1.0;
        if constexpr (!counted) {
            const uint8_t* record = records_.first(job);
            smallest = moments.weight();
            rows_.resize(job.n);
            for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
                const double weight = records_.weight(record), cases = records_.share(record);
                const auto event = double(records_.target(record) > 0);
                rows_[i] = {distances[i], weight, cases, event};
                smallest = std::min(smallest, weight);
                node.all.cases += cases;
                node.all.events += event;
                if (poisson && distances[i] > 0)
                    node.certain = node.certain && distances[i] >= moments.least_distance();
            }
            all_admitted_ = !problem_.fractions && !problem_.weights_are_cases && fewest_ <= 1 &&
                            problem_.weight_in_leaf <= smallest;
            smallest = std::max(smallest, problem_.weight_in_leaf);
        } else {
            all_admitted_ = std::max(fewest_, problem_.weight_in_leaf) <= 1;
            if constexpr (!simple) take_rows(job, distances);
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
            const Sums row = sums_of(i, distances);
            for (const Place& place : narrow_) place.counters[record[place.code]] += row;
            for (const Place& place : wide_)
                place.counters[records_.code(record, place.column)] += row;
        }
    }

    // The same from a histogram of the node, as distances from its centre in whole steps.
    void take(const Histograms<W>& histograms, const Histogram& histogram,
              const std::vector<uint32_t>& columns, const Node& node) {
        static_assert(counted, "histograms are those of rows without weights");
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

  protected:
    struct Place {
        uint32_t column;
        size_t code;
        Sums* counters;
    };

    // The sorted numbers of a column.
    struct List {
        const Ranked* entry;
        size_t n;
        Sums known, missing;
        size_t n_left = 0;  // entries up to the threshold that is drawn
    };

    // ---- rows --------------------------------------------------------------------

    void take_rows(const RecordJob& job, const double* distances) {
        const uint8_t* record = records_.first(job);
        rows_.resize(job.n);
        for (size_t i = 0; i < job.n; ++i, record += records_.size())
            rows_[i] = {distances[i], double(records_.weight(record))};
    }

    // Of a row, the distances being those of the node that was added up.
    Sums sums_of(size_t row, const double* distances) const {
        if constexpr (simple)
            return {distances[row], 1.0};
        else
            return rows_[row];
    }
    Sums sums_of(const Ranked& entry, const Node& node) const {
        return sums_of(entry.place, node.distances);
    }

    List list_of(const RecordJob& job, size_t j, const Node& node) const {
        const size_t slot = records_.slot(j);
        List list{records_.ranked(job, slot), job.n_ranked[slot], {}, {}, 0};
        if (problem_.random_splits && list.n > 0) {
            const DrawnThreshold drawn(job.key, j, records_.values(j), list.entry[0].rank,
                                       list.entry[list.n - 1].rank);
            const Ranked* right =
                std::partition_point(list.entry, list.entry + list.n,
                                     [&](const Ranked& one) { return drawn.is_left(one.rank); });
            list.n_left = size_t(right - list.entry);
        }
        if (list.n == job.n) {
            list.known = node.all;
            return list;
        }
        for (size_t i = 0; i < list.n; ++i) list.known += sums_of(list.entry[i], node);
        list.known.sum = sum_in_steps(
            list.n, node.steps, [&](size_t i) { return node.distances[list.entry[i].place]; });
        list.missing = node.all - list.known;
        return list;
    }

    // Whether two branches may be so.
    bool admits(const Sums& left, const Sums& right) const {
        const double lighter = std::min(left.n, right.n);
        if constexpr (counted) {
            return lighter >= std::max({fewest_, problem_.weight_in_leaf, 1.0});
        } else {
            const double cases =
                problem_.weights_are_cases ? lighter : std::min(left.cases, right.cases);
            return cases >= fewest_ && lighter >= problem_.weight_in_leaf &&
                   (!poisson || std::min(left.events, right.events) > 0);
        }
    }

    bool learns_side(const Sums& missing) const {
        return problem_.missing == Policy::learned && missing.n > 0;
    }

    // ---- what is drawn -------------------------------------------------------------

    // Of a column of ranks: any, unless splits are random.
    DrawnThreshold drawn_threshold(const RecordJob& job, size_t j) const {
        if (!problem_.random_splits) return {};
        const Sums* counters = &counters_[first_[j]];
        uint32_t lowest = 0, highest = records_.missing_code(j);
        while (lowest < highest && !(counters[lowest].n > 0)) ++lowest;
        while (highest > lowest && !(counters[highest - 1].n > 0)) --highest;
        if (lowest == highest) return {};
        return {job.key, j, records_.values(j), lowest, highest - 1};
    }

    bool has_drawn(const List& list) const { return list.n_left > 0 && list.n_left < list.n; }
    Sums left_of_drawn(const List& list, const Node& node) const {
        Sums left;
        double before = 0;
        for (size_t i = 0; i < list.n_left; ++i) {
            left += sums_of(list.entry[i], node);
            if (i % summed_together == summed_together - 1) {
                before += left.sum;
                left.sum = 0;
            }
        }
        left.sum += before;
        return left;
    }

    const Problem& problem_;
    const Rows& records_;
    const double fewest_;        // cases of a branch
    bool all_admitted_ = true;   // any two branches that have rows
    std::vector<size_t> first_;  // counters of columns
    std::vector<Sums> counters_;
    std::vector<Sums> rows_;  // of the node, if they are not simple
    std::vector<Place> narrow_, wide_;
};

}  // namespace branchwise
