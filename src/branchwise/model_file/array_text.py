"""Arrays as text: a type and the base64 of little-endian numbers, canonical.

Numbers of an array are whole numbers of 1, 2, 4 or 8 bytes (``i1`` ... ``i8``), or
floats of 8 (``f8``): the first of these that holds all of them. Arrays of floats that
are whole numbers take ``i1``, ``i2`` or ``i4``, too. There is one zero and one NaN, so
that the same numbers always give the same text.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import ModelFileError, quoted

#: The types of whole numbers, the smallest first.
_WHOLE = {name: np.dtype(f"<{name}") for name in ("i1", "i2", "i4", "i8")}
_FLOAT = np.dtype("<f8")
#: Whole numbers of more bytes are no smaller than floats.
_SMALL_BYTES = 4
_SEPARATOR = ":"


def array_text(array: NDArray[Any]) -> str:
    """Write an array."""
    flat = array.ravel()
    dtype = _smallest(flat)
    if dtype == _FLOAT:
        # One zero, and one NaN.
        flat = np.where(np.isnan(flat), np.nan, flat + 0.0)
    data = b2a_base64(flat.astype(dtype).tobytes(), newline=False).decode()
    return f"{dtype.str[1:]}{_SEPARATOR}{data}"


def _smallest(flat: NDArray[Any]) -> np.dtype[Any]:
    """Return the type of the fewest bytes that holds all numbers."""
    is_float = flat.dtype.kind == "f"
    if not len(flat):
        return _WHOLE["i1"]
    least, most = flat.min(), flat.max()
    for dtype in _WHOLE.values():
        if is_float and dtype.itemsize > _SMALL_BYTES:
            break
        limits = np.iinfo(dtype)
        # NaN is within no limits.
        if limits.min <= least and most <= limits.max:
            whole = not is_float or bool((flat == np.trunc(flat)).all())
            return dtype if whole else _FLOAT
    return _FLOAT


def array_of_text(text: str, name: str, floats: bool) -> NDArray[Any]:
    """Read an array, which shares its memory with the bytes of the text.

    Raises if there is another text for the same numbers.
    """
    prefix, separator, data = text.partition(_SEPARATOR)
    allowed = ["i1", "i2", "i4", "f8" if floats else "i8"]
    if not separator or prefix not in allowed:
        raise ModelFileError(
            f"array {name!r} must begin with its type and a colon: one of "
            f"{quoted(allowed)}"
        )
    try:
        raw = a2b_base64(data, strict_mode=True)
    except (Error, ValueError):
        raise ModelFileError(f"array {name!r} is not base64") from None
    dtype = _WHOLE.get(prefix, _FLOAT)
    if len(raw) % dtype.itemsize:
        raise ModelFileError(
            f"array {name!r} has {len(raw):,} bytes, which is no number of {prefix}"
        )
    array = np.frombuffer(raw, dtype=dtype)
    if not _is_canonical(array, data, raw):
        raise ModelFileError(f"array {name!r} is not written in the canonical way")
    return array


def _is_canonical(array: NDArray[Any], data: str, raw: bytes) -> bool:
    """Tell whether :func:`array_text` writes the array like this."""
    # The last characters may have bits that no byte takes.
    tail = len(raw) // 3 * 3
    if b2a_base64(raw[tail:], newline=False).decode() != data[tail // 3 * 4 :]:
        return False
    if array.dtype != _FLOAT:
        return _smallest(array) == array.dtype
    bits = array.view("<u8")
    absent = np.isnan(array)
    return (
        _smallest(array) == _FLOAT
        and bool((bits[absent] == np.float64(np.nan).view(np.uint64)).all())
        and not bool((bits == np.uint64(1 << 63)).any())
    )
