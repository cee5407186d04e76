"""Array types and helpers: runs of equal values, downcasting, the tie rule.

Nearly equal scores are equal, and the first of them wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray


def downcast(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in the smallest type that holds them."""
    if np.isnan(array).all():
        return array.astype(np.float16)
    if not (array == np.rint(array)).all():
        return array.copy()
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    smallest = np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most))
    return array.astype(smallest if smallest.kind in "iu" else array.dtype)


Scalar = TypeVar("Scalar", bound=np.generic)


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the values of an array, sorted, each once; NaN is not expected.

    ``np.unique`` of NumPy 2.3 and later does this in C++ with the GIL released, and
    aborts the process where Python shuts down while a daemon thread is in it.
    """
    ordered = np.sort(values, axis=None)
    if not len(ordered):
        return ordered
    first = np.empty(len(ordered), dtype=bool)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


Floats = NDArray[np.float64]


Ints = NDArray[np.intp]


Table = TypeVar("Table")


def selected(table: Table, rows: NDArray[Any] | slice) -> Table:
    """Return some rows of a data class of arrays of equal length."""
    names = [field.name for field in fields(table)]  # type: ignore[arg-type]
    return type(table)(*(getattr(table, name)[rows] for name in names))


def run_starts(*keys: NDArray[np.integer]) -> Ints:
    """Return where each run of equal (combinations of) keys begins."""
    if not len(keys[0]):
        return np.empty(0, dtype=np.intp)
    changes = np.zeros(len(keys[0]), dtype=bool)
    changes[0] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)


#: Relative tolerance of scores that count as equal.
TIE = 1e-9


def first_best(scores: Floats, starts: Ints, resolution: Floats) -> Ints:
    """Find the first best score of each run: the tie rule.

    Scores within a relative 1e-9 of the best (or within ``resolution``, where
    rounding errors are larger) are equal to it; the first of them wins, which is
    the lower column, the lower threshold, the first branch, the first class in sorted
    order.
    """
    least = least_of_equals(np.maximum.reduceat(scores, starts), resolution)
    width = np.diff(starts, append=len(scores))
    good = np.flatnonzero(scores >= np.repeat(least, width))
    owner = np.repeat(np.arange(len(starts)), width)[good]
    return good[run_starts(owner)]


def first_best_of_rows(scores: Floats, resolution: Floats | float = 0.0) -> Ints:
    """Find the first best score of each row of a matrix: its position there."""
    least = least_of_equals(scores.max(axis=1), resolution)
    best: Ints = (scores >= least[:, np.newaxis]).argmax(axis=1)
    return best


def least_of_equals(top: Floats, resolution: Floats | float) -> Floats:
    """Return the lowest scores that are equal to the best ones."""
    with np.errstate(invalid="ignore"):
        least = top - np.maximum(np.abs(top) * TIE, resolution)
    return np.where(np.isfinite(top), least, top)


def larger_side(left: Floats, right: Floats) -> Ints:
    """Return 1 where the right weighs more, otherwise 0: the left wins ties."""
    side: Ints = (left < right - right * TIE).astype(np.intp)
    return side


def cheapest(weights: Floats, costs: Sequence[Sequence[float]]) -> Ints:
    """Return for each row the first class of the least expected cost."""
    # Scaled row by row, so that costs neither overflow nor underflow.
    units = np.frexp(weights.max(axis=1))[1]
    weights = np.ldexp(weights, -units[:, np.newaxis])
    cost = np.zeros((len(weights), len(costs[0])))
    for weight, row in zip(weights.T, np.asarray(costs, dtype=np.float64), strict=True):
        # Class after class, as an export adds: a matrix product has no fixed order.
        cost += weight[:, np.newaxis] * row
    return first_best_of_rows(-cost)


def added_in_order(numbers: Floats) -> float:
    """Add numbers one after the other, as a loop would; ``sum`` adds by halves."""
    return float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0


def midpoint(low: NDArray[Any], high: NDArray[Any]) -> Floats:
    """Return thresholds between neighbours: low <= threshold < high, after rounding."""
    # Halves first: the sum of two large numbers could overflow.
    middle = low / 2 + high / 2
    return np.where((middle < low) | (middle >= high), low, middle)


#: What all numbers of a column are, each one a case of the next.
NUMBER_KINDS = ("binary", "whole", "any")
#: Whole numbers are smaller than this: all of them are exact.
_LARGEST_WHOLE = 2.0**53
_BLOCK = 1 << 15


def number_kind(numbers: Floats) -> str:
    """Tell whether all numbers are 0 or 1, or whole; NaN is not a number.

    Block by block, since most columns of decimals show it in the first.
    """
    found = "binary"
    for first in range(0, len(numbers), _BLOCK):
        block = numbers[first : first + _BLOCK]
        # Comparisons with NaN are false.
        if (np.abs(block - np.rint(block)) > 0).any():
            return "any"
        if (np.abs(block) >= _LARGEST_WHOLE).any():
            return "any"
        if found == "binary" and ((block != block * block) & (block == block)).any():
            found = "whole"
    return found


def wider_kind(one: str, other: str) -> str:
    """Return what the numbers of two kinds are together."""
    return max(one, other, key=NUMBER_KINDS.index)
