"""Worker-side functions of the Dask engine.

Chunks stay on the worker that encoded them. A worker returns a result, or the error as
:class:`Rejected`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints, downcast
from branchwise.data.columns import Coded, KeptColumn, downcast_codes
from branchwise.data.frames import Frame, open_table, read_vector
from branchwise.engines.base import Plan
from branchwise.engines.chunk import Chunk, Route, encode_chunk, joined, row_hashes
from branchwise.engines.chunk import finished as finished_nodes
from branchwise.engines.level_engine import merged, received, sent
from branchwise.errors import BranchwiseError, DataError, counted
from branchwise.tree.tree import ARRAYS, SURROGATE_ARRAYS, Tree

_CHANGED = (
    "The rows were computed again because a worker was lost, and the result differs "
    "from the first one. Fit again from a table that does not change: one that is "
    "stored in files, or computed deterministically."
)
#: The most batches of open nodes.
MOST_BATCHES = 1 << 14


@dataclass(frozen=True)
class Rejected:
    """An error of rows, with the number of the partition if it is known."""

    error: BranchwiseError
    number: int | None = None


P = ParamSpec("P")
R = TypeVar("R")


def rejecting(work: Callable[P, R]) -> Callable[P, R | Rejected]:
    """Return a function that returns errors: of its first two arguments, or its own."""

    @wraps(work)
    def called(*args: P.args, **shared: P.kwargs) -> R | Rejected:
        first = args[0]
        for given in (*(first if isinstance(first, list) else [first]), *args[1:2]):
            if isinstance(given, Rejected):
                return given
        try:
            return work(*args, **shared)
        except BranchwiseError as error:
            number = first if isinstance(first, int) else getattr(first, "number", None)
            return Rejected(error, number)

    return called


@dataclass(frozen=True)
class HeldTable(Frame):
    """A partition that has been read, its values as small integer codes."""

    def __sizeof__(self) -> int:
        # Used by schedulers; the size of the cells is close enough.
        columns = (reader() for reader in self.readers)
        return sum(
            raw.codes.nbytes if isinstance(raw, Coded) else raw.values.nbytes
            for raw in columns
        )


@rejecting
def held(number: int, table: object, beside: Mapping[str, Any]) -> HeldTable:  # noqa: ARG001
    """Read a partition with further columns."""
    frame = open_table(table)
    for name, cells in beside.items():
        if len(cells) != frame.n_rows:
            raise DataError(
                f"{name} must have one value for each row of X. Got "
                f"{counted(len(cells), 'value')} for {counted(frame.n_rows, 'row')} in "
                "this partition; use the same partitions for both."
            )
    columns = [frame.column(at) for at in range(len(frame.names))]
    columns += [read_vector(cells, name) for name, cells in beside.items()]
    return HeldTable(
        (*frame.names, *beside),
        frame.n_rows,
        frame.named,
        tuple(KeptColumn(downcast_codes(raw)) for raw in columns),
    )


class Fingerprint(NamedTuple):
    """The number of rows, and a hash of them that is independent of their order."""

    n_rows: int
    digest: int

    @classmethod
    def of(cls, chunk: Chunk) -> Fingerprint:
        """Hash every cell of a chunk."""
        digest = sum(int(rows.sum()) for rows in row_hashes(chunk))
        return cls(chunk.n_rows, digest % (1 << 64))


@dataclass(frozen=True)
class HeldChunk:
    """An encoded chunk with its number and its fingerprint."""

    number: int
    chunk: Chunk
    fingerprint: Fingerprint

    def __sizeof__(self) -> int:
        return self.chunk.n_bytes


class WorkerPlan:
    """A plan on a worker, and the last job that was deserialised with it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._last: tuple[bytes, Any] = (b"", None)

    def __reduce__(self) -> tuple[Any, ...]:
        return WorkerPlan, (self.plan,)

    def payload(self, job: object) -> bytes:
        """Serialise a job without the plan."""
        return sent(job, self.plan)

    def opened(self, payload: bytes) -> Any:
        """Return a deserialised job; chunks on the same worker share it."""
        last, job = self._last
        if last is not payload:
            job = received(payload, self.plan)
            self._last = payload, job
        return job


@rejecting
def returned(
    number: int,  # noqa: ARG001
    table: HeldTable,
    request: Callable[..., Any],
    *more: Any,
) -> Any:
    """Call a function with a chunk of the table and further arguments."""
    return request(table, *more)


