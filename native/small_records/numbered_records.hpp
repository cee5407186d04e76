// The records of a node, numbered: which have a value of a column, as the bits of a word, and the
// order of their numbers.
//
// It knows columns of codes below 64, with a branch for each value, and numbers.

#pragma once

#include "small_records/admissible_columns.hpp"

namespace branchwise {

// The rows of a subtree in the order of a number.
struct NumberedOrder {
    static constexpr size_t most = 64;
    using Bits = uint64_t;  // one for each row

    uint32_t rank[most];  // from the lowest on
    uint8_t row[most];    // in the same order
    uint8_t place[most];  // by row: where it is in that order
    size_t n;             // rows that have a number

    void clear() { n = 0; }
    void add(uint8_t of_row, uint32_t of_rank) {
        rank[n] = of_rank;
        row[n] = of_row;
        place[of_row] = uint8_t(n++);
    }

    // Some rows that have a number, as bits in the order of their numbers.
    Bits in_order(Bits rows) const {
        Bits places = 0;
        for (; rows; rows &= rows - 1) places |= Bits(1) << place[__builtin_ctzll(rows)];
        return places;
    }
};

class NumberedRecords {
  protected:
    using Rows = Records<double>;
    static constexpr size_t most = NumberedOrder::most;  // records
    using Bits = NumberedOrder::Bits;
    using Alive = AdmissibleColumns::Alive;
    using Cases = AdmissibleColumns::Cases;
    static constexpr uint32_t most_codes = AdmissibleColumns::most_codes;
    static constexpr uint32_t few_codes = 16;
    static_assert(most == AdmissibleColumns::most_rows, "rows have a bit each");

    // A column in the subtree: its values are those from `begin` to `end`.
    struct LocalColumn {
        uint32_t column;
        uint32_t place;  // where it is among those that are alive
        uint32_t missing_code;
        uint32_t begin, end;
        Bits missing;
        uint8_t* codes;          // by row, if it is a category
        NumberedOrder* ordered;  // if it is a number, which has no values
        uint64_t subtree;        // the last one that it was read of

        bool is_number() const { return ordered; }
    };

    template <typename Visit>
    static void each_bit(Bits bits, const Visit& visit) {
        for (; bits; bits &= bits - 1) visit(size_t(__builtin_ctzll(bits)));
    }

    NumberedRecords(const Problem& problem, const Rows& records)
        : records_(records),
          admissible_columns_(problem, records),
          first_number_(admissible_columns_.end_of_places()),
          number_of_(size_t(problem.n_classes)),
          codes_(first_number_ * most),
          orders_(problem.columns.size()) {
        uint32_t n_values = 0;
        for (uint32_t j = 0; j < problem.columns.size(); ++j) {
            const uint32_t place = admissible_columns_.place_of(j);
            NumberedOrder* const ordered = records.is_numeric(j) ? &orders_[j] : nullptr;
            uint8_t* const codes = place < first_number_ ? &codes_[place * most] : nullptr;
            columns_.push_back(
                {j, place, records.missing_code(j), n_values, n_values, 0, codes, ordered, 0});
            if (place != AdmissibleColumns::nowhere) n_values += records.missing_code(j);
            if (ordered) add_number(columns_.back());
        }
        code_.resize(n_values);
        rows_of_.resize(n_values);
    }

    // False if it has columns that are not known here. `weights` are those of its classes.
    bool load(const RecordJob& job, const double* weights) {
        every_column_ = {};
        for (uint32_t j : *job.alive) {
            const uint32_t place = columns_[j].place;
            if (place == AdmissibleColumns::nowhere) return false;
            every_column_[place / 64] |= uint64_t(1) << place % 64;
        }
        n_ = job.n;
        first_ = records_.first(job);
        ++subtree_;
        has_codes_ = admissible_columns_.are_many(job.alive->size());
        if (has_codes_) {
            admissible_columns_.load(first_, n_);
            admissible_columns_.read_codes(first_, n_, codes_.data());
        }
        for (uint32_t j : numbers_)
            if (is_in(every_column_, columns_[j])) load_order(job, columns_[j]);
        load_classes(weights);
        return true;
    }

    static bool is_in(const Alive& columns, const LocalColumn& column) {
        return columns[column.place / 64] >> column.place % 64 & 1;
    }

    // A column, its values found: few columns of a subtree are ever looked at.
    const LocalColumn& column_at(uint32_t j) {
        LocalColumn& column = columns_[j];
        if (column.subtree != subtree_ && !column.is_number()) {
            column.subtree = subtree_;
            if (!has_codes_) read_codes(column);
            find_values(column);
        }
        return column;
    }

    Bits every_row() const { return ~Bits(0) >> (most - n_); }
    // The rows of a value, and its code.
    Bits rows_of(uint32_t value) const { return rows_of_[value]; }
    uint32_t code_of(uint32_t value) const { return code_[value]; }

    const Rows& records_;
    AdmissibleColumns admissible_columns_;
    const uint32_t first_number_;    // its place; beyond those of other columns
    std::vector<uint32_t> numbers_;  // by place, from there on
    size_t n_ = 0;                   // rows
    Alive every_column_;
    std::vector<uint32_t> classes_;  // in the order of their local numbers
    Bits rows_of_class_[most];       // by local number
    uint8_t class_of_[most];         // by row: a local number

