"""One look at all rows, part by part: what is found in parts is merged into a plan.

:func:`look` sums up a part of the table, ``Facts.merge`` puts two summaries
together, and :func:`settle` makes of the summary of all rows the
:class:`~branchwise.engines.task.Plan` by which they are counted. The rules of what a
column is are those of ``table/encode.py``, so that a table that is read in parts has
the schema that it has in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from branchwise.counts import Floats
from branchwise.engines.facts import ColumnFacts, Facts
from branchwise.engines.sketch import NumberSummary
from branchwise.engines.task import Plan, Task
from branchwise.errors import DataError, quoted
from branchwise.missing import refuse_missing
from branchwise.shares import class_factors
from branchwise.table.bins import Edges
from branchwise.table.choices import (
    check_column_names,
    chosen_columns,
    declared_categories,
)
from branchwise.table.encode import learn_column
from branchwise.table.exact import lowest_bit
from branchwise.table.frames import Frame, open_table
from branchwise.table.labels import (
    check_classes,
    check_rates,
    class_codes,
    occurring_classes,
    plain_numbers,
)
from branchwise.table.raw import Coded, Numbers, RawColumn, refuse_mixed
from branchwise.table.schema import Columns, Schema, Value
from branchwise.table.target import Spread
from branchwise.table.weights import (
    Weighed,
    check_each_weight,
    check_total,
    empty_grid,
    filled_grid,
    long_sum,
    unit_grid,
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


def look(table: object, task: Task, plan: Plan | None = None) -> Facts:
    """Sum up a part of the table.

    With a plan, only rows that have a weight on its grid count; without one, all that
    have any.
    """
    frame = open_table(table)
    attributes = attributes_of(frame, task)
    if not frame.n_rows:
        return Facts()
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
        if task.refuses_missing and column.has_missing:
            refuse_missing([(0, column)], Columns(frame.n_rows, (cells,)))
        numbers = None
        if column.is_numeric:
            numbers = NumberSummary.of(cells[counted_rows], task.max_exact)
        fixed = index in declared or (isinstance(raw, Coded) and raw.declared)
        columns.append(ColumnFacts(column, fixed, numbers))
    facts = Facts(frame.n_rows, tuple(columns), max_exact=task.max_exact)
    if weights is not None:
        facts = replace(facts, weights=Weighed.of(weights))
    raw = special(frame, task.target)
    if task.predicts_numbers:
        wanted = plain_numbers(raw, facts.n_rows)
        return replace(facts, spread=Spread.of(wanted[counted_rows]))
    return _with_classes(facts, raw, task, weights)


def look_again(table: object, plan: Plan) -> Facts:
    """Sum up a part of the table, but for rows without a weight on the grid."""
    return look(table, plan.task, plan)


def _with_classes(
    facts: Facts, raw: RawColumn, task: Task, weights: Floats | None
) -> Facts:
    """Add what a target of classes shows."""
    classes, labels = occurring_classes(raw, facts.n_rows)
    codes = class_codes(labels, classes)
    rows = np.bincount(codes, minlength=len(classes)).tolist()
    facts = replace(facts, labels=dict(zip(classes, rows, strict=True)))
    if task.priors is None:
        return facts
    each = np.ones(len(codes)) if weights is None else weights
    sums = {label: long_sum(each[codes == at]) for at, label in enumerate(classes)}
    return replace(facts, label_weights=sums)


@dataclass(frozen=True)
class Again:
    """Who can look at all rows once more, given a plan: at their weights, or at all
    that is counted.
    """  # noqa: D205

    weigh: Callable[[Plan], Weighed]
    look: Callable[[Plan], Facts]


def settle(facts: Facts, task: Task, again: Again) -> Plan:
    """Make a plan of what all rows show.

    Parameters
    ----------
    facts : Facts
        What all rows show.
    task : Task
        What is wanted of them.
    again : Again
        Who can look at the rows once more.
    """
    if not facts.n_rows:
        raise DataError("The table has no rows, so there is nothing to learn from.")
    plan = _weighed(_plan(facts, task), facts, again)
    counted = facts.n_rows if facts.weights is None else facts.weights.n_cases
    if plan.grid.n_cases == counted:
        return plan
    # Rows whose weights vanish beside the sum of all lend no numbers to thresholds.
    seen = again.look(plan)
    if seen.n_rows != facts.n_rows:
        raise AssertionError("the same rows are looked at again")
    return replace(_plan(seen, task), grid=plan.grid, class_factors=plan.class_factors)


def _plan(facts: Facts, task: Task) -> Plan:
    """Make a plan of facts, with rows that all weigh 1."""
    columns = tuple(
        replace(found.column, sketched=True)
        if found.numbers is not None and not found.numbers.exact
        else found.column
        for found in facts.columns
    )
    schema = Schema(columns, _classes(facts, task), task.target)
    divides = task.divides and any(column.has_missing for column in columns)
    numbers = {
        index: found.numbers
        for index, found in enumerate(facts.columns)
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
    if facts.spread is not None and task.criterion == "poisson":
        check_rates(facts.spread.low, facts.spread.high)
    return Plan(
        task,
        schema,
        facts.n_rows,
        unit_grid(facts.n_rows, divides),
        values,
        edges,
        _factors(facts, task, schema.classes),
        facts.spread,
    )


def _classes(facts: Facts, task: Task) -> tuple[Value, ...]:
    if facts.labels is None:
        return ()
    refuse_mixed("y", tuple(facts.labels))
    found = tuple(sorted(facts.labels))
    if task.classes is None:
        return found
    check_classes(found, task.classes)
    return tuple(task.classes)


def _factors(facts: Facts, task: Task, classes: Sequence[Value]) -> Floats | None:
    """Return what the weights of classes are multiplied with, if with anything."""
    if task.class_weight is None and task.priors is None:
        return None
    rows, weights = facts.labels or {}, facts.label_weights or {}
    return class_factors(
        task.class_weight,
        task.priors,
        classes,
        np.array([rows.get(label, 0) for label in classes], dtype=np.float64),
        np.array([math.fsum(weights.get(label, ())) for label in classes]),
    )


def _weighed(plan: Plan, facts: Facts, again: Again) -> Plan:
    """Give a plan the grid that suits the weights of all rows."""
    if not plan.weighted:
        return plan
    if plan.class_factors is None and facts.weights is not None:
        raw = facts.weights
    else:
        as_they_are = replace(plan, grid=replace(plan.grid, step=0.0))
        raw = _all_weights(as_they_are, facts, again)
    check_total(raw.total)
    grid = empty_grid(raw, plan.grid.fractions, plan.task.weights_are_cases)
    plan = replace(plan, grid=grid)
    return replace(plan, grid=filled_grid(grid, _all_weights(plan, facts, again)))


def _all_weights(plan: Plan, facts: Facts, again: Again) -> Weighed:
    """Look at all weights on the grid of a plan; a step of 0 is none."""
    if plan.task.weight is None:
        return _weighed_by_class(plan, facts)
    return again.weigh(plan)


def _weighed_by_class(plan: Plan, facts: Facts) -> Weighed:
    """Add up weights that depend on the class alone, exactly."""
    labels = np.arange(plan.n_classes)
    weights = plan.weigh(None, labels)
    each = [] if weights is None else weights.tolist()
    rows = [(facts.labels or {}).get(label, 0) for label in plan.schema.classes]
    pairs = list(zip(rows, each, strict=True))
    total = sum((n * Fraction(weight) for n, weight in pairs), Fraction(0))
    cases = sum(n for n, weight in pairs if weight > 0)
    present = np.array([weight for n, weight in pairs if n])
    return Weighed((float(total),), lowest_bit(present), cases)


def weigh_again(table: object, plan: Plan) -> Weighed:
    """Look at the weights of a part of the table as a plan has them."""
    frame = open_table(table)
    if not frame.n_rows:
        return Weighed()
    weighed = weights_on_grid(frame, plan)
    return Weighed() if weighed is None else Weighed.of(weighed)


def weights_on_grid(frame: Frame, plan: Plan) -> Floats | None:
    """Return the weights of rows as a plan has them."""
    labels = None
    if plan.class_factors is not None:
        _, raw = occurring_classes(special(frame, plan.task.target), frame.n_rows)
        labels = class_codes(raw, plan.schema.classes)
    return plan.weigh(weights_in(frame, plan.task), labels)
