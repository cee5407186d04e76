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
#include <vector>

#include "bit_rows/bit_counts.hpp"
#include "bit_rows/bit_halves.hpp"
#include "bit_rows/bit_tree.hpp"
#include "bit_rows/bit_values.hpp"
#include "bit_rows/pure_columns.hpp"
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
          halver_(problem) {
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
        small_.push_back(job);
        small_.back().members =
            members_.read(rows(job.side) + job.begin * stride_, job.n, weights_of(job.node));
        while (!small_.empty()) {
            const Job next = small_.back();
            small_.pop_back();
            if (!halves_serve_ || !split_in_halves(next, small_)) split_node(next, small_);
        }
    }

  private:
    static constexpr size_t none = ~size_t(0);

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
        size_t best;
        if (job.members)
            best = best_of_members(job, node, below);
        else if (draws_.any())
            best = best_drawn(job, node, node_rows, below);
        else if ((best = pure_columns_.first(node_rows, node)) != none)
            count_pure(node, best, node_rows);
        else
            best = best_counted(job, node, node_rows, false, job.alive, below);
        if (best != none) carry_out(job, below, best, node_rows, stack);
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
        Job below = job;
        Halves best;
        size_t column = none;
        double second = no_score;
        draws_.begin(job.key);
        for (uint32_t j : draws_.next()) {
            if (!below.alive.has(j)) continue;
            const bool joining = tells_missing(j);
            if (joining && !learned_) return false;  // which may have a third branch
            const size_t n_values = halver_.read(layout_[j], joining, members_, job.members,
                                                 members_.of_class(last_class));
            if (n_values < 2) {
                below.alive.drop(j);
                continue;
            }
            const double less = corrected_share(problem_, n_values, n);
            if (less == 0 && halver_.is_pure() && pure_columns_.serves(job.n)) {
                carry_out_halves(job, below, j, halver_.pure(), stack);
                return true;
            }
            const Halves found =
                halver_.best(n, of_last, noise, less > 0 ? less * impurity_of(n, of_last) : 0);
            if (ValueHalves::are_equal(best, found, n)) continue;  // the first is taken
            second = std::max(second, std::min(best.drop, found.drop));
            if (found.drop <= best.drop) continue;
            best = found;
            column = j;
        }
        const double least = best.drop - ValueHalves::tolerance(n, noise, best.drop);
        if (column == none || !best.sure || second >= least) return false;
        carry_out_halves(job, below, column, best, stack);
        return true;
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
        if (job.n < 256 && impurities_.has_table_for(job.n)) {
            if (!counted) count_bits(node_rows, small_counts_.data());
            return search(open, node, small_counts_.data(), below);
        }
        if (!counted && pool_.shares(work(job)))
            count_pieces(job, node_rows);
        else if (!counted)
            count_bits(node_rows, large_counts_.data());
        return search(open, node, large_counts_.data(), below);
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

    // Scratch, kept between nodes.
    std::vector<uint8_t> small_counts_;
    std::vector<uint32_t> large_counts_;
    std::vector<uint32_t> columns_;  // that vary
    std::vector<size_t> present_;    // classes that have some rows of the node
    std::vector<Job> small_;         // nodes below a small one that are open
};

}  // namespace branchwise
