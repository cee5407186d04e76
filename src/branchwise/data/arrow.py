"""Helpers for Arrow tables and arrays; pyarrow is imported only when needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.native import available, extension, plain_array


class _LazyModule:
    """A module that is imported when an attribute of it is first needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, attribute)


#: Loaded when they are first used: most fits and commands do without them.
pa: Any = _LazyModule("pyarrow")
arrow_csv: Any = _LazyModule("pyarrow.csv")
compute: Any = _LazyModule("pyarrow.compute")
parquet: Any = _LazyModule("pyarrow.parquet")

#: Metadata of a field whose dictionary has the declared values, in their order.
_DECLARED = {b"branchwise": b"declared categories"}
#: The key of the metadata of numbers that say how they are written in their file.
_NUMBER_FORMAT = b"branchwise number format"
#: The keys of the metadata of tables that say how their file was read.
_MERGED_CASE = b"branchwise merged case"
_NA_VALUES = b"branchwise missing cells"


def value_type(arrow_type: Any) -> Any:
    """Return the type of the values, whether in a dictionary or not."""
    return arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type


def declares_values(field: Any) -> bool:
    """Whether the dictionary of a field lists the possible values in their order.

    An Arrow dictionary is a way to store values, in order of appearance, unless its
    type says that it is ordered, or the field that the values are declared.
    """
    if not pa.types.is_dictionary(field.type):
        return False
    return (
        bool(field.type.ordered) or _DECLARED.items() <= (field.metadata or {}).items()
    )


def declared_table(
    columns: Sequence[Any],
    names: Sequence[str],
    declared: Any,
    number_formats: Mapping[str, str] | None = None,
) -> Any:
    """Make a table; the dictionaries of some columns declare their values.

    ``number_formats`` say how the numbers of columns are written in their file.
    """
    metadata = {name: {_NUMBER_FORMAT: f} for name, f in (number_formats or {}).items()}
    fields = [
        pa.field(
            name,
            column.type,
            metadata=_DECLARED if name in declared else metadata.get(name),
        )
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.table(list(columns), schema=pa.schema(fields))


def with_reading(table: Any, merged_case: bool, na_values: Sequence[str] | None) -> Any:
    """Return a table that says how its file was read, for that of new files.

    ``merged_case`` is whether spellings of its values were merged, ``na_values`` are
    the cells that were read as missing, unless the usual ones.
    """
    metadata = dict(table.schema.metadata or {})
    if merged_case:
        metadata[_MERGED_CASE] = b"true"
    if na_values is not None:
        metadata[_NA_VALUES] = json.dumps(list(na_values)).encode()
    return table.replace_schema_metadata(metadata) if metadata else table


def merges_case(table: Any) -> bool:
    """Whether spellings of the values of a table were merged."""
    return _MERGED_CASE in (table.schema.metadata or {})


def na_values_of(table: Any) -> tuple[str, ...] | None:
    """Return the cells of a file that were read as missing, if the table tells."""
    said = (table.schema.metadata or {}).get(_NA_VALUES)
    try:
        found = json.loads(said or b"null")
    except ValueError:  # the metadata may be of anyone
        return None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        return None
    return tuple(dict.fromkeys(found))


def with_described_column(table: Any, name: str, cells: Any, described: str) -> Any:
    """Add a column of numbers whose field says how they are written, or derived."""
    metadata = {_NUMBER_FORMAT: described}
    return table.append_column(pa.field(name, cells.type, metadata=metadata), cells)


def written_format(field: Any) -> str | None:
    """Return how the numbers of a field are written in their file, if it says so."""
    found = (field.metadata or {}).get(_NUMBER_FORMAT)
    return None if found is None else found.decode()


def is_text(arrow_type: Any) -> bool:
    """Whether the values of a column are text, whether in a dictionary or not."""
    values = value_type(arrow_type)
    return bool(
        pa.types.is_string(values)
        or pa.types.is_large_string(values)
        or pa.types.is_string_view(values)
    )


def is_temporal(arrow_type: Any) -> bool:
    """Whether the values of a column are dates or times, in a dictionary or not."""
    return bool(pa.types.is_temporal(value_type(arrow_type)))


def is_date(arrow_type: Any) -> bool:
    """Whether the values are dates or times of some day, not of any day."""
    values = value_type(arrow_type)
    return bool(pa.types.is_date(values) or pa.types.is_timestamp(values))


def as_dictionary(column: Any) -> Any:
    """Return a text column as a single dictionary array."""
    if not pa.types.is_dictionary(column.type):
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        column = column.dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # so says pyarrow 16 of no chunks
        array = pa.array([], type=column.type)
    return array


def as_array(column: Any) -> NDArray[Any]:
    """Return the numbers of an array without missing values as a NumPy view.

    pyarrow loads pandas for to_numpy, which takes a while and 40 MB.
    """
    dtype = _dtype_of(column.type)
    start = column.offset * dtype.itemsize
    return np.frombuffer(column.buffers()[1], dtype, len(column), start)


def as_arrays(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return columns as arrays: numbers as they are, all else as Python's objects."""
    found = {}
    for name, column in columns.items():
        numbers = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if numbers and not column.null_count:
            none = np.empty(0, dtype=_dtype_of(column.type))
            found[name] = np.concatenate([none, *map(as_array, column.chunks)])
        else:
            found[name] = np.fromiter(as_list(column), object, len(column))
    return found


def _dtype_of(arrow_type: Any) -> np.dtype[Any]:
    halves = {"halffloat": "float16", "float": "float32", "double": "float64"}
    return np.dtype(halves.get(str(arrow_type), str(arrow_type)))


def release_memory() -> None:
    """Return the unused memory of Arrow's memory pool to the system."""
    pa.default_memory_pool().release_unused()


def from_array(array: NDArray[Any]) -> Any:
    """Return an Arrow array that shares the memory; pa.array would import pandas."""
    kept = np.ascontiguousarray(array)
    buffers = [None, pa.py_buffer(kept)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(kept.dtype), len(kept), buffers)


def dictionary_codes(indices: Any) -> NDArray[np.integer[Any]]:
    """Return Arrow indices with -1 for missing; unsigned types cannot hold it."""
    if len(indices) == 0:
        return np.empty(0, dtype=np.int8)
    codes = as_array(indices)
    if indices.null_count == 0:
        return codes if codes.dtype != np.uint64 else codes.astype(np.int64)
    codes = codes.astype(np.int64 if codes.dtype.kind == "u" else codes.dtype)
    present = np.frombuffer(indices.buffers()[0], np.uint8)
    bits = np.unpackbits(present, bitorder="little")
    codes[bits[indices.offset : indices.offset + len(indices)] == 0] = -1
    return codes


def sorted_dictionary(column: Any) -> Any:
    """Return a text column as a dictionary column whose values are sorted.

    In a dictionary as it was read the values are in the order in which they
    appear, and a tree must not depend on the order of the rows.
    """
    array = as_dictionary(column)
    order = compute.array_sort_indices(array.dictionary)
    in_order = bool((as_array(order) == np.arange(len(order))).all())
    if in_order and pa.types.is_int32(array.type.index_type):
        return pa.chunked_array([array])
    rank = np.empty(len(order), dtype=np.int32)
    rank[as_array(order)] = np.arange(len(order), dtype=np.int32)
    codes = from_array(rank).take(array.indices)
    values = array.dictionary.take(order)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, values)])


