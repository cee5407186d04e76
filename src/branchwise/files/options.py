"""How a file is to be read, where the file itself does not tell."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from branchwise.errors import ParameterError, quoted

#: The forms that a table may have, with what messages call them.
FORMS: Mapping[str, str] = {
    "csv": "CSV",
    "tsv": "TSV",
    "arff": "ARFF",
    "c4.5": "C4.5",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "excel": "Excel",
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
}
#: How the name of a file ends, with the form that this means.
ENDINGS: Mapping[str, str] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".arff": "arff",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".duckdb": "duckdb",
}
#: How the names of packed files end that can be read.
PACKED = (".gz", ".zst")
#: Runs of blanks and tabs between the cells.
BLANKS = "blanks"
#: What standard input or a packed file may have, unless the user says otherwise.
MOST_BYTES = 8 * 10**9

_TEXT = frozenset(("csv", "tsv", "arff", "c4.5"))
_DELIMITED = frozenset(("csv", "tsv"))
_DATABASES = frozenset(("sqlite", "duckdb"))
#: The forms that each option is for; the others are for all.
_FOR: Mapping[str, frozenset[str]] = {
    "separator": _DELIMITED,
    "encoding": _TEXT,
    "header": _DELIMITED | {"excel"},
    "names": _DELIMITED | {"excel"},
    "names_file": _DELIMITED | {"excel", "c4.5"},
    "sheet": frozenset(("excel",)),
    "table": _DATABASES,
    "query": _DATABASES,
}
_SEPARATORS = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "pipe": "|",
    "blank": BLANKS,
    "space": " ",
}
#: Codecs that are no encodings of files, or that take quadratic time.
_NO_ENCODINGS = frozenset(
    ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")
)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Reading:
    """How a file is to be read; None is what the file itself tells.

    Parameters
    ----------
    form : str or None
        One of ``FORMS``.
    separator : str or None
        What stands between the cells of CSV: one character, one and a blank (blanks
        around cells are no part of them), or "blanks".
    encoding : str or None
        The encoding of text; None is UTF-8, or what a byte order mark says.
    header : bool
        Whether the first line has the names of the columns.
    names : tuple of str or None
        The names of the columns of a file without a header.
    names_file : str or None
        A file with these names, one a line, or a C4.5 names file.
    sheet : str or None
        The name of a sheet, or its number from 1.
    table, query : str or None
        A table of a database, or a query to it.
    max_size : int or None
        The most bytes that standard input or an unpacked file may have.
    flags : bool
        Whether messages speak of the options of the command line.
    """

    form: str | None = None
    separator: str | None = None
    encoding: str | None = None
    header: bool = True
    names: tuple[str, ...] | None = None
    names_file: str | None = None
    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    max_size: int | None = None
    flags: bool = field(default=False, compare=False)

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not as usual, for ``read_table``."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.compare and getattr(self, each.name) != each.default
        }

    @property
    def most_bytes(self) -> int:
        """How much standard input or an unpacked file may have."""
        return MOST_BYTES if self.max_size is None else self.max_size

    @property
    def has_header(self) -> bool:
        """Whether the first row has names: not if they are given otherwise."""
        return self.header and self.names is None and self.names_file is None

    def fitted(self, form: str) -> Reading:
        """Return the options that a form knows, for a further file of that form."""
        useless = dict(self._useless(form))
        standard = {f.name: f.default for f in fields(self) if f.name in useless}
        return Reading(**{**_as_dict(self), **standard, "form": None})

    def check(self, form: str, label: str) -> None:
        """Refuse an option that has no effect on a form."""
        for name, option in self._useless(form):
            known = [FORMS[other] for other in FORMS if other in _FOR[name]]
            raise ParameterError(
                f"{option} has no effect on {label}, which is read as {FORMS[form]}. "
                f"It is for {', '.join(known)}; leave it out, or say what the file is "
                f"with {self.option('form')}."
            )

    def option(self, name: str) -> str:
        """Return what the user calls an option: form, or --from."""
        return _option(name, self.flags)

    def _useless(self, form: str) -> Iterable[tuple[str, str]]:
        for each in fields(self):
            given = getattr(self, each.name) != each.default
            if given and form not in _FOR.get(each.name, FORMS):
                yield each.name, self.option(each.name)


def _as_dict(reading: Reading) -> dict[str, Any]:
    return {each.name: getattr(reading, each.name) for each in fields(reading)}


def _option(name: str, flag: bool) -> str:
    if not flag:
        return name
    spelled = {"form": "from", "header": "no-header"}.get(name, name)
    return f"--{spelled.replace('_', '-')}"


def make_reading(
    form: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    names: Iterable[str] | None = None,
    names_file: str | None = None,
    sheet: str | int | None = None,
    table: str | None = None,
    query: str | None = None,
    max_size: str | int | None = None,
    *,
    flags: bool = False,
) -> Reading:
    """Check the options, and put them in one form.

    With ``flags`` errors name them as the command line does.
    """
    called = partial(_option, flag=flags)
    if form is not None and form not in FORMS:
        raise ParameterError(
            f"{called('form')} must be one of {quoted(FORMS, 99)}. Got {form!r}."
        )
    if names is not None and names_file is not None:
        raise ParameterError(
            f"{called('names')} and {called('names_file')} both name the columns. "
            "Give only one of them."
        )
    if table is not None and query is not None:
        raise ParameterError(
            f"{called('table')} and {called('query')} both say what to read. Give "
            "only one of them."
        )
    return Reading(
        form,
        None if separator is None else _separator(called("separator"), separator),
        None if encoding is None else _encoding(called("encoding"), encoding),
        header,
        None if names is None else _distinct(called("names"), tuple(names)),
        names_file,
        None if sheet is None else str(sheet),
        table,
        query,
        None if max_size is None else _size(called("max_size"), max_size),
        flags,
    )


def _separator(option: str, given: str) -> str:
    found = _SEPARATORS.get(given, given)
    mark = found[:1] if found[1:] == " " else found
    one = len(mark) == 1 and mark.isascii() and mark not in '"\r\n\0'
    if not one and found != BLANKS:
        raise ParameterError(
            f"{option} must be one character of ASCII that is no quotation mark and "
            "no line break, such a character and a blank (', ') where blanks around "
            "cells do not count, tab, or blanks for runs of blanks and tabs. Got "
            f"{given!r}."
        )
    return found


def _encoding(option: str, given: str) -> str:
    name = "undefined"
    with suppress(LookupError, UnicodeError, ValueError):
        bytes(4).decode(given)  # refuses what makes no text, such as zlib
        name = codecs.lookup(given).name
    if name.replace("_", "-") in _NO_ENCODINGS:
        raise ParameterError(
            f"{option} must be the name of a text encoding, such as utf-8, utf-16, "
            f"latin-1 or cp1252. Got {given!r}."
        )
    return name


def _distinct(option: str, names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or len(set(names)) < len(names) or not all(n.strip() for n in names):
        raise ParameterError(
            f"{option} must be the names of all columns, each its own and none empty. "
            f"Got {quoted(names, 20) or 'none'}."
        )
    return names


def _size(option: str, given: str | int) -> int:
    found = _SIZE.fullmatch(str(given).strip())
    if found is None:
        raise ParameterError(
            f"{option} must be a number of bytes, such as 500MB or 20GB. Got {given!r}."
        )
    return int(float(found[1]) * _UNITS[found[2].lower()])
