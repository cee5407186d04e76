// Weighted impurities of numbers at one node: native implementation of
// branchwise/grow/moments.py, the same basic IEEE operations in the same order.
//
// A group of rows has a weight and the sum of its numbers, in limbs that add up exactly
// (branchwise/data/exact_sums.py). Before it is scored its sum becomes a distance from the mean
// of the node, rounded once, to two limbs of the node; these add up exactly from there on.

#pragma once

#include <vector>

#include "core/choose.hpp"
#include "core/tree.hpp"
#include "regression/double_double.hpp"
#include "regression/wide.hpp"

namespace branchwise {

// How numbers are counted; see Scale in branchwise/data/target.py.
struct NumberScale {
    static constexpr size_t most_limbs = 40;

    int weight_step = 0;             // exponents of powers of two
    std::vector<int> sums, squares;  // of the limbs
    int spare = 0;                   // bits of the number of cases
    const double* values = nullptr;  // by row: the number, in its unit
    bool poisson = false;
    std::vector<double> sum_steps, square_steps;          // these powers themselves
    std::vector<double> sums_in_steps, squares_in_steps;  // and what makes limbs numbers of steps
    // Next to these numbers float64 are a step apart, so that adding one rounds to steps; empty
    // where limbs have too many of them.
    std::vector<double> sum_rounders, square_rounders;

    size_t width() const { return 1 + sums.size() + squares.size(); }
    const double* squares_of(const double* moments) const { return moments + 1 + sums.size(); }
    double* squares_of(double* moments) const { return moments + 1 + sums.size(); }

    void set_steps() {
        for (int exponent : sums) sum_steps.push_back(std::ldexp(1.0, exponent));
        for (int exponent : squares) square_steps.push_back(std::ldexp(1.0, exponent));
        for (int exponent : sums) sums_in_steps.push_back(std::ldexp(1.0, -exponent));
        for (int exponent : squares) squares_in_steps.push_back(std::ldexp(1.0, -exponent));
        sum_rounders = rounders_of(sums);
        square_rounders = rounders_of(squares);
    }

    // Add the limbs of a number to a sum; unless rows have weights, `weight` is how often the row
    // counts. Its limbs times that are exact: those of all rows, added up one by one, are.
    template <bool weighted>
    void add_number(double value, double weight, double* sum) const {
        if constexpr (weighted)
            add_product(weight, value, sum_steps, sum);
        else if (!sum_rounders.empty())
            add_rounded(value, weight, sum_rounders, sum);
        else
            add_limbs(value, weight, sum_steps, sum);
    }

    // The same for its square.
    template <bool weighted>
    void add_square(double value, double weight, double* sum) const {
        double high, low;
        two_product(value, value, high, low);
        if constexpr (weighted) {
            add_product(weight, high, square_steps, sum);
            add_product(weight, low, square_steps, sum);
        } else if (!square_rounders.empty()) {
            add_rounded(high, weight, square_rounders, sum);
            add_rounded(low, weight, square_rounders, sum);
        } else {
            add_limbs(high, weight, square_steps, sum);
            add_limbs(low, weight, square_steps, sum);
        }
    }

    // Whether these are the moments of one number so many times: the number and its square are
    // made up of these limbs, and nothing is left of them.
    bool is_one_number(const double* moments) const {
        if (weight_step != 0 || sum_rounders.empty() || square_rounders.empty()) return false;
        double number = 0, high, low;
        for (size_t at = sums.size(); at > 0; --at) number += moments[at] / moments[0];
        two_product(number, number, high, low);
        return consist_of(number, 0.0, moments[0], sum_rounders, moments + 1) &&
               consist_of(high, low, moments[0], square_rounders, squares_of(moments));
    }

  private:
    static bool consist_of(double high, double low, double times,
                           const std::vector<double>& rounders, const double* limbs) {
        for (size_t at = 0; at < rounders.size(); ++at) {
            const double above = (high + rounders[at]) - rounders[at];
            const double below = (low + rounders[at]) - rounders[at];
            if (times * above + times * below != limbs[at]) return false;
            high -= above;
            low -= below;
        }
        return high == 0 && low == 0;
    }

