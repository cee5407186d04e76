"""Columns of dates and times of any library as numbers since 1970-01-01."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrow import as_array, pa
from branchwise.data.conventions.date_format import (
    EPOCH,
    FIRST_DAY,
    LAST_DAY,
    UNITS,
    DateFormat,
    as_utc,
)
from branchwise.errors import DataError

#: Numbers of a unit since 1970-01-01, NaN for missing, and which unit it is.
Dates = tuple[NDArray[np.float64], DateFormat]

_DAY = DateFormat("day")
_EPOCH_TIME = datetime(1970, 1, 1)
#: Units of NumPy that are whole days.
_DAYS = ("D", "W", "M", "Y")
_NAT = np.iinfo(np.int64).min
#: Beyond, not all whole numbers are exact.
_LARGEST = 2**53


def read_datetimes(what: str, values: NDArray[Any], zoned: bool = False) -> Dates:
    """Read an array of numpy's datetime64; with ``zoned`` they are those of UTC."""
    unit, _ = np.datetime_data(values.dtype)
    missing = np.isnat(values)
    if unit in _DAYS:
        days = values.astype("datetime64[D]").view(np.int64)
        return _numbers(what, days, missing, DateFormat("day", zoned))
    coarse = unit in ("h", "m", "s", "ms", "us", "generic")
    whole = values.astype("datetime64[us]")
    if coarse:
        # The conversion of years far away overflows.
        days = values.astype("datetime64[D]").view(np.int64)
        _check_years(what, days, missing)
    elif not coarse and (whole.astype(values.dtype) != values)[~missing].any():
        finer = (whole.astype(values.dtype) != values) & ~missing
        row = int(np.argmax(finer))
        raise DataError(
            f"{what} has the time {values[row]} in row {row}, which is no whole number "
            "of microseconds. Round the column to microseconds first.",
            row=row,
        )
    how = DateFormat("microsecond", zoned)
    return _numbers(what, whole.view(np.int64), missing, how)


def read_date_objects(what: str, cells: Sequence[Any]) -> Dates:
    """Read dates and times of Python, pandas and numpy; others are missing."""
    plain = [_plain(what, row, cell) for row, cell in enumerate(cells)]
    known = [row for row, cell in enumerate(plain) if cell is not None]
    zoned = [row for row in known if getattr(plain[row], "tzinfo", None) is not None]
    if zoned and len(zoned) < len(known):
        naive = min(set(known) - set(zoned))
        raise_zones(what, cells[zoned[0]], zoned[0], cells[naive], naive)
    missing = np.array([cell is None for cell in plain], dtype=bool)
    if not any(isinstance(cell, datetime) for cell in plain):
        days = [0 if cell is None else cell.toordinal() - EPOCH for cell in plain]
        return _numbers(what, np.array(days, dtype=np.int64), missing, _DAY)
    whole = np.array([0 if c is None else _microseconds(c) for c in plain], np.int64)
    return _numbers(what, whole, missing, DateFormat("microsecond", bool(zoned)))


def _plain(what: str, row: int, cell: Any) -> date | None:
    """Return a date of Python, of whatever library a cell is; None if it is missing."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell:
        return None
    if hasattr(cell, "to_timestamp"):  # a period of pandas, by its start
        cell = cell.to_timestamp(how="start")
    if isinstance(cell, np.datetime64):
        values, how = read_datetimes(what, np.array([cell]))
        return _EPOCH_TIME + timedelta(microseconds=int(values[0]) * how.step)
    if getattr(cell, "nanosecond", 0):
        raise DataError(
            f"{what} has the time {cell} in row {row}, which is no whole "
            "number of microseconds. Round the column to microseconds first.",
            row=row,
        )
    if hasattr(cell, "to_pydatetime"):
        plain: datetime = cell.to_pydatetime()
        return plain
    found: date = cell
    return found


def _microseconds(cell: date) -> int:
    if not isinstance(cell, datetime):
        return (cell.toordinal() - EPOCH) * UNITS["day"]
    naive = cell if cell.tzinfo is None else as_utc(cell)
    since = naive - _EPOCH_TIME
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def raise_zones(
    what: str, zoned: object, row: int, naive: object, other: int
) -> NoReturn:
    """Reject a column of times of which only some have a time zone."""
    raise DataError(
        f"{what} mixes times with a time zone ({zoned} in row {row}) and "
        f"without one ({naive} in row {other}). Give all of them a time "
        "zone, or none.",
        row=row,
    )


def read_arrow_dates(what: str, column: Any) -> Dates:
    """Read an Arrow column of dates or timestamps."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    name = {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}
    unit = "D" if pa.types.is_date(kind) else name[kind.unit]
    if pa.types.is_date64(kind):
        column = column.cast(pa.date32())
    width = pa.int32() if unit == "D" else pa.int64()
    whole = column.cast(width).cast(pa.int64())
    chunks = getattr(whole, "chunks", [whole])
    pieces = [as_array(chunk.fill_null(_NAT)) for chunk in chunks if len(chunk)]
    values = np.concatenate([np.empty(0, np.int64), *pieces])
    return read_datetimes(what, values.view(f"datetime64[{unit}]"), zoned)


def _numbers(
    what: str, whole: NDArray[np.int64], missing: NDArray[np.bool_], how: DateFormat
) -> Dates:
    """Return whole numbers of a unit as float64, if they are exact in it."""
    days = np.floor_divide(whole, UNITS["day"] // how.step)
    _check_years(what, days, missing)
    values = whole.astype(np.float64)
    beyond = (np.abs(whole) > _LARGEST) & (values.astype(np.int64) != whole)
    if (beyond & ~missing).any():
        row = int(np.argmax(beyond & ~missing))
        raise DataError(
            f"{what} has the time {how.show(int(whole[row]))} in row {row}, beyond "
            "the years 1684 to 2255, in which numbers of microseconds are exact. Make "
            "the column one of dates, or correct the row.",
            row=row,
        )
    values[missing] = math.nan
    return values, how


def _check_years(
    what: str, days: NDArray[np.int64], missing: NDArray[np.bool_]
) -> None:
    outside = ((days < FIRST_DAY) | (days > LAST_DAY)) & ~missing
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"{what} has a date outside of the years 1 to 9999 in row {row}. Correct "
            "the row, or make it missing.",
            row=row,
        )


def as_texts(
    values: NDArray[np.float64], how: DateFormat
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return the distinct dates as texts, sorted, and for each row which it has."""
    known = ~np.isnan(values)
    distinct, inverse = np.unique(values[known], return_inverse=True)
    shown = DateFormat(how.coarsest(distinct), how.zoned)
    texts = tuple(shown.show(each) for each in how.scaled(distinct, shown).tolist())
    codes = np.full(len(values), -1, dtype=np.int32)
    codes[known] = inverse
    return codes, texts


def arrow_of(moments: Sequence[Any]) -> Any:
    """Return an Arrow array of moments: of dates, if none has a time of day."""
    zone = "UTC" if any(moment.zoned for moment in moments) else None
    whole = [moment.microseconds for moment in moments]
    if zone is None and not any(moment.has_time for moment in moments):
        days = np.array([each // UNITS["day"] for each in whole], dtype=np.int32)
        return pa.array(days.tolist(), pa.int32()).cast(pa.date32())
    return pa.array(whole, pa.int64()).cast(pa.timestamp("us", zone))
