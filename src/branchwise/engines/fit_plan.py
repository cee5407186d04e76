"""Task and plan of fitting a source: what to learn, and how rows are counted.

A :class:`Task` names the target and says how the other columns are read. One scan of
all rows gives a :class:`Summary`, and from it a :class:`Plan`: the schema, the edges
of bins, and the grids of weights and targets. With the plan every chunk of the rows
can be encoded and counted by itself, and the counts of all chunks add up exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, run_starts
from branchwise.data.bins import Edges, edges_between
from branchwise.data.columns import Numbers, RawColumn, check_mixed
from branchwise.data.frames import Frame, check_column_names
from branchwise.data.schema import Column, Schema, Value, check_names
from branchwise.data.target import Classes, Quantities, Scale, Spread, scale_of
from branchwise.data.weights import (
    WeightGrid,
    WeightSummary,
    check_each_weight,
    on_grid,
)
from branchwise.errors import DataError, ParameterError, quoted

#: The default number of distinct numbers of a column with exact thresholds.
MAX_EXACT = 10_000
#: The default number of bins of a column with more.
BINS_BEYOND = 255

_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class NumberSummary:
    """Sorted cells of numbers: the least and the largest number, and the count.

    Numbers of a cell agree but for the last ``dropped`` bits; 0 is exact.
    """

    low: Floats
    high: Floats
    count: Ints
    dropped: int = 0

    @classmethod
    def of(cls, numbers: Floats, max_exact: int) -> NumberSummary:
        """Summarise numbers without missing ones."""
        known = numbers[~np.isnan(numbers)] + 0.0  # one zero
        values, count = np.unique(known, return_counts=True)
        return cls(values, values, count.astype(np.intp)).within(max_exact)

    def merge(self, other: NumberSummary, max_exact: int) -> NumberSummary:
        """Add the numbers of another chunk."""
        joined = NumberSummary(
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.count, other.count]),
            max(self.dropped, other.dropped),
        )
        return joined.joined(joined.dropped).within(max_exact)

    def within(self, max_exact: int) -> NumberSummary:
        """Merge cells until there are at most so many."""
        summary = self
        while len(summary.count) > max_exact:
            summary = summary.joined(summary.dropped + 1)
        return summary

    def joined(self, dropped: int) -> NumberSummary:
        """Merge the cells whose numbers agree but for so many bits."""
        key = ordered_bits(self.low) >> dropped
        order = np.argsort(key, kind="stable")
        starts = run_starts(key[order])
        if not len(starts):
            return self
        return NumberSummary(
            np.minimum.reduceat(self.low[order], starts),
            np.maximum.reduceat(self.high[order], starts),
            np.add.reduceat(self.count[order], starts),
            dropped,
        )

    @property
    def exact(self) -> bool:
        """Whether every cell is one number."""
        return self.dropped == 0

    def edges(self, max_bins: int | None) -> Floats | None:
        """Return the edges of bins; None where every number has its own."""
        if self.exact and max_bins is None:
            return None
        most = BINS_BEYOND if max_bins is None else max_bins
        if self.exact and len(self.count) <= most:
            return None
        return edges_between(self.low, self.high, self.count, most)


def ordered_bits(numbers: Floats) -> NDArray[np.int64]:
    """Return whole numbers in the same order."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN, bits)


