"""Numbers, texts and arrays in C."""

from __future__ import annotations

from collections.abc import Sequence

from branchwise.errors import ExportError
from branchwise.export.spelling import finite, wrapped

#: A string of C99 may have so many characters.
_LONGEST = 4000
#: Decimals up to here are read exactly by every compiler, if twice them is whole.
_LARGEST_DECIMAL = 2**31


def number(value: float) -> str:
    """Write a number exactly: only hexadecimal digits are sure to be, in C."""
    if abs(finite(value)) < _LARGEST_DECIMAL and (value * 2).is_integer():
        return repr(float(value))
    return float(value).hex()


def text_bytes(value: str) -> bytes:
    """Return a text as C has it, or say why it cannot."""
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise ExportError(
            f"C cannot have the text {value!r}, which is no valid Unicode. Rename it."
        ) from None
    if b"\0" in encoded:
        raise ExportError(
            f"C cannot have the text {value!r}: its texts end at the first NUL. Rename "
            "it, or export the model to another target."
        )
    return encoded


def string(encoded: bytes) -> str:
    """Write a string, in ASCII and without trigraphs."""
    return '"' + "".join(map(_character, encoded)) + '"'


def _character(byte: int) -> str:
    char = chr(byte)
    if char in '"\\?':
        return f"\\{char}"
    return char if 32 <= byte < 127 else f"\\{byte:03o}"


def array(declared: str, items: Sequence[str]) -> list[str]:
    """Write an array."""
    return [f"{declared}[{len(items)}] = {{", *wrapped(items, "    "), "};"]


class Strings:
    """Texts, as strings or, if they are too long for these, arrays of their own."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.long: list[str] = []
        self._count = 0

    def __call__(self, value: str) -> str:
        """Return how a text is written where it is used."""
        encoded = text_bytes(value)
        if len(encoded) <= _LONGEST:
            return string(encoded)
        name = f"{self._prefix}_text_{self._count}"
        self._count += 1
        bytes_ = [f"'\\{byte:03o}'" for byte in (*encoded, 0)]
        self.long += array(f"static const char {name}", bytes_)
        return name
