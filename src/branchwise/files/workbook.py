"""Sheets of Excel (.xlsx, .xls, .xlsb) and OpenDocument (.ods) workbooks.

Read with python-calamine: it computes no formulas, runs no macros and follows no
references to other files. The size of sheets is bounded before they are read.
"""

from __future__ import annotations

import difflib
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any, NoReturn
from xml.parsers import expat

from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.options import Reading
from branchwise.files.raw_bytes import Buffer, as_stream, raise_size
from branchwise.files.typed_columns import column_of_cells

ZIP = b"PK\x03\x04"
#: The old binary format of Excel, a compound file.
OLD_EXCEL = bytes.fromhex("d0cf11e0a1b11ae1")

_LAST_SECTOR = 0xFFFFFFFA  # from here on numbers are marks
_MINI_SECTOR = 64
_SHORTEST_LONG = 4096
_STREAMS = ("Workbook", "Book")
_END, _DIMENSIONS, _SHEET, _MANY_NUMBERS = 0x000A, 0x0200, 0x0085, 0x00BD
#: 65,536 rows of 256 columns are the most that the format has.
_LARGEST_SHEET = 2**24
#: Records of one cell: row and column come first.
_CELLS = frozenset(
    (0x0006, 0x00D6, 0x00FD, 0x0203, 0x0204, 0x0205, 0x0207, 0x027E, _MANY_NUMBERS)
)


def cells_of_xls(content: bytes) -> int:
    """Return a bound of the cells that a sheet spans; raises ValueError if damaged."""
    try:
        files = CompoundFile(content)
        return max(map(_spanned, files.streams(_STREAMS)), default=0)
    except (struct.error, IndexError) as error:
        raise ValueError("its sectors do not fit together") from error


