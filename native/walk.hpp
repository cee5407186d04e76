// Walking rows down a tree: the twin of branchwise/predict.py.
//
// The tree is laid out as one table of states. A state says which column is asked and
// where its ways down begin; the row's code is added to that, and the entry found there
// is the next state: one load in random order for each level. A number has the codes 0
// (at most the cut), 1 (above) and 2 (missing); its cut lies in front of its ways.
//
// Sixteen rows walk in lockstep, so that the loads of one hide behind those of the
// others. Where a column has far more values than a node has branches, its ways are a
// sorted list instead.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
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
    // Where a row ends that goes down every branch somewhere.
    static constexpr uint32_t divided = 0xffffffffu;

    // A part of such a row.
    struct Part {
        uint32_t row;
        uint32_t node;
        double share;
    };

    // `values[j]` is the number of categories of column j, 0 for numbers.
    Walk(const TreeView& tree, const std::vector<uint32_t>& values)
        : values_(values),
          used_(values.size()),
          sizes_(tree.sizes, tree.sizes + tree.n_nodes),
          arrived_(uint32_t(values.size())) {
        states_.resize(tree.n_nodes);
        first_child_.resize(tree.n_nodes + 1, 1);
        std::vector<size_t> code_start(tree.n_nodes + 1, 0);
        for (size_t i = 0; i < tree.n_nodes; ++i) {
            code_start[i + 1] = code_start[i] + size_t(tree.n_codes[i]);
            first_child_[i + 1] = first_child_[i] + uint32_t(tree.n_children[i]);
        }
        // From the last to the first: the states of children are known then.
        for (size_t i = tree.n_nodes; i-- > 0;) {
            states_[i] = arrival(uint32_t(i));
            if (tree.column[i] >= 0) lay_out(tree, i, code_start);
        }
    }

    const std::vector<uint32_t>& values() const { return values_; }
    bool uses(size_t column) const { return used_[column]; }

    void arrive(const std::vector<Cells>& cells, size_t n_rows, uint32_t* out) const {
        bool bytes = lists_.empty();
        for (size_t j = 0; j < cells.size(); ++j) bytes = bytes && (!used_[j] || cells[j].width == 1);
        if (bytes) arrive_by_bytes(cells, n_rows, out);
        else arrive_by_any(cells, n_rows, out);
    }

    // Where the parts of one row arrive, sorted by node, appended to `out`.
    void divide(const std::vector<Cells>& cells, uint32_t row, std::vector<Part>& out) const {
        const size_t first = out.size();
        std::vector<Part> open{{row, 0, 1.0}};
        while (!open.empty()) {
            const Part part = open.back();
            open.pop_back();
            const State state = states_[part.node];
            const State to = state.column == arrived_ ? state : next(cells, row, state);
            const uint32_t node = node_of(to);
            if (node == part.node) {
                out.push_back(part);
            } else if (node != divided) {
                open.push_back({row, node, part.share});
            } else {
                const uint32_t begin = first_child_[part.node], end = first_child_[part.node + 1];
                double whole = 0;
                for (uint32_t child = begin; child < end; ++child) whole += sizes_[child];
                for (uint32_t child = begin; child < end; ++child)
                    open.push_back({row, child, part.share * (sizes_[child] / whole)});
            }
        }
        std::sort(out.begin() + std::ptrdiff_t(first), out.end(),
                  [](const Part& a, const Part& b) { return a.node < b.node; });
    }

  private:
    // The column that is asked (with `in_list`: its ways are lists_[base]) and where
    // its ways begin in table_; or `arrived_` and the node.
    struct State {
        uint32_t base;
        uint32_t column;
        bool operator!=(const State& other) const { return base != other.base || column != other.column; }
    };
    static constexpr uint32_t in_list = 0x80000000u;

    struct List {
        std::vector<uint32_t> codes;
        std::vector<State> ways;
        State otherwise;
        uint32_t node;
    };

    uint32_t node_of(const State& state) const {
        if (state.column == arrived_) return state.base;
        return state.column & in_list ? lists_[state.base].node : table_[state.base - 1].base;
    }

    State arrival(uint32_t node) const { return {node, arrived_}; }

    // The state that a row has who follows a route of the node.
    State follow(int64_t route, size_t node) const {
        if (route == every_branch) return arrival(divided);
        return route == stop_here ? arrival(uint32_t(node)) : states_[first_child_[node] + size_t(route)];
    }

    // The ways of a node come right behind an entry that says which node it is.
    void lay_out(const TreeView& tree, size_t node, const std::vector<size_t>& code_start) {
        const auto column = uint32_t(tree.column[node]);
        used_[column] = true;
        const uint32_t values = values_[column];
        const uint32_t begin = first_child_[node], end = first_child_[node + 1];
        const State missing = follow(tree.missing_to[node], node);
        const State unseen = follow(tree.unseen_to[node], node);
        const size_t n_codes = values ? values + 2 : 3;
        if (n_codes > 4 * size_t(end - begin) + 16) {
            list_ways(tree, node, arrival(uint32_t(node)), missing, unseen, code_start);
            return;
        }
        table_.push_back(arrival(uint32_t(node)));
        states_[node] = {uint32_t(table_.size()), column};
        if (!values) {
            State cut;
            std::memcpy(&cut, &tree.cut[node], sizeof cut);
            table_.push_back(cut);
        }
        const size_t base = table_.size();
        table_.resize(base + n_codes, arrival(uint32_t(node)));
        for (uint32_t child = begin; child < end; ++child)
            for (size_t k = code_start[child]; k < code_start[child + 1]; ++k)
                table_[base + size_t(tree.codes[k])] = states_[child];
        table_[base + (values ? values : 2)] = missing;
        if (values) table_[base + values + 1] = unseen;
    }

    void list_ways(const TreeView& tree, size_t node, State otherwise, State missing, State unseen,
                   const std::vector<size_t>& code_start) {
        const auto column = uint32_t(tree.column[node]);
        const uint32_t values = values_[column];
        std::vector<std::pair<uint32_t, State>> ways{{values, missing}, {values + 1, unseen}};
        for (uint32_t child = first_child_[node]; child < first_child_[node + 1]; ++child)
            for (size_t k = code_start[child]; k < code_start[child + 1]; ++k)
                ways.emplace_back(uint32_t(tree.codes[k]), states_[child]);
        std::sort(ways.begin(), ways.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        List list;
        list.otherwise = otherwise;
        list.node = uint32_t(node);
        for (const auto& [code, to] : ways) {
            list.codes.push_back(code);
            list.ways.push_back(to);
        }
        states_[node] = {uint32_t(lists_.size()), column | in_list};
        lists_.push_back(std::move(list));
    }

    static uint32_t code_at(const Cells& column, size_t row) {
        switch (column.width) {
            case 1: return static_cast<const uint8_t*>(column.data)[row];
            case 2: return static_cast<const uint16_t*>(column.data)[row];
            default: return static_cast<const uint32_t*>(column.data)[row];
        }
    }

    // The next state of a row that has not arrived.
    State next(const std::vector<Cells>& cells, size_t row, const State& state) const {
        const Cells& column = cells[state.column & ~in_list];
        if (column.width == 8) {
            const double number = static_cast<const double*>(column.data)[row];
            double cut;
            std::memcpy(&cut, &table_[state.base], sizeof cut);
            return table_[state.base + 1 + (number > cut ? 1u : std::isnan(number) ? 2u : 0u)];
        }
        const uint32_t code = code_at(column, row);
        if (!(state.column & in_list)) return table_[state.base + code];
        const List& list = lists_[state.base];
        const auto found = std::lower_bound(list.codes.begin(), list.codes.end(), code);
        if (found == list.codes.end() || *found != code) return list.otherwise;
        return list.ways[size_t(found - list.codes.begin())];
    }

    // Rows in lockstep; `step` takes a row and its state to the next state.
    template <typename Step>
    void in_lockstep(size_t n_rows, uint32_t* out, Step step) const {
        constexpr size_t lanes = 16;
        for (size_t first = 0; first < n_rows; first += lanes) {
            const size_t n = std::min(lanes, n_rows - first);
            State at[lanes];
            std::fill_n(at, lanes, states_[0]);
            for (bool moving = true; moving;) {
                moving = false;
                for (size_t k = 0; k < lanes; ++k) {
                    const State to = step(first + std::min(k, n - 1), at[k]);
                    moving |= to != at[k];
                    at[k] = to;
                }
            }
            for (size_t k = 0; k < n; ++k) out[first + k] = at[k].base;
        }
    }

    void arrive_by_any(const std::vector<Cells>& cells, size_t n_rows, uint32_t* out) const {
        in_lockstep(n_rows, out, [&](size_t row, const State& state) {
            return state.column == arrived_ ? state : next(cells, row, state);
        });
    }

    // All codes are bytes. Rows that have arrived read on as if they had not, from the
    // first column and the first entry, and what they read is thrown away: choosing
    // between two values is cheaper than a branch that is hard to predict.
    void arrive_by_bytes(const std::vector<Cells>& cells, size_t n_rows, uint32_t* out) const {
        std::vector<const uint8_t*> data;
        for (const Cells& column : cells) data.push_back(static_cast<const uint8_t*>(column.data));
        const size_t any = size_t(std::find(used_.begin(), used_.end(), true) - used_.begin());
        if (any == used_.size()) {
            std::fill_n(out, n_rows, 0);  // a tree that asks nothing
            return;
        }
        data.push_back(data[any]);
        const uint8_t* const* column_data = data.data();
        const State* table = table_.data();
        const uint32_t arrived = arrived_;
        in_lockstep(n_rows, out, [=](size_t row, const State& state) {
            const bool there = state.column == arrived;
            const size_t code = column_data[state.column][row];
            const State to = table[there ? 0 : state.base + code];
            return there ? state : to;
        });
    }

    std::vector<uint32_t> values_;
    std::vector<bool> used_;
    std::vector<double> sizes_;
    const uint32_t arrived_;  // the column that rows ask who have arrived
    std::vector<uint32_t> first_child_;
    std::vector<State> states_;      // of each node
    Array<State> table_;
    std::vector<List> lists_;
};

}  // namespace branchwise
