// Columns of a small node whose branches would all be pure, from a few bit operations for each
// row.

#pragma once

#include <algorithm>
#include <vector>

#include "bit_rows/bit_impurity.hpp"

namespace branchwise {

class PureColumns {
  public:
    static constexpr size_t none = ~size_t(0);

    PureColumns(const Problem& problem, const BitLayout& layout)
        : problem_(problem),
          layout_(layout),
          stride_(layout.n_pairs() * 2),
          learned_(problem.missing == Policy::learned),
          serve_(problem.takes_largest_gain() && problem.branching != Branching::groups &&
                 std::max({problem.cases_in_leaf, problem.cases_in_branch,
                           problem.weight_in_leaf}) <= 1) {}

    // Whether the first of them is the best split of a node of so many rows, if that gains enough.
    bool serves(size_t n) const { return serve_ && n <= small_node; }

    // Whether a column is one of them, from counts: counts[class * line + bit], those after the
    // last class of all.
    template <typename Count>
    bool is_pure(size_t j, const BitNode& node, const Count* counts) const {
        if (!serves(node)) return false;
        const Field& field = layout_[j];
        const size_t line = stride_ * 64, last = field.values - 1;
        const Count* sizes = counts + node.counts_of_class.size() * line + field.first_bit();
        size_t n_values = 0, n_classes = 0;  // that values have, added up
        uint32_t left = node.n;
        for (size_t v = 0; v < last; ++v) {
            n_values += sizes[v] > 0;
            left -= sizes[v];
        }
        for (size_t c : node.classes) {
            const Count* of_class = counts + c * line + field.first_bit();
            uint32_t left_of_class = node.counts_of_class[c];
            for (size_t v = 0; v < last; ++v) {
                n_classes += of_class[v] > 0;
                left_of_class -= of_class[v];
            }
            if (is_joined(j) && left_of_class == node.counts_of_class[c]) return false;
            n_classes += left_of_class > 0;
        }
        if (n_classes != n_values + (left > 0)) return false;
        if (!tells_missing(j)) n_values += left > 0;
        return !problem_.corrects_values || n_values <= problem_.few_values_to_group;
    }

    // The first of them from whose score nothing is subtracted, if there is one: nothing beats it,
    // and a later column would lose the tie. (An impure branch costs a unit of weight, which no
    // tolerance covers in a small node; and gain ratio may prefer an impure one.) Two groups of
    // values are pure only where there are two classes. Columns that are constant are not pure.
    size_t first(const uint64_t* rows, const BitNode& node) const {
        if (!serves(node)) return none;
        const auto* row = reinterpret_cast<const Pair*>(rows);
        size_t first = none;
        for (size_t pair = 0; pair < layout_.n_pairs(); ++pair) {
            const Pair pure = pure_columns(row + pair, pair, node.counts_of_class);
            for (int k = 0; k < 2; ++k)
                for (uint64_t left = pure[k]; left; left &= left - 1) {
                    const size_t j =
                        layout_.column_of_bit(pair * 128 + size_t(k * 64 + __builtin_ctzll(left)));
                    if (j >= first || !is_best(rows, node, j)) continue;
                    if (layout_.in_order()) return j;
                    first = j;
                }
        }
        return first;
    }

    // All of them.
    ColumnSet all(const uint64_t* rows, const BitNode& node) const {
        ColumnSet found;
        if (!serves(node)) return found;
        const auto* row = reinterpret_cast<const Pair*>(rows);
        for (size_t pair = 0; pair < layout_.n_pairs(); ++pair) {
            const Pair pure = pure_columns(row + pair, pair, node.counts_of_class);
            for (int k = 0; k < 2; ++k)
                for (uint64_t left = pure[k]; left; left &= left - 1) {
                    const size_t j =
                        layout_.column_of_bit(pair * 128 + size_t(k * 64 + __builtin_ctzll(left)));
                    if (is_best(rows, node, j)) found.add(j);
                }
        }
        return found;
    }

  private:
    static constexpr size_t small_node = 48;

    bool serves(const BitNode& node) const {
        if (!serves(node.n) || !node.scale.enough(node.impurity)) return false;
        return problem_.branching != Branching::two_way || node.classes.size() <= 2;
    }

    bool tells_missing(size_t j) const { return layout_[j].values == problem_.columns[j].n_codes; }

    // Whether missing rows join known ones: the last value is not a branch of its own.
    bool is_joined(size_t j) const { return learned_ && tells_missing(j); }

    // Whether a column whose values are pure is as good as any.
    bool is_best(const uint64_t* rows, const BitNode& node, size_t j) const {
        return is_uncorrected(rows, node, j) && (!is_joined(j) || divides_known(rows, node, j));
    }

    // Whether each class of the node has rows of which a column is known.
    bool divides_known(const uint64_t* row, const BitNode& node, size_t j) const {
        const Field& field = layout_[j];
        for (size_t c : node.classes) {
            uint64_t known = 0;
            for (uint32_t i = 0; i < node.counts_of_class[c]; ++i, row += stride_)
                known |= row[field.word] >> field.shift & field.mask;
            if (!known) return false;
        }
        return true;
    }

    // Whether a column has so few values that nothing is subtracted.
    bool is_uncorrected(const uint64_t* rows, const BitNode& node, size_t j) const {
        const Field& field = layout_[j];
        if (!problem_.corrects_values || field.values <= problem_.few_values_to_group) return true;
        uint64_t seen = 0;
        for (size_t i = 0; i < node.n; ++i) seen |= uint64_t(1) << field.value(rows + i * stride_);
        if (tells_missing(j)) seen &= ~(uint64_t(1) << (field.values - 1));
        return size_t(__builtin_popcountll(seen)) <= problem_.few_values_to_group;
    }

    // The highest bits of the columns without a value that rows of two classes share.
    Pair pure_columns(const Pair* row, size_t pair,
                      const std::vector<uint32_t>& counts_of_class) const {
        const size_t step = stride_ / 2;
        const Pair highest = layout_.highest(pair);
        Pair seen = {}, shared = {};            // values, by their bits
        Pair seen_last = {}, shared_last = {};  // last values, by the highest bits
        for (uint32_t n : counts_of_class) {
            Pair values = {};
            Pair others = highest;  // columns of which no row has the last value
            for (uint32_t i = 0; i < n; ++i, row += step) {
                values |= *row;
                others &= layout_.any_of_column(*row, pair);
            }
            shared |= seen & values;
            seen |= values;
            shared_last |= seen_last & ~others;
            seen_last |= ~others;
        }
        return highest & ~(layout_.any_of_column(shared, pair) | shared_last);
    }

    const Problem& problem_;
    const BitLayout& layout_;
    const size_t stride_;
    const bool learned_;
    const bool serve_;
};

}  // namespace branchwise
