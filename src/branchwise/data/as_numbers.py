"""Texts and dates as the numbers of a column that was learnt from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from branchwise.data.columns import Coded, Numbers, RawColumn, present
from branchwise.data.conventions.date_format import DateFormat, read_text
from branchwise.data.conventions.number_format import NumberFormat, parse_texts
from branchwise.data.table_schema import PLURAL, Column, Value, value_type
from branchwise.errors import DataError


def as_written(column: Column, raw: RawColumn) -> RawColumn:
    """Return text as numbers where a column was learnt from numbers written so.

    A text that is not written so is left, and rejected as text is.
    """
    how = column.number_format
    if isinstance(how, DateFormat):
        return Numbers(_as_dates(column.name, how, raw), how)
    if not isinstance(how, NumberFormat) or isinstance(raw, Numbers):
        return raw
    if not all(isinstance(value, str) for value in raw.values):
        return raw
    numbers = parse_texts([str(value) for value in raw.values], how)
    if any(numbers[code] is None for code in present(raw)):
        wrong = [code for code in present(raw) if numbers[code] is None]
        row = int(np.argmax(np.isin(raw.codes, wrong)))
        raise DataError(
            f"Column {column.name!r} was learnt as numbers written as {how} but now "
            f"holds {raw.values[raw.codes[row]]!r} in row {row}. Write it as it was "
            "for fitting, or pass numbers.",
            row=row,
            column=column.name,
        )
    known = [np.nan if number is None else number for number in numbers]
    return Numbers(np.array([*known, np.nan], dtype=np.float64)[raw.codes])


def _as_dates(name: str, how: DateFormat, raw: RawColumn) -> NDArray[np.float64]:
    """Return dates, or texts that are dates, as numbers of a column."""
    if isinstance(raw, Coded):
        return _dates_of_texts(name, how, raw)
    known = ~np.isnan(raw.values)
    if raw.date is None:
        if known.any():
            row = int(np.argmax(known))
            _raise_other(name, how, f"numbers ({raw.values[row]:g}", row)
        return raw.values
    if raw.date.zoned != how.zoned and known.any():
        # Times that are missing have no time zone.
        row = int(np.argmax(known))
        shown = raw.date.show(raw.values[row])
        _raise_other(name, how, f"{raw.date.what} ({shown}", row)
    numbers: NDArray[np.float64] = raw.date.scaled(raw.values, how)
    return numbers


def _dates_of_texts(name: str, how: DateFormat, raw: Coded) -> NDArray[np.float64]:
    numbers = [_date(value, how) for value in raw.values]
    wrong = [code for code in present(raw) if numbers[code] is None]
    if wrong:
        row = int(np.argmax(np.isin(raw.codes, wrong)))
        value = raw.values[raw.codes[row]]
        _raise_other(name, how, f"{PLURAL[value_type(value)]} ({value!r}", row)
    known = [np.nan if number is None else number for number in numbers]
    found: NDArray[np.float64] = np.array([*known, np.nan])[raw.codes]
    return found


def _date(value: Value, how: DateFormat) -> float | None:
    return read_text(value, how) if isinstance(value, str) else None


def _raise_other(name: str, how: DateFormat, got: str, row: int) -> None:
    raise DataError(
        f"Column {name!r} was learnt as {how.what} written as {how} but now holds "
        f"{got} in row {row}). Write it as it was for fitting, or pass dates.",
        row=row,
        column=name,
    )


def check_numbers(name: str, raw: Numbers) -> None:
    """Reject dates for a column that was learnt as numbers."""
    known = ~np.isnan(raw.values)
    if raw.date is not None and known.any():
        row = int(np.argmax(known))
        raise DataError(
            f"Column {name!r} was learnt as numbers but now holds dates "
            f"({raw.date.show(raw.values[row])} in row {row}). Convert it to numbers, "
            "as it was for fitting.",
            row=row,
            column=name,
        )
