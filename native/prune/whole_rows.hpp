// Pruning with whole rows: they lie in one list, every node's in a range of its own, and
// are fractional by branches in place. The cases of a branch are counted already, so a
// trial of it walks its siblings' cases only, and is given up as soon as the branch
// errs too much: with more cases no estimate gets smaller.

#pragma once

#include <cstring>

#include "prune/state.hpp"

namespace branchwise {

// The cells of the columns that a tree tests about, side by side: a row on its way down
// needs several of them, in random order, and so meets them in one place.
class RowRecords {
  public:
    RowRecords(const Table& table, const PruneTree& tree)
        : table_(table), at_(table.columns.size(), unused) {
        for (const PruneNode& node : tree.nodes)
            if (node.column >= 0) take_in(size_t(node.column));
        bytes_.resize(table.n_rows * stride_);
        for (size_t j = 0; j < at_.size(); ++j)
            if (at_[j] != unused) copy(table.columns[j], at_[j]);
    }

    // 0 or 1 for the sides of a threshold, 2 for a missing number.
    uint32_t code(const PruneNode& node, uint32_t row) const {
        const Column& column = table_.columns[size_t(node.column)];
        const uint8_t* cell = &bytes_[row * stride_ + at_[size_t(node.column)]];
        if (column.numeric) {
            double number;
            std::memcpy(&number, cell, sizeof number);
            return std::isnan(number) ? 2 : number > node.threshold;
        }
        if (column.width == 1) return *cell;
        uint32_t code = 0;
        std::memcpy(&code, cell, size_t(column.width));
        return code;
    }

    void fetch(uint32_t row) const { __builtin_prefetch(&bytes_[row * stride_]); }

  private:
    static constexpr size_t unused = ~size_t(0);

    void take_in(size_t column) {
        if (at_[column] != unused) return;
        at_[column] = stride_;
        stride_ +=
            table_.columns[column].numeric ? sizeof(double) : size_t(table_.columns[column].width);
    }

    void copy(const Column& column, size_t at) {
        const size_t width = column.numeric ? sizeof(double) : size_t(column.width);
        const auto* from =
            static_cast<const uint8_t*>(column.numeric ? column.numbers : column.codes);
        uint8_t* to = bytes_.data() + at;
        for (size_t row = 0; row < table_.n_rows; ++row, from += width, to += stride_)
            std::memcpy(to, from, width);
    }

    const Table& table_;
    std::vector<size_t> at_;  // by column
    size_t stride_ = 0;
    Array<uint8_t> bytes_;
};

// Code -> branch of a node: a table, or where a column has far more codes than lead to
// branches, a sorted list of these.
class BranchOfCode {
  public:
    bool empty() const { return table_.empty() && listed_.empty(); }
    void clear() {
        table_.clear();
        listed_.clear();
    }

    void make(uint32_t n_codes, std::vector<std::pair<uint32_t, int32_t>> branches) {
        if (n_codes > 4 * branches.size() + 64) {
            listed_ = std::move(branches);
            std::stable_sort(listed_.begin(), listed_.end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; });
            return;
        }
        table_.assign(n_codes, stop_here);
        for (const auto& [code, branch] : branches) table_[code] = branch;
    }

    int32_t operator[](uint32_t code) const {
        if (!table_.empty()) return table_[code];
        const auto after = std::upper_bound(
            listed_.begin(), listed_.end(), code,
            [](uint32_t wanted, const auto& entry) { return wanted < entry.first; });
        return after != listed_.begin() && std::prev(after)->first == code
                   ? std::prev(after)->second
                   : stop_here;
    }

  private:
    std::vector<int32_t> table_;
    std::vector<std::pair<uint32_t, int32_t>> listed_;
};

class WholeRows {
  public:
    WholeRows(const Table& table, bool new_values, PruneState& state)
        : table_(table),
          new_values_(new_values),
          state_(state),
          classes_(state.tree.classes),
          records_(table, state.tree) {
        for (uint32_t row = 0; row < table.n_rows; ++row)
            if (weight(row) > 0) rows_.push_back(row);
        moved_.resize(rows_.size());
        branches_.resize(rows_.size());
        tables_.resize(state.tree.nodes.size());
    }

    // Take the rows down to the nodes that need them, and decide these; false if the
    // watch gave up.
    bool prune(const Watch& watch) {
        InterruptCheck interrupts(watch);
        std::vector<Frame> stack{{0, 0, rows_.size()}};
        while (!stack.empty()) {
            Frame& frame = stack.back();
            if (!interrupts.go_on(frame.end - frame.begin + 1, state_.tree.nodes.size()))
                return false;
            const std::vector<uint32_t>& children = state_.tree.nodes[frame.node].children;
            if (!frame.fractional) part(frame);
            while (frame.next < children.size() && state_.done(children[frame.next])) ++frame.next;
            if (frame.next < children.size()) {
                const Frame child{children[frame.next], frame.starts[frame.next],
                                  frame.starts[frame.next + 1]};
                stack.push_back(child);
            } else if (settle(frame)) {
                stack.pop_back();
            }
        }
        return true;
    }

