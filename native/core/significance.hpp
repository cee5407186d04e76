// Whether a split is significant: native implementation of the tests in branchwise/stats.py.
//
// A p-value is held against a limit, so it need not have the same bits as in the reference. It is
// computed with a bound of how far either may be off; where that is not enough to decide, growth
// is given up, and the reference grows the tree.

#pragma once

#include <algorithm>
#include <cmath>
#include <exception>
#include <vector>

#include "core/choose.hpp"

namespace branchwise {

// A p-value is too close to its limit.
struct Undecided : std::exception {
    const char* what() const noexcept override { return "a p-value is too close to max_p_value"; }
};

// The logarithm of a probability, and how far it may be off.
struct LogTail {
    double log = 0;
    double off = 0;
};

class SignificanceTest {
  public:
    // `limit` is the logarithm of the largest p-value of a split.
    explicit SignificanceTest(double limit) : limit_(limit) {}

    // Chi-square test of branches and classes: weights[branch * classes + c], scaled to so many
    // cases. `log_tries`: of how many candidates the split is the best.
    bool passes(const std::vector<double>& weights, size_t classes, double cases,
                double log_tries) const {
        if (log_tries <= limit_) return true;  // as any probability is
        const size_t n_branches = weights.size() / classes;
        std::vector<double> of_class(classes, 0.0), size(n_branches, 0.0);
        double total = 0;
        for (size_t b = 0; b < n_branches; ++b)
            for (size_t c = 0; c < classes; ++c) {
                of_class[c] += weights[b * classes + c];
                size[b] += weights[b * classes + c];
            }
        for (double each : size) total += each;
        double statistic = 0;
        size_t present = 0;
        for (size_t c = 0; c < classes; ++c) {
            if (!(of_class[c] > 0)) continue;
            ++present;
            for (size_t b = 0; b < n_branches; ++b) {
                // Shares of the total, so that squares neither overflow nor vanish.
                const double expected = size[b] / total * (of_class[c] / total);
                const double distance = weights[b * classes + c] / total - expected;
                if (expected > 0) statistic += distance * (distance / expected);
            }
        }
        statistic *= cases;
        const double terms = double(n_branches * classes) + 64;
        const double off =
            terms * epsilon * (statistic + std::sqrt(statistic * (statistic + cases)));
        const double freedom = double(n_branches - 1) * double(present - 1);
        return decide(chi_square_tail(statistic, off, freedom), log_tries);
    }

    // F test: squared distances of numbers from their mean, and from those of their branches.
    bool passes(double whole, double within, size_t n_branches, double cases,
                double log_tries) const {
        if (log_tries <= limit_) return true;
        const double between = std::max(whole - within, 0.0);
        const double apart = double(n_branches - 1), free = cases - double(n_branches);
        if (!(free > 0)) return decide({0, 0}, log_tries);
        if (!(within > 0)) return decide({between > 0 ? no_score : 0.0, 0}, log_tries);
        // The difference may be noise: then both ends of what it may be must agree.
        const double off = double(n_branches + 8) * 4 * epsilon * whole;
        const bool least =
            decide(f_tail(std::max(between - off, 0.0) / within, apart, free), log_tries);
        const bool most = decide(f_tail((between + off) / within, apart, free), log_tries);
        if (least != most) throw Undecided();
        return least;
    }

    // The logarithm of the number of groupings of so many values: Stirling's numbers of the
    // second kind, or a bound for very many values.
    static double log_groupings(size_t n_values, size_t n_groups) {
        if (n_values > counted_values)
            return double(n_values) * std::log(double(n_groups)) - log_gamma(double(n_groups) + 1);
        if (n_groups <= 1 || n_groups >= n_values) return 0;
        // S(n, k) = k S(n - 1, k) + S(n - 1, k - 1), in logarithms.
        std::vector<double> row(n_groups + 1, no_score);
        row[1] = 0;
        for (size_t n = 2; n <= n_values; ++n)
            for (size_t k = std::min(n, n_groups); k >= 2; --k) {
                const double stays = row[k] + std::log(double(k)), joins = row[k - 1];
                const double more = std::max(stays, joins);
                row[k] = more + std::log1p(std::exp(std::min(stays, joins) - more));
            }
        return row[n_groups];
    }

  private:
    static constexpr double epsilon = std::numeric_limits<double>::epsilon();

    // Not std::lgamma, which writes to a global variable; by Stirling's series.
    static double log_gamma(double x) {
        double below = 0;
        for (; x < 16; x += 1) below += std::log(x);
        const double square = 1 / (x * x);
        const double series =
            (1.0 / 12 -
             square * (1.0 / 360 - square * (1.0 / 1260 - square * (1.0 / 1680 - square / 1188)))) /
            x;
        return (x - 0.5) * std::log(x) - x + 0.91893853320467274178 + series - below;
    }

