// Votes of rules for classes: native implementation of the sums of
// branchwise/ensemble/voting/vote_sums.py.
//
// Each row has, for every class, the exponential of its score, and their sum. What a vote
// of a rule would change are sums over the rows that it covers; terms are whole numbers,
// so that sums are exact.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/memory.hpp"
#include "rules/rule_counts.hpp"

namespace branchwise {

class VoteSums {
  public:
    // `sets` has a set of rows for each rule; none has a row beyond `target`. `weights` are
    // those of rows in units of the grid, `powers` the exponentials of the first scores.
    VoteSums(const uint64_t* sets, size_t n_words, const Span<const int64_t>& labels,
             const Span<const int64_t>& target, const Span<const double>& weights,
             const Span<const double>& powers)
        : labels_(labels.begin(), labels.end()),
          target_(target.begin(), target.end()),
          weights_(weights.begin(), weights.end()),
          n_classes_(powers.size()),
          powers_(target.size() * powers.size()),
          first_(labels.size() + 1, 0) {
        double whole = 0;
        for (size_t label = 0; label < powers.size(); ++label) {
            whole += powers[label];
            std::fill_n(powers_.begin() + ptrdiff_t(label * n_rows()), n_rows(), powers[label]);
        }
        total_.assign(n_rows(), whole);
        size_t n_entries = 0;
        for (size_t word = 0; word < labels.size() * n_words; ++word)
            n_entries += size_t(__builtin_popcountll(sets[word]));
        rows_.reserve(n_entries);
        for (size_t rule = 0; rule < labels.size(); ++rule) {
            for (size_t word = 0; word < n_words; ++word)
                for (uint64_t bits = sets[rule * n_words + word]; bits; bits &= bits - 1)
                    rows_.push_back(uint32_t(word * rows_of_word + size_t(__builtin_ctzll(bits))));
            first_[rule + 1] = rows_.size();
        }
    }

    size_t n_rules() const { return labels_.size(); }
    size_t n_rows() const { return target_.size(); }

    Span<const uint32_t> rows(size_t rule) const {
        return {rows_.data() + first_[rule], first_[rule + 1] - first_[rule]};
    }

    // The sums of some rules: of first and of second derivatives. Where the rules of a class
    // cover more rows than there are, the terms of all rows are rounded once for all of them.
    void add_up(const Span<const int64_t>& rules, double* firsts, double* seconds) const {
        std::vector<std::vector<size_t>> of_class(n_classes_);
        for (size_t at = 0; at < rules.size(); ++at)
            of_class[size_t(labels_[size_t(rules[at])])].push_back(at);
        std::vector<Terms> terms;
        for (size_t label = 0; label < n_classes_; ++label) {
            size_t n_entries = 0;
            for (const size_t at : of_class[label]) n_entries += rows(size_t(rules[at])).size();
            const bool of_all_rows = n_entries > n_rows();
            if (of_all_rows) {
                terms.resize(n_rows());
                for (size_t row = 0; row < n_rows(); ++row) terms[row] = terms_of(row, label);
            }
            for (const size_t at : of_class[label]) {
                const auto rule = size_t(rules[at]);
                const Terms sum = of_all_rows
                                      ? sum_over(rule, [&](size_t row) { return terms[row]; })
                                      : sum_of(rule);
                firsts[at] = double(int64_t(sum.first));
                seconds[at] = double(int64_t(sum.second));
            }
        }
    }

    // Take a Newton step for the vote of each of some rules in turn, as `adjusted` of the
    // reference; return the largest change.
    double adjust(const Span<const int64_t>& rules, double* votes, double grid, double ridge) {
        double largest = 0;
        for (size_t at = 0; at < rules.size(); ++at) {
            const auto rule = size_t(rules[at]);
            const Terms sum = sum_of(rule);
            const double first = double(int64_t(sum.first)) / grid;
            const double second = double(int64_t(sum.second)) / grid;
            const double newton = (first - ridge * votes[at]) / (second + ridge);
            const double bounded = std::min(std::max(newton, -1.0), 1.0);
            const double step = std::max(votes[at] + bounded, 0.0) - votes[at];
            if (step == 0.0) continue;
            vote(rule, std::exp(step));
            votes[at] += step;
            largest = std::max(largest, std::fabs(step));
        }
        return largest;
    }

    // Multiply the exponentials of the scores of a rule's class.
    void vote(size_t rule, double factor) {
        const auto label = size_t(labels_[rule]);
        for (size_t i = first_[rule]; i < first_[rule + 1]; ++i) {
            const size_t row = rows_[i];
            double& power = powers_[label * n_rows() + row];
            const double after = power * factor;
            total_[row] += after - power;
            power = after;
        }
    }

  private:
    // Unsigned, as sums of what is not a number may overflow.
    struct Terms {
        uint64_t first, second;
    };

    Terms terms_of(size_t row, size_t label) const {
        const double share = powers_[label * n_rows() + row] / total_[row];
        const double own = size_t(target_[row]) == label ? 1.0 : 0.0;
        return {rounded(weights_[row] * (own - share)),
                rounded(weights_[row] * (share * (1.0 - share)))};
    }

    static uint64_t rounded(double amount) {
        const double whole = std::rint(amount);
        constexpr int64_t not_a_number = std::numeric_limits<int64_t>::min();
        return uint64_t(std::isnan(whole) ? not_a_number : int64_t(whole));
    }

    template <typename TermsOf>
    Terms sum_over(size_t rule, TermsOf&& of) const {
        Terms sum{0, 0};
        for (const uint32_t row : rows(rule)) {
            const Terms terms = of(row);
            sum.first += terms.first;
            sum.second += terms.second;
        }
        return sum;
    }

    Terms sum_of(size_t rule) const {
        const auto label = size_t(labels_[rule]);
        return sum_over(rule, [&](size_t row) { return terms_of(row, label); });
    }

    std::vector<int64_t> labels_, target_;
    std::vector<double> weights_;
    const size_t n_classes_;
    std::vector<double> powers_;  // one class after the other, so that rows are near one another
    std::vector<double> total_;
    std::vector<size_t> first_;  // where the rows of a rule begin
    std::vector<uint32_t> rows_;
};

}  // namespace branchwise
