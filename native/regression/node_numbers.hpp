// Which thresholds of a column may be the best at one node, where numbers are predicted; the
// reference scores these. See records/node_thresholds.hpp for classes.

#pragma once

#include <algorithm>

#include "core/score_bounds.hpp"
#include "records/node_cases.hpp"
#include "regression/moments.hpp"

namespace branchwise {

// The cases of a node with their numbers.
struct NodeNumbers {
    NodeCases cases;
    const double* moments = nullptr;    // by case: weight, limbs of sums and of squares
    const double* distances = nullptr;  // by case, in two limbs

    Distance distance(size_t i) const {
        return {cases.weight(i), distances[2 * i], distances[2 * i + 1]};
    }
};

// What thresholds must leave on each side, and what becomes of missing cases.
struct NumberRules {
    bool weights_are_cases = false;
    bool joins = false;   // missing cases are tried on either side
    bool branch = false;  // they have a branch of their own
    double fewest_cases = 0;
    double fewest_weight = 0;
    double unit = 0;   // of weighted impurities
    double noise = 0;  // their rounding error
    Distance missing;
    double missing_cases = 0;
};

// `simple`: without weights or shares of cases.
template <bool poisson, bool simple>
class NumberThresholds {
  public:
    NumberThresholds(const NodeNumbers& given, const NumberScale& scale, const NodeMoments& node,
                     const SortedCases<uint32_t>& sorted, const NumberRules& rules)
        : given_(given),
          scale_(scale),
          node_(node),
          sorted_(sorted),
          rules_(rules),
          off_(8 * rules.unit + (poisson ? off_of_rates : off_of_squares)),
          contenders_(rules.noise) {}

    // `known` is what the distances of all cases with a number add up to.
    Segments find(const Distance& known) {
        known_.sum = known;
        known_.cases = cases_of(0, sorted_.n_known());
        add_up_groups();
        mean_ = known_.sum.total() / known_.sum.weight;
        of_missing_ = value(known_.sum) - base();
        are_distinct() ? search_distinct() : search();
        contenders_.compact();
        return segments();
    }

  private:
    // Scaled to the node, squares add up to 1 at most, and so do rates, whose logarithms are rough.
    static constexpr double off_of_squares = 1e-14;
    static constexpr double off_of_rates = 16 * LogBounds::slack;
    static constexpr double off_of_means = 1e-9;
    static constexpr size_t none = size_t(-1);
    static constexpr size_t block_size = 64;  // groups

    struct Side {
        Distance sum;
        double cases = 0;
    };

    // Where groups begin: what is before them, their first case, the last group before them, and
    // how many of several cases are; how many thresholds there are, each before a group, and
    // between what the distances on the left of these are.
    struct Block {
        Side left;
        size_t i = 0, previous = none, several = 0, n_thresholds = 0;
        double least = 0, most = 0;
    };

    Distance of_case(size_t i) const {
        const size_t member = sorted_.labels[i];
        if (!simple) return given_.distance(member);
        return {1.0, given_.distances[2 * member], given_.distances[2 * member + 1]};
    }

    // Sums are rounded once for each number.
    Distance of_group(size_t from, size_t to) const {
        if (to - from == 1) return of_case(from);
        double sums[NumberScale::most_limbs] = {}, weight = 0;
        for (size_t i = from; i < to; ++i) {
            const double* const own = &given_.moments[sorted_.labels[i] * scale_.width()];
            weight += own[0];
            for (size_t k = 0; k < scale_.sums.size(); ++k) sums[k] += own[1 + k];
        }
        return node_.distance(weight, sums);
    }

    // Groups of several cases, whose distances are not the sum of theirs.
    void add_up_groups() {
        size_t i = 0;
        for (const size_t end : sorted_.ends) {
            n_codes_ += i != end;
            if (end - i > 1) {
                several_.push_back(of_group(i, end));
                known_.sum += several_.back();
                for (size_t at = i; at < end; ++at) known_.sum -= of_case(at);
            }
            i = end;
        }
    }

    double cases_of(size_t from, size_t to) const {
        if (simple || !given_.cases.cases) return double(to - from);
        double cases = 0;
        for (size_t i = from; i < to; ++i) cases += sorted_.cases[i];
        return cases;
    }

    // Minus the weighted impurity, up to a constant.
    double value(const Distance& side) const {
        const double total = side.total();
        if (!poisson) return total * (total / side.weight);
        return logs_.x_log2_x(total) - total / side.weight * logs_.x_log2_x(side.weight);
    }

