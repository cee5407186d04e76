"""What columns and their values are called by their labels."""

from __future__ import annotations

from branchwise.data.descriptions import ColumnLabel
from branchwise.data.table_schema import Column, Value


def title_of(column: Column | None, name: str) -> str:
    """Return what a column is called, by its name where it is not known."""
    label = None if column is None else column.label
    return (None if label is None else label.title) or name


def called(column: Column | None, value: Value, with_unit: bool = True) -> Value:
    """Return what a value is called, a number with its unit; else as it is."""
    if column is None or column.label is None:
        return value
    label: ColumnLabel = column.label
    if column.is_numeric:
        if not label.unit or not with_unit or isinstance(value, str):
            return value  # a date is a text already
        return f"{_number(value)} {label.unit}"
    code = column.code_of.get(value)
    if code is None or not label.words:
        return value
    return label.words[code] or value


def _number(value: float) -> str:
    """Write a number so that reading it back gives the very same number."""
    return str(value) if isinstance(value, int) else repr(value).removesuffix(".0")


def values_called(
    column: Column, op: str, value: Value | tuple[Value, ...] | None
) -> Value | tuple[Value, ...] | None:
    """Return what the values of a condition are called; the unit comes last."""
    if not isinstance(value, tuple):
        return None if value is None else called(column, value)
    if op in ("within", "from"):
        above, at_most = value
        return called(column, above, with_unit=False), called(column, at_most)
    return tuple(called(column, each) for each in value)
