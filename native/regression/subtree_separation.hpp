// Splits of very few rows that separate them as the numbers to predict are best separated.
//
// No two branches take away more than the best threshold of the numbers themselves does. Where
// every other way to divide the rows surely takes away less, the first column that divides them so
// is the best split. Whether a column does needs no sums, and no column before it need be scored.

#pragma once

#include "regression/subtree_sums.hpp"

namespace branchwise {

template <typename W, typename Row, size_t most_rows>
class SubtreeSeparation : public SubtreeSums<W, Row, most_rows> {
    using Base = SubtreeSums<W, Row, most_rows>;

  public:
    using Base::repeated;
    using typename Base::Open;
    using typename Base::Rows;

  protected:
    SubtreeSeparation(const Problem& problem, const NumberScale& scale, const Rows& records)
        : Base(problem, scale, records),
          problem_(problem),
          suits_(Base::of_few && !repeated && Base::fewest_ <= 1 &&
                 problem.branching == Branching::two_way) {
        branch_of_code_.resize(records.most_codes());
    }

    using Base::distance_;
    using Base::factor_;
    using Base::rank;
    using Base::share_;
    using Base::squares_;
    using Base::values_;

    // The split of a node; no column: it is a leaf.
    struct Chosen {
        int column = -1;
        uint32_t low = 0, high = 0;  // ranks beside a threshold
    };

    // More rows are seldom divided so by any column.
    static constexpr size_t most_separated = 12;

    // The first of some columns that divides a node as its numbers are best divided; false where it
    // is not certain, or there is none. Scores may be off by `off`.
    bool choose_separating(const Open& node, const uint32_t* begin, const uint32_t* end, double off,
                           Chosen& chosen) {
        if (!suits_ || node.n() > most_separated) return false;
        const Row* const rows = Base::in_order_of_numbers(node);
        const size_t n_first = best_separated(node.n(), rows, off);
        if (n_first == 0) return false;
        for (; begin < end; ++begin) {
            const size_t j = *begin;
            if (Base::is_ordered(j)) {
                if (!separates_by_rank(j, rows, n_first, node.n(), chosen)) continue;
            } else {
                const Separates found = separates_by_code(j, rows, n_first, node.n(), off);
                if (found == Separates::no) continue;
                if (found == Separates::maybe) return false;
            }
            chosen.column = int(j);
            return true;
        }
        return false;
    }

    const Problem& problem_;
    std::vector<Row> branch_of_code_;

  private:
    enum class Separates { no, yes, maybe };

    // How many of the lowest numbers are best divided from the others, the rows being in their
    // order; 0 where another way to divide them may be as good.
    size_t best_separated(size_t n, const Row* rows, double off) const {
        double left = 0, right = 0, top = 0, second = 0;
        size_t n_first = 0;
        const auto add = [&](double score, size_t n_left) {
            second = std::max(second, std::min(top, score));
            n_first = score > top ? n_left : n_first;
            top = std::max(top, score);
        };
        for (size_t i = 1; 2 * i <= n; ++i) {
            left += distance_[rows[i - 1]];
            right += distance_[rows[n - i]];
            add(left * left * share_[i], i);
            if (2 * i < n) add(right * right * share_[i], n - i);
        }
        if (n_first == 0) return 0;
        // Any other as many rows have a sum that is nearer to 0, at least by the gap between the
        // numbers, or no better than the same number of the highest ones; and of another number of
        // rows, none is better than the lowest or the highest ones.
        const double share = share_[std::min(n_first, n - n_first)];
        const double gap = distance_[rows[n_first]] - distance_[rows[n_first - 1]];
        const double other = std::sqrt(top) - gap * std::sqrt(share);
        second = std::max(second, other * other) * factor_;
        top *= factor_;
        return second + 4 * off + surely_apart(top) < top ? n_first : 0;
    }

    bool separates_by_rank(size_t j, const Row* rows, size_t n_first, size_t n,
                           Chosen& chosen) const {
        const uint32_t* const ranks = rank(j);
        uint32_t lowest[2], highest[2];
        const auto find = [&](size_t side, size_t begin, size_t end) {
            lowest[side] = highest[side] = ranks[rows[begin]];
            for (size_t i = begin + 1; i < end; ++i) {
                lowest[side] = std::min(lowest[side], ranks[rows[i]]);
                highest[side] = std::max(highest[side], ranks[rows[i]]);
            }
        };
        find(0, 0, n_first);
        find(1, n_first, n);
        for (size_t side = 0; side < 2; ++side) {
            if (highest[side] >= lowest[1 - side]) continue;
            chosen.low = highest[side];
            chosen.high = lowest[1 - side];
            return true;
        }
        return false;
    }

    // Into values_, and branch_of_code_: the branch with the lowest code is the first.
    Separates separates_by_code(size_t j, const Row* rows, size_t n_first, size_t n, double off) {
        const uint32_t* const codes = rank(j);
        uint64_t first = 0, second = 0;  // a bit for each code
        for (size_t i = 0; i < n_first; ++i) first |= uint64_t(1) << codes[rows[i]] % 64;
        for (size_t i = n_first; i < n; ++i) second |= uint64_t(1) << codes[rows[i]] % 64;
        const bool told_apart = Base::n_codes(j) <= 64;
        if (first & second) return told_apart ? Separates::no : Separates::maybe;
        if (!told_apart) return Separates::maybe;
        const auto n_values = size_t(__builtin_popcountll(first | second));
        const double less = squares_ * corrected_share(problem_, n_values, double(n));
        if (less > 0)
            return less > 4 * off + surely_apart(squares_) ? Separates::no : Separates::maybe;
        if (__builtin_ctzll(second) < __builtin_ctzll(first)) std::swap(first, second);
        values_.clear();
        for (uint64_t left = first | second; left; left &= left - 1) {
            const auto code = uint32_t(__builtin_ctzll(left));
            branch_of_code_[code] = Row(second >> code & 1);
            values_.push_back({code, Plain(), 0});
        }
        return Separates::yes;
    }

    const bool suits_;  // rows count as one, and any two groups of them may be branches
};

}  // namespace branchwise
