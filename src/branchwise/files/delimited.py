"""CSV and TSV files, and rows of ARFF and C4.5 rewritten as such.

ARFF and C4.5 have rows of cells with commas between them, but quotes, escapes and
comments of their own. Rows that use none of these are valid CSV already.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Literal

import numpy as np

from branchwise.data.arrow import as_dictionary, compute, dictionary_codes, pa
from branchwise.errors import DataError, quoted
from branchwise.files.csv.csv_rows import Lines, Records, csv_reader, line_spans
from branchwise.files.options import WHITESPACE, Reading
from branchwise.files.raw_bytes import (
    Buffer,
    as_utf8,
    check_binary,
    chunks_of,
    find,
    text_start,
)

_DELIMITERS = (",", "\t", ";", "|")
_QUOTED = re.compile(r'"[^"]*"?')
#: A first line by which programs tell Excel the delimiter.
_SEPARATOR_LINE = re.compile(r'"?sep=([^\w"])"?\s*', re.IGNORECASE)
_QUOTED_OR_SPACES = re.compile(rb'(?<![^\s])"(?:[^"]|"")*"|[ \t]+')
_ENDS = (b"\n", b"\r", b"")
#: Beginnings of text that is not a table.
_OTHER_TEXT = (
    (re.compile(r"\s*<(!doctype html|html|head)\b", re.IGNORECASE), "a web page"),
    (re.compile(r"\s*<\?xml\b"), "XML"),
    (re.compile(r'\s*(\[\s*)?\{\s*("|\}|$)|\s*\[\s*(\{|$)'), "JSON"),
)
#: Lines in which a delimiter must give the same number of cells.
_SAMPLE_LINES = 50
_SAMPLE_BYTES = 2**16


class DelimitedFile:
    """A table as delimited text, of which the header has been read."""

    declared: frozenset[str] = frozenset()

    def __init__(self, content: Buffer, label: str, reading: Reading) -> None:
        self.label = label
        content = as_utf8(content, label, reading.encoding, reading.most_bytes)
        check_binary(content, label)
        begin = _after_lines(content, reading.skip, label)
        first = _first_line(content, begin, label)
        separator_line = _SEPARATOR_LINE.fullmatch(first)
        if separator_line:
            separator = reading.separator or separator_line[1]
            reading = replace(reading, skip=reading.skip + 1, separator=separator)
            begin = _after_lines(content, reading.skip, label)
            first = _first_line(content, begin, label)
        _check_other_text(first, label)
        delimiter = reading.separator or _sniff(first, content, begin)
        #: The option that strips whitespace around cells, unless it is given.
        self.without_spaces = _without_spaces_option(reading, delimiter)
        if delimiter == WHITESPACE:
            content = _with_single_spaces(content)
            delimiter = " "
        elif len(delimiter) > 1:
            delimiter = delimiter[0]
            content = _without_spaces(content, delimiter, label)
        begin = _after_lines(content, reading.skip, label)
        lines = Lines(content, begin, label)
        for line in lines:
            if line.strip("\r\n"):
                lines.put_back(line)
                break
        # A name in quotes may go on in the next line.
        cells = tuple(next(csv_reader(lines, delimiter), ()))
        start, before = lines.position, lines.count + reading.skip
        names, header = cells, "its header"
        if not reading.has_header:
            names = reading.names or tuple(f"x{at}" for at in range(len(cells)))
            start, before = begin, reading.skip
            header = reading.option("names") if reading.names else "its first line"
            if len(names) != len(cells):
                raise DataError(
                    f"{label} has {len(cells):,} cells in its first line, but {header} "
                    f"has {len(names):,} names. Name every column, and check the "
                    "separator."
                )
        #: How many lines to skip for the header, if the first ones look like a title.
        self.title_lines = 0
        if reading.has_header and len(cells) == 1:
            self.title_lines = reading.skip + _title_lines(content, begin)
        #: What to do about them, for errors that they cause.
        self.title_advice = ""
        if self.title_lines:
            skip = f"{reading.option('skip')}{' ' if reading.flags else '='}"
            self.title_advice = (
                " Its first lines look like a title: leave them out with "
                f"{skip}{self.title_lines}."
            )
        self._records = Records(content, label, names, delimiter, start, before, header)
        self._has_header = reading.has_header
        self.names: tuple[str, ...] = names

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as numbers, or as dictionaries of the text in the file."""
        try:
            columns = self._records.load(indices, text, missing)
        except DataError as error:
            self._check_header_again(self._records)
            raise DataError(f"{error}{self.title_advice}") from None
        # Most often a column tells, and the text need not be searched.
        names = [self.names[index] for index in indices]
        if not any(map(_lacks, columns, names, repeat(missing))):
            self._check_header_again(self._records)
        return columns

    def blocks(self, size: int) -> Iterator[Records]:
        """Yield the rows in blocks of about so many bytes."""
        for block in self._records.blocks(size):
            self._check_header_again(block)
            yield block

    def location(self, row: int) -> str:
        """Return the line of the file in which a row begins."""
        return self._records.location(row)

    def _check_header_again(self, rows: Records) -> None:
        """Reject a second header, as concatenated files have."""
        if not self._has_header or len(self.names) < 2:
            return
        before = self._records.content[: self._records.start]
        header = before.strip(b"\r\n\xef\xbb\xbf").rpartition(b"\n")[2]
        if not _has_line(rows.content, header, rows.start):
            return
        names = list(self.names)
        again = (line for line, row in rows.numbered() if row == names)
        line = next(again, None)
        if line is not None:
            raise DataError(
                f"{self.label} has its header once more in line {line:,}. Take that "
                "line out; or, if the first line is a row like the others, read "
                "the file without a header."
            )


