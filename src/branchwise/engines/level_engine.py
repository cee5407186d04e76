"""The engine for rows in chunks: one pass over all chunks for each level.

It holds the splits so far and the counts of the open nodes, but no rows. A pass
counts all columns at once; the weights of the branches follow from the counts of
their nodes, unless cases are divided or routed by surrogates. Nodes with few rows can
be finished where their rows are, all levels at once. Jobs are sent to the workers of
Dask and Spark without the plan, which they have already.
"""

from __future__ import annotations

import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from branchwise.data.arrays import Floats, Ints, distinct, downcast
from branchwise.data.table_schema import Columns
from branchwise.data.target import Classes
from branchwise.engines.base import Plan
from branchwise.engines.chunk import Below, Chunk, Route, cells_of
from branchwise.engines.memory_engine import class_cases_of
from branchwise.errors import DataError, quoted
from branchwise.grow.counts import Counts, Rows, count_cells, tally
from branchwise.grow.protocol import Level
from branchwise.native import available
from branchwise.tree.splits import EVERY_BRANCH, STOP, Router, Splits
from branchwise.tree.tree import Tree

#: Up to so many cells the native kernel counts into dense tables.
MOST_CELLS = 1 << 24
#: The arrays of counts, and their types.
_ARRAYS = {"node": np.intp, "code": np.intp, "weights": np.float64, "cases": np.float64}


#: A function that is applied to every chunk; its results have a method ``merge``.
Job = Callable[[Chunk], Any]


