"""Tables that come back: the rows of a fold, cut out anew for every candidate.

``GridSearchCV`` takes the same rows out of the user's table for each candidate and
hands them over as a new table each time. A table that comes for the second time with
the same look is encoded and kept beside a copy of its memory; when it comes again,
the two are compared byte by byte. So nothing is ever taken for what it is not, a
table that has changed is read again, and who fits once pays for a look at a few bytes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from branchwise.table.encoded import EncodedTable, n_bytes
from branchwise.table.memory import Memory, Shelf
from branchwise.table.vectors import is_arrow_text

#: What all tables that come back may take together, with what is made of them.
ROOM = 1 << 28
#: A table of more bytes is not looked at: reading it is not what takes time.
_LARGE = 1 << 26
#: A table of fewer rows is read before it is looked at.
_FEW = 64
#: How many looks are remembered.
_LOOKS = 1024
_SAMPLES = 256
_CONSTANT = {str, int, float, bool, type(None)}


@dataclass(frozen=True)
class _Look:
    """What lies in memory: a description, pieces of memory, and cells by reference."""

    told: Hashable
    pieces: tuple[Any, ...]
    objects: tuple[NDArray[Any], ...]

    def sampled(self) -> Hashable:
        """Return what is nearly always different for different tables."""
        checks = []
        for piece in self.pieces:
            cells = np.frombuffer(piece, np.uint8)
            checks.append(crc32(cells[:: max(1, len(cells) // _SAMPLES)].tobytes()))
        return self.told, tuple(checks)


@dataclass(frozen=True)
class _Known:
    """A table that is kept, and the memory that it was read from."""

    pieces: tuple[Any, ...]
    objects: tuple[NDArray[Any], ...]
    table: EncodedTable

    def is_(self, look: _Look) -> bool:
        """Whether a table with the same description has the same cells."""
        return all(map(_equal, self.pieces, look.pieces))


class Recognition:
    """Remembers tables.

    Parameters
    ----------
    room : int
        How many bytes may be kept; with 0 no table is recognised.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.memory = Memory(room)
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._lock = threading.Lock()

    def recognised(self, X: object) -> object:
        """Return an encoded table in place of one that has come before, else X."""
        look = _look(X) if self.memory.most_bytes else None
        if look is None:
            return X
        key = look.sampled()
        known = self.memory.get(key)
        if isinstance(known, _Known) and known.is_(look):
            return known.table
        if not self._again(key) or not all(map(_lasting, look.objects)):
            return X
        table = EncodedTable(X)
        object.__setattr__(table, "shelf", Shelf(self.memory, object()))
        # The copies of objects hold them, so that no other object takes their place.
        objects = tuple(cells.copy() for cells in look.objects)
        kept = _Known(tuple(map(_copied, look.pieces)), objects, table)
        size = n_bytes(table) + sum(piece.size for piece in look.pieces)
        self.memory.put(key, kept, size)
        return table

    def _again(self, key: Hashable) -> bool:
        with self._lock:
            again = key in self._seen
            self._seen[key] = None
            self._seen.move_to_end(key)
            if len(self._seen) > _LOOKS:
                self._seen.popitem(last=False)
            return again


def _look(X: object) -> _Look | None:
    """Look at the memory of a table; None where it is not of a kind known here."""
    table: Any = X
    is_frame = type(X).__module__.split(".")[0] == "pandas" and hasattr(X, "dtypes")
    if not (is_frame or type(X) is np.ndarray):
        return None
    if table.ndim != 2 or len(table) < _FEW:
        return None
    columns: Iterator[tuple[object, Any]] = iter([("cells", table)])
    if is_frame:
        columns = ((name, series.array) for name, series in table.items())
    told: list[Hashable] = []
    pieces: list[Any] = []
    objects: list[NDArray[Any]] = []
    for name, cells in columns:
        found = _memory_of(cells)
        if found is None:
            return None
        described, parts, held = found
        told.append((str(name), type(name), described))
        pieces += parts
        objects += held
        if sum(piece.size for piece in pieces) > _LARGE:
            return None
    return _Look((type(X), tuple(told)), tuple(pieces), tuple(objects))


def _memory_of(
    cells: Any,
) -> tuple[Hashable, list[Any], list[NDArray[Any]]] | None:
    """Describe a column, and return where its cells lie."""
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    if hasattr(cells, "codes") and hasattr(cells, "categories"):
        # The categories are few: they are compared as they are.
        names = tuple((type(value), value) for value in cells.categories)
        codes = np.ascontiguousarray(cells.codes)
        told = "categories", names, bool(cells.ordered), codes.dtype.str
        return told, [pa.py_buffer(codes)], []
    if is_arrow_text(cells):
        return _memory_of_arrow(cells.__arrow_array__())
    if not isinstance(cells, np.ndarray) and not hasattr(cells, "_ndarray"):
        return None  # masks and dictionaries lie elsewhere
    array = np.asarray(cells)
    if array.dtype.kind not in "iufbUO":
        return None
    array = np.ascontiguousarray(array)
    held = [array] if array.dtype.kind == "O" else []
    return (array.dtype.str, array.shape), [pa.py_buffer(array)], held


def _memory_of_arrow(
    array: Any,
) -> tuple[Hashable, list[Any], list[NDArray[Any]]]:
    told: list[Hashable] = [str(array.type)]
    pieces = []
    for chunk in getattr(array, "chunks", [array]):
        buffers = chunk.buffers()
        told.append((chunk.offset, len(chunk), tuple(b is None for b in buffers)))
        pieces += [buffer for buffer in buffers if buffer is not None]
    return tuple(told), pieces, []


def _equal(one: Any, other: Any) -> bool:
    return one.size == other.size and bool(one.equals(other))


def _copied(piece: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415  (its buffers have come in)

    return pa.py_buffer(piece.to_pybytes())


def _lasting(cells: NDArray[Any]) -> bool:
    """Whether the same objects are the same values for ever."""
    return set(map(type, cells.flat)) <= _CONSTANT
