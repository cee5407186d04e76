"""One scan over all rows in chunks: summary statistics that merge into a fit plan.

:func:`scan` summarises a chunk of the table, ``Summary.merge`` merges two summaries,
and :func:`finalise` makes the :class:`~branchwise.engines.fit_plan.Plan` from the
summary of all rows. Column kinds follow the rules of ``data/encode.py``, so that a
table read in chunks has the schema that it has in memory. :class:`Chunk` holds
encoded rows, and :class:`Route` sends them to the open nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.bins import Edges
from branchwise.data.columns import Coded, Numbers, RawColumn, check_mixed
from branchwise.data.encode import check_missing, encode_columns, learn_column
from branchwise.data.exact_sums import lowest_bit
from branchwise.data.frames import (
    Frame,
    check_column_names,
    chosen_columns,
    declared_categories,
    open_table,
)
from branchwise.data.schema import Columns, Schema, Value
from branchwise.data.target import (
    Spread,
    check_classes,
    check_rates,
    class_codes,
    occurring_classes,
    plain_numbers,
)
from branchwise.data.weights import (
    WeightSummary,
    check_each_weight,
    check_total,
    class_factors,
    empty_grid,
    filled_grid,
    long_sum,
    unit_grid,
)
from branchwise.engines.fit_plan import (
    ColumnSummary,
    NumberSummary,
    Plan,
    Summary,
    Task,
)
from branchwise.engines.memory import Countable, MemoryEngine
from branchwise.errors import DataError, quoted
from branchwise.grow.protocol import Level, Levels
from branchwise.native import available
from branchwise.threads import cached_property
from branchwise.tree.apply import NativeWalk
from branchwise.tree.splits import Splits
from branchwise.tree.tree import Tree


def attributes_of(frame: Frame, task: Task) -> Frame:
    """Return the attributes of a table, which must have the columns of the task."""
    for role, name in (("target", task.target), ("weight", task.weight)):
        if name is not None and name not in frame.names:
            raise DataError(
                f"The table has no column {name!r} to be the {role}. Its columns are "
                f"{quoted(frame.names, 20)}."
            )
    kept = [at for at, name in enumerate(frame.names) if name not in task.no_attributes]
    if not kept:
        raise DataError(
            "The table has no attributes: besides the target "
            f"{task.target!r} no column is left to learn from."
        )
    names = tuple(frame.names[at] for at in kept)
    check_column_names(names)
    readers = tuple(frame.readers[at] for at in kept)
    return Frame(names, frame.n_rows, frame.named, readers)


def special(frame: Frame, name: str) -> RawColumn:
    """Return the column of the target or of the weights."""
    return frame.column(frame.names.index(name))


def weights_in(frame: Frame, task: Task) -> Floats | None:
    """Return the weights of rows, each checked."""
    if task.weight is None:
        return None
    raw = special(frame, task.weight)
    if not isinstance(raw, Numbers):
        raise DataError(f"Column {task.weight!r} must hold the weights of the rows.")
    return check_each_weight(raw.values, frame.n_rows)


def scan(table: object, task: Task, plan: Plan | None = None) -> Summary:
    """Summarise a chunk of the table.

    With a plan, only rows with a weight on its grid count; without one, all rows with a
    weight.
    """
    frame = open_table(table)
    attributes = attributes_of(frame, task)
    if not frame.n_rows:
        return Summary()
    weights = weights_in(frame, task)
    on_grid = weights if plan is None else weights_on_grid(frame, plan)
    counted_rows = slice(None) if on_grid is None else on_grid > 0
    as_values = chosen_columns(attributes, task.categorical_features)
    declared = declared_categories(attributes, task.categories)
    columns = []
    for index, name in enumerate(attributes.names):
        raw = attributes.column(index)
        as_value = index in declared or as_values[index]
        column, cells = learn_column(name, raw, as_value, declared.get(index))
        if task.rejects_missing and column.has_missing:
            check_missing([(0, column)], Columns(frame.n_rows, (cells,)))
        numbers = None
        if column.is_numeric:
            numbers = NumberSummary.of(cells[counted_rows], task.max_exact)
        fixed = index in declared or (isinstance(raw, Coded) and raw.declared)
        columns.append(ColumnSummary(column, fixed, numbers))
    statistics = Summary(frame.n_rows, tuple(columns), max_exact=task.max_exact)
    if weights is not None:
        statistics = replace(statistics, weights=WeightSummary.of(weights))
    raw = special(frame, task.target)
    if task.is_regression:
        wanted = plain_numbers(raw, statistics.n_rows)
        return replace(statistics, spread=Spread.of(wanted[counted_rows]))
    return _with_classes(statistics, raw, task, weights)


def rescan(table: object, plan: Plan) -> Summary:
    """Summarise a chunk of the table without rows of no weight on the grid."""
    return scan(table, plan.task, plan)


def _with_classes(
    statistics: Summary, raw: RawColumn, task: Task, weights: Floats | None
) -> Summary:
    """Add the summary of a target of classes."""
    classes, labels = occurring_classes(raw, statistics.n_rows)
    codes = class_codes(labels, classes)
    rows = np.bincount(codes, minlength=len(classes)).tolist()
    statistics = replace(statistics, labels=dict(zip(classes, rows, strict=True)))
    if task.priors is None:
        return statistics
    each = np.ones(len(codes)) if weights is None else weights
    sums = {label: long_sum(each[codes == at]) for at, label in enumerate(classes)}
    return replace(statistics, label_weights=sums)


@dataclass(frozen=True)
class Rescan:
    """Functions that scan all rows once more with a plan: their weights, or all
    columns.
    """  # noqa: D205

    weigh: Callable[[Plan], WeightSummary]
    scan: Callable[[Plan], Summary]


def finalise(statistics: Summary, task: Task, again: Rescan) -> Plan:
    """Return the plan from the summary of all rows.

    Parameters
    ----------
    statistics : Summary
        The summary of all rows.
    task : Task
        What to learn from them.
    again : Rescan
        Functions that scan the rows once more.
    """
    if not statistics.n_rows:
        raise DataError("The table has no rows, so there is nothing to learn from.")
    plan = _weighed(_plan(statistics, task), statistics, again)
    counted = (
        statistics.n_rows if statistics.weights is None else statistics.weights.n_cases
    )
    if plan.grid.n_cases == counted:
        return plan
    # Rows whose weights are rounded to 0 contribute no numbers to thresholds.
    seen = again.scan(plan)
    if seen.n_rows != statistics.n_rows:
        raise AssertionError("the second scan has the same rows")
    return replace(_plan(seen, task), grid=plan.grid, class_factors=plan.class_factors)


def _plan(statistics: Summary, task: Task) -> Plan:
    """Return the plan of a summary, with rows of weight 1."""
    columns = tuple(
        replace(found.column, sketched=True)
        if found.numbers is not None and not found.numbers.exact
        else found.column
        for found in statistics.columns
    )
    schema = Schema(columns, _classes(statistics, task), task.target)
    divides = task.divides and any(column.has_missing for column in columns)
    numbers = {
        index: found.numbers
        for index, found in enumerate(statistics.columns)
        if found.numbers is not None
    }
    edges: Edges = {}
    values = {}
    for index, summary in numbers.items():
        between = summary.edges(task.max_bins)
        values[index] = summary.low
        if between is not None:
            edges[index] = between
            values[index] = np.arange(len(between) + 1, dtype=np.float64)
    if statistics.spread is not None and task.criterion == "poisson":
        check_rates(statistics.spread.low, statistics.spread.high)
    return Plan(
        task,
        schema,
        statistics.n_rows,
        unit_grid(statistics.n_rows, divides),
        values,
        edges,
        _factors(statistics, task, schema.classes),
        statistics.spread,
    )


def _classes(statistics: Summary, task: Task) -> tuple[Value, ...]:
    if statistics.labels is None:
        return ()
    check_mixed("y", tuple(statistics.labels))
    found = tuple(sorted(statistics.labels))
    if task.classes is None:
        return found
    check_classes(found, task.classes)
    return tuple(task.classes)


def _factors(
    statistics: Summary, task: Task, classes: Sequence[Value]
) -> Floats | None:
    """Return the factors of the weights of classes, if there are any."""
    if task.class_weight is None and task.priors is None:
        return None
    rows, weights = statistics.labels or {}, statistics.label_weights or {}
    return class_factors(
        task.class_weight,
        task.priors,
        classes,
        np.array([rows.get(label, 0) for label in classes], dtype=np.float64),
        np.array([math.fsum(weights.get(label, ())) for label in classes]),
    )


def _weighed(plan: Plan, statistics: Summary, again: Rescan) -> Plan:
    """Return a plan with the grid of the weights of all rows."""
    if not plan.weighted:
        return plan
    if plan.class_factors is None and statistics.weights is not None:
        raw = statistics.weights
    else:
        as_they_are = replace(plan, grid=replace(plan.grid, step=0.0))
        raw = _all_weights(as_they_are, statistics, again)
    check_total(raw.total)
    grid = empty_grid(raw, plan.grid.fractions, plan.task.weights_are_cases)
    plan = replace(plan, grid=grid)
    return replace(plan, grid=filled_grid(grid, _all_weights(plan, statistics, again)))


def _all_weights(plan: Plan, statistics: Summary, again: Rescan) -> WeightSummary:
    """Summarise all weights on the grid of a plan; a step of 0 is none."""
    if plan.task.weight is None:
        return _weighed_by_class(plan, statistics)
    return again.weigh(plan)


def _weighed_by_class(plan: Plan, statistics: Summary) -> WeightSummary:
    """Add up weights that depend on the class alone, exactly."""
    labels = np.arange(plan.n_classes)
    weights = plan.weigh(None, labels)
    each = [] if weights is None else weights.tolist()
    rows = [(statistics.labels or {}).get(label, 0) for label in plan.schema.classes]
    pairs = list(zip(rows, each, strict=True))
    total = sum((n * Fraction(weight) for n, weight in pairs), Fraction(0))
    cases = sum(n for n, weight in pairs if weight > 0)
    present = np.array([weight for n, weight in pairs if n])
    return WeightSummary((float(total),), lowest_bit(present), cases)


def weigh_again(table: object, plan: Plan) -> WeightSummary:
    """Summarise the weights of a chunk on the grid of a plan."""
    frame = open_table(table)
    if not frame.n_rows:
        return WeightSummary()
    weighed = weights_on_grid(frame, plan)
    return WeightSummary() if weighed is None else WeightSummary.of(weighed)


def weights_on_grid(frame: Frame, plan: Plan) -> Floats | None:
    """Return the weights of rows on the grid of a plan."""
    labels = None
    if plan.class_factors is not None:
        _, raw = occurring_classes(special(frame, plan.task.target), frame.n_rows)
        labels = class_codes(raw, plan.schema.classes)
    return plan.weigh(weights_in(frame, plan.task), labels)


#: Grows the subtree of a node from its rows.
Below = Callable[["Chunk"], Tree]

_CHANGED = (
    "The table changed while the tree was grown: column {!r} now has values that it "
    "did not have at first. Fit again while nothing writes to it."
)


@dataclass(frozen=True)
class Chunk:
    """Encoded rows: codes in small integer types, also of numbers; targets; weights.

    The last code of a column is that of missing values.
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
    found, starts = np.unique(nodes[order], return_index=True)
    pieces = np.split(order, starts[1:])
    for node, piece in zip(found.tolist(), pieces, strict=True):
        yield node, below(rows.take(piece))


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


def _known(plan: Plan, index: int, codes: NDArray[Any]) -> NDArray[Any]:
    column = plan.schema.columns[index]
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
    _kept: dict[str, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __getstate__(self) -> dict[str, Any]:
        # Cached values are recomputed by the receiver.
        return {
            "plan": self.plan,
            "steps": self.steps,
            "open_nodes": self.open_nodes,
            "_kept": {},
        }

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

    @property
    def _walk(self) -> tuple[NativeWalk, NDArray[np.int32]]:
        if "walk" not in self._kept:
            levels = Levels(1)
            for kept, splits in self.steps:
                levels.add(_weightless(levels.n_next), kept, splits)
            first = levels.n_nodes
            levels.add(_weightless(self._n_last), np.empty(0, dtype=np.intp), None)
            position = np.full(levels.n_nodes, -1, dtype=np.int32)
            last = np.arange(self._n_last)
            open_nodes = last if self.open_nodes is None else self.open_nodes
            position[first + open_nodes] = np.arange(len(open_nodes))
            walk = NativeWalk(self.plan.schema.columns, levels.tree())
            self._kept["walk"] = walk, position
        kept_walk: tuple[NativeWalk, NDArray[np.int32]] = self._kept["walk"]
        return kept_walk


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
