"""What is done where rows lie, for engines whose parts are on other machines.

Parts stay where they were made. A job travels to them without its plan, which is
there already; what comes back is an answer, or why there is none.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints, narrowed
from branchwise.data.columns import Coded, KeptColumn, narrow_codes
from branchwise.data.frames import Frame, open_table, read_vector
from branchwise.engines.fit_plan import Plan
from branchwise.engines.level_engine import Answer, merged
from branchwise.engines.scan import Part, Route, encode_part, joined
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
    """Pack a job that may refer to a plan."""
    file = io.BytesIO()
    _Sender(file, plan).dump(thing)
    return file.getvalue()


def received(data: bytes, plan: Plan) -> Any:
    """Unpack a job where the plan is known, too."""
    return _Receiver(io.BytesIO(data), plan).load()


_CHANGED = (
    "The rows had to be computed again, for a worker was lost, and they are not those "
    "that they were. Fit again from a table that does not change: one that is written "
    "to files, or that is computed without chance."
)
#: How the names of Parquet files end.
_PARQUET = tuple(ending for ending, form in ENDINGS.items() if form == "parquet")
#: Odd, with bits everywhere: what hashes are multiplied with.
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)
#: Numbers of batches have 16 bits.
MOST_BATCHES = 1 << 14
#: So many rows and their hashes stay in the nearest cache from column to column.
_BLOCK = 1 << 13


def check_parquet(paths: Sequence[str], engine: str) -> None:
    """Refuse files other than Parquet.

    What text files hold, others guess from their beginnings, and not as branchwise
    reads them: the tree would be another one.
    """
    others = [path for path in paths if not path.lower().endswith(_PARQUET)]
    if others:
        raise DataError(
            f"engine={engine!r} reads Parquet files. Got {quoted(others)}; write the "
            "table to Parquet, or use engine='chunked'."
        )


@dataclass(frozen=True)
class Refused:
    """What is wrong with rows, and with those of which part if that is known."""

    error: BranchwiseError
    number: int | None = None


@dataclass(frozen=True)
class HeldTable(Frame):
    """A part of a table that has been read, its values as narrow codes."""

    def __sizeof__(self) -> int:
        # Schedulers go by it; the cells are all that counts.
        columns = (reader() for reader in self.readers)
        return sum(
            raw.codes.nbytes if isinstance(raw, Coded) else raw.values.nbytes
            for raw in columns
        )


def held(number: int, table: object, beside: Mapping[str, Any]) -> HeldTable | Refused:
    """Read a part of a table, and put further columns beside it."""
    try:
        return _held(table, beside)
    except BranchwiseError as error:
        return Refused(error, number)


def _held(table: object, beside: Mapping[str, Any]) -> HeldTable:
    frame = open_table(table)
    for name, cells in beside.items():
        if len(cells) != frame.n_rows:
            raise DataError(
                f"{name} must have one value for each row of X. Got "
                f"{counted(len(cells), 'value')} for {counted(frame.n_rows, 'row')} in "
                "this partition; part both alike."
            )
    columns = [frame.column(at) for at in range(len(frame.names))]
    columns += [read_vector(cells, name) for name, cells in beside.items()]
    return HeldTable(
        (*frame.names, *beside),
        frame.n_rows,
        frame.named,
        tuple(KeptColumn(narrow_codes(raw)) for raw in columns),
    )


@dataclass(frozen=True)
class Mark:
    """How many rows there are, and a hash of them that does not go by their order."""

    n_rows: int
    digest: int

    @classmethod
    def of(cls, part: Part) -> Mark:
        """Look at every cell of a part."""
        cells = [*part.codes, part.target]
        if part.weights is not None:
            cells.append(part.weights)
        digest = 0
        for begin in range(0, part.n_rows, _BLOCK):
            rows = np.zeros(min(_BLOCK, part.n_rows - begin), dtype=np.uint64)
            for column in cells:
                rows ^= rows >> _HALF
                rows *= _SPREAD
                rows += _as_whole(column[begin : begin + _BLOCK])
            rows *= _SPREAD
            rows ^= rows >> _HALF
            rows *= _SPREAD
            digest += int(rows.sum())
        return cls(part.n_rows, digest % (1 << 64))


def _as_whole(cells: NDArray[Any]) -> NDArray[Any]:
    return cells.view(np.uint64) if cells.dtype.kind == "f" else cells


@dataclass(frozen=True)
class HeldPart:
    """An encoded part of the rows, its number and its mark."""

    number: int
    part: Part
    mark: Mark

    def __sizeof__(self) -> int:
        return n_bytes(self.part)


def n_bytes(part: Part) -> int:
    """Return the memory that the cells of a part take."""
    weights = 0 if part.weights is None else part.weights.nbytes
    codes = sum(codes.nbytes for codes in part.codes)
    return codes + part.target.nbytes + weights


class Desk:
    """A plan as it lies with a worker, and the last job that was opened by it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._last: tuple[bytes, Any] = (b"", None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Desk, (self.plan,)

    def letter(self, job: object) -> bytes:
        """Write down a job but for the plan."""
        return sent(job, self.plan)

    def opened(self, letter: bytes) -> Any:
        """Return the job of a letter; parts that lie together open it once."""
        last, job = self._last
        if last is not letter:
            job = received(letter, self.plan)
            self._last = letter, job
        return job


def answered(
    number: int, table: HeldTable | Refused, question: Callable[..., Any], *more: Any
) -> Any:
    """Ask a part of the table something; more are the further words."""
    if isinstance(table, Refused):
        return table
    try:
        return question(table, *more)
    except BranchwiseError as error:
        return Refused(error, number)


def encoded(number: int, table: HeldTable | Refused, desk: Desk) -> HeldPart | Refused:
    """Encode a part of the table."""
    part = answered(number, table, encode_part, desk.plan)
    if isinstance(part, Refused):
        return part
    return HeldPart(number, part, Mark.of(part))


def mark_of(part: HeldPart | Refused) -> Mark | Refused:
    """Return how a part is known again."""
    return part if isinstance(part, Refused) else part.mark


def done(part: HeldPart | Refused, mark: Mark, desk: Desk, letter: bytes) -> Any:
    """Do a job on a part that must be the one that was there at first."""
    if isinstance(part, Refused):
        return part
    if part.mark != mark:
        return Refused(DataError(_CHANGED), part.number)
    try:
        return desk.opened(letter)(part.part)
    except BranchwiseError as error:
        return Refused(error, part.number)


def put_together(answers: Sequence[Answer | Refused]) -> Any:
    """Merge answers in order; what is wrong with one is wrong with all."""
    for answer in answers:
        if isinstance(answer, Refused):
            return answer
    try:
        return merged(answers)  # type: ignore[arg-type]
    except BranchwiseError as error:
        return Refused(error)


@dataclass(frozen=True)
class Block:
    """Rows on their way to where their nodes are finished, with their open nodes."""

    rows: Part
    nodes: NDArray[np.int32]

    def __sizeof__(self) -> int:
        return n_bytes(self.rows) + self.nodes.nbytes


@dataclass(frozen=True)
class CutByBatch:
    """Take rows apart by the batch that their open nodes are in; -1 is none."""

    route: Route
    batch: Ints
    n_batches: int

    def __call__(self, part: Part) -> tuple[Block, ...]:
        """Cut a part into blocks, one for each batch."""
        nodes = self.route.nodes_of(part)
        batch = np.append(self.batch, -1)[nodes].astype(np.int16)
        if part.weights is not None:
            batch[part.weights == 0] = -1
        order = np.argsort(batch, kind="stable")  # of short numbers: linear
        bounds = np.searchsorted(batch[order], np.arange(self.n_batches + 1))
        return tuple(
            Block(part.take(rows), nodes[rows])
            for rows in np.split(order[: bounds[-1]], bounds[:-1])[1:]
        )


def block_of(blocks: tuple[Block, ...] | Refused, number: int) -> Block | Refused:
    """Return the block of a batch."""
    return blocks if isinstance(blocks, Refused) else blocks[number]


#: The arrays of a tree, in as little room as their numbers need.
PackedTree = tuple[NDArray[Any], ...]


def unpacked(arrays: PackedTree) -> Tree:
    """Make a tree of what has travelled."""
    pairs = zip(ARRAYS, arrays, strict=True)
    return Tree(**{spec.name: array.astype(spec.dtype) for spec, array in pairs})


def finished(
    blocks: Sequence[Block | Refused], desk: Desk, letter: bytes
) -> list[tuple[int, PackedTree]] | Refused:
    """Grow what is below the nodes of a batch."""
    whole = []
    for block in blocks:
        if isinstance(block, Refused):
            return block
        whole.append(block)
    rows = joined([block.rows for block in whole])
    nodes = np.concatenate([block.nodes for block in whole])
    try:
        return [
            (node, tuple(narrowed(getattr(tree, spec.name)) for spec in ARRAYS))
            for node, tree in finished_nodes(rows, nodes, desk.opened(letter))
        ]
    except BranchwiseError as error:
        return Refused(error)


#: The columns: what a thing belongs to, where it was made, the number of the page
#: there, whether the thing ends with it, and the bytes.
PAGES = "bucket int, source int, page int, last boolean, data binary"
#: Bytes of a page.
PAGE = 1 << 15


def pages(source: int, things: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    """Cut things, each with the bucket that it belongs to, into pages.

    Yields a record batch for each.
    """
    import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)

    page = 0
    for bucket, data in things:
        cut = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
        n = len(cut)
        columns = {
            "bucket": pa.array([bucket] * n, pa.int32()),
            "source": pa.array([source] * n, pa.int32()),
            "page": pa.array(range(page, page + n), pa.int32()),
            "last": pa.array([False] * (n - 1) + [True]),
            "data": pa.array(cut, pa.binary()),
        }
        page += n
        yield pa.record_batch(columns)


def packed(thing: Any) -> bytes:
    """Pickle what this library made, for a process of its own to open."""
    return pickle.dumps(thing, protocol=pickle.HIGHEST_PROTOCOL)


def pages_unpacked(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Open what was packed from record batches of its pages, which are in order."""
    return opened(row for batch in batches for row in _rows(batch))


def _rows(batch: Any) -> Iterator[tuple[int, bool, bytes]]:
    columns = (batch.column(name).to_pylist() for name in ("bucket", "last", "data"))
    return zip(*columns, strict=True)


def opened(rows: Iterable[tuple[int, bool, bytes]]) -> Iterator[tuple[int, Any]]:
    """Open what was packed: by :func:`packed`, and by nobody else."""
    waiting: list[bytes] = []
    for bucket, last, data in rows:
        waiting.append(data)
        if last:
            yield bucket, pickle.loads(b"".join(waiting))  # noqa: S301
            waiting = []
