// What searches of the thresholds of a sorted list have in common.

#pragma once

#include <algorithm>
#include <vector>

#include "thresholds/list_sums.hpp"
#include "thresholds/side_purity.hpp"
#include "thresholds/threshold_candidates.hpp"

namespace branchwise {

template <typename W, typename List>
class ListThresholds {
  public:
    using Steps = typename Records<W>::Steps;
    using Contender = typename ThresholdCandidates<Steps>::Contender;

    // In the order of the list.
    const std::vector<Contender>& contenders() const { return found_.all(); }
    // Class weights on the left of one, by the classes given.
    const Steps* left(size_t contender) const { return found_.left(contender); }
    // Of a long list only whether there are some, unless it matters how many.
    size_t n_thresholds() const { return n_thresholds_; }
    // How far what is told of a threshold is off at most.
    double off() const { return found_.off(); }

  protected:
    static constexpr bool weighted = Records<W>::weighted;
    static constexpr size_t block = 32;        // entries
    static constexpr size_t few_entries = 96;  // up to so many are gone through one by one

    ListThresholds(const Problem& problem)
        : problem_(problem),
          step_(weighted ? problem.weight_step : 1.0),
          counts_(problem.quinlan_thresholds || problem.tests_splits) {}

    bool differs(size_t i) const {
        if (!list_.differs(i)) return false;
        return !values_ || (*values_)[list_.rank(i)] + apart < (*values_)[list_.rank(i + 1)];
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

    const Problem& problem_;
    const double step_;  // of weights
    const bool counts_;  // whether it matters how many thresholds there are

    List list_;
    const DistinctNumbers* values_ = nullptr;  // if some are too close for a threshold
    std::vector<uint32_t> classes_, slot_;     // and the place of each class among them
    double whole_ = 0, information_ = 0;
    size_t n_thresholds_ = 0;
    ThresholdCandidates<Steps> found_;
    std::vector<Steps> known_, left_, starts_;
    std::vector<double> sides_, bounds_;
};

}  // namespace branchwise
