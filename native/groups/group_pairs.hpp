// Pairs of groups of values that may be merged, and what each would have more as one group.
//
// All pairs are compared at every step, so what is known of one is kept until one of its groups is
// merged.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace branchwise {

struct MergedPair {
    int64_t more_impurity = 0;
    int64_t more_in_sizes = 0;  // x log2 x of the weight
};

class GroupPairs {
  public:
    // `neighbours_only`: no other groups are merged.
    void start(size_t n_groups, bool neighbours_only) {
        width_ = n_groups;
        neighbours_only_ = neighbours_only;
        merged_.assign(neighbours_only ? width_ : width_ * width_, MergedPair());
        groups_.resize(n_groups);
        std::iota(groups_.begin(), groups_.end(), size_t(0));
    }

    // The groups that are left, by their places at the start.
    const std::vector<size_t>& groups() const { return groups_; }

    // visit(a, b) with the groups of every pair, in order.
    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (size_t i = 0; i + 1 < groups_.size(); ++i)
            for (size_t k = i + 1; k < (neighbours_only_ ? i + 2 : groups_.size()); ++k)
                visit(groups_[i], groups_[k]);
    }

    // visit(a, b) with the pairs that have a group.
    template <typename Visit>
    void for_each_of(size_t group, const Visit& visit) const {
        const auto here = std::find(groups_.begin(), groups_.end(), group);
        auto from = groups_.begin(), to = groups_.end();
        if (neighbours_only_) {
            if (here != from) from = here - 1;
            if (to - here > 2) to = here + 2;
        }
        for (; from != to; ++from)
            if (from != here) visit(std::min(*from, group), std::max(*from, group));
    }

    MergedPair& at(size_t a, size_t b) { return merged_[neighbours_only_ ? a : a * width_ + b]; }

    // It is part of another one.
    void leave_out(size_t second) {
        groups_.erase(std::find(groups_.begin(), groups_.end(), second));
    }

  private:
    size_t width_ = 0;
    bool neighbours_only_ = false;
    std::vector<size_t> groups_;
    std::vector<MergedPair> merged_;
};

}  // namespace branchwise
