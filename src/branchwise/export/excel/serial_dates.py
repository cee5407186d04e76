"""Dates in workbooks: days since the end of 1899; the time of day is a fraction."""

from __future__ import annotations

from datetime import datetime

from branchwise.data.conventions.date_format import UNITS, DateFormat
from branchwise.errors import ExportError
from branchwise.export.dates import moment_of_cell
from branchwise.export.plan import Cell, Field, Plan, Row

#: The number of 1970-01-01.
_EPOCH_SERIAL = 25_569
_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400
#: Before this day programs differ: to some, 1900 is a leap year.
FIRST, LAST = datetime(1900, 3, 1), datetime(9999, 12, 31, 23, 59, 59)


def check_dates_held(plan: Plan) -> None:
    """Reject dates with time zones or fractions of seconds, which no cell has."""
    for field in plan.fields:
        if field.date is None:
            continue
        if field.date.zoned or field.date.unit == "microsecond":
            what = "time zones" if field.date.zoned else "fractions of seconds"
            raise ExportError(
                f"Column {field.name!r} has times with {what}, and cells of a workbook "
                "have none. Round the times or leave the zone out and fit again, or "
                "export to another target."
            )


def cell_format(date: DateFormat) -> str:
    """Return the format of a column of dates, or of times."""
    return "yyyy-mm-dd" if date.unit == "day" else "yyyy-mm-dd hh:mm:ss"


def fitting_date(date: DateFormat, cell: Cell) -> str | None:
    """Return the date of a text as a cell can hold it, in whole seconds, or None."""
    moment = moment_of_cell(date, cell)
    if moment is None or not FIRST <= moment <= LAST:
        return None
    return moment.replace(microsecond=0).isoformat(" ")


def serial_cells(plan: Plan, row: Row) -> Row:
    """Return a row with the numbers of its dates."""
    return tuple(map(_serial_cell, plan.fields, row))


def _serial_cell(field: Field, cell: Cell) -> Cell:
    if field.date is None or cell is None:
        return cell
    since = datetime.fromisoformat(str(cell)) - _EPOCH
    whole = since.days + _EPOCH_SERIAL
    return float(whole) if not since.seconds else whole + since.seconds / _DAY


def date_code(date: DateFormat, cell: str) -> str:
    """Return the formula of the number that the tree compares with its thresholds."""
    if date.unit == "day":
        return f"INT({cell})-{_EPOCH_SERIAL}"
    seconds = f"ROUND(({cell}-{_EPOCH_SERIAL})*{_DAY},0)"
    step = UNITS[date.unit] // UNITS["second"]
    return seconds if step == 1 else f"INT({seconds}/{step})"
