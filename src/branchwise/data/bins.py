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

from branchwise.data.arrays import Floats, Ints, distinct
from branchwise.data.conventions.threshold_positions import POSITIONS, between
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
    threshold: str = "midpoint",
) -> tuple[Columns, Edges]:
    """Bin the columns with many distinct numbers; ``counted`` rows give the edges.

    ``threshold`` of the recipe positions the edges.
    """
    edges: Edges = {}
    cells = list(data.data)
    for index, column in enumerate(columns):
        if not column.is_numeric:
            continue
        numbers = cells[index]
        rows = numbers if counted is None else numbers[counted]
        found = _edges(rows, max_bins, column.position(threshold))
        if found is not None:
            edges[index] = found
            # The bin of x is the first whose edge is not below it.
            binned = np.searchsorted(found, numbers, side="left").astype(np.float64)
            cells[index] = np.where(np.isnan(numbers), np.nan, binned)
    return replace(data, data=tuple(cells)), edges


def bin_codes(
    columns: Sequence[Column],
    data: Columns,
    max_bins: int,
    counted: NDArray[np.bool_] | None,
    threads: int,
    threshold: str = "midpoint",
) -> tuple[Columns, Edges]:
    """Bin columns as :func:`bin_columns` does, for the compiled kernel.

    Bins are uint8 or uint16 codes, the largest of which stands for missing.
    """
    if max_bins > MOST_CODED:
        return bin_columns(columns, data, max_bins, counted, threshold)
    edges: Edges = {}
    cells = list(data.data)
    numeric = [j for j, column in enumerate(columns) if column.is_numeric]
    found = extension().bin_columns(
        plain_arrays(cells[j] for j in numeric),
        None if counted is None else counted.view(np.uint8),
        max_bins,
        [POSITIONS.index(columns[j].position(threshold)) for j in numeric],
        threads,
    )
    for index, bins in zip(numeric, found, strict=True):
        if bins is not None:
            edges[index], cells[index] = bins
    return replace(data, data=tuple(cells)), edges


def with_bins(columns: tuple[Column, ...], edges: Edges) -> tuple[Column, ...]:
    """Return columns as they are while a tree is grown: the numbers are bins."""
    return tuple(
        replace(column, number_kind="bins") if index in edges else column
        for index, column in enumerate(columns)
    )


def codes_as_numbers(columns: Sequence[Column], data: Columns) -> Columns:
    """Return bins as :func:`bin_columns` has them, from those of :func:`bin_codes`."""
    cells = [
        np.where(codes == np.iinfo(codes.dtype).max, np.nan, codes.astype(np.float64))
        if column.is_numeric and codes.dtype.kind == "u"
        else codes
        for column, codes in zip(columns, data.data, strict=True)
    ]
    return replace(data, data=tuple(cells))


def _edges(numbers: Floats, max_bins: int, position: str) -> Floats | None:
    """Return edges of bins of about equal size, or None for few distinct numbers."""
    distinct, count = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    if len(distinct) <= max_bins:
        return None
    return edges_between(distinct, distinct, count, max_bins, position)


def edges_between(
    low: Floats,
    high: Floats,
    count: Ints,
    max_bins: int,
    position: str,
) -> Floats:
    """Return edges of bins of about equal size, made of whole cells of a summary.

    Of each cell the least and the largest number is given, and how many it has.
    """
    upto = np.cumsum(count)
    quantiles = np.arange(1, max_bins) * int(upto[-1]) // max_bins
    # The cell of the number before each quantile, counted from the least.
    last = np.searchsorted(upto, quantiles - 1, side="right")
    last = distinct(last[(quantiles > 0) & (last < len(count) - 1)])
    return between(high[last], low[last + 1], position)


def numbers_of_thresholds(threshold: Floats, column: Ints, edges: Edges) -> Floats:
    """Convert thresholds between bins into thresholds between numbers."""
    return _converted(
        threshold, column, edges, lambda at, edges: edges[at.astype(np.intp)]
    )


def bins_of_thresholds(threshold: Floats, column: Ints, edges: Edges) -> Floats:
    """Convert such thresholds between numbers back into thresholds between bins."""
    return _converted(
        threshold, column, edges, lambda at, edges: edges.searchsorted(at) + 0.5
    )


def _converted(
    threshold: Floats,
    column: Ints,
    edges: Edges,
    convert: Callable[[Floats, Floats], NDArray[Any]],
) -> Floats:
    """Convert the thresholds of binned columns, given their edges."""
    result = threshold.copy()
    for index, its_edges in edges.items():
        binned = np.flatnonzero((column == index) & ~np.isnan(threshold))
        result[binned] = convert(threshold[binned], its_edges)
    return result
