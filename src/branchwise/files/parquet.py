"""Parquet and Arrow files, and conversion of their typed columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from branchwise.data.arrow import (
    declares_values,
    is_text,
    sorted_dictionary,
    without_values,
)
from branchwise.errors import DataError
from branchwise.files.raw_bytes import Buffer, as_stream, in_memory, raise_size


def typed_columns(
    table: Any,
    label: str,
    text: Collection[int],
    missing: Sequence[str],
) -> list[Any]:
    """Return columns with their types, those in ``text`` as text.

    Parameters
    ----------
    table : pyarrow.Table
        The columns.
    label : str
        What messages call the file.
    text : collection of int
        Positions of the columns to return as text.
    missing : sequence of str
        The texts that are missing values.

    Returns
    -------
    list of pyarrow.ChunkedArray
        Text in dictionaries: declared values in their order, others sorted.
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
    import pyarrow as pa  # noqa: PLC0415

    plain = []
    for column in columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.string())
        plain.append(column)
    return plain


def in_file_order(indices: Iterable[int], wanted: Collection[int]) -> set[int]:
    """Return the positions, among columns that are read, of those wanted."""
    return {at for at, index in enumerate(indices) if index in wanted}


def _as_text(name: str, column: Any, label: str) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        from pyarrow import compute  # noqa: PLC0415

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


def pandas_index(name: str) -> bool:
    """Whether a column holds the row labels of pandas."""
    return _PANDAS_INDEX.fullmatch(name) is not None


def plain_texts(schema: Any) -> list[str]:
    """Return the names of the columns that hold text and are no dictionaries."""
    import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

    return [
        field.name
        for field in schema
        if is_text(field.type) and not pa.types.is_dictionary(field.type)
    ]


def declared_columns(path: str) -> frozenset[str]:
    """Return the columns of a Parquet file whose dictionaries have declared values."""
    from pyarrow import parquet  # noqa: PLC0415

    schema = parquet.read_schema(path)
    return frozenset(field.name for field in schema if declares_values(field))


class _TypedFile:
    """Base class of files with typed columns."""

    def __init__(self, label: str, schema: Any) -> None:
        self.label = label
        try:
            names = schema.names
        except UnicodeDecodeError:
            raise DataError(
                f"{label} has column names that are not UTF-8 text. Rename the columns "
                "where the file is made, and write it again."
            ) from None
        self.declared = frozenset(f.name for f in schema if declares_values(f))
        # The row labels of pandas are not a column of the user.
        self._kept = [at for at, name in enumerate(names) if not pandas_index(name)]
        self.names = tuple(names[at] for at in self._kept)

    def location(self, row: int) -> str:
        """Tell which row it is, counted from 1."""
        return f"row {row + 1:,}"


class ParquetFile(_TypedFile):
    """A table in Parquet.

    Parameters
    ----------
    content : bytes or StoredFile
        The whole file.
    label : str
        Name in messages.
    most_bytes : int
        The most bytes of its columns in memory.
    """

    def __init__(self, content: Buffer, label: str, most_bytes: int) -> None:
        import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)
        from pyarrow import parquet  # noqa: PLC0415

        content = in_memory(content)
        self._most_bytes = most_bytes
        try:
            schema = parquet.read_schema(_source(content))
            # Text that is a dictionary in the file is read as such.
            self._file = parquet.ParquetFile(
                _source(content), read_dictionary=plain_texts(schema)
            )
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(label, "Parquet", error) from None
        super().__init__(label, self._file.schema_arrow)

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, those in ``text`` as text."""
        import pyarrow as pa  # noqa: PLC0415

        if self._decoded_size({self.names[i] for i in indices}) > self._most_bytes:
            raise_size(self.label, self._most_bytes)
        try:
            table = self._file.read(columns=[self.names[index] for index in indices])
            table.validate(full=True)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(self.label, "Parquet", error) from None
        table = table.select([self.names[index] for index in indices])
        positions = in_file_order(indices, text)
        return typed_columns(table, self.label, positions, missing)

    def _decoded_size(self, names: Collection[str]) -> int:
        """Return the memory that columns take, as far as the metadata tell.

        Runs of a value take no space in the file, but in memory. The metadata of
        columns are not read: pyarrow crashes if they are damaged.
        """
        fields = [field for field in self._file.schema_arrow if field.name in names]
        width = sum(_width(field.type) for field in fields)
        metadata = self._file.metadata
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


class ArrowFile(_TypedFile):
    """A table in Arrow's IPC format: a file (also Feather) or a stream.

    Parameters
    ----------
    content : bytes or StoredFile
        The whole file.
    label : str
        Name in messages.
    most_bytes : int
        The most bytes of its columns in memory.
    """

    def __init__(self, content: Buffer, label: str, most_bytes: int) -> None:
        import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

        self._content = in_memory(content)
        self._most_bytes = most_bytes
        self._is_file = content[:6] == ARROW[0]
        try:
            schema = self._open().schema
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(label, "Arrow", error) from None
        super().__init__(label, schema)

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, those in ``text`` as text."""
        import pyarrow as pa  # noqa: PLC0415

        try:
            table = self._read_all()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(self.label, "Arrow", error) from None
        table = table.select([self._kept[index] for index in indices])
        positions = in_file_order(indices, text)
        return typed_columns(table, self.label, positions, missing)

    def _read_all(self) -> Any:
        """Read the batches; raise if they take too much memory."""
        import pyarrow as pa  # noqa: PLC0415

        file = self._open()
        batches, size = [], 0
        for batch in record_batches(file):
            # Validated first: other methods may crash on a damaged batch.
            batch.validate(full=True)
            batches.append(batch)
            size += batch.nbytes
            if size > self._most_bytes:
                raise_size(self.label, self._most_bytes)
        return pa.Table.from_batches(batches, file.schema)

    def _open(self) -> Any:
        from pyarrow import ipc  # noqa: PLC0415

        opened = ipc.open_file if self._is_file else ipc.open_stream
        return opened(_source(self._content))


def record_batches(file: Any) -> Iterator[Any]:
    """Return the batches of an opened file or stream one by one."""
    n_batches = getattr(file, "num_record_batches", None)
    if n_batches is None:
        return iter(file)
    return map(file.get_batch, range(n_batches))


def _source(content: Buffer) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(content, bytes):
        return pa.BufferReader(content)
    return pa.PythonFile(as_stream(content), mode="r")


def _unreadable(label: str, file_format: str, error: Exception) -> DataError:
    reason = str(error).rstrip(".")
    return DataError(
        f"{label} is not a whole {file_format} file: {reason}. Write or copy it again."
    )
