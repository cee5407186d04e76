// How much mass a split into values takes away, and for the gain ratio the masses of
// the branches' sizes. Weights that need logarithms are gathered, to be taken together.

#pragma once

#include <vector>

#include "problem.hpp"

namespace branchwise {

template <typename W>
class BranchMasses {
  public:
    BranchMasses(const Problem& problem, const Masses& masses, size_t most_branches)
        : problem_(problem),
          masses_(masses),
          classes_(static_cast<size_t>(problem.n_classes)),
          ratio_(problem.criterion == Criterion::gain_ratio),
          gathers_(std::is_same<W, double>::value && problem.criterion != Criterion::gini && !masses.has_table()) {
        const size_t most = gathers_ ? (most_branches + 1) * (classes_ + 1) + 1 + Masses::block : 0;
        terms_.resize(most);
        drop_signs_.resize(most);
        size_signs_.resize(most);
        out_.resize(most);
    }

    void clear() {
        n_ = 0;
        drop_ = 0;
        sizes_ = 0;
    }

    // The mass of the cases that branches share out, if no value is missing.
    void expect(int64_t mass) { whole_ = mass; }

    // If some are, whose weight is `unknown`.
    void set_known(const W* weights, W total, W unknown) {
        whole_ = 0;
        if (!gathers_) {
            whole_ = masses_.impurity(problem_.criterion, weights, problem_.n_classes, total);
            if (ratio_) sizes_ += masses_.x_log2_x(unknown);
            return;
        }
        add(total, 1, 0);
        for (size_t c = 0; c < classes_; ++c) add(weights[c], -1, 0);
        if (ratio_) add(unknown, 0, 1);
    }

    void add_branch(const W* cell, W size) {
        if (!gathers_) {
            drop_ -= masses_.impurity(problem_.criterion, cell, problem_.n_classes, size);
            if (ratio_) sizes_ += masses_.x_log2_x(size);
            return;
        }
        bool pure = false;
        for (size_t c = 0; c < classes_; ++c) pure = pure || cell[c] == size;
        if (pure && !ratio_) return;
        add(size, pure ? 0 : -1, 1);
        if (pure) return;
        for (size_t c = 0; c < classes_; ++c) add(cell[c], 1, 0);
    }

    void sum() {
        if (!gathers_) return;
        std::fill_n(&terms_[n_], Masses::block, 1.0);
        masses_.x_log2_x(terms_.data(), n_, out_.data());
        for (size_t i = 0; i < n_; ++i) drop_ += drop_signs_[i] * out_[i];
        if (ratio_)
            for (size_t i = 0; i < n_; ++i) sizes_ += size_signs_[i] * out_[i];
    }

    int64_t drop() const { return whole_ + drop_; }
    int64_t sizes() const { return sizes_; }

  private:
    void add(W weight, int drop_sign, int size_sign) {
        if (!(weight > 0)) return;  // no mass
        terms_[n_] = static_cast<double>(weight);
        drop_signs_[n_] = drop_sign;
        size_signs_[n_] = size_sign;
        ++n_;
    }

    const Problem& problem_;
    const Masses& masses_;
    const size_t classes_;
    const bool ratio_;
    const bool gathers_;

    int64_t whole_ = 0, drop_ = 0, sizes_ = 0;
    size_t n_ = 0;
    std::vector<double> terms_;
    std::vector<int64_t> drop_signs_, size_signs_, out_;
};

}  // namespace branchwise
