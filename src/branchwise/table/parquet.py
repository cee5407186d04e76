"""Parquet files: types are known, only marks of missing text are looked for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any

from branchwise.errors import DataError
from branchwise.table.arrow import is_text, sorted_dictionary, without_values
from branchwise.table.delimited import Buffer

MAGIC = b"PAR1"
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class ParquetFile:
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

        self.label = label
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
            raise self._unreadable(error) from None
        # What pandas adds to remember its row labels is no column of the user's.
        self.names = tuple(
            name
            for name in self._file.schema_arrow.names
            if not _PANDAS_INDEX.fullmatch(name)
        )

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, dates and those in ``text`` as text.

        The values of a dictionary column are declared: they keep their order.
        """
        import pyarrow as pa  # noqa: PLC0415

        names = [self.names[index] for index in indices]
        try:
            table = self._file.read(columns=names)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None
        columns = []
        for index, name in zip(indices, names, strict=True):
            column = table[name]
            # A date is text in CSV, too, and the format must not make a difference.
            as_text = index in text or pa.types.is_temporal(column.type)
            if as_text and not is_text(column.type):
                column = self._as_text(name, column)
            if is_text(column.type):
                if name in self._plain_text or not pa.types.is_dictionary(column.type):
                    column = sorted_dictionary(column)
                column = without_values(column, missing)
            columns.append(column)
        return columns

    def place(self, row: int) -> str:
        """Tell which row it is, counted from 1."""
        return f"row {row + 1:,}"

    def _as_text(self, name: str, column: Any) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            return column.cast(pa.string())
        except pa.ArrowException:
            raise DataError(
                f"Column {name!r} of {self.label} is of type {column.type}, which has "
                f"no text to take. Leave it out with --ignore {shlex.quote(name)}."
            ) from None

    def _unreadable(self, error: Exception) -> DataError:
        reason = str(error).rstrip(".")
        return DataError(
            f"{self.label} is not a whole Parquet file: {reason}. Write or copy it "
            "again."
        )
