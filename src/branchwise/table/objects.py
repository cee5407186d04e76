"""Columns of Python objects: find out what they hold, or say what is wrong.

Values of one family (text, booleans or numbers) with any kind of missing value
between them are taken; a mixture is an error, because guessing which family was
meant would be a silent repair.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError
from branchwise.table.raw import Coded, Numbers, RawColumn, check_exact
from branchwise.table.schema import PLURAL, Value, ValueType

# pandas' own missing values, recognised without importing pandas.
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}


def read_objects(name: str, column: Sequence[Any] | NDArray[Any]) -> RawColumn:
    """Read a column of Python objects."""
    cells = column.tolist() if isinstance(column, np.ndarray) else column
    families = {kind: _family(kind) for kind in set(map(type, cells))}
    unknown = [kind for kind, family in families.items() if family == "other"]
    if unknown:
        _refuse_cell(name, cells, unknown[0])
    present = {family for family in families.values() if family != "missing"}
    if "number" in present and len(present) > 1 and _only_nan(cells):
        present.discard("number")
    if len(present) > 1:
        _refuse_mixture(name, cells, present)
    if present == {"number"}:
        return _read_numbers(name, cells)
    return _factorize(cells)


def _family(kind: type) -> str:
    if kind.__name__ in _MISSING_TYPES:
        return "missing"
    if issubclass(kind, (bool, np.bool_)):
        return "boolean"
    if issubclass(kind, str):
        return "text"
    # Decimal is a number that does not register as a Real.
    is_real = issubclass(kind, numbers.Real) or kind.__name__ == "Decimal"
    return "number" if is_real else "other"


def _is_missing(cell: Any) -> bool:
    return type(cell).__name__ in _MISSING_TYPES or cell != cell


def _only_nan(cells: Sequence[Any]) -> bool:
    return all(_is_missing(c) for c in cells if _family(type(c)) == "number")


def _read_numbers(name: str, cells: Sequence[Any]) -> Numbers:
    integral = True
    values = np.empty(len(cells), dtype=np.float64)
    for row, cell in enumerate(cells):
        if _is_missing(cell):
            values[row] = np.nan
            continue
        if isinstance(cell, numbers.Integral):
            check_exact(name, np.array([cell], dtype=object), first_row=row)
        else:
            integral = False
        values[row] = float(cell)
    return Numbers(values, integral)


def _factorize(cells: Sequence[Any]) -> Coded:
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
        if _is_missing(cell):
            final[code] = -1
        else:
            final[code] = len(values)
            values.append(_plain(cell))
    return Coded(final[codes] if position else codes, tuple(values))


def _plain(cell: Any) -> Value:
    value: Value = bool(cell) if isinstance(cell, (bool, np.bool_)) else str(cell)
    return value


def _refuse_cell(name: str, cells: Sequence[Any], kind: type) -> None:
    row = next(i for i, cell in enumerate(cells) if type(cell) is kind)
    raise DataError(
        f"Column {name!r} has a cell of type {kind.__name__} in row {row}: "
        f"{_shortened(cells[row])}. A cell must be text, a number, a boolean or "
        "missing; convert the column first."
    )


def _refuse_mixture(name: str, cells: Sequence[Any], families: set[str]) -> None:
    first: dict[str, int] = {}
    for row, cell in enumerate(cells):
        family = _family(type(cell))
        if family in families and not _is_missing(cell):
            first.setdefault(family, row)
    (one, row), (other, other_row) = sorted(first.items(), key=lambda item: item[1])[:2]
    raise DataError(
        f"Column {name!r} mixes {_plural(one)} ({_shortened(cells[row])} in row {row}) "
        f"and {_plural(other)} ({_shortened(cells[other_row])} in row {other_row}). "
        "Convert the column to one type, for example all to text."
    )


def _plural(family: str) -> str:
    return PLURAL[cast("ValueType", family)]


def _shortened(cell: Any, limit: int = 40) -> str:
    text = repr(cell)
    return text if len(text) <= limit else text[: limit - 3] + "..."
