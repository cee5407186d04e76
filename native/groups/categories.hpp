// Which values of a category share a branch: native implementation of
// branchwise/grow/categories.py.

#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "groups/group_pairs.hpp"
#include "groups/value_subsets.hpp"

namespace branchwise {

// The values that a node has: class weights, sizes and cases of each.
template <typename W>
struct Values {
    std::vector<uint32_t> codes;
    std::vector<W> cells;  // by value and class
    std::vector<W> sizes;
    std::vector<double> cases;

    void clear() {
        codes.clear();
        cells.clear();
        sizes.clear();
        cases.clear();
    }
    void add(uint32_t code, const W* cell, size_t classes, W size, double n_cases) {
        codes.push_back(code);
        cells.insert(cells.end(), cell, cell + classes);
        sizes.push_back(size);
        cases.push_back(n_cases);
    }
    size_t count() const { return codes.size(); }
};

// Whether groupings of n rows that keep more or less by gini are told apart by the tie rule, too:
// what they keep are fractions whose denominators are n^2 / 4 at most. `noise`: of sums of
// impurities.
inline bool tells_groupings_apart(double n, double noise) {
    constexpr double few = 48, least_apart = 16 / (few * few * few * few);
    return n <= few && 4 * (n * tie + noise) < least_apart;
}

template <typename W>
class Grouper {
  public:
    Grouper(const Problem& problem, const Impurities& impurities)
        : problem_(problem),
          impurities_(impurities),
          classes_(size_t(problem.n_classes)),
          plain_(problem.criterion == Criterion::gini && classes_ > 2) {}

    // The group of each value, that of the first value being 0; all in one group where no
    // grouping is admissible. `known` is the impurity of all values together, `outside` the
    // weight impurity of the node less that of its missing values.
    const std::vector<uint32_t>& group(const Values<W>& values, int64_t known, int64_t outside,
                                       const Scale& scale) {
        values_ = &values;
        known_ = known;
        outside_ = outside;
        scale_ = &scale;
        group_.assign(values.count(), 0);
        add_up_all();
        if (values.count() > 1) {
            if (problem_.branching == Branching::two_way)
                group_in_two();
            else
                merge_groups();
        }
        number_in_order();
        return group_;
    }

  protected:
    void add_up_all() {
        start_side();
        for (size_t v = 0; v < values_->count(); ++v) add_to_side(v);
        all_ = left_;
        all_size_ = left_size_;
        all_cases_ = left_cases_;
    }

    // ---- scores -----------------------------------------------------------------

    int64_t impurity(const W* cell, W size) const {
        return impurities_.impurity(problem_.criterion, cell, problem_.n_classes, size);
    }

    double score(int64_t in_branches, int64_t of_sizes) const {
        const int64_t drop = std::max<int64_t>(known_ - in_branches, 0);
        return scale_->score(drop, outside_ - of_sizes);
    }

    bool enough(const std::vector<double>& cases, const W* sizes) const {
        size_t large = 0;
        for (double count : cases) {
            if (count < problem_.cases_in_leaf) return false;
            large += count >= problem_.cases_in_branch;
        }
        for (size_t i = 0; i < cases.size(); ++i)
            if (double(sizes[i]) < problem_.weight_in_leaf) return false;
        return large >= 2;
    }

    // ---- two groups -------------------------------------------------------------

