"""Bins of numeric columns, and midpoints between neighbouring numbers.

Exact thresholds are the default. With ``max_bins`` a column with more distinct
numbers than that is split only between bins, which is much faster on long tables and
loses little. A bin is a range of numbers. During growth numbers are replaced by the
indices of their bins; afterwards thresholds between bins become thresholds between
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import distinct
from branchwise.data.schema import Column, Columns

#: The edges between bins, by column; columns without bins are absent.
Edges = dict[int, NDArray[np.float64]]


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


def _edges(numbers: NDArray[np.float64], max_bins: int) -> NDArray[np.float64] | None:
    """Return edges of bins of about equal size, or None for few distinct numbers."""
    distinct, count = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    if len(distinct) <= max_bins:
        return None
    return edges_between(distinct, distinct, count, max_bins)


def edges_between(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    count: NDArray[np.intp],
    max_bins: int,
) -> NDArray[np.float64]:
    """Return edges of bins of about equal size, made of whole cells of a summary.

    Of each cell the least and the largest number is given, and how many it has.
    """
    upto = np.cumsum(count)
    quantiles = np.arange(1, max_bins) * int(upto[-1]) // max_bins
    # The cell of the number before each quantile, counted from the least.
    last = np.searchsorted(upto, quantiles - 1, side="right")
    last = distinct(last[(quantiles > 0) & (last < len(count) - 1)])
    return midpoint(high[last], low[last + 1])


def midpoint(low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.float64]:
    """Return thresholds between neighbours: low <= threshold < high, after rounding."""
    # Halves first: the sum of two large numbers could overflow.
    middle = low / 2 + high / 2
    return np.where((middle < low) | (middle >= high), low, middle)


def numbers_of_thresholds(
    threshold: NDArray[np.float64], column: NDArray[np.intp], edges: Edges
) -> NDArray[np.float64]:
    """Convert thresholds between bins into thresholds between numbers."""
    return _converted(
        threshold, column, edges, lambda at, between: between[at.astype(np.intp)]
    )


def bins_of_thresholds(
    threshold: NDArray[np.float64], column: NDArray[np.intp], edges: Edges
) -> NDArray[np.float64]:
    """Convert such thresholds between numbers back into thresholds between bins."""
    return _converted(
        threshold, column, edges, lambda at, between: between.searchsorted(at) + 0.5
    )


def _converted(
    threshold: NDArray[np.float64],
    column: NDArray[np.intp],
    edges: Edges,
    convert: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[Any]],
) -> NDArray[np.float64]:
    """Convert the thresholds of binned columns, given their edges."""
    result = threshold.copy()
    for index, between in edges.items():
        binned = np.flatnonzero((column == index) & ~np.isnan(threshold))
        result[binned] = convert(threshold[binned], between)
    return result
