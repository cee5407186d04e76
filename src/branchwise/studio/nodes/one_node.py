"""A search that is fast at one node with many rows.

It finds the same splits as the search of whole levels. All columns are counted at once
in the compiled kernel. Of many thresholds only those are scored here that may be the
best by what it says; numbers between two of these are counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, selected
from branchwise.data.table_schema import Column
from branchwise.engines.memory_engine import Cases, MemoryEngine
from branchwise.grow.categories import Grouping
from branchwise.grow.counts import Counts, count_cells, count_moments
from branchwise.grow.scored import Branches, Scored
from branchwise.grow.search import Search
from branchwise.grow.thresholds import Thresholds
from branchwise.native import available
from branchwise.studio.nodes.threshold_segments import SegmentCounter, Segments
from branchwise.threads import cached_property, in_order
from branchwise.tree.splits import STOP, Splits

#: With fewer thresholds all are scored exactly.
MANY_THRESHOLDS = 500
#: Thresholds worse than the best by more than this share are left out; ties and
#: rounding errors of scores are smaller.
_WORSE = 2e-9
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

    def count_all(self, n_classes: int, columns: Sequence[int]) -> None:
        """Count columns together, where the compiled kernel can."""
        cases = self._engine.root
        if not available():
            return
        moments = self._engine.moments
        if moments is not None:
            self._count_moments(columns, cases, moments)
        if not n_classes or cases.case is not None:
            return
        coded = self._engine.countable
        most = _CELLS_PER_ROW * (len(cases.row) + 4096)
        able = [at for at in columns if coded[at].n_codes * n_classes <= most]
        large = [at for at in able if coded[at].n_codes * n_classes > _LARGE_TABLE]
        small = [at for at in able if at not in large]
        # Large tables one after the other: together they would not fit in the cache.
        shares = [[at] for at in large]
        shares += [small[k :: self._threads] for k in range(self._threads)]
        counted = in_order(
            lambda share: self._count(share, cases, n_classes), shares, self._threads
        )
        for share, found in zip(shares, counted, strict=True):
            self._counts |= dict(zip(share, found, strict=True))

    def _count_moments(
        self, columns: Sequence[int], cases: Cases, moments: Floats
    ) -> None:
        coded = self._engine.countable
        most = _CELLS_PER_ROW * (len(cases.row) + 4096) // moments.shape[1]
        able = [at for at in columns if coded[at].n_codes <= most]
        given = cases.row, cases.case, moments
        found = in_order(
            lambda at: count_moments(coded[at].codes, coded[at].n_codes, *given),
            able,
            self._threads,
        )
        self._counts |= dict(zip(able, found, strict=True))

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

    segment_counter: SegmentCounter | None = None

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

    def _segments(self, index: int) -> Segments | None:
        """Return the numbers of a column in segments, where they are many."""
        counter = self.segment_counter
        if counter is None or not self._in_segments(index, counter):
            return None
        if index not in self._segmented:
            self._segmented[index] = counter.segments(index, self)
        return self._segmented[index]

    def _in_segments(self, index: int, counter: SegmentCounter) -> bool:
        return self.columns[index].is_numeric and counter.serves(index)

    @cached_property
    def _segmented(self) -> dict[int, Segments]:
        return {}

    def n_values(self, index: int) -> tuple[int, bool]:
        """Return how many values a column has, and whether some are missing."""
        segments = self._segments(index)
        if segments is not None:
            return segments.n_numbers, len(segments.unknown.node) > 0
        known, unknown = self.apart(index)
        return len(known.node), len(unknown.node) > 0

    def _judged(self, index: int) -> tuple[Counts, Counts]:
        segments = self._segments(index)
        if segments is None:
            return super()._judged(index)
        return self.in_terms(segments.known), self.in_terms(segments.unknown)

    def _worth_scoring(
        self, index: int, known: Counts, unknown: Counts
    ) -> tuple[Thresholds, Floats, Ints]:
        """Return thresholds that may be the best, and how many are admissible."""
        segments = self._segments(index)
        if segments is None and self._by_variance(known, unknown):
            return self._best_by_variance(index, known, unknown)
        if segments is None:
            return super()._worth_scoring(index, known, unknown)
        thresholds = segments.thresholds(known, self.source.values(index))
        thresholds, outside = self._with_missing(thresholds, unknown)
        thresholds = thresholds.select(self.admissible(thresholds, unknown))
        return thresholds, outside, np.array([segments.n_thresholds])

    def _by_variance(self, known: Counts, unknown: Counts) -> bool:
        """Whether there are many thresholds, whose order is that of a simple sum."""
        joins = self.recipe.missing == "learned" and len(unknown.node) > 0
        many = len(known.code) > MANY_THRESHOLDS
        return many and not joins and self.recipe.criterion_name == "variance"

    def _best_by_variance(
        self, index: int, known: Counts, unknown: Counts
    ) -> tuple[Thresholds, Floats, Ints]:
        """Return thresholds whose decrease of the variance is near the largest.

        The first one is there, too: it counts where none gains enough.
        """
        values = self.source.values(index)[known.code]
        left, cases = np.cumsum(known.weights, axis=0), np.cumsum(known.cases)
        thresholds = Thresholds(
            np.zeros(len(cases) - 1, dtype=np.intp),
            left[:-1],
            left[-1] - left[:-1],
            cases[:-1],
            cases[-1] - cases[:-1],
            values[:-1],
            values[1:],
            np.full(len(cases) - 1, STOP, dtype=np.intp),
        )
        able = np.flatnonzero(self.admissible(thresholds, unknown))
        outside, number = unknown.totals(1)[0], np.array([len(able)])
        if not len(able):
            return selected(thresholds, able), outside, number
        kept = np.zeros(len(able))
        for side in (thresholds.left, thresholds.right):
            weight, high, low = side[able].T
            kept += (high + low) * ((high + low) / weight)
        largest = float(kept.max())
        sums = self.impurity_sums
        resolution = float(sums.noise(np.ones(1))[0]) * sums.unit
        near = kept >= largest - (_WORSE * largest + 2 * resolution)
        near[0] = True
        return selected(thresholds, able[near]), outside, number

    def branches(
        self, index: int, nodes: Ints, threshold: Floats, missing_to: Ints
    ) -> Branches:
        """Make the branches of a split on one column."""
        segments = self._segments(index) if len(nodes) else None
        if segments is not None:
            given = segments.known, segments.unknown
        else:
            given = self.apart(index, nodes)
        if self.columns[index].is_numeric and not np.isnan(threshold).any():
            given = self._in_two(index, given[0], threshold), given[1]
        return self._made(index, *given, threshold, missing_to)

    def _in_two(self, index: int, known: Counts, threshold: Floats) -> Counts:
        """Add up the numbers on both sides of a threshold: two stand for all."""
        values = self.source.values(index)[known.code]
        at = int(np.searchsorted(values, threshold[0], side="right"))
        if not 0 < at < len(values):
            return known
        sides = slice(0, at), slice(at, None)
        return Counts(
            np.zeros(2, dtype=np.intp),
            known.code[[0, at]],
            np.stack([known.weights[side].sum(axis=0) for side in sides]),
            np.array([known.cases[side].sum() for side in sides]),
        )
