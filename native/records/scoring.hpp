// Scoring the columns of a node of records. Every thread has a scorer of its own.

#pragma once

#include "core/branch_impurity.hpp"
#include "core/random_splits.hpp"
#include "groups/categories.hpp"
#include "records/counts.hpp"
#include "records/learned_missing.hpp"
#include "core/score_bounds.hpp"

namespace branchwise {

// A node that may be split.
template <typename Weight>
struct Weighed {
    const RecordJob& job;
    const std::vector<Weight>& totals;     // class weights
    const std::vector<uint32_t>& classes;  // that it has
    double total;                          // weight
    double cases;
};

// One whose columns are scored: the same for all of them.
template <typename Weight>
struct Scored : Weighed<Weight> {
    int64_t impurity;
    int64_t size_impurity;  // of its weight, for the gain ratio
    Scale scale;
};

template <typename W>
class ColumnScorer {
  public:
    using Weight = typename Records<W>::Weight;

    ColumnScorer(const Problem& problem, const Impurities& impurities, const Records<W>& records,
                 const JointCounts<W>& joint)
        : problem_(problem),
          impurities_(impurities),
          records_(records),
          classes_(size_t(problem.n_classes)),
          ratio_(problem.criterion == Criterion::gain_ratio),
          counts_(problem, records, joint),
          sweeps_(problem, impurities, records),
          of_subtree_(problem, impurities, records),
          sums_(records, classes_),
          known_(classes_),
          missing_(classes_),
          left_(classes_),
          grouper_(problem, impurities),
          learned_grouper_(problem, impurities),
          impurities_of_(problem, impurities, records.most_codes()) {}

    // `least` is the least score that is of any use.
    Candidate score(const Scored<Weight>& node, size_t column, double least = no_score) {
        if (records_.is_numeric(column)) return score_number(node, column, least);
        return problem_.branching == Branching::values ? score_values(node, column)
                                                       : score_groups(node, column);
    }

    // The score of a column, roughly. Of `candidate`, whether it varies, and its threshold if it
    // is sure which one; else `sure` is set to false.
    ScoreEstimate estimate(const Scored<Weight>& node, size_t column, Candidate& candidate,
                           char& sure) {
        sure = true;
        ScoreEstimate estimate;
        if constexpr (weighted) {
            const auto estimate_any = [&](const auto& list) {
                return estimate_list(node, column, list, candidate, sure, estimate);
            };
            if (records_.is_list(column) && !problem_.random_splits &&
                records_.with_list(node.job, column, estimate_any))
                return estimate;
            if (!records_.is_numeric(column) && problem_.branching == Branching::values) {
                impurity_bounds_.clear(node.classes);
                impurity_bounds_.expect(double(node.impurity) * impurities_.unit());
                if (add_branches(node, column, impurity_bounds_, candidate.varies))
                    estimate = impurity_bounds_.estimate(
                        node.scale, double(node.size_impurity) * impurities_.unit());
                return estimate;
            }
            sure = true;
            candidate = score(node, column);
            return ScoreEstimate::exact(candidate, node.scale);
        }
        return estimate;
    }

    // The values of a column at a node and the groups they are put in; and what is missing.
    struct Groups {
        Values<Weight> values;
        std::vector<uint32_t> group;  // by value
        size_t count = 0;
        std::vector<Weight> missing;  // class weights
        Weight missing_size = 0;
        double missing_cases = 0;
        int32_t missing_to = stop_here;  // their group, where it is learned
    };

    const Groups& group_values(const Scored<Weight>& node, size_t j) {
        collect_values(node, j);
        groups_.missing_to = stop_here;
        for (size_t c = 0; c < classes_; ++c) known_[c] = node.totals[c] - groups_.missing[c];
        if (problem_.random_splits) return group_at_random(node, j);
        if (problem_.missing == Policy::learned && groups_.missing_size > 0)
            return group_with_missing(node);
        Weight known_size = Weight(node.scale.total) - groups_.missing_size;
        const int64_t outside = ratio_ ? impurities_.x_log2_x(Weight(node.scale.total)) -
                                             impurities_.x_log2_x(groups_.missing_size)
                                       : 0;
        groups_.group =
            grouper_.group(groups_.values, impurity(known_, known_size), outside, node.scale);
        count_groups();
        return groups_;
    }

