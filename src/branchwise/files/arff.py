"""Reader of ARFF files (Weka).

It is strict: what is not understood raises an error with its line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NoReturn

from branchwise.errors import DataError
from branchwise.files.csv.csv_rows import Lines
from branchwise.files.delimited import MARK, Declared, DeclaredRows, rewritten
from branchwise.files.options import Reading
from branchwise.files.raw_bytes import (
    Buffer,
    checked_text,
    text_start,
)

_BEGINS = re.compile(rb"(?:\s*%[^\r\n]*[\r\n])*\s*@relation\b", re.IGNORECASE)
_NUMBERS = frozenset(("numeric", "real", "integer"))
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_SHORT = re.compile(r"[0-9]{1,9}")
_SPECIAL = b"%'\"\\{}"
_SPACES = re.compile(r"[ \t]*")
#: A word that is not in quotes, one that is, and escapes in it.
_BARE = re.compile(r"[^ \t,{}%'\"]*")
_QUOTED = {
    mark: re.compile(rf"{mark}([^{mark}\\]*+(?:\\.[^{mark}\\]*+)*+){mark}", re.DOTALL)
    for mark in "'\""
}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def looks_like_arff(content: Buffer) -> bool:
    """Tell whether a text begins as ARFF does."""
    return _BEGINS.match(content[: 2**16].removeprefix(b"\xef\xbb\xbf")) is not None


def open_arff(content: Buffer, label: str, reading: Reading) -> DeclaredRows:
    """Read the header of an ARFF file, and its rows as text."""
    content = checked_text(content, label, reading.encoding, reading.most_bytes)
    lines = Lines(content, text_start(content), label)
    columns = _declared(lines, label)
    rows = _Rows(columns, label)
    body, numbers = rewritten(
        content, lines.position, lines.count + 1, _SPECIAL, rows.cells
    )
    return DeclaredRows(body, numbers, columns, label, "its attributes")


def _declared(lines: Lines, label: str) -> tuple[Declared, ...]:
    """Read the declarations before the rows, up to @data."""
    columns: dict[str, Declared] = {}
    begun = False
    for text in lines:
        words = _Words(text.strip(), label, lines.count)
        if words.at_end():
            continue
        keyword = words.bare().lower()
        if keyword == "@relation" and not begun:
            begun = True
        elif keyword == "@attribute" and begun:
            column = _attribute(words, columns)
            columns[column.name] = column
        elif keyword == "@data" and begun:
            if not columns:
                words.reject("has no @attribute before its @data")
            return tuple(columns.values())
        else:
            words.reject(
                f"has {keyword[:40]!r}, where ARFF has @relation first, then "
                "@attribute for each column, then @data"
            )
    raise DataError(
        f"{label} has no @data line, so it has no rows. Is it truncated? An ARFF file "
        "has @relation, @attribute for each column, @data and the rows."
    )


def _attribute(words: _Words, others: Collection[str]) -> Declared:
    name = words.word("the name of an attribute")
    if name in others:
        words.reject(f"declares {name!r} a second time; every column needs its own")
    column = _typed(name, words)
    if not words.at_end():
        words.reject(
            f"has {words.rest()!r} after the type of {name!r}, which branchwise does "
            "not understand (weights of attributes are not supported)"
        )
    return column


def _typed(name: str, words: _Words) -> Declared:
    if words.take("{"):
        return Declared(name, "nominal", _domain(name, words))
    kind = words.bare().lower()
    if kind in _NUMBERS:
        return Declared(name, "number")
    if kind in ("string", "date"):
        if kind == "date" and not words.at_end():
            words.word("the format of a date")
        return Declared(name, "text")
    if kind == "relational":
        words.reject(
            f"declares {name!r} as relational: a tree cannot split on a table in a "
            "cell. Make columns of it first"
        )
    return words.reject(
        f"gives {name!r} the type {kind[:40]!r}. Known are numeric, real, integer, "
        "string, date and values in braces, such as {yes, no}"
    )


def _domain(name: str, words: _Words) -> tuple[str, ...]:
    values: dict[str, None] = {}
    while not words.take("}"):
        if values and not words.take(","):
            words.reject(f"lacks a comma or a }} among the values of {name!r}")
        value = words.word(f"a value of {name!r}")
        if value in values:
            words.reject(f"declares the value {value!r} of {name!r} twice")
        values[value] = None
    return tuple(values)


class _Rows:
    """Parser of rows with quotes, comments or braces."""

    def __init__(self, columns: Sequence[Declared], label: str) -> None:
        self._columns = columns
        self._label = label
        self._zeros: list[str | None] = [
            {"number": "0", "nominal": column.values[0] if column.values else None}.get(
                column.kind
            )
            for column in columns
        ]

    def cells(self, text: str, number: int) -> list[str | None] | None:
        """Return the cells of a row, None for a line without one."""
        words = _Words(text, self._label, number)
        if words.at_end():
            return None
        if words.take("{"):
            return self._sparse(words)
        cells = [words.cell()]
        while words.take(","):
            if words.peek() == "{":
                words.raise_weight()
            cells.append(words.cell())
        if not words.at_end():
            words.reject(
                f"has {words.rest()!r} where a comma or the end of the row must be; a "
                "value with whitespace must be in quotes"
            )
        if len(cells) != len(self._columns):
            words.reject(
                f"has {len(cells):,} cells, but there are {len(self._columns):,} "
                "attributes. Look for a missing or a surplus comma"
            )
        return cells

    def _sparse(self, words: _Words) -> list[str | None]:
        cells = list(self._zeros)
        given: set[int] = set()
        while not words.take("}"):
            if given and not words.take(","):
                words.reject("lacks a comma or a } in its sparse row")
            index = words.bare()
            if not _SHORT.fullmatch(index) or not int(index) < len(cells):
                words.reject(
                    f"has {index[:40]!r} as the number of a column, which must be from "
                    f"0 to {len(cells) - 1}"
                )
            at = int(index)
            if at in given:
                words.reject(f"has column {at} twice")
            given.add(at)
            cells[at] = words.cell()
        if words.take(",") or not words.at_end():
            words.raise_weight()
        for at, column in enumerate(self._columns):
            if at not in given and column.kind == "text":
                words.reject(
                    f"leaves out {column.name!r}, and text has no zero to put there. "
                    "Write it, or ? if it is missing"
                )
        return cells


class _Words:
    """The words of a line."""

    def __init__(self, text: str, label: str, line: int) -> None:
        self._text = text
        self._label = label
        self._line = line
        self._at = 0

    def peek(self) -> str:
        """Return the next character that is not whitespace; "" at the end."""
        self._at = _SPACES.match(self._text, self._at).end()  # type: ignore[union-attr]
        found = self._text[self._at : self._at + 1]
        return "" if found == "%" else found

    def at_end(self) -> bool:
        """Whether only a comment may be left."""
        return not self.peek()

    def take(self, character: str) -> bool:
        """Step over a character if it is the next."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def rest(self) -> str:
        """Return what is left, shortened."""
        return self._text[self._at : self._at + 40]

    def bare(self) -> str:
        """Return the next word that is not in quotes."""
        self.peek()
        found = _BARE.match(self._text, self._at)[0]  # type: ignore[index]
        self._at += len(found)
        return found

    def word(self, what: str) -> str:
        """Return the next word, in quotes or not."""
        if self.peek() in ("'", '"'):
            return self._quoted()
        found = self.bare()
        if not found:
            self.reject(f"lacks {what}")
        return found

    def cell(self) -> str | None:
        """Return the next cell; None is a missing value."""
        if self.peek() in ("'", '"'):
            return self._quoted()
        found = self.bare()
        return None if found in (MARK, "") else found

    def _quoted(self) -> str:
        found = _QUOTED[self._text[self._at]].match(self._text, self._at)
        if found is None:
            self.reject("opens a quotation mark that is never closed")
        start, self._at = found.start(1), found.end()
        return _ESCAPE.sub(lambda escape: self._escaped(escape, start), found[1])

    def _escaped(self, escape: re.Match[str], start: int) -> str:
        code, character = escape.groups()
        if character is not None and character != "u":
            return _ESCAPES.get(character, character)
        if code is None:
            self._at = start + escape.end()
            self.reject("has \\u without four hexadecimal digits")
        if 0xD800 <= int(code, 16) < 0xE000:
            self._at = start + escape.end()
            self.reject(f"has \\u{code}, which is no character")
        return chr(int(code, 16))

    def reject(self, what: str) -> NoReturn:
        """Reject the line."""
        raise DataError(
            f"{self._label} {what}: see line {self._line:,}, column {self._at + 1:,}."
        )

    def raise_weight(self) -> NoReturn:
        """Reject a weight after a row."""
        self.reject(
            f"has {self.rest()!r} after a row. Weights of rows are taken from a "
            "column, not from braces: make it a numeric attribute, and name it as "
            "the weight"
        )
