// A growing and shrinking set of rules: native implementation of the sums of
// branchwise/rules/mdl_selection.py.
//
// For every rule: the weight of its rows that no chosen rule covers, and of those that
// one covers. A rule that comes or goes changes few rows, and each of them the sums of
// the rules that cover it, which are listed by row.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory.hpp"
#include "rules/rule_counts.hpp"

namespace branchwise {

class ChosenRules {
  public:
    // `sets` has a set of rows for each rule; none has a row beyond `right`.
    ChosenRules(const uint64_t* sets, size_t n_rules, size_t n_words,
                const Span<const double>& right, const Span<const double>& wrong)
        : right_(right.begin(), right.end()),
          wrong_(wrong.begin(), wrong.end()),
          times_(right.size(), 0),
          first_(right.size() + 1, 0),
          sums_(4 * n_rules, 0.0),
          first_row_(n_rules + 1, 0) {
        for_each_row(sets, n_rules, n_words, [&](size_t, size_t row) { ++first_[row + 1]; });
        for (size_t row = 0; row < times_.size(); ++row) first_[row + 1] += first_[row];
        rules_.resize(first_.back());
        rows_.resize(first_.back());
        std::vector<size_t> next(first_.begin(), first_.end() - 1);
        size_t n_entries = 0;
        for_each_row(sets, n_rules, n_words, [&](size_t rule, size_t row) {
            rules_[next[row]++] = uint32_t(rule);
            rows_[n_entries++] = uint32_t(row);
            first_row_[rule + 1] = n_entries;
            sum(0, 0)[rule] += right_[row];
            sum(0, 1)[rule] += wrong_[row];
        });
        // Rules that cover nothing end where the one before them ends.
        for (size_t rule = 0; rule < n_rules; ++rule)
            first_row_[rule + 1] = std::max(first_row_[rule + 1], first_row_[rule]);
    }

    size_t n_rules() const { return first_row_.size() - 1; }

    // Four lines of sums: of rows that none covers, right and wrong; that one covers.
    const std::vector<double>& sums() const { return sums_; }

    // Let a rule come or go.
    void toggle(size_t rule, bool comes) {
        for (size_t i = first_row_[rule]; i < first_row_[rule + 1]; ++i) {
            const size_t row = rows_[i];
            const uint32_t before = times_[row], now = comes ? before + 1 : before - 1;
            times_[row] = now;
            if (before <= 1) add(before, row, -1.0);
            if (now <= 1) add(now, row, 1.0);
        }
    }

    bool may_go(size_t rule) const {
        for (size_t i = first_row_[rule]; i < first_row_[rule + 1]; ++i)
            if (times_[rows_[i]] == 0) return false;
        return true;
    }

  private:
    double* sum(size_t times, size_t wrong) {
        return sums_.data() + (2 * times + wrong) * n_rules();
    }

    void add(size_t times, size_t row, double sign) {
        const double right = sign * right_[row], wrong = sign * wrong_[row];
        double *rights = sum(times, 0), *wrongs = sum(times, 1);
        for (size_t i = first_[row]; i < first_[row + 1]; ++i) {
            rights[rules_[i]] += right;
            wrongs[rules_[i]] += wrong;
        }
    }

    template <typename Use>
    static void for_each_row(const uint64_t* sets, size_t n_rules, size_t n_words, Use&& use) {
        for (size_t rule = 0; rule < n_rules; ++rule)
            for (size_t word = 0; word < n_words; ++word)
                for (uint64_t bits = sets[rule * n_words + word]; bits; bits &= bits - 1)
                    use(rule, word * rows_of_word + size_t(__builtin_ctzll(bits)));
    }

    std::vector<double> right_, wrong_;
    std::vector<uint32_t> times_;  // how many chosen rules cover a row
    std::vector<size_t> first_;    // where the rules of a row begin
    Array<uint32_t> rules_;
    std::vector<double> sums_;
    std::vector<size_t> first_row_;  // where the rows of a rule begin
    Array<uint32_t> rows_;
};

}  // namespace branchwise
