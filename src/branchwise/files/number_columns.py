"""Text columns of numbers as people write them, and the conventions of a table."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from branchwise.data.arrow import (
    Reject,
    as_array,
    as_dictionary,
    compute,
    from_array,
    is_text,
    pa,
    raise_first,
)
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.conventions.number_format import (
    Detected,
    NumberFormat,
    detect,
    follows_any,
    parse,
)
from branchwise.errors import BranchwiseWarning, DataError, quoted
from branchwise.files.date_columns import DateColumns
from branchwise.files.options import Reading, as_number

#: What decimal and thousands marks are called.
_MARKS: Mapping[str, str] = {
    ".": "point",
    ",": "comma",
    " ": "space",
    "'": "apostrophe",
}


#: How many columns a note lists.
_SHOWN = 5


@dataclass
class NumberColumns:
    """Reads the text columns of a table that hold numbers or dates.

    Parameters
    ----------
    reading : Reading
        Its ``decimal`` and ``thousands`` are insisted on where a column can be read in
        two ways.
    label : str
        The name of the table in messages.
    known : mapping of str to NumberFormat or DateFormat, or None
        The conventions of a model, by which its columns are read; None: they are
        detected.
    plain : bool
        Whether texts that are plain numbers are numbers, as in CSV; in typed formats
        they are text.
    """

    reading: Reading
    label: str
    known: Mapping[str, NumberFormat | DateFormat] | None = None
    plain: bool = True
    #: The conventions by column, once columns have been read.
    formats: dict[str, NumberFormat | DateFormat] = field(default_factory=dict)
    #: A text of each column, and the number that it is read as.
    examples: dict[str, tuple[str, float]] = field(default_factory=dict)
    #: The columns that can be read in two ways, which stay text.
    ambiguous: dict[str, Detected] = field(default_factory=dict)
    #: The columns of dates.
    dates: DateColumns = field(init=False)

    def __post_init__(self) -> None:
        self.dates = DateColumns(self.reading, self.label)

    def known_format(self, name: str) -> NumberFormat | DateFormat | None:
        """Return the convention of a column of a model, with marks insisted on."""
        decimal, thousands = self.reading.decimal, self.reading.thousands
        found = (self.known or {}).get(name)
        if self.dates.is_named(name) or isinstance(found, DateFormat):
            date = found if isinstance(found, DateFormat) else DateFormat()
            return replace(date, written=self.dates.insisted(name) or date.written)
        if self.known is None or (decimal is None and thousands is None):
            return found
        decimal = decimal or ("," if thousands == "." else ".")
        base = found or NumberFormat()
        return replace(base, decimal=decimal, thousands=thousands, indian=False)

    @property
    def has_decimal_commas(self) -> bool:
        """Whether a column has a decimal comma, or it is insisted on."""
        found = [getattr(how, "decimal", ".") for how in self.formats.values()]
        return "," in (*found, *self._insisted_decimal())

    def detected(
        self, columns: Mapping[str, Any], names: Collection[str], reread: Reread | None
    ) -> dict[str, Any]:
        """Return the columns that are numbers in a convention, as such.

        ``names`` are the columns to look at; ``reread`` reads columns of plain numbers
        again as text.
        """
        if self.known is not None:
            return {}
        found: dict[str, _Texts] = {}
        for name in names:
            if is_text(columns[name].type) and _may_be_number(columns[name]):
                texts = _Texts.of(columns[name])
                if texts.detected.formats and (self.plain or not texts.is_plain):
                    found[name] = texts
        decimals = {texts.detected.decimal for texts in found.values()} - {None}
        likely = next(iter(decimals)) if len(decimals) == 1 else None
        if reread is not None and "," in (*decimals, *self._insisted_decimal()):
            suspects = [name for name in names if _may_be_thousands(columns[name])]
            for name, column in (reread(suspects) if suspects else {}).items():
                texts = _Texts.of(column)
                if texts.detected.is_ambiguous:
                    found[name] = texts
        return {
            name: column
            for name, texts in found.items()
            if (column := self._chosen(name, texts, likely)) is not None
        }

    def detected_dates(
        self, columns: Mapping[str, Any], names: Collection[str]
    ) -> dict[str, Any]:
        """Return the text columns that are dates in a format, as such."""
        if self.known is not None:
            return {}
        found = {}
        for name in names:
            is_number = name in self.formats or name in self.ambiguous
            if is_number or not is_text(columns[name].type):
                continue
            column = self.dates.detected(name, columns[name])
            if column is not None:
                found[name] = column
        self.formats |= self.dates.formats
        return found

    def _insisted_decimal(self) -> tuple[str, ...]:
        decimal = "," if self.reading.thousands == "." else self.reading.decimal
        return () if decimal is None else (decimal,)

    def _chosen(self, name: str, texts: _Texts, likely: str | None) -> Any:
        detected = texts.detected
        decimal, thousands = self.reading.decimal, self.reading.thousands
        chosen = detected.chosen(decimal, thousands, likely)
        if chosen is None:
            self.ambiguous[name] = detected
            return None
        numbers = detected.numbers[chosen.decimal]
        number = numbers[detected.position]
        self.formats[name] = chosen
        self.examples[name] = (detected.example, float(number))
        return texts.column(numbers)

    @property
    def written_formats(self) -> dict[str, str]:
        """The conventions by column, as text."""
        return {name: json.dumps(how.fields) for name, how in self.formats.items()}

    @property
    def notes(self) -> list[str]:
        """What to say of the columns that are read as numbers or dates."""
        return [each.note() for each in (self, self.dates) if each.examples]

    def note(self) -> str:
        """Say which columns are read as numbers that are not written plainly."""
        shown = [
            f"{name!r} ({text!r} is {number:.15g})"
            for name, (text, number) in self.examples.items()
        ]
        listed = ", ".join(shown[:_SHOWN])
        if len(shown) > _SHOWN:
            listed += f" and {len(shown) - _SHOWN:,} more"
        noun = "column is" if len(shown) == 1 else "columns are"
        keep = (
            "--categorical COLUMN keeps the text"
            if self.reading.flags
            else "name those to keep as text in text_columns"
        )
        return f"{len(shown):,} text {noun} read as numbers: {listed}; {keep}."

    def parsed(
        self, name: str, column: Any, how: NumberFormat | DateFormat, reject: Reject
    ) -> Any:
        """Return a text column as numbers, or dates, in its known convention."""
        if isinstance(how, DateFormat):
            self.formats[name] = how
            return self.dates.parsed(name, column, how, reject)
        texts = as_dictionary(column)
        numbers, valid = parse(texts.dictionary, how)
        self.formats[name] = how
        raise_first(texts, np.flatnonzero(~valid), reject)
        return _Texts(texts, Detected({}, {})).column(numbers)

    def check_ambiguous(self) -> None:
        """Raise an error that shows both readings of columns that have two."""
        self.dates.check_ambiguous()
        if not self.ambiguous:
            return
        name, detected = next(iter(self.ambiguous.items()))
        others = [other for other in self.ambiguous if other != name]
        more = f" So can {quoted(others)}." if others else ""
        flags = self.reading.flags
        keep = (
            f"--categorical {shlex.quote(name)}"
            if flags
            else f"text_columns=[{name!r}]"
        )
        raise DataError(
            f"Column {name!r} of {self.label} can be read in two ways: "
            f"{two_readings(detected)}.{more} Say which is meant: "
            f"{self.choices(detected)}; or keep the text with {keep}."
        )

    def choices(self, detected: Detected) -> str:
        """Write the options that choose between two readings."""
        ways = [
            ("thousands", found.thousands) if found.thousands else ("decimal", mark)
            for mark, found in detected.formats.items()
        ]
        return " or ".join(
            f"{self.reading.option(name)}{' ' if self.reading.flags else '='}"
            f"{mark if self.reading.flags else repr(mark)}"
            for name, mark in ways
        )


#: Reads columns as text, by name.
Reread = Callable[[Sequence[str]], Mapping[str, Any]]


def note_of_identifiers(names: Sequence[str], label: str) -> str:
    """Say that columns of long whole numbers are read as text."""
    return (
        "whole numbers beyond 2^53 are taken as names, for float64 does not hold all "
        f"their digits: column {quoted(names)} of {label}."
    )


def warn_numbers(columns: NumberColumns, identifiers: Sequence[str] = ()) -> None:
    """Warn that texts are read as numbers, or as dates, and long numbers as text."""
    notes = [*columns.notes]
    if identifiers:
        notes.append(note_of_identifiers(identifiers, columns.label))
    for note in notes:
        warnings.warn(note, BranchwiseWarning, stacklevel=3)


def two_readings(detected: Detected) -> str:
    """Write both readings of an ambiguous text."""
    ways = []
    for mark, number in (detected.readings or {}).items():
        thousands = detected.formats[mark].thousands
        how = f"with a decimal {_MARKS[mark]}"
        if thousands is not None:
            how = f"with a {_MARKS[thousands]} between thousands"
        ways.append(f"{number:.15g} {how}")
    return f"{detected.example!r} is {' or '.join(ways)}"


@dataclass(frozen=True)
class _Texts:
    """A text column as a dictionary, and the convention of its distinct texts."""

    array: Any
    detected: Detected

    @classmethod
    def of(cls, column: Any) -> _Texts:
        array = as_dictionary(column)
        return cls(array, detect(array.dictionary))

    @property
    def distinct(self) -> Any:
        """The distinct texts."""
        return self.array.dictionary

    @property
    def is_plain(self) -> bool:
        """Whether all texts are plain numbers."""
        return all(as_number(text) is not None for text in self.distinct.to_pylist())

    def column(self, numbers: Any) -> Any:
        """Return the column with a number for each distinct text."""
        return pa.chunked_array([from_array(numbers).take(self.array.indices)])


def _may_be_number(column: Any) -> bool:
    """Whether the first distinct text may be a number: of most columns it is none."""
    if not pa.types.is_dictionary(column.type) or column.num_chunks != 1:
        return True
    values = column.chunk(0).dictionary
    return not len(values) or follows_any(values[0].as_py() or "")


def _may_be_thousands(column: Any) -> bool:
    """Whether plain numbers may be meant as thousands, all like 1.234."""
    if not pa.types.is_floating(column.type):
        return False
    known = compute.drop_null(column).combine_chunks()
    numbers = np.abs(as_array(known)) if len(known) else np.empty(0)
    thousands = numbers * 1000
    whole = np.abs(thousands - np.rint(thousands)) < 1e-6
    return bool(len(numbers) and whole.all() and (numbers != np.rint(numbers)).any())
