// Where the surrogates of a tree send rows, while it is pruned: native implementation of
// _by_surrogates in branchwise/tree/splits.py.

#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "core/tree.hpp"

namespace branchwise {

class SurrogateRoutes {
  public:
    // `given` has as many nodes as the tree has before pruning, or none.
    SurrogateRoutes(const Table& table, const SurrogateView& given)
        : table_(table), given_(given), first_(1, 0), first_code_(1, 0) {
        for (const int64_t number : given.number) first_.push_back(first_.back() + size_t(number));
        for (const int64_t n : given.n_codes) first_code_.push_back(first_code_.back() + size_t(n));
    }

    bool any() const { return given_.column.size() > 0; }

    // The branch of a row that lacks the value of a node's own column, by the first surrogate that
    // knows its value; `none` if there is no such surrogate. `node`: before pruning.
    int32_t branch(size_t node, uint32_t row, int32_t none) const {
        for (size_t s = first_[node]; s < first_[node + 1]; ++s) {
            const Column& column = table_.columns[size_t(given_.column[s])];
            int64_t code = 0;
            if (column.numeric) {
                const double number = column.numbers[row];
                if (std::isnan(number)) continue;
                code = number > given_.threshold[s];
            } else {
                code = column.at(row);
                if (code == int64_t(column.missing_code())) continue;
            }
            for (size_t side = 0; side < 2; ++side)
                for (size_t k = first_code_[2 * s + side]; k < first_code_[2 * s + side + 1]; ++k)
                    if (given_.codes[k] == code) return int32_t(side);
        }
        return none;
    }

  private:
    const Table& table_;
    const SurrogateView& given_;
    std::vector<size_t> first_;       // surrogate of each node
    std::vector<size_t> first_code_;  // of each side of each surrogate
};

}  // namespace branchwise
