// Which values of a category share a branch: native implementation of
// branchwise/grow/categories.py.

#pragma once

#include "groups/merged_groups.hpp"
#include "groups/two_groups.hpp"

namespace branchwise {

template <typename W>
class Grouper {
  public:
    Grouper(const Problem& problem, const Impurities& impurities)
        : two_way_(problem.branching == Branching::two_way),
          two_(problem, impurities),
          merged_(problem, impurities) {}

    // The group of each value, that of the first value being 0; all in one group where no
    // grouping is admissible. `known` is the impurity of all values together, `outside` the
    // weight impurity of the node less that of its missing values.
    const std::vector<uint32_t>& group(const Values<W>& values, int64_t known, int64_t outside,
                                       const Scale& scale) {
        return two_way_ ? two_.group(values, known, outside, scale)
                        : merged_.group(values, known, outside, scale);
    }

  private:
    const bool two_way_;
    TwoGroups<W> two_;
    MergedGroups<W> merged_;
};

}  // namespace branchwise
