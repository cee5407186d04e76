// Which thresholds of a sorted list may be the best, from plain numbers: only these are scored
// exactly.
//
// What a threshold takes away of the impurity is a convex function of the class weights on its
// left, by entropy as by gini. So between two places of the list it is at most what it would be
// at the corners: with all weight between them of some classes moved to the left, and none of
// the others. A few corners tell of most blocks of a list that no threshold within is any good. Of
// more than two classes there are too many corners: but for the sizes of both sides, classes
// count one by one, and what the sizes take is at most what the tangent says.
//
// Its split information is a concave function of the weight on its left. So where it takes away
// at most some multiple of its information at two places, it does so between them, and all this
// is true of gain ratios as well. Those of thresholds with little on a side are the least certain:
// each ratio has bounds of its own.

#pragma once

#include <cmath>
#include <type_traits>

#include "thresholds/two_class_thresholds.hpp"

namespace branchwise {

// What both sides of a threshold share out: impurity, and the split information that lacks the
// terms of these two.
struct Undivided {
    double impurity;
    double information;
};

template <typename W, typename List>
class ThresholdSearch : public TwoClassThresholds<W, List> {
    using Base = TwoClassThresholds<W, List>;

  public:
    using typename Base::Steps;

    ThresholdSearch(const Problem& problem, const Impurities& impurities)
        : Base(problem), impurities_(impurities) {}

    // Whether it can be told roughly what thresholds take away.
    bool serves(double total) const {
        if (problem_.criterion == Criterion::gini) return true;
        if (impurities_.has_table_for(size_t(total))) return true;
        return weighted && !impurities_.has_table() && ImpurityBounds::are_sound(problem_);
    }

    // Thresholds are allowed after the entries `first` to `last`. One whose score is less than
    // `floor` is of no use. `before`: what is on the left of all thresholds, by class.
    void search(const List& list, const std::vector<Steps>& known,
                const std::vector<uint32_t>& classes, size_t first, size_t last,
                const Undivided& undivided, const Scale& scale, const DistinctNumbers* values,
                double floor, const std::vector<Steps>* before = nullptr) {
        list_ = list;
        values_ = values;
        classes_ = classes;
        whole_ = undivided.impurity;
        information_ = undivided.information;
        n_thresholds_ = 0;
        const auto terms = double(2 * classes.size() + 8);
        double off = terms * scale.unit + 1e-15 * terms * std::fabs(whole_);
        known_.resize(classes.size());
        before_.assign(classes.size(), 0);
        slot_.resize(size_t(problem_.n_classes));
        for (size_t k = 0; k < classes.size(); ++k) {
            known_[k] = known[classes[k]];
            if (before) before_[k] = (*before)[classes[k]];
            slot_[classes[k]] = uint32_t(k);
        }
        if (problem_.criterion == Criterion::gini) {
            off += 1e-15 * terms * scale.total;
            find(GiniPurity(), first, last, {scale, floor, off});
        } else if (impurities_.has_table()) {
            const LogTable table{impurities_.table(), scale.unit};
            off += 1e-15 * terms * table.x_log2_x(scale.total);
            find_by_entropy(table, first, last, {scale, floor, off});
        } else {
            off += 4 * LogBounds::slack * scale.total;
            find_by_entropy(LogBounds::shared(), first, last, {scale, floor, off});
        }
        found_.compact();
    }

  private:
    using Base::block;
    using Base::bounds_;
    using Base::classes_;
    using Base::counts_;
    using Base::differs;
    using Base::few_entries;
    using Base::found_;
    using Base::information;
    using Base::information_;
    using Base::known_;
    using Base::left_;
    using Base::list_;
    using Base::n_thresholds_;
    using Base::problem_;
    using Base::sides_;
    using Base::slot_;
    using Base::starts_;
    using Base::step_;
    using Base::values_;
    using Base::weighted;
    using Base::whole_;
    using Base::worth;

    static constexpr size_t most_classes = 32;  // that blocks may have, which take memory

    static constexpr size_t group = 16;  // blocks

    // Entries of one class that follow one another.
    struct Run {
        Steps left[2];  // up to the last of them
        size_t last;
        Worth worth;    // of the threshold after it
        double most;    // that this is good for
        bool is_known;  // whether it is more than a bound
        bool is_peak;   // the left side is farther from the shares of both classes than before
        bool at_end;    // whether there is a threshold after the last
        bool within;    // and between them
    };

