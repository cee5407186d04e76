// Thresholds of a node where missing cases are on one of the two sides, whichever is better:
// native implementation of `missing="learned"` in branchwise/grow/thresholds.py.

#pragma once

#include "groups/learned_groups.hpp"
#include "records/thresholds.hpp"

namespace branchwise {

// Thresholds of a number, each with the missing cases on either side; of equals the one with them
// on the larger side wins. begin() gets all cases of the node, as if they were on the right.
template <typename W, typename List>
class LearnedSweep : public ThresholdSweep<W, List> {
    using Base = ThresholdSweep<W, List>;

  public:
    using Base::Base;
    using typename Base::Weight;

    void set_missing(const MissingCases<Weight>& missing) { missing_ = missing; }

    void sweep_list(const Records<W>& records, const List& list, size_t column,
                    const std::vector<uint32_t>& classes, double least) {
        if (!this->searches()) return sweep_whole_list(records, list, Base::all);
        found_.clear();
        lefts_.clear();
        for (const bool on_right : {false, true})
            search_side(records, list, column, classes, least, on_right);
        std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
            return a.index < b.index || (a.index == b.index && a.turn < b.turn);
        });
        for (const Found& found : found_) {
            this->set_left(records, classes, &lefts_[found.left]);
            this->missing_to_ = found.on_right;
            this->score_sides(list.rank(found.index), list.rank(found.index + 1));
        }
        this->find_first([&] { sweep_whole_list(records, list, 1); });
    }

    // The threshold between two ranks, with missing cases on either side.
    void score_at(uint32_t rank, uint32_t next) {
        const bool first = right_first(this->left_total_);
        score_with_missing(rank, next, first);
        score_with_missing(rank, next, !first);
    }

    // The first `n` ranks present are known numbers, in order.
    void sweep_ranks(const ValueCounts<W>& counts, size_t n) {
        this->count_inner();
        for (size_t i = 0; i + 1 < n; ++i) {
            const uint32_t rank = counts.present[i];
            const Weight* cell = counts.cell(rank);
            for (size_t c = 0; c < this->classes_; ++c)
                if (cell[c] > 0) this->to_left(c, cell[c]);
            this->left_cases_ += counts.cases(rank);
            score_at(rank, counts.present[i + 1]);
        }
    }

  private:
    using typename Base::Joined;
    using typename Base::Steps;

    // A threshold after an entry that may be the best.
    struct Found {
        size_t index;
        size_t left;  // where its class weights are
        bool on_right;
        bool turn;  // whether the other side comes first
    };

    // Whether missing cases come first on the right.
    bool right_first(Weight left) const {
        return right_is_larger(double(left),
                               double(this->sides_->known_total - missing_.size - left));
    }

    void search_side(const Records<W>& records, const List& list, size_t column,
                     const std::vector<uint32_t>& classes, double least, bool on_right) {
        Joined joined;
        if (on_right) {
            joined.right_weight = double(missing_.size);
            joined.right_cases = missing_.cases;
        } else {
            before_.resize(this->classes_);
            for (uint32_t c : classes) before_[c] = records.steps_of_weight((*missing_.weights)[c]);
            joined.on_left = &before_;
            joined.left_weight = double(missing_.size);
            joined.left_cases = missing_.cases;
        }
        if (!this->search_list(records, list, column, classes, least, joined)) return;
        const auto& search = this->search_;
        this->n_thresholds_ += search.n_thresholds();
        for (size_t k = 0; k < search.contenders().size(); ++k) {
            const Steps* left = search.left(k);
            Steps weight = 0;
            for (size_t c = 0; c < classes.size(); ++c) weight += left[c];
            const Weight known = records.weight_of(weight) - (on_right ? Weight(0) : missing_.size);
            found_.push_back({search.contenders()[k].index, lefts_.size(), on_right,
                              right_first(known) != on_right});
            lefts_.insert(lefts_.end(), left, left + classes.size());
        }
    }

    void sweep_whole_list(const Records<W>& records, const List& list, size_t most) {
        this->count_inner();
        for (size_t i = 0; i + 1 < list.size() && this->n_thresholds_ < most; ++i) {
            this->to_left(list.label(i), records.weight_of(list.steps(i)));
            this->left_cases_ += records.share_of(list.share_steps(records, i));
            if (list.differs(i)) score_at(list.rank(i), list.rank(i + 1));
        }
    }

    void score_with_missing(uint32_t rank, uint32_t next, bool on_right) {
        this->missing_to_ = on_right;
        if (on_right) return this->score_threshold(rank, next);
        const auto move = [&](bool back) {
            for (size_t c = 0; c < this->classes_; ++c) {
                const Weight weight = (*missing_.weights)[c];
                if (weight > 0) this->to_left(c, back ? Weight(0) - weight : weight);
            }
            this->left_cases_ += back ? -missing_.cases : missing_.cases;
        };
        move(false);
        this->score_threshold(rank, next);
        move(true);
    }

    MissingCases<Weight> missing_;
    std::vector<Found> found_;
    std::vector<Steps> before_, lefts_;
};

}  // namespace branchwise
