// Positional popcount: of every bit position, how many rows have it set.

#pragma once

#include <cstring>

#include "bit_rows/bit_layout.hpp"

namespace branchwise {

namespace popcount {

inline void add(Pair& ones, Pair& carry, Pair a, Pair b) {  // a full adder on all bits
    const Pair half = ones ^ a;
    carry = (ones & a) | (half & b);
    ones = half ^ b;
}

// Counts in bytes: byte b of at[k] counts bit 8 b + k.
struct Bytes {
    Pair at[8] = {};

    void add(Pair bits, int times_log2 = 0) {
        const Pair low = {0x0101010101010101ULL, 0x0101010101010101ULL};
        for (int k = 0; k < 8; ++k) at[k] += ((bits >> k) & low) << times_log2;
    }

    // The counts of bits 0 .. 127, in order.
    void write(uint8_t* out) const {
#if defined(__SSSE3__)
        __m128i now[8];
        __m128i then[8];
        std::memcpy(now, at, sizeof now);
        for (int round = 0; round < 3; ++round) {
            for (size_t k = 0; k < 4; ++k) {
                then[2 * k] = _mm_unpacklo_epi8(now[k], now[k + 4]);
                then[2 * k + 1] = _mm_unpackhi_epi8(now[k], now[k + 4]);
            }
            std::memcpy(now, then, sizeof now);
        }
        std::memcpy(out, now, sizeof now);
#else
        uint8_t byte[128];
        std::memcpy(byte, at, sizeof byte);
        for (size_t k = 0; k < 8; ++k)
            for (size_t b = 0; b < 16; ++b) out[8 * b + k] = byte[16 * k + b];
#endif
    }
};

// Adds rows up, sixteen at a time.
struct Adders {
    Pair ones = {}, twos = {}, fours = {}, eights = {};

    // Returns what is carried out: sixteens.
    Pair add_sixteen(const Pair* row, size_t step) {
        Pair a, b, c, d, e, f, sixteens;
        add(ones, a, row[0], row[step]);
        add(ones, b, row[2 * step], row[3 * step]);
        add(twos, c, a, b);
        add(ones, a, row[4 * step], row[5 * step]);
        add(ones, b, row[6 * step], row[7 * step]);
        add(twos, d, a, b);
        add(fours, e, c, d);
        add(ones, a, row[8 * step], row[9 * step]);
        add(ones, b, row[10 * step], row[11 * step]);
        add(twos, c, a, b);
        add(ones, a, row[12 * step], row[13 * step]);
        add(ones, b, row[14 * step], row[15 * step]);
        add(twos, d, a, b);
        add(fours, f, c, d);
        add(eights, sixteens, e, f);
        return sixteens;
    }

    void write(Bytes& bytes) const {
        bytes.add(ones);
        bytes.add(twos, 1);
        bytes.add(fours, 2);
        bytes.add(eights, 3);
    }
};

// Rows that do not fill a group of sixteen: few are added one by one, many as a group
// that is filled up with nothing.
constexpr size_t few = 8;

inline void add_rest(const Pair* row, size_t step, size_t n, Adders& adders, Bytes& bytes,
                     Bytes& sixteens) {
    if (n <= few) {
        for (size_t i = 0; i < n; ++i) bytes.add(row[i * step]);
        return;
    }
    Pair group[16] = {};
    for (size_t i = 0; i < n; ++i) group[i] = row[i * step];
    sixteens.add(adders.add_sixteen(group, 1));
}

// The counts of one pair of words over n <= 255 rows.
inline void count(const Pair* row, size_t step, size_t n, uint8_t* out) {
    Bytes bytes, sixteens;
    Adders adders;
    const size_t full = n / 16 * 16;
    for (size_t i = 0; i < full; i += 16) sixteens.add(adders.add_sixteen(row + i * step, step));
    add_rest(row + full * step, step, n - full, adders, bytes, sixteens);
    if (n > few) {
        adders.write(bytes);
        // At most 15 of them in any byte, as n <= 255.
        for (int k = 0; k < 8; ++k) bytes.at[k] += sixteens.at[k] << 4;
    }
    bytes.write(out);
}

inline void empty(Bytes& bytes, uint32_t* out, uint32_t times) {
    uint8_t byte[128];
    bytes.write(byte);
    for (size_t i = 0; i < 128; ++i) out[i] += times * byte[i];
    bytes = Bytes();
}

// The counts of one pair of words over any number of rows. Bytes are emptied before
// they overflow.
inline void count(const Pair* row, size_t step, size_t n, uint32_t* out) {
    std::memset(out, 0, 128 * sizeof(uint32_t));
    Bytes bytes, sixteens;
    Adders adders;
    const size_t full = n / 16 * 16;
    size_t groups = 0;
    for (size_t i = 0; i < full; i += 16) {
        sixteens.add(adders.add_sixteen(row + i * step, step));
        if (++groups == 254) {  // the rest may add one
            empty(sixteens, out, 16);
            groups = 0;
        }
    }
    add_rest(row + full * step, step, n - full, adders, bytes, sixteens);
    adders.write(bytes);
    empty(sixteens, out, 16);
    empty(bytes, out, 1);
}

// ---- a line of counts: those of one class, or of all ------------------------------
// Of one column it has all values' counts but the last's, which is what is left of n.

template <typename Count>
inline void add_counts(const Count* counts, Count* all) {
    Count sum[128];
    for (size_t bit = 0; bit < 128; ++bit) sum[bit] = Count(all[bit] + counts[bit]);
    std::memcpy(all, sum, sizeof sum);
}

// Of every bit of a row; `stride` words, an even number, make a row.
template <typename Count>
inline void count_line(const uint64_t* rows, size_t stride, size_t n, Count* counts) {
    const auto* row = reinterpret_cast<const Pair*>(rows);
    for (size_t pair = 0; pair < stride / 2; ++pair)
        count(row + pair, stride / 2, n, counts + pair * 128);
}

template <typename Count>
inline void add_line(const Count* counts, size_t stride, Count* all) {
    for (size_t bit = 0; bit < stride * 64; bit += 128) add_counts(counts + bit, all + bit);
}

// What a child leaves of its parent's.
template <typename Count>
inline void subtract_line(const Count* all, const Count* some, size_t stride, Count* left) {
    for (size_t bit = 0; bit < stride * 64; bit += 128) {
        Count difference[128];
        for (size_t i = 0; i < 128; ++i) difference[i] = Count(all[bit + i] - some[bit + i]);
        std::memcpy(left + bit, difference, sizeof difference);
    }
}

template <typename Count>
inline bool is_constant(const Count* sizes, size_t last, uint32_t n) {
    uint32_t left = n;
    for (size_t v = 0; v < last; ++v) {
        if (sizes[v] == n) return true;
        left -= sizes[v];
    }
    return left == n;
}

// The size of the smallest branch.
template <typename Count>
inline uint32_t fewest(const Count* sizes, size_t last, uint32_t n) {
    uint32_t least = n;
    for (size_t v = 0; v < last; ++v) {
        if (sizes[v]) least = std::min<uint32_t>(least, sizes[v]);
        n -= sizes[v];
    }
    return n ? std::min(least, n) : least;
}

}  // namespace popcount

}  // namespace branchwise
