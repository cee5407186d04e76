"""Readers of arrays, of Arrow columns and of series of any dataframe library."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrow import (
    dictionary_codes,
    is_date,
    is_temporal,
    number_texts,
)
from branchwise.data.columns import (
    Coded,
    Numbers,
    RawColumn,
    as_value,
    check_exact,
    raise_dates,
    read_objects,
    read_repeated,
    shortened,
)
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.table_schema import Value, Written
from branchwise.errors import DataError, quoted

_NESTED = (nw.List, nw.Struct, nw.Array)
_TEMPORAL = (nw.Datetime, nw.Date, nw.Duration, nw.Time)


def series_reader(
    what: str,
    series: nw.Series[Any],
    declared: bool = False,
    number_format: Written | None = None,
) -> Callable[[], RawColumn]:
    """Return a function that reads a column of a dataframe.

    ``declared`` says that an Arrow dictionary lists the possible values in order,
    ``number_format`` how numbers are written in their file.
    """
    if number_format is not None:
        return lambda: _with_format(_read_series(what, series, declared), number_format)
    return _checking_text(what, lambda: _read_series(what, series, declared))


def _with_format(raw: RawColumn, how: Written) -> RawColumn:
    if not isinstance(raw, Numbers):
        return raw
    if isinstance(how, DateFormat):
        if raw.date is None:
            return raw
        how = replace(raw.date, written=how.written)
    return replace(raw, number_format=how)


def is_of_pandas(given: object) -> bool:
    """Whether an object is one of pandas, which is not imported for that."""
    module = type(given).__module__
    return module == "pandas" or module.startswith("pandas.")


def column_arrays(table: Any) -> Iterable[Any]:
    """Return the arrays of the columns of a pandas DataFrame."""
    # The public methods build a series of every column, which takes ten times as long;
    # they are used where the private method is absent.
    quick = getattr(table, "_iter_column_arrays", None)
    return quick() if quick else (series.array for _, series in table.items())


def stored_arrays(table: Any) -> Iterable[tuple[Hashable, Any]]:
    """Return the arrays that a pandas DataFrame has its cells in, and their columns.

    Columns of a type may share an array of two dimensions, a row for each of them.
    """
    blocks = _blocks(table)
    if blocks is None:
        return enumerate(column_arrays(table))
    return [(_indices(block.mgr_locs.indexer), block.values) for block in blocks]


def _blocks(table: Any) -> Iterable[Any] | None:
    # There is no public way; an array for every column takes twenty times as long.
    blocks: Iterable[Any] | None = getattr(getattr(table, "_mgr", None), "blocks", None)
    return blocks


def _indices(columns: slice | NDArray[np.intp]) -> Hashable:
    """Return which columns a slice or an array selects, to compare with others."""
    if isinstance(columns, slice):
        return columns.start, columns.stop, columns.step
    return columns.tobytes()


def pandas_reader(
    what: str, table: Any, index: int, array: Any
) -> Callable[[], RawColumn]:
    """Return a function that reads a column of a pandas DataFrame, given its array.

    It gives what its series would give, which takes longer to make than one row takes
    to predict.
    """
    if _is_pandas_categorical(array):
        return lambda: _read_pandas_categorical(what, array)
    if is_arrow_text(array):
        read = lambda: _read_texts(what, array.__arrow_array__())  # noqa: E731
        return _checking_text(what, read)
    if type(array) is np.ndarray and (
        array.dtype.kind in "biu" or array.dtype in (np.float32, np.float64)
    ):
        return lambda: _read_array(what, array)
    series: Any = table.iloc[:, index]
    return series_reader(what, nw.from_native(series, series_only=True))


def _checking_text(
    what: str, read_column: Callable[[], RawColumn]
) -> Callable[[], RawColumn]:
    """Return a reader that names the column whose text is not UTF-8."""

    def read() -> RawColumn:
        try:
            return read_column()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{what} has text that is not UTF-8: {shortened(error.object)}. Decode "
                "the column first."
            ) from None

    return read


def _read_series(what: str, series: nw.Series[Any], declared: bool) -> RawColumn:
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
        return _read_category_series(what, series, declared)
    if dtype == nw.String:
        return _read_text_series(what, series)
    if isinstance(dtype, nw.Binary):
        raise DataError(f"{what} holds bytes. Decode it to text first.")
    if isinstance(dtype, _NESTED):
        raise DataError(
            f"{what} holds nested values ({dtype}); a cell must be one text, number or "
            "boolean. Split it into several columns first, or leave it out."
        )
    if isinstance(dtype, _TEMPORAL):
        return _read_date_series(what, series)
    return _read_array(what, series.to_numpy())


def _read_date_series(what: str, series: nw.Series[Any]) -> RawColumn:
    if isinstance(series.dtype, (nw.Duration, nw.Time)):
        raise_dates(what, series.dtype)
    if not series.implementation.is_pandas_like():
        return _read_arrow_dates(what, _as_arrow(series))
    native = series.to_native()
    zoned = getattr(native.dtype, "tz", None) is not None
    if zoned:
        native = native.dt.tz_convert("UTC").dt.tz_localize(None)
    values = native.to_numpy()
    if values.dtype.kind != "M":  # dates of Arrow in pandas
        return read_objects(what, native.tolist())
    return _read_times(what, values, zoned)


def _read_arrow_dates(what: str, column: Any) -> Numbers:
    from branchwise.data.conventions.dates import read_arrow_dates  # noqa: PLC0415  (few columns)

    return Numbers(*read_arrow_dates(what, column))


def _read_numeric_series(what: str, series: nw.Series[Any]) -> Numbers:
    if isinstance(series.dtype, nw.Decimal):
        # Arrow's own conversion misses the nearest float64 of one decimal in six.
        series = series.cast(nw.String)
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
    """Fill missing values, and return their mask if there are any."""
    missing = series.is_null().to_numpy().astype(bool)
    if not missing.any():
        return series.to_numpy(), None
    return series.fill_null(value=value).to_numpy(), missing


def _read_category_series(
    what: str, series: nw.Series[Any], declared: bool
) -> RawColumn:
    # A polars Categorical and an Arrow dictionary keep values in order of appearance,
    # which is no declaration; an Enum, whose values compare by their positions, or an
    # ordered dictionary is one.
    array = _as_arrow(series)
    if series.implementation.is_polars():
        ordered = isinstance(series.dtype, nw.Enum)
        return _read_dictionary(what, array, ordered, ordered)
    ordered = bool(array.type.ordered)
    if is_temporal(array.type) and not (declared or ordered):
        if not is_date(array.type):
            raise_dates(what, array.type)
        return _read_arrow_dates(what, array)
    return _read_dictionary(what, array, declared or ordered, ordered)


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
    """Read the codes of a pandas.Categorical, in which -1 is missing."""
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
        # narwhals infers the type from the first hundred objects of a column.
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
    a missing one, though well-made ones do not. Dictionaries that declare the order
    of values must agree.
    """
    position: dict[Value, int] = {}
    pieces: list[NDArray[np.integer[Any]]] = [np.empty(0, dtype=np.int8)]
    last, table = None, np.empty(0, dtype=np.int32)
    for chunk in getattr(array, "chunks", [array]):
        if last is None or not chunk.dictionary.equals(last):
            last = chunk.dictionary
            table = np.full(len(last) + 1, -1, dtype=np.int32)
            known = len(position)
            for code, value in enumerate(last.to_pylist()):
                if value is not None:
                    plain = as_value(what, value)
                    table[code] = position.setdefault(plain, len(position))
            if declared and known:
                _check_other_order(what, tuple(position), known, table)
        codes = dictionary_codes(chunk.indices)
        as_they_are = np.array_equal(table[:-1], np.arange(len(last)))
        pieces.append(codes if as_they_are else table[codes])
    codes = pieces[-1] if len(pieces) <= 2 else np.concatenate(pieces)
    return Coded(codes, tuple(position), declared, ordered)


