// Dividing a list of row numbers in two: those of the first branch come before those of the
// second, otherwise they stay as they were.
//
// With byte shuffles eight rows are divided at a time: their branches are the bits of a number, and
// a table has the order that they get. What is written beyond the rows of a branch is written over
// by those that follow.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSSE3__)
#include <tmmintrin.h>
#endif

namespace branchwise {

// So many rows more than a list has may be read and written: room for them is needed behind all
// lists, and behind `others`.
constexpr size_t divided_together = 8;

// Rows of the second branch go to `others`, those of the first over what has been read. Returns how
// many go to `others`. `begin`: the first row that is left; `n_right`: rows before it that did.
template <typename Row>
size_t part_one_by_one(Row* list, size_t begin, size_t n, const Row* branch_of, Row* others,
                       size_t n_right) {
    for (size_t i = begin; i < n; ++i) {
        const Row row = list[i];
        list[i - n_right] = row;
        others[n_right] = row;
        n_right += branch_of[row];
    }
    return n_right;
}

#if defined(__SSSE3__)

// By the branches of eight rows, as bits: the bytes of rows of this width, those of the first
// branch, then those of the second.
template <size_t width>
constexpr auto orders_of_rows() {
    std::array<std::array<uint8_t, 8 * width>, 256> orders{};
    for (size_t branches = 0; branches < 256; ++branches) {
        size_t at = 0;
        for (size_t branch = 0; branch < 2; ++branch)
            for (size_t row = 0; row < 8; ++row)
                for (size_t byte = 0; byte < width && (branches >> row & 1) == branch; ++byte)
                    orders[branches][at++] = uint8_t(row * width + byte);
    }
    return orders;
}
template <size_t width>
alignas(16) inline constexpr auto orders_of = orders_of_rows<width>();

inline size_t part_in_two(uint16_t* list, size_t n, const uint16_t* branch_of, uint16_t* others) {
    size_t i = 0, n_right = 0;
    for (; i + divided_together <= n; i += divided_together) {
        size_t branches = 0;
        for (size_t k = divided_together; k-- > 0;)
            branches = 2 * branches + branch_of[list[i + k]];
        const auto in_order = [&](size_t bits) {
            const auto* const order = reinterpret_cast<const __m128i*>(&orders_of<2>[bits]);
            const auto* const rows = reinterpret_cast<const __m128i*>(list + i);
            return _mm_shuffle_epi8(_mm_loadu_si128(rows), _mm_load_si128(order));
        };
        const __m128i right_first = in_order(branches ^ 255);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(list + i - n_right), in_order(branches));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(others + n_right), right_first);
        n_right += size_t(__builtin_popcountll(branches));
    }
    return part_one_by_one(list, i, n, branch_of, others, n_right);
}

// Rows are less than 32, and there are as many branches to be read.
inline void divide_in_two(uint8_t* list, size_t n, const uint8_t* branch_of, uint8_t* others) {
    const auto* const all = reinterpret_cast<const __m128i*>(branch_of);
    const __m128i low = _mm_loadu_si128(all), high = _mm_loadu_si128(all + 1);
    const __m128i sixteen = _mm_set1_epi8(16), none = _mm_set1_epi8(0x70);
    uint64_t behind;  // rows of other nodes
    std::memcpy(&behind, list + n, sizeof behind);
    size_t n_right = 0;
    for (size_t i = 0; i < n; i += divided_together) {
        const __m128i rows = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(list + i));
        // A shuffle makes 0 of bytes whose highest bit is set.
        const __m128i found = _mm_or_si128(_mm_shuffle_epi8(low, _mm_adds_epu8(rows, none)),
                                           _mm_shuffle_epi8(high, _mm_sub_epi8(rows, sixteen)));
        size_t branches = size_t(_mm_movemask_epi8(_mm_slli_epi16(found, 7))) & 255;
        if (n - i < divided_together) branches |= size_t(255) << (n - i) & 255;
        const auto* const order = reinterpret_cast<const __m128i*>(&orders_of<1>[branches]);
        const auto divided =
            uint64_t(_mm_cvtsi128_si64(_mm_shuffle_epi8(rows, _mm_loadl_epi64(order))));
        const auto right = size_t(__builtin_popcountll(branches));
        const size_t half = 4 * (divided_together - right);  // bits of half of the first ones
        const uint64_t right_ones = divided >> half >> half;
        std::memcpy(list + i - n_right, &divided, sizeof divided);
        std::memcpy(others + n_right, &right_ones, sizeof right_ones);
        n_right += right;
    }
    // Those beyond the end count as rows of the second branch, after all others.
    const size_t rounded = (n + divided_together - 1) / divided_together * divided_together;
    const size_t n_left = rounded - n_right;
    for (size_t i = 0; n_left + i < n; i += divided_together)
        std::memcpy(list + n_left + i, others + i, divided_together);
    std::memcpy(list + n, &behind, sizeof behind);
}

#else

template <typename Row>
size_t part_in_two(Row* list, size_t n, const Row* branch_of, Row* others) {
    return part_one_by_one(list, 0, n, branch_of, others, 0);
}

#endif

template <typename Row>
void divide_in_two(Row* list, size_t n, const Row* branch_of, Row* others) {
    const size_t n_right = part_in_two(list, n, branch_of, others);
    std::copy_n(others, n_right, list + n - n_right);
}

}  // namespace branchwise
