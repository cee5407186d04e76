"""Text in any encoding -> UTF-8, or the line and the column of what is wrong."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import NoReturn

from branchwise.errors import DataError
from branchwise.table.contents import Buffer, gathered, position

_CHUNK = 2**22
#: The longer marks first: that of UTF-32 begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def as_utf8(
    content: Buffer, label: str, encoding: str | None, most_bytes: int
) -> Buffer:
    """Return a text in UTF-8; what is in UTF-8 already is left as it is, unchecked.

    Parameters
    ----------
    content : bytes or StoredFile
        The whole text.
    label : str
        What messages call it.
    encoding : str or None
        Its encoding; None is UTF-8, or what a byte order mark says.
    most_bytes : int
        How much it may be in UTF-8.
    """
    marked = next((name for mark, name in _MARKS if content[:4].startswith(mark)), None)
    encoding = encoding or marked or "utf-8"
    if encoding.removesuffix("-sig") in ("utf-8", "ascii"):
        return content
    return gathered(_recoded(content, label, encoding), label, most_bytes)


def text_start(content: Buffer) -> int:
    """Return where a text in UTF-8 begins: after a byte order mark."""
    return len(codecs.BOM_UTF8) if content[:3] == codecs.BOM_UTF8 else 0


def check_utf8(content: Buffer, label: str) -> None:
    """Refuse a text that is not UTF-8."""
    if _first_wrong(content) is not None:
        refuse_encoding(content, label)


def _first_wrong(content: Buffer) -> int | None:
    """Return the place of the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, len(content), _CHUNK):
        waiting = len(decoder.getstate()[0])
        try:
            last = begin + _CHUNK >= len(content)
            decoder.decode(content[begin : begin + _CHUNK], final=last)
        except UnicodeDecodeError as error:
            return begin - waiting + error.start
    return None


def refuse_encoding(content: Buffer, label: str) -> NoReturn:
    """Say where the first byte is that is not UTF-8, and what may help."""
    wrong = _first_wrong(content) or 0
    line, column = position(content, wrong)
    byte = content[wrong : wrong + 1].hex()
    raise DataError(
        f"{label} is not UTF-8 text: see line {line:,}, column {column:,} (byte "
        f"0x{byte}). "
        "Say what it is with --encoding: cp1252 is usual for files from Windows, "
        "latin-1 for older ones from elsewhere."
    )


def _recoded(content: Buffer, label: str, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    lines, column = 1, 1
    for begin in range(0, len(content), _CHUNK):
        chunk = content[begin : begin + _CHUNK]
        try:
            text = decoder.decode(chunk, final=begin + _CHUNK >= len(content))
        except UnicodeError as error:
            good = _decodable(content, encoding, begin, error)
            line, at = _advanced(lines, column, good)
            raise DataError(
                f"{label} is not text in {encoding}: see line {line:,}, column "
                f"{at:,} ({getattr(error, 'reason', error)}). Give another --encoding, "
                "or leave it out for UTF-8."
            ) from None
        lines, column = _advanced(lines, column, text)
        yield text.encode("utf-8", "surrogatepass")


def _decodable(content: Buffer, encoding: str, begin: int, error: UnicodeError) -> str:
    """Return the text of a chunk before what cannot be decoded."""
    stop = begin + max(getattr(error, "start", 0), 0)
    decoder = codecs.getincrementaldecoder(encoding)("ignore")
    if encoding.startswith(("utf-16", "utf-32")) and begin:
        decoder.decode(content[:4])  # the byte order
    try:
        return decoder.decode(content[begin:stop])
    except UnicodeError:  # no byte order mark, which is never ignored
        return ""


def _advanced(line: int, column: int, text: str) -> tuple[int, int]:
    ends = text.count("\n")
    if not ends:
        return line, column + len(text)
    return line + ends, len(text) - text.rfind("\n")