    template <typename Purity>
    static constexpr bool is_gini = std::is_same<Purity, GiniPurity>::value;

    template <typename Logs>
    void find_by_entropy(const Logs& logs, size_t first, size_t last, const ThresholdBar& bar) {
        if (problem_.thresholds_by_ratio())
            find(EntropyPurity<Logs, true>{logs}, first, last, bar);
        else
            find(EntropyPurity<Logs, false>{logs}, first, last, bar);
    }

    template <typename Purity>
    void find(const Purity& purity, size_t first, size_t last, const ThresholdBar& bar) {
        found_.template begin<Purity::is_ratio>(bar, classes_.size());
        left_ = before_;
        for (size_t i = 0; i < first; ++i) left_[slot_[list_.label(i)]] += list_.steps(i);
        if (this->template are_of_two_classes<Purity>(first, last))
            return this->find_of_two(purity, first, last);
        left_[slot_[list_.label(first)]] += list_.steps(first);
        if (differs(first)) {
            ++n_thresholds_;
            this->template offer<Purity>(first, worth(purity, left_.data()));
        }
        if (last - first > few_entries && classes_.size() <= most_classes) {
            if (values_)
                bound_blocks<true>(purity, first, last);
            else
                bound_blocks<false>(purity, first, last);
            if (!counts_) n_thresholds_ += list_.rank(first) != list_.rank(last + 1);
            for (size_t b = 0; b < bounds_.size(); ++b) {
                if (!this->template may_be_reached<Purity>(bounds_[b])) continue;
                const size_t start = first + b * block;
                std::copy_n(&starts_[b * classes_.size()], classes_.size(), left_.data());
                visit<false>(purity, start, std::min(start + block, last));
            }
        } else {
            visit<true>(purity, first, last);
        }
    }

    // Every threshold after the entry `start` up to that after `end`, left_ being that of the
    // first. Those within a run of one class are no better than both its ends, by convexity: they
    // are looked at only if these come near the best.
    template <bool counts, typename Purity>
    void visit(const Purity& purity, size_t start, size_t end) {
        if constexpr (Purity::takes_long)
            if (classes_.size() == 2) return visit_of_two<counts>(purity, start, end);
        const List list = list_;
        size_t i = start;
        bool before_is_known = false;  // what a threshold before the run is good for
        double before = 0;
        while (i < end) {
            const size_t run = i + 1;
            const uint32_t label = list.label(run);
            const uint32_t slot = slot_[label];
            const Steps left = left_[slot];
            Steps added = 0;
            size_t within = 0;  // thresholds
            bool at_end = false;
            do {
                within += at_end;
                ++i;
                added += list.steps(i);
                at_end = differs(i);
            } while (i < end && list.label(i + 1) == label);
            if (counts) n_thresholds_ += within + at_end;
            if (!within && !at_end) {
                left_[slot] = left + added;
                before_is_known = false;
                continue;
            }
            if (within && !before_is_known)
                before = this->template most<Purity>(worth(purity, left_.data()));
            left_[slot] = left + added;
            const Worth at_last = worth(purity, left_.data());
            const double after = this->template most<Purity>(at_last);
            if (at_end) this->template learn<Purity>(at_last);
            if (within && this->template may_be_reached<Purity>(std::max(before, after))) {
                left_[slot] = left;
                for (size_t k = run; k < i; ++k) {
                    left_[slot] += list.steps(k);
                    if (differs(k)) this->template offer<Purity>(k, worth(purity, left_.data()));
                }
                left_[slot] = left + added;
            }
            if (at_end) this->template offer<Purity>(i, at_last);
            before = after;
            before_is_known = true;
        }
    }

