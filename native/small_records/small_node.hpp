// Small nodes: what a few bit operations for each record tell of all columns, before
// any weight is added up or any logarithm taken.
//
// A column is thin if a value has fewer cases than a leaf must have: then it cannot be
// tested. Where cases are fractional, most columns of small nodes are. A column is mixed if
// records of two classes share a value: then it has an impure branch, so that one that is
// not mixed is better (by gain or gini); where cases are whole, most small nodes have one.
//
// It knows columns of one-byte codes, up to 64 of them, with a branch for each value.

#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "records/records.hpp"
#include "small_records/value_sets.hpp"

namespace branchwise {

template <typename W>
class SmallNode {
  public:
    using Steps = typename Records<W>::Steps;
    static constexpr size_t most_records = 48;

    SmallNode(const Problem& problem, const Records<W>& records)
        : problem_(problem), records_(records), ends_(size_t(problem.n_classes)) {
        places_.resize(problem.columns.size());
        if (problem.branching != Branching::values) return;
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            if (records.is_numeric(j) || records.layout().width[j] != 1) continue;
            if (records.missing_code(j) < most_codes) add_column(j);
        }
    }

    bool knows(size_t column) const { return places_[column].window != nowhere; }

    // Missing values are passed over in all that follows, unless they are a value.

    // Look at the records of a node for columns that are thin or do not vary.
    void look_for_thin(const RecordJob& job) {
        first_ = records_.first(job);
        n_ = job.n;
        weigh_records();
        for (Window& window : windows_) look_for_thin(window);
    }
    bool varies(size_t column) const { return in(column).several[places_[column].lane]; }
    bool is_thin(size_t column) {
        const size_t lane = places_[column].lane;
        return in(column).thin[lane] || (in(column).doubtful[lane] && has_thin_value(column));
    }

    // Look at the records of a node for columns that are mixed.
    void look_for_mixed(const RecordJob& job) {
        first_ = records_.first(job);
        n_ = job.n;
        sort_by_class();
        for (Window& window : windows_) look_for_mixed(window);
    }
    bool is_mixed(size_t column) const { return in(column).mixed[places_[column].lane]; }

    // The branches of a mixed column have at least the impurity of two records of different
    // classes: with weights of w or more, that is 2 w by entropy and w by gini.
    double least_weight() const { return least_weight_; }

  private:
    static constexpr uint32_t most_codes = 64;
    static constexpr size_t nowhere = ~size_t(0);

    // Sixteen bytes of a record.
    struct Window {
        size_t at;             // from here on
        size_t n_octets = 0;   // of codes that columns have, in eights
        Lanes values[8] = {};  // codes that are values, not missing ones or no codes at all

        // Of the node; not zero: yes.
        Lanes several;  // values
        Lanes thin;
        Lanes doubtful;  // the cases of a value must be added up to tell
        Lanes mixed;
    };

    // Where a column is looked at.
    struct Place {
        size_t window = nowhere;
        size_t lane = 0;
    };

    // Whether a record is a leaf's worth of cases, and half of it: all bits, or none.
    struct Worth {
        Lanes whole, half;
    };

    // Values that records have, by their bits.
    struct Seen {
        Lanes once, twice, thrice;  // in so many records at least
        Lanes large, half;          // in one that is a leaf's worth, or half of it

        void add(Lanes values, const Worth& worth) {
            thrice |= twice & values;
            twice |= once & values;
            once |= values;
            large |= values & worth.whole;
            half |= values & worth.half;
        }

        // Too few cases, or perhaps: they must be added up to tell.
        Lanes thin() const { return ~large & ~(twice & (thrice | half)); }
        Lanes doubtful() const { return ~large & twice & (thrice | half); }
    };

    const Window& in(size_t column) const { return windows_[places_[column].window]; }

    void add_column(size_t j) {
        const size_t at = records_.layout().code[j];
        if (windows_.empty() || at >= windows_.back().at + sizeof(Lanes)) {
            windows_.emplace_back();
            windows_.back().at = std::min(at, records_.size() - sizeof(Lanes));
        }
        Window& window = windows_.back();
        places_[j] = {windows_.size() - 1, at - window.at};
        const uint32_t n_codes =
            records_.missing_code(j) + (problem_.missing == Policy::branch ? 1 : 0);
        for (uint32_t code = 0; code < n_codes; ++code)
            window.values[code / 8][at - window.at] |= uint8_t(1u << (code % 8));
        window.n_octets = std::max<size_t>(window.n_octets, (n_codes + 7) / 8);
    }

