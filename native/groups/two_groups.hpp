// The values of a category in two groups: native implementation of the groupings in two of
// branchwise/grow/categories.py.

#pragma once

#include <algorithm>
#include <vector>

#include "groups/grouping.hpp"
#include "groups/rough_sides.hpp"
#include "groups/value_subsets.hpp"

namespace branchwise {

// Whether groupings of n rows that keep more or less by gini are told apart by the tie rule, too:
// what they keep are fractions whose denominators are n^2 / 4 at most. `noise`: of sums of
// impurities.
inline bool tells_groupings_apart(double n, double noise) {
    constexpr double few = 48, least_apart = 16 / (few * few * few * few);
    return n <= few && 4 * (n * tie + noise) < least_apart;
}

template <typename W>
class TwoGroups : protected Grouping<W> {
    using Base = Grouping<W>;

  public:
    TwoGroups(const Problem& problem, const Impurities& impurities)
        : Base(problem, impurities),
          plain_(problem.criterion == Criterion::gini && classes_ > 2),
          rough_(!whole && problem.criterion != Criterion::gini && !impurities.has_table() &&
                 ImpurityBounds::are_sound(problem)) {}

    // The group of each value, that of the first value being 0; all in one group where no
    // grouping is admissible. `known` is the impurity of all values together, `outside` the
    // weight impurity of the node less that of its missing values.
    const std::vector<uint32_t>& group(const Values<W>& values, int64_t known, int64_t outside,
                                       const Scale& scale) {
        this->begin(values, known, outside, scale);
        if (values.count() > 1) group_in_two();
        this->number_in_order();
        return group_;
    }

  protected:
    using Base::all_;
    using Base::all_cases_;
    using Base::all_size_;
    using Base::cases_of;
    using Base::classes_;
    using Base::classes_of_;
    using Base::group_;
    using Base::impurities_;
    using Base::impurity;
    using Base::known_;
    using Base::order_by_share;
    using Base::outside_;
    using Base::problem_;
    using Base::scale_;
    using Base::score;
    using Base::values_;
    using Base::whole;

    void group_in_two() {
        begin_groupings(nullptr);
        scores_.clear();
        n_orders_ = 0;
        if (classes_ <= 2) {
            try_order(classes_ - 1);
        } else if (values_->count() <= all_groupings) {
            scores_.resize((size_t(1) << (values_->count() - 1)) - 1);
            if (!write_kept())
                each_grouping([&](uint32_t left) { scores_[left - 1] = first_score(); });
        } else {
            each_order([&](size_t label) { try_order(label); });
            for (size_t one = 0; one < values_->count(); ++one) {
                start_side();
                add_to_side(one);
                scores_.push_back(first_score());
            }
        }
        if (plain_ && !kept_tells()) score_hopeful();
        const double top = *std::max_element(scores_.begin(), scores_.end());
        if (top == no_score) return;
        const double least = least_of_best(top);
        const size_t best = size_t(
            std::find_if(scores_.begin(), scores_.end(), [&](double s) { return s >= least; }) -
            scores_.begin());
        for (size_t v = 0; v < values_->count(); ++v) group_[v] = !is_on_left(best, v);
    }

    // All groupings as plain numbers, if rows are whole.
    bool write_kept() {
        if constexpr (whole) {
            if (!plain_) return false;
            add_subsets(all_);
            subsets_.write(1, scores_.size() + 1, fewest(), scores_.data());
            return true;
        }
        return false;
    }

    // Sets of all values but the last, which is on the right.
    void add_subsets(const std::vector<uint32_t>& all) {
        subsets_.begin(all);
        for (size_t v = 0; v + 1 < values_->count(); ++v)
            subsets_.add(&values_->cells[v * classes_]);
    }

    double fewest() const {
        return std::max(
            {problem_.cases_in_leaf, problem_.cases_in_branch, problem_.weight_in_leaf});
    }

    // Whether plain numbers alone tell which grouping is the first of the best.
    bool kept_tells() const {
        return whole && plain_ &&
               tells_groupings_apart(scale_->total, scale_->resolution * scale_->total);
    }

    double least_of_best(double top) const { return kept_tells() ? top : scale_->least(top); }

    // Before any are tried; `missing` are cases that may join either side.
    void begin_groupings(const std::vector<W>* missing) {
        top_ = no_score;
        if constexpr (!whole) {
            if (rough_)
                sides_.begin(all_, missing, known_, outside_, impurities_, *scale_, n_moves());
        }
    }

    // Classes whose shares order the values. Those that no value has order them in one way.
    template <typename Visit>
    void each_order(const Visit& visit) const {
        bool absent = false;
        for (size_t c = 0; c < classes_; ++c) {
            if (all_[c] > 0 || !absent) visit(c);
            absent = absent || !(all_[c] > 0);
        }
    }

    void start_side() {
        left_.assign(classes_, W(0));
        left_size_ = 0;
        left_cases_ = 0;
        if constexpr (!whole) {
            if (rough_) sides_.start();
        }
    }

    void add_to_side(size_t v) {
        this->add_cells(v, left_);
        left_size_ += values_->sizes[v];
        left_cases_ += cases_of(v);
        note_move(v);
    }

    void take_from_side(size_t v) {
        for (size_t c = 0; c < classes_; ++c) left_[c] -= values_->cells[v * classes_ + c];
        left_size_ -= values_->sizes[v];
        left_cases_ -= cases_of(v);
        note_move(v);
    }

    void note_move([[maybe_unused]] size_t v) {
        if constexpr (!whole) {
            if (rough_) sides_.update(classes_of_.begin(v), classes_of_.end(v), left_.data());
        }
    }

