// Moves the rows of a node to its children, which stay sorted by class.

#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "bit_layout.hpp"

namespace branchwise {

inline void copy_row(const uint64_t* from, uint64_t* to, size_t stride) {
    for (size_t word = 0; word < stride; word += 2) std::memcpy(to + word, from + word, sizeof(Pair));
}

class RowMover {
  public:
    // Children lie at `to` in the order of values, as `sizes[value]` says; each child has
    // `cells[value * classes + c]` rows of class c. Two classes at a time: their places
    // do not depend on each other, so neither waits for the other.
    void move(const Field& field, const uint64_t* from, uint64_t* to, size_t stride,
              const std::vector<uint32_t>& counts_of_class, const std::vector<uint32_t>& cells,
              const std::vector<uint32_t>& sizes) {
        const size_t classes = counts_of_class.size();
        size_t start = 0;
        for (size_t v = 0; v < field.values; ++v) {
            starts_[v] = start;
            start += sizes[v];
        }
        for (size_t c = 0; c < classes; c += 2) {
            const bool pair = c + 1 < classes;
            const size_t n0 = counts_of_class[c];
            const size_t n1 = pair ? counts_of_class[c + 1] : 0;
            for (size_t v = 0; v < field.values; ++v) {
                places_[0][v] = starts_[v];
                starts_[v] += cells[v * classes + c];
                places_[1][v] = starts_[v];
                if (pair) starts_[v] += cells[v * classes + c + 1];
            }
            if (stride == 2) move_segments<2>(field, from, to, stride, n0, n1);
            else move_segments<0>(field, from, to, stride, n0, n1);
            from += (n0 + n1) * stride;
        }
    }

  private:
    // The field by value: what is written to rows cannot change it, so that it stays in
    // registers. Rows of one pair of words, the usual ones, are moved as one.
    template <size_t fixed_stride>
    void move_segments(const Field field, const uint64_t* row, uint64_t* out, size_t any_stride, size_t n0, size_t n1) {
        const size_t stride = fixed_stride ? fixed_stride : any_stride;
        const uint64_t* other = row + n0 * stride;
        const auto put = [=](const uint64_t* from, size_t* places) {
            copy_row(from, out + places[field.value(from)]++ * stride, stride);
        };
        const size_t both = std::min(n0, n1);
        for (size_t i = 0; i < both; ++i) {
            put(row + i * stride, places_[0]);
            put(other + i * stride, places_[1]);
        }
        for (size_t i = both; i < n0; ++i) put(row + i * stride, places_[0]);
        for (size_t i = both; i < n1; ++i) put(other + i * stride, places_[1]);
    }

    size_t starts_[Field::most_values];     // of each child's rows
    size_t places_[2][Field::most_values];  // where the next row of a value goes
};

}  // namespace branchwise
