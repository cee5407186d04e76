"""What is done where rows lie, for engines whose parts are on other machines.

Parts stay where they were made. A job travels to them without its plan, which is
there already; what comes back is an answer, or why there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Ints
from branchwise.engines.jobs import Answer, merged
from branchwise.engines.parts import Part, Route, encode_part, joined
from branchwise.engines.parts import finished as finished_nodes
from branchwise.engines.sending import received, sent
from branchwise.engines.task import Plan
from branchwise.errors import BranchwiseError, DataError, counted, quoted
from branchwise.narrow import narrowed
from branchwise.table.frames import Frame, open_table, read_vector
from branchwise.table.raw import Coded, KeptColumn, narrow_codes
from branchwise.table.reading import ENDINGS
from branchwise.tree import ARRAYS, Tree

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
