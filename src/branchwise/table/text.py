"""Texts of an array -> distinct texts and a code for each row, compiled.

Where users have strings, this is what they wait for. Buffers are read as they lie;
pyarrow's own conversions to numpy are avoided, because they load pandas. The
extension works without the GIL, so that columns can be numbered side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.extension import available, extension, plain_array

_OFFSETS = {"string": np.int32, "large_string": np.int64}


def number_texts(array: Any) -> tuple[NDArray[np.int32], tuple[str, ...]] | None:
    """Give the distinct texts of an Arrow array numbers, in the order of appearance.

    Returns the codes, -1 for missing, and the texts; None where the extension is
    not to be used or the array does not hold plain strings.
    """
    if str(array.type) not in _OFFSETS or not available():
        return None
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    if hasattr(array, "chunks"):  # what pyarrow makes of no chunks, or of too much text
        return None
    n = len(array)
    validity, offset_buffer, text_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=_OFFSETS[str(array.type)])
    offsets = offsets[array.offset : array.offset + n + 1]
    texts = np.frombuffer(text_buffer or b"", dtype=np.uint8)
    known = None
    if array.null_count:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
        known = bits[array.offset : array.offset + n].astype(bool)
    codes, firsts = extension().number_texts(plain_array(offsets), texts)
    if known is not None:
        return _without_missing(codes, known, offsets, texts)
    return codes, tuple(_decoded(offsets, texts, row) for row in firsts.tolist())


def number_cells(
    array: NDArray[Any],
) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
    """Give the distinct cells of a numpy array numbers, in the order of appearance.

    Cells are the same where their bytes are; of objects that means the very same
    object. Returns the codes and the first row of each number; None where the
    extension is not to be used.
    """
    if not len(array) or not array.dtype.itemsize or not available():
        return None
    # Of objects the addresses are read and nothing else: that needs no GIL.
    data = np.frombuffer(np.ascontiguousarray(array), dtype=np.uint8)
    codes, firsts = extension().number_cells(data, array.dtype.itemsize)
    return codes, firsts


def _without_missing(
    codes: NDArray[np.int32],
    known: NDArray[np.bool_],
    offsets: NDArray[Any],
    texts: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Take away texts that stand only under missing cells, whatever is there."""
    rows = np.flatnonzero(known)
    numbers, first = np.unique(codes[rows], return_index=True)
    renumber = np.full(int(codes.max(initial=0)) + 1, -1, dtype=np.int32)
    renumber[numbers] = np.arange(len(numbers), dtype=np.int32)
    codes = np.where(known, renumber[codes], np.int32(-1))
    values = tuple(_decoded(offsets, texts, row) for row in rows[first].tolist())
    return codes, values


def _decoded(offsets: NDArray[Any], texts: NDArray[np.uint8], row: int) -> str:
    return texts[offsets[row] : offsets[row + 1]].tobytes().decode("utf-8")
