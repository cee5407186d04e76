"""CSV and TSV: header, body and the line of every mishap.

pyarrow parses the body in parallel, but knows nothing of lines. Where it gives
up, the text is walked once more with :mod:`csv` to say what is wrong and where.
"""

from __future__ import annotations

import codecs
import csv
import mmap
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NoReturn

from branchwise.errors import DataError
from branchwise.table.arrow import is_text, sorted_dictionary, value_type

Buffer = bytes | mmap.mmap

_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon"}
_LINE_END = re.compile(rb"\r\n|\n|\r")
_QUOTED = re.compile(r'"[^"]*"?')
#: Arrow falls back to plain text beyond this many distinct values in a block.
_NO_LIMIT = 2**31 - 1


class DelimitedFile:
    """A table as delimited text, of which the header has been read.

    Parameters
    ----------
    content : bytes or mmap
        The whole file.
    label : str
        What messages call it.
    delimiter : str or None
        The delimiter; None finds out from the header line.
    """

    def __init__(self, content: Buffer, label: str, delimiter: str | None) -> None:
        self.label = label
        self._content = content
        start = 3 if content[:3] == codecs.BOM_UTF8 else 0
        self._refuse_binary()
        lines = _Lines(content, start, self._refuse_encoding)
        first = next((line for line in lines if line.strip("\r\n")), None)
        if first is None:
            raise DataError(
                f"{label} is empty. A table needs a header line with the names of its "
                "columns, and a line for each row."
            )
        self._delimiter = delimiter or _sniff(first)
        # A name in quotes may go on in the next line.
        lines.put_back(first)
        self.names: tuple[str, ...] = tuple(next(self._reader(lines)))
        self._body = lines.position
        self._header_lines = lines.count
        self._has_quotes = content.find(b'"', self._body) >= 0

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

        if not re.search(rb"[^\r\n]", memoryview(self._content)[self._body :]):
            return [pa.chunked_array([pa.nulls(0)]) for _ in indices]
        last = len(self.names) - 1
        wanted = sorted({*indices, last} if self._has_quotes else {*indices})
        table = self._parse(wanted, text, missing)
        columns = {index: table[str(index)] for index in wanted}
        # A date or a time is the text that it was; only Arrow sees more in it.
        dated = [i for i, c in columns.items() if pa.types.is_temporal(c.type)]
        if dated:
            again = self._parse(dated, dated, missing)
            columns.update((index, again[str(index)]) for index in dated)
        if any(pa.types.is_binary(value_type(c.type)) for c in columns.values()):
            self._refuse_encoding()
        if self._has_quotes:
            self._refuse_open_quote(columns[last])
        return [_in_order(columns[index]) for index in indices]

    def place(self, row: int) -> str:
        """Tell in which line of the file a row begins."""
        for number, (line, _) in enumerate(self._numbered_records()):
            if number == row:
                return f"line {line:,}"
        return f"row {row + 1:,}"

    def _parse(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> Any:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import csv as arrow_csv  # noqa: PLC0415

        category = pa.dictionary(pa.int32(), pa.string())
        convert = arrow_csv.ConvertOptions(
            include_columns=[str(index) for index in indices],
            column_types={str(index): category for index in indices if index in text},
            null_values=list(missing),
            strings_can_be_null=True,
            auto_dict_encode=True,
            auto_dict_max_cardinality=_NO_LIMIT,
            # TRUE and false are words like any others.
            true_values=[],
            false_values=[],
        )
        parse = arrow_csv.ParseOptions(
            delimiter=self._delimiter,
            # Only a quoted cell can hold a line break, and looking for them is slow.
            newlines_in_values=self._has_quotes,
        )
        buffer = pa.py_buffer(self._content)[self._body :]
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
                return attempt(min(len(buffer) + 1, _NO_LIMIT))
        except pa.ArrowInvalid as error:
            self._diagnose(str(error))

    def _reader(self, lines: Iterator[str]) -> Any:
        csv.field_size_limit(_NO_LIMIT)
        return csv.reader(lines, delimiter=self._delimiter)

    def _numbered_records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every record of the body with the line in which it begins."""
        lines = _Lines(self._content, self._body, self._refuse_encoding)
        reader = self._reader(lines)
        begin = 1
        for record in reader:
            if record:  # Arrow skips empty lines, too
                yield self._header_lines + begin, record
            begin = reader.line_num + 1

    def _diagnose(self, arrow_message: str) -> NoReturn:
        try:
            self._refuse_ragged()
        except csv.Error as error:
            arrow_message = str(error)
        raise DataError(
            f"{self.label} cannot be read as text with {self._named_delimiter}s "
            f"between the cells: {arrow_message}"
        )

    @property
    def _named_delimiter(self) -> str:
        return _DELIMITERS[self._delimiter]

    def _refuse_ragged(self) -> None:
        expected = len(self.names)
        for line, record in self._numbered_records():
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
                f"{self.label} has {cells} in line {line:,}, but {expected:,} in its "
                f"header. {advice}"
            )

    def _refuse_open_quote(self, column: Any) -> None:
        """Refuse a quote that is never closed: it would swallow all later rows.

        If the row has enough cells nevertheless, the cell is the very last.
        """
        import pyarrow as pa  # noqa: PLC0415

        if not pa.types.is_dictionary(column.type) or not column[-1].is_valid:
            return
        cell = '"' + column[-1].as_py().replace('"', '""')
        tail = cell.encode()
        if self._content[-len(tail) :] == tail:
            raise DataError(
                f"{self.label} has a quotation mark in {self.place(len(column) - 1)} "
                "that is never closed, so that the rest of the file would be one cell. "
                "Close it, or double it if it is part of the text."
            )

    def _refuse_binary(self) -> None:
        head = bytes(self._content[: 2**16])
        advice = "Save the table as CSV in UTF-8, or as Parquet."
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(f"{self.label} is text in UTF-16, not in UTF-8. {advice}")
        if head.startswith(b"\x1f\x8b"):
            name = shlex.quote(self.label)
            raise DataError(
                f"{self.label} is compressed. Unpack it on the way: "
                f"gzip -dc {name} | branchwise ... -"
            )
        if head.startswith(b"PK\x03\x04"):
            raise DataError(f"{self.label} is a spreadsheet or a zip file. {advice}")
        if b"\0" in head:
            raise DataError(f"{self.label} is not a text file. {advice}")

    def _refuse_encoding(self) -> NoReturn:
        """Say where the first byte is that is not UTF-8."""
        line = 1
        for begin, end in _line_spans(self._content, 0):
            try:
                self._content[begin:end].decode("utf-8")
            except UnicodeDecodeError:
                break
            line += 1
        raise DataError(
            f"{self.label} is not UTF-8 text: see line {line:,}. Convert it, for "
            f"example with: iconv -f latin1 -t utf-8 {shlex.quote(self.label)}"
        )


class _Lines:
    """The lines of a text, decoded one by one, with the position of the next."""

    def __init__(
        self, content: Buffer, start: int, refuse: Callable[[], NoReturn]
    ) -> None:
        self.position = start
        self.count = 0
        self._content = content
        self._spans = _line_spans(content, start)
        self._refuse = refuse
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
            self._refuse()

    def put_back(self, line: str) -> None:
        """Let the next line be this one."""
        self._waiting = line


def _line_spans(content: Buffer, start: int) -> Iterator[tuple[int, int]]:
    while start < len(content):
        found = _LINE_END.search(content, start)
        end = found.end() if found else len(content)
        yield start, end
        start = end


def _sniff(header: str) -> str:
    """Choose the delimiter that the header line has most, the comma among equals."""
    bare = _QUOTED.sub("", header)
    return max(_DELIMITERS, key=bare.count)


def _in_order(column: Any) -> Any:
    return sorted_dictionary(column) if is_text(column.type) else column
