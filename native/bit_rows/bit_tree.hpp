// Growth over bit rows: carrying out a split, whatever has chosen it.

#pragma once

#include <algorithm>
#include <vector>

#include "bit_rows/bit_blocks.hpp"
#include "bit_rows/bit_groups.hpp"
#include "bit_rows/bit_halves.hpp"
#include "bit_rows/bit_impurity.hpp"
#include "bit_rows/bit_layout.hpp"
#include "bit_rows/bit_members.hpp"
#include "bit_rows/bit_moves.hpp"
#include "core/grower.hpp"

namespace branchwise {

class BitTree : public Grower {
  public:
    // Rows, shared by all growers of a tree; each touches only those of its nodes.
    struct Buffers {
        Scratch<Pair> side[2];
    };

    // An open node: its rows and the columns still worth testing.
    struct Job {
        int64_t node = 0;
        int64_t depth = 0;
        size_t begin = 0;
        size_t n = 0;
        int side = 0;
        uint64_t key = 0;      // of its draws
        uint64_t members = 0;  // of a small node, whose rows are not moved
        int64_t kept = -1;     // where its counts are kept, if they are known
        ColumnSet alive;
    };

    size_t work(const Job& job) const { return job.n * layout_.n_words(); }

  protected:
    static constexpr size_t most_reserved = size_t(1) << 19;

    BitTree(const Problem& problem, const Impurities& impurities, BitLayout layout,
            Buffers& buffers, ThreadPool& pool)
        : Grower(problem, pool, size_t(problem.n_classes)),
          buffers_(buffers),
          classes_(width_),
          grouped_(problem.branching != Branching::values),
          learned_(problem.missing == Policy::learned),
          layout_(std::move(layout)),
          stride_(layout_.n_pairs() * 2),
          groups_(problem, impurities, layout_),
          members_(layout_, classes_),
          table_(layout_, classes_) {
        branches_.resize(table_.sizes.size());
        counts_of_class_.resize(classes_);
        reserve_nodes(std::min(problem.n_rows, most_reserved), 2 * most_reserved);
    }

    uint64_t* rows(int side) const {
        return reinterpret_cast<uint64_t*>(buffers_.side[side].data());
    }

    bool is_open(const uint32_t* counts, size_t n, int64_t depth) const {
        if (!may_be_split(double(n), depth)) return false;
        size_t present = 0;
        for (size_t c = 0; c < classes_; ++c) present += counts[c] > 0;
        return present > 1;
    }

    // Of a small node, from the sets of its rows.
    void carry_out_halves(const Job& job, Job& below, size_t j, const Halves& halves,
                          std::vector<Job>& stack) {
        const uint64_t second = members_.with_values(layout_[j], job.members, halves.second);
        const uint64_t rows[2] = {job.members & ~second, second};
        bool is_open[2];
        const int64_t first = record_halves(job, j, halves, rows, is_open);
        below.depth = job.depth + 1;
        for (size_t b = 2; b-- > 0;) {  // so that the first is split first
            if (!is_open[b]) continue;
            below.node = first + int64_t(b);
            below.members = rows[b];
            below.n = size_t(__builtin_popcountll(rows[b]));
            below.key = child_key(job.key, b);
            stack.push_back(below);
        }
    }

    // `rows`: of either half. Returns the first child.
    int64_t record_halves(const Job& job, size_t j, const Halves& halves, const uint64_t (&rows)[2],
                          bool (&is_open)[2]) {
        const uint64_t missing = tells_missing(j) ? layout_[j].last : 0;
        const int64_t first = add_nodes(2);
        const int32_t missing_to = halves.first & missing    ? 0
                                   : halves.second & missing ? 1
                                                             : stop_here;
        const auto n_second = double(__builtin_popcountll(rows[1]));
        const auto largest = int32_t(right_is_larger(double(job.n) - n_second, n_second));
        record_split_to(job, j, largest, missing_to, first, 2);
        is_open[0] = record_half(first, halves.first & ~missing, rows[0], job.depth + 1);
        is_open[1] = record_half(first + 1, halves.second & ~missing, rows[1], job.depth + 1);
        return first;
    }

    void carry_out(const Job& job, Job& below, size_t j, const uint64_t* node_rows,
                   std::vector<Job>& stack) {
        if (!grouped_) below.alive.drop(j);
        below.depth = job.depth + 1;
        below.side = 1 - job.side;
        const size_t missing = problem_.columns[j].missing_code();
        const bool some_missing = tells_missing(j) && table_.sizes[missing] > 0;
        const bool own = some_missing && !learned_;
        find_branches(layout_[j].values);
        if (grouped_) gather_branches(j);
        const int64_t first = add_nodes(n_branches_);
        const int32_t missing_branch = own            ? int32_t(n_branches_) - 1
                                       : some_missing ? groups_.branch_of()[missing]
                                                      : stop_here;
        record_split_on(job, j, missing_branch, first);
        const BranchOfRow branch_of_row{layout_[j], grouped_ ? groups_.branch_of() : nullptr};
        if (job.members) members_.divide(branch_of_row, job.members, members_of_branch_);

        const size_t before = stack.size();
        record_children(job, below, first, own, stack);
        if (stack.size() > before && !job.members)
            move_rows(job, branch_of_row, node_rows, stack.data() + before, stack.size() - before);
    }

