// Choosing a split from counts: the native implementation of branchwise/grow/search.py for one
// node.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/problem.hpp"

namespace branchwise {

constexpr double no_score = -std::numeric_limits<double>::infinity();

// The lowest score that is equal to the best.
inline double least_of_equals(double top, double resolution) {
    return std::isfinite(top) ? top - std::max(std::fabs(top) * tie, resolution) : top;
}

// Scores of one node's candidates are compared with the same total and noise.
struct Scale {
    double total;       // weight of the node
    double unit;        // of impurities
    double resolution;  // scores this close are equal
    double min_gain;
    Criterion criterion;

    Scale(double total_weight, const Impurities& impurities, const Problem& problem)
        : Scale(total_weight, impurities.noise(total_weight), impurities, problem) {}

    Scale(double total_weight, int64_t noise, const Impurities& impurities, const Problem& problem)
        : total(total_weight),
          unit(impurities.unit()),
          resolution(double(noise) * impurities.unit() / total_weight),
          min_gain(problem.min_gain),
          criterion(problem.criterion) {
        if (criterion == Criterion::gain_ratio) resolution = ratio_resolution + resolution;
    }

    double gain(int64_t drop) const { return double(drop) * unit / total; }

    double score(int64_t drop, int64_t information) const {
        if (criterion != Criterion::gain_ratio) return gain(drop);
        return double(drop) / double(std::max<int64_t>(information, 1));
    }

    // `less` is subtracted from the gain.
    bool enough(int64_t drop, double less = 0) const {
        return min_gain == 0 || gain(drop) - less >= min_gain - resolution;
    }

    // Scores from this on are as good as the best.
    double least(double top) const { return least_of_equals(top, resolution); }
};

// The share of a node's impurity that is subtracted from the score of two groups of so many
// values: what these gain at random more than those of a few values do.
inline double corrected_share(const Problem& problem, size_t n_values, double cases) {
    if (!problem.corrects_values || n_values <= problem.few_values_to_group) return 0;
    const double k = double(n_values), of_few = double(problem.few_values_to_group);
    // Values of a single case are of one class: they gain all that there is.
    const double alone = std::min(k / cases, 1.0);
    const double mean = k * (null_mean + (1.0 - null_mean) * alone * alone);
    const double few = of_few * null_mean + null_spread * std::sqrt(of_few);
    return (mean + null_spread * std::sqrt(k) - few) / std::max(cases - 1.0, 1.0);
}

// The largest share of a node's Gini impurity that telling one class from the others takes away:
// two groups of values divide the classes in one way.
template <typename Weights>
double contrast_share(const Weights& weights) {
    if (weights.size() <= 2) return 1;
    double total = 0, squares = 0, best = 0;
    for (const auto weight : weights) {
        const double own = double(weight);
        total += own;
        squares += own * own;
    }
    const double impurity = total * total - squares;
    if (!(impurity > 0)) return 1;
    for (const auto weight : weights) {
        const double own = double(weight), others = total - own;
        if (others > 0)
            best = std::max(best, own * others + own * ((squares - own * own) / others));
    }
    return std::min(best / impurity, 1.0);
}

// The share that is subtracted at a node with these class weights. Of more than two classes it is
// less, but where values have few cases.
template <typename Weights>
double corrected_share(const Problem& problem, const Weights& weights, size_t n_values,
                       double cases) {
    const double share = corrected_share(problem, n_values, cases);
    if (share == 0) return share;
    const double contrast = contrast_share(weights);
    const double few_cases = std::min(double(n_values) * cases_of_value / cases, 1.0);
    return share * (contrast + (1.0 - contrast) * few_cases);
}

// The best that a column can do at a node. `low` and `high` are the ranks beside the threshold; a
// column that does not vary at a node can split none below it.
struct Candidate {
    double score = no_score;
    int64_t drop = -1;
    bool varies = true;
    bool possible = false;      // it can split the node, whatever it gains
    uint32_t n_thresholds = 0;  // that it is the best of
    uint32_t low = 0, high = 0;
    int32_t missing_to = stop_here;  // the side of missing cases, where it is learned

