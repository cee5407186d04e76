// The fast representation: rows as one-hot bits, counted by positional popcount.
//
// It serves rows that count as one and have only categories, missing being one: rows that lack a
// value are a branch, or join that which is learned.
// Within a node, rows are sorted by class, so the label needs no space and the weight
// of (value, class) is the number of set bits in one position of one segment.
//
// Identities: the last value's count is the segment's size less the other counts;
// a child's class segments follow from the counts of the chosen column, so rows can
// be moved to their places in one pass; a column that is constant at a node is
// constant below it. A node owns [begin, begin + n) of one of two buffers, and its
// children the same range of the other (see rows.hpp).
//
// The impurity of a column's branches is the sum of f(size of a branch) less that of
// f(weight of a value and class), f(x) = x log2 x, as f(0) = 0. So it is a sum over
// counts, one line of them for each class and one for all classes together, whatever
// their order.

#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "bit_rows/bit_counts.hpp"
#include "bit_rows/bit_halves.hpp"
#include "bit_rows/bit_tree.hpp"
#include "bit_rows/bit_values.hpp"
#include "bit_rows/kept_counts.hpp"
#include "bit_rows/lane_halves.hpp"
#include "bit_rows/pure_columns.hpp"
#include "bit_rows/pure_rows.hpp"
#include "bit_rows/root_rows.hpp"

namespace branchwise {

class BitGrower : public BitTree {
  public:
    static constexpr size_t most_columns = ColumnSet::most;
    static constexpr size_t most_values = Field::most_values;
    static constexpr size_t most_words = 64;
    static constexpr size_t most_classes = 64;

    // Whether the representation can hold the problem; `values` gets the number of
    // values of each column.
    static bool suits(const Problem& problem, std::vector<uint32_t>& values) {
        if (problem.weights || problem.fractions || problem.tests_splits) return false;
        if (problem.missing == Policy::surrogate) return false;
        if (problem.random_splits && problem.branching != Branching::values) return false;
        if (problem.columns.size() > most_columns || problem.n_classes > int(most_classes))
            return false;
        values.clear();
        size_t words = 0;
        size_t room = 0;
        for (const Column& column : problem.columns) {
            if (column.numeric || column.width != 1 || column.n_codes > most_values + 1)
                return false;
            if (column.has_missing && problem.missing != Policy::branch &&
                problem.missing != Policy::learned)
                return false;
            const uint32_t count = column.n_codes - (column.has_missing ? 0 : 1);
            if (count > most_values) return false;
            values.push_back(count);
            const size_t bits = count ? count - 1 : 0;
            if (bits > room) {
                ++words;
                room = 64;
            }
            room -= bits;
        }
        return words <= most_words;
    }

    BitGrower(const BitGrower&) = delete;  // its parts refer to one another
    BitGrower& operator=(const BitGrower&) = delete;

    BitGrower(const Problem& problem, const Impurities& impurities, const RootRows& root_rows,
              Buffers& buffers, ThreadPool& pool)
        : BitTree(problem, impurities, root_rows.layout(), buffers, pool),
          impurities_(impurities),
          root_rows_(root_rows),
          line_(stride_ * 64),
          pure_columns_(problem, layout_),
          values_(problem, impurities, layout_),
          halves_serve_(ValueHalves::serve(problem) && problem.min_gain <= 0),
          halver_(problem),
          lane_halver_(problem, layout_),
          pure_rows_(problem, layout_),
          kept_small_((classes_ + 1) * line_),
          kept_large_((classes_ + 1) * line_) {
        small_counts_.resize((classes_ + 1) * line_);
        large_counts_.resize((classes_ + 1) * line_);
    }

    // Make the root, an open node unless it is a leaf.
    void plant(std::vector<Job>& jobs) {
        Job root = make_root();
        if (is_open(counts_of_class_.data(), root.n, 0)) jobs.push_back(root);
    }

