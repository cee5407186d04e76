// Splits of a node where missing cases are on one of the two sides, whichever is better:
// native implementation of `missing="learned"` in branchwise/grow/thresholds.py and categories.py.

#pragma once

#include "core/categories.hpp"
#include "records/thresholds.hpp"

namespace branchwise {

// The missing cases of a column at a node.
template <typename W>
struct MissingCases {
    const std::vector<W>* weights = nullptr;  // by class
    W size = 0;
    double cases = 0;
};

// Thresholds of a number, each with the missing cases on either side; of equals the one with them
// on the larger side wins. begin() gets all cases of the node, as if they were on the right.
template <typename W>
class LearnedSweep : public ThresholdSweep<W> {
    using Base = ThresholdSweep<W>;

  public:
    using Base::Base;

    void set_missing(const MissingCases<W>& missing) { missing_ = missing; }

    void sweep_list(const Records<W>& records, const RecordJob& job, size_t column,
                    const std::vector<uint32_t>& classes, double least) {
        if (!this->searches()) return sweep_whole_list(records, job, column);
        found_.clear();
        lefts_.clear();
        for (const bool on_right : {false, true})
            search_side(records, job, column, classes, least, on_right);
        std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
            return a.index < b.index || (a.index == b.index && a.turn < b.turn);
        });
        const Ranked* entry = records.ranked(job, records.slot(column));
        for (const Found& found : found_) {
            this->set_left(records, classes, &lefts_[found.left]);
            this->missing_to_ = found.on_right;
            this->score_sides(entry[found.index].rank, entry[found.index + 1].rank);
        }
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
            const W* cell = counts.cell(rank);
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
    bool right_first(W left) const {
        return right_is_larger(double(left),
                               double(this->sides_->known_total - missing_.size - left));
    }

    void search_side(const Records<W>& records, const RecordJob& job, size_t column,
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
        if (!this->search_list(records, job, column, classes, least, joined)) return;
        const auto& search = this->search_;
        this->n_thresholds_ += search.n_thresholds();
        for (size_t k = 0; k < search.contenders().size(); ++k) {
            const Steps* left = search.left(k);
            Steps weight = 0;
            for (size_t c = 0; c < classes.size(); ++c) weight += left[c];
            const W known = records.weight_of(weight) - (on_right ? W(0) : missing_.size);
            found_.push_back({search.contenders()[k].index, lefts_.size(), on_right,
                              right_first(known) != on_right});
            lefts_.insert(lefts_.end(), left, left + classes.size());
        }
    }

    void sweep_whole_list(const Records<W>& records, const RecordJob& job, size_t column) {
        this->count_inner();
        const typename Base::List list(records, job, records.slot(column));
        const uint8_t* base = records.first(job);
        for (size_t i = 0; i + 1 < job.n_ranked[records.slot(column)]; ++i) {
            this->to_left(list.label(i), records.weight_of(list.steps(i)));
            this->left_cases_ += records.share_of(records.share_steps(list[i], base));
            if (list[i].rank != list[i + 1].rank) score_at(list[i].rank, list[i + 1].rank);
        }
    }

    void score_with_missing(uint32_t rank, uint32_t next, bool on_right) {
        this->missing_to_ = on_right;
        if (on_right) return this->score_threshold(rank, next);
        const auto move = [&](bool back) {
            for (size_t c = 0; c < this->classes_; ++c) {
                const W weight = (*missing_.weights)[c];
                if (weight > 0) this->to_left(c, back ? W(0) - weight : weight);
            }
            this->left_cases_ += back ? -missing_.cases : missing_.cases;
        };
        move(false);
        this->score_threshold(rank, next);
        move(true);
    }

    MissingCases<W> missing_;
    std::vector<Found> found_;
    std::vector<Steps> before_, lefts_;
};

// Two groups of values, one of which has the missing cases, too. `known` is the impurity of all
// cases of the node.
template <typename W>
class LearnedGrouper : public Grouper<W> {
    using Base = Grouper<W>;

  public:
    using Base::Base;

    // Also returns the group of the missing cases, or stop_here where no grouping is admissible.
    const std::vector<uint32_t>& group(const Values<W>& values, const MissingCases<W>& missing,
                                       int64_t known, int64_t outside, const Scale& scale,
                                       int32_t& missing_to) {
        this->values_ = &values;
        this->known_ = known;
        this->outside_ = outside;
        this->scale_ = &scale;
        this->group_.assign(values.count(), 0);
        this->add_up_all();
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
        if (this->plain_) score_hopeful();
        const double top = best_score();
        if (top == no_score) return;
        const double least = this->scale_->least(top);
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
        missing_to = int32_t(score >= this->scale_->least(best.best()) ? larger : !larger);
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
        const size_t n = this->values_->count();
        candidates_.clear();
        rank_.clear();
        if (this->classes_ <= 2) {
            try_order(this->classes_ - 1);
        } else if (n <= all_groupings) {
            candidates_.resize((size_t(1) << (n - 1)) - 1);
            this->each_grouping(
                [&](uint32_t left) { candidates_[left - 1] = first_scored({Sides::set, left}); });
        } else {
            for (size_t c = 0; c < this->classes_; ++c) try_order(c);
        }
        for (uint32_t one = 0; one < n; ++one) {
            put_on_left({Sides::single, one});
            candidates_.push_back(first_scored({Sides::single, one}));
        }
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
        pair_ = {this->left_cases_, this->all_cases_ - this->left_cases_};
        pair_[on_right] += missing_cases_;
        if (!this->enough(pair_, sizes)) return no_score;
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
    std::vector<double> pair_;  // cases of both sides
    std::vector<Sides> candidates_;
    std::vector<uint32_t> rank_;  // of values, order by order
    std::vector<W> joined_;
};

}  // namespace branchwise