@rejecting
def encoded(number: int, table: HeldTable, worker_plan: WorkerPlan) -> HeldChunk:
    """Encode a chunk of the table."""
    chunk = encode_chunk(table, worker_plan.plan)
    return HeldChunk(number, chunk, Fingerprint.of(chunk))


@rejecting
def fingerprint_of(chunk: HeldChunk) -> Fingerprint:
    """Return the fingerprint that identifies a chunk."""
    return chunk.fingerprint


@rejecting
def done(
    chunk: HeldChunk, fingerprint: Fingerprint, worker_plan: WorkerPlan, payload: bytes
) -> Any:
    """Run a job on a chunk, which must be unchanged."""
    if chunk.fingerprint != fingerprint:
        raise DataError(_CHANGED)
    return worker_plan.opened(payload)(chunk.chunk)


@rejecting
def merge_results(results: list[Any]) -> Any:
    """Merge results in order; return the first error if there is one."""
    return merged(results)


@dataclass(frozen=True)
class Block:
    """Rows that are sent to the worker that finishes their open nodes."""

    rows: Chunk
    nodes: NDArray[np.int32]

    def __sizeof__(self) -> int:
        return self.rows.n_bytes + self.nodes.nbytes


@dataclass(frozen=True)
class SliceByBatch:
    """Splits chunks by the batch of the open nodes of rows; -1 is none."""

    route: Route
    batch: Ints
    n_batches: int

    def __call__(self, chunk: Chunk) -> tuple[Block, ...]:
        """Split a chunk into blocks, one for each batch."""
        nodes = self.route.nodes_of(chunk)
        none = np.empty(0, dtype=np.intp)
        chosen = dict(chunk.by_bucket(nodes, self.batch))
        return tuple(
            Block(chunk.take(rows), nodes[rows])
            for rows in (chosen.get(at, none) for at in range(self.n_batches))
        )


@rejecting
def block_of(blocks: tuple[Block, ...], number: int) -> Block:
    """Return the block of a batch."""
    return blocks[number]


#: What growth makes of a tree.
_GROWN_ARRAYS = (*ARRAYS, *SURROGATE_ARRAYS)
#: The arrays of a tree, downcast to the smallest types.
SerialisedTree = dict[str, NDArray[Any]]


def serialised(tree: Tree) -> SerialisedTree:
    """Return the arrays that a grown tree has, downcast."""
    arrays = {spec.name: getattr(tree, spec.name) for spec in _GROWN_ARRAYS}
    return {
        name: downcast(array) for name, array in arrays.items() if array is not None
    }


def deserialised(arrays: SerialisedTree) -> Tree:
    """Return the tree of serialised arrays."""
    specs = (spec for spec in _GROWN_ARRAYS if spec.name in arrays)
    return Tree(**{spec.name: arrays[spec.name].astype(spec.dtype) for spec in specs})


@rejecting
def finished(
    blocks: list[Block], worker_plan: WorkerPlan, payload: bytes
) -> list[tuple[int, SerialisedTree]]:
    """Grow the subtrees of the nodes of a batch."""
    rows = joined([block.rows for block in blocks])
    nodes = np.concatenate([block.nodes for block in blocks])
    return [
        (node, serialised(tree))
        for node, tree in finished_nodes(rows, nodes, worker_plan.opened(payload))
    ]


@dataclass(frozen=True)
class HeldRows:
    """Something that was made of all rows, and their fingerprint."""

    value: Any
    fingerprint: Fingerprint
    n_bytes: int

    def __sizeof__(self) -> int:
        return self.n_bytes


@rejecting
def gathered(chunks: list[HeldChunk], prepare: Callable[[Chunk], Any]) -> HeldRows:
    """Join all chunks, and make something of them."""
    fingerprints = [chunk.fingerprint for chunk in chunks]
    n_rows = sum(each.n_rows for each in fingerprints)
    digest = sum(each.digest for each in fingerprints) % (1 << 64)
    rows = joined([chunk.chunk for chunk in chunks])
    return HeldRows(prepare(rows), Fingerprint(n_rows, digest), rows.n_bytes)


@rejecting
def shared_work(
    rows: HeldRows,
    numbers: Sequence[int],
    fingerprint: Fingerprint,
    function: Callable[[Any, Sequence[int]], list[Any]],
) -> list[Any]:
    """Do a share of some work with all rows, which must be unchanged."""
    if rows.fingerprint != fingerprint:
        raise DataError(_CHANGED)
    return function(rows.value, numbers)