    // Split an open node, or leave it a leaf; its open children are added to the jobs. Of a small
    // node the whole subtree is grown, where few of its columns are drawn.
    void split(const Job& job, std::vector<Job>& stack) {
        if (!draws_.any() || job.n > Members::most || !impurities_.has_table_for(job.n))
            return split_node(job, stack);
        const uint64_t* const node_rows = rows(job.side) + job.begin * stride_;
        pure_rows_.begin(node_rows);
        small_.push_back(job);
        small_.back().members = members_.read(node_rows, job.n, weights_of(job.node));
        while (!small_.empty()) {
            const Job next = small_.back();
            small_.pop_back();
            if (!halves_serve_ || !split_in_halves(next, small_)) split_node(next, small_);
        }
    }

  private:
    static constexpr size_t none = ~size_t(0);
    // Rows that a larger child must have in excess of a smaller one that need not be counted.
    static constexpr size_t worth_counting = 32;
    // Counts of a node, more of which are not kept.
    static constexpr size_t most_kept = 2048;

    void split_node(const Job& job, std::vector<Job>& stack) {
        const double* weights = weights_of(job.node);
        present_.clear();
        for (size_t c = 0; c < classes_; ++c) {
            counts_of_class_[c] = uint32_t(weights[c]);
            if (counts_of_class_[c]) present_.push_back(c);
        }
        const BitNode node{uint32_t(job.n), counts_of_class_, present_,
                           impurities_.impurity(problem_.criterion, counts_of_class_.data(),
                                                problem_.n_classes, uint32_t(job.n)),
                           Scale(double(job.n), impurities_, problem_)};
        const uint64_t* node_rows = rows(job.side) + job.begin * stride_;
        Job below = job;
        pieces_.clear();
        small_counts_of_node_ = nullptr;
        large_counts_of_node_ = nullptr;
        size_t best;
        if (job.members)
            best = best_of_members(job, node, below);
        else if (draws_.any())
            best = best_drawn(job, node, node_rows, below);
        else if ((best = pure_columns_.first(node_rows, node)) != none)
            count_pure(node, best, node_rows);
        else
            best = best_counted(job, node, node_rows, false, job.alive, below);
        const size_t before = stack.size();
        below.kept = -1;
        if (best != none) carry_out(job, below, best, node_rows, stack);
        if (job.members) return;
        // Threads take over nodes, but not what is kept of them.
        if (n_branches_ == 2 && stack.size() == before + 2 && pool_.size() == 1) {
            if (in_bytes(job))
                count_children(small_counts_of_node_, kept_small_, stack.data() + before);
            else
                count_children(large_counts_of_node_, kept_large_, stack.data() + before);
        }
        forget_counts(job);
    }

    // Whether it is counted in bytes.
    bool in_bytes(const Job& job) const { return job.n < 256 && impurities_.has_table_for(job.n); }

    // Of two children the smaller one is counted, and the larger one has what that leaves of the
    // parent, where this takes less than counting the larger one. `parent`: its counts, or null.
    template <typename Count>
    void count_children(const Count* parent, KeptCounts<Count>& kept, Job* children) {
        const bool first_is_smaller = children[0].n < children[1].n;
        Job& smaller = children[first_is_smaller ? 0 : 1];
        Job& larger = children[first_is_smaller ? 1 : 0];
        // Small nodes are sets, which are counted otherwise.
        const auto counts = [&](const Job& child) {
            return in_bytes(child) == (sizeof(Count) == 1) && child.n > Members::most;
        };
        const bool both = counts(smaller);
        if (!parent || !counts(larger) || (classes_ + 1) * line_ > most_kept) return;
        if (!both && larger.n < smaller.n + worth_counting) return;
        smaller.kept = kept.take();
        larger.kept = kept.take();
        count_smaller(smaller, parent, kept[smaller.kept], kept[larger.kept]);
        if (!both) kept.give(std::exchange(smaller.kept, -1));
    }

