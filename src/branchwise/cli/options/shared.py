"""Options shared by several subcommands: tables, columns, formats, output."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

from branchwise.cli.options.declaration import argument, flag, listed_under, option
from branchwise.cli.support.streams import Reporter
from branchwise.errors import ParameterError, quoted
from branchwise.files.options import (
    FORMATS,
    HEADED_FORMATS,
    WHITESPACE,
    Reading,
    make_reading,
)
from branchwise.files.read_table import MISSING, TableFile

#: The heading of the reading options.
READING = "Reading the table"
_TABLE = "A CSV, TSV, ARFF, Parquet, Excel or other table file; - is standard input."


class OutputFormat(StrEnum):
    """How a result is written."""

    TEXT = "text"
    JSON = "json"


class TextFormat(StrEnum):
    """The format of a text."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


TABLE = argument("TABLE", _TABLE)
#: Several files are one table; the shell makes several of a pattern.
TABLES = argument(
    "TABLE", f"{_TABLE} Several files, a folder or a pattern are one table."
)
OPTIONAL_TABLE = argument(
    "[TABLE]", "A CSV, TSV or Parquet file; - is standard input.", default=None
)
MODEL = argument(
    "MODEL", "A model file, written by branchwise fit; - is standard input."
)


def target_option(text: str, shown: str | None = None, **more: Any) -> Any:
    """Declare ``--target``."""
    return option("--target -t COLUMN", text, shown, **more)


def output_option(text: str, shown: str | None = None, **more: Any) -> Any:
    """Declare ``--output``."""
    return option("--output -o FILE", text, shown, **more)


TARGET = target_option("The column to predict.", default=...)
OUTPUT = output_option("Where to write to; - is standard output.", "-")
#: The output of a subcommand that makes a model.
MODEL_OUTPUT = output_option(
    "The model file to write, - is standard output. Without it, the tree is printed.",
)
TITLE = option("--title TEXT", "The heading of the page.", "what is predicted")
FORMAT = option("--format", "How to write the result.", default=OutputFormat.TEXT)
TEXT_FORMAT = option("--format", "How to write it.", default=TextFormat.TEXT)
QUIET = flag("--quiet -q", "No notes and no progress bar.")
SETTINGS = option(
    "--set COLUMN=VALUE",
    "A cell of the row; may be repeated. Without a TABLE, all others are missing; with "
    "one, it takes the place of the cell there.",
)
NA_VALUES = option(
    "--missing TEXT",
    "A cell that counts as missing, in place of '?'; may be repeated. Empty cells "
    "always do.",
    panel=READING,
)
CATEGORICAL = option(
    "--categorical COLUMN",
    "A column whose numbers are names, taken as they are written (007); may be "
    "repeated; all is every column.",
    panel=READING,
)
NUMERIC = option(
    "--numeric COLUMN",
    "A column that must hold numbers; may be repeated.",
    panel=READING,
)
IGNORE = option(
    "--ignore COLUMN", "A column to leave out; may be repeated.", panel=READING
)


def read_na_values(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the cells that count as missing; empty ones always do."""
    return MISSING if not given else ("", *given)


class Table(Protocol):
    """A table with named columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def label(self) -> str:
        """The name of the table in messages."""

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


def splits(entry: str, sign: str = "=") -> list[tuple[str, str]]:
    """Return the ways to split an entry at a sign, of which it may have several."""
    pieces = entry.split(sign)
    positions = range(1, len(pieces))
    return [(sign.join(pieces[:at]), sign.join(pieces[at:])) for at in positions]


def split_entry(entry: str, names: Sequence[str] = ()) -> tuple[str, str] | None:
    """Split ``NAME=VALUE``, after a known name if there is one, else at the first =.

    None is an entry without =.
    """
    ways = splits(entry)
    known = [way for way in ways if way[0] in names]
    return next(iter(known or ways), None)


def categorical_names(
    file: Table, given: Sequence[str] | None, others: Sequence[str]
) -> list[str]:
    """Return the columns that ``--categorical`` names; ``all`` are all but others."""
    if given and "all" in given:
        return [name for name in file.names if name not in others]
    return column_names(file, given)


_NUMBER = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")


@listed_under(READING)
def reading_options(
    file_format: str | None = option(
        "--from",
        "The file format, if the name does not tell it.",
        choices=tuple(FORMATS),
    ),
    separator: str | None = option(
        "--separator CHARACTER",
        f"The separator of CSV cells; also tab, or {WHITESPACE} for runs of spaces "
        "and tabs.",
    ),
    encoding: str | None = option(
        "--encoding NAME", "The encoding of text, such as cp1252."
    ),
    no_header: bool = flag(
        "--no-header",
        "The first line is a row; columns are x0, x1, ...",
    ),
    names: str | None = option(
        "--names A,B,...", "The names of columns without a header."
    ),
    names_file: str | None = option(
        "--names-file FILE",
        "A file with these names, one a line, or a C4.5 names file.",
    ),
    sheet: str | None = option(
        "--sheet NAME",
        "The sheet of a workbook, or its number from 1.",
    ),
    table: str | None = option("--table NAME", "The table of a database."),
    query: str | None = option(
        "--query SELECT", "What to select from a database, in SQL."
    ),
    max_size: str | None = option(
        "--max-size SIZE",
        "The maximum size of piped or decompressed input; 8GB unless given.",
    ),
) -> Reading:
    """Return how a table is read."""
    options = dict(locals())
    header = not options.pop("no_header")
    if names is not None:
        options["names"] = next(csv.reader([names]), [])
    return make_reading(**options, header=header, flags=True)


def remark_header(file: TableFile, reading: Reading, reporter: Reporter) -> None:
    """Note a first line that looks like a row rather than names."""
    numbers = [name for name in file.names if _NUMBER.fullmatch(name.strip())]
    headed = file.file_format in HEADED_FORMATS and reading.has_header
    if headed and 2 * len(numbers) > len(file.names):
        reporter.note(
            f"the first line of {file.label} has numbers for names: "
            f"{quoted(numbers, 3)}. If it is a row like the others, add --no-header."
        )


def check_without_table(
    reading: Reading, option: str, path: str | None, **others: object
) -> None:
    """Reject reading options, and others, if there is no table to read."""
    given = [name for name, value in others.items() if value is not None]
    if path is None and given:
        raise ParameterError(
            f"--{given[0]} has no effect here. Give the table that it is about as "
            f"{option}, or leave it out."
        )
    if path is None and reading != Reading():
        raise ParameterError(
            "Reading options have no effect without a table. Give the table "
            f"as {option}, or leave them out."
        )
