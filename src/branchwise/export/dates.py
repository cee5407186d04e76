"""Dates in exports: cells to test with, and the bounds that thresholds are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

from branchwise.data.conventions.date_features import DateFeature
from branchwise.data.conventions.date_format import (
    EPOCH,
    FIRST_DAY,
    LAST_DAY,
    UNITS,
    DateFormat,
    read_text,
)
from branchwise.errors import ExportError
from branchwise.export.plan import Field
from branchwise.files.sql_dates import derived_number
from branchwise.files.sql_dialects import Dialect

_EPOCH = datetime(1970, 1, 1)
#: Dates that other languages may read in their own way.
_DATES = ("0001-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "9999-12-31")


def first_above(date: DateFormat, threshold: float) -> str:
    """Return the first date, or time, above a threshold.

    A date is above it if it is not before that one, whatever its time of day.
    """
    return date.show(math.floor(threshold) + 1)


def units_note(field: Field) -> str:
    """Say what the number of a date is, where dates are given as numbers."""
    if field.date is None:
        return ""
    zone = " UTC" if field.date.zoned else ""
    return f": {field.date.unit}s since 1970-01-01{zone}"


def number_of(date: DateFormat, cell: object) -> float:
    """Return the number of a date that is written as text; NaN if it is missing."""
    number = math.nan if cell is None else read_text(str(cell), date)
    if number is None:
        raise ExportError(f"{cell!r} is no date that the model can take.")
    return number


def moment_of_cell(date: DateFormat, cell: object) -> datetime | None:
    """Return the time that a text is, by itself or with the time zone UTC."""
    if cell is None:
        return None
    finest = DateFormat("microsecond", date.zoned)
    moment = _EPOCH + timedelta(microseconds=number_of(finest, cell))
    return moment.replace(tzinfo=UTC) if date.zoned else moment


def date_cells(date: DateFormat, thresholds: Sequence[float]) -> list[str]:
    """Return dates around thresholds, also times within the units next to them."""
    zone = "Z" if date.zoned else ""
    cells = [f"{text} 00:00Z" if date.zoned else text for text in _DATES]
    for threshold in thresholds:
        whole = math.floor(threshold)
        for near in (whole - 1, whole, whole + 1):
            try:
                first = _EPOCH + timedelta(microseconds=near * date.step)
                cells.append(f"{first.isoformat(' ')}{zone}")
                if date.step > 1:
                    last = first + timedelta(microseconds=date.step - 1)
                    cells.append(f"{last.isoformat(' ')}{zone}")
            except OverflowError:  # beside the first or the last date
                continue
        cells.append(date.show(whole))
    return cells


#: Years of random dates, and how many of them there are.
_YEARS = (1905, 2090)
_MANY = 400


def random_dates(date: DateFormat, random: Random) -> list[str]:
    """Return dates, or times, of all months, weekdays and hours."""
    first, last = (day_of(f"{year}-01-01") for year in _YEARS)
    per_day = UNITS["day"] // date.step
    moments = range(first * per_day, last * per_day)
    return [date.show(random.choice(moments)) for _ in range(_MANY)]


def dates_of_age(
    date: DateFormat, feature: DateFeature, thresholds: Sequence[float]
) -> list[str]:
    """Return the dates around those that have an age on a given day."""
    if feature.on is None:
        return []
    on, per_day = datetime.fromisoformat(feature.on), UNITS["day"] // date.step
    days: list[int] = []
    for threshold in map(math.floor, thresholds):
        of_age = day_of(feature.on) - threshold
        if feature.feature == "age_years":
            year = min(max(on.year - threshold, 1), 9999)
            of_age = day_of(f"{year:04}-{on.month:02}-{min(on.day, 28):02}")
        days += range(of_age - 3, of_age + 4)
    return [date.show(day * per_day) for day in days if FIRST_DAY <= day <= LAST_DAY]


def day_of(text: str) -> int:
    """Return the day since 1970-01-01 of a date."""
    return datetime.fromisoformat(text).toordinal() - EPOCH


def derived_column(dialect: Dialect, field: Field, column: str) -> str:
    """Return the number that SQL derives from a column of dates."""
    found = field.feature and derived_number(dialect, column, field.feature)
    if found is None:
        raise ExportError(
            f"Column {field.name!r} is derived from dates ({field.feature}), for which "
            f"the dialect {dialect.name!r} has no functions that every database has. "
            "Choose another dialect (duckdb, postgresql, spark, sqlite)."
        )
    return dialect.number_column.format(found)
