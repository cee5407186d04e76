"""What form a file has: by what the user says, by its content, by its name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from branchwise.errors import DataError
from branchwise.files.arff import (
    C45_ENDINGS,
    NAMES,
    data_file_of,
    looks_like_arff,
    names_file_of,
    open_arff,
    open_c45,
)
from branchwise.files.database import DUCKDB, SQLITE, DuckDBFile, SQLiteFile
from branchwise.files.delimited import DelimitedFile
from branchwise.files.options import ENDINGS, FORMS, PACKED, Reading
from branchwise.files.parquet import ARROW, PARQUET, ArrowFile, ParquetFile
from branchwise.files.raw_bytes import (
    GZIP,
    STANDARD_STREAM,
    ZSTD,
    Buffer,
    as_utf8,
    contents,
    whole_text,
)
from branchwise.files.workbook import OLD_EXCEL, ZIP, Workbook, is_workbook

#: The forms whose cells are all text.
TEXT_FORMS = frozenset(("csv", "tsv", "arff", "c4.5"))
#: The forms whose names are in the first row, if they are.
HEADED_FORMS = frozenset(("csv", "tsv", "excel"))

_TABS = tuple(ending for ending, form in ENDINGS.items() if form == "tsv")


class Format(Protocol):
    """What a file format has to offer."""

    @property
    def label(self) -> str:
        """What messages call the file."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def declared(self) -> frozenset[str]:
        """The names of the columns whose dictionaries have declared values."""

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns, those in ``text`` as dictionaries of text."""

    def place(self, row: int) -> str:
        """Tell where in the file a row is."""


def open_form(
    name: str, label: str, reading: Reading, further: bool
) -> tuple[str, Format]:
    """Find out what form a file has, and open it.

    Parameters
    ----------
    name : str
        The file; ``-`` is standard input.
    label : str
        What messages call it.
    reading : Reading
        How to read it, as far as the user says.
    further : bool
        Whether options that do not fit the form have no effect.

    Returns
    -------
    tuple of str and Format
        The form and the opened file.
    """
    said = None if further else reading.form
    names_path = _names_path(name, reading, said)
    if names_path is not None and reading.names_file is None:
        name = label = data_file_of(name)
    content = contents(name, label, reading.most_bytes)
    form = "c4.5" if names_path is not None else said or _known(content, name)
    if further:
        reading = reading.fitted(form)
    else:
        reading.check(form, label)
    if form in TEXT_FORMS:
        content = whole_text(content, label, reading.most_bytes)
    return form, _opened(form, content, name, label, names_path, reading)


def _names_path(name: str, reading: Reading, said: str | None) -> str | None:
    """Return the names file, if the form is that of C4.5."""
    given = reading.names_file
    if given is not None and given.lower().endswith(NAMES):
        return given
    if said not in (None, "c4.5") or name == STANDARD_STREAM:
        found = None
    else:
        found = names_file_of(name)
    if said == "c4.5" and found is None:
        stem = Path(name).with_suffix("") if name.endswith(C45_ENDINGS) else name
        raise DataError(
            f"There is no file '{stem}{NAMES}', which must declare the columns of "
            f"{name}. Name it with {reading.option('names_file')}."
        )
    return found


def _known(content: Buffer, name: str) -> str:
    """Tell the form by the content, or of text by the name."""
    head = content[:16]
    if head.startswith(PARQUET):
        return "parquet"
    if head.startswith(ARROW):
        return "arrow"
    if head.startswith(SQLITE):
        return "sqlite"
    if head[8:12] == DUCKDB:
        return "duckdb"
    if head.startswith(OLD_EXCEL) or (head.startswith(ZIP) and is_workbook(content)):
        return "excel"
    plain = _plain_name(name)
    if plain.endswith(_TABS):
        return "tsv"
    if plain.endswith(".arff") or looks_like_arff(content):
        return "arff"
    return "csv"


def _plain_name(name: str) -> str:
    """Return a name without the ending of packed files."""
    plain = name.lower()
    for ending in PACKED:
        plain = plain.removesuffix(ending)
    return plain


def known_form(path: str) -> str:
    """Tell the form of a file by its beginning and its name, without reading it all."""
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder, not a file.")
    if names_file_of(path) is not None:
        return "c4.5"
    try:
        with Path(path).open("rb") as file:
            head = file.read(2**16)
    except FileNotFoundError:
        raise DataError(f"There is no file {path!r}. Check the path.") from None
    except OSError as error:
        raise DataError(f"{path!r} cannot be read: {error.strerror}.") from None
    if head.startswith((GZIP, ZSTD)):
        return "tsv" if _plain_name(path).endswith(_TABS) else "csv"
    return _known(head, path)


def _opened(
    form: str,
    content: Buffer,
    name: str,
    label: str,
    names_path: str | None,
    reading: Reading,
) -> Format:
    if form == "c4.5" and names_path is not None:
        return open_c45(content, label, names_path, reading)
    if form == "arff":
        return open_arff(content, label, reading)
    if form == "parquet":
        return ParquetFile(content, label, reading.most_bytes)
    if form == "arrow":
        return ArrowFile(content, label, reading.most_bytes)
    if form == "excel":
        return Workbook(content, label, with_names(reading))
    if form == "sqlite":
        _refuse_stream(name, label, form, SQLITE, 0)
        return SQLiteFile(name, label, reading)
    if form == "duckdb":
        _refuse_stream(name, label, form, DUCKDB, 8)
        return DuckDBFile(name, label, reading)
    if form == "tsv" and reading.separator is None:
        reading = replace(reading, separator="\t")
    return DelimitedFile(content, label, with_names(reading))


def _refuse_stream(name: str, label: str, form: str, magic: bytes, at: int) -> None:
    """Refuse a database that is not a plain file: it is opened, not read."""
    if name != STANDARD_STREAM:
        with Path(name).open("rb") as file:
            if file.read(at + len(magic))[at:] == magic:
                return
    raise DataError(
        f"{label} is no plain {FORMS[form]} file. A database cannot be packed or come "
        "through a pipe: store it in a file first."
    )


def with_names(reading: Reading) -> Reading:
    """Read the names of columns from the file that has them, one a line."""
    path = reading.names_file
    if path is None:
        return reading
    content = contents(path, path, reading.most_bytes)
    content = whole_text(content, path, reading.most_bytes)
    content = as_utf8(content, path, reading.encoding, reading.most_bytes)
    try:
        text = bytes(content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error.reason}.") from None
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if len(set(names)) < len(names) or not names:
        raise DataError(
            f"{path} must have the names of all columns, one a line, each its own."
        )
    return replace(reading, names=names, names_file=None)
