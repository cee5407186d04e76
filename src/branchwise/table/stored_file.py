"""The bytes of an open file, read when they are asked for.

A file is not mapped into memory: reading past the end of a mapped file that another
program has truncated ends the process (SIGBUS). A short read is an error instead.
"""

from __future__ import annotations

import io
import os
import threading
import weakref

from branchwise.errors import DataError


class StoredFile:
    """The bytes of an open file; slices are ``bytes``.

    Parameters
    ----------
    descriptor : int
        The open file; it is duplicated, so the caller may close it.
    label : str
        What messages call the file.
    """

    def __init__(self, descriptor: int, label: str) -> None:
        self._label = label
        self._descriptor = os.dup(descriptor)
        weakref.finalize(self, os.close, self._descriptor)
        self._size = os.fstat(self._descriptor).st_size
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice) -> bytes:
        begin, end, _ = where.indices(self._size)
        pieces = []
        while begin < end:
            piece = self._read(begin, end - begin)
            if not piece:
                raise DataError(
                    f"{self._label} became shorter while it was read. Get the whole "
                    "file, and read it while nothing writes to it."
                )
            pieces.append(piece)
            begin += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def __bytes__(self) -> bytes:
        return self[:]

    def _read(self, begin: int, size: int) -> bytes:
        # One position is shared by all threads.
        with self._lock:
            os.lseek(self._descriptor, begin, os.SEEK_SET)
            return os.read(self._descriptor, size)


class FileReader(io.RawIOBase):
    """A stored file as a stream of its own."""

    def __init__(self, content: StoredFile) -> None:
        super().__init__()
        self._content = content
        self._position = 0

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether the position can be moved."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position."""
        base = {os.SEEK_CUR: self._position, os.SEEK_END: len(self._content)}
        self._position = max(0, base.get(whence, 0) + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read as many bytes as there is room for."""
        found = self._content[self._position : self._position + len(buffer)]
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)
