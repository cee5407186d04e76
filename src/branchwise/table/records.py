"""The rows of delimited text -> columns, and the line of every mishap.

pyarrow parses the rows in parallel, but knows nothing of lines. Where it gives
up, the text is walked once more with :mod:`csv` to say what is wrong and where.
"""

from __future__ import annotations

import csv
import mmap
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from branchwise.errors import DataError
from branchwise.table.arrow import is_text, sorted_dictionary, value_type
from branchwise.table.contents import Buffer
from branchwise.table.encodings import refuse_encoding, text_start

#: Arrow falls back to plain text beyond this many distinct values in a block.
NO_LIMIT = 2**31 - 1

_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", " ": "blank"}
_TAIL = 2**16
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Records:
    """Rows of delimited text in UTF-8.

    Parameters
    ----------
    content : bytes or mmap
        The whole text.
    label : str
        What messages call it.
    names : tuple of str
        The names of the columns.
    delimiter : str
        What stands between the cells.
    start : int
        Where the rows begin.
    lines_before : int
        How many lines there are before them.
    header : str
        What has the names: the number of cells is compared with it.
    quoted_marks : bool
        Whether a mark of a missing value is one in quotes, too.
    numbers : sequence of int or None
        The line of each row in the file, if rows were rewritten.
    """

    content: Buffer
    label: str
    names: tuple[str, ...]
    delimiter: str
    start: int = 0
    lines_before: int = 0
    header: str = "its header"
    quoted_marks: bool = True
    numbers: Sequence[int] | None = None

    @property
    def has_quotes(self) -> bool:
        """Whether a cell may hold a delimiter or a line break."""
        return self.content.find(b'"', self.start) >= 0

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as numbers, or as dictionaries of the text in the file.

        Parameters
        ----------
        indices : sequence of int
            Which columns to read.
        text : collection of int
            Those whose text is wanted even if it looks like numbers.
        missing : sequence of str
            The cells that are missing values.

        Returns
        -------
        list of pyarrow.ChunkedArray
            A column for each index: int64, double, dictionary of string or null.
        """
        import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

        # Arrow takes a byte order mark for nothing, also where the rows begin.
        begin = self.start + text_start(self.content[self.start : self.start + 3])
        if not re.search(rb"[^\r\n]", memoryview(self.content)[begin:]):
            return [pa.chunked_array([pa.nulls(0)]) for _ in indices]
        has_quotes = self.has_quotes
        last = len(self.names) - 1
        # Without any column pyarrow would not look at the rows.
        always = {last} if has_quotes or not indices else set()
        wanted = sorted({*indices, *always})
        table = self._parse(wanted, text, missing, has_quotes)
        columns = {index: table[str(index)] for index in wanted}
        # A date or a time is the text that it was; only Arrow sees more in it.
        dated = [i for i, c in columns.items() if pa.types.is_temporal(c.type)]
        if dated:
            again = self._parse(dated, dated, missing, has_quotes)
            columns.update((index, again[str(index)]) for index in dated)
        if any(pa.types.is_binary(value_type(c.type)) for c in columns.values()):
            refuse_encoding(self.content, self.label)
        if has_quotes:
            self._refuse_open_quote(columns[last])
        return [_in_order(columns[index]) for index in indices]

    def blocks(self, size: int) -> Iterator[Records]:
        """Yield the rows in blocks of about so many bytes, each by itself.

        A file that is mapped takes no more memory than a block.
        """
        begin, before = self.start, self.lines_before
        while begin < len(self.content):
            end = self._block_end(begin, size)
            text = bytes(self.content[begin:end])
            yield replace(self, content=text, start=0, lines_before=before)
            before += text.count(b"\n") or text.count(b"\r")
            _let_go(self.content, begin, end)
            begin = end

    def _block_end(self, begin: int, size: int) -> int:
        """Return where a row ends, about so many bytes later: not within quotes."""
        block = self.content[begin : begin + size]
        if begin + size >= len(self.content):
            return len(self.content)
        mark = b"\n" if b"\n" in block else b"\r"
        if b'"' in block:
            # Quotes only count at the beginning of a cell.
            opening = rb"(?:\A|(?<=[\r\n" + re.escape(self.delimiter.encode()) + rb"]))"
            quoted_cell = re.compile(opening + rb'"(?:[^"]|"")*(?:"|\Z)')
            block = quoted_cell.sub(lambda cell: b"x" * len(cell[0]), block)
        end = block.rfind(mark)
        return begin + end + 1 if end >= 0 else self._block_end(begin, 2 * size)

    def place(self, row: int) -> str:
        """Tell in which line of the file a row begins."""
        for number, (line, _) in enumerate(self.numbered()):
            if number == row:
                return f"line {line:,}"
        return f"row {row + 1:,}"

    def numbered(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every row with the line in which it begins."""
        lines = Lines(self.content, self.start, self.label)
        reader = csv_reader(lines, self.delimiter)
        begin, row = 1, 0
        for record in reader:
            if record:  # Arrow skips empty lines, too
                line = self.lines_before + begin
                yield (line if self.numbers is None else self.numbers[row]), record
                row += 1
            begin = reader.line_num + 1

    def _parse(
        self,
        indices: Sequence[int],
        text: Collection[int],
        missing: Sequence[str],
        has_quotes: bool,
    ) -> Any:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import csv as arrow_csv  # noqa: PLC0415

        category = pa.dictionary(pa.int32(), pa.string())
        convert = arrow_csv.ConvertOptions(
            include_columns=[str(index) for index in indices],
            column_types={str(index): category for index in indices if index in text},
            null_values=list(missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=self.quoted_marks,
            auto_dict_encode=True,
            auto_dict_max_cardinality=NO_LIMIT,
            # TRUE and false are words like any others.
            true_values=[],
            false_values=[],
        )
        parse = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            # Only a quoted cell can hold a line break, and looking for them is slow.
            newlines_in_values=has_quotes,
        )
        buffer = pa.py_buffer(self.content)[self.start :]
        names = [str(index) for index in range(len(self.names))]

        def attempt(block_size: int | None) -> Any:
            return arrow_csv.read_csv(
                pa.BufferReader(buffer),
                arrow_csv.ReadOptions(column_names=names, block_size=block_size),
                parse,
                convert,
            )

        try:
            try:
                return attempt(None)
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error):
                    raise
                # A row longer than a block: take the file as one.
                return attempt(min(len(buffer) + 1, NO_LIMIT))
        except pa.ArrowInvalid as error:
            self._diagnose(str(error))

    def _diagnose(self, arrow_message: str) -> NoReturn:
        try:
            self._refuse_cut_off()
            self._refuse_ragged()
        except csv.Error as error:
            arrow_message = str(error)
        raise DataError(
            f"{self.label} cannot be read as text with {self._named_delimiter}s "
            f"between the cells: {' '.join(arrow_message.split()).rstrip('.')}."
        )

    @property
    def _named_delimiter(self) -> str:
        return _DELIMITERS.get(self.delimiter, repr(self.delimiter))

    def _refuse_cut_off(self) -> None:
        """Refuse a last line without an end, before millions are walked for it.

        The lines before it must be whole rows, else it may be in a quoted cell.
        """
        tail = self.content[max(self.start, len(self.content) - _TAIL) :]
        *before, last = tail.replace(b"\r\n", b"\n").split(b"\n")
        if not last or len(before) < 2:
            return
        widths = [self._width(line) for line in before[1:] if line]
        expected = len(self.names)
        if self._width(last) < expected and {*widths} == {expected}:
            # Lines that were rewritten are counted where they come from.
            ends = sum(
                self.content[at : at + _TAIL].count(b"\n")
                for at in range(self.start, len(self.content), _TAIL)
            )
            line = self.lines_before + ends + 1
            line = line if self.numbers is None else self.numbers[-1]
            raise DataError(
                f"{self.label} is cut off: its last line {line:,} has no end, and "
                f"{self._width(last):,} of the {expected:,} cells that {self.header} "
                "has. Get the whole file, or take that line out."
            )

    def _width(self, line: bytes) -> int:
        text = line.decode(errors="replace")
        return len(next(csv_reader(iter([text]), self.delimiter)))

    def _refuse_ragged(self) -> None:
        expected = len(self.names)
        for line, record in self.numbered():
            if len(record) == expected:
                continue
            cells = "1 cell" if len(record) == 1 else f"{len(record):,} cells"
            running = "".join(record).count("\n")
            advice = (
                f"A quoted cell there runs on for {running:,} lines; is its closing "
                "quotation mark missing?"
                if running
                else f"Look for a missing or a surplus {self._named_delimiter}; a cell "
                "that contains one must be in double quotes."
            )
            raise DataError(
                f"{self.label} has {cells} in line {line:,}, but {expected:,} in "
                f"{self.header}. {advice}"
            )

    def _refuse_open_quote(self, column: Any) -> None:
        """Refuse a quote that is never closed: it would swallow all later rows.

        If the row has enough cells nevertheless, the cell is the very last.
        """
        import pyarrow as pa  # noqa: PLC0415

        if not pa.types.is_dictionary(column.type) or not len(column):
            return
        if not column[-1].is_valid:
            return
        cell = '"' + column[-1].as_py().replace('"', '""')
        tail = cell.encode()
        if self.content[-len(tail) :] == tail:
            raise DataError(
                f"{self.label} has a quotation mark in {self.place(len(column) - 1)} "
                "that is never closed, so that the rest of the file would be one cell. "
                "Close it, or double it if it is part of the text."
            )