  private:
    struct Frame {
        uint32_t node;
        size_t begin, end;
        std::vector<size_t> starts{};  // of the children's rows; those that stop come last
        size_t next = 0;
        bool fractional = false;
    };

    double weight(uint32_t row) const { return table_.weights ? table_.weights[row] : 1.0; }

    // ---- jump_table -------------------------------------------------------------------

    // Code -> branch of a node, made when it is first needed.
    const BranchOfCode& table(uint32_t node) {
        if (tables_.size() <= node) tables_.resize(state_.tree.nodes.size());
        BranchOfCode& jump_table = tables_[node];
        if (!jump_table.empty()) return jump_table;
        const PruneNode& at = state_.tree.nodes[node];
        const Column& column = table_.columns[size_t(at.column)];
        const uint32_t n_codes = column.numeric ? 3 : column.n_codes;
        std::vector<std::pair<uint32_t, int32_t>> branches;
        for (size_t b = 0; b < at.children.size(); ++b) {
            const PruneNode& child = state_.tree.nodes[at.children[b]];
            for (uint32_t k = child.code_begin; k < child.code_end; ++k)
                branches.emplace_back(state_.tree.codes[k], int32_t(b));
        }
        branches.emplace_back(n_codes - 1, int32_t(at.missing_to));
        jump_table.make(n_codes, std::move(branches));
        return jump_table;
    }

    // Part the rows of a node by its branches, if a child has still to be decided.
    void part(Frame& frame) {
        frame.fractional = true;
        const PruneNode& node = state_.tree.nodes[frame.node];
        if (std::all_of(node.children.begin(), node.children.end(),
                        [&](uint32_t c) { return state_.done(c); }))
            return;
        const BranchOfCode& jump_table = table(frame.node);
        frame.starts.assign(node.children.size() + 2, frame.begin);
        for (size_t i = frame.begin; i < frame.end; ++i) {
            fetch_ahead(i, frame.end);
            const int32_t way = jump_table[records_.code(node, rows_[i])];
            const auto branch = uint32_t(way < 0 ? int32_t(node.children.size()) : way);
            branches_[i] = branch;
            if (branch + 1 < frame.starts.size()) ++frame.starts[branch + 1];
        }
        for (size_t b = 1; b < frame.starts.size(); ++b)
            frame.starts[b] += frame.starts[b - 1] - frame.begin;
        std::vector<size_t> next(frame.starts.begin(), frame.starts.end() - 1);
        for (size_t i = frame.begin; i < frame.end; ++i) moved_[next[branches_[i]]++] = rows_[i];
        std::copy(moved_.begin() + std::ptrdiff_t(frame.begin),
                  moved_.begin() + std::ptrdiff_t(frame.end),
                  rows_.begin() + std::ptrdiff_t(frame.begin));
    }

    // ---- trials -----------------------------------------------------------------

    // Decide a node whose children are all done; false if it has a new subtree.
    bool settle(Frame& frame) {
        const uint32_t node = frame.node;
        if (!state_.needs_rows(node)) return state_.decide(node, state_.errors_as_leaf(node));
        const uint32_t branch = state_.largest_child(node);
        const int64_t as_branch = try_branch(frame, branch);
        if (state_.decide(node, as_branch)) return true;
        raise(node, branch);
        frame.next = 0;
        frame.fractional = false;
        return false;
    }

    struct Visited {
        uint32_t node;
        double cases;
    };

    // The errors of a branch with all cases of its parent, or a number that is too large
    // already.
    int64_t try_branch(const Frame& frame, uint32_t branch) {
        forget();
        const int64_t most = state_.tree_errors(frame.node) + state_.slack();
        const PruneNode& node = state_.tree.nodes[frame.node];
        const BranchOfCode& jump_table = table(frame.node);
        const auto own = int32_t(std::find(node.children.begin(), node.children.end(), branch) -
                                 node.children.begin());
        size_t check = frame.begin + first_look;
        for (size_t i = frame.begin; i < frame.end; ++i) {
            fetch_ahead(i, frame.end);
            if (jump_table[records_.code(node, rows_[i])] != own) walk(branch, rows_[i]);
            if (i + 1 != check) continue;
            const int64_t so_far = errors_of_trial(branch);
            if (so_far > most) return so_far;
            check = frame.begin + 4 * (check - frame.begin);
        }
        return errors_of_trial(branch);
    }

    static constexpr size_t first_look = 256;
    static constexpr size_t ahead = 16;

    void fetch_ahead(size_t i, size_t end) const {
        if (i + ahead < end) records_.fetch(rows_[i + ahead]);
    }

