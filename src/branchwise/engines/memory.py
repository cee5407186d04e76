"""Data source of the in-memory engine: a table in this process, encoded as a whole.

Rows in memory can be counted by any engine; what needs all of them at once (the native
kernel, held-out rows, cross-validation, caches of trees) takes the encoded rows,
:class:`Training`, instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.encode import cache_of_rows, check_missing, learn_columns
from branchwise.data.encoded_table import LRUCache
from branchwise.data.frames import Frame, open_table
from branchwise.data.schema import Column, Columns, Schema, Value
from branchwise.data.target import (
    Classes,
    Quantities,
    check_rates,
    learn_numbers,
    learn_target,
    measure,
)
from branchwise.data.weights import WeightGrid, check_weights, weigh, with_class_weights
from branchwise.engines.fit_plan import (
    Plan,
    Task,
    attributes_of,
    special,
    weights_in,
)
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.recipe import Recipe
from branchwise.threads import cached_property


@dataclass(frozen=True)
class Training:
    """Encoded columns, targets (class codes or numbers) and weights.

    ``cache`` has the trees of the same columns, if they are cached.
    """

    columns: tuple[Column, ...]
    data: Columns
    target: NDArray[np.intp] | Floats
    n_classes: int
    weights: Floats | None = None
    cache: LRUCache | None = None

    def take(self, rows: Ints) -> Training:
        """Keep some of the rows."""
        data = Columns(len(rows), tuple(cells[rows] for cells in self.data.data))
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self, data=data, target=self.target[rows], weights=weights, cache=None
        )

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


class MemoryTable:
    """A table in memory, or a file that is read into it.

    Parameters
    ----------
    table : table, path or frame
        The rows.
    """

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
        self._rows = Training(columns, data, wanted, len(classes), weights, cache)
        schema = Schema(columns, classes, _name_of(target), frame.named)
        plan = self._rows.plan(task, schema)
        if task.criterion == "poisson":
            # Rows whose weights vanish are absent.
            on_grid = plan.grid.weights
            counted = wanted if on_grid is None else wanted[on_grid > 0]
            check_rates(float(counted.min()), float(counted.max()))
        return plan

    def engine(self, plan: Plan) -> MemoryEngine:
        """Return the engine that counts the rows by a plan."""
        return self.rows.engine(plan.grid)


def table_in_file(source: object) -> object:
    """Read a file into memory."""
    from branchwise.files.dataset import files_of  # noqa: PLC0415  (only for files)
    from branchwise.files.read_table import TableFile  # noqa: PLC0415

    files = files_of(source)
    if len(files) > 1:
        raise ParameterError(
            f"engine='memory' reads one file. Got {quoted(files)}; use "
            "engine='chunked' for several."
        )
    return TableFile(files[0]).read()


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


def _name_of(target: object) -> str | None:
    name = getattr(target, "name", None)
    # A polars series without a name has an empty one.
    return name if isinstance(name, str) and name else None
