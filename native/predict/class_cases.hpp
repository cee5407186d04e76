// The cases of each class at every node of a finished tree, whatever they weigh, where rows may go
// down every branch: native implementation of class_cases in branchwise/grow/protocol.py.
//
// Sums of cases are exact, so the order of nodes does not matter: depth first, a node needs a list
// of its cases only if it has children.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "core/problem.hpp"
#include "core/tree.hpp"

namespace branchwise {

class ClassCases {
  public:
    // `shares`: how much of a case that goes down every branch is at each node, of what is at its
    // parent. `out`: by node and class, zeros at first.
    ClassCases(const Table& table, const TreeView& tree, const Span<const double>& shares,
               double* out)
        : table_(table),
          tree_(tree),
          shares_(shares),
          classes_(size_t(table.n_classes)),
          out_(out),
          first_child_(tree.n_nodes() + 1, 1),
          first_code_(tree.n_nodes() + 1, 0) {
        for (size_t i = 0; i < tree.n_nodes(); ++i) {
            first_child_[i + 1] = first_child_[i] + size_t(tree.n_children[i]);
            first_code_[i + 1] = first_code_[i] + size_t(tree.n_codes[i]);
        }
        uint32_t most = 2;
        for (const Column& column : table.columns)
            if (!column.numeric) most = std::max(most, column.n_codes);
        branch_of_code_.assign(most, stop_here);
    }

    // False if the watch gave up.
    bool count(const Watch& watch) {
        InterruptCheck interrupts(watch);
        open_.clear();
        open_.push_back({0, {}});
        for (uint32_t row = 0; row < table_.n_rows; ++row) {
            const double weight = table_.weights ? table_.weights[row] : 1.0;
            if (weight > 0) give(0, {row, weight, 1.0}, open_.back().fractions);
        }
        while (!open_.empty()) {
            const Open now = std::move(open_.back());
            open_.pop_back();
            if (!interrupts.go_on(now.fractions.size() + 1, tree_.n_nodes())) return false;
            if (!is_leaf(now.node)) distribute(now);
        }
        return true;
    }

  private:
    // A row, or a fraction of one, at a node.
    struct Fraction {
        uint32_t row;
        double weight;
        double of_case;
    };
    struct Open {
        size_t node;
        Array<Fraction> fractions;
    };

    bool is_leaf(size_t node) const { return tree_.n_children[node] == 0; }

    // Count a fraction at a node, and list it if it goes on from there.
    void give(size_t node, const Fraction& fraction, Array<Fraction>& list) {
        out_[node * classes_ + table_.labels[fraction.row]] += fraction.of_case;
        if (!is_leaf(node)) list.push_back(fraction);
    }

    void distribute(const Open& now) {
        const Column& column = table_.columns[size_t(tree_.column[now.node])];
        const size_t n_branches = size_t(tree_.n_children[now.node]);
        const size_t first = first_child_[now.node];
        by_branch_.clear();
        by_branch_.resize(n_branches);
        const auto route = [&](const Fraction& fraction, int64_t branch) {
            if (branch >= 0)
                give(first + size_t(branch), fraction, by_branch_[size_t(branch)]);
            else if (branch == every_branch)
                divide(fraction, first, n_branches);
        };
        set_branches(now.node, true);
        const int64_t missing_to = tree_.missing_to[now.node];
        if (column.numeric) {
            const int64_t sides[] = {branch_of_code_[0], branch_of_code_[1]};
            const double threshold = tree_.threshold[now.node];
            for (const Fraction& fraction : now.fractions) {
                const double number = column.numbers[fraction.row];
                route(fraction, std::isnan(number) ? missing_to : sides[number > threshold]);
            }
        } else {
            const uint32_t missing = column.missing_code();
            for (const Fraction& fraction : now.fractions) {
                const uint32_t code = column.at(fraction.row);
                route(fraction, code == missing ? missing_to : branch_of_code_[code]);
            }
        }
        set_branches(now.node, false);
        for (size_t b = 0; b < n_branches; ++b)
            if (!by_branch_[b].empty()) open_.push_back({first + b, std::move(by_branch_[b])});
    }

    // Which branch each code takes, or none again.
    void set_branches(size_t node, bool taken) {
        for (size_t child = first_child_[node]; child < first_child_[node + 1]; ++child) {
            const int64_t branch = taken ? int64_t(child - first_child_[node]) : stop_here;
            for (size_t k = first_code_[child]; k < first_code_[child + 1]; ++k)
                branch_of_code_[size_t(tree_.codes[k])] = branch;
        }
    }

    void divide(const Fraction& fraction, size_t first, size_t n_branches) {
        for (size_t b = 0; b < n_branches; ++b) {
            const double share = shares_[first + b];
            const double weight = on_grid(fraction.weight * share, table_.weight_step);
            if (!(weight > 0)) continue;
            const double of_case = on_grid(fraction.of_case * share, table_.case_step);
            give(first + b, {fraction.row, weight, of_case}, by_branch_[b]);
        }
    }

    const Table& table_;
    const TreeView& tree_;
    const Span<const double>& shares_;
    const size_t classes_;
    double* const out_;
    std::vector<size_t> first_child_, first_code_;
    std::vector<int64_t> branch_of_code_;
    std::vector<Open> open_;
    std::vector<Array<Fraction>> by_branch_;
};

}  // namespace branchwise
