// Extremely randomised splits, one of each column at a node: the native implementation of
// branchwise/grow/random_splits.py.

#pragma once

#include <algorithm>
#include <vector>

#include "core/distinct_numbers.hpp"
#include "core/draws.hpp"

namespace branchwise {

// What the split of a column at a node is made of.
inline uint64_t split_key(uint64_t node_key, size_t column) {
    return draw(node_key ^ draw_split, column);
}

// The threshold of a column that may be chosen at a node: any, or the one that is drawn.
class DrawnThreshold {
  public:
    DrawnThreshold() = default;

    // Evenly between the smallest and the largest number of the node, which have these ranks.
    DrawnThreshold(uint64_t node_key, size_t column, const DistinctNumbers& values, uint32_t lowest,
                   uint32_t highest)
        : values_(&values) {
        const double low = values[lowest], high = values[highest];
        const double share = double(split_key(node_key, column) >> 11) * 0x1p-53;
        const double at = low + share * (high - low);
        at_ = at < high ? at : low;  // the difference of huge numbers is no number
    }

    bool is_left(uint32_t rank) const { return (*values_)[rank] <= at_; }

    // Whether it is between two neighbouring ranks.
    bool allows(uint32_t low, uint32_t high) const {
        return !values_ || (is_left(low) && !is_left(high));
    }

  private:
    const DistinctNumbers* values_ = nullptr;
    double at_ = 0;
};

// Two groups of the values of a node, that of the first one being 0. All values are added, in
// order, before the group of any is asked for.
class RandomGroups {
  public:
    RandomGroups(uint64_t node_key, size_t column) : key_(split_key(node_key, column)) {}

    void add(uint32_t code) {
        const uint64_t number = draw(key_, code);
        if (n_ == 0) first_ = code;
        if (n_ == 0 || number < least_) {
            least_ = number;
            least_code_ = code;
        }
        ones_ += number >> 63;
        ++n_;
    }

    size_t count() const { return std::min<size_t>(n_, 2); }
    uint32_t operator()(uint32_t code) const { return side(code) ^ side(first_); }

  private:
    // If all are on one side, the value with the smallest number is on the other.
    uint32_t side(uint32_t code) const {
        const bool alike = ones_ == 0 || ones_ == n_;
        return uint32_t(draw(key_, code) >> 63) ^ uint32_t(alike && n_ > 1 && code == least_code_);
    }

    const uint64_t key_;
    size_t n_ = 0, ones_ = 0;
    uint64_t least_ = 0;
    uint32_t first_ = 0, least_code_ = 0;
};

}  // namespace branchwise
