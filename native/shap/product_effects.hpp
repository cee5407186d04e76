// Shapley values and interactions of products: native implementation of the effects of
// branchwise/shap/shapley.py, which has the formulas.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "shap/factor_groups.hpp"

namespace branchwise {

// Points and weights of Gauss-Legendre quadrature between 0 and 1.
struct Quadrature {
    std::vector<double> points, weights;

    explicit Quadrature(size_t n) : points(n), weights(n) {
        constexpr double pi = 3.14159265358979323846;
        for (size_t i = 0; i < n; ++i) {
            double x = std::cos(pi * (double(i) + 0.75) / (double(n) + 0.5)), slope = 1.0;
            for (int turn = 0; turn < 100; ++turn) {
                double before = 1.0, value = x;  // Legendre polynomials, by their recurrence
                for (size_t k = 2; k <= n; ++k) {
                    const double next =
                        (double(2 * k - 1) * x * value - double(k - 1) * before) / double(k);
                    before = value;
                    value = next;
                }
                slope = double(n) * (x * value - before) / (x * x - 1.0);
                const double step = value / slope;
                x -= step;
                if (std::fabs(step) < 1e-16) break;
            }
            points[i] = (1.0 - x) / 2.0;
            weights[i] = 1.0 / ((1.0 - x * x) * slope * slope);
        }
    }
};

// The integral for a column that a row has and another one has not, if the row alone has `own`
// columns (this one among them) and the other alone `other` ones: (own - 1)! other! / (own +
// other)!
class WholeWeights {
  public:
    static constexpr size_t most = 64;

    WholeWeights() : weights_((most + 1) * (most + 1), 0.0) {
        for (size_t other = 0; other <= most; ++other) {
            double weight = 1.0 / double(other + 1);
            for (size_t own = 1; own <= most; ++own) {
                weights_[own * (most + 1) + other] = weight;
                weight *= double(own) / double(own + 1 + other);
            }
        }
    }

    double at(size_t own, size_t other) const { return weights_[own * (most + 1) + other]; }

  private:
    std::vector<double> weights_;
};

// The other rows at the end of a path: their groups, and the weight of each.
struct OtherGroups {
    FactorGroups groups;
    std::vector<double> weights;
};

// The same, prepared for the evaluation of many groups of rows.
struct PreparedOthers : OtherGroups {
    enum class Method { pairs, sets, single };
    Method method = Method::pairs;
    // Of every set of columns that a row may lack: what its other columns gain, what they gain if
    // one more is lacking, and what the lacking ones lose.
    std::vector<double> gained, gained_without, lost;
    // Of a single other row, for a factor of 0 and of 1 of each column, at each point: the factor,
    // and what the product of all factors is multiplied by for the effect of the column.
    std::vector<double> factor, effect;
};

// Evaluates products. One for each thread: it has scratch.
class ProductEffects {
  public:
    using Method = PreparedOthers::Method;

    // Choose how to evaluate products with these others, for so many rows in all.
    void prepare(PreparedOthers& others, size_t n_rows, bool pairs) {
        const size_t width = others.groups.width, n = others.groups.size();
        others.method = Method::pairs;
        if (pairs || width > WholeWeights::most) return;
        if (n == 1 && !others.groups.whole[0]) {
            prepare_single(others);
        } else if (width <= most_in_sets && others.groups.all_whole()) {
            const size_t sets = size_t(1) << width;
            // An addition for each point and column against some for each pair.
            if (sets * (width + 1) * (width + 6) / 4 < std::min(sets, n_rows) * n * 4)
                prepare_sets(others);
        }
    }

    // Whether the factors of a whole group are needed, besides where they are 0.
    static bool needs_line(const PreparedOthers& others, bool pairs) {
        return pairs || (others.method == Method::pairs && !others.groups.all_whole());
    }

