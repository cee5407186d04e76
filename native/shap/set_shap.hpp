// Shapley values against a small background where no case is divided, so that a row meets all
// conditions of a path on a column, or not.
//
// As tree_shap.hpp, with sets in place of factors: a group of rows lacks a set of columns, and has
// partners, the rows of the background that meet the conditions on all of them. At a leaf there
// is something to add for these partners only, which are few.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shap/partner_effects.hpp"
#include "shap/tree_walk.hpp"

namespace branchwise {

// Rows of a group that have the same outcome at a test.
struct RowClass {
    uint32_t group, outcome;
    uint32_t begin, end;  // of members
};

// Groups and other rows have the sets of columns that they lack before the test of the frame, as
// bits of positions in its `columns`. The members of a group follow each other.
struct SetFrame : WalkFrame {
    std::vector<uint32_t> members;
    std::vector<uint32_t> ends;  // of the members of each group
    std::vector<uint64_t> lacking;
    std::vector<uint64_t> partners;  // n_words_ of each group
    std::vector<uint64_t> others_lacking;
    std::vector<RowClass> classes;
    bool some_in_no_branch;  // whether a row has an outcome that is no branch
};

// One for each thread: it has scratch.
class SetShap : public TreeWalk<SetShap, SetFrame> {
  public:
    // Above, sums over all sets of columns take less time than partners one by one.
    static constexpr size_t most_partners = 512;

    // `divided`: whether a row, of the background or not, is divided.
    static bool applies(const ShapProblem& problem, bool divided) {
        return problem.background && !problem.pairs && !divided &&
               problem.background->n_rows <= most_partners &&
               std::min(problem.n_columns, problem.tests.longest_path()) <= WholeWeights::most;
    }

    explicit SetShap(const ShapProblem& problem)
        : TreeWalk(problem),
          n_others_(problem.background->n_rows),
          n_words_((n_others_ + 63) / 64),
          sum_(PartnerEffects::most_effects * problem.n_outputs),
          line_(problem.n_columns * problem.n_outputs) {
        others_.resize(n_others_);
        for (uint32_t i = 0; i < n_others_; ++i) others_[i] = i;
    }

  private:
    friend class TreeWalk<SetShap, SetFrame>;
    using Frame = SetFrame;

    // The other rows after an outcome: what they lack, and which have the column of the test.
    struct Others {
        std::vector<uint64_t> lacking;
        std::vector<uint64_t> have;
    };

    void begin(Frame& root, uint32_t n_rows) const {
        root.members.resize(n_rows);
        for (uint32_t i = 0; i < n_rows; ++i) root.members[i] = i;
        root.ends.assign(1, n_rows);
        root.lacking.assign(1, 0);
        root.partners.assign(n_words_, 0);
        for (size_t i = 0; i < n_others_; ++i) root.partners[i / 64] |= uint64_t(1) << i % 64;
        root.others_lacking.assign(n_others_, 0);
    }

    const std::vector<uint32_t>& others_of(const Frame&) const { return others_; }

    static bool any(const Frame& frame, uint32_t outcome) {
        const auto has_it = [&](const RowClass& rows) { return rows.outcome == outcome; };
        return (frame.some_in_no_branch &&
                std::any_of(frame.classes.begin(), frame.classes.end(), has_it)) ||
               among(frame.other_outcomes, outcome);
    }

    void take_others(const Frame& frame, uint32_t outcome, Others& to) const {
        to.lacking.resize(n_others_);
        to.have.assign(n_words_, 0);
        for (size_t i = 0; i < n_others_; ++i) {
            const uint64_t fails = frame.other_outcomes[i] != outcome;
            to.lacking[i] = frame.others_lacking[i] | fails << frame.at;
            to.have[i / 64] |= (~(to.lacking[i] >> frame.at) & 1) << i % 64;
        }
    }

    // Sort the members of each group by their outcomes.
    void find_classes(Frame& frame) {
        frame.classes.clear();
        frame.some_in_no_branch = false;
        sorted_.resize(frame.members.size());
        rest_.resize(frame.members.size());
        rest_outcomes_.resize(frame.members.size());
        uint32_t begin = 0;
        for (uint32_t group = 0; group < frame.ends.size(); ++group) {
            const uint32_t* members = &frame.members[begin];
            const uint32_t* outcomes = &frame.outcomes[begin];
            // One outcome after the other.
            for (uint32_t n_left = frame.ends[group] - begin; n_left;) {
                const uint32_t outcome = outcomes[0];
                uint32_t n = 0, n_rest = 0;
                for (uint32_t i = 0; i < n_left; ++i) {
                    const uint32_t row = members[i], found = outcomes[i];
                    sorted_[begin + n] = rest_[n_rest] = row;
                    rest_outcomes_[n_rest] = found;
                    n += found == outcome;
                    n_rest += found != outcome;
                }
                frame.classes.push_back({group, outcome, begin, begin + n});
                frame.some_in_no_branch |= outcome >= next_surrogate;
                begin += n;
                members = rest_.data();
                outcomes = rest_outcomes_.data();
                n_left = n_rest;
            }
        }
        frame.members.swap(sorted_);
    }

