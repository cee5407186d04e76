// Counts of one column by value and class, and the impurity of branches, from lines of counts.

#pragma once

#include <algorithm>
#include <vector>

#include "bit_rows/bit_layout.hpp"
#include "core/choose.hpp"

namespace branchwise {

// A node of bit rows whose columns are scored.
struct BitNode {
    uint32_t n;
    const std::vector<uint32_t>& counts_of_class;
    const std::vector<size_t>& classes;  // that it has
    int64_t impurity;
    Scale scale;
};

// Rows by value and class of one column, and by value.
struct ValueTable {
    std::vector<uint32_t> cells, sizes;

    ValueTable(const BitLayout& layout, size_t classes) {
        size_t most = 1;
        for (const Field& field : layout.fields()) most = std::max<size_t>(most, field.values);
        cells.resize(most * classes);
        sizes.resize(most);
    }

    // From lines of counts, each `line` long.
    template <typename Count>
    void read(const Field& field, const BitNode& node, const Count* counts, size_t line) {
        const size_t last = field.values - 1;
        const size_t classes = node.counts_of_class.size();
        std::fill_n(sizes.begin(), field.values, 0);
        if (node.classes.size() < classes) std::fill_n(cells.begin(), field.values * classes, 0);
        for (size_t c : node.classes) {
            const Count* bit = counts + c * line + field.first_bit();
            uint32_t left = node.counts_of_class[c];
            for (size_t v = 0; v < last; ++v) {
                cells[v * classes + c] = bit[v];
                sizes[v] += bit[v];
                left -= bit[v];
            }
            cells[last * classes + c] = left;
            sizes[last] += left;
        }
    }

    // From the rows themselves.
    void count(const Field& field, const BitNode& node, const uint64_t* row, size_t stride) {
        const size_t classes = node.counts_of_class.size();
        std::fill_n(cells.begin(), field.values * classes, 0);
        std::fill_n(sizes.begin(), field.values, 0);
        for (size_t c = 0; c < classes; ++c)
            for (uint32_t i = 0; i < node.counts_of_class[c]; ++i, row += stride) {
                const uint32_t value = field.value(row);
                ++cells[value * classes + c];
                ++sizes[value];
            }
    }
};

// Impurities of a branch for each value, by entropy: sums of table entries, one for each count.
class BitEntropy {
  public:
    explicit BitEntropy(const Impurities& impurities) : impurities_(impurities) {}

    // `of_sizes` gets what the sizes of branches have alone.
    template <typename Count>
    int64_t of_branches(const Field& field, const BitNode& node, const Count* counts, size_t line,
                        int64_t& of_sizes) const {
        const Count* first = counts + field.first_bit();
        const size_t last = field.values - 1;
        of_sizes = sum(first + node.counts_of_class.size() * line, last, node.n);
        int64_t in_branches = of_sizes;
        for (size_t c : node.classes)
            in_branches -= sum(first + c * line, last, node.counts_of_class[c]);
        return in_branches;
    }

  private:
    // Of a line of counts, which together with the last value's make up n.
    template <typename Count>
    int64_t sum(const Count* counts, size_t last, uint32_t n) const {
        int64_t sum = 0;
        for (size_t v = 0; v < last; ++v) {
            sum += impurity(counts[v]);
            n -= counts[v];
        }
        return sum + impurity(Count(n));
    }

    int64_t impurity(uint8_t count) const { return impurities_.table()[count]; }
    int64_t impurity(uint32_t count) const { return impurities_.x_log2_x(count); }

    const Impurities& impurities_;
};

}  // namespace branchwise