@dataclass(frozen=True)
class Tallies:
    """The counts of some columns."""

    counts: Mapping[int, Counts]

    def __getstate__(self) -> dict[int, list[Any]]:
        # Downcast to a third of the bytes: most counts are small whole numbers.
        return {
            index: [downcast(getattr(counts, name)) for name in _ARRAYS]
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

    def __call__(self, chunk: Chunk) -> Tallies:
        """Count a chunk."""
        plan, route = self.route.plan, self.route
        cells = sum(plan.n_codes(index) for index in self.columns)
        cells *= route.n_open * plan.n_classes
        if plan.spread is None and route.is_plain and chunk.n_rows:
            if available() and cells <= MOST_CELLS:
                return self._count_all_cells(chunk)
            return self._count_found_cells(chunk)
        engine = route.replayed(chunk)
        return Tallies({index: engine.counts(index) for index in self.columns})

    def _count_all_cells(self, chunk: Chunk) -> Tallies:
        plan, n_open = self.route.plan, self.route.n_open
        nodes = self.route.nodes_of(chunk)
        if chunk.weights is not None:
            nodes = np.where(chunk.weights > 0, nodes, np.int32(-1))
        found = count_cells(
            [chunk.codes[index] for index in self.columns],
            [plan.n_codes(index) for index in self.columns],
            chunk.target.astype(np.uint32),
            plan.n_classes,
            nodes,
            n_open,
            chunk.weights,
        )
        return Tallies(dict(zip(self.columns, found, strict=True)))

    def _count_found_cells(self, chunk: Chunk) -> Tallies:
        """Count by sorting the cells that have rows, where there are too many cells."""
        plan = self.route.plan
        nodes = self.route.nodes_of(chunk)
        inside = nodes >= 0
        if chunk.weights is not None:
            inside &= chunk.weights > 0
        rows = np.flatnonzero(inside)
        open_rows = Rows(
            nodes[rows].astype(np.intp),
            chunk.target[rows].astype(np.intp),
            None if chunk.weights is None else chunk.weights[rows],
            None,
        )
        return Tallies(
            {
                index: tally(
                    open_rows,
                    chunk.codes[index][rows],
                    self.route.n_open,
                    plan.n_codes(index),
                    plan.n_classes,
                )
                for index in self.columns
            }
        )


@dataclass(frozen=True)
class CountBranches:
    """Count every column by the branches of splits that rows take."""

    route: Route
    splits: Splits

    def __call__(self, chunk: Chunk) -> Tallies:
        """Count a chunk."""
        counts = self.route.replayed(chunk).branch_counts(self.splits)
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

    def __call__(self, chunk: Chunk) -> CaseCounts:
        """Count a chunk."""
        plan = self.plan
        labels = Classes(chunk.target.astype(np.intp), plan.n_classes)
        grid = plan.grid_of(chunk.weights)
        cells = cells_of(chunk, plan)
        return CaseCounts(
            class_cases_of(plan.schema.columns, cells, labels, grid, self.tree)
        )


def merged(results: Iterable[Any]) -> Any:
    """Merge results pairwise, so that none is merged too often."""
    waiting: list[tuple[int, Any]] = []
    for result in results:
        size, total = 1, result
        while waiting and waiting[-1][0] <= size:
            before, first = waiting.pop()
            size, total = size + before, first.merge(total)
        waiting.append((size, total))
    while len(waiting) > 1:
        (n, last), (m, first) = waiting.pop(), waiting.pop()
        waiting.append((n + m, first.merge(last)))
    return waiting[0][1] if waiting else None


class Runner(Protocol):
    """Holds the chunks of the rows, and runs jobs on them."""

    #: The most rows that one worker may hold to finish nodes; 0: none.
    most_rows: int

    def run(self, job: Job) -> Any:
        """Run a job on every chunk, and merge the results."""

    def finish(
        self, route: Route, bucket: Ints, below: Below
    ) -> Iterator[tuple[int, Tree]]:
        """Grow subtrees of open nodes grouped by bucket; those of bucket -1 stay."""


class PassEngine:
    """Counts rows in chunks."""

    def __init__(self, plan: Plan, runner: Runner) -> None:
        self._plan = plan
        self._runner = runner
        self.whole = plan.grid.whole
        self.scale = plan.scale
        self._every = tuple(range(len(plan.schema.columns)))
        self._route = Route(plan)
        self._counts: Mapping[int, Counts] | None = None

    def totals(self) -> Level:
        """Restart with all rows in the root."""
        self._route = Route(self._plan)
        self._counts = None
        return self._counted_totals()

    def _counted_totals(self) -> Level:
        counts = self._all_counts()[0]
        return Level(*counts.totals(self._route.n_open))

    def _all_counts(self) -> Mapping[int, Counts]:
        if self._counts is None:
            job = CountColumns(self._route, self._every)
            self._counts = self._runner.run(job).counts
        return self._counts

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""
        counts = self._all_counts()[column]
        return counts if nodes is None else of_nodes(counts, nodes, self._route.n_open)

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column, or its bins."""
        return self._plan.values[column]

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""
        return self._plan.missing_code(column)

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column by the branch that rows take, in place of their class."""
        found = self._runner.run(CountBranches(self._route, splits)).counts
        yield from (found[index] for index in self._every)

    def retain(self, nodes: Ints) -> None:
        """Keep only some open nodes; drop the counts of the rest."""
        if self._counts is not None:
            new = np.full(self._route.n_open, -1, dtype=np.intp)
            new[nodes] = np.arange(len(nodes))
            self._counts = {
                index: _renumbered(counts, new)
                for index, counts in self._counts.items()
            }
        self._route = self._route.among(nodes)

    def advance(self, splits: Splits) -> Level:
        """Move to the branches of the open nodes, which become the open nodes."""
        known = branch_totals(self._all_counts(), self._plan, splits)
        self._route = self._route.further(splits)
        self._counts = None
        return self._counted_totals() if known is None else known

    def class_cases(self, tree: Tree) -> Floats:
        """Count the cases of each class down a finished tree, in one pass."""
        counted: Floats = self._runner.run(CountCases(self._plan, tree)).cases
        return counted

    def finish(self, cases: Floats, below: Below) -> Iterator[tuple[int, Tree]]:
        """Grow the subtrees of open nodes whose rows fit on one worker.

        Grouping the rows costs a pass, so it is delayed until all nodes can be
        finished, or the counts of the level become too many.
        """
        if self._plan.grid.fractions or not len(cases):
            return iter(())
        small = np.flatnonzero(cases <= self._runner.most_rows)
        cells = len(cases) * sum(self._plan.n_codes(index) for index in self._every)
        wide = cells * max(self._plan.n_classes, 1) > MOST_CELLS
        if not len(small) or not (wide or len(small) == len(cases)):
            return iter(())
        bucket = np.full(self._route.n_open, -1, dtype=np.intp)
        bucket[small] = in_buckets(cases[small], self._runner.most_rows)
        return self._runner.finish(self._route, bucket, below)


def branch_totals(
    counts: Mapping[int, Counts], plan: Plan, splits: Splits
) -> Level | None:
    """Return the totals of branches from the counts of nodes; None if unknown.

    Divided cases are rounded one by one, and cases routed by surrogates are not counted
    by the column of their node.
    """
    used = distinct(splits.column[splits.column >= 0]).tolist()
    if any(index not in counts for index in used):
        return None
    router = Router(plan.schema.columns, splits)
    width = plan.n_classes if plan.scale is None else plan.scale.width
    weights, cases = np.zeros((len(splits.sizes), width)), np.zeros(len(splits.sizes))
    for index in used:
        own = counts[index].select(splits.column[counts[index].node] == index)
        missing = own.code == plan.missing_code(index)
        if splits.surrogates is not None and missing.any():
            return None
        # One row for each pair of node and code is sent down the splits.
        cells: Any = own.code
        if index in plan.values:
            cells = np.append(plan.values[index], np.nan)[own.code]
        rows = Columns(len(cells), (np.empty(0),) * index + (cells,))
        branch = router.branches(rows, np.arange(len(cells)), own.node)
        if (branch == EVERY_BRANCH).any():
            return None
        moved = branch != STOP
        child = router.first_branch[own.node[moved]] + branch[moved]
        np.add.at(weights, child, own.weights[moved])
        np.add.at(cases, child, own.cases[moved])
    return Level(weights, cases)


def of_nodes(counts: Counts, nodes: Ints, n_nodes: int) -> Counts:
    """Keep the counts of some nodes."""
    wanted = np.zeros(n_nodes, dtype=bool)
    wanted[nodes] = True
    return counts.select(wanted[counts.node])


def in_buckets(cases: Floats, most_rows: int) -> Ints:
    """Assign neighbouring nodes to buckets with at most so many rows."""
    bucket = np.zeros(len(cases), dtype=np.intp)
    filled, current = 0.0, 0
    for at, size in enumerate(cases.tolist()):
        if filled and filled + size > most_rows:
            current, filled = current + 1, 0.0
        filled += size
        bucket[at] = current
    return bucket


def _renumbered(counts: Counts, new: Ints) -> Counts:
    node = new[counts.node]
    order = np.argsort(node, kind="stable")
    order = order[node[order] >= 0]
    return Counts(
        node[order], counts.code[order], counts.weights[order], counts.cases[order]
    )


Texts = Sequence[str]


class RemoteRows(Protocol):
    """Something that was made of all rows of a table, here and on the workers."""

    @property
    def value(self) -> Any:
        """What was made of the rows, here."""

    def shares(
        self, work: Callable[[Any, Sequence[int]], list[Any]], numbers: Sequence[int]
    ) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Divide numbered work among the workers; yield numbers and results."""


def shares_of(numbers: Sequence[int], n_shares: int) -> list[Sequence[int]]:
    """Divide numbers among shares of about the same size."""
    n_shares = max(1, min(n_shares, len(numbers)))
    return [numbers[first::n_shares] for first in range(n_shares)]


class RemoteTable(ABC):
    """A table whose partitions are on workers.

    Use it in a ``with`` statement, or call :meth:`close`: workers hold encoded rows
    until then.
    """

    engine_name: ClassVar[str]
    label: str
    #: Returns a DataFrame for files, names, missing values and an address.
    _read_parquet: ClassVar[staticmethod[[Texts, Texts, Texts, str | None], Any]]

    @classmethod
    def frame_of(
        cls,
        paths: Texts,
        names: Texts,
        missing: Texts,
        address: str | None = None,
    ) -> Any:
        """Return columns of Parquet files as a DataFrame, and connect to a cluster.

        Dask and Spark infer the types of text files from their first rows, and not as
        branchwise does: the tree would be different. So these are rejected. ``missing``
        are the texts that are missing values; ``address`` is the scheduler of Dask, or
        the master of Spark such as ``"local[2]"``, unless there is one already.
        """
        from branchwise.files.options import ENDINGS  # noqa: PLC0415  (for files only)

        parquet = tuple(end for end, what in ENDINGS.items() if what == "parquet")
        files = [str(path) for path in paths]
        others = [path for path in files if not path.lower().endswith(parquet)]
        if others:
            raise DataError(
                f"engine={cls.engine_name!r} reads Parquet files. Got "
                f"{quoted(others)}; write the table to Parquet, or use "
                "engine='chunked'."
            )
        return cls._read_parquet(files, names, missing, address)

    @abstractmethod
    def prepared(self, plan: Plan, prepare: Callable[[Chunk], Any]) -> RemoteRows:
        """Encode all rows by a plan, and send what is made of them to the workers."""

    @abstractmethod
    def close(self) -> None:
        """Release the data on the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_PLAN = "plan"


class _Sender(pickle.Pickler):
    def __init__(self, file: io.BytesIO, plan: Plan) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._plan = plan

    def persistent_id(self, thing: Any) -> str | None:
        return _PLAN if thing is self._plan else None


class _Receiver(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, plan: Plan) -> None:
        super().__init__(file)
        self._plan = plan

    def persistent_load(self, pid: Any) -> Plan:
        if pid != _PLAN:
            raise pickle.UnpicklingError(f"nothing is known as {pid!r}")
        return self._plan


def sent(thing: Any, plan: Plan) -> bytes:
    """Serialise a job that may refer to a plan."""
    file = io.BytesIO()
    _Sender(file, plan).dump(thing)
    return file.getvalue()


def received(data: bytes, plan: Plan) -> Any:
    """Deserialise a job with the plan that it refers to."""
    return _Receiver(io.BytesIO(data), plan).load()
