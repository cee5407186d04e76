// Columns that tell the two classes of a node of very few rows apart, from the rows themselves:
// most of such nodes are split by one.

#pragma once

#include <algorithm>

#include "bit_rows/bit_halves.hpp"

namespace branchwise {

class PureRows {
  public:
    PureRows(const Problem& problem, const BitLayout& layout) : layout_(layout) {
        // Nothing is subtracted from the score of a column of so few values.
        if (problem.corrects_values) most_ = std::min(most_, problem.few_values_to_group);
        if (layout.n_pairs() > most_pairs) most_ = 0;
    }

    // Whether it takes less to look at all columns of so many rows than to halve those that are
    // drawn.
    bool serves(size_t n) const { return n <= most_; }

    // The rows of a small node, by which those of nodes below it are known.
    void begin(const uint64_t* rows) { rows_ = reinterpret_cast<const Pair*>(rows); }

    // Take in the rows of a node's two classes.
    void read(const uint64_t (&of_class)[2]) {
        for (size_t pair = 0; pair < layout_.n_pairs(); ++pair) {
            for (size_t c = 0; c < 2; ++c) seen_[c][pair] = seen(of_class[c], pair);
            const Seen &one = seen_[0][pair], &other = seen_[1][pair];
            const Pair shared = layout_.any_of_column(one.values & other.values, pair);
            pure_[pair] = layout_.highest(pair) & ~(shared | (one.last & other.last));
        }
    }

    // Whether no value of a column has rows of both classes.
    bool is_pure(const Field& field) const {
        return pure_[field.word / 2][field.word % 2] & highest_bit(field);
    }

    // Whether a column's last value has rows.
    bool has_last(const Field& field) const {
        const size_t pair = field.word / 2;
        return (seen_[0][pair].last | seen_[1][pair].last)[field.word % 2] & highest_bit(field);
    }

    // The values of a pure column. `second`: which of the classes has those of the second half.
    Halves halves(const Field& field, size_t& second) const {
        const uint64_t values[2] = {values_of(field, 0), values_of(field, 1)};
        const uint64_t all = values[0] | values[1];
        second = values[0] & all & (~all + 1) ? 1 : 0;
        Halves found;
        found.first = values[1 - second];
        found.second = values[second];
        return found;
    }

  private:
    static constexpr size_t most_rows = 8;
    static constexpr size_t most_pairs = 2;

    // What some rows have: values by their bits, and last values by the highest bits of columns.
    struct Seen {
        Pair values, last;
    };

    Seen seen(uint64_t rows, size_t pair) const {
        const size_t step = layout_.n_pairs();
        Pair values = {}, others = layout_.highest(pair);
        for (; rows; rows &= rows - 1) {
            const Pair row = rows_[size_t(__builtin_ctzll(rows)) * step + pair];
            values |= row;
            others &= layout_.any_of_column(row, pair);
        }
        return {values, layout_.highest(pair) & ~others};
    }

    static uint64_t highest_bit(const Field& field) { return field.last >> 1 << field.shift; }

    uint64_t values_of(const Field& field, size_t c) const {
        const Seen& seen = seen_[c][field.word / 2];
        const bool has_last = seen.last[field.word % 2] & highest_bit(field);
        const uint64_t others = seen.values[field.word % 2] >> field.shift & field.mask;
        return others | (has_last ? field.last : 0);
    }

    const BitLayout& layout_;
    size_t most_ = most_rows;
    const Pair* rows_ = nullptr;

    // Of the node.
    Seen seen_[2][most_pairs] = {};  // by class
    Pair pure_[most_pairs] = {};     // columns, by their highest bits
};

}  // namespace branchwise