    // Add up the effects of the columns over the others; false if none can end here. `pairs`:
    // the effects of pairs, a matrix, whose diagonal is not written.
    bool add_up(const double* own, uint64_t zero, bool whole, const PreparedOthers& others,
                bool pairs, double* effects) {
        if (whole && others.method == Method::sets) return look_up(zero, others, effects);
        if (whole && others.method == Method::single) return multiply(zero, others, effects);
        const size_t width = others.groups.width;
        std::fill_n(effects, pairs ? width * width : width, 0.0);
        bool any = false;
        double lost = 0.0;  // of each column that the row has not
        const bool masks = whole && !pairs && width <= WholeWeights::most;
        const auto n_zero = size_t(__builtin_popcountll(zero));
        for (size_t other = 0; other < others.groups.size(); ++other) {
            const uint64_t other_zero = others.groups.zero[other];
            if (zero & other_zero) continue;
            any = true;
            const double weight = others.weights[other];
            if (!masks || !others.groups.whole[other]) {
                other_.resize(width);
                others.groups.copy_line(other, other_.data());
                add_general(own, other_.data(), width, weight, pairs, effects);
                continue;
            }
            const auto n_own = size_t(__builtin_popcountll(other_zero));
            if (n_zero) lost += weight * whole_weights_.at(n_zero, n_own);
            if (!n_own) continue;
            const double gain = weight * whole_weights_.at(n_own, n_zero);
            for (uint64_t left = other_zero; left; left &= left - 1)
                effects[__builtin_ctzll(left)] += gain;
        }
        if (lost != 0.0)
            for (uint64_t left = zero; left; left &= left - 1)
                effects[__builtin_ctzll(left)] -= lost;
        return any;
    }

  private:
    const Quadrature& quadrature(size_t width) {
        const size_t n = std::max<size_t>((width + 1) / 2, 1);
        while (quadratures_.size() < n) quadratures_.emplace_back(quadratures_.size() + 1);
        return quadratures_[n - 1];
    }

    // Sums over the others that have all columns of a set, for all sets: each is the sum over its
    // subsets of what the others lack.
    void prepare_sets(PreparedOthers& others) {
        others.method = Method::sets;
        const size_t width = others.groups.width, n_sets = size_t(1) << width;
        const Quadrature& rule = quadrature(width);
        const size_t n = rule.points.size();
        double all = 0.0;  // weight of those that lack nothing: no column gains by them
        sums_.assign(n_sets * n, 0.0);
        for (size_t other = 0; other < others.groups.size(); ++other) {
            const uint64_t set = others.groups.zero[other];
            if (!set) all += others.weights[other];
            for (size_t t = 0; set && t < n; ++t)
                sums_[set * n + t] +=
                    others.weights[other] * std::pow(rule.points[t], __builtin_popcountll(set) - 1);
        }
        for (size_t run = n; run < n_sets * n; run *= 2)
            for (size_t start = run; start < n_sets * n; start += 2 * run)
                for (size_t i = start; i < start + run; ++i) sums_[i] += sums_[i - run];
        // By the number of lacking columns: weights times powers of 1 - t.
        powers_.resize((width + 2) * n);
        for (size_t t = 0; t < n; ++t) {
            powers_[t] = 0.0;  // a set of none is not lacking one less
            powers_[n + t] = rule.weights[t];
            for (size_t k = 2; k < width + 2; ++k)
                powers_[k * n + t] = powers_[(k - 1) * n + t] * (1.0 - rule.points[t]);
        }
        for (auto* array : {&others.gained, &others.gained_without, &others.lost})
            array->resize(n_sets);
        for (size_t set = 0; set < n_sets; ++set) {
            const double* sum = &sums_[(n_sets - 1 - set) * n];
            const double* power = &powers_[size_t(__builtin_popcountll(set)) * n];
            double gained = 0.0, without = 0.0, lost = 0.0;
            for (size_t t = 0; t < n; ++t) {
                gained += sum[t] * power[n + t];
                without += sum[t] * power[t];
                lost += (all + sum[t] * rule.points[t]) * power[t];
            }
            others.gained[set] = gained;
            others.gained_without[set] = without;
            others.lost[set] = lost;
        }
    }

    static bool look_up(uint64_t zero, const PreparedOthers& others, double* effects) {
        const double gained = others.gained[zero], lost = others.lost[zero];
        if (gained == 0.0 && lost == 0.0) return false;
        for (size_t i = 0; i < others.groups.width; ++i) {
            const uint64_t bit = uint64_t(1) << i;
            effects[i] = zero & bit ? -lost : gained - others.gained_without[zero | bit];
        }
        return true;
    }

