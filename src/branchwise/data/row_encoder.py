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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Layout:
    """Names of a table, and the positions of the columns that are used."""

    names: list[Any]
    positions: list[int]


class RowEncoder:
    """Encodes single rows for a tree.

    Parameters
    ----------
    schema : Schema
        The columns that the tree was fitted with.
    used : sequence of int
        The columns that the tree splits on, ascending.
    allow_missing, allow_unseen : bool
        Whether missing cells, or unseen values, are no error.
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
        self._layout = _Layout([], [])

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
        layout = self._layout_of(X.columns.tolist())
        return [
            encode(arrays[position][0])
            for position, (_, encode) in zip(layout.positions, self._codes, strict=True)
        ]

    def _of_polars(self, X: Any) -> list[RowCell] | None:
        if len(X) != 1:
            return None
        row = X.row(0)
        layout = self._layout_of(X.columns)
        return [
            encode(row[position])
            for position, (_, encode) in zip(layout.positions, self._codes, strict=True)
        ]

    def _layout_of(self, names: list[Any]) -> _Layout:
        """Return where columns are, from the last time if the names are the same."""
        if set(map(type, names)) != {str}:
            raise _NotPlainError
        layout = self._layout
        if names != layout.names:
            position = {name: index for index, name in enumerate(names)}
            if len(position) < len(names):
                raise _NotPlainError
            positions = [position[name] for name in self._names]
            layout = _Layout(names, [positions[index] for index in self._used])
            self._layout = layout
        return layout

    def _encoder(self, column: Column) -> Callable[[Any], RowCell]:
        encode = _number_encoder() if column.is_numeric else _code_encoder(column)
        missing, unseen = column.missing_code, column.unseen_code
        if column.is_numeric:
            return encode if self._allow_missing else _known_number(encode)
        refused = set()
        if not self._allow_missing:
            refused.add(missing)
        if not self._allow_unseen:
            refused.add(unseen)
        return _without(encode, frozenset(refused)) if refused else encode


def _number_encoder() -> Callable[[Any], RowCell]:
    def encode(cell: Any) -> RowCell:
        if type(cell) in _NUMBERS:
            number = float(cell)
            # Beyond, integers are inexact; further numbers may be infinite.
            if number != number or -LARGEST_EXACT < number < LARGEST_EXACT:
                return number
        elif cell is None:
            return math.nan
        raise _NotPlainError

    return encode


def _code_encoder(column: Column) -> Callable[[Any], RowCell]:
    code_of, unseen, missing = column.code_of, column.unseen_code, column.missing_code
    kinds = {"text": frozenset({str}), "boolean": _BOOLEANS, "number": _NUMBERS}
    # A column without any known value takes all types.
    allowed = kinds[column.value_type] if column.value_type else _PLAIN

    def encode(cell: Any) -> RowCell:
        kind = type(cell)
        if cell is None or (kind in _FLOATS and cell != cell):
            return missing
        if kind not in allowed:
            raise _NotPlainError
        if kind in _NUMBERS and not -LARGEST_EXACT < cell < LARGEST_EXACT:
            raise _NotPlainError
        return code_of.get(cell, unseen)

    return encode


def _known_number(encode: Callable[[Any], RowCell]) -> Callable[[Any], RowCell]:
    def known(cell: Any) -> RowCell:
        number = encode(cell)
        if number != number:
            raise _NotPlainError
        return number

    return known


def _without(
    encode: Callable[[Any], RowCell], refused: frozenset[RowCell]
) -> Callable[[Any], RowCell]:
    def allowed(cell: Any) -> RowCell:
        code = encode(cell)
        if code in refused:
            raise _NotPlainError
        return code

    return allowed
