"""The in-memory engine, the reference of the others, and its data source.

Rows stay in their order; an array has the open node of each. Rows of closed nodes are
dropped. Where missing values go down every branch, a row becomes several, each with a
fraction of the weight, rounded to the weight grid. What needs all rows at once (the
native kernel, held-out rows, caches of trees) takes encoded rows, :class:`Training`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, number_kind
from branchwise.data.columns import Numbers
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.encode import cache_of_rows, check_missing, learn_columns
from branchwise.data.encoded_table import (
    EncodedLabels,
    EncodedTable,
    LRUCache,
    digest,
)
from branchwise.data.frames import Frame, open_table
from branchwise.data.table_schema import Column, Columns, Schema, Value
from branchwise.data.target import (
    Classes,
    Quantities,
    check_rates,
    learn_numbers,
    learn_target,
    measure,
)
from branchwise.data.weights import (
    WeightGrid,
    check_weights,
    on_grid,
    weigh,
    with_class_weights,
)
from branchwise.engines.base import Plan, Task, attributes_of, special, weights_in
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.grow.counts import Counts, Rows, add_up, tally
from branchwise.grow.protocol import Level, class_cases
from branchwise.native import available
from branchwise.recipe import Recipe
from branchwise.threads import cached_property
from branchwise.tree.apply import NativeWalk
from branchwise.tree.splits import EVERY_BRANCH, STOP, Router, Splits
from branchwise.tree.tree import Tree, subtree_sums


@dataclass(frozen=True)
class Countable:
    """A column for counting: codes, their number, and the numbers they stand for."""

    codes: NDArray[Any]
    n_codes: int
    values: Floats


class MemoryEngine:
    """Counts and moves the rows of encoded columns.

    ``countable`` is given for a chunk of a table, so that codes do not depend on the
    values of this chunk.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        data: Columns,
        target: Classes | Quantities,
        grid: WeightGrid,
        countable: Sequence[Countable] | None = None,
    ) -> None:
        self._schema = columns
        self._data = data
        counted = None if grid.weights is None else grid.weights > 0
        self._columns = countable or [
            _prepare(c, d, counted) for c, d in zip(columns, data.data, strict=True)
        ]
        self._target = target
        self._n_classes = target.n_classes if isinstance(target, Classes) else 0
        self._grid = grid
        self.whole = grid.whole
        self.scale = target.scale if isinstance(target, Quantities) else None
        self._start()

    def _start(self) -> None:
        """Put all rows that have a weight in the root."""
        data, grid = self._data, self._grid
        self._row = np.arange(data.n_rows, dtype=np.intp)
        self._weight: Floats | None = None
        self._case: Floats | None = None
        if grid.weights is not None:
            self._row = np.flatnonzero(grid.weights)
            self._weight = grid.weights[self._row]
        self._node = np.zeros(len(self._row), dtype=np.intp)
        self._n_nodes = 1
        self._moments = self._moments_of(self._row, self._weight)

    def _moments_of(self, rows: Ints, weight: Floats | None) -> Floats | None:
        """Return the moments of rows that have numbers."""
        if not isinstance(self._target, Quantities):
            return None
        return self._target.scale.moments(self._target.values[rows], weight)

    @property
    def rows(self) -> Ints:
        """The rows, or fractions of rows, that are in open nodes."""
        return self._row

    @property
    def nodes(self) -> Ints:
        """The open nodes that they are in."""
        return self._node

    def totals(self) -> Level:
        """Put all rows in the root; return its class weights and cases."""
        self._start()
        return self._totals(1)

    def _totals(self, n_nodes: int) -> Level:
        one_code = np.zeros(1, dtype=np.uint8)
        counts = tally(self._rows(None), one_code, n_nodes, 1, self._n_classes)
        return Level(*counts.totals(n_nodes))

    def _rows(self, chosen: NDArray[np.bool_] | None) -> Rows:
        chunk: Any = slice(None) if chosen is None else chosen
        node, row = self._node[chunk], self._row[chunk]
        weight = None if self._weight is None else self._weight[chunk]
        case = None if self._case is None else self._case[chunk]
        if isinstance(self._target, Classes):
            return Rows(node, self._target.labels[row], weight, case)
        moments = None if self._moments is None else self._moments[chunk]
        return Rows(node, row, weight, case, moments)

    def class_cases(self, tree: Tree) -> Floats:
        """Count the cases of each class down a finished tree, whatever they weigh."""
        return class_cases(self, self.cases_by_class, tree)

    def cases_by_class(self) -> Floats:
        """Count the cases of each class in the open nodes, whatever they weigh."""
        rows = replace(self._rows(None), weight=self._case, case=None)
        one_code = np.zeros(1, dtype=np.uint8)
        counts = tally(rows, one_code, self._n_nodes, 1, self._n_classes)
        return counts.totals(self._n_nodes)[0]

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""
        coded = self._columns[column]
        chosen = None
        row = self._row
        if nodes is not None and len(nodes) < self._n_nodes:
            wanted = np.zeros(self._n_nodes, dtype=bool)
            wanted[nodes] = True
            chosen = wanted[self._node]
            row = row[chosen]
        return tally(
            self._rows(chosen),
            coded.codes[row],
            self._n_nodes,
            coded.n_codes,
            self._n_classes,
        )

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column."""
        return self._columns[column].values

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""
        schema = self._schema[column]
        if schema.is_numeric:
            return len(self._columns[column].values)
        return schema.missing_code

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column by the branch that rows take, in place of their class."""
        n_branches = int(splits.n_branches.max(initial=0))
        nowhere = np.full(len(splits.column), STOP, dtype=np.intp)
        decided = replace(splits, missing_to=nowhere, unseen_to=nowhere)
        branch = Router(self._schema, decided).branches(
            self._data, self._row, self._node
        )
        chosen = branch >= 0
        rows = replace(self._rows(chosen), label=branch[chosen], moments=None)
        for coded in self._columns:
            codes = coded.codes[self._row[chosen]]
            yield tally(rows, codes, self._n_nodes, coded.n_codes, n_branches)

    def retain(self, nodes: Ints) -> None:
        """Keep only some open nodes; drop the rows of the rest."""
        new = np.full(self._n_nodes, -1, dtype=np.intp)
        new[nodes] = np.arange(len(nodes))
        node = new[self._node]
        self._keep(node >= 0, node)
        self._n_nodes = len(nodes)

    def advance(self, splits: Splits) -> Level:
        """Move the rows of the open nodes down their branches."""
        router = Router(self._schema, splits)
        branch = router.branches(self._data, self._row, self._node)
        every = np.flatnonzero(branch == EVERY_BRANCH)
        fractions = self._fractions(router, every) if len(every) else None
        self._keep(branch >= 0, router.first_branch[self._node] + branch)
        if fractions is not None:
            self._append(*fractions)
        self._n_nodes = len(splits.sizes)
        return self._totals(self._n_nodes)

    def _fractions(
        self, router: Router, every: Ints
    ) -> tuple[Ints, Ints, Floats, Floats]:
        """Send rows down every branch; return row, node, weight, case of fractions."""
        origin, target, share = router.every_branch(self._node[every])
        rows = every[origin]
        weight = share if self._weight is None else self._weight[rows] * share
        case = share if self._case is None else self._case[rows] * share
        weight = on_grid(weight, self._grid.step)
        case = on_grid(case, self._grid.case_step)
        kept = weight > 0
        return self._row[rows][kept], target[kept], weight[kept], case[kept]

    def _append(self, row: Ints, node: Ints, weight: Floats, case: Floats) -> None:
        whole = np.ones(len(self._row))
        own_weight = whole if self._weight is None else self._weight
        own_case = whole if self._case is None else self._case
        self._row = np.concatenate([self._row, row])
        self._node = np.concatenate([self._node, node])
        self._weight = np.concatenate([own_weight, weight])
        self._case = np.concatenate([own_case, case])
        more = self._moments_of(row, weight)
        if self._moments is not None and more is not None:
            self._moments = np.concatenate([self._moments, more])

    def _keep(self, kept: NDArray[np.bool_], node: Ints) -> None:
        self._row, self._node = self._row[kept], node[kept]
        if self._weight is not None:
            self._weight = self._weight[kept]
        if self._case is not None:
            self._case = self._case[kept]
        if self._moments is not None:
            self._moments = self._moments[kept]


