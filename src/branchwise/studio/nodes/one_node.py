"""A search that is fast at one node with many rows.

It finds the same splits as the search of whole levels. All columns are counted at once
in the compiled kernel. Of many thresholds only those are scored here that may be the
best by what it says; numbers between two of these are counted together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, selected
from branchwise.data.table_schema import Column
from branchwise.engines.memory_engine import Cases, MemoryEngine
from branchwise.grow.counts import Counts, count_cells, count_moments
from branchwise.grow.scored import Branches, Scored
from branchwise.grow.search import Search
from branchwise.native import available
from branchwise.studio.nodes.column_batches import ColumnBatch, ColumnCounts, batches
from branchwise.studio.nodes.threshold_segments import SegmentCounter, Segments
from branchwise.threads import cached_property, in_order
from branchwise.tree.splits import Splits

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
        self._counts |= self._shared(
            lambda share: self._count(share, cases, n_classes), shares
        )

    def _count_moments(
        self, columns: Sequence[int], cases: Cases, moments: Floats
    ) -> None:
        coded = self._engine.countable
        most = _CELLS_PER_ROW * (len(cases.row) + 4096) // moments.shape[1]
        able = [at for at in columns if coded[at].n_codes <= most]
        rows = None if len(cases.row) == len(self._labels) else cases.row

        def count(share: list[int]) -> list[Counts]:
            chosen = [coded[at] for at in share]
            codes = [each.codes for each in chosen]
            sizes = [each.n_codes for each in chosen]
            return count_moments(codes, sizes, rows, cases.case, moments)

        self._counts |= self._shared(
            count, [able[k :: self._threads] for k in range(self._threads)]
        )

    def _shared(
        self, count: Callable[[list[int]], list[Counts]], shares: list[list[int]]
    ) -> dict[int, Counts]:
        """Count shares of the columns in threads."""
        found = in_order(count, shares, self._threads)
        return {
            at: counts
            for share, counted in zip(shares, found, strict=True)
            for at, counts in zip(share, counted, strict=True)
        }

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

    def score(self, index: int, column: Column) -> Scored:  # noqa: ARG002
        """Score one column."""
        if index not in self._batches:
            self._score([index])
        batch, at = self._batches[index]
        return selected(batch.scored, slice(at, at + 1))

    def score_all(self, threads: int) -> None:
        """Score all columns, those with many numbers in threads."""
        every = range(len(self.columns))
        in_order(self._segments, every, threads)
        self._score(every)

    def _score(self, indexes: Iterable[int]) -> None:
        members = [self._column_counts(index) for index in indexes]
        counter = self.segment_counter
        sides = None if counter is None else counter.side_counter
        for batch in batches(self, members, sides):
            for at, member in enumerate(batch.members):
                self._batches[member.index] = batch, at

    @cached_property
    def _batches(self) -> dict[int, tuple[ColumnBatch, int]]:
        return {}

    def _column_counts(self, index: int) -> ColumnCounts:
        column, segments = self.columns[index], self._segments(index)
        values = self.source.values(index) if column.is_numeric else np.empty(0)
        if segments is None:
            return ColumnCounts(index, column, *self.apart(index), values)
        given = segments.known, segments.unknown, values
        return ColumnCounts(index, column, *given, segments.last, segments.n_thresholds)

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

    def branches(
        self,
        index: int,
        nodes: Ints,
        threshold: Floats,
        missing_to: Ints,
    ) -> Branches:
        """Make the branches of the best split of one column."""
        if not len(nodes):
            return super().branches(index, nodes, threshold, missing_to)
        batch, at = self._batches[index]
        return batch.best_branches[at]

    def log_p_of(self, made: Sequence[Branches]) -> list[float]:
        """Return the logarithms of the p-values of splits, from their branches."""
        if not made:
            return []
        as_weights = self.recipe.weights_are_cases
        cases = [float((b.size if as_weights else b.cases).sum()) for b in made]
        sizes = [len(each.cases) for each in made]
        weights = np.concatenate([each.weights for each in made])
        starts = np.cumsum([0, *sizes])[:-1]
        found: list[float] = self.log_p_value(weights, starts, np.array(cases)).tolist()
        return found

    @cached_property
    def best_log_p(self) -> dict[int, float]:
        """The same of the best split of each column that has one."""
        every = range(len(self.columns))
        scored = [self.score(index, self.columns[index]) for index in every]
        able = [index for index in every if scored[index].score[0] > -np.inf]
        batches_of_able = [self._batches[index] for index in able]
        made = [batch.best_branches[at] for batch, at in batches_of_able]
        return dict(zip(able, self.log_p_of(made), strict=True))

    def log_p_values(
        self,
        chosen: Ints,
        threshold: Floats,  # noqa: ARG002
        missing_to: Ints,  # noqa: ARG002
    ) -> Floats:
        """Return the logarithms of the p-values of best splits."""
        found = [self.best_log_p[at] if at >= 0 else 0.0 for at in chosen.tolist()]
        return np.array(found)
