"""A sheet of an Excel file (.xlsx, .xls, .xlsb) or of OpenDocument (.ods).

Read with python-calamine: it parses, and neither computes formulas nor runs macros
nor fetches what a file refers to.
"""

from __future__ import annotations

import difflib
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Collection, Sequence
from typing import IO, Any, NoReturn

from branchwise.errors import DataError, ParameterError, quoted
from branchwise.table.cells import column_of_cells
from branchwise.table.contents import Buffer, as_stream, refuse_size
from branchwise.table.reading import Reading
from branchwise.table.sheet_size import cells_of_ods, cells_of_xlsb, cells_of_xml
from branchwise.table.xls_size import COMPOUND_FILE, cells_of_xls

ZIP = b"PK\x03\x04"
#: The old binary form of Excel.
OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

#: What a workbook may have when unpacked: a sheet of a million rows has a tenth.
_MOST_BYTES = 10**9
#: A cell in memory, whether it is empty or not.
_CELL_BYTES = 64
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
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
    """A sheet of a workbook, its first row the header.

    Parameters
    ----------
    content : bytes or StoredFile
        The whole file.
    label : str
        What messages call it.
    reading : Reading
        Which sheet, and the names if it has no header.
    """

    declared: frozenset[str] = frozenset()

    def __init__(self, content: Buffer, label: str, reading: Reading) -> None:
        self.label = label
        most = _MOST_BYTES if reading.max_size is None else reading.max_size
        whole = bytes(content)
        if whole.startswith(ZIP):
            _check_size(whole, label, most)
        elif whole.startswith(COMPOUND_FILE):
            _check_cells(whole, label, most)
        rows, self._first_row = _sheet(whole, label, reading.sheet)
        if not rows:
            raise DataError(
                f"{label} has nothing on that sheet. Name another with --sheet."
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
                    f"{label} has {width:,} columns, but --names has "
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

    def place(self, row: int) -> str:
        """Tell which row of the sheet it is, as Excel counts."""
        return f"row {self._first_row + row:,}"


def _sheet(
    content: bytes, label: str, wanted: str | None
) -> tuple[list[list[Any]], int]:
    """Return the rows of a sheet, and the number of the first one from 1."""
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
    except Exception as error:  # whatever a damaged file makes of it
        raise _damaged(label, error) from None
    except BaseException as error:
        # A panic of Rust is no Exception, but as harmless.
        if type(error).__name__ != "PanicException":
            raise
        raise _damaged(label, "its cells cannot be read") from None
    return rows, (begin[0] if begin else 0) + 1


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
    """Unpack piece by piece, and refuse a bomb before it is unpacked at once."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
            if total > most:
                refuse_size(label, most)
            for entry in archive.infolist():
                # Headers may lie; the check sum at the end tells.
                with archive.open(entry) as file:
                    n_cells = _n_cells(entry.filename, file)
                if n_cells * _CELL_BYTES > most:
                    _refuse_cells(label, entry.filename, n_cells, most)
    except DataError:
        raise
    except _ZIP_ERRORS as error:
        raise _damaged(label, error) from None


def _check_cells(content: bytes, label: str, most: int) -> None:
    """Refuse an old workbook whose cells are too far apart."""
    try:
        n_cells = cells_of_xls(content)
    except ValueError as error:
        raise _damaged(label, error) from None
    if n_cells * _CELL_BYTES > most:
        _refuse_cells(label, "of the old format", n_cells, most)


def _n_cells(name: str, file: IO[bytes]) -> int:
    """Return a bound of the cells of a member of the archive, all of which is read."""
    if name.lower().endswith(".bin"):
        return cells_of_xlsb(file.read())
    if name == "content.xml":
        return cells_of_ods(file)
    return cells_of_xml(file)


def _refuse_cells(label: str, member: str, n_cells: int, most: int) -> NoReturn:
    raise DataError(
        f"{label} has cells so far apart that a sheet ({member}) spans {n_cells:,} of "
        f"them, and {most // _CELL_BYTES:,} may be read. Delete stray cells, or allow "
        "more with max_size (--max-size on the command line), such as 50GB."
    )


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
