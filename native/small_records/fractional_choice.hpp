// Which column splits a node of a subtree of few records, where cases are fractional.
//
// Records are numbered, and stay where they are. The records of a value, or of a node, are the bits
// of a word; what a node has of each is a list of weights. A column is admissible if each
// of its values has the cases of a leaf, which at small nodes few columns are: most are seen not to
// be from a few words.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "core/branch_impurity.hpp"
#include "core/score_bounds.hpp"
#include "core/tree.hpp"
#include "small_records/numbered_thresholds.hpp"

namespace branchwise {

class FractionalChoice : protected NumberedRecords {
  protected:
    // The ranks beside a threshold.
    struct Threshold {
        uint32_t low, high;
    };

    // An open node.
    struct Open {
        int64_t node, depth;
        Cases cases;
        Bits undivided;  // rows that are one case each
        Alive alive;
        int64_t steps[most];  // of each of them

        // Of a subtree of n rows.
        void copy(const Open& other, size_t n) {
            node = other.node;
            depth = other.depth;
            cases = other.cases;
            undivided = other.undivided;
            alive = other.alive;
            std::copy_n(other.steps, n, steps);
        }
    };

    FractionalChoice(const Problem& problem, const Impurities& impurities, const Rows& records,
                     Grown& grown)
        : NumberedRecords(problem, records),
          problem_(problem),
          impurities_(impurities),
          grown_(grown),
          width_(size_t(problem.n_classes)),
          ratio_(problem.criterion == Criterion::gain_ratio),
          all_may_be_tested_(!problem.average_gain &&
                             problem.cases_in_branch <= problem.cases_in_leaf),
          largest_gain_(problem.takes_largest_gain()),
          steps_in_leaf_(fewest_steps(problem.cases_in_leaf)),
          steps_of_case_(steps_of(1.0, problem.case_step)),
          thresholds_of_(problem.columns.size()),
          entropy_(impurities),
          thresholds_(problem, impurities),
          exact_(problem, impurities, records.most_codes()),
          estimates_(problem.columns.size()),
          sure_(problem.columns.size(), 1),
          candidates_(problem.columns.size()),
          known_(width_),
          totals_(width_) {
        for (size_t n = 0; n <= most; ++n) x_log2_x_[n] = n ? double(n) * std::log2(double(n)) : 0;
    }

    // For the subtree that has been loaded.
    void make_room() {
        parts_.resize(most_codes * classes_.size());
        total_steps_.resize(classes_.size());
    }

    // The column that splits now_, whose threshold is in thresholds_of_; -1 if none does.
    int choose() {
        find_admissible();
        if (admissible_.empty()) return -1;
        if (admissible_.size() == 1 && all_may_be_tested_ &&
            !records_.is_numeric(admissible_.front()))
            return int(admissible_.front());
        return choose_admissible();
    }

    // Also so many cases: their steps are the same.
    double weight_of(int64_t steps) const { return double(steps) * problem_.weight_step; }

    double* weights_of(int64_t node) { return &grown_.weights[size_t(node) * width_]; }

    // A column that is not tested below the node.
    void leave_out(const LocalColumn& column) {
        now_.alive[column.place / 64] &= ~(uint64_t(1) << column.place % 64);
    }

    // Add up the parts of cases of a column by value and class. What is left of the rows of a value
    // are as many cases as there are, so that no loop is as long as a value has parts, which nobody
    // could predict.
    void add_parts(const LocalColumn& column) {
        const size_t width = classes_.size();
        std::fill_n(parts_.begin(), (column.missing_code + 1) * width, 0);
        each_bit(now_.cases.rows & ~now_.undivided, [&](size_t row) {
            parts_[column.codes[row] * width + class_of_[row]] += now_.steps[row];
        });
    }

