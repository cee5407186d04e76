"""Any table a person may have -> columns of codes or of numbers.

Comes in: a pandas, polars or pyarrow frame (through narwhals, importing none of
them), a numpy array, a dict of columns, a list of dicts or of rows. Goes out: a
:class:`Frame`, whose columns are read one at a time as :class:`Coded` (values
without repetition and a code for each row) or :class:`Numbers`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError, quoted
from branchwise.table.objects import read_objects, read_repeated
from branchwise.table.raw import (
    Coded,
    Numbers,
    RawColumn,
    as_value,
    check_exact,
    shortened,
)
from branchwise.table.schema import Value
from branchwise.table.text import number_texts

_NESTED = (nw.List, nw.Struct, nw.Array)
_SMALL = 1000  # integers below may be codes of as many values
_DATES = (nw.Datetime, nw.Date, nw.Duration, nw.Time)


@dataclass(frozen=True)
class Frame:
    """A table whose columns are read on demand.

    ``names`` are the user's own if ``named``, else x0, x1, ...
    """

    names: tuple[str, ...]
    n_rows: int
    named: bool
    readers: tuple[Callable[[], RawColumn], ...]

    def column(self, index: int) -> RawColumn:
        """Read one column."""
        return self.readers[index]()


def open_table(X: object) -> Frame:
    """Recognise a table of any supported form."""
    if isinstance(X, Frame):
        return X
    if isinstance(X, np.ndarray):
        return _from_array(X)
    if isinstance(X, Mapping):
        return _from_columns(X)
    if isinstance(X, (list, tuple)):
        return _from_rows(X)
    if isinstance(X, type):
        raise DataError(f"X must be a table. Got the class {X.__name__} instead.")
    if hasattr(X, "toarray"):
        raise DataError(
            "X is a sparse matrix; branchwise needs a table with values in its "
            "cells. Sparse data must be made dense first: X.toarray()."
        )
    frame = _as_dataframe(X)
    if frame is None:
        return _from_foreign(X)
    names = tuple(str(name) for name in frame.columns)
    _check_names(names)
    readers = tuple(
        _series_reader(_column(name), series)
        for name, series in zip(names, frame.iter_columns(), strict=True)
    )
    return Frame(names, len(frame), named=True, readers=readers)


def read_vector(values: object, name: str) -> RawColumn:
    """Read a single column of any supported form."""
    return _vector_reader(_column(name), _as_sized(_column(name), values))()


def read_labels(y: object) -> RawColumn:
    """Read the labels, which messages call y."""
    small = _read_small_integers(y)
    return small if small is not None else read_quantities(y)


def read_quantities(y: object) -> RawColumn:
    """Read what is to be predicted where whole numbers are numbers, not names."""
    return _vector_reader("y", _as_sized("y", y))()


def _read_small_integers(values: Any) -> Coded | None:
    """Take small integers, as which labels often come, for the codes that they are.

    Returns None for anything else.
    """
    dtype = getattr(values, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        return None
    if isinstance(values, np.ma.MaskedArray) or np.ndim(values) != 1 or not len(values):
        return None
    whole = np.asarray(values)
    least, largest = int(whole.min()), int(whole.max())
    if not 0 <= least <= largest < _SMALL:
        return None
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
    """Open what narwhals does not know, but what speaks Arrow or numpy."""
    if hasattr(X, "__arrow_c_stream__"):
        import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

        return open_table(pa.table(X))
    if hasattr(X, "__array__"):
        return _from_array(np.asarray(X))
    advice = ""
    if isinstance(X, (str, os.PathLike)):
        advice = " Files are not opened here; read it first, with pandas for example."
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


def _series_reader(what: str, series: nw.Series[Any]) -> Callable[[], RawColumn]:
    return lambda: _read_series(what, series)


def _read_series(what: str, series: nw.Series[Any]) -> RawColumn:
    array = getattr(series.to_native(), "array", None)
    if _is_pandas_categorical(array):
        return _read_pandas_categorical(what, array)
    dtype = series.dtype
    if isinstance(dtype, (nw.Int128, nw.UInt128, nw.Unknown)):
        return read_objects(what, series.to_list())
    if dtype.is_numeric():
        return _read_numeric_series(what, series)
    if dtype == nw.Boolean:
        return _read_boolean_series(series)
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        return _read_category_series(what, series)
    if dtype == nw.String:
        return _read_text_series(what, series)
    if isinstance(dtype, nw.Binary):
        raise DataError(f"{what} holds bytes. Decode it to text first.")
    if isinstance(dtype, _NESTED):
        raise DataError(
            f"{what} holds nested values ({dtype}); a cell must be one text, number or "
            "boolean. Take the column apart first."
        )
    if isinstance(dtype, _DATES):
        _refuse_dates(what, dtype)
    return _read_array(what, series.to_numpy())


def _refuse_dates(what: str, dtype: object) -> NoReturn:
    raise DataError(
        f"{what} holds dates or times ({dtype}); branchwise takes text, categories, "
        "booleans and numbers. Turn it into a number (such as the year or an age in "
        "days) or into text."
    )


def _read_numeric_series(what: str, series: nw.Series[Any]) -> Numbers:
    if not series.dtype.is_integer():
        return Numbers(_as_float64(series.cast(nw.Float64).to_numpy()))
    whole, missing = _without_nulls(series, 0)
    check_exact(what, whole)
    values = whole.astype(np.float64)
    if missing is not None:
        values[missing] = np.nan
    return Numbers(values)


def _read_boolean_series(series: nw.Series[Any]) -> Coded:
    filled, missing = _without_nulls(series, value=False)
    truth = filled.astype(np.int8)
    if missing is not None:
        truth[missing] = -1
    return Coded(truth, (False, True))


def _without_nulls(
    series: nw.Series[Any], value: int
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Fill the gaps with a value, and tell where they are if there are any."""
    missing = series.is_null().to_numpy().astype(bool)
    if not missing.any():
        return series.to_numpy(), None
    return series.fill_null(value=value).to_numpy(), missing