def without_values(column: Any, missing: Collection[str]) -> Any:
    """Make some texts missing values; the others keep their order."""
    array = as_dictionary(column)
    values = array.dictionary.to_pylist()
    kept = [code for code, value in enumerate(values) if value not in missing]
    if len(kept) == len(values):
        return pa.chunked_array([array])
    recode = np.zeros(len(values), dtype=np.int32)
    recode[kept] = np.arange(len(kept), dtype=np.int32)
    gone = np.ones(len(values), dtype=bool)
    gone[kept] = False
    codes = pa.array(recode, mask=gone).take(array.indices)
    return pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(
                codes,
                array.dictionary.take(pa.array(kept, pa.int32())),
                ordered=array.type.ordered,
            )
        ]
    )


def as_list(column: Any) -> list[Any]:
    """Return the cells of a column; of text, each distinct one is made only once."""
    if not is_text(column.type):
        cells: list[Any] = column.to_pylist()
        return cells
    array = as_dictionary(column)
    values = np.array([*array.dictionary.to_pylist(), None], dtype=object)
    codes = dictionary_codes(array.indices)
    texts: list[Any] = values[codes].tolist()
    return texts


def as_cells(column: Any) -> list[Any]:
    """Return the cells of a list, a numpy array or an Arrow column."""
    if isinstance(column, list):
        return column
    return column.tolist() if isinstance(column, np.ndarray) else as_list(column)


#: Called with the row and the text of a cell that cannot be converted, and whether such
#: cells are the minority; returns the error to raise.
Reject = Callable[[int, str, bool], Exception]


def converted(
    column: Any,
    convert: Callable[[str], object | None],
    arrow_type: Any,
    reject: Reject,
) -> Any:
    """Convert the texts of a column, each distinct one once, to an Arrow type.

    ``convert`` returns None for a text that it cannot convert.
    """
    array = as_dictionary(column)
    cells = array.dictionary.to_pylist()
    values = [convert(cell) for cell in cells]
    raise_first(array, [at for at, value in enumerate(values) if value is None], reject)
    return pa.chunked_array([pa.array(values, arrow_type).take(array.indices)])


