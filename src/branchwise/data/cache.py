"""Cache of encoded tables and labels, found by fingerprints of their memory.

``GridSearchCV`` takes the same rows from the user's table for each candidate and passes
them as a new table each time, with new labels. A table whose fingerprint is seen for
the second time is encoded and stored with a copy of its memory; the next time, the two
are compared byte by byte. So a cached table is never used for a different one, and a
single fit only costs the reading of a few bytes.
"""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple
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
from branchwise.native import available, extension
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


class _Fingerprint:
    """Memory of a table or a column: a description, buffers, cells that are objects."""

    __slots__ = ("buffers", "description", "objects")

    def __init__(self, *description: Hashable) -> None:
        self.description: list[Hashable] = [*description]
        self.buffers: list[Any] = []
        self.objects: list[NDArray[Any]] = []

    @property
    def n_bytes(self) -> int:
        """The size of the buffers."""
        return sum(buffer.size for buffer in self.buffers)

    def sampled(self) -> Hashable:
        """Return a hash of sampled bytes, which differs for nearly all other tables."""
        return (*self.description, _sampled(self.buffers))


class _Known(NamedTuple):
    """A cached object, and the memory that it was read from."""

    buffers: list[Any]
    objects: tuple[NDArray[Any], ...]
    read: EncodedTable | EncodedLabels

    def is_(self, fingerprint: _Fingerprint) -> bool:
        """Whether a fingerprint with the same description has the same cells."""
        if available():
            return bool(extension().same_bytes(self.buffers, fingerprint.buffers))
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
        entry = _Known([*map(_copied, fingerprint.buffers)], objects, kept)
        self.store.put(key, entry, n_bytes(kept) + fingerprint.n_bytes)
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
        names = _names_of(given.columns)
        return _fingerprint_of("frame", names, column_arrays(given))
    if is_table:
        return _fingerprint_of("array", None, [given])
    # Trees keep the name of a series.
    name, cells = (given.name, given.array) if is_pandas else (None, given)
    return _fingerprint_of("labels", _typed(name), [cells])


def _fingerprint_of(
    kind: str, names: Hashable, columns: Iterable[Any]
) -> _Fingerprint | None:
    """Return the fingerprint of columns; None if one is unsupported or too large."""
    fingerprint = _Fingerprint(kind, names)
    for cells in columns:
        if not _add_memory(cells, fingerprint):
            return None
    return None if fingerprint.n_bytes > _LARGE else fingerprint


def _typed(name: object) -> Hashable:
    return str(name), type(name)


#: The names of columns of pandas that were read last. Indices do not change, and
#: tables of rows of the same table share theirs.
_NAMES: deque[tuple[Any, Hashable]] = deque(maxlen=8)


def _names_of(columns: Any) -> Hashable:
    """Return the names of the columns of a pandas DataFrame, and their types."""
    for known, names in tuple(_NAMES):
        if columns.is_(known):
            return names
    read = tuple(map(_typed, columns.tolist()))
    _NAMES.append((columns, read))
    return read


def _encoded_labels(y: object) -> EncodedLabels | None:
    """Encode labels; None if they are invalid: ``fit`` raises the error."""
    try:
        return EncodedLabels(*learn_target(y), getattr(y, "name", None))
    except DataError:
        return None


def _add_memory(cells: Any, fingerprint: _Fingerprint) -> bool:
    """Add the description and the buffers of a column; False if it is unsupported."""
    if is_arrow_text(cells):
        _add_arrow(cells.__arrow_array__(), fingerprint)
        return True
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    description, buffers = fingerprint.description, fingerprint.buffers
    if hasattr(cells, "codes") and hasattr(cells, "categories"):
        # The categories are few: they are compared as they are.
        names = tuple((type(value), value) for value in cells.categories)
        codes = np.ascontiguousarray(cells.codes)
        description += "categories", names, bool(cells.ordered), codes.dtype.str
        buffers.append(pa.py_buffer(codes))
        return True
    if not isinstance(cells, np.ndarray) and not hasattr(cells, "_ndarray"):
        return False  # masks and dictionaries are stored in further buffers
    array = np.asarray(cells)
    if array.dtype.kind not in "iufbUO":
        return False
    array = np.ascontiguousarray(array)
    description += array.dtype.str, array.shape
    buffers.append(pa.py_buffer(array))
    if array.dtype.kind == "O":
        fingerprint.objects.append(array)
    return True


def _add_arrow(array: Any, fingerprint: _Fingerprint) -> None:
    description = fingerprint.description
    description.append(str(array.type))
    for chunk in getattr(array, "chunks", [array]):
        validity, *others = chunk.buffers()
        if not chunk.null_count:
            validity = None  # the bits of an array without missing values
        description += chunk.offset, len(chunk)
        for buffer in (validity, *others):
            if buffer is None:
                description.append(len(fingerprint.buffers))  # there is none here
            else:
                fingerprint.buffers.append(buffer)


def _sampled(buffers: list[Any]) -> Hashable:
    """Return a hash of some bytes of every buffer."""
    if available():
        return int(extension().sampled_hash(buffers))
    checks = []
    for buffer in buffers:
        cells = np.frombuffer(buffer, np.uint8)
        checks.append(crc32(cells[:: max(1, len(cells) // _SAMPLES)].tobytes()))
    return tuple(checks)


def _equal(one: Any, other: Any) -> bool:
    return one.size == other.size and bool(one.equals(other))


def _copied(buffer: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    return pa.py_buffer(buffer.to_pybytes())


def _lasting(cells: NDArray[Any]) -> bool:
    """Whether the objects are immutable: the same object is always the same value."""
    return set(map(type, cells.flat)) <= _CONSTANT