def class_cases_of(
    columns: Sequence[Column],
    data: Columns,
    target: Classes,
    grid: WeightGrid,
    tree: Tree,
) -> Floats:
    """Count the cases of each class down a finished tree, whatever they weigh.

    Rows of weight 0 are left out. Fractional cases count by their fractions.
    """
    if grid.fractions or not available():
        # Nothing is counted by code, so no codes are needed.
        nothing = Countable(np.empty(0, dtype=np.uint8), 1, np.empty(0))
        countable = [nothing] * len(columns)
        return MemoryEngine(columns, data, target, grid, countable).class_cases(tree)
    node = NativeWalk(columns, tree).reached(data).astype(np.intp)
    label = target.labels
    if grid.weights is not None:
        counted = grid.weights > 0
        node, label = node[counted], label[counted]
    cells = len(tree) * target.n_classes
    own = add_up(node * target.n_classes + label, np.ones(len(node)), cells)
    cases: Floats = subtree_sums(tree, own.reshape(len(tree), target.n_classes))
    return cases


def _prepare(
    column: Column, data: NDArray[Any], counted: NDArray[np.bool_] | None
) -> Countable:
    if not column.is_numeric:
        return Countable(data, column.missing_code + 1, np.empty(0))
    numbers = data.astype(np.float64, copy=False)
    known = ~np.isnan(numbers)
    if counted is not None:
        known &= counted  # rows without weight are absent
    values, rank = np.unique(numbers[known], return_inverse=True)
    codes = np.full(len(numbers), len(values), dtype=np.intp)
    codes[known] = rank
    return Countable(codes, len(values) + 1, values)


