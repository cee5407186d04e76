"""Where numbers are cut: in the middle between two, or only between bins.

Exact thresholds are the default. With ``max_bins`` a column with more distinct
numbers than that is cut only between bins, which is much faster on long tables and
loses little. A bin is a range of numbers; its number stands for it during growth,
and afterwards cuts between bins are turned into cuts between numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import distinct
from branchwise.data.schema import Column, Columns

#: The numbers between bins, by column; a column that is not there has no bins.
Edges = dict[int, NDArray[np.float64]]


def bin_columns(
    columns: Sequence[Column],
    data: Columns,
    max_bins: int,
    counted: NDArray[np.bool_] | None,
) -> tuple[Columns, Edges]:
    """Put the numbers of long columns in bins; ``counted`` rows decide which."""
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
    """Return cuts that part the numbers evenly, or None where there are few."""
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
    """Return cuts that part numbers evenly that lie in cells, which stay whole.

    Of each cell the least and the largest number is given, and how many it has.
    """
    upto = np.cumsum(count)
    quantiles = np.arange(1, max_bins) * int(upto[-1]) // max_bins
    # The cell of the number before each quantile, counted from the least.
    last = np.searchsorted(upto, quantiles - 1, side="right")
    last = distinct(last[(quantiles > 0) & (last < len(count) - 1)])
    return midpoint(high[last], low[last + 1])


def midpoint(low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cut between neighbours: low <= cut < high, however it is rounded."""
    # Halves first: the sum of two large numbers could overflow.
    middle = low / 2 + high / 2
    return np.where((middle < low) | (middle >= high), low, middle)


def cut_numbers(
    cut: NDArray[np.float64], column: NDArray[np.intp], edges: Edges
) -> NDArray[np.float64]:
    """Turn cuts between bins into cuts between numbers."""
    result = cut.copy()
    for index, between in edges.items():
        cuts = np.flatnonzero((column == index) & ~np.isnan(cut))
        result[cuts] = between[np.floor(cut[cuts]).astype(np.intp)]
    return result


def cut_bins(
    cut: NDArray[np.float64], column: NDArray[np.intp], edges: Edges
) -> NDArray[np.float64]:
    """Turn such cuts between numbers into cuts between bins again."""
    result = cut.copy()
    for index, between in edges.items():
        cuts = np.flatnonzero((column == index) & ~np.isnan(cut))
        result[cuts] = np.searchsorted(between, cut[cuts], side="left") + 0.5
    return result
