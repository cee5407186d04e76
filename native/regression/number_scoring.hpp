// Scoring the columns of a node whose rows have numbers: native implementation of
// branchwise/grow/search.py, thresholds.py and categories.py for variance and Poisson's
// criterion. Every thread has a scorer of its own.

#pragma once

#include <numeric>

#include "core/random_splits.hpp"
#include "records/records.hpp"
#include "regression/learned_numbers.hpp"

namespace branchwise {

template <typename W>
using NumberRecords = Records<W, double>;

// A node that is to be split.
struct NumberNode {
    const RecordJob& job;
    const NodeMoments& moments;
    const double* sums;  // limbs of its sum
    double cases;
    const double& variance;  // set where scores are corrected
};

// Rows that share a value: the limbs of their sum are in a list of their own.
struct Group {
    uint32_t code;
    double cases;
    Distance distance;
};

template <typename W>
class NumberScorer {
  public:
    NumberScorer(const Problem& problem, const NumberScale& scale, const NumberRecords<W>& records)
        : problem_(problem),
          scale_(scale),
          records_(records),
          n_limbs_(scale.sums.size()),
          limbs_of_code_(records.most_codes() * n_limbs_, 0.0),
          weight_of_code_(records.most_codes(), 0.0),
          cases_of_code_(records.most_codes(), 0.0),
          missing_limbs_(n_limbs_) {}

    Candidate score(const NumberNode& node, size_t j) {
        collect(node, j);
        if (records_.is_numeric(j)) return score_thresholds(node, j);
        if (problem_.branching == Branching::two_way) group_in_two(node, j);
        return score_branches(node);
    }

    // The values of a column at a node, in order, and the branch of each.
    const std::vector<Group>& group_values(const NumberNode& node, size_t j) {
        collect(node, j);
        if (problem_.branching == Branching::two_way) group_in_two(node, j);
        return groups_;
    }
    const std::vector<uint32_t>& branches() const { return branch_; }
    size_t n_branches() const { return n_branches_; }
    // The branch of missing values, if it is learned.
    int32_t missing_to() const { return missing_to_; }

  private:
    static constexpr bool weighted = NumberRecords<W>::weighted;

    double cases_for_bars_of(double weight, double cases) const {
        return cases_for_bars(problem_, weight, cases);
    }

    // ---- counting --------------------------------------------------------------

    // The groups of a column, in order, and the rows that miss it. At first every value is a
    // branch of its own.
    void collect(const NumberNode& node, size_t j) {
        groups_.clear();
        missing_ = Group{0, 0, {}};
        missing_to_ = stop_here;
        if (records_.is_list(j))
            collect_list(node, records_.slot(j));
        else
            collect_codes(node, j);
        branch_.resize(groups_.size());
        std::iota(branch_.begin(), branch_.end(), 0u);
        n_branches_ = groups_.size();
    }

    void collect_list(const NumberNode& node, size_t slot) {
        const auto* entry = records_.ranked(node.job, slot);
        const size_t n = node.job.n_ranked[slot];
        const uint8_t* base = records_.first(node.job);
        std::copy_n(node.sums, n_limbs_, missing_limbs_.begin());
        double missing_weight = node.moments.weight(), missing_cases = node.cases;
        double limbs[NumberScale::most_limbs];
        for (size_t i = 0; i < n;) {
            const uint32_t rank = entry[i].rank;
            double weight = 0, cases = 0;
            std::fill_n(limbs, n_limbs_, 0.0);
            for (; i < n && entry[i].rank == rank; ++i) {
                const auto own = double(records_.weight(entry[i], base));
                const double number = records_.target(records_.record_of(entry[i], base));
                const double share = records_.share(records_.record_of(entry[i], base));
                scale_.template add_number<weighted>(number, own, limbs);
                weight += own;
                cases += share;
            }
            groups_.push_back({rank, cases, node.moments.distance(weight, limbs)});
            for (size_t k = 0; k < n_limbs_; ++k) missing_limbs_[k] -= limbs[k];
            missing_weight -= weight;
            missing_cases -= cases;
        }
        if (n < node.job.n)
            missing_ = {0, missing_cases,
                        node.moments.distance(missing_weight, missing_limbs_.data())};
    }

