// Where the bits of each column lie in a row, and rows made from codes.
//
// A column with V values has V - 1 bits; the last value is the absence of the others.
// A column's bits never straddle a 64-bit word. Columns lie in order, unless rows are shorter if
// they do not.

#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "core/byte_matrix.hpp"
#include "core/problem.hpp"

#if defined(__SSSE3__)
#include <tmmintrin.h>
#endif

namespace branchwise {

using Pair = uint64_t __attribute__((vector_size(16)));  // two words of a row

// Where one column's bits lie.
struct Field {
    static constexpr size_t most_values = 64;

    size_t word = 0;
    unsigned shift = 0;
    uint32_t values = 0;
    uint64_t mask = 0;
    uint64_t last = 0;  // the bit that stands for the last value, once extracted

    size_t first_bit() const { return word * 64 + shift; }
    uint32_t value(const uint64_t* row) const {
        return uint32_t(__builtin_ctzll(((row[word] >> shift) & mask) | last));
    }
};

class BitLayout {
  public:
    BitLayout() = default;

    explicit BitLayout(const std::vector<uint32_t>& values) {
        std::vector<size_t> order(values.size());
        std::iota(order.begin(), order.end(), 0);
        place_in_order(values, order);
        // Large columns first, if that makes rows shorter.
        BitLayout dense;
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return values[a] > values[b]; });
        dense.place_where_room_is(values, order);
        if (dense.n_pairs() < n_pairs()) {
            *this = std::move(dense);
            in_order_ = false;
        }
        mark_highest_bits();
    }

    // The same bits, where columns are numbered in another order.
    BitLayout in_order_of(const std::vector<uint32_t>& order) const {
        BitLayout other = *this;
        for (size_t j = 0; j < order.size(); ++j) {
            other.fields_[j] = fields_[order[j]];
            other.in_order_ = other.in_order_ && order[j] == j;
        }
        other.mark_highest_bits();
        return other;
    }

    const std::vector<Field>& fields() const { return fields_; }
    const Field& operator[](size_t column) const { return fields_[column]; }
    size_t n_columns() const { return fields_.size(); }
    size_t n_words() const { return n_words_; }
    size_t n_pairs() const { return (n_words_ + 1) / 2; }
    // Whether no later column has a lower bit in the same word, nor any in an earlier word.
    bool in_order() const { return in_order_; }

    // Of each column, its highest bit is set if any of its bits is; other bits are left
    // as they come. Adding cannot carry from one column into the next.
    Pair any_of_column(Pair bits, size_t pair) const {
        return bits | ((bits & lower_[pair]) + lower_[pair]);
    }
    Pair highest(size_t pair) const { return highest_[pair]; }
    size_t column_of_bit(size_t bit) const { return column_of_bit_[bit]; }

  private:
    // Each in the word of the one before, or else in a new one.
    void place_in_order(const std::vector<uint32_t>& values, const std::vector<size_t>& order) {
        fields_.resize(values.size());
        unsigned used = 64;
        for (size_t j : order) {
            const unsigned bits = values[j] ? values[j] - 1 : 0;
            if (bits > 64 - used) {
                ++n_words_;
                used = 0;
            }
            place(j, values[j], n_words_ ? n_words_ - 1 : 0, bits ? used : 0);
            used += bits;
        }
        n_words_ = n_words_ ? n_words_ : 1;
    }

    // Each in the first word that has room.
    void place_where_room_is(const std::vector<uint32_t>& values,
                             const std::vector<size_t>& order) {
        fields_.resize(values.size());
        std::vector<unsigned> used{0};
        for (size_t j : order) {
            const unsigned bits = values[j] ? values[j] - 1 : 0;
            size_t word = 0;
            while (word < used.size() && bits > 64 - used[word]) ++word;
            if (word == used.size()) used.push_back(0);
            place(j, values[j], word, bits ? used[word] : 0);
            used[word] += bits;
        }
        n_words_ = used.size();
    }

    void place(size_t j, uint32_t values, size_t word, unsigned shift) {
        Field& field = fields_[j];
        field.word = word;
        field.shift = shift;
        field.values = values;
        field.last = uint64_t(1) << (values ? values - 1 : 0);
        field.mask = field.last - 1;
    }

    void mark_highest_bits() {
        lower_.assign(n_pairs(), Pair{});
        highest_.assign(n_pairs(), Pair{});
        column_of_bit_.assign(n_pairs() * 128, 0);
        for (size_t j = 0; j < fields_.size(); ++j) {
            const Field& field = fields_[j];
            if (!field.mask) continue;
            const uint64_t top = field.last >> 1;
            highest_[field.word / 2][field.word % 2] |= top << field.shift;
            lower_[field.word / 2][field.word % 2] |= (top - 1) << field.shift;
            const auto highest_bit = field.first_bit() + size_t(__builtin_ctzll(top));
            column_of_bit_[highest_bit] = uint16_t(j);
        }
    }

    size_t n_words_ = 0;
    bool in_order_ = true;
    std::vector<Field> fields_;
    std::vector<Pair> lower_, highest_;
    std::vector<uint16_t> column_of_bit_;
};

