"""Data source of tables in memory, and of files that are read into it.

What needs all rows at once (the native kernel, held-out rows, caches of trees) takes
encoded rows, :class:`Training`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

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
    weigh,
    with_class_weights,
)
from branchwise.engines.base import (
    Plan,
    Task,
    attributes_of,
    check_features,
    special,
    weights_in,
    with_features,
)
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.recipe import Recipe
from branchwise.threads import cached_property

if TYPE_CHECKING:
    from branchwise.engines.memory_engine import MemoryEngine

#: The number of classes that a byte can encode.
_BYTE = 256


@dataclass(frozen=True)
class Training:
    """Encoded columns, targets, weights, and a cache of trees of the same columns.

    ``times`` says how often each row counts, where rows have no weights; None: once.
    """

    columns: tuple[Column, ...]
    data: Columns
    target: NDArray[np.intp] | Floats
    n_classes: int
    weights: Floats | None = None
    cache: LRUCache | None = None
    times: NDArray[np.uint8] | None = None

    @cached_property
    def target_digest(self) -> tuple[bytes, bytes]:
        """Hashes of the target, one byte per row for few classes, and the weights."""
        few = 0 < self.n_classes <= _BYTE
        target = self.target.astype(np.uint8) if few else self.target
        return digest(target), digest(self.weights)

    @cached_property
    def _has_missing(self) -> bool:
        return any(column.has_missing for column in self.columns)

    def take(self, rows: Ints, times: NDArray[np.uint8] | None = None) -> Training:
        """Keep some of the rows, each as often as ``times`` says."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self,
            data=self.data.take(rows),
            target=self.target[rows],
            weights=weights,
            cache=None,
            times=times,
        )

    def repeated(self) -> Training:
        """Repeat each row as often as it counts."""
        if self.times is None:
            return self
        return self.take(np.repeat(np.arange(self.data.n_rows), self.times))

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
        split = divides and self._has_missing
        n_rows = self.data.n_rows if self.times is None else int(self.times.sum())
        return weigh(self.weights, n_rows, split, weights_are_cases)

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
        from branchwise.engines.memory_engine import (  # noqa: PLC0415  (not to fit)
            MemoryEngine,
        )

        rows = self.repeated()
        return MemoryEngine(rows.columns, rows.data, rows.prepared(grid), grid)


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
            return with_features(frame, task), task.target, task.weight
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
    check_features(columns, task)
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
