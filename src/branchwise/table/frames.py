"""Any table a person may have -> columns of codes or of numbers.

Comes in: a pandas, polars or pyarrow frame (through narwhals, importing none of
them), a numpy array, a dict of columns, a list of dicts or of rows. Goes out: a
:class:`Frame`, whose columns are read one at a time as :class:`Coded` (values
without repetition and a code for each row) or :class:`Numbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError, quoted
from branchwise.table.objects import read_objects
from branchwise.table.raw import Coded, Numbers, RawColumn, as_value, check_exact

_NESTED = (nw.List, nw.Struct, nw.Array, nw.Binary)
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
    if isinstance(X, np.ndarray):
        return _from_array(X)
    if isinstance(X, Mapping):
        return _from_columns(X)
    if isinstance(X, (list, tuple)):
        return _from_rows(X)
    frame = _as_dataframe(X)
    names = tuple(str(name) for name in frame.columns)
    _check_names(names)
    readers = tuple(
        _series_reader(name, frame[original])
        for name, original in zip(names, frame.columns, strict=True)
    )
    return Frame(names, len(frame), named=True, readers=readers)


def read_vector(values: object, name: str) -> RawColumn:
    """Read a single column, such as the labels, of any supported form."""
    return _vector_reader(name, values)()


def _as_dataframe(X: object) -> nw.DataFrame[Any]:
    if hasattr(X, "toarray"):
        raise DataError(
            "X is a sparse matrix; branchwise needs a table with values in its "
            "cells. Sparse data must be made dense first: X.toarray()."
        )
    if isinstance(X, type):
        raise DataError(f"X must be a table. Got the class {X.__name__} instead.")
    native: Any = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(native, nw.LazyFrame):
        raise DataError("X is a lazy frame. Call X.collect() first.")
    if isinstance(native, nw.Series):
        raise DataError(
            "X must be a table of one or more columns. Expected 2D array, got 1D "
            "array instead. Reshape your data or pass X.to_frame()."
        )
    if not isinstance(native, nw.DataFrame):
        if hasattr(X, "__arrow_c_stream__"):
            import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

            return nw.from_native(pa.table(X), eager_only=True)
        if hasattr(X, "__array__"):
            raise DataError(
                f"X must be a table. Got {type(X).__name__}; pass np.asarray(X)."
            )
        raise DataError(
            "X must be a pandas, polars or pyarrow table, a numpy array, a dict of "
            f"columns or a list of dicts. Got {type(X).__name__} instead."
        )
    return native


def _check_names(names: Sequence[str]) -> None:
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise DataError(
            f"Column names must differ. Got {quoted(duplicates)} more than once; "
            "rename the columns."
        )


def _series_reader(name: str, series: nw.Series[Any]) -> Callable[[], RawColumn]:
    return lambda: _read_series(name, series)


def _read_series(name: str, series: nw.Series[Any]) -> RawColumn:
    dtype = series.dtype
    if dtype.is_numeric():
        return _read_numeric_series(name, series)
    if dtype == nw.Boolean:
        return _read_boolean_series(series)
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        return _read_category_series(name, series)
    if dtype == nw.String:
        return _read_text_series(name, series)
    if isinstance(dtype, _NESTED):
        raise DataError(
            f"Column {name!r} holds nested values ({dtype}); a cell must be one "
            "text, number or boolean. Take the column apart first."
        )
    if isinstance(dtype, _DATES):
        raise DataError(
            f"Column {name!r} holds dates or times ({dtype}); branchwise takes text, "
            "categories, booleans and numbers. Turn it into a number (such as the "
            "year or an age in days) or into text."
        )
    return read_objects(name, series.to_numpy())


def _read_numeric_series(name: str, series: nw.Series[Any]) -> Numbers:
    integral = series.dtype.is_integer()
    if integral and not series.is_null().any():
        values = series.to_numpy()
        check_exact(name, values)
        return Numbers(values.astype(np.float64), integral=True)
    if integral:
        check_exact(name, series.drop_nulls().to_numpy())
    floats = series.cast(nw.Float64).to_numpy().astype(np.float64)
    return Numbers(floats, integral=integral)


def _read_boolean_series(series: nw.Series[Any]) -> Coded:
    missing = series.is_null().to_numpy().astype(bool)
    truth = series.fill_null(value=False).to_numpy().astype(np.int64)
    truth[missing] = -1
    return Coded(truth, (False, True))


def _read_category_series(name: str, series: nw.Series[Any]) -> Coded:
    native = series.to_native()
    if hasattr(getattr(native, "dtype", None), "categories") and hasattr(native, "cat"):
        # pandas: the codes are there already, in the narrowest type.
        ordered = getattr(native.cat, "ordered", None)
        if ordered is not None:
            values = tuple(as_value(name, v) for v in native.cat.categories.tolist())
            return Coded(native.cat.codes.to_numpy(), values, True, bool(ordered))
    # A polars Categorical keeps its strings in order of appearance, which is no
    # declaration; an Enum or an Arrow dictionary is one.
    arrow = series.to_arrow()
    declared = not (
        series.implementation.is_polars() and isinstance(series.dtype, nw.Categorical)
    )
    return _read_dictionary(name, arrow, declared)


def _read_text_series(name: str, series: nw.Series[Any]) -> Coded:
    if series.implementation.is_pandas_like():
        codes, values = series.to_native().factorize()
        return Coded(np.asarray(codes), tuple(as_value(name, v) for v in values))
    return _read_dictionary(name, series.to_arrow().dictionary_encode(), declared=False)


def _read_dictionary(name: str, array: Any, declared: bool) -> Coded:
    """Read an Arrow dictionary array (or chunks of one) without touching strings."""
    if hasattr(array, "combine_chunks"):
        array = array.unify_dictionaries().combine_chunks()
    if array.dictionary.null_count or len(array.dictionary.unique()) < len(
        array.dictionary
    ):
        array = array.dictionary_decode().dictionary_encode()
    values = tuple(as_value(name, value) for value in array.dictionary.to_pylist())
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    if codes.dtype.kind == "u" and array.indices.null_count:
        # An unsigned index has no room for -1.
        codes = array.indices.cast("int64").fill_null(-1).to_numpy()
    return Coded(codes, values, declared, bool(array.type.ordered) and declared)


def _from_array(X: NDArray[Any]) -> Frame:
    if X.dtype.names is not None:
        return _from_columns({name: X[name] for name in X.dtype.names})
    if X.ndim != 2:
        raise DataError(
            f"X must be a table. Expected 2D array, got {X.ndim}D array instead. "
            "Reshape your data: X.reshape(-1, 1) if it is one column, "
            "X.reshape(1, -1) if it is one row."
        )
    names = tuple(f"x{index}" for index in range(X.shape[1]))
    readers = tuple(
        _vector_reader(name, X[:, index]) for index, name in enumerate(names)
    )
    return Frame(names, len(X), named=False, readers=readers)


def _from_columns(columns: Mapping[Any, Any]) -> Frame:
    names = tuple(str(name) for name in columns)
    _check_names(names)
    vectors = [_as_sized(name, v) for name, v in zip(names, columns.values())]  # noqa: B905
    lengths = {name: len(v) for name, v in zip(names, vectors, strict=True)}
    if len(set(lengths.values())) > 1:
        short, long = (
            min(lengths, key=lengths.__getitem__),
            max(lengths, key=lengths.__getitem__),
        )
        raise DataError(
            f"Columns must have the same length. Got {lengths[short]:,} rows in "
            f"{short!r} and {lengths[long]:,} in {long!r}."
        )
    readers = tuple(_vector_reader(n, v) for n, v in zip(names, vectors, strict=True))
    n_rows = len(vectors[0]) if vectors else 0
    return Frame(names, n_rows, named=True, readers=readers)


def _as_sized(name: str, values: Any) -> Any:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise DataError(
            f"Column {name!r} must be a list, array or series of values. "
            f"Got {type(values).__name__} instead."
        )
    return values


def _from_rows(rows: Sequence[Any]) -> Frame:
    """Read a list of dicts (an absent key is a missing value) or of plain rows."""
    if rows and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        return _from_columns({name: [row.get(name) for row in rows] for name in names})
    widths = {len(row) if isinstance(row, (list, tuple)) else -1 for row in rows}
    if not rows or len(widths) > 1 or -1 in widths:
        # Arrays, scalars or ragged rows: numpy decides what they are.
        try:
            return _from_array(np.asarray(rows))
        except ValueError as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                "X is a list whose rows have different lengths. Every row must "
                "have one cell for each column."
            ) from error
    table = np.empty((len(rows), widths.pop()), dtype=object)
    for index, row in enumerate(rows):
        table[index, :] = row
    return _from_array(table)


def _vector_reader(name: str, values: Any) -> Callable[[], RawColumn]:
    if isinstance(values, np.ndarray):
        return lambda: _read_array(name, values)
    if isinstance(values, (list, tuple, range)):
        return lambda: read_objects(name, list(values))
    if hasattr(values, "codes") and hasattr(values, "categories"):  # pandas.Categorical
        categories = tuple(as_value(name, value) for value in values.categories)
        codes = np.asarray(values.codes)
        return lambda: Coded(codes, categories, True, bool(values.ordered))
    if type(values).__module__.startswith("pyarrow") and hasattr(values, "buffers"):
        import pyarrow as pa  # noqa: PLC0415  (the caller has loaded it)

        values = pa.chunked_array([values])
    series: Any = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _series_reader(name, series)
    return lambda: _read_array(name, np.asarray(values))


def _read_array(name: str, values: NDArray[Any]) -> RawColumn:
    if values.ndim != 1:
        raise DataError(
            f"Column {name!r} must have one value a row. Got an array of shape "
            f"{values.shape} instead."
        )
    kind = values.dtype.kind
    if kind == "b":
        return Coded(values.astype(np.int64), (False, True))
    if kind in "iu":
        check_exact(name, values)
        return Numbers(values.astype(np.float64), integral=True)
    if kind == "f":
        return Numbers(values.astype(np.float64), integral=False)
    if kind == "c":
        raise DataError(
            f"Column {name!r} holds complex numbers. Complex data not supported; "
            "pass the real and the imaginary part as two columns."
        )
    if kind in "mM":
        raise DataError(
            f"Column {name!r} holds dates or times ({values.dtype}); branchwise takes "
            "text, categories, booleans and numbers. Turn it into a number (such as "
            "the year or an age in days) or into text."
        )
    if kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"Column {name!r} holds bytes that are not UTF-8 text. Decode it first."
            ) from error
        kind = "U"
    if kind == "U":
        uniques, codes = np.unique(values, return_inverse=True)
        return Coded(codes, tuple(uniques.tolist()))
    return read_objects(name, values)