    // The same of two classes, of few entries. A run that brings the left side nearer to the
    // shares of both classes ends in a threshold that is no better than those before it and after
    // the next run, by convexity: it lies between them and a threshold that takes away nothing.
    template <bool counts, typename Purity>
    void visit_of_two(const Purity& purity, size_t start, size_t end) {
        const size_t n_runs = find_runs<counts>(start, end);
        const auto evaluate = [&](Run& run) {
            if (run.is_known) return;
            run.worth = this->template worth_of<2>(purity, run.left);
            run.most = this->template most<Purity>(run.worth);
            run.is_known = true;
        };
        evaluate(runs_[0]);
        evaluate(runs_[n_runs]);
        for (size_t k = 1; k <= n_runs; ++k) {
            Run& run = runs_[k];
            if (!run.is_peak) continue;
            evaluate(run);
            if (run.at_end) this->template learn<Purity>(run.worth);
        }
        for (size_t k = 1; k <= n_runs; ++k) {
            Run &before = runs_[k - 1], &run = runs_[k];
            if (!run.is_known) run.most = std::max(before.most, runs_[k + 1].most);
            if (!this->template may_be_reached<Purity>(std::max(before.most, run.most))) continue;
            evaluate(run);
            if (run.within) visit_within(purity, before, run);
            if (!run.at_end) continue;
            std::copy_n(run.left, 2, left_.data());
            this->template offer<Purity>(run.last, run.worth);
        }
    }

    // The thresholds within a run: each takes away no more than lies between its ends, and has no
    // less information.
    template <typename Purity>
    void visit_within(const Purity& purity, const Run& before, const Run& run) {
        const uint32_t slot = slot_[list_.label(run.last)];
        const Worth &from = before.worth, &to = run.worth;
        const auto weight = double(run.left[slot] - before.left[slot]);
        const Worth slope{(to.drop - from.drop) / weight,
                          (to.information - from.information) / weight};
        std::copy_n(before.left, 2, left_.data());
        for (size_t i = before.last + 1; i < run.last; ++i) {
            left_[slot] += list_.steps(i);
            const auto more = double(left_[slot] - before.left[slot]);
            const Worth between{from.drop + slope.drop * more,
                                from.information + slope.information * more};
            if (this->template may_be_reached<Purity>(this->template most<Purity>(between)) &&
                differs(i))
                this->template offer<Purity>(i, this->template worth_of<2>(purity, left_.data()));
        }
    }

    // The runs of one class after the entry `start` up to `end`, from runs_[1] on; returns how
    // many.
    template <bool counts>
    size_t find_runs(size_t start, size_t end) {
        const List list = list_;
        const uint32_t second = classes_[1];
        const auto all = double(known_[0]), all_of_second = double(known_[1]);
        Run* run = runs_;
        Steps left[2] = {left_[0], left_[1]};
        std::copy_n(left, 2, run->left);
        run->last = start;
        run->is_known = false;
        ++run;
        bool within = false;
        size_t n_different = 0;
        uint32_t next = list.label(start + 1);
        for (size_t i = start + 1; i <= end; ++i) {
            const uint32_t label = next;
            const Steps added = list.steps(i);
            const bool is_different = differs(i);
            left[0] += label == second ? 0 : added;
            left[1] += label == second ? added : 0;
            next = list.label(i + 1);
            std::copy_n(left, 2, run->left);
            run->last = i;
            run->at_end = is_different;
            run->within = within;
            run->is_known = false;
            const double more = double(left[0]) * all_of_second - double(left[1]) * all;
            run->is_peak = label == second ? more <= 0 : more >= 0;
            n_different += is_different;
            const bool is_end = i == end || next != label;
            within = is_end ? false : within || is_different;
            run += is_end;
        }
        if (counts) n_thresholds_ += n_different;
        return size_t(run - runs_) - 1;
    }

    // The most that a threshold within each block is good for, the one after its last entry
    // included: first of groups of blocks, then of the blocks of those that may be reached.
    // starts_ has the class weights before each.
    template <bool values, typename Purity>
    void bound_blocks(const Purity& purity, size_t first, size_t last) {
        const size_t width = classes_.size(), n = (last - first + block - 1) / block;
        const auto end_of = [&](size_t b) { return std::min(first + b * block, last); };
        starts_.resize(width * (n + 1));
        Steps* left = starts_.data();
        std::copy_n(left_.data(), width, left);
        for (size_t b = 0; b < n; ++b, left += width) {
            this->template add_up<values>(end_of(b), end_of(b + 1), left + width);
            for (size_t c = 0; c < width; ++c) left[width + c] += left[c];
        }
        bounds_.assign(n, -std::numeric_limits<double>::infinity());
        for (size_t begin = 0; begin < n; begin += group * group) {
            const size_t end = std::min(begin + group * group, n);
            double of_group[group];
            bound_between(purity, begin, end, group, end_of, of_group);
            for (size_t b = begin, g = 0; b < end; b += group, ++g)
                if (this->template may_be_reached<Purity>(of_group[g]))
                    bound_between(purity, b, std::min(b + group, end), 1, end_of, &bounds_[b]);
        }
    }

