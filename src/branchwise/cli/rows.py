"""Rows for the verbs that speak of single ones: from a table, or typed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from branchwise.cli.models import read_for_model
from branchwise.cli.options import missing_marks
from branchwise.cli.reading import refuse_without_table
from branchwise.cli.streams import Reporter, print_lines
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.explain.writing import Written
from branchwise.model import Model
from branchwise.table.read import TableFile
from branchwise.table.reading import Reading
from branchwise.table.schema import Column, Value

_TRUTH = {"true": True, "false": False}


class WordsForm(StrEnum):
    """How something that is said in words is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


WordsFormat = Annotated[WordsForm, typer.Option("--format", help="How to write it.")]
OptionalTable = Annotated[
    str | None,
    typer.Argument(
        metavar="[TABLE]",
        help="A CSV, TSV or Parquet file; - is standard input.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="COLUMN=VALUE",
        help="A cell of the row; may be repeated. Without a TABLE, all others are "
        "missing; with one, it takes the place of the cell there.",
        show_default=False,
    ),
]


def print_written(written: Written, form: WordsForm) -> None:
    """Write to standard output what is said in words."""
    if form is WordsForm.JSON:
        print_lines([written.to_json()])
    elif form is WordsForm.MARKDOWN:
        print_lines([written.to_markdown()])
    else:
        print_lines([str(written)])


@dataclass(frozen=True)
class Rows:
    """The model that matches columns by name, its rows, and where they come from."""

    model: Model
    rows: Any
    file: TableFile | None
    first: int


def read_rows(
    model: Model,
    table: str | None,
    chosen: int | None,
    settings: Sequence[str] | None,
    missing: Sequence[str] | None,
    reporter: Reporter,
    reading: Reading,
) -> Rows:
    """Read the rows of a table, or the chosen one, and fill in what was typed."""
    refuse_without_table(reading, "TABLE", table)
    typed = _typed_cells(model, settings or (), missing_marks(missing))
    if table is None:
        if not typed:
            raise ParameterError(
                "There is no row to look at. Give a TABLE, or the cells of a row with "
                "--set COLUMN=VALUE."
            )
        if chosen is not None:
            raise ParameterError("--row chooses a row of a TABLE. Give one, too.")
        empty: dict[str, Any] = dict.fromkeys(model.schema.names)
        return Rows(model, [empty | typed], None, 0)
    with reporter.reading(table):
        file = TableFile(table, reading)
        model, content = read_for_model(model, file, missing_marks(missing), reporter)
    first = 0
    if chosen is not None:
        first = _checked_row(chosen, content.num_rows, file)
        content = content.slice(first, 1)
    elif typed and content.num_rows != 1:
        raise ParameterError(
            f"--set fills in one row, and {file.label} has {content.num_rows:,}. "
            "Choose one with --row."
        )
    rows = [{**row, **typed} for row in content.to_pylist()] if typed else content
    return Rows(model, rows, file, first)


def _checked_row(row: int, n_rows: int, file: TableFile) -> int:
    if row >= n_rows:
        raise DataError(
            f"{file.label} has no row {row}. Rows are counted from 0, and it has "
            f"{n_rows:,}."
        )
    return row


def split_pair(option: str, entry: str, names: Sequence[str]) -> tuple[str, str]:
    """Part ``COLUMN=VALUE``; a name may itself have the sign in it."""
    places = [at for at, sign in enumerate(entry) if sign == "="]
    for place in places:
        if entry[:place] in names:
            return entry[:place], entry[place + 1 :]
    if not places:
        raise ParameterError(
            f"{option} must be COLUMN=VALUE. Got {entry!r}; put it in quotes if it "
            "has blanks."
        )
    raise ParameterError(
        f"{option} must name a column of the tree. Got {entry[: places[0]]!r}; the "
        f"columns are {quoted(names, 20)}."
    )


def _typed_cells(
    model: Model, settings: Sequence[str], marks: Sequence[str]
) -> dict[str, Any]:
    columns = {column.name: column for column in model.schema.columns}
    cells: dict[str, Any] = {}
    for entry in settings:
        name, text = split_pair("--set", entry, list(columns))
        cells[name] = None if text in marks else typed_value(columns[name], text)
    return cells


def typed_value(column: Column, text: str) -> Value:
    """Read a typed value as the values of a column are."""
    kind = column.value_type or "text"
    if kind == "text":
        return text
    if kind == "boolean" and text.strip().lower() in _TRUTH:
        return _TRUTH[text.strip().lower()]
    if kind == "number":
        try:
            return float(text)
        except ValueError:
            pass
    wanted = "a number" if kind == "number" else "true or false"
    raise DataError(
        f"Column {column.name!r} takes {wanted}. Got {text!r}; correct it, or leave "
        "it empty if it is missing."
    )
