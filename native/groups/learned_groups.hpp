// Two groups of values with missing cases in one of them, whichever is better: native
// implementation of `missing="learned"` in branchwise/grow/categories.py.

#pragma once

#include <algorithm>
#include <vector>

#include "groups/two_groups.hpp"

namespace branchwise {

// The missing cases of a column at a node.
template <typename W>
struct MissingCases {
    const std::vector<W>* weights = nullptr;  // by class
    W size = 0;
    double cases = 0;
};

// Two groups of values, one of which has the missing cases, too. `known` is the impurity of all
// cases of the node.
template <typename W>
class LearnedGrouper : private TwoGroups<W> {
    using Base = TwoGroups<W>;

  public:
    using Base::Base;

    // Also returns the group of the missing cases, or stop_here where no grouping is admissible.
    const std::vector<uint32_t>& group(const Values<W>& values, const MissingCases<W>& missing,
                                       int64_t known, int64_t outside, const Scale& scale,
                                       int32_t& missing_to) {
        this->begin(values, known, outside, scale);
        missing_ = missing;
        missing_cases_ = cases_for_bars(this->problem_, missing.size, missing.cases);
        missing_to = stop_here;
        if (values.count() > 1) choose(missing_to);
        return this->group_;
    }

  private:
    // A grouping: the values up to a position of an order are on the left, or those of a set, or
    // one value alone.
    struct Sides {
        enum Kind { order, set, single } kind = order;
        uint32_t which = 0;
        uint32_t position = 0;
        W left_size = 0;
        double scores[2] = {no_score, no_score};  // with missing cases on the left, on the right

        double best() const { return std::max(scores[0], scores[1]); }
    };

    bool is_on_left(const Sides& sides, size_t v) const {
        switch (sides.kind) {
            case Sides::order:
                return rank_[sides.which * this->values_->count() + v] <= sides.position;
            case Sides::set:
                return sides.which >> v & 1;
            default:
                return v == sides.which;
        }
    }

    void choose(int32_t& missing_to) {
        find_candidates();
        if (this->plain_ && !this->kept_tells()) score_hopeful();
        const double top = best_score();
        if (top == no_score) return;
        const double least = this->least_of_best(top);
        const Sides& best = *std::find_if(candidates_.begin(), candidates_.end(),
                                          [&](const Sides& s) { return s.best() >= least; });
        // The group of the first value is the first.
        const bool turned = !is_on_left(best, 0);
        for (size_t v = 0; v < this->group_.size(); ++v)
            this->group_[v] = is_on_left(best, v) == turned;
        const double left = double(best.left_size);
        const double right = double(this->all_size_ - best.left_size);
        const bool larger = turned ? right_is_larger(right, left) : right_is_larger(left, right);
        const double score = best.scores[larger != turned];
        missing_to = int32_t(score >= this->least_of_best(best.best()) ? larger : !larger);
    }

    double best_score() const {
        double top = no_score;
        for (const Sides& sides : candidates_) top = std::max(top, sides.best());
        return top;
    }

    void score_hopeful() {
        const double top = best_score();
        if (top == no_score) return;
        const double least = this->least_kept(top);
        const auto hopeless = [&](const Sides& sides) { return sides.best() < least; };
        candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), hopeless),
                          candidates_.end());
        for (Sides& sides : candidates_) {
            put_on_left(sides);
            set_scores<false>(sides);
        }
    }

    void find_candidates() {
        this->begin_groupings(missing_.weights);
        const size_t n = this->values_->count();
        candidates_.clear();
        rank_.clear();
        if (this->classes_ <= 2) {
            try_order(this->classes_ - 1);
        } else if (n <= all_groupings) {
            candidates_.resize((size_t(1) << (n - 1)) - 1);
            if (!find_sets())
                this->each_grouping([&](uint32_t left) {
                    candidates_[left - 1] = first_scored({Sides::set, left});
                });
            return;  // single values are among these
        } else {
            this->each_order([&](size_t label) { try_order(label); });
        }
        for (uint32_t one = 0; one < n; ++one) {
            put_on_left({Sides::single, one});
            candidates_.push_back(first_scored({Sides::single, one}));
        }
    }

    // All groupings as plain numbers, if rows are whole: missing cases are like a value more.
    bool find_sets() {
        if constexpr (Base::whole) {
            if (!this->plain_) return false;
            joined_ = this->all_;
            for (size_t c = 0; c < this->classes_; ++c) joined_[c] += (*missing_.weights)[c];
            this->add_subsets(joined_);
            this->subsets_.add(missing_.weights->data());
            const size_t end = candidates_.size() + 1;
            kept_.resize(2 * end);
            this->subsets_.write(0, 2 * end, this->fewest(), kept_.data());
            for (uint32_t left = 1; left < end; ++left)
                candidates_[left - 1] = {Sides::set,
                                         left,
                                         0,
                                         uint32_t(this->subsets_.size(left)),
                                         {kept_[end + left], kept_[left]}};
            return true;
        }
        return false;
    }

    void try_order(size_t label) {
        std::vector<uint32_t> order;
        this->order_by_share(label, order);
        const auto which = uint32_t(rank_.size() / order.size());
        rank_.resize(rank_.size() + order.size());
        for (uint32_t i = 0; i < order.size(); ++i) rank_[which * order.size() + order[i]] = i;
        this->start_side();
        for (uint32_t i = 0; i + 1 < order.size(); ++i) {
            this->add_to_side(order[i]);
            candidates_.push_back(first_scored({Sides::order, which, i}));
        }
    }

    bool enough(const double* cases, const W* sizes) const {
        const Problem& problem = this->problem_;
        const double fewest = std::min(cases[0], cases[1]);
        return fewest >= problem.cases_in_leaf && fewest >= problem.cases_in_branch &&
               double(std::min(sizes[0], sizes[1])) >= problem.weight_in_leaf;
    }

    void put_on_left(const Sides& sides) {
        this->start_side();
        for (size_t v = 0; v < this->values_->count(); ++v)
            if (is_on_left(sides, v)) this->add_to_side(v);
    }

    Sides first_scored(Sides sides) {
        if (this->plain_)
            set_scores<true>(sides);
        else
            set_scores<false>(sides);
        return sides;
    }

    // Of what is on the left.
    template <bool plain>
    void set_scores(Sides& sides) {
        sides.left_size = this->left_size_;
        for (const bool on_right : {false, true})
            sides.scores[on_right] = score_with<plain>(on_right);
    }

    template <bool plain>
    double score_with(bool on_right) {
        const W sizes[] = {
            W(this->left_size_ + (on_right ? W(0) : missing_.size)),
            W(this->all_size_ - this->left_size_ + (on_right ? missing_.size : W(0)))};
        double cases[] = {this->left_cases_, this->all_cases_ - this->left_cases_};
        cases[on_right] += missing_cases_;
        if (!enough(cases, sizes)) return no_score;
        if (this->is_hopeless(sizes[0], !on_right, sizes[1], on_right)) return no_score;
        joined_ = this->left_;
        this->right_ = this->all_;
        for (size_t c = 0; c < this->classes_; ++c) {
            this->right_[c] -= this->left_[c];
            (on_right ? this->right_[c] : joined_[c]) += (*missing_.weights)[c];
        }
        return this->template score_of<plain>(joined_, sizes[0], sizes[1]);
    }

    MissingCases<W> missing_;
    double missing_cases_ = 0;
    std::vector<Sides> candidates_;
    std::vector<uint32_t> rank_;  // of values, order by order
    std::vector<W> joined_;
    std::vector<double> kept_;  // by set
};

}  // namespace branchwise
