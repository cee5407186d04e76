// Pairs of groups of values that may be merged, and what each would be as one group.
//
// All pairs are compared at every step, so what is known of one is kept until one of its groups is
// merged: fractional weights take logarithms.

#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace branchwise {

// Two groups as one.
struct MergedGroup {
    bool is_known = false;
    int64_t impurity = 0;
    int64_t size_impurity = 0;  // x log2 x of its weight
};

class GroupPairs {
  public:
    // `neighbours_only`: no other groups are merged.
    void start(size_t n_groups, bool neighbours_only) {
        width_ = n_groups;
        neighbours_only_ = neighbours_only;
        merged_.assign(neighbours_only ? width_ : width_ * width_, MergedGroup());
        ids_.resize(n_groups);
        std::iota(ids_.begin(), ids_.end(), size_t(0));
    }

    template <typename Visit>
    void for_each(const Visit& visit) const {
        for (size_t a = 0; a + 1 < ids_.size(); ++a)
            for (size_t b = a + 1; b < (neighbours_only_ ? a + 2 : ids_.size()); ++b) visit(a, b);
    }

    MergedGroup& at(size_t a, size_t b) {
        return merged_[neighbours_only_ ? ids_[a] : ids_[a] * width_ + ids_[b]];
    }

    // The second group becomes part of the first one.
    void merge(size_t first, size_t second) {
        ids_.erase(ids_.begin() + std::ptrdiff_t(second));
        for_each([&](size_t a, size_t b) {
            if (a == first || b == first) at(a, b).is_known = false;
        });
    }

  private:
    size_t width_ = 0;
    bool neighbours_only_ = false;
    std::vector<size_t> ids_;  // of groups that are left: their places at the start
    std::vector<MergedGroup> merged_;
};

}  // namespace branchwise