    void group_in_two() {
        scores_.clear();
        n_orders_ = 0;
        if (classes_ <= 2) {
            try_order(classes_ - 1);
        } else if (values_->count() <= all_groupings) {
            scores_.resize((size_t(1) << (values_->count() - 1)) - 1);
            if (!write_kept())
                each_grouping([&](uint32_t left) { scores_[left - 1] = first_score(); });
        } else {
            for (size_t c = 0; c < classes_; ++c) try_order(c);
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

    void start_side() {
        left_.assign(classes_, W(0));
        left_size_ = 0;
        left_cases_ = 0;
    }

    void add_to_side(size_t v) {
        for (size_t c = 0; c < classes_; ++c) left_[c] += values_->cells[v * classes_ + c];
        left_size_ += values_->sizes[v];
        left_cases_ += cases_for_bars(problem_, values_->sizes[v], values_->cases[v]);
    }

    void take_from_side(size_t v) {
        for (size_t c = 0; c < classes_; ++c) left_[c] -= values_->cells[v * classes_ + c];
        left_size_ -= values_->sizes[v];
        left_cases_ -= cases_for_bars(problem_, values_->sizes[v], values_->cases[v]);
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
        right_.resize(classes_);
        for (size_t c = 0; c < classes_; ++c) right_[c] = all_[c] - left_[c];
        return score_of<plain>(left_, left_size_, right_size);
    }

    // Of what is on the left, and on the right in right_.
    template <bool plain>
    double score_of(const std::vector<W>& left, W left_size, W right_size) const {
        return plain ? kept(left, left_size, right_size) : exact(left, left_size, right_size);
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

    void order_by_share(size_t label, std::vector<uint32_t>& order) {
        constexpr size_t few = 24;
        const size_t n = values_->count();
        share_.resize(n);
        order.resize(n);
        for (size_t v = 0; v < n; ++v) {
            const double share =
                double(values_->cells[v * classes_ + label]) / double(values_->sizes[v]);
            share_[v] = share;
            size_t at = v;
            if (n <= few)  // sorted as they come
                for (; at > 0 && share < share_[order[at - 1]]; --at) order[at] = order[at - 1];
            order[at] = uint32_t(v);
        }
        if (n > few)
            std::stable_sort(order.begin(), order.end(),
                             [&](uint32_t a, uint32_t b) { return share_[a] < share_[b]; });
    }

    // ---- groups of any number ---------------------------------------------------

    void merge_groups() {
        const size_t n = values_->count();
        const bool neighbours_only = n > all_mergers;
        std::vector<uint32_t> order(n);
        std::iota(order.begin(), order.end(), 0u);
        if (neighbours_only) order_by_share(largest_class(), order);
        start_groups(order, neighbours_only);
        std::vector<uint32_t> current(n), best_group(n, 0);
        for (size_t i = 0; i < n; ++i) current[order[i]] = uint32_t(i);
        double best = no_score;
        for (;;) {
            const double now = enough(cases_, sizes_.data()) ? score_of_groups(n) : no_score;
            const double bar = best - std::max(std::fabs(best) * tie, scale_->resolution);
            if (now != no_score && (best == no_score || now >= bar)) {
                best = now;
                best_group = current;
            }
            if (sizes_.size() == 2) break;
            const auto [first, second] = best_merger();
            merge(first, second);
            for (uint32_t& g : current) {
                if (g == second)
                    g = uint32_t(first);
                else if (g > second)
                    --g;
            }
        }
        group_ = best_group;
    }

    size_t largest_class() const {
        return size_t(std::max_element(all_.begin(), all_.end()) - all_.begin());
    }

    // `neighbours_only`: which alone are merged.
    void start_groups(const std::vector<uint32_t>& order, bool neighbours_only) {
        pairs_.start(order.size(), neighbours_only);
        cells_.clear();
        sizes_.clear();
        cases_.clear();
        impurities_of_.clear();
        of_sizes_.clear();
        for (uint32_t v : order) {
            const W* cell = &values_->cells[v * classes_];
            cells_.insert(cells_.end(), cell, cell + classes_);
            sizes_.push_back(values_->sizes[v]);
            cases_.push_back(cases_for_bars(problem_, values_->sizes[v], values_->cases[v]));
            impurities_of_.push_back(impurity(cell, values_->sizes[v]));
            of_sizes_.push_back(impurities_.x_log2_x(values_->sizes[v]));
        }
    }

    int64_t sum_of_impurities() const {
        return std::accumulate(impurities_of_.begin(), impurities_of_.end(), int64_t(0));
    }
    int64_t sum_of_sizes() const {
        return std::accumulate(of_sizes_.begin(), of_sizes_.end(), int64_t(0));
    }

    // What groups gain, less what it takes to say which values they have.
    double score_of_groups(size_t n_values) {
        return score(sum_of_impurities() + impurities_.bits(log_ways(n_values, sizes_.size())),
                     sum_of_sizes());
    }

    // A bound for log2 of the number of ways to put values in groups (Rennie and Dobson
    // 1969): choose(n, g) g^(n - g) / 2.
    double log_ways(size_t n, size_t g) {
        while (log_factorial_.size() <= n)
            log_factorial_.push_back(log_factorial_.back() +
                                     impurities_.plain_log2(double(log_factorial_.size())));
        const double choices = log_factorial_[n] - log_factorial_[g] - log_factorial_[n - g];
        return std::max(choices - 1.0 + double(n - g) * impurities_.plain_log2(double(g)), 0.0);
    }

    // The two groups whose merging leaves the best score, the first of equals.
    std::pair<size_t, size_t> best_merger() {
        scores_.clear();
        const int64_t in_branches = sum_of_impurities(), of_sizes = sum_of_sizes();
        pairs_.for_each([&](size_t a, size_t b) {
            const MergedGroup& merged = merged_group(a, b);
            scores_.push_back(
                score(in_branches - impurities_of_[a] - impurities_of_[b] + merged.impurity,
                      of_sizes - of_sizes_[a] - of_sizes_[b] + merged.size_impurity));
        });
        const double least = scale_->least(*std::max_element(scores_.begin(), scores_.end()));
        std::pair<size_t, size_t> best{0, 1};
        size_t i = 0;
        bool found = false;
        pairs_.for_each([&](size_t a, size_t b) {
            if (!found && scores_[i] >= least) {
                best = {a, b};
                found = true;
            }
            ++i;
        });
        return best;
    }

    const MergedGroup& merged_group(size_t a, size_t b) {
        MergedGroup& merged = pairs_.at(a, b);
        if (merged.is_known) return merged;
        left_.assign(&cells_[a * classes_], &cells_[a * classes_] + classes_);
        for (size_t c = 0; c < classes_; ++c) left_[c] += cells_[b * classes_ + c];
        const W size = sizes_[a] + sizes_[b];
        merged = {true, impurity(left_.data(), size), impurities_.x_log2_x(size)};
        return merged;
    }

    void merge(size_t first, size_t second) {
        for (size_t c = 0; c < classes_; ++c)
            cells_[first * classes_ + c] += cells_[second * classes_ + c];
        sizes_[first] += sizes_[second];
        cases_[first] += cases_[second];
        impurities_of_[first] = impurity(&cells_[first * classes_], sizes_[first]);
        const auto at = std::ptrdiff_t(second);
        cells_.erase(cells_.begin() + at * std::ptrdiff_t(classes_),
                     cells_.begin() + (at + 1) * std::ptrdiff_t(classes_));
        sizes_.erase(sizes_.begin() + at);
        cases_.erase(cases_.begin() + at);
        impurities_of_.erase(impurities_of_.begin() + at);
        of_sizes_[first] = impurities_.x_log2_x(sizes_[first]);
        of_sizes_.erase(of_sizes_.begin() + at);
        pairs_.merge(first, second);
    }

    // Groups get their numbers in the order in which the values meet them.
    void number_in_order() {
        number_.assign(group_.size() + 1, ~0u);
        uint32_t next = 0;
        for (uint32_t& g : group_) {
            if (number_[g] == ~0u) number_[g] = next++;
            g = number_[g];
        }
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const size_t classes_;
    const bool plain_;  // groupings, which are many, are compared as plain numbers first
    static constexpr bool whole = std::is_same<W, uint32_t>::value;
    ValueSubsets subsets_;
    const Values<W>* values_ = nullptr;
    const Scale* scale_ = nullptr;
    int64_t known_ = 0, outside_ = 0;
    std::vector<uint32_t> group_, number_;

    // Scratch: candidates for two groups; groups that are merged.
    std::vector<double> scores_, share_, cases_;
    size_t n_orders_ = 0;
    std::vector<std::vector<uint32_t>> orders_;
    std::vector<W> all_, left_, right_, cells_, sizes_;
    W all_size_ = 0, left_size_ = 0;
    double all_cases_ = 0, left_cases_ = 0;
    std::vector<int64_t> impurities_of_, of_sizes_;
    GroupPairs pairs_;
    std::vector<double> log_factorial_{0.0};
};

}  // namespace branchwise
