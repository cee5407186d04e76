"""Encoded tables and labels for repeated fits, and their LRU cache.

The rows of a fold are taken from the codes of an :class:`EncodedTable`. The columns and
trees of a fold are cached, within a limit of memory, for the next fit of the same rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from branchwise.data.columns import Coded, Numbers, RawColumn
from branchwise.data.frames import Frame, open_table
from branchwise.data.table_schema import Value
from branchwise.errors import DataError, counted
from branchwise.threads import fork_safe_lock, in_order, n_threads

Made = TypeVar("Made")


def digest(array: NDArray[np.generic] | None) -> bytes:
    """Return a hash of 16 bytes of the contents of an array of numbers."""
    if array is None:
        return b""
    description = f"{array.dtype.str}{array.shape}".encode()
    data = np.ascontiguousarray(array)
    return blake2b(data.data, digest_size=16, key=description[:64]).digest()


#: Guards every cache; it is held briefly.
_LOCK = fork_safe_lock()


class CacheStore:
    """Storage of limited size that drops the least recently used entries first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> object | None:
        """Return the entry of a key, or None."""
        with _LOCK:
            entry = self._kept.get(key)
            if entry is None:
                return None
            self._kept.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, thing: object, n_bytes: int) -> None:
        """Store an entry, replacing that of the same key."""
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
        # Another process starts with an empty one.
        return CacheStore, (self.most_bytes,)


class LRUCache:
    """The entries of a :class:`CacheStore` that belong to the same rows."""

    def __init__(self, store: CacheStore, name: Hashable) -> None:
        self.store = store
        self.name = name

    def below(self, name: Hashable) -> LRUCache:
        """Return the cache of an object that was computed from these rows."""
        return LRUCache(self.store, (self.name, name))

    def recall(
        self,
        name: Hashable,
        make: Callable[[], Made],
        n_bytes: Callable[[Made], int],
    ) -> Made:
        """Return an entry; compute and store it if it is absent."""
        entry = self.get(name)
        if entry is not None:
            return cast("Made", entry)
        made = make()
        self.put(name, made, n_bytes(made))
        return made

    def get(self, name: Hashable) -> object | None:
        """Return an entry, or None."""
        return self.store.get((self.name, name))

    def put(self, name: Hashable, thing: object, n_bytes: int) -> None:
        """Store an entry."""
        self.store.put((self.name, name), thing, n_bytes)


#: The default size of the cache of a table: 512 MiB.
CACHE_SIZE = 1 << 29


