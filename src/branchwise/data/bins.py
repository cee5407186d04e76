"""Bins: ranges of numbers of about equal size, with thresholds only between them.

Exact thresholds are the default; with ``max_bins`` a column with more distinct numbers
than that is split only between bins, which is much faster on long tables and loses
little. During growth numbers are replaced by the indices of their bins; afterwards
thresholds between bins become thresholds between numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, distinct, midpoint
from branchwise.data.table_schema import Column, Columns
from branchwise.native import extension, plain_arrays

#: The compiled kernel takes the bins of a column as codes, if it has no more than this.
MOST_CODED = 4096

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


def bin_codes(
    columns: Sequence[Column],
    data: Columns,
    max_bins: int,
    counted: NDArray[np.bool_] | None,
    threads: int,
) -> tuple[Columns, Edges]:
    """Bin columns as :func:`bin_columns` does, for the compiled kernel.

    Bins are uint8 or uint16 codes, the largest of which stands for missing.
    """
    if max_bins > MOST_CODED:
        return bin_columns(columns, data, max_bins, counted)
    edges: Edges = {}
    cells = list(data.data)
    numeric = [j for j, column in enumerate(columns) if column.is_numeric]
    found = extension().bin_columns(
        plain_arrays(cells[j] for j in numeric),
        None if counted is None else counted.view(np.uint8),
        max_bins,
        threads,
    )
    for index, bins in zip(numeric, found, strict=True):
        if bins is not None:
            edges[index], cells[index] = bins
    return replace(data, data=tuple(cells)), edges


def codes_as_numbers(columns: Sequence[Column], data: Columns) -> Columns:
    """Return bins as :func:`bin_columns` has them, from those of :func:`bin_codes`."""
    cells = [
        np.where(codes == np.iinfo(codes.dtype).max, np.nan, codes.astype(np.float64))
        if column.is_numeric and codes.dtype.kind == "u"
        else codes
        for column, codes in zip(columns, data.data, strict=True)
    ]
    return replace(data, data=tuple(cells))


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