    bool decide(const LogTail& tail, double log_tries) const {
        const double log_p = tail.log + log_tries;
        const double off = tail.off + 1e-9 * (1 + std::fabs(tail.log) + log_tries);
        if (log_p <= limit_ - off) return true;
        if (log_p > limit_ + off) return false;
        throw Undecided();
    }

    static LogTail chi_square_tail(double statistic, double off, double freedom) {
        if (!(freedom > 0) || !(statistic > 0)) return {};
        const double a = freedom / 2, x = statistic / 2;
        const double front = a * std::log(x) - x - log_gamma(a);
        LogTail tail;
        // The density is at most this share of the tail.
        tail.off = off * (1 + 1 / std::sqrt(x)) +
                   1e-13 * (std::fabs(a * std::log(x)) + x + std::fabs(log_gamma(a)));
        if (x < a + 1)
            tail.log = std::log1p(-std::min(std::exp(front) * gamma_series(a, x), 1.0));
        else
            tail.log = front + std::log(gamma_fraction(a, x));
        tail.log = std::min(tail.log, 0.0);
        tail.off *= 16;
        return tail;
    }

    // P(F >= odds * free / apart).
    static LogTail f_tail(double odds, double apart, double free) {
        const double a = free / 2, b = apart / 2;
        const double x = 1 / (1 + odds), y = odds / (1 + odds);
        if (!(y > 0)) return {};
        const double front =
            log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log(y);
        LogTail tail;
        tail.off = 1e-13 * (std::fabs(log_gamma(a + b)) + std::fabs(log_gamma(a)) +
                            std::fabs(log_gamma(b)) + std::fabs(a * std::log(x)) +
                            std::fabs(b * std::log(y)) + a);
        if (x > (a + 1) / (a + b + 2))
            tail.log = std::log1p(-std::min(std::exp(front) * beta_fraction(b, a, y) / b, 1.0));
        else
            tail.log = front + std::log(beta_fraction(a, b, x)) - std::log(a);
        tail.log = std::min(tail.log, 0.0);
        tail.off *= 16;
        return tail;
    }

    static double gamma_series(double a, double x) {
        double term = 1 / a, total = term;
        for (int step = 1; step < most_tail_steps && term > total * tail_last_bit; ++step) {
            term *= x / (a + step);
            total += term;
        }
        return total;
    }

    static double gamma_fraction(double a, double x) {
        return continued(
            x + 1 - a, [&](int step) { return -step * (step - a); },
            [&](int step) { return x + 2 * step + 1 - a; });
    }

    static double beta_fraction(double a, double b, double x) {
        const auto numerator = [&](int step) {
            const int m = step / 2;
            if (step % 2) return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
            return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        };
        return continued(1.0, numerator, [](int) { return 1.0; });
    }

    // 1 / (first + n1 / (d1 + n2 / (d2 + ...))), from the front (Lentz 1976).
    template <typename Numerator, typename Denominator>
    static double continued(double first, const Numerator& numerator,
                            const Denominator& denominator) {
        double c = 1 / tail_tiny, d = 1 / not_zero(first), result = d;
        for (int step = 1; step < most_tail_steps; ++step) {
            const double top = numerator(step), bottom = denominator(step);
            d = 1 / not_zero(bottom + top * d);
            c = not_zero(bottom + top / c);
            const double change = c * d;
            result *= change;
            if (!(std::fabs(change - 1) > tail_last_bit)) break;
        }
        return result;
    }

    static double not_zero(double value) {
        return std::fabs(value) < tail_tiny ? tail_tiny : value;
    }

    const double limit_;
};

// The first of the best candidates that are significant, or -1. passes(column) tests one:
// the best ones first, so that few are tested; least_of(score) is the least score of equals.
template <typename LeastOf, typename Passes>
int first_significant(const std::vector<Candidate>& candidates, const LeastOf& least_of,
                      const Passes& passes) {
    std::vector<char> failed(candidates.size(), false);
    const auto best_left = [&] {
        int best = -1;
        for (size_t j = 0; j < candidates.size(); ++j)
            if (!failed[j] && candidates[j].score > no_score &&
                (best < 0 || candidates[j].score > candidates[size_t(best)].score))
                best = int(j);
        return best;
    };
    int best = best_left();
    while (best >= 0 && !passes(size_t(best))) {
        failed[size_t(best)] = true;
        best = best_left();
    }
    if (best < 0) return -1;
    const double least = least_of(candidates[size_t(best)].score);
    for (int j = 0; j < best; ++j)
        if (!failed[size_t(j)] && candidates[size_t(j)].score >= least && passes(size_t(j)))
            return j;
    return best;
}

}  // namespace branchwise