    // Take rows along to an outcome. Those without partners are left out.
    bool take_along(const Frame& frame, uint32_t outcome, Frame& next) {
        take_others(frame, outcome, taken_);
        refine(frame, outcome, next);
        if (next.members.empty()) return false;
        next.others_lacking.swap(taken_.lacking);
        return true;
    }

    void refine(const Frame& frame, uint32_t outcome, Frame& next) {
        next.lacking.clear();
        next.partners.clear();
        next.ends.clear();
        if (frame.repeated) index_.clear();
        new_groups_.assign(2 * frame.lacking.size(), unknown_);
        for (const RowClass& rows : frame.classes) {
            const bool fails = rows.outcome != outcome;
            uint32_t& group = new_groups_[2 * rows.group + fails];
            if (group == unknown_) group = refined(frame, rows.group, fails, next);
            if (group != dead_) next.ends[group] += rows.end - rows.begin;
        }
        uint32_t end = 0;
        for (uint32_t& size : next.ends) {
            const uint32_t n = size;
            size = end;  // and where the next rows of the group go
            end += n;
        }
        next.members.resize(end);
        for (const RowClass& rows : frame.classes) {
            const uint32_t group = new_groups_[2 * rows.group + (rows.outcome != outcome)];
            if (group == dead_) continue;
            const uint32_t n = rows.end - rows.begin;
            std::copy_n(&frame.members[rows.begin], n, &next.members[next.ends[group]]);
            next.ends[group] += n;
        }
    }

    // The group that rows of a group belong to, now that they fail or meet one more condition.
    uint32_t refined(const Frame& frame, uint32_t group, bool fails, Frame& next) {
        const uint64_t lacking = frame.lacking[group] | uint64_t(fails) << frame.at;
        const size_t n_groups = next.lacking.size();
        next.partners.resize((n_groups + 1) * n_words_);
        const bool lacks = lacking >> frame.at & 1;
        if (!take_partners(frame, group, lacks ? taken_.have.data() : nullptr,
                           &next.partners[n_groups * n_words_]))
            return dead_;
        const auto add = [&] {
            next.lacking.push_back(lacking);
            next.ends.push_back(0);
        };
        // Groups that differed in this column only may be the same now.
        if (frame.repeated) return index_.find_set(next.lacking, lacking, add);
        add();
        return uint32_t(n_groups);
    }

    // Write the partners of a group, of these only if given; returns whether there are any.
    bool take_partners(const Frame& frame, uint32_t group, const uint64_t* of, uint64_t* to) const {
        const uint64_t* from = &frame.partners[group * n_words_];
        uint64_t any = 0;
        for (size_t w = 0; w < n_words_; ++w) {
            to[w] = of ? from[w] & of[w] : from[w];
            any |= to[w];
        }
        return any;
    }

    // Add the values of the outcomes where cases end: leaves, and stopping here.
    void settle(Frame& frame) {
        find_classes(frame);
        find_ends(frame, any(frame, stops_here));
        if (ends_.empty()) return;
        find_others_at(frame);
        for (const RowClass& rows : frame.classes)
            if (find_sum(frame, rows)) add_to_rows(frame, rows);
    }

    // The outcome of those that have lacked the column of a test before.
    uint32_t lacks_already(const Frame& frame) const { return uint32_t(n_slots(frame)); }

    uint32_t outcome_at(const Frame& frame, uint64_t lacking, uint32_t outcome) const {
        return lacking >> frame.at & 1 ? lacks_already(frame) : uint32_t(slot_of(outcome));
    }

