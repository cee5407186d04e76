// The values of a column in two halves at a node of few rows and two classes: of up to sixteen
// values at once, in lanes of 16 bits.
//
// A lane has the size of a value in its upper byte and its rows of the last class in the lower one.
// Of two such pairs of bytes, one instruction multiplies crosswise: so shares are compared, and
// distances from the share of the node found, without a division. The left half that ends with a
// value has all values whose share is no larger. Nothing is sorted, and there is hardly a branch:
// which values have rows, and in which order, is anybody's guess.

#pragma once

#include <algorithm>

#include "bit_rows/bit_halves.hpp"

#if defined(__SSE4_1__)
#include <smmintrin.h>
#endif

namespace branchwise {

#if defined(__SSE4_1__)

class LaneHalves {
  public:
    LaneHalves(const Problem& problem, const BitLayout& layout)
        : many_classes_(problem.n_classes > 2),
          serves_(ValueHalves::serve(problem) &&
                  std::max({problem.cases_in_leaf, problem.cases_in_branch,
                            problem.weight_in_leaf}) <= 1 &&
                  std::any_of(layout.fields().begin(), layout.fields().end(),
                              [](const Field& field) { return field.values > 2; })),
          four_do_(std::all_of(layout.fields().begin(), layout.fields().end(),
                               [](const Field& field) { return field.values <= 4; })) {}

    // Whether all halves of n rows that differ are told apart, as in groups/two_groups.hpp.
    bool serves(double n, double noise) const {
        constexpr double few_rows = Members::most;
        constexpr double least_apart = 16 / (few_rows * few_rows * few_rows * few_rows);
        return serves_ && n <= few_rows && 4 * (n * tie + noise) < least_apart;
    }

    // Before the columns of a node of n rows.
    void begin(uint32_t n, uint32_t of_last) {
        n_ = n;
        of_last_ = of_last;
        n_and_share_ = _mm_set1_epi16(short(n | (uint32_t(0) - of_last) << 8));
    }

    // Take in the values of a column and find the best halves; returns whether they are sure.
    bool find(const Field& field, bool joining, const Members& members, uint64_t rows,
              uint64_t of_class) {
        Found& found = found_[1 - best_];
        // Not column by column: how many values the next one has is anybody's guess, too.
        if (four_do_)
            return read_all<4>(field, joining, members, rows, of_class, found) && find_in<4>(found);
        if (field.values <= few)
            return read_all<few>(field, joining, members, rows, of_class, found) &&
                   find_in<few>(found);
        if (!read_seen(field, joining, members, rows, of_class, found)) return false;
        return found.n_values <= few ? find_in<few>(found) : find_in<most>(found);
    }

    // Of the column that was read last.
    size_t n_values() const { return found_[1 - best_].n_values; }
    bool is_pure() const { return found_[1 - best_].left == (n_ - of_last_) << 8; }
    double drop() const {
        const uint32_t left = found_[1 - best_].left;
        const int32_t size = int32_t(left >> 8), of_last = int32_t(left & 0xff);
        const int32_t apart = of_last * int32_t(n_) - size * int32_t(of_last_);
        const int32_t sizes = std::max(size * (int32_t(n_) - size), 1);
        return 2 * (double(apart * apart) / double(sizes)) / double(n_);
    }
    // Keep it as the best, if it is.
    void keep(bool is_best) { best_ ^= uint32_t(is_best); }

    // The values of the best column.
    Halves halves() const {
        const Found& found = found_[best_];
        const uint64_t first_value = found.seen & (~found.seen + 1), left = values_on_left(found);
        Halves halves;
        halves.first = left & first_value ? left : found.seen & ~left;
        halves.second = found.seen & ~halves.first;
        return halves;
    }

  private:
    static constexpr size_t few = 8, most = 16;  // values
    // Fractions of whole numbers of so few rows differ as single numbers.
    static constexpr uint32_t told_in_singles = 28;

    struct Found {
        __m128i ends[2];  // the left half that ends with the value of each lane
        uint64_t seen;    // values that have rows
        size_t n_values;  // so many
        uint32_t left;    // the best left half
        bool direct;      // a lane is a value
    };

    static uint64_t lane_of(uint64_t rows, uint64_t of_class) {
        return uint64_t(__builtin_popcountll(rows)) << 8 |
               uint64_t(__builtin_popcountll(rows & of_class));
    }

