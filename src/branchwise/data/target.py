"""Targets of classification and regression, prepared for counting.

Numbers are counted by their moments: weight, sum and sum of squares. Row order must
not matter, so these sums are exact, each in several limbs
(``data/exact_sums.py``), so that a number that is much larger than all others takes no
digit from their means. Numbers are counted in a unit of their own, a power of two
above the largest of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.columns import Coded, Numbers, RawColumn, check_mixed
from branchwise.data.encode import numbers_as_values, occurring
from branchwise.data.encoded_table import EncodedLabels
from branchwise.data.exact_sums import NO_BIT, Limbs, lowest_bit, ratio, two_product
from branchwise.data.frames import read_labels, read_quantities
from branchwise.data.table_schema import Value
from branchwise.data.weights import WeightGrid, on_grid
from branchwise.errors import DataError, ParameterError, counted, quoted

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
        """The number of columns of moments: weight, limbs of the sum and of squares."""
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
            [
                counted[:, np.newaxis],
                self.sums.split_limbs(once),
                self.squares.split_limbs(twice),
            ],
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
        # Adding 0 turns -0.0 into 0.0.
        return np.array([ratio(t, w, exponent) if w else 0.0 for w, t in pairs]) + 0.0

    def variances(self, moments: Floats) -> Floats:
        """Return the variances of groups, in the unit squared, rounded once.

        They are 0 exactly where all numbers of a group are equal.
        """
        weights, totals = self._weights(moments), self._totals(moments)
        squares = self.squares.whole(moments[..., 1 + len(self.sums) :])
        once = self.sums.exponents[-1] - self.weight_step
        twice = self.squares.exponents[-1] - self.weight_step
        low = min(twice, 2 * once)
        variances = [
            ratio((s * w << twice - low) - (t * t << 2 * once - low), w * w, low)
            if w
            else 0.0
            for w, t, s in zip(weights, totals, squares, strict=True)
        ]
        return np.array(variances)

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
class Spread:
    """Range and lowest bit of the numbers, needed to choose a scale; mergeable.

    ``bit`` is the exponent of the lowest bit that is set in any of them.
    """

    low: float = math.inf
    high: float = -math.inf
    bit: int = NO_BIT

    @classmethod
    def of(cls, numbers: Floats) -> Spread:
        """Return the spread of numbers."""
        if not len(numbers):
            return cls()
        return cls(float(numbers.min()), float(numbers.max()), lowest_bit(numbers))

    def merge(self, other: Spread) -> Spread:
        """Return the spread of both sets of numbers."""
        return Spread(
            min(self.low, other.low),
            max(self.high, other.high),
            min(self.bit, other.bit),
        )


@dataclass(frozen=True)
class Quantities:
    """Numbers of the rows in the unit of their scale."""

    values: Floats
    scale: Scale


def measure(numbers: Floats, grid: WeightGrid) -> Quantities:
    """Scale numbers for counting."""
    counted = numbers if grid.weights is None else numbers[grid.weights > 0]
    scale = scale_of(Spread.of(counted), grid, grid.weights is not None)
    return Quantities(scale.in_units(numbers), scale)


def scale_of(spread: Spread, grid: WeightGrid, weighted: bool) -> Scale:
    """Choose the unit and the limbs for numbers of this spread."""
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


def check_together(X: object, y: object, sample_weight: object = None) -> bool:
    """Return whether rows are given; raise for a table without target, or without it.

    Weights have no effect without rows.
    """
    if (X is None) != (y is None):
        given, lacking = ("X", "y") if y is None else ("y", "X")
        raise ParameterError(
            f"X and y belong together: a table and its target. Got {given} without "
            f"{lacking}."
        )
    if X is None and sample_weight is not None:
        raise ParameterError("sample_weight has no effect without X and y.")
    return X is not None


def learn_target(
    y: object, n_rows: int | None = None, declared: Sequence[Value] | None = None
) -> tuple[tuple[Value, ...], NDArray[np.intp]]:
    """Return the classes, sorted or as declared, and the class code of every row."""
    if isinstance(y, EncodedLabels):
        _check_other_length(len(y), n_rows)
        if declared is None:
            return y.classes, y.codes
        classes, raw = y.classes, Coded(y.codes, y.classes)
    else:
        classes, raw = occurring_classes(read_labels(y), n_rows)
    if declared is not None:
        check_classes(classes, declared)
        classes = tuple(declared)
    return classes, class_codes(raw, classes)


def occurring_classes(
    raw: RawColumn, n_rows: int | None
) -> tuple[tuple[Value, ...], Coded]:
    """Return the classes that occur in a target, sorted, and the coded target."""
    raw = _complete(raw, n_rows)
    if isinstance(raw, Numbers):
        raw = _labels_from_numbers(raw)
    check_mixed("y", raw.values)
    return occurring(raw), raw


def class_codes(raw: Coded, classes: Sequence[Value]) -> NDArray[np.intp]:
    """Return the class code of every row; -1 where it is none of the classes."""
    code_of = {label: code for code, label in enumerate(classes)}
    table = np.array([code_of.get(value, -1) for value in raw.values], dtype=np.intp)
    return table.take(raw.codes)


def check_classes(occurring: Sequence[Value], declared: Sequence[Value]) -> None:
    """Reject declared classes that are incomplete or repeated."""
    if set(occurring) <= set(declared) and len(set(declared)) == len(declared):
        return
    raise DataError(
        f"classes must name every class of y once. Got {quoted(declared)}, and y has "
        f"{quoted(occurring)}."
    )


def learn_numbers(
    y: object, n_rows: int | None = None, criterion: object = "variance"
) -> NDArray[np.float64]:
    """Return the number of every row; raise unless all are finite."""
    numbers = plain_numbers(read_quantities(y), n_rows)
    if criterion == "poisson":
        check_rates(float(numbers.min()), float(numbers.max()))
    return numbers


def plain_numbers(raw: RawColumn, n_rows: int | None) -> NDArray[np.float64]:
    """Return the numbers of a target; raise unless all are finite."""
    raw = _complete(raw, n_rows)
    if not isinstance(raw, Numbers):
        example = next(iter(raw.values), None)
        raise DataError(
            "y must hold numbers to be predicted. Got "
            f"{example!r} among its values; convert it, or use a classifier."
        )
    _check_finite(raw, "every row needs a finite number")
    return raw.values.astype(np.float64)


def check_rates(low: float, high: float) -> None:
    """Reject targets of Poisson's criterion that are negative or all 0."""
    if low < 0 or high == 0:
        raise DataError(
            "criterion='poisson' and loss='poisson' need numbers y that are not "
            f"negative and not all 0. Got numbers from {low:g} to {high:g}; use "
            "criterion='variance' or loss='squared_error'."
        )


