"""Array types and helpers: runs of equal values, downcasting, the tie rule, and bins.

Nearly equal scores are equal, and the first of them wins. Exact thresholds are the
default; with ``max_bins`` a column with more distinct numbers than that is split only
between bins, ranges of numbers, which is much faster on long tables and loses little.
During growth numbers are replaced by the indices of their bins; afterwards thresholds
between bins become thresholds between numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from branchwise.data.table_schema import Column, Columns


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


def selected(table: Table, rows: NDArray[Any]) -> Table:
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
    """Return the class with the least expected cost for each row of class weights;
    of equal ones the first.
    """  # noqa: D205
    # Scaled row by row, so that costs neither overflow nor underflow.
    units = np.frexp(weights.max(axis=1))[1]
    weights = np.ldexp(weights, -units[:, np.newaxis])
    cost = np.zeros((len(weights), len(costs[0])))
    for weight, row in zip(weights.T, np.asarray(costs, dtype=np.float64), strict=True):
        # Class after class, as an export adds: a matrix product has no fixed order.
        cost += weight[:, np.newaxis] * row
    return first_best_of_rows(-cost)


#: The edges between bins, by column; columns without bins are absent.
Edges = dict[int, Floats]


def bin_columns(
    columns: Sequence[Column],
    data: Columns,
    max_bins: int,
    counted: NDArray[np.bool_] | None,
) -> tuple[Columns, Edges]:
    """Bin the columns with many distinct numbers; ``counted`` rows give the edges."""
    edges: Edges = {}
    cells = list(data.data)
    for index, column in enumerate(columns):
        if not column.is_numeric:
            continue
        numbers = cells[index]
        between = _edges(numbers if counted is None else numbers[counted], max_bins)
        if between is not None:
            edges[index] = between
            # The bin of x is the first whose edge is not below it.
            binned = np.searchsorted(between, numbers, side="left").astype(np.float64)
            cells[index] = np.where(np.isnan(numbers), np.nan, binned)
    return replace(data, data=tuple(cells)), edges


def _edges(numbers: Floats, max_bins: int) -> Floats | None:
    """Return edges of bins of about equal size, or None for few distinct numbers."""
    distinct, count = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    if len(distinct) <= max_bins:
        return None
    return edges_between(distinct, distinct, count, max_bins)


def edges_between(
    low: Floats,
    high: Floats,
    count: Ints,
    max_bins: int,
) -> Floats:
    """Return edges of bins of about equal size, made of whole cells of a summary.

    Of each cell the least and the largest number is given, and how many it has.
    """
    upto = np.cumsum(count)
    quantiles = np.arange(1, max_bins) * int(upto[-1]) // max_bins
    # The cell of the number before each quantile, counted from the least.
    last = np.searchsorted(upto, quantiles - 1, side="right")
    last = distinct(last[(quantiles > 0) & (last < len(count) - 1)])
    return midpoint(high[last], low[last + 1])


def midpoint(low: NDArray[Any], high: NDArray[Any]) -> Floats:
    """Return thresholds between neighbours: low <= threshold < high, after rounding."""
    # Halves first: the sum of two large numbers could overflow.
    middle = low / 2 + high / 2
    return np.where((middle < low) | (middle >= high), low, middle)


def numbers_of_thresholds(threshold: Floats, column: Ints, edges: Edges) -> Floats:
    """Convert thresholds between bins into thresholds between numbers."""
    return _converted(
        threshold, column, edges, lambda at, between: between[at.astype(np.intp)]
    )


def bins_of_thresholds(threshold: Floats, column: Ints, edges: Edges) -> Floats:
    """Convert such thresholds between numbers back into thresholds between bins."""
    return _converted(
        threshold, column, edges, lambda at, between: between.searchsorted(at) + 0.5
    )


def _converted(
    threshold: Floats,
    column: Ints,
    edges: Edges,
    convert: Callable[[Floats, Floats], NDArray[Any]],
) -> Floats:
    """Convert the thresholds of binned columns, given their edges."""
    result = threshold.copy()
    for index, between in edges.items():
        binned = np.flatnonzero((column == index) & ~np.isnan(threshold))
        result[binned] = convert(threshold[binned], between)
    return result