    static void add_product(double a, double b, const std::vector<double>& steps, double* to) {
        double product, rest;
        two_product(a, b, product, rest);
        add_limbs(product, 1.0, steps, to);
        add_limbs(rest, 1.0, steps, to);
    }

    // For terms of at most 1.
    static std::vector<double> rounders_of(const std::vector<int>& exponents) {
        constexpr int most_bits = 50, digits = 52;
        std::vector<double> rounders;
        int above = 0;
        for (int exponent : exponents) {
            if (above - exponent > most_bits || exponent < -900) return {};
            rounders.push_back(std::ldexp(1.5, exponent + digits));
            above = exponent;
        }
        return rounders;
    }

    // As add_limbs does, without division.
    static void add_rounded(double term, double times, const std::vector<double>& rounders,
                            double* to) {
        for (size_t at = 0; at < rounders.size() && term != 0; ++at) {
            const double limb = (term + rounders[at]) - rounders[at];
            to[at] += times * limb;
            term -= limb;
        }
    }

    static void add_limbs(double term, double times, const std::vector<double>& steps, double* to) {
        for (size_t at = 0; at < steps.size(); ++at) {
            const double limb = std::rint(term / steps[at]) * steps[at];
            to[at] += times * limb;
            term -= limb;
        }
    }
};

// Moments that contradict one another may make anything; none is beyond these.
inline double bounded(double number) {
    constexpr double most = 4e18;
    return number > -most ? std::min(number, most) : -most;
}

// ---- exact means and variances -----------------------------------------------------

inline Wide add_up_limbs(const double* limbs, const std::vector<int>& exponents, bool& negative) {
    Wide above, below;
    for (size_t at = 0; at < exponents.size(); ++at) {
        const double steps = std::ldexp(std::fabs(limbs[at]), -exponents[at]);
        const auto whole = uint64_t(bounded(steps));
        (limbs[at] < 0 ? below : above).add(whole, exponents[at] - exponents.back());
    }
    negative = above.less_than(below);
    return negative ? below.minus(above) : above.minus(below);
}

// The weight and the sum of some rows, as whole numbers of their steps.
struct WholeSum {
    Wide sum;
    bool negative;
    uint64_t weight;

