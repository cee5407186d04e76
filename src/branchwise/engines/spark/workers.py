"""What Spark's workers do with the rows of a partition.

Each class is called with the Arrow batches of a partition and yields pages. What a
partition answers depends on its rows alone, so it may be asked again after a fault,
or twice at a time, and counts once. What is wrong with the rows is an answer, too:
asking again would not help.
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
from branchwise.data.columns import KeptColumn, narrow_codes
from branchwise.data.frames import Frame, open_table
from branchwise.engines.fit_plan import Plan, Task
from branchwise.engines.level_engine import merged
from branchwise.engines.remote import packed, pages, received
from branchwise.engines.remote import pages_unpacked as unpacked
from branchwise.engines.scan import Part, encode_part, finished, joined, look
from branchwise.errors import BranchwiseError

#: The buckets of blocks of rows, and of what they show.
ROWS, FACTS = 0, 1
#: The bucket of how many rows were cut up.
REPORT = -1
#: Rows are taken together up to so many, or so many bytes of Arrow.
BLOCK_ROWS, BLOCK_BYTES = 1 << 18, 1 << 25


class Shipped(Protocol):
    """Something that has come from the driver."""

    @property
    def value(self) -> Any:
        """The thing."""


@dataclass(frozen=True)
class Outcome:
    """What was found in some rows, and in how many; or what is wrong with them."""

    n_rows: int
    answer: Any = None
    failure: BranchwiseError | None = None

    def merge(self, other: Outcome) -> Outcome:
        """Add what was found in further rows."""
        if self.failure is not None or other.failure is not None:
            return self if self.failure is not None else other
        n_rows = self.n_rows + other.n_rows
        if self.answer is None or other.answer is None:
            return Outcome(n_rows, other.answer if self.answer is None else self.answer)
        try:
            return Outcome(n_rows, self.answer.merge(other.answer))
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
    """Read rows: their columns as codes and numbers, and what they show.

    Texts are read once in all, and travel as narrow codes from then on.
    """

    names: tuple[str, ...]
    task: Task

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Pack the rows of a partition; what they show comes last."""
        return pages(_source(), self._things(batches))

    def _things(self, batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        outcome = Outcome(0)
        for block in _blocks(batches):
            try:
                frame = _read(block.rename_columns(self.names))
                facts = look(frame, self.task)
            except BranchwiseError as error:
                outcome = Outcome(0, failure=error)
                break
            outcome = outcome.merge(Outcome(frame.n_rows, facts))
            yield ROWS, packed(frame)
        yield FACTS, packed(outcome)


def _blocks(batches: Iterable[Any]) -> Iterator[Any]:
    """Take batches together, which are small, into tables."""
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
    columns = (narrow_codes(reader()) for reader in frame.readers)
    return replace(frame, readers=tuple(map(KeptColumn, columns)))


# ---- what is asked of blocks -------------------------------------------------------


@dataclass(frozen=True)
class AskByPlan:
    """Ask blocks a question by a plan."""

    plan: Shipped
    question: Callable[[Any, Plan], Any]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Ask the rows of a partition."""
        plan: Plan = self.plan.value
        found = (
            Outcome(frame.n_rows, self.question(frame, plan))
            for _, frame in unpacked(batches)
        )
        return _answered(merged(found))


@dataclass(frozen=True)
class Encode:
    """Encode blocks by a plan."""

    plan: Shipped

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Encode the rows of a partition."""
        return pages(_source(), self._parts(batches))

    def _parts(self, batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        for _, frame in unpacked(batches):
            try:
                part: Part | BranchwiseError = encode_part(frame, self.plan.value)
            except BranchwiseError as error:
                part = error
            yield ROWS, packed(part)


@dataclass(frozen=True)
class Ask:
    """Ask parts what a job wants to know."""

    plan: Shipped
    job: Shipped

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Ask the rows of a partition."""
        job = received(self.job.value, self.plan.value)
        return _answered(merged(_asked(job, part) for _, part in unpacked(batches)))


def _asked(job: Any, part: Part | BranchwiseError) -> Outcome:
    if isinstance(part, BranchwiseError):
        return Outcome(0, failure=part)
    return Outcome(part.n_rows, job(part))


def _answered(outcome: Outcome | None) -> Iterator[Any]:
    """Send what was found in a partition; an empty one has nothing to say."""
    things = [] if outcome is None else [(ROWS, packed(outcome))]
    return pages(_source(), things)


@dataclass(frozen=True)
class Merge:
    """Put the answers of several partitions together."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Merge the answers that have come to one place."""
        return _answered(merged(outcome for _, outcome in unpacked(batches)))


# ---- the rows of nodes, brought together ---------------------------------------------


@dataclass(frozen=True)
class Cut:
    """Cut parts by the buckets of the open nodes in which their rows are."""

    plan: Shipped
    route_and_bucket: Shipped

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Cut the rows of a partition."""
        return pages(_source(), self._pieces(batches))

    def _pieces(self, batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        route, bucket_of = received(self.route_and_bucket.value, self.plan.value)
        bucket_of = np.append(bucket_of, -1)  # rows of no open node
        outcome = Outcome(0)
        for _, part in unpacked(batches):
            if isinstance(part, BranchwiseError):
                outcome = Outcome(0, failure=part)
                break
            outcome = outcome.merge(Outcome(part.n_rows))
            nodes = route.nodes_of(part)
            place = bucket_of[nodes]
            if part.weights is not None:
                place[part.weights == 0] = -1
            for bucket, rows in _together(place):
                yield bucket, packed((part.take(rows), nodes[rows]))
        yield REPORT, packed(outcome)


def _together(place: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield the rows of every bucket; -1 is none."""
    order = np.argsort(place, kind="stable")
    order = order[np.searchsorted(place[order], 0) :]
    starts = run_starts(place[order])
    if len(starts):
        yield from zip(
            place[order[starts]].tolist(), np.split(order, starts[1:]), strict=True
        )


@dataclass(frozen=True)
class GrowBelow:
    """Grow what is below open nodes from their rows, which come bucket by bucket."""

    plan: Shipped
    below: Shipped

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Grow what is below the nodes of some buckets."""
        return pages(_source(), self._trees(batches))

    def _trees(self, batches: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        below = received(self.below.value, self.plan.value)
        for bucket, things in groupby(unpacked(batches), key=itemgetter(0)):
            pieces = [thing for _, thing in things]
            if bucket == REPORT:
                yield REPORT, packed(merged(pieces))
                continue
            rows = joined([part for part, _ in pieces])
            nodes = np.concatenate([nodes for _, nodes in pieces])
            for grown in finished(rows, nodes, below):
                yield bucket, packed(grown)
