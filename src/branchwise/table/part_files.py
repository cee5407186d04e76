"""One file of a table, read part by part: delimited text, Parquet, Arrow."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from branchwise.errors import DataError
from branchwise.table.arrow import declared_table, declares_values
from branchwise.table.contents import STANDARD_STREAM, contents
from branchwise.table.delimited import DelimitedFile
from branchwise.table.forms import HEADED_FORMS, known_form, with_names
from branchwise.table.frames import Frame, open_table
from branchwise.table.parquet import ARROW, pandas_index, plain_texts, record_batches
from branchwise.table.read import (
    as_booleans,
    as_numbers,
    check_header,
    check_width,
    with_place,
    wrong_cell,
)
from branchwise.table.reading import FORMS, Reading
from branchwise.table.typed import typed_columns, untyped

#: Bytes of text that are parsed at once.
BLOCK_BYTES = 2**23

_STREAMED = ("csv", "tsv", "parquet", "arrow")


@dataclass(frozen=True)
class TablePart:
    """A part of a table; ``place`` tells where in its file a row is.

    ``as_is`` are Arrow columns as the file has them, if they are asked for.
    """

    frame: Frame
    file: str
    place: Callable[[int], str]
    as_is: Mapping[str, Any]

    @property
    def label(self) -> str:
        """What messages call the part."""
        first, last = self.place(0), self.place(max(self.frame.n_rows - 1, 0))
        where = first if first == last else f"{first} to {last}"
        return f"{where} of {self.file}"

    def located(self, error: DataError) -> DataError:
        """Say where in the file it is that an error speaks of."""
        found = with_place(error, self.file, self.place)
        return found or DataError(f"In {self.label}: {error}")


#: Parts one after the other; what is open can be closed before the last.
Parts = Generator[TablePart, None, None]
Batches = Generator[Any, None, None]


class HowToRead(Protocol):
    """What is wanted of the files of a table."""

    @property
    def reading(self) -> Reading:
        """How to read them, where they do not tell themselves."""

    @property
    def missing(self) -> Sequence[str]:
        """The cells that are missing values."""

    @property
    def text_columns(self) -> Collection[str]:
        """Columns that are wanted as text."""

    @property
    def number_columns(self) -> Collection[str]:
        """Columns that must hold numbers."""

    @property
    def boolean_columns(self) -> Collection[str]:
        """Columns that must hold "true" and "false"."""

    def rows_of_part(self, n_columns: int) -> int:
        """Return how many rows a part has."""


class PartFile:
    """One file of a table, of which the names of the columns are known."""

    def __init__(self, path: str, how: HowToRead, form: str) -> None:
        self.label = path
        self.names: tuple[str, ...] = ()
        self._how = how
        self._form = form
        self._declared: frozenset[str] = frozenset()

    def parts(self, wanted: Sequence[str], kept: Sequence[str]) -> Parts:
        """Yield parts with some columns, and some as they are in the file."""
        raise NotImplementedError

    def nothing(self, wanted: Sequence[str], kept: Sequence[str]) -> TablePart:
        """Return a part without rows."""
        raise NotImplementedError

    def check(self, wanted: Collection[str]) -> None:
        """Refuse columns that are wanted and have no name of their own."""
        indices = [at for at, name in enumerate(self.names) if name in wanted]
        check_header(self.names, indices, self.label, self._form in HEADED_FORMS)

    def _part(
        self,
        columns: Sequence[Any],
        names: Sequence[str],
        place: Callable[[int], str],
        as_is: Mapping[str, Any],
    ) -> TablePart:
        """Make a part; text that is not declared in the file has no order."""
        columns = list(columns)
        for at, name in enumerate(names):
            if name in self._how.number_columns:
                refuse = wrong_cell(name, "numbers", self.label, place)
                columns[at] = as_numbers(name, columns[at], self.label, refuse)
            elif name in self._how.boolean_columns:
                refuse = wrong_cell(name, "true or false", self.label, place)
                columns[at] = as_booleans(columns[at], refuse)
        frame = open_table(declared_table(columns, names, self._declared))
        return TablePart(frame, self.label, place, as_is)


class _Delimited(PartFile):
    def __init__(self, path: str, how: HowToRead, form: str) -> None:
        super().__init__(path, how, form)
        reading = with_names(how.reading)
        if form == "tsv" and reading.separator is None:
            reading = replace(reading, separator="\t")
        content = contents(path, path, reading.most_bytes)
        self._file = DelimitedFile(content, path, reading)
        self.names = self._file.names

    def parts(self, wanted: Sequence[str], kept: Sequence[str]) -> Parts:
        position = {name: at for at, name in reversed(list(enumerate(self.names)))}
        indices = [position[name] for name in wanted]
        as_text = [i for i in indices if self.names[i] in self._how.text_columns]
        as_is = [position[name] for name in kept]
        n_rows = self._how.rows_of_part(len(indices) + len(as_is))
        for block in self._file.blocks(BLOCK_BYTES):
            columns = block.load(indices, as_text, self._how.missing)
            if as_is:
                columns += block.load(as_is, as_is, ())
            for begin, rows in _cut(columns, n_rows):

                def place(row: int, begin: int = begin, block: Any = block) -> str:
                    return str(block.place(begin + row))

                own = rows[: len(indices)]
                others = dict(zip(kept, untyped(rows[len(indices) :]), strict=True))
                yield self._part(own, wanted, place, others)

    def nothing(self, wanted: Sequence[str], kept: Sequence[str]) -> TablePart:
        import pyarrow as pa  # noqa: PLC0415

        as_is = {name: pa.chunked_array([], pa.string()) for name in kept}
        none = [pa.nulls(0)] * len(wanted)
        return self._part(none, wanted, _row_place(0), as_is)


class _Typed(PartFile):
    """Parquet and Arrow: batches of typed columns."""

    def __init__(self, path: str, how: HowToRead, form: str) -> None:
        super().__init__(path, how, form)
        import pyarrow as pa  # noqa: PLC0415

        try:
            self._schema = self._read_schema()
            names = self._schema.names
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from None
        # What pandas adds to remember its row labels is no column of the user's.
        self.names = tuple(name for name in names if not pandas_index(name))
        self._declared = frozenset(
            field.name for field in self._schema if declares_values(field)
        )

    def _unreadable(self, error: Exception) -> DataError:
        reason = " ".join(str(error).split()).rstrip(".")
        return DataError(
            f"{self.label} is not a whole {FORMS[self._form]} file: {reason}. Write or "
            "copy it again."
        )

    def _read_schema(self) -> Any:
        from pyarrow import parquet  # noqa: PLC0415

        if self._form == "parquet":
            return parquet.read_schema(self.label)
        with self._arrow_file() as file:
            return file.schema

    @contextmanager
    def _arrow_file(self, fields: Sequence[int] = ()) -> Iterator[Any]:
        """Open a file or a stream of Arrow, all columns of it or some."""
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import ipc  # noqa: PLC0415

        options = ipc.IpcReadOptions(included_fields=list(fields) or None)
        with pa.OSFile(self.label) as source:
            is_file = source.read(len(ARROW[0])) == ARROW[0]
            source.seek(0)
            opened = ipc.open_file if is_file else ipc.open_stream
            with opened(source, options=options) as file:
                yield file

    def _batches(self, wanted: Sequence[str], n_rows: int) -> Batches:
        from pyarrow import parquet  # noqa: PLC0415

        if self._form == "parquet":
            # Text is a dictionary in the file already: read it as it lies there.
            dictionaries = plain_texts(self._schema)
            with parquet.ParquetFile(self.label, read_dictionary=dictionaries) as file:
                yield from file.iter_batches(n_rows, columns=list(wanted))
            return
        fields = [self._schema.get_field_index(name) for name in wanted]
        with self._arrow_file(fields) as file:
            yield from record_batches(file)

    def _tables(self, wanted: Sequence[str], n_rows: int) -> Batches:
        import pyarrow as pa  # noqa: PLC0415

        waiting: list[Any] = []
        with closing(self._batches(wanted, n_rows)) as batches:
            while True:
                try:
                    batch = next(batches, None)
                    if batch is not None:
                        batch.validate(full=True)
                        waiting.append(batch)
                except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                    raise self._unreadable(error) from None
                # Small batches wait for one another: a part costs time of its own.
                enough = sum(batch.num_rows for batch in waiting) >= n_rows
                if waiting and (enough or batch is None):
                    yield pa.Table.from_batches(waiting)
                    waiting = []
                if batch is None:
                    return

    def parts(self, wanted: Sequence[str], kept: Sequence[str]) -> Parts:
        read = list(dict.fromkeys([*wanted, *kept]))
        n_rows = self._how.rows_of_part(len(read))
        before = 0
        with closing(self._tables(read, n_rows)) as tables:
            for table in tables:
                for begin in range(0, table.num_rows, n_rows):
                    rows = table.slice(begin, n_rows)
                    place = _row_place(before + begin)
                    yield self._typed_part(rows, wanted, kept, place)
                before += table.num_rows

    def _typed_part(
        self,
        table: Any,
        wanted: Sequence[str],
        kept: Sequence[str],
        place: Callable[[int], str],
    ) -> TablePart:
        chosen = table.select(list(wanted))
        as_text = {at for at, n in enumerate(wanted) if n in self._how.text_columns}
        columns = typed_columns(chosen, self.label, as_text, self._how.missing)
        as_is = zip(kept, untyped(table.select(list(kept)).columns), strict=True)
        return self._part(columns, wanted, place, dict(as_is))

    def nothing(self, wanted: Sequence[str], kept: Sequence[str]) -> TablePart:
        return self._typed_part(self._schema.empty_table(), wanted, kept, _row_place(0))


def _row_place(begin: int) -> Callable[[int], str]:
    return lambda row: f"row {begin + row + 1:,}"


def _cut(columns: Sequence[Any], n_rows: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield columns in pieces of so many rows, with the row where each begins."""
    total = len(columns[0]) if columns else 0
    for begin in range(0, total, n_rows):
        yield begin, [column.slice(begin, n_rows) for column in columns]


def open_part_file(path: str, how: HowToRead) -> PartFile:
    """Open a file of a table whose form can be read part by part."""
    if path == STANDARD_STREAM:
        raise DataError(
            "Standard input cannot be read in parts: it is read more than once. Store "
            "it in a file first, or use engine='memory'."
        )
    form = how.reading.form or known_form(path)
    if form not in _STREAMED:
        raise DataError(
            f"{path} is {FORMS[form]}, which is not read in parts. Give CSV, TSV, "
            "Parquet or Arrow files, or read it into memory: engine='memory'."
        )
    how.reading.check(form, path)
    opened = _Delimited if form in ("csv", "tsv") else _Typed
    file: PartFile = opened(path, how, form)
    check_width(path, len(file.names))
    return file
