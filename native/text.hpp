// Numbering distinct texts in the order in which they appear: a hash table for many
// texts of which few are distinct, such as a column of categories read as strings.

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace branchwise {

class TextNumbers {
  public:
    TextNumbers() : slots_(256) {}

    // The number of a text; `row` is remembered for one that is new.
    uint32_t number(const uint8_t* text, size_t length, int64_t row) {
        const uint64_t hash = hash_of(text, length);
        size_t at = hash & (slots_.size() - 1);
        for (; slots_[at].number != none; at = (at + 1) & (slots_.size() - 1)) {
            const Slot& slot = slots_[at];
            if (slot.hash == hash && slot.length == length && (!length || std::memcmp(slot.text, text, length) == 0))
                return slot.number;
        }
        const auto number = uint32_t(firsts_.size());
        slots_[at] = {hash, text, length, number};
        firsts_.push_back(row);
        if (2 * firsts_.size() > slots_.size()) grow();
        return number;
    }

    // The row in which each text appeared first.
    const std::vector<int64_t>& firsts() const { return firsts_; }

  private:
    static constexpr uint32_t none = ~uint32_t(0);

    struct Slot {
        uint64_t hash = 0;
        const uint8_t* text = nullptr;
        size_t length = 0;
        uint32_t number = none;
    };

    static uint64_t mixed(uint64_t value) {
        value *= 0x9e3779b97f4a7c15ULL;
        return value ^ (value >> 29);
    }

    static uint64_t hash_of(const uint8_t* text, size_t length) {
        uint64_t hash = mixed(length + 1);
        for (; length >= 8; text += 8, length -= 8) {
            uint64_t word;
            std::memcpy(&word, text, 8);
            hash = mixed(hash ^ word);
        }
        uint64_t word = 0;
        if (length) std::memcpy(&word, text, length);
        return mixed(mixed(hash ^ word));
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.number == none) continue;
            size_t at = slot.hash & (slots_.size() - 1);
            while (slots_[at].number != none) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = slot;
        }
    }

    std::vector<Slot> slots_;  // a power of two of them, at most half full
    std::vector<int64_t> firsts_;
};

}  // namespace branchwise
