// Thresholds of nodes, some time after they are known as ranks: the numbers that they lie between
// are anywhere in the memory, so they are prefetched, and read some nodes later.

#pragma once

#include "core/date_threshold.hpp"
#include "core/problem.hpp"
#include "core/tree.hpp"

namespace branchwise {

template <typename Rows>
class DelayedThresholds {
  public:
    DelayedThresholds(const Problem& problem, const Rows& records, Grown& grown)
        : problem_(problem), records_(records), grown_(grown) {}

    // A node is split by a column of numbers, between two ranks.
    void add(size_t node, size_t column, uint32_t low, uint32_t high) {
        const DistinctNumbers& numbers = records_.values(column);
        numbers.prefetch(low);
        numbers.prefetch(high);
        if (n_ == delay) set_first();
        waiting_[(first_ + n_++) % delay] = {node, column, low, high};
    }

    void finish() {
        while (n_ > 0) set_first();
    }

  private:
    static constexpr size_t delay = 16;

    struct Waiting {
        size_t node, column;
        uint32_t low, high;
    };

    void set_first() {
        const Waiting& one = waiting_[first_];
        grown_.nodes[one.node].threshold = threshold_between(
            records_.values(one.column), one.low, one.high, problem_.positions[one.column]);
        first_ = (first_ + 1) % delay;
        --n_;
    }

    const Problem& problem_;
    const Rows& records_;
    Grown& grown_;
    Waiting waiting_[delay];
    size_t first_ = 0, n_ = 0;
};

}  // namespace branchwise
