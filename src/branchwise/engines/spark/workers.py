"""Worker-side functions of the Spark engine.

Each task is called with the Arrow batches of a partition and yields objects in pages.
The result of a partition depends on its rows alone, so a task may be retried after a
fault, or run twice at the same time, and counts once. Errors of the rows are returned
as results, too: a retry would not help.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from branchwise.data.arrow import pa, table_of_batches
from branchwise.data.columns import KeptColumn, downcast_codes
from branchwise.data.frames import Frame, open_table
from branchwise.engines.base import Plan, Task
from branchwise.engines.chunk import Chunk, encode_chunk, finished, joined
from branchwise.engines.level_engine import merged, received
from branchwise.engines.scan import scan
from branchwise.errors import BranchwiseError

#: The buckets of blocks of rows, and of their summaries.
ROWS, SUMMARY = 0, 1
#: The bucket of the number of rows that were distributed.
REPORT = -1
#: The most rows of a block, and the most bytes of Arrow.
BLOCK_ROWS, BLOCK_BYTES = 1 << 18, 1 << 25


class Shipped(Protocol):
    """A value that was sent by the driver."""

    @property
    def value(self) -> Any:
        """The value itself."""


@dataclass(frozen=True)
class Outcome:
    """The result of some rows, with their number; or their error."""

    n_rows: int
    result: Any = None
    failure: BranchwiseError | None = None

    def merge(self, other: Outcome) -> Outcome:
        """Add the result of further rows."""
        if self.failure is not None or other.failure is not None:
            return self if self.failure is not None else other
        n_rows = self.n_rows + other.n_rows
        if self.result is None or other.result is None:
            return Outcome(n_rows, other.result if self.result is None else self.result)
        try:
            return Outcome(n_rows, self.result.merge(other.result))
        except BranchwiseError as error:
            return Outcome(0, failure=error)


# ---- objects in pages ----------------------------------------------------------------

#: The columns: the bucket of an object, the partition that made it, the number of the
#: page there, whether it is the last page of the object, and the bytes.
PAGES = "bucket int, source int, page int, last boolean, data binary"
#: Bytes of a page.
PAGE = 1 << 15


def pages(source: int, things: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    """Split serialised objects, each with its bucket, into record batches."""
    page = 0
    for bucket, data in things:
        sliced = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
        n = len(sliced)
        columns = {
            "bucket": pa.array([bucket] * n, pa.int32()),
            "source": pa.array([source] * n, pa.int32()),
            "page": pa.array(range(page, page + n), pa.int32()),
            "last": pa.array([False] * (n - 1) + [True]),
            "data": pa.array(sliced, pa.binary()),
        }
        page += n
        yield pa.record_batch(columns)


def serialised(thing: Any) -> bytes:
    """Pickle an object of this library, for its own worker processes."""
    return pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)


def deserialised(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Deserialise objects from record batches of their pages, which are in order."""
    return opened(row for batch in batches for row in _rows(batch))


def _rows(batch: Any) -> Iterator[tuple[int, bool, bytes]]:
    columns = (batch.column(name).to_pylist() for name in ("bucket", "last", "data"))
    return zip(*columns, strict=True)


def opened(rows: Iterable[tuple[int, bool, bytes]]) -> Iterator[tuple[int, Any]]:
    """Deserialise the objects of pages that :func:`serialised` wrote."""
    waiting: list[bytes] = []
    for bucket, last, data in rows:
        waiting.append(data)
        if last:
            yield bucket, pickle.loads(b"".join(waiting))  # noqa: S301
            waiting = []


def _source() -> int:
    """Return the number of the partition, which stays the same when it is retried."""
    from pyspark import TaskContext  # noqa: PLC0415  (the worker has loaded it)

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


#: Serialised objects, each with its bucket.
Objects = Iterable[tuple[int, bytes]]


