// Pruning with whole rows: they lie in one list, every node's in a range of its own, and
// are fractional by branches in place. The cases of a branch are counted already, so a
// trial of it walks its siblings' cases only, and is given up as soon as the branch
// errs too much: with more cases no estimate of errors gets smaller. One of costs may, so
// a trial by costs is not given up.

#pragma once

#include <deque>

#include "prune/row_records.hpp"

namespace branchwise {

class WholeRows {
  public:
    WholeRows(const Table& table, bool new_values, PruneState& state)
        : table_(table),
          new_values_(new_values),
          state_(state),
          classes_(state.tree.classes),
          records_(table, state.tree) {
        rows_.reserve(table.n_rows);
        for (uint32_t row = 0; row < table.n_rows; ++row)
            if (weight(row) > 0) rows_.push_back(row);
        moved_.resize(rows_.size());
        branches_.resize(rows_.size());
        table_at_.resize(state.tree.nodes.size(), 0);
        jumps_.resize(state.tree.nodes.size());
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
        if (table_at_.size() <= node) table_at_.resize(state_.tree.nodes.size(), 0);
        if (table_at_[node]) return tables_[table_at_[node] - 1];
        tables_.emplace_back();
        table_at_[node] = uint32_t(tables_.size());
        BranchOfCode& jump_table = tables_.back();
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
        frame.starts.clear();
        const PruneNode& node = state_.tree.nodes[frame.node];
        if (std::all_of(node.children.begin(), node.children.end(),
                        [&](uint32_t c) { return state_.done(c); }))
            return;
        frame.starts.assign(node.children.size() + 2, frame.begin);
        const BranchOfCode& branches = table(frame.node);
        const auto none = uint32_t(node.children.size());
        const auto branch_of = [&](uint32_t code) {
            return branches[code] < 0 ? none : uint32_t(branches[code]);
        };
        const Column& column = table_.columns[size_t(node.column)];
        if (!column.numeric && column.width == 1) {
            uint32_t branch_of_byte[256];
            for (uint32_t code = 0; code < column.n_codes; ++code)
                branch_of_byte[code] = branch_of(code);
            const auto* codes = static_cast<const uint8_t*>(column.codes);
            sort_rows(frame, [&](uint32_t row) { return branch_of_byte[codes[row]]; });
        } else if (column.numeric) {
            const uint32_t branch_of_side[] = {branch_of(0), branch_of(1), branch_of(2)};
            sort_rows(frame, [&](uint32_t row) {
                const double number = column.numbers[row];
                return branch_of_side[std::isnan(number) ? 2 : number > node.threshold];
            });
        } else {
            sort_rows(frame, [&](uint32_t row) { return branch_of(column.at(row)); });
        }
    }