#: The number of classes that a byte can encode.
_BYTE = 256


@dataclass(frozen=True)
class Training:
    """Encoded columns, targets, weights, and a cache of trees of the same columns."""

    columns: tuple[Column, ...]
    data: Columns
    target: NDArray[np.intp] | Floats
    n_classes: int
    weights: Floats | None = None
    cache: LRUCache | None = None

    @cached_property
    def target_digest(self) -> tuple[bytes, bytes]:
        """Hashes of the target, one byte per row for few classes, and the weights."""
        few = 0 < self.n_classes <= _BYTE
        target = self.target.astype(np.uint8) if few else self.target
        return digest(target), digest(self.weights)

    def take(self, rows: Ints) -> Training:
        """Keep some of the rows."""
        data = Columns(len(rows), tuple(cells.take(rows) for cells in self.data.data))
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self, data=data, target=self.target[rows], weights=weights, cache=None
        )

    def in_order(self, order: Ints) -> Training:
        """Put the columns in another order."""
        cells = tuple(self.data.data[index] for index in order)
        return replace(
            self,
            columns=tuple(self.columns[index] for index in order),
            data=Columns(self.data.n_rows, cells),
            cache=None,
        )

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which rows count: the others have no weight, or one that is rounded to 0."""
        on_grid = weigh(self.weights, self.data.n_rows, fractions=True).weights
        return np.ones(self.data.n_rows, bool) if on_grid is None else on_grid > 0

    def grid(self, recipe: Recipe) -> WeightGrid:
        """Round the weights to the grid of the recipe."""
        return self._weigh(recipe.missing == "split", recipe.weights_are_cases)

    def _weigh(self, divides: bool, weights_are_cases: bool) -> WeightGrid:
        # Cases are split only where values are missing and go down every branch.
        split = divides and any(column.has_missing for column in self.columns)
        return weigh(self.weights, self.data.n_rows, split, weights_are_cases)

    def plan(self, task: Task, schema: Schema) -> Plan:
        """Return the plan of counting these rows."""
        grid = self._weigh(task.divides, task.weights_are_cases)
        return Plan(task, schema, self.data.n_rows, grid)

    def prepared(self, grid: WeightGrid) -> Classes | Quantities:
        """Prepare the target for counting."""
        if self.n_classes:
            return Classes(self.target.astype(np.intp), self.n_classes)
        return measure(self.target.astype(np.float64), grid)

    def engine(self, grid: WeightGrid) -> MemoryEngine:
        """Return the engine that counts these rows."""
        return MemoryEngine(self.columns, self.data, self.prepared(grid), grid)


def with_number_kinds(
    columns: tuple[Column, ...], data: Columns, grid: WeightGrid
) -> tuple[Column, ...]:
    """Return columns with what their numbers are in the rows that count."""

    def kind(numbers: Floats) -> str:
        return number_kind(
            numbers if grid.weights is None else numbers[grid.weights > 0]
        )

    return tuple(
        replace(column, number_kind=kind(cells)) if column.is_numeric else column
        for column, cells in zip(columns, data.data, strict=True)
    )


class MemoryTable:
    """A table in memory, or a file that is read into it."""

    engine_name = "memory"
    label = "The table"

    def __init__(self, table: object) -> None:
        self._table = table
        self._rows: Training | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    @cached_property
    def _frame(self) -> Frame:
        return open_table(self._table)

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        return self._frame.names

    @property
    def rows(self) -> Training:
        """The encoded rows of the last task."""
        if self._rows is None:
            raise AssertionError("rows are encoded by a task")
        return self._rows

    def columns(self, task: Task) -> tuple[Frame, Any, Any]:
        """Return the attributes, the target and the weights."""
        frame = self._frame
        if not isinstance(task.target, str):
            return frame, task.target, task.weight
        attributes = attributes_of(frame, task)
        return attributes, special(frame, task.target), weights_in(frame, task)

    def learn(self, task: Task) -> Plan:
        """Encode all rows, and return the plan of counting them."""
        frame, target, weights = self.columns(task)
        if isinstance(frame, EncodedTable) and _is_plain(task):
            self._rows, plan = frame.cache.recall(
                ("plan", task),
                lambda: _learn_rows(frame, target, weights, task),
                lambda learnt: sum(cells.nbytes for cells in learnt[0].data.data),
            )
        else:
            self._rows, plan = _learn_rows(frame, target, weights, task)
        return plan

    def engine(self, plan: Plan) -> MemoryEngine:
        """Return the engine that counts the rows by a plan."""
        return self.rows.engine(plan.grid)


def _is_plain(task: Task) -> bool:
    """Whether all that a task has can be compared, as that of a search can."""
    return (
        isinstance(task.target, EncodedLabels)
        and isinstance(task.categorical_features, str)
        and task.categories is None
        and task.classes is None
        and task.weight is task.class_weight is task.priors is None
    )


def _learn_rows(
    frame: Frame, target: Any, weights: Any, task: Task
) -> tuple[Training, Plan]:
    """Encode all rows; return them and the plan of counting them."""
    settings = task.categorical_features, task.categories
    columns, data = learn_columns(frame, *settings, task.threads)
    classes, wanted = _learn_target(target, frame.n_rows, task)
    if task.rejects_missing:
        check_missing(enumerate(columns), data)
    if weights is not None:
        weights = check_weights(weights, frame.n_rows)
    weights = with_class_weights(
        weights, task.class_weight, task.priors, classes, wanted
    )
    cache = cache_of_rows(frame, *settings)
    rows = Training(columns, data, wanted, len(classes), weights, cache)
    schema = Schema(
        columns,
        classes,
        _name_of(target),
        frame.named,
        merge_case=frame.merge_case,
        na_values=frame.na_values,
        target_format=_format_of(target),
    )
    plan = rows.plan(task, schema)
    if task.threshold == "readable":
        schema = replace(schema, columns=with_number_kinds(columns, data, plan.grid))
        rows = replace(rows, columns=schema.columns)
        plan = replace(plan, schema=schema)
    if task.criterion == "poisson":
        # Rows whose weights vanish are absent.
        on_grid = plan.grid.weights
        counted = wanted if on_grid is None else wanted[on_grid > 0]
        check_rates(float(counted.min()), float(counted.max()))
    return rows, plan


def table_in_file(source: object) -> object:
    """Read a file into memory."""
    from branchwise.files.number_columns import warn_numbers  # noqa: PLC0415
    from branchwise.files.read_table import TableFile  # noqa: PLC0415
    from branchwise.files.table_paths import files_of  # noqa: PLC0415  (only for files)

    files = files_of(source)
    if len(files) > 1:
        raise ParameterError(
            f"engine='memory' reads one file. Got {quoted(files)}; use "
            "engine='chunked' for several."
        )
    file = TableFile(files[0])
    table = file.read()
    warn_numbers(file.numbers, file.identifiers)
    return table


def _learn_target(
    target: object, n_rows: int, task: Task
) -> tuple[tuple[Value, ...], Any]:
    """Return the classes and their codes, or no classes and numbers."""
    if target is None:
        raise DataError(
            "Growing a tree requires y to be passed, but the target y is None. Pass "
            "one label for each row."
        )
    if task.is_regression:
        return (), learn_numbers(target, n_rows)
    return learn_target(target, n_rows, task.classes)


def _format_of(target: object) -> NumberFormat | None:
    how = target.number_format if isinstance(target, Numbers) else None
    return how if isinstance(how, NumberFormat) else None


def _name_of(target: object) -> str | None:
    name = getattr(target, "name", None)
    # A polars series without a name has an empty one.
    return name if isinstance(name, str) and name else None
