// The best column of a node of bit rows whose values have a branch each.

#pragma once

#include <algorithm>
#include <vector>

#include "bit_rows/bit_counts.hpp"
#include "bit_rows/bit_impurity.hpp"

namespace branchwise {

class BitValues {
  public:
    static constexpr size_t none = ~size_t(0);

    BitValues(const Problem& problem, const Impurities& impurities, const BitLayout& layout)
        : problem_(problem),
          impurities_(impurities),
          layout_(layout),
          classes_(size_t(problem.n_classes)),
          line_(layout.n_pairs() * 128),
          entropy_(impurities),
          table_(layout, classes_) {
        candidates_.resize(layout.n_columns());
        drops_.resize(layout.n_columns());
    }

    // The best of the open columns, or none. Those that are constant are dropped from `alive`. Of
    // what a node has of a bit, counts[class * line + bit] are of one class, those after the last
    // class of all.
    template <typename Count>
    size_t best_column(const BitNode& node, const ColumnSet& open, const Count* counts,
                       ColumnSet& alive) {
        double top = no_score;
        open.each(layout_.n_columns(), [&](size_t j) {
            candidates_[j] = score(j, counts, node, alive);
            top = std::max(top, candidates_[j]);
            return true;
        });
        if (problem_.average_gain) top = drop_below_average(open, node.scale);
        if (top == no_score) return none;
        const double least = node.scale.least(top);
        size_t best = none;
        open.each(layout_.n_columns(), [&](size_t j) {
            best = j;
            return candidates_[j] < least;
        });
        return best;
    }

  private:
    // Returns the best score that is left.
    double drop_below_average(const ColumnSet& open, const Scale& scale) {
        AverageGain average;
        open.each(layout_.n_columns(), [&](size_t j) {
            if (candidates_[j] != no_score && problem_.few_values[j])
                average.add(scale.gain(drops_[j]));
            return true;
        });
        const double least = average.least();
        double top = no_score;
        open.each(layout_.n_columns(), [&](size_t j) {
            if (scale.gain(drops_[j]) < least || !scale.enough(drops_[j]))
                candidates_[j] = no_score;
            top = std::max(top, candidates_[j]);
            return true;
        });
        return top;
    }

    template <typename Count>
    double score(size_t j, const Count* counts, const BitNode& node, ColumnSet& alive) {
        const Field& field = layout_[j];
        const Count* sizes = counts + classes_ * line_ + field.first_bit();
        const size_t last = field.values - 1;
        int64_t of_sizes = 0;
        const int64_t in_branches =
            problem_.criterion == Criterion::gini
                ? gini_of_branches(j, counts, node)
                : entropy_.of_branches(field, node, counts, line_, of_sizes);
        if (in_branches == node.impurity && popcount::is_constant(sizes, last, node.n)) {
            alive.drop(j);
            return no_score;
        }
        const double fewest = std::max(problem_.cases_in_leaf, problem_.weight_in_leaf);
        if (fewest > 1 && double(popcount::fewest(sizes, last, node.n)) < fewest) return no_score;
        if (problem_.cases_in_branch > 1 && !two_large(sizes, last, node.n)) return no_score;
        const int64_t drop = std::max<int64_t>(node.impurity - in_branches, 0);
        drops_[j] = drop;
        return problem_.average_gain || node.scale.enough(drop)
                   ? node.scale.score(drop, impurities_.x_log2_x(node.n) - of_sizes)
                   : no_score;
    }

    // Whether two branches have as many cases as two must have.
    template <typename Count>
    bool two_large(const Count* sizes, size_t last, uint32_t n) const {
        size_t large = 0;
        for (size_t v = 0; v < last; ++v) {
            large += double(sizes[v]) >= problem_.cases_in_branch;
            n -= sizes[v];
        }
        return large + (double(n) >= problem_.cases_in_branch) >= 2;
    }

    template <typename Count>
    int64_t gini_of_branches(size_t j, const Count* counts, const BitNode& node) {
        table_.read(layout_[j], node, counts, line_);
        int64_t sum = 0;
        for (size_t v = 0; v < layout_[j].values; ++v)
            sum += impurities_.impurity(problem_.criterion, &table_.cells[v * classes_],
                                        problem_.n_classes, table_.sizes[v]);
        return sum;
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const BitLayout& layout_;
    const size_t classes_;
    const size_t line_;
    const BitEntropy entropy_;

    // Scratch, kept between nodes.
    std::vector<double> candidates_;  // scores of columns
    std::vector<int64_t> drops_;      // and the impurities they take away
    ValueTable table_;
};

}  // namespace branchwise
