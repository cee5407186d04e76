// Shapley values of a tree for a block of rows: native implementation of the sums in
// branchwise/shap/shapley.py.
//
// A walk over the tree takes the rows along, all of them to every branch, in groups that
// have the same factors so far. So the work at a leaf is one evaluation for each pair of
// groups that may end there, and an addition for each row. Rows are left where no row of
// the background could make up for the conditions that they do not meet.

#pragma once

#include <cstdint>
#include <vector>

#include "shap/product_effects.hpp"
#include "shap/tree_walk.hpp"

namespace branchwise {

// `groups` are those of before the test of the frame.
struct FactorFrame : WalkFrame {
    FactorGroups groups;
    OtherGroups others;
    std::vector<Member> members, other_members;
};

// One for each thread: it has scratch.
class TreeShap : public TreeWalk<TreeShap, FactorFrame> {
  public:
    explicit TreeShap(const ShapProblem& problem) : TreeWalk(problem) {}

  private:
    friend class TreeWalk<TreeShap, FactorFrame>;
    using Frame = FactorFrame;

    void begin(Frame& root, uint32_t n_rows) const {
        root.groups.begin();
        root.others.groups.begin();
        const auto first_group = [](std::vector<Member>& members, size_t n) {
            members.resize(n);
            for (uint32_t i = 0; i < n; ++i) members[i] = {i, 0};
        };
        first_group(root.members, n_rows);
        first_group(root.other_members, problem_.background ? problem_.background->n_rows : 0);
    }

    static bool any(const Frame& frame, uint32_t outcome) {
        return among(frame.outcomes, outcome) || among(frame.other_outcomes, outcome);
    }

    const std::vector<Member>& others_of(const Frame& frame) const { return frame.other_members; }

    bool take_along(const Frame& frame, uint32_t outcome, Frame& next) {
        take_others(frame, outcome, next.others, &next.other_members);
        if (!next.others.groups.size()) return false;
        refine(frame, frame.groups, frame.members, frame.outcomes, outcome, next.groups,
               &next.members, &next.others.groups);
        return !next.members.empty();
    }

    // The factor of an outcome: 0, 1 or (2) the share of its branch.
    static unsigned level_of(uint32_t found, uint32_t outcome) {
        if (found == outcome) return 1;
        return found == to_every_branch && outcome < next_surrogate ? 2 : 0;
    }

    // The groups of the others for an outcome.
    void take_others(const Frame& frame, uint32_t outcome, OtherGroups& to,
                     std::vector<Member>* members) {
        if (!problem_.background) {
            to.groups.clear(frame.columns.size());
            line_of(frame, frame.others.groups, 0);
            line_[frame.at] *= tests_.training_share(frame.node, outcome);
            to.groups.add(line_.data());
            to.weights.assign(1, 1.0);
            return;
        }
        if (!members) members = &spare_;
        refine(frame, frame.others.groups, frame.other_members, frame.other_outcomes, outcome,
               to.groups, members, nullptr);
        to.weights.assign(to.groups.size(), 0.0);
        for (const Member& member : *members)
            to.weights[member.group] += problem_.weights[member.row];
    }

    // The factors of a group with a place for the column of the test.
    void line_of(const Frame& frame, const FactorGroups& groups, size_t group) {
        line_.assign(frame.columns.size(), 1.0);
        groups.copy_line(group, line_.data());
    }

    // Multiply the factors of rows by that of an outcome, and group them anew. Those that agree
    // with none of the `others` in a factor that is not 0 are left out.
    void refine(const Frame& frame, const FactorGroups& groups, const std::vector<Member>& members,
                const std::vector<uint32_t>& outcomes, uint32_t outcome, FactorGroups& to,
                std::vector<Member>* to_members, const FactorGroups* others) {
        constexpr uint32_t unknown = ~uint32_t(0);
        to.clear(frame.columns.size());
        index_.clear();
        new_groups_.assign(3 * groups.size(), unknown);
        to_members->resize(members.size());
        Member* end = to_members->data();
        for (size_t i = 0; i < members.size(); ++i) {
            const unsigned level = level_of(outcomes[i], outcome);
            uint32_t& group = new_groups_[3 * members[i].group + level];
            if (group == unknown)
                group = refined(frame, groups, members[i].group, outcome, level, to, others);
            *end = {members[i].row, group};
            end += group != dead_;
        }
        to_members->resize(size_t(end - to_members->data()));
    }

    // The group that rows of a group belong to, now that they have another factor.
    uint32_t refined(const Frame& frame, const FactorGroups& groups, uint32_t group,
                     uint32_t outcome, unsigned level, FactorGroups& to,
                     const FactorGroups* others) {
        const size_t width = frame.columns.size();
        const bool whole = groups.whole[group] && level < 2 && width <= FactorGroups::most_whole;
        uint64_t zeros = groups.zero[group];
        if (whole) {
            zeros |= level ? 0 : uint64_t(1) << frame.at;
        } else {
            line_of(frame, groups, group);
            line_[frame.at] *= factor(frame, outcome, level);
            zeros = FactorGroups::zeros_of(line_.data(), width);
        }
        if (others && !possible(zeros, *others)) return dead_;
        // Groups that differed in this column only may be the same now.
        if (groups.width == width)
            return whole ? index_.find_whole(to, zeros) : index_.find_line(to, line_.data());
        if (whole)
            to.add_whole(zeros);
        else
            to.add(line_.data());
        return uint32_t(to.size() - 1);
    }

