"""Typed columns: of Parquet and Arrow files, and of Python cells."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing, contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any

from branchwise.data.arrow import (
    Reject,
    compute,
    converted,
    declares_values,
    is_text,
    pa,
    parquet,
    sorted_dictionary,
    without_values,
)
from branchwise.data.columns import LARGEST_EXACT
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.conventions.number_format import NumberFormat, follows_any
from branchwise.errors import DataError
from branchwise.files.date_columns import check_dates
from branchwise.files.number_columns import NumberColumns
from branchwise.files.options import as_number, as_truth
from branchwise.files.raw_bytes import Buffer, as_stream, in_memory, raise_size


def typed_columns(
    table: Any,
    label: str,
    text: Collection[int],
    missing: Sequence[str],
) -> list[Any]:
    """Return the columns of an Arrow table, those at positions in ``text`` as text.

    Text is in dictionaries: declared values in their order, others sorted. ``missing``
    are the texts that are missing values.
    """
    columns = []
    for at, name in enumerate(table.column_names):
        column = table.column(at)
        if at in text and not is_text(column.type):
            column = _as_text(name, column, label)
        if is_text(column.type):
            if not declares_values(table.schema.field(at)):
                column = sorted_dictionary(column)
            column = without_values(column, missing)
        columns.append(column)
    return columns


def untyped(columns: Iterable[Any]) -> list[Any]:
    """Return columns as they are shown: dates and text as text."""
    plain = []
    for column in columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.string())
        plain.append(column)
    return plain


def _as_text(name: str, column: Any, label: str) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        # NaN is missing, as in columns of numbers.
        column = compute.if_else(compute.is_nan(column), None, column)
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        raise DataError(
            f"Column {name!r} of {label} is of type {column.type}, which cannot be "
            "read as text. Leave it out (ignore)."
        ) from None


PARQUET = b"PAR1"
#: First bytes of an Arrow file (also Feather) and of an Arrow stream.
ARROW = (b"ARROW1", b"\xff\xff\xff\xff")

#: Bytes of an index into a dictionary.
_INDEX = 4
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def declared_columns(path: str) -> frozenset[str]:
    """Return the columns of a Parquet file whose dictionaries have declared values."""
    schema = parquet.read_schema(path)
    return frozenset(field.name for field in schema if declares_values(field))


def _label_of(field: Any) -> dict[str, str]:
    """Return the title and the unit that the metadata of a field has."""
    return {
        key: field.metadata[key.encode()].decode("utf-8", "replace")
        for key in ("title", "unit")
        if field.metadata.get(key.encode())
    }


class TypedFile(ABC):
    """A file with typed columns, read at once or in batches.

    ``content`` are its bytes, or its path, which is faster; ``most_bytes`` bounds what
    its columns take in memory if they are read at once.
    """

    format_name: str

    def __init__(self, content: Buffer | str, label: str, most_bytes: int) -> None:
        self.label = label
        self._content = content if isinstance(content, str) else in_memory(content)
        self._most_bytes = most_bytes
        with self._whole_file():
            self.schema = self._read_schema()
        try:
            names = self.schema.names
        except UnicodeDecodeError:
            raise DataError(
                f"{label} has column names that are not UTF-8 text. Rename the columns "
                "where the file is made, and write it again."
            ) from None
        self.declared = frozenset(f.name for f in self.schema if declares_values(f))
        #: Titles and units of columns, from the metadata of their fields.
        self.column_labels = {f.name: _label_of(f) for f in self.schema if f.metadata}
        # The row labels of pandas are not a column of the user.
        index = _PANDAS_INDEX.fullmatch
        self._kept = [at for at, name in enumerate(names) if not index(name)]
        self.names = tuple(names[at] for at in self._kept)

    def location(self, row: int) -> str:
        """Tell which row it is, counted from 1."""
        return f"row {row + 1:,}"

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, those in ``text`` as text."""
        with self._whole_file():
            table = self._read(indices)
        positions = {at for at, index in enumerate(indices) if index in text}
        return typed_columns(table, self.label, positions, missing)

    def batches(self, names: Sequence[str], n_rows: int) -> Generator[Any, None, None]:
        """Yield columns in batches, of at most so many rows if the format allows it."""
        with self._whole_file(), closing(self._batches(names, n_rows)) as batches:
            for batch in batches:
                # Validated first: other methods may crash on a damaged batch.
                batch.validate(full=True)
                yield batch

    @abstractmethod
    def _read_schema(self) -> Any:
        """Return the names and types of the columns."""

    @abstractmethod
    def _read(self, indices: Sequence[int]) -> Any:
        """Return a table of columns; raise if they take too much memory."""

    @abstractmethod
    def _batches(self, names: Sequence[str], n_rows: int) -> Generator[Any, None, None]:
        """Yield columns in batches."""

    def _source(self) -> Any:
        if isinstance(self._content, str):
            return pa.OSFile(self._content)
        if isinstance(self._content, bytes):
            return pa.BufferReader(self._content)
        return pa.PythonFile(as_stream(self._content), mode="r")

    @contextmanager
    def _whole_file(self) -> Iterator[None]:
        """Raise an error that names the file where it is damaged."""
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise DataError(
                f"{self.label} is not a whole {self.format_name} file: {reason}. Write "
                "or copy it again."
            ) from None


