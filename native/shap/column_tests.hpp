// Tests of single columns that a tree consists of: native implementation of the Tests of
// branchwise/shap/products.py.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "shap/factor_groups.hpp"

namespace branchwise {

// Cells of rows: codes, one more for missing and one for unseen values, or numbers.
struct ShapRows {
    size_t n_rows = 0;
    std::vector<std::vector<uint32_t>> codes;
    std::vector<std::vector<double>> numbers;

    // The rows from `first` on, of the columns that the tree uses.
    static ShapRows of(const std::vector<Column>& columns, size_t first, size_t n_rows) {
        ShapRows rows;
        rows.n_rows = n_rows;
        rows.codes.resize(columns.size());
        rows.numbers.resize(columns.size());
        for (size_t j = 0; j < columns.size(); ++j) {
            const Column& column = columns[j];
            if (column.numeric) {
                rows.numbers[j].assign(column.numbers + first, column.numbers + first + n_rows);
            } else if (column.codes) {
                rows.codes[j].resize(n_rows);
                for (size_t i = 0; i < n_rows; ++i) rows.codes[j][i] = column.at(first + i);
            }
        }
        return rows;
    }
};

// What becomes of a row at a test: a branch, or one of these.
constexpr uint32_t next_surrogate = 0xfffffffdu;
constexpr uint32_t stops_here = 0xfffffffeu;
constexpr uint32_t to_every_branch = 0xffffffffu;

// A tree as a whole: where children and codes begin, and which shares cases have.
class ColumnTests {
  public:
    ColumnTests(const TreeView& tree, const SurrogateView& surrogates,
                const Span<const double>& sizes, const std::vector<uint32_t>& values)
        : tree_(tree), surrogates_(surrogates), sizes_(sizes), values_(values) {
        const size_t n = tree.n_nodes();
        first_child_.resize(n + 1, 1);
        first_code_.resize(n + 1, 0);
        first_surrogate_.resize(n + 1, 0);
        for (size_t i = 0; i < n; ++i) {
            first_child_[i + 1] = first_child_[i] + uint32_t(tree.n_children[i]);
            first_code_[i + 1] = first_code_[i] + size_t(tree.n_codes[i]);
            first_surrogate_[i + 1] = first_surrogate_[i] + n_surrogates(i);
        }
        surrogate_codes_.resize(surrogates.n_codes.size() + 1, 0);
        for (size_t i = 0; i < surrogates.n_codes.size(); ++i)
            surrogate_codes_[i + 1] = surrogate_codes_[i] + size_t(surrogates.n_codes[i]);
    }

    size_t n_nodes() const { return tree_.n_nodes(); }
    bool is_leaf(uint32_t node) const { return tree_.n_children[node] == 0; }
    uint32_t n_children(uint32_t node) const { return uint32_t(tree_.n_children[node]); }
    uint32_t child(uint32_t node, uint32_t branch) const { return first_child_[node] + branch; }

    uint32_t column(uint32_t node, uint32_t turn) const {
        return uint32_t(turn ? surrogates_.column[first_surrogate_[node] + turn - 1]
                             : tree_.column[node]);
    }

    // The next outcome of a node, from number `next` on, that leads to another test.
    bool next_outcome(uint32_t node, uint32_t& next, uint32_t& outcome) const {
        const uint32_t n = n_children(node);
        while (next < n && is_leaf(child(node, next))) ++next;
        if (next > n) return false;
        outcome = next < n ? next : next_surrogate;
        ++next;
        return true;
    }

    // Whether a node sends missing or unseen values down every branch.
    bool divides() const {
        for (size_t i = 0; i < tree_.n_nodes(); ++i)
            if (tree_.n_children[i] &&
                (tree_.missing_to[i] == every_branch || tree_.unseen_to[i] == every_branch))
                return true;
        return false;
    }

    // The most tests on a path, surrogates among them.
    size_t longest_path() const {
        size_t most = 0;
        std::vector<size_t> n_tests(tree_.n_nodes(), 0);  // before a node
        for (uint32_t node = 0; node < tree_.n_nodes(); ++node) {
            if (is_leaf(node)) continue;
            const size_t after = n_tests[node] + 1 + n_surrogates(node);
            most = std::max(most, after);
            for (uint32_t i = 0; i < n_children(node); ++i) n_tests[child(node, i)] = after;
        }
        return most;
    }

