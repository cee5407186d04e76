// Surrogate splits of a node: native implementation of those in branchwise/grow/thresholds.py.
//
// A surrogate is a split of another column, which is scored by the weight of the records that it
// sends to the same branch as the split does. Records that miss the column of the split follow the
// first of its surrogates that knows them.

#pragma once

#include <algorithm>
#include <vector>

#include "core/choose.hpp"
#include "records/moves.hpp"

namespace branchwise {

template <typename W, typename Target>
class SurrogateSearch {
  public:
    SurrogateSearch(const Problem& problem, const Records<W, Target>& records, ThreadPool& pool)
        : problem_(problem), records_(records), pool_(pool), scratch_(pool.size()) {}

    // The surrogates of a split in two branches of these sizes, whose records the mover knows: the
    // best ones of all columns, those that agree most first.
    std::vector<Surrogate> find(const RecordJob& job, size_t column, const Mover<W, Target>& mover,
                                const std::vector<double>& sizes) {
        const std::vector<uint32_t>& alive = *job.alive;
        found_.assign(alive.size(), Found());
        const bool larger = right_is_larger(sizes[0], sizes[1]);
        pool_.each(alive.size(), job.n * alive.size(), [&](size_t i, unsigned member) {
            if (alive[i] == column) return;
            found_[i] = best_of(job, alive[i], mover, larger, scratch_[member]);
        });
        // A surrogate must do better than sending all cases to the larger branch.
        const double least = std::max(sizes[0], sizes[1]) * (1 + tie);
        for (Found& found : found_)
            if (found.agreement <= least) found.agreement = no_score;
        std::vector<Surrogate> best;
        while (best.size() < most_surrogates) {
            const size_t i = first_best();
            if (i == found_.size()) break;
            best.push_back(std::move(found_[i].split));
            found_[i].agreement = no_score;
        }
        return best;
    }

    // Send the records that are in none of the two branches where surrogates say, the others to
    // the branch `rest`; visit(branch, record) for each of them.
    template <typename Visit>
    void route(const RecordJob& job, const std::vector<Surrogate>& surrogates, uint32_t rest,
               Mover<W, Target>& mover, const Visit& visit) {
        const uint8_t* first = records_.first(job);
        const auto send = [&](size_t i, uint32_t branch) {
            mover.send(i, branch);
            visit(branch, first + i * records_.size());
        };
        for (const Surrogate& surrogate : surrogates) {
            if (mover.rows(none) == 0) return;
            const auto j = size_t(surrogate.column);
            each_value(job, j, [&](size_t i, uint32_t value) {
                if (mover.branch(i) != none) return;
                if (records_.is_numeric(j)) value = records_.values(j)[value] > surrogate.threshold;
                for (const uint32_t branch : {0u, 1u}) {
                    const std::vector<uint32_t>& codes = surrogate.codes[branch];
                    if (std::binary_search(codes.begin(), codes.end(), value)) send(i, branch);
                }
            });
        }
        if (mover.rows(none) == 0) return;
        for (size_t i = 0; i < job.n; ++i)
            if (mover.branch(i) == none) send(i, rest);
    }

  private:
    static constexpr uint32_t none = 2;  // of the two branches

    // The best split of a column: by the weight that agrees.
    struct Found {
        double agreement = no_score;
        Surrogate split;
    };

    // Records that share a value, by branch.
    struct Shared {
        uint32_t value = 0;
        double weight[2] = {0, 0};
        double cases = 0;
    };

    struct Scratch {
        std::vector<Shared> by_code, values;
    };

    struct Threshold {
        double agreement;
        size_t after;
        bool turned;
    };

    // visit(record, value) for all that know a column: its code, or the rank of its number.
    template <typename Visit>
    void each_value(const RecordJob& job, size_t j, const Visit& visit) const {
        if (records_.is_list(j)) {
            return records_.with_list(job, j, [&](const auto& list) {
                for (size_t i = 0; i < list.size(); ++i) visit(list.position(i), list.rank(i));
            });
        }
        const uint8_t* record = records_.first(job);
        const uint32_t missing = records_.missing_code(j);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
            const uint32_t code = records_.code(record, j);
            if (code != missing) visit(i, code);
        }
    }

