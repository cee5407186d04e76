// Numbers as sums of two, with an error of about 2^-100 of what they are made of. Nearly all
// results that are to be rounded once follow from these; where one is too close to the middle of
// two float64 to tell, it is made of whole numbers (wide.hpp).

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/constants.hpp"

namespace branchwise {

inline void two_sum(double a, double b, double& total, double& rest) {
    total = a + b;
    const double of_b = total - a;
    rest = (a - (total - of_b)) + (b - of_b);
}

inline void two_product(double a, double b, double& product, double& rest) {
    product = a * b;
    const double wide_a = splitter * a, wide_b = splitter * b;
    const double a_high = wide_a - (wide_a - a), b_high = wide_b - (wide_b - b);
    const double a_low = a - a_high, b_low = b - b_high;
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + (a_low * b_low);
}

// As std::ldexp: rounded once.
inline double times_power_of_two(double number, int exponent) {
    if (exponent < -1022 || exponent > 1023) return std::ldexp(number, exponent);
    const uint64_t bits = uint64_t(exponent + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return number * power;
}

struct DoubleDouble {
    double high = 0, low = 0;

    DoubleDouble() = default;
    DoubleDouble(double high, double low) { two_sum(high, low, this->high, this->low); }

    DoubleDouble plus(double other) const {
        double sum, rest;
        two_sum(high, other, sum, rest);
        return {sum, rest + low};
    }
    DoubleDouble minus(const DoubleDouble& other) const {
        double sum, rest;
        two_sum(high, -other.high, sum, rest);
        return {sum, rest + (low - other.low)};
    }
    DoubleDouble times(double other) const {
        double product, rest;
        two_product(high, other, product, rest);
        return {product, rest + low * other};
    }
    DoubleDouble squared() const {
        double product, rest;
        two_product(high, high, product, rest);
        return {product, rest + 2 * (high * low)};
    }
    DoubleDouble over(double other) const {
        const double quotient = high / other;
        double product, rest;
        two_product(quotient, other, product, rest);
        return {quotient, (((high - product) - rest) + low) / other};
    }

    // Whether a number that is off by at most so much is rounded to `high`.
    bool rounds(double off) const {
        return high + (low - off) == high && high + (low + off) == high;
    }
};

// Numbers of this size have products whose errors are normal numbers.
constexpr double least_exact = 1e-200, most_exact = 1e200;

}  // namespace branchwise
