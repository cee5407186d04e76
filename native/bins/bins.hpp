// Bins of about equal size for the numbers of a column: native implementation of
// branchwise/data/bins.py.
//
// An edge lies between two neighbours at a quantile, so few numbers have to be sorted. All are
// counted by the cells of a grid, whose order is that of the numbers; then only those are sorted
// that share a cell with a quantile. The bin of a number follows from its cell, too, unless there
// is an edge in it.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/memory.hpp"
#include "core/date_threshold.hpp"
#include "records/sorting.hpp"

namespace branchwise {

// The bins of a column: none, where it has few distinct numbers.
template <typename Code>
struct Bins {
    static constexpr Code missing = std::numeric_limits<Code>::max();

    Array<double> edges;
    Array<Code> codes;  // of all rows
};

class Binning {
  public:
    // `counted`, if given, tells which rows the edges come from.
    Binning(const double* numbers, const uint8_t* counted, size_t n_rows, size_t max_bins,
            Position position)
        : numbers_(numbers),
          counted_(counted),
          n_rows_(n_rows),
          max_bins_(max_bins),
          position_(position) {}

    template <typename Code>
    Bins<Code> find() {
        Bins<Code> bins;
        if (!set_grid()) return bins;
        linear_ ? count_cells([&](double x) { return linear_cell(x); })
                : count_cells([&](double x) { return key_cell(x); });
        if (!has_many_numbers()) return bins;
        find_edges(bins.edges);
        find_codes(bins);
        return bins;
    }

  private:
    static constexpr uint32_t least_cells = 256, most_cells = 0xffff;
    static constexpr size_t numbers_per_cell = 16, sample_size = 1024;
    static constexpr size_t long_list = 1 << 14;  // that is sorted by digits

    bool counts(size_t row) const { return !counted_ || counted_[row]; }

    // ---- the grid ----------------------------------------------------------------

    // Even in the numbers, or in their keys if that spreads a sample of them better: keys are
    // like logarithms. False where there is nothing to divide.
    bool set_grid() {
        low_ = std::numeric_limits<double>::infinity();
        high_ = -low_;
        for (size_t row = 0; row < n_rows_; ++row) {
            low_ = numbers_[row] < low_ ? numbers_[row] : low_;
            high_ = numbers_[row] > high_ ? numbers_[row] : high_;
        }
        if (!(low_ < high_)) return false;
        n_cells_ =
            uint32_t(std::clamp<size_t>(n_rows_ / numbers_per_cell, least_cells, most_cells));
        low_key_ = key_of(low_);
        const uint64_t range = key_of(high_) - low_key_;
        for (shift_ = 0; (range >> shift_) >= n_cells_;) ++shift_;
        // Halves, so that no difference overflows.
        const double half_range = high_ / 2 - low_ / 2;
        scale_ = double(n_cells_ - 1) / half_range;
        linear_ = scale_ < std::numeric_limits<double>::max();
        if (linear_)
            linear_ = crowding([&](double x) { return linear_cell(x); }) <=
                      crowding([&](double x) { return key_cell(x); });
        return true;
    }

    uint32_t linear_cell(double number) const {
        return uint32_t(int32_t((number / 2 - low_ / 2) * scale_));
    }
    uint32_t key_cell(double number) const {
        return uint32_t((key_of(number) - low_key_) >> shift_);
    }
    uint32_t cell(double number) const { return linear_ ? linear_cell(number) : key_cell(number); }

    // How many numbers of a sample share a cell.
    template <typename CellOf>
    size_t crowding(const CellOf& cell_of) const {
        const size_t step = std::max<size_t>(n_rows_ / sample_size, 1);
        std::vector<uint32_t> cells;
        for (size_t row = 0; row < n_rows_; row += step)
            if (!std::isnan(numbers_[row])) cells.push_back(cell_of(numbers_[row]));
        std::sort(cells.begin(), cells.end());
        size_t shared = 0;
        for (size_t i = 1; i < cells.size(); ++i) shared += cells[i] == cells[i - 1];
        return shared;
    }

    // A cell after the last is that of missing numbers.
    template <typename CellOf>
    void count_cells(const CellOf& cell_of) {
        cells_.resize(n_rows_);
        n_in_.assign(n_cells_ + 1, 0);
        for (size_t row = 0; row < n_rows_; ++row) {
            const double number = numbers_[row];
            const uint32_t at = std::isnan(number) ? n_cells_ : cell_of(number);
            cells_[row] = uint16_t(at);
            n_in_[at] += counts(row);
        }
    }

    // Whether there are more distinct numbers than bins.
    bool has_many_numbers() const {
        size_t occupied = 0;
        for (uint32_t at = 0; at < n_cells_; ++at) occupied += n_in_[at] > 0;
        if (occupied > max_bins_) return true;
        std::vector<double> distinct;  // sorted by blocks
        for (size_t row = 0; row < n_rows_;) {
            const size_t known = distinct.size();
            for (const size_t end = std::min(n_rows_, row + 2 * max_bins_ + 64); row < end; ++row)
                if (!std::isnan(numbers_[row]) && counts(row) &&
                    !std::binary_search(distinct.begin(), distinct.begin() + ptrdiff_t(known),
                                        numbers_[row]))
                    distinct.push_back(numbers_[row]);
            std::sort(distinct.begin(), distinct.end());
            distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
            if (distinct.size() > max_bins_) return true;
        }
        return false;
    }

    // ---- edges -------------------------------------------------------------------

    // Numbers of the cells with a quantile, and the least one of the cell after each.
    struct Cut {
        uint32_t cell;
        size_t begin, end;  // of its sorted numbers
        size_t before;      // numbers in the cells before it
        double next;        // the least of the next cell; infinite: there is none
    };

