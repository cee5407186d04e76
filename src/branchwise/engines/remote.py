"""Worker-side functions of the Dask and Spark engines.

Chunks stay on the worker that encoded them. Jobs are sent without the plan, which the
workers have already; a worker returns a result, or the error as :class:`Rejected`.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints, downcast
from branchwise.data.columns import Coded, KeptColumn, downcast_codes
from branchwise.data.frames import Frame, open_table, read_vector
from branchwise.engines.fit_plan import Plan
from branchwise.engines.level_engine import Result, merged
from branchwise.engines.scan import Chunk, Route, encode_chunk, joined
from branchwise.engines.scan import finished as finished_nodes
from branchwise.errors import BranchwiseError, DataError, counted, quoted
from branchwise.files.options import ENDINGS
from branchwise.tree.tree import ARRAYS, Tree

_PLAN = "plan"


class _Sender(pickle.Pickler):
    def __init__(self, file: io.BytesIO, plan: Plan) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._plan = plan

    def persistent_id(self, thing: Any) -> str | None:
        return _PLAN if thing is self._plan else None


class _Receiver(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, plan: Plan) -> None:
        super().__init__(file)
        self._plan = plan

    def persistent_load(self, pid: Any) -> Plan:
        if pid != _PLAN:
            raise pickle.UnpicklingError(f"nothing is known as {pid!r}")
        return self._plan


def sent(thing: Any, plan: Plan) -> bytes:
    """Serialise a job that may refer to a plan."""
    file = io.BytesIO()
    _Sender(file, plan).dump(thing)
    return file.getvalue()


def received(data: bytes, plan: Plan) -> Any:
    """Deserialise a job with the plan that it refers to."""
    return _Receiver(io.BytesIO(data), plan).load()


_CHANGED = (
    "The rows were computed again because a worker was lost, and the result differs "
    "from the first one. Fit again from a table that does not change: one that is "
    "stored in files, or computed deterministically."
)
#: Endings of the names of Parquet files.
_PARQUET = tuple(
    ending for ending, file_format in ENDINGS.items() if file_format == "parquet"
)
#: Odd multiplier of hashes.
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)
#: Numbers of batches have 16 bits.
MOST_BATCHES = 1 << 14
#: Rows per block: their hashes stay in the CPU cache from column to column.
_BLOCK = 1 << 13


def check_parquet(paths: Sequence[str], engine: str) -> None:
    """Reject files other than Parquet.

    Dask and Spark infer the types of text files from their first rows, and not as
    branchwise does: the tree would be different.
    """
    others = [path for path in paths if not path.lower().endswith(_PARQUET)]
    if others:
        raise DataError(
            f"engine={engine!r} reads Parquet files. Got {quoted(others)}; write the "
            "table to Parquet, or use engine='chunked'."
        )


@dataclass(frozen=True)
class Rejected:
    """An error of rows, with the number of the partition if it is known."""

    error: BranchwiseError
    number: int | None = None


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


def held(number: int, table: object, beside: Mapping[str, Any]) -> HeldTable | Rejected:
    """Read a partition with further columns."""
    try:
        return _held(table, beside)
    except BranchwiseError as error:
        return Rejected(error, number)


def _held(table: object, beside: Mapping[str, Any]) -> HeldTable:
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


@dataclass(frozen=True)
class Mark:
    """The number of rows, and a hash of them that is independent of their order."""

    n_rows: int
    digest: int

    @classmethod
    def of(cls, chunk: Chunk) -> Mark:
        """Hash every cell of a chunk."""
        cells = [*chunk.codes, chunk.target]
        if chunk.weights is not None:
            cells.append(chunk.weights)
        digest = 0
        for begin in range(0, chunk.n_rows, _BLOCK):
            rows = np.zeros(min(_BLOCK, chunk.n_rows - begin), dtype=np.uint64)
            for column in cells:
                rows ^= rows >> _HALF
                rows *= _SPREAD
                rows += _as_whole(column[begin : begin + _BLOCK])
            rows *= _SPREAD
            rows ^= rows >> _HALF
            rows *= _SPREAD
            digest += int(rows.sum())
        return cls(chunk.n_rows, digest % (1 << 64))


def _as_whole(cells: NDArray[Any]) -> NDArray[Any]:
    return cells.view(np.uint64) if cells.dtype.kind == "f" else cells


@dataclass(frozen=True)
class HeldChunk:
    """An encoded chunk with its number and its mark."""

    number: int
    chunk: Chunk
    mark: Mark

    def __sizeof__(self) -> int:
        return n_bytes(self.chunk)


def n_bytes(chunk: Chunk) -> int:
    """Return the memory of the cells of a chunk."""
    weights = 0 if chunk.weights is None else chunk.weights.nbytes
    codes = sum(codes.nbytes for codes in chunk.codes)
    return codes + chunk.target.nbytes + weights


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


def returned(
    number: int, table: HeldTable | Rejected, request: Callable[..., Any], *more: Any
) -> Any:
    """Call a function with a chunk of the table and further arguments."""
    if isinstance(table, Rejected):
        return table
    try:
        return request(table, *more)
    except BranchwiseError as error:
        return Rejected(error, number)


def encoded(
    number: int, table: HeldTable | Rejected, worker_plan: WorkerPlan
) -> HeldChunk | Rejected:
    """Encode a chunk of the table."""
    chunk = returned(number, table, encode_chunk, worker_plan.plan)
    if isinstance(chunk, Rejected):
        return chunk
    return HeldChunk(number, chunk, Mark.of(chunk))


def mark_of(chunk: HeldChunk | Rejected) -> Mark | Rejected:
    """Return the mark that identifies a chunk."""
    return chunk if isinstance(chunk, Rejected) else chunk.mark


def done(
    chunk: HeldChunk | Rejected, mark: Mark, worker_plan: WorkerPlan, payload: bytes
) -> Any:
    """Run a job on a chunk, which must be unchanged."""
    if isinstance(chunk, Rejected):
        return chunk
    if chunk.mark != mark:
        return Rejected(DataError(_CHANGED), chunk.number)
    try:
        return worker_plan.opened(payload)(chunk.chunk)
    except BranchwiseError as error:
        return Rejected(error, chunk.number)


def merge_results(results: Sequence[Result | Rejected]) -> Any:
    """Merge results in order; return the first error if there is one."""
    for result in results:
        if isinstance(result, Rejected):
            return result
    try:
        return merged(results)  # type: ignore[arg-type]
    except BranchwiseError as error:
        return Rejected(error)


@dataclass(frozen=True)
class Block:
    """Rows that are sent to the worker that finishes their open nodes."""

    rows: Chunk
    nodes: NDArray[np.int32]

    def __sizeof__(self) -> int:
        return n_bytes(self.rows) + self.nodes.nbytes


@dataclass(frozen=True)
class SliceByBatch:
    """Splits chunks by the batch of the open nodes of rows; -1 is none."""

    route: Route
    batch: Ints
    n_batches: int

    def __call__(self, chunk: Chunk) -> tuple[Block, ...]:
        """Split a chunk into blocks, one for each batch."""
        nodes = self.route.nodes_of(chunk)
        batch = np.append(self.batch, -1)[nodes].astype(np.int16)
        if chunk.weights is not None:
            batch[chunk.weights == 0] = -1
        order = np.argsort(batch, kind="stable")  # linear time for 16-bit integers
        bounds = np.searchsorted(batch[order], np.arange(self.n_batches + 1))
        return tuple(
            Block(chunk.take(rows), nodes[rows])
            for rows in np.split(order[: bounds[-1]], bounds[:-1])[1:]
        )


def block_of(blocks: tuple[Block, ...] | Rejected, number: int) -> Block | Rejected:
    """Return the block of a batch."""
    return blocks if isinstance(blocks, Rejected) else blocks[number]


#: The arrays of a tree, downcast to the smallest types.
SerialisedTree = tuple[NDArray[Any], ...]


def deserialised(arrays: SerialisedTree) -> Tree:
    """Return the tree of serialised arrays."""
    pairs = zip(ARRAYS, arrays, strict=True)
    return Tree(**{spec.name: array.astype(spec.dtype) for spec, array in pairs})


def finished(
    blocks: Sequence[Block | Rejected], worker_plan: WorkerPlan, payload: bytes
) -> list[tuple[int, SerialisedTree]] | Rejected:
    """Grow the subtrees of the nodes of a batch."""
    whole = []
    for block in blocks:
        if isinstance(block, Rejected):
            return block
        whole.append(block)
    rows = joined([block.rows for block in whole])
    nodes = np.concatenate([block.nodes for block in whole])
    try:
        return [
            (node, tuple(downcast(getattr(tree, spec.name)) for spec in ARRAYS))
            for node, tree in finished_nodes(rows, nodes, worker_plan.opened(payload))
        ]
    except BranchwiseError as error:
        return Rejected(error)


#: The columns: the bucket of an object, the partition that made it, the number of the
#: page there, whether it is the last page of the object, and the bytes.
PAGES = "bucket int, source int, page int, last boolean, data binary"
#: Bytes of a page.
PAGE = 1 << 15


def pages(source: int, things: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    """Split serialised objects, each with its bucket, into pages.

    Yields a record batch for each.
    """
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

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


def deserialised_pages(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
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
