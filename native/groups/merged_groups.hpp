// The values of a category in any number of groups, which are merged two by two: native
// implementation of the mergers in branchwise/grow/categories.py.

#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "groups/group_pairs.hpp"
#include "groups/grouping.hpp"

namespace branchwise {

// x log2 x of many weights at once: one logarithm waits for nothing of another.
class GatheredLogs {
  public:
    explicit GatheredLogs(const Impurities& impurities) : impurities_(impurities) {}

    void clear() { weights_.clear(); }
    void add(double weight) { weights_.push_back(weight); }

    // Of all that were added, in their order, from next() on.
    void find() {
        const size_t n = weights_.size();
        weights_.resize(n + Impurities::block, 1.0);
        found_.resize(n + Impurities::block);
        next_ = found_.data();
        impurities_.x_log2_x(weights_.data(), n, found_.data());
    }
    int64_t next() { return *next_++; }

  private:
    const Impurities& impurities_;
    std::vector<double> weights_;
    std::vector<int64_t> found_;
    const int64_t* next_ = nullptr;
};

template <typename W>
class MergedGroups : protected Grouping<W> {
    using Base = Grouping<W>;

  public:
    MergedGroups(const Problem& problem, const Impurities& impurities)
        : Base(problem, impurities),
          takes_logs_(!Base::whole && problem.criterion != Criterion::gini &&
                      !impurities.has_table()),
          ratio_(problem.criterion == Criterion::gain_ratio),
          words_((this->classes_ + 63) / 64),
          logs_(impurities) {}

    // The group of each value, as TwoGroups has it.
    const std::vector<uint32_t>& group(const Values<W>& values, int64_t known, int64_t outside,
                                       const Scale& scale) {
        this->begin(values, known, outside, scale);
        if (values.count() > 1) merge_groups();
        this->number_in_order();
        return group_;
    }

  private:
    using Base::classes_;
    using Base::classes_of_;
    using Base::group_;
    using Base::impurities_;
    using Base::problem_;
    using Base::scale_;
    using Base::values_;

    // Every value begins as a group. Groups keep their places; a group that becomes part of
    // another one is not among those of pairs_ any more.
    void merge_groups() {
        const size_t n = values_->count();
        const bool neighbours_only = n > all_mergers;
        std::vector<uint32_t>& order = order_;
        order.resize(n);
        std::iota(order.begin(), order.end(), 0u);
        if (neighbours_only) this->order_by_share(largest_class(), order);
        start_groups(order, neighbours_only);
        current_.resize(n);
        for (size_t i = 0; i < n; ++i) current_[order[i]] = uint32_t(i);
        double best = no_score;
        for (;;) {
            const double now = enough() ? score_of_groups(n) : no_score;
            const double bar = best - std::max(std::fabs(best) * tie, scale_->resolution);
            if (now != no_score && (best == no_score || now >= bar)) {
                best = now;
                group_ = current_;
            }
            if (pairs_.groups().size() == 2) break;
            const auto [first, second] = best_merger();
            merge(first, second);
            std::replace(current_.begin(), current_.end(), uint32_t(second), uint32_t(first));
        }
    }

    size_t largest_class() const {
        return size_t(std::max_element(this->all_.begin(), this->all_.end()) - this->all_.begin());
    }

    // `neighbours_only`: which alone are merged.
    void start_groups(const std::vector<uint32_t>& order, bool neighbours_only) {
        const size_t n = order.size();
        pairs_.start(n, neighbours_only);
        cells_.resize(n * classes_);
        if (takes_logs_) {
            terms_.resize(n * classes_);
            classes_in_.assign(n * words_, 0);
        }
        sizes_.resize(n);
        cases_.resize(n);
        impurity_.resize(n);
        of_size_.resize(n);
        for (size_t g = 0; g < n; ++g) {
            const W* cell = &values_->cells[order[g] * classes_];
            std::copy(cell, cell + classes_, &cells_[g * classes_]);
            if (takes_logs_) {
                for (auto at = classes_of_.begin(order[g]); at < classes_of_.end(order[g]); ++at)
                    classes_in_[g * words_ + at->label / 64] |= uint64_t(1) << at->label % 64;
            }
            sizes_[g] = values_->sizes[order[g]];
            cases_[g] = this->cases_of(order[g]);
        }
        in_branches_ = of_sizes_ = 0;
        measure(0, n);
        measure_pairs([&](const auto& visit) { pairs_.for_each(visit); });
    }

    // Find the impurities of groups, and add them to the sums.
    void measure(size_t first, size_t end) {
        logs_.clear();
        for (size_t g = first; g < end; ++g) each_class(g, [&](size_t i) { logs_.add(cells_[i]); });
        logs_.find();
        for (size_t g = first; g < end; ++g) {
            of_size_[g] = impurities_.x_log2_x(sizes_[g]);
            impurity_[g] =
                takes_logs_ ? of_size_[g] : this->impurity(&cells_[g * classes_], sizes_[g]);
            each_class(g, [&](size_t i) { impurity_[g] -= terms_[i] = logs_.next(); });
            in_branches_ += impurity_[g];
            of_sizes_ += of_size_[g];
        }
    }

    // visit(position) of the cells whose terms the entropy of a group has.
    template <typename Visit>
    void each_class(size_t g, const Visit& visit) const {
        if (!takes_logs_) return;
        for (size_t w = 0; w < words_; ++w)
            each_bit(classes_in_[g * words_ + w],
                     [&](size_t bit) { visit(g * classes_ + w * 64 + bit); });
    }

