// Rows by the factors that they have on a path: native implementation of the Factors of
// branchwise/shap/products.py.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace branchwise {

// Rows that have the same factors on a path form a group. `zero` are the positions whose factor
// is 0 (of the first 64). Where all factors are 0 or 1, the group is `whole`, and `zero` says it
// all; other groups have a line of `width` factors.
class FactorGroups {
  public:
    static constexpr size_t most_whole = 64;

    size_t width = 0;
    std::vector<uint64_t> zero;
    std::vector<uint8_t> whole;

    size_t size() const { return zero.size(); }
    bool all_whole() const { return factors_.empty(); }

    void clear(size_t new_width) {
        width = new_width;
        zero.clear();
        whole.clear();
        lines_.clear();
        factors_.clear();
    }

    // A group of no factors, before the root.
    void begin() {
        clear(0);
        add_whole(0);
    }

    void add_whole(uint64_t zeros) {
        zero.push_back(zeros);
        whole.push_back(1);
        lines_.push_back(0);
    }

    void add(const double* line) {
        const uint64_t zeros = zeros_of(line, width);
        bool plain = width <= most_whole;
        for (size_t i = 0; i < width; ++i) plain = plain && (line[i] == 0.0 || line[i] == 1.0);
        if (plain) return add_whole(zeros);
        zero.push_back(zeros);
        whole.push_back(0);
        lines_.push_back(factors_.size());
        factors_.insert(factors_.end(), line, line + width);
    }

    // Write the factors of a group.
    void copy_line(size_t group, double* to) const {
        if (!whole[group])
            std::copy_n(factors_.data() + lines_[group], width, to);
        else
            for (size_t i = 0; i < width; ++i) to[i] = zero[group] >> i & 1 ? 0.0 : 1.0;
    }

    bool has_line(size_t group, const double* line) const {
        return !whole[group] && std::equal(line, line + width, factors_.data() + lines_[group]);
    }

    static uint64_t zeros_of(const double* line, size_t width) {
        uint64_t zeros = 0;
        for (size_t i = 0; i < std::min(width, most_whole); ++i)
            zeros |= uint64_t(line[i] == 0.0) << i;
        return zeros;
    }

  private:
    std::vector<size_t> lines_;
    std::vector<double> factors_;
};

// The group of each row. Rows of no use are left out.
struct Member {
    uint32_t row;
    uint32_t group;
};

inline uint32_t row_of(const Member& member) { return member.row; }
inline uint32_t row_of(uint32_t row) { return row; }

// Finds a group by its factors.
class GroupIndex {
  public:
    void clear() {
        std::fill(slots_.begin(), slots_.end(), empty);
        used_ = 0;
    }

    // The whole group with these zeros, which is added if there is none.
    uint32_t find_whole(FactorGroups& groups, uint64_t zeros) {
        return find(
            groups.size(), mixed(zeros),
            [&](uint32_t group) { return groups.whole[group] && groups.zero[group] == zeros; },
            [&] { groups.add_whole(zeros); });
    }

    // The same for groups that have their zeros only.
    template <typename Add>
    uint32_t find_set(const std::vector<uint64_t>& zero, uint64_t zeros, const Add& add) {
        return find(
            zero.size(), mixed(zeros), [&](uint32_t group) { return zero[group] == zeros; }, add);
    }

    // The group with these factors, not all of them 0 or 1.
    uint32_t find_line(FactorGroups& groups, const double* line) {
        uint64_t hash = 1;
        for (size_t i = 0; i < groups.width; ++i) {
            uint64_t bits;
            std::memcpy(&bits, line + i, sizeof bits);
            hash = mixed(hash ^ bits);
        }
        return find(
            groups.size(), hash, [&](uint32_t group) { return groups.has_line(group, line); },
            [&] { groups.add(line); });
    }

  private:
    static constexpr uint32_t empty = ~uint32_t(0);

    static uint64_t mixed(uint64_t bits) {
        bits = (bits ^ 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
        return bits ^ bits >> 32;
    }

    template <typename IsIt, typename Add>
    uint32_t find(size_t n_groups, uint64_t hash, const IsIt& is_it, const Add& add) {
        if (2 * (used_ + 1) > slots_.size()) grow();
        size_t at = hash & (slots_.size() - 1);
        for (; slots_[at] != empty; at = (at + 1) & (slots_.size() - 1))
            if (hashes_[at] == hash && is_it(slots_[at])) return slots_[at];
        slots_[at] = uint32_t(n_groups);
        hashes_[at] = hash;
        add();
        ++used_;
        return slots_[at];
    }

    void grow() {
        const std::vector<uint32_t> slots = std::move(slots_);
        const std::vector<uint64_t> hashes = std::move(hashes_);
        slots_.assign(std::max<size_t>(2 * slots.size(), 64), empty);
        hashes_.resize(slots_.size());
        for (size_t i = 0; i < slots.size(); ++i) {
            if (slots[i] == empty) continue;
            size_t at = hashes[i] & (slots_.size() - 1);
            while (slots_[at] != empty) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = slots[i];
            hashes_[at] = hashes[i];
        }
    }

    std::vector<uint32_t> slots_;
    std::vector<uint64_t> hashes_;
    size_t used_ = 0;
};

}  // namespace branchwise
