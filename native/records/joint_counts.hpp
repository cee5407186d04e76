// Counting the columns of few values at a node together, in one pass over its records.
//
// A line of counters for each class that the node has; in a line, room for every value
// of every column. A record adds its weight to one line, once for each column.
// Additions of one record do not wait for each other, as those of a single column to
// the same few counters would. Sums are exact, so lines of several threads add up.

#pragma once

#include <algorithm>
#include <utility>

#include "records/records.hpp"

namespace branchwise {

// A record without a weight of its own weighs what it is of a case.
template <typename W>
bool cases_are_sizes(const Problem& problem) {
    return !Records<W>::weighted || !problem.weights;
}

// Whether cases are counted beside the weights of a column's values. Else, if they are
// not the weights, they are taken for one: every record is a case, and no leaf must have
// more.
template <typename W>
bool counts_cases(const Problem& problem, const Column& column) {
    if (cases_are_sizes<W>(problem)) return false;
    const bool one_will_do =
        !problem.fractions && problem.cases_in_leaf <= 1 && problem.cases_in_branch <= 1;
    return column.numeric || !one_will_do;
}

template <typename W>
class JointCounts {
  public:
    using Weight = typename Records<W>::Weight;
    using Steps = typename Records<W>::Steps;
    static constexpr uint32_t most_codes = 64;

    JointCounts(const Problem& problem, const Records<W>& records)
        : problem_(problem), records_(records), start_of_class_(size_t(problem.n_classes)) {
        first_.assign(problem.columns.size(), none);
    }

    // Choose from the columns of a node of n records, and clear their counters, if there
    // are enough records for looking at all counters to be worth it.
    void begin(const std::vector<uint32_t>& columns, size_t n,
               const std::vector<uint32_t>& classes) {
        clear();
        size_t n_codes = 0;
        for (uint32_t j : columns) {
            if (!suits(j)) continue;
            n_codes += records_.missing_code(j) + 1;
            cases_ = cases_ || counts_cases<W>(problem_, problem_.columns[j]);
            (records_.missing_code(j) < narrow ? narrow_ : wide_).add(records_, j);
        }
        classes_ = classes;
        const size_t n_lines = classes_.size() + cases_;
        if (n_lines * n_codes > n * (narrow_.places.size() + wide_.places.size())) return clear();
        place_counters(n_lines);
    }

    void clear() {
        for (uint32_t j : narrow_.columns) first_[j] = none;
        for (uint32_t j : wide_.columns) first_[j] = none;
        narrow_.clear();
        wide_.clear();
        cases_ = false;
    }

    void add(const uint8_t* record, size_t n) {
        if (cases_)
            add_records<true>(record, n);
        else
            add_records<false>(record, n);
    }

    void add(const JointCounts& other) {
        for (size_t i = 0; i < cells_.size(); ++i) cells_[i] += other.cells_[i];
    }

    bool empty() const { return narrow_.columns.empty() && wide_.columns.empty(); }
    bool holds(size_t column) const { return first_[column] != none; }

    // visit(value, class weights, size, cases) for every value that some record has.
    // `cell`: room for the weights.
    template <typename Visit>
    void for_each_value(size_t column, Weight* cell, const Visit& visit) const {
        std::fill(cell, cell + start_of_class_.size(), Weight(0));
        const uint32_t n_codes = records_.missing_code(column) + 1;
        for (uint32_t value = 0; value < n_codes; ++value) {
            const Steps* at = &cells_[first_[column] + value];
            Steps steps = 0;
            for (uint32_t c : classes_) {
                const Steps of_class = at[start_of_class_[c]];
                cell[c] = records_.weight_of(of_class);
                steps += of_class;
            }
            if (!steps) continue;
            const Weight size = records_.weight_of(steps);
            double cases = 1.0;
            if (cases_)
                cases = records_.share_of(*at);
            else if (cases_are_sizes<W>(problem_))
                cases = double(size);
            visit(value, static_cast<const Weight*>(cell), size, cases);
        }
    }

  private:
    static constexpr size_t none = ~size_t(0);
    static constexpr uint32_t narrow = 16;  // codes
    static constexpr size_t block = 128;    // records

