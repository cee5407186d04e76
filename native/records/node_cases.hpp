// The cases of one node in the order of the codes of a column, thresholds between these that may be
// the best, and segments of codes between two of them.

#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/choose.hpp"
#include "core/memory.hpp"

namespace branchwise {

// The cases of a node. Codes of a column are by row of the table, all else by case.
struct NodeCases {
    const int64_t* rows = nullptr;     // null: all rows
    const uint32_t* labels = nullptr;  // null: the numbers of the cases
    const double* weights = nullptr;   // null: 1 each
    const double* cases = nullptr;     // null: 1 each
    size_t n = 0;
    size_t n_classes = 0;

    size_t row(size_t i) const { return rows ? size_t(rows[i]) : i; }
    double weight(size_t i) const { return weights ? weights[i] : 1.0; }
    double share(size_t i) const { return cases ? cases[i] : 1.0; }
};

// Neighbouring codes that are on the same side of all thresholds that may be the best.
struct Segments {
    size_t n_thresholds = 0;  // admissible ones
    size_t n_codes = 0;       // that have cases
    std::vector<size_t> last_groups;
    Array<uint32_t> first, last;
    Array<double> weights;  // by segment and class
    Array<double> cases;
};

// Thresholds of a column that may be the best, each after a group of cases. Scores are known within
// bounds; those that differ by `tied`, or by the share of ties, are equal.
class Contenders {
  public:
    explicit Contenders(double tied) : tied_(tied) {}

    // What is worse than this is worse than the best for sure.
    double hopeful() const { return hopeful_; }

    // Counts an admissible threshold.
    void count(size_t group) {
        if (!n_thresholds_++) first_ = group;
    }
    void count_more(size_t n) { n_thresholds_ += n; }
    size_t n_thresholds() const { return n_thresholds_; }

    // A threshold is at least as good as this.
    void raise(double least) {
        if (least <= best_) return;
        best_ = least;
        hopeful_ = best_ - 1.01 * std::max(tie * best_, tied_);
    }

    void add(size_t group, double least, double most) {
        raise(least);
        all_.push_back({group, most});
        if (all_.size() > most_kept_) compact();
    }

    void compact() {
        const auto hopeless = [&](const Contender& one) { return one.most < hopeful_; };
        all_.erase(std::remove_if(all_.begin(), all_.end(), hopeless), all_.end());
        most_kept_ = 2 * all_.size() + 64;
    }

    // The last groups of segments, but for the very last one. The first threshold ends one of them:
    // it counts for the average gain where none gains enough.
    std::vector<size_t> ends() const {
        std::vector<size_t> groups;
        if (n_thresholds_) groups.push_back(first_);
        for (const Contender& one : all_)
            if (groups.empty() || groups.back() != one.group) groups.push_back(one.group);
        return groups;
    }

  private:
    struct Contender {
        size_t group;
        double most;  // that its score may be
    };

    const double tied_;
    double best_ = -std::numeric_limits<double>::infinity();
    double hopeful_ = -std::numeric_limits<double>::infinity();
    size_t n_thresholds_ = 0, first_ = 0, most_kept_ = 64;
    std::vector<Contender> all_;
};

// Cases in the order of their codes, missing ones left out. `Label` holds the classes.
template <typename Label>
class SortedCases {
  public:
    template <typename Code>
    SortedCases(const NodeCases& given, const Code* codes, uint32_t n_codes) {
        const uint32_t missing = n_codes - 1;
        labels.resize(given.n);
        if (given.weights) weights.resize(given.n);
        if (given.cases) cases.resize(given.n);
        if (given.n * few_cases < n_codes)
            sort(given, codes, missing);
        else if (!place(given, codes, missing))
            count(given, codes, missing);
    }

    size_t n_groups() const { return ends.size(); }
    size_t n_known() const { return ends.empty() ? 0 : ends.back(); }
    uint32_t code(size_t group) const { return codes.empty() ? uint32_t(group) : codes[group]; }

    // Segments that end where a threshold may be, and with the last case.
    Segments segments(const Contenders& contenders) const {
        Segments made;
        made.n_thresholds = contenders.n_thresholds();
        if (!n_known()) return made;
        made.last_groups = contenders.ends();
        size_t group = n_groups() - 1;
        while (group && ends[group - 1] == n_known()) --group;
        made.last_groups.push_back(group);
        size_t i = 0, next = 0;
        for (size_t last : made.last_groups) {
            while (ends[next] == i) ++next;
            made.first.push_back(code(next));
            made.last.push_back(code(last));
            i = ends[last];
            next = last + 1;
        }
        return made;
    }

    // Of groups of one code each, in the order of these: where they end. Without `codes` there is
    // one for every code, which may be empty.
    Array<uint32_t> ends, codes;
    Array<Label> labels;
    Array<double> weights, cases;

  private:
    // With fewer cases for each code these are sorted, without a table of all codes.
    static constexpr size_t few_cases = 16;

    void put(size_t at, const NodeCases& given, size_t i) {
        labels[at] = Label(given.labels ? given.labels[i] : i);
        if (given.weights) weights[at] = given.weights[i];
        if (given.cases) cases[at] = given.cases[i];
    }

    // Where every code has one case, codes are positions; false where that is not so.
    template <typename Code>
    bool place(const NodeCases& given, const Code* codes, uint32_t missing) {
        const auto unknown = Label(-1);
        if (given.n < missing || given.n >= 2 * size_t(missing)) return false;
        if (given.labels && given.n_classes > size_t(unknown)) return false;
        std::fill(labels.begin(), labels.begin() + missing, unknown);
        for (size_t i = 0; i < given.n; ++i) {
            const uint32_t code = codes[given.row(i)];
            if (code != missing) put(code, given, i);
        }
        if (std::find(labels.begin(), labels.begin() + missing, unknown) !=
            labels.begin() + missing)
            return false;
        size_t n = 0;
        for (size_t i = 0; i < given.n; ++i) n += codes[given.row(i)] != missing;
        if (n != missing) return false;
        ends.resize(missing);
        std::iota(ends.begin(), ends.end(), 1u);
        return true;
    }

    template <typename Code>
    void count(const NodeCases& given, const Code* codes, uint32_t missing) {
        ends.assign(size_t(missing) + 1, 0);
        for (size_t i = 0; i < given.n; ++i) ++ends[codes[given.row(i)]];
        uint32_t at = 0;
        for (uint32_t& end : ends) {
            const uint32_t n = end;
            end = at;
            at += n;
        }
        for (size_t i = 0; i < given.n; ++i) put(ends[codes[given.row(i)]]++, given, i);
        ends.pop_back();
    }

    template <typename Code>
    void sort(const NodeCases& given, const Code* cells, uint32_t missing) {
        std::vector<std::pair<uint32_t, uint32_t>> found;
        for (size_t i = 0; i < given.n; ++i) {
            const uint32_t code = cells[given.row(i)];
            if (code != missing) found.emplace_back(code, uint32_t(i));
        }
        std::sort(found.begin(), found.end());
        for (size_t at = 0; at < found.size(); ++at) {
            put(at, given, found[at].second);
            if (at + 1 < found.size() && found[at].first == found[at + 1].first) continue;
            codes.push_back(found[at].first);
            ends.push_back(uint32_t(at + 1));
        }
    }
};

}  // namespace branchwise