def _read_category_series(what: str, series: nw.Series[Any]) -> Coded:
    # A polars Categorical keeps its strings in order of appearance, which is no
    # declaration; an Enum or an Arrow dictionary is one.
    if series.implementation.is_polars() and isinstance(series.dtype, nw.Categorical):
        return _read_dictionary(what, _as_arrow(series))
    ordered = isinstance(series.dtype, nw.Enum)
    return _read_dictionary(what, _as_arrow(series), True, ordered)


def _as_arrow(series: nw.Series[Any]) -> Any:
    """Return the Arrow array, or its chunks as they are, behind a series."""
    native = series.to_native()
    if series.implementation.is_pyarrow():
        return native
    array: Any = getattr(native, "array", None)
    if hasattr(array, "__arrow_array__"):
        return array.__arrow_array__()
    return series.to_arrow()


def is_arrow_text(values: Any) -> bool:
    """Whether an array of pandas holds texts as Arrow does; other types do, too."""
    dtype = getattr(values, "dtype", None)
    named_so = getattr(dtype, "name", None) in ("str", "string")
    return named_so and getattr(dtype, "storage", None) == "pyarrow"


def _is_pandas_categorical(values: Any) -> bool:
    return hasattr(values, "codes") and hasattr(values, "categories")


def _read_pandas_categorical(what: str, values: Any) -> Coded:
    """Take the codes of a pandas.Categorical, which are narrow and -1 for missing."""
    categories = tuple(as_value(what, value) for value in values.categories)
    return Coded(np.asarray(values.codes), categories, True, bool(values.ordered))


def _read_text_series(what: str, series: nw.Series[Any]) -> Coded | Numbers:
    if not series.implementation.is_pandas_like():
        return _read_texts(what, _as_arrow(series))
    native = series.to_native()
    if getattr(native.dtype, "storage", None) == "pyarrow":
        return _read_texts(what, native.array.__arrow_array__())
    repeated = read_repeated(what, native.to_numpy())
    if repeated is not None:
        return repeated
    codes, values = native.factorize()
    if not all(isinstance(value, str) for value in values):
        # narwhals goes by the first hundred objects of a column.
        return read_objects(what, series.to_list())
    return Coded(np.asarray(codes), tuple(as_value(what, value) for value in values))


def _read_texts(what: str, array: Any) -> Coded:
    """Read an Arrow array of strings."""
    numbered = number_texts(array)
    if numbered is None:
        return _read_dictionary(what, array.dictionary_encode())
    return Coded(*numbered)