    WholeSum(const NumberScale& scale, const double* moments) {
        sum = add_up_limbs(moments + 1, scale.sums, negative);
        const double steps = std::ldexp(moments[0], -scale.weight_step);
        weight = std::clamp<uint64_t>(uint64_t(bounded(steps)), 1, uint64_t(1) << 53);
    }
};

// The sum of some limbs by double_double.hpp, and that of their sizes.
struct LimbSum {
    DoubleDouble sum;
    double size = 0;
};

// False where they are no limbs, or too many steps; `in_steps`: what makes them numbers of steps.
inline bool add_up_limbs(const double* limbs, const std::vector<double>& in_steps, LimbSum& found) {
    for (size_t at = in_steps.size(); at-- > 0;) {
        const double whole = limbs[at] * in_steps[at];
        if (!(std::fabs(whole) < 0x1p62) || std::rint(whole) != whole) return false;
        found.sum = found.sum.plus(limbs[at]);
        found.size += std::fabs(limbs[at]);
    }
    return true;
}

// The same by double_double.hpp; false where it is not certain how they are rounded. Sums of
// limbs are off by less than 2^-100 of the largest, whose sign may be another.
inline bool nearly_mean(const LimbSum& sum, double weight, double& mean) {
    const DoubleDouble found = sum.sum.over(weight);
    mean = found.high;
    return std::fabs(mean) >= least_exact && found.rounds(sum.size / weight * 0x1p-96);
}
inline bool nearly_variance(const LimbSum& sum, const LimbSum& squares, double weight,
                            double& variance) {
    const double whole = squares.size * weight + sum.size * sum.size;
    const DoubleDouble found =
        squares.sum.times(weight).minus(sum.sum.squared()).over(weight).over(weight);
    variance = found.high;
    return variance >= least_exact && whole <= most_exact &&
           found.rounds(whole / weight / weight * 0x1p-94);
}

// Whether moments are those of rows that can be added up so: with a weight in whole steps.
inline bool are_plain(const NumberScale& scale, const double* moments) {
    const double steps =
        scale.weight_step == 0 ? moments[0] : std::ldexp(moments[0], -scale.weight_step);
    return scale.sum_steps.size() == scale.sums.size() && moments[0] >= least_exact && steps >= 1 &&
           steps <= 0x1p53 && std::rint(steps) == steps;
}

inline bool is_single_row(const NumberScale& scale, const double* moments) {
    return moments[0] == 1 && scale.weight_step == 0;
}

// Its limbs make up its number.
inline double mean_of_row(const NumberScale& scale, const double* moments, int unit) {
    double number = 0;
    for (size_t at = scale.sums.size(); at-- > 0;) number += moments[1 + at];
    return times_power_of_two(number, unit) + 0.0;
}

// By whole numbers, rounded once; the mean times 2^unit.
inline double exact_mean(const NumberScale& scale, const double* moments, int unit) {
    const WholeSum whole(scale, moments);
    const int exponent = scale.sums.back() - scale.weight_step + unit;
    const double mean = ratio(whole.sum, whole.weight, 1, exponent);
    return (whole.negative ? -mean : mean) + 0.0;
}
inline double exact_variance(const NumberScale& scale, const double* moments) {
    const WholeSum whole(scale, moments);
    if (whole.weight == 1) return 0.0;
    bool negative;
    const Wide squares = add_up_limbs(scale.squares_of(moments), scale.squares, negative);
    Wide weight;
    weight.add(whole.weight, 0);
    const int once = scale.sums.back() - scale.weight_step;
    const int twice = scale.squares.back() - scale.weight_step;
    const int low = std::min(twice, 2 * once);
    const Wide above = squares.times(weight).shifted(twice - low);
    const Wide below = whole.sum.times(whole.sum).shifted(2 * once - low);
    if (negative || above.less_than(below)) return 0.0;
    return ratio(above.minus(below), whole.weight, 2, low);
}

// Times 2^unit, a rounded mean is rounded once, unless that is a tiny number: then false.
inline bool in_unit(double& mean, int unit) {
    mean = times_power_of_two(mean, unit);
    return std::fabs(mean) >= least_exact;
}

// Times 2^unit, rounded once.
inline double mean_of(const NumberScale& scale, const double* moments, int unit = 0) {
    if (is_single_row(scale, moments)) return mean_of_row(scale, moments, unit);
    LimbSum sum;
    double mean;
    if (are_plain(scale, moments) && add_up_limbs(moments + 1, scale.sums_in_steps, sum) &&
        nearly_mean(sum, moments[0], mean) && in_unit(mean, unit))
        return mean;
    return exact_mean(scale, moments, unit);
}

// In the unit squared, rounded once; 0 where all numbers are equal.
inline double variance_of(const NumberScale& scale, const double* moments) {
    if (is_single_row(scale, moments)) return 0.0;
    LimbSum sum, squares;
    double variance;
    if (are_plain(scale, moments) && add_up_limbs(moments + 1, scale.sums_in_steps, sum) &&
        add_up_limbs(scale.squares_of(moments), scale.squares_in_steps, squares) &&
        nearly_variance(sum, squares, moments[0], variance))
        return variance;
    return exact_variance(scale, moments);
}

// Both for one node, which adds up its sum once; times 2^unit. `varies`: whether its numbers may.
struct MeanAndDeviation {
    double mean, deviation;
};
inline MeanAndDeviation mean_and_deviation(const NumberScale& scale, const double* moments,
                                           int unit, bool varies) {
    LimbSum sum, squares;
    double mean = 0, variance = 0;
    const bool plain =
        are_plain(scale, moments) && add_up_limbs(moments + 1, scale.sums_in_steps, sum);
    const bool has_mean = plain && nearly_mean(sum, moments[0], mean) && in_unit(mean, unit);
    if (!has_mean) mean = exact_mean(scale, moments, unit);
    if (varies) {
        const bool has_variance =
            plain && add_up_limbs(scale.squares_of(moments), scale.squares_in_steps, squares) &&
            nearly_variance(sum, squares, moments[0], variance);
        if (!has_variance) variance = exact_variance(scale, moments);
    }
    return {mean, times_power_of_two(std::sqrt(variance), unit)};
}

// A group of rows in terms of the criterion: its weight and its distance, in two limbs.
struct Distance {
    double weight = 0, high = 0, low = 0;

