// What the classes of a side of a threshold keep of its purity, in plain numbers; a threshold is
// the better the more both sides keep.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/score_bounds.hpp"

namespace branchwise {

// Two thresholds: the weights of classes on the left of both, what classes keep by themselves, and
// their weights on either side.
struct BlockEnds {
    const double *left, *next;
    const double *kept, *next_kept;
    const double* known;
    size_t n_classes;
    double left_total, next_total, total;

    bool have_weight() const { return left_total > 0 && next_total < total; }
};

// What n thresholds leave of the gini of two classes, on both sides together, less than nothing: on
// each side, twice the product of the weights over their sum. `a` and `b` are the weights on the
// left, in steps, so that a product of three is no infinity; both sides have some. Several are done
// at once.
inline void gini_of_two(const double* a, const double* b, size_t n, const double* known,
                        double* __restrict kept) {
    const double known_a = known[0], known_b = known[1], total = known_a + known_b;
    for (size_t i = 0; i < n; ++i) {
        const double left = a[i] + b[i], right = total - left;
        const double on_left = a[i] * b[i], on_right = (known_a - a[i]) * (known_b - b[i]);
        kept[i] = -2 * (on_left * right + on_right * left) / (left * right);
    }
}

// The most that n thresholds take away of the entropy of two classes, without a logarithm. What a
// side takes away is the integral of (p - t) / (t (1 - t) ln 2) from the share q of a class at the
// node to its share p of the side, times the weight of the side. 1 / (t (1 - t)) is convex, so it
// is at most what lies on the line between q and p; and all is at most (p - q)^2 / (q (1 - q) ln
// 2), which is near where a side is pure. Both sides have some weight; several are done at once.
inline void most_entropy_of_two(const double* a, const double* b, size_t n, const double* known,
                                double* __restrict most) {
    const double known_a = known[0], known_b = known[1], total = known_a + known_b;
    constexpr double per_log = 1.4426950408889634;
    const double scale = total / (known_a * known_b);
    const double per_square = 1 / (total * total);
    for (size_t i = 0; i < n; ++i) {
        const double right_a = known_a - a[i], right_b = known_b - b[i];
        const double left = a[i] + b[i], right = right_a + right_b;
        const double on_left = a[i] * b[i], on_right = right_a * right_b;
        const double apart = a[i] * known_b - b[i] * known_a;
        const double square = apart * apart;
        const double all = square * scale / (left * right);
        const double ends =
            square * per_square * (left * on_right + right * on_left) / (on_left * on_right);
        most[i] = std::min(all, (2 * all + ends) * (1.0 / 6)) * per_log;
    }
}

struct GiniPurity {
    static constexpr bool takes_long = false;  // to find what a threshold takes away
    static constexpr bool is_ratio = false;    // thresholds are chosen by gain ratio

    // Bounds of thresholds between two classes with these weights: what is added to them, whether
    // they are near enough, and whether they are more than bounds.
    static constexpr bool bound_is_exact = true;
    static constexpr auto bound_of_two = gini_of_two;
    static bool bounds_two(double, double) { return true; }
    double base_of_two(double whole, const double*) const { return whole; }

    double operator()(const double* weights, size_t n, double total) const {
        double squares = 0;
        for (size_t c = 0; c < n; ++c) squares += weights[c] * weights[c];
        return total > 0 ? squares / total - total : 0.0;
    }

    double of_class(double, double) const { return 0; }

    // The most that is kept between two thresholds. It is a convex function of class weights and
    // sizes, as if these were free, so it is at most what it is where each is that of one end.
    // `slope` times what the sizes differ from the sum of the classes, which is nothing, makes up
    // for the sizes nearly.
    double most_between(const BlockEnds& ends) const {
        if (!ends.have_weight()) return std::numeric_limits<double>::infinity();
        const double left = ends.left_total, right = ends.total - left;
        double of_left = 0, of_right = 0;
        for (size_t c = 0; c < ends.n_classes; ++c) {
            const double on_right = ends.known[c] - ends.left[c];
            of_left += ends.left[c] * ends.left[c];
            of_right += on_right * on_right;
        }
        const double slope = of_left / (left * left) - of_right / (right * right);
        return std::max(most_with(ends, left, slope), most_with(ends, ends.next_total, slope));
    }

    // At the second threshold.
    double at_next(const BlockEnds& ends) const {
        double of_left = 0, of_right = 0;
        for (size_t c = 0; c < ends.n_classes; ++c) {
            const double on_right = ends.known[c] - ends.next[c];
            of_left += ends.next[c] * ends.next[c];
            of_right += on_right * on_right;
        }
        const double left = ends.next_total, right = ends.total - left;
        return (left > 0 ? of_left / left : 0.0) + (right > 0 ? of_right / right : 0.0) -
               ends.total;
    }

  private:
    // With so much on the left.
    static double most_with(const BlockEnds& ends, double left, double slope) {
        const double per_left = 1 / left, per_right = 1 / (ends.total - left);
        const auto of_class = [&](double weight, double known) {
            const double on_right = known - weight;
            return weight * weight * per_left + on_right * on_right * per_right - slope * weight;
        };
        double most = slope * left - ends.total;
        for (size_t c = 0; c < ends.n_classes; ++c)
            most += std::max(of_class(ends.left[c], ends.known[c]),
                             of_class(ends.next[c], ends.known[c]));
        return most;
    }
};

// Logarithms of whole weights, as LogBounds has those of all.
struct LogTable {
    static constexpr bool takes_long = false;

    const int64_t* table;
    double unit;
    double x_log2_x(double weight) const { return double(table[size_t(weight)]) * unit; }
};

template <typename Logs, bool ratio>
struct EntropyPurity {
    static constexpr bool takes_long = Logs::takes_long;
    static constexpr bool is_ratio = ratio;

    // A class of next to nothing is lost in rounding.
    static constexpr bool bound_is_exact = false;
    static constexpr auto bound_of_two = most_entropy_of_two;
    static bool bounds_two(double a, double b) { return std::min(a, b) > 1e-5 * (a + b); }
    double base_of_two(double whole, const double* known) const {
        return whole + (*this)(known, 2, known[0] + known[1]);
    }

    const Logs& logs;

    double operator()(const double* weights, size_t n, double total) const {
        double kept = -logs.x_log2_x(total);
        for (size_t c = 0; c < n; ++c) kept += logs.x_log2_x(weights[c]);
        return kept;
    }
    double of_class(double left, double right) const {
        return logs.x_log2_x(left) + logs.x_log2_x(right);
    }

    // The most that is kept between two thresholds. Sizes take at least what the tangent at the
    // first threshold says, and what a class keeps is a convex function of its weight, so it is
    // at most what it is at one of both.
    double most_between(const BlockEnds& ends) const {
        if (!ends.have_weight()) return std::numeric_limits<double>::infinity();
        const double right = ends.total - ends.left_total;
        const double slope = std::log2(ends.left_total / right);
        double most = -sizes(ends.left_total, right);
        for (size_t c = 0; c < ends.n_classes; ++c)
            most +=
                std::max(ends.kept[c], ends.next_kept[c] - slope * (ends.next[c] - ends.left[c]));
        return most;
    }

    // At the second threshold.
    double at_next(const BlockEnds& ends) const {
        double kept = -sizes(ends.next_total, ends.total - ends.next_total);
        for (size_t c = 0; c < ends.n_classes; ++c) kept += ends.next_kept[c];
        return kept;
    }

    // What the split information lacks because of the weights of both sides.
    double sizes(double left, double right) const {
        return logs.x_log2_x(left) + logs.x_log2_x(right);
    }
};

}  // namespace branchwise
