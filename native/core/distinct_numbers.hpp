// The distinct numbers of a column in ascending order: the number of each rank.

#pragma once

#include <utility>
#include <vector>

#include "core/kept_memory.hpp"

namespace branchwise {

class DistinctNumbers {
  public:
    DistinctNumbers() = default;

    explicit DistinctNumbers(std::vector<double> numbers) : numbers_(std::move(numbers)) {}

    // The numbers of these rows of a table: half the memory, where all rows differ.
    DistinctNumbers(const double* column, Scratch<uint32_t> rows)
        : column_(column), rows_(std::move(rows)) {}

    size_t size() const { return column_ ? rows_.size() : numbers_.size(); }

    double operator[](size_t rank) const {
        return column_ ? column_[rows_[rank]] + 0.0 : numbers_[rank];  // one zero
    }

    // To be read soon.
    void prefetch(size_t rank) const {
        if (column_)
            __builtin_prefetch(&rows_[rank]);
        else
            __builtin_prefetch(&numbers_[rank]);
    }

  private:
    std::vector<double> numbers_;
    const double* column_ = nullptr;
    Scratch<uint32_t> rows_;
};

}  // namespace branchwise
