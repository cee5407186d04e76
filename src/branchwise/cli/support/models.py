"""Model files, and tables read with the columns and types of a model."""

from __future__ import annotations

import filecmp
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from branchwise import model_file
from branchwise.cli.support.streams import Reporter
from branchwise.data.columns import Numbers
from branchwise.data.encode import check_absent, columns_for
from branchwise.data.frames import open_table
from branchwise.data.schema import Column, columns_by_type, value_type
from branchwise.errors import DataError, ModelFileError, ParameterError
from branchwise.files.c45_files import C45_ENDINGS
from branchwise.files.dataset import StreamedTable
from branchwise.files.options import ENDINGS
from branchwise.files.read_table import STANDARD_STREAM, TableFile, with_location
from branchwise.model import Model, load

_TABLES = (*ENDINGS, *C45_ENDINGS)


def open_model(path: str) -> Model:
    """Open a model file; ``-`` is standard input."""
    if path == STANDARD_STREAM:
        content = sys.stdin.buffer.read(model_file.MAX_BYTES + 1)
        return Model(*model_file.from_bytes(content, "standard input"))
    try:
        return load(path)
    except ModelFileError as error:
        if not Path(path).is_file() or Path(path).suffix.lower() not in _TABLES:
            raise
        advice = "Give the model first, then the table."
        raise ModelFileError(f"{error} {advice}") from None


def check_two_streams(**paths: str | None) -> None:
    """Reject more than one input from standard input."""
    streams = [name for name, path in paths.items() if path == STANDARD_STREAM]
    if len(streams) > 1:
        raise ParameterError(
            f"{' and '.join(streams)} are both -, but standard input can be only one "
            "of them. Give a file for the other."
        )


def check_known_rows(table: str, option: str, others: str | None) -> None:
    """Reject the training table as the table to test or prune with."""
    if others is None or not (Path(table).is_file() and Path(others).is_file()):
        return
    if filecmp.cmp(table, others, shallow=False):
        raise ParameterError(
            f"{option} {others} has the rows of {table}, from which the tree is grown. "
            "Give rows that it has not seen."
        )


def read_for_model(
    model: Model,
    file: TableFile,
    missing: Sequence[str],
    reporter: Reporter,
    besides: Sequence[str] = (),
) -> tuple[Model, Any]:
    """Read the columns of a model, each with the type that it had in training.

    Parameters
    ----------
    model : Model
        The model.
    file : TableFile
        The table file.
    missing : sequence of str
        The cells that are missing values.
    reporter : Reporter
        Notes that columns are matched by position.
    besides : sequence of str
        Columns that are no attributes, such as the target.

    Returns
    -------
    Model, pyarrow.Table
        The model, which now matches the columns by name, and the table.
    """
    own_names = columns_of(model, file, reporter, besides)
    types = columns_by_type(own_names)
    table = file.read(
        missing=missing,
        only=list(own_names),
        text_columns=types["text"],
        number_columns=types["number"],
        boolean_columns=types["boolean"],
    )
    table = table.rename_columns([own_names[name].name for name in table.column_names])
    return Model(replace(model.schema, named=True), model.tree, model.recipe), table


def columns_of(
    model: Model,
    file: TableFile | StreamedTable,
    reporter: Reporter,
    besides: Sequence[str] = (),
) -> dict[str, Column]:
    """Return which columns of a file the model means; tell if by their order."""
    own_names = columns_for(model.schema, file.names, file.label, besides)
    if list(own_names) != model.schema.names:
        reporter.note(
            "the model was fitted on a table without column names; the columns of "
            f"{file.label} are taken in their order."
        )
    return own_names


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
    check_absent(file.label, file.names, frame.names, "the other table has")
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


@contextmanager
def located(file: TableFile, only_one: bool = True) -> Iterator[None]:
    """Add to errors where in the file the row is that they speak of.

    Where there is more than one table, the row may be in the other.
    """
    try:
        yield
    except DataError as error:
        found = with_location(error, file.label, file.location) if only_one else None
        if found is None:
            raise
        raise found from None
