"""Recognition of file formats by option, content and name; opening of files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from branchwise.errors import DataError
from branchwise.files.arff import looks_like_arff, open_arff
from branchwise.files.c45_files import (
    C45_ENDINGS,
    NAMES,
    data_file_of,
    names_file_of,
    open_c45,
)
from branchwise.files.database import DUCKDB, SQLITE, DuckDBFile, SQLiteFile
from branchwise.files.delimited import DeclaredRows, DelimitedFile
from branchwise.files.options import (
    COMPRESSED,
    ENDINGS,
    FORMATS,
    TEXT_FORMATS,
    Reading,
)
from branchwise.files.raw_bytes import (
    GZIP,
    STANDARD_STREAM,
    ZSTD,
    Buffer,
    as_utf8,
    contents,
    whole_text,
)
from branchwise.files.record_files import (
    SAS,
    SPSS,
    STATA,
    JsonLines,
    StatsFile,
    looks_like_json_lines,
)
from branchwise.files.typed_columns import (
    ARROW,
    PARQUET,
    ArrowFile,
    ParquetFile,
    TypedFile,
)
from branchwise.files.workbook import OLD_EXCEL, ZIP, Workbook, is_workbook

#: Formats by their first bytes, and where these are.
_MAGIC: dict[str, tuple[int, bytes | tuple[bytes, ...]]] = {
    "parquet": (0, PARQUET),
    "arrow": (0, ARROW),
    "sqlite": (0, SQLITE),
    "duckdb": (8, DUCKDB),
    "spss": (0, SPSS),
    "sas": (0, SAS),
    "stata": (0, STATA),
}
_STATS = frozenset(("spss", "sas", "stata"))
_TABS = tuple(ending for ending, file_format in ENDINGS.items() if file_format == "tsv")
_JSON_LINES = (".jsonl", ".ndjson")


#: Opened files. They have a label for messages, the names of their columns, of which
#: those with declared values are ``declared``, load columns, and locate rows.
Format = (
    DelimitedFile
    | DeclaredRows
    | TypedFile
    | Workbook
    | JsonLines
    | StatsFile
    | SQLiteFile
    | DuckDBFile
)


def open_format(
    name: str, label: str, reading: Reading, further: bool
) -> tuple[str, Format]:
    """Recognise the format of a file, open it, and return both.

    ``name`` is the file, ``-`` standard input; ``label`` its name in messages.
    ``further`` says that options which do not fit the format are ignored.
    """
    said = None if further else reading.file_format
    names_path = _names_path(name, reading, said)
    if names_path is not None and reading.names_file is None:
        name = label = data_file_of(name)
    content = contents(name, label, reading.most_bytes)
    file_format = "c4.5" if names_path is not None else said or _known(content, name)
    if further:
        reading = reading.fitted(file_format)
    else:
        reading.check(file_format, label)
    if file_format in TEXT_FORMATS or file_format == "jsonl":
        content = whole_text(content, label, reading.most_bytes)
    return file_format, _opened(file_format, content, name, label, names_path, reading)


def _names_path(name: str, reading: Reading, said: str | None) -> str | None:
    """Return the names file if the format is C4.5."""
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
    """Return the format by the content, of text by the name."""
    head = content[:32]
    for file_format, (at, magic) in _MAGIC.items():
        if head[at:].startswith(magic):
            return file_format
    if head.startswith(OLD_EXCEL) or (head.startswith(ZIP) and is_workbook(content)):
        return "excel"
    plain = _plain_name(name)
    if plain.endswith(".dta"):  # older files of Stata have no mark
        return "stata"
    if plain.endswith(_TABS):
        return "tsv"
    if plain.endswith(_JSON_LINES) or looks_like_json_lines(content):
        return "jsonl"
    if plain.endswith(".arff") or looks_like_arff(content):
        return "arff"
    return "csv"


def _plain_name(name: str) -> str:
    """Return a name without the ending of compressed files."""
    plain = name.lower()
    for ending in COMPRESSED:
        plain = plain.removesuffix(ending)
    return plain


def known_format(path: str) -> str:
    """Return the format of a file by its first bytes and its name."""
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
    file_format: str,
    content: Buffer,
    name: str,
    label: str,
    names_path: str | None,
    reading: Reading,
) -> Format:
    if file_format == "c4.5" and names_path is not None:
        return open_c45(content, label, names_path, reading)
    if file_format == "arff":
        return open_arff(content, label, reading)
    if file_format in ("parquet", "arrow"):
        opened = ParquetFile if file_format == "parquet" else ArrowFile
        return opened(content, label, reading.most_bytes)
    if file_format == "excel":
        return Workbook(content, label, with_names(reading))
    if file_format == "jsonl":
        return JsonLines(content, label, reading)
    if file_format in _STATS:
        return StatsFile(content, label, file_format, reading)
    if file_format in ("sqlite", "duckdb"):
        _check_stream(name, label, file_format)
        database = SQLiteFile if file_format == "sqlite" else DuckDBFile
        return database(name, label, reading)
    if file_format == "tsv" and reading.separator is None:
        reading = replace(reading, separator="\t")
    return DelimitedFile(content, label, with_names(reading))


def _check_stream(name: str, label: str, file_format: str) -> None:
    """Reject a database that is not a plain file: it is opened, not read."""
    if name != STANDARD_STREAM:
        at, magic = _MAGIC[file_format]
        with Path(name).open("rb") as file:
            if file.read(16)[at:].startswith(magic):
                return
    raise DataError(
        f"{label} is not a plain {FORMATS[file_format]} file. A database cannot be "
        "compressed or come through a pipe: store it in a file first."
    )


def with_names(reading: Reading) -> Reading:
    """Read the names of columns from ``names_file``, one per line."""
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
            f"{path} must have the names of all columns, one per line and distinct."
        )
    return replace(reading, names=names, names_file=None)
