"""One scan over all rows in chunks: summary statistics that merge into a fit plan.

:func:`scan` summarises a chunk of the table, ``Summary.merge`` merges two summaries,
and :func:`finalise` makes the :class:`~branchwise.engines.base.Plan` from the
summary of all rows. Column kinds follow the rules of ``data/encode.py``, so that a
table read in chunks has the schema that it has in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from branchwise.data.arrays import (
    Floats,
    number_kind,
)
from branchwise.data.bins import Edges
from branchwise.data.columns import Coded, RawColumn, check_mixed
from branchwise.data.conventions.declared_columns import (
    chosen_columns,
    declared_categories,
)
from branchwise.data.encode import check_missing, learn_column
from branchwise.data.exact_sums import lowest_bit
from branchwise.data.frames import Frame, open_table
from branchwise.data.table_schema import (
    Column,
    Columns,
    Schema,
    Value,
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
from branchwise.engines.base import (
    Plan,
    Task,
    attributes_of,
    check_features,
    special,
    weights_in,
)
from branchwise.engines.summaries import ColumnSummary, NumberSummary, Summary
from branchwise.errors import DataError


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
    check_features(columns, task)
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
