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

// The distinct ones among the known numbers of some rows, if they are few: then they need not be
// sorted. A hash table of keys; ranks follow once all have been seen.
class FewNumbers {
  public:
    static constexpr size_t most = 4096;

    // False where there are more. `ranks` gets that of each row, the number of distinct ones where
    // it is missing.
    bool find(const double* numbers, const std::vector<uint32_t>& rows,
              std::vector<uint16_t>& ranks) {
        slots_.assign(n_slots, {0, none});
        keys_.clear();
        ranks.resize(rows.size());
        // Unlike a sort, probing is slow if keys collide; who tries to make them do so is refused.
        size_t probes_left = 8 * rows.size() + n_slots;
        for (size_t i = 0; i < rows.size(); ++i) {
            const double number = numbers[rows[i]];
            if (std::isnan(number)) {
                ranks[i] = none;
                continue;
            }
            const uint64_t key = key_of(number);
            size_t at = size_t((key * 0x9e3779b97f4a7c15u) >> (64 - slot_bits));
            while (slots_[at].number != none && slots_[at].key != key) {
                at = (at + 1) % n_slots;
                if (!--probes_left) return false;
            }
            if (slots_[at].number == none) {
                if (keys_.size() == most) return false;
                slots_[at] = {key, uint16_t(keys_.size())};
                keys_.push_back(key);
            }
            ranks[i] = slots_[at].number;
        }
        to_ranks(ranks);
        return true;
    }

    const std::vector<uint64_t>& sorted_keys() const { return keys_; }

  private:
    static constexpr int slot_bits = 14;
    static constexpr size_t n_slots = size_t(1) << slot_bits;
    static constexpr uint16_t none = 0xffff;

    struct Slot {
        uint64_t key;
        uint16_t number;  // in the order of appearance
    };

    void to_ranks(std::vector<uint16_t>& ranks) {
        std::vector<Numbered> order;
        for (size_t i = 0; i < keys_.size(); ++i) order.push_back({keys_[i], uint32_t(i)});
        std::sort(order.begin(), order.end(),
                  [](const Numbered& a, const Numbered& b) { return a.key < b.key; });
        std::vector<uint16_t> rank(size_t(none) + 1, uint16_t(order.size()));
        for (size_t i = 0; i < order.size(); ++i) {
            rank[order[i].position] = uint16_t(i);
            keys_[i] = order[i].key;
        }
        for (uint16_t& one : ranks) one = rank[one];
    }

    std::vector<Slot> slots_;
    std::vector<uint64_t> keys_;
};

}  // namespace branchwise
