// A large node shared out: threads count and move pieces of its rows.
//
// Counts of pieces add up, and where the rows of a piece go follows from the counts of
// those before it. So every row goes where one thread would put it.

#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "bit_rows/bit_counts.hpp"
#include "bit_rows/bit_moves.hpp"
#include "core/thread_pool.hpp"

namespace branchwise {

// The pieces of one node. A piece has rows of one class.
class Pieces {
  public:
    bool empty() const { return pieces_.empty(); }
    void clear() { pieces_.clear(); }

    // Divide a node; pieces are in the order of its rows.
    void divide(const uint64_t* rows, size_t stride, const std::vector<uint32_t>& counts_of_class,
                size_t most_rows) {
        clear();
        stride_ = stride;
        for (size_t c = 0; c < counts_of_class.size(); ++c)
            for (size_t left = counts_of_class[c]; left;) {
                Piece piece;
                piece.c = c;
                piece.rows.row = rows;
                piece.rows.n = std::min(left, most_rows);
                left -= piece.rows.n;
                rows += piece.rows.n * stride;
                pieces_.push_back(piece);
            }
    }

    // A line of counts for every class, and one for all classes; those of the pieces are
    // kept for moving.
    void count(ThreadPool& pool, size_t work, size_t classes, uint32_t* counts) {
        const size_t line = stride_ * 64;
        lines_.resize(pieces_.size() * line);
        pool.each(pieces_.size(), work, [&](size_t k, unsigned) {
            popcount::count_line(pieces_[k].rows.row, stride_, pieces_[k].rows.n,
                                 &lines_[k * line]);
        });
        std::fill_n(counts, (classes + 1) * line, 0);
        for (size_t k = 0; k < pieces_.size(); ++k) {
            popcount::add_line(&lines_[k * line], stride_, counts + pieces_[k].c * line);
            popcount::add_line(&lines_[k * line], stride_, counts + classes * line);
        }
    }

    // Children lie at `to` in the order of branches, as `sizes[branch]` says.
    void move(ThreadPool& pool, size_t work, const BranchOfRow& branch, size_t n_branches,
              const std::vector<uint32_t>& sizes, uint64_t* to) {
        find_places(branch, n_branches, sizes);
        pool.each((pieces_.size() + 1) / 2, work, [&](size_t k, unsigned) {
            Segment nothing;
            Segment& other = 2 * k + 1 < pieces_.size() ? pieces_[2 * k + 1].rows : nothing;
            move_segments(branch, pieces_[2 * k].rows, other, to, stride_);
        });
    }

  private:
    struct Piece {
        size_t c;
        Segment rows;
    };

    void find_places(const BranchOfRow& branch, size_t n_branches,
                     const std::vector<uint32_t>& sizes) {
        const size_t last = branch.field.values - 1;
        size_t starts[Field::most_values + 1] = {};
        find_starts(n_branches, sizes, starts);
        for (size_t k = 0; k < pieces_.size(); ++k) {
            const uint32_t* bit = &lines_[k * stride_ * 64 + branch.field.first_bit()];
            Segment& rows = pieces_[k].rows;
            std::copy_n(starts, n_branches, rows.places);
            size_t left = rows.n;  // in the end, those with the last value
            for (size_t v = 0; v <= last; ++v) {
                const size_t count = v < last ? bit[v] : left;
                starts[branch.branch_of ? branch.branch_of[v] : v] += count;
                left -= count;
            }
        }
    }

    size_t stride_ = 0;
    std::vector<Piece> pieces_;
    std::vector<uint32_t> lines_;  // counts of each piece
};

}  // namespace branchwise
