// Histograms of the columns of codes: how many rows of a node have a code, and the sum of their
// numbers, in whole steps, so that what is left of a node without some of its branches is the
// difference of theirs.

#pragma once

#include <cmath>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "records/records.hpp"

namespace branchwise {

// Rows that share a code.
struct Tally {
    int64_t sum = 0;  // of their numbers, in steps
    int64_t n = 0;

    void operator+=(const Tally& other) {
        sum += other.sum;
        n += other.n;
    }
};

using Histogram = std::vector<Tally>;

// W is Times where rows are repeated, otherwise uint32_t.
template <typename W>
class Histograms {
  public:
    using Rows = Records<W, double>;

    // Numbers are between -1 and 1, so sums of all rows are less than 2^62.
    Histograms(const Problem& problem, const Rows& records)
        : records_(records), exponent_(60 - std::ilogb(double(cases_of(problem)))) {
        for (size_t j = 0; j < problem.columns.size(); ++j) {
            first_.push_back(size_);
            if (records.is_list(j)) continue;
            const size_t code = records.layout().code[j];
            (records.layout().width[j] == 1 ? narrow_ : wide_).push_back({uint32_t(j), code});
            size_ += records.missing_code(j) + 1;
        }
    }

    // Whether so many rows are worth a histogram.
    bool suits(size_t n) const {
        return n >= fewest_rows && n * (narrow_.size() + wide_.size()) >= 4 * size_;
    }

    double steps() const { return std::ldexp(1.0, exponent_); }
    const Tally* of_column(const Histogram& histogram, size_t j) const {
        return &histogram[first_[j]];
    }

    // That of a node that has one, or that is counted now.
    Histogram& at(const RecordJob& job) {
        Histogram& histogram = kept_[job.node];
        if (histogram.empty()) {
            histogram.resize(size_);
            add(histogram, records_.first(job), job.n);
        }
        return histogram;
    }
    bool has(int64_t node) const { return !kept_.empty() && kept_.count(node); }
    void forget(int64_t node) {
        if (has(node)) kept_.erase(node);
    }

    // Children of a node that has one: the one with the most rows gets what all others leave of its
    // histogram. in_branch(i): the branch of a record; the one after the last is that of none.
    template <typename InBranch>
    void divide(const RecordJob& job, const std::vector<RecordJob>& children,
                const InBranch& in_branch) {
        Histogram left = std::move(kept_[job.node]);
        kept_.erase(job.node);
        size_t most = 0;
        for (size_t b = 1; b < children.size(); ++b)
            if (children[b].n > children[most].n) most = b;
        if (!suits(children[most].n) || 2 * children[most].n < job.n) return;
        size_t elsewhere = job.n - children[most].n;
        for (size_t b = 0; b < children.size(); ++b) {
            if (b == most || !children[b].n) continue;
            elsewhere -= children[b].n;
            if (suits(children[b].n))
                subtract(left, at(children[b]));
            else
                add(left, records_.first(children[b]), children[b].n, -1);
        }
        // Of leaves, and of no branch.
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; elsewhere > 0 && i < job.n; ++i, record += records_.size()) {
            const uint32_t branch = in_branch(i);
            if (branch < children.size() && children[branch].n) continue;
            add(left, record, 1, -1);
            --elsewhere;
        }
        kept_[children[most].node] = std::move(left);
    }

  private:
    static constexpr size_t fewest_rows = 48;
    static constexpr size_t block = 256;  // rows that stay in the nearest cache

    struct Place {
        uint32_t column;
        size_t code;
    };

    // A block of rows: how often each counts, and its number as often.
    struct Block {
        const uint8_t* record;
        size_t n;
        Tally rows[block];
    };

    static uint64_t cases_of(const Problem& problem) {
        if (!problem.times) return problem.n_rows;
        return std::accumulate(problem.times, problem.times + problem.n_rows, uint64_t(0));
    }

    // Add some records, or take them away: sign -1.
    void add(Histogram& histogram, const uint8_t* record, size_t n, int64_t sign = 1) const {
        const double steps = this->steps();
        Block rows;
        for (size_t begin = 0; begin < n; begin += block) {
            rows.n = std::min(block, n - begin);
            rows.record = record + begin * records_.size();
            for (size_t i = 0; i < rows.n; ++i) {
                const uint8_t* at = rows.record + i * records_.size();
                const int64_t times = sign * int64_t(records_.weight(at));
                rows.rows[i] = {times * int64_t(std::rint(records_.target(at) * steps)), times};
            }
            size_t place = 0;
            for (; place + 4 <= narrow_.size(); place += 4)
                add_columns<4>(histogram, &narrow_[place], rows);
            for (; place < narrow_.size(); ++place)
                add_columns<1>(histogram, &narrow_[place], rows);
            for (const Place& wide : wide_)
                for (size_t i = 0; i < rows.n; ++i)
                    histogram[first_[wide.column] + records_.code(rows.record + i * records_.size(),
                                                                  wide.column)] += rows.rows[i];
        }
    }

    template <size_t n_places>
    void add_columns(Histogram& histogram, const Place* places, const Block& rows) const {
        Tally* to[n_places];
        size_t code[n_places];
        for (size_t k = 0; k < n_places; ++k) {
            to[k] = &histogram[first_[places[k].column]];
            code[k] = places[k].code;
        }
        const size_t size = records_.size();
        const uint8_t* record = rows.record;
        for (size_t i = 0; i < rows.n; ++i, record += size)
            for (size_t k = 0; k < n_places; ++k) to[k][record[code[k]]] += rows.rows[i];
    }

    static void subtract(Histogram& from, const Histogram& other) {
        for (size_t i = 0; i < from.size(); ++i) {
            from[i].sum -= other[i].sum;
            from[i].n -= other[i].n;
        }
    }

    const Rows& records_;
    const int exponent_;         // steps are 2^-exponent
    std::vector<size_t> first_;  // by column, in a histogram
    size_t size_ = 0;            // of a histogram
    std::vector<Place> narrow_, wide_;
    std::unordered_map<int64_t, Histogram> kept_;  // by open node
};

}  // namespace branchwise