    double total() const { return high + low; }
    void operator+=(const Distance& other) {
        weight += other.weight;
        high += other.high;
        low += other.low;
    }
    void operator-=(const Distance& other) { *this = *this - other; }
    Distance operator-(const Distance& other) const {
        return {weight - other.weight, high - other.high, low - other.low};
    }
};

class NodeMoments {
  public:
    NodeMoments(const NumberScale& scale, const std::vector<double>& series)
        : scale_(scale), series_(series) {}

    // For the node that has these moments. Then squared distances from the mean of its n rows are
    // added up: they tell the variance nearly, which will do unless it is next to a power of two.
    void find_mean(const double* moments) {
        weight_ = moments[0];
        mean_ = mean_of(scale_, moments);
        centre_ = scale_.poisson ? 0.0 : mean_;
    }
    template <typename Variance>
    void find_scale(size_t n, double squares, const Variance& exact_variance) {
        int widest = 0, size = 0;
        if (scale_.poisson) {
            std::frexp(mean_ * weight_, &size);
            exponent_ = size;
        } else {
            const double above = std::nextafter(std::fabs(mean_), HUGE_VAL) - std::fabs(mean_);
            int bits, other;
            const double off = squares * (double(n) + 64) * std::numeric_limits<double>::epsilon();
            std::frexp(squares - off, &bits);
            std::frexp(squares + off, &other);
            const bool known = squares >= least_squares && above * above * weight_ <= off / 4;
            if (!known || bits != other)
                std::frexp((exact_variance() + above * above) * weight_, &bits);
            size = (bits + (bits > 0)) / 2;  // rounded up
            exponent_ = 2 * size;
            std::frexp(weight_, &bits);
            widest = (bits - (bits < 0 && bits % 2)) / 2 + 1;  // rounded down
        }
        factor_ = std::ldexp(1.0, -size);
        step_ = std::ldexp(1.0, widest - moment_bits);
        low_step_ = step_ * std::ldexp(1.0, scale_.spare - moment_bits);
        bits_ = scale_.poisson ? poisson_bits : variance_bits;
        unit_ = std::ldexp(1.0, -bits_);
        fixed_ = std::ldexp(1.0, bits_);
        resolution_ = double(moment_noise_units) * unit_ / weight_;
    }

    // For distances alone: what the reference rounds them by.
    void set_steps(double centre, double factor, double step, double low_step) {
        centre_ = centre;
        factor_ = factor;
        step_ = step;
        low_step_ = low_step;
    }

    double centre() const { return centre_; }
    double factor() const { return factor_; }
    double weight() const { return weight_; }
    double least_distance() const { return low_step_; }  // others are rounded to it, or to 0

