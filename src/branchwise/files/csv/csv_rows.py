"""Rows of delimited text: columns, blocks, and errors with their line.

pyarrow parses the rows in parallel, but does not report lines. Where it fails, the
text is parsed again with :mod:`csv` to find the error and its line.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from branchwise.data.arrow import pa, value_type
from branchwise.errors import DataError
from branchwise.files.csv.csv_codes import numbered_columns
from branchwise.files.csv.csv_columns import NO_LIMIT, Parser
from branchwise.files.raw_bytes import (
    Buffer,
    find,
    position,
    raise_encoding,
    text_start,
)


def last_row_end(block: bytes, delimiter: str) -> int:
    """Return where the last complete row ends; 0 if there is none.

    The block must begin with a row.
    """
    starts, ends = _quoted_spans(block, delimiter.encode())
    for mark in (b"\n", b"\r"):
        at = block.rfind(mark)
        while at >= 0:
            cell = int(np.searchsorted(starts, at, side="right")) - 1
            if cell >= 0 and at < ends[cell]:
                at = block.rfind(mark, 0, int(starts[cell]))
            elif _may_begin(block[at + 1 : at + 4], mark):
                return at + 1
            else:
                at = block.rfind(mark, 0, at)
    return 0


def _quoted_spans(block: bytes, delimiter: bytes) -> tuple[Any, Any]:
    """Return where quoted cells begin and end; the last may end after the block."""
    letters = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    opening = quotes[::2]
    # Two quotes within a cell in quotes close it and open it again.
    allowed = np.frombuffer(b'\r\n"' + delimiter, np.uint8)
    opens = np.isin(letters[opening - 1], allowed) | (opening == 0)
    if opens.all():
        return opening, np.append(quotes[1::2] + 1, len(block))
    # A quote within an unquoted cell is a plain character: parse cell by cell.
    begin = rb"(?:\A|(?<=[\r\n" + re.escape(delimiter) + rb"]))"
    cell = re.compile(begin + rb'"[^"]*(?:""[^"]*)*(?:"|\Z)')
    spans = (found.span() for found in cell.finditer(block))
    both = np.fromiter(chain.from_iterable(spans), np.intp)
    return both[::2], both[1::2]


def _may_begin(text: bytes, mark: bytes) -> bool:
    """Whether a block may begin with this text, of which it may have more.

    Not with half a line end, nor with a byte order mark, which is no text there.
    """
    half = mark == b"\r" and text.startswith(b"\n")
    return len(text) == 3 and text != codecs.BOM_UTF8 and not half


_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", " ": "blank"}
_TAIL = 2**16
#: Bytes that are searched for line ends at a time.
_BLOCK = 2**16
_LONGEST_ROW = 2**30
#: Bytes of a text whose cells are numbered, and of the blocks in which that is done.
_WORTH_NUMBERING = 2**20
_NUMBERED = 2**23
#: Bytes at the end of such a block in which a row is expected to end.
_BLOCK_TAIL = 2**16
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Records:
    """Rows of delimited text in UTF-8.

    They begin at ``start``, after ``lines_before`` lines; ``header`` says where the
    names are, for messages about the number of cells. With ``quoted_na_values`` NA
    values are missing in quotes, too. ``numbers`` has the line of each row in the file,
    if rows were rewritten.
    """

    content: Buffer
    label: str
    names: tuple[str, ...]
    delimiter: str
    start: int = 0
    lines_before: int = 0
    header: str = "its header"
    quoted_na_values: bool = True
    numbers: Sequence[int] | None = None

    @property
    def has_quotes(self) -> bool:
        """Whether a cell may hold a delimiter or a line break."""
        return find(self.content, b'"', self.start) >= 0

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as numbers, or as dictionaries of the text in the file.

        Those in ``text`` are text even if it looks like numbers; cells in ``missing``
        are missing values. Columns are int64, double, dictionary of string or null.
        """
        # Arrow skips a byte order mark, also where the rows begin.
        begin = self.start + text_start(self.content[self.start : self.start + 3])
        if not _has_text(self.content, begin):
            return [pa.chunked_array([pa.nulls(0)]) for _ in indices]
        parser = self._parser(missing)
        last = len(self.names) - 1
        # Without any column pyarrow would not parse the rows.
        always = {last} if parser.has_quotes or not indices else set()
        wanted = sorted({*indices, *always})
        try:
            self._check_early(parser)
            columns = self._columns(parser, wanted, text)
        except pa.ArrowInvalid as error:
            self._diagnose(str(error))
        if any(pa.types.is_binary(value_type(c.type)) for c in columns.values()):
            raise_encoding(self.content, self.label)
        if parser.has_quotes and len(columns[last]):
            self._check_open_quote(columns[last][-1].as_py())
        return [columns[index] for index in indices]

    def _columns(
        self, parser: Parser, wanted: Sequence[int], text: Collection[int]
    ) -> dict[int, Any]:
        found = None
        if len(self.content) - self.start > _WORTH_NUMBERING:
            spans = [*self._spans(_NUMBERED, parser.has_quotes)]
            found = numbered_columns(parser, spans, wanted, text)
        if found is not None:
            return found
        if parser.has_quotes:  # what has been numbered has been checked
            self._check_closing_quotes()
        return parser.columns(wanted, text)

    def _parser(self, missing: Sequence[str]) -> Parser:
        return Parser(
            self.content,
            self.start,
            len(self.names),
            self.delimiter,
            tuple(missing),
            self.quoted_na_values,
            self.has_quotes,
        )

    def blocks(self, size: int) -> Iterator[Records]:
        """Yield the rows in blocks of about so many bytes, each by itself.

        A file takes no more memory than a block.
        """
        before = self.lines_before
        for begin, end in self._spans(size):
            text = self.content[begin:end]
            yield replace(self, content=text, start=0, lines_before=before)
            before += text.count(b"\n") or text.count(b"\r")

    def _spans(self, size: int, has_quotes: bool = True) -> Iterator[tuple[int, int]]:
        begin = self.start
        while begin < len(self.content):
            end = self._block_end(begin, size, has_quotes)
            yield begin, end
            begin = end

    def _block_end(self, begin: int, size: int, has_quotes: bool) -> int:
        """Return where a row ends, about so many bytes later: not within quotes."""
        if not has_quotes and _BLOCK_TAIL < size < len(self.content) - begin:
            # Any line end is one of a row: the last is looked for alone.
            tail = begin + size - _BLOCK_TAIL
            end = last_row_end(self.content[tail : begin + size], self.delimiter)
            if end:
                return tail + end
        while begin + size < len(self.content):
            end = last_row_end(self.content[begin : begin + size], self.delimiter)
            if end:
                return begin + end
            if size > _LONGEST_ROW:
                raise DataError(
                    f"{self.label} has a row of more than {_LONGEST_ROW:,} bytes that "
                    f"begins after byte {begin:,}. Is a closing quotation mark missing?"
                )
            size *= 2
        return len(self.content)

    def location(self, row: int) -> str:
        """Return the line of the file in which a row begins."""
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

    def _check_early(self, parser: Parser) -> None:
        """Reject a truncated last line before memory is allocated for all rows.

        Without a quotation mark it is no part of a cell that began before, so that it
        must be a whole row. With one, rows must be walked to tell.
        """
        _, last = self._last_lines()
        if b'"' not in last:
            self._raise_truncated()
        elif parser.is_long:
            self._check_open_quote(parser.last_cell())

    def _diagnose(self, arrow_message: str) -> NoReturn:
        try:
            self._raise_truncated()
            self._check_ragged()
        except csv.Error as error:
            arrow_message = str(error)
        raise DataError(
            f"{self.label} cannot be read as text with {self._named_delimiter}s "
            f"between the cells: {' '.join(arrow_message.split()).rstrip('.')}."
        )

    @property
    def _named_delimiter(self) -> str:
        return _DELIMITERS.get(self.delimiter, repr(self.delimiter))

    def _last_lines(self) -> tuple[list[bytes], bytes]:
        """Return complete lines at the end, and what follows the last line end."""
        tail = self.content[max(self.start, len(self.content) - _TAIL) :]
        lines = tail.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *before, last = lines.split(b"\n")
        return before[1:], last

    def _raise_truncated(self) -> None:
        """Reject a last line without an end, before all rows are parsed.

        The lines before it must be whole rows, else it may be in a quoted cell.
        """
        before, last = self._last_lines()
        widths = {self._width(line) for line in before if line}
        expected = len(self.names)
        if last and widths == {expected} and self._width(last) < expected:
            raise DataError(
                f"{self.label} is truncated: it ends in {self._end()}, with "
                f"{self._width(last):,} of the {expected:,} cells that {self.header} "
                "has. Get the whole file, or take that line out."
            )

    def _end(self) -> str:
        """Return where the text ends."""
        if self.numbers is not None:  # lines were rewritten
            return f"line {self.numbers[-1]:,}"
        line, column = self._position(len(self.content))
        return f"line {line:,}, column {column - 1:,}"

    def _position(self, at: int) -> tuple[int, int]:
        """Return the line and the column in the file, also where this is a block."""
        line, column = position(self.content, at)
        before = position(self.content, self.start)[0] - 1
        return line - before + self.lines_before, column

    def _width(self, line: bytes) -> int:
        text = line.decode(errors="replace")
        return len(next(csv_reader(iter([text]), self.delimiter)))

    def _check_ragged(self) -> None:
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

    def _check_closing_quotes(self) -> None:
        """Reject text after a closing quote, which would be joined to the cell."""
        allowed = np.frombuffer(b'\r\n" \t' + self.delimiter.encode(), np.uint8)
        for begin, end in self._spans(_NUMBERED):
            block = bytes(self.content[begin:end])
            after = _quoted_spans(block, self.delimiter.encode())[1]
            after = after[after < len(block)]
            wrong = after[~np.isin(np.frombuffer(block, np.uint8)[after], allowed)]
            if len(wrong):
                line, column = self._position(begin + int(wrong[0]))
                raise DataError(
                    f"{self.label} has text after a closing quotation mark in line "
                    f"{line:,}, column {column:,}. Put the whole cell in quotation "
                    "marks, and double those that are part of the text."
                )

    def _check_open_quote(self, cell: object) -> None:
        """Reject a quote that is never closed: later rows would be part of its cell.

        If the row has enough cells nevertheless, the cell is the very last.
        """
        if isinstance(cell, str):
            tail = ('"' + cell.replace('"', '""')).encode()
        else:  # a number is in the last line, or nothing is
            rest = self._last_lines()[1].rpartition(b'"')[2]
            tail = b"" if self.delimiter.encode() in rest or not rest else b'"' + rest
        if tail and self.content[-len(tail) :] == tail:
            line, column = self._position(len(self.content) - len(tail))
            raise DataError(
                f"{self.label} has a quotation mark in line {line:,}, column "
                f"{column:,} that is never closed, so that the rest of the file would "
                "be one cell. Close it, or double it if it is part of the text."
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
            raise_encoding(self._content, self._label)

    def put_back(self, line: str) -> None:
        """Make this the next line."""
        self._waiting = line


def line_spans(content: Buffer, start: int) -> Iterator[tuple[int, int]]:
    """Yield where lines begin and end, their line ends included."""
    for at in range(start, len(content), _BLOCK):
        # The byte after the block shows whether a line end is one of two bytes.
        for found in _LINE_END.finditer(content[at : at + _BLOCK + 1]):
            end = at + found.end()
            if found.start() < _BLOCK and end > start:
                yield start, end
                start = end
    if start < len(content):
        yield start, len(content)


def _has_text(content: Buffer, start: int) -> bool:
    """Whether there is more than line ends."""
    blocks = range(start, len(content), _BLOCK)
    return any(content[at : at + _BLOCK].strip(b"\r\n") for at in blocks)


def csv_reader(
    lines: Iterator[str], delimiter: str, skipinitialspace: bool = False
) -> Any:
    """Return the cells of lines, quotes undone."""
    csv.field_size_limit(NO_LIMIT)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=skipinitialspace)