    double factor(const Frame& frame, uint32_t outcome, unsigned level) const {
        return level == 2 ? tests_.share(frame.node, outcome) : double(level);
    }

    // Whether one of the others has a factor wherever these have none.
    static bool possible(uint64_t zeros, const FactorGroups& others) {
        for (const uint64_t other : others.zero)
            if (!(zeros & other)) return true;
        return false;
    }

    // Add the values of the outcomes where cases end: leaves, and stopping here.
    void settle(Frame& frame) {
        const bool some_stop = any(frame, stops_here);
        find_ends(frame, some_stop || (!problem_.background &&
                                       tests_.training_share(frame.node, stops_here) > 0));
        if (ends_.empty()) return;
        if (others_at_.size() < ends_.size()) others_at_.resize(ends_.size());
        for (size_t e = 0; e < ends_.size(); ++e) {
            take_others(frame, ends_[e], others_at_[e], nullptr);
            products_.prepare(others_at_[e], problem_.n_rows, problem_.pairs);
        }
        const size_t width = frame.columns.size();
        n_effects_ = problem_.pairs ? width * width : width;
        effects_.clear();
        effects_of_.assign(3 * ends_.size() * frame.groups.size(), unknown_);
        sums_.clear();
        // Most columns, or all: as a run, which is added faster.
        dense_ = !problem_.pairs && problem_.n_columns <= 2 * width;
        n_sums_ = (dense_ ? problem_.n_columns : n_effects_) * problem_.n_outputs;
        sums_of_.assign(n_slots(frame) * frame.groups.size(), unknown_);
        for (size_t i = 0; i < frame.members.size(); ++i) {
            const uint32_t found = frame.outcomes[i], group = frame.members[i].group;
            size_t& sum = sums_of_[group * n_slots(frame) + slot_of(found)];
            if (sum == unknown_) sum = make_sum(frame, group, found);
            if (sum != nothing_) add_to_row(frame, frame.members[i].row, sums_.data() + sum);
        }
    }

    // The effects times values, over all ends, for a group with an outcome; or nothing.
    size_t make_sum(const Frame& frame, uint32_t group, uint32_t found) {
        const size_t n = problem_.n_outputs, start = sums_.size();
        bool some = false;
        for (size_t e = 0; e < ends_.size(); ++e) {
            const size_t effects = effects_at(frame, group, e, level_of(found, ends_[e]));
            if (effects == nothing_) continue;
            if (!some) sums_.resize(start + n_sums_, 0.0);
            some = true;
            const double* values = values_at(frame, ends_[e]);
            for (size_t i = 0; i < n_effects_; ++i) {
                double* sum = sums_.data() + start + (dense_ ? frame.columns[i] : i) * n;
                for (size_t k = 0; k < n; ++k) sum[k] += effects_[effects + i] * values[k];
            }
        }
        return some ? start : nothing_;
    }

    size_t effects_at(const Frame& frame, uint32_t group, size_t e, unsigned level) {
        size_t& known = effects_of_[3 * (group * ends_.size() + e) + level];
        if (known != unknown_) return known;
        const bool whole = frame.groups.whole[group] && level < 2 &&
                           frame.columns.size() <= FactorGroups::most_whole;
        uint64_t zero = frame.groups.zero[group];
        if (!whole || ProductEffects::needs_line(others_at_[e], problem_.pairs)) {
            line_of(frame, frame.groups, group);
            line_[frame.at] *= factor(frame, ends_[e], level);
            zero = FactorGroups::zeros_of(line_.data(), line_.size());
        } else if (!level) {
            zero |= uint64_t(1) << frame.at;
        }
        const size_t start = effects_.size();
        effects_.resize(start + n_effects_);
        if (products_.add_up(line_.data(), zero, whole, others_at_[e], problem_.pairs,
                             effects_.data() + start))
            return known = start;
        effects_.resize(start);
        return known = nothing_;
    }

    void add_to_row(const Frame& frame, uint32_t row, const double* sum) {
        const size_t n = problem_.n_outputs, width = frame.columns.size();
        if (!problem_.pairs) {
            double* to = out_ + row * problem_.n_columns * n;
            if (dense_) {
                for (size_t i = 0; i < n_sums_; ++i) to[i] += sum[i];
                return;
            }
            for (size_t i = 0; i < width; ++i)
                for (size_t k = 0; k < n; ++k) to[frame.columns[i] * n + k] += *sum++;
            return;
        }
        double* to = out_ + row * problem_.n_columns * problem_.n_columns * n;
        for (size_t i = 0; i < width; ++i)
            for (size_t j = 0; j < width; ++j) {
                const size_t at = frame.columns[i] * problem_.n_columns + frame.columns[j];
                for (size_t k = 0; k < n; ++k) to[at * n + k] += *sum++;
            }
    }

    static constexpr size_t unknown_ = ~size_t(0), nothing_ = unknown_ - 1;
    static constexpr uint32_t dead_ = ~uint32_t(0) - 1;

    GroupIndex index_;
    ProductEffects products_;
    std::vector<double> line_;
    std::vector<uint32_t> new_groups_;
    std::vector<Member> spare_;
    std::vector<PreparedOthers> others_at_;
    size_t n_effects_ = 0, n_sums_ = 0;
    bool dense_ = false;
    std::vector<double> effects_, sums_;
    std::vector<size_t> effects_of_, sums_of_;
};

}  // namespace branchwise
