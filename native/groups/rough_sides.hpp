// Entropies of two sides, roughly, while values move from one to the other: only the classes of a
// value have other terms then, which at small nodes are few.

#pragma once

#include <cmath>
#include <vector>

#include "core/score_bounds.hpp"

namespace branchwise {

// Of weights that have no table of logarithms: sums of x log2 x over the classes of a left and a
// right side, each without and, where `missing` are given, with these cases.
class RoughSides {
  public:
    // `all` is what both sides have together, `known` its impurity, `outside` what the gain ratio
    // has besides; at most `n_moves` weights move before both sides are as at the start.
    void begin(const std::vector<double>& all, const std::vector<double>* missing, int64_t known,
               int64_t outside, const Impurities& impurities, const Scale& scale, size_t n_moves) {
        all_ = &all;
        missing_ = missing;
        scale_ = &scale;
        known_ = double(known) * impurities.unit();
        outside_ = double(outside) * impurities.unit();
        // Terms are rough, those of the score are rounded to a unit, and sums as they are made.
        const double terms = 2.0 * double(all.size() + 3);
        const double largest = scale.total * (1 + std::fabs(std::log2(scale.total))) + terms;
        const double rounding = double(n_moves + all.size()) * 1e-15 * largest;
        off_ = 6 * LogBounds::slack * scale.total + terms * scale.unit + rounding;
        each_side([&](Side& side, auto weight_of) {
            side.at_start.resize(all.size());
            side.sum_at_start = 0;
            for (size_t c = 0; c < all.size(); ++c) {
                side.at_start[c] = logs_.x_log2_x(weight_of(c, 0.0));
                side.sum_at_start += side.at_start[c];
            }
        });
    }

    // Nothing is on the left.
    void start() {
        each_side([&](Side& side, auto) {
            side.terms.assign(side.at_start.begin(), side.at_start.end());
            side.sum = side.sum_at_start;
        });
    }

    // These classes have other weights on the left now.
    template <typename Entry>
    void update(const Entry* begin, const Entry* end, const double* left) {
        each_side([&](Side& side, auto weight_of) {
            double* const terms = side.terms.data();
            double sum = side.sum;
            for (const Entry* entry = begin; entry < end; ++entry) {
                const double term = logs_.x_log2_x(weight_of(entry->label, left[entry->label]));
                sum += term - terms[entry->label];
                terms[entry->label] = term;
            }
            side.sum = sum;
        });
    }

    // The most that the score of sides of these sizes can be.
    double most(double left, bool missing_left, double right, bool missing_right) const {
        const double of_left = logs_.x_log2_x(left), of_right = logs_.x_log2_x(right);
        const double in_branches =
            of_left - sides_[2 * missing_left].sum + of_right - sides_[2 * missing_right + 1].sum;
        return ScoreEstimate::rough(known_ - in_branches, outside_ - of_left - of_right, off_,
                                    *scale_)
            .score.most;
    }

  private:
    struct Side {
        std::vector<double> terms, at_start;  // by class
        double sum = 0, sum_at_start = 0;
    };

    // visit(side, weight_of): left and right, then both with the missing cases.
    template <typename Visit>
    [[gnu::always_inline]] inline void each_side(const Visit& visit) {
        const double* const all = all_->data();
        visit(sides_[0], [](size_t, double left) { return left; });
        visit(sides_[1], [all](size_t c, double left) { return all[c] - left; });
        if (missing_ == nullptr) return;
        const double* const missing = missing_->data();
        visit(sides_[2], [missing](size_t c, double left) { return left + missing[c]; });
        visit(sides_[3], [=](size_t c, double left) { return all[c] - left + missing[c]; });
    }

    const LogBounds& logs_ = LogBounds::shared();
    const std::vector<double>* all_ = nullptr;
    const std::vector<double>* missing_ = nullptr;
    const Scale* scale_ = nullptr;
    double known_ = 0, outside_ = 0, off_ = 0;
    Side sides_[4];
};

}  // namespace branchwise