def _without_spaces_option(reading: Reading, delimiter: str) -> str | None:
    if delimiter == WHITESPACE or len(delimiter) > 1 or delimiter.isspace():
        return None
    return f"{reading.option('separator')} '{delimiter} '"


def _after_lines(content: Buffer, n_lines: int, label: str) -> int:
    """Return where the text begins after so many lines."""
    if not n_lines:
        return text_start(content)
    lines = Lines(content, text_start(content), label)
    for _ in range(n_lines):
        if next(lines, None) is None:
            break
    return lines.position


def _title_lines(content: Buffer, begin: int) -> int:
    """Return how many lines without a delimiter are before those that all have some."""
    lines = [line.rstrip("\r\n") for line in _sample(content, begin, blank=True)]
    for mark in _DELIMITERS:
        counts = [_QUOTED.sub("", line).count(mark) for line in lines]
        first = next((at for at, count in enumerate(counts) if count), 0)
        numbered = list(zip(lines, counts, strict=True))[first:]
        table = {count for line, count in numbered if line}
        if first and len(table) == 1 and len(lines) - first > 1:
            return first
    return 0


def _first_line(content: Buffer, begin: int, label: str) -> str:
    lines = Lines(content, begin, label)
    first = next((line for line in lines if line.strip("\r\n")), None)
    if first is None:
        raise DataError(
            f"{label} is empty. A table needs a header line with the names of its "
            "columns, and a line for each row."
        )
    return first


def _check_other_text(first: str, label: str) -> None:
    """Reject text that is not a table, such as a web page."""
    for beginning, what in _OTHER_TEXT:
        if beginning.match(first):
            raise DataError(
                f"{label} is {what}, not a table with rows and columns. Save the table "
                "as CSV or Parquet, and check where the file comes from."
            )


def _sniff(first: str, content: Buffer, begin: int) -> str:
    """Choose the delimiter that gives the first lines equal numbers of cells.

    Of several the one that the first line has most, as also where none does.
    """
    bare = _QUOTED.sub("", first)
    found = sorted(
        (mark for mark in _DELIMITERS if mark in bare), key=bare.count, reverse=True
    )
    sample = _sample(content, begin)
    for mark in found:
        if len({_QUOTED.sub("", line).count(mark) for line in sample}) == 1:
            return mark
    if found:
        return found[0]
    widths = {len(line.split()) for line in sample}
    return WHITESPACE if len(sample) > 1 and len(widths) == 1 and widths != {1} else ","