    void collect_codes(const NumberNode& node, size_t j) {
        const uint8_t* record = records_.first(node.job);
        present_.clear();
        for (size_t i = 0; i < node.job.n; ++i, record += records_.size()) {
            const uint32_t code = records_.code(record, j);
            if (weight_of_code_[code] == 0) present_.push_back(code);
            cases_of_code_[code] += records_.share(record);
            const auto weight = double(records_.weight(record));
            weight_of_code_[code] += weight;
            scale_.template add_number<weighted>(records_.target(record), weight,
                                                 &limbs_of_code_[code * n_limbs_]);
        }
        std::sort(present_.begin(), present_.end());
        for (uint32_t code : present_) {
            double* limbs = &limbs_of_code_[code * n_limbs_];
            const Group group{code, cases_of_code_[code],
                              node.moments.distance(weight_of_code_[code], limbs)};
            if (code == records_.missing_code(j))
                missing_ = group;
            else
                groups_.push_back(group);
            cases_of_code_[code] = weight_of_code_[code] = 0;
            std::fill_n(limbs, n_limbs_, 0.0);
        }
    }

    // ---- scores ----------------------------------------------------------------

    bool enough(const Distance& group, double cases) const {
        return cases_for_bars_of(group.weight, cases) >= problem_.cases_in_leaf &&
               group.weight >= problem_.weight_in_leaf;
    }
    bool large(const Distance& group, double cases) const {
        return cases_for_bars_of(group.weight, cases) >= problem_.cases_in_branch;
    }
    bool own_branch() const { return problem_.missing == Policy::branch && missing_.cases > 0; }

    bool learns_side() const { return problem_.missing == Policy::learned && missing_.cases > 0; }

    // A branch for each group of groups_, and one for missing values if they have their own.
    Candidate score_branches(const NumberNode& node) {
        joined_.assign(n_branches_, Group{0, 0, {}});
        for (size_t g = 0; g < groups_.size(); ++g) {
            joined_[branch_[g]].cases += groups_[g].cases;
            joined_[branch_[g]].distance += groups_[g].distance;
        }
        if (missing_to_ >= 0) {
            joined_[size_t(missing_to_)].cases += missing_.cases;
            joined_[size_t(missing_to_)].distance += missing_.distance;
        }
        if (own_branch()) joined_.push_back(missing_);
        Candidate candidate;
        candidate.varies = groups_.size() + own_branch() >= 2;
        if (joined_.size() < 2) return candidate;
        size_t n_large = 0;
        bool admissible = true;
        for (const Group& branch : joined_) {
            n_large += large(branch.distance, branch.cases);
            admissible = admissible && enough(branch.distance, branch.cases);
        }
        if (n_large < 2 || !admissible) return candidate;
        set_score(node, joined_, candidate,
                  node.variance * corrected_share(problem_, groups_.size(), node.cases));
        return candidate;
    }

    // `less` is subtracted.
    void set_score(const NumberNode& node, const std::vector<Group>& branches, Candidate& candidate,
                   double less = 0) const {
        Distance known;
        int64_t in_branches = 0;
        candidate.drop = -1;
        for (const Group& branch : branches) {
            if (!node.moments.allows(branch.distance)) return;
            known += branch.distance;
            in_branches += node.moments.impurity(branch.distance);
        }
        const int64_t drop = std::max<int64_t>(node.moments.impurity(known) - in_branches, 0);
        candidate.possible = true;
        const double score = node.moments.in_units(node.moments.gain(drop)) - less;
        const double resolution = node.moments.in_units(node.moments.resolution());
        if (!problem_.average_gain && gains_too_little(score, resolution)) return;
        candidate.score = score;
        candidate.drop = drop;
    }

    bool gains_too_little(double score, double resolution) const {
        return problem_.min_gain > 0 && score < problem_.min_gain - resolution;
    }

    Candidate score_thresholds(const NumberNode& node, size_t j) {
        Candidate candidate;
        const bool tests_missing = own_branch() && !groups_.empty();
        candidate.varies = groups_.size() >= 2 || tests_missing;
        const bool few_missing = own_branch() && !enough(missing_.distance, missing_.cases);
        n_thresholds_ = 0;
        if (problem_.random_splits && groups_.size() >= 2)
            drawn_ = DrawnThreshold(node.job.key, j, records_.values(j), groups_.front().code,
                                    groups_.back().code);
        if (groups_.size() >= 2 && learns_side())
            sweep_with_missing(node, candidate);
        else if (groups_.size() >= 2 && !few_missing)
            sweep(node, candidate);
        if (tests_missing && candidate.score == no_score) score_known(node, candidate);
        candidate.possible = candidate.possible || candidate.score > no_score;
        candidate.n_thresholds = n_thresholds_;
        return candidate;
    }

