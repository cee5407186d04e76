"""Bytes to JSON values: the size and the nesting are checked before memory is used."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from branchwise.errors import ModelFileError
from branchwise.model_file.fields import shown
from branchwise.model_file.layout import MAX_BYTES

_PIECE = 2**20
#: No model has more lists than one for so many bytes, but for a thousand.
_BYTES_A_LIST = 16


def content_of(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file."""
    try:
        with Path(path).open("rb") as file:
            return bytes_of(file)
    except FileNotFoundError:
        reason = "There is no model file {}. Check the path."
    except IsADirectoryError:
        reason = "{} is a directory, not a model file. Give a file in it."
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        reason = f"The model file {{}} cannot be read: {why}."
    raise ModelFileError(reason.format(repr(os.fsdecode(path))))


def bytes_of(file: BinaryIO) -> bytes:
    """Return the bytes of an open file, up to one more than a model may have."""
    content = bytearray()
    # In pieces: a special file may have no end.
    while len(content) <= MAX_BYTES and (piece := file.read(_PIECE)):
        if not isinstance(piece, bytes):
            raise ModelFileError(
                "The file must give bytes. Got text; open it in binary mode, as "
                "open(path, 'rb') does."
            )
        content += piece
    return bytes(content)


def parse(content: bytes) -> Any:
    """Return the value of a JSON text; raise if a model cannot have this text."""
    if len(content) > MAX_BYTES:
        raise ModelFileError(
            f"it has more than {MAX_BYTES:,} bytes, the most that a model file may have"
        )
    _check_countless(content)
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_raise_constant,
        )
    except UnicodeDecodeError as error:
        raise ModelFileError(f"it is not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ModelFileError(f"it is not JSON ({error.msg}, {where})") from None
    except (RecursionError, MemoryError):
        raise ModelFileError("it is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"it has a number that is too long ({error})") from None


def _check_countless(content: bytes) -> None:
    """Reject too many lists and objects before the parser allocates memory for them.

    An empty list takes three bytes of a file and 64 of memory. In a model most lists
    are those of 'weights', and each of their nodes has an entry in eight more arrays.
    """
    most = 1000 + len(content) // _BYTES_A_LIST
    if content.count(b"[") + content.count(b"{") <= most:
        return
    if _brackets_outside_texts(content) > most:
        raise ModelFileError("it has more lists and objects than a model of its size")


def _brackets_outside_texts(content: bytes) -> int:
    """Count lists and objects, not the brackets in names."""
    content = content.replace(rb"\\", b"").replace(rb"\"", b"")
    found, inside = 0, np.False_
    for start in range(0, len(content), _PIECE):
        piece = np.frombuffer(content[start : start + _PIECE], dtype=np.uint8)
        text = np.logical_xor.accumulate(piece == ord('"')) ^ inside
        opens = (piece == ord("[")) | (piece == ord("{"))
        found += int(np.count_nonzero(opens & ~text))
        inside = text[-1]
    return found


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in fields if times[name] > 1)
        raise ModelFileError(f"it has the field {shown(twice)} twice")
    return fields


def _raise_constant(constant: str) -> NoReturn:
    raise ModelFileError(f"it has {constant} where a number must be")
