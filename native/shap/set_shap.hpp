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

#include "shap/product_effects.hpp"
#include "shap/tree_walk.hpp"

namespace branchwise {

// Groups and other rows have the sets of columns that they lack before the test of the frame, as
// bits of positions in its `columns`.
struct SetFrame : WalkFrame {
    std::vector<uint64_t> lacking;
    std::vector<uint64_t> partners;  // n_words_ of each group
    std::vector<uint64_t> others_lacking;
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
          n_words_((n_others_ + 63) / 64) {
        others_.resize(n_others_);
        for (uint32_t i = 0; i < n_others_; ++i) others_[i] = {i, 0};
    }

  private:
    friend class TreeWalk<SetShap, SetFrame>;
    using Frame = SetFrame;

    // The other rows after an outcome: what they lack, and which have the column of the test.
    struct Others {
        std::vector<uint64_t> lacking;
        std::vector<uint64_t> have;
    };

    // The same at an end: for each column of the path whether a row lacks it (1) or not (0), and
    // how many columns it lacks.
    struct OthersAtEnd : Others {
        std::vector<double> lacks;
        std::vector<uint32_t> n_lacking;
        const double* values;  // of the node where cases end
    };

    void begin(Frame& root) const {
        root.lacking.assign(1, 0);
        root.partners.assign(n_words_, 0);
        for (size_t i = 0; i < n_others_; ++i) root.partners[i / 64] |= uint64_t(1) << i % 64;
        root.others_lacking.assign(n_others_, 0);
    }

    const std::vector<Member>& others_of(const Frame&) const { return others_; }

    // Runs of numbers that are added up end with a whole step.
    static constexpr size_t step_ = 4;
    static constexpr size_t padded(size_t length) { return (length + step_ - 1) / step_ * step_; }

    void take_others(const Frame& frame, uint32_t outcome, Others& to) const {
        to.lacking.resize(n_others_);
        to.have.assign(n_words_, 0);
        for (size_t i = 0; i < n_others_; ++i) {
            const uint64_t fails = frame.other_outcomes[i] != outcome;
            to.lacking[i] = frame.others_lacking[i] | fails << frame.at;
            to.have[i / 64] |= (~(to.lacking[i] >> frame.at) & 1) << i % 64;
        }
    }

    void take_others_at(const Frame& frame, uint32_t outcome, OthersAtEnd& to) const {
        take_others(frame, outcome, to);
        to.values = values_at(frame, outcome);
        const size_t length = padded(frame.columns.size());
        to.lacks.resize(n_others_ * length);
        to.n_lacking.resize(n_others_);
        for (size_t i = 0; i < n_others_; ++i) {
            to.n_lacking[i] = uint32_t(__builtin_popcountll(to.lacking[i]));
            for (size_t j = 0; j < length; ++j)
                to.lacks[i * length + j] = double(to.lacking[i] >> j & 1);
        }
    }

    // Write the partners of a group after an outcome; returns whether there are any.
    bool take_partners(const Frame& frame, uint32_t group, bool lacks, const Others& others,
                       uint64_t* to) const {
        const uint64_t* from = &frame.partners[group * n_words_];
        uint64_t any = 0;
        for (size_t w = 0; w < n_words_; ++w) {
            to[w] = lacks ? from[w] & others.have[w] : from[w];
            any |= to[w];
        }
        return any;
    }

    bool take_along(const Frame& frame, uint32_t outcome, Frame& next) {
        take_others(frame, outcome, taken_);
        refine(frame, outcome, next);
        if (next.members.empty()) return false;
        next.others_lacking.swap(taken_.lacking);
        return true;
    }

    // Group the rows after an outcome. Those without partners are left out.
    void refine(const Frame& frame, uint32_t outcome, Frame& next) {
        next.lacking.clear();
        next.partners.clear();
        if (frame.repeated) index_.clear();
        new_groups_.assign(2 * frame.lacking.size(), unknown_);
        next.members.resize(frame.members.size());
        Member* end = next.members.data();
        for (size_t i = 0; i < frame.members.size(); ++i) {
            const Member member = frame.members[i];
            const bool fails = frame.outcomes[i] != outcome;
            uint32_t& group = new_groups_[2 * member.group + fails];
            if (group == unknown_) group = refined(frame, member.group, fails, next);
            *end = {member.row, group};
            end += group != dead_;
        }
        next.members.resize(size_t(end - next.members.data()));
    }

    // The group that rows of a group belong to, now that they fail or meet one more condition.
    uint32_t refined(const Frame& frame, uint32_t group, bool fails, Frame& next) {
        const uint64_t lacking = frame.lacking[group] | uint64_t(fails) << frame.at;
        next.partners.resize((next.lacking.size() + 1) * n_words_);
        uint64_t* to = next.partners.data() + next.lacking.size() * n_words_;
        if (!take_partners(frame, group, lacking >> frame.at & 1, taken_, to)) return dead_;
        const auto add = [&] { next.lacking.push_back(lacking); };
        // Groups that differed in this column only may be the same now.
        if (frame.repeated) return index_.find_set(next.lacking, lacking, add);
        add();
        return uint32_t(next.lacking.size() - 1);
    }

