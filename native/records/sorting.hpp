// Sorting numbers: a radix sort on keys whose order is that of the numbers.

#pragma once

#include <algorithm>
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

// Ascending, equal keys in the order they are in. Keys are sorted by the highest bits in which
// they differ, three digits of them; keys that are alike there, few as a rule, among themselves.
inline void sort_by_key(std::vector<Numbered>& sorted) {
    constexpr int digit_bits = 11, n_digits = 3;
    constexpr size_t digits = size_t(1) << digit_bits;
    uint64_t any = 0, all = ~uint64_t(0);
    for (const Numbered& item : sorted) {
        any |= item.key;
        all &= item.key;
    }
    if (sorted.empty() || any == all) return;
    const int highest = 64 - __builtin_clzll(any ^ all);
    const int low = std::max(highest - n_digits * digit_bits, 0);
    std::vector<Numbered> other(sorted.size());
    for (int shift = low; shift < highest; shift += digit_bits) {
        size_t start[digits + 1] = {};
        for (const Numbered& item : sorted) ++start[((item.key >> shift) & (digits - 1)) + 1];
        for (size_t d = 1; d <= digits; ++d) start[d] += start[d - 1];
        for (const Numbered& item : sorted)
            other[start[(item.key >> shift) & (digits - 1)]++] = item;
        sorted.swap(other);
    }
    if (low == 0) return;
    const auto smaller = [](const Numbered& a, const Numbered& b) { return a.key < b.key; };
    for (auto begin = sorted.begin(); begin != sorted.end();) {
        auto end = begin + 1;
        bool in_order = true;
        for (; end != sorted.end() && end->key >> low == begin->key >> low; ++end)
            in_order = in_order && !smaller(*end, *(end - 1));
        if (!in_order) std::stable_sort(begin, end, smaller);
        begin = end;
    }
}

// The known numbers of some rows in ascending order; equal ones in row order.
inline void sort_numbers(const double* numbers, const std::vector<uint32_t>& rows,
                         std::vector<Numbered>& sorted) {
    sorted.clear();
    sorted.reserve(rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
        if (!std::isnan(numbers[rows[i]]))
            sorted.push_back({key_of(numbers[rows[i]]), uint32_t(i)});
    sort_by_key(sorted);
}

}  // namespace branchwise
