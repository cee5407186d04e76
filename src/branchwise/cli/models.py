"""Opening model files, and reading tables in the way that a model wants them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from branchwise import persist
from branchwise.cli.streams import Reporter
from branchwise.errors import DataError, ModelFileError, ParameterError, quoted
from branchwise.model import Model, load
from branchwise.table.frames import open_table
from branchwise.table.raw import Numbers
from branchwise.table.read import STANDARD_STREAM, TableFile
from branchwise.table.schema import Column, value_type

_TABLES = (".csv", ".tsv", ".arff", ".data", ".parquet", ".feather", ".xlsx", ".sqlite")
_ROW = re.compile(r"\bin row (\d+)\b")


def open_model(path: str) -> Model:
    """Open a model file; ``-`` is standard input."""
    if path == STANDARD_STREAM:
        content = sys.stdin.buffer.read()
        return Model(*persist.from_bytes(content, "standard input"))
    try:
        return load(path)
    except FileNotFoundError:
        raise DataError(f"There is no model file {path!r}. Check the path.") from None
    except IsADirectoryError:
        raise DataError(f"{path!r} is a directory, not a model file.") from None
    except ModelFileError as error:
        if Path(path).suffix.lower() not in _TABLES:
            raise
        advice = "Give the model first, then the table."
        raise ModelFileError(f"{error} {advice}") from None


def refuse_two_streams(**paths: str | None) -> None:
    """Refuse to read more than one thing from standard input."""
    streams = [name for name, path in paths.items() if path == STANDARD_STREAM]
    if len(streams) > 1:
        raise ParameterError(
            f"{' and '.join(streams)} are both -, but standard input can be only one "
            "of them. Give a file for the other."
        )


def read_for_model(
    model: Model,
    file: TableFile,
    missing: Sequence[str],
    reporter: Reporter,
    besides: Sequence[str] = (),
) -> tuple[Model, Any]:
    """Read the columns that a model asks for, each as it was learnt.

    Parameters
    ----------
    model : Model
        Who asks.
    file : TableFile
        Where the columns are.
    missing : sequence of str
        The cells that are missing values.
    reporter : Reporter
        Who is told that columns are matched by position.
    besides : sequence of str
        Columns that are no attributes, such as the target.

    Returns
    -------
    Model, pyarrow.Table
        The model, which now matches the columns by name, and the table.
    """
    wanted = model.schema.names
    by_name = set(wanted) <= set(file.names)
    if by_name or model.schema.named:
        _refuse_absent(file, wanted, "the tree was fitted with")
        own_names = dict(zip(wanted, model.schema.columns, strict=True))
    else:
        own_names = _by_position(model, file, besides)
        reporter.note(
            "the model was fitted on a table without column names; the columns of "
            f"{file.label} are taken in their order."
        )
    table = file.read(
        missing=missing,
        only=list(own_names),
        text_columns=_of_type(own_names, "text"),
        number_columns=_of_type(own_names, "number"),
        boolean_columns=_of_type(own_names, "boolean"),
    )
    table = table.rename_columns([own_names[name].name for name in table.column_names])
    return Model(replace(model.schema, named=True), model.tree, model.recipe), table


def read_alike(file: TableFile, table: Any, missing: Sequence[str]) -> Any:
    """Read the columns that another table has, each as it is there.

    Parameters
    ----------
    file : TableFile
        What to read.
    table : pyarrow.Table
        The other table.
    missing : sequence of str
        The cells that are missing values.
    """
    frame = open_table(table)
    _refuse_absent(file, frame.names, "the other table has")
    types: dict[str, list[str]] = {"number": [], "boolean": [], "text": []}
    for index, name in enumerate(frame.names):
        raw = frame.column(index)
        if isinstance(raw, Numbers):
            types["number"].append(name)
        else:
            types[value_type(raw.values[0]) if raw.values else "text"].append(name)
    return file.read(
        missing=missing,
        only=list(frame.names),
        text_columns=types["text"],
        number_columns=types["number"],
        boolean_columns=types["boolean"],
    )


def _refuse_absent(file: TableFile, wanted: Sequence[str], that: str) -> None:
    absent = [name for name in wanted if name not in file.names]
    if absent:
        columns = "column" if len(absent) == 1 else "columns"
        raise DataError(
            f"{file.label} lacks the {columns} {quoted(absent)} that {that}. Got "
            f"{quoted(file.names, 20)}; add what is lacking, with empty cells if it is "
            "not known."
        )


def _by_position(
    model: Model, file: TableFile, besides: Sequence[str]
) -> dict[str, Column]:
    columns = model.schema.columns
    names = [name for name in file.names if name not in besides]
    if len(names) != len(columns):
        raise DataError(
            f"The model was fitted on a table of {len(columns):,} columns without "
            f"names, so the columns are taken in their order; {file.label} has "
            f"{len(names):,}. Leave out the columns that do not belong."
        )
    return dict(zip(names, columns, strict=True))


def _of_type(columns: dict[str, Column], value_type: str) -> list[str]:
    # A column without a single known value is as good as text.
    return [
        name for name, c in columns.items() if (c.value_type or "text") == value_type
    ]


@contextmanager
def located(file: TableFile, only_one: bool = True) -> Iterator[None]:
    """Add to errors where in the file the row is that they speak of.

    The library counts rows from 0 and does not know of lines. Where it has more than
    one table, the row may be in the other.
    """
    try:
        yield
    except DataError as error:
        found = _ROW.search(str(error)) if only_one else None
        if found is None:
            raise
        place = file.place(int(found[1]))
        message = f"{error} (Row {found[1]} is {place} of {file.label}.)"
        raise DataError(message) from None
