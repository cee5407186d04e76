// The records of a node, numbered: which have a value of a column, as the bits of a word, and the
// order of their numbers.
//
// It knows columns of codes below 64, with a branch for each value, and numbers.

#pragma once

#include "core/byte_matrix.hpp"
#include "records/records.hpp"
#include "small_records/value_sets.hpp"

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
    static constexpr size_t most_narrow = 32;  // records whose bits have space in half a word
    static constexpr uint32_t most_codes = 64;
    static constexpr uint32_t few_codes = 16;
    static constexpr size_t most_columns = 256;
    static constexpr size_t lanes = 4;  // values of a column take up a multiple of so many

    // A column at the root of the subtree: its values are those from `begin` to `end`.
    struct LocalColumn {
        uint32_t column;
        uint32_t missing_code;
        uint32_t begin, end;
        Bits missing;
        const uint8_t* codes;          // by row
        const NumberedOrder* ordered;  // if it is a number, which has no values

        bool is_number() const { return ordered; }
    };

    template <typename Visit>
    static void each_bit(Bits bits, const Visit& visit) {
        for (; bits; bits &= bits - 1) visit(size_t(__builtin_ctzll(bits)));
    }

    NumberedRecords(const Problem& problem, const Rows& records)
        : records_(records),
          local_(problem.columns.size()),
          number_of_(size_t(problem.n_classes)),
          codes_(records.size() * most),
          orders_(problem.columns.size()) {
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            const bool is_known = !records.is_numeric(j) && records.layout().width[j] == 1 &&
                                  records.missing_code(j) < most_codes;
            missing_code_.push_back(is_known ? records.missing_code(j) : unknown);
        }
    }

    // False if it has columns that are not known here. `weights` are those of its classes.
    bool load(const RecordJob& job, const double* weights) {
        n_ = job.n;
        if (job.alive->size() > most_columns) return false;
        columns_.resize(job.alive->size());
        uint32_t n_columns = 0;
        // Member by member: what is put together first and copied then has to wait.
        for (uint32_t j : *job.alive) {
            const bool is_number = records_.is_numeric(j);
            if (missing_code_[j] == unknown && !is_number) return false;
            local_[j] = n_columns;
            LocalColumn& column = columns_[n_columns++];
            column.column = j;
            column.missing_code = missing_code_[j];
            column.codes = &codes_[records_.layout().code[j] * most];
            column.ordered = is_number ? &orders_[j] : nullptr;
        }
        load_codes(job);
        const size_t most_values = columns_.size() * (std::max<size_t>(n_, few_codes) + lanes);
        if (code_.size() < most_values) {
            code_.resize(most_values);
            wide_.resize(most_values);
            narrow_.resize(most_values);
        }
        if (is_narrow())
            find_values(narrow_.data());
        else
            find_values(wide_.data());
        for (LocalColumn& column : columns_)
            if (column.is_number()) load_order(job, column);
        load_classes(job, weights);
        return true;
    }

    // Whether the rows of values are in narrow_, not in wide_.
    bool is_narrow() const { return n_ <= most_narrow; }
    // The rows of a value, and its code.
    Bits rows_of(uint32_t value) const { return is_narrow() ? narrow_[value] : wide_[value]; }
    uint32_t code_of(uint32_t value) const { return code_[value]; }

    const Rows& records_;
    size_t n_ = 0;  // rows
    std::vector<LocalColumn> columns_;
    std::vector<uint64_t> wide_;     // by value: its rows
    std::vector<uint32_t> narrow_;   // the same in half a word
    std::vector<uint32_t> classes_;  // in the order of their local numbers
    Bits rows_of_class_[most];       // by local number
    uint8_t class_of_[most];         // by row: a local number
    std::vector<uint32_t> local_;    // by column: its place in columns_

  private:
    static constexpr uint32_t unknown = ~uint32_t(0);

    // Codes lie in records in the order of the columns; sixteen bytes of sixteen records at a time.
    void load_codes(const RecordJob& job) {
        const std::vector<size_t>& at = records_.layout().code;
        size_t end = 0;
        for (const LocalColumn& column : columns_) {
            if (column.is_number() || at[column.column] < end) continue;
            const size_t begin = std::min(at[column.column], records_.size() - ByteMatrix::size);
            for (size_t i = 0; i < n_; i += ByteMatrix::size) load_bytes(job, begin, i);
            end = begin + ByteMatrix::size;
        }
    }

    // Those after the last record are its own.
    void load_bytes(const RecordJob& job, size_t begin, size_t first) {
        const uint8_t* const records = records_.first(job) + begin;
        ByteMatrix bytes;
        for (size_t k = 0; k < ByteMatrix::size; ++k)
            bytes.read(k, records + std::min(first + k, n_ - 1) * records_.size());
        bytes.transpose();
        for (size_t k = 0; k < ByteMatrix::size; ++k)
            bytes.write(k, &codes_[(begin + k) * most + first]);
    }

    // The values of all columns, and their rows. Of few codes all are taken, whether there are rows
    // of them or not: then nothing has to be guessed.
    template <typename Word>
    void find_values(Word* rows) {
        const Bits all = every_row();
        uint32_t next = 0;
        for (LocalColumn& column : columns_) {
            const uint32_t missing = column.missing_code;
            column.begin = column.end = next;
            if (column.is_number()) continue;
            if (missing <= few_codes) {
                for (uint32_t code = 0; code < missing; ++code, ++next) {
                    code_[next] = uint8_t(code);
                    rows[next] = Word(all) & rows_with<Word>(column.codes, uint8_t(code));
                }
                column.missing = all & rows_with<Word>(column.codes, uint8_t(missing));
            } else {
                find_values_of_rows(column, all, rows, next);
            }
            column.end = next;
            while (next % lanes) rows[next++] = 0;
        }
    }

    // All rows with the value of the first, then with that of the first of the others.
    template <typename Word>
    void find_values_of_rows(LocalColumn& column, Bits left, Word* rows, uint32_t& next) {
        Bits of_code[most_codes];
        Bits present = 0;  // codes
        while (left) {
            const uint8_t code = column.codes[__builtin_ctzll(left)];
            of_code[code] = left & rows_with<Word>(column.codes, code);
            left &= ~of_code[code];
            present |= Bits(1) << code;
        }
        column.missing = present >> column.missing_code & 1 ? of_code[column.missing_code] : 0;
        each_bit(present & ~(Bits(1) << column.missing_code), [&](size_t code) {
            code_[next] = uint8_t(code);
            rows[next++] = Word(of_code[code]);
        });
    }

    // As many rows as a word has bits, whether there are so many or not.
    template <typename Word>
    static Word rows_with(const uint8_t* codes, uint8_t code) {
        Word rows = 0;
        for (size_t i = 0; i < 8 * sizeof(Word); i += sizeof(Lanes))
            rows |= Word(lanes_with(codes + i, code)) << i;
        return rows;
    }

    Bits every_row() const { return ~Bits(0) >> (most - n_); }

    void load_order(const RecordJob& job, LocalColumn& column) {
        NumberedOrder& order = orders_[column.column];
        order.clear();
        if (records_.is_list(column.column))
            load_list(job, records_.slot(column.column), order);
        else
            sort_ranks(job, column.column, order);
        column.missing = every_row();
        for (size_t i = 0; i < order.n; ++i) column.missing &= ~(Bits(1) << order.row[i]);
    }

    void load_list(const RecordJob& job, size_t slot, NumberedOrder& order) const {
        const Ranked* const entry = records_.ranked(job, slot);
        for (size_t i = 0; i < job.n_ranked[slot]; ++i)
            order.add(uint8_t(records_.position(entry[i])), entry[i].rank);
    }

    // Of a column whose ranks are in the records.
    void sort_ranks(const RecordJob& job, size_t j, NumberedOrder& order) {
        const uint32_t missing = records_.missing_code(j);
        by_rank_.clear();
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < n_; ++i, record += records_.size()) {
            const uint32_t rank = records_.code(record, j);
            if (rank < missing) by_rank_.emplace_back(rank, uint8_t(i));
        }
        std::sort(by_rank_.begin(), by_rank_.end());
        for (const auto& [rank, row] : by_rank_) order.add(row, rank);
    }

    // The classes that it has, numbered.
    void load_classes(const RecordJob& job, const double* weights) {
        classes_.clear();
        for (size_t c = 0; c < number_of_.size(); ++c) {
            if (!(weights[c] > 0)) continue;
            rows_of_class_[classes_.size()] = 0;
            number_of_[c] = uint8_t(classes_.size());
            classes_.push_back(uint32_t(c));
        }
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < n_; ++i, record += records_.size()) {
            class_of_[i] = number_of_[records_.label(record)];
            rows_of_class_[class_of_[i]] |= Bits(1) << i;
        }
    }

    std::vector<uint8_t> number_of_;                     // by class: its local number
    std::vector<uint32_t> missing_code_;                 // by column
    std::vector<uint8_t> codes_;                         // by byte of a record and row
    std::vector<uint8_t> code_;                          // by value
    std::vector<NumberedOrder> orders_;                  // by column
    std::vector<std::pair<uint32_t, uint8_t>> by_rank_;  // scratch
};

}  // namespace branchwise
