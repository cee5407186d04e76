// Thresholds between two neighbouring numbers by their position; between dates they are the native
// implementation of between_dates in branchwise/data/conventions/threshold_positions.py. Dates are
// numbers of units since 1970-01-01.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/distinct_numbers.hpp"
#include "core/threshold.hpp"

namespace branchwise {

inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// The first day of a month; both are counted from 1970-01.
inline int64_t first_day_of(int64_t month) {
    constexpr int64_t days_before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    constexpr int64_t leap_years_to_1969 = 477;
    const int64_t year = 1970 + floor_div(month, 12);
    const int64_t in_year = month - 12 * floor_div(month, 12);
    const int64_t last = year - 1;
    const int64_t leap_years = floor_div(last, 4) - floor_div(last, 100) + floor_div(last, 400);
    const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return 365 * (year - 1970) + leap_years - leap_years_to_1969 + days_before[in_year] +
           (in_year > 1 && is_leap);
}

inline int64_t month_of(int64_t day) {
    int64_t month = floor_div(day * 4800, 146097);  // there are so many in 400 years
    while (first_day_of(month) > day) --month;
    while (first_day_of(month + 1) <= day) ++month;
    return month;
}

class DateThreshold {
  public:
    DateThreshold(double low, double high, int64_t units_per_day)
        : low_(low), high_(high), per_day_(units_per_day), middle_(midpoint(low, high)) {
        const double quarter = high / 4 - low / 4;
        least_ = low + quarter;
        most_ = high - quarter;
    }

    // One unit before the start of the longest period that has one in the middle half.
    double find() {
        const double size = std::max(std::fabs(low_), std::fabs(high_));
        if (!(size < std::min(double(most_days * per_day_), most_units)))
            return readable(low_, high_, true);
        const int64_t first = int64_t(std::floor(middle_)) + 1;
        const int64_t month = month_of(floor_div(first, per_day_));
        for (int64_t months : {12, 3, 1}) {
            const int64_t start = floor_div(month, months) * months;
            if (offer(first_day_of(start) * per_day_, first_day_of(start + months) * per_day_))
                return found_;
        }
        for (int64_t step : {per_day_, per_day_ / 24, per_day_ / 1440})
            if (step > 0 && offer_multiple(first, step)) return found_;
        for (int64_t step = per_day_ / 86400; step > 0; step /= 10)
            if (offer_multiple(first, step)) return found_;
        return low_ + 0.0;  // one zero
    }

  private:
    // Numbers beyond are no dates; whole numbers up to here are exact.
    static constexpr int64_t most_days = 10000000;
    static constexpr double most_units = 4503599627370496.0;  // 2^52

    bool offer_multiple(int64_t first, int64_t step) {
        const int64_t start = floor_div(first, step) * step;
        return offer(start, start + step);
    }

    // The starts of the period that the midpoint is in, and of the next one: the nearer, if it is
    // in the middle half.
    bool offer(int64_t start, int64_t after) {
        const double before = double(start) - 1, behind = double(after) - 1;
        found_ = behind - middle_ < middle_ - before ? behind : before;
        return least_ <= found_ && found_ <= most_ && found_ < high_;
    }

    const double low_, high_;
    const int64_t per_day_;
    const double middle_;
    double least_, most_, found_ = 0;
};

// Between neighbours; a number of the table is another matter.
inline double threshold_at(double low, double high, Position position) {
    switch (position) {
        case Position::midpoint:
        case Position::value:
            return midpoint(low, high);
        case Position::readable:
        case Position::whole:
            return readable(low, high, position == Position::whole);
        case Position::day:
            return DateThreshold(low, high, 1).find();
        case Position::minute:
            return DateThreshold(low, high, 1440).find();
        case Position::second:
            return DateThreshold(low, high, 86400).find();
        default:
            return DateThreshold(low, high, 86400000000).find();
    }
}

// Between two numbers of a column that are neighbours at a node.
inline double threshold_between(const DistinctNumbers& values, uint32_t low, uint32_t high,
                                Position position) {
    const double threshold = threshold_at(values[low], values[high], position);
    if (position != Position::value) return threshold;
    while (high - low > 1) {  // the last number up to there
        const uint32_t middle = low + (high - low) / 2;
        (values[middle] <= threshold ? low : high) = middle;
    }
    return values[low];
}

}  // namespace branchwise
