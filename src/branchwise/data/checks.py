"""Checks of a table before fitting: identifiers, leaks, duplicates, constants.

Every column is first converted to codes of its distinct values; the checks then only
count. Each :class:`Finding` names the columns and says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from branchwise.data.columns import Coded, Numbers, RawColumn
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.dependence import (
    WITHOUT_MISSING,
    Coding,
    codes_of,
    errors_in_sample,
    errors_without_own,
    in_order,
    same_order,
    same_partition,
)
from branchwise.data.frames import Frame, open_table, read_labels
from branchwise.errors import DataError, counted, quoted
from branchwise.threads import cached_property

#: The most serious first.
Kind = Literal[
    "leak",
    "identifier",
    "many_values",
    "empty",
    "constant",
    "mostly_missing",
    "duplicate",
    "codes",
    "rare_class",
]

#: Fewer rows are not enough to recognise an identifier.
_ENOUGH_ROWS = 10
#: A column with at least this share of distinct values is an identifier.
_NEARLY_ALL = 0.95
#: A column with at least so many values, each in fewer rows than this on average, has
#: many values.
_MANY_VALUES = 20
_FEW_ROWS = 20
#: Whole numbers need more rows, and must be consecutive, to be an identifier.
_ENOUGH_NUMBERS = 20
#: At most so many distinct whole numbers, each at least so often, may be codes.
_FEW_CODES = (3, 10)
_OFTEN = 5
#: A column that determines the class must avoid so many errors of the majority ...
_ENOUGH_ERRORS = 10
#: ... and may leave this share of them.
_LEFT_OVER = 0.01
#: Columns with more errors than this share in the sample are not checked further.
_MANY_LEFT = 0.05
#: With more columns, only exact duplicates are searched for.
_MOST_COMPARED = 300


@dataclass(frozen=True)
class Finding:
    """A problem of a table that was found before fitting.

    Parameters
    ----------
    kind : str
        Its type: "leak", "identifier", ...; ``docs/files.md`` lists them.
    columns : tuple of str
        The columns that have it.
    message : str
        What the problem is.
    advice : str
        What to do.
    """

    kind: Kind
    columns: tuple[str, ...]
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message} {self.advice}"


@dataclass(frozen=True)
class _Subject:
    """A column for the checks; numbers that hardly ever repeat have no ``coding``."""

    name: str
    raw: RawColumn
    coding: Coding | None

    @classmethod
    def of(cls, frame: Frame, index: int) -> _Subject:
        raw = frame.column(index)
        return cls(frame.names[index], raw, codes_of(raw))

    @cached_property
    def n_rows(self) -> int:
        raw = self.raw
        return len(raw.values if isinstance(raw, Numbers) else raw.codes)

    @cached_property
    def n_known(self) -> int:
        if self.coding is not None:
            return int(self.coding.counts.sum())
        return self.n_rows - int(np.isnan(self.numbers).sum())

    @cached_property
    def n_values(self) -> int:
        """How many values occur; about as many as there are rows without coding."""
        return self.n_known if self.coding is None else self.coding.n_values

    @property
    def numbers(self) -> NDArray[np.float64]:
        return self.raw.values if isinstance(self.raw, Numbers) else np.empty(0)

    @property
    def is_of_dates(self) -> bool:
        """Whether its numbers are dates, or derived from dates: never names of rows."""
        how = self.raw.number_format if isinstance(self.raw, Numbers) else None
        return isinstance(how, DateFormat) or hasattr(how, "feature")

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers only, which are no dates."""
        if self.is_of_dates:
            return False
        known = self.numbers[~np.isnan(self.numbers)]
        whole = (known == np.rint(known)) & np.isfinite(known)
        return bool(len(known) and whole.all())

    @property
    def repeats(self) -> bool:
        """Whether values repeat: otherwise any two columns give the same partition."""
        return 2 * self.n_values <= self.n_known

    def finding(self, kind: Kind, problem: str, advice: str) -> Finding:
        """Return a problem of this column."""
        return Finding(kind, (self.name,), f"Column {self.name!r} {problem}", advice)


