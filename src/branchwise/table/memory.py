"""What was made once and may be asked for again: by key, up to so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from branchwise.forks import fork_safe_lock

Made = TypeVar("Made")


def digest(array: NDArray[np.generic] | None) -> bytes:
    """Return 16 bytes that stand for the contents of an array of numbers."""
    if array is None:
        return b""
    told = f"{array.dtype.str}{array.shape}".encode()
    data = np.ascontiguousarray(array)
    return blake2b(data.data, digest_size=16, key=told[:64]).digest()


#: Guards every memory: it is held for a few steps only.
_LOCK = fork_safe_lock()


class Memory:
    """Keeps things of which those go first that have been asked for least lately.

    Parameters
    ----------
    most_bytes : int
        How much may be kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> object | None:
        """Return what is kept under a key, or None."""
        with _LOCK:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, thing: object, n_bytes: int) -> None:
        """Keep a thing, in place of what was kept under its key."""
        with _LOCK:
            if key in self._kept:
                self._bytes -= self._kept.pop(key)[1]
            if n_bytes > self.most_bytes:
                return
            self._kept[key] = thing, n_bytes
            self._bytes += n_bytes
            while self._bytes > self.most_bytes:
                self._bytes -= self._kept.popitem(last=False)[1][1]

    def __reduce__(self) -> tuple[object, ...]:
        # Another process makes what it needs by itself.
        return Memory, (self.most_bytes,)


class Shelf:
    """A part of a memory: what belongs to the same rows."""

    def __init__(self, memory: Memory, name: Hashable) -> None:
        self.memory = memory
        self.name = name

    def below(self, name: Hashable) -> Shelf:
        """Return the shelf of something that was made of these rows."""
        return Shelf(self.memory, (self.name, name))

    def recall(
        self,
        name: Hashable,
        make: Callable[[], Made],
        n_bytes: Callable[[Made], int],
    ) -> Made:
        """Return a thing, and make it if it is not there."""
        found = self.get(name)
        if found is not None:
            return cast("Made", found)
        made = make()
        self.put(name, made, n_bytes(made))
        return made

    def get(self, name: Hashable) -> object | None:
        """Return what stands on the shelf, or None."""
        return self.memory.get((self.name, name))

    def put(self, name: Hashable, thing: object, n_bytes: int) -> None:
        """Put a thing on the shelf."""
        self.memory.put((self.name, name), thing, n_bytes)
