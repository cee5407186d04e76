// Moves the rows of a node to its children, which stay sorted by class.

#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "bit_rows/bit_layout.hpp"

namespace branchwise {

inline void copy_row(const uint64_t* from, uint64_t* to, size_t stride) {
    for (size_t word = 0; word < stride; word += 2)
        std::memcpy(to + word, from + word, sizeof(Pair));
}

// Rows of one class, and where the next of them goes that has a given value, or that belongs to
// a given branch.
struct Segment {
    const uint64_t* row = nullptr;
    size_t n = 0;
    size_t places[Field::most_values + 1];
};

// The branch of a row: its value, or where its value leads.
struct BranchOfRow {
    Field field;
    const uint8_t* branch_of = nullptr;

    template <bool grouped>
    size_t of(const uint64_t* row) const {
        return grouped ? branch_of[field.value(row)] : field.value(row);
    }
};

// The field by value: what is written to rows cannot change it, so that it stays in
// registers. Rows of one pair of words, the usual ones, are moved as one.
template <size_t fixed_stride, bool grouped>
void move_side_by_side(const BranchOfRow branch, Segment& one, Segment& two, uint64_t* out,
                       size_t any_stride) {
    const size_t stride = fixed_stride ? fixed_stride : any_stride;
    const auto put = [=](const uint64_t* from, size_t* places) {
        copy_row(from, out + places[branch.of<grouped>(from)]++ * stride, stride);
    };
    const uint64_t* row = one.row;
    const uint64_t* other = two.row;
    const size_t n0 = one.n;
    const size_t n1 = two.n;
    const size_t both = std::min(n0, n1);
    for (size_t i = 0; i < both; ++i) {
        put(row + i * stride, one.places);
        put(other + i * stride, two.places);
    }
    for (size_t i = both; i < n0; ++i) put(row + i * stride, one.places);
    for (size_t i = both; i < n1; ++i) put(other + i * stride, two.places);
}

// Two segments at a time: their places do not depend on each other, so neither waits
// for the other.
inline void move_segments(const BranchOfRow& branch, Segment& one, Segment& two, uint64_t* out,
                          size_t stride) {
    if (branch.branch_of)
        move_side_by_side<0, true>(branch, one, two, out, stride);
    else if (stride == 2)
        move_side_by_side<2, false>(branch, one, two, out, stride);
    else
        move_side_by_side<0, false>(branch, one, two, out, stride);
}

// Where each child's rows begin, in the order of branches.
inline void find_starts(size_t n_branches, const std::vector<uint32_t>& sizes, size_t* starts) {
    size_t start = 0;
    for (size_t b = 0; b < n_branches; ++b) {
        starts[b] = start;
        start += sizes[b];
    }
}

class RowMover {
  public:
    // Children lie at `to` in the order of branches, as `sizes[branch]` says; each child has
    // `cells[branch * classes + c]` rows of class c.
    void move(const BranchOfRow& branch, size_t n_branches, const uint64_t* from, uint64_t* to,
              size_t stride, const std::vector<uint32_t>& counts_of_class,
              const std::vector<uint32_t>& cells, const std::vector<uint32_t>& sizes) {
        const size_t classes = counts_of_class.size();
        find_starts(n_branches, sizes, starts_);
        for (size_t c = 0; c < classes; c += 2) {
            const bool pair = c + 1 < classes;
            one_.row = from;
            one_.n = counts_of_class[c];
            two_.row = from + one_.n * stride;
            two_.n = pair ? counts_of_class[c + 1] : 0;
            for (size_t b = 0; b < n_branches; ++b) {
                one_.places[b] = starts_[b];
                starts_[b] += cells[b * classes + c];
                two_.places[b] = starts_[b];
                if (pair) starts_[b] += cells[b * classes + c + 1];
            }
            move_segments(branch, one_, two_, to, stride);
            from = two_.row + two_.n * stride;
        }
    }

