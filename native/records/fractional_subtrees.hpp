// Whole subtrees of few records, where cases are fractional: a record that misses the column of a
// split goes down every branch, so that most nodes of such a tree are small, and share records.
//
// Records are numbered, and stay where they are. The records of a value, or of a node, are the bits
// of a word; what a node has of each is a list of weights. A column is admissible if each
// of its values has the cases of a leaf, which at small nodes few columns are: most are seen not to
// be from a few words.
//
// It knows columns of codes below 64, with a branch for each value, and rows without weights.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>

#include "core/branch_impurity.hpp"
#include "core/grower.hpp"
#include "core/score_bounds.hpp"
#include "records/numbered_records.hpp"

namespace branchwise {

class FractionalSubtrees : NumberedRecords {
  public:
    using NumberedRecords::most;
    using NumberedRecords::Rows;

    // Where leaves have cases, a subtree cannot have more than its root has.
    static bool suits(const Problem& problem, const Impurities& impurities) {
        int exponent;
        return problem.fractions && !problem.weights && problem.missing == Policy::split &&
               problem.branching == Branching::values && !problem.tests_splits &&
               !problem.max_features && !problem.random_splits && problem.cases_in_leaf > 0.5 &&
               problem.weight_in_leaf <= 0 && problem.min_gain <= 0 &&
               ImpurityBounds::serve(problem, impurities) &&
               problem.weight_step == problem.case_step &&
               std::frexp(problem.weight_step, &exponent) == 0.5;
    }

