// Sums over the trees of an ensemble of what their nodes say.
//
// Rows are taken in runs that fit in the second cache, and go down one tree after the
// other, so that the jump table of a tree is read once for a run. Trees that test the
// same columns share the blocks that the cells of a run are copied to.

#pragma once

#include <algorithm>
#include <vector>

#include "predict/apply.hpp"

namespace branchwise {

// A tree of an ensemble, and the numbers of its nodes, `width` for each.
struct Addend {
    const Walk* walk;
    const double* values;
};

class TreeSums {
  public:
    TreeSums(std::vector<Addend> trees, std::vector<Cells> cells, size_t width)
        : trees_(std::move(trees)), cells_(std::move(cells)), width_(width) {}

    // Add the numbers of all trees to the totals of the rows, in the order of the trees.
    void add(size_t n_rows, double* totals) {
        nodes_.resize(most_bytes);
        for (size_t first = 0; first < n_rows;) {
            const bool bytes = std::all_of(trees_.begin(), trees_.end(), [&](const Addend& tree) {
                return tree.walk->in_bytes(cells_);
            });
            const size_t n = std::min(bytes ? most_bytes : most_words, n_rows - first);
            for (size_t tree = 0; tree < trees_.size();) tree = add_trees(tree, first, n, totals);
            first += n;
        }
    }

  private:
    static constexpr size_t most_bytes = 1 << 14;
    static constexpr size_t most_words = 1 << 12;

    // Add a tree and those after it that test the same columns; return the next one.
    size_t add_trees(size_t tree, size_t first, size_t n, double* totals) {
        const Walk& walk = *trees_[tree].walk;
        const JumpTable& table = walk.jump_table();
        if (table.split_tests.empty()) {
            for (size_t k = first; k < first + n; ++k) add_to(totals + k * width_, tree, 0);
            return tree + 1;
        }
        if (table.narrow.empty()) return add_words<uint64_t>(tree, first, n, totals);
        if (!walk.in_bytes(cells_)) return add_words<uint32_t>(tree, first, n, totals);
        Bytes rows(table, cells_, (n + Bytes::most_rows - 1) / Bytes::most_rows);
        return add_alike<uint32_t>(tree, rows, first, n, totals);
    }

    template <typename Entry>
    size_t add_words(size_t tree, size_t first, size_t n, double* totals) {
        const JumpTable& table = trees_[tree].walk->jump_table();
        constexpr size_t size = Words<Entry>::most_rows;
        Words<Entry> rows(table, cells_, entries<Entry>(table).data(), (n + size - 1) / size);
        return add_alike<Entry>(tree, rows, first, n, totals);
    }

    template <typename Entry, typename Rows>
    size_t add_alike(size_t tree, Rows& rows, size_t first, size_t n, double* totals) {
        for (size_t at = 0, block = 0; at < n; at += Rows::most_rows, ++block) {
            rows.choose(block);
            rows.load(first + at, std::min(Rows::most_rows, n - at));
        }
        const JumpTable& loaded = trees_[tree].walk->jump_table();
        do {
            const Walk& walk = *trees_[tree].walk;
            walk.nodes_of_blocks(entries<Entry>(walk.jump_table()), rows, n, nodes_.data());
            add_nodes(tree, first, n, totals);
            ++tree;
        } while (tree < trees_.size() && loaded.tests_as(trees_[tree].walk->jump_table()));
        return tree;
    }

    void add_nodes(size_t tree, size_t first, size_t n, double* totals) {
        divided_.clear();
        for (size_t k = 0; k < n; ++k) {
            if (nodes_[k] == JumpTable::fractional)
                divided_.push_back(int64_t(first + k));
            else
                add_to(totals + (first + k) * width_, tree, nodes_[k]);
        }
        if (divided_.empty()) return;
        blended_.resize(divided_.size() * width_);
        trees_[tree].walk->blend_rows(cells_, first + n,
                                      Span<const int64_t>(divided_.data(), divided_.size()),
                                      trees_[tree].values, width_, blended_.data());
        for (size_t i = 0; i < divided_.size(); ++i)
            for (size_t w = 0; w < width_; ++w)
                totals[size_t(divided_[i]) * width_ + w] += blended_[i * width_ + w];
    }

    void add_to(double* total, size_t tree, size_t node) const {
        const double* values = trees_[tree].values + node * width_;
        for (size_t w = 0; w < width_; ++w) total[w] += values[w];
    }

    template <typename Entry>
    static const Array<Entry>& entries(const JumpTable& table) {
        if constexpr (sizeof(Entry) == 4)
            return table.narrow;
        else
            return table.wide;
    }

    const std::vector<Addend> trees_;
    const std::vector<Cells> cells_;
    const size_t width_;
    Array<uint32_t> nodes_;
    std::vector<int64_t> divided_;
    std::vector<double> blended_;
};

}  // namespace branchwise