def find_problems(X: Any, y: Any = None, target: str = "target") -> list[Finding]:
    """Find columns that spoil a tree: :func:`~branchwise.inspect_table`."""
    frame = open_table(X)
    subjects = []
    for index in range(len(frame.names)):
        with suppress(DataError):  # dates, nested values: fit will say what to do
            subjects.append(_Subject.of(frame, index))
    labels = None if y is None else _class_codes(y)
    found = [
        *(finding for subject in subjects for finding in _grave(subject, labels)),
        *(finding for subject in subjects for finding in _minor(subject)),
        *_duplicates(subjects),
        *_rare_classes(labels, target),
    ]
    return sorted(found, key=lambda finding: get_args(Kind).index(finding.kind))


def grave_findings(X: Any, y: Any = None) -> list[Finding]:
    """Find only identifiers and columns that determine the class."""
    frame = open_table(X)
    labels = None if y is None else _class_codes(y)
    subjects = (_Subject.of(frame, index) for index in range(len(frame.names)))
    return [finding for subject in subjects for finding in _grave(subject, labels)]


@dataclass(frozen=True)
class _Labels:
    """The classes of the rows, and the classes with only one row."""

    coding: Coding
    single: tuple[Any, ...]


def _class_codes(y: Any) -> _Labels | None:
    raw = read_labels(y)
    if isinstance(raw, Numbers) and (raw.values != np.rint(raw.values)).any():
        return None
    coding = codes_of(raw)
    if coding is None:
        return None
    codes = np.flatnonzero(coding.counts == 1).tolist()
    rows = [int(np.argmax(coding.codes == code)) for code in codes]
    if isinstance(raw, Coded):
        return _Labels(coding, tuple(raw.values[int(raw.codes[row])] for row in rows))
    return _Labels(coding, tuple(int(raw.values[row]) for row in rows))


def _grave(subject: _Subject, labels: _Labels | None) -> Iterator[Finding]:
    """Find what spoils a tree: columns that determine the class, and identifiers."""
    told = None if labels is None else _leak(subject, labels.coding)
    if told is not None:
        yield subject.finding(
            "leak",
            f"determines the class {told}.",
            "If it is derived from the class, or known only after it, leave it out.",
        )
    if _is_identifier(subject):
        known, values = subject.n_known, subject.n_values
        every = (
            "every row has a different value"
            if values == known
            else f"{values:,} values in {known:,} rows"
        )
        yield subject.finding(
            "identifier",
            f"looks like an identifier: {every}.",
            "A tree would split on it, but new rows have other values: leave it out.",
        )


def _is_identifier(subject: _Subject) -> bool:
    known, values = subject.n_known, subject.n_values
    if not isinstance(subject.raw, Numbers):
        return known >= _ENOUGH_ROWS and values >= _NEARLY_ALL * known
    if subject.is_of_dates:  # one day after the other
        return False
    # Without coding they are not consecutive, or not whole numbers.
    if known < _ENOUGH_NUMBERS or values < known or subject.coding is None:
        return False
    return len(subject.coding.counts) <= WITHOUT_MISSING * known


def _minor(subject: _Subject) -> Iterator[Finding]:
    """Find what a tree cannot use, or may use in another way."""
    rows, known, values = subject.n_rows, subject.n_known, subject.n_values
    if _has_many_values(subject):
        yield subject.finding(
            "many_values",
            f"has {values:,} values in {known:,} rows, about "
            f"{counted(round(known / values), 'row')} for each.",
            "So few rows tell little of a value: merge values that belong together, or "
            "leave it out.",
        )
    if rows and not known:
        yield subject.finding(
            "empty",
            "has no value in any row.",
            "Leave it out, or check which cells are read as missing.",
        )
    if known >= rows >= 2 and values == 1:
        problem = "has the same value in every row."
        advice = "No tree can split on it: leave it out."
        yield subject.finding("constant", problem, advice)
    missing = rows - known
    if known and missing > rows / 2:
        # Not rounded up: 100 % would mean that no value is there.
        percent = int(100 * missing / rows)
        yield subject.finding(
            "mostly_missing",
            f"is missing in {missing:,} of {rows:,} rows ({percent} %).",
            "Check how missing values are treated, or leave it out.",
        )
    few, many = _FEW_CODES
    if few <= values <= many and known >= _OFTEN * values and subject.is_whole:
        yield subject.finding(
            "codes",
            f"has only {values} different whole numbers.",
            "If they are codes and not amounts, treat it as categorical.",
        )


