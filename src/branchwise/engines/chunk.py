"""Encoded rows in chunks, and their routes to the open nodes of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, run_starts
from branchwise.data.encode import encode_columns
from branchwise.data.frames import open_table
from branchwise.data.table_schema import Columns
from branchwise.data.target import class_codes, occurring_classes, plain_numbers
from branchwise.engines.base import Plan, attributes_of, special, weights_in
from branchwise.engines.memory import Training
from branchwise.engines.memory_engine import Countable, MemoryEngine
from branchwise.errors import DataError
from branchwise.grow.protocol import Level, Levels
from branchwise.native import available
from branchwise.threads import cached_property
from branchwise.tree.apply import NativeWalk
from branchwise.tree.splits import Splits
from branchwise.tree.tree import Tree

#: Grows the subtree of a node from its rows.
Below = Callable[["Chunk"], Tree]

_CHANGED = (
    "The table changed while the tree was grown: column {!r} now has values that it "
    "did not have at first. Fit again while nothing writes to it."
)


@dataclass(frozen=True)
class Chunk:
    """Encoded rows: codes in small integer types, also of numbers; targets; weights.

    The last code of a column is that of missing values. By a plan without codes,
    columns of numbers have the numbers themselves.
    """

    codes: tuple[NDArray[Any], ...]
    target: NDArray[Any]
    weights: Floats | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.target)

    def take(self, rows: NDArray[Any]) -> Chunk:
        """Keep some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        codes = tuple(codes[rows] for codes in self.codes)
        return Chunk(codes, self.target[rows], weights)

    @property
    def n_bytes(self) -> int:
        """The memory of the cells."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return sum(codes.nbytes for codes in self.codes) + self.target.nbytes + weights

    def by_bucket(
        self, nodes: NDArray[Any], bucket: Ints
    ) -> Iterator[tuple[int, Ints]]:
        """Yield the rows of each bucket that has some, given the open node of each.

        ``bucket`` has a number for each open node; -1 is none, and so are rows in no
        open node or of no weight.
        """
        # Sorting takes linear time for integers of at most 16 bits.
        smallest = np.min_scalar_type(-1 - int(bucket.max(initial=0)))
        position = np.append(bucket, -1).astype(smallest)[nodes]
        if self.weights is not None:
            position[self.weights == 0] = -1
        order = np.argsort(position, kind="stable")
        order = order[np.searchsorted(position[order], 0) :]
        starts = run_starts(position[order])
        if len(starts):
            numbers = position[order[starts]].tolist()
            yield from zip(numbers, np.split(order, starts[1:]), strict=True)


#: Odd multiplier of hashes.
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)
#: Rows per block: their hashes stay in the CPU cache from column to column.
_BLOCK = 1 << 13


def row_hashes(chunk: Chunk) -> Iterator[NDArray[np.uint64]]:
    """Yield hashes of rows, block by block, which depend on their contents alone."""
    cells = [*chunk.codes, chunk.target]
    if chunk.weights is not None:
        cells.append(chunk.weights)
    for begin in range(0, chunk.n_rows, _BLOCK):
        rows = np.zeros(min(_BLOCK, chunk.n_rows - begin), dtype=np.uint64)
        for column in cells:
            rows ^= rows >> _HALF
            rows *= _SPREAD
            rows += _as_whole(column[begin : begin + _BLOCK])
        rows *= _SPREAD
        rows ^= rows >> _HALF
        rows *= _SPREAD
        yield rows


def _as_whole(cells: NDArray[Any]) -> NDArray[Any]:
    return cells.view(np.uint64) if cells.dtype.kind == "f" else cells


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Concatenate chunks."""
    if len(chunks) == 1:
        return chunks[0]
    weights = [chunk.weights for chunk in chunks if chunk.weights is not None]
    return Chunk(
        tuple(
            map(np.concatenate, zip(*(chunk.codes for chunk in chunks), strict=True))
        ),
        np.concatenate([chunk.target for chunk in chunks]),
        np.concatenate(weights) if weights else None,
    )


