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
    // Let there be so many rows of the background, outcomes, and sets of values.
    void begin(size_t width, size_t at, size_t n_others, size_t n_outcomes, size_t n_sets) {
        at_ = at;
        width_ = width;
        length_ = whole_steps(width);
        n_outcomes_ = n_outcomes;
        others_.resize(n_others);
        lines_.resize(n_others * length_);
        values_.assign(n_outcomes * n_sets, 0.0);
        kinds_.clear();
        kind_of_.assign(n_outcomes * width, unknown_);
        shares_.clear();
        shares_of_.assign(n_outcomes * n_sets * width, unknown_);
    }

    void set_other(size_t other, uint32_t outcome, uint64_t lacking, double weight) {
        const auto n_lacking = uint32_t(__builtin_popcountll(lacking));
        uint32_t& kind = kind_of_[outcome * width_ + n_lacking];
        if (kind == unknown_) {
            kind = uint32_t(kinds_.size());
            kinds_.push_back({outcome, n_lacking});
        }
        others_[other] = {kind, weight};
        double* line = &lines_[other * length_];
        for (size_t i = 0; i < length_; ++i) line[i] = lacking >> i & 1 ? weight : 0.0;
    }

    // The value of the end that an outcome leads to, in a set of values; 0 for the others.
    void set_value(size_t set, uint32_t outcome, double value) {
        values_[set * n_outcomes_ + outcome] = value;
    }
    double value(size_t set, uint32_t outcome) const {
        return values_[set * n_outcomes_ + outcome];
    }

    // Write the effects of the columns of the path on a row that lacks some.
    void find(size_t set, uint64_t lacking, uint32_t outcome, const uint64_t* partners,
              size_t n_words, double* effects) {
        const auto n_lacking = size_t(__builtin_popcountll(lacking));
        Pass pass{shares_at(set, outcome, n_lacking), partners, n_words, 0.0, 0.0};
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
    static size_t whole_steps(size_t width) { return (width + step_ - 1) / step_ * step_; }

  private:
    static constexpr size_t step_ = 4;
    static constexpr size_t n_weights = WholeWeights::most + 1;

    static constexpr uint32_t unknown_ = ~uint32_t(0);

    // Partners with the same outcome that lack as many columns.
    struct Kind {
        uint32_t outcome, n_lacking;
    };

    struct Other {
        uint32_t kind;
        double weight;
    };

    // What a partner of weight 1 adds: to each column that it lacks, to each that the row lacks
    // (less), and to that of the test.
    struct Shares {
        double gain, loss, at_test;
    };

    // Of a row that lacks so many columns and a partner that lacks so many others: what each of
    // these gains, and what each of those loses.
    struct Weights {
        double gain, loss;
    };

    static std::vector<Weights> make_weights() {
        const WholeWeights whole;
        std::vector<Weights> weights(n_weights * n_weights);
        for (size_t own = 0; own < n_weights; ++own)
            for (size_t other = 0; other < n_weights; ++other)
                weights[own * n_weights + other] = {whole.at(other, own), whole.at(own, other)};
        return weights;
    }

    static const std::vector<Weights>& all_weights() {
        static const std::vector<Weights> weights = make_weights();
        return weights;
    }

    struct Pass {
        const Shares* shares;  // of each kind of partner
        const uint64_t* partners;
        size_t n_words;
        double lost, at_test;  // of each column that the row lacks, and of that of the test
    };

    // The shares of all kinds of partners of a row that lacks so many columns before the test.
    const Shares* shares_at(size_t set, uint32_t outcome, size_t n_lacking) {
        uint32_t& known = shares_of_[(set * n_outcomes_ + outcome) * width_ + n_lacking];
        if (known == unknown_) {
            known = uint32_t(shares_.size());
            const double* values = &values_[set * n_outcomes_];
            const Weights* own = &weights_[n_lacking * n_weights];
            for (const Kind& kind : kinds_)
                shares_.push_back(shares(own, values[outcome], kind, values[kind.outcome],
                                         kind.outcome != outcome));
        }
        return &shares_[known];
    }

    // Where they go together, neither lacks the column of the test.
    static Shares shares(const Weights* own, double value, const Kind& kind, double other_value,
                         bool apart) {
        const Weights& here = own[kind.n_lacking + apart];
        const double gain_here = value * here.gain, loss_here = value * here.loss;
        if (!apart) return {gain_here, loss_here, 0.0};
        const Weights& there = own[n_weights + kind.n_lacking];
        const double loss_there = other_value * there.loss;
        return {gain_here + other_value * there.gain, loss_here + loss_there,
                gain_here - loss_there};
    }

    // Steps from `start` on. Their number is known, so that sums stay in registers.
    template <size_t n_steps>
    void add_up(Pass& pass, size_t start, double* effects) const {
        double sums[n_steps * step_] = {};
        double lost = 0.0, at_test = 0.0;
        for (size_t w = 0; w < pass.n_words; ++w)
            for (uint64_t left = pass.partners[w]; left; left &= left - 1) {
                const size_t i = 64 * w + size_t(__builtin_ctzll(left));
                const Shares& shares = pass.shares[others_[i].kind];
                lost += others_[i].weight * shares.loss;
                at_test += others_[i].weight * shares.at_test;
                const double* line = &lines_[i * length_ + start];
                for (size_t j = 0; j < n_steps * step_; ++j) sums[j] += shares.gain * line[j];
            }
        std::copy_n(sums, n_steps * step_, effects + start);
        pass.lost = lost;
        pass.at_test = at_test;
    }

    const std::vector<Weights>& weights_ = all_weights();
    size_t at_ = 0, width_ = 0, length_ = 0, n_outcomes_ = 0;
    std::vector<Kind> kinds_;
    std::vector<uint32_t> kind_of_;  // by outcome and number of columns
    std::vector<Shares> shares_;
    std::vector<uint32_t> shares_of_;  // where they begin, by values, outcome and number of columns
    std::vector<Other> others_;
    std::vector<double> lines_;  // the weight of a row at the columns that it lacks
    std::vector<double> values_;
};

}  // namespace branchwise