    template <typename Count>
    void count_smaller(const Job& smaller, const Count* parent, Count* counts, Count* left) {
        const double* weights = weights_of(smaller.node);
        const uint64_t* node_rows = rows(smaller.side) + smaller.begin * stride_;
        const size_t all = classes_ * line_;
        std::fill_n(counts + all, line_, Count(0));
        for (size_t c : present_) {
            const auto n = size_t(weights[c]);
            const size_t first = c * line_;
            popcount::count_line(node_rows, stride_, n, counts + first);
            popcount::add_line(counts + first, stride_, counts + all);
            popcount::subtract_line(parent + first, counts + first, stride_, left + first);
            node_rows += n * stride_;
        }
        popcount::subtract_line(parent + all, counts + all, stride_, left + all);
    }

    // What was kept of a node that is split.
    void forget_counts(const Job& job) {
        if (job.kept < 0) return;
        if (in_bytes(job))
            kept_small_.give(job.kept);
        else
            kept_large_.give(job.kept);
    }

    // Rows as bits, sorted by class.
    Job make_root() {
        const size_t n_rows = problem_.n_rows + root_rows_.in_excess();
        for (auto& side : buffers_.side) side.resize(n_rows * stride_ / 2);
        counts_of_class_ = root_rows_.make(rows(0), pool_);
        Job root;
        root.n = problem_.n_rows;
        for (size_t j = 0; j < layout_.n_columns(); ++j)
            if (layout_[j].values > 1) root.alive.add(j);
        root.key = problem_.draw_key;
        add_nodes(1);
        grown_.nodes[0].cases = double(root.n);
        for (size_t c = 0; c < classes_; ++c) grown_.weights[c] = counts_of_class_[c];
        return root;
    }

    // ---- counting ------------------------------------------------------------

    // The best column of the first batch that has a split, or none; its values are counted.
    size_t best_drawn(const Job& job, const BitNode& node, const uint64_t* node_rows, Job& below) {
        const ColumnSet pure = pure_columns_.all(node_rows, node);
        bool counted = false;
        draws_.begin(job.key);
        for (const auto* drawn = &draws_.next(); !drawn->empty(); drawn = &draws_.next()) {
            ColumnSet open;
            bool any = false;
            for (uint32_t j : *drawn) {
                if (pure.has(j)) {
                    count_pure(node, j, node_rows);
                    return j;
                }
                if (!below.alive.has(j)) continue;
                open.add(j);
                any = true;
            }
            if (!any) continue;
            const size_t best = best_counted(job, node, node_rows, counted, open, below);
            if (best != none) return best;
            counted = true;
        }
        return none;
    }

    // The same of a small node: columns are counted when they are drawn.
    size_t best_of_members(const Job& job, const BitNode& node, Job& below) {
        uint8_t* counts = small_counts_.data();
        draws_.begin(job.key);
        for (const auto* drawn = &draws_.next(); !drawn->empty(); drawn = &draws_.next()) {
            ColumnSet open;
            bool any = false;
            for (uint32_t j : *drawn) {
                if (!below.alive.has(j)) continue;
                members_.count(layout_[j], job.members, present_, line_, counts);
                if (pure_columns_.is_pure(j, node, counts)) {
                    table_.read(layout_[j], node, counts, line_);
                    if (grouped_) groups_.group_pure(node, j, table_);
                    return j;
                }
                open.add(j);
                any = true;
            }
            if (!any) continue;
            const size_t best = search(open, node, counts, below);
            if (best != none) return best;
        }
        return none;
    }

