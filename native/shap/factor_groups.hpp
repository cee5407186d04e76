// Rows by the factors that they have on a path: native implementation of the Factors of
// branchwise/shap/products.py.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace branchwise {

// Rows that have the same factors on a path form a group: `factors` has a line of `width`
// numbers for each. `zero` are the positions whose factor is 0 (of the first 64), `whole` says
// whether all factors are 0 or 1.
struct FactorGroups {
    size_t width = 0;
    std::vector<double> factors;
    std::vector<uint64_t> zero;
    std::vector<uint8_t> whole;

    size_t size() const { return zero.size(); }
    const double* line(size_t group) const { return factors.data() + group * width; }

    void clear(size_t new_width) {
        width = new_width;
        factors.clear();
        zero.clear();
        whole.clear();
    }

    void add(const double* line) {
        uint64_t zeros = 0;
        bool plain = true;
        for (size_t i = 0; i < width; ++i) {
            if (line[i] == 0.0)
                zeros |= i < 64 ? uint64_t(1) << i : 0;
            else
                plain = plain && line[i] == 1.0;
        }
        factors.insert(factors.end(), line, line + width);
        zero.push_back(zeros);
        whole.push_back(plain);
    }
};

// The group of each row. Rows of no use are left out.
struct Member {
    uint32_t row;
    uint32_t group;
};

// Finds a group by its factors.
class GroupIndex {
  public:
    void clear() {
        std::fill(slots_.begin(), slots_.end(), empty);
        used_ = 0;
    }

    // The group with these factors, which is added if there is none.
    uint32_t find_or_add(FactorGroups& groups, const double* line) {
        if (2 * (used_ + 1) > slots_.size()) grow(groups);
        uint32_t& slot = slot_of(groups, line);
        if (slot == empty) {
            slot = uint32_t(groups.size());
            groups.add(line);
            ++used_;
        }
        return slot;
    }

  private:
    static constexpr uint32_t empty = ~uint32_t(0);

    uint32_t& slot_of(const FactorGroups& groups, const double* line) {
        uint64_t hash = 0x9e3779b97f4a7c15u;
        for (size_t i = 0; i < groups.width; ++i) {
            uint64_t bits;
            std::memcpy(&bits, line + i, sizeof bits);
            hash = (hash ^ bits) * 0xff51afd7ed558ccdu;
            hash ^= hash >> 32;
        }
        for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
            uint32_t& slot = slots_[at];
            if (slot == empty || std::equal(line, line + groups.width, groups.line(slot)))
                return slot;
        }
    }

    void grow(const FactorGroups& groups) {
        slots_.assign(std::max<size_t>(2 * slots_.size(), 64), empty);
        for (size_t group = 0; group < groups.size(); ++group)
            slot_of(groups, groups.line(group)) = uint32_t(group);
    }

    std::vector<uint32_t> slots_;
    size_t used_ = 0;
};

}  // namespace branchwise
