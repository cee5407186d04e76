"""What is asked of every part of the rows, and how the answers are put together.

A job is called with a part and answers with something that can be merged; it can be
sent to where the part lies. Answers are sums on exact grids, so that neither the
parting of the rows nor the order of merging matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from branchwise.counts import Counts, Floats, Rows, tally
from branchwise.engines.memory import class_cases_of
from branchwise.engines.parts import Part, Route, cells_of
from branchwise.engines.task import Plan
from branchwise.extension import available, extension, plain_array
from branchwise.narrow import narrowed
from branchwise.splits import Splits
from branchwise.table.target import Classes
from branchwise.tree import Tree

#: Up to so many cells the compiled twin counts into tables of all of them.
MOST_CELLS = 1 << 24
#: The arrays of counts, and their types.
_ARRAYS = {"node": np.intp, "code": np.intp, "weights": np.float64, "cases": np.float64}


class Answer(Protocol):
    """What a job finds in a part; answers of parts are merged."""

    def merge(self, other: Any) -> Self:
        """Add the answer of another part."""


class Job(Protocol):
    """What is asked of a part."""

    def __call__(self, part: Part) -> Answer:
        """Answer for one part."""


@dataclass(frozen=True)
class Tallies:
    """The counts of some columns."""

    counts: Mapping[int, Counts]

    def __getstate__(self) -> dict[int, list[Any]]:
        # A third of the bytes: counts are whole, and most of them are small.
        return {
            index: [narrowed(getattr(counts, name)) for name in _ARRAYS]
            for index, counts in self.counts.items()
        }

    def __setstate__(self, state: dict[int, list[Any]]) -> None:
        counts = {
            index: Counts(
                *(
                    array.astype(dtype)
                    for array, dtype in zip(arrays, _ARRAYS.values(), strict=True)
                )
            )
            for index, arrays in state.items()
        }
        object.__setattr__(self, "counts", counts)

    def merge(self, other: Tallies) -> Tallies:
        """Add the counts of other rows."""
        return Tallies(
            {
                index: counts.merge(other.counts[index])
                for index, counts in self.counts.items()
            }
        )


@dataclass(frozen=True)
class CountColumns:
    """Count columns in the open nodes of a route."""

    route: Route
    columns: tuple[int, ...]

    def __call__(self, part: Part) -> Tallies:
        """Count a part."""
        plan, route = self.route.plan, self.route
        cells = sum(plan.n_codes(index) for index in self.columns)
        cells *= route.n_open * plan.n_classes
        if plan.spread is None and route.is_plain and part.n_rows:
            if available() and cells <= MOST_CELLS:
                return self._count_all_cells(part)
            return self._count_found_cells(part)
        engine = route.replayed(part)
        return Tallies({index: engine.counts(index) for index in self.columns})

    def _count_all_cells(self, part: Part) -> Tallies:
        plan, n_open = self.route.plan, self.route.n_open
        nodes = self.route.nodes_of(part)
        n_codes = [plan.n_codes(index) for index in self.columns]
        weighted = part.weights is not None
        if part.weights is not None:
            nodes = np.where(part.weights > 0, nodes, np.int32(-1))
        per_pair = 1 if weighted else plan.n_classes
        rows = [np.zeros(n_open * n * per_pair, dtype=np.int64) for n in n_codes]
        sums = [np.zeros(n_open * n * plan.n_classes) for n in n_codes if weighted]
        extension().tally(
            columns=[plain_array(part.codes[index]) for index in self.columns],
            n_codes=n_codes,
            labels=part.target.astype(np.uint32),
            n_classes=plan.n_classes,
            nodes=nodes,
            n_nodes=n_open,
            weights=None if part.weights is None else plain_array(part.weights),
            rows=rows,
            sums=sums,
        )
        found = {}
        for at, (index, n) in enumerate(zip(self.columns, n_codes, strict=True)):
            cases = rows[at].reshape(n_open * n, per_pair).sum(axis=1)
            pairs = np.flatnonzero(cases)
            table = sums[at] if weighted else rows[at]
            weights = table.reshape(-1, plan.n_classes)[pairs].astype(np.float64)
            node, code = np.divmod(pairs, n)
            found[index] = Counts(node, code, weights, cases[pairs].astype(np.float64))
        return Tallies(found)

    def _count_found_cells(self, part: Part) -> Tallies:
        """Count by sorting the cells that have rows, where there are too many cells."""
        plan = self.route.plan
        nodes = self.route.nodes_of(part)
        inside = nodes >= 0
        if part.weights is not None:
            inside &= part.weights > 0
        rows = np.flatnonzero(inside)
        open_rows = _rows_of(part, nodes, rows)
        return Tallies(
            {
                index: tally(
                    open_rows,
                    part.codes[index][rows],
                    self.route.n_open,
                    plan.n_codes(index),
                    plan.n_classes,
                )
                for index in self.columns
            }
        )


def _rows_of(part: Part, nodes: Any, rows: Any) -> Rows:
    weights = None if part.weights is None else part.weights[rows]
    return Rows(
        nodes[rows].astype(np.intp), part.target[rows].astype(np.intp), weights, None
    )


@dataclass(frozen=True)
class CountBranches:
    """Count every column by the branches of splits that rows take."""

    route: Route
    splits: Splits

    def __call__(self, part: Part) -> Tallies:
        """Count a part."""
        counts = self.route.replayed(part).branch_counts(self.splits)
        return Tallies(dict(enumerate(counts)))


@dataclass(frozen=True)
class CaseCounts:
    """The number of cases of each class at the nodes of a tree."""

    cases: Floats

    def merge(self, other: CaseCounts) -> CaseCounts:
        """Add the cases of other rows."""
        return CaseCounts(self.cases + other.cases)


@dataclass(frozen=True)
class CountCases:
    """Count the cases of each class down a finished tree."""

    plan: Plan
    tree: Tree

    def __call__(self, part: Part) -> CaseCounts:
        """Count a part."""
        plan = self.plan
        labels = Classes(part.target.astype(np.intp), plan.n_classes)
        grid = plan.grid_of(part.weights)
        cells = cells_of(part, plan)
        return CaseCounts(
            class_cases_of(plan.schema.columns, cells, labels, grid, self.tree)
        )


def merged(answers: Iterable[Answer]) -> Any:
    """Put answers together, pairs first, so that none is merged too often."""
    waiting: list[tuple[int, Any]] = []
    for answer in answers:
        size, total = 1, answer
        while waiting and waiting[-1][0] <= size:
            before, first = waiting.pop()
            size, total = size + before, first.merge(total)
        waiting.append((size, total))
    while len(waiting) > 1:
        (n, last), (m, first) = waiting.pop(), waiting.pop()
        waiting.append((n + m, first.merge(last)))
    return waiting[0][1] if waiting else None
