"""Single rows as tables and as codes, cells as plain values, results as dataframes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from branchwise.data.as_numbers import as_written
from branchwise.data.columns import LARGEST_EXACT, Numbers, RawColumn
from branchwise.data.encode import derived_frame
from branchwise.data.frames import Frame, is_sparse, open_table
from branchwise.data.series import column_arrays, is_of_pandas
from branchwise.data.table_schema import Column, Columns, Schema, Value
from branchwise.errors import ParameterError
from branchwise.threads import cached_property


def open_rows(X: object) -> Frame:
    """Open a table, or a single row: a dict of cells, a series, a list, an array.

    Examples
    --------
    >>> open_rows({"outlook": "sunny", "humidity": 70}).n_rows
    1
    >>> open_rows({"outlook": ["sunny", "rainy"], "humidity": [70, 80]}).n_rows
    2
    """
    return open_table(_as_table(X))


def as_table(X: Any) -> Any:
    """Return the table of a row that is named: a dict of cells, a series of pandas.

    Anything else is returned as it is: a list of cells or an array of one dimension may
    be a column as well as a row.
    """
    if isinstance(X, Mapping) and not is_sparse(X):
        return [X] if X and all(_is_cell(value) for value in X.values()) else X
    if is_of_pandas(X) and hasattr(type(X), "to_list"):
        row = row_of_series(X)
        return X if row is None else [row]
    return X


def row_of_series(series: Any) -> dict[str, Any] | None:
    """Return the cells of a series of pandas by name, if its index has names."""
    names = series.index.tolist()
    if not names or not all(isinstance(name, str) for name in names):
        return None
    row = dict(zip(names, series.to_list(), strict=True))
    return row if len(row) == len(names) else None


def _as_table(X: Any) -> Any:
    if isinstance(X, np.void) and X.dtype.names is not None:
        return [dict(zip(X.dtype.names, X.item(), strict=True))]
    if isinstance(X, Mapping) and not is_sparse(X):
        return [X] if X and all(_is_cell(value) for value in X.values()) else X
    if isinstance(X, (list, tuple)):
        return [list(X)] if X and all(_is_cell(value) for value in X) else X
    if isinstance(X, np.ndarray):
        return X.reshape(1, -1) if X.ndim == 1 and X.dtype.names is None else X
    if hasattr(X, "to_list") and hasattr(X, "name") and not hasattr(X, "columns"):
        return [_series_as_row(X)]
    return X


def _is_cell(value: object) -> bool:
    """Whether this is one value rather than several."""
    if value is None or isinstance(value, (str, bytes)):
        return True
    return not hasattr(value, "__len__") and np.ndim(value) == 0  # type: ignore[arg-type]


def _series_as_row(series: Any) -> Any:
    """Take a series for a row: by the names in its index, where it has some."""
    index = getattr(series, "index", None)
    names = list(index) if index is not None and not callable(index) else []
    cells = series.to_list()
    if names and all(isinstance(name, str) for name in names):
        return dict(zip(names, cells, strict=True))
    return cells


@dataclass(frozen=True)
class Cells:
    """The cells of a table as plain values, by the columns of a schema."""

    given: Frame
    schema: Schema

    @cached_property
    def frame(self) -> Frame:
        """The table, with the columns that are derived from dates."""
        return derived_frame(self.given, self.schema)

    @cached_property
    def _source(self) -> list[int]:
        """The position in the table of every column of the schema; -1 is absent."""
        if self.frame.named and self.schema.named:
            position = {name: index for index, name in enumerate(self.frame.names)}
            return [position.get(name, -1) for name in self.schema.names]
        return list(range(len(self.schema.columns)))

    @cached_property
    def _read(self) -> dict[int, RawColumn]:
        return {}

    def value(self, index: int, row: int) -> Value | None:
        """Return a cell of a column of the schema; None where it is missing.

        A date is a text, as in conditions.
        """
        if self._source[index] < 0:
            return None
        return self._cell(self._source[index], self.schema.columns[index], row)

    def column(self, index: int) -> NDArray[Any]:
        """Return the cells of a column of the schema: numbers, or objects.

        A missing number is NaN, a missing object is None.
        """
        column = self.schema.columns[index]
        if self._source[index] < 0:
            absent = np.nan if column.is_numeric else None
            return np.full(self.frame.n_rows, absent, type(absent))
        raw = as_written(column, self.frame.column(self._source[index]))
        if isinstance(raw, Numbers) and column.is_numeric and raw.date is None:
            return raw.values.astype(np.float64)
        values = [self.value(index, row) for row in range(self.frame.n_rows)]
        cells = np.empty(len(values), dtype=object)
        cells[:] = values
        return cells

    def row(self, row: int) -> dict[str, Value | None]:
        """Return all cells of a row, including columns that are not in the schema."""
        known = dict(zip(self._source, self.schema.columns, strict=True))
        return {
            known[at].name if at in known else name: self._cell(at, known.get(at), row)
            for at, name in enumerate(self.frame.names)
        }

    def _cell(self, at: int, column: Column | None, row: int) -> Value | None:
        if at not in self._read:
            raw = self.frame.column(at)
            self._read[at] = raw if column is None else as_written(column, raw)
        raw = self._read[at]
        if isinstance(raw, Numbers):
            number = float(raw.values[row])
            if np.isnan(number):
                return None
            if raw.date is not None:
                return raw.date.show(number)
            if column is None or column.is_numeric:
                feature = None if column is None else column.date_feature
                return number if feature is None else feature.show(number)
            code = column.code_of.get(number)
            return number if code is None else column.categories[code]
        code = int(raw.codes[row])
        return None if code < 0 else raw.values[code]


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

    :func:`~branchwise.data.encode.encode_columns` says what cells mean. A table of one
    row costs it a fraction of a millisecond, most of it for reading columns. The
    encoder takes only the rows whose cells are plain texts, numbers, booleans or
    missing, and fit the columns: for them it returns the same codes and numbers. It
    returns None for all others, such as those that are an error. Missing cells and
    unseen values are errors unless they are allowed.
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
        self._allow_missing = allow_missing
        self._allow_unseen = allow_unseen
        #: The names of the last table, and the positions of the columns in use.
        self._last: tuple[list[Any], list[int]] = ([], [])

    @cached_property
    def _codes(self) -> list[tuple[str, Callable[[Any], RowCell]]]:
        """Name and encoder of each column that the tree splits on."""
        columns = [self._schema.columns[index] for index in self._used]
        missing, unseen = self._allow_missing, self._allow_unseen
        return [
            (column.name, _number_encoder(missing, column.date is None))
            if column.is_numeric
            else (column.name, _code_encoder(column, missing, unseen))
            for column in columns
        ]

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
            last = names, [position[name] for name, _ in self._codes]
            self._last = last
        return last[1]


def _number_encoder(
    allow_missing: bool, allow_numbers: bool
) -> Callable[[Any], RowCell]:
    """Return the encoder of a column of numbers, or of dates, which are no numbers."""

    def encode(cell: Any) -> RowCell:
        if type(cell) in _NUMBERS:
            number = float(cell)
            # Beyond, integers are inexact; further numbers may be infinite.
            if -LARGEST_EXACT < number < LARGEST_EXACT and allow_numbers:
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


#: Libraries of dataframes; the first that is installed is the default.
LIBRARIES = ("pandas", "polars", "pyarrow")


def make_frame(columns: Mapping[str, Sequence[Any]], library: str | None = None) -> Any:
    """Build a dataframe of a library, by default the first that is installed."""
    allowed = ", ".join(repr(name) for name in LIBRARIES)
    if library is not None and library not in LIBRARIES:
        raise ParameterError(
            f"library must be {allowed} or None, which is the first of them that is "
            f"installed. Got {library!r} instead."
        )
    wanted = LIBRARIES if library is None else (library,)
    present = [name for name in wanted if find_spec(name) is not None]
    if not present:
        raise ParameterError(
            f"library must be installed to make its dataframes: {' or '.join(wanted)} "
            f"is not. Run pip install {wanted[0]}, or name another of {allowed}."
        )
    backend = cast("Literal['pandas', 'polars', 'pyarrow']", present[0])
    return nw.from_dict(dict(columns), backend=backend).to_native()


class Framed:
    """What is a table of columns can be a dataframe."""

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table as lists, a column each."""
        raise NotImplementedError

    def to_frame(self, library: str | None = None) -> Any:
        """Return the table as a dataframe.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"} or None
            The library that the dataframe is of; None is the first that is installed.

        Returns
        -------
        dataframe
            One row for each row of the table, with the names of its columns.
        """
        return make_frame(self.to_columns(), library)