class ParquetFile(TypedFile):
    """A table in Parquet."""

    format_name = "Parquet"

    def _read_schema(self) -> Any:
        return parquet.read_schema(self._opened_by())

    def _opened_by(self) -> Any:
        # A path is opened, and closed again, by pyarrow.
        path = isinstance(self._content, str)
        return self._content if path else self._source()

    def _open(self) -> Any:
        # Text that is a dictionary in the file is read as such.
        texts = [
            field.name
            for field in self.schema
            if is_text(field.type) and not pa.types.is_dictionary(field.type)
        ]
        return parquet.ParquetFile(self._opened_by(), read_dictionary=texts)

    def _read(self, indices: Sequence[int]) -> Any:
        names = [self.names[index] for index in indices]
        file = self._open()
        if _decoded_size(file, set(names)) > self._most_bytes:
            raise_size(self.label, self._most_bytes)
        table = file.read(columns=names)
        table.validate(full=True)
        return table.select(names)

    def _batches(self, names: Sequence[str], n_rows: int) -> Generator[Any, None, None]:
        with self._open() as file:
            yield from file.iter_batches(n_rows, columns=list(names))


def _decoded_size(file: Any, names: Collection[str]) -> int:
    """Return the memory that columns take, as far as the metadata tell.

    Runs of a value take no space in the file, but in memory. The metadata of columns
    are not read: pyarrow crashes if they are damaged.
    """
    fields = [field for field in file.schema_arrow if field.name in names]
    width = sum(_width(field.type) for field in fields)
    metadata = file.metadata
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    # Dictionaries hold every text once.
    return sum(g.num_rows * width + max(g.total_byte_size, 0) for g in groups)


