// Whole numbers of many digits, and their ratios rounded once: the native implementation of what
// branchwise/data/exact_sums.py and branchwise/data/target.py do with Python's integers.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace branchwise {

// A number that is not negative, in words from the lowest up.
class Wide {
  public:
    // Squares of targets have up to 1,000 bits, times the square of a weight and those of sums.
    static constexpr int most_words = 24;

    int bits() const { return n_ == 0 ? 0 : 64 * n_ - __builtin_clzll(words_[n_ - 1]); }
    bool is_zero() const { return n_ == 0; }

    // Add value * 2^shift.
    void add(uint64_t value, int shift) {
        if (!value) return;
        const int at = shift / 64, by = shift % 64;
        const uint64_t low = value << by, high = by ? value >> (64 - by) : 0;
        if (at + 2 >= most_words) return;  // beyond what checked arguments can make
        extend(at + 2);
        bool carry = __builtin_add_overflow(words_[at], low, &words_[at]);
        uint64_t next = high + carry;  // high is less than the largest word where it matters
        for (int i = at + 1; next; ++i) {
            extend(i + 1);
            next = __builtin_add_overflow(words_[i], next, &words_[i]);
        }
        trim();
    }

    Wide times(const Wide& other) const {
        Wide product;
        product.extend(std::min(n_ + other.n_, most_words));
        for (int i = 0; i < n_; ++i) {
            uint64_t carry = 0;
            for (int j = 0; j < other.n_ && i + j < product.n_; ++j) {
                const unsigned __int128 sum =
                    static_cast<unsigned __int128>(words_[i]) * other.words_[j] +
                    product.words_[i + j] + carry;
                product.words_[i + j] = uint64_t(sum);
                carry = uint64_t(sum >> 64);
            }
            if (i + other.n_ < product.n_) product.words_[i + other.n_] = carry;
        }
        product.trim();
        return product;
    }

    Wide shifted(int by) const {
        Wide result;
        for (int i = 0; i < n_; ++i) result.add(words_[i], 64 * i + by);
        return result;
    }

    bool less_than(const Wide& other) const {
        if (n_ != other.n_) return n_ < other.n_;
        for (int i = n_; i-- > 0;)
            if (words_[i] != other.words_[i]) return words_[i] < other.words_[i];
        return false;
    }

    // This less another number, which is not larger.
    Wide minus(const Wide& other) const {
        Wide result = *this;
        bool borrow = false;
        for (int i = 0; i < n_; ++i) {
            const uint64_t taken = i < other.n_ ? other.words_[i] : 0;
            uint64_t left;
            const bool first = __builtin_sub_overflow(words_[i], taken, &left);
            const bool second = __builtin_sub_overflow(left, uint64_t(borrow), &left);
            result.words_[i] = left;
            borrow = first || second;
        }
        result.trim();
        return result;
    }

    // The bits from one on, up to 192 of them, and whether one below it is set.
    struct Part {
        uint64_t words[3];  // from the highest down
        bool rest;
    };
    Part part(int from) const {
        Part found{{0, 0, 0}, false};
        for (int i = 0; i < 3; ++i) found.words[2 - i] = word_at(from + 64 * i);
        for (int bit = 0; bit < from && !found.rest; bit += 64) {
            const uint64_t word = word_at(bit);
            const int left = from - bit;
            found.rest = (left >= 64 ? word : word & ((uint64_t(1) << left) - 1)) != 0;
        }
        return found;
    }

  private:
    // The 64 bits from one on, which may be below the lowest.
    uint64_t word_at(int bit) const {
        const int at = bit >= 0 ? bit / 64 : -((63 - bit) / 64), by = bit - 64 * at;
        const uint64_t low = at >= 0 && at < n_ ? words_[at] : 0;
        const uint64_t high = at + 1 >= 0 && at + 1 < n_ ? words_[at + 1] : 0;
        return by ? low >> by | high << (64 - by) : low;
    }

    void extend(int n) {
        for (; n_ < n; ++n_) words_[n_] = 0;
    }
    void trim() {
        while (n_ > 0 && !words_[n_ - 1]) --n_;
    }

    int n_ = 0;
    uint64_t words_[most_words + 1];
};

// top / bottom^power * 2^exponent, rounded once to the nearest float64. `bottom` is below 2^54
// and above 0, `power` is 1 or 2.
inline double ratio(const Wide& top, uint64_t bottom, int power, int exponent) {
    if (top.is_zero()) return 0.0;
    // As many bits that the quotient has at least 56 of them; dividing twice by a number and
    // leaving out what remains is dividing once by its square.
    const int bottom_bits = power * (64 - __builtin_clzll(bottom));
    const int from = top.bits() - bottom_bits - 57;
    Wide::Part part = top.part(from);
    bool rest = part.rest;
    for (int k = 0; k < power; ++k) {
        uint64_t remainder = 0;
        for (uint64_t& word : part.words) {
            const unsigned __int128 whole = static_cast<unsigned __int128>(remainder) << 64 | word;
            word = uint64_t(whole / bottom);
            remainder = uint64_t(whole % bottom);
        }
        rest = rest || remainder;
    }
    const uint64_t quotient = part.words[2];
    int scale = from + exponent;  // of its lowest bit
    const int bits = 64 - __builtin_clzll(quotient);
    const int dropped = std::max(bits - 53, -1074 - scale);
    if (dropped <= 0) return std::ldexp(double(quotient), scale);
    if (dropped > 63) return 0.0;
    uint64_t kept = quotient >> dropped;
    const uint64_t below = quotient & ((uint64_t(1) << dropped) - 1);
    const uint64_t half = uint64_t(1) << (dropped - 1);
    if (below > half || (below == half && (rest || (kept & 1)))) ++kept;
    return std::ldexp(double(kept), scale + dropped);
}

}  // namespace branchwise
