"""What a model keeps beside its meaning: statistics of training columns, metadata."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.conventions.date_format import DateFormat
from branchwise.errors import ParameterError, plain


@dataclass(frozen=True)
class ColumnStatistics:
    """The cells of a column in all rows of the training table.

    ``low`` and ``high`` are the range of the numbers of a numeric column.
    """

    known: int
    missing: int
    low: float | None = None
    high: float | None = None

    @classmethod
    def of_numbers(cls, values: NDArray[np.float64]) -> ColumnStatistics:
        """Count numbers that are missing or finite, and find their range."""
        low, high, missing = values.min(), values.max(), 0
        if low != low:  # one of them is missing
            missing = int(np.count_nonzero(np.isnan(values)))
            if missing == len(values):
                return cls(0, missing)
            low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        # Of two zeros that are equal there is one.
        known = len(values) - missing
        return cls(known, missing, float(low) + 0.0, float(high) + 0.0)

    @classmethod
    def of_codes(cls, codes: NDArray[np.integer[Any]]) -> ColumnStatistics:
        """Count codes; those of missing values are negative."""
        missing = 0
        if codes.min(initial=0) < 0:
            missing = int(np.count_nonzero(codes < 0))
        return cls(len(codes) - missing, missing)

    def scaled(self, unit: DateFormat, other: DateFormat) -> ColumnStatistics:
        """Return the statistics of dates in another unit."""
        if self.low is None or self.high is None:
            return self
        low, high = unit.scaled(np.array([self.low, self.high]), other).tolist()
        return replace(self, low=low, high=high)

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Add the cells of further rows."""
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return ColumnStatistics(
            self.known + other.known,
            self.missing + other.missing,
            min(lows, default=None),
            max(highs, default=None),
        )


#: The most characters of a title, a unit or a word.
LONGEST_LABEL = 1_000


@dataclass(frozen=True)
class ColumnLabel:
    """How a column is called in views: its title, its unit, words for its values.

    ``words`` has a word for each category, None where it is called as it is; or is
    empty where all are.
    """

    title: str | None = None
    unit: str | None = None
    words: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        for what, text in (
            ("title", self.title),
            ("unit", self.unit),
            *(("word", word) for word in self.words),
        ):
            if text is None:
                continue
            if not isinstance(text, str) or not 0 < len(text) <= LONGEST_LABEL:
                raise ParameterError(
                    f"a {what} must be a text of 1 to {LONGEST_LABEL:,} characters. "
                    f"Got {text!r:.50}."
                )


#: The most characters of each text of the metadata.
LONGEST = {
    "branchwise": 100,
    "name": 1_000,
    "notes": 100_000,
    "date": 100,
    "data_hash": 1_000,
}


@cache
def grown_now() -> Metadata:
    """Return the metadata of a model that this version of branchwise has grown."""
    # The package imports this module, and is there once it is used.
    return Metadata(branchwise=import_module("branchwise").__version__)


@dataclass(frozen=True, repr=False)
class Metadata:
    """What is known of a model beside what it predicts; nothing depends on it.

    Parameters
    ----------
    branchwise : str or None
        The version of branchwise that grew it.
    name, notes : str or None
        Texts of the user.
    date : str or None
        The date, or date and time, that the user gave, in ISO 8601.
    data_hash : str or None
        A hash of the training data, as ``sha256:`` and digits.
    """

    branchwise: str | None = None
    name: str | None = None
    notes: str | None = None
    date: str | None = None
    data_hash: str | None = None

    def __post_init__(self) -> None:
        for name, longest in LONGEST.items():
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, str) or not value or len(value) > longest:
                got = f"{len(value):,} characters" if isinstance(value, str) else value
                raise ParameterError(
                    f"{name} must be a text of 1 to {longest:,} characters, or None. "
                    f"Got {got}."
                )
            if name != "notes" and plain(value) != value:
                raise ParameterError(
                    f"{name} must be one line without control characters. Got "
                    f"{value!r}."
                )
        if self.date is not None:
            _check_date(self.date)

    def __repr__(self) -> str:
        given = ", ".join(
            f"{name}={_shortened(value)!r}" for name, value in self.given.items()
        )
        return f"Metadata({given})"

    @property
    def given(self) -> dict[str, str]:
        """What is known, by name."""
        pairs = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in pairs if value is not None}

    def with_values(self, **values: object) -> Metadata:
        """Return the metadata with other values; a date may be one of Python's."""
        date = values.get("date")
        if isinstance(date, dt.date):
            values["date"] = date.isoformat()
        return replace(self, **values)  # type: ignore[arg-type]


#: A model of which nothing is known.
NOTHING_KNOWN = Metadata()


def _check_date(text: str) -> None:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError(
            "date must be a date, or a date and time, in ISO 8601, such as 2026-03-31 "
            f"or 2026-03-31T12:00. Got {text!r}."
        ) from None


def _shortened(text: str, longest: int = 40) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."
