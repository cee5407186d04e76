// Moves the rows of a node to its children, which stay sorted by class.

#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "bit_rows/bit_layout.hpp"

namespace branchwise {

inline void copy_row(const uint64_t* from, uint64_t* to, size_t stride) {
    for (size_t word = 0; word < stride; word += 2)
        std::memcpy(to + word, from + word, sizeof(Pair));
}

// Rows of one class, and where the next of them goes that has a given value.
struct Segment {
    const uint64_t* row = nullptr;
    size_t n = 0;
    size_t places[Field::most_values];
};

// The field by value: what is written to rows cannot change it, so that it stays in
// registers. Rows of one pair of words, the usual ones, are moved as one.
template <size_t fixed_stride>
void move_side_by_side(const Field field, Segment& one, Segment& two, uint64_t* out,
                       size_t any_stride) {
    const size_t stride = fixed_stride ? fixed_stride : any_stride;
    const auto put = [=](const uint64_t* from, size_t* places) {
        copy_row(from, out + places[field.value(from)]++ * stride, stride);
    };
    const uint64_t* row = one.row;
    const uint64_t* other = two.row;
    const size_t n0 = one.n;
    const size_t n1 = two.n;
    const size_t both = std::min(n0, n1);
    for (size_t i = 0; i < both; ++i) {
        put(row + i * stride, one.places);
        put(other + i * stride, two.places);
    }
    for (size_t i = both; i < n0; ++i) put(row + i * stride, one.places);
    for (size_t i = both; i < n1; ++i) put(other + i * stride, two.places);
}

// Two segments at a time: their places do not depend on each other, so neither waits
// for the other.
inline void move_segments(const Field& field, Segment& one, Segment& two, uint64_t* out,
                          size_t stride) {
    if (stride == 2)
        move_side_by_side<2>(field, one, two, out, stride);
    else
        move_side_by_side<0>(field, one, two, out, stride);
}

// Where each child's rows begin, in the order of values.
inline void find_starts(const Field& field, const std::vector<uint32_t>& sizes, size_t* starts) {
    size_t start = 0;
    for (size_t v = 0; v < field.values; ++v) {
        starts[v] = start;
        start += sizes[v];
    }
}

class RowMover {
  public:
    // Children lie at `to` in the order of values, as `sizes[value]` says; each child has
    // `cells[value * classes + c]` rows of class c.
    void move(const Field& field, const uint64_t* from, uint64_t* to, size_t stride,
              const std::vector<uint32_t>& counts_of_class, const std::vector<uint32_t>& cells,
              const std::vector<uint32_t>& sizes) {
        const size_t classes = counts_of_class.size();
        find_starts(field, sizes, starts_);
        for (size_t c = 0; c < classes; c += 2) {
            const bool pair = c + 1 < classes;
            one_.row = from;
            one_.n = counts_of_class[c];
            two_.row = from + one_.n * stride;
            two_.n = pair ? counts_of_class[c + 1] : 0;
            for (size_t v = 0; v < field.values; ++v) {
                one_.places[v] = starts_[v];
                starts_[v] += cells[v * classes + c];
                two_.places[v] = starts_[v];
                if (pair) starts_[v] += cells[v * classes + c + 1];
            }
            move_segments(field, one_, two_, to, stride);
            from = two_.row + two_.n * stride;
        }
    }

  private:
    size_t starts_[Field::most_values];
    Segment one_, two_;
};

}  // namespace branchwise
