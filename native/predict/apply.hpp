// Walking rows down a tree: native implementation of branchwise/tree/apply.py.
//
// Rows walk in blocks, all of a block one level at a time: no row waits for another, so
// that their loads overlap, and the cells of a block stay in the nearest cache.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "predict/jump_table.hpp"

namespace branchwise {

// A column as it is met in prediction: one more code, for unseen values.
struct Cells {
    const void* data = nullptr;
    int width = 0;  // bytes of a code; 8 for numbers; 0: not used by the tree
};

// Copy codes, and check that the table has jump_table for them.
template <typename Given, typename Code>
void copy_codes(const Cells& cells, size_t first, size_t n, uint32_t most, Code* to) {
    const Given* from = static_cast<const Given*>(cells.data) + first;
    Given largest = 0;
    for (size_t k = 0; k < n; ++k) largest = std::max(largest, from[k]);
    if (largest > most)
        throw std::invalid_argument(
            "columns must hold no code that is beyond that of unseen values");
    std::copy_n(from, n, to);
}

// A block of rows, split_test by split_test, where all cells are codes of one byte. The
// last split_test is always returned by 0.
class Bytes {
  public:
    static constexpr size_t most_rows = 512;
    static constexpr size_t together = 4;  // rows for which the loop is unrolled

    Bytes(const JumpTable& jump_table, const std::vector<Cells>& cells)
        : jump_table_(jump_table),
          cells_(cells),
          block_((size_t(jump_table.arrived) + 1) * most_rows) {
        std::fill_n(block_.data() + jump_table.arrived * most_rows, most_rows, uint8_t(0));
    }

    void load(size_t first, size_t n) {
        uint8_t* to = block_.data();
        for (const SplitTest& tested : jump_table_.split_tests) {
            copy_codes<uint8_t>(cells_[tested.column], first, n,
                                jump_table_.values[tested.column] + 1, to);
            std::fill_n(to + n, (most_rows - n) % together, uint8_t(0));
            to += most_rows;
        }
    }

    uint32_t outcome(uint32_t split_test, uint32_t, size_t k) const {
        return block_[split_test * most_rows + k];
    }

  private:
    const JumpTable& jump_table_;
    const std::vector<Cells>& cells_;
    Array<uint8_t> block_;
};

// The same for cells of any kind: numbers as they are, codes as whole numbers.
template <typename Entry>
class Words {
  public:
    static constexpr size_t most_rows = 128;
    static constexpr size_t together = 1;

    Words(const JumpTable& jump_table, const std::vector<Cells>& cells, const Array<Entry>& table)
        : jump_table_(jump_table),
          cells_(cells),
          table_(table.data()),
          numeric_(size_t(jump_table.arrived) + 1),
          listed_(numeric_.size()),
          block_(numeric_.size() * most_rows) {
        std::fill_n(block_.data() + jump_table.arrived * most_rows, most_rows, uint64_t(0));
        for (size_t q = 0; q < jump_table.split_tests.size(); ++q) {
            const SplitTest& tested = jump_table.split_tests[q];
            numeric_[q] = jump_table.values[tested.column] ? 0 : ~uint32_t(0);
            listed_[q] = tested.in_list;
        }
    }

    void load(size_t first, size_t n) {
        uint64_t* to = block_.data();
        for (const SplitTest& tested : jump_table_.split_tests) {
            const Cells& cells = cells_[tested.column];
            const uint32_t most = jump_table_.values[tested.column] + 1;
            switch (cells.width) {
                case 1:
                    copy_codes<uint8_t>(cells, first, n, most, to);
                    break;
                case 2:
                    copy_codes<uint16_t>(cells, first, n, most, to);
                    break;
                case 4:
                    copy_codes<uint32_t>(cells, first, n, most, to);
                    break;
                default:
                    std::memcpy(to, static_cast<const double*>(cells.data) + first, n * sizeof *to);
            }
            to += most_rows;
        }
    }

    // A cell is taken both for a number and for a code, and the wrong outcome thrown
    // away: which it is changes from row to row, too often for a branch.
    uint32_t outcome(uint32_t split_test, uint32_t begin, size_t k) const {
        const uint64_t word = block_[split_test * most_rows + k];
        if (jump_table_.has_lists && listed_[split_test])
            return way_in_list(table_ + begin, uint32_t(word));
        double number, threshold;
        std::memcpy(&number, &word, sizeof number);
        std::memcpy(&threshold, table_ + begin, sizeof threshold);
        const uint32_t side =
            threshold_space + uint32_t(number > threshold) + 2 * uint32_t(number != number);
        return (side & numeric_[split_test]) | (uint32_t(word) & ~numeric_[split_test]);
    }

  private:
    const JumpTable& jump_table_;
    const std::vector<Cells>& cells_;
    const Entry* table_;
    std::vector<uint32_t> numeric_;  // for each split_test: all bits, or none
    std::vector<uint8_t> listed_;
    Array<uint64_t> block_;
};

class Walk {
  public:
    // A part of a row that goes down every branch somewhere.
    struct Part {
        uint32_t row;
        uint32_t node;
        double share;
    };

    // `sizes`: the weight of each node.
    Walk(const TreeView& tree, const Span<const double>& sizes, const Span<const uint8_t>& labels,
         const std::vector<uint32_t>& values)
        : jump_table_(tree, labels, values), sizes_(sizes.begin(), sizes.end()) {}

