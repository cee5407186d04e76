// Walking rows down a tree: the twin of branchwise/predict.py.
//
// A node's way down is a table from code to target, indexed by the row's code; a
// number has the codes 0 (at most the cut), 1 (above) and 2 (missing). A target is a
// node; a row that stays where it is has arrived. Where a column has far more values
// than the node has branches, the table is a sorted list instead. Eight rows walk in
// lockstep, so that the loads of one hide behind those of the others.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "problem.hpp"

namespace branchwise {

// A column as it is met in prediction: one more code, for unseen values.
struct Cells {
    const void* data = nullptr;
    int width = 0;  // bytes of a code; 8 for numbers; 0: not used by the tree
};

struct TreeView {
    size_t n_nodes;
    const int64_t *column, *n_children, *missing_to, *unseen_to, *n_codes, *codes;
    const double* cut;
    const double* sizes;  // weight of each node
};

class Walk {
  public:
    // The target of a row that goes down every branch.
    static constexpr uint32_t divided = 0xffffffffu;

    // A part of a row that has gone down every branch somewhere.
    struct Part {
        uint32_t row;
        uint32_t node;
        double share;
    };

    // `values[j]` is the number of categories of column j, 0 for numbers.
    Walk(const TreeView& tree, const std::vector<uint32_t>& values)
        : values_(values), used_(values.size()), sizes_(tree.sizes, tree.sizes + tree.n_nodes) {
        nodes_.resize(tree.n_nodes);
        std::vector<size_t> code_start(tree.n_nodes + 1, 0);
        for (size_t i = 0; i < tree.n_nodes; ++i) code_start[i + 1] = code_start[i] + size_t(tree.n_codes[i]);
        size_t child = 1;
        for (size_t i = 0; i < tree.n_nodes; ++i) {
            Step& step = nodes_[i];
            step.first_child = uint32_t(child);
            step.n_children = uint32_t(tree.n_children[i]);
            step.column = int32_t(tree.column[i]);
            step.cut = tree.cut[i];
            if (step.column >= 0) {
                used_[size_t(step.column)] = true;
                lay_out(tree, i, child, code_start, step);
            }
            child += size_t(tree.n_children[i]);
        }
    }

    const std::vector<uint32_t>& values() const { return values_; }
    bool uses(size_t column) const { return used_[column]; }

    void arrive(const std::vector<Cells>& cells, size_t n_rows, uint32_t* out) const {
        constexpr size_t lanes = 8;
        size_t row = 0;
        for (; row + lanes <= n_rows; row += lanes) {
            uint32_t at[lanes] = {};
            for (bool moving = true; moving;) {
                moving = false;
                for (size_t k = 0; k < lanes; ++k) {
                    const uint32_t to = next(cells, row + k, at[k]);
                    moving |= to != at[k];
                    at[k] = to;
                }
            }
            std::copy(at, at + lanes, out + row);
        }
        for (; row < n_rows; ++row) {
            uint32_t at = 0;
            for (uint32_t to; (to = next(cells, row, at)) != at;) at = to;
            out[row] = at;
        }
    }

    // Where the parts of one row arrive, sorted by node, appended to `out`.
    void divide(const std::vector<Cells>& cells, uint32_t row, std::vector<Part>& out) const {
        const size_t first = out.size();
        std::vector<Part> open{{row, 0, 1.0}};
        while (!open.empty()) {
            Part part = open.back();
            open.pop_back();
            const uint32_t to = next(cells, row, part.node);
            const Step& step = nodes_[part.node];
            if (to == part.node) {
                out.push_back(part);
            } else if (to != divided) {
                open.push_back({row, to, part.share});
            } else {
                double whole = 0;
                for (uint32_t b = 0; b < step.n_children; ++b) whole += sizes_[step.first_child + b];
                for (uint32_t b = 0; b < step.n_children; ++b) {
                    const uint32_t child = step.first_child + b;
                    open.push_back({row, child, part.share * (sizes_[child] / whole)});
                }
            }
        }
        std::sort(out.begin() + std::ptrdiff_t(first), out.end(),
                  [](const Part& a, const Part& b) { return a.node < b.node; });
    }

  private:
    struct Step {
        double cut = 0;
        int32_t column = -1;
        uint32_t listed = 0;  // entries of a sorted list; 0: a table
        size_t base = 0;
        uint32_t first_child = 0;
        uint32_t n_children = 0;
    };

    uint32_t next(const std::vector<Cells>& cells, size_t row, uint32_t at) const {
        if (at == divided) return at;
        const Step& step = nodes_[at];
        if (step.column < 0) return at;
        const Cells& column = cells[size_t(step.column)];
        uint32_t code;
        switch (column.width) {
            case 1: code = static_cast<const uint8_t*>(column.data)[row]; break;
            case 2: code = static_cast<const uint16_t*>(column.data)[row]; break;
            case 4: code = static_cast<const uint32_t*>(column.data)[row]; break;
            default: {
                const double number = static_cast<const double*>(column.data)[row];
                code = number > step.cut ? 1u : std::isnan(number) ? 2u : 0u;
            }
        }
        if (!step.listed) return targets_[step.base + code];
        return find(step, code, at);
    }

    uint32_t find(const Step& step, uint32_t code, uint32_t at) const {
        const auto first = keys_.begin() + std::ptrdiff_t(step.base);
        const auto last = first + std::ptrdiff_t(step.listed);
        const auto found = std::lower_bound(first, last, code);
        return found != last && *found == code ? listed_[size_t(found - keys_.begin())] : at;
    }

    uint32_t target(int64_t route, size_t node, size_t first_child) const {
        if (route == every_branch) return divided;
        return uint32_t(route == stop_here ? node : first_child + size_t(route));
    }

    void lay_out(const TreeView& tree, size_t node, size_t first_child, const std::vector<size_t>& code_start,
                 Step& step) {
        const uint32_t values = values_[size_t(step.column)];
        const auto n_children = size_t(tree.n_children[node]);
        const uint32_t missing = target(tree.missing_to[node], node, first_child);
        const uint32_t unseen = target(tree.unseen_to[node], node, first_child);
        const size_t codes = values ? values + 2 : 3;
        if (codes <= 4 * n_children + 16) {
            step.base = targets_.size();
            targets_.resize(targets_.size() + codes, uint32_t(node));
            uint32_t* table = &targets_[step.base];
            for (size_t b = 0; b < n_children; ++b)
                for (size_t k = code_start[first_child + b]; k < code_start[first_child + b + 1]; ++k)
                    table[tree.codes[k]] = uint32_t(first_child + b);
            table[values ? values : 2] = missing;
            if (values) table[values + 1] = unseen;
            return;
        }
        std::vector<std::pair<uint32_t, uint32_t>> list{{values, missing}, {values + 1, unseen}};
        for (size_t b = 0; b < n_children; ++b)
            for (size_t k = code_start[first_child + b]; k < code_start[first_child + b + 1]; ++k)
                list.emplace_back(uint32_t(tree.codes[k]), uint32_t(first_child + b));
        std::sort(list.begin(), list.end());
        step.base = keys_.size();
        step.listed = uint32_t(list.size());
        for (const auto& [key, to] : list) {
            keys_.push_back(key);
            listed_.push_back(to);
        }
    }

    std::vector<uint32_t> values_;
    std::vector<bool> used_;
    std::vector<double> sizes_;
    std::vector<Step> nodes_;
    std::vector<uint32_t> targets_;  // tables
    std::vector<uint32_t> keys_, listed_;
};

}  // namespace branchwise
