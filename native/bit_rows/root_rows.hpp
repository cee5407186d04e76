// The rows of the root as bits, sorted by class: those of a table, or of a sample of it.

#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "bit_rows/bit_moves.hpp"
#include "core/draws.hpp"
#include "core/kept_memory.hpp"
#include "core/thread_pool.hpp"

namespace branchwise {

// Makes the rows of the root.
class RootRows {
  public:
    explicit RootRows(BitLayout layout) : layout_(std::move(layout)) {}
    virtual ~RootRows() = default;

    const BitLayout& layout() const { return layout_; }

    // Returns the number of rows of each class. There must be room for some rows in excess.
    virtual std::vector<uint32_t> make(uint64_t* out, ThreadPool& pool) const = 0;
    virtual size_t in_excess() const { return 0; }

  private:
    const BitLayout layout_;
};

// Those of a table, from its codes.
class TableRows : public RootRows {
  public:
    TableRows(const Table& table, BitLayout layout)
        : RootRows(std::move(layout)), table_(table), classes_(size_t(table.n_classes)) {}

    std::vector<uint32_t> make(uint64_t* out, ThreadPool& pool) const override {
        const size_t work = table_.n_rows * layout().n_words();
        const size_t n_pieces = pool.pieces(work);
        const auto start = [&](size_t piece) { return table_.n_rows * piece / n_pieces; };
        std::vector<std::vector<size_t>> next(n_pieces);  // places of the next rows, by class
        pool.each(n_pieces, work,
                  [&](size_t k, unsigned) { next[k] = count_labels(start(k), start(k + 1)); });
        std::vector<uint32_t> sizes(classes_);
        size_t place = 0;
        for (size_t c = 0; c < classes_; ++c) {
            const size_t first = place;
            for (auto& places : next) place += std::exchange(places[c], place);
            sizes[c] = uint32_t(place - first);
        }
        pool.each(n_pieces, work, [&](size_t k, unsigned) {
            make_piece(start(k), start(k + 1), std::move(next[k]), out);
        });
        return sizes;
    }

  private:
    // Four counters for each class, so that a row need not wait for the one before it.
    std::vector<size_t> count_labels(size_t first, size_t last) const {
        std::vector<size_t> sizes(classes_ * 4, 0);
        for (size_t row = first; row < last; ++row)
            ++sizes[row % 4 * classes_ + table_.labels[row]];
        for (size_t c = 0; c < classes_; ++c)
            for (size_t k = 1; k < 4; ++k) sizes[c] += sizes[k * classes_ + c];
        sizes.resize(classes_);
        return sizes;
    }

    void make_piece(size_t first, size_t last, std::vector<size_t> next, uint64_t* out) const {
        const size_t stride = layout().n_pairs() * 2;
        RowMaker maker(table_, layout());
        std::vector<uint64_t> words(RowMaker::block * stride);
        for (size_t start = first; start < last; start += RowMaker::block) {
            const size_t n = std::min(RowMaker::block, last - start);
            maker.make(start, n, words.data());
            for (size_t i = 0; i < n; ++i)
                copy_row(&words[i * stride], out + next[table_.labels[start + i]]++ * stride,
                         stride);
        }
    }

    const Table& table_;
    const size_t classes_;
};

// The rows of a table by which the trees of a forest are grown, as bits that are made once: class
// by class, and in the order of their ranks.
class DrawnTable {
  public:
    // `order`: the rows that may be drawn, by their ranks.
    DrawnTable(const Table& table, BitLayout layout, const Span<const int64_t>& order,
               ThreadPool& pool)
        : stride_(layout.n_pairs() * 2), sizes_(size_t(table.n_classes), 0) {
        const TableRows rows(table, std::move(layout));
        Array<uint64_t> bits;
        bits.resize(table.n_rows * stride_);
        const std::vector<uint32_t> sizes = rows.make(bits.data(), pool);
        std::vector<uint32_t> next(sizes.size(), 0);
        for (size_t c = 1; c < next.size(); ++c) next[c] = next[c - 1] + sizes[c - 1];
        std::vector<uint32_t> places(table.n_rows);
        for (size_t row = 0; row < table.n_rows; ++row) places[row] = next[table.labels[row]]++;
        sort_by_rank(table, order,
                     [&](int64_t row) { return &bits[places[size_t(row)] * stride_]; });
    }

    // A bootstrap sample; returns the number of rows of each class. Most rows are in it once or
    // twice, or not at all, which is anybody's guess: two copies are always written, and those
    // that are not wanted are written over by the next row.
    std::vector<uint32_t> draw_rows(uint64_t key, size_t n_drawn, uint64_t* out) const {
        Scratch<uint32_t> times(ranks_.size(), 0);  // by rank
        const auto n = double(ranks_.size());
        for (size_t i = 0; i < n_drawn; ++i) ++times[chosen_of(draw(key, i), n)];
        return stride_ == 2 ? repeat<2>(times.data(), out) : repeat<0>(times.data(), out);
    }

    static constexpr size_t in_excess = 2;

  private:
    template <typename BitsOf>
    void sort_by_rank(const Table& table, const Span<const int64_t>& order, const BitsOf& bits_of) {
        for (int64_t row : order) ++sizes_[table.labels[row]];
        std::vector<uint32_t> next(sizes_.size(), 0);
        for (size_t c = 1; c < next.size(); ++c) next[c] = next[c - 1] + sizes_[c - 1];
        bits_.resize(order.size() * stride_);
        ranks_.resize(order.size());
        for (size_t rank = 0; rank < order.size(); ++rank) {
            const uint32_t place = next[table.labels[order[rank]]]++;
            ranks_[place] = uint32_t(rank);
            copy_row(bits_of(order[rank]), &bits_[place * stride_], stride_);
        }
    }

    template <size_t fixed_stride>
    std::vector<uint32_t> repeat(const uint32_t* times_of_rank, uint64_t* out) const {
        const size_t stride = fixed_stride ? fixed_stride : stride_;
        std::vector<uint32_t> drawn;
        const uint64_t* row = bits_.data();
        const uint32_t* rank = ranks_.data();
        for (uint32_t size : sizes_) {
            const uint64_t* const begin = out;
            for (uint32_t i = 0; i < size; ++i, row += stride, ++rank) {
                const uint32_t times = times_of_rank[*rank];
                copy_row(row, out, stride);
                copy_row(row, out + stride, stride);
                for (uint32_t k = 2; k < times; ++k) copy_row(row, out + k * stride, stride);
                out += times * stride;
            }
            drawn.push_back(uint32_t(size_t(out - begin) / stride));
        }
        return drawn;
    }

    const size_t stride_;          // words of a row
    Array<uint64_t> bits_;         // of rows
    Array<uint32_t> ranks_;        // of the same rows
    std::vector<uint32_t> sizes_;  // rows of each class
};

// Those of a sample.
class SampleRows : public RootRows {
  public:
    // `layout`: that of the table, with the columns in the order of the tree.
    SampleRows(const DrawnTable& table, BitLayout layout, uint64_t key, size_t n_drawn)
        : RootRows(std::move(layout)), table_(table), key_(key), n_drawn_(n_drawn) {}

    std::vector<uint32_t> make(uint64_t* out, ThreadPool&) const override {
        return table_.draw_rows(key_, n_drawn_, out);
    }
    size_t in_excess() const override { return DrawnTable::in_excess; }

  private:
    const DrawnTable& table_;
    const uint64_t key_;
    const size_t n_drawn_;
};

}  // namespace branchwise
