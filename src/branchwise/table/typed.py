"""Columns that have types of their own, as in Parquet, Arrow files and DuckDB."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from branchwise.errors import DataError
from branchwise.table.arrow import (
    declares_values,
    is_text,
    sorted_dictionary,
    without_values,
)


def typed_columns(
    table: Any,
    label: str,
    text: Collection[int],
    missing: Sequence[str],
) -> list[Any]:
    """Take columns as they are, those in ``text`` as text.

    Parameters
    ----------
    table : pyarrow.Table
        The columns.
    label : str
        What messages call the file.
    text : collection of int
        Positions of the columns that are wanted as text.
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
    """Take columns as a reader of the file sees them: dates as text, text as text."""
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

        # What is no number is missing, as it is in columns of numbers.
        column = compute.if_else(compute.is_nan(column), None, column)
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        raise DataError(
            f"Column {name!r} of {label} is of type {column.type}, which has no text "
            f"to take. Leave it out with --ignore {shlex.quote(name)}."
        ) from None
