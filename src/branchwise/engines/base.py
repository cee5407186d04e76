"""The protocol of data sources: the task and the plan of fitting one; the engines.

A :class:`Task` names the target and says how the other columns are read. One scan of
all rows gives a :class:`Plan`: the schema, the edges of bins, and the grids of weights
and targets. With it every chunk of the rows can be encoded and counted by itself, and
the counts of all chunks add up exactly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.arrow import is_dataset
from branchwise.data.bins import Edges
from branchwise.data.columns import Numbers, RawColumn
from branchwise.data.conventions.declared_columns import check_column_names
from branchwise.data.descriptions import grown_now
from branchwise.data.frames import Frame
from branchwise.data.table_schema import Column, Schema, Value, check_names
from branchwise.data.target import Classes, Quantities, Scale, Spread, scale_of
from branchwise.data.weights import (
    WeightGrid,
    check_each_weight,
    on_grid,
)
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.grow.protocol import Engine

if TYPE_CHECKING:
    from branchwise.data.conventions.date_features import DateFeature

#: The default number of distinct numbers of a column with exact thresholds.
MAX_EXACT = 10_000


@dataclass(frozen=True)
class Task:
    """What to learn from a source.

    ``target`` and ``weight`` are columns or, if the rows are in memory, values for each
    row; ``ignored`` columns are no attributes. ``criterion`` is None where the target
    is a class. With ``weights_are_cases`` a row of weight 2 is two cases; with
    ``divides`` cases with missing values go down every branch. Columns with more than
    ``max_exact`` distinct numbers have no exact thresholds. ``threshold`` positions the
    edges of bins. ``date_features`` are derived from columns of dates. The rest is as
    in :func:`~branchwise.fit.fit_tree`.
    """

    target: Any
    weight: Any = None
    ignored: tuple[str, ...] = ()
    categorical_features: object = "from_dtype"
    categories: Mapping[Any, Sequence[Any]] | None = None
    classes: Sequence[Value] | None = None
    class_weight: object = None
    priors: object = None
    criterion: str | None = None
    weights_are_cases: bool = False
    divides: bool = False
    rejects_missing: bool = False
    max_bins: int | None = None
    threshold: str = "midpoint"
    max_exact: int = MAX_EXACT
    threads: int = 1
    date_features: tuple[DateFeature, ...] = ()

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number."""
        return self.criterion is not None

    @property
    def no_attributes(self) -> frozenset[str]:
        """The columns that are not attributes."""
        special = {self.target, *self.ignored}
        return frozenset(special if self.weight is None else special | {self.weight})


def check_columns(task: Task, label: str, names: Sequence[str]) -> None:
    """Reject names that are not columns, and a target that is ignored."""
    weight = [] if task.weight is None else [task.weight]
    check_names(label, names, [task.target, *weight, *task.ignored])
    if task.target in task.ignored:
        raise ParameterError(
            f"ignore must name attributes. Got {task.target!r}, which is the target."
        )


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
    attributes = Frame(
        *(names, frame.n_rows, frame.named, readers),
        merge_case=frame.merge_case,
        na_values=frame.na_values,
    )
    return with_features(attributes, task)


def with_features(frame: Frame, task: Task) -> Frame:
    """Return the attributes with those that the task derives from dates."""
    if not task.date_features:
        return frame
    from branchwise.data.conventions.derived_columns import with_requested  # noqa: PLC0415  (few)

    return with_requested(frame, task.date_features)


def check_features(columns: Sequence[Column], task: Task) -> None:
    """Reject what cannot be derived from the dates of all rows."""
    if task.date_features:
        from branchwise.data.conventions.derived_columns import check_times  # noqa: PLC0415  (few)

        check_times(columns, task.date_features)


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


@dataclass(frozen=True)
class Plan:
    """All that is needed to encode and to count a chunk of the rows.

    ``values`` has, for every numeric column, the numbers that its codes stand for:
    the distinct numbers, or where ``edges`` has bins for it their positions.
    ``class_factors`` are the factors of weights by class. ``grid`` has weights only
    where all rows are in memory; a step of 0 leaves weights as they are.
    ``unseen_values`` says that rows may have unseen categories, as validation rows may.
    """

    task: Task
    schema: Schema
    n_rows: int
    grid: WeightGrid
    values: Mapping[int, Floats] = field(default_factory=dict)
    edges: Edges = field(default_factory=dict)
    class_factors: Floats | None = None
    spread: Spread | None = None
    unseen_values: bool = False

    @cached_property
    def model_schema(self) -> Schema:
        """The schema of models that are grown now."""
        return replace(self.schema, metadata=grown_now())

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 in regression."""
        return len(self.schema.classes)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights that are not all 1."""
        return self.task.weight is not None or self.class_factors is not None

    def n_codes(self, column: int) -> int:
        """Return the number of codes of a column, including that of missing values."""
        unseen = self.unseen_values and column not in self.values
        return self.missing_code(column) + 1 + unseen

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""
        if column in self.values:
            return len(self.values[column])
        return self.schema.columns[column].missing_code

    def weigh(self, weights: Floats | None, labels: Any) -> Floats | None:
        """Round the weights of some rows to the grid."""
        if not self.weighted:
            return None
        given = np.ones(len(labels)) if weights is None else weights
        if self.class_factors is not None:
            given = given * self.class_factors[labels]
        if not self.grid.step:
            return given
        return on_grid(given / self.grid.unit, self.grid.step)

    def grid_of(self, weights: Floats | None) -> WeightGrid:
        """Return the grid with the weights of some rows, already on it."""
        return replace(self.grid, weights=weights)

    def target_of(self, target: Any) -> Classes | Quantities:
        """Prepare the target for counting."""
        if self.scale is None:
            return Classes(target.astype(np.intp), self.n_classes)
        return Quantities(self.scale.in_units(target), self.scale)

    @cached_property
    def scale(self) -> Scale | None:
        """How numbers to be predicted are counted; None where classes are."""
        if self.spread is None:
            return None
        return scale_of(self.spread, self.grid, self.weighted)