    // Also of use where a split is carried out.
    ValueCounts<W>& counts() { return counts_; }

  private:
    static constexpr bool weighted = Records<W>::weighted;

    int64_t impurity(const std::vector<Weight>& weights, Weight total) const {
        return impurities_.impurity(problem_.criterion, weights.data(), problem_.n_classes, total);
    }

    // One branch per value: hand their weights to `impurities`, and return whether the column
    // may be tested.
    template <typename Impurities>
    bool add_branches(const Scored<Weight>& node, size_t j, Impurities& impurities, bool& varies) {
        const uint32_t missing =
            problem_.missing == Policy::branch ? no_value : records_.missing_code(j);
        size_t branches = 0, large = 0;
        bool admissible = true;
        counts_.for_each_value(node.job, j, node.classes,
                               [&](uint32_t value, const Weight* cell, Weight size, double cases) {
                                   if (value == missing) {
                                       for (size_t c = 0; c < classes_; ++c)
                                           known_[c] = node.totals[c] - cell[c];
                                       impurities.set_known(known_.data(),
                                                            Weight(node.scale.total) - size, size);
                                       return;
                                   }
                                   ++branches;
                                   cases = cases_for_bars(problem_, size, cases);
                                   large += cases >= problem_.cases_in_branch;
                                   admissible = admissible && cases >= problem_.cases_in_leaf &&
                                                double(size) >= problem_.weight_in_leaf;
                                   if (admissible) impurities.add_branch(cell, size);
                               });
        varies = branches >= 2;
        return large >= 2 && admissible;
    }

    Candidate score_values(const Scored<Weight>& node, size_t j) {
        Candidate candidate;
        impurities_of_.clear(node.classes);
        impurities_of_.expect(node.impurity);
        if (!add_branches(node, j, impurities_of_, candidate.varies)) return candidate;
        candidate.possible = true;
        impurities_of_.sum();
        const int64_t drop = std::max<int64_t>(impurities_of_.drop(), 0);
        if (!problem_.average_gain && !node.scale.enough(drop)) return candidate;
        const int64_t information = ratio_ ? node.size_impurity - impurities_of_.sizes() : 0;
        candidate.score = node.scale.score(drop, information);
        candidate.drop = drop;
        return candidate;
    }

    static constexpr uint32_t no_value = ~uint32_t(0);

    const Groups& group_with_missing(const Scored<Weight>& node) {
        const MissingCases<Weight> missing{&groups_.missing, groups_.missing_size,
                                           groups_.missing_cases};
        groups_.group = learned_grouper_.group(groups_.values, missing, node.impurity,
                                               node.size_impurity, node.scale, groups_.missing_to);
        count_groups();
        return groups_;
    }

    // Missing cases whose group is learned join the one that weighs more.
    const Groups& group_at_random(const Scored<Weight>& node, size_t j) {
        const Values<Weight>& values = groups_.values;
        RandomGroups drawn(node.job.key, j);
        for (uint32_t code : values.codes) drawn.add(code);
        groups_.group.clear();
        double sizes[2] = {0, 0};
        for (size_t v = 0; v < values.count(); ++v) {
            groups_.group.push_back(drawn(values.codes[v]));
            sizes[groups_.group.back()] += double(values.sizes[v]);
        }
        groups_.count = drawn.count();
        if (problem_.missing == Policy::learned && groups_.missing_size > 0 && groups_.count > 1)
            groups_.missing_to = right_is_larger(sizes[0], sizes[1]);
        return groups_;
    }

    void count_groups() {
        groups_.count = groups_.group.empty()
                            ? 0
                            : 1 + *std::max_element(groups_.group.begin(), groups_.group.end());
    }

    void collect_values(const Scored<Weight>& node, size_t j) {
        groups_.values.clear();
        groups_.missing.assign(classes_, Weight(0));
        groups_.missing_size = 0;
        groups_.missing_cases = 0;
        counts_.count(node.job, j);
        std::sort(counts_.present.begin(), counts_.present.end());
        for (uint32_t value : counts_.present) {
            const Weight* cell = counts_.cell(value);
            if (value == records_.missing_code(j)) {
                groups_.missing.assign(cell, cell + classes_);
                groups_.missing_size = counts_.size(value);
                groups_.missing_cases = counts_.cases(value);
                continue;
            }
            groups_.values.add(value, cell, classes_, counts_.size(value), counts_.cases(value));
        }
        counts_.forget();
    }

