// Whole subtrees: by variance, for rows that have no weights, without missing values.
//
// Splits are chosen from plain sums. A node whose split is not certain is handed back.

#pragma once

#include "core/tree.hpp"
#include "regression/delayed_thresholds.hpp"
#include "regression/subtree_choice.hpp"

namespace branchwise {

// Subtrees of at most so many rows.
template <typename W, typename Row, size_t most_rows>
class Subtrees : public SubtreeChoice<W, Row, most_rows> {
    using Base = SubtreeChoice<W, Row, most_rows>;

  public:
    using typename Base::Open;
    using typename Base::Rows;

    using Thresholds = DelayedThresholds<Rows>;

    Subtrees(const Problem& problem, const NumberScale& scale, const Rows& records, Grown& grown,
             Thresholds& thresholds)
        : Base(problem, scale, records), grown_(grown), thresholds_(thresholds) {}

    // Grow the subtree that has been loaded. take(node) tells of a node that is not split here
    // whether it has been taken over; failed(node) is called for those that are not certain.
    template <typename Take, typename Failed>
    void grow(const Open& root, const Take& take, const Failed& failed) {
        open_.assign(1, root);
        while (!open_.empty()) {
            const Open node = open_.back();
            open_.pop_back();
            alive_.resize(node.alive_end);
            if (take(node)) continue;
            if (!split(node)) failed(node);
        }
    }

  private:
    using Base::alive_;
    using Base::branch_;
    using Base::branch_of_code_;
    using Base::by_number_;
    using Base::choose;
    using Base::choose_for_pair;
    using Base::divide;
    using Base::draws_;
    using Base::has_list;
    using Base::is_ordered;
    using Base::limbs_;
    using Base::number_;
    using Base::of_few;
    using Base::order;
    using Base::parts_pairs;
    using Base::problem_;
    using Base::rank;
    using Base::repeated;
    using Base::rows_;
    using Base::scale_;
    using Base::times;
    using Base::values_;
    using Base::varies_;
    using typename Base::Chosen;
    using typename Base::Value;

    // Nodes with more rows have lists.
    static constexpr size_t most_unlisted = of_few ? 4 : 0;

    // False where it is not certain how.
    bool split(const Open& node) {
        if (node.n() == 2 && parts_pairs()) return split_pair(node);
        Chosen chosen;
        if (!choose(node, moments_of(size_t(node.node)), chosen)) return false;
        if (chosen.column < 0)
            add_squares(size_t(node.node), node.begin, node.end);
        else
            carry_out(node, chosen);
        return true;
    }

    // Two rows: children are leaves, the one with the lower rank or code first.
    bool split_pair(const Open& node) {
        const int chosen = choose_for_pair(node);
        if (chosen < 0) {
            add_squares(size_t(node.node), node.begin, node.end);
            return true;
        }
        const auto j = size_t(chosen);
        Row* const rows = rows_.data() + node.begin;
        if (rank(j)[rows[0]] > rank(j)[rows[1]]) std::swap(rows[0], rows[1]);
        const uint32_t ranks[2] = {rank(j)[rows[0]], rank(j)[rows[1]]};
        sizes_.assign(2, 1.0);
        if constexpr (repeated) cases_.assign({double(times(rows[0])), double(times(rows[1]))});
        const size_t first = add_children(2);
        for (size_t b = 0; b < 2; ++b) {
            grown_.nodes[first + b].cases = cases()[b];
            grown_.nodes[first + b].code = is_ordered(j) ? int32_t(b) : int32_t(ranks[b]);
            double* const moments = moments_of(first + b);
            moments[0] = cases()[b];
            for (size_t k = 0; k < scale_.sums.size(); ++k)
                moments[1 + k] += limbs_[rows[b] * scale_.sums.size() + k];
            add_squares(first + b, node.begin + b, node.begin + b + 1);
        }
        record_parent(node, j, ranks[0], ranks[1], first);
        return true;
    }

    // Their moments are zero.
    size_t add_children(size_t n_branches) {
        const size_t first = grown_.add_nodes(n_branches, scale_.width());
        std::fill_n(moments_of(first), n_branches * scale_.width(), 0.0);
        return first;
    }

    double* moments_of(size_t node) { return &grown_.weights[node * scale_.width()]; }