    FractionalSubtrees(const Problem& problem, const Impurities& impurities, const Rows& records,
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
          entropy_(impurities),
          exact_(problem, impurities, records.most_codes()),
          estimates_(problem.columns.size()),
          candidates_(problem.columns.size()),
          known_(width_),
          totals_(width_) {
        for (size_t n = 0; n <= most; ++n) x_log2_x_[n] = n ? double(n) * std::log2(double(n)) : 0;
    }

    // Grow the subtree of an open node of at most so many records; false if it has columns that
    // are not known here.
    bool grow(const RecordJob& job) {
        if (!load(job, weights_of(job.node))) return false;
        counts_.resize(most_codes * classes_.size());
        open_.resize(std::max<size_t>(open_.size(), 1));
        n_open_ = 1;
        Open& root = open_.front();
        root.node = job.node;
        root.depth = job.depth;
        root.rows = root.whole = 0;
        root.alive = every_column();
        const uint8_t* record = records_.first(job);
        for (size_t i = 0; i < job.n; ++i, record += records_.size())
            root.put(i, records_.steps(record), steps_in_leaf_);
        while (n_open_) {
            now_.copy(open_[--n_open_], n_);
            split();
        }
        return true;
    }

  private:
    using Alive = std::array<uint64_t, most_columns / 64>;  // a bit for each column

    struct Branch {
        uint32_t code;
        Bits rows;
    };

    // An open node.
    struct Open {
        int64_t node, depth;
        Bits rows;
        Bits whole;  // those with the cases of a leaf
        Alive alive;
        int64_t steps[most];  // of each of them

        // Of a subtree of n rows.
        void copy(const Open& other, size_t n) {
            node = other.node;
            depth = other.depth;
            rows = other.rows;
            whole = other.whole;
            alive = other.alive;
            std::copy_n(other.steps, n, steps);
        }

        void put(size_t row, int64_t of_row, int64_t in_leaf) {
            steps[row] = of_row;
            rows |= Bits(1) << row;
            whole |= Bits(of_row >= in_leaf) << row;
        }
    };

    // Also so many cases: their steps are the same.
    double weight_of(int64_t steps) const { return double(steps) * problem_.weight_step; }

    // The fewest steps that are so many cases.
    int64_t fewest_steps(double cases) const {
        auto steps = int64_t(std::ceil(cases / problem_.case_step));
        while (weight_of(steps) < cases) ++steps;
        return steps;
    }

    Alive every_column() const {
        Alive alive = {};
        for (size_t k = 0; k < columns_.size(); ++k) alive[k / 64] |= uint64_t(1) << (k % 64);
        return alive;
    }

    // ---- the choice ----------------------------------------------------------------

    double* weights_of(int64_t node) { return &grown_.weights[size_t(node) * width_]; }

    // The open node now_; it stays a leaf if no column is admissible.
    void split() {
        find_admissible();
        if (admissible_.empty()) return;
        if (admissible_.size() == 1 && all_may_be_tested_) return carry_out(admissible_.front());
        const int chosen = choose();
        if (chosen >= 0) carry_out(uint32_t(chosen));
    }

    // Columns whose values all have the cases of a leaf. Those that do not vary are no longer
    // alive.
    void find_admissible() {
        if (is_narrow())
            find_admissible(narrow_.data());
        else
            find_admissible(wide_.data());
    }

    // What the values of a column are like at the node.
    struct Kinds {
        bool several;
        bool thin;      // a single row of one has too few cases
        bool doubtful;  // rows have too few each
    };

    template <typename Word>
    void find_admissible(const Word* rows_of_values) {
        admissible_.clear();
        for (size_t word = 0; word * 64 < columns_.size(); ++word)
            each_bit(now_.alive[word], [&](size_t bit) {
                const LocalColumn& column = columns_[word * 64 + bit];
                const Kinds kinds = kinds_of(column, rows_of_values);
                if (!kinds.several)
                    now_.alive[word] &= ~(uint64_t(1) << bit);
                else if (!kinds.thin && !(kinds.doubtful && has_thin_value(column)))
                    admissible_.push_back(column.column);
            });
    }

    // A few values at a time; those beyond the last of a column have no rows.
    template <typename Word>
    Kinds kinds_of(const LocalColumn& column, const Word* rows_of_values) const {
        using Words [[gnu::vector_size(16)]] = Word;
        constexpr size_t together = sizeof(Words) / sizeof(Word);
        static_assert(lanes % together == 0, "values of a column fill their words");
        const auto of_node = Word(now_.rows), whole = Word(now_.whole);
        Words thin = {}, doubtful = {};
        int n_bytes = 0;  // of values that have rows
        for (size_t v = column.begin; v < column.end; v += together) {
            Words rows;
            std::memcpy(&rows, rows_of_values + v, sizeof rows);
            rows &= of_node;
            const Words several = rows & (rows - 1);
            const auto any = reinterpret_cast<Words>(rows != 0);
            const auto few = reinterpret_cast<Words>((rows & whole) == 0);
            const auto single = reinterpret_cast<Words>(several == 0);
            n_bytes += __builtin_popcount(highest_bits(reinterpret_cast<Lanes>(any)));
            thin |= any & single & few;
            doubtful |= ~single & few;
        }
        return {n_bytes > int(sizeof(Word)), highest_bits(reinterpret_cast<Lanes>(thin)) != 0,
                highest_bits(reinterpret_cast<Lanes>(doubtful)) != 0};
    }

    // Add up the cases of values of which no row has enough.
    bool has_thin_value(const LocalColumn& column) const {
        for (uint32_t v = column.begin; v < column.end; ++v) {
            const Bits rows = rows_of(v) & now_.rows;
            if (!rows || rows & now_.whole) continue;
            int64_t steps = 0;
            each_bit(rows, [&](size_t row) { steps += now_.steps[row]; });
            if (steps < steps_in_leaf_) return true;
        }
        return false;
    }

    // The impurity of rows of the weight 1.
    double impurity_of(Bits rows) const {
        double impurity = x_log2_x_[__builtin_popcountll(rows)];
        for (uint32_t k : present_)
            impurity -= x_log2_x_[__builtin_popcountll(rows & rows_of_class_[k])];
        return impurity;
    }

    // The most that a column can gain: its branches, and the rows that miss it, have no less
    // impurity than the rows among them have that are the cases of a leaf each. Exact impurities
    // are sums of terms that are rounded to a unit.
    double most_gain(uint32_t j, const Scale& scale) const {
        const LocalColumn& column = columns_[local_[j]];
        double left = impurity_of(column.missing & now_.whole);
        for (uint32_t v = column.begin; v < column.end; ++v)
            left += impurity_of(rows_of(v) & now_.whole);
        const double drop = double(impurity_) * scale.unit - left * weight_of(steps_in_leaf_);
        const auto terms = double((column.end - column.begin + 2) * (present_.size() + 2));
        return (drop + LogBounds::slack * scale.total + terms * scale.unit) / scale.total;
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

    // As RecordGrower::choose_roughly does; -1 if no column is to be tested.
    int choose() {
        const Scale scale = describe();
        if (largest_gain_)
            estimate_hopeful(scale);
        else
            for (uint32_t j : admissible_) estimate(j, scale);
        hopeful_ = admissible_;
        if (problem_.average_gain && !keep_average(hopeful_, estimates_, problem_))
            return choose_exactly(admissible_, scale);
        keep_hopeful(hopeful_, estimates_, no_score, scale);
        if (hopeful_.empty()) return -1;
        if (hopeful_.size() == 1) return int(hopeful_.front());
        std::swap(hopeful_, exactly_);
        return choose_exactly(exactly_, scale, false);
    }

    // Score columns exactly; C4.5's average is that of all of them.
    int choose_exactly(const std::vector<uint32_t>& columns, const Scale& scale,
                       bool average = true) {
        for (uint32_t j : columns) candidates_[j] = score(j, scale);
        if (average) drop_below_average(candidates_, scale, problem_);
        const int best = first_best_column(candidates_, scale);
        for (uint32_t j : columns) candidates_[j] = Candidate();
        return best;
    }

    // Weights, classes and impurity of the node.
    Scale describe() {
        const double* weights = weights_of(now_.node);
        double total = 0;
        present_.clear();
        for (size_t k = 0; k < classes_.size(); ++k) {
            totals_[k] = weights[classes_[k]];
            total += totals_[k];
            if (totals_[k] > 0) present_.push_back(uint32_t(k));
        }
        std::tie(size_impurity_, impurity_) = entropy_.of(total, totals_, present_);
        return {total, Impurities::noise_of(size_impurity_), impurities_, problem_};
    }

    void estimate(uint32_t j, const Scale& scale) {
        rough_.clear(present_);
        rough_.expect(double(impurity_) * impurities_.unit());
        estimates_[j] = ScoreEstimate();
        if (add_branches(j, scale, rough_))
            estimates_[j] = rough_.estimate(scale, double(size_impurity_) * impurities_.unit());
    }

    Candidate score(uint32_t j, const Scale& scale) {
        Candidate candidate;
        exact_.clear(present_);
        exact_.expect(impurity_);
        if (!add_branches(j, scale, exact_)) return candidate;
        exact_.sum();
        candidate.drop = std::max<int64_t>(exact_.drop(), 0);
        candidate.score = scale.score(candidate.drop, ratio_ ? size_impurity_ - exact_.sizes() : 0);
        return candidate;
    }

    // As ColumnScorer::add_branches does for an admissible column.
    template <typename Impurities>
    bool add_branches(uint32_t j, const Scale& scale, Impurities& impurities) {
        const LocalColumn& column = columns_[local_[j]];
        count(column);
        if (column.missing & now_.rows) {
            const double size = weigh(column.missing_code);
            std::fill(known_.begin(), known_.end(), 0.0);
            for (uint32_t k : present_) known_[k] = totals_[k] - cell_[k];
            impurities.set_known(known_.data(), scale.total - size, size);
        }
        size_t large = 0;
        for (uint32_t v = column.begin; v < column.end; ++v) {
            if (!(rows_of(v) & now_.rows)) continue;
            const double size = weigh(code_of(v));
            large += size >= problem_.cases_in_branch;
            impurities.add_branch(cell_, size);
        }
        return large >= 2;
    }

    // Weights of the values of a column by class, into counts_.
    void count(const LocalColumn& column) {
        const size_t width = classes_.size();
        const auto clear = [&](size_t code) { std::fill_n(&counts_[code * width], width, 0); };
        for (uint32_t v = column.begin; v < column.end; ++v) clear(code_of(v));
        clear(column.missing_code);
        each_bit(now_.rows, [&](size_t row) {
            counts_[column.codes[row] * width + class_of_[row]] += now_.steps[row];
        });
    }

    // The weight of a value that was counted; by class, into cell_.
    double weigh(uint32_t code) {
        const int64_t* const counts = &counts_[code * classes_.size()];
        int64_t all = 0;
        for (uint32_t k : present_) {
            cell_[k] = weight_of(counts[k]);
            all += counts[k];
        }
        return weight_of(all);
    }

    // ---- carrying out --------------------------------------------------------------

    void carry_out(uint32_t j) {
        const LocalColumn& column = columns_[local_[j]];
        now_.alive[local_[j] / 64] &= ~(uint64_t(1) << (local_[j] % 64));
        count(column);
        branches_.resize(column.end - column.begin);
        size_t n_branches = 0;
        for (uint32_t v = column.begin; v < column.end; ++v) {
            branches_[n_branches].code = code_of(v);
            branches_[n_branches].rows = rows_of(v) & now_.rows;
            n_branches += branches_[n_branches].rows != 0;
        }
        branches_.resize(n_branches);
        const size_t width = classes_.size();
        sizes_.clear();
        double known = 0;
        for (const Branch& branch : branches_) {
            const auto counts = counts_.begin() + ptrdiff_t(branch.code * width);
            sizes_.push_back(
                weight_of(std::accumulate(counts, counts + ptrdiff_t(width), int64_t(0))));
            known += sizes_.back();
        }
        const size_t first = grown_.add_nodes(branches_.size(), width_);
        record_split(j, first);
        for (size_t b = 0; b < branches_.size(); ++b)
            add_child(first + b, branches_[b], column.missing & now_.rows, sizes_[b] / known);
    }

    void record_split(uint32_t j, size_t first) {
        Node& node = grown_.nodes[size_t(now_.node)];
        node.column = int32_t(j);
        node.missing_to = every_branch;
        node.unseen_to = unseen_route(problem_, largest_branch(sizes_), every_branch);
        node.n_children = int32_t(branches_.size());
        node.first_child = uint32_t(first);
    }

    // Rows of a value that was counted, and a fraction of those that miss the column.
    void add_child(size_t node, const Branch& value, Bits missing, double fraction) {
        if (n_open_ == open_.size()) open_.resize(2 * n_open_);
        Open& child = open_[n_open_];
        child.rows = value.rows;
        child.whole = value.rows & now_.whole;
        std::copy_n(now_.steps, n_, child.steps);
        int64_t* const counts = &counts_[value.code * classes_.size()];
        each_bit(missing, [&](size_t row) {
            const auto steps = int64_t(std::rint(double(now_.steps[row]) * fraction));
            if (steps > 0) child.put(row, steps, steps_in_leaf_);
            counts[class_of_[row]] += steps;
        });
        double* weights = weights_of(int64_t(node));
        std::fill_n(weights, width_, 0.0);
        int64_t all = 0;
        size_t present = 0;
        for (size_t k = 0; k < classes_.size(); ++k) {
            weights[classes_[k]] = weight_of(counts[k]);
            all += counts[k];
            present += counts[k] > 0;
        }
        grown_.nodes[node].code = int32_t(value.code);
        grown_.nodes[node].cases = weight_of(all);
        child.node = int64_t(node);
        child.depth = now_.depth + 1;
        child.alive = now_.alive;
        n_open_ += present > 1 && grown_.nodes[node].cases >= problem_.cases_to_split &&
                   (problem_.max_depth < 0 || child.depth < problem_.max_depth);
    }

    const Problem& problem_;
    const Impurities& impurities_;
    Grown& grown_;
    const size_t width_;
    const bool ratio_;
    const bool all_may_be_tested_;  // all admissible columns, whatever they gain
    const bool largest_gain_;       // whether the best column is the one that gains most
    const int64_t steps_in_leaf_;

    // Of the subtree.
    std::vector<Open> open_;  // the first n_open_
    size_t n_open_ = 0;

    // Of the node.
    Open now_;
    std::vector<uint32_t> admissible_, hopeful_, exactly_;  // columns
    std::vector<uint32_t> present_;                         // classes, by local number
    int64_t impurity_ = 0, size_impurity_ = 0;

    // Scratch.
    NodeEntropy entropy_;
    BranchImpurities<double> exact_;
    ImpurityBounds rough_;
    std::vector<ScoreEstimate> estimates_;  // by column
    std::vector<Candidate> candidates_;     // by column; as made, but while columns are scored
    std::vector<double> known_, totals_;    // by local number of a class
    std::vector<int64_t> counts_;           // steps by code and class
    std::vector<std::pair<double, uint32_t>> by_gain_;  // the most that columns gain, negative
    std::vector<Branch> branches_;
    std::vector<double> sizes_;
    double cell_[most];
    double x_log2_x_[most + 1];
};

}  // namespace branchwise
