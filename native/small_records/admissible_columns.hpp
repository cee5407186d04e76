// Which columns may split a node of a subtree of few records, where cases are fractional: those
// that have several values, all of them with the cases of a leaf.
//
// Most columns of small nodes have a value with fewer cases. Which have is found for sixteen
// columns at a time, from what values each record has, as the bits of a byte. Parts of the cases of
// a leaf are counted by value, as one or three quarters. Only where there are four quarters, but no
// record that has the cases of a leaf alone, are the cases added up.
//
// It knows columns of one-byte codes below 64, with a branch for each value.

#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "core/byte_matrix.hpp"
#include "records/records.hpp"
#include "small_records/value_sets.hpp"

namespace branchwise {

class AdmissibleColumns {
  public:
    using Rows = Records<double>;
    using Bits = uint64_t;  // one for each row
    static constexpr size_t most_rows = 64;
    static constexpr uint32_t most_codes = 64;
    static constexpr uint32_t most_places = 512;
    static constexpr uint32_t nowhere = ~uint32_t(0);

    // A bit for each place of a column.
    using Alive = std::array<uint64_t, most_places / 64>;

    // The rows of a node, as bits, by how many of the cases of a leaf they are each.
    struct Cases {
        Bits rows = 0;   // all of them
        Bits whole = 0;  // that are all the cases of a leaf
        Bits tiny = 0;   // at most a quarter

        void add(size_t row, int64_t steps, int64_t in_leaf) {
            rows |= Bits(1) << row;
            whole |= Bits(steps >= in_leaf) << row;
            tiny |= Bits(4 * steps <= in_leaf) << row;
        }
        Cases among(Bits some) const { return {rows & some, whole & some, tiny & some}; }
    };

    AdmissibleColumns(const Problem& problem, const Rows& records)
        : record_size_(records.size()), places_(problem.columns.size(), nowhere) {
        for (size_t j = 0; j < problem.columns.size(); ++j)
            if (!records.is_numeric(j) && records.layout().width[j] == 1 &&
                records.missing_code(j) < most_codes)
                add_column(records, uint32_t(j));
        for (Window& window : windows_) add_octets(records, window);
        bits_.resize(octets_.size() * most_rows);
    }

    // A column has a place: its lane of a window, in the order of windows. Columns that are not
    // known here have none.
    uint32_t place_of(size_t column) const { return places_[column]; }
    uint32_t column_at(uint32_t place) const {
        return windows_[place / n_lanes].column[place % n_lanes];
    }
    uint32_t end_of_places() const { return uint32_t(windows_.size() * n_lanes); }

    // Of so many columns it is worth looking at all that there are, sixteen at a time.
    bool are_many(size_t n_columns) const { return n_columns > 1 + octets_.size() / 2; }

    // Read the records of a subtree, the first of which is given.
    void load(const uint8_t* first, size_t n) {
        for (const Window& window : windows_)
            if (window.n_octets == 1)
                load(window, first, n, std::integral_constant<size_t, 1>());
            else if (window.n_octets == 2)
                load(window, first, n, std::integral_constant<size_t, 2>());
            else
                load(window, first, n, window.n_octets);
    }

    // Their codes, by place and row: rows after the last one, up to a multiple of sixteen, have the
    // codes of the last.
    void read_codes(const uint8_t* first, size_t n, uint8_t* codes) const {
        for (size_t w = 0; w < windows_.size(); ++w)
            for (size_t row = 0; row < n; row += ByteMatrix::size) {
                ByteMatrix bytes;
                for (size_t k = 0; k < ByteMatrix::size; ++k)
                    bytes.read(k, first + std::min(row + k, n - 1) * record_size_ + windows_[w].at);
                bytes.transpose();
                for (size_t k = 0; k < ByteMatrix::size; ++k)
                    bytes.write(k, &codes[(w * n_lanes + k) * most_rows + row]);
            }
    }

    // visit(column) for those of a node's columns that are admissible; columns that do not vary are
    // no longer alive. What rows weigh is in `steps`, a leaf must have so many.
    template <typename Visit>
    void each(const Cases& cases, const int64_t* steps, int64_t in_leaf, Alive& alive,
              const Visit& visit) {
        look_at_octets(cases);
        const Bits parts = cases.rows & ~cases.whole;
        for (size_t w = 0; w < windows_.size(); ++w) {
            uint64_t& word = alive[w * n_lanes / 64];
            const size_t shift = w * n_lanes % 64;
            const auto open = uint32_t(word >> shift & 0xffff);
            if (!open) continue;
            const Kinds kinds = kinds_of(windows_[w]);
            word &= ~(uint64_t(open & ~kinds.several) << shift);
            for (uint32_t left = open & kinds.several & ~kinds.thin; left; left &= left - 1) {
                const auto lane = size_t(__builtin_ctz(left));
                if (!(kinds.doubtful >> lane & 1 &&
                      has_thin_value(windows_[w], lane, parts, steps, in_leaf)))
                    visit(windows_[w].column[lane]);
            }
        }
    }

  private:
    static constexpr size_t n_lanes = sizeof(Lanes);

    // Sixteen bytes of a record.
    struct Window {
        size_t at;            // from here on
        size_t octets = 0;    // the first of its own
        size_t n_octets = 0;  // of codes that columns have, in eights
        uint32_t column[n_lanes];
    };

    // Eight codes of the columns of a window, by their bits.
    struct Octet {
        Lanes values = {};  // codes that are values, not missing ones or no codes at all

        // Of the node.
        Lanes any;
        Lanes thin;      // fewer cases than a leaf must have
        Lanes doubtful;  // perhaps
    };

