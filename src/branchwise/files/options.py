"""Options of reading files: format, separator, encoding, names, limits, progress."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from branchwise.errors import ParameterError, quoted

if TYPE_CHECKING:
    from branchwise.data.conventions.date_features import DateFeature

#: The file formats, with their names in messages.
FORMATS: Mapping[str, str] = {
    "csv": "CSV",
    "tsv": "TSV",
    "arff": "ARFF",
    "c4.5": "C4.5",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "excel": "Excel",
    "jsonl": "JSON lines",
    "spss": "SPSS",
    "sas": "SAS",
    "stata": "Stata",
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
}
#: Endings of file names, with their formats.
ENDINGS: Mapping[str, str] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".arff": "arff",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".sav": "spss",
    ".zsav": "spss",
    ".sas7bdat": "sas",
    ".dta": "stata",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".duckdb": "duckdb",
}
#: Endings of the names of compressed files that can be read.
COMPRESSED = (".gz", ".zst")
#: The separator that stands for runs of spaces and tabs.
WHITESPACE = "whitespace"
#: The most bytes of standard input or of a decompressed file, by default.
MOST_BYTES = 8 * 10**9

DELIMITED_FORMATS = frozenset(("csv", "tsv"))
#: The formats whose cells are all text.
TEXT_FORMATS = DELIMITED_FORMATS | {"arff", "c4.5"}
#: The formats that may have column names in the first row.
HEADED_FORMATS = DELIMITED_FORMATS | {"excel"}
#: The formats that can be read in chunks.
CHUNKED_FORMATS = DELIMITED_FORMATS | {"parquet", "arrow"}
_DATABASES = frozenset(("sqlite", "duckdb"))
#: The formats that each option is for; other options are for all.
_FOR: Mapping[str, frozenset[str]] = {
    "separator": DELIMITED_FORMATS,
    "encoding": TEXT_FORMATS | {"jsonl"},
    "header": HEADED_FORMATS,
    "skip": HEADED_FORMATS,
    "names": HEADED_FORMATS,
    "names_file": HEADED_FORMATS | {"c4.5"},
    "sheet": frozenset(("excel",)),
    "table": _DATABASES,
    "query": _DATABASES,
}
_SEPARATORS = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "pipe": "|",
    "blank": WHITESPACE,
    "space": " ",
}
#: Codecs that are no encodings of files, or that take quadratic time.
_NO_ENCODINGS = frozenset(
    ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")
)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Reading:
    """Options of reading a file, as in ``read_table``; None is inferred from the file.

    They are checked and brought to these types. With ``flags`` messages name the
    options of the command line.
    """

    file_format: str | None = None
    separator: str | None = None
    encoding: str | None = None
    header: bool = True
    skip: int = 0
    names: tuple[str, ...] | None = None
    names_file: str | None = None
    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    max_size: int | None = None
    decimal: str | None = None
    thousands: str | None = None
    date_format: Mapping[str, str] | None = None
    date_features: Sequence[DateFeature] | None = None
    merge_case: bool = False
    flags: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.file_format is not None and self.file_format not in FORMATS:
            raise ParameterError(
                f"{self.option('file_format')} must be one of {quoted(FORMATS, 99)}. "
                f"Got {self.file_format!r}."
            )
        for one, other, what in _EXCLUSIVE:
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ParameterError(
                    f"{self.option(one)} and {self.option(other)} both {what}. Give "
                    "only one of them."
                )
        for name, checked in _CHECKED.items():
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, checked(self.option(name), given))
        if not isinstance(self.skip, int) or self.skip < 0:
            raise ParameterError(
                f"{self.option('skip')} must be a whole number of lines, 0 or more. "
                f"Got {self.skip!r}."
            )
        if self.decimal is not None and self.decimal == self.thousands:
            raise ParameterError(
                f"{self.option('decimal')} and {self.option('thousands')} must be two "
                f"different marks. Got {self.decimal!r} for both."
            )

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, for ``read_table``."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.compare and getattr(self, each.name) != each.default
        }

    @property
    def most_bytes(self) -> int:
        """The most bytes of standard input or of a decompressed file."""
        return MOST_BYTES if self.max_size is None else self.max_size

    @property
    def has_header(self) -> bool:
        """Whether the first row has names: not if they are given as an option."""
        return self.header and self.names is None and self.names_file is None

    def fitted(self, file_format: str) -> Reading:
        """Return the options that apply to a format, for a further file."""
        useless = dict(self._useless(file_format))
        standard: dict[str, Any]
        standard = {f.name: f.default for f in fields(self) if f.name in useless}
        return replace(self, **standard, file_format=None)

    def check(self, file_format: str, label: str) -> None:
        """Reject an option that has no effect on a format."""
        for name, option in self._useless(file_format):
            known = [FORMATS[other] for other in FORMATS if other in _FOR[name]]
            raise ParameterError(
                f"{option} has no effect on {label}, which is read as "
                f"{FORMATS[file_format]}. It is for {', '.join(known)}; leave it out, "
                f"or say what the file is with {self.option('file_format')}."
            )

    def option(self, name: str) -> str:
        """Return the name of an option; with ``flags`` that of the command line."""
        if not self.flags:
            return name
        spelled = {"file_format": "from", "header": "no-header"}.get(name, name)
        return f"--{spelled.replace('_', '-')}"

    def _useless(self, file_format: str) -> Iterable[tuple[str, str]]:
        for each in fields(self):
            given = getattr(self, each.name) != each.default
            if given and file_format not in _FOR.get(each.name, FORMATS):
                yield each.name, self.option(each.name)


def _separator(option: str, given: str) -> str:
    found = _SEPARATORS.get(given, given)
    mark = found[:1] if found[1:] == " " else found
    one = len(mark) == 1 and mark.isascii() and mark not in '"\r\n\0'
    if not one and found != WHITESPACE:
        raise ParameterError(
            f"{option} must be one character of ASCII that is no quotation mark and "
            "no line break, such a character and a space (', ') to strip whitespace "
            "around cells, tab, or whitespace for runs of spaces and tabs. Got "
            f"{given!r}."
        )
    return found


def _encoding(option: str, given: str) -> str:
    name = "undefined"
    with suppress(LookupError, UnicodeError, ValueError):
        bytes(4).decode(given)  # raises for codecs that return no text, such as zlib
        name = codecs.lookup(given).name
    if name.replace("_", "-") in _NO_ENCODINGS:
        raise ParameterError(
            f"{option} must be the name of a text encoding, such as utf-8, utf-16, "
            f"latin-1 or cp1252. Got {given!r}."
        )
    return name


def _distinct(option: str, given: Iterable[str]) -> tuple[str, ...]:
    names = tuple(given)
    if not names or len(set(names)) < len(names) or not all(n.strip() for n in names):
        raise ParameterError(
            f"{option} must be the names of all columns, distinct and not empty. "
            f"Got {quoted(names, 20) or 'none'}."
        )
    return names


def _mark(names: Mapping[str, str]) -> Callable[[str, str], str]:
    """Return what checks a mark within numbers, which may be given by its name."""

    def checked(option: str, given: str) -> str:
        mark = names.get(given, given)
        if mark not in names.values():
            known = ", ".join(f"{mark!r} ({name})" for name, mark in names.items())
            raise ParameterError(f"{option} must be one of {known}. Got {given!r}.")
        return mark

    return checked


_DECIMALS = {"point": ".", "comma": ","}
_THOUSANDS = _DECIMALS | {"space": " ", "apostrophe": "'"}


def _date_formats(
    option: str, given: str | Mapping[str, str] | Iterable[str]
) -> dict[str, str]:
    """Return formats of dates by column; that of "" is for all of them."""
    from branchwise.data.conventions.date_format import (  # noqa: PLC0415  (few tables)
        format_named,
    )

    if isinstance(given, Mapping):
        pairs = [*given.items()]
    else:
        entries = [given] if isinstance(given, str) else [*given]
        split = (entry.rpartition("=") for entry in entries)
        pairs = [(name, written) for name, _, written in split]
    found = {}
    for name, written in pairs:
        known = format_named(written) if isinstance(written, str) else None
        if known is None:
            raise ParameterError(
                f"{option} must have DD, MM (or Mon) and YYYY (or YY), with what is "
                "between them, such as DD.MM.YYYY, MM/DD/YYYY or YYYYMMDD. Got "
                f"{written!r}."
            )
        found[name] = known
    return found


def _date_features(
    option: str, given: Mapping[str, Sequence[str] | str] | Iterable[str]
) -> list[DateFeature]:
    """Return what is derived from columns of dates."""
    from branchwise.data.conventions.date_features import (  # noqa: PLC0415  (few tables need it)
        DateFeature,
        requested_features,
    )

    if isinstance(given, Mapping):
        return requested_features(option, given)
    found: list[DateFeature] = []
    entries: list[Any] = [given] if isinstance(given, str) else [*given]
    for entry in entries:
        if isinstance(entry, DateFeature):
            found.append(entry)
            continue
        name, _, features = entry.rpartition("=")
        found += requested_features(option, {name: features.split(",")})
    return found


def _size(option: str, given: str | int) -> int:
    found = _SIZE.fullmatch(str(given).strip())
    if found is None:
        raise ParameterError(
            f"{option} must be a number of bytes, such as 500MB or 20GB. Got {given!r}."
        )
    return int(float(found[1]) * _UNITS[found[2].lower()])


def size_text(size: int) -> str:
    """Write a number of bytes as it may be given."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:,} bytes"


