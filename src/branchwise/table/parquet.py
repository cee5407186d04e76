"""Parquet and Arrow files: types are known, only marks of missing text are sought."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from branchwise.errors import DataError
from branchwise.table.arrow import is_text
from branchwise.table.contents import Buffer
from branchwise.table.typed import in_file_order, typed_columns

PARQUET = b"PAR1"
#: How an Arrow file begins, which is also Feather, and how a stream does.
ARROW = (b"ARROW1", b"\xff\xff\xff\xff")

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def pandas_index(name: str) -> bool:
    """Whether a column is what pandas adds to remember its row labels."""
    return _PANDAS_INDEX.fullmatch(name) is not None


class _TypedFile:
    """What files of typed columns have in common."""

    def __init__(self, label: str, names: Sequence[str]) -> None:
        self.label = label
        self._all_names = tuple(names)
        # What pandas adds to remember its row labels is no column of the user's.
        self._kept = [at for at, name in enumerate(names) if not pandas_index(name)]
        self.names = tuple(names[at] for at in self._kept)

    def place(self, row: int) -> str:
        """Tell which row it is, counted from 1."""
        return f"row {row + 1:,}"


class ParquetFile(_TypedFile):
    """A table in Parquet.

    Parameters
    ----------
    content : bytes or mmap
        The whole file.
    label : str
        What messages call it.
    """

    def __init__(self, content: Buffer, label: str) -> None:
        import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)
        from pyarrow import parquet  # noqa: PLC0415

        try:
            source = pa.py_buffer(content)
            schema = parquet.read_schema(pa.BufferReader(source))
            self._plain_text = {
                field.name
                for field in schema
                if is_text(field.type) and not pa.types.is_dictionary(field.type)
            }
            # Text is a dictionary in the file already: read it as it lies there.
            self._file = parquet.ParquetFile(
                pa.BufferReader(source), read_dictionary=sorted(self._plain_text)
            )
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(label, "Parquet", error) from None
        super().__init__(label, self._file.schema_arrow.names)

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, dates and those in ``text`` as text."""
        import pyarrow as pa  # noqa: PLC0415

        try:
            table = self._file.read(columns=[self.names[index] for index in indices])
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.label, "Parquet", error) from None
        table = table.select([self.names[index] for index in indices])
        positions = in_file_order(indices, text)
        return typed_columns(table, self.label, positions, missing, self._plain_text)


class ArrowFile(_TypedFile):
    """A table in Arrow's own form: a file, which is also Feather, or a stream.

    Parameters
    ----------
    content : bytes or mmap
        The whole file.
    label : str
        What messages call it.
    """

    def __init__(self, content: Buffer, label: str) -> None:
        import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

        self._source = pa.py_buffer(content)
        self._is_file = content[:6] == ARROW[0]
        try:
            schema = self._open().schema
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(label, "Arrow", error) from None
        super().__init__(label, schema.names)

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, dates and those in ``text`` as text."""
        import pyarrow as pa  # noqa: PLC0415

        try:
            table = self._open().read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.label, "Arrow", error) from None
        table = table.select([self._kept[index] for index in indices])
        positions = in_file_order(indices, text)
        return typed_columns(table, self.label, positions, missing)

    def _open(self) -> Any:
        from pyarrow import ipc  # noqa: PLC0415

        if self._is_file:
            return ipc.open_file(self._source)
        return ipc.open_stream(self._source)


def _unreadable(label: str, form: str, error: Exception) -> DataError:
    reason = str(error).rstrip(".")
    return DataError(
        f"{label} is not a whole {form} file: {reason}. Write or copy it again."
    )
