// The general representation: rows as records that are moved physically.
//
// A record holds label, weight and case (if weighted) and the codes of all
// categorical columns, so counting reads memory in order. Numeric columns are lists
// of (rank, position, label) sorted by rank, split stably so that they stay sorted.
//
// A node owns the range [begin, begin + n) of one of two buffers; its children are
// written to the same range of the other. Depth-first, two buffers serve the whole
// tree. Only cases that go down every branch can make children outgrow their parent;
// such children get two buffers of their own.

#pragma once

#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "choose.hpp"

namespace branchwise {

struct Ranked {
    uint32_t rank;
    uint32_t position;  // of the record, from the node's begin
    uint32_t label;
};

// Where things lie within a record.
struct RecordLayout {
    size_t label = 0;
    size_t weight = 0;
    size_t share = 0;  // how much of a case the record is
    size_t size = 0;
    std::vector<size_t> code;  // by column; unused for numeric ones

    RecordLayout(const Problem& problem, bool weighted) {
        size_t at = weighted ? 16 : 0;
        weight = 0;
        share = 8;
        label = at;
        at += 4;
        code.resize(problem.columns.size());
        for (int width : {4, 2, 1})
            for (size_t j = 0; j < problem.columns.size(); ++j)
                if (!problem.columns[j].numeric && problem.columns[j].width == width) {
                    code[j] = at;
                    at += static_cast<size_t>(width);
                }
        const size_t unit = weighted ? 8 : 4;
        size = (at + unit - 1) / unit * unit;
    }
};

// Two buffers of records and, for every numeric column, two of ranked entries.
struct Arena {
    size_t capacity;
    std::unique_ptr<uint8_t[]> records[2];
    std::unique_ptr<Ranked[]> ranked[2];

    Arena(size_t rows, size_t record_size, size_t n_numeric) : capacity(rows) {
        for (int side : {0, 1}) {
            records[side].reset(new uint8_t[rows * record_size]);
            if (n_numeric) ranked[side].reset(new Ranked[rows * n_numeric]);
        }
    }
};

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