class CompoundFile:
    """The streams of a compound file."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        (shift,) = struct.unpack_from("<H", content, 30)
        self._size = 512 if shift == 9 else 4096
        # The reader takes memory for as many sectors as the header counts.
        counted = max(
            struct.unpack_from("<I", content, at)[0] for at in (40, 44, 64, 72)
        )
        if counted * self._size > len(content):
            raise ValueError(
                f"its header counts {counted:,} sectors, more than the file has"
            )
        directory, minis, difat = (
            struct.unpack_from("<I", content, at)[0] for at in (48, 60, 68)
        )
        tables = list(struct.unpack_from("<109I", content, 76))
        seen = set()
        while difat < _LAST_SECTOR:
            if difat in seen:
                raise ValueError("its sectors form a cycle")
            seen.add(difat)
            *more, difat = _numbers(self._sector(difat))
            tables += more
        self._next: list[int] = []
        for table in tables:
            if table < _LAST_SECTOR:
                self._next += _numbers(self._sector(table))
        self._entries = self._chain(directory)
        self._next_mini = _numbers(self._chain(minis)) if minis < _LAST_SECTOR else []
        (root,) = struct.unpack_from("<I", self._entries, 116)
        self._minis = self._chain(root) if root < _LAST_SECTOR else b""

    def streams(self, names: tuple[str, ...]) -> Iterator[bytes]:
        """Return the content of every stream of these names."""
        for at in range(0, len(self._entries) - 127, 128):
            text = self._entries[at : at + 64].decode("utf-16-le", "replace")
            if text.split("\0")[0] not in names:
                continue
            start, size = struct.unpack_from("<II", self._entries, at + 116)
            yield (self._short(start) if size < _SHORTEST_LONG else self._chain(start))

    def _sector(self, number: int) -> bytes:
        begin = (number + 1) * self._size
        sector = self._content[begin : begin + self._size]
        if not sector:
            raise ValueError("it ends before its last sector")
        return sector.ljust(self._size, b"\0")

    def _chain(self, number: int) -> bytes:
        return b"".join(map(self._sector, _followed(number, self._next)))

    def _short(self, number: int) -> bytes:
        positions = (at * _MINI_SECTOR for at in _followed(number, self._next_mini))
        return b"".join(self._minis[at : at + _MINI_SECTOR] for at in positions)


def _numbers(sector: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(sector) // 4}I", sector))


def _followed(number: int, following: list[int]) -> Iterator[int]:
    """Return the numbers of a chain, which must not be a cycle."""
    for _ in range(len(following) + 1):
        if number >= _LAST_SECTOR:
            return
        yield number
        number = following[number]
    raise ValueError("its sectors form a cycle")


def _spanned(stream: bytes) -> int:
    """Return how many cells the largest rows and columns of a stream span."""
    height = width = 0
    seen: set[int] = set()
    starts = [0]
    while starts:
        for kind, record in xls_records(stream, starts.pop(), seen):
            if kind == _SHEET and len(record) >= 4:
                starts += struct.unpack_from("<I", record)
            elif kind in _CELLS and len(record) >= 4:
                row, column = struct.unpack_from("<HH", record)
                if kind == _MANY_NUMBERS:
                    (last,) = struct.unpack_from("<H", record, len(record) - 2)
                    column = max(last, column + len(record) // 6)
                height, width = max(height, row + 1), max(width, column + 1)
            elif kind == _DIMENSIONS and len(record) >= 10:
                rows, columns = _dimensions(record)
                height, width = max(height, rows), max(width, columns)
    return height * width


def _dimensions(record: bytes) -> tuple[int, int]:
    """Return the rows and columns that a sheet says it has, if none can have them.

    Memory is taken for them, but within what the format allows it is not filled.
    """
    if len(record) >= 14:
        _, rows, _, columns = struct.unpack_from("<IIHH", record)
    else:
        _, rows, _, columns = struct.unpack_from("<HHHH", record)
    return (rows, columns) if rows * columns > _LARGEST_SHEET else (0, 0)


def xls_records(stream: bytes, at: int, seen: set[int]) -> Iterator[tuple[int, bytes]]:
    """Return the records from a position to the end of a sheet, each once."""
    while at + 4 <= len(stream) and at not in seen:
        seen.add(at)
        kind, size = struct.unpack_from("<HH", stream, at)
        yield kind, stream[at + 4 : at + 4 + size]
        if kind == _END:
            return
        at += 4 + size


_CHUNK = 2**20
#: No tag of a sheet has more bytes.
_LONGEST_TAG = 2**24
_LETTERS = re.compile(rb"""[\s:]r\s*=\s*["']([A-Za-z]{1,4})\d""")
_NUMBER = re.compile(rb"""[\s:]r\s*=\s*["'][A-Za-z]{0,4}(\d{1,9})""")
#: Positions that no sheet has, and that readers reduce to others.
_BEYOND = re.compile(rb"""[\s:]r\s*=\s*["'](?:[A-Za-z]{5,}\d|[A-Za-z]{0,4}\d{10})""")
_ROW = re.compile(rb"<(?:\w+:)?row[\s/>]")
_CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")


def cells_of_xml(file: IO[bytes]) -> int:
    """Return a bound of the cells that a sheet of an .xlsx file spans."""
    last_row = last_column = rows = unnamed = 0
    for piece in _pieces(file):
        if beyond := _BEYOND.search(piece):
            raise ValueError(f"no sheet has a cell at {beyond[0][-40:].decode()}")
        rows += len(_ROW.findall(piece))
        last_row = max(last_row, *map(int, set(_NUMBER.findall(piece))), 0)
        letters = _LETTERS.findall(piece)
        last_column = max(last_column, *map(_column, set(letters)), 0)
        # Cells and rows without a position follow the one before.
        unnamed += max(0, len(_CELL.findall(piece)) - len(letters))
    return (last_row + rows) * (last_column + unnamed)


def cells_of_ods(file: IO[bytes]) -> int:
    """Return a bound of the cells that the sheets of an .ods file span.

    Raises expat's error where the XML is not well-formed: the library that reads the
    cells would look for a closing tag without end.
    """
    sheets = _OpenDocumentCells()
    parser = expat.ParserCreate()
    parser.StartElementHandler = sheets.start
    parser.EndElementHandler = sheets.end
    parser.StartDoctypeDeclHandler = _refuse_entities
    parser.ParseFile(file)
    return sheets.total


def _refuse_entities(*_: object) -> NoReturn:
    raise ValueError("it declares a document type, which no workbook needs")


