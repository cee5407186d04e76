// How much impurity a split into values takes away, and for the gain ratio the impurities of
// the branches' sizes. Weights that need logarithms are gathered, to be taken together;
// a pure branch has no impurity, so that only its size may need one.

#pragma once

#include <utility>
#include <vector>

#include "core/problem.hpp"

namespace branchwise {

// Weights whose x log2 x are to be added up. Appending takes no branch: whether a
// weight counts is anybody's guess.
class Terms {
  public:
    explicit Terms(size_t most) : weights_(most + 1) {}

    void clear() { n_ = 0; }
    size_t count() const { return n_; }
    void add(double weight, bool counts) {
        weights_[n_] = weight;
        n_ += counts;
    }
    const double* begin() const { return weights_.data(); }
    const double* end() const { return weights_.data() + n_; }

  private:
    size_t n_ = 0;
    std::vector<double> weights_;
};

// Of a node: x log2 x of its weight, and its impurity by entropy, all logarithms together.
class NodeEntropy {
  public:
    explicit NodeEntropy(const Impurities& impurities) : impurities_(impurities) {}

    // `classes` are those that have some of the weight.
    template <typename W>
    std::pair<int64_t, int64_t> of(double total, const std::vector<W>& weights,
                                   const std::vector<uint32_t>& classes) {
        in_.assign(1, total);
        for (uint32_t c : classes) in_.push_back(double(weights[c]));
        const size_t n = in_.size();
        in_.resize(n + Impurities::block, 1.0);
        out_.resize(n + Impurities::block);
        impurities_.x_log2_x(in_.data(), n, out_.data());
        int64_t impurity = out_[0];
        for (size_t i = 1; i < n; ++i) impurity -= out_[i];
        return {out_[0], impurity};
    }

  private:
    const Impurities& impurities_;
    std::vector<double> in_;
    std::vector<int64_t> out_;
};

template <typename W>
class BranchImpurities {
  public:
    BranchImpurities(const Problem& problem, const Impurities& impurities, size_t most_branches)
        : problem_(problem),
          impurities_(impurities),
          classes_(size_t(problem.n_classes)),
          ratio_(problem.criterion == Criterion::gain_ratio),
          gathers_(std::is_same<W, double>::value && problem.criterion != Criterion::gini &&
                   !impurities.has_table()),
          mixed_sizes_(gathers_ ? most_branches + 1 : 0),
          pure_sizes_(gathers_ ? most_branches + 1 : 0),
          of_classes_(gathers_ ? most_branches * classes_ + 1 : 0),
          of_known_(gathers_ ? classes_ : 0) {
        const size_t most =
            gathers_ ? (most_branches + 1) * (classes_ + 2) + classes_ + Impurities::block : 0;
        all_.resize(most);
        out_.resize(most);
    }

    // For a column of a node that has these classes.
    void clear(const std::vector<uint32_t>& classes) {
        present_ = &classes;
        drop_ = 0;
        sizes_ = 0;
        mixed_sizes_.clear();
        pure_sizes_.clear();
        of_classes_.clear();
        of_known_.clear();
    }

    // The impurity of the cases that branches share out, if no value is missing.
    void expect(int64_t impurity) { whole_ = impurity; }

    // If some are, whose weight is `unknown`.
    void set_known(const W* weights, W total, W unknown) {
        if (!gathers_) {
            whole_ = impurities_.impurity(problem_.criterion, weights, problem_.n_classes, total);
            if (ratio_) sizes_ += impurities_.x_log2_x(unknown);
            return;
        }
        whole_ = 0;
        of_classes_.add(double(total), total > 0);
        for (size_t c = 0; c < classes_; ++c) of_known_.add(double(weights[c]), weights[c] > 0);
        if (ratio_) pure_sizes_.add(double(unknown), unknown > 0);
    }

    void add_branch(const W* cell, W size) {
        if (!gathers_) {
            drop_ -= impurities_.impurity(problem_.criterion, cell, problem_.n_classes, size);
            if (ratio_) sizes_ += impurities_.x_log2_x(size);
            return;
        }
        bool pure = false;
        for (uint32_t c : *present_) pure |= cell[c] == size;
        mixed_sizes_.add(double(size), !pure);
        if (ratio_) pure_sizes_.add(double(size), pure);
        for (uint32_t c : *present_) of_classes_.add(double(cell[c]), !pure & (cell[c] > 0));
    }

    void sum() {
        if (!gathers_) return;
        double* end = all_.data();
        for (const Terms* terms : {&mixed_sizes_, &pure_sizes_, &of_classes_, &of_known_})
            end = std::copy(terms->begin(), terms->end(), end);
        std::fill_n(end, Impurities::block, 1.0);
        impurities_.x_log2_x(all_.data(), size_t(end - all_.data()), out_.data());
        const int64_t* next = out_.data();
        const int64_t of_mixed = add_up(mixed_sizes_, next);
        const int64_t of_pure = add_up(pure_sizes_, next);
        drop_ += add_up(of_classes_, next) - of_mixed;
        drop_ -= add_up(of_known_, next);
        sizes_ += of_mixed + of_pure;
    }

    int64_t drop() const { return whole_ + drop_; }
    int64_t sizes() const { return sizes_; }

  private:
    static int64_t add_up(const Terms& terms, const int64_t*& next) {
        int64_t sum = 0;
        for (const int64_t* end = next + terms.count(); next < end; ++next) sum += *next;
        return sum;
    }

    const Problem& problem_;
    const Impurities& impurities_;
    const size_t classes_;
    const bool ratio_;
    const bool gathers_;

    const std::vector<uint32_t>* present_ = nullptr;
    int64_t whole_ = 0, drop_ = 0, sizes_ = 0;
    Terms mixed_sizes_, pure_sizes_, of_classes_, of_known_;
    std::vector<double> all_;  // of these, one after the other
    std::vector<int64_t> out_;
};

}  // namespace branchwise