    // One branch per group; missing values are a branch of their own, in a group, or stay outside.
    Candidate score_groups(const Scored<Weight>& node, size_t j) {
        const Groups& made = group_values(node, j);
        const bool own_branch = problem_.missing == Policy::branch && made.missing_size > 0;
        impurities_of_.clear(node.classes);
        impurities_of_.expect(node.impurity);
        if (made.missing_size > 0 && !own_branch && made.missing_to < 0)
            impurities_of_.set_known(known_.data(), Weight(node.scale.total) - made.missing_size,
                                     made.missing_size);
        size_t large = 0;
        bool admissible = true;
        const auto add = [&](const Weight* cell, Weight size, double cases) {
            cases = cases_for_bars(problem_, size, cases);
            large += cases >= problem_.cases_in_branch;
            admissible = admissible && cases >= problem_.cases_in_leaf &&
                         double(size) >= problem_.weight_in_leaf;
            impurities_of_.add_branch(cell, size);
        };
        for (size_t g = 0; g < made.count; ++g) {
            std::fill(left_.begin(), left_.end(), Weight(0));
            Weight size = 0;
            double cases = 0;
            for (size_t v = 0; v < made.values.count(); ++v) {
                if (made.group[v] != g) continue;
                for (size_t c = 0; c < classes_; ++c)
                    left_[c] += made.values.cells[v * classes_ + c];
                size += made.values.sizes[v];
                cases += made.values.cases[v];
            }
            if (made.missing_to == int32_t(g)) {
                for (size_t c = 0; c < classes_; ++c) left_[c] += made.missing[c];
                size += made.missing_size;
                cases += made.missing_cases;
            }
            add(left_.data(), size, cases);
        }
        if (own_branch) add(made.missing.data(), made.missing_size, made.missing_cases);
        Candidate candidate;
        candidate.varies = made.values.count() + own_branch >= 2;
        if (made.count + own_branch < 2 || large < 2 || !admissible) return candidate;
        candidate.possible = true;
        impurities_of_.sum();
        const int64_t drop = std::max<int64_t>(impurities_of_.drop(), 0);
        const double less = node.scale.gain(node.impurity) *
                            corrected_share(problem_, node.totals, made.values.count(), node.cases);
        if (!problem_.average_gain && !node.scale.enough(drop, less)) return candidate;
        candidate.score =
            node.scale.score(drop, ratio_ ? node.size_impurity - impurities_of_.sizes() : 0) - less;
        candidate.drop = drop;
        return candidate;
    }

    // What is known of a number at a node.
    struct Known {
        bool varies;         // the numbers differ
        bool tests_missing;  // known ones can be told from missing ones
        bool may_be_cut;     // by a threshold
    };

    // What searches the thresholds of numbers: of lists, or of counted ranks.
    template <typename List>
    struct Sweeps {
        ThresholdSweep<W, List> plain;
        LearnedSweep<W, List> learned;  // with missing cases on either side

        Sweeps(const Problem& problem, const Impurities& impurities, const Records<W>& records)
            : plain(problem, impurities, records), learned(problem, impurities, records) {}
    };
    using List = typename Records<W>::List;
    using SubtreeList = typename Records<W>::SubtreeList;
    Sweeps<List>& sweeps_of(const List&) { return sweeps_; }
    Sweeps<SubtreeList>& sweeps_of(const SubtreeList&) { return of_subtree_; }

    Candidate score_number(const Scored<Weight>& node, size_t j, double least) {
        Candidate candidate;
        if (records_.is_list(j)) {
            records_.with_list(node.job, j, [&](const auto& list) {
                const Known known = known_of(node, count_list(node, list));
                score_thresholds(node, j, known, sweeps_of(list), candidate, [&](auto& sweep) {
                    if (problem_.random_splits) return score_drawn(sweep, node, j, list);
                    sweep.sweep_list(records_, list, j, node.classes,
                                     problem_.min_gain > 0 ? no_score : least);
                });
            });
            return candidate;
        }
        const Known known = known_of(node, count_ranks(node, j));
        score_thresholds(node, j, known, sweeps_, candidate, [&](auto& sweep) {
            if (problem_.random_splits) return score_drawn_rank(sweep, node, j);
            sweep.sweep_ranks(counts_, n_known_ranks_);
        });
        counts_.forget();
        return candidate;
    }

