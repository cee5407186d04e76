"""A search that is fast at one node with many rows.

It finds the same splits as the search of whole levels. All columns are counted at once
in the compiled kernel. Of many thresholds only those are scored exactly that a simple
formula says may be the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, selected
from branchwise.data.table_schema import Column
from branchwise.engines.memory_engine import Cases, MemoryEngine
from branchwise.grow.categories import Grouping
from branchwise.grow.counts import Counts, count_cells
from branchwise.grow.scored import Branches, Scored
from branchwise.grow.search import Search
from branchwise.grow.thresholds import Thresholds
from branchwise.native import available
from branchwise.threads import cached_property, in_order
from branchwise.tree.splits import STOP, Splits

#: With fewer thresholds all are scored exactly.
_MANY_THRESHOLDS = 500
#: Thresholds that are worse than the best by more than this share are left out; the
#: rounding errors of scores are much smaller.
_WORSE = 1e-9
#: Columns with tables of more cells than this are counted by themselves.
_LARGE_TABLE = 1 << 14
#: Tables of more cells for each row are not made.
_CELLS_PER_ROW = 16


class CountedOnce:
    """Counts of an engine at one node, each column counted once."""

    def __init__(
        self, engine: MemoryEngine, labels: NDArray[np.uint32], threads: int
    ) -> None:
        self._engine, self._labels, self._threads = engine, labels, threads
        self._counts: dict[int, Counts] = {}

    def count_all(self, n_classes: int) -> None:
        """Count all columns together, where the compiled kernel can."""
        cases = self._engine.root
        if not n_classes or cases.case is not None or not available():
            return
        columns = self._engine.countable
        most = _CELLS_PER_ROW * (len(cases.row) + 4096)
        able = [at for at, c in enumerate(columns) if c.n_codes * n_classes <= most]
        large = [at for at in able if columns[at].n_codes * n_classes > _LARGE_TABLE]
        small = [at for at in able if at not in large]
        # Large tables one after the other: together they would not fit in the cache.
        shares = [[at] for at in large]
        shares += [small[k :: self._threads] for k in range(self._threads)]
        counted = in_order(
            lambda share: self._count(share, cases, n_classes), shares, self._threads
        )
        for share, found in zip(shares, counted, strict=True):
            self._counts |= dict(zip(share, found, strict=True))

    def _count(self, columns: list[int], cases: Cases, n_classes: int) -> list[Counts]:
        chosen = [self._engine.countable[at] for at in columns]
        codes, labels = [each.codes for each in chosen], self._labels
        if len(cases.row) < len(labels):
            codes = [each[cases.row] for each in codes]
            labels = labels[cases.row]
        nodes = np.zeros(len(labels), dtype=np.int32)
        sizes = [each.n_codes for each in chosen]
        return count_cells(codes, sizes, labels, n_classes, nodes, 1, cases.weight)

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column at the node."""
        if nodes is not None and not len(nodes):
            return self._engine.counts(column, nodes)
        if column not in self._counts:
            self._counts[column] = self._engine.counts(column)
        return self._counts[column]

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column."""
        return self._engine.values(column)

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""
        return self._engine.missing_code(column)

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column by the branch that rows take."""
        return self._engine.branch_counts(splits)


