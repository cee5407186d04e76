"""Tables of any supported type as :class:`Frame`.

A table is a pandas, polars or pyarrow frame (through narwhals, importing none of them),
a numpy array, a dict of columns, a list of dicts or of rows.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrow import (
    declares_values,
    merges_case,
    na_values_of,
    written_format,
)
from branchwise.data.columns import (
    Coded,
    Numbers,
    RawColumn,
    check_no_dates,
)
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.series import (
    column_arrays,
    is_of_pandas,
    pandas_reader,
    series_reader,
    vector_reader,
)
from branchwise.data.table_schema import Written
from branchwise.errors import DataError, quoted

_SMALL = 1000  # smaller integers may be used as codes
#: The most bytes that the columns of a sparse matrix may take.
_MOST_BYTES = 2**35


@dataclass(frozen=True)
class Frame:
    """A table whose columns are read on demand.

    ``names`` are the user's own if ``named``, else x0, x1, ... ``merge_case`` says that
    spellings of a value were merged, ``na_values`` which cells of its file are missing.
    """

    names: tuple[str, ...]
    n_rows: int
    named: bool
    readers: tuple[Callable[[], RawColumn], ...]
    merge_case: bool = False
    na_values: tuple[str, ...] | None = None

    def column(self, index: int) -> RawColumn:
        """Read one column."""
        return self.readers[index]()


def unread() -> RawColumn:
    """Stand for the reader of a column that is not needed."""
    raise AssertionError("this column is not read")


def open_table(X: object) -> Frame:
    """Return the frame of a table of any supported type."""
    if isinstance(X, Frame):
        return X
    if isinstance(X, np.ndarray):
        return _from_array(X)
    if isinstance(X, type):
        raise DataError(f"X must be a table. Got the class {X.__name__} instead.")
    if hasattr(X, "toarray"):
        return _from_sparse(X)
    if isinstance(X, Mapping):
        return _from_columns(X)
    if isinstance(X, (list, tuple)):
        return _from_rows(X)
    if is_of_pandas(X) and hasattr(type(X), "items") and hasattr(type(X), "columns"):
        return _from_pandas(X)
    frame = _as_dataframe(X)
    if frame is None:
        return _from_foreign(X)
    try:
        names = tuple(str(name) for name in frame.columns)
    except UnicodeDecodeError as error:
        raise DataError(
            f"X has a column name that is not UTF-8 text: {error.object!r}. Rename the "
            "columns."
        ) from None
    _check_names(names)
    native = frame.to_native()
    declared = _declared_columns(native, len(names))
    formats = _number_formats(native, len(names))
    in_arrow = type(native).__module__.startswith("pyarrow")
    readers = tuple(
        series_reader(_column(name), series, fixed, number_format)
        for name, series, fixed, number_format in zip(
            names, frame.iter_columns(), declared, formats, strict=True
        )
    )
    merged = in_arrow and merges_case(native)
    na_values = na_values_of(native) if in_arrow else None
    return Frame(names, len(frame), True, readers, merged, na_values)


def _from_pandas(table: Any) -> Frame:
    names = tuple(str(name) for name in table.columns)
    _check_names(names)
    readers = tuple(
        pandas_reader(_column(name), table, index, array)
        for index, (name, array) in enumerate(
            zip(names, column_arrays(table), strict=True)
        )
    )
    return Frame(names, len(table), named=True, readers=readers)


def _declared_columns(table: Any, n_columns: int) -> list[bool]:
    """Tell which columns of an Arrow table have dictionaries of declared values."""
    if not type(table).__module__.startswith("pyarrow"):
        return [False] * n_columns
    return [declares_values(field) for field in table.schema]


def _number_formats(table: Any, n_columns: int) -> list[Written | None]:
    """Return how the numbers of an Arrow table are written in their file."""
    if not type(table).__module__.startswith("pyarrow"):
        return [None] * n_columns
    return [_number_format(written_format(field)) for field in table.schema]


def _number_format(written: str | None) -> Written | None:
    # Metadata of files that others wrote may be anything.
    with suppress(ValueError, TypeError, AttributeError):
        given = json.loads(written or "null")
        if "of" in given:
            from branchwise.data.conventions.date_features import DateFeature  # noqa: PLC0415

            return DateFeature.of_fields(given)
        return (DateFormat if "unit" in given else NumberFormat).of(given)
    return None


def read_vector(values: object, name: str) -> RawColumn:
    """Read a single column of any supported type."""
    return vector_reader(_column(name), _as_sized(_column(name), values))()


def read_labels(y: object) -> RawColumn:
    """Read the labels, called y in messages."""
    small = None if isinstance(y, (Coded, Numbers)) else _read_small_integers(y)
    return small if small is not None else read_quantities(y)


def read_quantities(y: object) -> RawColumn:
    """Read a regression target: integers are numbers, not classes."""
    read = isinstance(y, (Coded, Numbers))
    raw = y if read else vector_reader("y", _as_sized("y", y))()
    check_no_dates("y", raw.date if isinstance(raw, Numbers) else None)
    return raw  # type: ignore[return-value]


def _read_small_integers(values: Any) -> Coded | None:
    """Use small integers, common as labels, as codes; None for anything else."""
    dtype = getattr(values, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        return None
    if isinstance(values, np.ma.MaskedArray) or np.ndim(values) != 1 or not len(values):
        return None
    whole = np.asarray(values)
    least, largest = int(whole.min()), int(whole.max())
    if not 0 <= least <= largest < _SMALL:
        return None
    if whole.dtype.kind == "u":
        whole = whole.astype(np.intp)  # NumPy 1 does not index with all integer types
    return Coded(whole, tuple(range(largest + 1)))


def _column(name: str) -> str:
    return f"Column {name!r}"


def _as_dataframe(X: object) -> nw.DataFrame[Any] | None:
    """Return a frame that narwhals knows, or None."""
    try:
        native: Any = nw.from_native(X, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError:
        native = None
    if native is None:
        names: Any = getattr(X, "column_names", None) or getattr(X, "columns", ())
        _check_names([str(name) for name in names])
    if isinstance(native, nw.LazyFrame):
        raise DataError(
            "X is a lazy frame, and branchwise needs its values. Compute it first: "
            "X.collect() in polars, X.compute() in Dask."
        )
    if isinstance(native, nw.Series):
        raise DataError(
            "X must be a table of one or more columns. Expected 2D array, got 1D "
            "array instead. Reshape your data: {'name': X} is a table of one column."
        )
    return native if isinstance(native, nw.DataFrame) else None


def _from_foreign(X: object) -> Frame:
    """Open an object that narwhals does not support by its Arrow or numpy interface."""
    if hasattr(X, "__arrow_c_stream__"):
        import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

        return open_table(pa.table(X))
    if hasattr(X, "__array__"):
        return _from_array(np.asarray(X))
    advice = ""
    if isinstance(X, (str, os.PathLike)):
        advice = " To read a file, pass the name of its target column as y."
    raise DataError(
        "X must be a pandas, polars or pyarrow table, a numpy array, a dict of "
        f"columns or a list of dicts. Got {type(X).__name__} instead.{advice}"
    )


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        repeated = [name for name, times in Counter(names).items() if times > 1]
        raise DataError(
            f"X has more than one column named {quoted(repeated)}. Column names must "
            "differ; rename or drop the others."
        )


def _from_array(X: NDArray[Any]) -> Frame:
    if not isinstance(X, np.ma.MaskedArray):
        X = np.asarray(X)  # a matrix stays 2D when a column is taken
    if X.dtype.names is not None:
        return _from_columns({name: X[name] for name in X.dtype.names})
    if X.ndim != 2:
        advice = (
            "X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
            if X.ndim < 2
            else "X.reshape(len(X), -1) has one row for each case"
        )
        raise DataError(
            f"X must be a table. Expected 2D array, got {X.ndim}D array instead. "
            f"Reshape your data: {advice}."
        )
    return _without_names(len(X), [X[:, index] for index in range(X.shape[1])])


def is_sparse(X: object) -> bool:
    """Whether this is a sparse matrix of scipy; some of these are mappings."""
    return hasattr(X, "toarray") and hasattr(X, "tocsc")


def _from_sparse(X: Any) -> Frame:
    """Open a sparse matrix of scipy: what it does not store is 0, not missing."""
    if not is_sparse(X):
        raise DataError(
            f"X is a sparse matrix of type {type(X).__name__}; branchwise takes those "
            "of scipy. Sparse data must be made dense first: X.toarray()."
        )
    if X.ndim != 2:
        raise DataError(
            f"X must be a table. Expected 2D array, got {X.ndim}D array instead. "
            "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) "
            "if it is one row."
        )
    n_rows, n_columns = X.shape
    size = n_rows * n_columns * np.dtype(np.float64).itemsize
    if size > _MOST_BYTES:
        raise DataError(
            f"X is a sparse matrix of {n_rows:,} rows and {n_columns:,} columns, whose "
            f"columns would take {size / 1e9:,.0f} GB in memory, more than "
            f"{_MOST_BYTES / 1e9:,.0f} GB. Choose columns, or reduce their number."
        )
    stored = X.tocsc()
    if not stored.has_canonical_format:  # cells may be stored as several summands
        stored = stored.copy()
        stored.sum_duplicates()

    def reader(index: int) -> Callable[[], RawColumn]:
        begin, end = stored.indptr[index : index + 2]

        def read() -> RawColumn:
            cells = np.zeros(n_rows, dtype=stored.dtype)
            cells[stored.indices[begin:end]] = stored.data[begin:end]
            return vector_reader(_column(f"x{index}"), cells)()

        return read

    names = tuple(f"x{index}" for index in range(n_columns))
    return Frame(names, n_rows, False, tuple(map(reader, range(n_columns))))


def _without_names(n_rows: int, vectors: Sequence[Any]) -> Frame:
    names = tuple(f"x{index}" for index in range(len(vectors)))
    return Frame(names, n_rows, named=False, readers=_readers(names, vectors))


def _readers(
    names: Sequence[str], vectors: Sequence[Any]
) -> tuple[Callable[[], RawColumn], ...]:
    return tuple(
        vector_reader(_column(name), vector)
        for name, vector in zip(names, vectors, strict=True)
    )


def _from_columns(columns: Mapping[Any, Any]) -> Frame:
    names = tuple(str(name) for name in columns)
    _check_names(names)
    vectors = [
        _as_sized(_column(name), vector)
        for name, vector in zip(names, columns.values(), strict=True)
    ]
    lengths = [len(vector) for vector in vectors]
    for name, length in zip(names, lengths, strict=True):
        if length != lengths[0]:
            raise DataError(
                f"Columns must have the same length. Got {lengths[0]:,} rows in "
                f"{names[0]!r} and {length:,} in {name!r}; give every column one "
                "value for each row."
            )
    n_rows = lengths[0] if lengths else 0
    return Frame(names, n_rows, named=True, readers=_readers(names, vectors))


def _as_sized(what: str, values: Any) -> Any:
    if type(values) is list:  # checked first, because most are, and this is fast
        return values
    if isinstance(values, (str, bytes, Mapping, AbstractSet)) or not (
        hasattr(values, "__len__") or hasattr(values, "__array__")
    ):
        raise DataError(
            f"{what} must be a list, an array or a series of values. Got "
            f"{type(values).__name__} instead."
        )
    return values if hasattr(values, "__len__") else np.asarray(values)


def _from_rows(rows: Sequence[Any]) -> Frame:
    """Read a list of dicts (an absent key is a missing value) or of plain rows."""
    if not rows:
        return _without_names(0, [])
    kinds = [isinstance(row, Mapping) for row in rows]
    if all(kinds):
        names = dict.fromkeys(name for row in rows for name in row)
        return _from_columns({name: [row.get(name) for row in rows] for name in names})
    if any(kinds):
        other = type(rows[kinds.index(False)]).__name__
        raise DataError(
            f"X is a list of dicts, but row {kinds.index(False)} is of type {other}. "
            "Give every row as the same type.",
            row=kinds.index(False),
        )
    if not any(hasattr(row, "__len__") and not isinstance(row, str) for row in rows):
        raise DataError(
            "X is a list of single values. Expected 2D array, got 1D array instead. "
            "Reshape your data: {'name': X} is a table of one column, [X] one of one "
            "row."
        )
    rows = [row if isinstance(row, (list, tuple)) else _as_row(row) for row in rows]
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(
                "X is a list whose rows have different lengths. Got "
                f"{len(rows[0]):,} cells in row 0 and {len(row):,} in row {index}; "
                "every row must have one cell for each column.",
                row=index,
            )
    return _without_names(len(rows), [list(cells) for cells in zip(*rows, strict=True)])


def _as_row(row: Any) -> list[Any]:
    cells = np.asarray(row)
    return cells.tolist() if cells.ndim else [row]