    // Every threshold, by sweep_all(sweep), or the one drawn; then, where none can be made, known
    // against missing.
    template <typename Sweeps, typename SweepAll>
    void score_thresholds(const Scored<Weight>& node, size_t j, const Known& known, Sweeps& sweeps,
                          Candidate& candidate, const SweepAll& sweep_all) {
        candidate.varies = known.varies || known.tests_missing;
        bool any = false;
        if (learns_side(sides_)) {
            if (known.varies) score_with_missing(node, j, sweeps.learned, candidate, sweep_all);
        } else if (known.may_be_cut) {
            auto& sweep = sweeps.plain;
            sweep.begin(known_, sides_, impurity_to_share(node, sides_), node.scale,
                        records_.values(j));
            sweep_all(sweep);
            sweep.choose(candidate);
            candidate.n_thresholds = uint32_t(sweep.n_thresholds());
            any = candidate.possible ||
                  (problem_.min_gain <= 0 && !problem_.quinlan_thresholds && sweep.any());
        }
        if (known.tests_missing && candidate.score == no_score && !any)
            score_known(node, sides_, candidate);
        candidate.possible = candidate.possible || candidate.score > no_score;
    }

    // The threshold that is drawn for a number that has several at the node.
    template <typename Sweep, typename List>
    void score_drawn(Sweep& sweep, const Scored<Weight>& node, size_t j, const List& list) {
        const DrawnThreshold drawn(node.job.key, j, records_.values(j), list.rank(0),
                                   list.rank(list.size() - 1));
        const size_t right = sweep.take_left_of_list(records_, list, node.classes, drawn);
        sweep.score_at(list.rank(right - 1), list.rank(right));
    }

    template <typename Sweep>
    void score_drawn_rank(Sweep& sweep, const Scored<Weight>& node, size_t j) {
        const std::vector<uint32_t>& ranks = counts_.present;
        const DrawnThreshold drawn(node.job.key, j, records_.values(j), ranks[0],
                                   ranks[n_known_ranks_ - 1]);
        const uint32_t* right = sweep.take_left_of_ranks(counts_, drawn);
        sweep.score_at(right[-1], right[0]);
    }

    bool learns_side(const Sides<Weight>& sides) const {
        return problem_.missing == Policy::learned && sides.missing_total > 0;
    }

    template <typename Sweep, typename SweepAll>
    void score_with_missing(const Scored<Weight>& node, size_t j, Sweep& sweep,
                            Candidate& candidate, const SweepAll& sweep_all) {
        const double cases = cases_for_bars(problem_, node.scale.total, node.cases);
        const Sides<Weight> all{Weight(node.scale.total), 0, cases, 0, false};
        sweep.begin(node.totals, all, node.impurity, node.scale, records_.values(j));
        sweep.set_missing({&missing_, sides_.missing_total, node.cases - known_cases_});
        sweep_all(sweep);
        sweep.choose(candidate);
        candidate.n_thresholds = uint32_t(sweep.n_thresholds());
    }

    // A sorted list, roughly; returns false if it must be scored exactly.
    template <typename List>
    bool estimate_list(const Scored<Weight>& node, size_t j, const List& list, Candidate& candidate,
                       char& sure, ScoreEstimate& estimate) {
        const Known known = known_of(node, count_list(node, list));
        if (learns_side(sides_)) return false;
        candidate.varies = known.varies || known.tests_missing;
        if (known.may_be_cut) {
            auto& sweep = sweeps_of(list).plain;
            sweep.begin(known_, sides_, impurity_to_share(node, sides_), node.scale,
                        records_.values(j));
            if (!sweep.searches() || problem_.min_gain > 0) return false;
            bool unsure = false;
            const bool any =
                sweep.estimate_list(records_, list, j, node.classes, estimate, candidate, unsure);
            if (unsure) return false;
            sure = !any || sweep.sure_which();
        }
        return estimate.score.most != no_score || !known.tests_missing;
    }

