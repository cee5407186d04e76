"""Options shared by several subcommands: tables, columns, formats, output."""

from __future__ import annotations

import csv
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Protocol, get_type_hints

import typer

from branchwise.cli.support.streams import Reporter
from branchwise.errors import ParameterError, quoted
from branchwise.files.formats import HEADED_FORMATS
from branchwise.files.options import WHITESPACE, Reading, make_reading
from branchwise.files.read_table import MISSING, TableFile

#: The heading of the reading options.
READING = "Reading the table"
_TABLE = "A CSV, TSV, ARFF, Parquet, Excel or other table file; - is standard input."


class OutputFormat(StrEnum):
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
NAValues = Annotated[
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
Format = Annotated[
    OutputFormat, typer.Option("--format", help="How to write the result.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No notes and no progress bar.")
]


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


def categorical_names(
    file: Table, given: Sequence[str] | None, others: Sequence[str]
) -> list[str]:
    """Return the columns that ``--categorical`` names; ``all`` are all but others."""
    if given and "all" in given:
        return [name for name in file.names if name not in others]
    return column_names(file, given)


class TableSource(StrEnum):
    """File formats, as named by ``--from``."""

    CSV = "csv"
    TSV = "tsv"
    ARFF = "arff"
    C45 = "c4.5"
    PARQUET = "parquet"
    ARROW = "arrow"
    EXCEL = "excel"
    SQLITE = "sqlite"
    DUCKDB = "duckdb"


def _option(flag: str, metavar: str | None, text: str) -> Any:
    return typer.Option(
        flag,
        metavar=metavar,
        help=text,
        show_default=False,
        rich_help_panel=READING,
    )


_NUMBER = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")
#: Keeps the names distinct from those of the subcommand's own options.
_PREFIX = "reading_"
#: Parameter of make_reading -> how it is written on the command line.
_OPTIONS: dict[str, Any] = {
    "file_format": Annotated[
        TableSource | None,
        _option("--from", None, "The file format, if the name does not tell it."),
    ],
    "separator": Annotated[
        str | None,
        _option(
            "--separator",
            "CHARACTER",
            f"The separator of CSV cells; also tab, or {WHITESPACE} for runs of spaces "
            "and tabs.",
        ),
    ],
    "encoding": Annotated[
        str | None,
        _option("--encoding", "NAME", "The encoding of text, such as cp1252."),
    ],
    "no_header": Annotated[
        bool,
        _option(
            "--no-header", None, "The first line is a row; columns are x0, x1, ..."
        ),
    ],
    "names": Annotated[
        str | None,
        _option("--names", "A,B,...", "The names of columns without a header."),
    ],
    "names_file": Annotated[
        str | None,
        _option(
            "--names-file",
            "FILE",
            "A file with these names, one a line, or a C4.5 names file.",
        ),
    ],
    "sheet": Annotated[
        str | None,
        _option("--sheet", "NAME", "The sheet of a workbook, or its number from 1."),
    ],
    "table": Annotated[
        str | None, _option("--table", "NAME", "The table of a database.")
    ],
    "query": Annotated[
        str | None,
        _option("--query", "SELECT", "What to select from a database, in SQL."),
    ],
    "max_size": Annotated[
        str | None,
        _option(
            "--max-size",
            "SIZE",
            "The maximum size of piped or decompressed input; 8GB unless given.",
        ),
    ],
}


def with_reading(subcommand: Callable[..., Any]) -> Callable[..., Any]:
    """Add the reading options to a subcommand that has a parameter ``reading``."""
    signature = inspect.signature(subcommand)
    if "reading" not in signature.parameters:
        return subcommand
    hints = get_type_hints(subcommand, include_extras=True)

    @functools.wraps(subcommand)
    def run(**given: Any) -> Any:
        options = {name: given.pop(_PREFIX + name) for name in _OPTIONS}
        return subcommand(**given, reading=_reading(**options))

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        parameter.replace(kind=keyword, annotation=hints.get(name, str))
        for name, parameter in signature.parameters.items()
        if name != "reading"
    ]
    parameters += [
        inspect.Parameter(
            _PREFIX + name,
            keyword,
            default=False if name == "no_header" else None,
            annotation=kind,
        )
        for name, kind in _OPTIONS.items()
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _reading(
    file_format: str | None, no_header: bool, names: str | None, **other: Any
) -> Any:
    listed = None if names is None else next(csv.reader([names]), [])
    file_format = None if file_format is None else str(file_format)
    return make_reading(
        file_format, header=not no_header, names=listed, flags=True, **other
    )


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
