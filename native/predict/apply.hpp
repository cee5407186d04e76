// Walking rows down a tree: native implementation of branchwise/tree/apply.py.
//
// Rows walk in blocks, all of a block one level at a time: no row waits for another, so
// that their loads overlap, and the cells of a block stay in the nearest cache. Below the
// first levels the rows that have not arrived are listed.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
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

// One cell of a row: a code, or a number where the column has numbers.
struct Cell {
    uint32_t code;
    double number;
};

// The way of a number at a threshold, which lies in front of the jumps.
template <typename Entry>
uint32_t side_of(double number, const Entry* begin) {
    double threshold;
    std::memcpy(&threshold, begin, sizeof threshold);
    return threshold_space + uint32_t(number > threshold) + 2 * uint32_t(number != number);
}

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

// Blocks of rows, split_test by split_test, where all cells are codes of one byte. The
// last split_test is always returned by 0.
class Bytes {
  public:
    static constexpr size_t most_rows = 512;
    static constexpr size_t together = 4;        // rows for which the loop is unrolled
    static constexpr size_t levels_in_step = 8;  // that all rows walk, arrived or not

    Bytes(const JumpTable& jump_table, const std::vector<Cells>& cells, size_t n_blocks = 1)
        : jump_table_(jump_table),
          cells_(cells),
          size_((size_t(jump_table.arrived) + 1) * most_rows),
          blocks_(size_ * n_blocks),
          block_(blocks_.data()) {
        for (size_t block = 0; block < n_blocks; ++block)
            std::fill_n(blocks_.data() + block * size_ + jump_table.arrived * most_rows, most_rows,
                        uint8_t(0));
    }

    // Go on with another block, which `load` fills.
    void choose(size_t block) { block_ = blocks_.data() + block * size_; }

    // Go on with another tree that tests the same columns.
    template <typename Entry>
    void choose_tree(const Entry*) {}

    void load(size_t first, size_t n) {
        uint8_t* to = block_;
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
    const size_t size_;
    Array<uint8_t> blocks_;
    uint8_t* block_;
};

// The same for cells of any kind: numbers as they are, codes as whole numbers.
template <typename Entry>
class Words {
  public:
    static constexpr size_t most_rows = 128;
    static constexpr size_t together = 1;
    static constexpr size_t levels_in_step = 4;

    Words(const JumpTable& jump_table, const std::vector<Cells>& cells, const Entry* table,
          size_t n_blocks = 1)
        : jump_table_(jump_table),
          cells_(cells),
          table_(table),
          numeric_(size_t(jump_table.arrived) + 1),
          listed_(numeric_.size()),
          blocks_(numeric_.size() * most_rows * n_blocks),
          block_(blocks_.data()) {
        for (size_t block = 0; block < n_blocks; ++block) {
            choose(block);
            std::fill_n(block_ + jump_table.arrived * most_rows, most_rows, uint64_t(0));
        }
        choose(0);
        for (size_t q = 0; q < jump_table.split_tests.size(); ++q) {
            const SplitTest& tested = jump_table.split_tests[q];
            numeric_[q] = jump_table.values[tested.column] ? 0 : ~uint32_t(0);
            listed_[q] = tested.in_list;
        }
    }

    void choose(size_t block) { block_ = blocks_.data() + block * numeric_.size() * most_rows; }
    void choose_tree(const Entry* table) { table_ = table; }

