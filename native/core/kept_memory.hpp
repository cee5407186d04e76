// Memory of one tree that is kept for the next one, while a forest is grown.
//
// Pages that are taken from the system must be cleared, which takes as long as a good part of the
// growth of a tree. Blocks are kept by the thread that uses them, so that there is no lock: one
// that another process inherits when it is forked could be held for ever.

#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "core/memory.hpp"

namespace branchwise {

class KeptBlocks {
  public:
    static constexpr size_t least = size_t(1) << 16;  // smaller ones are left to malloc
    static constexpr size_t most = size_t(1) << 24;   // bytes that are kept

    KeptBlocks() = default;
    KeptBlocks(const KeptBlocks&) = delete;
    KeptBlocks& operator=(const KeptBlocks&) = delete;
    ~KeptBlocks() {
        for (auto& [size, blocks] : free_)
            for (void* block : blocks) give_memory(block);
    }

    // What the calling thread takes blocks from and keeps them in; null: nothing is kept.
    static KeptBlocks*& of_thread() {
        thread_local KeptBlocks* blocks = nullptr;
        return blocks;
    }

    // Room for so many bytes: trees of a forest are much alike, but not to the byte. At most an
    // eighth is in excess.
    static size_t size_for(size_t bytes) {
        if (bytes < least) return bytes;
        size_t step = least / 8;
        while (bytes / step >= 16) step *= 2;
        return (bytes + step - 1) / step * step;
    }

    // One that is kept, or null.
    void* take(size_t size) {
        const auto found = free_.find(size);
        if (found == free_.end() || found->second.empty()) return nullptr;
        void* const block = found->second.back();
        found->second.pop_back();
        n_bytes_ -= size;
        return block;
    }

    void keep(void* block, size_t size) noexcept {
        if (size > most - n_bytes_) return give_memory(block);
        try {
            free_[size].push_back(block);
            n_bytes_ += size;
        } catch (...) {  // there is no room to note it
            give_memory(block);
        }
    }

  private:
    std::map<size_t, std::vector<void*>> free_;  // by size
    size_t n_bytes_ = 0;                         // of all of these
};

// Allocates what is needed for one tree only.
template <typename T>
struct KeptPages : LargePages<T> {
    KeptPages() = default;
    template <typename U>
    KeptPages(const KeptPages<U>&) {}

    T* allocate(size_t n) {
        const size_t size = KeptBlocks::size_for(n * sizeof(T));
        KeptBlocks* const kept = KeptBlocks::of_thread();
        void* block = kept && size >= KeptBlocks::least ? kept->take(size) : nullptr;
        if (!block) block = take_memory(size);
        return static_cast<T*>(block);
    }

    void deallocate(T* memory, size_t n) {
        const size_t size = KeptBlocks::size_for(n * sizeof(T));
        KeptBlocks* const kept = KeptBlocks::of_thread();
        if (kept && size >= KeptBlocks::least)
            kept->keep(memory, size);
        else
            give_memory(memory);
    }
};

template <typename T>
using Scratch = std::vector<T, KeptPages<T>>;

}  // namespace branchwise