class _OpenDocumentCells:
    """Counts cells; empty ones after the last value do not count, however repeated."""

    def __init__(self) -> None:
        self.total = self._width = self._height = 0
        self._columns = self._used = self._row_times = self._waiting_rows = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Add a cell to its row."""
        name = tag.rpartition(":")[2]
        local = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        if name == "table-row":
            self._row_times = _times(local.get("number-rows-repeated"))
            self._columns = self._used = 0
        elif name in ("table-cell", "covered-table-cell"):
            self._columns += _times(local.get("number-columns-repeated"))
            if local.keys() & {"value-type", "formula"}:
                self._used = self._columns

    def end(self, tag: str) -> None:
        """Add a row to its sheet, or a sheet to the total."""
        name = tag.rpartition(":")[2]
        if name == "table-row":
            self._waiting_rows += self._row_times
            if self._used:
                self._width = max(self._width, self._used)
                self._height += self._waiting_rows
                self._waiting_rows = 0
        elif name == "table":
            self.total += self._width * self._height
            self._width = self._height = self._waiting_rows = 0


def cells_of_xlsb(content: bytes) -> int:
    """Return a bound of the cells that a sheet of an .xlsb file spans."""
    last_row = last_column = -1
    for kind, at, size in _binary_records(content):
        if kind == 0 and size >= 4:  # the header of a row
            last_row = max(last_row, struct.unpack_from("<I", content, at)[0])
        elif 1 <= kind <= 11 and size >= 4:  # cells
            last_column = max(last_column, struct.unpack_from("<I", content, at)[0])
    return (last_row + 1) * (last_column + 1)


def _binary_records(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the kind, the position and the size of records."""
    at = 0
    while at < len(content):
        kind = content[at]
        at += 1
        if kind & 0x80 and at < len(content):
            kind = (kind & 0x7F) | (content[at] << 7)
            at += 1
        size = 0
        for shift in range(0, 28, 7):
            if at >= len(content):
                return
            byte = content[at]
            at += 1
            size |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
        yield kind, at, min(size, len(content) - at)
        at += size


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file in pieces that end where a tag does."""
    rest = b""
    while chunk := file.read(_CHUNK):
        rest += chunk
        end = rest.rfind(b"<")
        if end < 0 or len(rest) - end > _LONGEST_TAG:
            if len(rest) > _LONGEST_TAG:
                raise ValueError("a tag is longer than any of a sheet")
            continue
        yield rest[:end]
        rest = rest[end:]
    yield rest


def _column(letters: bytes) -> int:
    """Return the number of a column from 1: A, B, ..., Z, AA, ..."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number


def _times(repeated: str | None) -> int:
    return 1 if repeated is None else int(repeated)


#: The most bytes of a decompressed workbook; a million rows have about a tenth.
_MOST_BYTES = 10**9
#: A cell in memory, whether it is empty or not.
_CELL_BYTES = 64
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, expat.ExpatError),
    *(EOFError, OSError, RuntimeError, ValueError),
)


def is_workbook(content: Buffer) -> bool:
    """Tell whether a zip archive is a spreadsheet."""
    try:
        with zipfile.ZipFile(as_stream(content)) as archive:
            names = set(archive.namelist())
            if "mimetype" in names:
                mime = archive.open("mimetype").read(100)
                return mime.startswith(b"application/vnd.oasis.opendocument.spread")
            return bool(names & {"xl/workbook.xml", "xl/workbook.bin"})
    except _ZIP_ERRORS:
        return False


