// Error-based pruning: native implementation of branchwise/prune/error_based.py.
//
// What a node becomes depends on its subtree alone, so the order in which nodes are
// decided does not matter. Most can be decided from counts: a branch that is a leaf,
// given all cases of its parent, is the leaf that the parent would be. Only where the
// largest branch is a subtree do its siblings' cases have to be counted down it. So a
// first pass, from the last node to the first, needs no rows; a second one takes the
// rows down to the nodes that are left, depth first: prune/whole_rows.hpp, or
// prune/fractional_rows.hpp where cases are fractional, or surrogates route them.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "prune/estimate.hpp"
#include "core/problem.hpp"

namespace branchwise {

// A tree that can be changed: children and codes are lists of their own.
struct PruneNode : Split {
    std::vector<uint32_t> children;
    uint32_t code_begin = 0, code_end = 0;
    double cases = 0;
    uint32_t origin = 0;  // the node before pruning that the split is that of

    bool is_leaf() const { return children.empty(); }
};

struct PruneTree {
    static constexpr size_t most_nodes = std::numeric_limits<int32_t>::max();

    size_t classes;
    std::vector<PruneNode> nodes;
    std::vector<double> weights;  // by node and class
    std::vector<uint32_t> codes;

    const double* at(uint32_t node) const { return &weights[node * classes]; }
    double total(uint32_t node) const {
        double sum = 0;
        for (size_t c = 0; c < classes; ++c) sum += at(node)[c];
        return sum;
    }

    void make_leaf(uint32_t node) {
        static_cast<Split&>(nodes[node]) = Split();
        nodes[node].children.clear();
    }

    uint32_t add_leaf(uint32_t code, const double* class_weights, double cases) {
        if (nodes.size() >= most_nodes || codes.size() >= most_nodes)
            throw std::length_error("columns make too large a tree");
        PruneNode leaf;
        leaf.code_begin = uint32_t(codes.size());
        leaf.code_end = leaf.code_begin + 1;
        leaf.cases = cases;
        codes.push_back(code);
        nodes.push_back(leaf);
        weights.insert(weights.end(), class_weights, class_weights + classes);
        return uint32_t(nodes.size() - 1);
    }
};

// A value that has cases where it had none before.
struct NewLeaf {
    uint32_t parent;
    uint32_t code;
    double cases;
};

// A tree half pruned: which subtrees are done with, and their estimated errors.
class PruneState {
  public:
    PruneState(const Estimate& estimate, bool raises, PruneTree& tree)
        : tree(tree),
          estimate_(estimate),
          raises_(raises),
          classes_(tree.classes),
          errors_(tree.nodes.size(), 0),
          done_(tree.nodes.size(), 0),
          stopped_(tree.classes) {}

    PruneTree& tree;

    bool done(uint32_t node) const { return done_[node]; }
    bool counts_errors() const { return estimate_.counts_errors(); }
    int64_t slack() const { return estimate_.slack; }
    int64_t errors_of(const double* weights) const { return estimate_.of(weights, classes_); }
    int64_t errors_as_leaf(uint32_t node) const { return errors_of(tree.at(node)); }

    // Make leaves of subtrees that do not err less than a leaf would.
    void collapse() {
        std::vector<double> below(tree.nodes.size(), 0.0);
        for (auto node = uint32_t(tree.nodes.size()); node-- > 0;) {
            if (tree.nodes[node].is_leaf()) {
                below[node] = plain_errors(tree.at(node), label(node));
                continue;
            }
            find_stopped(node);
            below[node] = plain_errors(stopped_.data(), label(node));
            for (uint32_t child : tree.nodes[node].children) below[node] += below[child];
        }
        for (uint32_t node = 0; node < tree.nodes.size(); ++node)
            if (!tree.nodes[node].is_leaf() &&
                below[node] >= plain_errors(tree.at(node), label(node)) - collapse_slack)
                tree.make_leaf(node);
    }

    // Decide what can be decided without rows; returns whether that is all.
    bool decide_from_counts() {
        for (auto node = uint32_t(tree.nodes.size()); node-- > 0;) {
            const std::vector<uint32_t>& children = tree.nodes[node].children;
            const bool below =
                std::all_of(children.begin(), children.end(), [&](uint32_t c) { return done_[c]; });
            if (below && !needs_rows(node)) decide(node, errors_as_leaf(node));
        }
        return done_[0];
    }

    bool needs_rows(uint32_t node) const {
        return raises_ && !tree.nodes[node].is_leaf() && !tree.nodes[largest_child(node)].is_leaf();
    }

    // The child with the most weight, of equals the last.
    uint32_t largest_child(uint32_t node) const {
        double most = 0;
        for (uint32_t child : tree.nodes[node].children) most = std::max(most, tree.total(child));
        uint32_t largest = 0;
        for (uint32_t child : tree.nodes[node].children)
            if (tree.total(child) >= most * (1 - tie)) largest = child;
        return largest;
    }

