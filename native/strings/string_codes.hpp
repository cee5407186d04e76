// Numbering distinct texts in the order in which they appear: a hash table for many
// texts of which few are distinct, such as a column of categories read as strings.

#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace branchwise {

// What hashes depend on: drawn once for each process, so that nobody can know texts that
// collide. Numbers do not depend on it.
struct HashKey {
    uint64_t word[4];

    static const HashKey& of_process() {
        static const HashKey drawn = draw();
        return drawn;
    }

  private:
    static HashKey draw() {
        std::random_device device;
        HashKey key;
        for (uint64_t& word : key.word) word = uint64_t(device()) << 32 | device();
        return key;
    }
};

class StringCodes {
  public:
    // No byte at or after `end` is ever read.
    explicit StringCodes(const uint8_t* end) : end_(end), slots_(256) {}

    // The number of a text; `row` is remembered for one that is new.
    uint32_t number(const uint8_t* text, size_t length, int64_t row) {
        Slot key;
        key.text = text;
        key.length = length;
        read_ends(key);
        key.hash = hash_of(key);
        size_t at = key.hash & (slots_.size() - 1);
        for (; slots_[at].number != none; at = (at + 1) & (slots_.size() - 1))
            if (equal(slots_[at], key)) return slots_[at].number;
        key.number = uint32_t(firsts_.size());
        slots_[at] = key;
        firsts_.push_back(row);
        if (2 * firsts_.size() > slots_.size()) grow();
        return key.number;
    }

    // A text of at most eight bytes, zeros behind it. Eight bytes are loaded, also of fewer:
    // a copy of unknown length is a slow call.
    static uint64_t short_text(const uint8_t* text, size_t length) {
        static constexpr uint8_t kept[16] = {255, 255, 255, 255, 255, 255, 255, 255};
        return word_at(text) & word_at(kept + 8 - length);
    }

    // The row in which each text appeared first.
    const std::vector<int64_t>& firsts() const { return firsts_; }

  private:
    static constexpr uint32_t none = ~uint32_t(0);

    struct Slot {
        uint64_t head = 0;  // the first eight bytes, or all with zeros behind them
        uint64_t tail = 0;  // the last eight bytes, where there are more than eight
        uint64_t hash = 0;
        size_t length = 0;
        const uint8_t* text = nullptr;
        uint32_t number = none;
    };

    static uint64_t word_at(const uint8_t* text) {
        uint64_t word;
        std::memcpy(&word, text, 8);
        return word;
    }

    // Most texts are so short that their two ends are all of them.
    void read_ends(Slot& key) const {
        if (key.length > 8) {
            key.head = word_at(key.text);
            key.tail = word_at(key.text + key.length - 8);
        } else if (end_ - key.text >= 8) {
            key.head = short_text(key.text, key.length);
        } else if (key.length) {
            std::memcpy(&key.head, key.text, key.length);
        }
    }

    static bool equal(const Slot& a, const Slot& b) {
        if (a.head != b.head || a.tail != b.tail || a.length != b.length) return false;
        return a.length <= 16 || (a.hash == b.hash && std::memcmp(a.text, b.text, a.length) == 0);
    }

    // Both halves of the product of two words: every bit of it depends on bits of both.
    static uint64_t folded(uint64_t a, uint64_t b) {
        const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
        return uint64_t(product) ^ uint64_t(product >> 64);
    }

    // Factors are a secret each, changed by what is read: without the key nobody can make
    // one of them zero, or two products equal.
    uint64_t hash_of(const Slot& key) const {
        uint64_t hash = folded(key.head ^ key_.word[0], key.tail ^ key_.word[1]);
        for (size_t at = 8; at + 8 < key.length; at += 8)
            hash = folded(hash ^ key_.word[2], word_at(key.text + at) ^ key_.word[1]);
        return folded(hash ^ key_.word[2], key.length ^ key_.word[3]);
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

    const uint8_t* end_;
    const HashKey key_ = HashKey::of_process();
    std::vector<Slot> slots_;  // a power of two of them, at most half full
    std::vector<int64_t> firsts_;
};

}  // namespace branchwise
