"""Dates in workbooks: days since the end of 1899; the time of day is a fraction."""

from __future__ import annotations

from datetime import datetime

from branchwise.data.conventions.date_features import DateFeature
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
    return (
        moment.replace(microsecond=0).isoformat(" ")
        if moment.microsecond
        else str(cell)
    )


def serial_cells(plan: Plan, row: Row) -> Row:
    """Return a row with the numbers of its dates."""
    return tuple(map(_serial_cell, plan.inputs, row))


def _serial_cell(field: Field, cell: Cell) -> Cell:
    if field.date is None or cell is None:
        return cell
    since = datetime.fromisoformat(str(cell)) - _EPOCH
    whole = since.days + _EPOCH_SERIAL
    return float(whole) if not since.seconds else whole + since.seconds / _DAY


def feature_code(feature: DateFeature, cell: str) -> str:
    """Return the formula of what is derived from a date."""
    formulas = {
        "year": "YEAR({0})",
        "month": "MONTH({0})",
        "day": "DAY({0})",
        "hour": "HOUR({0})",
        "minute": "MINUTE({0})",
        "quarter": "INT((MONTH({0})+2)/3)",
        "weekday": "WEEKDAY({0},2)",
    }
    if feature.on is None:
        return formulas[feature.feature].format(cell)
    on = datetime.fromisoformat(feature.on)
    if feature.feature == "age":
        return f"{(on - _EPOCH).days + _EPOCH_SERIAL}-INT({cell})"
    later = f"MONTH({cell})*32+DAY({cell})>{on.month * 32 + on.day}"
    return f"{on.year}-YEAR({cell})-IF({later},1,0)"


def date_code(date: DateFormat, cell: str) -> str:
    """Return the formula of the number that the tree compares with its thresholds."""
    if date.unit == "day":
        return f"INT({cell})-{_EPOCH_SERIAL}"
    seconds = f"ROUND(({cell}-{_EPOCH_SERIAL})*{_DAY},0)"
    step = UNITS[date.unit] // UNITS["second"]
    return seconds if step == 1 else f"INT({seconds}/{step})"