    // Add a row to the nodes on its way.
    void walk(uint32_t node, uint32_t row) {
        for (;;) {
            add(node, row);
            const PruneNode& at = state_.tree.nodes[node];
            if (at.is_leaf()) return;
            const uint32_t code = records_.code(at, row);
            const int32_t way = table(node)[code];
            if (way >= 0) {
                node = at.children[size_t(way)];
                continue;
            }
            const Column& column = table_.columns[size_t(at.column)];
            if (new_values_ && !column.numeric && code != column.missing_code())
                add_stranger(node, code, row);
            return;
        }
    }

    void add(uint32_t node, uint32_t row) {
        if (seat_.size() < state_.tree.nodes.size()) seat_.resize(state_.tree.nodes.size(), 0);
        if (!seat_[node]) {
            visited_.push_back({node, state_.tree.nodes[node].cases});
            const double* weights = state_.tree.at(node);
            weights_.insert(weights_.end(), weights, weights + classes_);
            seat_[node] = uint32_t(visited_.size());
        }
        const size_t seat = seat_[node] - 1;
        weights_[seat * classes_ + table_.labels[row]] += weight(row);
        visited_[seat].cases += 1;
    }

    void add_stranger(uint32_t parent, uint32_t code, uint32_t row) {
        size_t i = 0;
        while (i < strangers_.size() &&
               (strangers_[i].parent != parent || strangers_[i].code != code))
            ++i;
        if (i == strangers_.size()) {
            strangers_.push_back({parent, code, 0});
            stranger_weights_.resize(stranger_weights_.size() + classes_, 0.0);
        }
        stranger_weights_[i * classes_ + table_.labels[row]] += weight(row);
        strangers_[i].cases += 1;
    }

    const double* weights_at(uint32_t node) const {
        return seat(node) ? &weights_[(seat(node) - 1) * classes_] : state_.tree.at(node);
    }

    // Nobody has one where all rows of the parent are the branch's own.
    uint32_t seat(uint32_t node) const { return node < seat_.size() ? seat_[node] : 0; }

    int64_t errors_of_trial(uint32_t branch) const {
        int64_t errors = 0;
        std::vector<uint32_t> open{branch};
        std::vector<double> stopped(classes_);
        while (!open.empty()) {
            const uint32_t node = open.back();
            open.pop_back();
            const PruneNode& at = state_.tree.nodes[node];
            const double* weights = weights_at(node);
            if (at.is_leaf()) {
                errors = Estimate::sum(errors, state_.errors_of(weights));
                continue;
            }
            std::copy_n(weights, classes_, stopped.begin());
            for (uint32_t child : at.children) {
                for (size_t c = 0; c < classes_; ++c) stopped[c] -= weights_at(child)[c];
                open.push_back(child);
            }
            for (size_t i = 0; i < strangers_.size(); ++i)
                if (strangers_[i].parent == node)
                    for (size_t c = 0; c < classes_; ++c)
                        stopped[c] -= stranger_weights_[i * classes_ + c];
            for (double& weight : stopped) weight = std::max(weight, 0.0);
            errors = Estimate::sum(errors, state_.errors_of(stopped.data()));
        }
        for (size_t i = 0; i < strangers_.size(); ++i)
            errors = Estimate::sum(errors, state_.errors_of(&stranger_weights_[i * classes_]));
        return errors;
    }

    void forget() {
        for (const Visited& visited : visited_) seat_[visited.node] = 0;
        visited_.clear();
        weights_.clear();
        strangers_.clear();
        stranger_weights_.clear();
    }

    // Carry the last trial out: all nodes of the branch are looked at again.
    void raise(uint32_t node, uint32_t branch) {
        std::vector<uint32_t> open{branch};
        while (!open.empty()) {
            const uint32_t at = open.back();
            open.pop_back();
            const double cases =
                seat(at) ? visited_[seat(at) - 1].cases : state_.tree.nodes[at].cases;
            const std::vector<double> weights(weights_at(at), weights_at(at) + classes_);
            state_.recount(at, weights.data(), cases);
            for (uint32_t child : state_.tree.nodes[at].children) open.push_back(child);
        }
        for (size_t i = 0; i < strangers_.size(); ++i) {
            tables_[strangers_[i].parent].clear();
            state_.graft(strangers_[i], &stranger_weights_[i * classes_]);
        }
        forget();
        state_.raise(node, branch);
        tables_[node].clear();
    }

    const Table& table_;
    const bool new_values_;
    PruneState& state_;
    const size_t classes_;
    const RowRecords records_;
    std::vector<uint32_t> rows_, moved_, branches_;
    std::vector<BranchOfCode> tables_;  // by node

    // The trial: nodes that rows have come to, and their weights then.
    std::vector<uint32_t> seat_;  // of a node in visited_, from 1
    std::vector<Visited> visited_;
    std::vector<double> weights_;
    std::vector<NewLeaf> strangers_;
    std::vector<double> stranger_weights_;
};

}  // namespace branchwise
