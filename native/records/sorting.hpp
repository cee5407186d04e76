// Sorting numbers: a radix sort on keys whose order is that of the numbers.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/distinct_numbers.hpp"
#include "core/memory.hpp"

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
// `differ`: the bits in which keys do; `other`: room for as many.
template <typename List>
void sort_by_key(List& sorted, List& other, uint64_t differ) {
    constexpr int digit_bits = 11, n_digits = 3;
    constexpr size_t digits = size_t(1) << digit_bits;
    if (!differ) return;
    const int highest = 64 - __builtin_clzll(differ);
    const int low = std::max(highest - n_digits * digit_bits, 0);
    uint32_t starts[n_digits][digits] = {};
    for (const Numbered& item : sorted)
        for (int d = 0; d < n_digits; ++d)
            ++starts[d][(item.key >> low >> (d * digit_bits)) & (digits - 1)];
    other.resize(sorted.size());
    for (int shift = low, d = 0; shift < highest; shift += digit_bits, ++d) {
        uint32_t* const start = starts[d];
        uint32_t before = 0;
        for (size_t cell = 0; cell < digits; ++cell) before += std::exchange(start[cell], before);
        const Numbered* const end = sorted.data() + sorted.size();
        Numbered* const out = other.data();
        for (const Numbered* item = sorted.data(); item < end; ++item)
            out[start[(item->key >> shift) & (digits - 1)]++] = *item;
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

inline void sort_by_key(std::vector<Numbered>& sorted) {
    uint64_t any = 0, all = ~uint64_t(0);
    for (const Numbered& item : sorted) {
        any |= item.key;
        all &= item.key;
    }
    std::vector<Numbered> other;
    sort_by_key(sorted, other, any & ~all);
}

// An entry of a sorted list: the rank of a number among the distinct ones of its column, and the
// place of its record.
struct Ranked {
    uint32_t rank;
    uint32_t place;  // its position, from the node's begin; and its label, see Records
};

// The known numbers of a column in ascending order.
struct SortedList {
    Scratch<Ranked> entries;  // with room for those of all nodes
    size_t n = 0;
};

// Sorts the numbers of one column after the other, in the same memory.
class NumberSorter {
  public:
    // The known numbers of some rows, equal ones in row order, in lists of so much room; and the
    // distinct ones.
    DistinctNumbers sort(const double* numbers, const std::vector<uint32_t>& rows, size_t room,
                         SortedList& sorted) {
        uint64_t any = 0, all = ~uint64_t(0);
        keyed_.resize(rows.size() + 1);
        // Whether a number is known is anybody's guess: all are written down, one over the other,
        // until one is.
        Numbered* next = keyed_.data();
        for (size_t i = 0; i < rows.size(); ++i) {
            const double number = numbers[rows[i]];
            const bool known = !std::isnan(number);
            *next = {key_of(number), uint32_t(i)};
            any |= known ? next->key : 0;
            all &= known ? next->key : ~uint64_t(0);
            next += known;
        }
        keyed_.resize(size_t(next - keyed_.data()));
        sort_by_key(keyed_, other_, any & ~all);
        sorted.n = keyed_.size();
        sorted.entries.resize(room);
        Ranked* const entry = sorted.entries.data();
        uint32_t n_values = 0;
        for (size_t i = 0; i < keyed_.size(); ++i) {
            n_values += !i || keyed_[i].key != keyed_[i - 1].key;
            entry[i] = {n_values - 1, keyed_[i].position};
        }
        if (n_values <= most_listed) {
            std::vector<double> values(n_values);
            for (size_t i = 0; i < keyed_.size(); ++i)
                values[entry[i].rank] = number_of(keyed_[i].key);
            return DistinctNumbers(std::move(values));
        }
        Scratch<uint32_t> row_of_rank(n_values);
        for (size_t i = 0; i < keyed_.size(); ++i)
            row_of_rank[entry[i].rank] = rows[entry[i].place];
        return {numbers, std::move(row_of_rank)};
    }

    // Whether neighbours of those sorted last are further apart than this.
    bool all_apart(double apart) const {
        for (size_t i = 1; i < keyed_.size(); ++i)
            if (keyed_[i].key != keyed_[i - 1].key &&
                !(number_of(keyed_[i - 1].key) + apart < number_of(keyed_[i].key)))
                return false;
        return true;
    }

  private:
    // Up to so many numbers are listed: the memory is little, and a number is one load.
    static constexpr size_t most_listed = size_t(1) << 18;

    Scratch<Numbered> keyed_, other_;
};

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
        ranks.clear();
        ranks.reserve(rows.size());  // not written, as most columns have more numbers
        // Unlike a sort, probing is slow if keys collide; who tries to make them do so is refused.
        size_t probes_left = 8 * rows.size() + n_slots;
        for (const uint32_t row : rows) {
            const double number = numbers[row];
            if (std::isnan(number)) {
                ranks.push_back(none);
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
            ranks.push_back(slots_[at].number);
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
