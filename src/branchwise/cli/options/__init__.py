"""Options of subcommands: how they are declared, and those that several have."""

from __future__ import annotations

import csv
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import typer

from branchwise.errors import ParameterError
from branchwise.files.options import FORMATS, Reading
from branchwise.files.read_table import MISSING

Subcommand = Callable[..., Any]


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


class Page:
    """A page of ``cli/help``: the text of a subcommand, and the help of options.

    It looks like what ``--help`` prints: below headings, options with what stands for
    their values, then their help, at its end the default in words.
    """

    def __init__(self, name: str) -> None:
        page = Path(__file__).parents[1] / "help" / f"{name}.txt"
        text, _, declared = page.read_text("utf-8").partition("Options:\n")
        # Lines of examples are not joined.
        self.text = text.replace("Examples:", "\b\nExamples:")
        self._options: dict[str, dict[str, Any]] = {}
        panel = None
        for block in re.split(r"\n(?=  -|\w)", f"\n{declared}"):
            head, _, body = block.partition("\n")
            if head and not head.startswith(" "):
                panel = head.removesuffix(":")
            elif head:
                help_text, _, default = " ".join(body.split()).partition(" [default: ")
                self._options[head.split()[0]] = {
                    "names": head,
                    "text": help_text,
                    "shown": default.removesuffix("]") or None,
                    "panel": panel,
                }

    def option(self, flag: str, default: Any = None, **more: Any) -> Any:
        """Declare an option with the help of this page."""
        return option(**self._options[flag] | {"default": default} | more)

    def flag(self, flag: str, **more: Any) -> Any:
        """Declare an option without a value, which is off unless given."""
        return self.option(flag, False, **more)


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


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function, as keyword-only."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.signature(function, eval_str=True)
    return {n: p.replace(kind=keyword) for n, p in signature.parameters.items()}


_TABLE = "A CSV, TSV, ARFF, Parquet, Excel or other table file; - is standard input."


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


#: Options that several subcommands have.
SHARED = Page("shared")
TARGET = SHARED.option("--target", ...)
OUTPUT = SHARED.option("--output")
#: The output of a subcommand that makes a model.
MODEL_OUTPUT = SHARED.option(
    "--output",
    text="The model file to write, - is standard output. Without it, the tree is "
    "printed.",
    shown=None,
)
TITLE = SHARED.option("--title")
#: One tree of an ensemble.
TREE = SHARED.option("--tree", min=0)
FORMAT = SHARED.option("--format", "text", choices=("text", "json"))
TEXT_FORMAT = SHARED.option(
    "--format", "text", text="How to write it.", choices=("text", "markdown", "json")
)
QUIET = SHARED.flag("--quiet")
SETTINGS = SHARED.option("--set")
NA_VALUES = SHARED.option("--missing")
CATEGORICAL = SHARED.option("--categorical")
NUMERIC = SHARED.option("--numeric")
IGNORE = SHARED.option("--ignore")


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


def listed_names(given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Return the columns that an option names, one by one or as ``a,b``."""
    names: list[str] = []
    for entry in given or ():
        alone = entry in known or not entry
        names += [entry] if alone else next(csv.reader([entry]))
    return names


def column_names(file: Table, given: Sequence[str] | None) -> list[str]:
    """Return the columns of a table that an option names, each once."""
    names = listed_names(given, file.names)
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


def reading_options(
    file_format: str | None = SHARED.option("--from", choices=tuple(FORMATS)),
    separator: str | None = SHARED.option("--separator"),
    encoding: str | None = SHARED.option("--encoding"),
    no_header: bool = SHARED.flag("--no-header"),
    skip: int = SHARED.option("--skip", 0, min=0),
    names: str | None = SHARED.option("--names"),
    names_file: str | None = SHARED.option("--names-file"),
    sheet: str | None = SHARED.option("--sheet"),
    table: str | None = SHARED.option("--table"),
    query: str | None = SHARED.option("--query"),
    max_size: str | None = SHARED.option("--max-size"),
    decimal: str | None = SHARED.option("--decimal"),
    thousands: str | None = SHARED.option("--thousands"),
    date_format: list[str] | None = SHARED.option("--date-format"),
    date_features: list[str] | None = SHARED.option("--date-features"),
    merge_case: bool = SHARED.flag("--merge-case"),
) -> Reading:
    """Return how a table is read."""
    options = dict(locals())
    header = not options.pop("no_header")
    options["date_format"] = date_format or None
    options["date_features"] = date_features or None
    if names is not None:
        options["names"] = next(csv.reader([names]), [])
    return Reading(**options, header=header, flags=True)


def check_share(name: str, share: float | None) -> None:
    """Reject what is no share of the rows."""
    if share is not None and not 0 < share < 1:
        raise ParameterError(
            f"{name} must be a share between 0 and 1, such as 0.3. Got {share:g}."
        )


def check_idle(given: Mapping[str, object], why: str) -> None:
    """Reject options that are given and have no effect; ``why`` follows these words."""
    for name, value in given.items():
        if value is not None and value is not False and value != []:
            raise ParameterError(f"{name} has no effect {why}")


def check_without_table(
    reading: Reading, option: str, path: str | None, **others: object
) -> None:
    """Reject reading options, and others, if there is no table to read."""
    if path is not None:
        return
    check_idle(
        {f"--{name}": value for name, value in others.items()},
        f"here. Give the table that it is about as {option}, or leave it out.",
    )
    if reading != Reading():
        raise ParameterError(
            "Reading options have no effect without a table. Give the table "
            f"as {option}, or leave them out."
        )