@dataclass(frozen=True)
class NodeLevelSearch(Search):
    """The search of a level that has one node."""

    @cached_property
    def _known(self) -> dict[int, tuple[Counts, Counts]]:
        return {}

    @cached_property
    def _scores(self) -> dict[int, Scored]:
        return {}

    def apart(self, index: int, nodes: Ints | None = None) -> tuple[Counts, Counts]:
        """Return the counts of the known values of a column, and of missing ones."""
        if nodes is not None and not len(nodes):
            return super().apart(index, nodes)
        if index not in self._known:
            counts = self.source.counts(index)
            # The code of missing values is the last one.
            last = len(counts.code) - 1
            missing = last >= 0 and counts.code[last] == self.source.missing_code(index)
            end = last if missing else last + 1
            sides = slice(0, end), slice(end, None)
            known, unknown = (selected(counts, side) for side in sides)
            self._known[index] = known, unknown
        return self._known[index]

    @cached_property
    def _groupings(self) -> dict[int, Grouping]:
        return {}

    def _grouping(self, index: int, known: Counts, unknown: Counts) -> Grouping:
        if index not in self._groupings:
            self._groupings[index] = super()._grouping(index, known, unknown)
        return self._groupings[index]

    def score(self, index: int, column: Column) -> Scored:
        """Score one column."""
        if index not in self._scores:
            self._scores[index] = super().score(index, column)
        return self._scores[index]

    def score_all(self, threads: int) -> None:
        """Score all columns, in threads."""
        in_order(
            lambda at: self.score(at, self.columns[at]),
            range(len(self.columns)),
            threads,
        )

    def branches(
        self, index: int, nodes: Ints, threshold: Floats, missing_to: Ints
    ) -> Branches:
        """Make the branches of a split on one column."""
        known, unknown = self.apart(index, nodes)
        if self.columns[index].is_numeric and len(known.code) > 2:
            values = self.source.values(index)[known.code]
            at = int(np.searchsorted(values, threshold[0], side="right"))
            if 0 < at < len(values) and not np.isnan(threshold[0]):
                # Two sums stand for all numbers.
                sides = slice(0, at), slice(at, None)
                known = Counts(
                    np.zeros(2, dtype=np.intp),
                    known.code[[0, at]],
                    np.stack([known.weights[side].sum(axis=0) for side in sides]),
                    np.array([known.cases[side].sum() for side in sides]),
                )
        return self._made(index, known, unknown, threshold, missing_to)

    def _worth_scoring(
        self, index: int, known: Counts, unknown: Counts
    ) -> tuple[Thresholds, Floats, Ints]:
        """Return thresholds that may be the best, and how many are admissible."""
        if not self._is_plain(known, unknown):
            return super()._worth_scoring(index, known, unknown)
        values = self.source.values(index)[known.code]
        # Class by class in memory, which makes every step below faster.
        by_class = np.cumsum(np.ascontiguousarray(known.weights.T), axis=1)
        left_cases = np.cumsum(known.cases)
        left, cases = by_class[:, :-1], left_cases[:-1]
        right = by_class[:, -1:] - left
        n = len(cases)
        thresholds = Thresholds(
            np.zeros(n, dtype=np.intp),
            left.T,
            right.T,
            cases,
            left_cases[-1] - cases,
            values[:-1],
            values[1:],
            np.full(n, STOP, dtype=np.intp),
        )
        admissible = self.admissible(thresholds, unknown)
        number = np.array([np.count_nonzero(admissible)])
        quality = np.where(admissible, self._quality(left, right), -np.inf)
        largest = float(quality.max())
        slack = _WORSE * max(abs(largest), float(sum(by_class[:, -1])))
        chosen = np.flatnonzero(admissible & (quality >= largest - slack))
        return selected(thresholds, chosen), unknown.totals(1)[0], number

    def _is_plain(self, known: Counts, unknown: Counts) -> bool:
        """Whether the thresholds of a column can be compared by a simple formula."""
        recipe = self.recipe
        ratio = recipe.criterion_name == "gain_ratio" and not recipe.quinlan_thresholds
        return (
            len(known.code) > _MANY_THRESHOLDS
            and not self.impurity_sums.for_numbers
            and not ratio
            and not recipe.min_gain
            and self.random_splits is None
            and not (recipe.missing == "learned" and len(unknown.code))
        )

    def _quality(self, left: Floats, right: Floats) -> Floats:
        """Return numbers that order thresholds as the criterion does."""
        if self.recipe.criterion_name == "gini":
            squares = np.zeros(left.shape[1])
            for side in (left, right):
                squares += (side * side).sum(axis=0) / side.sum(axis=0)
            return squares
        # Minus the weight times the entropy of both sides.
        sums = self.impurity_sums
        quality = np.zeros(left.shape[1])
        for side in (left, right):
            quality -= sums.x_log2_x(side.sum(axis=0))
            for each in side:
                quality += sums.x_log2_x(each)
        return quality
