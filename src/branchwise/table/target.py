"""What is to be predicted, ready to be counted: classes or numbers.

Numbers are counted by their moments: weight, sum and sum of squares. Row order must
not matter, so these sums are exact, each in several limbs
(``table/exact.py``), so that a number that is much larger than all others takes no
digit from their means. Numbers are counted in a unit of their own, a power of two
above the largest of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError
from branchwise.table.exact import NO_BIT, Limbs, lowest_bit, ratio, two_product
from branchwise.table.weights import WeightGrid, on_grid

Floats = NDArray[np.float64]

#: Larger numbers would overflow when squared and added up.
_LARGEST = 1e120
#: The unit is no smaller than this power of two, so that it has an inverse.
_SMALLEST_UNIT = -1000
#: Digits below this power of two of the unit are left out: their squares would vanish.
LOWEST_BIT = -500


@dataclass(frozen=True)
class Classes:
    """Class codes of the rows."""

    labels: NDArray[np.intp]
    n_classes: int


@dataclass(frozen=True)
class Scale:
    """How numbers are counted: their unit, and the limbs of sums and squares.

    ``unit`` and ``weight_step`` are exponents of powers of two. ``rounds`` says that
    some numbers have digits that are left out.
    """

    unit: int
    rounds: bool
    weighted: bool
    weight_step: int
    n_cases: float
    sums: Limbs
    squares: Limbs

    @property
    def width(self) -> int:
        """How many columns moments have: the weight, limbs of the sum and squares."""
        return 1 + len(self.sums) + len(self.squares)

    def in_units(self, numbers: Floats) -> Floats:
        """Return numbers in the unit."""
        scaled = numbers * math.ldexp(1.0, -self.unit)
        return on_grid(scaled, math.ldexp(1.0, LOWEST_BIT)) if self.rounds else scaled

    def moments(self, values: Floats, weight: Floats | None) -> Floats:
        """Return weight and limbs of weighted numbers and squares, row by row."""
        square, rest = two_product(values, values)
        if weight is None:
            counted = np.ones(len(values))
            once, twice = [values], [square, rest]
        else:
            counted = weight
            once = list(two_product(weight, values))
            twice = [*two_product(weight, square), *two_product(weight, rest)]
        return np.concatenate(
            [counted[:, np.newaxis], self.sums.cut(once), self.squares.cut(twice)],
            axis=1,
        )

    def sum_limbs(self, moments: Floats) -> Floats:
        """Return the limbs of sums."""
        return moments[..., 1 : 1 + len(self.sums)]

    def means(self, moments: Floats, unit: bool = True) -> Floats:
        """Return the means of groups, each the float64 nearest to the exact one.

        With ``unit`` they are those of the numbers as they were given.
        """
        exponent = self.sums.exponents[-1] - self.weight_step + self.unit * unit
        pairs = zip(self._weights(moments), self._totals(moments), strict=True)
        # Adding 0 makes one zero of two.
        return np.array([ratio(t, w, exponent) if w else 0.0 for w, t in pairs]) + 0.0

    def variances(self, moments: Floats) -> Floats:
        """Return the variances of groups, in the unit squared, rounded but once.

        They are 0 exactly where all numbers of a group are equal.
        """
        weights, totals = self._weights(moments), self._totals(moments)
        squares = self.squares.whole(moments[..., 1 + len(self.sums) :])
        once = self.sums.exponents[-1] - self.weight_step
        twice = self.squares.exponents[-1] - self.weight_step
        low = min(twice, 2 * once)
        found = [
            ratio((s * w << twice - low) - (t * t << 2 * once - low), w * w, low)
            if w
            else 0.0
            for w, t, s in zip(weights, totals, squares, strict=True)
        ]
        return np.array(found)

    def deviations(self, moments: Floats) -> Floats:
        """Return the standard deviations of groups."""
        return np.ldexp(np.sqrt(self.variances(moments)), self.unit)

    def distances(self, moments: Floats, points: Floats) -> Floats:
        """Return the squared distances of groups from points, by weight, added up."""
        away = self.means(moments) - points
        squares: Floats = np.ldexp(self.variances(moments), 2 * self.unit)
        return moments[..., 0] * (squares + away * away)

    def _weights(self, moments: Floats) -> list[int]:
        steps = np.ldexp(moments[..., 0], -self.weight_step).tolist()
        return [int(step) for step in steps]

    def _totals(self, moments: Floats) -> list[int]:
        return self.sums.whole(self.sum_limbs(moments))


@dataclass(frozen=True)
class Quantities:
    """Numbers of the rows in the unit of their scale."""

    values: Floats
    scale: Scale


@dataclass(frozen=True)
class Spread:
    """What must be known of all numbers before any can be counted; mergeable.

    ``bit`` is the exponent of the lowest bit that is set in any of them.
    """

    low: float = math.inf
    high: float = -math.inf
    bit: int = NO_BIT

    @classmethod
    def of(cls, numbers: Floats) -> Spread:
        """Look at numbers."""
        if not len(numbers):
            return cls()
        return cls(float(numbers.min()), float(numbers.max()), lowest_bit(numbers))

    def merge(self, other: Spread) -> Spread:
        """Add what is known of other numbers."""
        return Spread(
            min(self.low, other.low),
            max(self.high, other.high),
            min(self.bit, other.bit),
        )


def measure(numbers: Floats, grid: WeightGrid) -> Quantities:
    """Make numbers ready to be counted."""
    counted = numbers if grid.weights is None else numbers[grid.weights > 0]
    scale = scale_of(Spread.of(counted), grid, grid.weights is not None)
    return Quantities(scale.in_units(numbers), scale)


def scale_of(spread: Spread, grid: WeightGrid, weighted: bool) -> Scale:
    """Choose the unit and the limbs for the numbers that ``spread`` is of."""
    largest = max(abs(spread.low), abs(spread.high))
    if largest > _LARGEST:
        raise DataError(
            f"y must have numbers up to {_LARGEST:g}. Got "
            f"{max(spread.low, spread.high, key=abs):g}; use a larger unit."
        )
    unit = max(math.frexp(largest)[1], _SMALLEST_UNIT)
    weighted = weighted or grid.fractions
    weight_step = math.frexp(grid.step)[1] - 1 if weighted else 0
    low = max(spread.bit - unit, LOWEST_BIT)
    terms = 2 if weighted else 1
    return Scale(
        unit,
        spread.bit - unit < LOWEST_BIT,
        weighted,
        weight_step,
        grid.n_cases,
        Limbs.of(grid.total, grid.n_cases, terms, low + weight_step),
        Limbs.of(grid.total, grid.n_cases, 2 * terms, 2 * low + weight_step),
    )
