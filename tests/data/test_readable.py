"""Readable thresholds: short decimals between two numbers, in both kernels."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchwise.data.arrays import (
    NUMBER_KINDS,
    midpoint,
    number_kind,
    wider_kind,
)
from branchwise.data.conventions.threshold_positions import POSITIONS, between, readable
from branchwise.native import extension


def one(low: float, high: float, whole: bool = False) -> float:
    return float(readable(np.array([low]), np.array([high]), whole)[0])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (6791.4, 6791.41, 6791.405),
        (6791.3, 6791.51, 6791.4),
        (0.0, 1.0, 0.5),
        (2.45, 2.47, 2.46),
        (-1.0, 3.0, 0.0),
        (70.0, 130.0, 100.0),
        (0.1, 0.3, 0.2),
        (20.0, 50.0, 30.0),  # 30 and 40 are equally near
        (-50.0, -20.0, -40.0),
        (1e300, 2e300, 1.5e300),  # beyond the powers of ten that are exact
        (1e-30, 3e-30, 2e-30),
        (-0.0, 5e-324, 0.0),
        (1.0, math.nextafter(1.0, 2.0), 1.0),
    ],
)
def test_examples(low, high, expected):
    found = one(low, high)
    assert found == expected
    assert math.copysign(1, found) == math.copysign(1, expected)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, 0), (-1, 0, -1), (3, 4, 3), (3, 5, 4), (0, 3, 1), (18, 23, 20), (-3, 2, 0)],
)
def test_whole_numbers(low, high, expected):
    assert one(low, high, whole=True) == expected


decimals = st.builds(
    lambda digits, places: digits / 10.0**places,
    st.integers(-(10**6), 10**6),
    st.integers(0, 6),
)


@given(decimals, decimals)
def test_no_shorter_decimal_is_in_the_middle_half(one_end, other):
    low, high = sorted([one_end, other])
    if low == high:
        return
    found = one(low, high)
    gap = Fraction(high) - Fraction(low)
    least, most = Fraction(low) + gap / 4, Fraction(high) - gap / 4
    slack = gap / 10**6
    assert least - slack <= Fraction(found) <= most + slack
    # For every larger power of ten, no multiple is well inside the middle half.
    exponent = Decimal(repr(found)).normalize().as_tuple().exponent
    if found:
        for power in range(int(exponent) + 1, 9):
            unit = Fraction(10) ** power
            nearest = round((least + most) / 2 / unit) * unit
            assert not least + slack < nearest < most - slack


def hard_pairs(rng: np.random.Generator, n: int):
    """Pairs of neighbours: of all sizes, decimals, whole, one ulp apart, any bits."""
    number = rng.normal(size=n) * 10.0 ** rng.integers(-25, 25, n)
    yield number, number + np.abs(rng.normal(size=n)) * 10.0 ** rng.integers(-30, 25, n)
    number = rng.normal(size=n).round(3)
    yield number, number + rng.integers(1, 3000, n) / 1000
    number = rng.integers(-(2**52), 2**52, n).astype(float)
    yield number, number + rng.integers(1, 1000, n)
    number = rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)
    yield number, np.nextafter(number, np.inf)
    bits = rng.integers(0, 2**64, (2, n), dtype=np.uint64).view(np.float64)
    yield tuple(np.sort(np.where(np.isfinite(bits), bits, 0.0), axis=0))
    number = rng.integers(-9, 9, n) * 5e-324
    yield number, number + rng.integers(1, 9, n) * 5e-324


def test_both_kernels_agree_in_every_bit():
    native = extension()
    for low, high in hard_pairs(np.random.default_rng(0), 20_000):
        apart = low < high
        low, high = low[apart], high[apart]
        for at, position in enumerate(POSITIONS):
            found = between(low, high, position)
            by_kernel = native.thresholds_between(low, high, at)
            assert found.tobytes() == by_kernel.tobytes(), position
            assert ((low <= found) & (found < high)).all()


STEPS = {"day": 86_400, "minute": 60, "second": 1}
EPOCH = datetime(1970, 1, 1)


def units(text: str, unit: str) -> float:
    seconds = (datetime.fromisoformat(text) - EPOCH).total_seconds()
    return seconds // STEPS[unit]


@pytest.mark.parametrize(
    ("unit", "low", "high", "begins"),
    [
        ("day", "2023-11-20", "2024-02-20", "2024-01-01"),
        ("day", "2019-02-03", "2023-04-05", "2021-01-01"),  # the nearest year
        ("day", "2024-02-20", "2024-05-20", "2024-04-01"),  # quarter
        ("day", "2024-01-17", "2024-02-20", "2024-02-01"),
        ("day", "2024-03-04", "2024-03-07", "2024-03-06"),
        ("day", "2024-03-04", "2024-03-05", "2024-03-05"),
        ("day", "1899-12-01", "1900-02-01", "1900-01-01"),
        ("minute", "2024-03-04 22:10", "2024-03-05 02:00", "2024-03-05 00:00"),
        ("minute", "2024-03-05 09:12", "2024-03-05 10:40", "2024-03-05 10:00"),
        ("second", "2024-03-05 09:12:01", "2024-03-05 09:15:00", "2024-03-05 09:14"),
    ],
)
def test_dates(unit, low, high, begins):
    """The upper side begins with a start; dates are numbers of their unit."""
    pair = (np.array([units(text, unit)]) for text in (low, high))
    assert between(*pair, unit).tolist() == [units(begins, unit) - 1]


def rank(threshold: int, unit: str) -> int:
    """The longest period that begins after a threshold; of days to seconds."""
    at = EPOCH + timedelta(seconds=(threshold + 1) * STEPS[unit])
    for longest, rest in enumerate(
        (
            (at.month - 1, at.day - 1, at.hour, at.minute, at.second),
            ((at.month - 1) % 3, at.day - 1, at.hour, at.minute, at.second),
            (at.day - 1, at.hour, at.minute, at.second),
            (at.hour, at.minute, at.second),
            (at.minute, at.second),
            (at.second,),
        )
    ):
        if not any(rest):
            return longest
    return 6


def test_dates_against_all_of_the_middle_half():
    rng = np.random.default_rng(3)
    for unit, span in (("day", 900), ("minute", 3000), ("second", 9000)):
        most = 60 * 365 * 86_400 // STEPS[unit]
        lows = rng.integers(-most, most, 60)
        highs = lows + rng.integers(1, span, 60) // rng.choice([1, 9, 400], 60) + 1
        found = between(lows.astype(float), highs.astype(float), unit)
        for low, high, threshold in zip(lows, highs, found, strict=True):
            quarter, middle = Fraction(int(high - low), 4), Fraction(int(low + high), 2)
            half = range(math.ceil(low + quarter), math.floor(high - quarter) + 1)
            best = min(
                half, key=lambda t: (rank(t, unit), abs(t - middle), t), default=low
            )
            assert threshold == best


def test_native_neighbours_are_checked():
    for low, high in (([1.0], [2.0]), (np.zeros(2), np.zeros(3))):
        with pytest.raises((TypeError, ValueError), match=r"low|high"):
            extension().thresholds_between(low, high, 2)


def test_a_decimal_beyond_exact_powers_is_the_midpoint():
    low, high = np.array([3.3e40, 7e-40]), np.array([4.4e40, 9e-40])
    np.testing.assert_array_equal(readable(low, high, False), midpoint(low, high))


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([], "binary"),
        ([np.nan], "binary"),
        ([0, 1, np.nan, -0.0], "binary"),
        ([0, 1, -1], "whole"),
        ([0, 2, np.nan], "whole"),
        ([2.0**53 - 1], "whole"),
        ([2.0**53], "any"),
        ([1, 0.5], "any"),
        ([0.0] * 40_000 + [0.5], "any"),
        ([0.0] * 40_000 + [7], "whole"),
    ],
)
def test_kinds_of_numbers(numbers, kind):
    assert number_kind(np.array(numbers, dtype=np.float64)) == kind


def test_kinds_of_chunks_together():
    for at, kind in enumerate(NUMBER_KINDS):
        for other_at, other in enumerate(NUMBER_KINDS):
            assert wider_kind(kind, other) == NUMBER_KINDS[max(at, other_at)]
