"""Tables that come back: the rows of a fold, cut out anew for every candidate.

``GridSearchCV`` takes the same rows out of the user's table for each candidate and
hands them over as a new table each time, and their labels as a new series. A table
that comes for the second time with the same look is encoded and kept beside a copy of
its memory; when it comes again, the two are compared byte by byte. So nothing is ever
taken for what it is not, a table that has changed is read again, and who fits once
pays for a look at a few bytes. Labels are treated alike.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from branchwise.data.columns import is_arrow_text
from branchwise.data.encoded_table import (
    EncodedLabels,
    EncodedTable,
    Memory,
    Shelf,
    n_bytes,
)
from branchwise.data.target import learn_target
from branchwise.errors import DataError
from branchwise.threads import fork_safe_lock

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
_LOCK = fork_safe_lock()


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
    """What is kept, and the memory that it was read from."""

    pieces: tuple[Any, ...]
    objects: tuple[NDArray[Any], ...]
    read: EncodedTable | EncodedLabels

    def is_(self, look: _Look) -> bool:
        """Whether something with the same description has the same cells."""
        return all(map(_equal, self.pieces, look.pieces))


class Recognition:
    """Remembers tables and labels.

    Parameters
    ----------
    room : int
        How many bytes may be kept; with 0 nothing is recognised.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.memory = Memory(room)
        self._seen: OrderedDict[Hashable, None] = OrderedDict()

    def recognised(self, X: object) -> object:
        """Return an encoded table in place of one that has come before, else X."""
        look = _look(X) if self.memory.most_bytes else None
        return X if look is None else self._recalled(look, X, self._encoded)

    def recognised_labels(self, y: object) -> object:
        """Return encoded labels in place of some that have come before, else y."""
        look = _look_at_labels(y) if self.memory.most_bytes else None
        return y if look is None else self._recalled(look, y, _encoded_labels)

    def _recalled(
        self,
        look: _Look,
        given: object,
        read: Callable[[object], EncodedTable | EncodedLabels | None],
    ) -> object:
        """Return what was read from the same memory before, else what is given."""
        key = look.sampled()
        known = self.memory.get(key)
        if isinstance(known, _Known) and known.is_(look):
            return known.read
        if not self._again(key) or not all(map(_lasting, look.objects)):
            return given
        kept = read(given)
        if kept is None:
            return given
        # The copies of objects hold them, so that no other object takes their place.
        objects = tuple(cells.copy() for cells in look.objects)
        beside = _Known(tuple(map(_copied, look.pieces)), objects, kept)
        size = n_bytes(kept) + sum(piece.size for piece in look.pieces)
        self.memory.put(key, beside, size)
        return kept

    def _encoded(self, X: object) -> EncodedTable:
        table = EncodedTable(X)
        object.__setattr__(table, "shelf", Shelf(self.memory, object()))
        return table

    def _again(self, key: Hashable) -> bool:
        with _LOCK:
            again = key in self._seen
            self._seen[key] = None
            self._seen.move_to_end(key)
            if len(self._seen) > _LOOKS:
                self._seen.popitem(last=False)
            return again


def _look(X: object) -> _Look | None:
    """Look at the memory of a table; None where it is not of a kind known here."""
    table: Any = X
    # Asked of the type: the frame itself would make a series of its dtypes.
    is_frame = _is_of_pandas(X) and hasattr(type(X), "dtypes")
    if not (is_frame or type(X) is np.ndarray):
        return None
    if table.ndim != 2 or len(table) < _FEW:
        return None
    if is_frame:
        return _look_at("frame", table.columns.tolist(), _column_arrays(table))
    return _look_at("array", ["cells"], [table])


def _look_at_labels(y: object) -> _Look | None:
    labels: Any = y
    is_series = _is_of_pandas(y) and hasattr(type(y), "array")
    if not (is_series or type(y) is np.ndarray):
        return None
    if labels.ndim != 1 or len(labels) < _FEW:
        return None
    # Trees keep the name of a series.
    name = labels.name if is_series else None
    return _look_at("labels", [name], [labels.array if is_series else labels])


def _is_of_pandas(given: object) -> bool:
    return type(given).__module__.split(".")[0] == "pandas"


def _column_arrays(table: Any) -> Iterable[Any]:
    """Return the arrays of the columns of a frame of pandas."""
    # Its public ways make a series of every column, which takes ten times as long as
    # all the rest of a look; a pandas without this door is asked in public.
    quick = getattr(table, "_iter_column_arrays", None)
    return quick() if quick else (series.array for _, series in table.items())


def _look_at(
    kind: str, names: Iterable[object], columns: Iterable[Any]
) -> _Look | None:
    """Look at columns, or at none of them where one is of another kind or large."""
    told: list[Hashable] = [kind]
    pieces: list[Any] = []
    objects: list[NDArray[Any]] = []
    size = 0
    for name, cells in zip(names, columns, strict=True):
        found = _memory_of(cells)
        if found is None:
            return None
        for piece in found.pieces:
            size += piece.size
        if size > _LARGE:
            return None
        told.append((str(name), type(name), found.told))
        pieces += found.pieces
        objects += found.objects
    return _Look(tuple(told), tuple(pieces), tuple(objects))


def _encoded_labels(y: object) -> EncodedLabels | None:
    """Read labels; None where there is something wrong, which fitting will name."""
    try:
        return EncodedLabels(*learn_target(y), getattr(y, "name", None))
    except DataError:
        return None


class _Memory(NamedTuple):
    """A column as it lies: see :class:`_Look`."""

    told: Hashable
    pieces: list[Any]
    objects: list[NDArray[Any]]


def _memory_of(cells: Any) -> _Memory | None:
    """Describe a column, and return where its cells lie."""
    if is_arrow_text(cells):
        return _memory_of_arrow(cells.__arrow_array__())
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    if hasattr(cells, "codes") and hasattr(cells, "categories"):
        # The categories are few: they are compared as they are.
        names = tuple((type(value), value) for value in cells.categories)
        codes = np.ascontiguousarray(cells.codes)
        told = "categories", names, bool(cells.ordered), codes.dtype.str
        return _Memory(told, [pa.py_buffer(codes)], [])
    if not isinstance(cells, np.ndarray) and not hasattr(cells, "_ndarray"):
        return None  # masks and dictionaries lie elsewhere
    array = np.asarray(cells)
    if array.dtype.kind not in "iufbUO":
        return None
    array = np.ascontiguousarray(array)
    held = [array] if array.dtype.kind == "O" else []
    return _Memory((array.dtype.str, array.shape), [pa.py_buffer(array)], held)


def _memory_of_arrow(array: Any) -> _Memory:
    told: list[Hashable] = [str(array.type)]
    pieces = []
    for chunk in getattr(array, "chunks", [array]):
        buffers = chunk.buffers()
        if not chunk.null_count:
            buffers[0] = None  # bits that say of every cell that it is there
        told.append((chunk.offset, len(chunk), tuple(b is None for b in buffers)))
        pieces += [buffer for buffer in buffers if buffer is not None]
    return _Memory(tuple(told), pieces, [])


def _equal(one: Any, other: Any) -> bool:
    return one.size == other.size and bool(one.equals(other))


def _copied(piece: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415  (its buffers have come in)

    return pa.py_buffer(piece.to_pybytes())


def _lasting(cells: NDArray[Any]) -> bool:
    """Whether the same objects are the same values for ever."""
    return set(map(type, cells.flat)) <= _CONSTANT