    // A lane for each of `n` values at most. The rows of the last one, which has no set, are what
    // is left.
    template <size_t n>
    bool read_all(const Field& field, bool joining, const Members& members, uint64_t rows,
                  uint64_t of_class, Found& found) {
        const uint64_t* sets = members.sets(field);
        uint64_t half[2] = {};
        for (size_t h = 0; h < n / 4; ++h) {
            for (size_t v = 4; v-- > 0;)
                half[h] = half[h] << 16 | lane_of(sets[4 * h + v] & rows, of_class);
        }
        const __m128i number = _mm_set_epi16(7, 6, 5, 4, 3, 2, 1, 0);
        const __m128i last = _mm_set1_epi16(short(field.values - 1));
        __m128i lanes = _mm_set_epi64x(int64_t(half[1]), int64_t(half[0]));
        lanes = _mm_and_si128(lanes, _mm_cmplt_epi16(number, last));
        __m128i sum = _mm_add_epi16(lanes, _mm_shuffle_epi32(lanes, 0x4e));
        sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xb1));
        sum = _mm_add_epi16(sum, _mm_shufflelo_epi16(sum, 0xb1));
        sum = _mm_shuffle_epi32(sum, 0);
        const __m128i left = _mm_sub_epi16(_mm_set1_epi16(short(n_ << 8 | of_last_)), sum);
        if (joining && _mm_cvtsi128_si32(left) & 0xffff) return false;
        lanes = _mm_or_si128(lanes, _mm_and_si128(left, _mm_cmpeq_epi16(number, last)));
        lanes_[0] = lanes;
        const __m128i empty = _mm_cmpeq_epi16(lanes, _mm_setzero_si128());
        found.seen = ~uint32_t(_mm_movemask_epi8(_mm_packs_epi16(empty, empty))) & 0xff;
        found.n_values = size_t(__builtin_popcountll(found.seen));
        found.direct = true;
        return true;
    }

    // A lane for every value that has rows.
    bool read_seen(const Field& field, bool joining, const Members& members, uint64_t rows,
                   uint64_t of_class, Found& found) {
        alignas(16) uint16_t lanes[Field::most_values + 1 + most];
        size_t n = 0;
        found.seen = 0;
        const auto add = [&](uint32_t value, uint64_t those) {
            lanes[n] = uint16_t(lane_of(those, of_class));
            n += those != 0;
            found.seen |= uint64_t(those != 0) << value;
        };
        const uint64_t left = members.each_value(field, rows, add);
        if (joining && left) return false;
        add(field.values - 1, left);
        found.n_values = n;
        found.direct = false;
        if (n > (many_classes_ ? few : most)) return false;
        std::fill_n(lanes + n, most, uint16_t(0));
        for (size_t k = 0; k < 2; ++k)
            lanes_[k] = _mm_load_si128(reinterpret_cast<const __m128i*>(lanes + 8 * k));
        return true;
    }

    // The left half that ends with each value, in `n` lanes.
    template <size_t n>
    bool find_in(Found& found) {
        constexpr size_t registers = n > 8 ? 2 : 1;
        __m128i lanes[registers], turned[registers], left[registers];
        for (size_t k = 0; k < registers; ++k) {
            lanes[k] = lanes_[k];
            turned[k] = turn(lanes[k]);
            left[k] = _mm_setzero_si128();
        }
#pragma GCC unroll 16
        for (size_t u = 0; u < n; ++u) {
            const __m128i lane = copies(u % 8);
            const __m128i own = _mm_shuffle_epi8(lanes[u / 8], lane);
            const __m128i other = _mm_shuffle_epi8(turned[u / 8], lane);
            for (size_t k = 0; k < registers; ++k) {
                const __m128i is_larger =
                    _mm_cmpgt_epi16(_mm_maddubs_epi16(lanes[k], other), _mm_setzero_si128());
                left[k] = _mm_add_epi16(left[k], _mm_andnot_si128(is_larger, own));
            }
        }
        std::copy_n(left, registers, found.ends);
        return choose<registers>(left, found.left);
    }

    // The best left half; of equals the smallest, which is the first.
    template <size_t registers>
    bool choose(const __m128i (&left)[registers], uint32_t& best) const {
        const __m128i ones = _mm_set1_epi16(-1);
        __m128 score[2 * registers];
        for (size_t k = 0; k < registers; ++k) find_scores(left[k], &score[2 * k]);
        __m128 top = score[0];
        for (size_t q = 1; q < 2 * registers; ++q) top = _mm_max_ps(top, score[q]);
        top = _mm_max_ps(top, _mm_shuffle_ps(top, top, 0x4e));
        top = _mm_max_ps(top, _mm_shuffle_ps(top, top, 0xb1));
        __m128i first = ones, is_best[registers];
        for (size_t k = 0; k < registers; ++k) {
            is_best[k] = _mm_packs_epi32(_mm_castps_si128(_mm_cmpeq_ps(score[2 * k], top)),
                                         _mm_castps_si128(_mm_cmpeq_ps(score[2 * k + 1], top)));
            // Others are larger than any.
            first = _mm_min_epu16(first, _mm_or_si128(left[k], _mm_xor_si128(is_best[k], ones)));
        }
        best = uint32_t(_mm_cvtsi128_si32(_mm_minpos_epu16(first))) & 0xffff;
        if (_mm_cvtss_f32(top) <= 0) return false;
        if (!many_classes_ && n_ <= told_in_singles) return true;
        __m128i differ = _mm_setzero_si128();
        for (size_t k = 0; k < registers; ++k) {
            const __m128i from_best = _mm_xor_si128(left[k], _mm_set1_epi16(short(best)));
            differ = _mm_or_si128(differ, _mm_and_si128(is_best[k], from_best));
        }
        return _mm_testz_si128(differ, differ);
    }

    // L rows, l of which are of the last class, on the left of N and n have the score
    // (l N - n L)^2 / (L (N - L)), both of which are exact.
    void find_scores(__m128i left, __m128* scores) const {
        const __m128i zero = _mm_setzero_si128(), size = _mm_srli_epi16(left, 8);
        const __m128i apart = _mm_maddubs_epi16(left, n_and_share_);
        const __m128i others = _mm_sub_epi16(_mm_set1_epi16(short(n_)), size);
        // Nothing is apart where no others are.
        const __m128i sizes = _mm_max_epi16(_mm_mullo_epi16(size, others), _mm_set1_epi16(1));
        const __m128i apart_of[] = {_mm_unpacklo_epi16(apart, zero),
                                    _mm_unpackhi_epi16(apart, zero)};
        const __m128i sizes_of[] = {_mm_unpacklo_epi16(sizes, zero),
                                    _mm_unpackhi_epi16(sizes, zero)};
        for (size_t h = 0; h < 2; ++h)
            scores[h] = _mm_div_ps(_mm_cvtepi32_ps(_mm_madd_epi16(apart_of[h], apart_of[h])),
                                   _mm_cvtepi32_ps(sizes_of[h]));
    }

    // The rows of the last class where sizes were, and what the size is less than nothing where
    // these were: of two values, one turned, products add up to more than nothing where the turned
    // one has the larger share.
    static __m128i turn(__m128i lanes) {
        const __m128i negative = _mm_sub_epi16(_mm_setzero_si128(), _mm_srli_epi16(lanes, 8));
        return _mm_or_si128(_mm_slli_epi16(lanes, 8),
                            _mm_and_si128(negative, _mm_set1_epi16(0xff)));
    }

    // A shuffle that copies one lane to all.
    static __m128i copies(size_t lane) { return _mm_set1_epi16(short(lane * 0x202 + 0x100)); }

    // Left halves are contained in one another: the values on the left are those whose own left
    // half is no larger.
    static uint64_t values_on_left(const Found& found) {
        const __m128i best = _mm_set1_epi16(short(found.left));
        const __m128i larger = _mm_packs_epi16(_mm_cmpgt_epi16(found.ends[0], best),
                                               _mm_cmpgt_epi16(found.ends[1], best));
        const uint64_t of_lanes = ~uint64_t(_mm_movemask_epi8(larger));
        if (found.direct) return of_lanes & found.seen;
        uint64_t values = 0, lane = 0;
        for (uint64_t left = found.seen; left; left &= left - 1, ++lane)
            values |= (left & (~left + 1)) & (~(of_lanes >> lane & 1) + 1);
        return values;
    }

    const bool many_classes_;  // of the table
    const bool serves_;
    const bool four_do_;  // lanes, for every column
    uint32_t n_ = 0, of_last_ = 0;
    uint32_t best_ = 0;  // where the best column is, beside the one that is read
    __m128i n_and_share_ = {};
    __m128i lanes_[2] = {};
    Found found_[2] = {};
};

#else

// Values are halved one after the other there (bit_rows/bit_halves.hpp).
class LaneHalves {
  public:
    LaneHalves(const Problem&, const BitLayout&) {}
    bool serves(double, double) const { return false; }
    void begin(uint32_t, uint32_t) {}
    bool find(const Field&, bool, const Members&, uint64_t, uint64_t) { return false; }
    size_t n_values() const { return 0; }
    bool is_pure() const { return false; }
    double drop() const { return no_score; }
    void keep(bool) {}
    Halves halves() const { return {}; }
};

#endif

}  // namespace branchwise
