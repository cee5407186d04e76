"""Columns as codes or float64 numbers, and their conversion from Python objects."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import distinct
from branchwise.data.arrow import number_cells
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.table_schema import PLURAL, Value, ValueType, Written, value_type
from branchwise.errors import DataError, quoted

#: What to do with times of day and durations.
DATE_ADVICE = (
    "branchwise takes dates, text, categories, booleans and numbers. Turn it into a "
    "number (such as hours or days) or into text, or leave the column out."
)
#: Integers beyond this are not all exact in float64.
LARGEST_EXACT = 2**53


@dataclass(frozen=True)
class Coded:
    """Distinct values, and for each row the position of its value (-1: missing).

    ``declared`` values come from a category or dictionary type: their order is
    kept, and those that never occur stay possible.
    """

    codes: NDArray[np.integer[Any]]
    values: tuple[Value, ...]
    declared: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class Numbers:
    """float64 values with NaN for missing.

    ``number_format`` is how they are written where they come from, unless plainly; or
    which dates they are.
    """

    values: NDArray[np.float64]
    number_format: Written | None = None

    @property
    def date(self) -> DateFormat | None:
        """Which dates the numbers are, if they are dates."""
        how = self.number_format
        return how if isinstance(how, DateFormat) else None


RawColumn = Coded | Numbers


# A sample of so many rows has most values; the others are searched for in all rows.
_FIRST_ROWS = 4096


def present(raw: Coded) -> list[int]:
    """Return the codes that occur."""
    for codes in (raw.codes[:_FIRST_ROWS], raw.codes):
        # NumPy before 2 counts no unsigned codes of 64 bits.
        known = codes[codes >= 0].astype(np.intp, copy=False)
        seen = np.bincount(known, minlength=len(raw.values)) > 0
        if seen.all():
            break
    codes_seen: list[int] = np.flatnonzero(seen).tolist()
    return codes_seen


@dataclass(frozen=True)
class KeptColumn:
    """Reader of a column that has been read already."""

    raw: RawColumn

    def __call__(self) -> RawColumn:
        """Return the column."""
        return self.raw


def downcast_codes(raw: RawColumn) -> RawColumn:
    """Return a column with its codes, if any, in the smallest integer type."""
    if not isinstance(raw, Coded):
        return raw
    smallest = np.min_scalar_type(-max(len(raw.values), 1))
    return replace(raw, codes=raw.codes.astype(smallest, copy=False))


def as_value(what: str, value: Any) -> Value:
    """Convert a category to a plain Python value; intervals and dates become text.

    ``what`` is the name of the column in messages, such as ``Column 'age'``.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        # An enumeration of strings, too, is known by what it contains.
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise DataError(
                f"{what} has the category {shortened(value)}. Whole numbers must fit "
                "64 bits; pass such names as text."
            )
        return int(value)
    if isinstance(value, float):
        if not np.isfinite(value):
            raise DataError(
                f"{what} has {value} as a category. Categories must be text, "
                "booleans or finite numbers; make it a missing value or drop it."
            )
        return float(value)
    if hasattr(value, "isoformat") or hasattr(value, "closed"):
        # Dates and the intervals of pandas have one obvious name.
        return str(value)
    raise DataError(
        f"{what} has the category {shortened(value)} of type {type(value).__name__}. "
        "Categories must be text, booleans or numbers; convert them to text."
    )


def raise_dates(what: str, dtype: object) -> NoReturn:
    """Reject a column of times of day or durations."""
    raise DataError(f"{what} holds times or durations ({dtype}); {DATE_ADVICE}")


def check_no_dates(what: str, date: DateFormat | None) -> None:
    """Reject dates where numbers or classes are needed."""
    if date is not None:
        raise DataError(
            f"{what} holds dates, which can be attributes only. Turn them into numbers "
            "(such as the year or an age in days) or into text."
        )