class Lines:
    """The lines of a text, decoded one by one, with the position of the next."""

    def __init__(self, content: Buffer, start: int, label: str) -> None:
        self.position = start
        self.count = 0
        self._content = content
        self._label = label
        self._spans = line_spans(content, start)
        self._waiting: str | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._waiting is not None:
            line, self._waiting = self._waiting, None
            return line
        begin, end = next(self._spans)
        self.position = end
        self.count += 1
        try:
            return self._content[begin:end].decode("utf-8")
        except UnicodeDecodeError:
            refuse_encoding(self._content, self._label)

    def put_back(self, line: str) -> None:
        """Let the next line be this one."""
        self._waiting = line


def line_spans(content: Buffer, start: int) -> Iterator[tuple[int, int]]:
    """Yield where lines begin and end, their line ends included."""
    while start < len(content):
        found = _LINE_END.search(content, start)
        end = found.end() if found else len(content)
        yield start, end
        start = end


def csv_reader(
    lines: Iterator[str], delimiter: str, skipinitialspace: bool = False
) -> Any:
    """Return the cells of lines, quotes undone."""
    csv.field_size_limit(NO_LIMIT)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=skipinitialspace)


def _let_go(content: Buffer, begin: int, end: int) -> None:
    """Let the system take back the memory of what has been read of a mapped file."""
    if isinstance(content, mmap.mmap) and hasattr(content, "madvise"):
        first = begin - begin % mmap.PAGESIZE
        content.madvise(mmap.MADV_DONTNEED, first, end - first)


def _in_order(column: Any) -> Any:
    return sorted_dictionary(column) if is_text(column.type) else column
