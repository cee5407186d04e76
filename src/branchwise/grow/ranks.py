"""Ordered categories: split in two by their order, as numbers are at thresholds.

While a two-way split is searched for, a column of ordered categories is a numeric one:
its codes are the ranks of its values. In the splits, and in the tree, both sides of a
threshold between ranks become the codes of all values on that side, so that everything
that takes a tree knows only categories. Where values have a branch each, order plays no
role; where they share any number of branches, see ``grow/categories.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Column, Columns
from branchwise.grow.choose import splits_by_rank
from branchwise.grow.counts import Counts
from branchwise.grow.protocol import BranchSource
from branchwise.recipe import Recipe
from branchwise.tree.splits import ABOVE, AT_MOST, Splits, Surrogates, ragged
from branchwise.tree.tree import Tree


def _is_ordered(column: Column) -> bool:
    return column.kind == "ordinal"


def ranked_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns with ordered ones as numeric ones."""
    return [
        replace(column, kind="numeric", categories=())
        if _is_ordered(column)
        else column
        for column in columns
    ]


def ranks_of_codes(columns: Sequence[Column], data: Columns) -> Columns:
    """Return the cells of ordered columns as numbers, missing ones as NaN."""
    cells = [
        np.where(codes == column.missing_code, np.nan, codes.astype(np.float64))
        if _is_ordered(column)
        else codes
        for column, codes in zip(columns, data.data, strict=True)
    ]
    return replace(data, data=tuple(cells))


def ranked(
    source: BranchSource, columns: Sequence[Column], recipe: Recipe
) -> tuple[BranchSource, Sequence[Column]]:
    """Return the source and the columns that splits are searched for in."""
    if not splits_by_rank(columns, recipe):
        return source, columns
    return RankedSource(source, columns), ranked_columns(columns)


@dataclass(frozen=True)
class RankedSource:
    """Counts of a source, in which the codes of ordered columns are numbers."""

    source: BranchSource
    columns: Sequence[Column]

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""
        return self.source.counts(column, nodes)

    def values(self, column: int) -> Floats:
        """Return the ranks of an ordered column, the numbers of a numeric one."""
        if _is_ordered(self.columns[column]):
            return np.arange(len(self.columns[column].categories), dtype=np.float64)
        return self.source.values(column)

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""
        return self.source.missing_code(column)

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column by the branch of the open nodes that rows take."""
        return self.source.branch_counts(splits)


def splits_in_codes(splits: Splits, columns: Sequence[Column]) -> Splits:
    """Return splits with the codes of both sides of thresholds between ranks."""
    sides = _Sides.of(columns)
    owner = np.repeat(np.arange(len(splits.column)), splits.n_branches)
    n_codes, codes = sides.codes(
        splits.column[owner], splits.threshold[owner], splits.n_codes, splits.codes
    )
    return replace(
        splits,
        threshold=sides.thresholds(splits.column, splits.threshold),
        n_codes=n_codes,
        codes=codes,
    )


def surrogates_in_codes(
    surrogates: Surrogates | None, columns: Sequence[Column]
) -> Surrogates | None:
    """Return surrogates with the codes of both sides of thresholds between ranks."""
    if surrogates is None:
        return None
    return replace(surrogates, splits=splits_in_codes(surrogates.splits, columns))


def with_surrogates_in_codes(splits: Splits, columns: Sequence[Column]) -> Splits:
    """Return splits that have codes already with surrogates that have them."""
    surrogates = surrogates_in_codes(splits.surrogates, columns)
    return replace(splits, surrogates=surrogates)


def codes_of_sides(sides: Sequence[int], threshold: float, n_values: int) -> list[int]:
    """Return the codes of all values on the given sides of a threshold."""
    n_below = n_values if math.isnan(threshold) else math.floor(threshold) + 1
    return [
        code
        for code in range(n_values)
        if (AT_MOST if code < n_below else ABOVE) in sides
    ]


def tree_in_codes(tree: Tree, columns: Sequence[Column]) -> Tree:
    """Return a tree, with its surrogates, with the codes of both sides of ranks."""
    sides = _Sides.of(columns)
    parent = np.maximum(tree.parent, 0)
    n_codes, codes = sides.codes(
        tree.column[parent], tree.threshold[parent], tree.n_codes, tree.codes
    )
    threshold = sides.thresholds(tree.column, tree.threshold)
    surrogates = surrogates_in_codes(tree.surrogates, columns)
    tree = replace(tree, threshold=threshold, n_codes=n_codes, codes=codes)
    return tree if surrogates is None else tree.with_surrogates(surrogates)


@dataclass(frozen=True)
class _Sides:
    """By column whether it is ordered, and how many values it has; -1 has neither."""

    ordered: NDArray[np.bool_]
    n_values: Ints

    @classmethod
    def of(cls, columns: Sequence[Column]) -> _Sides:
        ordered = [*map(_is_ordered, columns), False]
        n_values = [*(len(column.categories) for column in columns), 0]
        return cls(np.array(ordered), np.array(n_values, dtype=np.intp))

    def thresholds(self, column: Ints, threshold: Floats) -> Floats:
        """Return thresholds without those between ranks."""
        return np.where(self.ordered[column], np.nan, threshold)

    def codes(
        self, column: Ints, threshold: Floats, n_codes: Ints, codes: Ints
    ) -> tuple[Ints, Ints]:
        """Replace the sides of thresholds between ranks by the ranks on them.

        ``column``, ``threshold`` and ``n_codes`` are by branch.
        """
        owner = np.repeat(np.arange(len(column)), n_codes)
        ordered = self.ordered[column[owner]]
        n_values = self.n_values[column[owner]]
        # Without a threshold, known values against missing ones, all are at most it.
        at = threshold[owner]
        last = np.where(ordered & ~np.isnan(at), at, n_values - 1)
        n_below = np.floor(last).astype(np.intp) + 1
        at_most = codes == AT_MOST
        begin = np.where(ordered, np.where(at_most, 0, n_below), codes)
        length = np.where(at_most, n_below, n_values - n_below)
        length = np.where(ordered, length, 1)
        number = np.zeros(len(column), dtype=np.intp)
        np.add.at(number, owner, length)
        return number, ragged(begin, length)
