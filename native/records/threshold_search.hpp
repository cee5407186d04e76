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

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "records/list_sums.hpp"
#include "records/side_purity.hpp"
#include "records/threshold_candidates.hpp"

namespace branchwise {

// What both sides of a threshold share out: impurity, and the split information that lacks the
// terms of these two.
struct Undivided {
    double impurity;
    double information;
};

template <typename W, typename List>
class ThresholdSearch {
  public:
    using Steps = typename Records<W>::Steps;
    using Contender = typename ThresholdCandidates<Steps>::Contender;

    ThresholdSearch(const Problem& problem, const Impurities& impurities)
        : problem_(problem),
          impurities_(impurities),
          step_(weighted ? problem.weight_step : 1.0),
          counts_(problem.quinlan_thresholds || problem.tests_splits) {}

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

    // In the order of the list.
    const std::vector<Contender>& contenders() const { return found_.all(); }
    // Class weights on the left of one, by the classes given.
    const Steps* left(size_t contender) const { return found_.left(contender); }
    // Of a long list only whether there are some, unless it matters how many.
    size_t n_thresholds() const { return n_thresholds_; }
    // How far what is told of a threshold is off at most.
    double off() const { return found_.off(); }

  private:
    static constexpr bool weighted = Records<W>::weighted;
    static constexpr size_t block = 32;         // entries
    static constexpr size_t group = 16;         // blocks
    static constexpr size_t few_entries = 96;   // up to so many are gone through one by one
    static constexpr size_t most_classes = 32;  // that blocks may have, which take memory

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

    // Ends of blocks: weights of two classes on the left, in steps, and what is taken away by the
    // threshold at an end, and with the weight of one class at the next.
    struct Corners {
        double a[group + 1], b[group + 1];
        Worth at_end[group + 1], a_later[group], b_later[group];
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

    bool differs(size_t i) const {
        if (!list_.differs(i)) return false;
        return !values_ || (*values_)[list_.rank(i)] + apart < (*values_)[list_.rank(i + 1)];
    }