    // What the node as a whole has, of which thresholds leave more.
    double base() const {
        Distance whole = known_.sum;
        if (rules_.joins || rules_.branch) whole += rules_.missing;
        return value(whole) - (rules_.branch ? value(rules_.missing) : 0.0);
    }

    // What thresholds take away is a convex function of the weight and the distance on their left:
    // within a block of groups it is at most what it is at the corners of all that are there. Most
    // blocks need no more than that.
    void search() {
        const double base = this->base();
        const Side end = made_blocks(base);
        for (size_t b = 0; b < before_.size(); ++b) {
            const Side& next = b + 1 == before_.size() ? end : before_[b + 1].left;
            if (is_hopeless(before_[b], next, base))
                contenders_.count_more(before_[b].n_thresholds * (rules_.joins ? 2 : 1));
            else
                visit(before_[b], b * block_size, base);
        }
    }

    // Makes the blocks; the threshold before one may be the best so far. Returns what is behind
    // all.
    Side made_blocks(double base) {
        Block at;
        for (size_t group = 0; group < sorted_.n_groups(); ++group) {
            if (group % block_size == 0) {
                at.n_thresholds = 0;
                at.least = std::numeric_limits<double>::infinity();
                at.most = -at.least;
                before_.push_back(at);
                fetch(at.i + block_size);
            }
            const size_t end = sorted_.ends[group];
            if (at.i == end) continue;
            if (at.previous != none) {
                Block& block = before_.back();
                const double total = at.left.sum.total();
                block.least = std::min(block.least, total);
                block.most = std::max(block.most, total);
                if (!block.n_thresholds++) raise(at.left, base);
            }
            step(at, group);
        }
        return at.left;
    }

    void step(Block& at, size_t group) const {
        const size_t end = sorted_.ends[group];
        at.previous = group;
        at.left.sum += end - at.i == 1 ? of_case(at.i) : several_[at.several++];
        at.left.cases += cases_of(at.i, end);
        at.i = end;
    }

    Side right_of(const Side& left) const {
        return {known_.sum - left.sum, known_.cases - left.cases};
    }

    void raise(const Side& left, double base) {
        const Side right = right_of(left), fuller = rules_.joins ? joined(right) : right;
        if (!is_enough(left) || !is_enough(right)) return;
        const double drop = value(left.sum) + value(fuller.sum) - base;
        contenders_.raise(std::max(drop - off_, 0.0));
        bar_ = contenders_.hopeful() - of_missing_ - off_of_means;
    }

    bool is_hopeless(const Block& block, const Side& end, double base) const {
        const Side right = right_of(end);
        if (!contenders_.n_thresholds() || !is_enough(block.left) || !is_enough(right) ||
            !(block.left.sum.weight > 0) || !(right.sum.weight > 0))
            return false;
        double most = 0;
        for (double weight : {block.left.sum.weight, end.sum.weight})
            for (double total : {block.least, block.most}) {
                const Distance left{weight, total, 0.0}, other = known_.sum - left;
                if (!rules_.joins) {
                    most = std::max(most, value(left) + value(other) - base);
                    continue;
                }
                Distance fuller = left, fuller_other = other;
                fuller += rules_.missing;
                fuller_other += rules_.missing;
                most = std::max({most, value(fuller) + value(other) - base,
                                 value(left) + value(fuller_other) - base});
            }
        return most + off_ + off_of_means < contenders_.hopeful();
    }

    void visit(Block at, size_t from, double base) {
        const size_t to = std::min(from + block_size, sorted_.n_groups());
        for (size_t group = from; group < to; ++group) {
            if (at.i == sorted_.ends[group]) continue;
            if (at.previous != none) {
                const Side right = right_of(at.left);
                if (rules_.joins) {
                    offer(at.previous, joined(at.left), right, base);
                    offer(at.previous, at.left, joined(right), base);
                } else {
                    offer(at.previous, at.left, right, base);
                }
            }
            step(at, group);
        }
    }

    // Whether every code has one case, and nothing but the numbers of cases on both sides counts.
    bool are_distinct() const {
        return simple && !poisson && !rules_.joins && sorted_.n_known() == sorted_.n_groups() &&
               several_.empty() && n_codes_ == sorted_.n_groups();
    }

