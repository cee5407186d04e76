// Shapley values at a test where cases end, for rows that meet all conditions of a path on a
// column or not, against single rows of the background.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "shap/product_effects.hpp"

namespace branchwise {

// A row and a row of the background, its partner, each lack a set of the columns before a test,
// that of the test aside. The sets are disjoint. The two get to two ends at most: where the row
// goes, and where its partner goes. What a column is worth depends on the sizes of both sets and
// on the values of these ends, so one pass over the partners of a row does for all ends.
//
// Outcomes are numbers; one that says "lacks the column already" leads to no end.
class PartnerEffects {
  public:
    // Let there be so many rows of the background, and outcomes.
    void begin(size_t width, size_t at, size_t n_others, size_t n_outcomes) {
        at_ = at;
        length_ = (width + step_ - 1) / step_ * step_;
        others_.resize(n_others);
        lines_.resize(n_others * length_);
        values_.assign(n_outcomes, 0.0);
    }

    void set_other(size_t other, uint32_t outcome, uint64_t lacking, double weight) {
        others_[other] = {outcome, uint32_t(__builtin_popcountll(lacking)), weight};
        double* line = &lines_[other * length_];
        for (size_t i = 0; i < length_; ++i) line[i] = lacking >> i & 1 ? weight : 0.0;
    }

    // The value of the end that an outcome leads to; 0 for the others.
    void set_value(uint32_t outcome, double value) { values_[outcome] = value; }
    double value(uint32_t outcome) const { return values_[outcome]; }

    // Write the effects of the columns of the path on a row that lacks some.
    void find(uint64_t lacking, uint32_t outcome, const uint64_t* partners, size_t n_words,
              double* effects) const {
        Pass pass{&weights_[size_t(__builtin_popcountll(lacking)) * n_weights],
                  outcome,
                  partners,
                  n_words,
                  0.0,
                  0.0};
        for (size_t start = 0; start < length_; start += 4 * step_) {
            switch ((length_ - start) / step_) {
                case 1:
                    add_up<1>(pass, start, effects);
                    break;
                case 2:
                    add_up<2>(pass, start, effects);
                    break;
                case 3:
                    add_up<3>(pass, start, effects);
                    break;
                default:
                    add_up<4>(pass, start, effects);
            }
        }
        for (uint64_t column = lacking; column; column &= column - 1)
            effects[size_t(__builtin_ctzll(column))] = -pass.lost;
        effects[at_] = pass.at_test;
    }

    // What `find` may write: whole steps of the columns of the longest path.
    static constexpr size_t most_effects = WholeWeights::most;

  private:
    static constexpr size_t step_ = 4;
    static constexpr double zero_or_one[2] = {0.0, 1.0};  // without a branch
    static constexpr size_t n_weights = WholeWeights::most + 1;

    struct Other {
        uint32_t outcome;
        uint32_t n_lacking;
        double weight;
    };

    // Of a row that lacks so many columns and a partner that lacks so many others: what each of
    // these gains, and what each of those loses.
    struct Weights {
        double gain, loss;
    };

    static std::vector<Weights> all_weights() {
        const WholeWeights whole;
        std::vector<Weights> weights(n_weights * n_weights);
        for (size_t own = 0; own < n_weights; ++own)
            for (size_t other = 0; other < n_weights; ++other)
                weights[own * n_weights + other] = {whole.at(other, own), whole.at(own, other)};
        return weights;
    }

    struct Pass {
        const Weights* weights;  // of the columns that the row lacks before the test
        uint32_t outcome;
        const uint64_t* partners;
        size_t n_words;
        double lost, at_test;  // of each column that the row lacks, and of that of the test
    };

    // Steps from `start` on. Their number is known, so that sums stay in registers.
    template <size_t n_steps>
    void add_up(Pass& pass, size_t start, double* effects) const {
        const Weights* own = pass.weights;
        const Weights* own_one_more = own + n_weights;
        const double value = values_[pass.outcome];
        double sums[n_steps * step_] = {};
        double lost = 0.0, at_test = 0.0;
        for (size_t w = 0; w < pass.n_words; ++w)
            for (uint64_t left = pass.partners[w]; left; left &= left - 1) {
                const size_t i = 64 * w + size_t(__builtin_ctzll(left));
                const Other& other = others_[i];
                // Where they go together, neither lacks the column of the test.
                const bool apart = other.outcome != pass.outcome;
                const Weights& here = own[other.n_lacking + apart];
                const Weights& there = own_one_more[other.n_lacking];
                const double if_apart = zero_or_one[apart];
                const double apart_value = if_apart * values_[other.outcome];
                const double gain_here = value * here.gain;
                const double loss_there = apart_value * there.loss;
                lost += other.weight * (value * here.loss + loss_there);
                at_test += other.weight * (if_apart * gain_here - loss_there);
                const double gain = gain_here + apart_value * there.gain;
                const double* line = &lines_[i * length_ + start];
                for (size_t j = 0; j < n_steps * step_; ++j) sums[j] += gain * line[j];
            }
        std::copy_n(sums, n_steps * step_, effects + start);
        pass.lost = lost;
        pass.at_test = at_test;
    }

    const std::vector<Weights> weights_ = all_weights();
    size_t at_ = 0, length_ = 0;
    std::vector<Other> others_;
    std::vector<double> lines_;  // the weight of a row at the columns that it lacks
    std::vector<double> values_;
};

}  // namespace branchwise
