"""Encoding of a single row without a table around it, for prediction one by one.

:func:`~branchwise.data.encode.encode_columns` says what cells mean. A table of one row
costs it a fraction of a millisecond, most of it for reading columns. The encoder here
takes only the rows whose cells are plain texts, numbers, booleans or missing, and fit
the columns: for them it returns the same codes and numbers. It returns None for all
others, such as those that are an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.columns import LARGEST_EXACT
from branchwise.data.one_row import row_of_series
from branchwise.data.series import column_arrays, is_of_pandas
from branchwise.data.table_schema import Column, Columns, Schema
from branchwise.threads import cached_property

#: A code, or a number of a numeric column.
RowCell = int | float

_INTEGERS = (int, *(np.dtype(code).type for code in "bBhHiIlLqQ"))
_FLOATS = frozenset({float, np.float64, np.float32})
_NUMBERS = _FLOATS | frozenset(_INTEGERS)
_BOOLEANS = frozenset({bool, np.bool_})
_PLAIN = frozenset({str, type(None)}) | _NUMBERS | _BOOLEANS


class _NotPlainError(Exception):
    """A cell that only the encoding of tables knows how to take, or to reject."""


class RowEncoder:
    """Encodes single rows for a tree that splits on the columns ``used``, ascending.

    Missing cells and unseen values are errors unless they are allowed.
    """

    def __init__(
        self,
        schema: Schema,
        used: Sequence[int],
        *,
        allow_missing: bool,
        allow_unseen: bool,
    ) -> None:
        self._schema = schema
        self._used = used
        self._names = schema.names
        self._allow_missing = allow_missing
        self._allow_unseen = allow_unseen
        #: The names of the last table, and the positions of the columns in use.
        self._last: tuple[list[Any], list[int]] = ([], [])

    @cached_property
    def _codes(self) -> list[tuple[str, Callable[[Any], RowCell]]]:
        """Name and encoder of each column that the tree splits on."""
        columns = [self._schema.columns[index] for index in self._used]
        return [(column.name, self._encoder(column)) for column in columns]

    def cells(self, X: Any) -> list[RowCell] | None:
        """Return the codes and numbers of the columns in use, if X is a plain row."""
        if not self._schema.named:
            return None
        kind = type(X)
        try:
            if kind is dict:
                return self._of_dict(X)
            if kind is list:
                is_row = len(X) == 1 and type(X[0]) is dict
                return self._of_dict(X[0]) if is_row else None
            if is_of_pandas(X):
                return self._of_pandas(X)
            if kind.__module__.startswith("polars") and hasattr(kind, "iter_rows"):
                return self._of_polars(X)
        except (KeyError, _NotPlainError):
            return None
        return None

    def columns(self, cells: Sequence[RowCell]) -> Columns:
        """Return the table of one row that has these cells."""
        data: list[NDArray[Any]] = [np.empty(0)] * len(self._schema.columns)
        for index, cell in zip(self._used, cells, strict=True):
            column = self._schema.columns[index]
            dtype = np.float64 if column.is_numeric else column.code_dtype
            data[index] = np.array([cell], dtype=dtype)
        return Columns(1, tuple(data))

    def _of_dict(self, row: Mapping[Any, Any]) -> list[RowCell] | None:
        if not _PLAIN.issuperset(map(type, row.values())):
            return None
        if set(map(type, row)) != {str}:
            return None
        for name in self._names:  # all of them, those that are not in use as well
            if name not in row:
                return None
        return [encode(row[name]) for name, encode in self._codes]

    def _of_pandas(self, X: Any) -> list[RowCell] | None:
        if X.ndim == 1:
            row = row_of_series(X)
            return None if row is None else self._of_dict(row)
        if not hasattr(type(X), "columns") or len(X) != 1:
            return None
        arrays = list(column_arrays(X))
        positions = self._positions(X.columns.tolist())
        return [
            encode(arrays[position][0])
            for position, (_, encode) in zip(positions, self._codes, strict=True)
        ]

    def _of_polars(self, X: Any) -> list[RowCell] | None:
        if len(X) != 1:
            return None
        row = X.row(0)
        return [
            encode(row[position])
            for position, (_, encode) in zip(
                self._positions(X.columns), self._codes, strict=True
            )
        ]

    def _positions(self, names: list[Any]) -> list[int]:
        """Return where the columns in use are, from the last time if the names are."""
        if set(map(type, names)) != {str}:
            raise _NotPlainError
        last = self._last
        if names != last[0]:
            position = {name: index for index, name in enumerate(names)}
            if len(position) < len(names):
                raise _NotPlainError
            positions = [position[name] for name in self._names]
            last = names, [positions[index] for index in self._used]
            self._last = last
        return last[1]

    def _encoder(self, column: Column) -> Callable[[Any], RowCell]:
        if column.is_numeric:
            return _number_encoder(self._allow_missing)
        return _code_encoder(column, self._allow_missing, self._allow_unseen)


def _number_encoder(allow_missing: bool) -> Callable[[Any], RowCell]:
    def encode(cell: Any) -> RowCell:
        if type(cell) in _NUMBERS:
            number = float(cell)
            # Beyond, integers are inexact; further numbers may be infinite.
            if -LARGEST_EXACT < number < LARGEST_EXACT:
                return number
            if number != number and allow_missing:
                return number
        elif cell is None and allow_missing:
            return math.nan
        raise _NotPlainError

    return encode


def _code_encoder(
    column: Column, allow_missing: bool, allow_unseen: bool
) -> Callable[[Any], RowCell]:
    code_of = column.code_of
    missing = column.missing_code if allow_missing else None
    unseen = column.unseen_code if allow_unseen else None
    kinds = {"text": frozenset({str}), "boolean": _BOOLEANS, "number": _NUMBERS}
    # A column without any known value takes all types.
    allowed = kinds[column.value_type] if column.value_type else _PLAIN

    def encode(cell: Any) -> RowCell:
        kind = type(cell)
        code = None
        if cell is None or (kind in _FLOATS and cell != cell):
            code = missing
        elif kind in allowed and (
            kind not in _NUMBERS or -LARGEST_EXACT < cell < LARGEST_EXACT
        ):
            code = code_of.get(cell, unseen)
        if code is None:
            raise _NotPlainError
        return code

    return encode
