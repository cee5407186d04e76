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
from dataclasses import replace
from fractions import Fraction

import numpy as np

from branchwise.counts import Floats
from branchwise.engines.facts import ColumnFacts, Facts, Weighed
from branchwise.engines.sketch import NumberSummary
from branchwise.engines.task import Plan, Task
from branchwise.errors import DataError, quoted
from branchwise.missing import refuse_missing
from branchwise.shares import class_weights, prior_weights
from branchwise.table.bins import Edges
from branchwise.table.choices import chosen_columns, declared_categories
from branchwise.table.encode import learn_column
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
    WeightGrid,
    check_each_weight,
    check_total,
    grid_step,
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


def look(table: object, task: Task) -> Facts:
    """Sum up a part of the table."""
    frame = open_table(table)
    attributes = attributes_of(frame, task)
    if not frame.n_rows:
        return Facts()
    weights = weights_in(frame, task)
    counted_rows = slice(None) if weights is None else weights > 0
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
    return _with_target(facts, special(frame, task.target), task, weights)


def _with_target(
    facts: Facts, raw: RawColumn, task: Task, weights: Floats | None
) -> Facts:
    """Add what the target shows."""
    if task.predicts_numbers:
        numbers = plain_numbers(raw, facts.n_rows)
        if weights is not None:
            numbers = numbers[weights > 0]
        return replace(facts, spread=Spread.of(numbers))
    classes, labels = occurring_classes(raw, facts.n_rows)
    codes = class_codes(labels, classes)
    rows = np.bincount(codes, minlength=len(classes)).tolist()
    facts = replace(facts, labels=dict(zip(classes, rows, strict=True)))
    if task.priors is None:
        return facts
    each = np.ones(len(codes)) if weights is None else weights
    sums = {label: long_sum(each[codes == at]) for at, label in enumerate(classes)}
    return replace(facts, label_weights=sums)


def settle(
    facts: Facts,
    task: Task,
    weigh: Callable[[Plan], Weighed] | None = None,
) -> Plan:
    """Make a plan of what all rows show.

    Parameters
    ----------
    facts : Facts
        What all rows show.
    task : Task
        What is wanted of them.
    weigh : callable or None
        Looks at the weights of all rows once more, as a plan has them.
    """
    if not facts.n_rows:
        raise DataError("The table has no rows, so there is nothing to learn from.")
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
    plan = Plan(
        task,
        schema,
        facts.n_rows,
        unit_grid(facts.n_rows, divides),
        values,
        edges,
        _factors(facts, task, schema.classes),
        facts.spread,
    )
    return _weighed(plan, facts, divides, weigh)


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
    factors: Floats | None = None
    if task.class_weight is not None:
        rows = facts.labels or {}
        found = np.array([rows.get(label, 0) for label in classes], dtype=np.float64)
        factors = class_weights(task.class_weight, classes, found)
    if task.priors is not None:
        weights = facts.label_weights or {}
        sums = np.array([math.fsum(weights.get(label, ())) for label in classes])
        found = sums if factors is None else sums * factors
        shares = prior_weights(task.priors, classes, found)
        factors = shares if factors is None else factors * shares
    return factors


def _weighed(
    plan: Plan,
    facts: Facts,
    divides: bool,
    weigh: Callable[[Plan], Weighed] | None,
) -> Plan:
    """Give a plan the grid that suits the weights of all rows."""
    if not plan.weighted:
        return plan
    if plan.class_factors is None and facts.weights is not None:
        raw = facts.weights
    else:
        raw = _all_weights(plan, 0.0, facts, weigh)
    check_total(raw.total)
    whole = raw.whole and not divides
    step = grid_step(raw.total, whole)
    rounded = _all_weights(plan, step, facts, weigh)
    grid = WeightGrid(
        None,
        divides,
        whole and step == 1.0,
        step,
        grid_step(rounded.n_cases, whole=not divides),
        rounded.n_cases,
        rounded.total,
    )
    return replace(plan, grid=grid)


def _all_weights(
    plan: Plan,
    step: float,
    facts: Facts,
    weigh: Callable[[Plan], Weighed] | None,
) -> Weighed:
    """Look at all weights on a grid; a step of 0 is none."""
    plan = replace(plan, grid=replace(plan.grid, step=step))
    if plan.task.weight is None:
        return _weighed_by_class(plan, facts)
    if weigh is None:
        raise AssertionError("rows that have weights can be weighed again")
    return weigh(plan)


def _weighed_by_class(plan: Plan, facts: Facts) -> Weighed:
    """Add up weights that depend on the class alone, exactly."""
    labels = np.arange(plan.n_classes)
    weights = plan.weigh(None, labels)
    each = [] if weights is None else weights.tolist()
    rows = [(facts.labels or {}).get(label, 0) for label in plan.schema.classes]
    pairs = list(zip(rows, each, strict=True))
    total = sum((n * Fraction(weight) for n, weight in pairs), Fraction(0))
    cases = sum(n for n, weight in pairs if weight > 0)
    whole = all(weight == round(weight) for n, weight in pairs if n)
    return Weighed((float(total),), whole, cases)


def weigh_again(table: object, plan: Plan) -> Weighed:
    """Look at the weights of a part of the table as a plan has them."""
    frame = open_table(table)
    if not frame.n_rows:
        return Weighed()
    weights = weights_in(frame, plan.task)
    labels = None
    if plan.class_factors is not None:
        _, raw = occurring_classes(special(frame, plan.task.target), frame.n_rows)
        labels = class_codes(raw, plan.schema.classes)
    weighed = plan.weigh(weights, labels)
    return Weighed() if weighed is None else Weighed.of(weighed)