def finished(rows: Chunk, nodes: Any, below: Below) -> Iterator[tuple[int, Tree]]:
    """Grow the subtree of each node from its rows."""
    order = np.argsort(nodes, kind="stable")
    numbers, starts = np.unique(nodes[order], return_index=True)
    for node, own in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        yield node, below(rows.take(own))


def check_n_rows(label: str, plan: Plan, n_rows: int, cause: str = "") -> None:
    """Raise if a table does not have the rows that it had when it was scanned."""
    if n_rows != plan.n_rows:
        raise DataError(
            f"{label} changed while the tree was grown: it had {plan.n_rows:,} rows "
            f"and now has {n_rows:,}. {cause}Fit again while nothing writes to it."
        )


def encode_chunk(table: object, plan: Plan) -> Chunk:
    """Encode a chunk of the table."""
    frame = open_table(table)
    attributes = attributes_of(frame, plan.task)
    raw = special(frame, plan.task.target)
    if plan.spread is not None:
        target: NDArray[Any] = plain_numbers(raw, frame.n_rows)
        labels = None
    else:
        labels = class_codes(
            occurring_classes(raw, frame.n_rows)[1], plan.schema.classes
        )
        if labels.min(initial=0) < 0:
            raise DataError(_CHANGED.format(plan.task.target))
        target = labels.astype(np.min_scalar_type(max(plan.n_classes - 1, 0)))
    weights = plan.weigh(weights_in(frame, plan.task), labels)
    every = range(len(plan.schema.columns))
    cells = encode_columns(attributes, plan.schema, every).data
    counted = None if weights is None else weights > 0
    codes = [
        _ranks(plan, index, data, counted)
        if index in plan.values
        else _known(plan, index, data)
        for index, data in enumerate(cells)
    ]
    return Chunk(tuple(codes), target, weights)


def without_codes(plan: Plan) -> Plan:
    """Return a plan that encodes numbers and weights as they are, as in memory."""
    columns = tuple(replace(column, sketched=False) for column in plan.schema.columns)
    return replace(
        plan,
        schema=replace(plan.schema, columns=columns),
        grid=replace(plan.grid, step=0.0),
        values={},
        edges={},
    )


def training_of(
    chunk: Chunk, plan: Plan, data: Columns | None = None, unit: float = 1.0
) -> Training:
    """Return rows that a plan encoded without codes of numbers, or with other data."""
    target: Any = chunk.target.astype(np.intp if plan.spread is None else np.float64)
    data = Columns(chunk.n_rows, chunk.codes) if data is None else data
    weights = None if chunk.weights is None else chunk.weights * unit
    return Training(plan.schema.columns, data, target, plan.n_classes, weights)


def _known(plan: Plan, index: int, codes: NDArray[Any]) -> NDArray[Any]:
    column = plan.schema.columns[index]
    if column.is_numeric:
        return codes
    if not plan.unseen_values and int(codes.max(initial=0)) > column.missing_code:
        raise DataError(_CHANGED.format(column.name))
    return codes


def _ranks(
    plan: Plan, index: int, numbers: Floats, counted: NDArray[np.bool_] | None
) -> NDArray[Any]:
    """Return the positions of numbers among the values, or of their bins."""
    values = plan.values[index]
    missing = np.isnan(numbers)
    if index in plan.edges:
        codes = np.searchsorted(plan.edges[index], numbers, side="left")
    else:
        codes = np.searchsorted(values, numbers)
        known = ~missing if counted is None else ~missing & counted
        codes = np.minimum(codes, max(len(values) - 1, 0))
        if not np.array_equal(values[codes[known]], numbers[known]):
            raise DataError(_CHANGED.format(plan.schema.columns[index].name))
    codes[missing] = len(values)
    return codes.astype(np.min_scalar_type(len(values)))


