"""Dates in exports: cells to test with, and the bounds that thresholds are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from branchwise.data.conventions.date_format import DateFormat, read_text
from branchwise.errors import ExportError
from branchwise.export.plan import Field

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
