// Random draws of the columns that may split a node: the native implementation of
// branchwise/grow/draws.py.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/problem.hpp"

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace branchwise {

// A random number: a hash of a key and a counter (SplitMix64); all but the last step, which changes
// one of its 32 highest bits, the lowest.
inline uint64_t draw_unfinished(uint64_t key, uint64_t counter) {
    uint64_t mixed = key + (counter + 1) * draw_gamma;
    mixed = (mixed ^ (mixed >> 30)) * draw_mix_1;
    return (mixed ^ (mixed >> 27)) * draw_mix_2;
}
inline uint64_t draw(uint64_t key, uint64_t counter) {
    const uint64_t mixed = draw_unfinished(key, counter);
    return mixed ^ (mixed >> 31);
}

// The key of a child, from that of its parent.
inline uint64_t child_key(uint64_t key, size_t branch) { return draw(key ^ draw_child, branch); }

// Which of n a random number means: a share of n, rounded down. A share is at most 1 - 2^-53;
// signed numbers are converted in one instruction.
inline size_t chosen_of(uint64_t number, double n) {
    return size_t(int64_t(double(int64_t(number >> 11)) * 0x1p-53 * n));
}

// The batches of columns of one node after the other.
class ColumnDraws {
  public:
    explicit ColumnDraws(const Problem& problem)
        : n_columns_(problem.columns.size()),
          size_(problem.max_features < n_columns_ ? problem.max_features : 0),
          random_splits_(problem.random_splits) {}

    // Whether a node has several batches.
    bool any() const { return size_ > 0; }
    // Whether nodes need keys.
    bool uses_keys() const { return any() || random_splits_; }

    void begin(uint64_t key) {
        key_ = key;
        at_ = 0;
    }

    // The next columns, in order; none if there are no more. Most nodes are split by one of the
    // first, so only these are looked for at first, and all are put in order for the others.
    const std::vector<uint32_t>& next() {
        if (at_ == 0)
            find_first();
        else if (at_ < n_columns_)
            find_others();
        else
            batch_.clear();
        at_ += batch_.size();
        return batch_;
    }

  private:
    struct Drawn {
        uint64_t number;
        uint32_t column;

        bool operator<(const Drawn& other) const {
            return number != other.number ? number < other.number : column < other.column;
        }
    };

    void find_first() {
        switch (size_) {
            case 1:
                return find_smallest<1>();
            case 2:
                return find_smallest<2>();
            case 3:
                return find_smallest<3>();
            case 4:
                return find_smallest<4>();
            case 5:
                return find_smallest<5>();
            case 6:
                return find_smallest<6>();
            case 7:
                return find_smallest<7>();
            case 8:
                return find_smallest<8>();
            default:
                return find_others();
        }
    }

    // The columns of the n smallest numbers. Without a branch: which they are is anybody's guess.
    // Of a number the highest bits do, followed by its column. Numbers that are alike there are
    // rare; if one of them is in the batch and another is not, all are put in order.
    template <size_t n>
    void find_smallest() {
        if (n_columns_ > most_marked) return find_others();
        alignas(16) uint32_t numbers[most_marked];
        const size_t n_numbers = (n_columns_ + 3) / 4 * 4;
        // What finishes a number does not change its highest bits. Those of no column are the
        // largest.
        for (uint32_t column = 0; column < n_numbers; column += 4)
            for (uint32_t c = column; c < column + 4; ++c)
                numbers[c] = (uint32_t(draw_unfinished(key_, c) >> 32) & ~column_bits) | c;
        std::fill(numbers + n_columns_, numbers + n_numbers, ~uint32_t(0));
        uint32_t least[n + 1];
        find_least(numbers, n_numbers, least);
        const uint32_t largest = *std::max_element(least, least + n + 1);
        size_t n_alike = 0;
        for (uint32_t number : least) n_alike += (number ^ largest) <= column_bits;
        if (n_alike > 1) return find_others();
        batch_.resize(n);
        if (n_columns_ <= 64)
            write_batch<1>(least, largest);
        else
            write_batch<most_marked / 64>(least, largest);
    }

    // In order, all but the largest.
    template <size_t n_words, size_t m>
    void write_batch(const uint32_t (&least)[m], uint32_t largest) {
        uint64_t marked[n_words] = {};
        for (uint32_t number : least)
            marked[(number & column_bits) / 64 % n_words] |= uint64_t(1) << (number % 64);
        marked[(largest & column_bits) / 64 % n_words] ^= uint64_t(1) << (largest % 64);
        uint32_t* next = batch_.data();
        for (uint32_t word = 0; word < n_words; ++word)
            for (uint64_t left = marked[word]; left; left &= left - 1)
                *next++ = word * 64 + uint32_t(__builtin_ctzll(left));
    }

    // The m least of some numbers, in any order; whole fours of numbers.
    template <size_t m>
    static void find_least(const uint32_t* numbers, size_t n, uint32_t (&least)[m]) {
#if defined(__SSE4_1__)
        // Those of every fourth number, in order; then of two such lists at a time, of which one
        // is turned round: the lesser ones of each pair are the m least of both.
        __m128i of_lane[m], joined[m];
        begin_least(of_lane);
        for (size_t i = 0; i < n; i += 4)
            insert(of_lane, _mm_load_si128(reinterpret_cast<const __m128i*>(numbers + i)));
        begin_least(joined);
        for (size_t i = 0; i < m; ++i) {
            const __m128i other = _mm_shuffle_epi32(of_lane[m - 1 - i], 0x4e);
            insert(joined, _mm_min_epu32(of_lane[i], other));
        }
        for (size_t i = 0; i < m; ++i) {
            const __m128i other = _mm_shuffle_epi32(joined[m - 1 - i], 0xb1);
            least[i] = uint32_t(_mm_cvtsi128_si32(_mm_min_epu32(joined[i], other)));
        }
#else
        std::fill_n(least, m, ~uint32_t(0));
        for (size_t k = 0; k < n; ++k) {
            for (size_t i = m - 1; i > 0; --i)
                least[i] = std::min(least[i], std::max(least[i - 1], numbers[k]));
            least[0] = std::min(least[0], numbers[k]);
        }
#endif
    }

#if defined(__SSE4_1__)
    template <size_t m>
    static void begin_least(__m128i (&least)[m]) {
        std::fill_n(least, m, _mm_set1_epi32(-1));
    }

    // Into lists in order, one in each lane.
    template <size_t m>
    static void insert(__m128i (&least)[m], __m128i numbers) {
        for (size_t i = m - 1; i > 0; --i)
            least[i] = _mm_min_epu32(least[i], _mm_max_epu32(least[i - 1], numbers));
        least[0] = _mm_min_epu32(least[0], numbers);
    }
#endif

    void find_others() {
        if (at_ <= size_) {
            drawn_.resize(n_columns_);
            for (uint32_t column = 0; column < n_columns_; ++column)
                drawn_[column] = {draw(key_, column), column};
            std::sort(drawn_.begin(), drawn_.end());
        }
        take(at_, std::min(at_ + size_, n_columns_));
    }

    void take(size_t begin, size_t end) {
        batch_.clear();
        for (size_t i = begin; i < end; ++i) batch_.push_back(drawn_[i].column);
        std::sort(batch_.begin(), batch_.end());
    }

    static constexpr uint32_t column_bits = 0xff;
    static constexpr size_t most_marked = 256;

    const size_t n_columns_;
    const size_t size_;  // of a batch
    const bool random_splits_;
    uint64_t key_ = 0;
    size_t at_ = 0;  // columns that have been drawn
    std::vector<Drawn> drawn_;
    std::vector<uint32_t> batch_;
};

}  // namespace branchwise
