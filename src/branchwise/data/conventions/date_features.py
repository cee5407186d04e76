"""Columns derived from dates: month, weekday, hour, ..., and ages on a given day.

They are numeric columns of their own, named ``opened.month``; a model computes them
from the dates of new rows, so that these need not have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.conventions.date_format import (
    EPOCH,
    ISO,
    UNITS,
    DateFormat,
    pattern_of,
)
from branchwise.errors import ParameterError, quoted

#: What can be taken of a date, and of a time.
OF_DATES = ("year", "quarter", "month", "day", "weekday")
OF_TIMES = ("hour", "minute")
#: Days, or completed years, up to a given day.
AGES = ("age", "age_years")
_KNOWN = quoted([*OF_DATES, *OF_TIMES], 9)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DateFeature:
    """How the numbers of a column are derived from the dates of another.

    ``of`` is the column of the dates, ``feature`` what is taken of them; ages are those
    on the day ``on``. ``written`` and ``zoned`` are those of the dates
    (:class:`~branchwise.data.conventions.date_format.DateFormat`).
    """

    of: str
    feature: str
    on: str | None = None
    written: str = ISO
    zoned: bool = False

    @classmethod
    def of_fields(cls, given: Mapping[str, Any]) -> DateFeature:
        """Return what has these fields; raise if one is not valid."""
        unknown = given.keys() - {each.name for each in fields(cls)}
        if unknown:
            raise ValueError(f"has the unknown field {min(unknown)!r}")
        found = cls(**given)
        is_age = found.feature in AGES
        valid = {
            "of": isinstance(found.of, str),
            "feature": found.feature in (*OF_DATES, *OF_TIMES, *AGES),
            "on": (found.on is not None) == is_age and _is_day(found.on, is_age),
            "written": isinstance(found.written, str)
            and bool(pattern_of(found.written)),
            "zoned": isinstance(found.zoned, bool),
        }
        for name, fine in valid.items():
            if not fine:
                raise ValueError(f"has an invalid {name!r}")
        return found

    @property
    def fields(self) -> dict[str, Any]:
        """What differs from the defaults, for model files."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {f.name: own[f.name] for f in fields(self) if own[f.name] != f.default}

    @property
    def name(self) -> str:
        """The name of the column."""
        return f"{self.of}.{self.feature}"

    @property
    def date(self) -> DateFormat:
        """How dates are read that are given as text."""
        return DateFormat("microsecond", self.zoned, self.written)

    def __str__(self) -> str:
        day = "" if self.on is None else f" on {self.on}"
        return f"{self.feature.replace('_', ' in ')} of {self.of!r}{day}"

    def show(self, number: float) -> str | int:
        """Return a number as it is written: a weekday by its name."""
        whole = int(np.floor(number))
        if self.feature == "weekday" and 1 <= whole <= len(WEEKDAYS):
            return WEEKDAYS[whole - 1]
        return whole

    def numbers(self, values: Floats, how: DateFormat) -> Floats:
        """Return the numbers of dates, which are numbers of a unit since 1970-01-01."""
        known = ~np.isnan(values)
        whole = np.where(known, values, 0.0).astype(np.int64)
        per_day = UNITS["day"] // how.step
        day = np.floor_divide(whole, per_day)
        microseconds = (whole - day * per_day) * how.step
        found: Floats = self._of_day(day, microseconds).astype(np.float64)
        found[~known] = np.nan
        return found

    def _of_day(self, day: NDArray[np.int64], time: NDArray[np.int64]) -> Any:
        if self.feature == "hour":
            return time // (60 * UNITS["minute"])
        if self.feature == "minute":
            return time // UNITS["minute"] % 60
        if self.feature == "weekday":
            return (day + 3) % 7 + 1  # 1970-01-01 was a Thursday
        if self.feature == "age":
            return _day_of(self.on) - day
        months = day.view("datetime64[D]").astype("datetime64[M]").view(np.int64)
        year, month = months // 12 + 1970, months % 12 + 1
        first = months.view("datetime64[M]").astype("datetime64[D]").view(np.int64)
        day_of_month = day - first + 1
        if self.feature == "age_years":
            on = date.fromisoformat(str(self.on))
            before = (month > on.month) | (
                (month == on.month) & (day_of_month > on.day)
            )
            return on.year - year - before
        taken = {"year": year, "month": month, "day": day_of_month}
        return taken.get(self.feature, (month + 2) // 3)


def _is_day(text: object, wanted: bool) -> bool:
    if not wanted:
        return True
    try:
        return isinstance(text, str) and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _day_of(text: str | None) -> int:
    return date.fromisoformat(str(text)).toordinal() - EPOCH


def requested_features(
    option: str, given: Mapping[str, Sequence[str] | str]
) -> list[DateFeature]:
    """Return what is taken of dates, by column; ages are ``age:2024-12-31``."""
    found = []
    for name, features in given.items():
        for feature in [features] if isinstance(features, str) else features:
            wanted, _, on = str(feature).partition(":")
            try:
                found.append(DateFeature.of_fields(_fields(str(name), wanted, on)))
            except ValueError:
                raise ParameterError(
                    f"{option} of {name!r} must be {_KNOWN}, or an age on a day: "
                    "'age:2024-12-31' in days, 'age_years:2024-12-31' in years. Got "
                    f"{feature!r}."
                ) from None
    return found


def _fields(of: str, feature: str, on: str) -> dict[str, Any]:
    return {"of": of, "feature": feature} | ({"on": on} if on else {})


def as_learnt(feature: DateFeature, how: DateFormat) -> DateFeature:
    """Return what is taken of dates that are written so."""
    return replace(feature, written=how.written, zoned=how.zoned)
