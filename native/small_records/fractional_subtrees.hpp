// Whole subtrees of few records, where cases are fractional: a record that misses the column of a
// split goes down every branch, so that most nodes of such a tree are small, and share records.
//
// It knows columns of codes below 64, with a branch for each value, numbers, and rows without
// weights.

#pragma once

#include "core/grower.hpp"
#include "small_records/fractional_choice.hpp"

namespace branchwise {

class FractionalSubtrees : FractionalChoice {
  public:
    using FractionalChoice::most;
    using FractionalChoice::Rows;

    // Where leaves, or two branches of a split, have cases, a subtree has no more splits than its
    // root has cases.
    static bool suits(const Problem& problem, const Impurities& impurities) {
        int exponent;
        return problem.fractions && !problem.weights && problem.missing == Policy::split &&
               problem.branching == Branching::values && !problem.tests_splits &&
               !problem.max_features && !problem.random_splits &&
               std::max(problem.cases_in_leaf, problem.cases_in_branch) > 0.5 &&
               problem.weight_in_leaf <= 0 && problem.min_gain <= 0 &&
               ImpurityBounds::serve(problem, impurities) &&
               problem.weight_step == problem.case_step &&
               std::frexp(problem.weight_step, &exponent) == 0.5;
    }

    FractionalSubtrees(const Problem& problem, const Impurities& impurities, const Rows& records,
                       Grown& grown)
        : FractionalChoice(problem, impurities, records, grown) {}

    // Grow the subtree of an open node of at most so many records; false if it has columns that
    // are not known here.
    bool grow(const RecordJob& job) {
        if (!load(job, weights_of(job.node))) return false;
        make_room();
        open_.resize(std::max<size_t>(open_.size(), 1));
        n_open_ = 1;
        Open& root = open_.front();
        root.node = job.node;
        root.depth = job.depth;
        Bits whole = 0, tiny = 0, undivided = 0;
        root.alive = every_column_;
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size()) {
            const int64_t steps = root.steps[i] = records_.steps(record);
            whole |= Bits(steps >= steps_in_leaf_) << i;
            tiny |= Bits(4 * steps <= steps_in_leaf_) << i;
            undivided |= Bits(steps == steps_of_case_) << i;
        }
        root.cases = {every_row(), whole, tiny};
        root.undivided = undivided;
        while (n_open_) {
            now_.copy(open_[--n_open_], n_);
            const int chosen = choose();
            if (chosen >= 0) carry_out(uint32_t(chosen));
        }
        return true;
    }

  private:
    struct Branch {
        uint32_t code;
        Bits rows;
    };

    void carry_out(uint32_t j) {
        const LocalColumn& column = column_at(j);
        if (column.is_number())
            make_sides(column);
        else
            make_values(column);
        const double known = count_branches();
        const size_t first = grown_.add_nodes(n_branches_, width_);
        record_split(j, first);
        for (size_t b = 0; b < n_branches_; ++b)
            add_child(first + b, branches_[b], column.missing & now_.cases.rows, sizes_[b] / known,
                      &counts_[b * classes_.size()]);
    }

    // The weights of the branches, whose sum is returned, and the steps of each class.
    double count_branches() {
        const size_t width = classes_.size();
        counts_.resize(std::max(counts_.size(), n_branches_ * width));
        sizes_.resize(n_branches_);
        double known = 0;
        for (size_t b = 0; b < n_branches_; ++b) {
            int64_t all = 0;
            for (size_t k = 0; k < width; ++k) {
                const int64_t steps = steps_of_class(branches_[b].rows, branches_[b].code, k);
                counts_[b * width + k] = steps;
                all += steps;
            }
            sizes_[b] = weight_of(all);
            known += sizes_[b];
        }
        return known;
    }

    // The two sides of a threshold, the lower one first.
    void make_sides(const LocalColumn& column) {
        const NumberedOrder& ordered = *column.ordered;
        const uint32_t low = thresholds_of_[column.column].low;
        const size_t width = classes_.size();
        std::fill_n(parts_.begin(), 2 * width, 0);
        branches_[0] = {0, 0};
        branches_[1] = {1, 0};
        n_branches_ = 2;
        each_bit(now_.cases.rows & ~column.missing, [&](size_t row) {
            const size_t side = ordered.rank[ordered.place[row]] > low;
            branches_[side].rows |= Bits(1) << row;
            if (!(now_.undivided >> row & 1))
                parts_[side * width + class_of_[row]] += now_.steps[row];
        });
    }

    // A branch for each value; a category is not tested twice.
    void make_values(const LocalColumn& column) {
        leave_out(column);
        add_parts(column);
        n_branches_ = 0;
        for (uint32_t v = column.begin; v < column.end; ++v) {
            branches_[n_branches_] = {code_of(v), rows_of(v) & now_.cases.rows};
            n_branches_ += branches_[n_branches_].rows != 0;
        }
    }

    void record_split(uint32_t j, size_t first) {
        Node& node = grown_.nodes[size_t(now_.node)];
        node.column = int32_t(j);
        if (column_at(j).is_number())
            node.threshold = threshold_between(records_.values(j), thresholds_of_[j].low,
                                               thresholds_of_[j].high, problem_.positions[j]);
        node.missing_to = every_branch;
        node.unseen_to = unseen_route(problem_, largest_branch(sizes_), every_branch);
        node.n_children = int32_t(n_branches_);
        node.first_child = uint32_t(first);
    }

    // Rows of a branch, whose weights by class are given, and a fraction of those that miss the
    // column.
    void add_child(size_t node, const Branch& branch, Bits missing, double fraction,
                   int64_t* counts) {
        if (n_open_ == open_.size()) open_.resize(2 * n_open_);
        Open& child = open_[n_open_];
        child.cases = now_.cases.among(branch.rows);
        each_bit(missing, [&](size_t row) {
            const auto steps = int64_t(std::rint(double(now_.steps[row]) * fraction));
            parts_of_missing_[row] = steps;
            if (steps > 0) child.cases.add(row, steps, steps_in_leaf_);
            counts[class_of_[row]] += steps;
        });
        double* weights = weights_of(int64_t(node));
        if (classes_.size() < width_) std::fill_n(weights, width_, 0.0);
        int64_t all = 0;
        size_t present = 0;
        for (size_t k = 0; k < classes_.size(); ++k) {
            weights[classes_[k]] = weight_of(counts[k]);
            all += counts[k];
            present += counts[k] > 0;
        }
        grown_.nodes[node].code = int32_t(branch.code);
        grown_.nodes[node].cases = weight_of(all);
        child.depth = now_.depth + 1;
        if (present < 2 || grown_.nodes[node].cases < problem_.cases_to_split) return;
        if (problem_.max_depth >= 0 && child.depth >= problem_.max_depth) return;
        child.node = int64_t(node);
        child.undivided = branch.rows & now_.undivided;
        child.alive = now_.alive;
        std::copy_n(now_.steps, n_, child.steps);
        each_bit(missing, [&](size_t row) { child.steps[row] = parts_of_missing_[row]; });
        ++n_open_;
    }

    // Of the subtree.
    std::vector<Open> open_;  // the first n_open_
    size_t n_open_ = 0;

    // Scratch.
    Branch branches_[most_codes + 1];  // the first n_branches_; one more is written to
    size_t n_branches_ = 0;
    int64_t parts_of_missing_[most];  // steps by row, of one branch
    std::vector<double> sizes_;
    std::vector<int64_t> counts_;  // steps by branch and class
};

}  // namespace branchwise
