"""Where the last whole row ends in a block of delimited text that ends anywhere."""

from __future__ import annotations

import codecs
import re
from itertools import chain
from typing import Any

import numpy as np


def last_row_end(block: bytes, delimiter: str) -> int:
    """Return where the last row ends that is whole; 0 if none is.

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
    """Return where cells in quotes begin and end, the last perhaps later."""
    letters = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    opening = quotes[::2]
    # Two quotes within a cell in quotes close it and open it again.
    allowed = np.frombuffer(b'\r\n"' + delimiter, np.uint8)
    opens = np.isin(letters[opening - 1], allowed) | (opening == 0)
    if opens.all():
        return opening, np.append(quotes[1::2], len(block))
    # A quote amid a cell without quotes is a letter like any other: cell by cell.
    begin = rb"(?:\A|(?<=[\r\n" + re.escape(delimiter) + rb"]))"
    cell = re.compile(begin + rb'"[^"]*(?:""[^"]*)*(?:"|\Z)')
    spans = (found.span() for found in cell.finditer(block))
    both = np.fromiter(chain.from_iterable(spans), np.intp)
    return both[::2], both[1::2]


def _may_begin(text: bytes, mark: bytes) -> bool:
    """Whether a block may begin so, of which there may be more than is in sight.

    Not with half a line end, nor with a byte order mark, which is no text there.
    """
    half = mark == b"\r" and text.startswith(b"\n")
    return len(text) == 3 and text != codecs.BOM_UTF8 and not half
