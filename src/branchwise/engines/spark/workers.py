"""Worker-side functions of the Spark engine.

Each class is called with the Arrow batches of a partition and yields pages. The result
of a partition depends on its rows alone, so a task may be retried after a fault, or
run twice at the same time, and counts once. Errors of the rows are returned as
results, too: a retry would not help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from branchwise.data.arrays import Ints, run_starts
from branchwise.data.arrow import table_of_batches
from branchwise.data.columns import KeptColumn, downcast_codes
from branchwise.data.frames import Frame, open_table
from branchwise.engines.fit_plan import Plan, Task
from branchwise.engines.level_engine import merged
from branchwise.engines.remote import deserialised_pages as deserialised
from branchwise.engines.remote import pages, received, serialised
from branchwise.engines.scan import Chunk, encode_chunk, finished, joined, scan
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
        """The thing."""


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


def _source() -> int:
    """Return the number of the partition, which stays the same when it is retried."""
    from pyspark import TaskContext  # noqa: PLC0415  (the worker has loaded it)

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


# ---- blocks of rows as they were read ----------------------------------------------


@dataclass(frozen=True)
class Pack:
    """Reads rows: their columns as codes and numbers, and their summary.

    Texts are read only once, and sent as small integer codes from then on.
    """

    names: tuple[str, ...]
    task: Task

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Serialise the rows of a partition; their summary comes last."""
        return pages(_source(), self._things(batches))

    def _things(self, batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        outcome = Outcome(0)
        for block in _blocks(batches):
            try:
                frame = _read(block.rename_columns(self.names))
                statistics = scan(frame, self.task)
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


@dataclass(frozen=True)
class RequestByPlan:
    """Applies a function with a plan to blocks."""

    plan: Shipped
    request: Callable[[Any, Plan], Any]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return the results of a partition."""
        plan: Plan = self.plan.value
        found = (
            Outcome(frame.n_rows, self.request(frame, plan))
            for _, frame in deserialised(batches)
        )
        return _returned(merged(found))


@dataclass(frozen=True)
class Encode:
    """Encode blocks by a plan."""

    plan: Shipped

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Encode the rows of a partition."""
        return pages(_source(), self._chunks(batches))

    def _chunks(self, batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        for _, frame in deserialised(batches):
            try:
                chunk: Chunk | BranchwiseError = encode_chunk(frame, self.plan.value)
            except BranchwiseError as error:
                chunk = error
            yield ROWS, serialised(chunk)


@dataclass(frozen=True)
class Request:
    """Runs a job on chunks."""

    plan: Shipped
    job: Shipped

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return the results of a partition."""
        job = received(self.job.value, self.plan.value)
        return _returned(
            merged(_requested(job, chunk) for _, chunk in deserialised(batches))
        )


def _requested(job: Any, chunk: Chunk | BranchwiseError) -> Outcome:
    if isinstance(chunk, BranchwiseError):
        return Outcome(0, failure=chunk)
    return Outcome(chunk.n_rows, job(chunk))


def _returned(outcome: Outcome | None) -> Iterator[Any]:
    """Yield the result of a partition; an empty one has none."""
    things = [] if outcome is None else [(ROWS, serialised(outcome))]
    return pages(_source(), things)


@dataclass(frozen=True)
class Merge:
    """Merges the results of several partitions."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Merge the results of one task."""
        return _returned(merged(outcome for _, outcome in deserialised(batches)))


# ---- rows grouped by node ------------------------------------------------------------


@dataclass(frozen=True)
class SliceByBatch:
    """Splits chunks by the buckets of the open nodes of their rows."""

    plan: Shipped
    route_and_bucket: Shipped

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Split the rows of a partition."""
        return pages(_source(), self._pieces(batches))

    def _pieces(self, batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        route, bucket_of = received(self.route_and_bucket.value, self.plan.value)
        bucket_of = np.append(bucket_of, -1)  # rows of no open node
        outcome = Outcome(0)
        for _, chunk in deserialised(batches):
            if isinstance(chunk, BranchwiseError):
                outcome = Outcome(0, failure=chunk)
                break
            outcome = outcome.merge(Outcome(chunk.n_rows))
            nodes = route.nodes_of(chunk)
            position = bucket_of[nodes]
            if chunk.weights is not None:
                position[chunk.weights == 0] = -1
            for bucket, rows in _together(position):
                yield bucket, serialised((chunk.take(rows), nodes[rows]))
        yield REPORT, serialised(outcome)


def _together(position: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield the rows of every bucket; -1 is none."""
    order = np.argsort(position, kind="stable")
    order = order[np.searchsorted(position[order], 0) :]
    starts = run_starts(position[order])
    if len(starts):
        yield from zip(
            position[order[starts]].tolist(), np.split(order, starts[1:]), strict=True
        )


@dataclass(frozen=True)
class GrowBelow:
    """Grows the subtrees of open nodes from their rows, bucket by bucket."""

    plan: Shipped
    below: Shipped

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Grow the subtrees of the nodes of some buckets."""
        return pages(_source(), self._trees(batches))

    def _trees(self, batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        below = received(self.below.value, self.plan.value)
        for bucket, things in groupby(deserialised(batches), key=itemgetter(0)):
            pieces = [thing for _, thing in things]
            if bucket == REPORT:
                yield REPORT, serialised(merged(pieces))
                continue
            rows = joined([chunk for chunk, _ in pieces])
            nodes = np.concatenate([nodes for _, nodes in pieces])
            for grown in finished(rows, nodes, below):
                yield bucket, serialised(grown)
