// Which thresholds of a sorted list may be the best, from plain numbers: only these are scored
// exactly.
//
// What a threshold takes away of the impurity is a convex function of the class weights on its
// left, by entropy as by gini. So between two places of the list it is at most what it would be
// at the corners: with all weight between them of some classes moved to the left, and none of
// the others. A few corners tell of most blocks of a list that no threshold within is any good.

#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/score_bounds.hpp"
#include "records/records.hpp"

namespace branchwise {

template <typename W, typename List = typename Records<W>::List>
class ThresholdSearch {
  public:
    using Steps = typename Records<W>::Steps;

    // A threshold after an entry of the list, and what it takes away, roughly.
    struct Contender {
        size_t index;
        double drop;
    };

    ThresholdSearch(const Problem& problem, const Impurities& impurities)
        : problem_(problem), impurities_(impurities), step_(weighted ? problem.weight_step : 1.0) {}

    // Whether thresholds are chosen by what they take away, and it can be told roughly.
    bool serves(double total) const {
        if (problem_.criterion == Criterion::gini) return true;
        if (problem_.criterion == Criterion::gain_ratio && !problem_.quinlan_thresholds)
            return false;
        if (impurities_.has_table_for(size_t(total))) return true;
        return weighted && !impurities_.has_table() && ImpurityBounds::are_sound(problem_);
    }

    // `whole`: the impurity that the two sides share out; thresholds are allowed after the entries
    // `first` to `last`. One that takes away less than `floor` is of no use. `before`: what is on
    // the left of all thresholds, by class.
    void search(const List& list, const std::vector<Steps>& known,
                const std::vector<uint32_t>& classes, size_t first, size_t last, double whole,
                const Scale& scale, const DistinctNumbers* values, double floor,
                const std::vector<Steps>* before = nullptr) {
        list_ = list;
        values_ = values;
        classes_ = classes;
        whole_ = whole;
        resolution_ = scale.resolution * scale.total;
        n_thresholds_ = 0;
        contenders_.clear();
        lefts_.clear();
        const auto terms = double(2 * classes.size() + 8);
        off_ = terms * scale.unit + 1e-15 * terms * std::fabs(whole_);
        known_.resize(classes.size());
        before_.assign(classes.size(), 0);
        slot_.resize(size_t(problem_.n_classes));
        for (size_t k = 0; k < classes.size(); ++k) {
            known_[k] = known[classes[k]];
            if (before) before_[k] = (*before)[classes[k]];
            slot_[classes[k]] = uint32_t(k);
        }
        if (problem_.criterion == Criterion::gini) {
            off_ += 1e-15 * terms * scale.total;
            begin(floor);
            find(Gini(), first, last);
        } else if (impurities_.has_table()) {
            const Table table{impurities_.table(), scale.unit};
            off_ += 1e-15 * terms * table.x_log2_x(scale.total);
            begin(floor);
            find(Entropy<Table>{table}, first, last);
        } else {
            off_ += 4 * LogBounds::slack * scale.total;
            begin(floor);
            find(Entropy<LogBounds>{LogBounds::shared()}, first, last);
        }
        compact();
    }

    // In the order of the list.
    const std::vector<Contender>& contenders() const { return contenders_; }
    // Class weights on the left of one, by the classes given.
    const Steps* left(size_t contender) const { return &lefts_[contender * classes_.size()]; }
    size_t n_thresholds() const { return n_thresholds_; }
    // How far what is told of a threshold is off at most.
    double off() const { return off_; }

  private:
    static constexpr bool weighted = Records<W>::weighted;
    static constexpr size_t block = 32;        // entries
    static constexpr size_t few_entries = 96;  // up to so many are gone through one by one
    static constexpr size_t most_classes = 3;  // for corners

