"""One scan over all rows in chunks: summary statistics that merge into a fit plan.

:func:`scan` summarises a chunk of the table, ``Summary.merge`` merges two summaries,
and :func:`finalise` makes the :class:`~branchwise.engines.base.Plan` from the
summary of all rows. Column kinds follow the rules of ``data/encode.py``, so that a
table read in chunks has the schema that it has in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import (
    Floats,
    Ints,
    number_kind,
    run_starts,
    wider_kind,
)
from branchwise.data.bins import Edges, edges_between
from branchwise.data.columns import Coded, RawColumn, check_mixed
from branchwise.data.conventions.date_format import UNITS, DateFormat
from branchwise.data.encode import check_missing, learn_column
from branchwise.data.exact_sums import lowest_bit
from branchwise.data.frames import (
    Frame,
    chosen_columns,
    declared_categories,
    open_table,
)
from branchwise.data.table_schema import (
    Column,
    Columns,
    Schema,
    Value,
    merged_statistics,
)
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
    check_total,
    class_factors,
    empty_grid,
    filled_grid,
    long_sum,
    unit_grid,
)
from branchwise.engines.base import Plan, Task, attributes_of, special, weights_in
from branchwise.errors import DataError, quoted

#: The default number of bins of a column with more numbers than have exact thresholds.
BINS_BEYOND = 255

_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class NumberSummary:
    """Sorted cells of numbers: the least and the largest number, and the count.

    Numbers of a cell agree but for the last ``dropped`` bits; 0 is exact. ``kind`` is
    what all numbers are.
    """

    low: Floats
    high: Floats
    count: Ints
    dropped: int = 0
    kind: str = "binary"

    @classmethod
    def of(cls, numbers: Floats, max_exact: int) -> NumberSummary:
        """Summarise numbers without missing ones."""
        known = numbers[~np.isnan(numbers)] + 0.0  # one zero
        values, count = np.unique(known, return_counts=True)
        return cls.of_values(values, count.astype(np.intp)).within(max_exact)

    @classmethod
    def of_values(cls, values: Floats, count: Ints) -> NumberSummary:
        """Summarise distinct numbers, which occur so many times."""
        return cls(values, values, count, kind=number_kind(values))

    def merge(self, other: NumberSummary, max_exact: int) -> NumberSummary:
        """Add the numbers of another chunk."""
        joined = NumberSummary(
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.count, other.count]),
            max(self.dropped, other.dropped),
            wider_kind(self.kind, other.kind),
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
            self.kind,
        )

    def scaled(self, unit: DateFormat, other: DateFormat) -> NumberSummary:
        """Return whole numbers of a unit in another."""
        low, high = unit.scaled(self.low, other), unit.scaled(self.high, other)
        return replace(self, low=low, high=high)

    @property
    def exact(self) -> bool:
        """Whether every cell is one number."""
        return self.dropped == 0

    def edges(self, max_bins: int | None, position: str = "midpoint") -> Floats | None:
        """Return the edges of bins; None where every number has its own."""
        if self.exact and max_bins is None:
            return None
        most = BINS_BEYOND if max_bins is None else max_bins
        if self.exact and len(self.count) <= most:
            return None
        return edges_between(self.low, self.high, self.count, most, position)


def ordered_bits(numbers: Floats) -> NDArray[np.int64]:
    """Return whole numbers in the same order."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN, bits)