class Workbook:
    """A sheet of a workbook, its first row the header unless it has none."""

    declared: frozenset[str] = frozenset()

    def __init__(self, content: Buffer, label: str, reading: Reading) -> None:
        self.label = label
        most = _MOST_BYTES if reading.max_size is None else reading.max_size
        whole = bytes(content)
        _check_size(whole, label, most)
        self.sheet, self.sheets, rows, self._first_row = _sheet(
            whole, label, reading.sheet
        )
        rows = rows[reading.skip :]
        self._first_row += reading.skip
        if not rows:
            raise DataError(
                f"{label} has no cells on that sheet. Choose another sheet."
            )
        if reading.has_header:
            self.names = tuple(_name(cell) for cell in rows[0])
            rows = rows[1:]
            self._first_row += 1
        else:
            width = len(rows[0])
            self.names = reading.names or tuple(f"x{at}" for at in range(width))
            if len(self.names) != width:
                raise DataError(
                    f"{label} has {width:,} columns, but {reading.option('names')} has "
                    f"{len(self.names):,} names. Name every column."
                )
        self._rows = rows

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as numbers, booleans, dates or text."""
        return [
            column_of_cells(
                [_cell(row[index]) for row in self._rows],
                self.names[index],
                self.label,
                index in text,
                missing,
            )
            for index in indices
        ]

    def location(self, row: int) -> str:
        """Return the row of the sheet, as Excel counts."""
        return f"row {self._first_row + row:,}"


def _sheet(
    content: bytes, label: str, wanted: str | None
) -> tuple[str, tuple[str, ...], list[list[Any]], int]:
    """Return the name of a sheet, those of all, its rows, and the first one's number.

    Rows are numbered from 1.
    """
    try:
        import python_calamine as calamine  # noqa: PLC0415
    except ImportError:
        raise ParameterError(
            f"{label} is a spreadsheet, which needs python-calamine: pip install "
            "'branchwise[excel]'. Or save the sheet as CSV."
        ) from None
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        name = _choose(book.sheet_names, label, wanted)
        sheet = book.get_sheet_by_name(name)
        begin = sheet.start
        rows = sheet.to_python()
    except DataError:
        raise
    except Exception as error:  # a damaged file may raise any
        raise _damaged(label, error) from None
    except BaseException as error:
        # A panic of Rust is not an Exception, but as harmless.
        if type(error).__name__ != "PanicException":
            raise
        raise _damaged(label, "its cells cannot be read") from None
    return name, tuple(book.sheet_names), rows, (begin[0] if begin else 0) + 1


def _choose(names: Sequence[str], label: str, wanted: str | None) -> str:
    if not names:
        raise DataError(f"{label} has no sheet.")
    if wanted is None:
        return names[0]
    if wanted in names:
        return wanted
    by_number = {str(at): name for at, name in enumerate(names, 1)}
    if wanted in by_number:
        return by_number[wanted]
    close = difflib.get_close_matches(wanted, names, 1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise DataError(
        f"{label} has no sheet {wanted!r}.{meant} The sheets are {quoted(names, 20)}."
    )


def _check_size(content: bytes, label: str, most: int) -> None:
    """Reject a workbook that would take too much memory, before it is read."""
    try:
        for member, n_cells in _sizes(content, label, most):
            if n_cells * _CELL_BYTES > most:
                raise DataError(  # noqa: TRY301
                    f"{label} has cells so far apart that a sheet ({member}) spans "
                    f"{n_cells:,} of them, and {most // _CELL_BYTES:,} may be read. "
                    "Delete stray cells, or allow more with max_size, such as 50GB."
                )
    except DataError:
        raise
    except _ZIP_ERRORS as error:
        raise _damaged(label, error) from None


def _sizes(content: bytes, label: str, most: int) -> Iterator[tuple[str, int]]:
    """Yield members of a workbook and bounds of their cells."""
    if content.startswith(OLD_EXCEL):
        yield "of the old format", cells_of_xls(content)
    elif content.startswith(ZIP):
        # Decompressed in pieces, to reject a bomb before it is decompressed at once.
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > most:
                raise_size(label, most)
            for entry in archive.infolist():
                # Sizes in headers may be wrong; the checksum at the end is verified.
                with archive.open(entry) as file:
                    n_cells = _n_cells(entry.filename, file)
                yield entry.filename, n_cells


def _n_cells(name: str, file: IO[bytes]) -> int:
    """Return a bound of the cells of a member of the archive, all of which is read."""
    if name.lower().endswith(".bin"):
        return cells_of_xlsb(file.read())
    if name == "content.xml":
        return cells_of_ods(file)
    return cells_of_xml(file)


def _damaged(label: str, reason: object) -> DataError:
    told = " ".join(str(reason).split()).rstrip(".") or type(reason).__name__
    return DataError(
        f"{label} is not a whole workbook: {told}. Save it again, or save the sheet as "
        "CSV."
    )


def _name(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _cell(cell: Any) -> Any:
    return None if isinstance(cell, str) and not cell else cell