    // The same for these, most of which are left out by a few operations each.
    void search_distinct() {
        const double base = this->base(), all = known_.sum.weight;
        const double fewest = std::max({rules_.fewest_cases, rules_.fewest_weight, 1.0});
        const uint32_t* const members = sorted_.labels.data();
        Distance left;
        for (size_t begin = 0; begin < sorted_.n_known(); begin += block_size) {
            before_.emplace_back();
            before_.back().left.sum = left;
            before_.back().i = begin;
            fetch(begin + block_size);
            const size_t end = std::min(begin + block_size, sorted_.n_known());
            for (size_t i = begin; i < end; ++i) {
                const double* const own = &given_.distances[2 * members[i]];
                left += {1.0, own[0], own[1]};
                const double other = all - left.weight;
                if (left.weight < fewest || other < fewest) continue;
                contenders_.count(i);
                const double away = left.total() - left.weight * mean_;
                if (away * away * all < bar_ * (left.weight * other)) continue;
                offer_score(i, left, known_.sum - left, base);
            }
        }
    }

    // Cases are anywhere in memory; these are needed soon.
    void fetch(size_t from) const {
        for (size_t i = from; i < std::min(from + block_size, sorted_.n_known()); ++i)
            __builtin_prefetch(&given_.distances[2 * sorted_.labels[i]]);
    }

    Side joined(const Side& side) const {
        Side fuller = side;
        fuller.sum += rules_.missing;
        fuller.cases += rules_.missing_cases;
        return fuller;
    }

    bool is_enough(const Side& side) const {
        const double cases = rules_.weights_are_cases ? side.sum.weight : side.cases;
        return cases >= rules_.fewest_cases && side.sum.weight >= rules_.fewest_weight &&
               (!poisson || side.sum.total() > 0);
    }

    // Whether a threshold is far from the best, roughly and without a division: the decrease of the
    // variance is the square of how far the left is from the mean of all, times their weight, by
    // the weights of both sides.
    bool is_hopeless(const Distance& left, const Distance& right) const {
        const double away = left.total() - left.weight * mean_;
        return away * away * known_.sum.weight < bar_ * (left.weight * right.weight);
    }

    void offer(size_t group, const Side& left, const Side& right, double base) {
        if (!is_enough(left) || !is_enough(right)) return;
        contenders_.count(group);
        if (!poisson && !rules_.joins && is_hopeless(left.sum, right.sum)) return;
        offer_score(group, left.sum, right.sum, base);
    }

    void offer_score(size_t group, const Distance& left, const Distance& right, double base) {
        const double drop = value(left) + value(right) - base;
        const double most = std::max(drop + off_, 0.0);
        if (most < contenders_.hopeful()) return;
        contenders_.add(group, std::max(drop - off_, 0.0), most);
        bar_ = contenders_.hopeful() - of_missing_ - off_of_means;
    }

    // The distances of all cases up to the end of a group, from the block that it is in.
    Distance up_to(size_t last) const {
        const Block& block = before_[last / block_size];
        Distance sum = block.left.sum;
        size_t i = block.i;
        for (size_t group = last / block_size * block_size; group <= last; ++group) {
            const size_t end = sorted_.ends[group];
            if (i != end) sum += of_group(i, end);
            i = end;
        }
        return sum;
    }

    // With distances in place of class weights.
    Segments segments() const {
        Segments made = sorted_.segments(contenders_);
        made.n_codes = n_codes_;
        size_t i = 0;
        Distance before;
        for (size_t last : made.last_groups) {
            const Distance all = up_to(last);
            const Distance sum = all - before;
            for (double each : {sum.weight, sum.high, sum.low}) made.weights.push_back(each);
            made.cases.push_back(cases_of(i, sorted_.ends[last]));
            i = sorted_.ends[last];
            before = all;
        }
        return made;
    }

    const NodeNumbers& given_;
    const NumberScale& scale_;
    const NodeMoments& node_;
    const SortedCases<uint32_t>& sorted_;
    const NumberRules& rules_;
    const LogBounds& logs_ = LogBounds::shared();
    const double off_;  // what is told of a drop is off by this at most
    std::vector<Distance> several_;
    std::vector<Block> before_;
    Side known_;
    double mean_ = 0;
    double of_missing_ = 0;  // what a branch of missing cases takes away
    // What a threshold must take away, roughly, to be the best.
    double bar_ = -std::numeric_limits<double>::infinity();
    size_t n_codes_ = 0;
    Contenders contenders_;
};

}  // namespace branchwise