    void carry_out(const Open& node, const Chosen& chosen) {
        const auto j = size_t(chosen.column);
        set_branches(node, chosen);
        const size_t n_branches = sizes_.size(), first = add_children(n_branches);
        divide(rows_.data(), node, sizes_);
        add_sums(node, first);
        record(node, chosen, first);
        bool listed = false;
        uint32_t begin = node.begin;
        is_open_.clear();
        for (size_t b = 0; b < n_branches; begin += uint32_t(sizes_[b++])) {
            const bool open = (problem_.max_depth < 0 || node.depth + 1 < problem_.max_depth) &&
                              cases()[b] >= problem_.cases_to_split && differ(begin, sizes_[b]);
            is_open_.push_back(open);
            listed = listed || (open && sizes_[b] > most_unlisted);
            if (!open) add_squares(first + b, begin, begin + size_t(sizes_[b]));
        }
        if (std::find(is_open_.begin(), is_open_.end(), 1) == is_open_.end()) return;
        if (listed && of_few) divide(by_number_, node, sizes_);
        const bool again = is_ordered(j) || problem_.branching != Branching::values;
        const auto alive_begin = uint32_t(alive_.size());
        for (uint32_t column : varies_) {
            if (column == j && !again) continue;
            alive_.push_back(column);
            if (listed && has_list(column) && column != j) divide(order(column), node, sizes_);
        }
        begin = node.begin;
        for (size_t b = 0; b < n_branches; begin += uint32_t(sizes_[b++]))
            if (is_open_[b])
                open_.push_back({int64_t(first + b), node.depth + 1, begin,
                                 begin + uint32_t(sizes_[b]), uint32_t(cases()[b]), alive_begin,
                                 uint32_t(alive_.size()), draws_.any() ? child_key(node.key, b) : 0,
                                 listed});
    }

    // Whether there are several numbers.
    bool differ(size_t begin, double n) const {
        const double number = number_[rows_[begin]];
        for (size_t i = begin + 1; i < begin + size_t(n); ++i)
            if (number_[rows_[i]] != number) return true;
        return false;
    }

    // The cases of every branch.
    const std::vector<double>& cases() const { return repeated ? cases_ : sizes_; }

    // The branch of every row, and the rows of every branch.
    void set_branches(const Open& node, const Chosen& chosen) {
        const auto j = size_t(chosen.column);
        const uint32_t* const ranks = rank(j);
        if (is_ordered(j) || problem_.branching == Branching::two_way) {
            const bool ordered = is_ordered(j);
            size_t n_right = 0, cases_right = 0;
            for (size_t i = node.begin; i < node.end; ++i) {
                const Row row = rows_[i];
                branch_[row] = ordered ? Row(ranks[row] > chosen.low) : branch_of_code_[ranks[row]];
                n_right += branch_[row];
                if constexpr (repeated) cases_right += branch_[row] * times(row);
            }
            sizes_.assign({double(node.n() - n_right), double(n_right)});
            if constexpr (repeated)
                cases_.assign({double(node.cases - cases_right), double(cases_right)});
            return;
        }
        sizes_.assign(values_.size(), 0.0);
        cases_.assign(values_.size(), 0.0);
        for (size_t i = node.begin; i < node.end; ++i) {
            const Row row = rows_[i];
            branch_[row] = branch_of_code_[ranks[row]];
            sizes_[branch_[row]] += 1;
            cases_[branch_[row]] += times(row);
        }
    }

    void record(const Open& node, const Chosen& chosen, size_t first) {
        const auto j = size_t(chosen.column);
        record_parent(node, j, chosen.low, chosen.high, first);
        for (size_t b = 0; b < sizes_.size(); ++b) {
            grown_.nodes[first + b].cases = cases()[b];
            grown_.nodes[first + b].code = is_ordered(j) ? int32_t(b) : code_of_branch(b);
        }
    }
    void record_parent(const Open& node, size_t j, uint32_t low, uint32_t high, size_t first) {
        Node& parent = grown_.nodes[size_t(node.node)];
        const int32_t largest = largest_branch(cases());
        parent.column = int32_t(j);
        if (is_ordered(j)) thresholds_.add(size_t(node.node), j, low, high);
        parent.missing_to = missing_route(problem_, largest, stop_here);
        parent.unseen_to = unseen_route(problem_, largest, parent.missing_to);
        parent.n_children = int32_t(sizes_.size());
        parent.first_child = uint32_t(first);
    }

    // A value, or a group of them. Values are in the order of their codes.
    int32_t code_of_branch(size_t b) {
        codes_.clear();
        for (const Value& value : values_)
            if (branch_of_code_[value.code] == b) codes_.push_back(value.code);
        return codes_.size() == 1 ? int32_t(codes_[0]) : grown_.add_group(codes_);
    }

