"""Writing files whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

_numbers = count()


def is_device(path: Path) -> bool:
    """Whether a path is there and is neither a file nor a directory."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes its name only when the block ends without error.

    Whatever happens before, Ctrl-C included, an older file of that name stays as
    it was. A link stays one: the file that it leads to is replaced. A device or a
    pipe cannot be replaced and is written to.
    """
    final = Path(path).resolve()
    if is_device(final):
        with final.open("wb") as device:
            yield device
        return
    _check_place(final)
    draft = final.with_name(f".branchwise.{os.getpid()}.{next(_numbers)}.part")
    try:
        with draft.open("xb") as file:
            if final.is_file():
                draft.chmod(stat.S_IMODE(final.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(final)
    except BaseException as error:
        with suppress(FileNotFoundError):
            draft.unlink()
        if isinstance(error, OSError) and error.filename == str(draft):
            # Nobody has asked for the draft.
            raise type(error)(error.errno, error.strerror, str(final)) from None
        raise


def _check_place(final: Path) -> None:
    """Refuse a place that no file can take, as opening a file there would."""
    if final.is_dir():
        raise IsADirectoryError(
            f"{str(final)!r} is a directory. Give the name of a file in it."
        )
    if not final.parent.is_dir():
        raise FileNotFoundError(
            f"There is no directory {str(final.parent)!r} to write {final.name!r} to. "
            "Make it first, or choose another place."
        )