    // Every threshold between neighbouring numbers: the first of the best.
    void sweep(const NumberNode& node, Candidate& candidate) {
        Distance all, left;
        double all_cases = 0, left_cases = 0;
        for (const Group& group : groups_) {
            all += group.distance;
            all_cases += group.cases;
        }
        Distance whole = all;
        int64_t outside = 0;
        if (own_branch()) {
            whole += missing_.distance;
            outside = node.moments.impurity(missing_.distance);
        }
        const int64_t before = node.moments.impurity(whole) - outside;
        const double resolution = node.moments.in_units(node.moments.resolution());
        const double fewest = std::max(problem_.cases_in_leaf, problem_.cases_in_branch);
        better_.clear();
        for (size_t g = 0; g + 1 < groups_.size(); ++g) {
            left += groups_[g].distance;
            left_cases += groups_[g].cases;
            if (!drawn_.allows(groups_[g].code, groups_[g + 1].code)) continue;
            const Distance right = all - left;
            const double right_cases = all_cases - left_cases;
            if (std::min(cases_for_bars_of(left.weight, left_cases),
                         cases_for_bars_of(right.weight, right_cases)) < fewest ||
                std::min(left.weight, right.weight) < problem_.weight_in_leaf ||
                !node.moments.allows(left) || !node.moments.allows(right))
                continue;
            ++n_thresholds_;
            const int64_t in_branches = node.moments.impurity(left) + node.moments.impurity(right);
            const int64_t drop = std::max<int64_t>(before - in_branches, 0);
            const double score = node.moments.in_units(node.moments.gain(drop));
            if (n_thresholds_ == 1) first_drop_ = drop;
            if (!better_.empty() && score <= better_.back().score) continue;
            if (gains_too_little(score, resolution)) continue;
            better_.push_back({score, drop, g, stop_here});
        }
        // A branch of missing values must have events, too.
        if (own_branch() && !node.moments.allows(missing_.distance)) return;
        take_first_best(resolution, candidate);
    }

    // Of the thresholds in better_. Where none gains enough, the first of all counts for the
    // average gain.
    void take_first_best(double resolution, Candidate& candidate) const {
        if (better_.empty()) {
            if (problem_.average_gain && n_thresholds_ > 0) candidate.drop = first_drop_;
            return;
        }
        const double least = least_of_equals(better_.back().score, resolution);
        const auto best = std::find_if(better_.begin(), better_.end(),
                                       [&](const Better& one) { return one.score >= least; });
        candidate.score = best->score;
        candidate.drop = best->drop;
        candidate.missing_to = best->missing_to;
        candidate.set_threshold(groups_[best->group].code, groups_[best->group + 1].code);
    }

    // Every threshold, with missing cases on either side.
    void sweep_with_missing(const NumberNode& node, Candidate& candidate) {
        const NumberSide missing{missing_.distance, missing_.cases};
        NumberSide all, left;
        for (const Group& group : groups_) all += {group.distance, group.cases};
        NumberSide whole = all;
        whole += missing;
        const int64_t before = node.moments.impurity(whole.distance);
        const double resolution = node.moments.in_units(node.moments.resolution());
        better_.clear();
        for (size_t g = 0; g + 1 < groups_.size(); ++g) {
            left += {groups_[g].distance, groups_[g].cases};
            if (!drawn_.allows(groups_[g].code, groups_[g + 1].code)) continue;
            const auto offer = [&](bool on_right, const NumberSide& l, const NumberSide& r) {
                if (!admits(node, l) || !admits(node, r)) return;
                ++n_thresholds_;
                const int64_t drop = drop_of(node, before, l, r);
                const double score = node.moments.in_units(node.moments.gain(drop));
                if (n_thresholds_ == 1) first_drop_ = drop;
                if (!better_.empty() && score <= better_.back().score) return;
                if (gains_too_little(score, resolution)) return;
                better_.push_back({score, drop, g, int32_t(on_right)});
            };
            each_side_of_missing(left, all - left, missing, offer);
        }
        take_first_best(resolution, candidate);
    }

    // Whether one of two sides is large enough.
    bool admits(const NumberNode& node, const NumberSide& side) const {
        return enough(side.distance, side.cases) && large(side.distance, side.cases) &&
               node.moments.allows(side.distance);
    }
    static int64_t drop_of(const NumberNode& node, int64_t before, const NumberSide& left,
                           const NumberSide& right) {
        const int64_t in_branches =
            node.moments.impurity(left.distance) + node.moments.impurity(right.distance);
        return std::max<int64_t>(before - in_branches, 0);
    }

    // All known numbers against missing ones.
    void score_known(const NumberNode& node, Candidate& candidate) {
        Group known{0, 0, {}};
        for (const Group& group : groups_) {
            known.cases += group.cases;
            known.distance += group.distance;
        }
        const double least = std::max(problem_.cases_in_leaf, std::numeric_limits<double>::min());
        for (const Group& branch : {known, missing_})
            if (cases_for_bars_of(branch.distance.weight, branch.cases) < least ||
                branch.distance.weight < problem_.weight_in_leaf)
                return;
        joined_.assign({known, missing_});
        set_score(node, joined_, candidate);
    }

    // ---- two groups of values ------------------------------------------------------

