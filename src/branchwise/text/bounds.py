"""Bounds of whole numbers and of dates, as they are written."""

from __future__ import annotations

import math

from branchwise.data.table_schema import Column, Value

Bounds = Value | tuple[Value, ...]


def whole_bounds(
    op: str, value: float | tuple[float, float], column: Column
) -> tuple[str, Bounds]:
    """Return the sign and the value of a condition on whole numbers, or on dates.

    Those above 3 are ``>=`` 4, those above 3 and at most 7 ``from`` 4 to 7; if they are
    0 and 1 only, they are ``=``.
    """
    bounds = value if isinstance(value, tuple) else (value, value)
    above, at_most = (math.floor(bound) for bound in bounds)
    least = above + 1
    binary = column.number_kind == "binary" and column.date is None
    if op == "within":
        if least == at_most:
            return "=", shown(column, least)
        return "from", (shown(column, least), shown(column, at_most))
    if binary and at_most == 0:
        return "=", 0 if op == "<=" else 1
    if op == "<=":
        return op, shown(column, at_most)
    return ">=", shown(column, least)


def plain_value(
    column: Column | None, value: Bounds | None
) -> Value | list[Value] | None:
    """Return the value of a condition for JSON: dates as texts, several as a list."""
    if isinstance(value, tuple):
        return [shown(column, each) for each in value]
    return None if value is None else shown(column, value)


def shown(column: Column | None, value: Value) -> Value:
    """Return a value of a column as it is written: a number as the date that it is."""
    if column is None or isinstance(value, str):
        return value
    how = column.date or column.date_feature
    return value if how is None else how.show(float(value))