    // Of a group with this weight and these limbs of its sum.
    Distance distance(double weight, const double* sums) const {
        double limbs[NumberScale::most_limbs];
        const size_t n = scale_.sums.size();
        std::copy_n(sums, n, limbs);
        for (size_t at = n; at-- > 1;) {
            const double above = scale_.sum_steps[at - 1];
            const double carried = std::floor(limbs[at] / above + 0.5) * above;
            limbs[at] -= carried;
            limbs[at - 1] += carried;
        }
        double total, rest, left;
        two_product(-centre_, weight, total, rest);
        for (size_t at = 0; at < n; ++at) {
            two_sum(total, limbs[at], total, left);
            rest += left;
        }
        total *= factor_;
        rest *= factor_;
        const double high = std::rint(total / step_) * step_;
        const double low = std::rint(((total - high) + rest) / low_step_) * low_step_;
        return {weight, high, low};
    }

    // Weight times impurity of a group, up to a constant that all splits of the node share.
    int64_t impurity(const Distance& group) const {
        const double weight = group.weight > 0 ? group.weight : 1.0;
        const double total = group.total();
        const double amount =
            scale_.poisson ? total * log2_basic(total / weight, series_.data(), int(series_.size()))
                           : total * (total / weight);
        return -int64_t(bounded(std::rint(amount * fixed_)));
    }

    // A leaf must not predict a rate of 0.
    bool allows(const Distance& group) const { return !scale_.poisson || group.total() > 0; }

    // What a decrease of the impurity is worth; the same for all nodes `in_units`.
    double scaled(int64_t drop) const { return double(drop) * unit_; }
    double scaled_score(double score) const { return std::ldexp(score, -exponent_) * weight_; }
    double gain(int64_t drop) const { return double(drop) * unit_ / weight_; }
    double in_units(double amount) const { return std::ldexp(amount, exponent_); }
    double resolution() const { return resolution_; }

  private:
    static constexpr double least_squares = 1e-280;  // of normal numbers

    const NumberScale& scale_;
    const std::vector<double>& series_;
    double weight_ = 0, mean_ = 0, centre_ = 0, factor_ = 0, step_ = 0, low_step_ = 0;
    double unit_ = 0, fixed_ = 0, resolution_ = 0;
    int exponent_ = 0, bits_ = 0;
};

// Nodes have the squares of their children, besides their own. These are added later than a node.
inline void add_up_squares(std::vector<Grown>& grown, const NumberScale& scale) {
    const auto squares_of = [&](Grown& part, size_t node) {
        return scale.squares_of(&part.weights[node * scale.width()]);
    };
    for (size_t at = grown.size(); at-- > 0;) {
        Grown& part = grown[at];
        for (size_t node = part.nodes.size(); node-- > 0;) {
            const Node& parent = part.nodes[node];
            Grown& there = parent.is_graft() ? grown[parent.graft()] : part;
            double* const own = squares_of(part, node);
            const int32_t n_parts = parent.is_graft() ? 1 : parent.n_children;
            for (int32_t b = 0; b < n_parts; ++b) {
                const double* const more = squares_of(there, parent.first_child + size_t(b));
                for (size_t k = 0; k < scale.squares.size(); ++k) own[k] += more[k];
            }
        }
    }
}

// The weight, mean and deviation of nodes instead of their moments, times 2^unit; in place, since
// they take less memory.
inline void summarise_nodes(std::vector<Grown>& grown, const NumberScale& scale, int unit) {
    for (Grown& part : grown) {
        double* to = part.weights.data();
        for (size_t node = 0; node < part.nodes.size(); ++node, to += summary_width) {
            const double* const moments = &part.weights[node * scale.width()];
            const double weight = moments[0];
            MeanAndDeviation found{0, 0};
            if (is_single_row(scale, moments)) {
                found.mean = mean_of_row(scale, moments, unit);
            } else if (weight > 0) {
                const bool varies = part.nodes[node].n_children || !scale.is_one_number(moments);
                found = mean_and_deviation(scale, moments, unit, varies);
            }
            to[0] = weight;
            to[1] = found.mean;
            to[2] = found.deviation;
        }
        const size_t n = part.nodes.size() * summary_width;
        give_back(part.weights, n, part.weights.size());
        part.weights.resize(n);
    }
}

}  // namespace branchwise