def _check_other_order(
    what: str, values: Sequence[Value], known: int, table: NDArray[np.int32]
) -> None:
    """Reject chunks whose declared orders differ, further values at the end aside."""
    order = list(dict.fromkeys(table[table >= 0].tolist()))
    if order != list(range(len(order))):
        raise DataError(
            f"{what} has its values in one order in some chunks of the table and in "
            f"another in others: {quoted(values[:known])} and "
            f"{quoted(values[code] for code in order)}. Give it one order."
        )


def vector_reader(what: str, values: Any) -> Callable[[], RawColumn]:
    """Return a function that reads an array, a list or a series of any library."""
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
        return series_reader(what, series)
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
        return _read_times(what, values)
    if kind == "S":
        values = _decode(what, values)
    return read_objects(what, values)


def _read_times(what: str, values: NDArray[Any], zoned: bool = False) -> Numbers:
    from branchwise.data.conventions.dates import read_datetimes  # noqa: PLC0415  (few columns)

    if values.dtype.kind == "m":
        raise_dates(what, values.dtype)
    return Numbers(*read_datetimes(what, values, zoned))


def _as_float64(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the array as float64, without a copy where possible."""
    return np.require(values, dtype=np.float64, requirements=["C", "A"])


def _decode(what: str, values: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError as error:
        row = values.tolist().index(error.object)
        raise DataError(
            f"{what} has bytes in row {row} that are not UTF-8 text: "
            f"{shortened(error.object)}. Decode the column first.",
            row=row,
        ) from None
