"""How many cells the sheets of a workbook span, before memory is taken for them.

python-calamine makes a rectangle of all cells between the first and the last that a
sheet has, so that two cells in opposite corners ask for gigabytes. Here the positions
of cells are read from the file piece by piece; what a sheet says of its own dimension
does not count. The bounds may be too large where a text looks like a position.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import IO

_CHUNK = 2**20
#: A tag of more bytes is none of a sheet.
_LONGEST_TAG = 2**24
_LETTERS = re.compile(rb"""[\s:]r\s*=\s*["']([A-Za-z]{1,4})\d""")
_NUMBER = re.compile(rb"""[\s:]r\s*=\s*["'][A-Za-z]{0,4}(\d{1,9})""")
_ROW = re.compile(rb"<(?:\w+:)?row[\s/>]")
_CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")
_REPEATED = re.compile(rb"""number-(rows|columns)-repeated\s*=\s*["'](\d{1,18})""")
_TAG = re.compile(rb"<(/?)(?:\w+:)?([\w-]+)([^>]*)>")
_VALUE = re.compile(rb"""(?:value-type|formula)\s*=""")


def cells_of_xml(file: IO[bytes]) -> int:
    """Return a bound of the cells that a sheet of an .xlsx file spans."""
    last_row = last_column = rows = unnamed = 0
    for piece in _pieces(file):
        rows += len(_ROW.findall(piece))
        last_row = max(last_row, *map(int, set(_NUMBER.findall(piece))), 0)
        letters = _LETTERS.findall(piece)
        last_column = max(last_column, *map(_column, set(letters)), 0)
        # Cells and rows without a position follow the one before.
        unnamed += max(0, len(_CELL.findall(piece)) - len(letters))
    return (last_row + rows) * (last_column + unnamed)


def cells_of_ods(file: IO[bytes]) -> int:
    """Return a bound of the cells that the sheets of an .ods file span.

    Empty cells and rows after the last value do not count, however often repeated.
    """
    total = width = height = 0
    columns = row_times = waiting_rows = used = 0
    for piece in _pieces(file):
        for closing, name, rest in _TAG.findall(piece):
            if name == b"table-row" and not closing:
                row_times, columns, used = _times(rest, b"rows"), 0, 0
            elif name in (b"table-cell", b"covered-table-cell") and not closing:
                columns += _times(rest, b"columns")
                used = columns if _VALUE.search(rest) else used
            if name == b"table-row" and (closing or rest.endswith(b"/")):
                waiting_rows += row_times
                if used:
                    width, height = max(width, used), height + waiting_rows
                    waiting_rows = 0
            elif name == b"table":
                total += width * height
                width = height = waiting_rows = 0
    return total + width * height


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


def _times(attributes: bytes, what: bytes) -> int:
    for kind, number in _REPEATED.findall(attributes):
        if kind == what:
            return int(number)
    return 1
