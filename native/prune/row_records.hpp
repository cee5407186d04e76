// The rows of a table as pruning sends them down a tree, and the branches that codes lead to.

#pragma once

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "prune/state.hpp"

namespace branchwise {

// The cells of the columns that a tree tests about, and the label, side by side: a row on its way
// down needs several of them, in random order, and so meets them in one place.
class RowRecords {
  public:
    RowRecords(const Table& table, const PruneTree& tree)
        : table_(table), at_(table.columns.size(), unused) {
        for (const PruneNode& node : tree.nodes)
            if (node.column >= 0) take_in(size_t(node.column));
        // A short row is in one line of the cache: in two, it would be waited for twice.
        if (stride_ < line)
            while (line % stride_) ++stride_;
        bytes_.resize(table.n_rows * stride_);
        for (size_t row = 0; row < table.n_rows; row += block) {
            copy_cells<uint32_t>(table.labels, 0, row);
            for (size_t j = 0; j < at_.size(); ++j)
                if (at_[j] != unused) copy(table.columns[j], at_[j], row);
        }
    }

    // 0 or 1 for the sides of a threshold, 2 for a missing number.
    uint32_t code(const PruneNode& node, uint32_t row) const {
        const Column& column = table_.columns[size_t(node.column)];
        const uint8_t* cell = &bytes_[row * stride_ + at_[size_t(node.column)]];
        if (column.numeric) {
            double number;
            std::memcpy(&number, cell, sizeof number);
            return std::isnan(number) ? 2 : number > node.threshold;
        }
        if (column.width == 1) return *cell;
        uint32_t code = 0;
        std::memcpy(&code, cell, size_t(column.width));
        return code;
    }

    // Where a row has its one-byte code of a column.
    size_t place(size_t column) const { return at_[column]; }
    const uint8_t* row(uint32_t row) const { return &bytes_[row * stride_]; }

    uint32_t label(uint32_t row) const {
        uint32_t label;
        std::memcpy(&label, &bytes_[row * stride_], sizeof label);
        return label;
    }

    void fetch(uint32_t row) const { __builtin_prefetch(&bytes_[row * stride_]); }

  private:
    static constexpr size_t unused = ~size_t(0);
    static constexpr size_t block = 256;  // rows that stay in the cache
    static constexpr size_t line = 64;    // bytes that are read at once

    void take_in(size_t column) {
        if (at_[column] != unused) return;
        at_[column] = stride_;
        stride_ +=
            table_.columns[column].numeric ? sizeof(double) : size_t(table_.columns[column].width);
    }

    void copy(const Column& column, size_t at, size_t begin) {
        if (!column.numeric && column.width == 1)
            return copy_cells<uint8_t>(column.codes, at, begin);
        if (!column.numeric && column.width == 2)
            return copy_cells<uint16_t>(column.codes, at, begin);
        if (!column.numeric) return copy_cells<uint32_t>(column.codes, at, begin);
        copy_cells<double>(column.numbers, at, begin);
    }

    template <typename Cell>
    void copy_cells(const void* cells, size_t at, size_t begin) {
        const auto* from = static_cast<const Cell*>(cells);
        const size_t end = std::min(begin + block, table_.n_rows);
        const size_t stride = stride_;
        uint8_t* to = bytes_.data() + begin * stride + at;
        for (size_t row = begin; row < end; ++row, to += stride)
            std::memcpy(to, from + row, sizeof(Cell));
    }

    const Table& table_;
    std::vector<size_t> at_;            // by column
    size_t stride_ = sizeof(uint32_t);  // the label comes first
    Array<uint8_t> bytes_;
};

// Code -> branch of a node: a table, or where a column has far more codes than lead to
// branches, a sorted list of these.
class BranchOfCode {
  public:
    void make(uint32_t n_codes, std::vector<std::pair<uint32_t, int32_t>> branches) {
        if (n_codes > 4 * branches.size() + 64) {
            listed_ = std::move(branches);
            std::stable_sort(listed_.begin(), listed_.end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; });
            return;
        }
        table_.assign(n_codes, stop_here);
        for (const auto& [code, branch] : branches) table_[code] = branch;
    }

    int32_t operator[](uint32_t code) const {
        if (!table_.empty()) return table_[code];
        const auto after = std::upper_bound(
            listed_.begin(), listed_.end(), code,
            [](uint32_t wanted, const auto& entry) { return wanted < entry.first; });
        return after != listed_.begin() && std::prev(after)->first == code
                   ? std::prev(after)->second
                   : stop_here;
    }

  private:
    std::vector<int32_t> table_;
    std::vector<std::pair<uint32_t, int32_t>> listed_;
};

}  // namespace branchwise
