// Which splits cannot be the best, from plain sums, whose errors have bounds. Only splits within
// these bounds of the best are scored exactly.

#pragma once

#include <vector>

#include "regression/plain_rows.hpp"

namespace branchwise {

// Between these is the best that a column can do, as a share of the node's squares.
struct NumberBounds {
    double most = no_score;
    double least = no_score;
    bool varies = false;
    size_t n_grouped = 0;  // values of a category

    NumberBounds grouped(size_t n_values) const {
        NumberBounds of_values = *this;
        of_values.n_grouped = n_values;
        return of_values;
    }
};

// W is uint32_t where rows count as one, Times where they are repeated, double where they have
// weights.
template <typename W, bool poisson>
class PlainScorer : public PlainRows<W, poisson> {
    using Base = PlainRows<W, poisson>;

  public:
    using Base::counted;
    using Base::simple;
    using typename Base::Node;
    using typename Base::Sums;
    using Whole = PlainWhole<Sums, poisson>;
    static constexpr double noise = poisson ? poisson_noise : variance_noise;

    using Base::Base;

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
                each_rank_with_missing(job, j, all, missing,
                                       [&](uint32_t, uint32_t, const PlainSplit& found, bool) {
                                           most = std::max(most, drop_of(found, node.all));
                                       });
            else if (problem_.random_splits)
                most = drop_of_drawn(job, j, all, missing);
            else
                most = most_with_missing(groups, all, missing);
            return bounds_of(most, groups.size(), node, known, missing,
                             ordered || problem_.random_splits, learned_off * node.off)
                .grouped(ordered ? 0 : groups.size());
        }
        const Whole whole(known);
        if (ordered)
            each_rank(job, j, whole, [&](uint32_t, uint32_t, const PlainSplit& found) {
                most = std::max(most, drop_of(found, known));
            });
        else if (problem_.branching == Branching::values)
            most = most_of_values<poisson>(groups, known);
        else if (problem_.random_splits)
            most = drop_of_drawn(job, j, whole, missing);
        else
            most = most_of_groups(groups, whole);
        const bool drawn = problem_.random_splits && problem_.branching == Branching::two_way;
        return bounds_of(most, groups.size(), node, known, missing, ordered || admitted || drawn,
                         node.off)
            .grouped(ordered ? 0 : groups.size());
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
                return certain_of(
                    node.all.n, bounds, learned_off * node.off, [&](const auto& visit) {
                        each_rank_with_missing(job, j, Whole(node.all), missing, visit);
                    });
            return certain_of(known.n, bounds, node.off,
                              [&](const auto& visit) { each_rank(job, j, Whole(known), visit); });
        }
        const List list = list_of(job, j, node);
        if (learns_side(list.missing))
            return certain_of(node.all.n, bounds, learned_off * node.off_list,
                              [&](const auto& visit) { each_with_missing(list, node, visit); });
        const auto least = [&] { return least_of(list.known.n, bounds, node.off_list); };
        return certain_of(list.known.n, bounds, node.off_list, [&](const auto& visit) {
            each_threshold(list, node, least,
                           [&](size_t i, const PlainSplit& found, bool admitted) {
                               if (admitted)
                                   visit(list.entry[i].rank, list.entry[i + 1].rank, found);
                           });
        });
    }

  private:
    using Base::admits;
    using Base::all_admitted_;
    using Base::counters_;
    using Base::drawn_threshold;
    using Base::fewest_;
    using Base::first_;
    using Base::has_drawn;
    using Base::learns_side;
    using Base::left_of_drawn;
    using Base::list_of;
    using Base::problem_;
    using Base::records_;
    using Base::sums_of;
    using typename Base::List;

    // What the two groups of values drop; `whole` has the missing rows if they join one of them.
    double drop_of_drawn(const RecordJob& job, size_t j, const Whole& whole,
                         const Sums& missing) const {
        const Sums* counters = &counters_[first_[j]];
        RandomGroups drawn(job.key, j);
        const auto each_code = [&](const auto& visit) {
            for (uint32_t code = 0; code < records_.missing_code(j); ++code)
                if (counters[code].n > 0) visit(code);
        };
        each_code([&](uint32_t code) { drawn.add(code); });
        if (drawn.count() < 2) return no_score;
        Sums sides[2];
        each_code([&](uint32_t code) { sides[drawn(code)] += counters[code]; });
        if (learns_side(missing)) sides[right_is_larger(sides[0].n, sides[1].n)] += missing;
        // With a branch of missing rows, one of the two may be smaller.
        const bool own = problem_.missing == Policy::branch && missing.n > 0;
        return own || admits(sides[0], sides[1]) ? whole.drop(sides[0]) : no_score;
    }

    // ---- thresholds ----------------------------------------------------------------

    // What thresholds have to do, as a ratio, that may be the best.
    static double least_of(double weight, const NumberBounds& bounds, double off) {
        const double top = bounds.most - off;
        return (top - 2 * off - surely_apart(top, noise)) / weight;
    }

    // `each` visits thresholds between ranks of rows with this weight.
    template <typename Each>
    static Certain certain_of(double weight, const NumberBounds& bounds, double off,
                              const Each& each) {
        const double top = bounds.most - off;
        const double least = least_of(weight, bounds, off);
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
    void each_rank(const RecordJob& job, size_t j, const Whole& whole, const Visit& visit) const {
        const Sums* counters = &counters_[first_[j]];
        const DrawnThreshold drawn = drawn_threshold(job, j);
        Sums left;
        uint32_t low = 0;
        for (uint32_t rank = 0; rank < records_.missing_code(j); ++rank) {
            if (!(counters[rank].n > 0)) continue;
            if (left.n > 0 && drawn.allows(low, rank) && admits(left, whole.rows - left))
                visit(low, rank, whole.split(left));
            left += counters[rank];
            low = rank;
        }
    }

    // Sums of missing rows are off, too.
    static constexpr double learned_off = 3;

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
    void each_rank_with_missing(const RecordJob& job, size_t j, const Whole& all,
                                const Sums& missing, const Visit& visit) const {
        const Sums* counters = &counters_[first_[j]];
        const DrawnThreshold drawn = drawn_threshold(job, j);
        Sums left;
        uint32_t low = 0;
        for (uint32_t rank = 0; rank < records_.missing_code(j); ++rank) {
            if (!(counters[rank].n > 0)) continue;
            if (left.n > 0 && drawn.allows(low, rank))
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
        const Ranked* entry = list.entry;
        if (problem_.random_splits) {
            if (!has_drawn(list)) return;
            const size_t i = list.n_left - 1;
            with_missing(left_of_drawn(list, node), all, list.missing,
                         [&](const PlainSplit& found, bool on_right) {
                             visit(entry[i].rank, entry[i + 1].rank, found, on_right);
                         });
            return;
        }
        Sums left;
        double before = 0;
        for (size_t i = 0; i + 1 < list.n; ++i) {
            left += sums_of(entry[i], node);
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
    // what is likely depends on the table, so visit() decides. Entries whose splits surely have a
    // lower ratio of square to sides than least() may be left out.
    template <typename Least, typename Visit>
    void each_threshold(const List& list, const Node& node, const Least& least,
                        const Visit& visit) const {
        if (problem_.random_splits) {
            if (!has_drawn(list)) return;
            const Whole whole(list.known);
            const Sums left = left_of_drawn(list, node);
            const bool admitted = admits(left, whole.rows - left);
            if (!poisson || admitted) visit(list.n_left - 1, whole.split(left), admitted);
            return;
        }
        if constexpr (simple)
            each_threshold_of_rows(list, node, least, visit);
        else if constexpr (counted)
            each_threshold_of_cases(list, node, visit);
        else
            each_threshold_of_weights(list, node, visit);
    }

    // Most blocks of a list have no threshold that may be the best.
    template <typename Least, typename Visit>
    void each_threshold_of_rows(const List& list, const Node& node, const Least& least,
                                const Visit& visit) const {
        const Ranked* entry = list.entry;
        const size_t n = list.n;
        const double fewest = std::max({fewest_, problem_.weight_in_leaf, 1.0});
        const auto n_least = size_t(std::min(std::ceil(fewest), 4e9));
        if (n < 2 * n_least) return;
        const double* const distances = node.distances;
        const auto rows = double(n);
        const double mean = list.known.sum / list.known.n;
        const auto sides_of = [&](size_t left) { return double(left) * (rows - double(left)); };
        double before = 0;
        for (size_t i = 0; i + n_least < n;) {
            const size_t end = std::min(i + summed_together, n - n_least);
            double total = 0;
            if (end == i + summed_together) {
                const double off_mean = before - double(i) * mean;
                const BlockSums block = add_up_block(entry + i, distances, off_mean, mean);
                const double sides = std::min(sides_of(i + 1), sides_of(end));
                total = block.total;
                if (block.farthest * block.farthest < least() * sides) i = end;
            }
            double sum = 0;
            for (; i < end; ++i) {
                sum += distances[entry[i].place];
                const auto left = double(i + 1);
                const double off_mean = before + sum - left * mean;
                visit(i, PlainSplit{off_mean * off_mean, left * (rows - left)},
                      (entry[i].rank != entry[i + 1].rank) & (i + 1 >= n_least));
            }
            before += total;
        }
    }

    // The sum of a block of a list, and how far sums up to any of its entries may be from what they
    // would be if all rows had the same mean; `off_mean`: how far that before the block is.
    struct BlockSums {
        double total, farthest;
    };
    static BlockSums add_up_block(const Ranked* entry, const double* distances, double off_mean,
                                  double mean) {
        // Sums of four runs side by side: each waits for the one before it.
        using Two [[gnu::vector_size(16)]] = double;
        constexpr size_t run = summed_together / 4;
        Two sums[2] = {}, lowest[2] = {}, highest[2] = {};
        for (size_t i = 0; i < run; ++i) {
            for (size_t k = 0; k < 2; ++k) {
                const Ranked* const one = entry + 2 * k * run + i;
                sums[k] += Two{distances[one->place], distances[one[run].place]};
                lowest[k] = sums[k] < lowest[k] ? sums[k] : lowest[k];
                highest[k] = sums[k] > highest[k] ? sums[k] : highest[k];
            }
        }
        BlockSums block{0, 0};
        for (size_t k = 0; k < 4; ++k) {
            const double start = off_mean + block.total - double(k * run) * mean;
            block.farthest = std::max(
                {block.farthest, start + highest[k / 2][k % 2], -(start + lowest[k / 2][k % 2])});
            block.total += sums[k / 2][k % 2];
        }
        block.farthest += double(run) * std::fabs(mean);
        return block;
    }

    template <typename Visit>
    void each_threshold_of_cases(const List& list, const Node& node, const Visit& visit) const {
        const Ranked* entry = list.entry;
        const double least = std::max({fewest_, problem_.weight_in_leaf, 1.0});
        const double mean = list.known.sum / list.known.n, most = list.known.n - least;
        double before = 0, left = 0;
        for (size_t i = 0; i + 1 < list.n;) {
            double sum = 0;
            for (const size_t end = std::min(i + summed_together, list.n - 1); i < end; ++i) {
                const Sums row = sums_of(entry[i], node);
                sum += row.sum;
                left += row.n;
                const double off_mean = before + sum - left * mean;
                visit(i, PlainSplit{off_mean * off_mean, left * (list.known.n - left)},
                      (entry[i].rank != entry[i + 1].rank) & (left >= least) & (left <= most));
            }
            before += sum;
        }
    }

    template <typename Visit>
    void each_threshold_of_weights(const List& list, const Node& node, const Visit& visit) const {
        const Ranked* entry = list.entry;
        if (list.n < 2) return;
        const Whole whole(list.known);
        Sums left;
        double before = 0;
        for (size_t i = 0; i + 1 < list.n;) {
            double sum = 0;
            for (const size_t end = std::min(i + summed_together, list.n - 1); i < end; ++i) {
                const Sums row = sums_of(entry[i], node);
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
        const auto least = [&] { return top; };
        each_threshold(list, node, least, [&](size_t, const PlainSplit& found, bool admitted) {
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
};

}  // namespace branchwise
