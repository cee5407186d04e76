"""A table in files that may be larger than memory: read part by part, many times.

Parts hold what reading the whole would give: words as they are in the file, numbers
where all cells are numbers, marks of missing values.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from branchwise.errors import DataError, quoted
from branchwise.table.arrow import is_text
from branchwise.table.contents import contents
from branchwise.table.delimited import DelimitedFile
from branchwise.table.forms import known_form
from branchwise.table.frames import Frame, open_table
from branchwise.table.parquet import pandas_index
from branchwise.table.raw import Coded, RawColumn
from branchwise.table.read import MISSING, as_numbers, check_names, wrong_cell
from branchwise.table.reading import Reading
from branchwise.table.typed import in_file_order, typed_columns

#: Cells of a part, about: so many rows times columns are in memory at once.
PART_CELLS = 5_000_000
_FEWEST_ROWS = 4096
#: Bytes of text that are parsed at once.
BLOCK_BYTES = 2**25

_STREAMED = ("csv", "tsv", "parquet", "arrow")


@dataclass(frozen=True)
class TablePart:
    """A part of a table; ``place`` tells where in its file a row is."""

    frame: Frame
    file: str
    place: Callable[[int], str]

    @property
    def label(self) -> str:
        """What messages call the part."""
        first, last = self.place(0), self.place(max(self.frame.n_rows - 1, 0))
        where = first if first == last else f"{first} to {last}"
        return f"{where} of {self.file}"


@dataclass(frozen=True)
class StreamedTable:
    """Files with the rows of one table, read part by part.

    Parameters
    ----------
    paths : tuple of str
        The files, in order.
    reading : Reading
        How to read them, where they do not tell themselves.
    missing : sequence of str
        The cells that are missing values.
    text_columns, number_columns : collection of str
        Columns that are wanted as text, and those that must hold numbers.
    part_rows : int or None
        The most rows of a part; by default as many as fit ``PART_CELLS``.
    """

    paths: tuple[str, ...]
    reading: Reading = field(default_factory=Reading)
    missing: Sequence[str] = MISSING
    text_columns: Collection[str] = ()
    number_columns: Collection[str] = ()
    ignore: Collection[str] = ()
    part_rows: int | None = None

    @property
    def label(self) -> str:
        """What messages call the table."""
        more = len(self.paths) - 1
        return self.paths[0] + (f" and {more:,} more files" if more else "")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the first file."""
        return _open(self.paths[0], self).names

    def parts(self) -> Iterator[TablePart]:
        """Read the table once more, part by part."""
        names: tuple[str, ...] | None = None
        for path in self.paths:
            source = _open(path, self)
            if names is None:
                names = source.names
                said = (*self.text_columns, *self.number_columns, *self.ignore)
                check_names(self.label, names, said)
            if set(source.names) != set(names) or len(source.names) != len(names):
                raise DataError(
                    f"All files of a table must have the same columns. Got "
                    f"{quoted(names, 20)} in {self.paths[0]} and "
                    f"{quoted(source.names, 20)} in {path}."
                )
            wanted = [name for name in names if name not in self.ignore]
            yield from source.parts(wanted)

    def with_roles(
        self, text: Collection[str], numbers: Collection[str], ignore: Collection[str]
    ) -> StreamedTable:
        """Return the table with columns as text, as numbers, and left out."""
        return replace(self, text_columns=text, number_columns=numbers, ignore=ignore)

    def rows_of_part(self, n_columns: int) -> int:
        """Return how many rows a part has."""
        if self.part_rows is not None:
            return self.part_rows
        return max(_FEWEST_ROWS, PART_CELLS // max(n_columns, 1))


def files_of(source: object) -> tuple[str, ...]:
    """Return the files that a path, a folder, a pattern or a list of them means."""
    given = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(given, (list, tuple)):
        raise DataError(
            "A table in files must be given as a path, a pattern such as 'data/*.csv', "
            f"a folder or a list of paths. Got {type(source).__name__}."
        )
    found: list[str] = []
    for entry in given:
        path = os.fspath(entry)
        if Path(path).is_dir():
            inside = sorted(p for p in Path(path).rglob("*") if _holds_rows(p))
            found.extend(map(str, inside))
        elif Path(path).exists() or not glob.has_magic(path):
            found.append(path)
        else:
            found.extend(sorted(glob.glob(path, recursive=True)))  # noqa: PTH207
    if not found:
        raise DataError(f"There is no file {quoted(map(str, given))}. Check the path.")
    return tuple(found)


def _holds_rows(path: Path) -> bool:
    # Folders that Spark and Hive write have marks such as _SUCCESS beside the rows.
    return path.is_file() and not path.name.startswith(("_", "."))


class _Source:
    """One file of a table."""

    def __init__(self, path: str, table: StreamedTable) -> None:
        self.label = path
        self.table = table
        self.names: tuple[str, ...] = ()

    def parts(self, wanted: Sequence[str]) -> Iterator[TablePart]:
        raise NotImplementedError

    def _part(
        self,
        columns: Sequence[Any],
        names: Sequence[str],
        plain: Collection[str],
        place: Callable[[int], str],
    ) -> TablePart:
        """Make a part; text that is not declared in the file has no order."""
        import pyarrow as pa  # noqa: PLC0415

        columns = list(columns)
        for at, name in enumerate(names):
            if name in self.table.number_columns:
                refuse = wrong_cell(name, "numbers", self.label, place)
                columns[at] = as_numbers(name, columns[at], self.label, refuse)
        frame = open_table(pa.table(columns, names=list(names)))
        readers = tuple(
            _Undeclared(read) if name in plain else read
            for name, read in zip(frame.names, frame.readers, strict=True)
        )
        return TablePart(replace(frame, readers=readers), self.label, place)


@dataclass(frozen=True)
class _Undeclared:
    """Reads a column whose dictionary is only how it is stored."""

    read: Any

    def __call__(self) -> RawColumn:
        raw: RawColumn = self.read()
        return replace(raw, declared=False) if isinstance(raw, Coded) else raw


class _Delimited(_Source):
    def __init__(self, path: str, table: StreamedTable, form: str) -> None:
        super().__init__(path, table)
        reading = table.reading
        if form == "tsv" and reading.separator is None:
            reading = replace(reading, separator="\t")
        content = contents(path, path, reading.most_bytes)
        self._file = DelimitedFile(content, path, reading)
        self.names = self._file.names

    def parts(self, wanted: Sequence[str]) -> Iterator[TablePart]:
        indices = [self.names.index(name) for name in wanted]
        as_text = [i for i in indices if self.names[i] in self.table.text_columns]
        for block in self._file.blocks(BLOCK_BYTES):
            columns = block.load(indices, as_text, self.table.missing)
            for begin, rows in _cut(columns, self.table.rows_of_part(len(indices))):

                def place(row: int, begin: int = begin, block: Any = block) -> str:
                    return str(block.place(begin + row))

                yield self._part(rows, wanted, wanted, place)


class _Typed(_Source):
    """Parquet and Arrow: batches of typed columns."""

    def __init__(self, path: str, table: StreamedTable, form: str) -> None:
        super().__init__(path, table)
        import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

        self._form = form
        try:
            schema = self._schema(path)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None
        self.names = tuple(name for name in schema.names if not pandas_index(name))
        self._plain = {
            field.name
            for field in schema
            if is_text(field.type) and not pa.types.is_dictionary(field.type)
        }

    def _unreadable(self, error: Exception) -> DataError:
        reason = " ".join(str(error).split()).rstrip(".")
        return DataError(
            f"{self.label} cannot be read: {reason}. Write or copy the file again."
        )

    def _schema(self, path: str) -> Any:
        from pyarrow import ipc, parquet  # noqa: PLC0415

        if self._form == "parquet":
            return parquet.read_schema(path)
        with ipc.open_file(path) as file:
            return file.schema

    def _batches(self, wanted: list[str], n_rows: int) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import ipc, parquet  # noqa: PLC0415

        if self._form == "parquet":
            # Text is a dictionary in the file already: read it as it lies there.
            dictionaries = sorted(self._plain)
            with parquet.ParquetFile(self.label, read_dictionary=dictionaries) as file:
                yield from file.iter_batches(n_rows, columns=wanted)
            return
        with pa.OSFile(self.label) as source, ipc.open_file(source) as file:
            for at in range(file.num_record_batches):
                yield file.get_batch(at).select(wanted)

    def parts(self, wanted: Sequence[str]) -> Iterator[TablePart]:
        import pyarrow as pa  # noqa: PLC0415

        n_rows = self.table.rows_of_part(len(wanted))
        text = in_file_order(
            range(len(wanted)),
            {at for at, name in enumerate(wanted) if name in self.table.text_columns},
        )
        before = 0
        batches = self._batches(list(wanted), n_rows)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                raise self._unreadable(error) from None
            if batch is None:
                return
            table = pa.Table.from_batches([batch]).select(list(wanted))
            columns = typed_columns(
                table, self.label, text, self.table.missing, self._plain
            )
            plain = self._plain | {
                name
                for at, name in enumerate(wanted)
                if not pa.types.is_dictionary(table.column(at).type)
            }
            for begin, rows in _cut(columns, n_rows):

                def place(row: int, begin: int = before + begin) -> str:
                    return f"row {begin + row + 1:,}"

                yield self._part(rows, wanted, plain, place)
            before += batch.num_rows


def _cut(columns: Sequence[Any], n_rows: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield columns in pieces of so many rows, with the row where each begins."""
    total = len(columns[0]) if columns else 0
    for begin in range(0, total, n_rows):
        yield begin, [column.slice(begin, n_rows) for column in columns]


def _open(path: str, table: StreamedTable) -> _Source:
    form = table.reading.form or known_form(path)
    if form not in _STREAMED:
        raise DataError(
            f"{path} is {form}, which is not read in parts. Give CSV, TSV, Parquet or "
            "Arrow files, or read it into memory."
        )
    if form in ("csv", "tsv"):
        return _Delimited(path, table, form)
    return _Typed(path, table, form)
