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
from collections.abc import Callable, Hashable
from functools import cache
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
from branchwise.data.series import is_arrow_text, is_of_pandas, stored_arrays
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
#: Of each buffer so many bytes are sampled at least, and one of so many.
_SAMPLES, _STEP = 256, 125
_CONSTANT = {str, int, float, bool, type(None)}
_LOCK = fork_safe_lock()


class _Fingerprint:
    """The bytes of arrays, or a copy of them, as the extension has them."""

    def __init__(self, arrays: list[Any]) -> None:
        self._layout: list[int] = []
        self._buffers: list[Any] = []
        for array in arrays:
            if isinstance(array, np.ndarray):
                self._add_buffer(array)
            else:
                self._add_chunks(array)

    @property
    def n_bytes(self) -> int:
        """The size of all buffers."""
        return sum(buffer.size for buffer in self._buffers)

    def sampled(self) -> Hashable:
        """Return a hash of the layout and of some bytes of every buffer."""
        checks = [*self._layout]
        for buffer in self._buffers:
            cells = np.frombuffer(buffer, np.uint8)
            step = max(1, min(len(cells) // _SAMPLES, _STEP))
            checks.append(crc32(cells[::step].tobytes()))
        return tuple(checks)

    def copied(self) -> _Fingerprint:
        """Return a copy of the bytes, which does not change."""
        copy = _Fingerprint([])
        copy._layout = [*self._layout]
        copy._buffers = [_buffer(buffer.to_pybytes()) for buffer in self._buffers]
        return copy

    def equals(self, other: _Fingerprint) -> bool:
        """Whether all bytes are the same."""
        return self._layout == other._layout and self._buffers == other._buffers

    def _add_buffer(self, array: Any) -> None:
        buffer = _buffer(array)
        self._layout.append(buffer.size)
        self._buffers.append(buffer)

    def _add_chunks(self, array: Any) -> None:
        self._layout.append(array.num_chunks)
        for chunk in array.chunks:
            self._layout += chunk.offset, len(chunk)
            # Nothing depends on the first buffer of chunks without missing values.
            counts = chunk.null_count > 0
            for buffer in chunk.buffers():
                if counts and buffer is not None:
                    self._add_buffer(buffer)
                else:
                    self._layout.append(-1)
                counts = True


def _buffer(array: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    return pa.py_buffer(array)


class _Known(NamedTuple):
    """A cached object, and a copy of the memory that it was read from."""

    fingerprint: Any
    objects: tuple[NDArray[Any], ...]
    read: EncodedTable | EncodedLabels


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
        stored = _stored(given, n_dimensions) if self._is_on() else None
        if stored is None:
            return given
        description, arrays = stored
        fingerprint = (
            extension().Fingerprint(arrays) if available() else _Fingerprint(arrays)
        )
        key = (*description, fingerprint.sampled())
        known = self.store.get(key)
        if isinstance(known, _Known) and known.fingerprint.equals(fingerprint):
            return known.read
        if fingerprint.n_bytes > _LARGE or not self._again(key):
            return given
        objects = [cells for cells in arrays if getattr(cells, "dtype", None) == "O"]
        if not all(map(_lasting, objects)):
            return given
        kept = read(given)
        if kept is None:
            return given
        # The copies keep the objects alive, so that their addresses are not reused.
        alive = tuple(cells.copy() for cells in objects)
        entry = _Known(fingerprint.copied(), alive, kept)
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


def _stored(given: Any, n_dimensions: int) -> tuple[list[Hashable], list[Any]] | None:
    """Return a description and the arrays of a table or of labels, which have one
    dimension; None for unsupported types and few rows.
    """  # noqa: D205
    is_table = n_dimensions == 2
    # An attribute of the type: that of the frame would build a series of dtypes.
    attribute = "dtypes" if is_table else "array"
    is_pandas = is_of_pandas(given) and hasattr(type(given), attribute)
    if not is_pandas and type(given) is not np.ndarray:
        return None
    if given.ndim != n_dimensions or len(given) < _FEW:
        return None
    description: list[Hashable]
    if is_table and is_pandas:
        description = ["frame", _names_of(given.columns)]
        found = stored_arrays(given)
    elif is_table:
        description, found = ["array"], [((), given)]
    else:
        # Trees keep the name of a series.
        name, cells = (given.name, given.array) if is_pandas else (None, given)
        description, found = ["labels"], [(_typed(name), cells)]
    arrays: list[Any] = []
    for position, cells in found:
        kind, array = _plain(cells)
        if kind is None:
            return None
        description += position, kind
        arrays.append(array)
    return description, arrays


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


def _plain(cells: Any) -> tuple[Hashable | None, Any]:
    """Return what the bytes of an array mean, and those bytes as an array of NumPy or
    Arrow; None if the type is unsupported.
    """  # noqa: D205
    if type(cells) is np.ndarray:
        return _plain_array(cells)
    if is_arrow_text(cells):
        texts = cells.__arrow_array__()
        return _text_types().get(texts.type.id), texts
    if hasattr(cells, "codes") and hasattr(cells, "categories"):
        # The categories are few: they are compared as they are.
        names = tuple((type(value), value) for value in cells.categories)
        kind, codes = _plain_array(cells.codes)
        return ("categories", names, bool(cells.ordered), kind), codes
    if isinstance(cells, np.ndarray) or hasattr(cells, "_ndarray"):
        return _plain_array(np.asarray(cells))
    return None, None  # masks and dictionaries are stored in further buffers


@cache
def _text_types() -> dict[int, str]:
    """Return the types of Arrow whose buffers are all that there is, by number."""
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    return {text.id: str(text) for text in (pa.string(), pa.large_string())}


def _plain_array(array: NDArray[Any]) -> tuple[Hashable | None, Any]:
    dtype, shape = array.dtype, array.shape
    if dtype.kind not in "iufbUO":
        return None, None
    if array.flags.c_contiguous:
        return (dtype.str, shape), array
    # Where columns are side by side, this is no copy.
    return (dtype.str, shape, "by columns"), np.ascontiguousarray(array.T)


def _lasting(cells: NDArray[Any]) -> bool:
    """Whether the objects are immutable: the same object is always the same value."""
    return set(map(type, cells.flat)) <= _CONSTANT
