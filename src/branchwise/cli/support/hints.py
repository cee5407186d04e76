"""Hints about columns: how to correct with options what they are taken for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from branchwise.cli.support import Reporter
from branchwise.data.checks import Finding, grave_findings
from branchwise.data.columns import Coded, Numbers, RawColumn
from branchwise.data.conventions.date_format import detect_dates, may_be_date
from branchwise.data.conventions.number_format import detect_texts, follows_any
from branchwise.data.conventions.spellings import folded, spellings
from branchwise.data.frames import Frame, open_table, read_vector
from branchwise.data.table_schema import Column, Value
from branchwise.errors import quoted
from branchwise.files.number_columns import (
    NumberColumns,
    note_of_identifiers,
    two_readings,
)
from branchwise.files.options import HEADED_FORMATS, Reading, as_number
from branchwise.files.read_table import TableFile
from branchwise.recipe.parameters import PARAMETERS

if TYPE_CHECKING:
    from branchwise.train.fit_findings import FitFinding

#: With fewer rows no column is reported as an identifier.
_ENOUGH_ROWS = 10
#: Whole numbers with no more values than this may well be names.
_FEW_NUMBERS = 5
#: So many values that are no numbers may be marks of missing ones.
_FEW_WORDS = 2
#: With so many numbers among its values, a column is hardly meant as text.
_MANY_NUMBERS = 10
#: What people write, in upper or lower case, for a missing value.
_USUAL_NA_VALUES = frozenset(("", "?", "na", "n/a", "nan", "null", "-", "--", "."))
#: With so large a share of its cells alike, a column is meant to hold such cells.
_NEARLY_ALL = 0.95
#: How many texts a hint shows.
_SHOWN = 3
#: Of so many values one is a date where a column has dates.
_SAMPLE = 20


def hint(name: str, raw: RawColumn, padded: str | None = None) -> str:
    """Tell how a column may have to be corrected, or nothing.

    ``padded`` is a number as it is in the file, with zeros in front of it.
    """
    if has_no_value(raw):
        return f"no value at all: {written('--ignore', name)}"
    if isinstance(raw, Coded):
        return _text_hint(name, raw)
    if padded is not None:
        return f"{written('--categorical', name)} keeps zeros in front, as in {padded}"
    distinct = np.unique(raw.values[~np.isnan(raw.values)])
    if raw.date is not None:
        return ""
    if len(distinct) <= _FEW_NUMBERS and (distinct == np.rint(distinct)).all():
        return f"{written('--categorical', name)} if these numbers are names"
    return ""


def unusable_hint(name: str, column: Any) -> str:
    """Tell why a column of Arrow cannot be used, and what to do."""
    ignore = written("--ignore", name)
    if str(column.type).removeprefix("u").startswith("int"):
        return (
            "whole numbers beyond 2^53 are not exact: "
            f"{written('--categorical', name)} takes them as names, or {ignore}"
        )
    return f"{column.type} cannot be used: {ignore}"


def number_hint(name: str, numbers: NumberColumns) -> str:
    """Tell how text is read as numbers, or that it can be read in two ways."""
    dates = numbers.dates
    if name in dates.ambiguous:
        return f"ambiguous: {dates.readings(name)}: {dates.choices(name)}"
    if name in dates.examples:
        text, date = dates.examples[name]
        return f"{text!r} is {date}"
    if name in numbers.ambiguous:
        detected = numbers.ambiguous[name]
        return f"ambiguous: {two_readings(detected)}: {numbers.choices(detected)}"
    if name in numbers.examples:
        text, number = numbers.examples[name]
        return f"{text!r} is {number:.15g}"
    return ""


def _text_hint(name: str, raw: Coded) -> str:
    values = present_values(raw)
    words = _words(values)
    dressed = _dressed_numbers(name, raw) or _dressed_dates(raw)
    if dressed:
        return dressed
    several = spellings(values)
    if several:
        return f"--merge-case if {_one_of_several(several)} are one value"
    if 0 < len(words) <= min(_FEW_WORDS, len(values) - 1):
        return f"numeric with {_as_missing(words)}"
    if is_identifier(raw):
        return f"another value in every row: {written('--ignore', name)}?"
    na_values = [text for text in words if _is_usual_na_value(text)]
    if na_values:
        return f"{_as_missing(na_values)} if that is no value"
    if any(text != text.strip() for text in words):
        return "spaces around some values are part of them"
    return "one value only" if len(values) == 1 else ""


def _one_of_several(several: Sequence[Sequence[str]]) -> str:
    """Write spellings of values, at most so many."""
    more = len(several) - _SHOWN
    rest = f" ({more:,} more)" if more > 0 else ""
    return "; ".join(quoted(group) for group in several[:_SHOWN]) + rest


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


def why_text(name: str, raw: Coded) -> str:
    """Tell why a column that seems to hold numbers is taken for text, or nothing."""
    dressed = _dressed_numbers(name, raw) or _dressed_dates(raw)
    if dressed:
        return dressed
    words = _stray_words(raw)
    if not words:
        return ""
    return (
        f"taken for text because of {quoted(words)}; it is numeric with "
        f"{_as_missing(words)}"
    )


def _stray_words(raw: Coded) -> list[str]:
    """Return the few words that keep a column from being numeric."""
    values = present_values(raw)
    words = _words(values)
    n_numbers = len(values) - len(words)
    if not n_numbers or not 0 < len(words) <= _FEW_WORDS:
        return []
    usual = all(_is_usual_na_value(text) for text in words)
    return words if usual or n_numbers >= _MANY_NUMBERS else []


def _dressed_numbers(name: str, raw: Coded) -> str:
    """Say why text that looks like numbers is none, if it does.

    Commas, currency and percent signs, and spaces between digits make text of numbers
    that are not all written in one way, and nearly every row then has another value.
    """
    times = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.values))
    others_left = (1.0 - _NEARLY_ALL) * float(times.sum())
    numbers, others, dressed = [], [], []
    for text, n_cells in zip(map(str, raw.values), times.tolist(), strict=True):
        if not n_cells:
            continue
        if not follows_any(text):
            others.append(text)
            others_left -= n_cells
            if others_left < 0 and len(others) > _FEW_WORDS:
                return ""
            continue
        numbers.append(text)
        if as_number(text) is None:
            dressed.append(text)
    if not dressed or (others_left < 0 and len(numbers) < _MANY_NUMBERS):
        return ""
    if not detect_texts(numbers).formats:
        return (
            "taken for names: its numbers are not all written in one way, such as "
            f"{quoted(numbers, _SHOWN)}"
        )
    if others:
        return (
            f"taken for text because of {quoted(others, _SHOWN)}; it is numeric with "
            f"{_as_missing(others[:_SHOWN])}"
        )
    return f"taken for names: {written('--numeric', name)} reads {dressed[0]!r}"


def _dressed_dates(raw: Coded) -> str:
    """Say why text of which nearly all are dates is none, if it is so."""
    if not any(may_be_date(str(value)) for value in raw.values[:_SAMPLE]):
        return ""
    times = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.values))
    dates, others, other_cells = [], [], 0
    for text, n_cells in zip(map(str, raw.values), times.tolist(), strict=True):
        if n_cells and detect_dates([text]).moments:
            dates.append(text)
        elif n_cells:
            others.append(text)
            other_cells += n_cells
    if other_cells > (1.0 - _NEARLY_ALL) * float(times.sum()) and (
        len(others) > _FEW_WORDS or len(dates) < _MANY_NUMBERS
    ):
        return ""
    if not detect_dates(dates).moments:
        return (
            "taken for names: its dates are not all written in one way, such as "
            f"{quoted(_unlike(dates), _SHOWN)}"
        )
    if not others:
        return ""
    return (
        f"taken for text because of {quoted(others, _SHOWN)}; it has dates with "
        f"{_as_missing(others[:_SHOWN])}"
    )


def _unlike(dates: Sequence[str]) -> list[str]:
    """Return the first date of each format."""
    found = {next(iter(detect_dates([text]).moments)): text for text in reversed(dates)}
    return [*reversed(found.values())]


def _as_missing(words: Sequence[str]) -> str:
    """Write the options that make words missing values."""
    return " ".join(written("--missing", text) for text in words)


def without_mistaken(findings: Sequence[Finding], frame: Frame) -> list[Finding]:
    """Leave out text that is only text because of how its numbers are written.

    It does not identify rows: another hint advises to read it as numbers.
    """
    kept = []
    for finding in findings:
        if finding.kind == "identifier":
            name = finding.columns[0]
            raw = frame.column(frame.names.index(name))
            if isinstance(raw, Coded) and why_text(name, raw):
                continue
        kept.append(finding)
    return kept


def with_option(finding: Finding) -> str:
    """Write a finding with the option that does what it advises."""
    flag = "--categorical" if finding.kind == "codes" else "--ignore"
    said = finding.message[0].lower() + finding.message[1:]
    if not finding.advice.endswith((" out.", " categorical.")):
        return f"{said} {finding.advice}"
    correction = written(flag, finding.columns[-1])
    return f"{said} {finding.advice.removesuffix('.')} with {correction}."


def remark_fit(found: Sequence[FitFinding], reporter: Reporter) -> None:
    """Note what happened in a fit, with options in place of parameters."""
    for finding in found:
        said = finding.message[0].lower() + finding.message[1:]
        advice = _PARAMETER.sub(_as_option, finding.advice)
        if advice.endswith(" leave it out."):
            correction = written("--ignore", finding.columns[0])
            advice = f"{advice.removesuffix('.')} with {correction}."
        reporter.note(f"{_PARAMETER.sub(_as_option, said)} {advice}")


#: A parameter with its value, or a name that only parameters have.
_PARAMETER = re.compile(
    r"(?<!['\w])([a-z]+(?:_[a-z]+)*)='?([-\w.]*\w)'?|\b[a-z]+_[a-z_]+\b"
)


def _as_option(match: re.Match[str]) -> str:
    name = match[1] or match[0]
    if name not in PARAMETERS:
        return match[0]
    option = "--" + (PARAMETERS[name].renamed or name).replace("_", "-")
    return f"{option} {match[2]}" if match[1] else option


def written(name: str, value: str) -> str:
    """Write an option as it can be typed into a shell."""
    quoted_value = shlex.quote(value)
    # A sentence may go on with a full stop, which must not look like part of the name.
    if quoted_value == value and not value[-1:].isalnum():
        quoted_value = f"'{value}'"
    return f"{name} {quoted_value}"


def _words(values: Sequence[Value]) -> list[str]:
    return [text for text in map(str, values) if as_number(text) is None]


def _is_usual_na_value(text: str) -> bool:
    return text.strip().lower() in _USUAL_NA_VALUES


_NUMBER = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")


def remark_header(file: TableFile, reading: Reading, reporter: Reporter) -> None:
    """Note a first line that looks like a row rather than names."""
    if len(file.sheets) > 1 and reading.sheet is None:
        reporter.note(
            f"the sheet {file.sheets[0]!r} of {file.label} is read; others are "
            f"{quoted(file.sheets[1:])} (--sheet)."
        )
    if file.title_lines:
        reporter.note(
            f"the first line of {file.label} looks like a title: --skip "
            f"{file.title_lines} leaves out what is above the header."
        )
    if file.unnamed:
        title = 2 * len(file.unnamed) > len(file.names) > 1
        advice = "--skip 1 if the first line is a title" if title else ""
        advice = advice or "--ignore '' leaves out those without a name"
        reporter.note(
            f"the header of {file.label} has no name for {quoted(file.unnamed)}; "
            f"{advice}."
        )
    if file.identifiers:
        reporter.note(note_of_identifiers(file.identifiers, file.label))
    numbers = [name for name in file.names if _NUMBER.fullmatch(name.strip())]
    headed = file.file_format in HEADED_FORMATS and reading.has_header
    if headed and 2 * len(numbers) > len(file.names):
        reporter.note(
            f"the first line of {file.label} has numbers for names: "
            f"{quoted(numbers, 3)}. If it is a row like the others, add --no-header."
        )


#: So many whole numbers are hardly meant as classes.
_MANY_CLASSES = 50


def remark_classes(labels: Any, target: str, reporter: Reporter) -> None:
    """Note numbers that are hardly meant as classes, and spellings of one class."""
    raw = read_vector(labels, target)
    remark_several(target, raw, reporter)
    classes = len(np.unique(raw.values)) if isinstance(raw, Numbers) else 0
    if classes >= _MANY_CLASSES:
        reporter.note(
            f"each of the {classes:,} numbers in {target!r} is taken for a "
            "class; --algorithm cart --regression predicts them as numbers."
        )


def remark_columns(attributes: Any, text: Sequence[str], reporter: Reporter) -> None:
    """Note columns that cannot help, or are taken for text."""
    frame = open_table(attributes)
    empty = []
    for index, name in enumerate(frame.names):
        raw = frame.column(index)
        if has_no_value(raw):
            empty.append(name)
        elif isinstance(raw, Coded):
            remark_several(name, raw, reporter)
            why = "" if name in text else why_text(name, raw)
            if why:
                reporter.note(f"column {name!r} is {why}.")
    if empty:
        noun = "column" if len(empty) == 1 else "columns"
        reporter.note(f"no row has a value in {noun} {quoted(empty)}.")


def remark_several(name: str, raw: RawColumn, reporter: Reporter) -> None:
    """Note values of a column that differ only in case or whitespace."""
    several = spellings(present_values(raw)) if isinstance(raw, Coded) else []
    if several:
        reporter.note(
            f"values of column {name!r} differ only in case or spaces: "
            f"{_one_of_several(several)}. --merge-case merges them."
        )


def remark_spellings(
    own_names: Mapping[str, Column], table: Any, reporter: Reporter
) -> None:
    """Note values that a model would know in another spelling."""
    frame = open_table(table)
    for index, name in enumerate(frame.names):
        column = own_names[name]
        if column.value_type != "text":
            continue
        raw = frame.column(index)
        known = {folded(str(value)) for value in column.categories}
        unseen = [
            value
            for value in (raw.values if isinstance(raw, Coded) else ())
            if value not in column.code_of and folded(str(value)) in known
        ]
        if unseen:
            reporter.note(
                f"column {name!r} has {quoted(unseen)}, which differ only in case or "
                "spaces from values that the model knows; --merge-case merges them."
            )


def remark_findings(attributes: Any, classes: Any, reporter: Reporter) -> None:
    """Note columns that help too well: they name rows, or give the class away."""
    if reporter.quiet:
        return
    found = grave_findings(attributes, classes)
    for finding in without_mistaken(found, open_table(attributes)):
        reporter.note(with_option(finding))