// Some of the columns.
struct ColumnSet {
    static constexpr size_t most = 256;
    uint64_t words[most / 64] = {};

    void add(size_t column) { words[column / 64] |= uint64_t(1) << (column % 64); }
    void drop(size_t column) { words[column / 64] &= ~(uint64_t(1) << (column % 64)); }
    bool has(size_t column) const { return words[column / 64] >> (column % 64) & 1; }

    // visit(column) in order, while it returns true.
    template <typename Visit>
    void each(size_t n_columns, const Visit& visit) const {
        for (size_t base = 0; base < n_columns; base += 64)
            for (uint64_t left = words[base / 64]; left; left &= left - 1)
                if (!visit(base + size_t(__builtin_ctzll(left)))) return;
    }
};

// Makes the rows of a block from the codes of all columns.
//
// Where bytes can be shuffled, columns of up to sixteen values are looked up sixteen
// rows at a time: byte k of all rows is the union of what each column gives to byte k.
// Sixteen such lists, transposed, are a pair of words of each row.
class RowMaker {
  public:
    static constexpr size_t block = 512;

    RowMaker(const Table& table, const BitLayout& layout) : table_(table), layout_(layout) {
        for (size_t j = 0; j < layout.n_columns(); ++j) {
            const Field& field = layout[j];
            if (field.values < 2) continue;
            if (field.values > most_looked_up)
                shifted_.push_back(j);
            else
                add_lookups(j, field);
        }
    }

    // `words` gets n <= block rows, from row `start` on.
    void make(size_t start, size_t n, uint64_t* words) {
        const size_t stride = layout_.n_pairs() * 2;
#if defined(__SSSE3__)
        for (size_t pair = 0; pair < layout_.n_pairs(); ++pair) {
            look_up(pair, start, n);
            for (size_t i = 0; i < n; i += 16) transpose(i, words + i * stride + pair * 2, stride);
        }
#else
        std::memset(words, 0, n * stride * sizeof(uint64_t));
#endif
        for (size_t j : shifted_) {
            const Field& field = layout_[j];
            const uint8_t* codes = codes_of(j) + start;
            uint64_t* word = words + field.word;
            const uint64_t mask = field.mask << field.shift;
            // The last value's bit falls outside the mask, or wraps to nothing.
            for (size_t i = 0; i < n; ++i, word += stride)
                *word |= ((uint64_t(1) << codes[i]) << field.shift) & mask;
        }
    }

  private:
#if defined(__SSSE3__)
    static constexpr uint32_t most_looked_up = 16;
#else
    static constexpr uint32_t most_looked_up = 0;
#endif

    // What each code of a column gives to one byte of a row.
    struct Lookup {
        size_t column;
        size_t byte;  // of the row
        uint8_t table[16];
    };

    const uint8_t* codes_of(size_t j) const {
        return static_cast<const uint8_t*>(table_.columns[j].codes);
    }

    void add_lookups(size_t j, const Field& field) {
        const size_t first = field.word * 8 + field.shift / 8;
        const size_t last = field.word * 8 + (field.shift + field.values - 2) / 8;
        for (size_t byte = first; byte <= last; ++byte) {
            Lookup lookup{j, byte, {}};
            for (uint32_t v = 0; v + 1 < field.values; ++v)
                lookup.table[v] = uint8_t(((uint64_t(1) << v) << field.shift) >> (byte % 8 * 8));
            lookups_.push_back(lookup);
        }
    }

#if defined(__SSSE3__)
    // bytes_[k][i]: byte k of row i, for one pair of words.
    void look_up(size_t pair, size_t start, size_t n) {
        std::memset(bytes_, 0, sizeof bytes_);
        for (const Lookup& lookup : lookups_) {
            if (lookup.byte / 16 != pair) continue;
            uint8_t* out = bytes_[lookup.byte % 16];
            const uint8_t* codes = codes_of(lookup.column) + start;
            const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lookup.table));
            size_t i = 0;
            for (; i + 16 <= n; i += 16) {
                __builtin_prefetch(
                    codes + i +
                    block);  // for the next block: streams this short escape the machine
                auto* at = reinterpret_cast<__m128i*>(out + i);
                const __m128i code = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i));
                _mm_store_si128(at,
                                _mm_or_si128(_mm_load_si128(at), _mm_shuffle_epi8(table, code)));
            }
            for (; i < n; ++i) out[i] |= lookup.table[codes[i]];
        }
    }

    // Rows i .. i + 15 from the sixteen lists.
    void transpose(size_t i, uint64_t* words, size_t stride) const {
        ByteMatrix bytes;
        for (size_t k = 0; k < 16; ++k) bytes.read(k, &bytes_[k][i]);
        bytes.transpose();
        for (size_t k = 0; k < 16; ++k)
            bytes.write(k, reinterpret_cast<uint8_t*>(words + k * stride));
    }

    alignas(16) uint8_t bytes_[16][block];
#endif

    const Table& table_;
    const BitLayout& layout_;
    std::vector<Lookup> lookups_;
    std::vector<size_t> shifted_;
};

}  // namespace branchwise