def _read_dictionary(
    what: str, array: Any, declared: bool = False, ordered: bool = False
) -> Coded:
    """Read an Arrow dictionary array, or chunks of one, without decoding it.

    Chunks may have different dictionaries; a dictionary may repeat a value or have
    a missing one, though well-made ones do not.
    """
    position: dict[Value, int] = {}
    parts: list[NDArray[np.integer[Any]]] = [np.empty(0, dtype=np.int8)]
    last, table = None, np.empty(0, dtype=np.int32)
    for chunk in getattr(array, "chunks", [array]):
        if last is None or not chunk.dictionary.equals(last):
            last = chunk.dictionary
            table = np.full(len(last) + 1, -1, dtype=np.int32)
            for code, value in enumerate(last.to_pylist()):
                if value is not None:
                    plain = as_value(what, value)
                    table[code] = position.setdefault(plain, len(position))
        codes = _dictionary_codes(chunk.indices)
        as_they_are = np.array_equal(table[:-1], np.arange(len(last)))
        parts.append(codes if as_they_are else table[codes])
    codes = parts[-1] if len(parts) <= 2 else np.concatenate(parts)
    in_order = declared and (ordered or bool(array.type.ordered))
    return Coded(codes, tuple(position), declared, in_order)


def _dictionary_codes(indices: Any) -> NDArray[np.integer[Any]]:
    """Return Arrow indices with -1 for missing; unsigned ones have no room for it."""
    # Read from memory: for fill_null and even to_numpy, pyarrow loads pandas.
    if len(indices) == 0:
        return np.empty(0, dtype=np.int8)
    present, stored = indices.buffers()
    end = indices.offset + len(indices)
    codes: NDArray[np.integer[Any]]
    codes = np.frombuffer(stored, str(indices.type), count=end)[indices.offset :]
    if indices.null_count == 0:
        return codes if codes.dtype != np.uint64 else codes.astype(np.int64)
    codes = codes.astype(np.int64 if codes.dtype.kind == "u" else codes.dtype)
    bits = np.unpackbits(np.frombuffer(present, np.uint8), bitorder="little")
    codes[bits[indices.offset : end] == 0] = -1
    return codes


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


def _without_names(n_rows: int, vectors: Sequence[Any]) -> Frame:
    names = tuple(f"x{index}" for index in range(len(vectors)))
    return Frame(names, n_rows, named=False, readers=_readers(names, vectors))


def _readers(
    names: Sequence[str], vectors: Sequence[Any]
) -> tuple[Callable[[], RawColumn], ...]:
    return tuple(
        _vector_reader(_column(name), vector)
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
            "Give every row in the same form."
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
                "every row must have one cell for each column."
            )
    return _without_names(len(rows), [list(cells) for cells in zip(*rows, strict=True)])


def _as_row(row: Any) -> list[Any]:
    cells = np.asarray(row)
    return cells.tolist() if cells.ndim else [row]


def _vector_reader(what: str, values: Any) -> Callable[[], RawColumn]:
    if isinstance(values, np.ndarray):
        return lambda: _read_array(what, values)
    if isinstance(values, (list, tuple, range)):
        return lambda: read_objects(what, values)
    array = getattr(values, "array", values)  # what a series of pandas holds
    if _is_pandas_categorical(array):
        return lambda: _read_pandas_categorical(what, array)
    if is_arrow_text(array):
        return lambda: _read_texts(what, array.__arrow_array__())
    if type(values).__module__.startswith("pyarrow") and hasattr(values, "buffers"):
        import pyarrow as pa  # noqa: PLC0415  (the caller has loaded it)

        values = pa.chunked_array([values])
    series: Any = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _series_reader(what, series)
    return lambda: _read_array(what, np.asarray(values))


def _read_array(what: str, values: NDArray[Any]) -> RawColumn:
    if values.ndim != 1:
        raise DataError(
            f"{what} must have one value a row. Got an array of shape {values.shape}; "
            "pass a single column."
        )
    if isinstance(values, np.ma.MaskedArray):
        if values.mask.any():
            return read_objects(what, values.tolist())
        values = values.data
    kind = values.dtype.kind
    if kind == "b":
        return Coded(values.astype(np.int8), (False, True))
    if kind in "iu":
        check_exact(what, values)
        return Numbers(values.astype(np.float64))
    if kind == "f":
        with np.errstate(over="ignore"):  # a long double may become infinite
            return Numbers(_as_float64(values))
    if kind == "c":
        raise DataError(
            f"{what} holds complex numbers. Complex data not supported; pass the real "
            "and the imaginary part as two columns."
        )
    if kind in "mM":
        _refuse_dates(what, values.dtype)
    if kind == "S":
        values = _decode(what, values)
    return read_objects(what, values)


def _as_float64(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the user's own array where it is fit to be read as it lies."""
    return np.require(values, dtype=np.float64, requirements=["C", "A"])


def _decode(what: str, values: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError as error:
        row = values.tolist().index(error.object)
        raise DataError(
            f"{what} has bytes in row {row} that are not UTF-8 text: "
            f"{shortened(error.object)}. Decode the column first."
        ) from None