@dataclass(frozen=True)
class Task:
    """What to learn from a source.

    Parameters
    ----------
    target, weight : str
        The columns of the target and, if there is one, of the weights; or their values,
        one for each row, if the rows are in memory.
    ignored : tuple of str
        Columns that are no attributes.
    categorical_features, categories, classes
        As in :func:`~branchwise.fit.fit_tree`.
    class_weight : "balanced", dict or None
        The factors of the weights of classes.
    priors : dict or None
        The share of all weight that each class is to have.
    criterion : str or None
        The criterion if the target is a number; None where it is a class.
    weights_are_cases : bool
        Whether a row of weight 2 is two cases.
    divides : bool
        Whether cases with missing values go down every branch.
    rejects_missing : bool
        Whether missing values are an error.
    max_bins : int or None
        The most bins of a numeric column; None is no limit.
    max_exact : int
        The most distinct numbers of a column with exact thresholds.
    threads : int
        How many threads read a table in memory.
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
    max_exact: int = MAX_EXACT
    threads: int = 1

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
        if column in self.values:
            return len(self.values[column]) + 1
        return self.schema.columns[column].missing_code + 1 + self.unseen_values

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


@dataclass(frozen=True)
class ColumnSummary:
    """Summary of a column in some rows.

    ``declared`` values come with the column's type, whether they occur or not;
    ``numbers`` are those of rows that count.
    """

    column: Column
    declared: bool = False
    numbers: NumberSummary | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value, so that the type is not known."""
        if self.numbers is not None:
            return not len(self.numbers.count)
        return not self.column.categories

    def merge(self, other: ColumnSummary, max_exact: int) -> ColumnSummary:
        """Add the summary of further rows."""
        missing = self.column.has_missing or other.column.has_missing
        if self.is_empty or other.is_empty:
            known = other if self.is_empty else self
            return replace(known, column=replace(known.column, has_missing=missing))
        if self.column.is_numeric != other.column.is_numeric:
            raise DataError(
                f"Column {self.column.name!r} holds numbers in some chunks of the "
                "table and text in others. Give it one type, or name it in "
                "categorical_features to read its numbers as categories."
            )
        if self.numbers is not None and other.numbers is not None:
            numbers = self.numbers.merge(other.numbers, max_exact)
            column = replace(self.column, has_missing=missing)
            return replace(self, column=column, numbers=numbers)
        return self._with_values(other, missing)

    def _with_values(self, other: ColumnSummary, missing: bool) -> ColumnSummary:
        mine, further = self.column.categories, other.column.categories
        values = mine
        if mine != further:
            if self.column.kind == "ordinal":
                raise DataError(
                    f"Column {self.column.name!r} has its values in one order in some "
                    f"chunks of the table and in another in others: {quoted(mine)} and "
                    f"{quoted(further)}. Give it one order."
                )
            values = tuple(dict.fromkeys(mine + further))
            check_mixed(f"Column {self.column.name!r}", values)
            # Declarations that differ between chunks have no common order.
            values = tuple(sorted(_alike(values)))
        column = replace(self.column, categories=values, has_missing=missing)
        return replace(self, column=column)


def _alike(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Convert all numbers to floats where one is: 4 becomes 4.0 beside 4.5."""
    if any(isinstance(value, float) for value in values):
        return tuple(float(value) for value in values)
    return values


@dataclass(frozen=True)
class Summary:
    """Summary of some rows of a table."""

    n_rows: int = 0
    columns: tuple[ColumnSummary, ...] = ()
    labels: Mapping[Value, int] | None = None
    label_weights: Mapping[Value, tuple[float, ...]] | None = None
    spread: Spread | None = None
    weights: WeightSummary | None = None
    max_exact: int = 0

    def merge(self, other: Summary) -> Summary:
        """Add the summary of further rows."""
        if not self.n_rows or not other.n_rows:
            return other if not self.n_rows else self
        if self.names != other.names:
            raise DataError(
                "Every chunk of the table must have the same columns. Got "
                f"{quoted(self.names, 20)} and {quoted(other.names, 20)}."
            )
        columns = zip(self.columns, other.columns, strict=True)
        return Summary(
            self.n_rows + other.n_rows,
            tuple(mine.merge(further, self.max_exact) for mine, further in columns),
            _added(self.labels, other.labels),
            _added(self.label_weights, other.label_weights),
            _merged(self.spread, other.spread),
            _merged(self.weights, other.weights),
            self.max_exact,
        )

    @property
    def names(self) -> list[str]:
        """The names of the attributes."""
        return [statistics.column.name for statistics in self.columns]


def _added(
    mine: Mapping[Value, Any] | None, further: Mapping[Value, Any] | None
) -> dict[Value, Any] | None:
    """Merge the values of each label; tuples are concatenated."""
    if mine is None or further is None:
        return None
    total = dict(mine)
    for label, amount in further.items():
        total[label] = total[label] + amount if label in total else amount
    return total


def _merged(mine: Any, further: Any) -> Any:
    return None if mine is None else mine.merge(further)