class EncodedTable(Frame):
    """A table that has been read, ready to be fitted many times.

    It can be passed in place of a table to ``fit``, ``predict``, ``score`` and
    :func:`~branchwise.fit_tree`, to ``GridSearchCV`` and ``cross_val_score``, and gives
    the same trees. Later changes of the table do not affect it.

    Parameters
    ----------
    X : table
        A pandas, polars or pyarrow table, a numpy array, a dict of columns or a list
        of dicts.
    n_jobs : int or None, default=None
        Threads to read the table with; None is one, -1 all cores.
    cache_size : int, default=2**29
        The most bytes of codes and trees that are cached for the next fit.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.

    Examples
    --------
    >>> from branchwise import EncodedTable, ID3Classifier, datasets
    >>> from sklearn.model_selection import GridSearchCV
    >>> tennis = datasets.load("tennis")
    >>> table = EncodedTable(tennis.X)
    >>> table
    <encoded table: 14 rows, 4 columns>
    >>> search = GridSearchCV(ID3Classifier(), {"max_depth": [1, 2, 3]}, cv=2)
    >>> search.fit(table, tennis.y).best_params_
    {'max_depth': 2}
    """

    cache: LRUCache
    columns: tuple[RawColumn, ...]

    def __init__(
        self, X: object, *, n_jobs: int | None = None, cache_size: int = CACHE_SIZE
    ):
        frame = open_table(X)
        read = in_order(frame.column, range(len(frame.names)), n_threads(n_jobs))
        # The user may change the arrays later; the encoded table must not change.
        self._fill(
            frame,
            tuple(_taken(raw, slice(None)) for raw in read),
            LRUCache(CacheStore(cache_size), ()),
        )

    def _fill(
        self, frame: Frame, columns: tuple[RawColumn, ...], cache: LRUCache
    ) -> EncodedTable:
        n_rows = len(_cells(columns[0])) if columns else frame.n_rows
        super().__init__(
            frame.names, n_rows, frame.named, (), frame.merge_case, frame.na_values
        )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "cache", cache)
        return self

    def column(self, index: int) -> RawColumn:
        """Return one column.

        Parameters
        ----------
        index : int
            The position of the column.

        Returns
        -------
        RawColumn
            Its cells, as they were read.
        """
        return self.columns[index]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.n_rows, len(self.names)

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        rows, columns = counted(self.n_rows, "row"), counted(len(self.names), "column")
        return f"<encoded table: {rows}, {columns}>"

    def take(self, rows: object) -> EncodedTable:
        """Return some of the rows, by position or by a mask.

        Parameters
        ----------
        rows : sequence of int or of bool
            Positions of rows, or for each row whether to keep it.

        Returns
        -------
        EncodedTable
            The rows, in the order of the positions; they need not be encoded again.
        """
        chosen = _positions(rows, self.n_rows)

        def make() -> EncodedTable:
            picked = tuple(_taken(raw, chosen) for raw in self.columns)
            subset: EncodedTable = object.__new__(EncodedTable)
            return subset._fill(self, picked, self.cache.below(digest(chosen)))

        return self.cache.recall(("rows", digest(chosen)), make, n_bytes)

    @overload
    def __getitem__(self, rows: tuple[Any, ...]) -> EncodedTable: ...
    @overload
    def __getitem__(self, rows: object) -> EncodedTable: ...
    def __getitem__(self, rows: object) -> EncodedTable:
        # scikit-learn writes X[rows, ...] for what has a shape.
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        if isinstance(rows, slice):
            rows = np.arange(self.n_rows)[rows]
        return self.take(rows)

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _cells(raw: RawColumn) -> NDArray[Any]:
    return raw.values if isinstance(raw, Numbers) else raw.codes


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """Labels that have been read: the classes in sorted order, and a code a row."""

    classes: tuple[Value, ...]
    codes: NDArray[np.intp]
    name: Hashable = None

    def __post_init__(self) -> None:
        self.codes.flags.writeable = False

    def __len__(self) -> int:
        return len(self.codes)


def n_bytes(read: EncodedTable | EncodedLabels) -> int:
    """Return the memory that the cells of a table, or labels, take."""
    if isinstance(read, EncodedLabels):
        return read.codes.nbytes + 1024
    return sum(_cells(raw).nbytes for raw in read.columns) + 1024


def _taken(raw: RawColumn, rows: Any) -> RawColumn:
    """Copy the cells of some rows."""
    if isinstance(raw, Numbers):
        return Numbers(_read_only(raw.values[rows]), raw.number_format)
    return Coded(_read_only(raw.codes[rows]), raw.values, raw.declared, raw.ordered)


def _read_only(cells: NDArray[Any]) -> NDArray[Any]:
    cells = np.array(cells)
    cells.flags.writeable = False
    return cells


def _positions(rows: object, n_rows: int) -> NDArray[np.intp]:
    """Convert positions or a mask to positions."""
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.shape == (n_rows,):
        return np.flatnonzero(chosen)
    if chosen.size == 0 and chosen.ndim == 1:
        return np.empty(0, dtype=np.intp)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise DataError(
            "Rows of an EncodedTable are taken by a list of positions, a mask of "
            f"length {n_rows:,} or a slice. Got {type(rows).__name__} of shape "
            f"{chosen.shape}; for one row give a list of one position."
        )
    if chosen.min() < -n_rows or chosen.max() >= n_rows:
        unseen = chosen[(chosen < -n_rows) | (chosen >= n_rows)][0]
        raise DataError(
            f"Row {unseen} is not in an EncodedTable of {n_rows:,} rows, numbered "
            "from 0."
        )
    positions: NDArray[np.intp] = chosen.astype(np.intp) % n_rows
    return positions