    // What rows of a code weigh in a class, in steps; the parts of the column have been added up.
    int64_t steps_of_class(Bits rows, uint32_t code, size_t k) const {
        const auto n = __builtin_popcountll(rows & now_.undivided & rows_of_class_[k]);
        return n * steps_of_case_ + parts_[code * classes_.size() + k];
    }

    const Problem& problem_;
    const Impurities& impurities_;
    Grown& grown_;
    const size_t width_;
    const bool ratio_;
    const bool all_may_be_tested_;  // all admissible columns, whatever they gain
    const bool largest_gain_;       // whether the best column is the one that gains most
    const int64_t steps_in_leaf_;
    const int64_t steps_of_case_;
    Open now_;
    std::vector<int64_t> parts_;            // steps by code and class
    std::vector<Threshold> thresholds_of_;  // by column

  private:
    // The fewest steps that are so many cases.
    int64_t fewest_steps(double cases) const {
        auto steps = int64_t(std::ceil(cases / problem_.case_step));
        while (weight_of(steps) < cases) ++steps;
        return steps;
    }

    // Columns whose values all have the cases of a leaf, and numbers. Those that are seen not to
    // vary are no longer alive.
    void find_admissible() {
        admissible_.clear();
        size_t n_alive = 0;
        for (uint64_t word : now_.alive) n_alive += size_t(__builtin_popcountll(word));
        const auto take = [&](uint32_t j) { admissible_.push_back(j); };
        if (admissible_columns_.are_many(n_alive)) {
            admissible_columns_.each(now_.cases, now_.steps, steps_in_leaf_, now_.alive, take);
        } else {
            for (size_t word = 0; word < now_.alive.size(); ++word)
                each_bit(now_.alive[word], [&](size_t bit) {
                    const uint32_t place = uint32_t(word * 64 + bit);
                    if (place < first_number_) look_at_alone(admissible_columns_.column_at(place));
                });
        }
        for (uint32_t j : numbers_)
            if (is_in(now_.alive, column_at(j))) take(j);
    }

    // Few columns are looked at one by one.
    void look_at_alone(uint32_t j) {
        const LocalColumn& column = column_at(j);
        size_t n_values = 0;
        for (uint32_t v = column.begin; v < column.end; ++v) {
            const Bits rows = rows_of(v) & now_.cases.rows;
            if (!rows) continue;
            ++n_values;
            if (rows & now_.cases.whole) continue;
            int64_t steps = 0;
            each_bit(rows, [&](size_t row) { steps += now_.steps[row]; });
            if (steps < steps_in_leaf_) return;
        }
        if (n_values > 1)
            admissible_.push_back(j);
        else
            leave_out(column);
    }

    // The impurity of rows of one case each.
    double impurity_of(Bits rows) const {
        double impurity = x_log2_x_[__builtin_popcountll(rows)];
        for (uint32_t k : present_)
            impurity -= x_log2_x_[__builtin_popcountll(rows & rows_of_class_[k])];
        return impurity;
    }

    // The most that a column can gain: its branches, and the rows that miss it, have no less
    // impurity than the rows among them have that are one case each. Exact impurities are sums of
    // terms that are rounded to a unit.
    double most_gain(uint32_t j, const Scale& scale) {
        const LocalColumn& column = column_at(j);
        if (column.is_number()) return std::numeric_limits<double>::infinity();
        double left = impurity_of(column.missing & now_.undivided);
        for (uint32_t v = column.begin; v < column.end; ++v)
            left += impurity_of(rows_of(v) & now_.undivided);
        const double drop = double(impurity_) * scale.unit - left;
        const auto terms = double((column.end - column.begin + 2) * (present_.size() + 2));
        return (drop + 3 * LogBounds::slack * scale.total + terms * scale.unit) / scale.total;
    }

    // Otherwise the rows of one case each say little of what columns can gain.
    bool most_are_undivided() const {
        return 2 * __builtin_popcountll(now_.undivided) >= __builtin_popcountll(now_.cases.rows);
    }