#: Pairs of options that say the same, and what they say.
_EXCLUSIVE = (
    ("names", "names_file", "name the columns"),
    ("table", "query", "say what to read"),
)
#: Functions of the name of an option and of what is given, which return its value.
_CHECKED: Mapping[str, Callable[[str, Any], Any]] = {
    "separator": _separator,
    "encoding": _encoding,
    "names": _distinct,
    "names_file": lambda _, path: os.fspath(path),
    "sheet": lambda _, sheet: str(sheet),
    "max_size": _size,
    "decimal": _mark(_DECIMALS),
    "thousands": _mark(_THOUSANDS),
    "date_format": _date_formats,
    "date_features": _date_features,
}


_TRUTH = {"true": True, "false": False}


def as_number(cell: str) -> float | None:
    """Return the number that a text is; None if it is none."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def as_truth(cell: str) -> bool | None:
    """Return the boolean that a text is, in upper or lower case; None if it is none."""
    return _TRUTH.get(cell.strip().lower())


Told = Callable[[str], None]

_told: ContextVar[Told | None] = ContextVar("_told", default=None)


@contextmanager
def telling(told: Told) -> Iterator[None]:
    """Report how much has been read, such as "1,000 rows", while a block runs.

    The function may be called from another thread.
    """
    before = _told.set(told)
    try:
        yield
    finally:
        _told.reset(before)


def reading_progress() -> Told | None:
    """Return the function to call with the progress, if there is one."""
    return _told.get()