@dataclass(frozen=True)
class ColumnSummary:
    """Summary of a column in some rows.

    ``declared`` values come with the column's type, whether they occur or not;
    ``numbers`` are those of rows that count. ``unit`` is the coarsest one in which all
    dates are whole.
    """

    column: Column
    declared: bool = False
    numbers: NumberSummary | None = None
    unit: str = "day"

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value, so that the type is not known."""
        if self.numbers is not None:
            return not len(self.numbers.count)
        return not self.column.categories

    def merge(self, other: ColumnSummary, max_exact: int) -> ColumnSummary:
        """Add the summary of further rows."""
        statistics = merged_statistics(self.column, other.column)
        missing = self.column.has_missing or other.column.has_missing
        all_rows: dict[str, Any] = {"has_missing": missing, "statistics": statistics}
        if self.is_empty or other.is_empty:
            known = other if self.is_empty else self
            return replace(known, column=replace(known.column, **all_rows))
        if self.column.is_numeric != other.column.is_numeric:
            raise DataError(
                f"Column {self.column.name!r} holds numbers in some chunks of the "
                "table and text in others. Give it one type, or name it in "
                "categorical_features to read its numbers as categories."
            )
        if self.numbers is not None and other.numbers is not None:
            mine, further = _in_one_unit(self, other)
            numbers = mine.merge(further, max_exact)
            column = replace(self.column, **all_rows)
            date, finer = self.column.date, other.column.date
            if date is not None and finer is not None and finer.step < date.step:
                column = replace(column, number_format=finer)
            unit = min(self.unit, other.unit, key=lambda unit: UNITS[unit])
            return replace(self, column=column, numbers=numbers, unit=unit)
        return self._with_values(other, all_rows)

    def _with_values(
        self, other: ColumnSummary, all_rows: Mapping[str, Any]
    ) -> ColumnSummary:
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
        column = replace(self.column, categories=values, **all_rows)
        return replace(self, column=column)


def _in_one_unit(
    one: ColumnSummary, other: ColumnSummary
) -> tuple[NumberSummary, NumberSummary]:
    """Return the numbers of two chunks, dates of both in the finer of their units."""
    mine, further = one.column.date, other.column.date
    if one.numbers is None or other.numbers is None:
        raise AssertionError("both are numeric")
    if mine is None or further is None:
        if mine is not further:
            raise DataError(
                f"Column {one.column.name!r} holds dates in some chunks of the table "
                "and numbers in others. Give it one type."
            )
        return one.numbers, other.numbers
    if mine.zoned != further.zoned:
        raise DataError(
            f"Column {one.column.name!r} has times with a time zone in some chunks of "
            "the table and without one in others. Give all of them a time zone, or "
            "none."
        )
    finer = min(mine, further, key=lambda how: how.step)
    return one.numbers.scaled(mine, finer), other.numbers.scaled(further, finer)


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
        column, cells = learn_column(
            name, raw, as_value, declared.get(index), as_read=True
        )
        if task.rejects_missing and column.has_missing:
            check_missing([(0, column)], Columns(frame.n_rows, (cells,)))
        numbers, unit = None, "day"
        if column.is_numeric:
            numbers = NumberSummary.of(cells[counted_rows], task.max_exact)
        if column.date is not None:
            unit = column.date.coarsest(cells)
        fixed = index in declared or (isinstance(raw, Coded) and raw.declared)
        columns.append(ColumnSummary(column, fixed, numbers, unit))
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


#: Summarises all rows once more by a plan, with weigh_again or rescan.
Again = Callable[[Callable[[Any, Plan], Any], Plan], Any]


def finalise(statistics: Summary, task: Task, again: Again) -> Plan:
    """Return the plan from the summary of all rows, which may be scanned again."""
    if not statistics.n_rows:
        raise DataError("The table has no rows, so there is nothing to learn from.")
    plan = _weighed(_plan(statistics, task), statistics, again)
    counted = (
        statistics.n_rows if statistics.weights is None else statistics.weights.n_cases
    )
    if plan.grid.n_cases == counted:
        return plan
    # Rows whose weights are rounded to 0 contribute no numbers to thresholds.
    seen = again(rescan, plan)
    if seen.n_rows != statistics.n_rows:
        raise AssertionError("the second scan has the same rows")
    return replace(_plan(seen, task), grid=plan.grid, class_factors=plan.class_factors)


def _plan(statistics: Summary, task: Task) -> Plan:
    """Return the plan of a summary, with rows of weight 1."""
    summaries = [in_coarsest_unit(summary) for summary in statistics.columns]
    columns = tuple(_column(summary, task) for summary in summaries)
    schema = Schema(columns, _classes(statistics, task), task.target)
    divides = task.divides and any(column.has_missing for column in columns)
    numbers = {
        index: column.numbers
        for index, column in enumerate(summaries)
        if column.numbers is not None
    }
    edges: Edges = {}
    values = {}
    for index, summary in numbers.items():
        position = columns[index].position(task.threshold)
        between = summary.edges(task.max_bins, position)
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


def in_coarsest_unit(summary: ColumnSummary) -> ColumnSummary:
    """Return the summary of dates in the coarsest unit that all rows allow."""
    date = summary.column.date
    if date is None or summary.numbers is None:
        return summary
    how = replace(date, unit=summary.unit)
    numbers = summary.numbers.scaled(date, how)
    kind = number_kind(np.concatenate([numbers.low, numbers.high]))
    seen = summary.column.statistics
    if seen is not None:
        seen = seen.scaled(date, how)
    column = replace(summary.column, number_format=how, statistics=seen)
    return replace(summary, column=column, numbers=replace(numbers, kind=kind))


def _column(summary: ColumnSummary, task: Task) -> Column:
    """Return the column of the schema."""
    if summary.numbers is None:
        return summary.column
    # What the numbers are matters to readable thresholds only.
    kind = summary.numbers.kind if task.threshold == "readable" else "any"
    sketched = not summary.numbers.exact
    return replace(summary.column, sketched=sketched, number_kind=kind)


def _classes(statistics: Summary, task: Task) -> tuple[Value, ...]:
    if statistics.labels is None:
        return ()
    check_mixed("y", tuple(statistics.labels))
    occurring = tuple(sorted(statistics.labels))
    if task.classes is None:
        return occurring
    check_classes(occurring, task.classes)
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


def _weighed(plan: Plan, statistics: Summary, again: Again) -> Plan:
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


def _all_weights(plan: Plan, statistics: Summary, again: Again) -> WeightSummary:
    """Summarise all weights on the grid of a plan; a step of 0 is none."""
    if plan.task.weight is None:
        return _weighed_by_class(plan, statistics)
    found: WeightSummary = again(weigh_again, plan)
    return found


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
