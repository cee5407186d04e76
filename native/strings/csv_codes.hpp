// Cells of delimited text, numbered while they are read. A cell is what the text has
// between two delimiters, its quotation marks included: what it means is found out once
// for each distinct one, not for each row.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/memory.hpp"
#include "strings/string_codes.hpp"

namespace branchwise {

// The cells of one column: a code for each row, and where each distinct cell lies.
class CsvColumn {
  public:
    CsvColumn(const uint8_t* text, const uint8_t* end) : text_(text), text_end_(end), cells_(end) {}

    // Make room for the codes of so many rows.
    void resize(size_t n_rows) { codes_.resize(n_rows); }

    void add(const uint8_t* begin, const uint8_t* end, size_t row) {
        const size_t length = size_t(end - begin);
        if (length > 8 || text_end_ - begin < 8) {
            codes_[row] = number(begin, end, row);
            return;
        }
        // Short cells are mostly among the last ones, in a table that stays in the nearest
        // cache, whatever the number of columns.
        const uint64_t word = StringCodes::short_text(begin, length);
        Recent& recent = recent_[(word * factor_) >> (64 - recent_bits)];
        if (recent.word != word || recent.length != length)
            recent = {word, uint32_t(length), number(begin, end, row)};
        codes_[row] = recent.code;
    }

    // Whether so many cells are distinct that numbering them does not pay.
    bool is_varied() const { return is_varied_; }

    const std::vector<int64_t>& starts() const { return cells_.firsts(); }
    const std::vector<int64_t>& ends() const { return ends_; }
    Array<int32_t>& codes() { return codes_; }

  private:
    static constexpr uint32_t few = 4096;
    static constexpr size_t rows_per_cell = 8;
    static constexpr int recent_bits = 10;

    struct Recent {
        uint64_t word = 0;
        uint32_t length = ~uint32_t(0);
        int32_t code = 0;
    };

    int32_t number(const uint8_t* begin, const uint8_t* end, size_t row) {
        const uint32_t code = cells_.number(begin, size_t(end - begin), begin - text_);
        if (code == ends_.size()) {
            ends_.push_back(end - text_);
            is_varied_ |= code > few && code > row / rows_per_cell;
        }
        return int32_t(code);
    }

    const uint8_t* const text_;
    const uint8_t* const text_end_;
    const uint64_t factor_ = HashKey::of_process().word[0] | 1;
    Recent recent_[size_t(1) << recent_bits];
    StringCodes cells_;
    std::vector<int64_t> ends_;
    Array<int32_t> codes_;
    bool is_varied_ = false;
};

// What is done with the cells of a column: they are numbered, copied or passed over.
struct CsvTarget {
    std::unique_ptr<CsvColumn> column;
    bool is_copied = false;
};

// Finds marks in a text: delimiters and line ends. They are found 64 bytes at a time, as bits, so
// that the next cell need not wait for the end of the one before.
class CsvMarks {
  public:
    CsvMarks(const uint8_t* text, const uint8_t* end, uint8_t delimiter)
        : end_(end), delimiter_(delimiter), block_(text), marks_(marks_of(text)) {}

    // The first mark from here on; the end of the text if there is none. Places never go back.
    const uint8_t* next(const uint8_t* at) {
        if (at - block_ >= block_size) {
            if (at >= end_) return end_;
            block_ = at;
            marks_ = marks_of(at);
        }
        uint64_t left = marks_ >> (at - block_) << (at - block_);
        while (!left) {
            if (end_ - block_ <= block_size) return end_;
            block_ += block_size;
            left = marks_ = marks_of(block_);
        }
        return block_ + __builtin_ctzll(left);
    }

  private:
    static constexpr ptrdiff_t block_size = 64;

    bool is_mark(uint8_t byte) const { return byte == delimiter_ || byte == '\n' || byte == '\r'; }

    uint64_t marks_of(const uint8_t* block) const {
        uint64_t marks = 0;
#if defined(__SSE2__)
        if (end_ - block >= block_size) {
            const __m128i delimiters = _mm_set1_epi8(char(delimiter_));
            const __m128i feeds = _mm_set1_epi8('\n'), returns = _mm_set1_epi8('\r');
            for (int i = 0; i < block_size; i += 16) {
                const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
                const __m128i ends =
                    _mm_or_si128(_mm_cmpeq_epi8(bytes, feeds), _mm_cmpeq_epi8(bytes, returns));
                const __m128i found = _mm_or_si128(ends, _mm_cmpeq_epi8(bytes, delimiters));
                marks |= uint64_t(uint32_t(_mm_movemask_epi8(found))) << i;
            }
            return marks;
        }
#endif
        const ptrdiff_t length = std::min(end_ - block, block_size);
        for (ptrdiff_t i = 0; i < length; ++i) marks |= uint64_t(is_mark(block[i])) << i;
        return marks;
    }

