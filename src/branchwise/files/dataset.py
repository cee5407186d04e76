"""Tables in files that may be larger than memory, read in chunks.

Chunks hold the same values as the whole table would: text as in the file, numbers
where all cells are numbers, and the same missing values.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from branchwise.data.arrow import (
    declared_table,
    is_text,
    pa,
    release_memory,
)
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.conventions.spellings import merged_spellings
from branchwise.data.frames import Frame, open_table
from branchwise.data.table_schema import (
    Column,
    Value,
    check_names,
    columns_by_type,
    number_formats,
)
from branchwise.errors import DataError, counted, quoted
from branchwise.files.delimited import DelimitedFile
from branchwise.files.formats import known_format, with_names
from branchwise.files.number_columns import NumberColumns
from branchwise.files.options import (
    CHUNKED_FORMATS,
    DELIMITED_FORMATS,
    FORMATS,
    HEADED_FORMATS,
    Reading,
)
from branchwise.files.raw_bytes import STANDARD_STREAM, contents
from branchwise.files.read_table import (
    MISSING,
    check_header,
    check_width,
    filled_names,
    with_location,
)
from branchwise.files.table_paths import files_of
from branchwise.files.typed_columns import (
    ArrowFile,
    ParquetFile,
    typed_columns,
    untyped,
    with_types,
)

#: Bytes of text that are parsed at a time.
BLOCK_BYTES = 2**23


@dataclass(frozen=True)
class TableChunk:
    """A chunk of a table; ``location`` returns where in its file a row is.

    ``as_is`` are Arrow columns as the file has them, if they are requested.
    """

    frame: Frame
    file: str
    location: Callable[[int], str]
    as_is: Mapping[str, Any]

    def located(self, error: DataError) -> DataError:
        """Add the location in the file to an error."""
        found = with_location(error, self.file, self.location)
        if found is not None:
            return found
        first, last = self.location(0), self.location(max(self.frame.n_rows - 1, 0))
        where = first if first == last else f"{first} to {last}"
        return DataError(f"In {where} of {self.file}: {error}")


#: A generator of chunks; it can be closed before the last.
Chunks = Generator[TableChunk, None, None]
Batches = Generator[Any, None, None]


class ChunkFile:
    """One file of a table, of which the names of the columns are known."""

    def __init__(self, path: str, how: StreamedTable, file_format: str) -> None:
        self.label = path
        self.names: tuple[str, ...] = ()
        self.unnamed: tuple[str, ...] = ()
        self._how = how
        self._format = file_format
        self._declared: frozenset[str] = frozenset()

    def chunks(self, wanted: Sequence[str], kept: Sequence[str]) -> Chunks:
        """Yield chunks with some columns, and some as they are in the file."""
        raise NotImplementedError

    def nothing(self, wanted: Sequence[str], kept: Sequence[str]) -> TableChunk:
        """Return a chunk without rows."""
        raise NotImplementedError

    def check(self, wanted: Collection[str]) -> None:
        """Reject columns that are wanted and have no name of their own."""
        indices = [at for at, name in enumerate(self.names) if name in wanted]
        check_header(self.names, indices, self.label, self._format in HEADED_FORMATS)

    def _chunk(
        self,
        columns: Sequence[Any],
        names: Sequence[str],
        location: Callable[[int], str],
        as_is: Mapping[str, Any],
    ) -> TableChunk:
        """Build a chunk; text without values declared in the file has no order."""
        how = self._how
        numbers = NumberColumns(how.reading, self.label, how.number_formats)
        converted = with_types(
            dict(zip(names, columns, strict=True)),
            how.number_columns,
            how.boolean_columns,
            numbers,
            location,
        )
        known = {n: v for n, v in how.known_values.items() if n not in self._declared}
        converted = [
            merged_spellings(column, known[name])
            if name in known and is_text(column.type)
            else column
            for name, column in zip(names, converted, strict=True)
        ]
        table = declared_table(
            converted, names, self._declared, numbers.written_formats
        )
        frame = open_table(table)
        return TableChunk(frame, self.label, location, as_is)


class _Delimited(ChunkFile):
    def __init__(self, path: str, how: StreamedTable, file_format: str) -> None:
        super().__init__(path, how, file_format)
        reading = with_names(how.reading)
        if file_format == "tsv" and reading.separator is None:
            reading = replace(reading, separator="\t")
        content = contents(path, path, reading.most_bytes)
        self._file = DelimitedFile(content, path, reading)
        self.names, self.unnamed = filled_names(self._file.names)

    def chunks(self, wanted: Sequence[str], kept: Sequence[str]) -> Chunks:
        position = {name: at for at, name in reversed(list(enumerate(self.names)))}
        indices = [position[name] for name in wanted]
        how = self._how
        numbers = NumberColumns(how.reading, self.label, how.number_formats)
        read_as_text = {
            *how.text_columns,
            *(name for name in how.number_columns if numbers.known_format(name)),
        }
        as_text = [i for i in indices if self.names[i] in read_as_text]
        as_is = [position[name] for name in kept]
        n_rows = self._how.rows_of_chunk(len(indices) + len(as_is))
        for block in self._file.blocks(BLOCK_BYTES):
            columns = block.load(indices, as_text, self._how.missing)
            if as_is:
                columns += block.load(as_is, as_is, ())
            total = len(columns[0]) if columns else 0
            for begin in range(0, total, n_rows):
                rows = [column.slice(begin, n_rows) for column in columns]

                def location(row: int, begin: int = begin, block: Any = block) -> str:
                    return str(block.location(begin + row))

                own = rows[: len(indices)]
                others = dict(zip(kept, untyped(rows[len(indices) :]), strict=True))
                yield self._chunk(own, wanted, location, others)

    def nothing(self, wanted: Sequence[str], kept: Sequence[str]) -> TableChunk:
        as_is = {name: pa.chunked_array([], pa.string()) for name in kept}
        none = [pa.nulls(0)] * len(wanted)
        return self._chunk(none, wanted, _row_location(0), as_is)


class _Typed(ChunkFile):
    """Parquet and Arrow: batches of typed columns."""

    def __init__(self, path: str, how: StreamedTable, file_format: str) -> None:
        super().__init__(path, how, file_format)
        opened = ParquetFile if file_format == "parquet" else ArrowFile
        self._file = opened(path, path, how.reading.most_bytes)
        self.names, self._declared = self._file.names, self._file.declared

    def _tables(self, wanted: Sequence[str], n_rows: int) -> Batches:
        waiting: list[Any] = []
        with closing(self._file.batches(wanted, n_rows)) as batches:
            for batch in batches:
                waiting.append(batch)
                # Small batches are joined: every chunk has an overhead.
                if sum(batch.num_rows for batch in waiting) >= n_rows:
                    yield pa.Table.from_batches(waiting)
                    waiting = []
        if waiting:
            yield pa.Table.from_batches(waiting)

    def chunks(self, wanted: Sequence[str], kept: Sequence[str]) -> Chunks:
        read = list(dict.fromkeys([*wanted, *kept]))
        n_rows = self._how.rows_of_chunk(len(read))
        before = 0
        with closing(self._tables(read, n_rows)) as tables:
            for table in tables:
                for begin in range(0, table.num_rows, n_rows):
                    rows = table.slice(begin, n_rows)
                    location = _row_location(before + begin)
                    yield self._typed_chunk(rows, wanted, kept, location)
                before += table.num_rows

    def _typed_chunk(
        self,
        table: Any,
        wanted: Sequence[str],
        kept: Sequence[str],
        location: Callable[[int], str],
    ) -> TableChunk:
        chosen = table.select(list(wanted))
        as_text = {at for at, n in enumerate(wanted) if n in self._how.text_columns}
        columns = typed_columns(chosen, self.label, as_text, self._how.missing)
        as_is = zip(kept, untyped(table.select(list(kept)).columns), strict=True)
        return self._chunk(columns, wanted, location, dict(as_is))

    def nothing(self, wanted: Sequence[str], kept: Sequence[str]) -> TableChunk:
        return self._typed_chunk(
            self._file.schema.empty_table(), wanted, kept, _row_location(0)
        )


def _row_location(begin: int) -> Callable[[int], str]:
    return lambda row: f"row {begin + row + 1:,}"


def open_chunk_file(path: str, how: StreamedTable) -> ChunkFile:
    """Open a file of a table whose format can be read in chunks."""
    if path == STANDARD_STREAM:
        raise DataError(
            "Standard input cannot be read in chunks: it is read more than once. Store "
            "it in a file first, or use engine='memory'."
        )
    file_format = how.reading.file_format or known_format(path)
    if file_format not in CHUNKED_FORMATS:
        raise DataError(
            f"{path} is {FORMATS[file_format]}, which is not read in chunks. Give CSV, "
            "TSV, Parquet or Arrow files, or read it into memory: engine='memory'."
        )
    how.reading.check(file_format, path)
    if how.reading.merge_case:
        raise DataError(
            f"{how.reading.option('merge_case')} needs all rows at once, and {path} is "
            "read in chunks. Read it into memory (engine='memory'), or write the "
            "values in one way."
        )
    opened = _Delimited if file_format in DELIMITED_FORMATS else _Typed
    file: ChunkFile = opened(path, how, file_format)
    check_width(path, len(file.names))
    return file


#: About the number of cells (rows times columns) of a chunk.
CHUNK_CELLS = 2_000_000
_FEWEST_ROWS = 4096


@dataclass(frozen=True)
class StreamedTable:
    """Files with the rows of one table, read in chunks.

    Parameters
    ----------
    paths : tuple of str
        The files, in order.
    reading : Reading
        Options of reading; by default they are inferred from the files.
    missing : sequence of str
        The cells that are missing values.
    text_columns, number_columns : collection of str
        Columns that are read as text, and those that must hold numbers.
    ignore : collection of str
        Columns to leave out.
    chunk_rows : int or None
        The most rows of a chunk; by default as many as fit ``CHUNK_CELLS``.
    boolean_columns : collection of str
        Columns that must hold "true" and "false".
    only : collection of str or None
        If given, the columns to read.
    number_formats : mapping of str to NumberFormat or DateFormat
        How the numbers of columns are written, unless plainly.
    known_values : mapping of str to sequence
        By column the values into which other spellings are merged.
    """

    #: For engines, which recognise such a table without importing this module.
    reads_files: ClassVar[bool] = True

    paths: tuple[str, ...]
    reading: Reading = field(default_factory=Reading)
    missing: Sequence[str] = MISSING
    text_columns: Collection[str] = ()
    number_columns: Collection[str] = ()
    ignore: Collection[str] = ()
    chunk_rows: int | None = None
    boolean_columns: Collection[str] = ()
    only: Collection[str] | None = None
    number_formats: Mapping[str, NumberFormat | DateFormat] = field(
        default_factory=dict
    )
    known_values: Mapping[str, Sequence[Value]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: object) -> StreamedTable:
        """Return the table of files that are given as paths, patterns or a dataset."""
        return source if isinstance(source, cls) else cls(files_of(source))

    @property
    def label(self) -> str:
        """The name of the table in messages."""
        more = len(self.paths) - 1
        return self.paths[0] + (f" and {counted(more, 'more file')}" if more else "")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the first file."""
        return open_chunk_file(self.paths[0], self).names

    def chunks(self, keep: bool = False) -> Chunks:
        """Read the table in chunks; there is at least one.

        With ``keep`` chunks also have all columns as they are in the file.
        """
        n_rows = 0
        names = self.names
        wanted, kept = self._wanted(names), names if keep else ()
        for file in self._opened(names):
            file.check({*wanted, *kept})
            with closing(file.chunks(wanted, kept)) as chunks:
                for chunk in chunks:
                    n_rows += chunk.frame.n_rows
                    yield chunk
                    release_memory()
        if not n_rows:
            yield file.nothing(wanted, kept)

    @property
    def is_delimited(self) -> bool:
        """Whether the files are CSV or TSV, where numbers are text."""
        file_format = self.reading.file_format or known_format(self.paths[0])
        return file_format in DELIMITED_FORMATS

    def check_files(self) -> None:
        """Reject files that do not exist, or that have different columns."""
        for _ in self._opened(self.names):
            pass

    def _opened(self, names: Sequence[str]) -> Iterator[ChunkFile]:
        for path in self.paths:
            file = open_chunk_file(path, self)
            if set(file.names) != set(names) or len(file.names) != len(names):
                raise DataError(
                    f"All files of a table must have the same columns. Got "
                    f"{quoted(names, 20)} in {self.paths[0]} and "
                    f"{quoted(file.names, 20)} in {path}."
                )
            yield file

    def _wanted(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are read; all named columns must exist."""
        said = (*self.text_columns, *self.number_columns, *self.boolean_columns)
        ignored = {*self.ignore}
        if "" in ignored and "" not in names:  # what the header does not name
            unnamed = open_chunk_file(self.paths[0], self).unnamed
            ignored = (ignored - {""}).union(unnamed) if unnamed else ignored
        check_names(self.label, names, (*said, *ignored, *(self.only or ())))
        left = [name for name in names if name not in ignored]
        return left if self.only is None else [n for n in left if n in self.only]

    def with_roles(
        self, text: Collection[str], numbers: Collection[str], ignore: Collection[str]
    ) -> StreamedTable:
        """Return the table with columns as text, as numbers, and left out."""
        return replace(self, text_columns=text, number_columns=numbers, ignore=ignore)

    def for_columns(self, columns: Mapping[str, Column]) -> StreamedTable:
        """Return the table with some columns read as they were learnt."""
        types = columns_by_type(columns)
        named = {name for name in columns if name not in self.ignore}
        return replace(
            self,
            text_columns={*self.text_columns, *named.intersection(types["text"])},
            number_columns={*self.number_columns, *named.intersection(types["number"])},
            boolean_columns=named.intersection(types["boolean"]),
            number_formats=number_formats(columns),
        )

    def with_number_formats(
        self, found: Mapping[str, NumberFormat | DateFormat]
    ) -> StreamedTable:
        """Return the table with columns read as numbers that are written so."""
        said = NumberColumns(self.reading, self.label, self.number_formats)
        known = {name: said.known_format(name) for name in self.number_columns}
        # The marks that are insisted on have had their effect.
        return replace(
            self,
            reading=replace(
                self.reading, decimal=None, thousands=None, date_format=None
            ),
            text_columns={*self.text_columns} - {*found},
            number_columns={*self.number_columns, *found},
            number_formats={n: how for n, how in ({**known, **found}).items() if how},
        )

    def with_named_dates(self) -> StreamedTable:
        """Return the table with the columns read as dates whose format is given."""
        named = dict(self.reading.date_format or {})
        others = {"": named.pop("")} if "" in named else None
        if not named:
            return self
        formats = {name: DateFormat(written=how) for name, how in named.items()}
        return replace(
            self,
            reading=replace(self.reading, date_format=others),
            number_columns={*self.number_columns, *named} - {*self.text_columns},
            number_formats={**self.number_formats, **formats},
        )

    def stamps(self) -> dict[str, tuple[int, int, int]]:
        """Return inode, size and modification time of the files."""
        found = {}
        for path in self.paths:
            with suppress(OSError):  # opening it raises the error
                status = Path(path).stat()
                found[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
        return found

    def rows_of_chunk(self, n_columns: int) -> int:
        """Return the number of rows of a chunk."""
        if self.chunk_rows is not None:
            return self.chunk_rows
        return max(_FEWEST_ROWS, CHUNK_CELLS // max(n_columns, 1))