    // Those that are open are added to the stack, so that the first is split first.
    void record_children(const Job& job, Job& below, int64_t first, bool own,
                         std::vector<Job>& stack) {
        size_t begin = job.begin;
        const size_t before = stack.size();
        for (size_t branch = 0; branch < n_branches_; ++branch) {
            const size_t at = branches_[branch];
            const int64_t node = first + int64_t(branch);
            record_child(node, at, own && branch + 1 == n_branches_);
            if (is_open(&table_.cells[at * classes_], table_.sizes[at], below.depth)) {
                below.node = node;
                below.begin = begin;
                below.n = table_.sizes[at];
                if (job.members) below.members = members_of_branch_[at];
                if (draws_.any()) below.key = child_key(job.key, branch);
                stack.push_back(below);
            }
            begin += table_.sizes[at];
        }
        std::reverse(stack.begin() + std::ptrdiff_t(before), stack.end());
    }

    // To the children that are open.
    void move_rows(const Job& job, const BranchOfRow& branch, const uint64_t* node_rows,
                   const Job* open, size_t n_open) {
        const size_t n_places = grouped_ ? n_branches_ : branch.field.values;
        uint64_t* children_rows = rows(1 - job.side) + job.begin * stride_;
        if (!pieces_.empty()) {
            pieces_.move(pool_, work(job), branch, n_places, table_.sizes, children_rows);
        } else if (grouped_ && n_branches_ == 2) {
            const bool left = open[n_open - 1].begin == job.begin;
            const bool is_open[] = {left, n_open == 2 || !left};
            two_way_mover_.move(branch, node_rows, job.n, children_rows, stride_, table_.sizes[0],
                                is_open);
        } else {
            mover_.move(branch, n_places, node_rows, children_rows, stride_, counts_of_class_,
                        table_.cells, table_.sizes);
        }
    }

    bool tells_missing(size_t j) const { return layout_[j].values == problem_.columns[j].n_codes; }

    // The values that have rows. Written without a branch: which do is anybody's guess.
    void find_branches(size_t values) {
        n_branches_ = 0;
        for (size_t v = 0; v < values; ++v) {
            branches_[n_branches_] = v;
            n_branches_ += table_.sizes[v] > 0;
        }
    }

    // The groups of these, in the order of their first values.
    void gather_branches(size_t j) {
        const uint8_t* branch_of = groups_.branch_of();
        std::fill_n(values_of_branch_, n_branches_, 0);
        for (size_t i = 0; i < n_branches_; ++i)
            values_of_branch_[branch_of[branches_[i]]] |= uint64_t(1) << branches_[i];
        if (learned_ && tells_missing(j))  // in a branch of others
            for (size_t i = 0; i < n_branches_; ++i) values_of_branch_[i] &= layout_[j].mask;
        n_branches_ = groups_.gather(layout_[j], table_);
        for (size_t branch = 0; branch < n_branches_; ++branch) branches_[branch] = branch;
    }

    void record_split_on(const Job& job, size_t j, int32_t missing_branch, int64_t first) {
        const bool tested = problem_.missing == Policy::largest ||
                            problem_.missing == Policy::learned ||
                            problem_.unseen == Policy::largest;
        const int32_t largest = tested ? largest_of_branches() : stop_here;
        record_split_to(job, j, largest, missing_branch, first, n_branches_);
    }

    void record_split_to(const Job& job, size_t j, int32_t largest, int32_t missing_branch,
                         int64_t first, size_t n_branches) {
        Split split;
        split.column = int32_t(j);
        split.missing_to = missing_route(problem_, largest, missing_branch);
        split.unseen_to = unseen_route(problem_, largest, split.missing_to);
        record_split(job.node, split, first, n_branches);
    }

    int32_t largest_of_branches() {
        sizes_.clear();
        for (size_t branch = 0; branch < n_branches_; ++branch)
            sizes_.push_back(table_.sizes[branches_[branch]]);
        return largest_branch(sizes_);
    }

    // Of the rows that have some values; returns whether their node is open.
    bool record_half(int64_t child, uint64_t values, uint64_t rows, int64_t depth) {
        Node& node = grown_.nodes[size_t(child)];
        node.code = grown_.add_group_of(values);
        node.cases = double(__builtin_popcountll(rows));
        double* weights = weights_of(child);
        size_t present = 0;
        for (size_t c = 0; c < classes_; ++c) {
            const auto size = __builtin_popcountll(rows & members_.of_class(c));
            weights[c] = double(size);
            present += size > 0;
        }
        return present > 1 && may_be_split(node.cases, depth);
    }

    // `at`: where the table has its rows.
    void record_child(int64_t child, size_t at, bool missing) {
        Node& node = grown_.nodes[size_t(child)];
        if (missing)
            node.code = no_code;
        else
            node.code = grouped_ ? grown_.add_group_of(values_of_branch_[at]) : int32_t(at);
        node.cases = table_.sizes[at];
        double* weights = weights_of(child);
        for (size_t c = 0; c < classes_; ++c) weights[c] = table_.cells[at * classes_ + c];
    }

    Buffers& buffers_;
    const size_t classes_;
    const bool grouped_;  // values may share a branch
    const bool learned_;  // and missing rows one of these
    const BitLayout layout_;
    const size_t stride_;  // words of a row, an even number
    BitGroups groups_;
    Members members_;  // of the small node whose subtree is grown

    // Scratch, kept between nodes.
    ValueTable table_;                       // of the chosen column, by value and then by branch
    std::vector<uint32_t> counts_of_class_;  // rows of each class at the node
    Pieces pieces_;                          // of a node that is shared out
    size_t n_branches_ = 0;                  // of the chosen column

  private:
    std::vector<size_t> branches_;  // where the table has those with rows
    std::vector<double> sizes_;     // of branches
    uint64_t members_of_branch_[Field::most_values] = {};
    uint64_t values_of_branch_[Field::most_values] = {};
    RowMover mover_;
    TwoWayMover two_way_mover_;
};

}  // namespace branchwise
