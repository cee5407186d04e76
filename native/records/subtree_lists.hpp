// The sorted numbers of a subtree of some thousand rows: its rows are numbered class by class, and
// columns have lists of these numbers, of two bytes each, which are divided in place. What a list
// is read with, ranks and classes, stays where it is.
//
// Records of the subtree have the numbers of their rows, and move as those of other nodes.

#pragma once

#include <cstdint>
#include <vector>

#include "records/list_division.hpp"
#include "records/rows.hpp"

namespace branchwise {

class SubtreeLists {
  public:
    using Row = uint16_t;
    static constexpr size_t most_rows = 65535;
    static constexpr size_t most_entries = size_t(1) << 24;  // of all lists together
    static constexpr size_t most_classes = 256;

    // For a subtree of n rows.
    void reserve(size_t n_lists, size_t n) {
        room_ = n;
        tied_.assign(n_lists, 0);
        if (rows_.size() < n_lists * n)
            for (auto* by_entry : {&rows_, &order_}) by_entry->resize(n_lists * n);
        ranks_.resize(rows_.size());
        if (labels.size() >= n) return;
        for (auto* by_row : {&branches, &positions, &others_}) by_row->resize(n + divided_together);
        labels.resize(n);
        times.resize(n);
        steps.resize(n);
    }

    // Take the entries of a sorted list; its places are those of row_of.
    template <typename PlaceOf>
    void take(size_t slot, const Ranked* entry, size_t n, const PlaceOf& place_of,
              const std::vector<Row>& row_of) {
        Row* const list = rows(slot);
        Row* const order = &order_[slot * room_];
        uint32_t* const rank = &ranks_[slot * room_];
        Row n_ranks = 0;
        for (size_t i = 0; i < n; ++i) {
            n_ranks += i > 0 && entry[i].rank != entry[i - 1].rank;
            rank[n_ranks] = entry[i].rank;
            list[i] = row_of[place_of(entry[i])];
            order[list[i]] = n_ranks;
        }
        tied_[slot] = size_t(n_ranks) + 1 < n;
    }

    // Of a list: its rows, their places among the distinct ranks, and these.
    Row* rows(size_t slot) { return &rows_[slot * room_]; }
    const Row* rows(size_t slot) const { return &rows_[slot * room_]; }
    const Row* order(size_t slot) const { return &order_[slot * room_]; }
    const uint32_t* ranks(size_t slot) const { return &ranks_[slot * room_]; }
    bool tied(size_t slot) const { return tied_[slot]; }  // whether rows share a number

    // Part rows by their branches, of which there are two: those of the first come first, those of
    // the second are put to `second`, which may be behind the first or over it. Returns how many.
    size_t part(Row* list, size_t n, Row* second) {
        const size_t n_second = part_in_two(list, n, branches.data(), others_.data());
        std::copy_n(others_.data(), n_second, second);
        return n_second;
    }

    // The same of any number of branches: `next` has room for each, and becomes where they end.
    const Row* sort(const Row* list, size_t n, std::vector<size_t>& next) {
        for (size_t i = 0; i < n; ++i) others_[next[branches[list[i]]]++] = list[i];
        return others_.data();
    }

    std::vector<Row> first_of_class;
    // By row; positions are those of records in their node.
    std::vector<Row> branches, positions;
    std::vector<uint8_t> labels;
    std::vector<Times> times;
    std::vector<int64_t> steps;

  private:
    size_t room_ = 0;  // of a list
    std::vector<Row> rows_, order_;
    std::vector<uint32_t> ranks_;
    std::vector<uint8_t> tied_;  // by list
    std::vector<Row> others_;    // scratch
};

}  // namespace branchwise