    // Entries of one class that follow one another.
    struct Run {
        Steps left[2];  // up to the last of them
        size_t last;
        double drop;    // of the threshold after it, or the most that it can be
        bool is_known;  // which
        bool is_peak;   // the left side is farther from the shares of both classes than before
        bool at_end;    // whether there is a threshold after the last
        bool within;    // and between them
    };

    // What the classes of a side keep of its purity; a threshold is the better the more they keep.
    struct Gini {
        static constexpr bool takes_long = false;

        double operator()(const double* weights, size_t n, double total) const {
            double squares = 0;
            for (size_t c = 0; c < n; ++c) squares += weights[c] * weights[c];
            return total > 0 ? squares / total - total : 0.0;
        }

        // Of two classes on two sides, in parts: what a class keeps by itself, and the rest. Two
        // classes lose twice the product of their weights over the sum.
        double of_class(double, double) const { return 0; }
        double of_sides(double a, double b, double right_a, double right_b, double left,
                        double right, double, double) const {
            double lost = 0;
            if (left > 0) lost += a * (b / left);
            if (right > 0) lost += right_a * (right_b / right);
            return -2 * lost;
        }
    };

    struct Table {
        static constexpr bool takes_long = false;

        const int64_t* table;
        double unit;
        double x_log2_x(double weight) const { return double(table[size_t(weight)]) * unit; }
    };

    template <typename Logs>
    struct Entropy {
        static constexpr bool takes_long = Logs::takes_long;  // to find what a threshold takes away

        const Logs& logs;
        double operator()(const double* weights, size_t n, double total) const {
            double kept = -logs.x_log2_x(total);
            for (size_t c = 0; c < n; ++c) kept += logs.x_log2_x(weights[c]);
            return kept;
        }
        double of_class(double left, double right) const {
            return logs.x_log2_x(left) + logs.x_log2_x(right);
        }
        double of_sides(double, double, double, double, double left, double right, double kept_a,
                        double kept_b) const {
            return kept_a + kept_b - (logs.x_log2_x(left) + logs.x_log2_x(right));
        }
    };

    void begin(double floor) {
        floor_ = floor - off_;
        keep_ = floor_;
        best_ = -std::numeric_limits<double>::infinity();
        n_compact_ = 0;
    }

    bool differs(size_t i) const {
        if (list_.rank(i) == list_.rank(i + 1)) return false;
        return !values_ || (*values_)[list_.rank(i)] + apart < (*values_)[list_.rank(i + 1)];
    }

