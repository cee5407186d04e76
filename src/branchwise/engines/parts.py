"""A part of the rows, encoded by a plan, and the way its rows have come down so far.

Nothing here is kept from one level to the next: a part and the splits so far say
where its rows are. So a part may be counted anywhere, and again if that went wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.engines.learning import attributes_of, special, weights_in
from branchwise.engines.memory import Countable, MemoryEngine
from branchwise.engines.task import Plan
from branchwise.errors import DataError
from branchwise.extension import available
from branchwise.forks import cached_property
from branchwise.kernels.native import NativeWalk
from branchwise.levels import Levels
from branchwise.search import Level
from branchwise.splits import Splits
from branchwise.table.encode import encode_columns
from branchwise.table.frames import open_table
from branchwise.table.labels import class_codes, occurring_classes, plain_numbers
from branchwise.table.schema import Columns
from branchwise.tree import Tree

#: Grows what is below a node from its rows.
Below = Callable[["Part"], Tree]

_CHANGED = (
    "The table changed while the tree was grown: column {!r} now has values that it "
    "did not have at first. Fit again while nothing writes to it."
)


@dataclass(frozen=True)
class Part:
    """Rows as narrow codes, numbers too; class codes or numbers; weights on the grid.

    The last code of a column is that of missing values.
    """

    codes: tuple[NDArray[Any], ...]
    target: NDArray[Any]
    weights: Floats | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.target)

    def take(self, rows: NDArray[Any]) -> Part:
        """Keep some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        codes = tuple(codes[rows] for codes in self.codes)
        return Part(codes, self.target[rows], weights)


def joined(parts: Sequence[Part]) -> Part:
    """Put parts together."""
    if len(parts) == 1:
        return parts[0]
    weights = [part.weights for part in parts if part.weights is not None]
    return Part(
        tuple(map(np.concatenate, zip(*(part.codes for part in parts), strict=True))),
        np.concatenate([part.target for part in parts]),
        np.concatenate(weights) if weights else None,
    )


def finished(rows: Part, nodes: Any, below: Below) -> Iterator[tuple[int, Tree]]:
    """Grow what is below each node from its rows."""
    order = np.argsort(nodes, kind="stable")
    found, starts = np.unique(nodes[order], return_index=True)
    pieces = np.split(order, starts[1:])
    for node, piece in zip(found.tolist(), pieces, strict=True):
        yield node, below(rows.take(piece))


def encode_part(table: object, plan: Plan) -> Part:
    """Encode a part of the table."""
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
    return Part(tuple(codes), target, weights)


def _known(plan: Plan, index: int, codes: NDArray[Any]) -> NDArray[Any]:
    column = plan.schema.columns[index]
    if not plan.strangers and int(codes.max(initial=0)) > column.missing_code:
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


def cells_of(part: Part, plan: Plan) -> Columns:
    """Return the rows with numbers as numbers: as rows meet splits."""
    data = list(part.codes)
    for index, values in plan.values.items():
        data[index] = np.append(values, np.nan)[part.codes[index]]
    return Columns(part.n_rows, tuple(data))


@dataclass(frozen=True)
class Route:
    """The way down so far: at each level the nodes that stayed open and their splits;
    and which nodes of the last level are open, None being all.
    """  # noqa: D205

    plan: Plan
    steps: tuple[tuple[Ints, Splits], ...] = ()
    open_nodes: Ints | None = None
    _kept: dict[str, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __getstate__(self) -> dict[str, Any]:
        # What can be made anew need not travel.
        return {
            "plan": self.plan,
            "steps": self.steps,
            "open_nodes": self.open_nodes,
            "_kept": {},
        }

    def further(self, splits: Splits) -> Route:
        """Go down the splits of the open nodes."""
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
        """How many nodes are open."""
        return self._n_last if self.open_nodes is None else len(self.open_nodes)

    @property
    def _n_last(self) -> int:
        return len(self.steps[-1][1].sizes) if self.steps else 1

    @cached_property
    def is_plain(self) -> bool:
        """Whether rows stay whole and ask no surrogates, as the compiled walk does."""
        whole = not self.plan.grid.fractions
        return whole and all(splits.surrogates is None for _, splits in self.steps)

    def replayed(self, part: Part) -> MemoryEngine:
        """Let rows go the whole way, by the reference."""
        engine = memory_engine(part, self.plan)
        for kept, splits in self.steps:
            engine.retain(kept)
            engine.advance(splits)
        if self.open_nodes is not None:
            engine.retain(self.open_nodes)
        return engine

    def nodes_of(self, part: Part) -> NDArray[np.int32]:
        """Return the open node of every row, which is whole; -1 where it is in none."""
        if not self.steps:
            return np.zeros(part.n_rows, dtype=np.int32)
        if available():
            walk, place = self._walk
            reached = walk.reached(cells_of(part, self.plan))
            nodes: NDArray[np.int32] = place[reached]
            return nodes
        engine = self.replayed(replace(part, weights=None))
        nodes = np.full(part.n_rows, -1, dtype=np.int32)
        nodes[engine.rows] = engine.nodes
        return nodes

    @property
    def _walk(self) -> tuple[NativeWalk, NDArray[np.int32]]:
        if "walk" not in self._kept:
            levels = Levels(1)
            for kept, splits in self.steps:
                levels.add(_weightless(levels.n_next), kept, splits)
            first = levels.n_nodes
            levels.add(_weightless(self._n_last), np.empty(0, dtype=np.intp), None)
            place = np.full(levels.n_nodes, -1, dtype=np.int32)
            last = np.arange(self._n_last)
            open_nodes = last if self.open_nodes is None else self.open_nodes
            place[first + open_nodes] = np.arange(len(open_nodes))
            walk = NativeWalk(self.plan.schema.columns, levels.tree())
            self._kept["walk"] = walk, place
        kept_walk: tuple[NativeWalk, NDArray[np.int32]] = self._kept["walk"]
        return kept_walk


def _weightless(n_nodes: int) -> Level:
    return Level(np.zeros((n_nodes, 1)), np.zeros(n_nodes))


def memory_engine(part: Part, plan: Plan) -> MemoryEngine:
    """Return the reference engine for the rows of a part."""
    nothing = np.empty(0)
    countable = [
        Countable(codes, plan.n_codes(index), plan.values.get(index, nothing))
        for index, codes in enumerate(part.codes)
    ]
    return MemoryEngine(
        plan.schema.columns,
        cells_of(part, plan),
        plan.target_of(part.target),
        plan.grid_of(part.weights),
        countable,
    )