    // What columns of a window have, as bits.
    struct Kinds {
        uint32_t several, thin, doubtful;
    };

    void add_column(const Rows& records, uint32_t j) {
        const size_t at = records.layout().code[j];
        if (windows_.empty() || at >= windows_.back().at + n_lanes) {
            if (end_of_places() == most_places) return;
            windows_.emplace_back();
            windows_.back().at = std::min(at, records.size() - n_lanes);
            std::fill_n(windows_.back().column, n_lanes, nowhere);
        }
        Window& window = windows_.back();
        window.column[at - window.at] = j;
        places_[j] = uint32_t((windows_.size() - 1) * n_lanes + at - window.at);
    }

    void add_octets(const Rows& records, Window& window) {
        window.octets = octets_.size();
        for (size_t lane = 0; lane < n_lanes; ++lane) {
            if (window.column[lane] == nowhere) continue;
            const uint32_t n_codes = records.missing_code(window.column[lane]);
            window.n_octets = std::max<size_t>(window.n_octets, (n_codes + 7) / 8);
            octets_.resize(window.octets + window.n_octets);
            for (uint32_t code = 0; code < n_codes; ++code)
                octets_[window.octets + code / 8].values[lane] |= uint8_t(1u << code % 8);
        }
    }

    template <typename Count>
    void load(const Window& window, const uint8_t* first, size_t n, Count n_octets) {
        const uint8_t* codes = first + window.at;
        const size_t step = octets_.size(), size = record_size_;
        Lanes* bits = &bits_[window.octets];
        for (size_t row = 0; row < n; ++row, codes += size, bits += step)
            for (size_t k = 0; k < n_octets; ++k) bits[k] = values_of(codes, uint8_t(k * 8));
    }

    // A few at once, so that rows are gone through less often.
    void look_at_octets(const Cases& cases) {
        size_t k = 0;
        const auto look = [&](auto together) {
            for (; k + together <= octets_.size(); k += together) look_at<together>(cases, k);
        };
        look(std::integral_constant<size_t, 4>());
        look(std::integral_constant<size_t, 2>());
        look(std::integral_constant<size_t, 1>());
    }

    template <size_t together>
    void look_at(const Cases& cases, size_t first) {
        const Lanes* const bits = &bits_[first];
        const size_t step = octets_.size();
        const auto each_row = [&](Bits rows, const auto& add) {
            for (; rows; rows &= rows - 1) {
                const Lanes* const of_row = bits + size_t(__builtin_ctzll(rows)) * step;
                for (size_t k = 0; k < together; ++k) add(k, of_row[k]);
            }
        };
        Lanes whole[together] = {};
        each_row(cases.whole, [&](size_t k, Lanes values) { whole[k] |= values; });
        // Quarters as numbers of two bits, and whether there are four. Rows above a quarter count
        // as three: if a value has no more than three, it has less than a whole one.
        Lanes one[together] = {}, two[together] = {}, four[together] = {};
        const auto add_one = [&](size_t k, Lanes values) {
            const Lanes both = one[k] & values;
            one[k] ^= values;
            four[k] |= two[k] & both;
            two[k] ^= both;
        };
        const auto add_two = [&](size_t k, Lanes values) {
            four[k] |= two[k] & values;
            two[k] ^= values;
        };
        const Bits parts = cases.rows & ~cases.whole;
        each_row(parts, add_one);
        each_row(parts & ~cases.tiny, add_two);
        for (size_t k = 0; k < together; ++k) {
            Octet& octet = octets_[first + k];
            const Lanes in_parts = (one[k] | two[k] | four[k]) & octet.values;
            octet.any = in_parts | (whole[k] & octet.values);
            octet.thin = in_parts & ~(whole[k] | four[k]);
            octet.doubtful = in_parts & four[k] & ~whole[k];
        }
    }

    Kinds kinds_of(const Window& window) const {
        Lanes any = {}, several = {}, thin = {}, doubtful = {};
        for (size_t k = 0; k < window.n_octets; ++k) {
            const Octet& octet = octets_[window.octets + k];
            const Lanes earlier = reinterpret_cast<Lanes>(any != 0);
            several |= octet.any & ((octet.any - 1) | earlier);
            any |= octet.any;
            thin |= octet.thin;
            doubtful |= octet.doubtful;
        }
        return {lanes_of(several), lanes_of(thin), lanes_of(doubtful)};
    }

    static uint32_t lanes_of(Lanes bytes) {
        return highest_bits(reinterpret_cast<Lanes>(bytes != 0));
    }

    // Add up the cases of values of which no row has enough.
    bool has_thin_value(const Window& window, size_t lane, Bits parts, const int64_t* steps,
                        int64_t in_leaf) const {
        for (size_t k = window.octets; k < window.octets + window.n_octets; ++k)
            for (uint32_t left = octets_[k].doubtful[lane]; left; left &= left - 1) {
                const int bit = __builtin_ctz(left);
                int64_t sum = 0;
                for (Bits rows = parts; rows; rows &= rows - 1) {
                    const auto row = size_t(__builtin_ctzll(rows));
                    const uint8_t values = bits_[row * octets_.size() + k][lane];
                    sum += steps[row] & -int64_t(values >> bit & 1);
                }
                if (sum < in_leaf) return true;
            }
        return false;
    }

    const size_t record_size_;
    std::vector<Window> windows_;
    std::vector<uint32_t> places_;  // by column
    std::vector<Octet> octets_;     // of one window after the other
    std::vector<Lanes> bits_;       // by row and octet: the values that it has
};

}  // namespace branchwise