    template <typename Purity>
    void find(const Purity& purity, size_t first, size_t last) {
        left_ = before_;
        for (size_t i = 0; i <= first; ++i) left_[slot_[list_.label(i)]] += list_.steps(i);
        if (differs(first)) {
            ++n_thresholds_;
            offer(first, drop(purity, left_.data()));
        }
        if (last - first > few_entries && classes_.size() <= most_classes) {
            if (values_)
                bound_blocks<true>(purity, first, last);
            else
                bound_blocks<false>(purity, first, last);
            for (size_t b = 0; b < bounds_.size(); ++b) {
                if (bounds_[b] + 2 * off_ < keep_) continue;
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
        bool before_is_known = false;  // what a threshold before the run takes away
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
            if (within && !before_is_known) before = drop(purity, left_.data());
            left_[slot] = left + added;
            const double after = drop(purity, left_.data());
            if (at_end && after > best_) raise(after);
            if (within && std::max(before, after) + 2 * off_ >= keep_) {
                left_[slot] = left;
                for (size_t k = run; k < i; ++k) {
                    left_[slot] += list.steps(k);
                    if (differs(k)) offer(k, drop(purity, left_.data()));
                }
                left_[slot] = left + added;
            }
            if (at_end) offer(i, after);
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
            run.drop = drop_of<2>(purity, run.left, known_.data());
            run.is_known = true;
        };
        evaluate(runs_[0]);
        evaluate(runs_[n_runs]);
        for (size_t k = 1; k <= n_runs; ++k) {
            Run& run = runs_[k];
            if (!run.is_peak) continue;
            evaluate(run);
            if (run.at_end && run.drop > best_) raise(run.drop);
        }
        for (size_t k = 1; k <= n_runs; ++k) {
            Run &before = runs_[k - 1], &run = runs_[k];
            if (!run.is_known) run.drop = std::max(before.drop, runs_[k + 1].drop);
            if (std::max(before.drop, run.drop) + 2 * off_ < keep_) continue;
            evaluate(run);
            if (run.within) visit_within(purity, before, run);
            if (!run.at_end) continue;
            std::copy_n(run.left, 2, left_.data());
            offer(run.last, run.drop);
        }
    }

    // The thresholds within a run: each takes away no more than lies between its ends.
    template <typename Purity>
    void visit_within(const Purity& purity, const Run& before, const Run& run) {
        const uint32_t slot = slot_[list_.label(run.last)];
        const double slope = (run.drop - before.drop) / double(run.left[slot] - before.left[slot]);
        std::copy_n(before.left, 2, left_.data());
        for (size_t i = before.last + 1; i < run.last; ++i) {
            left_[slot] += list_.steps(i);
            const double most = before.drop + slope * double(left_[slot] - before.left[slot]);
            if (most + 4 * off_ >= keep_ && differs(i))
                offer(i, drop_of<2>(purity, left_.data(), known_.data()));
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

    // What a threshold takes away that leaves these weights on the left.
    template <typename Purity>
    double drop(const Purity& purity, const Steps* left) {
        if (classes_.size() == 2) return drop_of<2>(purity, left, known_.data());
        if (classes_.size() == 3) return drop_of<3>(purity, left, known_.data());
        const size_t n = classes_.size();
        sides_.resize(2 * n);
        return drop_of(purity, left, known_.data(), n, sides_.data(), sides_.data() + n);
    }

    // Of few classes, whose weights stay in registers.
    template <size_t n, typename Purity>
    double drop_of(const Purity& purity, const Steps* left, const Steps* known) const {
        double of_left[n], of_right[n];
        return drop_of(purity, left, known, n, of_left, of_right);
    }

    template <typename Purity>
    double drop_of(const Purity& purity, const Steps* left, const Steps* known, size_t n,
                   double* of_left, double* of_right) const {
        double left_total = 0, right_total = 0;
        for (size_t c = 0; c < n; ++c) {
            of_left[c] = double(left[c]) * step_;
            of_right[c] = double(known[c] - left[c]) * step_;
            left_total += of_left[c];
            right_total += of_right[c];
        }
        return whole_ + purity(of_left, n, left_total) + purity(of_right, n, right_total);
    }

    // The most that a threshold within each block can take away, the one after its last entry
    // included. Blocks are left in starts_, with the class weights before them.
    template <bool values, typename Purity>
    void bound_blocks(const Purity& purity, size_t first, size_t last) {
        const size_t n = classes_.size();
        bounds_.clear();
        starts_.clear();
        if (n == 2) return bound_blocks_of_two<values>(purity, first, last);
        Steps left[most_classes] = {}, within[most_classes] = {};
        std::copy_n(left_.data(), n, left);
        double before = drop(purity, left);
        for (size_t start = first; start < last; start += block) {
            const size_t end = std::min(start + block, last);
            add_up<values>(start, end, within);
            starts_.insert(starts_.end(), left, left + n);
            double most = before;
            const size_t all = (size_t(1) << n) - 1;
            for (size_t corner = 1; corner <= all; ++corner) {
                Steps at[most_classes] = {};
                for (size_t c = 0; c < n; ++c) at[c] = left[c] + (corner >> c & 1 ? within[c] : 0);
                before = drop(purity, at);
                most = std::max(most, before);
            }
            for (size_t c = 0; c < n; ++c) left[c] += within[c];
            bounds_.push_back(most);
            if (before > best_ && differs(end)) raise(before);
        }
    }

    // The same of two classes: corners share what each class keeps on both sides.
    template <bool values, typename Purity>
    void bound_blocks_of_two(const Purity& purity, size_t first, size_t last) {
        const double known[2] = {double(known_[0]) * step_, double(known_[1]) * step_};
        const double total = known[0] + known[1];
        Steps left[2] = {left_[0], left_[1]}, within[2] = {};
        double at[2] = {double(left[0]) * step_, double(left[1]) * step_};
        double kept[2] = {purity.of_class(at[0], known[0] - at[0]),
                          purity.of_class(at[1], known[1] - at[1])};
        double before = drop(purity, left);
        for (size_t start = first; start < last; start += block) {
            const size_t end = std::min(start + block, last);
            add_up<values>(start, end, within);
            starts_.insert(starts_.end(), left, left + 2);
            double next[2], next_kept[2];
            for (size_t c = 0; c < 2; ++c) {
                left[c] += within[c];
                next[c] = double(left[c]) * step_;
                next_kept[c] = purity.of_class(next[c], known[c] - next[c]);
            }
            const auto corner = [&](double a, double b, double kept_a, double kept_b) {
                const double of_left = a + b;
                return whole_ + purity.of_sides(a, b, known[0] - a, known[1] - b, of_left,
                                                total - of_left, kept_a, kept_b);
            };
            const double mixed = std::max(corner(next[0], at[1], next_kept[0], kept[1]),
                                          corner(at[0], next[1], kept[0], next_kept[1]));
            const double after = corner(next[0], next[1], next_kept[0], next_kept[1]);
            bounds_.push_back(std::max(std::max(before, after), mixed));
            before = after;
            std::copy_n(next, 2, at);
            std::copy_n(next_kept, 2, kept);
            if (after > best_ && differs(end)) raise(after);
        }
    }

    // The class weights of the entries after `start` up to `end`, and their thresholds.
    template <bool values>
    void add_up(size_t start, size_t end, Steps* within) {
        const List list = list_;
        list.add_up(start + 1, end + 1, classes_, slot_, within);
        size_t different = 0;
        for (size_t i = start + 1; i <= end; ++i)
            different += values ? differs(i) : list.rank(i) != list.rank(i + 1);
        n_thresholds_ += different;
    }

    // Some threshold takes away so much: others that take away less by more than ties allow are
    // of no use.
    void raise(double drop) {
        best_ = drop;
        keep_ = std::max(floor_, best_ - 2 * off_ - resolution_ - (best_ + off_) * 2 * tie);
    }

    void offer(size_t index, double drop) {
        if (drop < keep_) return;
        if (drop > best_) raise(drop);
        contenders_.push_back({index, drop});
        lefts_.insert(lefts_.end(), left_.begin(), left_.end());
        if (contenders_.size() > 2 * n_compact_ + 16) compact();
    }

    void compact() {
        size_t n = 0;
        const size_t width = classes_.size();
        for (size_t k = 0; k < contenders_.size(); ++k) {
            if (contenders_[k].drop < keep_) continue;
            contenders_[n] = contenders_[k];
            std::copy_n(&lefts_[k * width], width, &lefts_[n * width]);
            ++n;
        }
        contenders_.resize(n);
        lefts_.resize(n * width);
        n_compact_ = n;
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const double step_;  // of weights

    List list_;
    const DistinctNumbers* values_ = nullptr;  // if some are too close for a threshold
    std::vector<uint32_t> classes_, slot_;     // and the place of each class among them
    double whole_ = 0, off_ = 0, resolution_ = 0;
    double floor_ = 0, keep_ = 0, best_ = 0;
    size_t n_thresholds_ = 0, n_compact_ = 0;
    std::vector<Contender> contenders_;
    std::vector<Steps> known_, before_, left_, lefts_, starts_;
    std::vector<double> sides_, bounds_;
    Run runs_[few_entries + 2];
};

}  // namespace branchwise