    // Add the values of the outcomes where cases end: leaves, and stopping here.
    void settle(const Frame& frame) {
        find_ends(frame, any(frame, stops_here));
        if (ends_.empty()) return;
        if (others_at_.size() < ends_.size()) others_at_.resize(ends_.size());
        const size_t width = frame.columns.size();
        for (size_t e = 0; e < ends_.size(); ++e) take_others_at(frame, ends_[e], others_at_[e]);
        partners_.resize(n_words_);
        // Most columns, or all: as a run, which is added faster.
        dense_ = problem_.n_columns <= 2 * width;
        n_sums_ = (dense_ ? problem_.n_columns : width) * problem_.n_outputs;
        n_made_ = 0;
        position_.resize(width);
        for (uint32_t i = 0; i < width; ++i) position_[i] = dense_ ? frame.columns[i] : i;
        sums_of_.assign(n_slots(frame) * frame.lacking.size(), unknown_);
        for (size_t i = 0; i < frame.members.size(); ++i) {
            const Member member = frame.members[i];
            const uint32_t found = frame.outcomes[i];
            uint32_t& sum = sums_of_[member.group * n_slots(frame) + slot_of(found)];
            if (sum == unknown_) sum = make_sum(frame, member.group, found);
            if (sum != dead_) add_to_row(frame, member.row, &sums_[sum * n_sums_]);
        }
    }

    // The effects times values, over all ends, for a group with an outcome; or nothing.
    uint32_t make_sum(const Frame& frame, uint32_t group, uint32_t found) {
        const size_t n = problem_.n_outputs;
        double* sum = nullptr;
        for (size_t e = 0; e < ends_.size(); ++e) {
            const uint64_t lacking = frame.lacking[group] | uint64_t(found != ends_[e]) << frame.at;
            const OthersAtEnd& others = others_at_[e];
            if (!take_partners(frame, group, lacking >> frame.at & 1, others, partners_.data()))
                continue;
            if (!sum) sum = next_sum();
            double effects[padded(WholeWeights::most)];
            find_effects(lacking, others, effects);
            if (n == 1)
                for (size_t i = 0; i < position_.size(); ++i)
                    sum[position_[i]] += effects[i] * others.values[0];
            else
                for (size_t i = 0; i < position_.size(); ++i)
                    for (size_t k = 0; k < n; ++k)
                        sum[position_[i] * n + k] += effects[i] * others.values[k];
        }
        return sum ? uint32_t(n_made_ - 1) : dead_;
    }

    double* next_sum() {
        if (sums_.size() < (n_made_ + 1) * n_sums_) sums_.resize(2 * (n_made_ + 1) * n_sums_);
        double* sum = &sums_[n_made_++ * n_sums_];
        std::fill_n(sum, n_sums_, 0.0);
        return sum;
    }

    // The effects of the columns on a path, of a row that lacks some, over its partners.
    void find_effects(uint64_t lacking, const OthersAtEnd& others, double* effects) const {
        const size_t length = padded(position_.size());
        for (size_t i = 0; i < length; ++i) effects[i] = 0.0;
        const auto n_lacking = size_t(__builtin_popcountll(lacking));
        double lost = 0.0;  // of each column that the row has not
        for (size_t w = 0; w < n_words_; ++w)
            for (uint64_t left = partners_[w]; left; left &= left - 1) {
                const size_t other = 64 * w + size_t(__builtin_ctzll(left));
                const size_t n_own = others.n_lacking[other];
                const double weight = problem_.weights[other];
                lost += weight * weights_.at(n_lacking, n_own);
                const double gain = weight * weights_.at(n_own, n_lacking);
                const double* lacks = &others.lacks[other * length];
                for (size_t i = 0; i < length; i += step_)
                    for (size_t j = i; j < i + step_; ++j) effects[j] += gain * lacks[j];
            }
        for (uint64_t column = lacking; column; column &= column - 1)
            effects[size_t(__builtin_ctzll(column))] = -lost;
    }

    void add_to_row(const Frame& frame, uint32_t row, const double* sum) {
        const size_t n = problem_.n_outputs;
        double* __restrict to = out_ + row * problem_.n_columns * n;
        if (dense_) {
            const size_t length = n_sums_;
            for (size_t i = 0; i < length; ++i) to[i] += sum[i];
            return;
        }
        if (n == 1) {
            for (const uint32_t column : frame.columns) to[column] += *sum++;
            return;
        }
        for (const uint32_t column : frame.columns)
            for (size_t k = 0; k < n; ++k) to[column * n + k] += *sum++;
    }

    static constexpr uint32_t unknown_ = ~uint32_t(0), dead_ = unknown_ - 1;

    const WholeWeights weights_;
    const size_t n_others_, n_words_;
    std::vector<Member> others_;
    GroupIndex index_;
    Others taken_;
    std::vector<OthersAtEnd> others_at_;
    std::vector<uint32_t> new_groups_, sums_of_;
    std::vector<uint64_t> partners_;
    std::vector<uint32_t> position_;
    std::vector<double> sums_;
    size_t n_sums_ = 0, n_made_ = 0;
    bool dense_ = false;
};

}  // namespace branchwise
