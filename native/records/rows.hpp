// The general representation: rows as records that are moved physically.
//
// A record holds target, weight and case (if weighted), the codes of all categorical
// columns and the ranks of numeric ones with few distinct numbers, so counting reads
// memory in order. Other numeric columns are lists of ranks and places of records, sorted by
// rank, split stably so that they stay sorted.
//
// There are two buffers of records. A node lies in one of them, its children are written to the
// other. Depth-first, two buffers serve the whole tree: the node that is split lies
// beyond all open ones of its buffer, and once it is, its place is free for the children
// of its children. Where several threads are to take subtrees, each open node has a
// range of both buffers to itself instead. Only cases that go down every branch can make
// children outgrow their parent; for these there is more room than rows. Children that
// outgrow it all the same get two buffers of their own. Sorted lists, which are larger, have one
// buffer unless there are such cases: the lists of the children take the place of those of the
// node.

#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/choose.hpp"
#include "core/thread_pool.hpp"
#include "records/sorting.hpp"

namespace branchwise {

// The numeric columns, ranked: the rank of a number is its place among the distinct
// ones. A column with few distinct numbers keeps the rank in the record, like a code,
// and is counted like categories; one with many is a sorted list.
struct Numbers {
    // Up to this many distinct numbers are counted rather than sorted.
    static constexpr size_t most_counted = FewNumbers::most;

    std::vector<uint32_t> rows;                // those with weight, in order
    std::vector<DistinctNumbers> values;       // by column
    std::vector<std::vector<uint16_t>> ranks;  // by column, if counted: of each of `rows`
    mutable std::vector<SortedList> sorted;    // by column, if a list; until the root takes it
    std::vector<char> all_apart;  // by column: whether C4.5 has thresholds between all numbers

    Numbers(const Problem& problem, ThreadPool& pool) {
        const size_t n_columns = problem.columns.size();
        take_rows(problem);
        room_ = room_for(problem, rows.size());
        values.resize(n_columns);
        ranks.resize(n_columns);
        sorted.resize(n_columns);
        all_apart.resize(n_columns);
        std::vector<NumberSorter> sorters(pool.size());
        pool.each(n_columns, rows.size() * n_columns, [&](size_t j, unsigned member) {
            if (!problem.columns[j].numeric) return;
            if (problem.columns[j].binned())
                rank_bins(problem.columns[j], j, problem.n_classes);
            else
                rank(problem, j, sorters[member]);
        });
    }

    bool counted(size_t column) const { return !ranks[column].empty(); }

    // For the records of all open nodes, if there are so many of the root.
    static size_t room_for(const Problem& problem, size_t n) {
        return problem.fractions ? n + n / 2 : n;
    }

  private:
    void take_rows(const Problem& problem) {
        if (!problem.weights) {
            rows.resize(problem.n_rows);
            std::iota(rows.begin(), rows.end(), 0u);
            return;
        }
        rows.reserve(problem.n_rows);
        for (size_t row = 0; row < problem.n_rows; ++row)
            if (problem.weights[row] > 0) rows.push_back(uint32_t(row));
    }

    void rank(const Problem& problem, size_t j, NumberSorter& sorter) {
        const double* numbers = problem.columns[j].numbers;
        FewNumbers few;
        if (few.find(numbers, rows, ranks[j])) {
            std::vector<double> distinct;
            for (uint64_t key : few.sorted_keys()) distinct.push_back(number_of(key));
            return take_ranks(std::move(distinct), j, problem.n_classes);
        }
        std::vector<uint16_t>().swap(ranks[j]);
        values[j] = sorter.sort(numbers, rows, room_, sorted[j]);
        all_apart[j] = !problem.quinlan_thresholds || sorter.all_apart(apart);
    }

    void rank_bins(const Column& column, size_t j, int n_classes) {
        std::vector<uint16_t> rank(column.missing_bin() + 1, 0);
        for (uint32_t row : rows) rank[column.at(row)] = 1;
        rank[column.missing_bin()] = 0;
        std::vector<double> bins;
        for (size_t bin = 0; bin < rank.size(); ++bin) {
            const bool occurs = rank[bin];
            rank[bin] = uint16_t(bins.size());
            if (occurs) bins.push_back(double(bin));
        }
        ranks[j].resize(rows.size());
        for (size_t i = 0; i < rows.size(); ++i) ranks[j][i] = rank[column.at(rows[i])];
        take_ranks(std::move(bins), j, n_classes);
    }

    // The distinct numbers of a column whose ranks are known.
    void take_ranks(std::vector<double> distinct, size_t j, int n_classes) {
        all_apart[j] =
            std::adjacent_find(distinct.begin(), distinct.end(), [](double low, double high) {
                return !(low + apart < high);
            }) == distinct.end();
        const size_t n_values = distinct.size();
        values[j] = DistinctNumbers(std::move(distinct));
        if (n_values <= most_counted && n_values * size_t(n_classes) <= rows.size()) return;
        // Too many for a table by rank and class.
        std::vector<uint32_t> next(n_values + 2, 0);
        for (uint16_t rank : ranks[j]) ++next[rank + 1];
        std::partial_sum(next.begin(), next.end(), next.begin());
        sorted[j].n = next[n_values];
        sorted[j].entries.resize(room_);
        for (size_t i = 0; i < rows.size(); ++i) {
            const uint16_t rank = ranks[j][i];
            if (rank < n_values) sorted[j].entries[next[rank]++] = {rank, uint32_t(i)};
        }
        std::vector<uint16_t>().swap(ranks[j]);
    }

