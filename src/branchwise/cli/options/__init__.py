"""Options of subcommands: how they are declared, and those that several have."""

from __future__ import annotations

import csv
import functools
import inspect
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import typer

from branchwise.errors import ParameterError
from branchwise.files.options import FORMATS, WHITESPACE, Reading
from branchwise.files.read_table import MISSING

Subcommand = Callable[..., Any]
_Group = TypeVar("_Group", bound=Callable[..., Any])


def argument(metavar: str, text: str, default: Any = ...) -> Any:
    """Declare an argument; it must be given unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=text, show_default=False)


def option(
    names: str,
    text: str,
    shown: str | None = None,
    *,
    default: Any = None,
    panel: str | None = None,
    choices: Sequence[str] = (),
    **limits: Any,
) -> Any:
    """Declare an option: its names and what stands for its value, and its help.

    ``shown`` is the default in words, where the help does not show the value itself;
    with the default ``...`` the option must be given. ``panel`` is the heading that
    lists it, ``limits`` are ``min`` and ``max`` of a number.
    """
    words = names.split()
    flags = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(flags) :]) or None
    if choices:
        metavar = f"<{'|'.join(choices)}>"
        limits["parser"] = functools.partial(_one_of, choices)
    has_default = default not in (None, False, ...)
    return typer.Option(
        default,
        *flags,
        metavar=metavar,
        help=text,
        show_default=shown or has_default,
        rich_help_panel=panel,
        **limits,
    )


def _one_of(choices: Sequence[str], given: str) -> str:
    if given not in choices:
        known = ", ".join(map(repr, choices))
        raise typer.BadParameter(f"{given!r} is not one of {known}.")
    return given


def flag(names: str, text: str, panel: str | None = None) -> Any:
    """Declare an option without a value, which is off unless given."""
    return option(names, text, default=False, panel=panel)


def listed_under(panel: str) -> Callable[[_Group], _Group]:
    """List the options of a group under a heading of the help."""

    def decorate(group: _Group) -> _Group:
        for parameter in inspect.signature(group).parameters.values():
            parameter.default.rich_help_panel = panel
        return group

    return decorate


def takes(**groups: Callable[..., Any]) -> Callable[[Subcommand], Subcommand]:
    """Add groups of options to a subcommand, or to another group.

    The parameters of each function are options; what it makes of them is passed to
    the subcommand as the parameter of this name, in whose place the help lists them.
    """

    def decorate(subcommand: Subcommand) -> Subcommand:
        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in _parameters(subcommand).items():
            own = _parameters(groups[name]) if name in groups else {name: parameter}
            parameters |= own

        @functools.wraps(subcommand)
        def run(**given: Any) -> Any:
            for name, group in groups.items():
                own = {option: given.pop(option) for option in _parameters(group)}
                given[name] = group(**own)
            return subcommand(**given)

        run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {n: p.annotation for n, p in parameters.items()}
        del run.__wrapped__
        return run

    return decorate


def leaving_out(
    group: Callable[..., Any], *names: str, then: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Return a group without some of its options, which are passed as None.

    ``then`` is applied to what the group makes of the others.
    """
    parameters = [p for n, p in _parameters(group).items() if n not in names]

    def smaller(**given: Any) -> Any:
        return then(group(**given, **dict.fromkeys(names)))

    smaller.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return smaller


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function, as keyword-only."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.signature(function, eval_str=True)
    return {n: p.replace(kind=keyword) for n, p in signature.parameters.items()}


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
    return Reading(**options, header=header, flags=True)


def check_share(name: str, share: float | None) -> None:
    """Reject what is no share of the rows."""
    if share is not None and not 0 < share < 1:
        raise ParameterError(
            f"{name} must be a share between 0 and 1, such as 0.3. Got {share:g}."
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