def raise_inexact(what: str, value: int, row: int) -> NoReturn:
    """Reject an integer that float64 cannot hold."""
    raise DataError(
        f"{what} has the integer {shortened(value)} in row {row}, beyond 2**53, where "
        "float64 is no longer exact. If it is an identifier, leave it out or pass it "
        "as text.",
        row=row,
    )


def check_exact(what: str, values: NDArray[Any]) -> None:
    """Reject integers that float64 cannot hold: two of them might become one."""
    if values.size == 0 or values.dtype.itemsize < 8:
        return
    if values.max() > LARGEST_EXACT or values.min() < -LARGEST_EXACT:
        beyond = (values > LARGEST_EXACT) | (values < -LARGEST_EXACT)
        row = int(np.argmax(beyond))
        raise_inexact(what, int(values[row]), row)


def shortened(cell: object, limit: int = 40) -> str:
    """Format a cell for a message, truncated if it is long."""
    try:
        text = repr(cell)
    except ValueError:  # an integer of more digits than Python will print
        return "(thousands of digits)"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def check_mixed(what: str, values: tuple[Value, ...]) -> None:
    """Reject values of several types, which have no order."""
    types = {value_type(value) for value in values}
    if len(types) > 1:
        raise DataError(
            f"{what} mixes {' and '.join(sorted(PLURAL[t] for t in types))} as "
            f"categories: {quoted(values)}. Convert them to one type."
        )


# pandas' own missing values, recognised without importing pandas.
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}
# Columns from this length are encoded by identity if their first cells repeat.
_WORTH_NUMBERING = 1000
_SAMPLE = 1000
# numpy's dates, among which NaT is a missing value.
_NUMPY_TIMES = (np.datetime64, np.timedelta64)


def read_objects(what: str, column: Sequence[Any] | NDArray[Any]) -> RawColumn:
    """Read a column of Python objects."""
    repeated = read_repeated(what, column)
    if repeated is not None:
        return repeated
    cells = column.tolist() if isinstance(column, np.ndarray) else column
    return _read_cells(what, cells)


def read_repeated(what: str, column: Sequence[Any] | NDArray[Any]) -> RawColumn | None:
    """Read a column in which few objects, or numpy strings, occur many times.

    Only the distinct ones are checked. Returns None if there are too many, and if a
    cell is invalid: reading all of them gives the row.
    """
    if len(column) < _WORTH_NUMBERING or not _repeats(column[:_SAMPLE]):
        return None
    if not isinstance(column, np.ndarray):
        column = np.fromiter(column, dtype=object, count=len(column))
    numbered = number_cells(column)
    if numbered is None:
        return None
    codes, firsts = numbered
    try:
        distinct = _read_cells(what, column[firsts].tolist())
    except DataError:
        return None
    if isinstance(distinct, Numbers):
        return replace(distinct, values=distinct.values.take(codes))
    return Coded(distinct.codes.astype(np.int32).take(codes), distinct.values)


def _repeats(sample: Sequence[Any] | NDArray[Any]) -> bool:
    """Whether a sample has its objects, or texts of numpy, several times each."""
    if isinstance(sample, np.ndarray) and sample.dtype != object:
        return sample.dtype.kind == "U" and len(distinct(sample)) <= len(sample) // 4
    return len(set(map(id, sample))) <= len(sample) // 4


def _read_cells(what: str, cells: Sequence[Any]) -> RawColumn:
    families = {kind: _family(kind) for kind in set(map(type, cells))}
    others = {kind for kind, family in families.items() if family == "other"}
    if others:
        _raise_cells(what, cells, others)
    present = set(families.values()) - {"missing", "other"}
    for family in ("number", "date"):
        if family in present and len(present) > 1 and _only_missing(cells, family):
            present.discard(family)
    if len(present) > 1:
        _raise_mixture(what, cells, present)
    if present == {"number"}:
        return _read_numbers(what, cells)
    if present == {"date"}:
        from branchwise.data.conventions.dates import read_date_objects  # noqa: PLC0415  (few are)

        return Numbers(*read_date_objects(what, cells))
    return _factorize(what, cells)


