// The general representation: rows as records that are moved physically.
//
// A record holds target, weight and case (if weighted), the codes of all categorical
// columns and the ranks of numeric ones with few distinct numbers, so counting reads
// memory in order. Other numeric columns are lists of (rank, position, target) sorted by
// rank, split stably so that they stay sorted.
//
// There are two buffers of records. A node lies in one of them, its children are written to the
// other. Depth-first, two buffers serve the whole tree: the node that is split lies
// beyond all open ones of its buffer, and once it is, its place is free for the children
// of its children. Where several threads are to take subtrees, each open node has a
// range of both buffers to itself instead. Only cases that go down every branch can make
// children outgrow their parent; for these there is more room than rows. Children that
// outgrow it all the same get two buffers of their own. Sorted lists, which are larger, have one
// buffer unless there are such cases: the lists of the children take the place of those of the node.

#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/choose.hpp"
#include "core/thread_pool.hpp"
#include "records/sorting.hpp"

namespace branchwise {

// An entry of a sorted list. `target` is the label of the record.
template <typename Target>
struct Ranked {
    uint32_t rank;
    uint32_t position;  // of the record, from the node's begin
    Target target;

    Ranked() = default;
    Ranked(uint32_t rank, uint32_t position, const Target& target)
        : rank(rank), position(position), target(target) {}

    Ranked moved_to(uint32_t place) const { return {rank, place, target}; }
};

// Numbers that are predicted are not in the list: half the size is worth more than numbers in the
// order of the list.
template <>
struct Ranked<double> {
    uint32_t rank;
    uint32_t position;

    Ranked() = default;
    Ranked(uint32_t rank, uint32_t position, double) : rank(rank), position(position) {}

    Ranked moved_to(uint32_t place) const { return {rank, place, 0.0}; }
};

// The label of a record and its weight, in steps: what sorted numbers take with them where records
// have weights.
struct WeighedLabel {
    uint32_t label;
    uint32_t low, high;  // of the steps; four bytes each, so that an entry needs no padding

    WeighedLabel() = default;
    WeighedLabel(uint32_t label, int64_t steps) : label(label) { set_steps(steps); }

    int64_t steps() const { return int64_t(uint64_t(high) << 32 | low); }
    void set_steps(int64_t steps) {
        low = uint32_t(uint64_t(steps));
        high = uint32_t(uint64_t(steps) >> 32);
    }
};

template <typename W>
using LabelOf = std::conditional_t<std::is_same<W, double>::value, WeighedLabel, uint32_t>;

inline uint32_t label_of(uint32_t target) { return target; }
inline uint32_t label_of(const WeighedLabel& target) { return target.label; }
inline uint32_t steps_of_target(uint32_t) { return 1; }
inline int64_t steps_of_target(const WeighedLabel& target) { return target.steps(); }

// The target as a record has it: a weight of its own is beside it.
template <typename Target>
using InRecord =
    std::conditional_t<std::is_same<Target, WeighedLabel>::value, uint32_t, Target>;
inline double in_record(double target) { return target; }
inline uint32_t in_record(uint32_t target) { return target; }
inline uint32_t in_record(const WeighedLabel& target) { return target.label; }

// The weights of some entries by class: `slot` is the place of each of these classes in `sums`.
template <typename Target, typename Steps>
void add_up_classes(const Ranked<Target>* entry, size_t n, const std::vector<uint32_t>& classes,
                    const std::vector<uint32_t>& slot, Steps* sums) {
    std::fill_n(sums, classes.size(), Steps(0));
    if (classes.size() != 2) {
        for (size_t i = 0; i < n; ++i)
            sums[slot[label_of(entry[i].target)]] += steps_of_target(entry[i].target);
        return;
    }
    // Two sums in registers: in memory, one addition would wait for the other.
    const uint32_t second = classes[1];
    Steps all = 0, of_second = 0;
    for (size_t i = 0; i < n; ++i) {
        const Steps steps = steps_of_target(entry[i].target);
        all += steps;
        of_second += label_of(entry[i].target) == second ? steps : 0;
    }
    sums[0] = all - of_second;
    sums[1] = of_second;
}

// The numeric columns, ranked: the rank of a number is its place among the distinct
// ones. A column with few distinct numbers keeps the rank in the record, like a code,
// and is counted like categories; one with many is a sorted list.
struct Numbers {
    // Up to this many distinct numbers are counted rather than sorted.
    static constexpr size_t most_counted = FewNumbers::most;