    // Bounds of the thresholds from one end of a block to another, some blocks apart; at most
    // `group` of them.
    template <typename Purity, typename EndOf>
    void bound_between(const Purity& purity, size_t begin, size_t end, size_t apart,
                       const EndOf& end_of, double* bounds) {
        size_t at[group + 1], n = 0;
        for (size_t b = begin; b < end; b += apart) at[n++] = b;
        at[n] = end;
        Worth worth[group + 1];
        bound(purity, at, n, bounds, worth);
        for (size_t k = 1; k <= n; ++k)
            if (differs(end_of(at[k]))) this->template learn<Purity>(worth[k]);
    }

    template <typename Purity>
    void bound(const Purity& purity, const size_t* at, size_t n, double* bounds,
               Worth* worth) const {
        if constexpr (!is_gini<Purity>)
            if (classes_.size() == 2) return bound_by_corners(purity, at, n, bounds, worth);
        const size_t width = classes_.size();
        double known[most_classes], sides[2][most_classes], kept[2][most_classes], left[2] = {};
        double total = 0, before = 0;
        for (size_t c = 0; c < width; ++c) total += known[c] = double(known_[c]) * step_;
        for (size_t k = 0; k <= n; ++k) {
            const size_t now = k % 2, earlier = 1 - now;
            left[now] = 0;
            for (size_t c = 0; c < width; ++c) {
                sides[now][c] = double(starts_[at[k] * width + c]) * step_;
                kept[now][c] = purity.of_class(sides[now][c], known[c] - sides[now][c]);
                left[now] += sides[now][c];
            }
            const double after = information(purity, left[now], total - left[now]);
            if (k) {
                const BlockEnds ends{sides[earlier], sides[now],    kept[earlier], kept[now], known,
                                     width,          left[earlier], left[now],     total};
                bounds[k - 1] = this->template most<Purity>(
                    {whole_ + purity.most_between(ends), std::min(before, after)});
                worth[k] = {whole_ + purity.at_next(ends), after};
            }
            before = after;
        }
    }

    // The same of two classes: the most is at a corner, with the weight of either class at either
    // end. Corners share what each class keeps on both sides.
    template <typename Purity>
    void bound_by_corners(const Purity& purity, const size_t* at, size_t n, double* bounds,
                          Worth* worth) const {
        const double known[2] = {double(known_[0]) * step_, double(known_[1]) * step_};
        const double total = known[0] + known[1];
        double a[group + 1], b[group + 1], kept_a[group + 1], kept_b[group + 1];
        const auto corner = [&](size_t i, size_t j) {
            const double of_left = a[i] + b[j], of_right = total - of_left;
            return Worth{whole_ + kept_a[i] + kept_b[j] - purity.sizes(of_left, of_right),
                         information(purity, of_left, of_right)};
        };
        for (size_t k = 0; k <= n; ++k) {
            a[k] = double(starts_[2 * at[k]]) * step_;
            b[k] = double(starts_[2 * at[k] + 1]) * step_;
            kept_a[k] = purity.of_class(a[k], known[0] - a[k]);
            kept_b[k] = purity.of_class(b[k], known[1] - b[k]);
            worth[k] = corner(k, k);
        }
        for (size_t k = 0; k < n; ++k) {
            bounds[k] = std::max(this->template most<Purity>(worth[k]),
                                 this->template most<Purity>(worth[k + 1]));
            for (const Worth& mixed : {corner(k + 1, k), corner(k, k + 1)})
                bounds[k] = std::max(bounds[k], this->template most<Purity>(mixed));
        }
    }

    const Impurities& impurities_;
    std::vector<Steps> before_;
    Run runs_[few_entries + 2];
};

}  // namespace branchwise
