// What rules cover, and what they would cover without each of their conditions, on sets
// of rows as bits: native implementation of the sums of branchwise/rules/generalise.py.
//
// A row is covered without a condition if it fulfils all others: if it fails none, or
// that one alone. So one pass over the conditions keeps the rows that have failed none,
// and those that have failed one; where there are none left, the rest is not looked at.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace branchwise {

constexpr size_t rows_of_word = 64;

// Weights of rows in sets: their number, or the sum of weights (exact, being on a grid).
struct RowSum {
    const double* weights;  // of all rows; null: each is 1

    double operator()(size_t word, uint64_t bits) const {
        if (!weights) return double(__builtin_popcountll(bits));
        double sum = 0;
        for (; bits; bits &= bits - 1)
            sum += weights[word * rows_of_word + size_t(__builtin_ctzll(bits))];
        return sum;
    }
};

struct RuleProblem {
    const uint64_t* holds;     // a set for each condition
    const uint64_t* of_class;  // a set for each class
    const uint64_t* counted;   // the rows that count at all
    size_t n_words;
    RowSum sum;
};

// The weights that a rule covers, and of its class among them: without each of its
// conditions, and last with all of them.
inline void count_rule(const RuleProblem& problem, const int64_t* conditions, size_t n_conditions,
                       size_t label, double* total, double* right) {
    const size_t n_words = problem.n_words;
    std::vector<const uint64_t*> sets(n_conditions);
    for (size_t k = 0; k < n_conditions; ++k)
        sets[k] = problem.holds + size_t(conditions[k]) * n_words;
    const uint64_t* of_class = problem.of_class + label * n_words;
    for (size_t k = 0; k <= n_conditions; ++k) total[k] = right[k] = 0;
    for (size_t word = 0; word < n_words; ++word) {
        uint64_t none = problem.counted[word], one = 0;  // rows by conditions that they fail
        for (size_t k = 0; k < n_conditions && (none | one); ++k) {
            const uint64_t holds = sets[k][word];
            one = (one & holds) | (none & ~holds);
            none &= holds;
        }
        if (none) {
            total[n_conditions] += problem.sum(word, none);
            right[n_conditions] += problem.sum(word, none & of_class[word]);
        }
        if (!one) continue;
        for (size_t k = 0; k < n_conditions; ++k) {
            const uint64_t alone = one & ~sets[k][word];
            if (!alone) continue;
            total[k] += problem.sum(word, alone);
            right[k] += problem.sum(word, alone & of_class[word]);
        }
    }
    for (size_t k = 0; k < n_conditions; ++k) {
        total[k] += total[n_conditions];
        right[k] += right[n_conditions];
    }
}

}  // namespace branchwise
