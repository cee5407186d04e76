"""Columns of Python objects: find out what they hold, or say what is wrong.

Values of one family (text, booleans or numbers) with any kind of missing value
between them are taken; a mixture is an error, because guessing which family was
meant would be a silent repair.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from branchwise.arrays import distinct
from branchwise.errors import DataError
from branchwise.table.raw import (
    DATE_ADVICE,
    LARGEST_EXACT,
    Coded,
    Numbers,
    RawColumn,
    as_value,
    refuse_inexact,
    shortened,
)
from branchwise.table.schema import PLURAL, Value, ValueType
from branchwise.table.text import number_cells

# pandas' own missing values, recognised without importing pandas.
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}
# A column this long is numbered if its first cells repeat themselves.
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
    """Read a column that has the same few objects, or texts of numpy, many times.

    Only the distinct ones are looked at. Returns None if there are too many, and
    if something is wrong with a cell: looking at all of them tells in which row.
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
        return Numbers(distinct.values.take(codes))
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
        _refuse_cells(what, cells, others)
    present = set(families.values()) - {"missing", "other"}
    if "number" in present and len(present) > 1 and _only_nan(cells):
        present.discard("number")
    if len(present) > 1:
        _refuse_mixture(what, cells, present)
    if present == {"number"}:
        return _read_numbers(what, cells)
    return _factorize(what, cells)


def _family(kind: type) -> str:
    if kind.__name__ in _MISSING_TYPES:
        return "missing"
    if issubclass(kind, (bool, np.bool_)):
        return "boolean"
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, _NUMPY_TIMES):
        return "other"
    # Decimal is a number that does not register as a Real.
    is_real = issubclass(kind, numbers.Real) or kind.__name__ == "Decimal"
    return "number" if is_real else "other"


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is any of the missing values, among them NaN."""
    if type(cell).__name__ == "Decimal":
        return bool(cell.is_nan())  # a signalling NaN cannot be compared
    return type(cell).__name__ in _MISSING_TYPES or cell != cell


def _only_nan(cells: Sequence[Any]) -> bool:
    return all(is_missing(c) for c in cells if _family(type(c)) == "number")


def _read_numbers(what: str, cells: Sequence[Any]) -> Numbers:
    values = np.fromiter(map(_as_float, cells), dtype=np.float64, count=len(cells))
    for row in np.flatnonzero(np.abs(values) >= LARGEST_EXACT).tolist():
        cell = cells[row]
        if isinstance(cell, numbers.Integral) and abs(int(cell)) > LARGEST_EXACT:
            refuse_inexact(what, int(cell), row)
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
    # Missing cells have got codes of their own; close the gaps they leave.
    values: list[Value] = []
    final = np.empty(len(position), dtype=np.int64)
    for cell, code in position.items():
        if is_missing(cell):
            final[code] = -1
        else:
            final[code] = len(values)
            values.append(as_value(what, cell))
    return Coded(final[codes] if position else codes, tuple(values))


def _refuse_cells(what: str, cells: Sequence[Any], kinds: set[type]) -> None:
    """Refuse the first cell of these types, if it is not numpy's NaT."""
    for row, cell in enumerate(cells):
        if type(cell) in kinds and not (
            isinstance(cell, _NUMPY_TIMES) and cell != cell
        ):
            _refuse_cell(what, row, cell)


def _refuse_cell(what: str, row: int, cell: Any) -> NoReturn:
    kind = type(cell)
    if isinstance(cell, (*_NUMPY_TIMES, timedelta)) or hasattr(kind, "isoformat"):
        advice = f"It is a date or a time; {DATE_ADVICE}"
    elif issubclass(kind, (bytes, bytearray)):
        advice = "Decode it to text first."
    else:
        advice = (
            "A cell must be text, a number, a boolean or missing; convert the column "
            "first."
        )
    raise DataError(
        f"{what} has a cell of type {kind.__name__} in row {row}: {shortened(cell)}. "
        + advice
    )


def _refuse_mixture(what: str, cells: Sequence[Any], families: set[str]) -> NoReturn:
    first: dict[str, int] = {}
    for row, cell in enumerate(cells):
        family = _family(type(cell))
        if family in families and not is_missing(cell):
            first.setdefault(family, row)
    (one, row), (other, other_row) = sorted(first.items(), key=lambda item: item[1])[:2]
    raise DataError(
        f"{what} mixes {_plural(one)} ({shortened(cells[row])} in row {row}) and "
        f"{_plural(other)} ({shortened(cells[other_row])} in row {other_row}). Convert "
        "it to one type, for example all to text."
    )


def _plural(family: str) -> str:
    return PLURAL[cast("ValueType", family)]