    std::vector<uint32_t> rows;                       // those with weight, in order
    std::vector<std::vector<double>> values;          // by column: the distinct numbers
    std::vector<std::vector<uint16_t>> ranks;         // by column, if counted: of each of `rows`
    mutable std::vector<Array<RankedNumber>> sorted;  // by column, if a list; until the root is
    std::vector<char> all_apart;  // by column: whether C4.5 has thresholds between all numbers

    Numbers(const Problem& problem, ThreadPool& pool) {
        const size_t n_columns = problem.columns.size();
        for (size_t row = 0; row < problem.n_rows; ++row)
            if (!problem.weights || problem.weights[row] > 0) rows.push_back(uint32_t(row));
        values.resize(n_columns);
        ranks.resize(n_columns);
        sorted.resize(n_columns);
        all_apart.resize(n_columns);
        std::vector<NumberSorter> sorters(pool.size());
        pool.each(n_columns, rows.size() * n_columns, [&](size_t j, unsigned member) {
            if (!problem.columns[j].numeric) return;
            if (problem.columns[j].binned())
                rank_bins(problem.columns[j], j);
            else
                rank(problem.columns[j].numbers, j, sorters[member]);
            finish(j, problem.n_classes);
        });
    }

    bool counted(size_t column) const { return !ranks[column].empty(); }

  private:
    void rank(const double* numbers, size_t j, NumberSorter& sorter) {
        FewNumbers few;
        if (few.find(numbers, rows, ranks[j])) {
            for (uint64_t key : few.sorted_keys()) values[j].push_back(number_of(key));
            return;
        }
        std::vector<uint16_t>().swap(ranks[j]);
        sorter.sort(numbers, rows, sorted[j], values[j]);
    }

    void rank_bins(const Column& column, size_t j) {
        std::vector<uint16_t> rank(column.missing_bin() + 1, 0);
        for (uint32_t row : rows) rank[column.at(row)] = 1;
        rank[column.missing_bin()] = 0;
        for (size_t bin = 0; bin < rank.size(); ++bin) {
            const bool occurs = rank[bin];
            rank[bin] = uint16_t(values[j].size());
            if (occurs) values[j].push_back(double(bin));
        }
        ranks[j].resize(rows.size());
        for (size_t i = 0; i < rows.size(); ++i) ranks[j][i] = rank[column.at(rows[i])];
    }

    void finish(size_t j, int n_classes) {
        all_apart[j] =
            std::adjacent_find(values[j].begin(), values[j].end(), [](double low, double high) {
                return !(low + apart < high);
            }) == values[j].end();
        if (ranks[j].empty()) return;
        const size_t n_values = values[j].size();
        if (n_values <= most_counted && n_values * size_t(n_classes) <= rows.size()) return;
        // Too many for a table by rank and class.
        std::vector<uint32_t> next(n_values + 2, 0);
        for (uint16_t rank : ranks[j]) ++next[rank + 1];
        std::partial_sum(next.begin(), next.end(), next.begin());
        sorted[j].resize(next[n_values]);
        for (size_t i = 0; i < rows.size(); ++i) {
            const uint16_t rank = ranks[j][i];
            if (rank < n_values) sorted[j][next[rank]++] = {rank, uint32_t(i)};
        }
        std::vector<uint16_t>().swap(ranks[j]);
    }
};

// Where things lie within a record, and how many bytes each code has (0: none).
struct RecordLayout {
    static constexpr size_t unit = 8;    // a record is so many bytes, or a multiple
    static constexpr size_t least = 16;  // and at least so many: they are looked at together

    size_t target = 0;
    size_t weight = 0;
    size_t share = 0;  // how much of a case the record is
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
        size = std::max((at + unit - 1) / unit * unit, least);
    }
};

// Two buffers of records and, for every numeric column, one or two of ranked entries.
struct Arena {
    size_t capacity;
    Array<uint8_t> records[2];
    Array<uint64_t> ranked[2];  // entries of so many words

    Arena(size_t rows, size_t record_size, size_t n_lists, size_t entry_size, bool one_of_lists)
        : capacity(rows) {
        for (int side : {0, 1}) {
            records[side].resize(rows * record_size);
            if (one_of_lists && side == 1) continue;
            ranked[side].resize((rows * n_lists * entry_size + 7) / 8);
        }
    }
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
