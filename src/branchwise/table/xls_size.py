"""How many cells a sheet of an old ``.xls`` workbook spans, before memory is taken.

Positions have 16 bits each in the file, so that one cell asks for a hundred gigabytes.
The file is a small file system (sectors in chains); in it is a stream of records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

#: What such a file begins with.
COMPOUND_FILE = bytes.fromhex("d0cf11e0a1b11ae1")

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
        files = _CompoundFile(content)
        return max(map(_spanned, files.streams(_STREAMS)), default=0)
    except (struct.error, IndexError) as error:
        raise ValueError("its sectors do not fit together") from error


class _CompoundFile:
    """The streams of a compound file."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        (shift,) = struct.unpack_from("<H", content, 30)
        self._size = 512 if shift == 9 else 4096
        directory, minis, difat = (
            struct.unpack_from("<I", content, at)[0] for at in (48, 60, 68)
        )
        tables = list(struct.unpack_from("<109I", content, 76))
        seen = set()
        while difat < _LAST_SECTOR:
            if difat in seen:
                raise ValueError("its sectors go round in circles")
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
        places = (at * _MINI_SECTOR for at in _followed(number, self._next_mini))
        return b"".join(self._minis[at : at + _MINI_SECTOR] for at in places)


def _numbers(sector: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(sector) // 4}I", sector))


def _followed(number: int, following: list[int]) -> Iterator[int]:
    """Return the numbers of a chain, which may not come back to itself."""
    for _ in range(len(following) + 1):
        if number >= _LAST_SECTOR:
            return
        yield number
        number = following[number]
    raise ValueError("its sectors go round in circles")


def _spanned(stream: bytes) -> int:
    """Return how many cells the largest rows and columns of a stream span."""
    height = width = 0
    seen: set[int] = set()
    starts = [0]
    while starts:
        for kind, record in _records(stream, starts.pop(), seen):
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


def _records(stream: bytes, at: int, seen: set[int]) -> Iterator[tuple[int, bytes]]:
    """Return the records from a place to the end of a sheet, each of them once."""
    while at + 4 <= len(stream) and at not in seen:
        seen.add(at)
        kind, size = struct.unpack_from("<HH", stream, at)
        yield kind, stream[at + 4 : at + 4 + size]
        if kind == _END:
            return
        at += 4 + size