    // The share in a branch of a case that goes down every branch.
    double share(uint32_t node, uint32_t branch) const {
        return sizes_[child(node, branch)] / below(node);
    }

    // The share of the training cases that had this outcome.
    double training_share(uint32_t node, uint32_t outcome) const {
        const double whole = below(node);
        const double stopped =
            tree_.missing_to[node] == stop_here ? std::max(sizes_[node] - whole, 0.0) : 0.0;
        if (outcome == next_surrogate) return 0.0;
        if (outcome == stops_here) return stopped / (whole + stopped);
        return sizes_[child(node, outcome)] / (whole + stopped);
    }

    // What becomes of rows at a test. `lookup` has a table for each column that says "stops here"
    // for every code, and does so again afterwards.
    template <typename Members>
    void find_outcomes(uint32_t node, uint32_t turn, const ShapRows& rows, const Members& members,
                       std::vector<std::vector<uint32_t>>& lookup,
                       std::vector<uint32_t>& outcomes) const {
        const uint32_t column = this->column(node, turn);
        const bool numeric = values_[column] == 0;
        const uint32_t missing =
            turn < n_surrogates(node) ? next_surrogate : route(tree_.missing_to[node]);
        // A surrogate that does not know a value is as one whose value is missing.
        const uint32_t unseen = turn ? missing : route(tree_.unseen_to[node]);
        const uint32_t unlisted = turn ? missing : stops_here;
        std::vector<uint32_t>& table = lookup[column];
        if (table.empty()) table.assign(numeric ? 2 : values_[column] + 2, stops_here);
        for_each_code(node, turn, [&](int64_t code, uint32_t branch) { table[code] = branch; });
        outcomes.resize(members.size());
        if (numeric) {
            const double threshold = turn ? surrogates_.threshold[first_surrogate_[node] + turn - 1]
                                          : tree_.threshold[node];
            const double* numbers = rows.numbers[column].data();
            for (size_t i = 0; i < members.size(); ++i) {
                const double number = numbers[row_of(members[i])];
                outcomes[i] = number != number ? missing : table[number > threshold];
            }
        } else {
            table[values_[column]] = missing;
            table[values_[column] + 1] = unseen;
            const uint32_t* codes = rows.codes[column].data();
            for (size_t i = 0; i < members.size(); ++i)
                outcomes[i] = table[codes[row_of(members[i])]];
            table[values_[column]] = table[values_[column] + 1] = stops_here;
        }
        for_each_code(node, turn, [&](int64_t code, uint32_t) { table[code] = stops_here; });
        // Nothing else stops at a surrogate.
        if (unlisted != stops_here)
            std::replace(outcomes.begin(), outcomes.end(), stops_here, unlisted);
    }

  private:
    uint32_t n_surrogates(size_t node) const {
        return surrogates_.number.size() ? uint32_t(surrogates_.number[node]) : 0;
    }

    double below(uint32_t node) const {
        double whole = 0;
        for (uint32_t i = first_child_[node]; i < first_child_[node + 1]; ++i) whole += sizes_[i];
        return whole;
    }

    static uint32_t route(int64_t to) {
        return to == stop_here ? stops_here : to == every_branch ? to_every_branch : uint32_t(to);
    }

    template <typename Use>
    void for_each_code(uint32_t node, uint32_t turn, const Use& use) const {
        for (uint32_t branch = 0; branch < n_children(node); ++branch) {
            if (turn) {
                const size_t side = 2 * (first_surrogate_[node] + turn - 1) + branch;
                for (size_t k = surrogate_codes_[side]; k < surrogate_codes_[side + 1]; ++k)
                    use(surrogates_.codes[k], branch);
            } else {
                const uint32_t at = child(node, branch);
                for (size_t k = first_code_[at]; k < first_code_[at + 1]; ++k)
                    use(tree_.codes[k], branch);
            }
        }
    }

    const TreeView tree_;
    const SurrogateView surrogates_;
    const Span<const double> sizes_;
    const std::vector<uint32_t> values_;
    std::vector<uint32_t> first_child_, first_surrogate_;
    std::vector<size_t> first_code_, surrogate_codes_;
};

}  // namespace branchwise