    // If its largest branch errs more than this with all cases, a node does not become that branch.
    int64_t most_errors_of_branch(uint32_t node) {
        const int64_t as_tree = tree_errors(node), as_leaf = errors_as_leaf(node);
        // A node that may be a leaf is one, unless the branch is better by more than the slack.
        if (as_leaf <= as_tree + estimate_.slack) return as_leaf - estimate_.slack - 1;
        return Estimate::sum(as_tree, estimate_.slack);
    }

    // Where branches are not raised they are as good as infinitely bad.
    bool decide(uint32_t node, int64_t as_branch) {
        const int64_t as_leaf = errors_as_leaf(node);
        if (tree.nodes[node].is_leaf()) {
            settle(node, as_leaf);
            return true;
        }
        const int64_t as_tree = tree_errors(node);
        const int64_t other = raises_ ? std::min(as_tree, as_branch) : as_tree;
        if (as_leaf <= other + estimate_.slack) {
            tree.make_leaf(node);
            settle(node, as_leaf);
            return true;
        }
        if (raises_ && as_branch <= as_tree + estimate_.slack) return false;
        settle(node, as_tree);
        return true;
    }

    // Of a subtree that is done with.
    int64_t errors(uint32_t node) const { return errors_[node]; }

    // The weights of the cases that go no further than a node: of a leaf, all.
    const std::vector<double>& stopped(uint32_t node) {
        find_stopped(node, false);
        return stopped_;
    }
    int64_t errors_of_stopped(const std::vector<double>& stopped) {
        at_least_none_ = stopped;
        for (double& weight : at_least_none_) weight = std::max(weight, 0.0);
        return errors_of(at_least_none_.data());
    }

    void settle(uint32_t node, int64_t errors) {
        errors_[node] = errors;
        done_[node] = 1;
    }

    int64_t tree_errors(uint32_t node) {
        find_stopped(node);
        int64_t errors = errors_of(stopped_.data());
        for (uint32_t child : tree.nodes[node].children)
            errors = Estimate::sum(errors, errors_[child]);
        return errors;
    }

    // A new leaf among its siblings, in the order of their first codes; the branch of
    // missing values, which has none, stays the last.
    void graft(const NewLeaf& leaf, const double* weights) {
        const uint32_t child = tree.add_leaf(leaf.code, weights, leaf.cases);
        errors_.push_back(errors_of(weights));
        done_.push_back(1);
        PruneNode& parent = tree.nodes[leaf.parent];
        const auto after =
            std::find_if(parent.children.begin(), parent.children.end(),
                         [&](uint32_t sibling) { return first_code(sibling) > leaf.code; });
        const auto position = after - parent.children.begin();
        parent.children.insert(after, child);
        for (int32_t* route : {&parent.missing_to, &parent.unseen_to})
            if (*route >= position) ++*route;
    }

    uint32_t first_code(uint32_t node) const {
        const PruneNode& at = tree.nodes[node];
        if (at.code_begin == at.code_end) return std::numeric_limits<uint32_t>::max();
        return *std::min_element(&tree.codes[at.code_begin],
                                 &tree.codes[at.code_begin] + (at.code_end - at.code_begin));
    }

    // Put a branch in the place of its parent.
    void raise(uint32_t node, uint32_t branch) {
        PruneNode& place = tree.nodes[node];
        PruneNode& source = tree.nodes[branch];
        static_cast<Split&>(place) = source;
        place.origin = source.origin;
        place.children = std::move(source.children);
        source.children.clear();
        done_[node] = 0;
    }

    // Other cases have come to a node of a subtree that was raised.
    void recount(uint32_t node, const double* weights, double cases) {
        std::copy_n(weights, classes_, &tree.weights[node * classes_]);
        tree.nodes[node].cases = cases;
        done_[node] = 0;
        if (tree.nodes[node].is_leaf()) settle(node, errors_as_leaf(node));
    }

  private:
    // The class with the most weight, or of least cost; of equals the first.
    size_t label(uint32_t node) const {
        const double* weights = tree.at(node);
        if (!estimate_.counts_errors()) return estimate_.cheapest(weights, classes_);
        const double most = *std::max_element(weights, weights + classes_);
        size_t first = 0;
        while (weights[first] < most - most * tie) ++first;
        return first;
    }

    // Errors, or what they cost.
    double plain_errors(const double* weights, size_t label) const {
        if (!estimate_.counts_errors()) return estimate_.cost(weights, classes_, label);
        double total = 0;
        for (size_t c = 0; c < classes_; ++c) total += weights[c];
        return total - weights[label];
    }

    // The weights of the cases that go no further than a node.
    void find_stopped(uint32_t node, bool at_least_none = true) {
        std::copy_n(tree.at(node), classes_, stopped_.begin());
        for (uint32_t child : tree.nodes[node].children)
            for (size_t c = 0; c < classes_; ++c) stopped_[c] -= tree.at(child)[c];
        if (!at_least_none) return;
        for (double& weight : stopped_) weight = std::max(weight, 0.0);
    }

    const Estimate& estimate_;
    const bool raises_;
    const size_t classes_;
    std::vector<int64_t> errors_;  // of subtrees that are done with
    std::vector<uint8_t> done_;
    std::vector<double> stopped_, at_least_none_;  // scratch
};

}  // namespace branchwise