    // visit(position, other position) of the classes that two groups have: only their terms add up
    // to another entropy in one group.
    template <typename Visit>
    void each_common_class(size_t a, size_t b, const Visit& visit) const {
        if (!takes_logs_) return;
        for (size_t w = 0; w < words_; ++w)
            each_bit(classes_in_[a * words_ + w] & classes_in_[b * words_ + w], [&](size_t bit) {
                visit(a * classes_ + w * 64 + bit, b * classes_ + w * 64 + bit);
            });
    }

    template <typename Visit>
    static void each_bit(uint64_t bits, const Visit& visit) {
        for (; bits != 0; bits &= bits - 1) visit(size_t(__builtin_ctzll(bits)));
    }

    // Find what pairs have more as one group; each_pair(visit) visits them.
    template <typename EachPair>
    void measure_pairs(const EachPair& each_pair) {
        if (!takes_logs_) {
            each_pair([&](size_t a, size_t b) { measure_pair(a, b); });
            return;
        }
        logs_.clear();
        each_pair([&](size_t a, size_t b) {
            logs_.add(sizes_[a] + sizes_[b]);
            each_common_class(a, b, [&](size_t i, size_t k) { logs_.add(cells_[i] + cells_[k]); });
        });
        logs_.find();
        each_pair([&](size_t a, size_t b) {
            MergedPair& merged = pairs_.at(a, b);
            merged.more_in_sizes = logs_.next() - of_size_[a] - of_size_[b];
            merged.more_impurity = merged.more_in_sizes;
            each_common_class(a, b, [&](size_t i, size_t k) {
                merged.more_impurity -= logs_.next() - terms_[i] - terms_[k];
            });
        });
    }

    void measure_pair(size_t a, size_t b) {
        together_.assign(&cells_[a * classes_], &cells_[a * classes_] + classes_);
        for (size_t c = 0; c < classes_; ++c) together_[c] += cells_[b * classes_ + c];
        const W size = sizes_[a] + sizes_[b];
        pairs_.at(a, b) = {
            this->impurity(together_.data(), size) - impurity_[a] - impurity_[b],
            ratio_ ? impurities_.x_log2_x(size) - of_size_[a] - of_size_[b] : 0,
        };
    }

    bool enough() const {
        size_t large = 0;
        for (size_t g : pairs_.groups()) {
            if (cases_[g] < problem_.cases_in_leaf || double(sizes_[g]) < problem_.weight_in_leaf)
                return false;
            large += cases_[g] >= problem_.cases_in_branch;
        }
        return large >= 2;
    }

    // What groups gain, less what it takes to say which values they have.
    double score_of_groups(size_t n_values) {
        const double ways = log_ways(n_values, pairs_.groups().size());
        return this->score(in_branches_ + impurities_.bits(ways), of_sizes_);
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

    // The two groups whose merging leaves the best score, the first of equals. Only what may be
    // as good as the best so far is divided.
    std::pair<size_t, size_t> best_merger() {
        constexpr double guard = 1e-12;
        hopeful_.clear();
        double top = no_score, least = no_score, bar = no_score;
        const double weight = scale_->total / scale_->unit;
        pairs_.for_each([&](size_t a, size_t b) {
            const MergedPair& merged = pairs_.at(a, b);
            const int64_t drop =
                std::max<int64_t>(this->known_ - in_branches_ - merged.more_impurity, 0);
            const int64_t information = this->outside_ - of_sizes_ - merged.more_in_sizes;
            const double divisor = ratio_ ? double(std::max<int64_t>(information, 1)) : weight;
            if (double(drop) < bar * divisor) return;
            const double score = scale_->score(drop, information);
            if (score < least) return;
            hopeful_.push_back({score, a, b});
            if (score <= top) return;
            top = score;
            least = scale_->least(top);
            bar = least - std::fabs(least) * guard;
        });
        const auto first = std::find_if(hopeful_.begin(), hopeful_.end(),
                                        [&](const Merger& m) { return m.score >= least; });
        return {first->a, first->b};
    }

    void merge(size_t first, size_t second) {
        for (const size_t g : {first, second}) {
            in_branches_ -= impurity_[g];
            of_sizes_ -= of_size_[g];
        }
        for (size_t c = 0; c < classes_; ++c)
            cells_[first * classes_ + c] += cells_[second * classes_ + c];
        for (size_t w = 0; takes_logs_ && w < words_; ++w)
            classes_in_[first * words_ + w] |= classes_in_[second * words_ + w];
        sizes_[first] += sizes_[second];
        cases_[first] += cases_[second];
        measure(first, first + 1);
        pairs_.leave_out(second);
        measure_pairs([&](const auto& visit) { pairs_.for_each_of(first, visit); });
    }

    struct Merger {
        double score;
        size_t a, b;
    };

    const bool takes_logs_;  // not from a table: only those of a group's classes
    const bool ratio_;
    const size_t words_;  // of a set of classes

    // Of groups, by place.
    std::vector<W> cells_, sizes_;
    std::vector<uint64_t> classes_in_;  // the sets of classes that they have
    std::vector<double> cases_;
    std::vector<int64_t> terms_;  // x log2 x of the cells
    std::vector<int64_t> impurity_, of_size_;
    int64_t in_branches_ = 0, of_sizes_ = 0;  // sums of those that are left

    // Scratch.
    GroupPairs pairs_;
    GatheredLogs logs_;
    std::vector<uint32_t> order_, current_;
    std::vector<Merger> hopeful_;
    std::vector<W> together_;
    std::vector<double> log_factorial_{0.0};
};

}  // namespace branchwise