    // Threshold the values in the order of their means; all in one branch where no grouping is
    // admissible. The branch of the first value is the first.
    void group_in_two(const NumberNode& node, size_t j) {
        if (problem_.random_splits) return group_at_random(node, j);
        std::fill(branch_.begin(), branch_.end(), 0u);
        n_branches_ = groups_.empty() ? 0 : 1;
        if (groups_.size() < 2) return;
        means_.clear();
        for (const Group& group : groups_)
            means_.push_back(group.distance.total() / group.distance.weight);
        order_.resize(groups_.size());
        std::iota(order_.begin(), order_.end(), 0u);
        std::stable_sort(order_.begin(), order_.end(),
                         [&](uint32_t a, uint32_t b) { return means_[a] < means_[b]; });
        if (learns_side()) return group_with_missing(node);
        Distance all, left;
        double all_cases = 0, left_cases = 0;
        for (const Group& group : groups_) {
            all += group.distance;
            all_cases += group.cases;
        }
        const int64_t whole = node.moments.impurity(all);
        better_.clear();
        for (size_t i = 0; i + 1 < order_.size(); ++i) {
            left += groups_[order_[i]].distance;
            left_cases += groups_[order_[i]].cases;
            const Distance right = all - left;
            const double right_cases = all_cases - left_cases;
            if (!enough(left, left_cases) || !enough(right, right_cases) ||
                !large(left, left_cases) || !large(right, right_cases) ||
                !node.moments.allows(left) || !node.moments.allows(right))
                continue;
            const int64_t in_branches = node.moments.impurity(left) + node.moments.impurity(right);
            const double score = node.moments.gain(std::max<int64_t>(whole - in_branches, 0));
            if (better_.empty() || score > better_.back().score)
                better_.push_back({score, 0, i, stop_here});
        }
        if (better_.empty()) return;
        const double least = least_of_equals(better_.back().score, node.moments.resolution());
        const size_t best = std::find_if(better_.begin(), better_.end(), [&](const Better& one) {
                                return one.score >= least;
                            })->group;
        for (size_t i = best + 1; i < order_.size(); ++i) branch_[order_[i]] = 1;
        if (branch_[0] == 1)
            for (uint32_t& branch : branch_) branch = 1 - branch;
        n_branches_ = 2;
    }

    // Missing values whose branch is learned join the one that weighs more.
    void group_at_random(const NumberNode& node, size_t j) {
        RandomGroups drawn(node.job.key, j);
        for (const Group& group : groups_) drawn.add(group.code);
        double sizes[2] = {0, 0};
        for (size_t g = 0; g < groups_.size(); ++g) {
            branch_[g] = drawn(groups_[g].code);
            sizes[branch_[g]] += groups_[g].distance.weight;
        }
        n_branches_ = drawn.count();
        if (learns_side() && n_branches_ == 2) missing_to_ = right_is_larger(sizes[0], sizes[1]);
    }

    // The same with missing values in one of the groups.
    void group_with_missing(const NumberNode& node) {
        const NumberSide missing{missing_.distance, missing_.cases};
        sides_.clear();
        NumberSide whole = missing;
        for (const Group& group : groups_) {
            sides_.push_back({group.distance, group.cases});
            whole += sides_.back();
        }
        const int64_t before = node.moments.impurity(whole.distance);
        const auto score = [&](const NumberSide& left, const NumberSide& right) {
            if (!admits(node, left) || !admits(node, right)) return no_score;
            return node.moments.gain(drop_of(node, before, left, right));
        };
        const LearnedGroups groups(sides_, order_, missing, score);
        missing_to_ = groups.choose(node.moments.resolution(), branch_);
        if (missing_to_ >= 0) n_branches_ = 2;
    }

    // A candidate that is better than all before it: the first of the best is one of these.
    struct Better {
        double score;
        int64_t drop;
        size_t group;  // the last on the left
        int32_t missing_to;
    };

    const Problem& problem_;
    const NumberScale& scale_;
    const NumberRecords<W>& records_;
    const size_t n_limbs_;

    // Scratch, kept between nodes.
    std::vector<double> limbs_of_code_, weight_of_code_, cases_of_code_, missing_limbs_;
    std::vector<uint32_t> present_, order_, branch_;
    std::vector<Group> groups_, joined_;
    Group missing_{0, 0, {}};
    int32_t missing_to_ = stop_here;
    std::vector<NumberSide> sides_;  // by value
    size_t n_branches_ = 0;
    uint32_t n_thresholds_ = 0;
    int64_t first_drop_ = -1;  // of the first of them
    DrawnThreshold drawn_;     // any, unless splits are random
    std::vector<double> means_;
    std::vector<Better> better_;
};

}  // namespace branchwise