#: The engines by name, with what each is for.
ENGINES = {
    "memory": "tables in this process",
    "chunked": "files that may be larger than memory",
    "sql": "tables and queries of databases",
    "dask": "Dask DataFrames",
    "spark": "Spark DataFrames",
}
#: The packages that engines need, which are imported only when they are used.
_NEEDED = {"dask": ("dask", "distributed"), "spark": ("pyspark",)}


def source_of(source: object, engine: str | None = None, named: bool = True) -> Source:
    """Return the data source of an object; ``engine`` is one of ``ENGINES``, or None.

    ``named`` says that the target is the name of a column: only then text is a file.
    """
    if isinstance(source, Frame) and engine is None:  # the way of searches, in short
        return _in_memory(source, named=False)
    known = engine_of(source)
    if engine not in (None, known, *ENGINES):
        raise ParameterError(
            f"engine must be None or one of {quoted(ENGINES, len(ENGINES))}. Got "
            f"{engine!r}."
        )
    if known == "chunked" and (engine == "memory" or (engine is None and not named)):
        return _in_memory(source, named)
    wanted = known if engine is None else engine
    if known != wanted:
        raise ParameterError(
            f"engine={wanted!r} is for {ENGINES[wanted]}, and the source is one for "
            f"engine={known!r}: {ENGINES[known]}. Got {type(source).__name__}."
        )
    opened: Any = source if is_source(source) else source_class(wanted)(source)
    # A table of a database is a data source once there is a connection.
    found: Source = opened.open() if hasattr(opened, "open") else opened
    return found


def _in_memory(files: object, named: bool) -> Source:
    """Return the data source of a file that is read into memory."""
    memory = import_module("branchwise.engines.memory")
    found: Source = memory.MemoryTable(memory.table_in_file(files) if named else files)
    return found


def is_source(source: object) -> bool:
    """Whether an object is a data source itself."""
    return hasattr(type(source), "engine_name")


def engine_of(source: object) -> str:
    """Return the engine of a source."""
    if is_source(source):
        name: str = type(source).engine_name  # type: ignore[attr-defined]
        return name
    module = type(source).__module__.partition(".")[0]
    if module in ("dask", "dask_expr"):
        return "dask"
    if module == "pyspark":
        return "spark"
    return "chunked" if is_files(source) else "memory"


def is_files(source: object) -> bool:
    """Whether a source is a file, several of them, or a :class:`StreamedTable`."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(map(is_files, source))
    streamed = getattr(type(source), "reads_files", False)
    return streamed or isinstance(source, (str, os.PathLike)) or is_dataset(source)


def source_class(engine: str) -> Any:
    """Return the class of the data sources of an engine; raise without its package."""
    absent = [name for name in _NEEDED.get(engine, ()) if find_spec(name) is None]
    if absent:
        raise ParameterError(
            f"engine={engine!r} needs the package {absent[0]!r}: pip install "
            f"'branchwise[{engine}]'."
        )
    module = import_module(f"branchwise.engines.{engine}")
    return getattr(module, f"{engine.title()}Table")


class Source(Protocol):
    """A table that an engine can count, in memory or where it is."""

    #: The name of its engine.
    engine_name: ClassVar[str]
    #: Its name in messages.
    label: str

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    def learn(self, task: Task) -> Plan:
        """Scan all rows once, and return the plan of counting them."""

    def engine(self, plan: Plan) -> Engine:
        """Return the engine that counts the rows by a plan."""

    def __enter__(self) -> Self:
        """Open the source."""

    def __exit__(self, *error: object) -> None:
        """Release temporary files and tables, and memory of workers."""


def model_of(given: Any) -> Any:
    """Return a model, or the model of a fitted estimator."""
    model = getattr(given, "model_", given)
    if not (hasattr(model, "schema") and hasattr(model, "used_columns")):
        raise ParameterError(
            "model must be what fit_tree or load returns, or an estimator that is "
            f"fitted. Got {type(given).__name__}."
        )
    return model
