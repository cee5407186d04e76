// Counts of open nodes that follow from those of their parents.
//
// They are kept until the nodes are split: depth first, so that they are few.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace branchwise {

template <typename Count>
class KeptCounts {
  public:
    explicit KeptCounts(size_t size) : size_(size) {}

    Count* operator[](int64_t at) { return counts_[size_t(at)].data(); }

    int64_t take() {
        if (free_.empty()) {
            free_.push_back(int64_t(counts_.size()));
            counts_.emplace_back(size_);
        }
        const int64_t at = free_.back();
        free_.pop_back();
        return at;
    }
    void give(int64_t at) { free_.push_back(at); }

  private:
    const size_t size_;
    std::vector<std::vector<Count>> counts_;
    std::vector<int64_t> free_;
};

}  // namespace branchwise
