"""Cells of a database as a finished model compares them, and counts of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.table_schema import PLURAL, Column
from branchwise.engines.cell_counts import CellCounts, TableCounts
from branchwise.engines.sql.source import SqlRows, SqlTable
from branchwise.engines.sql.table_columns import Cells
from branchwise.errors import DataError, ParameterError
from branchwise.files.sql_dates import derived_number
from branchwise.files.sql_dialects import Dialect

_KINDS = {"number": "number", "boolean": "truth", "text": "text"}
#: Types whose text is not what a table in memory has for them.
_OTHER_TEXT = ("TIME", "INTERVAL", "timestamp", "timetz", "time", "interval")


def check_table(table: object) -> SqlTable:
    """Reject what is no table of a database."""
    if not isinstance(table, SqlTable):
        raise ParameterError(
            f"source must be a SqlTable(database, table). Got {type(table).__name__}."
        )
    return table


def cell_of(rows: SqlRows, column: Column) -> str:
    """Return the expression for a cell as a model compares it; dates are dates."""
    cells = _cells(rows, column)
    if cells.kind == "number":
        return cells.number if column.date is None else cells.raw
    return cells.raw if cells.kind == "truth" else _text(rows, cells)


def _cells(rows: SqlRows, column: Column) -> Cells:
    """Return a column, which must hold what was learnt."""
    cells = rows.source.cells(column.name)
    kind = column.value_type or "text"
    if cells.kind != _KINDS[kind]:
        _raise_other(rows, cells, PLURAL[kind])
    wanted, got = column.date, cells.date
    if cells.kind == "number" and (
        (wanted is None) != (got is None)
        or (wanted is not None and got is not None and wanted.zoned != got.zoned)
    ):
        _raise_other(rows, cells, "numbers" if wanted is None else wanted.what)
    if cells.kind == "text" and cells.type.startswith(_OTHER_TEXT):
        raise DataError(
            f"Column {column.name!r} is of type {cells.type}, whose text depends on "
            "the database. Cast it to text in a query, for fitting and for predicting."
        )
    return cells


def _raise_other(rows: SqlRows, cells: Cells, learnt: str) -> None:
    raise DataError(
        f"Column {cells.name!r} was learnt as {learnt}, and {rows.connection.label} "
        f"has it as {cells.type or cells.kind}. Cast it in a query."
    )


def _text(rows: SqlRows, cells: Cells) -> str:
    dialect = rows.connection.dialect
    text = f"CAST({cells.raw} AS {dialect.types['t']})"
    marks = ", ".join(dialect.value(mark) for mark in rows.source.missing)
    return f"CASE WHEN {text} IN ({marks}) THEN NULL ELSE {text} END" if marks else text


def sql_counts(model: Any, table: object) -> TableCounts:
    """Count the cells that are missing, unseen or out of range, by one query."""
    used = list(model.used_columns)
    columns = [model.schema.columns[at] for at in used]
    with check_table(table).open() as rows:
        rows.check_names([column.given_as for column in columns])
        tests = [test for column in columns for test in _tests(rows, column)]
        found = [int(each) for each in _counted(rows, tests)]
    cells = [CellCounts(*found[at : at + 4]) for at in range(1, len(found), 4)]
    return TableCounts(found[0], dict(zip(used, cells, strict=True)))


#: Counts that one query computes; some databases have a limit of 1,664 columns.
_AT_A_TIME = 300


def _counted(rows: SqlRows, tests: Sequence[str]) -> Iterator[int]:
    """Yield the number of rows, and how many of them fulfil each condition."""
    sums = [f"COALESCE(SUM(CASE WHEN {t} THEN 1 ELSE 0 END), 0)" for t in tests]
    wanted = ["COUNT(*)", *sums]
    for first in range(0, len(wanted), _AT_A_TIME):
        chunk = wanted[first : first + _AT_A_TIME]
        query = f"SELECT {', '.join(chunk)} FROM {rows.source.relation} AS source"  # noqa: S608
        for each in rows.connection.fetch(query, (), "i" * len(chunk)):
            yield each[0]


def _tests(rows: SqlRows, column: Column) -> tuple[str, str, str, str]:
    """Return conditions: a cell is missing, unseen, below or above the range."""
    dialect = rows.connection.dialect
    cells = _derived_cells(rows, column) or _cells(rows, column)
    if not column.is_numeric:
        return _tests_of_values(cell_of(rows, column), column, dialect)
    missing, never = f"{cells.number} IS NULL", "1 = 0"
    seen = column.statistics
    if seen is None or seen.low is None or seen.high is None:
        return missing, never, never, never
    low, high = seen.low, seen.high
    if column.date is not None and cells.date is not None:
        low, high = _in_units(low, high, column.date, cells.date)
    below, above = dialect.number(low), dialect.number(high)
    return missing, never, f"{cells.number} < {below}", f"{cells.number} > {above}"


def _derived_cells(rows: SqlRows, column: Column) -> Cells | None:
    """Return what is derived from dates of a database, if the column is that."""
    feature = column.date_feature
    if feature is None:
        return None
    dates = Column(feature.of, "numeric", (), True, number_format=feature.date)
    raw = _cells(rows, dates).raw
    number = derived_number(rows.connection.dialect, raw, feature)
    if number is None:
        raise AssertionError("databases that are counted have functions of dates")
    return Cells(column.name, "number", number, number, raw)


def _in_units(
    low: float, high: float, learnt: DateFormat, stored: DateFormat
) -> tuple[float, float]:
    """Return the first and the last date of a range in the unit of a database."""
    first, end = int(low) * learnt.step, (int(high) + 1) * learnt.step
    return math.ceil(first / stored.step), math.ceil(end / stored.step) - 1


def _tests_of_values(
    cell: str, column: Column, dialect: Dialect
) -> tuple[str, str, str, str]:
    missing, never = f"{cell} IS NULL", "1 = 0"
    compared = cell
    if column.value_type in ("text", None):
        compared = dialect.text_column.format(f"({cell})")
    known = ", ".join(dialect.value(value) for value in column.categories)
    unseen = f"{compared} NOT IN ({known})" if known else f"{cell} IS NOT NULL"
    return missing, unseen, never, never