    // Split a small node in two by the first batch, if plain numbers are sure how; returns whether
    // they are.
    bool split_in_halves(const Job& job, std::vector<Job>& stack) {
        const double* weights = weights_of(job.node);
        size_t n_classes = 0, last_class = 0;
        for (size_t c = 0; c < classes_; ++c) {
            n_classes += weights[c] > 0;
            last_class = weights[c] > 0 ? c : last_class;
        }
        const double n = double(job.n), of_last = weights[last_class];
        const double noise = double(impurities_.noise(n)) * impurities_.unit();
        if (!halver_.serves(n, n_classes, noise)) return false;
        const uint64_t of_class = members_.of_class(last_class);
        draws_.begin(job.key);
        const std::vector<uint32_t>& drawn = draws_.next();
        if (pure_rows_.serves(job.n) && pure_columns_.serves(job.n) &&
            split_pure(job, drawn, {job.members & ~of_class, job.members & of_class}))
            return true;
        const bool has_lanes = lane_halver_.serves(n, noise);
        if (has_lanes) lane_halver_.begin(uint32_t(n), uint32_t(of_last));
        Job below = job;
        BestHalves best;
        Halves best_not_in_lanes;
        for (uint32_t j : drawn) {
            if (!below.alive.has(j)) continue;
            const bool joining = tells_missing(j);
            if (joining && !learned_) return false;  // which may have a third branch
            const Field& field = layout_[j];
            const bool in_lanes =
                has_lanes && lane_halver_.find(field, joining, members_, job.members, of_class);
            const size_t n_values =
                in_lanes ? lane_halver_.n_values()
                         : halver_.read(field, joining, members_, job.members, of_class);
            if (n_values < 2) {
                below.alive.drop(j);
                continue;
            }
            const double share = corrected_share(problem_, n_values, n);
            if (share == 0 && in_lanes && lane_halver_.is_pure()) {
                lane_halver_.keep(true);
                carry_out_halves(job, below, j, lane_halver_.halves(), stack);
                return true;
            }
            if (share == 0 && !in_lanes && halver_.is_pure() && pure_columns_.serves(job.n)) {
                carry_out_halves(job, below, j, halver_.pure(), stack);
                return true;
            }
            const double less = share > 0 ? share * impurity_of(n, of_last) : 0;
            Halves found;
            if (in_lanes) {
                found.drop = lane_halver_.drop() - less;
                found.sure = found.plain = true;
            } else {
                found = halver_.best(n, of_last, noise, less);
            }
            const bool is_best = best.consider(j, found, less, in_lanes);
            lane_halver_.keep(is_best && in_lanes);
            if (is_best && !in_lanes) best_not_in_lanes = found;
        }
        if (!best.is_sure(ValueHalves::tolerance(n, noise, best.drop))) return false;
        carry_out_halves(job, below, best.column,
                         best.in_lanes ? lane_halver_.halves() : best_not_in_lanes, stack);
        return true;
    }

    // Split a node of very few rows by the first column that is pure; returns whether there is one.
    // `of_class`: the rows of its two classes.
    bool split_pure(const Job& job, const std::vector<uint32_t>& drawn,
                    const uint64_t (&of_class)[2]) {
        pure_rows_.read(of_class);
        for (uint32_t j : drawn) {
            if (tells_missing(j) && (!learned_ || pure_rows_.has_last(layout_[j]))) return false;
            if (!pure_rows_.is_pure(layout_[j])) continue;
            size_t second;
            const Halves halves = pure_rows_.halves(layout_[j], second);
            bool is_open[2];  // neither is
            record_halves(job, j, halves, {of_class[1 - second], of_class[second]}, is_open);
            return true;
        }
        return false;
    }

    // Of n rows of two classes.
    double impurity_of(double n, double of_last) const {
        const uint32_t counts[2] = {uint32_t(n - of_last), uint32_t(of_last)};
        return double(impurities_.impurity(problem_.criterion, counts, 2, uint32_t(n))) *
               impurities_.unit();
    }

    void count_pure(const BitNode& node, size_t j, const uint64_t* node_rows) {
        table_.count(layout_[j], node, node_rows, stride_);
        if (grouped_) groups_.group_pure(node, j, table_);
    }

