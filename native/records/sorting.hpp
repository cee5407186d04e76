// Sorting numbers: a radix sort on keys whose order is that of the numbers.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace branchwise {

// A number as an unsigned key, and the position it came from.
struct Numbered {
    uint64_t key;
    uint32_t position;
};

inline uint64_t key_of(double number) {
    number += 0.0;  // -0.0 and 0.0 are one number
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t(1) << 63);
}

inline double number_of(uint64_t key) {
    const uint64_t bits = key >> 63 ? key & ~(uint64_t(1) << 63) : ~key;
    double number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

// The known numbers of some rows in ascending order; equal ones in row order.
inline void sort_numbers(const double* numbers, const std::vector<uint32_t>& rows,
                         std::vector<Numbered>& sorted) {
    sorted.clear();
    sorted.reserve(rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
        if (!std::isnan(numbers[rows[i]]))
            sorted.push_back({key_of(numbers[rows[i]]), uint32_t(i)});
    constexpr int digit_bits = 11;
    constexpr size_t digits = size_t(1) << digit_bits;
    std::vector<Numbered> other(sorted.size());
    for (int shift = 0; shift < 64; shift += digit_bits) {
        size_t start[digits + 1] = {};
        for (const Numbered& item : sorted) ++start[((item.key >> shift) & (digits - 1)) + 1];
        bool one_digit = false;
        for (size_t d = 1; d <= digits; ++d) one_digit = one_digit || start[d] == sorted.size();
        if (one_digit) continue;  // all alike here, as in the upper bits of small integers
        for (size_t d = 1; d <= digits; ++d) start[d] += start[d - 1];
        for (const Numbered& item : sorted)
            other[start[(item.key >> shift) & (digits - 1)]++] = item;
        sorted.swap(other);
    }
}

}  // namespace branchwise