    template <typename Purity>
    void find(const Purity& purity, size_t first, size_t last, const ThresholdBar& bar) {
        found_.template begin<Purity::is_ratio>(bar, classes_.size());
        left_ = before_;
        for (size_t i = 0; i <= first; ++i) left_[slot_[list_.label(i)]] += list_.steps(i);
        if (differs(first)) {
            ++n_thresholds_;
            offer<Purity>(first, worth(purity, left_.data()));
        }
        sides_have_weight_ =
            classes_.size() == 2 && list_.steps(first) > 0 && list_.steps(last + 1) > 0;
        if (last - first > few_entries && classes_.size() <= most_classes) {
            if (values_)
                bound_blocks<true>(purity, first, last);
            else
                bound_blocks<false>(purity, first, last);
            if (!counts_) n_thresholds_ += list_.rank(first) != list_.rank(last + 1);
            for (size_t b = 0; b < bounds_.size(); ++b) {
                if (!may_be_reached<Purity>(bounds_[b])) continue;
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
        if constexpr (is_gini<Purity>)
            if (sides_have_weight_) return visit_by_gini<counts>(start, end);
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
            if (within && !before_is_known) before = most<Purity>(worth(purity, left_.data()));
            left_[slot] = left + added;
            const Worth at_last = worth(purity, left_.data());
            const double after = most<Purity>(at_last);
            if (at_end) learn<Purity>(at_last);
            if (within && may_be_reached<Purity>(std::max(before, after))) {
                left_[slot] = left;
                for (size_t k = run; k < i; ++k) {
                    left_[slot] += list.steps(k);
                    if (differs(k)) offer<Purity>(k, worth(purity, left_.data()));
                }
                left_[slot] = left + added;
            }
            if (at_end) offer<Purity>(i, at_last);
            before = after;
            before_is_known = true;
        }
    }

    // The same of two classes by gini, of few entries: all of them at once take less than to find
    // out which matter.
    template <bool counts>
    void visit_by_gini(size_t start, size_t end) {
        const List list = list_;
        const uint32_t second = classes_[1];
        const size_t n = end - start;
        Steps left[few_entries][2];
        double a[few_entries], b[few_entries], kept[few_entries];
        Steps at[2] = {left_[0], left_[1]};
        for (size_t k = 0; k < n; ++k) {
            const Steps added = list.steps(start + 1 + k);
            const bool is_second = list.is_from(start + 1 + k, second);
            at[0] += is_second ? 0 : added;
            at[1] += is_second ? added : 0;
            std::copy_n(at, 2, left[k]);
            a[k] = double(at[0]);
            b[k] = double(at[1]);
        }
        const double known[2] = {double(known_[0]), double(known_[1])};
        gini_of_two(a, b, n, known, kept);
        for (size_t k = 0; k < n; ++k) {
            const double drop = whole_ - kept[k] * step_;
            if (!may_be_reached<GiniPurity>(drop) || !differs(start + 1 + k)) continue;
            std::copy_n(left[k], 2, left_.data());
            offer<GiniPurity>(start + 1 + k, {drop, 0});
        }
        if (counts) count_different(start, end);
    }

    // The same of two classes, of few entries. A run that brings the left side nearer to the
    // shares of both classes ends in a threshold that is no better than those before it and after
    // the next run, by convexity: it lies between them and a threshold that takes away nothing.
    template <bool counts, typename Purity>
    void visit_of_two(const Purity& purity, size_t start, size_t end) {
        const size_t n_runs = find_runs<counts>(start, end);
        const auto evaluate = [&](Run& run) {
            if (run.is_known) return;
            run.worth = worth_of<2>(purity, run.left);
            run.most = most<Purity>(run.worth);
            run.is_known = true;
        };
        evaluate(runs_[0]);
        evaluate(runs_[n_runs]);
        for (size_t k = 1; k <= n_runs; ++k) {
            Run& run = runs_[k];
            if (!run.is_peak) continue;
            evaluate(run);
            if (run.at_end) learn<Purity>(run.worth);
        }
        for (size_t k = 1; k <= n_runs; ++k) {
            Run &before = runs_[k - 1], &run = runs_[k];
            if (!run.is_known) run.most = std::max(before.most, runs_[k + 1].most);
            if (!may_be_reached<Purity>(std::max(before.most, run.most))) continue;
            evaluate(run);
            if (run.within) visit_within(purity, before, run);
            if (!run.at_end) continue;
            std::copy_n(run.left, 2, left_.data());
            offer<Purity>(run.last, run.worth);
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
            if (may_be_reached<Purity>(most<Purity>(between)) && differs(i))
                offer<Purity>(i, worth_of<2>(purity, left_.data()));
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

    // Of a threshold that leaves these weights on the left.
    template <typename Purity>
    Worth worth(const Purity& purity, const Steps* left) {
        if (classes_.size() == 2) return worth_of<2>(purity, left);
        if (classes_.size() == 3) return worth_of<3>(purity, left);
        const size_t n = classes_.size();
        sides_.resize(2 * n);
        return worth_of(purity, left, n, sides_.data(), sides_.data() + n);
    }

    // Of few classes, whose weights stay in registers.
    template <size_t n, typename Purity>
    Worth worth_of(const Purity& purity, const Steps* left) const {
        double of_left[n], of_right[n];
        return worth_of(purity, left, n, of_left, of_right);
    }

    template <typename Purity>
    Worth worth_of(const Purity& purity, const Steps* left, size_t n, double* of_left,
                   double* of_right) const {
        double left_total = 0, right_total = 0;
        for (size_t c = 0; c < n; ++c) {
            of_left[c] = double(left[c]) * step_;
            of_right[c] = double(known_[c] - left[c]) * step_;
            left_total += of_left[c];
            right_total += of_right[c];
        }
        return {whole_ + purity(of_left, n, left_total) + purity(of_right, n, right_total),
                information(purity, left_total, right_total)};
    }

    template <typename Purity>
    double information(const Purity& purity, double left, double right) const {
        if constexpr (Purity::is_ratio) return information_ - purity.sizes(left, right);
        return 0;
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
            add_up<values>(end_of(b), end_of(b + 1), left + width);
            for (size_t c = 0; c < width; ++c) left[width + c] += left[c];
        }
        bounds_.assign(n, -std::numeric_limits<double>::infinity());
        for (size_t begin = 0; begin < n; begin += group * group) {
            const size_t end = std::min(begin + group * group, n);
            double of_group[group];
            bound_between(purity, begin, end, group, end_of, of_group);
            for (size_t b = begin, g = 0; b < end; b += group, ++g)
                if (may_be_reached<Purity>(of_group[g]))
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
        if (is_gini<Purity> ? sides_have_weight_ : classes_.size() == 2)
            bound_of_two(purity, at, n, bounds, worth);
        else
            bound_of_many(purity, at, n, bounds, worth);
        for (size_t k = 1; k <= n; ++k)
            if (differs(end_of(at[k]))) learn<Purity>(worth[k]);
    }

    template <typename Purity>
    void bound_of_many(const Purity& purity, const size_t* at, size_t n, double* bounds,
                       Worth* worth) const {
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
                bounds[k - 1] =
                    most<Purity>({whole_ + purity.most_between(ends), std::min(before, after)});
                worth[k] = {whole_ + purity.at_next(ends), after};
            }
            before = after;
        }
    }

    // The same of two classes.
    template <typename Purity>
    void bound_of_two(const Purity& purity, const size_t* at, size_t n, double* bounds,
                      Worth* worth) const {
        Corners corners;
        for (size_t k = 0; k <= n; ++k) {
            corners.a[k] = double(starts_[2 * at[k]]);
            corners.b[k] = double(starts_[2 * at[k] + 1]);
        }
        evaluate(purity, corners, n);
        std::copy_n(corners.at_end, n + 1, worth);
        for (size_t k = 0; k < n; ++k)
            bounds[k] = std::max(
                std::max(most<Purity>(worth[k]), most<Purity>(worth[k + 1])),
                std::max(most<Purity>(corners.a_later[k]), most<Purity>(corners.b_later[k])));
    }

    // What the thresholds at n + 1 ends take away, and what those would that have the weight of one
    // class at an end, and that of the other at the next.
    void evaluate(const GiniPurity&, Corners& corners, size_t n) const {
        const double *const a = corners.a, *const b = corners.b;
        find_gini(a, b, n + 1, corners.at_end);
        find_gini(a + 1, b, n, corners.a_later);
        find_gini(a, b + 1, n, corners.b_later);
    }

    template <typename Purity>
    void evaluate(const Purity& purity, Corners& corners, size_t n) const {
        const double known[2] = {double(known_[0]) * step_, double(known_[1]) * step_};
        const double total = known[0] + known[1];
        double a[group + 1], b[group + 1], kept_a[group + 1], kept_b[group + 1];
        for (size_t k = 0; k <= n; ++k) {
            a[k] = corners.a[k] * step_;
            b[k] = corners.b[k] * step_;
            kept_a[k] = purity.of_class(a[k], known[0] - a[k]);
            kept_b[k] = purity.of_class(b[k], known[1] - b[k]);
        }
        const auto corner = [&](size_t i, size_t j) {
            const double of_left = a[i] + b[j], of_right = total - of_left;
            return Worth{whole_ + kept_a[i] + kept_b[j] - purity.sizes(of_left, of_right),
                         information(purity, of_left, of_right)};
        };
        for (size_t k = 0; k <= n; ++k) corners.at_end[k] = corner(k, k);
        for (size_t k = 0; k < n; ++k) {
            corners.a_later[k] = corner(k + 1, k);
            corners.b_later[k] = corner(k, k + 1);
        }
    }

    void find_gini(const double* a, const double* b, size_t n, Worth* found) const {
        const double known[2] = {double(known_[0]), double(known_[1])};
        double kept[group + 1];
        gini_of_two(a, b, n, known, kept);
        for (size_t k = 0; k < n; ++k) found[k] = {whole_ - kept[k] * step_, 0};
    }

    template <typename Purity>
    double most(const Worth& worth) const {
        return found_.template most<Purity::is_ratio>(worth);
    }
    template <typename Purity>
    bool may_be_reached(double most) const {
        return found_.template may_be_reached<Purity::is_ratio>(most);
    }
    template <typename Purity>
    void learn(const Worth& worth) {
        found_.template learn<Purity::is_ratio>(worth);
    }
    template <typename Purity>
    void offer(size_t index, const Worth& worth) {
        found_.template offer<Purity::is_ratio>(index, worth, left_.data());
    }

    // The class weights of the entries after `start` up to `end`, and their thresholds.
    template <bool values>
    void add_up(size_t start, size_t end, Steps* within) {
        const List list = list_;
        branchwise::add_up(list, start + 1, end + 1, classes_, slot_, within);
        if (!counts_) return;
        size_t different = 0;
        for (size_t i = start + 1; i <= end; ++i)
            different += values ? differs(i) : list.differs(i);
        n_thresholds_ += different;
    }

    // The thresholds after the entry `start` up to that after `end`; only whether there are some,
    // unless it matters how many.
    void count_different(size_t start, size_t end) {
        if (!counts_) {
            n_thresholds_ += list_.rank(start + 1) != list_.rank(end + 1);
            return;
        }
        for (size_t i = start + 1; i <= end; ++i) n_thresholds_ += differs(i);
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const double step_;  // of weights
    const bool counts_;  // whether it matters how many thresholds there are

    List list_;
    const DistinctNumbers* values_ = nullptr;  // if some are too close for a threshold
    std::vector<uint32_t> classes_, slot_;     // and the place of each class among them
    double whole_ = 0, information_ = 0;
    size_t n_thresholds_ = 0;
    bool sides_have_weight_ = false;  // of two classes, surely those of all thresholds
    ThresholdCandidates<Steps> found_;
    std::vector<Steps> known_, before_, left_, starts_;
    std::vector<double> sides_, bounds_;
    Run runs_[few_entries + 2];
};

}  // namespace branchwise