    bool has_threshold() const { return low < high; }
    void set_threshold(uint32_t rank, uint32_t next) {
        low = rank;
        high = next;
    }
};

// C4.5 takes only splits that gain about as much as the splits of a node do on average.
class AverageGain {
  public:
    void add(double gain) {
        total_ += gain;
        number_ += 1;
    }
    double least() const {
        return number_ > 0 ? total_ / number_ - average_slack
                           : std::numeric_limits<double>::infinity();
    }

  private:
    double total_ = 0, number_ = 0;
};

// gain_of(drop) is compared with the average, and enough(drop) tells whether it will do.
template <typename GainOf, typename Enough>
void drop_below_average(std::vector<Candidate>& candidates, const Problem& problem,
                        const GainOf& gain_of, const Enough& enough) {
    AverageGain average;
    for (size_t j = 0; j < candidates.size(); ++j)
        if (candidates[j].drop >= 0 && problem.few_values[j])
            average.add(gain_of(candidates[j].drop));
    const double least = average.least();
    for (auto& candidate : candidates)
        if (candidate.drop >= 0 && (gain_of(candidate.drop) < least || !enough(candidate.drop)))
            candidate.score = no_score;
}

inline void drop_below_average(std::vector<Candidate>& candidates, const Scale& scale,
                               const Problem& problem) {
    drop_below_average(
        candidates, problem, [&](int64_t drop) { return scale.gain(drop); },
        [&](int64_t drop) { return scale.enough(drop); });
}

// least_of(top) is the least score that is equal to the best.
template <typename LeastOf>
int first_best_candidate(const std::vector<Candidate>& candidates, const LeastOf& least_of) {
    double top = no_score;
    for (const auto& candidate : candidates) top = std::max(top, candidate.score);
    if (top == no_score) return -1;
    const double least = least_of(top);
    for (size_t j = 0; j < candidates.size(); ++j)
        if (candidates[j].score >= least) return int(j);
    return -1;
}

inline int first_best_column(const std::vector<Candidate>& candidates, const Scale& scale) {
    return first_best_candidate(candidates, [&](double top) { return scale.least(top); });
}

// The fewest cases that C4.5 wants on each side of a threshold.
inline double fewest_on_a_side(double known_cases, const Problem& problem) {
    const double wanted = known_cases * side_share / problem.n_classes;
    return wanted <= problem.cases_in_branch ? problem.cases_in_branch
                                             : std::min(wanted, largest_side);
}

// The first of the largest branches.
inline int32_t largest_branch(const std::vector<double>& sizes) {
    const double top = *std::max_element(sizes.begin(), sizes.end());
    const double least = top - top * tie;
    return int32_t(
        std::find_if(sizes.begin(), sizes.end(), [&](double size) { return size >= least; }) -
        sizes.begin());
}

// The right one of two sides where it weighs more, otherwise the left.
inline bool right_is_larger(double left, double right) { return left < right - right * tie; }

inline int32_t missing_route(const Problem& problem, int32_t largest, int32_t missing_branch) {
    switch (problem.missing) {
        case Policy::branch:
            return missing_branch;
        case Policy::learned:
            return missing_branch == stop_here ? largest : missing_branch;
        case Policy::largest:
        case Policy::surrogate:
            return largest;
        case Policy::split:
            return every_branch;
        default:
            return stop_here;
    }
}

inline int32_t unseen_route(const Problem& problem, int32_t largest, int32_t missing_to) {
    switch (problem.unseen) {
        case Policy::branch:
            return missing_to;  // taken for a missing value
        case Policy::largest:
            return largest;
        case Policy::split:
            return every_branch;
        default:
            return stop_here;
    }
}

}  // namespace branchwise
