"""Dates of a table in a database as numbers since 1970-01-01."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from branchwise.data.conventions.date_format import UNITS, DateFormat
from branchwise.data.table_schema import Column
from branchwise.files.sql_dialects import DUCKDB, Dialect

_DAYS = frozenset(("DATE", "date"))
_TIMES = frozenset(
    (
        *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        *("TIMESTAMP WITH TIME ZONE", "timestamp", "timestamptz"),
    )
)
_ZONED = frozenset(("TIMESTAMP WITH TIME ZONE", "timestamptz"))


def is_date(type_name: str) -> bool:
    """Whether a column type is one of dates, or of times of some day."""
    return type_name in _DAYS or type_name in _TIMES


def as_read(column: Column, date: DateFormat, type_name: str) -> tuple[Column, int]:
    """Return a column of dates as those of files and frames are read.

    These are days or microseconds, how many to a unit is returned, too. Summaries are
    of these numbers, so that bins are the same in all engines.
    """
    read = date if type_name in _DAYS else replace(date, unit="microsecond")
    seen = column.statistics
    seen = None if seen is None else seen.scaled(date, read)
    column = replace(column, number_format=read, statistics=seen)
    return column, date.step // read.step


def date_expression(
    dialect: Dialect, raw: str, type_name: str, all_true: Callable[[str], bool]
) -> tuple[str, str, DateFormat]:
    """Return the number of a date, its test of being inexact, and its unit.

    The unit is the coarsest one that all rows allow; ``all_true`` tells whether a
    condition holds in all rows where it is known.
    """
    if type_name in _DAYS:
        return dialect.double(f"({raw} - DATE '1970-01-01')"), "1 = 0", DateFormat()
    whole = f"CAST(ROUND(EXTRACT(EPOCH FROM {raw}) * 1000000) AS bigint)"
    if dialect is DUCKDB:
        whole = f"epoch_us({raw})"
    zoned = type_name in _ZONED
    for unit, step in UNITS.items():
        if unit == "day" and zoned:  # a day of one time zone is none of another
            continue
        if step == 1 or all_true(f"{whole} % {step} = 0"):
            break
    inexact = f"{whole} > {2**53} OR {whole} < -{2**53}" if step == 1 else "1 = 0"
    # Quotients of whole numbers are whole, because there is no remainder.
    units = f"{whole} // {step}" if dialect is DUCKDB else f"{whole} / {step}"
    return dialect.double(f"({units})"), inexact, DateFormat(unit, zoned)
