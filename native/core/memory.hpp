// Large arrays on large pages: a tree of a million rows touches some 100 MB once, and
// taking that in pages of 4 KB costs more time than growing the tree.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace branchwise {

constexpr size_t large_page = size_t(1) << 21;

inline void* take_memory(size_t bytes) {
#if defined(__linux__)
    if (bytes >= large_page) {  // begins with a page
        void* memory = nullptr;
        if (posix_memalign(&memory, large_page, bytes)) throw std::bad_alloc();
        // Advice: it may be ignored. The end, less than a page, is left in small ones.
        madvise(memory, bytes / large_page * large_page, MADV_HUGEPAGE);
        return memory;
    }
#endif
    void* memory = std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}

inline void give_memory(void* memory) { std::free(memory); }

template <typename T>
struct LargePages {
    using value_type = T;

    LargePages() = default;
    template <typename U>
    LargePages(const LargePages<U>&) {}

    T* allocate(size_t n) { return static_cast<T*>(take_memory(n * sizeof(T))); }

    void deallocate(T* memory, size_t) { give_memory(memory); }

    // Elements are not set to zero when an array is made to be filled.
    template <typename U>
    void construct(U* at) {
        ::new (static_cast<void*>(at)) U;
    }
    template <typename U, typename... Arguments>
    void construct(U* at, Arguments&&... arguments) {
        ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
    }

    bool operator==(const LargePages&) const { return true; }
    bool operator!=(const LargePages&) const { return false; }
};

template <typename T>
using Array = std::vector<T, LargePages<T>>;

// Give the memory of some elements of a large array back, as whole pages: they are not read before
// they are written again.
template <typename Elements>
void give_back(Elements& array, size_t begin, size_t end) {
#if defined(__linux__)
    constexpr size_t page = size_t(1) << 16;  // no page of the system is larger
    constexpr size_t width = sizeof(typename Elements::value_type);
    if (array.size() * width < large_page) return;  // may begin within a page
    const size_t first = (begin * width + page - 1) / page * page;
    const size_t last = end * width / page * page;
    if (first < last)
        madvise(reinterpret_cast<char*>(array.data()) + first, last - first, MADV_DONTNEED);
#else
    (void)array, (void)begin, (void)end;
#endif
}

// The same for what nodes of so many rows leave behind; smaller ones are too many.
constexpr size_t many_rows = size_t(1) << 17;
template <typename Elements>
void give_back_scratch(Elements& array, size_t n_rows) {
    if (n_rows >= many_rows) give_back(array, 0, array.size());
}

// An array that somebody else owns.
template <typename T>
class Span {
  public:
    Span() = default;
    Span(T* data, size_t size) : data_(data), size_(size) {}

    T* data() const { return data_; }
    size_t size() const { return size_; }
    T* begin() const { return data_; }
    T* end() const { return data_ + size_; }
    T& operator[](size_t i) const { return data_[i]; }

  private:
    T* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace branchwise