def raise_first(texts: Any, wrong: Sequence[int] | Ints, reject: Reject) -> None:
    """Raise the error of the first cell that has one of the wrong distinct texts."""
    if not len(wrong):
        return
    codes = dictionary_codes(texts.indices)
    found = np.isin(codes, wrong)
    if found.any():
        row = int(np.argmax(found))
        is_rare = 2 * int(found.sum()) < int((codes >= 0).sum())
        raise reject(row, texts.dictionary[int(codes[row])].as_py(), is_rare)


def table_of_rows(rows: Iterable[Sequence[Any]], names: Mapping[str, Any]) -> Any:
    """Make a table of rows; ``names`` has the Arrow type of every column."""
    cells = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(c, t) for c, t in zip(cells, names.values(), strict=True)]
    return pa.Table.from_arrays(arrays, list(names))


def rows_of_table(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a table as tuples of Python's objects."""
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))


def timestamp_type(zoned: bool) -> Any:
    """Return the type of times, of UTC or without a time zone."""
    return pa.timestamp("us", "UTC" if zoned else None)


def table_of_batches(batches: Sequence[Any], schema: Any = None) -> Any:
    """Concatenate record batches; without any, the schema gives the columns."""
    return pa.Table.from_batches(batches, schema)


def table_of(batch: Any, positions: Mapping[str, int]) -> Any:
    """Make a table of some columns of a record batch, under other names."""
    return pa.table({name: batch.column(at) for name, at in positions.items()})


def text_column(texts: Sequence[str]) -> Any:
    """Return a column of texts."""
    return pa.chunked_array([pa.array(texts, pa.string())])


def number_column(numbers: NDArray[Any]) -> Any:
    """Return a column of numbers."""
    return pa.chunked_array([from_array(numbers)])


def batch_of_rows(rows: Sequence[Sequence[int]], names: Sequence[str]) -> Any:
    """Make a record batch of rows of whole numbers."""
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, list(names))


def with_columns(batch: Any, names: Sequence[str], columns: Sequence[Any]) -> Any:
    """Add columns to a record batch."""
    arrays = [*batch.columns, *(pa.array(column.tolist()) for column in columns)]
    return pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *names])


_OFFSETS = {"string": np.int32, "large_string": np.int64}


def number_texts(array: Any) -> tuple[NDArray[np.int32], tuple[str, ...]] | None:
    """Encode the distinct strings of an Arrow array in the order of appearance.

    Returns the codes, -1 for missing, and the texts; None where the extension is
    not to be used or the array does not hold plain strings.
    """
    if str(array.type) not in _OFFSETS or not available():
        return None
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    if hasattr(array, "chunks"):  # what pyarrow makes of no chunks, or of too much text
        return None
    n = len(array)
    validity, offset_buffer, text_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=_OFFSETS[str(array.type)])
    offsets = offsets[array.offset : array.offset + n + 1]
    texts = np.frombuffer(text_buffer or b"", dtype=np.uint8)
    known = None
    if array.null_count:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
        known = bits[array.offset : array.offset + n].astype(bool)
    codes, firsts = extension().number_texts(plain_array(offsets), texts)
    if known is not None:
        return _without_missing(codes, known, offsets, texts)
    return codes, tuple(_decoded(offsets, texts, row) for row in firsts.tolist())


def number_cells(
    array: NDArray[Any],
) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
    """Encode the distinct cells of a numpy array in the order of appearance.

    Cells are equal where their bytes are; objects are compared by identity. Returns
    the codes and the first row of each code; None where the extension is not to be
    used.
    """
    if not len(array) or not array.dtype.itemsize or not available():
        return None
    # Only the addresses of objects are read, which needs no GIL.
    data = np.frombuffer(np.ascontiguousarray(array), dtype=np.uint8)
    codes, firsts = extension().number_cells(data, array.dtype.itemsize)
    return codes, firsts


def _without_missing(
    codes: NDArray[np.int32],
    known: NDArray[np.bool_],
    offsets: NDArray[Any],
    texts: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Drop strings that only masked (missing) cells refer to."""
    rows = np.flatnonzero(known)
    numbers, first = np.unique(codes[rows], return_index=True)
    renumber = np.full(int(codes.max(initial=0)) + 1, -1, dtype=np.int32)
    renumber[numbers] = np.arange(len(numbers), dtype=np.int32)
    codes = np.where(known, renumber[codes], np.int32(-1))
    values = tuple(_decoded(offsets, texts, row) for row in rows[first].tolist())
    return codes, values


def _decoded(offsets: NDArray[Any], texts: NDArray[np.uint8], row: int) -> str:
    return texts[offsets[row] : offsets[row + 1]].tobytes().decode("utf-8")


def is_dataset(source: object) -> bool:
    """Whether a source is a dataset of pyarrow."""
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(source).__mro__]
    return "pyarrow._dataset.Dataset" in kinds