    void weigh_records() {
        const uint8_t* record = first_;
        for (size_t i = 0; i < n_; ++i, record += records_.size()) {
            const double share =
                cases_for_bars(problem_, double(records_.weight(record)), records_.share(record));
            worth_[i].whole = share >= problem_.cases_in_leaf ? ~Lanes{} : Lanes{};
            worth_[i].half = share + share >= problem_.cases_in_leaf ? ~Lanes{} : Lanes{};
        }
    }

    void look_for_thin(Window& window) {
        Lanes any = {};
        window.several = window.thin = window.doubtful = Lanes{};
        for (size_t octet = 0; octet < window.n_octets; octet += 2) {
            Seen seen[2] = {};  // of two octets: few columns have more codes
            const uint8_t* codes = first_ + window.at;
            for (size_t i = 0; i < n_; ++i, codes += records_.size()) {
                seen[0].add(values_of(codes, uint8_t(octet * 8)), worth_[i]);
                seen[1].add(values_of(codes, uint8_t(octet * 8 + 8)), worth_[i]);
            }
            for (size_t k = 0; k < 2; ++k) {
                const Lanes once = seen[k].once & window.values[octet + k];
                window.thin |= once & seen[k].thin();
                window.doubtful |= once & seen[k].doubtful();
                const Lanes earlier = reinterpret_cast<Lanes>(any != 0);
                window.several |= (once & (once - 1)) | (once & earlier);
                any |= once;
            }
        }
    }

    // Add up the parts of cases. A part may be so small that it is none at all.
    bool has_thin_value(size_t column) {
        const size_t code = records_.layout().code[column];
        const uint32_t n_values =
            records_.missing_code(column) + (problem_.missing == Policy::branch);
        std::fill_n(cases_, records_.missing_code(column) + 1, Steps(0));
        uint64_t seen = 0;
        const uint8_t* record = first_;
        for (size_t i = 0; i < n_; ++i, record += records_.size()) {
            seen |= uint64_t(1) << record[code];
            cases_[record[code]] +=
                problem_.weights_are_cases ? records_.steps(record) : records_.share_steps(record);
        }
        for (uint32_t value = 0; value < n_values; ++value) {
            const Steps sum = cases_[value];
            const double cases = problem_.weights_are_cases ? double(records_.weight_of(sum))
                                                            : records_.share_of(sum);
            if (seen >> value & 1 && cases < problem_.cases_in_leaf) return true;
        }
        return false;
    }

    void sort_by_class() {
        const size_t size = records_.size();
        std::fill(ends_.begin(), ends_.end(), 0);
        for (size_t i = 0; i < n_; ++i) ++ends_[records_.label(first_ + i * size)];
        uint32_t start = 0;
        for (uint32_t& end : ends_) start += std::exchange(end, start);
        Steps least = std::numeric_limits<Steps>::max();
        for (size_t i = 0; i < n_; ++i) {
            const uint8_t* record = first_ + i * size;
            least = std::min(least, records_.steps(record));
            by_class_[ends_[records_.label(record)]++] = uint32_t(i * size);
        }
        least_weight_ = double(records_.weight_of(least));
    }

    void look_for_mixed(Window& window) {
        window.mixed = Lanes{};
        for (size_t octet = 0; octet < window.n_octets; ++octet) {
            const uint8_t* codes = first_ + window.at;
            Lanes before = {}, shared = {};  // by classes
            const uint32_t* record = by_class_;
            for (uint32_t end : ends_) {
                Lanes own = {};  // of one class
                for (const uint32_t* last = by_class_ + end; record < last; ++record)
                    own |= values_of(codes + *record, uint8_t(octet * 8));
                shared |= before & own;
                before |= own;
            }
            window.mixed |= shared & window.values[octet];
        }
    }

    const Problem& problem_;
    const Records<W>& records_;
    std::vector<Window> windows_;
    std::vector<Place> places_;  // by column

    // Of the node.
    const uint8_t* first_ = nullptr;
    size_t n_ = 0;
    Worth worth_[most_records];
    std::vector<uint32_t> ends_;       // of the records of each class
    uint32_t by_class_[most_records];  // where they are, from the first, class by class
    double least_weight_ = 0;
    Steps cases_[most_codes];
};

}  // namespace branchwise
