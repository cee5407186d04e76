"""Reader of C4.5 .names and .data files.

It is strict: what is not understood raises an error with its line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, NoReturn, cast

from branchwise.errors import DataError
from branchwise.files.delimited import MARK, Declared, DeclaredRows, rewritten
from branchwise.files.options import Reading
from branchwise.files.raw_bytes import (
    Buffer,
    checked_text,
    contents,
    text_start,
    whole_text,
)

NAMES = ".names"
#: The endings of data files that have a names file.
C45_ENDINGS = (NAMES, ".data", ".test")

_SPECIAL = b'|\\"'
_DISCRETE = re.compile(r"discrete\s+(\d+)", re.IGNORECASE)
_ORDERED = re.compile(r"\[\s*ordered\s*\]\s*", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
#: A name or a value, with escapes and periods that do not end it, and what ends it.
#: Nothing is tried twice, for what ends it is always there. (Possessive repeats of
#: alternatives find nothing in Python 3.11.2.)
_NAME = re.compile(
    r"((?:[^\\,:.\n|]+|\\.|\\\Z|\.(?![ \t\n|]|\Z))*)([,:.\n|]|\Z)", re.DOTALL
)
_CELL = re.compile(
    r"((?:[^\\,.\n|]+|\\.|\\\Z|\.(?!\s*(?:\||\Z)))*)([,.\n|]|\Z)", re.DOTALL
)
_WORDS = frozenset(("date", "time", "timestamp"))
_ADVICE = (
    "A names file has the classes first, then a line such as 'outlook: sunny, rain.' "
    "or 'age: continuous.' for each column. If this is a description in prose, read "
    "the data as CSV without a header"
)


def names_file_of(name: str) -> str | None:
    """Return the names file that goes with a path: stem, .names, .data or .test."""
    path = Path(name)
    try:
        if path.suffix.lower() in C45_ENDINGS:
            names = path.with_suffix(NAMES)
            return str(names) if names.is_file() else None
        names = path.with_name(path.name + NAMES)
        return str(names) if names.is_file() and not path.exists() else None
    except (OSError, ValueError):
        return None


def data_file_of(name: str) -> str:
    """Return the file with the rows: .data, unless .test is given."""
    path = Path(name)
    if path.suffix.lower() == ".test":
        return name
    if path.suffix.lower() in C45_ENDINGS:
        return str(path.with_suffix(".data"))
    return name + ".data"


def open_c45(
    content: Buffer, label: str, names_path: str, reading: Reading
) -> DeclaredRows:
    """Read the names from the file that declares the columns, and the rows as text."""
    columns = read_names(names_path, reading)
    content = checked_text(content, label, reading.encoding, reading.most_bytes)
    body, numbers = rewritten(
        content, text_start(content), 1, _SPECIAL, _cells, b".", True
    )
    if not numbers:
        raise DataError(
            f"{label} is empty. It needs a line for each case, with the values of "
            f"the columns that {names_path} declares, and the class at the end."
        )
    header = f"{names_path} (the class included)"
    return DeclaredRows(body, numbers, columns, label, header)


def read_names(path: str, reading: Reading) -> tuple[Declared, ...]:
    """Read what a names file declares, the class last."""
    content = contents(path, path, reading.most_bytes)
    content = whole_text(content, path, reading.most_bytes)
    content = checked_text(content, path, reading.encoding, reading.most_bytes)
    return _Names(content[text_start(content) :].decode("utf-8"), path).columns()


def _cells(line: str, _: int) -> list[str | None] | None:
    """Return the cells of a row with escapes, a comment or quotation marks."""
    cells: list[str | None] = []
    at = 0
    while True:
        token = _token(line, at, in_row=True)
        cells.append(None if token.text in ("", MARK) else token.text)
        at = token.end
        if token.mark != ",":
            break
    return None if cells == [None] and MARK not in line else cells


class _Token(NamedTuple):
    """A text and what ended it: a line end also for a comment, nothing at the end."""

    text: str
    mark: str
    end: int


def _token(text: str, at: int, in_row: bool = False) -> _Token:
    """Read up to the next comma, colon, period or line end."""
    pattern = _CELL if in_row else _NAME
    found = cast("re.Match[str]", pattern.match(text, at))  # it may be empty
    mark, end = found[2], found.end()
    if mark == "|":
        line_end = text.find("\n", end)
        mark, end = "\n", len(text) if line_end < 0 else line_end + 1
    return _Token(" ".join(_ESCAPE.sub(r"\1", found[1]).split()), mark, end)


class _Names:
    """The entries of a names file, each ended by a period or a line."""

    def __init__(self, text: str, label: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._label = label
        self._at = 0
        self._begin = 0

    def columns(self) -> tuple[Declared, ...]:
        """Return the columns in the order of the data, the class last."""
        classes = self._entry()
        if not classes:
            self._reject("declares no classes")
        declared: dict[str, Declared] = {}
        while (name := self._name()) is not None:
            if name in declared:
                self._reject(f"declares {name!r} a second time")
            declared[name] = self._column(name)
        if not declared:
            self._reject("declares no column after the classes")
        if len(classes) == 1 and classes[0] in declared:
            return tuple(declared.values())  # as in C5.0: the target is a column
        target = "class"
        while target in declared:
            target += "_"
        self._check_twice(target, classes)
        return (*declared.values(), Declared(target, "nominal", tuple(classes)))

    def _column(self, name: str) -> Declared:
        values = self._entry()
        if not values:
            self._reject(f"gives {name!r} neither values nor a type")
        kind = values[0].lower()
        if len(values) == 1:
            if kind == "continuous":
                return Declared(name, "number")
            if kind in ("ignore", "label"):
                return Declared(name, "left out")
            if kind in _WORDS or _DISCRETE.fullmatch(kind):
                return Declared(name, "text")
        ordered = _ORDERED.match(values[0])
        if ordered is not None:
            values[0] = values[0][ordered.end() :]
            if not values[0]:
                self._reject(f"gives {name!r} no values after [ordered]")
        self._check_twice(name, values)
        return Declared(name, "nominal", tuple(values), ordered is not None)

    def _check_twice(self, name: str, values: list[str]) -> None:
        if len(set(values)) < len(values):
            twice = next(v for at, v in enumerate(values) if v in values[:at])
            self._reject(f"gives {name!r} the value {twice!r} twice")

    def _name(self) -> str | None:
        """Return the name of the next column, None at the end."""
        token = self._next()
        if not token.text and not token.mark:
            return None
        if token.mark != ":" or not token.text:
            self._reject(f"has {token.text[:40]!r} where a column and a colon must be")
        if self._text[self._at : self._at + 1] == "=":
            self._reject(
                f"computes {token.text!r} by a formula, which is not supported"
            )
        return token.text

    def _entry(self) -> list[str]:
        """Return the names up to the end of an entry."""
        found: list[str] = []
        while True:
            token = self._next()
            if token.mark == ":":
                self._reject(f"has a colon after {token.text[:40]!r}")
            if token.text:
                found.append(token.text)
            elif token.mark == "," or found:
                self._reject("has a comma without a name beside it")
            if token.mark != ",":
                return found

    def _next(self) -> _Token:
        """Return the next name, empty lines and comments skipped."""
        while True:
            self._begin = self._at
            token = _token(self._text, self._at)
            self._at = token.end
            if token.text or token.mark != "\n":
                return token

    def _reject(self, what: str) -> NoReturn:
        before = self._text[: self._begin]
        skipped = self._text[self._begin : self._at]
        before += skipped[: len(skipped) - len(skipped.lstrip())]
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        raise DataError(
            f"{self._label} {what}: see line {line:,}, column {column:,}. {_ADVICE}."
        )
