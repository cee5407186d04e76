// Splits of a node by variance or Poisson's criterion where missing cases are on one of the two
// sides, whichever is better.

#pragma once

#include <algorithm>
#include <vector>

#include "core/choose.hpp"
#include "regression/moments.hpp"

namespace branchwise {

// A side of a split: its distance, in which its weight is, and its cases.
struct NumberSide {
    Distance distance;
    double cases = 0;

    void operator+=(const NumberSide& other) {
        distance += other.distance;
        cases += other.cases;
    }
    NumberSide operator-(const NumberSide& other) const {
        return {distance - other.distance, cases - other.cases};
    }
};

// visit(on_right, left, right) for both sides that missing cases may be on, the larger one first.
template <typename Visit>
void each_side_of_missing(const NumberSide& left, const NumberSide& right,
                          const NumberSide& missing, const Visit& visit) {
    const bool first = right_is_larger(left.distance.weight, right.distance.weight);
    for (const bool on_right : {first, !first}) {
        NumberSide sides[2] = {left, right};
        sides[on_right] += missing;
        visit(on_right, sides[0], sides[1]);
    }
}

// Two groups of values, one of which has the missing cases, too: the left one has the values up
// to a position of an order, or one value alone.
class LearnedGroups {
  public:
    // score(left, right), no_score where a side is too small.
    template <typename Score>
    LearnedGroups(const std::vector<NumberSide>& values, const std::vector<uint32_t>& order,
                  const NumberSide& missing, const Score& score)
        : order_(order) {
        NumberSide all, left;
        for (const NumberSide& value : values) all += value;
        const auto add = [&](const NumberSide& one, size_t which) {
            Candidate candidate{
                one.distance.weight, all.distance.weight - one.distance.weight, which, {}};
            each_side_of_missing(one, all - one, missing,
                                 [&](bool on_right, const NumberSide& l, const NumberSide& r) {
                                     candidate.scores[on_right] = score(l, r);
                                 });
            candidates_.push_back(candidate);
        };
        for (size_t i = 0; i + 1 < order.size(); ++i) {
            left += values[order[i]];
            add(left, i);
        }
        for (size_t v = 0; v < values.size(); ++v) add(values[v], order.size() + v);
    }

    // Into `branch`, that of the first value being 0. Returns that of the missing cases, or
    // stop_here where no grouping is admissible.
    int32_t choose(double resolution, std::vector<uint32_t>& branch) const {
        double top = no_score;
        for (const Candidate& candidate : candidates_) top = std::max(top, candidate.best());
        if (top == no_score) return stop_here;
        const double least = least_of_equals(top, resolution);
        const Candidate& best =
            *std::find_if(candidates_.begin(), candidates_.end(),
                          [&](const Candidate& one) { return one.best() >= least; });
        branch.assign(order_.size(), 1);
        if (best.which < order_.size())
            for (size_t i = 0; i <= best.which; ++i) branch[order_[i]] = 0;
        else
            branch[best.which - order_.size()] = 0;
        const bool turned = branch[0] == 1;
        for (uint32_t& side : branch) side = side != uint32_t(turned);
        const bool larger = turned ? right_is_larger(best.right, best.left)
                                   : right_is_larger(best.left, best.right);
        const bool taken =
            best.scores[larger != turned] >= least_of_equals(best.best(), resolution);
        return int32_t(taken ? larger : !larger);
    }

  private:
    struct Candidate {
        double left, right;  // known weights
        size_t which;        // a position of the order, then a value alone
        double scores[2];    // with missing cases on the left, on the right

        double best() const { return std::max(scores[0], scores[1]); }
    };

    const std::vector<uint32_t>& order_;
    std::vector<Candidate> candidates_;
};

}  // namespace branchwise