    void find_edges(Array<double>& edges) {
        size_t n = 0;
        for (uint32_t at = 0; at < n_cells_; ++at) n += n_in_[at];
        mark_cuts(n);
        collect();
        double last = -std::numeric_limits<double>::infinity();
        auto cut = cuts_.begin();
        for (size_t bin = 1; bin < max_bins_; ++bin) {
            const size_t quantile = bin * n / max_bins_;
            if (quantile == 0) continue;
            while (quantile - 1 >= cut->before + (cut->end - cut->begin)) ++cut;
            // The last of the numbers that are equal to the one before the quantile.
            const auto end = sorted_.begin() + ptrdiff_t(cut->end);
            const double low = sorted_[cut->begin + (quantile - 1 - cut->before)];
            if (low == last) continue;
            last = low;
            const auto above = std::upper_bound(
                sorted_.begin() + ptrdiff_t(cut->begin + (quantile - 1 - cut->before)), end, low);
            const double high = above < end ? *above : cut->next;
            if (std::isinf(high)) break;
            edges.push_back(edge_between(low, high));
        }
    }

    double edge_between(double low, double high) const {
        return threshold_at(low, high, position_);
    }

    void mark_cuts(size_t n) {
        cuts_.clear();
        uint32_t at = 0;
        size_t before = 0, end = 0;  // of the numbers in cells before, and up to this one
        size_t kept = 0;
        for (size_t bin = 1; bin < max_bins_; ++bin) {
            const size_t quantile = bin * n / max_bins_;
            if (quantile == 0) continue;
            if (quantile <= end) continue;
            while (quantile > end) {
                before = end;
                end += n_in_[at++];
            }
            const uint32_t cell = at - 1;
            cuts_.push_back(
                {cell, kept, kept + n_in_[cell], before, std::numeric_limits<double>::infinity()});
            kept += n_in_[cell];
        }
        sorted_.resize(kept);
    }

    void collect() {
        constexpr uint32_t nothing = 0xffffffff;
        std::vector<uint32_t> own(n_cells_ + 1, nothing), next(n_cells_ + 1, nothing);
        std::vector<uint8_t> wanted(n_cells_ + 1, 0);
        for (uint32_t i = 0; i < cuts_.size(); ++i) {
            own[cuts_[i].cell] = i;
            wanted[cuts_[i].cell] = 1;
            uint32_t after = cuts_[i].cell + 1;
            while (after < n_cells_ && !n_in_[after]) ++after;
            if (after == n_cells_) continue;
            next[after] = i;
            wanted[after] = 1;
        }
        std::vector<size_t> to;
        for (const Cut& cut : cuts_) to.push_back(cut.begin);
        for (size_t row = 0; row < n_rows_; ++row) {
            if (!wanted[cells_[row]] || !counts(row)) continue;
            const uint32_t mine = own[cells_[row]], before = next[cells_[row]];
            if (mine != nothing) sorted_[to[mine]++] = numbers_[row];
            if (before != nothing) cuts_[before].next = std::min(cuts_[before].next, numbers_[row]);
        }
        for (const Cut& cut : cuts_) sort(cut);
    }

    void sort(const Cut& cut) {
        const auto begin = sorted_.begin() + ptrdiff_t(cut.begin),
                   end = sorted_.begin() + ptrdiff_t(cut.end);
        if (cut.end - cut.begin < long_list) return std::sort(begin, end);
        keyed_.clear();
        for (auto at = begin; at < end; ++at) keyed_.push_back({key_of(*at), 0});
        sort_by_key(keyed_);
        for (size_t i = 0; i < keyed_.size(); ++i)
            sorted_[cut.begin + i] = number_of(keyed_[i].key);
    }

    // ---- codes -------------------------------------------------------------------

    // The bin of a number is the first whose edge is not below it.
    template <typename Code>
    void find_codes(Bins<Code>& bins) const {
        // Edges in the cells before one.
        std::vector<uint32_t> first(n_cells_ + 2, 0);
        for (double edge : bins.edges) ++first[cell(edge) + 1];
        for (uint32_t at = 1; at <= n_cells_; ++at) first[at] += first[at - 1];
        first[n_cells_] = first[n_cells_ + 1] = Bins<Code>::missing;
        std::vector<uint8_t> has_edge(n_cells_ + 1, 0);
        for (double edge : bins.edges) has_edge[cell(edge)] = 1;
        bins.codes.resize(n_rows_);
        const double* edges = bins.edges.data();
        for (size_t row = 0; row < n_rows_; ++row) {
            const uint32_t at = cells_[row];
            uint32_t code = first[at];
            if (has_edge[at]) {
                // A cell with an edge is before the last, which has no missing ones.
                const uint32_t end =
                    at + 1 < n_cells_ ? first[at + 1] : uint32_t(bins.edges.size());
                code = uint32_t(std::lower_bound(edges + code, edges + end, numbers_[row]) - edges);
            }
            bins.codes[row] = Code(code);
        }
    }

    const double* const numbers_;
    const uint8_t* const counted_;
    const size_t n_rows_, max_bins_;
    const Position position_;  // of the edges

    double low_ = 0, high_ = 0, scale_ = 0;
    uint64_t low_key_ = 0;
    int shift_ = 0;
    uint32_t n_cells_ = 0;
    bool linear_ = true;
    Array<uint16_t> cells_;       // of all rows
    std::vector<uint32_t> n_in_;  // counted numbers of a cell
    std::vector<Cut> cuts_;
    std::vector<double> sorted_;  // numbers of these cells
    std::vector<Numbered> keyed_;
};

}  // namespace branchwise
