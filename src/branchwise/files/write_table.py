"""Writing of CSV, TSV, JSON, Parquet, Arrow and Excel files, at once or in chunks."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np

from branchwise.data.arrow import as_cells, from_array, pa, parquet
from branchwise.errors import DataError, ParameterError
from branchwise.files.options import COMPRESSED, ENDINGS, FORMATS, as_number
from branchwise.files.write_workbook import WorkbookWriter

FileFormat = Literal["csv", "tsv", "json", "parquet", "arrow", "excel"]
FILE_FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)

_COMPRESSED = (*COMPRESSED, ".bz2", ".xz", ".zip", ".7z")
#: Endings of other formats, which are not written.
_NOT_WRITTEN = {
    **dict.fromkeys((".xlsm", ".xlsb", ".xls", ".ods"), "a workbook other than .xlsx"),
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    **dict.fromkeys(_COMPRESSED, "a compressed file"),
}


def format_of_name(path: str | os.PathLike[str]) -> FileFormat | None:
    """Return the format that the name of a file means; None if it means none."""
    ending = _ending(path)
    if ending in _NOT_WRITTEN:
        return None
    file_format = {**ENDINGS, ".json": "json"}.get(ending)
    return next((known for known in FILE_FORMATS if known == file_format), None)


def unwritten_format(path: str | os.PathLike[str]) -> str | None:
    """Return a description of the format of a name if it cannot be written."""
    ending = _ending(path)
    file_format = ENDINGS.get(ending)
    if file_format is None or ending in _NOT_WRITTEN:
        return _NOT_WRITTEN.get(ending)
    return None if file_format in FILE_FORMATS else FORMATS[file_format]


def is_compressed_name(path: str | os.PathLike[str]) -> bool:
    """Whether a name means a compressed file."""
    return _ending(path) in _COMPRESSED


def _ending(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.lower()


#: First characters of text that spreadsheets treat as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_columns(
    file: BinaryIO,
    columns: Mapping[str, Sequence[Any]],
    file_format: FileFormat,
    escape_formulas: bool = False,
) -> None:
    """Write columns of equal length, in which None is a missing value.

    With ``escape_formulas`` texts of CSV and TSV that a spreadsheet would treat as a
    formula get an apostrophe in front.
    """
    with chunk_writer(file, file_format, escape_formulas) as writer:
        writer.write(columns)


@contextmanager
def chunk_writer(
    file: BinaryIO, file_format: FileFormat, escape_formulas: bool = False
) -> Iterator[ChunkWriter]:
    """Return a writer of chunks; there must be at least one, possibly empty."""
    if escape_formulas and file_format not in ("csv", "tsv"):
        raise ParameterError(
            "escape_formulas applies only to CSV and TSV. Got the format "
            f"{str(file_format)!r}; leave it out."
        )
    writer: ChunkWriter
    if file_format in ("parquet", "arrow"):
        writer = _TypedWriter(file, file_format)
    elif file_format == "json":
        writer = _JsonWriter(file)
    elif file_format == "excel":
        writer = WorkbookWriter(file)
    else:
        delimiter = "\t" if file_format == "tsv" else ","
        writer = _DelimitedWriter(file, delimiter, escape_formulas)
    whole = False
    try:
        yield writer
        whole = True
    finally:
        writer.close(whole)


class _LineEnds:
    """Ends rows with a line feed alone."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def write(self, row: str) -> int:
        return self._text.write(row.removesuffix("\r\n") + "\n")


class _DelimitedWriter:
    def __init__(self, file: BinaryIO, delimiter: str, escape_formulas: bool) -> None:
        self._safe = _without_formula if escape_formulas else None
        self._text = io.TextIOWrapper(
            file, encoding="utf-8", errors="backslashreplace", newline=""
        )
        # Python 3.11 quotes what has a byte of the line end, which must be both.
        self._rows = csv.writer(
            _LineEnds(self._text), delimiter=delimiter, lineterminator="\r\n"
        )
        self._begun = False

    def write(self, columns: Mapping[str, Any]) -> None:
        if not self._begun:
            self._rows.writerow(self._escaped(list(columns)))
            self._begun = True
        cells = [self._escaped(as_cells(column)) for column in columns.values()]
        self._rows.writerows(zip(*cells, strict=True))
        self._text.flush()

    def close(self, whole: bool) -> None:  # noqa: ARG002
        # Otherwise the file would be closed together with its wrapper.
        with suppress(OSError):
            self._text.detach()

    def _escaped(self, cells: list[Any]) -> list[Any]:
        return cells if self._safe is None else [self._safe(cell) for cell in cells]


def _without_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would compute."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA_STARTS):
        return cell
    return f"'{cell}" if as_number(cell) is None else cell


class _JsonWriter:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._separator = b"[\n"

    def write(self, columns: Mapping[str, Any]) -> None:
        for row in zip(*map(as_cells, columns.values()), strict=True):
            fields = dict(zip(columns, row, strict=True))
            # Dates, which Parquet may have, become text in JSON.
            record = json.dumps(fields, ensure_ascii=False, default=str)
            self._file.write(
                self._separator + record.encode("utf-8", "backslashreplace")
            )
            self._separator = b",\n"

    def close(self, whole: bool) -> None:
        if whole:
            self._file.write(b"\n]\n" if self._separator == b",\n" else b"[]\n")


class _TypedWriter:
    """Parquet and Arrow; the types of columns are those of the first chunk."""

    def __init__(self, file: BinaryIO, file_format: FileFormat) -> None:
        self._sink = _Sink(file)
        self._format = file_format
        self._schema: Any = None
        self._writer: Any = None

    def write(self, columns: Mapping[str, Any]) -> None:
        table = pa.table(
            [_as_arrow(column) for column in columns.values()], names=list(columns)
        )
        if self._writer is None:
            self._begin(table.schema)
        for field, expected in zip(table.schema, self._schema, strict=True):
            try:
                table.column(field.name).cast(expected.type)
            except pa.ArrowException:
                raise DataError(
                    f"Column {field.name!r} is of type {expected.type} in some files "
                    f"and of type {field.type} in others, and one file cannot have "
                    "both. Give it one type, or write CSV."
                ) from None
        self._writer.write_table(table.cast(self._schema))

    def _begin(self, schema: Any) -> None:
        self._schema = schema
        if self._format == "parquet":
            self._writer = parquet.ParquetWriter(self._sink, schema)
        else:
            self._writer = pa.ipc.new_file(self._sink, schema)

    def close(self, whole: bool) -> None:
        self._sink.is_on = whole
        if self._writer is not None:
            self._writer.close()


#: Writers of a table in chunks, all with the same columns: lists, numpy arrays or Arrow
#: columns, in which None is a missing value. An incomplete file must not be valid.
ChunkWriter = _DelimitedWriter | _JsonWriter | _TypedWriter | WorkbookWriter


class _Sink(io.RawIOBase):
    """Binary stream that counts its position, for pipes, and can be turned off."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._n_bytes = 0
        self.is_on = True

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._n_bytes

    def write(self, data: Any) -> int:
        if self.is_on:
            self._file.write(data)
        self._n_bytes += len(data)
        return len(data)


def _as_arrow(column: Any) -> Any:
    """Return a column whose type does not depend on whether it has rows."""
    if not isinstance(column, np.ndarray):
        return column
    if column.dtype.kind in "if":
        return from_array(column)
    kind = pa.bool_() if column.dtype.kind == "b" else pa.string()
    return pa.array(column.tolist(), kind)