    // Estimate the columns that may be the best, those that may gain most first.
    void estimate_hopeful(const Scale& scale) {
        by_gain_.clear();
        for (uint32_t j : admissible_) {
            estimates_[j] = ScoreEstimate();
            by_gain_.emplace_back(-most_gain(j, scale), j);
        }
        std::sort(by_gain_.begin(), by_gain_.end());
        double top = no_score;
        for (const auto& [less, j] : by_gain_) {
            if (-less < scale.least(top)) return;
            estimate(j, scale);
            top = std::max(top, estimates_[j].score.least);
        }
    }

    int choose_admissible() {
        const Scale scale = problem_.quinlan_thresholds ? describe() : describe_roughly();
        if (largest_gain_ && most_are_undivided())
            estimate_hopeful(scale);
        else
            for (uint32_t j : admissible_) estimate(j, scale);
        hopeful_ = admissible_;
        if (problem_.average_gain && !keep_average(hopeful_, estimates_, problem_))
            return choose_exactly(admissible_);
        keep_hopeful(hopeful_, estimates_, no_score, scale);
        if (hopeful_.empty()) return -1;
        if (hopeful_.size() == 1 && sure_[hopeful_.front()]) return int(hopeful_.front());
        std::swap(hopeful_, exactly_);
        return choose_exactly(exactly_, false);
    }

    // Score columns exactly; C4.5's average is that of all of them.
    int choose_exactly(const std::vector<uint32_t>& columns, bool average = true) {
        const Scale scale = describe();
        for (uint32_t j : columns) {
            candidates_[j] = score(j, scale);
            thresholds_of_[j] = {candidates_[j].low, candidates_[j].high};
        }
        if (average) drop_below_average(candidates_, scale, problem_);
        const int best = first_best_column(candidates_, scale);
        for (uint32_t j : columns) candidates_[j] = Candidate();
        return best;
    }

    // Weights and classes of the node; returns its weight.
    double weigh_node() {
        const double* weights = weights_of(now_.node);
        double total = 0;
        present_.clear();
        std::fill(known_.begin(), known_.end(), 0.0);
        for (size_t k = 0; k < classes_.size(); ++k) {
            totals_[k] = weights[classes_[k]];
            total_steps_[k] = steps_of(totals_[k], problem_.weight_step);
            total += totals_[k];
            if (totals_[k] > 0) present_.push_back(uint32_t(k));
        }
        return total;
    }

    // These, and its impurity.
    Scale describe() {
        const double total = weigh_node();
        std::tie(size_impurity_, impurity_) = entropy_.of(total, totals_, present_);
        return {total, Impurities::noise_of(size_impurity_), impurities_, problem_};
    }

    // The same roughly, for estimates: they allow for that, and for less noise.
    Scale describe_roughly() {
        const double total = weigh_node();
        const LogBounds& logs = LogBounds::shared();
        size_impurity_ = impurities_.fixed(logs.x_log2_x(total));
        impurity_ = size_impurity_;
        for (uint32_t k : present_) impurity_ -= impurities_.fixed(logs.x_log2_x(totals_[k]));
        return {total, Impurities::noise_of(size_impurity_) + 1, impurities_, problem_};
    }

    void estimate(uint32_t j, const Scale& scale) {
        if (column_at(j).is_number()) return estimate_number(j, scale);
        sure_[j] = true;
        rough_.clear(present_);
        rough_.expect(double(impurity_) * impurities_.unit());
        estimates_[j] = ScoreEstimate();
        if (add_branches(column_at(j), scale, rough_))
            estimates_[j] = rough_.estimate(scale, double(size_impurity_) * impurities_.unit());
    }