@dataclass(frozen=True)
class PartitionTask:
    """Makes objects of the Arrow batches of a partition, in pages.

    ``work`` is called with the batches and the values that were sent by the driver.
    """

    work: Callable[..., Objects]
    shipped: tuple[Shipped, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the pages of the objects of a partition."""
        values = (each.value for each in self.shipped)
        return pages(_source(), self.work(batches, *values))


# ---- blocks of rows as they were read ----------------------------------------------


def read_rows(batches: Iterable[Any], names: Sequence[str], task: Task) -> Objects:
    """Read rows: their columns as codes and numbers; their summary comes last.

    Texts are read only once, and sent as small integer codes from then on.
    """
    outcome = Outcome(0)
    for block in _blocks(batches):
        try:
            frame = _read(block.rename_columns(names))
            statistics = scan(frame, task)
        except BranchwiseError as error:
            outcome = Outcome(0, failure=error)
            break
        outcome = outcome.merge(Outcome(frame.n_rows, statistics))
        yield ROWS, serialised(frame)
    yield SUMMARY, serialised(outcome)


def _blocks(batches: Iterable[Any]) -> Iterator[Any]:
    """Join small batches into tables."""
    waiting: list[Any] = []
    n_rows = n_bytes = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        if n_rows >= BLOCK_ROWS or n_bytes >= BLOCK_BYTES:
            yield table_of_batches(waiting)
            waiting, n_rows, n_bytes = [], 0, 0
    if waiting:
        yield table_of_batches(waiting)


def _read(table: Any) -> Frame:
    frame = open_table(table)
    columns = (downcast_codes(reader()) for reader in frame.readers)
    return replace(frame, readers=tuple(map(KeptColumn, columns)))


# ---- requests to blocks --------------------------------------------------------------


def scan_again(
    batches: Iterable[Any], plan: Plan, request: Callable[[Any, Plan], Any]
) -> Objects:
    """Apply a function with a plan to blocks."""
    return _merged(
        Outcome(frame.n_rows, request(frame, plan))
        for _, frame in deserialised(batches)
    )


def encode_rows(batches: Iterable[Any], plan: Plan) -> Objects:
    """Encode blocks by a plan."""
    for _, frame in deserialised(batches):
        try:
            chunk: Chunk | BranchwiseError = encode_chunk(frame, plan)
        except BranchwiseError as error:
            chunk = error
        yield ROWS, serialised(chunk)


def run_job(batches: Iterable[Any], plan: Plan, payload: bytes) -> Objects:
    """Run a job, which was sent without its plan, on chunks."""
    job = received(payload, plan)
    return _merged(_requested(job, chunk) for _, chunk in deserialised(batches))


def _requested(job: Any, chunk: Chunk | BranchwiseError) -> Outcome:
    if isinstance(chunk, BranchwiseError):
        return Outcome(0, failure=chunk)
    return Outcome(chunk.n_rows, job(chunk))


def _merged(outcomes: Iterable[Outcome]) -> Objects:
    """Return the result of a partition; an empty one has none."""
    outcome = merged(outcomes)
    return [] if outcome is None else [(ROWS, serialised(outcome))]


def merge_results(batches: Iterable[Any]) -> Objects:
    """Merge the results of several partitions."""
    return _merged(outcome for _, outcome in deserialised(batches))


# ---- rows grouped by node ------------------------------------------------------------


def slice_rows(batches: Iterable[Any], plan: Plan, payload: bytes) -> Objects:
    """Split chunks by a payload: a route, and the bucket of each open node."""
    route, bucket_of = received(payload, plan)
    outcome = Outcome(0)
    for _, chunk in deserialised(batches):
        if isinstance(chunk, BranchwiseError):
            outcome = Outcome(0, failure=chunk)
            break
        outcome = outcome.merge(Outcome(chunk.n_rows))
        nodes = route.nodes_of(chunk)
        for bucket, rows in chunk.by_bucket(nodes, bucket_of):
            yield bucket, serialised((chunk.take(rows), nodes[rows]))
    yield REPORT, serialised(outcome)


def grow_below(batches: Iterable[Any], plan: Plan, payload: bytes) -> Objects:
    """Grow the subtrees of open nodes from their rows, bucket by bucket."""
    below = received(payload, plan)
    for bucket, things in groupby(deserialised(batches), key=itemgetter(0)):
        pieces = [thing for _, thing in things]
        if bucket == REPORT:
            yield REPORT, serialised(merged(pieces))
            continue
        rows = joined([chunk for chunk, _ in pieces])
        nodes = np.concatenate([nodes for _, nodes in pieces])
        for grown in finished(rows, nodes, below):
            yield bucket, serialised(grown)


# ---- work with all rows --------------------------------------------------------------


def shared_work(batches: Iterable[Any], payload: bytes) -> Objects:
    """Do shares of some work with all rows; batches have the numbers of the shares."""
    chosen = [at for batch in batches for at in batch.column(0).to_pylist()]
    if not chosen:
        return
    work, shares, rows = pickle.loads(payload)  # noqa: S301
    for at in chosen:
        try:
            yield at, serialised(work(rows, shares[at]))
        except BranchwiseError as error:
            yield at, serialised(error)
