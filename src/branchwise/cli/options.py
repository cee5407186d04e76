"""The options that several verbs share."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Protocol

import typer

from branchwise.table.read import MISSING

#: The heading of the options that say how a table is read.
READING = "Reading the table"
_TABLE = "A CSV, TSV, ARFF, Parquet, Excel or other table file; - is standard input."


class Form(StrEnum):
    """How a result is written."""

    TEXT = "text"
    JSON = "json"


TablePath = Annotated[
    str, typer.Argument(metavar="TABLE", help=_TABLE, show_default=False)
]
#: Several files are one table; the shell makes several of a pattern.
TablePaths = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE",
        help=f"{_TABLE} Several files, a folder or a pattern are one table.",
        show_default=False,
    ),
]
ModelPath = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A model file, written by branchwise fit; - is standard input.",
        show_default=False,
    ),
]
MissingMarks = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="TEXT",
        help="A cell that counts as missing, in place of '?'; may be repeated. Empty "
        "cells always do.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        metavar="COLUMN",
        help="A column whose numbers are names, taken as they are written (007); may "
        "be repeated; all is every column.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Numeric = Annotated[
    list[str] | None,
    typer.Option(
        "--numeric",
        metavar="COLUMN",
        help="A column that must hold numbers; may be repeated.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        help="A column to leave out; may be repeated.",
        show_default=False,
        rich_help_panel=READING,
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write to; - is standard output.",
        show_default="-",
    ),
]
Format = Annotated[Form, typer.Option("--format", help="How to write the result.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No notes and no progress bar.")
]


def missing_marks(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the cells that count as missing; empty ones always do."""
    return MISSING if not given else ("", *given)


class Table(Protocol):
    """What has columns with names."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def label(self) -> str:
        """What messages call it."""

    def check_names(self, names: Sequence[str]) -> None:
        """Raise an error for a name that is not a column."""


def column_names(file: Table, given: Sequence[str] | None) -> list[str]:
    """Return the columns that an option names, one by one or as ``a,b``."""
    names: list[str] = []
    for entry in given or ():
        if entry in file.names or not entry:
            names.append(entry)
        else:
            names.extend(next(csv.reader([entry])))
    file.check_names(names)
    return list(dict.fromkeys(names))


def categorical_names(
    file: Table, given: Sequence[str] | None, others: Sequence[str]
) -> list[str]:
    """Return the columns that ``--categorical`` names; ``all`` are all but others."""
    if given and "all" in given:
        return [name for name in file.names if name not in others]
    return column_names(file, given)