def _has_many_values(subject: _Subject) -> bool:
    known, values = subject.n_known, subject.n_values
    many = values >= _MANY_VALUES and values * _FEW_ROWS > known
    return many and isinstance(subject.raw, Coded) and not _is_identifier(subject)


def _leak(subject: _Subject, classes: Coding) -> str | None:
    """Say how a column determines the class, if it does."""
    base = int(classes.counts.sum() - classes.counts.max(initial=0))
    if classes.n_values < 2 or base < _ENOUGH_ERRORS:
        return None
    missing = _missing_coding(subject)
    if missing is not None and _gives(missing, classes, base):
        return "by whether it is missing"
    return "on its own" if _decides(subject, classes, base) else None


def _missing_coding(subject: _Subject) -> Coding | None:
    """Return known or missing as a column; None where it is the same in all rows."""
    if not 0 < subject.n_known < subject.n_rows:
        return None
    raw = subject.raw
    missing = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
    codes = missing.astype(np.int64)
    return Coding(codes, np.bincount(codes, minlength=2))


def _gives(coding: Coding, classes: Coding, base: int) -> bool:
    """Tell whether rows of the same code have the same class."""
    if errors_in_sample(coding, classes) > _MANY_LEFT:
        return False
    return errors_without_own(coding, classes) <= _LEFT_OVER * base


def _decides(subject: _Subject, classes: Coding, base: int) -> bool:
    """Tell whether rows of the same value, or a few thresholds, give the class."""
    coding = subject.coding
    if coding is not None and subject.repeats:
        if errors_in_sample(coding, classes) > _MANY_LEFT:
            return False
        if errors_without_own(coding, classes) <= _LEFT_OVER * base:
            return True
    if not isinstance(subject.raw, Numbers):
        return False
    return in_order(subject.numbers, classes.codes)


def _duplicates(subjects: Sequence[_Subject]) -> Iterator[Finding]:
    """Find columns that are nearly the same as an earlier one."""
    able = [subject for subject in subjects if subject.n_values > 1]
    done: set[str] = set()
    for first, second in _exactly_alike(able):
        done.add(second)
        yield _duplicate(first, second, "their values correspond in all rows")
    able = [subject for subject in able if subject.name not in done]
    if len(able) > _MOST_COMPARED:
        return
    for at, subject in enumerate(able):
        for other in able[:at]:
            how = None if other.name in done else _alike(other, subject)
            if how is not None:
                done.add(subject.name)
                yield _duplicate(other.name, subject.name, how)
                break


def _exactly_alike(subjects: Sequence[_Subject]) -> Iterator[tuple[str, str]]:
    by_sizes: dict[bytes, list[tuple[str, Coding]]] = {}
    for subject in subjects:
        if subject.coding is not None and subject.repeats:
            same_sizes = by_sizes.setdefault(subject.coding.sizes, [])
            same_sizes.append((subject.name, subject.coding))
    for group in by_sizes.values():
        firsts: dict[bytes, str] = {}
        for name, coding in group if len(group) > 1 else ():
            first = firsts.setdefault(coding.signature, name)
            if first != name:
                yield first, name


def _alike(one: _Subject, other: _Subject) -> str | None:
    both = isinstance(one.raw, Numbers) and isinstance(other.raw, Numbers)
    if both and same_order(one.numbers, other.numbers):
        return "they have the same order of rows"
    if one.coding is None or other.coding is None:
        return None
    if not one.repeats or not other.repeats:
        return None
    if same_partition(one.coding, other.coding):
        return "their values correspond in more than 99 % of the rows"
    return None


def _duplicate(first: str, second: str, how: str) -> Finding:
    return Finding(
        "duplicate",
        (first, second),
        f"Columns {first!r} and {second!r} hold the same information: {how}.",
        "Importances would be divided between them arbitrarily: leave one out.",
    )


def _rare_classes(labels: _Labels | None, target: str) -> Iterator[Finding]:
    single = () if labels is None else labels.single
    if not single:
        return
    classes = "class" if len(single) == 1 else "classes"
    yield Finding(
        "rare_class",
        (target,),
        f"The {classes} {quoted(single)} of {target!r} "
        f"{'has' if len(single) == 1 else 'have'} only one row.",
        "It cannot be both in training and in test rows: merge classes, or add rows.",
    )
