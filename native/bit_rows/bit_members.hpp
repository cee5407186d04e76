// The rows of a small node as sets: one word for each bit of a row says which rows have it.
//
// Counts are sizes of what sets have in common, and children are sets, too. So below a small node
// no row is moved, and only columns that are drawn are counted.

#pragma once

#include <algorithm>
#include <vector>

#include "bit_rows/bit_moves.hpp"
#include "core/byte_matrix.hpp"

namespace branchwise {

class Members {
  public:
    static constexpr size_t most = 64;
    // Sets behind the last one that may be read, and are empty.
    static constexpr size_t in_excess = 8;

    Members(const BitLayout& layout, size_t classes)
        : stride_(layout.n_pairs() * 2), of_bit_(stride_ * 64 + in_excess), of_class_(classes) {}

    // Take in rows, sorted by class; returns the set of all of them.
    uint64_t read(const uint64_t* rows, size_t n, const double* counts_of_class) {
        read_bits(rows, n);
        uint64_t before = 0;
        size_t end = 0;
        for (size_t c = 0; c < of_class_.size(); ++c) {
            end += size_t(counts_of_class[c]);
            of_class_[c] = first(end) & ~before;
            before = first(end);
        }
        return before;
    }

    uint64_t of_class(size_t c) const { return of_class_[c]; }

    // Those of the values of a column but the last, and of whatever comes behind.
    const uint64_t* sets(const Field& field) const { return &of_bit_[field.first_bit()]; }

    // visit(value, rows) for the rows of every value of a column but the last, whose rows are
    // returned.
    template <typename Visit>
    uint64_t each_value(const Field& field, uint64_t rows, const Visit& visit) const {
        const uint64_t* sets = &of_bit_[field.first_bit()];
        for (uint32_t v = 0; v + 1 < field.values; ++v) {
            visit(v, sets[v] & rows);
            rows &= ~sets[v];
        }
        return rows;
    }

    // The rows that have one of some values. Without a branch for each: which they are is anybody's
    // guess.
    uint64_t with_values(const Field& field, uint64_t rows, uint64_t values) const {
        constexpr Pair of_two[] = {{0, 0}, {~0ull, 0}, {0, ~0ull}, {~0ull, ~0ull}};
        const uint64_t* sets = &of_bit_[field.first_bit()];
        const uint64_t has_last = values >> (field.values - 1) & 1;
        // The last value has no set of its own.
        uint64_t told = has_last ? ~values & field.mask : values;
        Pair found = {};
        do {
            for (size_t k = 0; k < in_excess; k += 2) {
                Pair two;
                std::memcpy(&two, sets + k, sizeof two);
                found |= two & of_two[told >> k & 3];
            }
            sets += in_excess;
            told >>= in_excess;
        } while (told);
        const uint64_t some = found[0] | found[1];
        return rows & (has_last ? ~some : some);
    }

    // Count the values of a column, to where lines of counts have them.
    void count(const Field& field, uint64_t members, const std::vector<size_t>& classes,
               size_t line, uint8_t* counts) const {
        const uint64_t* sets = &of_bit_[field.first_bit()];
        const size_t last = field.values - 1;
        counts += field.first_bit();
        uint8_t* all = counts + of_class_.size() * line;
        for (size_t v = 0; v < last; ++v) all[v] = size_of(sets[v] & members);
        for (size_t c : classes) {
            const uint64_t some = members & of_class_[c];
            for (size_t v = 0; v < last; ++v) counts[c * line + v] = size_of(sets[v] & some);
        }
    }

    // The rows that take each branch; there must be room for most_values of them.
    void divide(const BranchOfRow& branch, uint64_t members, uint64_t* of_branch) const {
        const uint64_t* sets = &of_bit_[branch.field.first_bit()];
        const size_t last = branch.field.values - 1;
        std::fill_n(of_branch, branch.field.values, 0);
        for (size_t v = 0; v < last; ++v) {
            const uint64_t some = sets[v] & members;
            of_branch[branch.branch_of ? branch.branch_of[v] : v] |= some;
            members &= ~some;
        }
        of_branch[branch.branch_of ? branch.branch_of[last] : last] |= members;
    }

  private:
    static uint64_t first(size_t n) { return n < 64 ? (uint64_t(1) << n) - 1 : ~uint64_t(0); }
    static uint8_t size_of(uint64_t set) { return uint8_t(__builtin_popcountll(set)); }

#if defined(__SSE2__)
    // Sixteen rows, and two words of them, at a time: of the bytes that they have in one place, one
    // instruction tells the highest bits.
    void read_bits(const uint64_t* rows, size_t n) {
        std::fill(of_bit_.begin(), of_bit_.end(), 0);
        for (size_t word = 0; word < stride_; word += 2)
            for (size_t i = 0; i < n; i += ByteMatrix::size)
                read_block(rows + i * stride_ + word, std::min(n - i, ByteMatrix::size),
                           reinterpret_cast<uint8_t*>(&of_bit_[word * 64]) + i / 8);
    }

    // `sets`: where the first of the sets has the first of these rows.
    void read_block(const uint64_t* rows, size_t n, uint8_t* sets) const {
        constexpr uint64_t no_row[2] = {};
        ByteMatrix bytes;
        for (size_t k = 0; k < ByteMatrix::size; ++k)
            bytes.read(k, reinterpret_cast<const uint8_t*>(k < n ? rows + k * stride_ : no_row));
        bytes.transpose();
        for (size_t k = 0; k < ByteMatrix::size; ++k)
            for (size_t bit = 8; bit-- > 0;) {
                const uint16_t those = bytes.take_highest_bits(k);
                std::memcpy(sets + (8 * k + bit) * sizeof(uint64_t), &those, sizeof those);
            }
    }
#else
    void read_bits(const uint64_t* rows, size_t n) {
        for (size_t word = 0; word < stride_; ++word) {
            uint64_t* const sets = &of_bit_[word * 64];
            for (size_t i = 0; i < n; ++i) sets[i] = rows[i * stride_ + word];
            std::fill(sets + n, sets + 64, 0);
            transpose(sets);
        }
    }

    // Bit b of word i becomes bit i of word b: squares of bits beside the diagonal change places,
    // from the largest to those of one bit.
    static void transpose(uint64_t* words) {
        exchange<32>(words, 0x00000000ffffffffULL);
        exchange<16>(words, 0x0000ffff0000ffffULL);
        exchange<8>(words, 0x00ff00ff00ff00ffULL);
        exchange<4>(words, 0x0f0f0f0f0f0f0f0fULL);
        exchange<2>(words, 0x3333333333333333ULL);
        exchange<1>(words, 0x5555555555555555ULL);
    }

    template <size_t side>
    static void exchange(uint64_t* words, uint64_t low) {
        for (size_t base = 0; base < 64; base += 2 * side)
            for (size_t i = base; i < base + side; ++i) {
                const uint64_t changed = ((words[i] >> side) ^ words[i + side]) & low;
                words[i] ^= changed << side;
                words[i + side] ^= changed;
            }
    }
#endif

    const size_t stride_;
    std::vector<uint64_t> of_bit_;    // sets of rows
    std::vector<uint64_t> of_class_;  // and these
};

}  // namespace branchwise
