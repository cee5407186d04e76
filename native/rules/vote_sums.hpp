// Votes of rules for classes: native implementation of the sums of
// branchwise/ensemble/voting/vote_sums.py.
//
// Each row has, for every class, the exponential of its score, and their sum. What a vote
// of a rule would change are sums over the rows that it covers; terms are whole numbers,
// so that sums are exact.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
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
          total_(target.size(), 0.0),
          first_(labels.size() + 1, 0) {
        double whole = 0;
        for (const double power : powers) whole += power;
        for (size_t row = 0; row < target.size(); ++row) {
            for (size_t label = 0; label < n_classes_; ++label)
                powers_[row * n_classes_ + label] = powers[label];
            total_[row] = whole;
        }
        size_t n_entries = 0;
        for (size_t word = 0; word < labels.size() * n_words; ++word)
            n_entries += size_t(__builtin_popcountll(sets[word]));
        rows_.reserve(n_entries);
        for (size_t rule = 0; rule < labels.size(); ++rule) {
            for (size_t word = 0; word < n_words; ++word)
                for (uint64_t bits = sets[rule * n_words + word]; bits; bits &= bits - 1)
                    rows_.push_back(
                        uint32_t(word * rows_of_word + size_t(__builtin_ctzll(bits))));
            first_[rule + 1] = rows_.size();
        }
    }

    size_t n_rules() const { return labels_.size(); }
    size_t n_rows() const { return target_.size(); }

    Span<const uint32_t> rows(size_t rule) const {
        return {rows_.data() + first_[rule], first_[rule + 1] - first_[rule]};
    }

    // The sums of a rule: of first and of second derivatives.
    void add_up(size_t rule, double& first, double& second) const {
        const auto label = size_t(labels_[rule]);
        Terms sum{0, 0};
        for (size_t i = first_[rule]; i < first_[rule + 1]; ++i) {
            const Terms terms = terms_of(rows_[i], label);
            sum.first += terms.first;
            sum.second += terms.second;
        }
        first = double(int64_t(sum.first));
        second = double(int64_t(sum.second));
    }

    // The same of many rules: the terms of each row and class are rounded once for all
    // rules. `firsts` and `seconds` have a number for each rule.
    void add_up_many(const Span<const int64_t>& rules, double* firsts, double* seconds) const {
        std::vector<Terms> terms(target_.size() * n_classes_);
        for (size_t row = 0; row < target_.size(); ++row)
            for (size_t label = 0; label < n_classes_; ++label)
                terms[label * target_.size() + row] = terms_of(row, label);
        for (size_t at = 0; at < rules.size(); ++at) {
            const auto rule = size_t(rules[at]);
            const Terms* own = terms.data() + size_t(labels_[rule]) * target_.size();
            Terms sum{0, 0};
            for (size_t i = first_[rule]; i < first_[rule + 1]; ++i) {
                sum.first += own[rows_[i]].first;
                sum.second += own[rows_[i]].second;
            }
            firsts[at] = double(int64_t(sum.first));
            seconds[at] = double(int64_t(sum.second));
        }
    }

    // The number of rows that some rules cover, all together, and of terms of all rows.
    size_t n_entries(const Span<const int64_t>& rules) const {
        size_t n = 0;
        for (const int64_t rule : rules) n += first_[size_t(rule) + 1] - first_[size_t(rule)];
        return n;
    }
    size_t n_terms() const { return target_.size() * n_classes_; }

    // Multiply the exponentials of the scores of a rule's class.
    void vote(size_t rule, double factor) {
        const auto label = size_t(labels_[rule]);
        for (size_t i = first_[rule]; i < first_[rule + 1]; ++i) {
            const size_t row = rows_[i];
            double& power = powers_[row * n_classes_ + label];
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
        const double share = powers_[row * n_classes_ + label] / total_[row];
        const double own = size_t(target_[row]) == label ? 1.0 : 0.0;
        return {uint64_t(std::llrint(weights_[row] * (own - share))),
                uint64_t(std::llrint(weights_[row] * (share * (1.0 - share))))};
    }

    std::vector<int64_t> labels_, target_;
    std::vector<double> weights_;
    size_t n_classes_;
    std::vector<double> powers_, total_;
    std::vector<size_t> first_;  // where the rows of a rule begin
    std::vector<uint32_t> rows_;
};

}  // namespace branchwise
