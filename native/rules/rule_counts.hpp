// What rules cover, and what they would cover without each of their conditions, on sets
// of rows as bits: native implementation of the sums of branchwise/rules/generalise.py.
//
// A row is covered without a condition if it fulfils all others: if it fails none, or
// that one alone. So one pass over the conditions keeps the rows that have failed none,
// and those that have failed one; where there are none left, the rest is not looked at.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
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

// Words that are looked at together: the way out is taken less often, and foreseen.
constexpr size_t words_at_once = 4;

// Of the rows of some words, those that fail none of the conditions, and those that fail
// one; false where there are neither.
template <size_t n>
bool fail_at_most_one(const std::vector<const uint64_t*>& sets, size_t word, uint64_t* none,
                      uint64_t* one) {
    for (const uint64_t* set : sets) {
        uint64_t some = 0;
        for (size_t i = 0; i < n; ++i) {
            const uint64_t holds = set[word + i];
            one[i] = (one[i] & holds) | (none[i] & ~holds);
            none[i] &= holds;
            some |= one[i] | none[i];
        }
        if (!some) return false;
    }
    return true;
}

// The weights that a rule covers, and of its class among them: without each of its
// conditions, and last with all of them. `sizes` has the number of rows of each set: the
// smallest come first, so that few conditions are looked at where no row is left.
inline void count_rule(const RuleProblem& problem, const std::vector<uint32_t>& sizes,
                       const int64_t* conditions, size_t n_conditions, size_t label, double* totals,
                       double* rights) {
    const size_t n_words = problem.n_words;
    std::vector<size_t> order(n_conditions);
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return sizes[size_t(conditions[a])] < sizes[size_t(conditions[b])];
    });
    std::vector<const uint64_t*> sets(n_conditions);
    for (size_t k = 0; k < n_conditions; ++k)
        sets[k] = problem.holds + size_t(conditions[order[k]]) * n_words;
    std::vector<double> total(n_conditions + 1), right(n_conditions + 1);
    const uint64_t* of_class = problem.of_class + label * n_words;
    const auto add = [&](size_t word, uint64_t none, uint64_t one) {
        if (none) {
            total[n_conditions] += problem.sum(word, none);
            right[n_conditions] += problem.sum(word, none & of_class[word]);
        }
        for (size_t k = 0; one; ++k) {
            const uint64_t alone = one & ~sets[k][word];
            if (!alone) continue;
            one ^= alone;
            total[k] += problem.sum(word, alone);
            right[k] += problem.sum(word, alone & of_class[word]);
        }
    };
    size_t word = 0;
    for (; word + words_at_once <= n_words; word += words_at_once) {
        uint64_t none[words_at_once], one[words_at_once] = {};
        std::copy_n(problem.counted + word, words_at_once, none);
        if (fail_at_most_one<words_at_once>(sets, word, none, one))
            for (size_t i = 0; i < words_at_once; ++i) add(word + i, none[i], one[i]);
    }
    for (; word < n_words; ++word) {
        uint64_t none = problem.counted[word], one = 0;
        if (fail_at_most_one<1>(sets, word, &none, &one)) add(word, none, one);
    }
    for (size_t k = 0; k < n_conditions; ++k) {
        totals[order[k]] = total[k] + total[n_conditions];
        rights[order[k]] = right[k] + right[n_conditions];
    }
    totals[n_conditions] = total[n_conditions];
    rights[n_conditions] = right[n_conditions];
}

// The number of rows of each set.
inline std::vector<uint32_t> sizes_of(const uint64_t* sets, size_t n_sets, size_t n_words) {
    std::vector<uint32_t> sizes(n_sets, 0);
    for (size_t set = 0; set < n_sets; ++set)
        for (size_t word = 0; word < n_words; ++word)
            sizes[set] += uint32_t(__builtin_popcountll(sets[set * n_words + word]));
    return sizes;
}

}  // namespace branchwise
