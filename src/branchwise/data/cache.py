"""Cache of encoded tables and labels, found by fingerprints of their memory.

``GridSearchCV`` takes the same rows from the user's table for each candidate and passes
them as a new table each time, with new labels. A table whose fingerprint is seen for
the second time is encoded and stored with a copy of its memory; the next time, the two
are compared byte by byte. So a cached table is never used for a different one, and a
single fit only costs the reading of a few bytes.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from branchwise.data.encoded_table import (
    CacheStore,
    EncodedLabels,
    EncodedTable,
    LRUCache,
    n_bytes,
)
from branchwise.data.series import column_arrays, is_arrow_text, is_of_pandas
from branchwise.data.target import learn_target
from branchwise.errors import DataError, ParameterError
from branchwise.threads import fork_safe_lock

#: The environment variable that switches the cache of a process off: "on" or "off".
VARIABLE = "BRANCHWISE_CACHE"
#: The most bytes of all cached tables, with what is computed from them.
CACHE_SIZE = 1 << 28
#: Larger tables are not cached: encoding is a small share of their fitting time.
_LARGE = 1 << 26
#: Tables with fewer rows are not cached: encoding them is faster than a fingerprint.
_FEW = 64
#: How many fingerprints are remembered.
_FINGERPRINTS = 1024
_SAMPLES = 256
_CONSTANT = {str, int, float, bool, type(None)}
_LOCK = fork_safe_lock()


@dataclass(frozen=True)
class _Fingerprint:
    """Memory of a table or a column: a description, buffers, cells that are objects."""

    description: Hashable
    buffers: tuple[Any, ...]
    objects: tuple[NDArray[Any], ...]

    def sampled(self) -> Hashable:
        """Return a hash of sampled bytes, which differs for nearly all other tables."""
        checks = []
        for buffer in self.buffers:
            cells = np.frombuffer(buffer, np.uint8)
            checks.append(crc32(cells[:: max(1, len(cells) // _SAMPLES)].tobytes()))
        return self.description, tuple(checks)


@dataclass(frozen=True)
class _Known:
    """A cached object, and the memory that it was read from."""

    buffers: tuple[Any, ...]
    objects: tuple[NDArray[Any], ...]
    read: EncodedTable | EncodedLabels

    def is_(self, fingerprint: _Fingerprint) -> bool:
        """Whether a fingerprint with the same description has the same cells."""
        return all(map(_equal, self.buffers, fingerprint.buffers))


class Fingerprints:
    """Cache of encoded tables and labels; with a size of 0 it is off."""

    def __init__(self, cache_size: int = CACHE_SIZE) -> None:
        self.store = CacheStore(cache_size)
        self._seen: OrderedDict[Hashable, None] = OrderedDict()

    def _is_on(self) -> bool:
        wanted = os.environ.get(VARIABLE, "on")
        if wanted not in ("on", "off"):
            raise ParameterError(f"{VARIABLE} must be 'on' or 'off'. Got {wanted!r}.")
        return wanted == "on" and self.store.most_bytes > 0

    def known_table(self, X: object) -> object:
        """Return the encoded table if X was passed before, else X."""
        return self._known(X, 2, self._encoded)

    def known_labels(self, y: object) -> object:
        """Return the encoded labels if y was passed before, else y."""
        return self._known(y, 1, _encoded_labels)

    def _known(
        self,
        given: object,
        n_dimensions: int,
        read: Callable[[object], EncodedTable | EncodedLabels | None],
    ) -> object:
        """Return what was read from the same memory before, else what is given."""
        fingerprint = _fingerprint(given, n_dimensions) if self._is_on() else None
        if fingerprint is None:
            return given
        key = fingerprint.sampled()
        known = self.store.get(key)
        if isinstance(known, _Known) and known.is_(fingerprint):
            return known.read
        if not self._again(key) or not all(map(_lasting, fingerprint.objects)):
            return given
        kept = read(given)
        if kept is None:
            return given
        # The copies keep the objects alive, so that their addresses are not reused.
        objects = tuple(cells.copy() for cells in fingerprint.objects)
        entry = _Known(tuple(map(_copied, fingerprint.buffers)), objects, kept)
        size = n_bytes(kept) + sum(buffer.size for buffer in fingerprint.buffers)
        self.store.put(key, entry, size)
        return kept

    def _encoded(self, X: object) -> EncodedTable:
        table = EncodedTable(X)
        object.__setattr__(table, "cache", LRUCache(self.store, object()))
        return table

    def _again(self, key: Hashable) -> bool:
        with _LOCK:
            again = key in self._seen
            self._seen[key] = None
            self._seen.move_to_end(key)
            if len(self._seen) > _FINGERPRINTS:
                self._seen.popitem(last=False)
            return again


def _fingerprint(given: Any, n_dimensions: int) -> _Fingerprint | None:
    """Return the fingerprint of a table or of labels, which have one dimension; None
    for unsupported types and few rows.
    """  # noqa: D205
    is_table = n_dimensions == 2
    # An attribute of the type: that of the frame would build a series of dtypes.
    attribute = "dtypes" if is_table else "array"
    is_pandas = is_of_pandas(given) and hasattr(type(given), attribute)
    if not is_pandas and type(given) is not np.ndarray:
        return None
    if given.ndim != n_dimensions or len(given) < _FEW:
        return None
    if is_table and is_pandas:
        return _fingerprint_of("frame", given.columns.tolist(), column_arrays(given))
    if is_table:
        return _fingerprint_of("array", ["cells"], [given])
    # Trees keep the name of a series.
    name, cells = (given.name, given.array) if is_pandas else (None, given)
    return _fingerprint_of("labels", [name], [cells])


def _fingerprint_of(
    kind: str, names: Iterable[object], columns: Iterable[Any]
) -> _Fingerprint | None:
    """Return the fingerprint of columns; None if one is unsupported or too large."""
    description: list[Hashable] = [kind]
    buffers: list[Any] = []
    objects: list[NDArray[Any]] = []
    size = 0
    for name, cells in zip(names, columns, strict=True):
        memory = _memory_of(cells)
        if memory is None:
            return None
        size += sum(buffer.size for buffer in memory.buffers)
        if size > _LARGE:
            return None
        description.append((str(name), type(name), memory.description))
        buffers += memory.buffers
        objects += memory.objects
    return _Fingerprint(tuple(description), tuple(buffers), tuple(objects))


def _encoded_labels(y: object) -> EncodedLabels | None:
    """Encode labels; None if they are invalid: ``fit`` raises the error."""
    try:
        return EncodedLabels(*learn_target(y), getattr(y, "name", None))
    except DataError:
        return None


def _memory_of(cells: Any) -> _Fingerprint | None:
    """Return the description and the buffers of a column."""
    if is_arrow_text(cells):
        return _memory_of_arrow(cells.__arrow_array__())
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    if hasattr(cells, "codes") and hasattr(cells, "categories"):
        # The categories are few: they are compared as they are.
        names = tuple((type(value), value) for value in cells.categories)
        codes = np.ascontiguousarray(cells.codes)
        description = "categories", names, bool(cells.ordered), codes.dtype.str
        return _Fingerprint(description, (pa.py_buffer(codes),), ())
    if not isinstance(cells, np.ndarray) and not hasattr(cells, "_ndarray"):
        return None  # masks and dictionaries are stored in further buffers
    array = np.asarray(cells)
    if array.dtype.kind not in "iufbUO":
        return None
    array = np.ascontiguousarray(array)
    held = (array,) if array.dtype.kind == "O" else ()
    return _Fingerprint((array.dtype.str, array.shape), (pa.py_buffer(array),), held)


def _memory_of_arrow(array: Any) -> _Fingerprint:
    description: list[Hashable] = [str(array.type)]
    memory = []
    for chunk in getattr(array, "chunks", [array]):
        buffers = chunk.buffers()
        if not chunk.null_count:
            buffers[0] = None  # the validity bits of an array without missing values
        absent = tuple(buffer is None for buffer in buffers)
        description.append((chunk.offset, len(chunk), absent))
        memory += [buffer for buffer in buffers if buffer is not None]
    return _Fingerprint(tuple(description), tuple(memory), ())


def _equal(one: Any, other: Any) -> bool:
    return one.size == other.size and bool(one.equals(other))


def _copied(buffer: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    return pa.py_buffer(buffer.to_pybytes())


def _lasting(cells: NDArray[Any]) -> bool:
    """Whether the objects are immutable: the same object is always the same value."""
    return set(map(type, cells.flat)) <= _CONSTANT
