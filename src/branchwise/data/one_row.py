"""Single rows as tables, cells of rows as plain values, and results as dataframes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, cast

import narwhals as nw
import numpy as np

from branchwise.data.columns import Numbers, RawColumn
from branchwise.data.frames import Frame, open_table
from branchwise.data.series import is_of_pandas
from branchwise.data.table_schema import Column, Schema, Value
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
    if isinstance(X, Mapping):
        return [X] if X and all(_is_cell(value) for value in X.values()) else X
    if is_of_pandas(X) and hasattr(type(X), "to_list"):
        row = row_of_series(X)
        return X if row is None else [row]
    return X


def row_of_series(series: Any) -> dict[str, Any] | None:
    """Return the cells of a series of pandas by the names in its index, if it has them.

    The others count their rows in the index.
    """
    names = series.index.tolist()
    if not names or not all(isinstance(name, str) for name in names):
        return None
    row = dict(zip(names, series.to_list(), strict=True))
    return row if len(row) == len(names) else None


def _as_table(X: Any) -> Any:
    if isinstance(X, np.void) and X.dtype.names is not None:
        return [dict(zip(X.dtype.names, X.item(), strict=True))]
    if isinstance(X, Mapping):
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

    frame: Frame
    schema: Schema

    @cached_property
    def _source(self) -> list[int]:
        """The position in the table of every column of the schema."""
        if self.frame.named and self.schema.named:
            position = {name: index for index, name in enumerate(self.frame.names)}
            return [position[name] for name in self.schema.names]
        return list(range(len(self.schema.columns)))

    @cached_property
    def _read(self) -> dict[int, RawColumn]:
        return {}

    def value(self, index: int, row: int) -> Value | None:
        """Return a cell of a column of the schema; None where it is missing."""
        return self._cell(self._source[index], self.schema.columns[index], row)

    def row(self, row: int) -> dict[str, Value | None]:
        """Return all cells of a row, including columns that are not in the schema."""
        known = dict(zip(self._source, self.schema.columns, strict=True))
        return {
            known[at].name if at in known else name: self._cell(at, known.get(at), row)
            for at, name in enumerate(self.frame.names)
        }

    def _cell(self, at: int, column: Column | None, row: int) -> Value | None:
        if at not in self._read:
            self._read[at] = self.frame.column(at)
        raw = self._read[at]
        if isinstance(raw, Numbers):
            number = float(raw.values[row])
            if np.isnan(number):
                return None
            if column is None or column.is_numeric:
                return number
            code = column.code_of.get(number)
            return number if code is None else column.categories[code]
        code = int(raw.codes[row])
        return None if code < 0 else raw.values[code]


#: Libraries of dataframes; the first that is installed is the default.
LIBRARIES = ("pandas", "polars", "pyarrow")


def make_frame(columns: Mapping[str, Sequence[Any]], library: str | None = None) -> Any:
    """Build a dataframe from columns of equal length.

    Parameters
    ----------
    columns : dict of str to list
        The columns; None is a missing value.
    library : {"pandas", "polars", "pyarrow"} or None
        The library of the dataframe; None is the first that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
    """
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