    const uint8_t* const end_;
    const uint8_t delimiter_;
    const uint8_t* block_;
    uint64_t marks_;
};

// Rows of delimited text. Empty lines are none. Cells may be in quotation marks, two of
// which are one within; anything else after the closing mark than a delimiter or the end
// of the line, a carriage return without a line feed, or a row of another width make the
// text one that this does not read.
class CsvRows {
  public:
    CsvRows(const uint8_t* text, size_t length, uint8_t delimiter)
        : text_(text),
          end_(text + length),
          delimiter_(delimiter),
          marks_(text, text + length, delimiter) {}

    // No fewer than the rows there are, one that is not whole included: each has a byte
    // after every cell, but the last.
    size_t most_rows(size_t width) const { return (size_t(end_ - text_) + 1) / width + 1; }

    // Reads all rows; false if that cannot be done. Cells to be copied are written to `copy`,
    // each with a delimiter after it, which is so long as the text and its rows together.
    bool read(std::vector<CsvTarget>& targets, uint8_t* copy) {
        const uint8_t* at = text_;
        copied_ = copy;
        size_t room = 0;
        while (at < end_) {
            const size_t blank = line_end(at);
            if (blank) {
                at += blank;
                continue;
            }
            if (n_rows_ == room) {
                room = rows_at(at, targets.size());
                for (CsvTarget& target : targets)
                    if (target.column) target.column->resize(room);
            }
            if (!read_row(at, targets)) return false;
        }
        return true;
    }

    size_t n_rows() const { return n_rows_; }

    // The end of what was copied.
    const uint8_t* copied() const { return copied_; }

  private:
    // Rows to make room for: some more than there are if those that follow are as long as those
    // before, or, at the beginning, as the first ones.
    size_t rows_at(const uint8_t* at, size_t width) const {
        const uint8_t* seen = n_rows_ ? at : text_ + std::min<ptrdiff_t>(end_ - text_, 1 << 14);
        const size_t n = n_rows_ ? n_rows_ : size_t(std::count(text_, seen, '\n')) + 1;
        const double all = double(n) * double(end_ - text_) / double(seen - text_);
        return std::min(most_rows(width), std::max(size_t(1.05 * all), n_rows_ + n_rows_ / 8) + 64);
    }

    // Reads one row, and moves to the next.
    bool read_row(const uint8_t*& at, std::vector<CsvTarget>& targets) {
        const size_t last = targets.size() - 1;
        const uint8_t* const copied = copied_;
        for (size_t i = 0; i <= last; ++i) {
            const uint8_t* end = cell_end(at);
            if (!end) return false;
            CsvTarget& target = targets[i];
            if (target.is_copied) {
                copied_ = std::copy(at, end, copied_);
                *copied_++ = delimiter_;
            } else if (target.column && !target.column->is_varied()) {
                target.column->add(at, end, n_rows_);
            }
            at = end;
            if (i < last) {
                if (at == end_ || *at != delimiter_) return false;
                ++at;
            } else if (at != end_) {
                const size_t length = line_end(at);
                if (!length) return false;
                at += length;
            }
        }
        if (copied_ != copied) *copied_++ = '\n';
        ++n_rows_;
        return true;
    }

    // The length of the line end that begins here; 0: none does.
    size_t line_end(const uint8_t* at) const {
        if (*at == '\n') return 1;
        return *at == '\r' && at + 1 < end_ && at[1] == '\n' ? 2 : 0;
    }

    // Where the cell that begins here ends; null if it is never closed.
    const uint8_t* cell_end(const uint8_t* at) {
        if (at == end_ || *at != '"') return marks_.next(at);
        for (++at;; at += 2) {
            at = std::find(at, end_, uint8_t('"'));
            if (at == end_) return nullptr;
            if (at + 1 == end_ || at[1] != '"') return at + 1;
        }
    }

    const uint8_t* const text_;
    const uint8_t* const end_;
    const uint8_t delimiter_;
    CsvMarks marks_;
    uint8_t* copied_ = nullptr;
    size_t n_rows_ = 0;
};

}  // namespace branchwise
