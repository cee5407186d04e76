// Pessimistic numbers of errors, or costs: native implementation of Estimate and CostEstimate in
// branchwise/prune/estimates.py. The same basic IEEE operations in the same order, so that every
// estimate has the same bits; estimates are whole units, so that their sums do not depend on the
// order.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/constants.hpp"

namespace branchwise {

// exp(x) - 1 for x <= 0: a short series for a small part of x, doubled again and again.
inline double expm1_basic(double x) {
    const double u = std::max(x, -40.0) / (1 << halvings);
    double m = 1.0;
    for (int k = terms_of_exponential; k > 1; --k) m = 1.0 + m * (u / k);
    m = m * u;
    for (int k = 0; k < halvings; ++k) m = m * (m + 2.0);
    return m;
}

struct Estimate {
    double log_confidence;
    double z;
    int bits;
    int64_t slack;
    // Empty where errors are counted: what each prediction costs, a row for each true class; what
    // turns class weights into cases; and the mean cost of each prediction for other classes.
    std::vector<double> costs = {}, case_factors = {}, usual_costs = {};

    // Most nodes have few cases, and whole ones: what was estimated of them, by cases and errors.
    static constexpr uint32_t few = 32;
    static constexpr int64_t unknown = std::numeric_limits<int64_t>::min();
    mutable std::vector<int64_t> known = std::vector<int64_t>(few * few, unknown);

    bool counts_errors() const { return costs.empty(); }

    int64_t of(const double* weights, size_t classes) const {
        if (!counts_errors()) return in_units(expected_cost(weights, classes));
        double total = 0, most = weights[0];
        for (size_t c = 0; c < classes; ++c) {
            total += weights[c];
            most = std::max(most, weights[c]);
        }
        return of_errors(total, total - most);
    }

    // What a prediction costs for the cases of a node.
    double cost(const double* weights, size_t classes, size_t prediction) const {
        double sum = 0;
        for (size_t c = 0; c < classes; ++c)
            sum += weights[c] * case_factors[c] * costs[c * classes + prediction];
        return sum;
    }

    // The prediction of least cost, of equals the first.
    size_t cheapest(const double* weights, size_t classes) const {
        double least = cost(weights, classes, 0);
        for (size_t p = 1; p < classes; ++p) least = std::min(least, cost(weights, classes, p));
        const double most = least + std::fabs(least) * tie;
        size_t first = 0;
        while (first + 1 < classes && !(cost(weights, classes, first) <= most)) ++first;
        return first;
    }

    // Estimates of a tree whose weights contradict one another may be anything: they and
    // their sums stay within bounds whose sums are no overflow.
    static constexpr int64_t most_units = int64_t(1) << 61;
    static int64_t sum(int64_t a, int64_t b) { return std::clamp(a + b, -most_units, most_units); }

    // The errors to be added to those seen.
    double added(double total, double errors) const {
        const double some = added_to_some(total, std::max(errors, 1.0));
        if (errors >= 1) return some;
        const double chance = total > 0 ? log_confidence / total : 0.0;
        const double none = -total * expm1_basic(chance);
        return none + errors * (some - none);
    }

  private:
    int64_t of_errors(double total, double errors) const {
        if (!(total >= 0 && total < few && errors >= 0 && errors < few))
            return in_units(errors + added(total, errors));
        const auto cases = uint32_t(total), wrong = uint32_t(errors);
        if (cases != total || wrong != errors) return in_units(errors + added(total, errors));
        int64_t& estimate = known[cases * few + wrong];
        if (estimate == unknown) estimate = in_units(errors + added(total, errors));
        return estimate;
    }

    int64_t in_units(double expected) const {
        const double units = std::rint(std::ldexp(expected, bits));
        if (std::isnan(units)) return most_units;
        constexpr auto bound = double(most_units);
        return int64_t(std::clamp(units, -bound, bound));
    }

    double expected_cost(const double* weights, size_t classes) const {
        const size_t prediction = cheapest(weights, classes);
        const double seen = cost(weights, classes, prediction);
        double total = 0;
        for (size_t c = 0; c < classes; ++c) total += weights[c] * case_factors[c];
        const double errors = total - weights[prediction] * case_factors[prediction];
        const double mean =
            errors < 1 ? seen + (1.0 - errors) * usual_costs[prediction] : seen / errors;
        return seen + added(total, errors) * mean;
    }

    double added_to_some(double total, double errors) const {
        const double seen = errors + 0.5;
        if (seen >= total) return std::max(total - errors, 0.0);
        const double square = z * z;
        const double spread = std::sqrt(seen * (1.0 - seen / total) + square / 4);
        const double limit = total * (seen + square / 2 + z * spread) / (total + square);
        return limit - errors;
    }
};

}  // namespace branchwise