    void prepare_single(PreparedOthers& others) {
        others.method = Method::single;
        const size_t width = others.groups.width;
        const Quadrature& rule = quadrature(width);
        const size_t n = rule.points.size();
        other_.resize(width);
        others.groups.copy_line(0, other_.data());
        const double* other = other_.data();
        others.factor.resize(2 * width * n);
        others.effect.resize(2 * width * n);
        for (size_t i = 0; i < 2 * width; ++i) {
            const double gain = double(i % 2) - other[i / 2];
            for (size_t t = 0; t < n; ++t) {
                const double factor = other[i / 2] + rule.points[t] * gain;
                others.factor[i * n + t] = factor;
                others.effect[i * n + t] =
                    factor == 0.0 ? 0.0 : others.weights[0] * rule.weights[t] * gain / factor;
            }
        }
    }

    bool multiply(uint64_t zero, const PreparedOthers& others, double* effects) {
        if (zero & others.groups.zero[0]) return false;
        const size_t width = others.groups.width;
        const size_t n = quadrature(width).points.size();
        after_.assign(n, 1.0);
        for (size_t i = 0; i < width; ++i) {
            const double* factor = &others.factor[(2 * i + !(zero >> i & 1)) * n];
            for (size_t t = 0; t < n; ++t) after_[t] *= factor[t];
        }
        for (size_t i = 0; i < width; ++i)
            effects[i] = dot(&others.effect[(2 * i + !(zero >> i & 1)) * n], after_.data(), n);
        return true;
    }

    void add_general(const double* own, const double* other, size_t width, double weight,
                     bool pairs, double* effects) {
        const Quadrature& rule = quadrature(width);
        const size_t n = rule.points.size();
        factors_.resize(width * n);
        before_.resize((width + 1) * n);
        after_.resize(n);
        std::fill_n(before_.data(), n, 1.0);
        for (size_t i = 0; i < width; ++i) {
            const double gain = own[i] - other[i];
            double* factor = &factors_[i * n];
            const double* before = &before_[i * n];
            double* next = &before_[(i + 1) * n];
            for (size_t t = 0; t < n; ++t) {
                factor[t] = other[i] + rule.points[t] * gain;
                next[t] = before[t] * factor[t];
            }
        }
        for (size_t t = 0; t < n; ++t) after_[t] = weight * rule.weights[t];
        for (size_t i = width; i-- > 0;) {
            const double gain = own[i] - other[i];
            const double* factor = &factors_[i * n];
            if (gain != 0.0) {
                if (pairs)
                    add_pairs(own, other, i, width, n, gain, effects);
                else
                    effects[i] += gain * dot(&before_[i * n], after_.data(), n);
            }
            for (size_t t = 0; t < n; ++t) after_[t] *= factor[t];
        }
    }

    // The pairs of a column and an earlier one: all products but theirs.
    void add_pairs(const double* own, const double* other, size_t i, size_t width, size_t n,
                   double gain, double* effects) {
        between_.assign(after_.begin(), after_.end());
        for (size_t j = i; j-- > 0;) {
            const double both = gain * (own[j] - other[j]);
            if (both != 0.0) {
                const double effect = both * dot(&before_[j * n], between_.data(), n);
                effects[i * width + j] += effect;
                effects[j * width + i] += effect;
            }
            const double* factor = &factors_[j * n];
            for (size_t t = 0; t < n; ++t) between_[t] *= factor[t];
        }
    }

    static double dot(const double* a, const double* b, size_t n) {
        double sum = 0.0;
        for (size_t t = 0; t < n; ++t) sum += a[t] * b[t];
        return sum;
    }

    // Sets of more columns would take more memory than the nearer caches have.
    static constexpr size_t most_in_sets = 13;

    const WholeWeights whole_weights_;
    std::vector<Quadrature> quadratures_;
    std::vector<double> factors_, before_, after_, between_, sums_, powers_, other_;
};

}  // namespace branchwise