    // Columns that have the same room in a line, so that the place of a counter follows
    // from the column's place in a group.
    struct Places {
        std::vector<uint32_t> columns;
        std::vector<size_t> places;  // of their codes in a record

        void clear() {
            columns.clear();
            places.clear();
        }
        void add(const Records<W>& records, uint32_t j) {
            columns.push_back(j);
            places.push_back(records.layout().code[j]);
        }
    };

    bool suits(size_t column) const {
        return records_.layout().width[column] == 1 && records_.missing_code(column) < most_codes;
    }

    // Clear as many lines as there are classes, and one for cases.
    void place_counters(size_t n_lines) {
        for (size_t i = 0; i < narrow_.columns.size(); ++i) first_[narrow_.columns[i]] = i * narrow;
        wide_at_ = narrow_.places.size() * narrow;
        for (size_t i = 0; i < wide_.columns.size(); ++i)
            first_[wide_.columns[i]] = wide_at_ + i * most_codes;
        const size_t line = wide_at_ + wide_.places.size() * most_codes;
        cells_.assign(n_lines * line, Steps(0));
        size_t start = cases_ ? line : 0;
        for (uint32_t c : classes_) {
            start_of_class_[c] = start;
            start += line;
        }
    }

    template <bool with_cases>
    void add_records(const uint8_t* record, size_t n) {
        for (; n > block; n -= block, record += block * records_.size())
            add_block<with_cases>(record, block);
        add_block<with_cases>(record, n);
    }

    // Over records that stay in the cache.
    template <bool with_cases>
    void add_block(const uint8_t* record, size_t n) {
        add_columns<narrow, with_cases>(record, n, narrow_.places, cells_.data());
        add_columns<most_codes, with_cases>(record, n, wide_.places, cells_.data() + wide_at_);
    }

    // In groups: two records may add to the same counter of a column, so that one waits
    // for the other; there should be others to add to meanwhile.
    template <size_t room, bool with_cases>
    void add_columns(const uint8_t* record, size_t n, const std::vector<size_t>& places,
                     Steps* counters) const {
        const size_t* place = places.data();
        size_t left = places.size();
        const auto add = [&](auto together, auto in_a_row) {
            add_group<together, in_a_row, room, with_cases>(record, n, place, counters);
            left -= together;
            place += together;
            counters += together * room;
        };
        while (left)
            if (left >= many && place[many - 1] - place[0] == many - 1)
                add(std::integral_constant<size_t, many>(), std::true_type());
            else if (left >= 6)
                add(std::integral_constant<size_t, 6>(), std::false_type());
            else if (left >= 2)
                add(std::integral_constant<size_t, 2>(), std::false_type());
            else
                add(std::integral_constant<size_t, 1>(), std::false_type());
    }

    // A few columns, whose places stay in registers; or more that lie side by side, whose places
    // follow from the first.
    static constexpr size_t many = 10;
    template <size_t together, bool in_a_row, size_t room, bool with_cases>
    void add_group(const uint8_t* record, size_t n, const size_t* places,
                   Steps* const counters) const {
        const size_t step = records_.size();
        const size_t* const start_of_class = start_of_class_.data();
        const size_t first = places[0];
        size_t code[together];
        for (size_t k = 0; k < together; ++k) code[k] = in_a_row ? first + k : places[k];
        for (size_t i = 0; i < n; ++i, record += step) {
            const Steps steps = records_.steps(record);
            Steps* const of_class = counters + start_of_class[records_.label(record)];
            for (size_t k = 0; k < together; ++k) of_class[k * room + record[code[k]]] += steps;
            if (!with_cases) continue;
            const Steps share = records_.share_steps(record);
            for (size_t k = 0; k < together; ++k) counters[k * room + record[code[k]]] += share;
        }
    }

    const Problem& problem_;
    const Records<W>& records_;
    Places narrow_, wide_;
    size_t wide_at_ = 0;                  // in a line
    std::vector<uint32_t> classes_;       // of the node
    std::vector<size_t> start_of_class_;  // of their lines
    std::vector<size_t> first_;           // of each column, where a line has its first value
    bool cases_ = false;
    std::vector<Steps> cells_;
};

}  // namespace branchwise