    // By branches, stably. One column is read for all rows, which are in order, so that what a
    // column has side by side is of more use than what a row has.
    template <typename BranchOf>
    void sort_rows(Frame& frame, const BranchOf& branch_of) {
        size_t* const n_before = frame.starts.data() + 1;
        for (size_t i = frame.begin; i < frame.end; ++i) {
            const uint32_t branch = branch_of(rows_[i]);
            branches_[i] = branch;
            ++n_before[branch];
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
        forget_jump(node);  // it may be a leaf from now on
        if (state_.decide(node, as_branch)) return true;
        raise(node, branch);
        frame.next = 0;
        frame.fractional = false;
        return false;
    }

    // A node that rows of a trial have come to and go no further: how many.
    struct Visited {
        uint32_t node;
        double cases;
    };

    // The errors of a branch with all cases of its parent, or a number that is too large
    // already.
    int64_t try_branch(const Frame& frame, uint32_t branch) {
        forget();
        Trial trial{branch, state_.tree_errors(frame.node) + state_.slack()};
        if (!state_.counts_errors()) trial.check = std::numeric_limits<size_t>::max();
        const PruneNode& node = state_.tree.nodes[frame.node];
        const auto own = size_t(std::find(node.children.begin(), node.children.end(), branch) -
                                node.children.begin());
        if (!frame.starts.empty()) {  // its rows lie side by side
            if (!try_rows(
                    frame.begin, frame.starts[own], [](uint32_t) { return true; }, trial) ||
                !try_rows(
                    frame.starts[own + 1], frame.end, [](uint32_t) { return true; }, trial))
                return trial.errors;
        } else {
            const BranchOfCode& jump_table = table(frame.node);
            const auto leaves = [&](uint32_t row) {
                return jump_table[records_.code(node, row)] != int32_t(own);
            };
            if (!try_rows(frame.begin, frame.end, leaves, trial)) return trial.errors;
        }
        return errors_of_trial(branch);
    }

    // How far a trial has come.
    struct Trial {
        uint32_t branch;
        int64_t most;               // errors that are not too many
        size_t n = 0;               // rows that were sent down the branch
        size_t check = first_look;  // so many rows are to be, until errors are looked at
        int64_t errors = 0;         // when they were last
    };

    // Send rows of which `goes` is true down the branch; false if it errs too much.
    template <typename Goes>
    bool try_rows(size_t begin, size_t end, const Goes& goes, Trial& trial) {
        uint32_t together[side_by_side];
        size_t n = 0;
        for (size_t i = begin; i < end; ++i) {
            fetch_ahead(i, end);
            together[n] = rows_[i];
            n += goes(rows_[i]);
            if (n < side_by_side && i + 1 < end) continue;
            walk(trial.branch, together, n);
            trial.n += n;
            n = 0;
            if (trial.n >= trial.check && errs_too_much(trial)) return false;
        }
        return true;
    }

    bool errs_too_much(Trial& trial) {
        trial.errors = errors_of_trial(trial.branch);
        if (trial.errors > trial.most) return true;
        // About when it will be too large, if the rows that follow are like these.
        const auto own = double(state_.errors(trial.branch));
        const double share = (double(trial.most) - own) / std::max(double(trial.errors) - own, 1.0);
        trial.check = size_t(double(trial.n) * std::clamp(1.05 * share, 1.25, 4.0));
        return false;
    }

    static constexpr size_t first_look = 64;
    static constexpr size_t ahead = 32;
    static constexpr size_t side_by_side = 16;

    void fetch_ahead(size_t i, size_t end) const {
        if (i + ahead >= end) return;
        records_.fetch(rows_[i + ahead]);
    }

    // What a row needs to pass a node that tests a column of one-byte codes: where its code is,
    // and where the nodes are that codes lead to. Rows pass them in random order, so it is short,
    // and a leaf is marked where it is led to, so that nothing has to be looked up there.
    struct Jump {
        static constexpr uint32_t none = ~uint32_t(0), leaf = none - 1;
        uint32_t place = none;  // none: to be found out
        uint32_t first = none;  // none: another column
    };
    static constexpr uint32_t nowhere = ~uint32_t(0);
    static constexpr uint32_t leaf_mark = uint32_t(1) << 31;

    // A leaf stays one.
    uint32_t marked(uint32_t node) const {
        return state_.tree.nodes[node].is_leaf() ? node | leaf_mark : node;
    }

    void forget_jump(uint32_t node) { jumps_[node] = Jump(); }
    void forget_table(uint32_t node) {
        if (node < table_at_.size()) table_at_[node] = 0;
    }

    const Jump& jump(uint32_t node) {
        if (jumps_.size() <= node) jumps_.resize(state_.tree.nodes.size());
        Jump& made = jumps_[node];
        if (made.place != Jump::none) return made;
        const PruneNode& at = state_.tree.nodes[node];
        made.place = 0;
        made.first = at.is_leaf() ? Jump::leaf : Jump::none;
        if (at.is_leaf()) return made;
        const Column& column = table_.columns[size_t(at.column)];
        if (column.numeric || column.width != 1 || next_nodes_.size() >= Jump::none / 2)
            return made;
        made.place = uint32_t(records_.place(size_t(at.column)));
        made.first = uint32_t(next_nodes_.size());
        next_nodes_.resize(next_nodes_.size() + column.n_codes, nowhere);
        uint32_t* const next = &next_nodes_[made.first];
        for (uint32_t child : at.children)
            for (uint32_t k = state_.tree.nodes[child].code_begin;
                 k < state_.tree.nodes[child].code_end; ++k)
                next[state_.tree.codes[k]] = marked(child);
        next[column.missing_code()] =
            at.missing_to < 0 ? nowhere : marked(at.children[size_t(at.missing_to)]);
        return made;
    }

    // Add some rows to the nodes where their ways end. They go one step after the other: the
    // memory that one waits for is on its way while others go. Which rows go on is anybody's
    // guess, so there is no branch.
    void walk(uint32_t branch, const uint32_t* rows, size_t n) {
        uint32_t node[side_by_side], end[side_by_side], on_its_way[side_by_side];
        for (size_t k = 0; k < n; ++k) {
            node[k] = branch;
            on_its_way[k] = uint32_t(k);
        }
        for (size_t left = n; left;) {
            size_t going = 0;
            for (size_t i = 0; i < left; ++i) {
                const uint32_t k = on_its_way[i];
                const uint32_t next = next_node(node[k], rows[k]);
                end[k] = next;
                node[k] = next == nowhere ? node[k] : next & ~leaf_mark;
                on_its_way[going] = k;
                going += next < leaf_mark;
            }
            left = going;
        }
        for (size_t k = 0; k < n; ++k) {
            if (end[k] == nowhere)
                stop(node[k], rows[k]);
            else
                add(node[k], rows[k]);
        }
    }

    // Where a row goes from a node, leaves being marked: a leaf keeps it.
    uint32_t next_node(uint32_t node, uint32_t row) {
        const Jump& fast = jump(node);
        if (fast.first < Jump::leaf) return next_nodes_[fast.first + records_.row(row)[fast.place]];
        if (fast.first == Jump::leaf) return node | leaf_mark;
        const PruneNode& at = state_.tree.nodes[node];
        const int32_t way = table(node)[records_.code(at, row)];
        return way < 0 ? nowhere : marked(at.children[size_t(way)]);
    }

    void stop(uint32_t node, uint32_t row) {
        const PruneNode& at = state_.tree.nodes[node];
        const Column& column = table_.columns[size_t(at.column)];
        const uint32_t code = records_.code(at, row);
        if (new_values_ && !column.numeric && code != column.missing_code())
            add_stranger(node, code, row);
        else
            add(node, row);
    }

    void add(uint32_t node, uint32_t row) {
        if (seat_.size() < state_.tree.nodes.size()) seat_.resize(state_.tree.nodes.size(), 0);
        if (!seat_[node]) {
            visited_.push_back({node, 0});
            weights_.resize(weights_.size() + classes_, 0.0);
            seat_[node] = uint32_t(visited_.size());
        }
        const size_t seat = seat_[node] - 1;
        weights_[seat * classes_ + records_.label(row)] += weight(row);
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
        stranger_weights_[i * classes_ + records_.label(row)] += weight(row);
        strangers_[i].cases += 1;
    }

    // Those of the branch as it is, but for the nodes where rows have come to their end.
    int64_t errors_of_trial(uint32_t branch) {
        int64_t errors = state_.errors(branch);
        std::vector<double> now(classes_);
        for (size_t i = 0; i < visited_.size(); ++i) {
            const std::vector<double>& before = state_.stopped(visited_[i].node);
            for (size_t c = 0; c < classes_; ++c) now[c] = before[c] + weights_[i * classes_ + c];
            const int64_t added =
                Estimate::sum(state_.errors_of_stopped(now), -state_.errors_of_stopped(before));
            errors = Estimate::sum(errors, added);
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
        recount(branch);
        for (size_t i = 0; i < strangers_.size(); ++i) {
            forget_table(strangers_[i].parent);
            state_.graft(strangers_[i], &stranger_weights_[i * classes_]);
        }
        forget();
        state_.raise(node, branch);
        forget_table(node);
        forget_jump(node);
    }

    // Add the rows of the trial to all nodes on their ways.
    void recount(uint32_t branch) {
        struct Counted {
            uint32_t node;
            size_t parent;
            double cases;
        };
        std::vector<Counted> counted{{branch, 0, 0}};
        for (size_t i = 0; i < counted.size(); ++i)
            for (uint32_t child : state_.tree.nodes[counted[i].node].children)
                counted.push_back({child, i, 0});
        std::vector<double> weights(counted.size() * classes_, 0.0);
        place_.resize(state_.tree.nodes.size());
        for (size_t i = 0; i < counted.size(); ++i) place_[counted[i].node] = i;
        const auto give = [&](size_t to, const double* from, double cases) {
            for (size_t c = 0; c < classes_; ++c) weights[to * classes_ + c] += from[c];
            counted[to].cases += cases;
        };
        for (size_t i = 0; i < visited_.size(); ++i)
            give(place_[visited_[i].node], &weights_[i * classes_], visited_[i].cases);
        for (size_t i = 0; i < strangers_.size(); ++i)
            give(place_[strangers_[i].parent], &stranger_weights_[i * classes_],
                 strangers_[i].cases);
        for (size_t i = counted.size(); i-- > 1;)
            give(counted[i].parent, &weights[i * classes_], counted[i].cases);
        for (size_t i = 0; i < counted.size(); ++i) {
            const uint32_t node = counted[i].node;
            for (size_t c = 0; c < classes_; ++c)
                weights[i * classes_ + c] += state_.tree.at(node)[c];
            state_.recount(node, &weights[i * classes_],
                           counted[i].cases + state_.tree.nodes[node].cases);
            if (node < jumps_.size()) forget_jump(node);
        }
    }

    const Table& table_;
    const bool new_values_;
    PruneState& state_;
    const size_t classes_;
    const RowRecords records_;
    Array<uint32_t> rows_, moved_, branches_;
    std::deque<BranchOfCode> tables_;   // of the nodes that needed one
    std::vector<uint32_t> table_at_;    // by node: the place of its table, from 1
    std::vector<Jump> jumps_;           // by node
    std::vector<uint32_t> next_nodes_;  // of these

    // The trial: nodes that rows have come to, and the weights they have brought.
    std::vector<uint32_t> seat_;  // of a node in visited_, from 1
    std::vector<Visited> visited_;
    std::vector<double> weights_;
    std::vector<NewLeaf> strangers_;
    std::vector<double> stranger_weights_;
    std::vector<size_t> place_;  // of the nodes that are recounted
};

}  // namespace branchwise
