// Pruning with cases that may be fractional: every node has a list of its rows and of their
// fractions.

#pragma once

#include "prune/distribution.hpp"

namespace branchwise {

class FractionalRows {
  public:
    FractionalRows(const Table& table, const SurrogateRoutes& surrogates, bool new_values,
                   PruneState& state)
        : table_(table),
          state_(state),
          classes_(state.tree.classes),
          distributor_(table, surrogates, new_values, state.tree) {
        stopped_.resize(classes_);
    }

    // Take the rows down to the nodes that need them, and decide these; false if the
    // watch gave up.
    bool prune(const Watch& watch) {
        InterruptCheck interrupts(watch);
        std::vector<Frame> stack;
        stack.push_back({0, all_rows(), {}});
        while (!stack.empty()) {
            Frame& frame = stack.back();
            if (!interrupts.go_on(frame.rows.size() + 1, state_.tree.nodes.size())) return false;
            const std::vector<uint32_t>& children = state_.tree.nodes[frame.node].children;
            if (!frame.taken) {
                frame.taken = true;
                const auto undone = [&](uint32_t c) { return !state_.done(c); };
                if (std::any_of(children.begin(), children.end(), undone))
                    frame.below = distributor_.distribute(frame.node, frame.rows, undone).by_branch;
            }
            while (frame.next < children.size() && state_.done(children[frame.next])) ++frame.next;
            if (frame.next < children.size()) {
                Frame child{children[frame.next], std::move(frame.below[frame.next]), {}};
                stack.push_back(std::move(child));
                continue;
            }
            frame.below.clear();
            if (settle_with_rows(frame)) stack.pop_back();
        }
        return true;
    }

  private:
    struct Frame {
        uint32_t node;
        NodeRows rows;
        std::vector<NodeRows> below;  // by branch; empty until rows are taken down
        size_t next = 0;
        bool taken = false;
    };

    NodeRows all_rows() const {
        NodeRows rows;
        rows.whole.reserve(table_.n_rows);
        for (uint32_t row = 0; row < table_.n_rows; ++row)
            if (distributor_.weight(row) > 0) rows.whole.push_back({row, table_.labels[row]});
        return rows;
    }

    // Decide a node whose children are all done; false if it has a new subtree.
    bool settle_with_rows(Frame& frame) {
        const uint32_t node = frame.node;
        if (!state_.needs_rows(node)) return state_.decide(node, state_.errors_as_leaf(node));
        const uint32_t branch = state_.largest_child(node);
        Trial trial = count_down(branch, frame.rows, state_.most_errors_of_branch(node));
        if (state_.decide(node, trial.errors)) return true;
        raise(node, branch, trial);
        frame.next = 0;
        frame.taken = false;
        return false;
    }

    // A subtree with other cases in it.
    struct Trial {
        struct Recount {
            uint32_t node;
            double cases;
        };
        int64_t errors = 0;
        std::vector<Recount> recounts;
        std::vector<double> weights;  // of the recounts
        std::vector<NewLeaf> leaves;  // new ones
        std::vector<double> leaf_weights;
    };

    double add_up(const NodeRows& rows, std::vector<double>& weights) const {
        const size_t begin = weights.size();
        weights.resize(begin + classes_, 0.0);
        for (const WholeRow& row : rows.whole)
            weights[begin + row.label] += distributor_.weight(row.row);
        auto cases = double(rows.whole.size());
        for (const Fraction& part : rows.fractions) {
            weights[begin + part.label] += part.weight;
            cases += part.share;
        }
        return cases;
    }

    // Count rows down a branch, until it is known to err more than `most`: errors only add up.
    Trial count_down(uint32_t root, const NodeRows& rows, int64_t most) {
        Trial trial;
        trial.recounts.push_back({root, add_up(rows, trial.weights)});
        struct Open {
            uint32_t node;
            size_t place;  // in the recounts
            NodeRows rows;
        };
        std::vector<Open> open;  // inner nodes that are still to be counted
        open.push_back({root, 0, {}});
        const auto is_inner = [&](uint32_t node) { return !state_.tree.nodes[node].is_leaf(); };
        while (!open.empty() && trial.errors <= most) {
            const Open now = std::move(open.back());
            open.pop_back();
            const uint32_t node = now.node;
            std::copy_n(&trial.weights[now.place * classes_], classes_, stopped_.begin());
            Distribution made =
                distributor_.distribute(node, now.place ? now.rows : rows, is_inner);
            const std::vector<uint32_t>& children = state_.tree.nodes[node].children;
            for (size_t b = 0; b < children.size(); ++b) {
                const double* below = &made.weights[b * classes_];
                take_away(below);
                if (is_inner(children[b])) {
                    open.push_back(
                        {children[b], trial.recounts.size(), std::move(made.by_branch[b])});
                } else {
                    trial.errors = Estimate::sum(trial.errors, state_.errors_of(below));
                }
                trial.recounts.push_back({children[b], made.cases[b]});
                trial.weights.insert(trial.weights.end(), below, below + classes_);
            }
            for (const auto& [code, given] : made.new_values) {
                const double leaf_cases = add_up(given, trial.leaf_weights);
                const double* own_leaf = &trial.leaf_weights[trial.leaf_weights.size() - classes_];
                take_away(own_leaf);
                trial.errors = Estimate::sum(trial.errors, state_.errors_of(own_leaf));
                trial.leaves.push_back({node, code, leaf_cases});
            }
            for (double& weight : stopped_) weight = std::max(weight, 0.0);
            trial.errors = Estimate::sum(trial.errors, state_.errors_of(stopped_.data()));
        }
        return trial;
    }

    void take_away(const double* weights) {
        for (size_t c = 0; c < classes_; ++c) stopped_[c] -= weights[c];
    }

    // Put a branch in the place of its parent, with all its cases.
    void raise(uint32_t node, uint32_t branch, const Trial& trial) {
        for (size_t i = 0; i < trial.recounts.size(); ++i)
            state_.recount(trial.recounts[i].node, &trial.weights[i * classes_],
                           trial.recounts[i].cases);
        for (size_t i = 0; i < trial.leaves.size(); ++i)
            state_.graft(trial.leaves[i], &trial.leaf_weights[i * classes_]);
        state_.raise(node, branch);
    }

    const Table& table_;
    PruneState& state_;
    const size_t classes_;
    Distributor distributor_;
    std::vector<double> stopped_;  // scratch
};

}  // namespace branchwise