def _family(kind: type) -> str:
    if kind.__name__ in _MISSING_TYPES:
        return "missing"
    if issubclass(kind, (bool, np.bool_)):
        return "boolean"
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, (date, np.datetime64)) or kind.__name__ == "Period":
        return "date"
    if issubclass(kind, np.timedelta64):
        return "other"
    # Decimal is a number that does not register as a Real.
    is_real = issubclass(kind, numbers.Real) or kind.__name__ == "Decimal"
    return "number" if is_real else "other"


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is any of the missing values, among them NaN."""
    if type(cell).__name__ == "Decimal":
        return bool(cell.is_nan())  # a signalling NaN cannot be compared
    return type(cell).__name__ in _MISSING_TYPES or cell != cell


def _only_missing(cells: Sequence[Any], family: str) -> bool:
    return all(is_missing(c) for c in cells if _family(type(c)) == family)


def _read_numbers(what: str, cells: Sequence[Any]) -> Numbers:
    values = np.fromiter(map(_as_float, cells), dtype=np.float64, count=len(cells))
    for row in np.flatnonzero(np.abs(values) >= LARGEST_EXACT).tolist():
        cell = cells[row]
        if isinstance(cell, numbers.Integral) and abs(int(cell)) > LARGEST_EXACT:
            raise_inexact(what, int(cell), row)
    return Numbers(values)


def _as_float(cell: Any) -> float:
    if is_missing(cell):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _factorize(what: str, cells: Sequence[Any]) -> Coded:
    position: dict[Any, int] = {}
    codes = np.fromiter(
        (position.setdefault(cell, len(position)) for cell in cells),
        dtype=np.int64,
        count=len(cells),
    )
    # Missing cells have codes of their own; renumber the others consecutively.
    values: list[Value] = []
    final = np.empty(len(position), dtype=np.int64)
    for cell, code in position.items():
        if is_missing(cell):
            final[code] = -1
        else:
            final[code] = len(values)
            values.append(as_value(what, cell))
    return Coded(final[codes] if position else codes, tuple(values))


def _raise_cells(what: str, cells: Sequence[Any], kinds: set[type]) -> None:
    """Reject the first cell of these types, if it is not numpy's NaT."""
    for row, cell in enumerate(cells):
        if type(cell) in kinds and not (
            isinstance(cell, _NUMPY_TIMES) and cell != cell
        ):
            _raise_cell(what, row, cell)


def _raise_cell(what: str, row: int, cell: Any) -> NoReturn:
    kind = type(cell)
    if isinstance(cell, (*_NUMPY_TIMES, timedelta)) or hasattr(kind, "isoformat"):
        advice = f"It is a time or a duration; {DATE_ADVICE}"
    elif issubclass(kind, (bytes, bytearray)):
        advice = "Decode it to text first."
    else:
        advice = (
            "A cell must be text, a number, a boolean or missing; convert the column "
            "first."
        )
    raise DataError(
        f"{what} has a cell of type {kind.__name__} in row {row}: {shortened(cell)}. "
        + advice,
        row=row,
    )


def _raise_mixture(what: str, cells: Sequence[Any], families: set[str]) -> NoReturn:
    first: dict[str, int] = {}
    for row, cell in enumerate(cells):
        family = _family(type(cell))
        if family in families and not is_missing(cell):
            first.setdefault(family, row)
    (one, row), (other, other_row) = sorted(first.items(), key=lambda item: item[1])[:2]
    raise DataError(
        f"{what} mixes {_plural(one)} ({shortened(cells[row])} in row {row}) and "
        f"{_plural(other)} ({shortened(cells[other_row])} in row {other_row}). Convert "
        "it to one type, for example all to text.",
        row=row,
    )


def _plural(family: str) -> str:
    return "dates" if family == "date" else PLURAL[cast("ValueType", family)]
