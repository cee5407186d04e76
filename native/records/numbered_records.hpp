// The records of a node, numbered: which have a value of a column, as the bits of a word.
//
// It knows columns of codes below 64, with a branch for each value.

#pragma once

#include "records/records.hpp"
#include "records/value_sets.hpp"

namespace branchwise {

class NumberedRecords {
  protected:
    using Rows = Records<double>;
    static constexpr size_t most = 64;  // records
    using Bits = uint64_t;              // one for each record
    static constexpr size_t most_codes = 64;
    static constexpr uint32_t few_codes = 16;
    static constexpr size_t most_columns = 256;

    struct Value {
        uint32_t code;
        Bits rows;
    };

    // A column at the root of the subtree: its values are values_[begin] to values_[end].
    struct LocalColumn {
        uint32_t column;
        uint32_t begin, end;
        Bits missing;
    };

    template <typename Visit>
    static void each_bit(Bits bits, const Visit& visit) {
        for (; bits; bits &= bits - 1) visit(size_t(__builtin_ctzll(bits)));
    }

    NumberedRecords(const Problem& problem, const Rows& records)
        : records_(records),
          local_(problem.columns.size()),
          number_of_(size_t(problem.n_classes)) {}

    // False if it has columns that are not known here. `weights` are those of its classes.
    bool load(const RecordJob& job, const double* weights) {
        n_ = job.n;
        columns_.clear();
        if (job.alive->size() > most_columns) return false;
        for (uint32_t j : *job.alive) {
            const bool is_known = !records_.is_numeric(j) && records_.layout().width[j] == 1 &&
                                  records_.missing_code(j) < most_codes;
            if (!is_known) return false;
            local_[j] = uint32_t(columns_.size());
            columns_.push_back({j, 0, 0, 0});
        }
        load_codes(job);
        values_.resize(std::max(values_.size(), columns_.size() * std::max<size_t>(n_, few_codes)));
        uint32_t n_values = 0;
        for (size_t k = 0; k < columns_.size(); ++k)
            n_values = find_values(columns_[k], codes_[k], n_values);
        load_classes(job, weights);
        return true;
    }

    const Rows& records_;
    size_t n_ = 0;  // rows
    std::vector<LocalColumn> columns_;
    std::vector<Value> values_;
    std::vector<uint32_t> classes_;  // in the order of their local numbers
    uint8_t class_of_[most];         // by row: a local number
    uint8_t codes_[most_columns][most] = {};
    std::vector<uint32_t> local_;  // by column: its place in columns_

  private:
    void load_codes(const RecordJob& job) {
        const uint8_t* record = records_.first(job);
        const std::vector<size_t>& at = records_.layout().code;
        for (size_t i = 0; i < n_; ++i, record += records_.size())
            for (size_t k = 0; k < columns_.size(); ++k)
                codes_[k][i] = record[at[columns_[k].column]];
    }

    // The values of a column into values_, from `begin` on; returns where they end. Of few values
    // all are taken, whether there are rows of them or not: then nothing has to be guessed. They
    // are written member by member: what is put together first and copied then has to wait.
    uint32_t find_values(LocalColumn& column, const uint8_t* codes, uint32_t begin) {
        const uint32_t missing = records_.missing_code(column.column);
        const Bits all = ~Bits(0) >> (most - n_);
        Value* value = &values_[begin];
        if (missing <= few_codes) {
            for (uint32_t code = 0; code < missing; ++code, ++value) {
                value->code = code;
                value->rows = all & rows_with(codes, uint8_t(code));
            }
            column.missing = all & rows_with(codes, uint8_t(missing));
        } else {
            find_values_of_rows(codes, missing, all, value, column.missing);
        }
        column.begin = begin;
        column.end = uint32_t(value - values_.data());
        return column.end;
    }

    // All rows with the value of the first, then with that of the first of the others.
    void find_values_of_rows(const uint8_t* codes, uint32_t missing, Bits left, Value*& value,
                             Bits& missing_rows) const {
        missing_rows = 0;
        Value* const first = value;
        while (left) {
            const uint8_t code = codes[__builtin_ctzll(left)];
            const Bits rows = left & rows_with(codes, code);
            left &= ~rows;
            value->code = code;
            value->rows = rows;
            value += code != missing;
            missing_rows |= code == missing ? rows : 0;
        }
        std::sort(first, value, [](const Value& a, const Value& b) { return a.code < b.code; });
    }

    Bits rows_with(const uint8_t* codes, uint8_t code) const {
        Bits rows = 0;
        for (size_t i = 0; i < n_; i += sizeof(Lanes))
            rows |= Bits(lanes_with(codes + i, code)) << i;
        return rows;
    }

    // The classes that it has, numbered.
    void load_classes(const RecordJob& job, const double* weights) {
        classes_.clear();
        for (size_t c = 0; c < number_of_.size(); ++c) {
            if (!(weights[c] > 0)) continue;
            number_of_[c] = uint8_t(classes_.size());
            classes_.push_back(uint32_t(c));
        }
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < n_; ++i, record += records_.size())
            class_of_[i] = number_of_[records_.label(record)];
    }

    std::vector<uint8_t> number_of_;  // by class: its local number
};

}  // namespace branchwise
