// Small nodes: what a few bit operations for each record tell of all columns, before
// any weight is added up or any logarithm taken.
//
// A column is mixed if records of two classes share a value: then it has an impure
// branch, so that one that is not mixed is better (by gain or gini), and most small
// nodes have one. A column is thin if a value has fewer cases than a leaf must have:
// then it cannot be asked. Where cases are divided, most columns of small nodes are.
//
// It knows columns of one-byte codes, up to 64 of them, with a branch for each value.

#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "records.hpp"
#include "value_sets.hpp"

namespace branchwise {

template <typename W>
class SmallNode {
  public:
    using Steps = typename Records<W>::Steps;
    static constexpr size_t most_records = 48;

    SmallNode(const Problem& problem, const Records<W>& records)
        : problem_(problem), records_(records), ends_(static_cast<size_t>(problem.n_classes)) {
        places_.resize(problem.columns.size());
        if (problem.branching != Branching::values) return;
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            if (records.is_numeric(j) || records.layout().width[j] != 1) continue;
            if (records.missing_code(j) < most_codes) add_column(j);
        }
    }

    // Look at the records of a node.
    void begin(const RecordJob& job) {
        first_ = records_.first(job);
        sort_by_class(job.n);
        for (Window& window : windows_) look_through(window);
    }

    bool knows(size_t column) const { return places_[column].window != nowhere; }

    // Missing values are passed over, unless they are a value.
    bool is_mixed(size_t column) const {
        const Place& place = places_[column];
        return windows_[place.window].mixed[place.lane];
    }

    // The branches of a mixed column have at least the mass of two records of different
    // classes: with weights of w or more, that is 2 w by entropy and w by gini.
    double least_weight() const { return least_weight_; }

    bool is_thin(size_t column) {
        const Place& place = places_[column];
        const Window& window = windows_[place.window];
        return window.thin[place.lane] || (window.doubtful[place.lane] && has_thin_value(column));
    }

  private:
    static constexpr uint32_t most_codes = 64;
    static constexpr size_t nowhere = ~size_t(0);

    // Sixteen bytes of a record.
    struct Window {
        size_t at;            // from here on
        size_t n_octets = 0;  // of codes that columns have, in eights
        Lanes values[8] = {};  // codes that are values, not missing ones or no codes at all

        // Of the node; not zero: yes.
        Lanes mixed;
        Lanes thin;
        Lanes doubtful;  // the cases of a value must be added up to tell
    };

    // Where a column is looked at.
    struct Place {
        size_t window = nowhere;
        size_t lane = 0;
    };

    // A record as it is looked at: the part of a case that it is, where it is, from the
    // first, and all bits if a leaf may have it alone.
    struct Seen {
        Steps share;
        uint32_t at;
        uint8_t large;
    };

    void add_column(size_t j) {
        const size_t at = records_.layout().code[j];
        if (windows_.empty() || at >= windows_.back().at + sizeof(Lanes)) {
            windows_.emplace_back();
            windows_.back().at = std::min(at, records_.size() - sizeof(Lanes));
        }
        Window& window = windows_.back();
        places_[j] = {windows_.size() - 1, at - window.at};
        const uint32_t n_codes = records_.missing_code(j) + (problem_.missing == Policy::branch ? 1 : 0);
        for (uint32_t code = 0; code < n_codes; ++code)
            window.values[code / 8][at - window.at] |= uint8_t(1u << (code % 8));
        window.n_octets = std::max<size_t>(window.n_octets, (n_codes + 7) / 8);
    }

    void sort_by_class(size_t n) {
        const size_t size = records_.size();
        std::fill(ends_.begin(), ends_.end(), 0);
        for (size_t i = 0; i < n; ++i) ++ends_[records_.label(first_ + i * size)];
        uint32_t start = 0;
        for (uint32_t& end : ends_) start += std::exchange(end, start);
        Steps least = std::numeric_limits<Steps>::max();
        n_ = n;
        for (size_t i = 0; i < n; ++i) {
            const uint8_t* record = first_ + i * size;
            least = std::min(least, records_.steps(record));
            const Steps share = records_.share_steps(record);
            const bool large = records_.share_of(share) >= problem_.cases_in_leaf;
            seen_[ends_[records_.label(record)]++] = {share, static_cast<uint32_t>(i * size), uint8_t(large ? 255 : 0)};
        }
        least_weight_ = static_cast<double>(records_.weight_of(least));
    }

    void look_through(Window& window) {
        window.mixed = window.thin = window.doubtful = Lanes{};
        for (size_t octet = 0; octet < window.n_octets; ++octet) {
            const uint8_t* codes = first_ + window.at;
            Lanes before = {}, shared = {};  // by classes
            Lanes once = {}, twice = {}, large = {};
            const Seen* record = seen_;
            for (uint32_t end : ends_) {
                Lanes own = {};  // of one class
                for (const Seen* last = seen_ + end; record < last; ++record) {
                    const Lanes values = values_of(codes + record->at, uint8_t(octet * 8));
                    own |= values;
                    twice |= once & values;
                    once |= values;
                    large |= values & record->large;
                }
                shared |= before & own;
                before |= own;
            }
            // No record of a small value is a leaf's worth; two may be.
            const Lanes small = once & ~large & window.values[octet];
            window.mixed |= shared & window.values[octet];
            window.thin |= small & ~twice;
            window.doubtful |= small & twice;
        }
    }

    // Add up the parts of cases.
    bool has_thin_value(size_t column) {
        const uint8_t* codes = first_ + records_.layout().code[column];
        const uint32_t missing = records_.missing_code(column);
        std::fill_n(cases_, missing + 1, Steps(0));
        for (size_t i = 0; i < n_; ++i) cases_[codes[seen_[i].at]] += seen_[i].share;
        const uint32_t n_values = missing + (problem_.missing == Policy::branch);
        return std::any_of(cases_, cases_ + n_values, [&](Steps cases) {
            return cases && records_.share_of(cases) < problem_.cases_in_leaf;
        });
    }

    const Problem& problem_;
    const Records<W>& records_;
    std::vector<Window> windows_;
    std::vector<Place> places_;  // by column

    // Of the node.
    const uint8_t* first_ = nullptr;
    size_t n_ = 0;
    std::vector<uint32_t> ends_;  // of the records of each class
    Seen seen_[most_records];     // class by class
    double least_weight_ = 0;
    Steps cases_[most_codes];
};

}  // namespace branchwise