  private:
    size_t starts_[Field::most_values + 1];
    Segment one_, two_;
};

// Moves the rows of a node that has two children, or those of one of them alone. Whether a row
// goes right is one bit of it, and where the next one goes stays in registers.
class TwoWayMover {
  public:
    // `open`: which of the children need their rows.
    void move(const BranchOfRow& branch, const uint64_t* from, size_t n, uint64_t* to,
              size_t stride, size_t n_left, const bool* open) {
        uint64_t right = 0;  // values, by their bits
        const size_t last = branch.field.values - 1;
        for (size_t v = 0; v < last; ++v) right |= uint64_t(branch.branch_of[v] == 1) << v;
        // The last value has no bit: where it leads, values of the other side are told.
        const bool last_right = branch.branch_of[last] == 1;
        const Told told{branch.field.word, (last_right ? ~right & branch.field.mask : right)
                                               << branch.field.shift};
        End ends[] = {{to, n_left, open[0]}, {to + n_left * stride, n - n_left, open[1]}};
        if (last_right) std::swap(ends[0], ends[1]);
        if (stride == 2)
            move_rows<2>(told, from, ends, stride);
        else if (stride == 4)
            move_rows<4>(told, from, ends, stride);
        else
            move_rows<0>(told, from, ends, stride);
    }

  private:
    // Where so many rows go, if their node is open.
    struct End {
        uint64_t* next;
        size_t n;
        bool is_open;
    };

    // What tells a row: one of these bits of a word. By value: what is written to rows cannot
    // change it, so that it stays in registers.
    struct Told {
        size_t word;
        uint64_t bits;

        bool operator()(const uint64_t* row) const { return row[word] & bits; }
    };

    // Those with a bit that is told to the second end, the others to the first.
    template <size_t fixed_stride>
    static void move_rows(const Told told, const uint64_t* row, const End* ends,
                          size_t any_stride) {
        const size_t stride = fixed_stride ? fixed_stride : any_stride;
        if (!ends[0].is_open)
            move_to_one<fixed_stride, true>(told, row, ends[1].next, ends[1].n, stride);
        else if (!ends[1].is_open)
            move_to_one<fixed_stride, false>(told, row, ends[0].next, ends[0].n, stride);
        else
            move_to_both<fixed_stride>(told, row, ends, stride);
    }

    // Every row is written to where the next one of either end belongs, which may write over it. As
    // many rows as the end that lacks less are sure to find room at both.
    template <size_t fixed_stride>
    static void move_to_both(const Told told, const uint64_t* row, const End* ends,
                             size_t any_stride) {
        const size_t stride = fixed_stride ? fixed_stride : any_stride;
        uint64_t* first = ends[0].next;
        uint64_t* second = ends[1].next;
        const uint64_t* const first_end = first + ends[0].n * stride;
        const uint64_t* const second_end = second + ends[1].n * stride;
        while (const auto sure = size_t(std::min(first_end - first, second_end - second))) {
            for (const uint64_t* const last = row + sure; row < last; row += stride) {
                const size_t step = told(row) * stride;
                for (size_t word = 0; word < stride; word += 2) {
                    Pair pair;
                    std::memcpy(&pair, row + word, sizeof pair);
                    std::memcpy(first + word, &pair, sizeof pair);
                    std::memcpy(second + word, &pair, sizeof pair);
                }
                first += stride - step;
                second += step;
            }
        }
        // What is left is all for the same one.
        std::memcpy(first, row, size_t(first_end - first) * sizeof(uint64_t));
        std::memcpy(second, row, size_t(second_end - second) * sizeof(uint64_t));
    }

    // The same for the `n` rows of one end: rows of leaves go nowhere.
    template <size_t fixed_stride, bool to_second>
    static void move_to_one(const Told told, const uint64_t* row, uint64_t* next, size_t n,
                            size_t any_stride) {
        const size_t stride = fixed_stride ? fixed_stride : any_stride;
        const uint64_t* const end = next + n * stride;
        while (const auto sure = size_t(end - next))
            for (const uint64_t* const last = row + sure; row < last; row += stride) {
                const size_t step = (told(row) == to_second) * stride;
                copy_row(row, next, stride);
                next += step;
            }
    }
};

}  // namespace branchwise
