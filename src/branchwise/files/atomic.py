"""Atomic writes of files, and reports of the progress of reading."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


def is_device(path: Path) -> bool:
    """Whether a path is there and is neither a file nor a directory."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that gets its final name only when the block ends without error.

    Whatever happens before, Ctrl-C included, an older file of that name stays as
    it was. A link stays one: the file that it leads to is replaced. A device or a
    pipe cannot be replaced and is written to.
    """
    final = Path(path).resolve()
    if is_device(final):
        with final.open("wb") as device:
            yield device
        return
    _check_location(final)
    draft, file = _new_draft(final)
    try:
        with file:
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
            raise _of_final(error, final) from None
        raise


def _new_draft(final: Path) -> tuple[Path, BinaryIO]:
    """Create a file beside the final one, under a name that no other file has.

    The name is random, because process ids are not unique: every container has its
    own, and they come back after a process was killed. ``tempfile`` is not used, as
    its files can be read by their owner only.
    """
    try:
        while True:
            draft = final.with_name(f".branchwise.{token_hex(8)}.part")
            with suppress(FileExistsError):
                return draft, draft.open("xb")
    except OSError as error:
        raise _of_final(error, final) from None


def _of_final(error: OSError, final: Path) -> OSError:
    """Return an error of a temporary file as an error of the final file."""
    return type(error)(error.errno, error.strerror, str(final))


def _check_location(final: Path) -> None:
    """Reject a path that no file can have, as opening it would."""
    if final.is_dir():
        raise IsADirectoryError(
            f"{str(final)!r} is a directory. Give the name of a file in it."
        )
    if not final.parent.is_dir():
        raise FileNotFoundError(
            f"There is no directory {str(final.parent)!r} to write {final.name!r} to. "
            "Make it first, or choose another path."
        )


Told = Callable[[str], None]

_told: ContextVar[Told | None] = ContextVar("_told", default=None)


@contextmanager
def telling(told: Told) -> Iterator[None]:
    """Report how much has been read, such as "1,000 rows", while a block runs.

    Parameters
    ----------
    told : callable
        Takes the text; it may be called from another thread.
    """
    before = _told.set(told)
    try:
        yield
    finally:
        _told.reset(before)


def reading_progress() -> Told | None:
    """Return the function to call with the progress, if there is one."""
    return _told.get()
