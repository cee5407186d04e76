// Where a threshold between two neighbouring numbers lies: the native implementation of readable in
// branchwise/data/conventions/threshold_positions.py; core/date_threshold.hpp is that of dates.
// Only operations that are rounded correctly are used, so that both agree in every bit.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace branchwise {

// At the midpoint, moved down to a number of the table, at a short decimal, at a whole number, or
// at a date that is a number of these units.
enum class Position : uint8_t {
    midpoint,
    value,
    readable,
    whole,
    day,
    minute,
    second,
    microsecond
};

inline double midpoint(double low, double high) {
    const double middle = low / 2 + high / 2;
    return middle < low || middle >= high ? low : middle;
}

// These powers of ten, and no larger ones, are exact.
constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int largest_power = 22;

// The multiple of 10^k in the middle half between neighbours that is nearest to the midpoint, of
// two the lower, for the largest k that has one.
inline double readable(double low, double high, bool whole) {
    const double middle = midpoint(low, high);
    const double quarter = high / 4 - low / 4;
    const double least = low + quarter, most = high - quarter;
    const double size = std::max(std::fabs(least), std::fabs(most));
    const auto fits = [&](double number) {
        return least <= number && number <= most && number < high;
    };
    if (fits(0)) return 0;
    if (size < powers_of_ten[largest_power]) {
        int power = largest_power;
        while (power >= 0 && powers_of_ten[power] > size) --power;  // only 0 is a multiple
        for (; power >= 0; --power) {
            const double unit = powers_of_ten[power];
            const double rounded = std::ceil(middle / unit - 0.5) * unit;
            if (fits(rounded)) return rounded;
        }
        for (power = 1; !whole && power <= largest_power; ++power) {
            const double units = powers_of_ten[power];
            const double rounded = std::ceil(middle * units - 0.5) / units;
            if (fits(rounded)) return rounded;
        }
    }
    return (whole ? low : middle) + 0.0;  // one zero
}

}  // namespace branchwise
