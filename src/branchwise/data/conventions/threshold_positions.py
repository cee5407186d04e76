"""Where the threshold between two neighbouring numbers lies: one place for the rule.

A readable threshold is a short decimal or a whole number. Between two dates it splits
into ``<= 2023-12-31`` and ``>= 2024-01-01``: of the dates that the upper side may begin
with the one of the longest period is taken, the start of a year, else of a quarter, of
a month, of a day, of an hour, of a minute, of a second or of a decimal part of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, midpoint
from branchwise.data.conventions.date_format import UNITS

#: These powers of ten, and no larger ones, are exact.
_POWERS = np.array([float(10**power) for power in range(23)])
#: Months of the periods of the calendar, the longest first.
_MONTHS = (12, 3, 1)
#: Microseconds of an hour, a minute and a second, and of decimal parts of a second.
_STEPS = (3_600_000_000, 60_000_000, *(10**power for power in range(6, -1, -1)))
#: Numbers beyond are no dates; whole numbers up to here are exact.
_MOST_DAYS = 10_000_000
_MOST_UNITS = 2.0**52


#: Where thresholds lie, in the order of the compiled kernel: at the midpoint, moved
#: down to a number of the table, at a short decimal, at a whole number, at a date that
#: is a number of these units.
POSITIONS = (
    *("midpoint", "value", "readable", "whole"),
    *("day", "minute", "second", "microsecond"),
)


def between(low: NDArray[Any], high: NDArray[Any], position: str) -> Floats:
    """Return thresholds between neighbours; a number of the table is another matter."""
    if position in ("readable", "whole"):
        return readable(low, high, position == "whole")
    if position in ("midpoint", "value"):
        return midpoint(low, high)
    return between_dates(low, high, position)


def readable(low: NDArray[Any], high: NDArray[Any], whole: bool) -> Floats:
    """Return short decimals between neighbours: low <= threshold < high.

    Of the multiples of a power of ten in the middle half between neighbours the one
    that is nearest to the midpoint, of two the lower, for the largest power that has
    one. 0 is a multiple of all. With ``whole`` only whole numbers, and the lower
    neighbour where there is none. Beyond exact powers of ten it is the midpoint.
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    middle, quarter = midpoint(low, high), high / 4 - low / 4
    least, most = low + quarter, high - quarter
    result = (low if whole else middle) + 0.0  # one zero
    open_ = np.maximum(np.abs(least), np.abs(most)) < _POWERS[-1]

    def offer(number: Floats, among: NDArray[np.bool_]) -> None:
        fits = among & (least <= number) & (number <= most) & (number < high)
        result[fits] = number[fits]
        open_[fits] = False

    offer(np.zeros_like(low), np.ones_like(open_))
    # Every operation is rounded correctly, so that the decimal is the nearest double.
    with np.errstate(over="ignore"):
        for unit in _POWERS[::-1]:
            offer(np.ceil(middle / unit - 0.5) * unit, open_)
        for units in () if whole else _POWERS[1:]:
            if not open_.any():
                break
            offer(np.ceil(middle * units - 0.5) / units, open_)
    return result


def between_dates(low: NDArray[Any], high: NDArray[Any], unit: str) -> Floats:
    """Return thresholds between neighbours: low <= threshold < high.

    They are numbers of units since 1970-01-01. The threshold is one unit before the
    start of a period, in the middle half between neighbours, that is nearest to the
    midpoint, of two the lower, for the longest period that has one; the lower neighbour
    where there is none.
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    per_day = UNITS["day"] // UNITS[unit]
    middle, quarter = midpoint(low, high), high / 4 - low / 4
    least, most = low + quarter, high - quarter
    size = np.maximum(np.abs(low), np.abs(high))
    dated = size < min(float(_MOST_DAYS * per_day), _MOST_UNITS)
    result: Floats = np.where(dated, low, readable(low, high, whole=True)) + 0.0
    open_ = dated.copy()
    first = np.floor(np.where(dated, middle, 0.0)).astype(np.int64) + 1

    def offer(start: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """Offer the starts of the period that the midpoint is in, and of the next."""
        before, behind = start - 1.0, after - 1.0
        nearer = np.where(behind - middle < middle - before, behind, before)
        fits = open_ & (least <= nearer) & (nearer <= most) & (nearer < high)
        result[fits] = nearer[fits]
        open_[fits] = False

    month = (first // per_day).astype("M8[D]").astype("M8[M]").astype(np.int64)
    for months in _MONTHS:
        start = month // months * months
        offer(_first_of(start) * per_day, _first_of(start + months) * per_day)
    day = first // per_day * per_day
    offer(day, day + per_day)
    for step in (step // UNITS[unit] for step in _STEPS if step >= UNITS[unit]):
        start = first // step * step
        offer(start, start + step)
    return result


def _first_of(month: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first days of months, both counted from 1970-01."""
    days: NDArray[np.int64] = month.astype("M8[M]").astype("M8[D]").astype(np.int64)
    return days