    void load(size_t first, size_t n) {
        uint64_t* to = block_;
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

    Entry entry(uint32_t at) const { return table_[at]; }

    // A cell is taken both for a number and for a code, and the wrong outcome thrown
    // away: which it is changes from row to row, too often for a branch.
    uint32_t outcome(uint32_t split_test, uint32_t begin, size_t k) const {
        const uint64_t word = block_[split_test * most_rows + k];
        if (jump_table_.has_lists && listed_[split_test])
            return way_in_list(table_ + begin, uint32_t(word));
        double number;
        std::memcpy(&number, &word, sizeof number);
        const uint32_t side = side_of(number, table_ + begin);
        return (side & numeric_[split_test]) | (uint32_t(word) & ~numeric_[split_test]);
    }

  private:
    const JumpTable& jump_table_;
    const std::vector<Cells>& cells_;
    const Entry* table_;
    std::vector<uint32_t> numeric_;  // for each split_test: all bits, or none
    std::vector<uint8_t> listed_;
    Array<uint64_t> blocks_;
    uint64_t* block_;
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
    Walk(const TreeView& tree, const SurrogateView& surrogates, const Span<const double>& sizes,
         const Span<const uint8_t>& labels, const std::vector<uint32_t>& values)
        : jump_table_(tree, surrogates, labels, values), sizes_(sizes.begin(), sizes.end()) {}

    const JumpTable& jump_table() const { return jump_table_; }

    // Whether all cells that the tree tests are codes of one byte.
    bool in_bytes(const std::vector<Cells>& cells) const {
        return std::all_of(jump_table_.split_tests.begin(), jump_table_.split_tests.end(),
                           [&](const SplitTest& tested) {
                               return !tested.in_list && cells[tested.column].width == 1;
                           });
    }

    // The nodes that the rows of loaded blocks arrive at.
    template <typename Entry, typename Rows>
    void nodes_of_blocks(const Array<Entry>& table, Rows& rows, size_t n_rows,
                         uint32_t* out) const {
        rows.choose_tree(table.data());
        for (size_t block = 0; block * Rows::most_rows < n_rows; ++block) {
            const size_t first = block * Rows::most_rows;
            rows.choose(block);
            walk_block(table.data(), rows, std::min(Rows::most_rows, n_rows - first),
                       jump_table_.node_at.data(), out + first);
        }
    }

    // The node that every row arrives at, or its label.
    void nodes(const std::vector<Cells>& cells, size_t n_rows, uint32_t* out) const {
        arrive(cells, n_rows, jump_table_.node_at.data(), out);
    }
    void labels(const std::vector<Cells>& cells, size_t n_rows, uint8_t* out) const {
        arrive(cells, n_rows, jump_table_.label_at.data(), out);
    }

    // The node that one row arrives at; it has a cell for every column.
    uint32_t node(const std::vector<Cell>& row) const {
        return jump_table_.narrow.empty() ? node_by(jump_table_.wide, row)
                                          : node_by(jump_table_.narrow, row);
    }

    // Where the parts of fractional rows arrive, sorted by row, then node.
    std::vector<Part> parts(const std::vector<Cells>& cells, const uint32_t* nodes,
                            size_t n_rows) const {
        std::vector<Part> all;
        divide(cells, n_rows, FractionalRows{nodes, n_rows}, [&](const std::vector<Part>& found) {
            all.insert(all.end(), found.begin(), found.end());
        });
        return all;
    }

    // The values of the nodes that every row arrives at, weighted by its shares. `values`
    // has `width` numbers for each node.
    void blend(const std::vector<Cells>& cells, size_t n_rows, const double* values, size_t width,
               double* out) const {
        Array<uint32_t> arrived_at(n_rows);
        nodes(cells, n_rows, arrived_at.data());
        for (size_t k = 0; k < n_rows; ++k)
            if (arrived_at[k] != JumpTable::fractional)
                std::copy_n(values + arrived_at[k] * width, width, out + k * width);
        divide(cells, n_rows, FractionalRows{arrived_at.data(), n_rows},
               [&](const std::vector<Part>& found) {
                   weigh(found, values, width, out + size_t(found.front().row) * width);
               });
    }

    // The same for some rows only, in ascending order.
    void blend_rows(const std::vector<Cells>& cells, size_t n_rows, const Span<const int64_t>& rows,
                    const double* values, size_t width, double* out) const {
        divide(cells, n_rows, ListedRows{rows.begin(), rows.end()},
               [&](const std::vector<Part>& found) {
                   weigh(found, values, width, out);
                   out += width;
               });
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
        if (in_bytes(cells))
            walk_blocks(table.data(), Bytes(jump_table_, cells), n_rows, outcome_at, out);
        else
            walk_blocks(table.data(), Words<Entry>(jump_table_, cells, table.data()), n_rows,
                        outcome_at, out);
    }

    template <typename Entry, typename Rows, typename Outcome>
    void walk_blocks(const Entry* table, Rows&& rows, size_t n_rows, const Outcome* outcome_at,
                     Outcome* out) const {
        constexpr size_t most_rows = std::decay_t<Rows>::most_rows;
        for (size_t first = 0; first < n_rows; first += most_rows) {
            const size_t n = std::min(most_rows, n_rows - first);
            rows.load(first, n);
            walk_block(table, rows, n, outcome_at, out + first);
        }
    }

    template <typename Entry, typename Rows, typename Outcome>
    void walk_block(const Entry* table, const Rows& rows, size_t n, const Outcome* outcome_at,
                    Outcome* out) const {
        constexpr size_t together = Rows::together;
        const Entry arrived = jump_table_.arrived;
        uint32_t at[Rows::most_rows] = {};
        Entry all = ~arrived;  // keeps the bits that the split_tests of all rows have
        const size_t in_step = std::min(jump_table_.depth, Rows::levels_in_step);
        for (size_t level = 0; level < in_step && all != arrived; ++level) {
            all = arrived;
            for (size_t k = 0; k < n; k += together)
                for (size_t i = k; i < k + together; ++i) {
                    const Entry entry = table[at[i]];
                    all &= entry;
                    at[i] =
                        begin_of(entry) + rows.outcome(split_test_of(entry), begin_of(entry), i);
                }
        }
        if (all != arrived && in_step < jump_table_.depth) walk_open(table, rows, n, at);
        for (size_t k = 0; k < n; ++k) out[k] = outcome_at[at[k]];
    }

    // Walk on, and leave out the rows that have arrived: a few go far deeper than most. Not
    // inlined, because the loop needs all registers.
    template <typename Entry, typename Rows>
    [[gnu::noinline]] void walk_open(const Entry* table, const Rows& rows, size_t n,
                                     uint32_t* at) const {
        const uint32_t arrived = jump_table_.arrived;
        uint16_t open[Rows::most_rows];
        std::iota(open, open + n, uint16_t(0));
        while (n) {
            size_t still = 0;
            for (size_t j = 0; j < n; ++j) {
                const size_t i = open[j];
                const Entry entry = table[at[i]];
                const uint32_t split_test = split_test_of(entry);
                at[i] = begin_of(entry) + rows.outcome(split_test, begin_of(entry), i);
                open[still] = uint16_t(i);
                still += split_test != arrived;
            }
            n = still;
        }
    }

    template <typename Entry>
    uint32_t node_by(const Array<Entry>& table, const std::vector<Cell>& row) const {
        uint32_t at = 0;
        for (Entry entry = table[at]; split_test_of(entry) != jump_table_.arrived;
             entry = table[at]) {
            const SplitTest& tested = jump_table_.split_tests[split_test_of(entry)];
            const uint32_t begin = begin_of(entry);
            const Cell& cell = row[tested.column];
            if (jump_table_.values[tested.column] == 0)
                at = begin + side_of(cell.number, table.data() + begin);
            else
                at = begin +
                     (tested.in_list ? way_in_list(table.data() + begin, cell.code) : cell.code);
        }
        return jump_table_.node_at[at];
    }

    // Iterators over the rows to divide: `next(row)` is the first one that is not before
    // `row`, n_rows or beyond if there is none.
    struct FractionalRows {
        const uint32_t* nodes;
        size_t n_rows;
        size_t next(size_t row) {
            return size_t(std::find(nodes + row, nodes + n_rows, JumpTable::fractional) - nodes);
        }
    };
    struct ListedRows {
        const int64_t* row;
        const int64_t* end;
        size_t next(size_t first) {
            while (row != end && size_t(*row) < first) ++row;
            return row == end ? ~size_t(0) : size_t(*row);
        }
    };

    template <typename Which, typename Use>
    void divide(const std::vector<Cells>& cells, size_t n_rows, Which which, Use&& use) const {
        if (jump_table_.narrow.empty())
            divide_by(jump_table_.wide, cells, n_rows, which, use);
        else
            divide_by(jump_table_.narrow, cells, n_rows, which, use);
    }

    // Call `use` with the parts of each of the rows, sorted by node.
    template <typename Entry, typename Which, typename Use>
    void divide_by(const Array<Entry>& table, const std::vector<Cells>& cells, size_t n_rows,
                   Which& which, Use& use) const {
        size_t row = which.next(0);
        if (row >= n_rows) return;
        Words<Entry> rows(jump_table_, cells, table.data());
        std::vector<Part> open, found;
        while (row < n_rows) {
            const size_t first = row - row % rows.most_rows;
            const size_t end = std::min(first + rows.most_rows, n_rows);
            rows.load(first, end - first);
            for (; row < end; row = which.next(row + 1)) {
                open.assign(1, {uint32_t(row), 0, 1.0});
                found.clear();
                divide_one(rows, row - first, open, found);
                use(found);
            }
        }
    }

    // The node that a row goes to from a node: the same where it stops.
    template <typename Entry>
    uint32_t next_node(const Words<Entry>& rows, size_t k, uint32_t node) const {
        if (jump_table_.is_leaf(node)) return node;
        Place place = jump_table_.places[node];
        for (;;) {
            const uint32_t at = place.begin + rows.outcome(place.split_test, place.begin, k);
            if (jump_table_.node_at[at] != JumpTable::surrogate) return jump_table_.node_at[at];
            place = {begin_of(rows.entry(at)), split_test_of(rows.entry(at))};
        }
    }

    // Follow the open parts of a row to the end, found sorted by node.
    template <typename Rows>
    void divide_one(const Rows& rows, size_t k, std::vector<Part>& open,
                    std::vector<Part>& found) const {
        while (!open.empty()) {
            Part part = open.back();
            open.pop_back();
            uint32_t next = next_node(rows, k, part.node);
            while (next != part.node && next != JumpTable::fractional) {
                part.node = next;
                next = next_node(rows, k, part.node);
            }
            if (next == part.node) {
                found.push_back(part);
                continue;
            }
            const uint32_t begin = jump_table_.first_child[part.node],
                           end = jump_table_.first_child[part.node + 1];
            double whole = 0;
            for (uint32_t child = begin; child < end; ++child) whole += sizes_[child];
            for (uint32_t child = begin; child < end; ++child)
                open.push_back({part.row, child, part.share * (sizes_[child] / whole)});
        }
        std::sort(found.begin(), found.end(),
                  [](const Part& a, const Part& b) { return a.node < b.node; });
    }

    // The mean of the nodes' values, added up in the order of nodes as the reference does.
    static void weigh(const std::vector<Part>& found, const double* values, size_t width,
                      double* out) {
        std::fill_n(out, width, 0.0);
        for (const Part& part : found) {
            const double* value = values + part.node * width;
            for (size_t i = 0; i < width; ++i) out[i] += value[i] * part.share;
        }
    }

    const JumpTable jump_table_;
    const std::vector<double> sizes_;
};

}  // namespace branchwise