def _sample(content: Buffer, begin: int, blank: bool = False) -> list[str]:
    """Return the first whole lines; bytes that are no text do not matter here.

    With ``blank`` also those that are empty.
    """
    start = begin + text_start(content[begin : begin + 3])
    head = content[start : start + _SAMPLE_BYTES]
    lines = [head[b:e].decode("utf-8", "replace") for b, e in line_spans(head, 0)]
    if len(head) == _SAMPLE_BYTES and len(lines) > 1:
        lines.pop()
    return [line for line in lines if blank or line.strip("\r\n")][:_SAMPLE_LINES]


def _lacks(column: Any, cell: str, missing: Sequence[str]) -> bool:
    """Tell whether a column of text has no such cell; False if that is not known."""
    if not pa.types.is_dictionary(column.type) or cell in missing:
        return False
    values = [chunk.dictionary for chunk in column.chunks]
    return not any(compute.index(each, cell).as_py() >= 0 for each in values)


def _has_line(content: Buffer, wanted: bytes, start: int) -> bool:
    """Tell whether a line may occur: also within a quoted cell, or at a chunk's end."""
    if content[start : start + len(wanted)] == wanted:
        return True
    # Chunks have the line end before it, and what follows it.
    for chunk in chunks_of(content, start, len(wanted) + 1):
        for end in (b"\n", b"\r"):
            at = chunk.find(end + wanted)
            while at >= 0:
                after = at + 1 + len(wanted)
                if chunk[after : after + 1] in _ENDS:
                    return True
                at = chunk.find(end + wanted, after)
    return False


def _without_spaces(content: Buffer, delimiter: str, label: str) -> bytes:
    """Strip whitespace around cells; line numbers do not change."""
    if find(content, b'"', 0) < 0:
        mark = delimiter.encode()
        return b"\n".join(
            mark.join(cell.strip() for cell in line.split(mark))
            for line in _lines(content)
        )
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    lines = Lines(content, text_start(content), label)
    for row in csv_reader(lines, delimiter, skipinitialspace=True):
        writer.writerow([cell.strip(" \t") for cell in row])
    return out.getvalue().encode()


def _lines(content: Buffer) -> list[bytes]:
    return bytes(content).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def _with_single_spaces(content: Buffer) -> bytes:
    """Replace runs of spaces and tabs by one space, and strip lines."""

    def shorter(found: re.Match[bytes]) -> bytes:
        if found[0].startswith(b'"'):
            return found[0]
        before = content[max(found.start() - 1, 0) : found.start()]
        after = content[found.end() : found.end() + 1]
        return b"" if before in _ENDS or after in _ENDS else b" "

    content = bytes(content)
    if b'"' in content:
        return _QUOTED_OR_SPACES.sub(shorter, content)
    return b"\n".join(b" ".join(line.split()) for line in _lines(content))


MARK = "?"

#: Characters that have another meaning in CSV.
_SPECIAL = frozenset(',"\r\n')


@dataclass(frozen=True)
class Declared:
    """A column as a file declares it; of nominal ones the possible values."""

    name: str
    kind: Literal["number", "nominal", "text", "left out"]
    values: tuple[str, ...] = ()
    ordered: bool = False


