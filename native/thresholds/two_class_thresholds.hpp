// Thresholds between two classes, many at once: each is held against the best by the most that it
// may take away, which needs no logarithm. By gini that is what it does take away; by entropy it is
// little more, so that few have to be evaluated.

#pragma once

#include "thresholds/list_thresholds.hpp"

namespace branchwise {

template <typename W, typename List>
class TwoClassThresholds : public ListThresholds<W, List> {
    using Base = ListThresholds<W, List>;

  protected:
    using Base::add_up;
    using Base::block;
    using Base::bounds_;
    using Base::classes_;
    using Base::counts_;
    using Base::differs;
    using Base::few_entries;
    using Base::found_;
    using Base::known_;
    using Base::left_;
    using Base::list_;
    using Base::n_thresholds_;
    using Base::problem_;
    using Base::sides_;
    using Base::starts_;
    using Base::step_;
    using Base::values_;
    using Base::whole_;
    using typename Base::Steps;

    using Base::Base;

    // Whether thresholds after the entries `first` to `last` can be evaluated like this: all have
    // weight on both sides.
    template <typename Purity>
    bool are_of_two_classes(size_t first, size_t last) const {
        if (Purity::is_ratio || classes_.size() != 2) return false;
        return list_.steps(first) > 0 && list_.steps(last + 1) > 0 &&
               Purity::bounds_two(double(known_[0]), double(known_[1]));
    }

    // Search them; left_ is what is on the left of the first entry.
    template <typename Purity>
    void find_of_two(const Purity& purity, size_t first, size_t last) {
        const double known[2] = {double(known_[0]) * step_, double(known_[1]) * step_};
        base_ = purity.base_of_two(whole_, known);
        if (last - first <= few_entries) {
            count_different(first, last);
            if (n_thresholds_) {
                raise_floor();
                visit_of_two(purity, first, last);
            }
            return;
        }
        left_[list_.label(first) == classes_[1]] += list_.steps(first);
        n_thresholds_ += differs(first);
        if (values_)
            bound_blocks_of_two<true>(purity, first, last);
        else
            bound_blocks_of_two<false>(purity, first, last);
        if (!counts_) n_thresholds_ += list_.rank(first) != list_.rank(last + 1);
        if (differs(first)) consider(purity, first, bound_at_first_, left_.data());
        for (size_t b = 0; b < bounds_.size(); ++b) {
            if (!this->template may_be_reached<Purity>(bounds_[b])) continue;
            const size_t start = first + b * block;
            std::copy_n(&starts_[2 * b], 2, left_.data());
            visit_of_two(purity, start + 1, std::min(start + block, last));
        }
    }

  private:
    // The thresholds after some entries; only whether there are some, unless it matters how many.
    void count_different(size_t first, size_t last) {
        if (!counts_) {
            n_thresholds_ += list_.rank(first) != list_.rank(last + 1);
            return;
        }
        for (size_t i = first; i <= last; ++i) n_thresholds_ += differs(i);
    }

    // Of what C4.5's thresholds take away, what it takes to say which of them it is does not count.
    void raise_floor() {
        if (!problem_.quinlan_thresholds || !n_thresholds_) return;
        const auto n = double(n_thresholds_);
        found_.raise_floor(LogBounds::shared().x_log2_x(n) / n - LogBounds::slack);
    }

    // A threshold after an entry, and the most that it may take away.
    template <typename Purity>
    void consider(const Purity& purity, size_t index, double most, const Steps* left) {
        if (this->template may_be_reached<Purity>(most))
            found_.template offer<false>(index, evaluate(purity, most, left), left);
    }
    template <typename Purity>
    Worth evaluate(const Purity& purity, double most, const Steps* left) const {
        if constexpr (Purity::bound_is_exact) return {most, 0};
        return this->template worth_of<2>(purity, left);
    }

    // All thresholds after a few entries, left_ being what is on the left of the first entry.
    template <typename Purity>
    void visit_of_two(const Purity& purity, size_t first, size_t last) {
        const List list = list_;
        const uint32_t second = classes_[1];
        const size_t n = last + 1 - first;
        double *const a = of_few_, *const b = a + most_few, *const most = b + most_few;
        Steps at[2] = {left_[0], left_[1]};
        for (size_t k = 0; k < n; ++k) {
            const Steps added = list.steps(first + k);
            const bool is_second = list.is_from(first + k, second);
            at[0] += is_second ? 0 : added;
            at[1] += is_second ? added : 0;
            std::copy_n(at, 2, left_of_few_[k]);
            a[k] = double(at[0]);
            b[k] = double(at[1]);
        }
        bound(purity, a, b, n, most);
        for (size_t k = 0; k < n; ++k)
            if (this->template may_be_reached<Purity>(most[k]) && differs(first + k))
                consider(purity, first + k, most[k], left_of_few_[k]);
    }

    // The most that a threshold within each block may take away, the one after its last entry
    // included: that is at one of the corners. Blocks are left in starts_, with the class weights
    // before them.
    template <bool values, typename Purity>
    void bound_blocks_of_two(const Purity& purity, size_t first, size_t last) {
        const size_t n = (last - first + block - 1) / block;
        const auto end_of = [&](size_t b) { return std::min(first + b * block, last); };
        starts_.resize(2 * (n + 1));
        sides_.resize(5 * (n + 1));
        double *const a = sides_.data(), *const b = a + (n + 1);
        double *const at_ends = b + (n + 1), *const a_later = at_ends + (n + 1),
                      *const b_later = a_later + (n + 1);
        Steps* left = starts_.data();
        std::copy_n(left_.data(), 2, left);
        for (size_t k = 0; k <= n; ++k, left += 2) {
            a[k] = double(left[0]);
            b[k] = double(left[1]);
            if (k == n) break;
            this->template add_up<values>(end_of(k), end_of(k + 1), left + 2);
            for (size_t c = 0; c < 2; ++c) left[2 + c] += left[c];
        }
        bound(purity, a, b, n + 1, at_ends);
        bound(purity, a + 1, b, n, a_later);
        bound(purity, a, b + 1, n, b_later);
        bounds_.resize(n);
        for (size_t k = 0; k < n; ++k)
            bounds_[k] =
                std::max(std::max(at_ends[k], at_ends[k + 1]), std::max(a_later[k], b_later[k]));
        bound_at_first_ = at_ends[0];
        raise_floor();
        // The most promising one first: most others are worse than that.
        const auto learn_at = [&](size_t k) {
            const double most = at_ends[k];
            if (this->template may_be_reached<Purity>(most) && found_.is_better({most, 0}) &&
                differs(end_of(k)))
                this->template learn<Purity>(evaluate(purity, most, &starts_[2 * k]));
        };
        learn_at(size_t(std::max_element(at_ends, at_ends + n + 1) - at_ends));
        for (size_t k = 0; k <= n; ++k) learn_at(k);
    }

    // The most that thresholds with these weights on the left may take away.
    template <typename Purity>
    void bound(const Purity& purity, const double* a, const double* b, size_t n, double* most) {
        const double known[2] = {double(known_[0]), double(known_[1])};
        purity.bound_of_two(a, b, n, known, most);
        for (size_t k = 0; k < n; ++k) most[k] = base_ + most[k] * step_;
    }

    static constexpr size_t most_few = few_entries + 1;

    double base_ = 0;  // what bounds are added to
    double bound_at_first_ = 0;

    // Scratch, of a few thresholds.
    Steps left_of_few_[most_few][2];
    double of_few_[3 * most_few];
};

}  // namespace branchwise