    // Of known_ and known_cases_, into sides_; `varies`: whether the known numbers differ.
    Known known_of(const Scored<Weight>& node, bool varies) {
        const bool own_branch = problem_.missing == Policy::branch;
        sides_ = {0, 0, 0, 0, own_branch};
        for (size_t c = 0; c < classes_; ++c) {
            missing_[c] = node.totals[c] - known_[c];
            sides_.known_total += known_[c];
        }
        sides_.missing_total = Weight(node.scale.total) - sides_.known_total;
        sides_.known_cases = cases_for_bars(problem_, sides_.known_total, known_cases_);
        sides_.missing_cases =
            cases_for_bars(problem_, sides_.missing_total, node.cases - known_cases_);
        const bool few_missing = own_branch && sides_.missing_cases > 0 &&
                                 (sides_.missing_cases < problem_.cases_in_leaf ||
                                  double(sides_.missing_total) < problem_.weight_in_leaf);
        return {varies, own_branch && sides_.missing_total > 0 && sides_.known_total > 0,
                varies && !few_missing};
    }

    // Class weights of the known numbers, into known_; returns whether they differ.
    template <typename List>
    bool count_list(const Scored<Weight>& node, const List& list) {
        const size_t n = list.size();
        const bool varies = n > 0 && list.rank(0) != list.rank(n - 1);
        if (n == node.job.n) {
            known_ = node.totals;
            known_cases_ = node.cases;
            return varies;
        }
        sums_.add_up(list, 0, n, node.classes);
        std::fill(known_.begin(), known_.end(), Weight(0));
        for (size_t k = 0; k < node.classes.size(); ++k)
            known_[node.classes[k]] = records_.weight_of(sums_.steps[k]);
        known_cases_ = sums_.cases;
        return varies;
    }

    // The same from counted ranks, which are left in order.
    bool count_ranks(const Scored<Weight>& node, size_t j) {
        counts_.count(node.job, j);
        std::vector<uint32_t>& present = counts_.present;
        std::sort(present.begin(), present.end());
        std::fill(known_.begin(), known_.end(), Weight(0));
        known_cases_ = 0;
        n_known_ranks_ = present.size();
        if (n_known_ranks_ && present.back() == records_.missing_code(j)) --n_known_ranks_;
        for (size_t i = 0; i < n_known_ranks_; ++i) {
            const Weight* cell = counts_.cell(present[i]);
            for (size_t c = 0; c < classes_; ++c) known_[c] += cell[c];
            known_cases_ += counts_.cases(present[i]);
        }
        return n_known_ranks_ > 1;
    }

    // Impurity of the cases that a threshold shares out, less that of the branch of missing ones.
    int64_t impurity_to_share(const Scored<Weight>& node, const Sides<Weight>& sides) const {
        if (!sides.own_branch) return impurity(known_, sides.known_total);
        return node.impurity - impurity(missing_, sides.missing_total);
    }

    void score_known(const Scored<Weight>& node, const Sides<Weight>& sides,
                     Candidate& candidate) const {
        const double least = std::max(problem_.cases_in_leaf, std::numeric_limits<double>::min());
        if (std::min(sides.known_cases, sides.missing_cases) < least) return;
        if (double(std::min(sides.known_total, sides.missing_total)) < problem_.weight_in_leaf)
            return;
        const int64_t drop = std::max<int64_t>(
            impurity_to_share(node, sides) - impurity(known_, sides.known_total), 0);
        int64_t information = 0;
        if (ratio_)
            information = node.size_impurity - impurities_.x_log2_x(sides.known_total) -
                          impurities_.x_log2_x(sides.missing_total);
        candidate.possible = true;
        if (!problem_.average_gain && !node.scale.enough(drop)) return;
        candidate.score = node.scale.score(drop, information);
        candidate.drop = drop;
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const Records<W>& records_;
    const size_t classes_;
    const bool ratio_;

    // Scratch, kept between nodes.
    ValueCounts<W> counts_;
    Sweeps<List> sweeps_;
    Sweeps<SubtreeList> of_subtree_;
    ListSums<W> sums_;
    std::vector<Weight> known_, missing_, left_;
    Sides<Weight> sides_ = {0, 0, 0, 0, false};
    Grouper<Weight> grouper_;
    LearnedGrouper<Weight> learned_grouper_;
    Groups groups_;
    BranchImpurities<Weight> impurities_of_;
    ImpurityBounds impurity_bounds_;
    size_t n_known_ranks_ = 0;
    double known_cases_ = 0;
};

}  // namespace branchwise