    // Whether a grouping cannot be as good as the best so far, as rough logarithms tell.
    bool is_hopeless([[maybe_unused]] W left, [[maybe_unused]] bool missing_left,
                     [[maybe_unused]] W right, [[maybe_unused]] bool missing_right) const {
        if constexpr (!whole) {
            if (!rough_ || top_ == no_score) return false;
            const double most = sides_.most(left, missing_left, right, missing_right);
            // Less than what equals an equal of the best.
            return most < scale_->least(scale_->least(top_));
        }
        return false;
    }

    // How many weights move at most before all values are on one side again.
    size_t n_moves() const {
        const size_t n = classes_of_.size();
        return values_->count() <= all_groupings ? n << all_groupings : n;
    }

    // visit(values) with every set of values on the left that has not got the last one. From one to
    // the next, a single value comes or goes (Gray's code); sums are exact, so in any order.
    template <typename Visit>
    void each_grouping(const Visit& visit) {
        start_side();
        for (uint32_t step = 1, left = 0; step < uint32_t(1) << (values_->count() - 1); ++step) {
            const auto v = size_t(__builtin_ctz(step));
            left ^= uint32_t(1) << v;
            if (left >> v & 1)
                add_to_side(v);
            else
                take_from_side(v);
            visit(left);
        }
    }

    // Of what is on the left and the rest: what both sides keep, in plain numbers, where these
    // leave few groupings to be scored exactly; otherwise its score.
    double first_score() { return plain_ ? score_sides<true>() : score_sides<false>(); }

    template <bool plain>
    double score_sides() {
        const W right_size = all_size_ - left_size_;
        const double fewest = std::min(left_cases_, all_cases_ - left_cases_);
        if (fewest < problem_.cases_in_leaf || fewest < problem_.cases_in_branch ||
            double(std::min(left_size_, right_size)) < problem_.weight_in_leaf)
            return no_score;
        if (is_hopeless(left_size_, false, right_size, false)) return no_score;
        right_.resize(classes_);
        for (size_t c = 0; c < classes_; ++c) right_[c] = all_[c] - left_[c];
        return score_of<plain>(left_, left_size_, right_size);
    }

    // Of what is on the left, and on the right in right_.
    template <bool plain>
    double score_of(const std::vector<W>& left, W left_size, W right_size) {
        if (plain) return kept(left, left_size, right_size);
        const double score = exact(left, left_size, right_size);
        top_ = std::max(top_, score);
        return score;
    }

    double exact(const std::vector<W>& left, W left_size, W right_size) const {
        const bool ratio = problem_.criterion == Criterion::gain_ratio;
        return score(
            impurity(left.data(), left_size) + impurity(right_.data(), right_size),
            ratio ? impurities_.x_log2_x(left_size) + impurities_.x_log2_x(right_size) : 0);
    }

    // The gini impurity of two sides is their weight less this.
    double kept(const std::vector<W>& left, W left_size, W right_size) const {
        double of_left = 0, of_right = 0;
        const W *const on_left = left.data(), *const on_right = right_.data();
        for (size_t c = 0, n = classes_; c < n; ++c) {
            of_left += double(on_left[c]) * double(on_left[c]);
            of_right += double(on_right[c]) * double(on_right[c]);
        }
        return kept_of_sides(of_left, double(left_size), of_right, double(right_size));
    }

    // The least that sides keep which may be one of the best: as an equal of an equal, and by what
    // plain numbers and impurities are off.
    double least_kept(double top) const {
        const auto terms = double(classes_ + 4);
        return top - 4 * scale_->total * (tie + scale_->resolution) -
               terms * (4 * impurities_.unit() + 1e-13 * scale_->total);
    }

    // Score the groupings that may be the best by plain numbers, and leave out the others.
    void score_hopeful() {
        const double top = *std::max_element(scores_.begin(), scores_.end());
        if (top == no_score) return;
        const double least = least_kept(top);
        for (size_t i = 0; i < scores_.size(); ++i) {
            if (scores_[i] < least) {
                scores_[i] = no_score;
                continue;
            }
            start_side();
            for (size_t v = 0; v < values_->count(); ++v)
                if (is_on_left(i, v)) add_to_side(v);
            scores_[i] = score_sides<false>();
        }
    }

    // Whether a value is on the left in a candidate, by its number.
    bool is_on_left(size_t candidate, size_t v) const {
        const size_t thresholds = values_->count() - 1;
        if (candidate < n_orders_ * thresholds) {
            const std::vector<uint32_t>& order = orders_[candidate / thresholds];
            const auto last = order.begin() + std::ptrdiff_t(candidate % thresholds + 1);
            return std::find(order.begin(), last, uint32_t(v)) != last;
        }
        candidate -= n_orders_ * thresholds;
        return n_orders_ > 0 ? v == candidate : (candidate + 1) >> v & 1;
    }

    // Threshold the values in the order of their shares of a class.
    void try_order(size_t label) {
        if (n_orders_ == orders_.size()) orders_.emplace_back();
        std::vector<uint32_t>& order = orders_[n_orders_++];
        order_by_share(label, order);
        start_side();
        for (size_t i = 0; i + 1 < values_->count(); ++i) {
            add_to_side(order[i]);
            scores_.push_back(first_score());
        }
    }

    const bool plain_;  // groupings, which are many, are compared as plain numbers first
    const bool rough_;  // those that rough logarithms tell to be worse are left out

    // Scratch: candidates, and what is on their sides.
    std::vector<double> scores_;
    double top_ = no_score;  // the best exact score so far
    size_t n_orders_ = 0;
    std::vector<std::vector<uint32_t>> orders_;
    ValueSubsets subsets_;
    RoughSides sides_;
    std::vector<W> left_, right_;
    W left_size_ = 0;
    double left_cases_ = 0;
};

}  // namespace branchwise