    Found best_of(const RecordJob& job, size_t j, const Mover<W, Target>& mover, bool larger,
                  Scratch& scratch) const {
        count(job, j, mover, scratch);
        Found found = records_.is_numeric(j) ? best_threshold(j, scratch.values)
                                             : best_groups(scratch.values, larger);
        found.split.column = int32_t(j);
        return found;
    }

    // The values of a column in order, of records that are in a branch.
    void count(const RecordJob& job, size_t j, const Mover<W, Target>& mover,
               Scratch& scratch) const {
        const uint8_t* first = records_.first(job);
        std::vector<Shared>& values = scratch.values;
        values.clear();
        const auto add = [&](Shared& to, size_t i, uint32_t branch) {
            const uint8_t* record = first + i * records_.size();
            to.weight[branch] += double(records_.weight(record));
            to.cases += records_.share(record);
        };
        if (records_.is_list(j)) {
            each_value(job, j, [&](size_t i, uint32_t rank) {
                const uint32_t branch = mover.branch(i);
                if (branch == none) return;
                if (values.empty() || values.back().value != rank) {
                    values.emplace_back();
                    values.back().value = rank;
                }
                add(values.back(), i, branch);
            });
            return;
        }
        scratch.by_code.assign(records_.missing_code(j), Shared());
        each_value(job, j, [&](size_t i, uint32_t code) {
            const uint32_t branch = mover.branch(i);
            if (branch != none) add(scratch.by_code[code], i, branch);
        });
        for (uint32_t code = 0; code < scratch.by_code.size(); ++code) {
            if (scratch.by_code[code].cases == 0) continue;
            values.push_back(scratch.by_code[code]);
            values.back().value = code;
        }
    }

    // The threshold that agrees most, in either direction; the lowest of equals.
    Found best_threshold(size_t j, const std::vector<Shared>& values) const {
        Shared all, left;
        for (const Shared& each : values) add_up(all, each);
        std::vector<Threshold> better;  // than all before them
        const auto offer = [&](double agreement, size_t after, bool turned) {
            if (better.empty() || agreement > better.back().agreement)
                better.push_back({agreement, after, turned});
        };
        for (size_t i = 0; i + 1 < values.size(); ++i) {
            add_up(left, values[i]);
            if (std::min(left.cases, all.cases - left.cases) < fewest_surrogate_cases) continue;
            offer(left.weight[0] + (all.weight[1] - left.weight[1]), i, false);
            offer(left.weight[1] + (all.weight[0] - left.weight[0]), i, true);
        }
        Found found;
        if (better.empty()) return found;
        const double least = least_of_equals(better.back().agreement, 0.0);
        const Threshold& best = *std::find_if(
            better.begin(), better.end(), [&](const Threshold& t) { return t.agreement >= least; });
        found.agreement = best.agreement;
        found.split.threshold =
            threshold_between(records_.values(j), values[best.after].value,
                              values[best.after + 1].value, problem_.positions[j]);
        found.split.codes[best.turned] = {0};
        found.split.codes[!best.turned] = {1};
        return found;
    }

    // Every value goes to the branch of most of its cases, of equals to the larger.
    static Found best_groups(const std::vector<Shared>& values, bool larger) {
        Found found;
        double agreement = 0, cases[2] = {0, 0};
        for (const Shared& each : values) {
            const bool right = right_is_larger(each.weight[0], each.weight[1]);
            const bool left = right_is_larger(each.weight[1], each.weight[0]);
            const bool branch = right == left ? larger : right;
            agreement += std::max(each.weight[0], each.weight[1]);
            cases[branch] += each.cases;
            found.split.codes[branch].push_back(each.value);
        }
        if (std::min(cases[0], cases[1]) >= fewest_surrogate_cases) found.agreement = agreement;
        return found;
    }

    static void add_up(Shared& to, const Shared& from) {
        to.weight[0] += from.weight[0];
        to.weight[1] += from.weight[1];
        to.cases += from.cases;
    }

    // Of found_; their number where none is left.
    size_t first_best() const {
        double top = no_score;
        for (const Found& found : found_) top = std::max(top, found.agreement);
        if (top == no_score) return found_.size();
        const double least = least_of_equals(top, 0.0);
        size_t i = 0;
        while (found_[i].agreement < least) ++i;
        return i;
    }

    const Problem& problem_;
    const Records<W, Target>& records_;
    ThreadPool& pool_;
    std::vector<Scratch> scratch_;  // one for each thread
    std::vector<Found> found_;      // by place of the column among those that are alive
};

}  // namespace branchwise
