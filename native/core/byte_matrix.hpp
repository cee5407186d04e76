// Sixteen lists of sixteen bytes, transposed.

#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace branchwise {

class ByteMatrix {
  public:
    static constexpr size_t size = 16;

    void read(size_t list, const uint8_t* from) { std::memcpy(&lists_[list], from, size); }
    void write(size_t list, uint8_t* to) const { std::memcpy(to, &lists_[list], size); }

#if defined(__SSE2__)
    // Each round of four interleaves the lists k and k + 8, so that after four, the bytes of one
    // place lie side by side.
    void transpose() {
        for (int round = 0; round < 4; ++round) {
            __m128i then[size];
            for (size_t k = 0; k < size / 2; ++k) {
                then[2 * k] = _mm_unpacklo_epi8(lists_[k], lists_[k + size / 2]);
                then[2 * k + 1] = _mm_unpackhi_epi8(lists_[k], lists_[k + size / 2]);
            }
            std::memcpy(lists_, then, sizeof lists_);
        }
    }

    // Of each byte of a list its highest bit, which the next one takes the place of.
    uint16_t take_highest_bits(size_t list) {
        const auto bits = uint16_t(_mm_movemask_epi8(lists_[list]));
        lists_[list] = _mm_add_epi8(lists_[list], lists_[list]);
        return bits;
    }

  private:
    __m128i lists_[size];
#else
    void transpose() {
        for (size_t k = 0; k < size; ++k)
            for (size_t other = 0; other < k; ++other)
                std::swap(lists_[k][other], lists_[other][k]);
    }

  private:
    uint8_t lists_[size][size];
#endif
};

}  // namespace branchwise
