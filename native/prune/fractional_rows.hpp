// Pruning with cases that may be fractional: every node has a list of its parts of rows.

#pragma once

#include "prune/state.hpp"
#include "prune/surrogate_routes.hpp"

namespace branchwise {

// A row, or a part of one, at a node.
struct Part {
    uint32_t row, label;
    double weight;
    double share;  // of a case
};
using Parts = Array<Part>;

class FractionalRows {
  public:
    FractionalRows(const Table& table, const SurrogateRoutes& surrogates, bool new_values,
                   PruneState& state)
        : table_(table),
          surrogates_(surrogates),
          new_values_(new_values),
          state_(state),
          classes_(state.tree.classes) {
        uint32_t most = 2;
        for (const Column& column : table.columns)
            most = std::max(most, column.numeric ? 2 : column.n_codes);
        branch_of_code_.assign(most, stop_here);
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
            if (!interrupts.go_on(frame.parts.size() + 1, state_.tree.nodes.size())) return false;
            const std::vector<uint32_t>& children = state_.tree.nodes[frame.node].children;
            if (!frame.taken) {
                frame.taken = true;
                const auto undone = [&](uint32_t c) { return !state_.done(c); };
                if (std::any_of(children.begin(), children.end(), undone))
                    frame.below = distribute<false>(frame.node, frame.parts, undone).by_branch;
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
        Parts parts;
        std::vector<Parts> below;  // by branch; empty until rows are taken down
        size_t next = 0;
        bool taken = false;
    };

    Parts all_rows() const {
        Parts rows;
        rows.reserve(table_.n_rows);
        for (uint32_t row = 0; row < table_.n_rows; ++row) {
            const double weight = table_.weights ? table_.weights[row] : 1.0;
            if (weight > 0) rows.push_back({row, table_.labels[row], weight, 1.0});
        }
        return rows;
    }

    // Decide a node whose children are all done; false if it has a new subtree.
    bool settle_with_rows(Frame& frame) {
        const uint32_t node = frame.node;
        if (!state_.needs_rows(node)) return state_.decide(node, state_.errors_as_leaf(node));
        const uint32_t branch = state_.largest_child(node);
        const int64_t most = Estimate::sum(state_.tree_errors(node), state_.slack());
        Trial trial = count_down(branch, frame.parts, most);
        if (state_.decide(node, trial.errors)) return true;
        raise(node, branch, trial);
        frame.next = 0;
        frame.taken = false;
        return false;
    }

    struct Distribution {
        Distribution(size_t n_branches, size_t classes)
            : by_branch(n_branches), weights(n_branches * classes, 0.0), cases(n_branches, 0.0) {}

        std::vector<Parts> by_branch;  // of the branches whose parts are wanted
        std::vector<double> weights;   // by branch and class
        std::vector<double> cases;     // by branch
        std::vector<std::pair<uint32_t, Parts>> strangers;  // values without a branch
    };

    // Add up what every branch of a node is given, if that is `counted`, and list it for the
    // children that want it.
    template <bool counted, typename Wants>
    Distribution distribute(uint32_t at, const Parts& parts, const Wants& wants) {
        const PruneNode& node = state_.tree.nodes[at];
        const Column& column = table_.columns[size_t(node.column)];
        const size_t n_branches = node.children.size();
        for_codes(node, [&](uint32_t code, int32_t branch) { branch_of_code_[code] = branch; });
        // Sides of a threshold are codes; what is missing has none.
        if (column.numeric) {
            const int32_t sides[] = {branch_of_code_[0], branch_of_code_[1]};
            find_branches(parts, [&](uint32_t row) {
                const double number = column.numbers[row];
                return std::isnan(number) ? missing_here : sides[number > node.threshold];
            });
        } else {
            const int32_t before =
                std::exchange(branch_of_code_[column.missing_code()], missing_here);
            const int32_t* const branches = branch_of_code_.data();
            if (column.width == 1) {
                const auto* codes = static_cast<const uint8_t*>(column.codes);
                find_branches(parts, [=](uint32_t row) { return branches[codes[row]]; });
            } else {
                find_branches(parts, [&](uint32_t row) { return branches[column.at(row)]; });
            }
            branch_of_code_[column.missing_code()] = before;
        }
        for_codes(node, [&](uint32_t code, int32_t) { branch_of_code_[code] = stop_here; });
        if (surrogates_.any())
            for (size_t i = 0; i < parts.size(); ++i)
                if (branch_of_part_[i] == missing_here)
                    branch_of_part_[i] =
                        surrogates_.branch(node.origin, parts[i].row, missing_here);
        Distribution made(n_branches, classes_);
        std::vector<double> size(n_branches, 0.0);
        std::vector<size_t> n_parts(n_branches, 0);
        std::vector<const Part*> missing;
        std::vector<std::pair<uint32_t, Part>> strange;
        for (size_t i = 0; i < parts.size(); ++i) {
            const Part& part = parts[i];
            const int32_t branch = branch_of_part_[i];
            if (branch >= 0) {
                const auto b = size_t(branch);
                ++n_parts[b];
                size[b] += part.weight;
                if (!counted) continue;
                made.weights[b * classes_ + part.label] += part.weight;
                made.cases[b] += part.share;
            } else if (branch == missing_here) {
                missing.push_back(&part);
            } else if (new_values_ && !column.numeric) {
                strange.emplace_back(column.at(part.row), part);
            }
        }
        list_wanted(node, parts, wants, n_parts, missing.size(), made);
        gather(strange, made, size);
        route_missing(node, missing, made, size);
        return made;
    }

    static constexpr int32_t missing_here = std::numeric_limits<int32_t>::min();

    template <typename BranchOf>
    void find_branches(const Parts& parts, const BranchOf& branch_of) {
        branch_of_part_.resize(parts.size());
        int32_t* branch = branch_of_part_.data();
        for (const Part& part : parts) *branch++ = branch_of(part.row);
    }

    // The parts of the children that want them, with room for those that miss the column.
    template <typename Wants>
    void list_wanted(const PruneNode& node, const Parts& parts, const Wants& wants,
                     const std::vector<size_t>& n_parts, size_t n_missing, Distribution& made) {
        const size_t n_branches = node.children.size();
        wanted_.assign(n_branches, 0);
        bool any = false;
        for (size_t b = 0; b < n_branches; ++b) {
            wanted_[b] = wants(node.children[b]);
            any |= wanted_[b] != 0;
            if (wanted_[b]) made.by_branch[b].reserve(n_parts[b] + n_missing);
        }
        for (size_t i = 0; any && i < parts.size(); ++i) {
            const int32_t branch = branch_of_part_[i];
            if (branch >= 0 && wanted_[size_t(branch)])
                made.by_branch[size_t(branch)].push_back(parts[i]);
        }
    }

    template <typename Visit>
    void for_codes(const PruneNode& node, const Visit& visit) const {
        for (size_t b = 0; b < node.children.size(); ++b) {
            const PruneNode& child = state_.tree.nodes[node.children[b]];
            for (uint32_t k = child.code_begin; k < child.code_end; ++k)
                visit(state_.tree.codes[k], int32_t(b));
        }
    }

    // Values without a branch, in order; their weights come after those of branches.
    static void gather(std::vector<std::pair<uint32_t, Part>>& strange, Distribution& made,
                       std::vector<double>& size) {
        std::stable_sort(strange.begin(), strange.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [code, part] : strange) {
            if (made.strangers.empty() || made.strangers.back().first != code) {
                made.strangers.push_back({code, {}});
                size.push_back(0.0);
            }
            made.strangers.back().second.push_back(part);
            size.back() += part.weight;
        }
    }

    void route_missing(const PruneNode& node, const std::vector<const Part*>& missing,
                       Distribution& made, const std::vector<double>& size) const {
        if (node.missing_to == stop_here) return;
        const auto give = [&](size_t b, const Part& part) {
            made.weights[b * classes_ + part.label] += part.weight;
            made.cases[b] += part.share;
            if (wanted_[b]) made.by_branch[b].push_back(part);
        };
        if (node.missing_to >= 0) {
            for (const Part* part : missing) give(size_t(node.missing_to), *part);
            return;
        }
        double known = 0;
        for (double weight : size) known += weight;
        for (const Part* part : missing) {
            for (size_t b = 0; b < size.size(); ++b) {
                const double fraction = size[b] / known;
                const double weight = on_grid(part->weight * fraction, table_.weight_step);
                if (!(weight > 0)) continue;
                const Part piece{part->row, part->label, weight,
                                 on_grid(part->share * fraction, table_.case_step)};
                if (b < made.by_branch.size())
                    give(b, piece);
                else
                    made.strangers[b - made.by_branch.size()].second.push_back(piece);
            }
        }
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

    double add_up(const Parts& parts, std::vector<double>& weights) const {
        const size_t begin = weights.size();
        weights.resize(begin + classes_, 0.0);
        double cases = 0;
        for (const Part& part : parts) {
            weights[begin + part.label] += part.weight;
            cases += part.share;
        }
        return cases;
    }

    // Count parts down a branch, until it is known to err more than `most`: errors only add up.
    Trial count_down(uint32_t root, const Parts& parts, int64_t most) {
        Trial trial;
        trial.recounts.push_back({root, add_up(parts, trial.weights)});
        struct Open {
            uint32_t node;
            size_t place;  // in the recounts
            Parts parts;
        };
        std::vector<Open> open;  // inner nodes that are still to be counted
        open.push_back({root, 0, {}});
        const auto is_inner = [&](uint32_t node) { return !state_.tree.nodes[node].is_leaf(); };
        while (!open.empty() && trial.errors <= most) {
            const Open now = std::move(open.back());
            open.pop_back();
            const uint32_t node = now.node;
            std::copy_n(&trial.weights[now.place * classes_], classes_, stopped_.begin());
            Distribution made = distribute<true>(node, now.place ? now.parts : parts, is_inner);
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
            for (auto& [code, strangers] : made.strangers) {
                const double leaf_cases = add_up(strangers, trial.leaf_weights);
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
    const SurrogateRoutes& surrogates_;
    const bool new_values_;
    PruneState& state_;
    const size_t classes_;

    // Scratch.
    std::vector<int32_t> branch_of_code_, branch_of_part_;
    std::vector<uint8_t> wanted_;
    std::vector<double> stopped_;
};

}  // namespace branchwise