def cells_of(chunk: Chunk, plan: Plan) -> Columns:
    """Return the rows with numbers in place of codes, as splits need them."""
    data = list(chunk.codes)
    for index, values in plan.values.items():
        data[index] = np.append(values, np.nan)[chunk.codes[index]]
    return Columns(chunk.n_rows, tuple(data))


@dataclass(frozen=True)
class Route:
    """The splits so far: at each level the nodes that stayed open and their splits;
    and which nodes of the last level are open, None being all.
    """  # noqa: D205

    plan: Plan
    steps: tuple[tuple[Ints, Splits], ...] = ()
    open_nodes: Ints | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are recomputed by the receiver.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def further(self, splits: Splits) -> Route:
        """Return the route with the splits of the open nodes."""
        kept = self.open_nodes
        if kept is None:
            kept = np.arange(len(splits.column))
        return Route(self.plan, (*self.steps, (kept, splits)))

    def among(self, nodes: Ints) -> Route:
        """Keep only some of the nodes open."""
        open_nodes = nodes if self.open_nodes is None else self.open_nodes[nodes]
        return replace(self, open_nodes=open_nodes)

    @property
    def n_open(self) -> int:
        """The number of open nodes."""
        return self._n_last if self.open_nodes is None else len(self.open_nodes)

    @property
    def _n_last(self) -> int:
        return len(self.steps[-1][1].sizes) if self.steps else 1

    @cached_property
    def is_plain(self) -> bool:
        """Whether rows are undivided and need no surrogates, as in native code."""
        whole = not self.plan.grid.fractions
        return whole and all(splits.surrogates is None for _, splits in self.steps)

    def replayed(self, chunk: Chunk) -> MemoryEngine:
        """Send rows down all splits, with the reference engine."""
        engine = memory_engine(chunk, self.plan)
        for kept, splits in self.steps:
            engine.retain(kept)
            engine.advance(splits)
        if self.open_nodes is not None:
            engine.retain(self.open_nodes)
        return engine

    def nodes_of(self, chunk: Chunk) -> NDArray[np.int32]:
        """Return the open node of every undivided row; -1 where it is in none."""
        if not self.steps:
            return np.zeros(chunk.n_rows, dtype=np.int32)
        if available():
            walk, position = self._walk
            reached = walk.reached(cells_of(chunk, self.plan))
            nodes: NDArray[np.int32] = position[reached]
            return nodes
        engine = self.replayed(replace(chunk, weights=None))
        nodes = np.full(chunk.n_rows, -1, dtype=np.int32)
        nodes[engine.rows] = engine.nodes
        return nodes

    @cached_property
    def _walk(self) -> tuple[NativeWalk, NDArray[np.int32]]:
        levels = Levels(1)
        for kept, splits in self.steps:
            levels.add(_weightless(levels.n_next), kept, splits)
        first = levels.n_nodes
        levels.add(_weightless(self._n_last), np.empty(0, dtype=np.intp), None)
        position = np.full(levels.n_nodes, -1, dtype=np.int32)
        last = np.arange(self._n_last)
        open_nodes = last if self.open_nodes is None else self.open_nodes
        position[first + open_nodes] = np.arange(len(open_nodes))
        return NativeWalk(self.plan.schema.columns, levels.tree()), position


def _weightless(n_nodes: int) -> Level:
    return Level(np.zeros((n_nodes, 1)), np.zeros(n_nodes))


def memory_engine(chunk: Chunk, plan: Plan) -> MemoryEngine:
    """Return the reference engine for the rows of a chunk."""
    nothing = np.empty(0)
    countable = [
        Countable(codes, plan.n_codes(index), plan.values.get(index, nothing))
        for index, codes in enumerate(chunk.codes)
    ]
    return MemoryEngine(
        plan.schema.columns,
        cells_of(chunk, plan),
        plan.target_of(chunk.target),
        plan.grid_of(chunk.weights),
        countable,
    )