    size_t room_ = 0;  // of a list
};

// The type of weights where rows of a table are repeated: how often each is.
using Times = uint8_t;

// What is in the place of an entry of a list: the position of its record and, where Target is a
// label and all have space in a word, the label and how often the row counts, so that records need
// not be looked up in the order of the list. Loops take a copy, which stays in registers.
template <typename W, typename Target>
class Places {
  public:
    Places(size_t n_records, int n_classes) {
        const auto bits_up_to = [](size_t most) { return most ? 64 - __builtin_clzll(most) : 0; };
        const int bits = std::max(bits_up_to(size_t(n_classes) - 1), 1) + times_bits;
        if (has_labels && bits + bits_up_to(n_records) <= 32) bits_ = bits;
    }

    uint32_t operator()(uint32_t position, uint32_t label, Times times) const {
        if constexpr (repeated) label = label << times_bits | times;
        return position << bits_ | label;
    }
    size_t position(const Ranked& entry) const {
        if constexpr (has_labels) return entry.place >> bits_;
        return entry.place;
    }
    bool labelled() const { return has_labels && bits_ > 0; }
    uint32_t label(const Ranked& entry) const { return (entry.place & mask()) >> times_bits; }
    Times times(const Ranked& entry) const { return Times(entry.place); }
    Ranked moved_to(const Ranked& entry, uint32_t position) const {
        if constexpr (has_labels) return {entry.rank, position << bits_ | (entry.place & mask())};
        return {entry.rank, position};
    }

  private:
    static constexpr bool has_labels = !std::is_same<Target, double>::value;
    static constexpr bool repeated = std::is_same<W, Times>::value;
    static constexpr int times_bits = repeated ? 8 : 0;
    uint32_t mask() const { return (uint32_t(1) << bits_) - 1; }

    int bits_ = 0;  // of what is beside the position
};

// Where things lie within a record, and how many bytes each code has (0: none).
struct RecordLayout {
    static constexpr size_t unit = 8;    // a record is so many bytes, or a multiple
    static constexpr size_t least = 16;  // and at least so many: they are looked at together

    size_t target = 0;
    size_t weight = 0;  // or how often it counts
    size_t share = 0;   // how much of a case the record is
    size_t size = 0;
    std::vector<size_t> code;
    std::vector<int> width;

    RecordLayout(const Problem& problem, const Numbers& numbers, bool weighted,
                 size_t target_size) {
        weight = 0;
        share = problem.weights ? 8 : 0;  // without weights, a record weighs what it is of a case
        size_t at = !weighted ? 0 : problem.fractions ? share + 8 : 8;
        target = at;
        at += target_size;
        code.resize(problem.columns.size());
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            const Column& column = problem.columns[j];
            const int rank_bytes = !numbers.counted(j) ? 0 : numbers.values[j].size() < 256 ? 1 : 2;
            width.push_back(column.numeric ? rank_bytes : column.width);
        }
        for (int bytes : {4, 2, 1})
            for (size_t j = 0; j < width.size(); ++j)
                if (width[j] == bytes) {
                    code[j] = at;
                    at += size_t(bytes);
                }
        if (problem.times) weight = std::exchange(at, at + sizeof(Times));
        size = std::max((at + unit - 1) / unit * unit, least);
    }
};

// Two buffers of records and, for every numeric column that is a list, one or two of entries.
struct Arena {
    size_t capacity;
    Scratch<uint8_t> records[2];
    std::vector<Scratch<Ranked>> lists[2];

    Arena(size_t rows, size_t record_size) : capacity(rows) {
        for (auto& side : records) side.resize(rows * record_size);
    }

    void make_lists(int side, size_t n) {
        lists[side].resize(n);
        for (auto& list : lists[side]) list.resize(capacity);
    }

    // Give back what lists have before a place, which is not read any more.
    void give_back_lists(size_t end) {
        constexpr size_t at_once = size_t(1) << 15;
        end = end / at_once * at_once;
        if (end <= given_back) return;
        for (auto& list : lists[0]) give_back(list, given_back, end);
        given_back = end;
    }

    // Give back what the records of a side have beyond so many bytes, if that is much.
    void give_back_records(int side, size_t end) {
        constexpr size_t much = large_page;
        const size_t taken = std::min(taken_[side], records[side].size());
        end = (end + large_page - 1) / large_page * large_page;
        if (end + much <= taken) give_back(records[side], end, taken);
        if (end + much <= taken || end > taken) taken_[side] = end;
    }

  private:
    size_t given_back = 0;
    size_t taken_[2] = {SIZE_MAX, SIZE_MAX};  // bytes of records that may be in memory
};

// Whole units; a copy of a size that is known only now would be a call.
inline void copy_record(const uint8_t* from, uint8_t* to, size_t size) {
    size_t at = 0;
    for (; at + 2 * RecordLayout::unit <= size; at += 2 * RecordLayout::unit)
        std::memcpy(to + at, from + at, 2 * RecordLayout::unit);
    if (at < size) std::memcpy(to + at, from + at, RecordLayout::unit);
}

// An amount on a grid, as so many steps of it.
inline int64_t steps_of(double amount, double step) { return int64_t(std::rint(amount / step)); }

template <typename T>
inline T load(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
}

template <typename T>
inline void store(uint8_t* at, T value) {
    std::memcpy(at, &value, sizeof(T));
}

}  // namespace branchwise
