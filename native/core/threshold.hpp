// Where a threshold between two neighbouring numbers lies: the native implementation of midpoint
// and readable in branchwise/data/arrays.py. Only operations that are rounded correctly are used,
// so that both agree in every bit.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace branchwise {

// At the midpoint, moved down to a number of the table, at a short decimal, or at a whole number.
enum class Position : uint8_t { midpoint, value, readable, whole };

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

// Between two numbers of a column that are neighbours at a node.
inline double threshold_between(const std::vector<double>& values, uint32_t low, uint32_t high,
                                Position position) {
    switch (position) {
        case Position::midpoint:
            return midpoint(values[low], values[high]);
        case Position::value:
            return *std::prev(std::upper_bound(values.begin(), values.end(),
                                               midpoint(values[low], values[high])));
        default:
            return readable(values[low], values[high], position == Position::whole);
    }
}

}  // namespace branchwise