    // Weights and sums of the children; those of the largest are what the others leave.
    void add_sums(const Open& node, size_t first) {
        const size_t n_limbs = scale_.sums.size();
        const auto largest =
            size_t(std::max_element(sizes_.begin(), sizes_.end()) - sizes_.begin());
        const double* whole = moments_of(size_t(node.node));
        double* const rest = moments_of(first + largest);
        size_t begin = node.begin;
        for (size_t b = 0; b < sizes_.size(); begin += size_t(sizes_[b++])) {
            if (b == largest) continue;
            double* const own = moments_of(first + b);
            own[0] = cases()[b];
            for (size_t i = begin; i < begin + size_t(sizes_[b]); ++i)
                for (size_t k = 0; k < n_limbs; ++k) own[1 + k] += limbs_[rows_[i] * n_limbs + k];
            for (size_t k = 0; k <= n_limbs; ++k) rest[k] = whole[k] - own[k];
            whole = rest;
        }
    }

    void add_squares(size_t node, size_t begin, size_t end) {
        double* const squares = scale_.squares_of(moments_of(node));
        for (size_t i = begin; i < end; ++i)
            scale_.template add_square<false>(number_[rows_[i]], times(rows_[i]), squares);
    }

    Grown& grown_;
    Thresholds& thresholds_;

    // Scratch.
    std::vector<Open> open_;
    std::vector<double> sizes_;  // rows of each branch
    std::vector<double> cases_;  // its cases, if rows are repeated
    std::vector<uint8_t> is_open_;
    std::vector<uint32_t> codes_;
};

// Whether subtrees of a table can be grown as a whole.
inline bool suits_subtrees(const Problem& problem, const NumberScale& scale) {
    return !scale.poisson && !problem.fractions && !problem.tests_splits &&
           problem.missing != Policy::surrogate && !(problem.min_gain > 0) &&
           !problem.random_splits && !problem.average_gain &&
           std::none_of(problem.columns.begin(), problem.columns.end(),
                        [](const Column& column) { return column.has_missing; });
}

// W is Times where rows are repeated, otherwise uint32_t.
template <typename W>
class SmallSubtrees {
  public:
    using Rows = Records<W, double>;

    SmallSubtrees(const Problem& problem, const NumberScale& scale, const Rows& records,
                  Grown& grown)
        : thresholds_(problem, records, grown),
          larger_(problem, scale, records, grown, thresholds_),
          smaller_(problem, scale, records, grown, thresholds_) {}

    // Whether a node of so many rows is to be grown here. Where many are handed back, as those of
    // few distinct numbers may be, only small ones are.
    bool takes(size_t n, size_t cases) const {
        return cases <= Larger::most_cases &&
               (n <= Smaller::most ||
                (n <= Larger::most && handed_back_ <= split_ / 16 + Larger::most));
    }

    // Grow the subtree of an open node. Nodes in it that are not certain are added to the stack.
    // False where it is the node itself that is not.
    bool grow(const RecordJob& job, std::vector<RecordJob>& stack) {
        bool certain = true;
        const auto take = [&](const typename Larger::Open& node) {
            split_ += node.n();
            return node.n() <= Smaller::most && node.cases <= Smaller::most_cases &&
                   grow_small(job, node, stack);
        };
        const auto failed = [&](const typename Larger::Open& node) {
            handed_back_ += node.n();
            certain = certain && node.node != job.node;
            if (node.node != job.node) larger_.hand_back(job, node, stack);
        };
        larger_.grow(larger_.load(job), take, failed);
        thresholds_.finish();
        return certain;
    }

  private:
    using Larger = Subtrees<W, uint16_t, 16384>;
    using Smaller = Subtrees<W, uint8_t, 32>;

    // False where the node itself is not certain.
    bool grow_small(const RecordJob& job, const typename Larger::Open& node,
                    std::vector<RecordJob>& stack) {
        bool certain = true;
        smaller_.grow(
            smaller_.load(larger_, node), [](const typename Smaller::Open&) { return false; },
            [&](const typename Smaller::Open& open) {
                if (open.node == node.node)
                    certain = false;
                else
                    smaller_.hand_back(job, open, stack);
            });
        return certain;
    }

    DelayedThresholds<Rows> thresholds_;
    Larger larger_;
    Smaller smaller_;
    size_t split_ = 0, handed_back_ = 0;  // rows of nodes
};

}  // namespace branchwise
