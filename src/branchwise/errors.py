"""Exceptions and warnings, and helpers that format their messages.

A message has four parts in one or two sentences: which parameter or column, what
is allowed, what was got, and what to do. Every class is a ``ValueError`` too, so
that code written for scikit-learn catches it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from numbers import Integral

#: The largest random seed that scikit-learn and NumPy accept.
MOST_SEED = 2**32 - 1


#: The most characters that a message shows of a name.
_LONGEST_NAME = 100


class BranchwiseError(ValueError):
    """Base class of every error that branchwise raises on purpose."""


class ParameterError(BranchwiseError):
    """A parameter has a value that is not allowed."""


class DataError(BranchwiseError):
    """The table, the labels or the weights cannot be used as they are.

    Parameters
    ----------
    message : str
        What is wrong, and what to do.
    row : int or None
        The row of the table that the message names, counted from 0.
    column : str or None
        The column that the message names together with the row.
    """

    def __init__(
        self, message: str = "", *, row: int | None = None, column: str | None = None
    ) -> None:
        super().__init__(message)
        self.row = None if row is None else int(row)
        self.column = column


class ModelFileError(BranchwiseError):
    """A file is not a complete and valid branchwise model."""


class ExportError(BranchwiseError):
    """A model cannot be exported as requested without changing a prediction."""


class BranchwiseWarning(UserWarning):
    """Base class of the warnings that branchwise gives."""


class FitWarning(BranchwiseWarning):
    """What happened in a fit that its user should know, such as a tree of one leaf."""


def quoted(names: Iterable[object], limit: int = 5) -> str:
    """List a few names in quotes, with a count of those left out."""
    listed = list(names)
    shown = ", ".join(_short(repr(name)) for name in listed[:limit])
    if len(listed) > limit:
        shown += f" and {len(listed) - limit:,} more"
    return shown


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun in the singular or the plural."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def check_limit(name: str, limit: object, least: int, optional: bool = True) -> None:
    """Raise unless a limit is a whole number that is large enough."""
    if limit is None and optional:
        return
    whole = isinstance(limit, Integral) and not isinstance(limit, bool)
    if not whole or limit < least:  # type: ignore[operator]
        raise ParameterError(
            f"{name} must be {'None or ' if optional else ''}a whole number of at "
            f"least {least}. Got {limit!r}."
        )


def check_seed(seed: object) -> int:
    """Return a random seed; raise unless it is a whole number in range."""
    whole = isinstance(seed, Integral) and not isinstance(seed, bool)
    if not whole or not 0 <= seed <= MOST_SEED:  # type: ignore[operator]
        raise ParameterError(
            f"seed must be a whole number from 0 to {MOST_SEED}. Got {seed!r} instead."
        )
    return int(seed)  # type: ignore[call-overload, no-any-return]


def plain(text: str) -> str:
    """Return a text with non-printing characters as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def json_text(
    document: object, indent: int | None = None, allow_nan: bool = True
) -> str:
    """Write plain values as JSON, non-printing characters as JSON escapes."""
    written = json.dumps(
        document, ensure_ascii=False, allow_nan=allow_nan, indent=indent
    )
    return "\n".join(map(_escaped, written.split("\n")))


def _escaped(line: str) -> str:
    # Outside of strings JSON is ASCII: non-printing characters are within strings.
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