    const JumpTable& jump_table() const { return jump_table_; }

    // The node that every row arrives at, or its label.
    void nodes(const std::vector<Cells>& cells, size_t n_rows, uint32_t* out) const {
        arrive(cells, n_rows, jump_table_.node_at.data(), out);
    }
    void labels(const std::vector<Cells>& cells, size_t n_rows, uint8_t* out) const {
        arrive(cells, n_rows, jump_table_.label_at.data(), out);
    }

    // Where the parts of fractional rows arrive, sorted by row, then node.
    std::vector<Part> parts(const std::vector<Cells>& cells, const uint32_t* nodes,
                            size_t n_rows) const {
        return jump_table_.narrow.empty() ? divide(jump_table_.wide, cells, nodes, n_rows)
                                          : divide(jump_table_.narrow, cells, nodes, n_rows);
    }

  private:
    template <typename Outcome>
    void arrive(const std::vector<Cells>& cells, size_t n_rows, const Outcome* outcome_at,
                Outcome* out) const {
        if (jump_table_.narrow.empty())
            arrive_by(jump_table_.wide, cells, n_rows, outcome_at, out);
        else
            arrive_by(jump_table_.narrow, cells, n_rows, outcome_at, out);
    }

    template <typename Entry, typename Outcome>
    void arrive_by(const Array<Entry>& table, const std::vector<Cells>& cells, size_t n_rows,
                   const Outcome* outcome_at, Outcome* out) const {
        const auto in_bytes = [&](const SplitTest& tested) {
            return !tested.in_list && cells[tested.column].width == 1;
        };
        const bool bytes =
            std::all_of(jump_table_.split_tests.begin(), jump_table_.split_tests.end(), in_bytes);
        if (bytes)
            walk_blocks(table.data(), Bytes(jump_table_, cells), n_rows, outcome_at, out);
        else
            walk_blocks(table.data(), Words<Entry>(jump_table_, cells, table), n_rows, outcome_at,
                        out);
    }

    template <typename Entry, typename Rows, typename Outcome>
    void walk_blocks(const Entry* table, Rows&& rows, size_t n_rows, const Outcome* outcome_at,
                     Outcome* out) const {
        const Entry arrived = jump_table_.arrived;
        constexpr size_t most_rows = std::decay_t<Rows>::most_rows;
        constexpr size_t together = std::decay_t<Rows>::together;
        for (size_t first = 0; first < n_rows; first += most_rows) {
            const size_t n = std::min(most_rows, n_rows - first);
            rows.load(first, n);
            uint32_t at[most_rows] = {};
            Entry all = ~arrived;  // keeps the bits that the split_tests of all rows have
            for (size_t level = 0; level < jump_table_.depth && all != arrived; ++level) {
                all = arrived;
                for (size_t k = 0; k < n; k += together)
                    for (size_t i = k; i < k + together; ++i) {
                        const Entry entry = table[at[i]];
                        all &= entry;
                        at[i] = begin_of(entry) +
                                rows.outcome(split_test_of(entry), begin_of(entry), i);
                    }
            }
            for (size_t k = 0; k < n; ++k) out[first + k] = outcome_at[at[k]];
        }
    }

    template <typename Entry>
    std::vector<Part> divide(const Array<Entry>& table, const std::vector<Cells>& cells,
                             const uint32_t* nodes, size_t n_rows) const {
        Words<Entry> rows(jump_table_, cells, table);
        std::vector<Part> found;
        for (size_t first = 0; first < n_rows; first += rows.most_rows) {
            const size_t n = std::min(rows.most_rows, n_rows - first);
            if (std::find(nodes + first, nodes + first + n, JumpTable::fractional) ==
                nodes + first + n)
                continue;
            rows.load(first, n);
            for (size_t k = 0; k < n; ++k)
                if (nodes[first + k] == JumpTable::fractional)
                    divide_one(rows, k, uint32_t(first + k), found);
        }
        return found;
    }

    // Where the parts of one row arrive, sorted by node, appended to `found`.
    template <typename Rows>
    void divide_one(const Rows& rows, size_t k, uint32_t row, std::vector<Part>& found) const {
        const auto before = std::ptrdiff_t(found.size());
        std::vector<Part> open{{row, 0, 1.0}};
        while (!open.empty()) {
            const Part part = open.back();
            open.pop_back();
            uint32_t node = part.node;
            if (!jump_table_.is_leaf(node)) {
                const Place place = jump_table_.places[node];
                node = jump_table_
                           .node_at[place.begin + rows.outcome(place.split_test, place.begin, k)];
            }
            if (node == part.node) {
                found.push_back(part);
            } else if (node != JumpTable::fractional) {
                open.push_back({row, node, part.share});
            } else {
                const uint32_t begin = jump_table_.first_child[part.node],
                               end = jump_table_.first_child[part.node + 1];
                double whole = 0;
                for (uint32_t child = begin; child < end; ++child) whole += sizes_[child];
                for (uint32_t child = begin; child < end; ++child)
                    open.push_back({row, child, part.share * (sizes_[child] / whole)});
            }
        }
        std::sort(found.begin() + before, found.end(),
                  [](const Part& a, const Part& b) { return a.node < b.node; });
    }

    const JumpTable jump_table_;
    const std::vector<double> sizes_;
};

}  // namespace branchwise