    // With several outputs, an end is evaluated alone, and its effects multiplied by its values;
    // else all ends together.
    void find_others_at(const Frame& frame) {
        effects_.begin(frame.columns.size(), frame.at, n_others_, n_slots(frame) + 1);
        const uint64_t rest = ~(uint64_t(1) << frame.at);
        partners_.assign(n_words_, 0);  // of any group
        for (size_t i = 0; i < frame.partners.size(); ++i)
            partners_[i % n_words_] |= frame.partners[i];
        other_outcomes_.resize(n_others_);
        for (size_t i = 0; i < n_others_; ++i) {
            const uint64_t lacking = frame.others_lacking[i];
            other_outcomes_[i] = outcome_at(frame, lacking, frame.other_outcomes[i]);
            if (partners_[i / 64] >> i % 64 & 1)
                effects_.set_other(i, other_outcomes_[i], lacking & rest, problem_.weights[i]);
        }
        together_ = problem_.n_outputs == 1;
        reach_.assign((together_ ? 1 : ends_.size()) * n_words_, 0);
        for (size_t e = 0; e < ends_.size(); ++e) {
            const auto end = uint32_t(slot_of(ends_[e]));
            if (together_) effects_.set_value(end, values_at(frame, ends_[e])[0]);
            uint64_t* reach = &reach_[together_ ? 0 : e * n_words_];
            for (size_t i = 0; i < n_others_; ++i)
                reach[i / 64] |= uint64_t(other_outcomes_[i] == end) << i % 64;
        }
    }

    // Write the effects times values, over all ends, of rows; false if there are none.
    bool find_sum(const Frame& frame, const RowClass& rows) {
        const uint64_t lacking = frame.lacking[rows.group];
        const uint32_t outcome = outcome_at(frame, lacking, rows.outcome);
        const uint64_t other_columns = lacking & ~(uint64_t(1) << frame.at);
        if (together_) {
            const uint64_t* of = effects_.value(outcome) == 0.0 ? reach_.data() : nullptr;
            if (!take_partners(frame, rows.group, of, partners_.data())) return false;
            effects_.find(other_columns, outcome, partners_.data(), n_words_, sum_.data());
            return true;
        }
        const size_t width = frame.columns.size(), n = problem_.n_outputs;
        double effects[PartnerEffects::most_effects];
        bool some = false;
        for (size_t e = 0; e < ends_.size(); ++e) {
            const auto end = uint32_t(slot_of(ends_[e]));
            const uint64_t* of = outcome == end ? nullptr : &reach_[e * n_words_];
            if (!take_partners(frame, rows.group, of, partners_.data())) continue;
            if (!some) std::fill_n(sum_.data(), width * n, 0.0);
            some = true;
            effects_.set_value(end, 1.0);
            effects_.find(other_columns, outcome, partners_.data(), n_words_, effects);
            effects_.set_value(end, 0.0);
            const double* values = values_at(frame, ends_[e]);
            for (size_t i = 0; i < width; ++i)
                for (size_t k = 0; k < n; ++k) sum_[i * n + k] += effects[i] * values[k];
        }
        return some;
    }

    void add_to_rows(const Frame& frame, const RowClass& rows) {
        const size_t n = problem_.n_outputs, width = frame.columns.size();
        const uint32_t* columns = frame.columns.data();
        const double* sum = sum_.data();
        // Most columns, or all: as a run, which is added faster.
        const bool dense = problem_.n_columns <= 2 * width;
        if (dense) {
            std::fill(line_.begin(), line_.end(), 0.0);
            for (size_t i = 0; i < width; ++i)
                for (size_t k = 0; k < n; ++k) line_[columns[i] * n + k] = sum[i * n + k];
        }
        const double* line = line_.data();
        const size_t length = line_.size();
        for (uint32_t row = rows.begin; row < rows.end; ++row) {
            double* __restrict to = out_ + frame.members[row] * length;
            if (row + ahead_ < frame.members.size())
                fetch(out_ + frame.members[row + ahead_] * length, length);
            if (dense)
                for (size_t i = 0; i < length; ++i) to[i] += line[i];
            else if (n == 1)
                for (size_t i = 0; i < width; ++i) to[columns[i]] += sum[i];
            else
                for (size_t i = 0; i < width; ++i)
                    for (size_t k = 0; k < n; ++k) to[columns[i] * n + k] += sum[i * n + k];
        }
    }

    // Rows that follow each other here are anywhere in the result.
    static constexpr uint32_t ahead_ = 8;

    static void fetch(const double* line, size_t length) {
        for (size_t i = 0; i < length; i += 8) __builtin_prefetch(line + i, 1);
    }

    static constexpr uint32_t unknown_ = ~uint32_t(0), dead_ = unknown_ - 1;

    const size_t n_others_, n_words_;
    std::vector<uint32_t> others_;
    GroupIndex index_;
    Others taken_;
    PartnerEffects effects_;
    bool together_ = false;
    std::vector<uint64_t> reach_;  // the others that get to the ends, or to each of them
    std::vector<uint32_t> new_groups_, sorted_, rest_, rest_outcomes_, other_outcomes_;
    std::vector<uint64_t> partners_;
    std::vector<double> sum_;   // of the columns of a path
    std::vector<double> line_;  // the same, of all columns
};

}  // namespace branchwise
