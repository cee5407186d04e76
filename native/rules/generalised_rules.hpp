// Rules lose conditions while that does not raise their pessimistic error rates: native
// implementation of the generalisation in branchwise/rules/generalise.py.
//
// Rules that have become equal go on as one: what has been a rule before is not followed again.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/memory.hpp"
#include "core/problem.hpp"
#include "prune/estimate.hpp"
#include "rules/rule_counts.hpp"

namespace branchwise {

// The rules that have conditions left, each once, in the order of the rules they come from.
struct GeneralRules {
    Array<int64_t> origins;    // the first rule that each comes from
    Array<int64_t> starts{0};  // where the conditions of each begin
    Array<int64_t> conditions;
    Array<double> rates;
    Array<uint64_t> sets;  // the rows that each covers
};

class Generalisation {
  public:
    Generalisation(const RuleProblem& problem, size_t n_conditions, const Estimate& estimate)
        : problem_(problem),
          estimate_(estimate),
          sizes_(sizes_of(problem.holds, n_conditions, problem.n_words)) {}

    const GeneralRules& rules() const { return rules_; }
    GeneralRules& rules() { return rules_; }

    // Generalise a rule; false to give up.
    bool add(size_t origin, const Span<const int64_t>& conditions, size_t label,
             InterruptCheck& interrupts) {
        std::vector<int64_t> left(conditions.begin(), conditions.end());
        while (!left.empty()) {
            if (!done_.insert(key(label, left)).second) return true;
            if (!interrupts.go_on(problem_.n_words * left.size(), 0)) return false;
            const size_t n = left.size();
            totals_.resize(n + 1);
            rights_.resize(n + 1);
            count_rule(problem_, sizes_, left.data(), n, label, totals_.data(), rights_.data());
            const double rate = rate_of(n);
            size_t least = 0;
            double least_rate = rate_of(0);
            // Of equals the last: fewer cases reached its split.
            for (size_t at = 1; at < n; ++at)
                if (const double without = rate_of(at); without <= least_rate) {
                    least = at;
                    least_rate = without;
                }
            if (least_rate > rate) {
                keep(origin, left, rate);
                return true;
            }
            left.erase(left.begin() + ptrdiff_t(least));
        }
        return true;
    }

  private:
    // A pessimistic error rate; 1 for what covers nothing.
    double rate_of(size_t at) const {
        const double total = totals_[at], errors = total - rights_[at];
        return total > 0 ? (errors + estimate_.added(total, errors)) / total : 1.0;
    }

    void keep(size_t origin, const std::vector<int64_t>& conditions, double rate) {
        rules_.origins.push_back(int64_t(origin));
        rules_.conditions.insert(rules_.conditions.end(), conditions.begin(), conditions.end());
        rules_.starts.push_back(int64_t(rules_.conditions.size()));
        rules_.rates.push_back(rate);
        const size_t n_words = problem_.n_words, begin = rules_.sets.size();
        const uint64_t* first = problem_.holds + size_t(conditions[0]) * n_words;
        rules_.sets.insert(rules_.sets.end(), first, first + n_words);
        for (size_t at = 1; at < conditions.size(); ++at) {
            const uint64_t* holds = problem_.holds + size_t(conditions[at]) * n_words;
            for (size_t word = 0; word < n_words; ++word) rules_.sets[begin + word] &= holds[word];
        }
    }

    static std::string key(size_t label, const std::vector<int64_t>& conditions) {
        const uint64_t of_class = label;
        std::string bytes(reinterpret_cast<const char*>(&of_class), sizeof of_class);
        bytes.append(reinterpret_cast<const char*>(conditions.data()),
                     conditions.size() * sizeof(int64_t));
        return bytes;
    }

    const RuleProblem problem_;
    const Estimate& estimate_;
    const std::vector<uint32_t> sizes_;
    std::vector<double> totals_, rights_;
    std::unordered_set<std::string> done_;  // what rules were on their way
    GeneralRules rules_;
};

}  // namespace branchwise
