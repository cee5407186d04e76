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
#include "shap/row_order.hpp"
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
    std::vector<uint64_t> partners;  // n_words_ of each group, at least
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
          order_(problem.n_columns) {
        others_.resize(n_others_);
        for (uint32_t i = 0; i < n_others_; ++i) others_[i] = i;
    }

    // Add the values of the rows to `out`; `go_on(work)` may say to give up.
    template <typename GoOn>
    bool add(const ShapRows& rows, double* out, const GoOn& go_on) {
        n_rows_ = rows.n_rows;
        order_.sort(tests_, rows);
        const size_t length = problem_.n_columns * problem_.n_outputs;
        values_.assign(length * n_rows_, 0.0);
        if (!TreeWalk::add(order_.rows(), values_.data(), go_on)) return false;
        for (size_t i = 0; i < n_rows_; ++i)
            for (size_t k = 0; k < length; ++k)
                out[order_[i] * length + k] += values_[k * n_rows_ + i];
        return true;
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
        uint32_t top = 0;
        for (const uint32_t outcome : frame.outcomes) top = std::max(top, outcome);
        uint32_t begin = 0;
        for (uint32_t group = 0; group < frame.ends.size(); ++group) {
            const uint32_t* members = &frame.members[begin];
            const uint32_t* outcomes = &frame.outcomes[begin];
            // One outcome after the other.
            for (uint32_t n_left = frame.ends[group] - begin; n_left;) {
                const uint32_t outcome = outcomes[0];
                uint32_t n = separate(members, outcomes, n_left, &sorted_[begin]);
                add_class(frame, group, outcome, begin, n);
                n_left -= n;
                // All the others have the other one.
                if (top < 2 && n_left) {
                    std::copy_n(rest_.data(), n_left, &sorted_[begin + n]);
                    add_class(frame, group, 1 - outcome, begin + n, n_left);
                    n += n_left;
                    n_left = 0;
                }
                begin += n;
                members = rest_.data();
                outcomes = rest_outcomes_.data();
            }
        }
        frame.members.swap(sorted_);
    }

    static void add_class(Frame& frame, uint32_t group, uint32_t outcome, uint32_t begin,
                          uint32_t n) {
        frame.classes.push_back({group, outcome, begin, begin + n});
        frame.some_in_no_branch |= outcome >= next_surrogate;
    }

    // Write the members that have the outcome of the first one to `same`, the others to `rest_`.
    uint32_t separate(const uint32_t* members, const uint32_t* outcomes, uint32_t n_members,
                      uint32_t* __restrict same) {
        uint32_t* rest = rest_.data();
        uint32_t* rest_outcomes = rest_outcomes_.data();
        const uint32_t outcome = outcomes[0];
        uint32_t n = 0;
        for (uint32_t i = 0; i < n_members; ++i) {
            const uint32_t row = members[i], found = outcomes[i];
            same[n] = rest[i - n] = row;
            rest_outcomes[i - n] = found;
            n += found == outcome;
        }
        return n;
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
        next.ends.clear();
        const size_t most = 2 * frame.lacking.size() * n_words_;
        if (next.partners.size() < most) next.partners.resize(most);
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
        const size_t stride = sum_stride(frame);
        summed_.clear();
        sums_.resize(frame.classes.size() * stride);
        for (const RowClass& rows : frame.classes)
            if (find_sum(frame, rows, &sums_[summed_.size() * stride])) summed_.push_back(rows);
        add_to_rows(frame);
    }

    // Effects are written in whole steps, but outputs one after the other.
    size_t sum_stride(const Frame& frame) const {
        return PartnerEffects::whole_steps(frame.columns.size() * problem_.n_outputs);
    }

    // Add the sums to the rows, some columns at a time: the rows of a column are in the cache.
    void add_to_rows(const Frame& frame) {
        const size_t n = problem_.n_outputs;
        lines_.clear();
        for (const uint32_t column : frame.columns)
            for (size_t k = 0; k < n; ++k) lines_.push_back(out_ + (column * n + k) * n_rows_);
        size_t i = 0;
        for (; i + 4 <= lines_.size(); i += 4) add_to_lines<4>(frame, i);
        if (lines_.size() & 2) add_to_lines<2>(frame, i);
        if (lines_.size() & 1) add_to_lines<1>(frame, lines_.size() - 1);
    }

    // The number of lines is known, so that sums stay in registers.
    template <size_t n>
    void add_to_lines(const Frame& frame, size_t first) const {
        const size_t stride = sum_stride(frame);
        const double* from = sums_.data() + first;
        const uint32_t* members = frame.members.data();
        double* to[n];
        std::copy_n(&lines_[first], n, to);
        for (const RowClass& rows : summed_) {
            double sum[n];
            std::copy_n(from, n, sum);
            from += stride;
            for (uint32_t i = rows.begin; i < rows.end; ++i)
                for (size_t k = 0; k < n; ++k) to[k][members[i]] += sum[k];
        }
    }

    // The outcome of those that have lacked the column of a test before.
    uint32_t lacks_already(const Frame& frame) const { return uint32_t(n_slots(frame)); }

    uint32_t outcome_at(const Frame& frame, uint64_t lacking, uint32_t outcome) const {
        return lacking >> frame.at & 1 ? lacks_already(frame) : uint32_t(slot_of(outcome));
    }

    // With several outputs, an end is evaluated alone, and its effects multiplied by its values;
    // else all ends together.
    void find_others_at(const Frame& frame) {
        together_ = problem_.n_outputs == 1;
        const size_t n_sets = together_ ? 1 : ends_.size();
        effects_.begin(frame.columns.size(), frame.at, n_others_, n_slots(frame) + 1, n_sets);
        const uint64_t rest = ~(uint64_t(1) << frame.at);
        partners_.assign(n_words_, 0);  // of any group
        for (size_t group = 0; group < frame.lacking.size(); ++group)
            for (size_t w = 0; w < n_words_; ++w)
                partners_[w] |= frame.partners[group * n_words_ + w];
        other_outcomes_.resize(n_others_);
        for (size_t i = 0; i < n_others_; ++i) {
            const uint64_t lacking = frame.others_lacking[i];
            other_outcomes_[i] = outcome_at(frame, lacking, frame.other_outcomes[i]);
            if (partners_[i / 64] >> i % 64 & 1)
                effects_.set_other(i, other_outcomes_[i], lacking & rest, problem_.weights[i]);
        }
        reach_.assign(n_sets * n_words_, 0);
        for (size_t e = 0; e < ends_.size(); ++e) {
            const auto end = uint32_t(slot_of(ends_[e]));
            if (together_)
                effects_.set_value(0, end, values_at(frame, ends_[e])[0]);
            else
                effects_.set_value(e, end, 1.0);
            uint64_t* reach = &reach_[together_ ? 0 : e * n_words_];
            for (size_t i = 0; i < n_others_; ++i)
                reach[i / 64] |= uint64_t(other_outcomes_[i] == end) << i % 64;
        }
    }

    // Write the effects times values, over all ends, of rows; false if there are none.
    bool find_sum(const Frame& frame, const RowClass& rows, double* sum) {
        const uint64_t lacking = frame.lacking[rows.group];
        const uint32_t outcome = outcome_at(frame, lacking, rows.outcome);
        const uint64_t other_columns = lacking & ~(uint64_t(1) << frame.at);
        if (together_) {
            const uint64_t* of = effects_.value(0, outcome) == 0.0 ? reach_.data() : nullptr;
            if (!take_partners(frame, rows.group, of, partners_.data())) return false;
            effects_.find(0, other_columns, outcome, partners_.data(), n_words_, sum);
            return true;
        }
        const size_t width = frame.columns.size(), n = problem_.n_outputs;
        double effects[PartnerEffects::most_effects];
        bool some = false;
        for (size_t e = 0; e < ends_.size(); ++e) {
            const auto end = uint32_t(slot_of(ends_[e]));
            const uint64_t* of = outcome == end ? nullptr : &reach_[e * n_words_];
            if (!take_partners(frame, rows.group, of, partners_.data())) continue;
            if (!some) std::fill_n(sum, width * n, 0.0);
            some = true;
            effects_.find(e, other_columns, outcome, partners_.data(), n_words_, effects);
            const double* values = values_at(frame, ends_[e]);
            for (size_t i = 0; i < width; ++i)
                for (size_t k = 0; k < n; ++k) sum[i * n + k] += effects[i] * values[k];
        }
        return some;
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
    std::vector<RowClass> summed_;
    std::vector<double> sums_;    // of each of these, of the columns of the path
    std::vector<double*> lines_;  // where they are added
    size_t n_rows_ = 0;
    RowOrder order_;
    std::vector<double> values_;  // of all columns: those of a column follow each other
};

}  // namespace branchwise
