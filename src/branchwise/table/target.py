"""What is to be predicted, ready to be counted: classes or numbers.

Numbers are counted by their weight, sum and sum of squares. For the vow that row
order does not matter, these sums must be exact, as those of weights are: numbers
are taken from a centre that has few digits (so that differences are exact where
the numbers are whole), and products are rounded once, to grids of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError
from branchwise.table.weights import WeightGrid, grid_step, long_sum, on_grid

#: Larger numbers would overflow when squared and added up.
_LARGEST = 1e120
#: The centre of the numbers is a multiple of their range over this.
_CENTRE_STEPS = 16


@dataclass(frozen=True)
class Classes:
    """Class codes of the rows."""

    labels: NDArray[np.intp]
    n_classes: int


@dataclass(frozen=True)
class Quantities:
    """Numbers of the rows, less a centre, and the grids of their products."""

    values: NDArray[np.float64]
    centre: float
    step: float
    square_step: float

    def plain(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return means without digits that are but rounding: 0.1, not 0.0999999999."""
        decimals = -math.ceil(math.log10(self.step)) - 2
        if not -300 < decimals < 300:
            return means
        rounded = np.round(means, decimals)
        return np.where(np.abs(rounded - means) <= self.step, rounded, means)

    def moments(
        self, rows: NDArray[np.intp], weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Return weight, weighted number and weighted square of some rows."""
        values = self.values[rows]
        counted = np.ones(len(rows)) if weight is None else weight
        return np.stack(
            [
                counted,
                on_grid(counted * values, self.step),
                on_grid(counted * (values * values), self.square_step),
            ],
            axis=1,
        )


@dataclass(frozen=True)
class Spread:
    """What must be known of all numbers before any can be counted; mergeable.

    ``sums`` add up to their sum with far more digits than one float has.
    """

    low: float
    high: float
    sums: tuple[float, ...]
    n: int

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> Spread:
        """Look at numbers."""
        if not len(numbers):
            return cls(math.inf, -math.inf, (), 0)
        low, high = float(numbers.min()), float(numbers.max())
        return cls(low, high, long_sum(numbers), len(numbers))

    def merge(self, other: Spread) -> Spread:
        """Add what is known of other numbers."""
        return Spread(
            min(self.low, other.low),
            max(self.high, other.high),
            self.sums + other.sums,
            self.n + other.n,
        )


def measure(
    numbers: NDArray[np.float64], grid: WeightGrid, centred: bool
) -> Quantities:
    """Make numbers ready to be counted."""
    counted = numbers if grid.weights is None else numbers[grid.weights > 0]
    return measured(numbers, Spread.of(counted), grid.total, centred)


def measured(
    numbers: NDArray[np.float64], spread: Spread, total: float, centred: bool
) -> Quantities:
    """Make numbers ready to be counted, some of those that ``spread`` is of."""
    low, high = spread.low, spread.high
    if max(abs(low), abs(high)) > _LARGEST:
        raise DataError(
            f"y must have numbers up to {_LARGEST:g}. Got {max(low, high, key=abs):g}; "
            "use a larger unit."
        )
    centre = _centre(spread) if centred else 0.0
    largest = max(abs(low - centre), abs(high - centre))
    return Quantities(
        numbers - centre,
        centre,
        grid_step(max(largest * total, 1e-290), whole=False),
        grid_step(max(largest * largest * total, 1e-290), whole=False),
    )


def _centre(spread: Spread) -> float:
    """Return the mean, rounded to a power of two that is coarse for the range."""
    width = (spread.high - spread.low) / _CENTRE_STEPS
    if width <= 0:
        return spread.low
    step = math.ldexp(1.0, math.frexp(width)[1])
    return float(np.rint(math.fsum(spread.sums) / spread.n / step) * step)