    // The best of the columns that are open, from counts; these may have been `counted`.
    size_t best_counted(const Job& job, const BitNode& node, const uint64_t* node_rows,
                        bool counted, const ColumnSet& open, Job& below) {
        if (in_bytes(job)) {
            uint8_t* counts = job.kept < 0 ? small_counts_.data() : kept_small_[job.kept];
            if (!counted && job.kept < 0) count_bits(node_rows, counts);
            small_counts_of_node_ = counts;
            return search(open, node, counts, below);
        }
        uint32_t* counts = job.kept < 0 ? large_counts_.data() : kept_large_[job.kept];
        if (!counted && job.kept < 0) {
            if (pool_.shares(work(job)))
                count_pieces(job, node_rows);
            else
                count_bits(node_rows, counts);
        }
        large_counts_of_node_ = counts;
        return search(open, node, counts, below);
    }

    // The best column of a node, or none; its values are counted. Columns that are constant are
    // dropped from `below`.
    template <typename Count>
    size_t search(const ColumnSet& open, const BitNode& node, const Count* counts, Job& below) {
        const size_t best = grouped_ ? best_of_groups(open, node, counts, below)
                                     : values_.best_column(node, open, counts, below.alive);
        if (best != none) table_.read(layout_[best], node, counts, line_);
        return best;
    }

    template <typename Count>
    size_t best_of_groups(const ColumnSet& open, const BitNode& node, const Count* counts,
                          Job& below) {
        columns_.clear();
        open.each(layout_.n_columns(), [&](size_t j) {
            const Field& field = layout_[j];
            const Count* sizes = counts + classes_ * line_ + field.first_bit();
            if (is_constant(j, sizes, node.n))
                below.alive.drop(j);
            else
                columns_.push_back(uint32_t(j));
            return true;
        });
        return groups_.best_column(node, columns_, counts);
    }

    // Whether a column can tell no rows apart, at a node and below. Missing rows that join others
    // are not told from these.
    template <typename Count>
    bool is_constant(size_t j, const Count* sizes, uint32_t n) const {
        const size_t last = layout_[j].values - 1;
        if (!learned_ || !tells_missing(j)) return popcount::is_constant(sizes, last, n);
        return std::count_if(sizes, sizes + last, [](Count size) { return size > 0; }) < 2;
    }

    // A line of counts for every class that the node has, and one for all classes.
    template <typename Count>
    void count_bits(const uint64_t* node_rows, Count* counts) const {
        const size_t stride = stride_;  // bytes may alias members, but not these
        const size_t line = line_;
        Count* all = counts + classes_ * line;
        std::fill_n(all, line, Count(0));
        for (size_t c : present_) {
            const size_t n = counts_of_class_[c];
            popcount::count_line(node_rows, stride, n, counts + c * line);
            popcount::add_line(counts + c * line, stride, all);
            node_rows += n * stride;
        }
    }

    // The same by all threads.
    void count_pieces(const Job& job, const uint64_t* node_rows) {
        const size_t most_rows = job.n / pool_.pieces(work(job)) + 1;
        pieces_.divide(node_rows, stride_, counts_of_class_, most_rows);
        pieces_.count(pool_, work(job), classes_, large_counts_.data());
    }

    const Impurities& impurities_;
    const RootRows& root_rows_;
    const size_t line_;  // counters for the bits of a row
    const PureColumns pure_columns_;
    BitValues values_;
    const bool halves_serve_;  // for small nodes
    ValueHalves halver_;
    LaneHalves lane_halver_;  // where rows are few
    PureRows pure_rows_;      // and where they are very few

    // Scratch, kept between nodes.
    std::vector<uint8_t> small_counts_;
    std::vector<uint32_t> large_counts_;
    KeptCounts<uint8_t> kept_small_;
    KeptCounts<uint32_t> kept_large_;
    const uint8_t* small_counts_of_node_ = nullptr;  // of the node that is split, if counted
    const uint32_t* large_counts_of_node_ = nullptr;
    std::vector<uint32_t> columns_;  // that vary
    std::vector<size_t> present_;    // classes that have some rows of the node
    std::vector<Job> small_;         // nodes below a small one that are open
};

}  // namespace branchwise
