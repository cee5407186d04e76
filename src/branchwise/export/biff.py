"""Reading what the formulas of an .xls file gave, to the last bit.

LibreOffice writes 15 digits of a number to every format of text. The binary format of
old Excel (BIFF8 in a compound file) holds the 8 bytes of each result, so that is what
verification reads. Only the results of formulas on the first sheet are of interest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from branchwise.errors import ExportError

Result = float | str | bool | None

_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: Sector numbers from here on end a chain.
_SPECIAL = 0xFFFFFFFA
_SHEET, _FORMULA, _STRING, _CONTINUE, _END = 0x85, 0x06, 0x207, 0x3C, 0x0A


def formula_results(content: bytes) -> dict[tuple[int, int], Result]:
    """Return the results by (row, column), both from 0; None for an error."""
    stream = _workbook_stream(content)
    start = next(
        struct.unpack_from("<I", body)[0]
        for kind, body in _records(stream, 0)
        if kind == _SHEET
    )
    results: dict[tuple[int, int], Result] = {}
    place: tuple[int, int] | None = None  # of a formula whose text is to come
    parts: list[bytes] = []
    for kind, body in _records(stream, start):
        if kind == _STRING or (kind == _CONTINUE and parts):
            parts.append(body)
            continue
        if place is not None and parts:
            results[place] = _text(parts)
            place, parts = None, []
        if kind == _FORMULA:
            row, column = struct.unpack_from("<HH", body)
            results[row, column] = _number(body[6:14])
            place = (row, column) if body[12:14] == b"\xff\xff" else None
        elif kind == _END:
            break
    return results


def _records(stream: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        yield kind, stream[at + 4 : at + 4 + size]
        at += 4 + size


def _number(result: bytes) -> Result:
    """Read 8 bytes: a number, or a mark for something else; texts come later."""
    if result[6:] != b"\xff\xff":
        number: float = struct.unpack("<d", result)[0]
        return number
    kind, value = result[0], result[2]
    if kind == 1:
        return bool(value)
    return None if kind == 2 else ""


def _text(parts: list[bytes]) -> str:
    """Join a text from a record and those that continue it, each with its width."""
    text = _characters(parts[0][2], parts[0][3:])
    for part in parts[1:]:
        text += _characters(part[0], part[1:])
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _characters(wide: int, content: bytes) -> str:
    code = "utf-16-le" if wide & 1 else "latin-1"
    return content.decode(code, "surrogatepass" if wide & 1 else "strict")


def _workbook_stream(content: bytes) -> bytes:
    """Take the stream with the workbook out of a compound file."""
    if not content.startswith(_SIGNATURE):
        raise ExportError("LibreOffice wrote a file that is no compound file.")
    size = 1 << struct.unpack_from("<H", content, 30)[0]
    table = _allocation(content, size)
    directory = _chain(content, size, table, struct.unpack_from("<I", content, 48)[0])
    for at in range(0, len(directory), 128):
        length = struct.unpack_from("<H", directory, at + 64)[0]
        name = directory[at : at + max(0, length - 2)].decode("utf-16-le")
        if name == "Workbook":
            first, n_bytes = struct.unpack_from("<II", directory, at + 116)
            return _chain(content, size, table, first)[:n_bytes]
    raise ExportError("LibreOffice wrote a file without a workbook.")


def _allocation(content: bytes, size: int) -> list[int]:
    """Return for every sector the one that follows it."""
    sectors = list(struct.unpack_from("<109I", content, 76))
    more = struct.unpack_from("<I", content, 68)[0]
    while more < _SPECIAL:
        block = struct.unpack_from(f"<{size // 4}I", content, (more + 1) * size)
        sectors += block[:-1]
        more = block[-1]
    table: list[int] = []
    for sector in sectors:
        if sector < _SPECIAL:
            table += struct.unpack_from(f"<{size // 4}I", content, (sector + 1) * size)
    return table


def _chain(content: bytes, size: int, table: list[int], sector: int) -> bytes:
    parts = []
    while sector < _SPECIAL:
        parts.append(content[(sector + 1) * size : (sector + 2) * size])
        sector = table[sector]
    return b"".join(parts)