def _width(arrow_type: Any) -> int:
    """Return the bytes of a cell; of text, those of its index."""
    if arrow_type.num_fields:
        fields = range(arrow_type.num_fields)
        return sum(_width(arrow_type.field(at).type) for at in fields)
    try:
        return max(int(arrow_type.bit_width) // 8, 1)
    except ValueError:
        return _INDEX


class ArrowFile(TypedFile):
    """A table in Arrow's IPC format: a file (also Feather) or a stream."""

    format_name = "Arrow"

    def _read_schema(self) -> Any:
        with self._open() as file:
            return file.schema

    @contextmanager
    def _open(self, fields: Sequence[int] = ()) -> Iterator[Any]:
        """Open all columns or some."""
        options = pa.ipc.IpcReadOptions(included_fields=list(fields) or None)
        with self._source() as source:
            is_file = source.read(len(ARROW[0])) == ARROW[0]
            source.seek(0)
            opened = pa.ipc.open_file if is_file else pa.ipc.open_stream
            with opened(source, options=options) as file:
                yield file

    def _read(self, indices: Sequence[int]) -> Any:
        batches, size = [], 0
        for batch in self.batches((), 0):
            batches.append(batch)
            size += batch.nbytes
            if size > self._most_bytes:
                raise_size(self.label, self._most_bytes)
        table = pa.Table.from_batches(batches, self.schema)
        return table.select([self._kept[index] for index in indices])

    def _batches(self, names: Sequence[str], n_rows: int) -> Generator[Any, None, None]:
        del n_rows  # batches are as the file has them
        fields = [self.schema.get_field_index(name) for name in names]
        with self._open(fields) as file:
            n_batches = getattr(file, "num_record_batches", None)
            if n_batches is None:
                yield from file
            else:
                yield from map(file.get_batch, range(n_batches))


_LARGEST = 2**63


def column_of_cells(
    cells: Sequence[Any], name: str, label: str, as_text: bool, missing: Sequence[str]
) -> Any:
    """Return a column of numbers, booleans, dates or, if they are mixed, of text.

    Cells are texts, numbers, booleans, dates and None. Texts in ``missing`` are missing
    values.
    """
    na_values = frozenset(missing)
    cells = [
        None if cell is None or (isinstance(cell, str) and cell in na_values) else cell
        for cell in cells
    ]
    kinds = {type(cell) for cell in cells} - {type(None)}
    if not kinds:
        return pa.chunked_array([pa.nulls(len(cells))])
    if kinds == {bool} and not as_text:
        return pa.chunked_array([pa.array(cells, pa.bool_())])
    if kinds <= {int, float} and not as_text:
        return pa.chunked_array([_numbers(cells, name, label)])
    dated = None if as_text else _dates(cells, kinds)
    if dated is not None:
        return pa.chunked_array([dated])
    texts = [None if cell is None else _text(cell, name, label) for cell in cells]
    try:
        column = pa.chunked_array([pa.array(texts, pa.string())])
    except UnicodeEncodeError:
        raise DataError(
            f"Column {name!r} of {label} has a text that is not Unicode. Correct it, "
            "or leave the column out (ignore)."
        ) from None
    return sorted_dictionary(column)


def _numbers(cells: Sequence[Any], name: str, label: str) -> Any:
    """Return integers, where all are whole, or float64."""
    inexact = [c for c in cells if isinstance(c, int) and abs(c) > LARGEST_EXACT]
    # Larger floats are neither counts nor codes.
    largest = _LARGEST if inexact else LARGEST_EXACT
    if all(cell is None or _is_whole(cell, largest) for cell in cells):
        whole = [None if cell is None else int(cell) for cell in cells]
        return pa.array(whole, pa.int64())
    if inexact:
        raise DataError(
            f"Column {name!r} of {label} has the integer {inexact[0]} among fractions, "
            "beyond 2**53, where float64 is no longer exact. If it is an identifier, "
            "leave it out or store it as text."
        )
    return pa.array([None if c is None else float(c) for c in cells], pa.float64())


def _dates(cells: Sequence[Any], kinds: set[type]) -> Any:
    """Return dates or times as such; None if there is anything else."""
    if kinds <= {date, datetime}:
        if datetime not in kinds:
            return pa.array(cells)
        # A sheet may mix dates with and without a time of day.
        moments = [_moment(cell) for cell in cells]
        whole = not any(moment and moment.microsecond for moment in moments)
        return pa.array(moments, pa.timestamp("s" if whole else "us"))
    return pa.array(cells) if kinds in ({time}, {timedelta}) else None


def _moment(cell: date | None) -> datetime | None:
    if cell is None or isinstance(cell, datetime):
        return cell
    return datetime.combine(cell, time())


def _is_whole(cell: float, largest: int) -> bool:
    if isinstance(cell, int):
        return -_LARGEST <= cell < _LARGEST
    return cell.is_integer() and -largest <= cell < largest


def _text(cell: Any, name: str, label: str) -> str:
    """Return the text of a cell as in CSV."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if abs(cell) < 1e15 and cell == int(cell) else repr(cell)
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date().isoformat()
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    if isinstance(cell, (int, timedelta)):
        return str(cell)
    raise DataError(
        f"Column {name!r} of {label} holds values of type {type(cell).__name__}, which "
        f"are no text and no numbers. Leave it out (ignore)."
    )


def with_types(
    columns: Mapping[str, Any],
    numbers: Collection[str],
    booleans: Collection[str],
    number_columns: NumberColumns,
    location: Callable[[int], str],
) -> list[Any]:
    """Return columns, some as numbers and some as booleans; raise for other cells."""
    found, label = [], number_columns.label
    for name, column in columns.items():
        how = number_columns.known_format(name) if name in numbers else None
        if how is not None and is_text(column.type):
            what = f"{_what(how)} written as {how}"
            reject = _wrong_cell(name, what, label, location)
            column = number_columns.parsed(name, column, how, reject)
        elif how is not None and isinstance(how, DateFormat):
            check_dates(name, column, label)
        elif name in numbers:
            reject = _wrong_cell(name, "numbers", label, location)
            column = _as_numbers(name, column, label, reject)
        elif name in booleans:
            reject = _wrong_cell(name, "true or false", label, location)
            column = _as_booleans(column, reject)
        found.append(column)
    return found


def _what(how: NumberFormat | DateFormat) -> str:
    return how.what if isinstance(how, DateFormat) else "numbers"


def _wrong_cell(
    name: str, what: str, label: str, location: Callable[[int], str]
) -> Reject:
    """Return a function that makes the error of a cell of the wrong type."""

    def reject(row: int, cell: str, is_rare: bool) -> DataError:
        found = f"Column {name!r} must hold {what}, but {location(row)} of {label} has"
        if what == "numbers" and follows_any(cell):
            return DataError(
                f"{found} {cell!r}, a number that is not written plainly. If all are "
                "written so, say how (decimal, thousands); else correct the cell."
            )
        if is_rare:
            return DataError(
                f"{found} {cell!r}. Correct the cell, or add it to the values that "
                "count as missing (missing, or --missing on the command line)."
            )
        return DataError(
            f"{found} {cell!r}, and many cells are like it. Check the name of the "
            "column, or correct the cells."
        )

    return reject


def _as_booleans(column: Any, reject: Reject) -> Any:
    """Return a column as booleans; raise unless cells are true or false."""
    if pa.types.is_null(column.type) or pa.types.is_boolean(column.type):
        return column.cast(pa.bool_())
    text = column if is_text(column.type) else column.cast(pa.string())
    return converted(text, as_truth, pa.bool_(), reject)


def _as_numbers(name: str, column: Any, label: str, reject: Reject) -> Any:
    """Return a column as numbers; raise for other cells."""
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.float64())
    if is_text(kind):
        return converted(column, as_number, pa.float64(), reject)
    if pa.types.is_boolean(kind):
        raise DataError(
            f"Column {name!r} of {label} must hold numbers. Got {kind}; convert the "
            "column to numbers."
        )
    return column
