// What groupings in two keep of a node's weight by gini, for all sets of a few values at once.
//
// The squares of the class counts of a set add up from those of the set without its last value:
// (a + b)^2 = a^2 + 2 ab + b^2, and the products of two values are sums over the sets, too. So a
// set takes a few additions, whatever the number of classes.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/choose.hpp"

namespace branchwise {

// The gini impurity of two sides is their weight less this: squares of class counts, divided by
// those of all classes. One division, so that of few rows equal fractions are equal numbers.
inline double kept_of_sides(double left_squares, double left, double right_squares, double right) {
    return (left_squares * right + right_squares * left) / (left * right);
}

class ValueSubsets {
  public:
    // `all`: the class counts of the node.
    void begin(const std::vector<uint32_t>& all) {
        all_ = &all;
        n_ = 0;
        total_ = all_squares_ = 0;
        for (uint32_t count : all) {
            total_ += count;
            all_squares_ += double(count) * count;
        }
        sizes_[0] = products_[0] = squares_[0] = 0;
    }

    // Add a value: its class counts, which must stay where they are.
    void add(const uint32_t* cell) {
        const size_t n_sets = size_t(1) << n_;
        double size = 0;
        for (size_t c = 0; c < all_->size(); ++c) size += cell[c];
        const double with_all = product(cell, all_->data()), square = product(cell, cell);
        twice_[0] = 0;  // by set: its products with the value
        for (size_t u = 0; u < n_; ++u) {
            const double both = 2 * product(cell, cells_[u]);
            for (size_t set = 0, half = size_t(1) << u; set < half; ++set)
                twice_[half + set] = twice_[set] + both;
        }
        for (size_t set = 0; set < n_sets; ++set) {
            sizes_[n_sets + set] = sizes_[set] + size;
            products_[n_sets + set] = products_[set] + with_all;
            squares_[n_sets + set] = squares_[set] + twice_[set] + square;
        }
        cells_[n_++] = cell;
    }

    double size(size_t set) const { return sizes_[set]; }

    // What the sets from `first` up to `end` keep on the left, the rest of the node on the right;
    // no_score where a side has fewer cases than it must have.
    void write(size_t first, size_t end, double fewest, double* out) const {
        for (size_t set = first; set < end; ++set) {
            const double left = sizes_[set], right = total_ - left;
            const double others = all_squares_ - 2 * products_[set] + squares_[set];
            const double kept = kept_of_sides(squares_[set], left, others, right);
            *out++ = std::min(left, right) < fewest ? no_score : kept;
        }
    }

  private:
    // All values but one, and missing ones.
    static constexpr size_t most_sets = size_t(1) << all_groupings;

    double product(const uint32_t* one, const uint32_t* other) const {
        double sum = 0;
        for (size_t c = 0; c < all_->size(); ++c) sum += double(one[c]) * other[c];
        return sum;
    }

    const std::vector<uint32_t>* all_ = nullptr;
    size_t n_ = 0;
    double total_ = 0, all_squares_ = 0;
    const uint32_t* cells_[all_groupings];
    double sizes_[most_sets], products_[most_sets], squares_[most_sets], twice_[most_sets / 2];
};

}  // namespace branchwise
