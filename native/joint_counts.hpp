// Counting the columns of few values at a node together, in one pass over its records.
//
// A line of counters for each class that the node has; in a line, a place for every
// value of every column. A record adds its weight to one line, once for each column.
// Additions of one record do not wait for each other, as those of a single column to
// the same few counters would. Sums are exact, so lines of several threads add up.

#pragma once

#include <algorithm>
#include <utility>

#include "records.hpp"

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
    const bool one_will_do = !problem.fractions && problem.cases_in_leaf <= 1 && problem.cases_in_branch <= 1;
    return column.numeric || !one_will_do;
}

template <typename W>
class JointCounts {
  public:
    static constexpr uint32_t most_codes = 64;

    JointCounts(const Problem& problem, const Records<W>& records)
        : problem_(problem), records_(records), line_of_class_(static_cast<size_t>(problem.n_classes)) {
        first_.assign(problem.columns.size(), none);
    }

    // Choose from the columns of a node of n records, and clear their counters, if there
    // are enough records for looking at all counters to be worth it.
    void begin(const std::vector<uint32_t>& columns, size_t n, const std::vector<W>& totals) {
        clear();
        size_t last = 0;
        for (uint32_t j : columns) {
            if (!suits(j)) continue;
            first_[j] = line_;
            add_place(j);
            last = j;
            cases_ = cases_ || counts_cases<W>(problem_, problem_.columns[j]);
        }
        while (places_.size() % together != 0) add_place(last);  // to counters that nobody reads
        size_t lines = cases_;
        classes_.clear();
        for (uint32_t c = 0; c < totals.size(); ++c) {
            if (!(totals[c] > 0)) continue;
            line_of_class_[c] = lines++;
            classes_.push_back(c);
        }
        if (lines * line_ > n * places_.size()) return clear();
        cells_.assign(lines * line_, W(0));
    }

    void clear() {
        for (size_t& first : first_) first = none;
        places_.clear();
        line_ = 0;
        cases_ = false;
    }

    void add(const uint8_t* record, size_t n) {
        if (cases_) add_records<true>(record, n);
        else add_records<false>(record, n);
    }

    void add(const JointCounts& other) {
        for (size_t i = 0; i < cells_.size(); ++i) cells_[i] += other.cells_[i];
    }

    bool empty() const { return places_.empty(); }
    bool holds(size_t column) const { return first_[column] != none; }

    // visit(value, class weights, size, cases) for every value that some record has.
    // `cell`: room for the weights.
    template <typename Visit>
    void for_each_value(size_t column, W* cell, const Visit& visit) const {
        std::fill(cell, cell + line_of_class_.size(), W(0));
        const uint32_t n_codes = records_.missing_code(column) + 1;
        for (uint32_t value = 0; value < n_codes; ++value) {
            const W* at = &cells_[first_[column] + value];
            W size = 0;
            for (uint32_t c : classes_) {
                cell[c] = at[line_of_class_[c] * line_];
                size += cell[c];
            }
            if (!(size > 0)) continue;
            const W cases = cases_ ? *at : cases_are_sizes<W>(problem_) ? size : W(1);
            visit(value, static_cast<const W*>(cell), size, static_cast<double>(cases));
        }
    }

  private:
    static constexpr size_t none = ~size_t(0);
    static constexpr size_t together = 4;  // columns
    static constexpr size_t block = 128;   // records

    // Where a record has a column's code, and where a line has the column's first value.
    struct Place {
        uint32_t in_record;
        uint32_t in_line;
    };

    bool suits(size_t column) const {
        return records_.layout().width[column] == 1 && records_.missing_code(column) < most_codes;
    }

    void add_place(size_t column) {
        places_.push_back({static_cast<uint32_t>(records_.layout().code[column]), line_});
        line_ += records_.missing_code(column) + 1;
    }

    template <bool with_cases>
    void add_records(const uint8_t* record, size_t n) {
        for (; n > block; n -= block, record += block * records_.size()) add_block<with_cases>(record, block);
        add_block<with_cases>(record, n);
    }

    // A few columns at a time, whose places stay in registers, over records that stay in
    // the cache.
    template <bool with_cases>
    void add_block(const uint8_t* const first, size_t n) {
        const size_t step = records_.size();
        const size_t line = line_;
        const size_t* const line_of_class = line_of_class_.data();
        for (size_t p = 0; p < places_.size(); p += together) {
            size_t code[together];
            W* counts[together];
            for (size_t k = 0; k < together; ++k) {
                code[k] = places_[p + k].in_record;
                counts[k] = cells_.data() + places_[p + k].in_line;
            }
            const uint8_t* record = first;
            for (size_t i = 0; i < n; ++i, record += step) {
                const W weight = records_.weight(record);
                const size_t at = line_of_class[records_.label(record)] * line;
                for (size_t k = 0; k < together; ++k) {
                    counts[k][at + record[code[k]]] += weight;
                    if (with_cases) counts[k][record[code[k]]] += static_cast<W>(records_.share(record));
                }
            }
        }
    }

    const Problem& problem_;
    const Records<W>& records_;
    std::vector<uint32_t> classes_;      // of the node
    std::vector<size_t> line_of_class_;  // set for these
    std::vector<size_t> first_;  // of each column, where a line has its first value
    std::vector<Place> places_;
    uint32_t line_ = 0;  // counters in a line
    bool cases_ = false;
    std::vector<W> cells_;
};

}  // namespace branchwise
