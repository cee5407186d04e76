// A walk over a tree that takes rows along, all of them to every branch: what both ways to add up
// Shapley values (tree_shap.hpp, set_shap.hpp) have in common.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "shap/factor_groups.hpp"
#include "shap/shap_problem.hpp"

namespace branchwise {

// A test on the way down. `columns` are those on the path, that of the test among them, at `at`.
struct WalkFrame {
    uint32_t node, turn, next;
    size_t at;
    bool repeated;  // whether the path has tested the column before
    std::vector<uint32_t> columns;
    std::vector<uint32_t> outcomes, other_outcomes;  // of rows, and of the background
};

// `Shap` has the groups of rows, in frames of its own:
// - `begin(root, n_rows)` makes those of all rows, the `members` of the frame;
// - `others_of(frame)` are the rows of the background that are taken along;
// - `take_along(frame, outcome, next)` takes rows to an outcome, and returns whether any can get
//   there;
// - `settle(frame)` adds the values of the outcomes where cases end;
// - `any(frame, outcome)` is whether a row has an outcome.
template <typename Shap, typename Frame>
class TreeWalk {
  public:
    // Add the values of the rows to `out`; `go_on(work)` may say to give up.
    template <typename GoOn>
    bool add(const ShapRows& rows, double* out, const GoOn& go_on) {
        rows_ = &rows;
        out_ = out;
        if (tests_.is_leaf(0)) return true;
        begin();
        size_t level = 1;
        while (level) {
            Frame& frame = *frames_[level - 1];
            uint32_t outcome;
            if (!tests_.next_outcome(frame.node, frame.next, outcome)) {
                --level;
                continue;
            }
            if (!go_on(frame.members.size() + shap().others_of(frame).size() + 1)) return false;
            level += descend(frame, outcome, level);
        }
        return true;
    }

  protected:
    explicit TreeWalk(const ShapProblem& problem)
        : problem_(problem), tests_(problem.tests), lookup_(problem.n_columns) {}

    static bool among(const std::vector<uint32_t>& outcomes, uint32_t outcome) {
        return std::find(outcomes.begin(), outcomes.end(), outcome) != outcomes.end();
    }

    // The outcomes of a test where cases end: leaves, and, if any do, stopping here. Ends whose
    // values are all 0, such as the pure leaves of other classes, add nothing.
    void find_ends(const Frame& frame, bool stop_here) {
        ends_.clear();
        const auto add = [&](uint32_t end) {
            const double* values = values_at(frame, end);
            const auto is_zero = [](double value) { return value == 0.0; };
            if (!std::all_of(values, values + problem_.n_outputs, is_zero)) ends_.push_back(end);
        };
        for (uint32_t branch = 0; branch < tests_.n_children(frame.node); ++branch)
            if (tests_.is_leaf(tests_.child(frame.node, branch))) add(branch);
        if (stop_here) add(stops_here);
    }

    // The values of the node where an outcome ends.
    const double* values_at(const Frame& frame, uint32_t end) const {
        const uint32_t node = end == stops_here ? frame.node : tests_.child(frame.node, end);
        return problem_.node_values + node * problem_.n_outputs;
    }

    // Outcomes of a test as numbers below `n_slots`.
    size_t n_slots(const Frame& frame) const { return tests_.n_children(frame.node) + 3; }
    static size_t slot_of(uint32_t found) {
        return found < next_surrogate ? found + 3 : found - next_surrogate;
    }

    const ShapProblem& problem_;
    const ColumnTests& tests_;
    double* out_ = nullptr;
    std::vector<uint32_t> ends_;

  private:
    Shap& shap() { return static_cast<Shap&>(*this); }

    void begin() {
        Frame& root = frame_at(0);
        root.columns.clear();
        shap().begin(root, uint32_t(rows_->n_rows));
        enter(root, 0, 0);
    }

    Frame& frame_at(size_t level) {
        while (frames_.size() <= level) frames_.push_back(std::make_unique<Frame>());
        return *frames_[level];
    }

    // Find the outcomes of a test, and settle those where nothing follows.
    void enter(Frame& frame, uint32_t node, uint32_t turn) {
        frame.node = node;
        frame.turn = turn;
        frame.next = 0;
        const uint32_t column = tests_.column(node, turn);
        const auto found = std::find(frame.columns.begin(), frame.columns.end(), column);
        frame.at = size_t(found - frame.columns.begin());
        frame.repeated = found != frame.columns.end();
        if (!frame.repeated) frame.columns.push_back(column);
        tests_.find_outcomes(node, turn, *rows_, frame.members, lookup_, frame.outcomes);
        if (problem_.background)
            tests_.find_outcomes(node, turn, *problem_.background, shap().others_of(frame), lookup_,
                                 frame.other_outcomes);
        shap().settle(frame);
    }

    // Go on to a test, if a row can get there; returns whether it can.
    bool descend(const Frame& frame, uint32_t outcome, size_t level) {
        if (outcome == next_surrogate && !shap().any(frame, next_surrogate)) return false;
        Frame& next = frame_at(level);  // frames do not move
        if (!shap().take_along(frame, outcome, next)) return false;
        next.columns = frame.columns;
        if (outcome == next_surrogate)
            enter(next, frame.node, frame.turn + 1);
        else
            enter(next, tests_.child(frame.node, outcome), 0);
        return true;
    }

    const ShapRows* rows_ = nullptr;
    std::vector<std::unique_ptr<Frame>> frames_;
    std::vector<std::vector<uint32_t>> lookup_;
};

}  // namespace branchwise
