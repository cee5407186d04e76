"""Dates and times as whole numbers, and as people write them: 05.03.2024 14:30.

A column of dates is a numeric column: the number of days (minutes, seconds or
microseconds) since 1970-01-01, in the coarsest of these units that its training rows
allow. A value with a time of day within a unit counts as that unit, so that 14:30 on
March 5 is at most March 5. Where 03/04/2024 may be March 4 as well as April 3, both
readings are returned, and none is chosen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The units of numbers of dates, the coarsest first, in microseconds.
UNITS: Mapping[str, int] = {
    "day": 86_400_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "microsecond": 1,
}
EPOCH = date(1970, 1, 1).toordinal()
_EPOCH_TIME = datetime(1970, 1, 1)
#: The days of the first and of the last year that dates have.
FIRST_DAY = date.min.toordinal() - EPOCH
LAST_DAY = date.max.toordinal() - EPOCH
ISO = "YYYY-MM-DD"
#: The formats that are recognised, apart from those of two digits for a year.
RECOGNISED = (
    *(ISO, "YYYY/MM/DD", "YYYY.MM.DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"),
    *("DD-MM-YYYY", "MM-DD-YYYY", "DD-Mon-YYYY", "DD/Mon/YYYY", "DD Mon YYYY"),
    *("DD.Mon.YYYY", "DD. Mon YYYY", "Mon DD, YYYY", "YYYY-Mon-DD"),
)
#: English and German names of months, by their first three letters.
MONTHS = {
    name: month
    for month, names in enumerate(
        (
            *("jan", "feb", "mar mär mrz", "apr", "may mai", "jun"),
            *("jul", "aug", "sep", "oct okt", "nov", "dec dez"),
        ),
        1,
    )
    for name in names.split()
}
_TOKENS = {
    "YYYY": r"(?P<year>[0-9]{4})",
    "YY": r"(?P<short>[0-9]{2})",
    "Mon": r"(?P<name>[A-Za-zäÄ]{3,9})\.?",
    "MM": r"(?P<month>[0-9]{1,2})",
    "DD": r"(?P<day>[0-9]{1,2})",
}
#: The directives of strptime that say the same.
_DIRECTIVES = {
    "%Y": "YYYY",
    "%y": "YY",
    "%b": "Mon",
    "%B": "Mon",
    "%m": "MM",
    "%d": "DD",
}
_TOKEN = re.compile("YYYY|YY|Mon|MM|DD")
_TIME = (
    r"(?:(?:[Tt]|,? +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
    r" ?(?P<zone>[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
#: What every recognised date begins with.
_BEGINNING = re.compile(
    r"\s*(?:[0-9]{1,4}[-/. ]{1,2}(?:[0-9]{1,2}|[A-Za-zäÄ]{3,9})\.?[-/. ]"
    r"|[A-Za-z]{3,9}\.? [0-9])"
)


@dataclass(frozen=True)
class DateFormat:
    """How the numbers of a column are dates.

    ``unit`` is what they count from 1970-01-01. ``zoned`` columns had time zones: their
    numbers are those of UTC. ``written`` is how the dates are written in the file that
    they were read from, apart from the time of day; ISO dates are always understood.
    """

    unit: str = "day"
    zoned: bool = False
    written: str = ISO

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> DateFormat:
        """Return the format with these fields; raise if one is not valid."""
        for name, value in given.items():
            if name not in [each.name for each in fields(cls)]:
                raise ValueError(f"has the unknown field {name!r}")
            valid = {
                "unit": isinstance(value, str) and value in UNITS,
                "zoned": isinstance(value, bool),
                "written": isinstance(value, str) and pattern_of(value) is not None,
            }
            if not valid[name]:
                raise ValueError(f"has an invalid {name!r}")
        return cls(**given)

    @property
    def fields(self) -> dict[str, Any]:
        """The unit, and what else differs from plain dates, for model files."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        other = {f.name: own[f.name] for f in fields(self) if own[f.name] != f.default}
        return {"unit": self.unit, **other}

    @property
    def step(self) -> int:
        """The unit in microseconds."""
        return UNITS[self.unit]

    @property
    def what(self) -> str:
        """What the column holds: dates or times."""
        zone = " with a time zone" if self.zoned else ""
        return f"{'dates' if self.unit == 'day' else 'times'}{zone}"

    def __str__(self) -> str:
        """Return how the dates are written."""
        return self.written if self.unit == "day" else f"{self.written} and a time"

    def show(self, number: float) -> str:
        """Write the date, or the time, that contains a number of units."""
        try:
            moment = _EPOCH_TIME + timedelta(
                microseconds=math.floor(number) * self.step
            )
        except (OverflowError, ValueError):  # of a model that was made by hand
            return f"{number:.17g} {self.unit}s since 1970-01-01"
        if self.unit == "day":
            return moment.date().isoformat()
        if moment.second == 0 == moment.microsecond:
            text = moment.isoformat(" ", "minutes")
        else:
            text = moment.isoformat(" ")
        return f"{text}Z" if self.zoned else text

    def scaled(self, values: NDArray[np.float64], other: DateFormat) -> Any:
        """Return numbers of this unit in another, in which they may be rounded down."""
        if self.unit == other.unit:
            return values
        if self.step > other.step:
            return values * (self.step // other.step)
        return np.floor_divide(values, other.step // self.step)

    def coarsest(self, values: NDArray[np.float64]) -> str:
        """Return the coarsest unit in which all numbers are whole."""
        known = values[~np.isnan(values)]
        for unit, step in UNITS.items():
            if step <= self.step or (unit == "day" and self.zoned):
                # A day of one time zone is none of another.
                if step == self.step:
                    return unit
                continue
            if not np.fmod(known, step // self.step).any():
                return unit
        return self.unit


class Moment(NamedTuple):
    """A date that was read: microseconds since 1970-01-01, and what it tells."""

    microseconds: int
    has_time: bool
    zoned: bool


def format_named(given: str) -> str | None:
    """Return a format in letters, of letters or of strptime's directives."""
    for directive, letters in _DIRECTIVES.items():
        given = given.replace(directive, letters)
    return given if pattern_of(given) is not None else None


@lru_cache(maxsize=64)
def pattern_of(written: str) -> re.Pattern[str] | None:
    """Return the regular expression of a format; None if it lacks one of them."""
    tokens = _TOKEN.findall(written)
    fields_of = [{"YY": "YYYY", "Mon": "MM"}.get(token, token) for token in tokens]
    between = _TOKEN.sub("", written)
    if sorted(fields_of) != ["DD", "MM", "YYYY"] or re.search(r"[A-Za-z0-9%]", between):
        return None
    pieces = re.split(f"({_TOKEN.pattern})", written)
    compact = "" in pieces[2:-1:2]
    source = "".join(
        _TOKENS[piece].replace("{1,2}", "{2}" if compact else "{1,2}")
        if piece in _TOKENS
        else re.escape(piece)
        for piece in pieces
    )
    return re.compile(rf"\s*{source}{_TIME}\s*")


def moment_of(text: str, written: str) -> Moment | None:
    """Read a date; None if it is not written so, or does not exist."""
    pattern = pattern_of(written)
    found = None if pattern is None else pattern.fullmatch(text)
    if found is None:
        return None
    groups = found.groupdict()
    try:
        day = (
            date(_year(groups), _month(groups), int(groups["day"])).toordinal() - EPOCH
        )
        time = 0 if groups["hour"] is None else _time_of_day(groups)
    except (ValueError, KeyError):
        return None
    zone = groups["zone"]
    moment = day * UNITS["day"] + time - (0 if zone is None else _offset(zone))
    return Moment(moment, groups["hour"] is not None, zone is not None)


def _year(groups: Mapping[str, Any]) -> int:
    if groups.get("year") is not None:
        return int(groups["year"])
    # As POSIX has it: 69 to 99 are of the twentieth century.
    short = int(groups["short"])
    return short + (1900 if short >= 69 else 2000)


def _month(groups: Mapping[str, Any]) -> int:
    if groups.get("month") is not None:
        return int(groups["month"])
    return MONTHS[groups["name"].lower()[:3]]


def _time_of_day(groups: Mapping[str, Any]) -> int:
    hour, minute = int(groups["hour"]), int(groups["minute"])
    second = int(groups["second"] or 0)
    fraction = (groups["fraction"] or "").ljust(6, "0")
    if groups["half"] is not None:
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + (12 if groups["half"] in "Pp" else 0)
    if hour > 23 or minute > 59 or second > 59 or fraction[6:].strip("0"):
        raise ValueError(hour)
    return (hour * 3600 + minute * 60 + second) * 1_000_000 + int(fraction[:6])


def _offset(zone: str) -> int:
    """Return how far a time zone is ahead of UTC, in microseconds."""
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-1 if zone[0] == "-" else 1) * minutes * 60_000_000


@dataclass(frozen=True)
class DetectedDates:
    """The formats that all texts of a column follow, each with its moments.

    There is none if they follow none, and two if day and month can be exchanged.
    ``position`` is that of a text that has as many readings as possible. ``mixed`` are
    two texts of which one has a time zone.
    """

    moments: Mapping[str, Sequence[Moment]]
    position: int = 0
    mixed: tuple[str, str] | None = None


NO_DATES = DetectedDates({})


def may_be_date(text: str) -> bool:
    """Whether a text begins like a date."""
    return _BEGINNING.match(text) is not None


def detect_dates(texts: Sequence[str], insisted: str | None = None) -> DetectedDates:
    """Find the formats of distinct texts, also one that is insisted on."""
    if not texts:
        return NO_DATES
    possible = (*RECOGNISED, *([] if insisted in (None, *RECOGNISED) else [insisted]))
    moments: dict[str, list[Moment]] = {}
    for written in possible:
        if written is None or moment_of(texts[0], written) is None:
            continue
        found = parse_dates(texts, written)
        if found is not None:
            moments[written] = found
    if not moments:
        return NO_DATES
    readings = [[m.microseconds for m in each] for each in moments.values()]
    by_text = enumerate(zip(*readings, strict=True))
    differing = [at for at, different in by_text if len(set(different)) > 1]
    first = next(iter(moments.values()))
    zoned = [moment.zoned for moment in first]
    mixed = None
    if any(zoned) and not all(zoned):
        mixed = texts[zoned.index(True)], texts[zoned.index(False)]
    return DetectedDates(moments, differing[0] if differing else 0, mixed)


def parse_dates(texts: Sequence[str], written: str) -> list[Moment] | None:
    """Read texts that are all written so; None if one is not."""
    found = []
    for text in texts:
        moment = moment_of(text, written)
        if moment is None:
            return None
        found.append(moment)
    return found


def read_text(text: str, how: DateFormat) -> float | None:
    """Read a date as a column's are written, or as ISO; None if it is neither.

    NaN is the empty text, which is missing. A time zone must be there if the column
    has one, and not otherwise.
    """
    if not text.strip():
        return math.nan
    moment = moment_of(text, how.written) or moment_of(text, ISO)
    if moment is None or (moment.zoned != how.zoned):
        return None
    return float(moment.microseconds // how.step)


def as_utc(moment: datetime) -> datetime:
    """Return the time in UTC of a time with a time zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)
