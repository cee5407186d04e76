"""What may be wrong with how a column is taken, and the option that corrects it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from branchwise.findings import Finding
from branchwise.table.frames import Frame
from branchwise.table.raw import Coded, Numbers, RawColumn
from branchwise.table.schema import Value

#: A table with fewer rows says nothing about which column is an identifier.
_ENOUGH_ROWS = 10
#: Whole numbers with no more values than this may well be names.
_FEW_NUMBERS = 5
#: So many values that are no numbers may be marks of missing ones.
_FEW_WORDS = 2
#: With so many numbers among its values, a column is hardly meant as text.
_MANY_NUMBERS = 10
#: What people write, in upper or lower case, for a missing value.
_USUAL_MARKS = frozenset(("", "?", "na", "n/a", "nan", "null", "-", "--", "."))


def hint(name: str, raw: RawColumn, padded: str | None = None) -> str:
    """Tell how a column may have to be corrected, or nothing.

    Parameters
    ----------
    name : str
        The name of the column.
    raw : Coded or Numbers
        The column as it was read.
    padded : str or None
        A number as it is in the file, with zeros in front of it.
    """
    if has_no_value(raw):
        return f"no value at all: {option('--ignore', name)}"
    if isinstance(raw, Coded):
        return _text_hint(name, raw)
    if padded is not None:
        return f"{option('--categorical', name)} keeps zeros in front, as in {padded}"
    distinct = np.unique(raw.values[~np.isnan(raw.values)])
    if len(distinct) <= _FEW_NUMBERS and (distinct == np.rint(distinct)).all():
        return f"{option('--categorical', name)} if these numbers are names"
    return ""


def _text_hint(name: str, raw: Coded) -> str:
    values = present_values(raw)
    words = _words(values)
    if 0 < len(words) <= min(_FEW_WORDS, len(values) - 1):
        return f"numeric with {as_missing(words)}"
    if is_identifier(raw):
        return f"another value in every row: {option('--ignore', name)}?"
    marks = [text for text in words if _is_usual_mark(text)]
    if marks:
        return f"{as_missing(marks)} if that is no value"
    if any(text != text.strip() for text in words):
        return "blanks around some values are part of them"
    return "one value only" if len(values) == 1 else ""


def present_values(raw: Coded) -> tuple[Value, ...]:
    """Return the values that occur, in their order."""
    codes = np.unique(raw.codes[raw.codes >= 0]).tolist()
    return tuple(raw.values[code] for code in codes)


def has_no_value(raw: RawColumn) -> bool:
    """Whether every cell is missing."""
    if isinstance(raw, Numbers):
        return bool(np.isnan(raw.values).all())
    return not (raw.codes >= 0).any()


def is_identifier(raw: Coded) -> bool:
    """Whether a text column tells every row from every other."""
    n_rows = len(raw.codes)
    return n_rows >= _ENOUGH_ROWS and len(np.unique(raw.codes)) == n_rows


def stray_words(raw: Coded) -> list[str]:
    """Return the few words that keep a column from being numeric."""
    values = present_values(raw)
    words = _words(values)
    n_numbers = len(values) - len(words)
    if not n_numbers or not 0 < len(words) <= _FEW_WORDS:
        return []
    usual = all(_is_usual_mark(text) for text in words)
    return words if usual or n_numbers >= _MANY_NUMBERS else []


def as_missing(words: Sequence[str]) -> str:
    """Write the options that make words missing values."""
    return " ".join(option("--missing", text) for text in words)


def without_mistaken(findings: Sequence[Finding], frame: Frame) -> list[Finding]:
    """Leave out text that is only text because of a few words among its numbers.

    It does not name rows: it is to be read as numbers, as another hint says.
    """
    kept = []
    for finding in findings:
        if finding.kind == "identifier":
            raw = frame.column(frame.names.index(finding.columns[0]))
            if isinstance(raw, Coded) and stray_words(raw):
                continue
        kept.append(finding)
    return kept


def with_option(finding: Finding) -> str:
    """Write a finding with the option that does what it advises."""
    flag = "--categorical" if finding.kind == "codes" else "--ignore"
    said = finding.message[0].lower() + finding.message[1:]
    if not finding.advice.endswith((" out.", " categorical.")):
        return f"{said} {finding.advice}"
    correction = option(flag, finding.columns[-1])
    return f"{said} {finding.advice.removesuffix('.')} with {correction}."


def option(name: str, value: str) -> str:
    """Write an option as it can be typed into a shell."""
    return f"{name} {shlex.quote(value)}"


def _words(values: Sequence[Value]) -> list[str]:
    return [str(value) for value in values if not _is_number(value)]


def _is_usual_mark(text: str) -> bool:
    return text.strip().lower() in _USUAL_MARKS


def _is_number(value: Value) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