class DeclaredRows:
    """Rows of declared columns, rewritten as delimited text.

    ``lines`` has the line of each row; ``header`` says where columns are declared.
    """

    def __init__(
        self,
        body: bytes,
        lines: Sequence[int],
        columns: Sequence[Declared],
        label: str,
        header: str,
    ) -> None:
        self.label = label
        self._lines = lines
        self._columns = columns
        names = tuple(column.name for column in columns)
        records = Records(body, label, names, ",", header=header, numbers=lines)
        self._records = replace(records, quoted_na_values=False)
        # Those that the file does not declare as ignored.
        self._used = [at for at, c in enumerate(columns) if c.kind != "left out"]
        self.names = tuple(names[at] for at in self._used)
        self.declared = frozenset(c.name for c in columns if c.kind == "nominal")

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are declared, those in ``text`` as text."""
        wanted = [self._used[index] for index in indices]
        as_text = {self._used[index] for index in text}
        as_text.update(at for at in wanted if self._columns[at].kind != "number")
        na_values = list(dict.fromkeys([*missing, MARK]))
        columns = self._records.load(wanted, as_text, na_values)
        for location, at in enumerate(wanted):
            column = self._columns[at]
            if column.kind == "nominal":
                columns[location] = self._nominal(column, columns[location], na_values)
            elif column.kind == "number" and at not in as_text:
                self._check_words(column, columns[location])
        return columns

    def location(self, row: int) -> str:
        """Return the line of the file in which a row is."""
        known = row < len(self._lines)
        return f"line {self._lines[row]:,}" if known else f"row {row + 1:,}"

    def _nominal(self, column: Declared, cells: Any, na_values: Collection[str]) -> Any:
        """Return text as a dictionary of the declared values, in their order."""
        if not len(cells):
            array = pa.array([], pa.dictionary(pa.int32(), pa.string()))
        else:
            array = as_dictionary(cells)
        found = array.dictionary.to_pylist()
        declared = [v for v in column.values if v not in na_values or v in found]
        position = {value: code for code, value in enumerate(declared)}
        recode = np.array([position.get(v, -1) for v in found], dtype=np.int32)
        codes = pa.array(recode).take(array.indices)
        wrong = [code for code, at in enumerate(recode) if at < 0]
        if wrong:
            rows = dictionary_codes(array.indices)
            row = int(np.argmax(np.isin(rows, wrong)))
            raise DataError(
                f"Column {column.name!r} of {self.label} has {found[rows[row]]!r} in "
                f"{self.location(row)}, which is none of its declared values: "
                f"{quoted(declared, 20)}. Correct the cell or add the value to the "
                "declaration."
            )
        values = pa.array(declared, pa.string())
        made = pa.DictionaryArray.from_arrays(codes, values, ordered=column.ordered)
        return pa.chunked_array([made])

    def _check_words(self, column: Declared, cells: Any) -> None:
        if not pa.types.is_dictionary(cells.type):
            return
        for row, cell in enumerate(cells.to_pylist()):
            if cell is not None and not _is_number(cell):
                raise DataError(
                    f"Column {column.name!r} of {self.label} is declared numeric, but "
                    f"has {cell!r} in {self.location(row)}. Correct the cell, or write "
                    "? for a missing value."
                )


def rewritten(
    content: Buffer,
    start: int,
    first_line: int,
    special: Collection[int],
    rewrite: Callable[[str, int], Sequence[str | None] | None],
    end_mark: bytes = b"",
    inner_spaces: bool = False,
) -> tuple[bytes, list[int]]:
    """Rewrite rows, from ``start`` on, as CSV, and return the line of each.

    ``content`` is UTF-8 without an error. Rows without ``special`` bytes are cells with
    commas between them, which may end with ``end_mark``, and with ``inner_spaces`` have
    spaces within; ``rewrite`` takes others with their line, and returns their cells
    (None: missing), or None for no row.
    """
    rows: list[bytes] = []
    lines: list[int] = []
    special_bytes = bytes(special)
    text = content[start:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(text.split(b"\n"), first_line):
        line = line.strip()
        if not line:
            continue
        row: bytes | None = None
        if len(line.translate(None, special_bytes)) == len(line):
            row = _plain_row(line.removesuffix(end_mark), inner_spaces)
        if row is None:
            row = _special_row(rewrite(line.decode("utf-8"), number))
        if row is None:
            continue
        rows.append(row or b'""')
        lines.append(number)
    return b"\n".join(rows), lines


def _plain_row(row: bytes, inner_spaces: bool) -> bytes | None:
    """Strip whitespace around cells; None if there is more within."""
    if b" " not in row and b"\t" not in row:
        return row
    cells = [b" ".join(cell.split()) for cell in row.split(b",")]
    if not inner_spaces and any(b" " in cell for cell in cells):
        return None
    return b",".join(cells)


def _special_row(cells: Sequence[str | None] | None) -> bytes | None:
    if cells is None:
        return None
    return ",".join(_as_csv(cell) for cell in cells).encode()


def _as_csv(cell: str | None) -> str:
    if cell is None:
        return MARK
    # A quoted NA value is plain text; an empty cell needs no quotes.
    if not _SPECIAL.isdisjoint(cell) or cell in (MARK, ""):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
