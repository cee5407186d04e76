// Writing the codes of categories of one byte into records, sixteen columns and rows at a time.

#pragma once

#include <algorithm>
#include <vector>

#include "core/byte_matrix.hpp"
#include "records/rows.hpp"

namespace branchwise {

class ByteCodes {
  public:
    ByteCodes(const Problem& problem, const RecordLayout& layout) : record_size_(layout.size) {
        bool side_by_side = true;
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            const Column& column = problem.columns[j];
            if (column.numeric || layout.width[j] != 1) continue;
            if (codes_.empty()) first_ = layout.code[j];
            side_by_side = side_by_side && layout.code[j] == first_ + codes_.size();
            codes_.push_back(static_cast<const uint8_t*>(column.codes));
        }
        if (codes_.size() < together || !side_by_side) codes_.clear();
    }

    // Whether fill() writes them where none of n rows is left out between the first and the last.
    bool suits(const uint32_t* rows, size_t n) const {
        return !codes_.empty() && n >= together && rows[n - 1] - rows[0] + 1 == n;
    }

    // Write those of n rows from a first one on. The last ones may be written twice.
    void fill(size_t first_row, size_t n, uint8_t* records) const {
        for (size_t j = 0; j < codes_.size(); j += together) {
            const size_t column = std::min(j, codes_.size() - together);
            for (size_t i = 0; i < n; i += together) {
                const size_t row = std::min(i, n - together);
                ByteMatrix codes;
                for (size_t k = 0; k < together; ++k)
                    codes.read(k, codes_[column + k] + first_row + row);
                codes.transpose();
                for (size_t k = 0; k < together; ++k)
                    codes.write(k, records + (row + k) * record_size_ + first_ + column);
            }
        }
    }

  private:
    static constexpr size_t together = ByteMatrix::size;

    const size_t record_size_;
    size_t first_ = 0;                   // where they begin in a record
    std::vector<const uint8_t*> codes_;  // by column; none if they are too few, or apart
};

}  // namespace branchwise
