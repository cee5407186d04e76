"""Text columns of dates as people write them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from branchwise.data.arrow import Reject, as_dictionary, pa, raise_first
from branchwise.data.conventions.date_format import (
    ISO,
    DateFormat,
    DetectedDates,
    Moment,
    detect_dates,
    may_be_date,
    moment_of,
)
from branchwise.errors import DataError, quoted
from branchwise.files.options import Reading


@dataclass
class DateColumns:
    """Reads the text columns of a table that hold dates.

    ``reading.date_format`` is insisted on: for the columns that it names, else where a
    column can be read in two ways. ``label`` is the name of the table in messages.
    """

    reading: Reading
    label: str
    #: The formats by column, once columns have been read.
    formats: dict[str, DateFormat] = field(default_factory=dict)
    #: A text of each column that is not plainly a date, and the date that it is.
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: The columns that can be read in two ways, which stay text.
    ambiguous: dict[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)

    def insisted(self, name: str) -> str | None:
        """Return the format that is insisted on for a column."""
        given = self.reading.date_format or {}
        return given.get(name, given.get(""))

    def is_named(self, name: str) -> bool:
        """Whether a format is insisted on for this very column."""
        return name in (self.reading.date_format or {})

    def detected(self, name: str, column: Any) -> Any:
        """Return a text column as dates, if it has dates; else None."""
        array = as_dictionary(column)
        texts = array.dictionary.to_pylist()
        insisted = self.insisted(name)
        if not texts or (insisted is None and not may_be_date(texts[0])):
            return None
        found = detect_dates(texts, insisted)
        if not found.moments:
            return None
        if found.mixed is not None:
            self._raise_mixed(name, found.mixed)
        if len(found.moments) > 1 and insisted not in found.moments:
            text = texts[found.position]
            readings = {
                written: _shown(moments[found.position])
                for written, moments in found.moments.items()
            }
            self.ambiguous[name] = (text, readings)
            return None
        several = insisted if insisted in found.moments else next(iter(found.moments))
        return self._taken(name, array, texts, found, str(several))

    def _taken(
        self,
        name: str,
        array: Any,
        texts: list[str],
        found: DetectedDates,
        written: str,
    ) -> Any:
        moments = found.moments[written]
        days = not any(moment.has_time for moment in moments)
        zoned = moments[0].zoned
        unit = "day" if days and not zoned else "microsecond"
        self.formats[name] = DateFormat(unit, zoned, written)
        if written != ISO:
            # A day beyond 12 shows best which number is the day.
            at = int(np.argmax([_day_of_month(moment) for moment in moments]))
            self.examples[name] = (texts[at], _shown(moments[at]))
        return _taken_by(array, moments)

    def parsed(self, name: str, column: Any, how: DateFormat, reject: Reject) -> Any:
        """Return a text column as dates in its known format, or as ISO dates."""
        array = as_dictionary(column)
        texts = array.dictionary.to_pylist()
        found = [moment_of(t, how.written) or moment_of(t, ISO) for t in texts]
        wrong = [at for at, moment in enumerate(found) if moment is None]
        raise_first(array, wrong, reject)
        moments = [moment or Moment(0, False, False) for moment in found]
        zoned = [moment.zoned for moment in moments]
        if any(zoned) and not all(zoned):
            mixed = texts[zoned.index(True)], texts[zoned.index(False)]
            self._raise_mixed(name, mixed)
        self.formats[name] = how
        if not moments:
            return pa.chunked_array([pa.nulls(len(array), pa.date32())])
        return _taken_by(array, moments)

    def note(self) -> str:
        """Say which columns are read as dates."""
        shown = [
            f"{name!r} ({text!r} is {date})"
            for name, (text, date) in self.examples.items()
        ]
        noun = "column is" if len(shown) == 1 else "columns are"
        keep = (
            "--categorical COLUMN keeps the text"
            if self.reading.flags
            else "name those to keep as text in text_columns"
        )
        listed = ", ".join(shown[:5])
        if len(shown) > 5:
            listed += f" and {len(shown) - 5:,} more"
        return f"{len(shown):,} text {noun} read as dates: {listed}; {keep}."

    def check_ambiguous(self) -> None:
        """Raise an error that shows both readings of columns that have two."""
        if not self.ambiguous:
            return
        name, _ = next(iter(self.ambiguous.items()))
        others = [other for other in self.ambiguous if other != name]
        more = f" So can {quoted(others)}." if others else ""
        raise DataError(
            f"Column {name!r} of {self.label} can be read in two ways: "
            f"{self.readings(name)}.{more} Say which is meant: {self.choices(name)}; "
            f"or keep the text with {self._kept(name)}."
        )

    def readings(self, name: str) -> str:
        """Write both readings of a column that has two."""
        text, readings = self.ambiguous[name]
        ways = [f"{date} as {written}" for written, date in readings.items()]
        return f"{text!r} is {' or '.join(ways)}"

    def choices(self, name: str) -> str:
        """Write the options that choose between two readings."""
        option = self.reading.option("date_format")
        written = list(self.ambiguous[name][1])
        if self.reading.flags:
            ways = [shlex.quote(f"{name}={each}") for each in written]
            return " or ".join(f"{option} {way}" for way in ways)
        return " or ".join(f"{option}={ {name: each}!r}" for each in written)

    def _kept(self, name: str) -> str:
        if self.reading.flags:
            return f"--categorical {shlex.quote(name)}"
        return f"text_columns=[{name!r}]"

    def _raise_mixed(self, name: str, mixed: tuple[str, str]) -> None:
        raise DataError(
            f"Column {name!r} of {self.label} mixes times with a time zone "
            f"({mixed[0]!r}) and without one ({mixed[1]!r}). Give all of them a time "
            f"zone, or none; or keep the text with {self._kept(name)}."
        )


def _day_of_month(moment: Moment) -> int:
    return int(_shown(moment)[8:10])


def _shown(moment: Moment) -> str:
    how = DateFormat("microsecond" if moment.has_time else "day", moment.zoned)
    return how.show(moment.microseconds // how.step)


def check_dates(name: str, column: Any, label: str) -> None:
    """Reject a column that holds neither dates nor text."""
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return
    raise DataError(
        f"Column {name!r} of {label} must hold dates. Got {kind}; convert the column "
        "to dates, or to text."
    )


def _taken_by(array: Any, moments: Sequence[Moment]) -> Any:
    """Return the dates of a dictionary's texts as a column."""
    from branchwise.data.conventions.dates import arrow_of  # noqa: PLC0415  (few tables)

    return pa.chunked_array([arrow_of(moments).take(array.indices)])