def _complete(raw: Numbers | Coded, n_rows: int | None) -> Numbers | Coded:
    """Return the target: as many entries as there are rows, none of them missing."""
    n_labels = len(raw.values if isinstance(raw, Numbers) else raw.codes)
    _check_other_length(n_labels, n_rows)
    missing = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
    if missing.any():
        raise DataError(
            f"y is missing in {counted(int(missing.sum()), 'row')}, the first of them "
            f"row {int(np.argmax(missing))}. Input y contains NaN or None, but every "
            "row needs a label; drop the rows without.",
            row=int(np.argmax(missing)),
        )
    return raw


def _check_other_length(n_labels: int, n_rows: int | None) -> None:
    if n_rows is not None and n_labels != n_rows:
        raise DataError(
            f"y must have one label for each row of X. Got "
            f"{counted(n_labels, 'label')} for {counted(n_rows, 'row')} "
            "(inconsistent numbers of samples)."
        )


def _check_finite(raw: Numbers, allowed: str) -> None:
    finite = np.isfinite(raw.values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(
            f"y is infinite in row {row}. Input y contains infinity; {allowed}.",
            row=row,
        )


def _labels_from_numbers(raw: Numbers) -> Coded:
    _check_finite(raw, "a class must be text, a boolean, a category or a whole number")
    fractional = raw.values != np.rint(raw.values)
    if fractional.any():
        row = int(np.argmax(fractional))
        raise DataError(
            "y must hold classes: text, booleans, categories or whole numbers. Got "
            f"{raw.values[row]} in row {row} (Unknown label type: continuous). Bin "
            "the target, or turn it into text if these numbers are names.",
            row=row,
        )
    return numbers_as_values(raw)