  private:
    void add_number(LocalColumn& column) {
        const size_t place = first_number_ + numbers_.size();
        if (place >= AdmissibleColumns::most_places) return;
        column.place = uint32_t(place);
        numbers_.push_back(column.column);
    }

    void read_codes(LocalColumn& column) {
        const uint8_t* code = first_ + records_.layout().code[column.column];
        for (size_t row = 0; row < n_; ++row, code += records_.size()) column.codes[row] = *code;
    }

    // Of few codes all are taken, whether there are rows of them or not: then nothing has to be
    // guessed.
    void find_values(LocalColumn& column) {
        const Bits all = every_row();
        const uint32_t missing = column.missing_code;
        if (missing > few_codes) return find_values_of_rows(column, all);
        for (uint32_t code = 0; code < missing; ++code) {
            code_[column.begin + code] = uint8_t(code);
            rows_of_[column.begin + code] = all & rows_with(column.codes, uint8_t(code));
        }
        column.end = column.begin + missing;
        column.missing = all & rows_with(column.codes, uint8_t(missing));
    }

    // All rows with the value of the first, then with that of the first of the others.
    void find_values_of_rows(LocalColumn& column, Bits left) {
        Bits of_code[most_codes];
        Bits present = 0;  // codes
        while (left) {
            const uint8_t code = column.codes[__builtin_ctzll(left)];
            of_code[code] = left & rows_with(column.codes, code);
            left &= ~of_code[code];
            present |= Bits(1) << code;
        }
        column.missing = present >> column.missing_code & 1 ? of_code[column.missing_code] : 0;
        uint32_t next = column.begin;
        each_bit(present & ~(Bits(1) << column.missing_code), [&](size_t code) {
            code_[next] = uint8_t(code);
            rows_of_[next++] = of_code[code];
        });
        column.end = next;
    }

    // Of a few rows more than there are.
    Bits rows_with(const uint8_t* codes, uint8_t code) const {
        constexpr size_t half = most / 2;
        Bits rows = rows_with<half>(codes, code);
        if (n_ > half) rows |= rows_with<half>(codes + half, code) << half;
        return rows;
    }
    template <size_t n>
    static Bits rows_with(const uint8_t* codes, uint8_t code) {
        Bits rows = 0;
        for (size_t i = 0; i < n; i += sizeof(Lanes))
            rows |= Bits(lanes_with(codes + i, code)) << i;
        return rows;
    }

    void load_order(const RecordJob& job, LocalColumn& column) {
        NumberedOrder& order = *column.ordered;
        order.clear();
        if (records_.is_list(column.column))
            load_list(job, records_.slot(column.column), order);
        else
            sort_ranks(column.column, order);
        column.missing = every_row();
        for (size_t i = 0; i < order.n; ++i) column.missing &= ~(Bits(1) << order.row[i]);
    }

    void load_list(const RecordJob& job, size_t slot, NumberedOrder& order) const {
        const Ranked* const entry = records_.ranked(job, slot);
        for (size_t i = 0; i < job.n_ranked[slot]; ++i)
            order.add(uint8_t(records_.position(entry[i])), entry[i].rank);
    }

    // Of a column whose ranks are in the records.
    void sort_ranks(size_t j, NumberedOrder& order) {
        const uint32_t missing = records_.missing_code(j);
        by_rank_.clear();
        const uint8_t* record = first_;
        for (size_t i = 0; i < n_; ++i, record += records_.size()) {
            const uint32_t rank = records_.code(record, j);
            if (rank < missing) by_rank_.emplace_back(rank, uint8_t(i));
        }
        std::sort(by_rank_.begin(), by_rank_.end());
        for (const auto& [rank, row] : by_rank_) order.add(row, rank);
    }

    // The classes that it has, numbered.
    void load_classes(const double* weights) {
        classes_.clear();
        for (size_t c = 0; c < number_of_.size(); ++c) {
            if (!(weights[c] > 0)) continue;
            rows_of_class_[classes_.size()] = 0;
            number_of_[c] = uint8_t(classes_.size());
            classes_.push_back(uint32_t(c));
        }
        const uint8_t* record = first_;
        for (size_t i = 0; i < n_; ++i, record += records_.size()) {
            class_of_[i] = number_of_[records_.label(record)];
            rows_of_class_[class_of_[i]] |= Bits(1) << i;
        }
    }

    std::vector<uint8_t> number_of_;     // by class: its local number
    std::vector<uint8_t> codes_;         // by place of a column and row
    std::vector<NumberedOrder> orders_;  // by column
    std::vector<LocalColumn> columns_;
    std::vector<uint8_t> code_;  // by value
    std::vector<Bits> rows_of_;  // by value
    uint64_t subtree_ = 0;       // how many there were
    const uint8_t* first_ = nullptr;
    bool has_codes_ = false;                             // of all columns
    std::vector<std::pair<uint32_t, uint8_t>> by_rank_;  // scratch
};

}  // namespace branchwise
