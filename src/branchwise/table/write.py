"""Columns -> a CSV, TSV, Parquet or JSON file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Literal

FileFormat = Literal["csv", "tsv", "json", "parquet"]


def write_columns(
    file: BinaryIO, columns: Mapping[str, Sequence[Any]], form: FileFormat
) -> None:
    """Write columns of equal length.

    Parameters
    ----------
    file : binary file
        Where to.
    columns : dict of str to list
        The columns; None is a missing value.
    form : {"csv", "tsv", "json", "parquet"}
        The format; JSON is a list with an object for each row.
    """
    if form == "parquet":
        _write_parquet(file, columns)
    elif form == "json":
        _write_json(file, columns)
    else:
        _write_delimited(file, columns, "\t" if form == "tsv" else ",")


def _write_delimited(
    file: BinaryIO, columns: Mapping[str, Sequence[Any]], delimiter: str
) -> None:
    text = io.TextIOWrapper(
        file, encoding="utf-8", errors="backslashreplace", newline=""
    )
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    try:
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        text.flush()
    finally:
        # Else the file would be closed together with its wrapper.
        with suppress(OSError):
            text.detach()


def _write_json(file: BinaryIO, columns: Mapping[str, Sequence[Any]]) -> None:
    rows = zip(*columns.values(), strict=True)
    separator = b"[\n"
    for row in rows:
        fields = dict(zip(columns, row, strict=True))
        # Dates, which Parquet may have, have no JSON but a text.
        record = json.dumps(fields, ensure_ascii=False, default=str)
        file.write(separator + record.encode("utf-8", "backslashreplace"))
        separator = b",\n"
    file.write(b"\n]\n" if separator == b",\n" else b"[]\n")


def _write_parquet(file: BinaryIO, columns: Mapping[str, Sequence[Any]]) -> None:
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)
    from pyarrow import parquet  # noqa: PLC0415

    parquet.write_table(pa.table(dict(columns)), file)
