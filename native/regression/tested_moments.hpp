// The moments of the branches of a split that is tested for significance.

#pragma once

#include <vector>

#include "regression/moments.hpp"

namespace branchwise {

class TestedMoments {
  public:
    TestedMoments(const NumberScale& scale, size_t n_branches)
        : scale_(scale), n_(n_branches), moments_(n_branches * scale.width(), 0.0) {}

    template <bool weighted>
    void add(size_t branch, double number, double weight) {
        double* const moments = &moments_[branch * scale_.width()];
        moments[0] += weight;
        scale_.template add_number<weighted>(number, weight, moments + 1);
        scale_.template add_square<weighted>(number, weight, scale_.squares_of(moments));
    }

    // Squared distances of numbers from the means of their branches, and from that of all.
    double within() const {
        double sum = 0;
        for (size_t b = 0; b < n_; ++b) sum += squares(&moments_[b * scale_.width()]);
        return sum;
    }
    double whole() const {
        std::vector<double> all(scale_.width(), 0.0);
        for (size_t i = 0; i < moments_.size(); ++i) all[i % all.size()] += moments_[i];
        return squares(all.data());
    }

  private:
    double squares(const double* moments) const {
        return variance_of(scale_, moments) * moments[0];
    }

    const NumberScale& scale_;
    const size_t n_;
    std::vector<double> moments_;
};

}  // namespace branchwise