    // A column that does not vary is no longer alive.
    void estimate_number(uint32_t j, const Scale& scale) {
        const LocalColumn& column = column_at(j);
        estimates_[j] = ScoreEstimate();
        sure_[j] = true;
        if (!load_numbers(column)) {
            leave_out(column);
            return;
        }
        Candidate candidate;
        if (!thresholds_.estimate(node_of(scale), column.missing & now_.cases.rows, now_.steps,
                                  class_of_, close_values(j), estimates_[j], candidate, sure_[j])) {
            candidate = score(j, scale);
            estimates_[j] = ScoreEstimate::exact(candidate, scale);
            sure_[j] = true;
        }
        thresholds_of_[j] = {candidate.low, candidate.high};
    }

    bool load_numbers(const LocalColumn& column) {
        return thresholds_.load(*column.ordered, now_.cases.rows & ~column.missing, now_.steps,
                                class_of_);
    }

    // The numbers of a column where some are too close for a threshold.
    const DistinctNumbers* close_values(uint32_t j) const {
        const bool close = problem_.quinlan_thresholds && !records_.all_apart(j);
        return close ? &records_.values(j) : nullptr;
    }

    NumberedNode node_of(const Scale& scale) const {
        return {scale, present_, total_steps_, impurity_, size_impurity_};
    }

    Candidate score_number(uint32_t j, const Scale& scale) {
        const LocalColumn& column = column_at(j);
        if (!load_numbers(column)) return Candidate();
        return thresholds_.score(node_of(scale), column.missing & now_.cases.rows, now_.steps,
                                 class_of_, close_values(j));
    }

    Candidate score(uint32_t j, const Scale& scale) {
        if (column_at(j).is_number()) return score_number(j, scale);
        Candidate candidate;
        exact_.clear(present_);
        exact_.expect(impurity_);
        if (!add_branches(column_at(j), scale, exact_)) return candidate;
        exact_.sum();
        candidate.drop = std::max<int64_t>(exact_.drop(), 0);
        candidate.score = scale.score(candidate.drop, ratio_ ? size_impurity_ - exact_.sizes() : 0);
        return candidate;
    }

    // As ColumnScorer::add_branches does for an admissible column.
    template <typename Impurities>
    bool add_branches(const LocalColumn& column, const Scale& scale, Impurities& impurities) {
        add_parts(column);
        if (const Bits missing = column.missing & now_.cases.rows) {
            const double size = weigh(missing, column.missing_code);
            for (uint32_t k : present_) known_[k] = totals_[k] - cell_[k];
            impurities.set_known(known_.data(), scale.total - size, size);
        }
        size_t large = 0;
        for (uint32_t v = column.begin; v < column.end; ++v) {
            const Bits rows = rows_of(v) & now_.cases.rows;
            if (!rows) continue;
            const double size = weigh(rows, code_of(v));
            large += size >= problem_.cases_in_branch;
            impurities.add_branch(cell_, size);
        }
        return large >= 2;
    }

    // The weight of the rows of a code; by class, into cell_.
    double weigh(Bits rows, uint32_t code) {
        int64_t all = 0;
        for (uint32_t k : present_) {
            const int64_t steps = steps_of_class(rows, code, k);
            cell_[k] = weight_of(steps);
            all += steps;
        }
        return weight_of(all);
    }

    // Of the node.
    std::vector<uint32_t> admissible_, hopeful_, exactly_;  // columns
    std::vector<uint32_t> present_;                         // classes, by local number
    int64_t impurity_ = 0, size_impurity_ = 0;

    // Scratch.
    NodeEntropy entropy_;
    NumberedThresholds thresholds_;
    BranchImpurities<double> exact_;
    ImpurityBounds rough_;
    std::vector<ScoreEstimate> estimates_;  // by column
    std::vector<uint8_t> sure_;             // by column: whether it is known which threshold it is
    std::vector<Candidate> candidates_;     // by column; as made, but while columns are scored
    std::vector<double> known_, totals_;    // by local number of a class
    std::vector<int64_t> total_steps_;      // the same in steps
    std::vector<std::pair<double, uint32_t>> by_gain_;  // the most that columns gain, negative
    double cell_[most];
    double x_log2_x_[most + 1];
};

}  // namespace branchwise
