"""Random samples of the rows of files that are larger than memory.

Each row has a random key: a hash of its contents and of its number among the rows of
equal contents. What is drawn by keys depends neither on the order of the rows nor on
the chunks they are read in. The rows of every sample are collected in a temporary file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np

from branchwise.data.arrays import Ints, run_starts
from branchwise.data.table_schema import Columns
from branchwise.engines.base import Plan
from branchwise.engines.chunk import Chunk, cells_of, joined, row_hashes, training_of
from branchwise.engines.chunked import BatchStore, ChunkedTable, serialised
from branchwise.engines.memory import Training
from branchwise.grow.draws import Keys, draws

#: Hashes of rows that are in memory at the same time.
_MOST_HASHES = 1 << 24
#: Rows of a sample that are written together.
_ROWS_AT_ONCE = 1 << 13
#: Samples that are collected in one pass.
MOST_SAMPLES = 200

#: Returns how often rows are in a sample, by their keys and the number of the sample.
Draw = Callable[[Keys, int], Ints]


@dataclass
class _Collected:
    """The rows of a sample, and their keys, in a temporary file."""

    store: BatchStore
    waiting: list[tuple[Chunk, Keys]] = field(default_factory=list)

    def add(self, chunk: Chunk, keys: Keys, times: Ints) -> None:
        """Add the rows of a chunk that are in the sample."""
        rows = np.repeat(np.arange(len(times)), times)
        self.waiting.append((chunk.take(rows), keys[rows]))
        if sum(len(keys) for _, keys in self.waiting) >= _ROWS_AT_ONCE:
            self.write()

    def write(self) -> None:
        """Write the rows that are in memory."""
        if not self.waiting:
            return
        chunk = joined([chunk for chunk, _ in self.waiting])
        keys = np.concatenate([keys for _, keys in self.waiting])
        self.waiting = []
        if len(keys):
            self.store.append([keys, *serialised(chunk)])


class RowSampler:
    """Draws samples of the rows of files."""

    def __init__(self, table: ChunkedTable, plan: Plan) -> None:
        table.use(plan)
        self._table = table
        n_passes = max(1, -(-plan.n_rows // _MOST_HASHES))
        self._bits = (n_passes - 1).bit_length()

    def collected(
        self, numbers: Sequence[int], draw: Draw
    ) -> dict[int, Callable[[], tuple[Chunk, Keys]]]:
        """Collect samples; return functions that read them, each of which once."""
        found = {number: _Collected(self._table.new_store()) for number in numbers}
        for chunk, keys in self._keyed():
            for number, sample in found.items():
                times = draw(keys, number)
                sample.add(chunk, keys, times)
        for sample in found.values():
            sample.write()
        return {
            number: lambda store=sample.store: self._read(store)  # type: ignore[misc]
            for number, sample in found.items()
        }

    def _read(self, store: BatchStore) -> tuple[Chunk, Keys]:
        batches = list(store.batches())
        store.remove()
        if not batches:
            return self._nothing(), np.empty(0, dtype=np.uint64)
        rows = joined([self._table.deserialised(batch[1:]) for batch in batches])
        return rows, np.concatenate([batch[0] for batch in batches]).astype(np.uint64)

    def _nothing(self) -> Chunk:
        with closing(self._table.chunks()) as chunks:
            return next(chunks).take(np.empty(0, dtype=np.intp))

    def _keyed(self) -> Iterator[tuple[Chunk, Keys]]:
        """Yield the rows that count, with their keys.

        Numbers of equal rows need the hashes of all, or of all that begin with the same
        bits, which take a pass each.
        """
        for group in range(1 << self._bits):
            hashes = [own for _, own in self._hashed(group)]
            keys = _keys_of(np.concatenate(hashes))
            begin = 0
            for chunk, own in self._hashed(group):
                yield chunk, keys[begin : begin + len(own)]
                begin += len(own)

    def _hashed(self, group: int) -> Iterator[tuple[Chunk, Keys]]:
        """Yield the rows that count and whose hashes begin with some bits."""
        with closing(self._table.chunks()) as chunks:
            for chunk in chunks:
                hashes = np.concatenate([np.empty(0, np.uint64), *row_hashes(chunk)])
                chosen = np.ones(chunk.n_rows, dtype=bool)
                if chunk.weights is not None:
                    chosen = chunk.weights > 0
                if self._bits:
                    chosen &= hashes >> np.uint64(64 - self._bits) == np.uint64(group)
                if chosen.all():
                    yield chunk, hashes
                else:
                    yield chunk.take(np.flatnonzero(chosen)), hashes[chosen]


def _keys_of(hashes: Keys) -> Keys:
    """Return a key for each row: of its hash, and its number among equal ones."""
    order = np.argsort(hashes)
    starts = run_starts(hashes[order])
    length = np.diff(np.append(starts, len(order)))
    number = np.empty(len(order), dtype=np.intp)
    number[order] = np.arange(len(order)) - np.repeat(starts, length)
    return draws(hashes, number)


def sampled_rows(chunk: Chunk, plan: Plan) -> tuple[Training, Training]:
    """Return the rows of a sample in numbers, and with bins in place of numbers.

    A number of a bin stands for all of them: its upper end.
    """
    binned = cells_of(chunk, plan)
    numbers = list(binned.data)
    for index, edges in plan.edges.items():
        above = np.nextafter(edges[-1], np.inf) if len(edges) else 0.0
        ends = np.concatenate([edges, [above, np.nan]])
        numbers[index] = ends[chunk.codes[index]]
    data = Columns(chunk.n_rows, tuple(numbers))
    unit = plan.grid.unit
    rows = training_of(chunk, plan, data, unit)
    return rows, replace(rows, data=binned)
