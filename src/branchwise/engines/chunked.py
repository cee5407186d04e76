"""Rows in files that may be larger than memory: read, encoded and counted in parts.

The files are read twice: once to see what there is, once to encode the rows into a
packed temporary file of narrow codes, which all later passes read. Without that file
every pass reads the files again. What is in memory is a part of the rows and the
counts of the open nodes, however many rows there are; nodes that have few rows are
finished from a second temporary file that has their rows together.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.data.arrow import as_array, from_array, give_back
from branchwise.data.schema import value_type
from branchwise.engines.fit_plan import Facts, Plan, Task
from branchwise.engines.level_engine import Job, PassEngine, merged
from branchwise.engines.scan import (
    Again,
    Below,
    Part,
    Route,
    encode_part,
    finished,
    joined,
    look,
    look_again,
    settle,
    weigh_again,
)
from branchwise.errors import DataError, check_limit
from branchwise.files.dataset import StreamedTable
from branchwise.tree.tree import Tree


class BatchStore:
    """A file of batches of arrays, which are written once and read many times.

    Parameters
    ----------
    folder : path
        Where the file is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._writer: Any = None
        self.sizes: list[int] = []

    def append(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Add a batch; every batch has arrays of the same types."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only when it is needed)
        from pyarrow import ipc  # noqa: PLC0415

        columns = [from_array(array) for array in arrays]
        names = [str(at) for at in range(len(columns))]
        batch = pa.record_batch(columns, names)
        with self._room():
            if self._writer is None:
                handle, name = tempfile.mkstemp(".codes", dir=self._folder)
                self._path = Path(name)
                self._file = open(handle, "wb")  # noqa: PTH123, SIM115
                options = ipc.IpcWriteOptions(compression="lz4")
                self._writer = ipc.new_file(self._file, batch.schema, options=options)
            self._writer.write_batch(batch)
        self.sizes.append(len(arrays[0]))

    def close(self) -> None:
        """End writing."""
        if self._writer is not None and not self._file.closed:
            with self._room():
                self._writer.close()
                self._file.close()

    @property
    def n_bytes(self) -> int:
        """How large the file is."""
        return 0 if self._path is None else self._path.stat().st_size

    def batches(self) -> Iterator[list[NDArray[np.generic]]]:
        """Read all batches, one after the other."""
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import ipc  # noqa: PLC0415

        self.close()
        if self._path is None:
            return
        with pa.OSFile(str(self._path)) as source, ipc.open_file(source) as file:
            for at in range(file.num_record_batches):
                yield [as_array(column) for column in file.get_batch(at).columns]
        give_back()

    def remove(self) -> None:
        """Take the file away."""
        if self._path is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        self._path = self._writer = None

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.remove()
            reason = "it is full" if error.errno == errno.ENOSPC else error.strerror
            raise DataError(
                f"The folder {str(self._folder)!r} for temporary files cannot take the "
                f"encoded rows: {reason}. Make room, choose another folder "
                "(temporary_folder, --temporary-folder), or go without (cache=False, "
                "--no-cache)."
            ) from None


#: Rows of a node that is finished in memory.
MOST_ROWS = 500_000
#: Files of rows that are written at once.
MOST_FILES = 200

Say = Callable[[str], None]


class ChunkedTable:
    """A table in files, read part by part.

    Parameters
    ----------
    source : str, path, list of them, pyarrow dataset or StreamedTable
        The files: a path, a pattern such as ``"data/*.parquet"``, a folder.
    cache : bool
        Whether encoded rows are kept in a temporary file. Without it every pass
        reads the files again, and no node is finished in memory.
    temporary_folder : str or None
        Where temporary files are made; by default where the system has them.
    most_rows : int
        Nodes of so many rows are finished in memory; 0 is none.
    say : callable or None
        Told now and then what is being done.
    """

    engine_name = "chunked"

    def __init__(
        self,
        source: object,
        cache: bool = True,
        temporary_folder: str | None = None,
        most_rows: int = MOST_ROWS,
        say: Say | None = None,
    ) -> None:
        check_limit("most_rows", most_rows, least=0, optional=False)
        self.table = self._given = StreamedTable.of(source)
        self.label = self.table.label
        self.most_rows = most_rows if cache else 0
        self._cache = cache
        self._folder_wanted = temporary_folder
        self._say = say or (lambda _: None)
        self._open = ExitStack()
        self._folder: Path | None = None
        self._plan: Plan | None = None
        self._store: BatchStore | None = None
        self._stamps: dict[str, tuple[int, int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the temporary files away."""
        self._open.close()
        self._folder = self._store = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.table.names

    def learn(self, task: Task) -> Plan:
        """Look at all rows once; where text turns up late among numbers, twice."""
        # What an earlier fit has found out is not what the files tell of themselves.
        self.table = self._given
        self._stamps = self.table.stamps()
        facts, mixed = self._looked(task)
        if mixed:
            text = {*self.table.text_columns, *mixed}
            self.table = replace(self.table, text_columns=text)
            facts, _ = self._looked(task)
        return settle(facts, task, Again(self._weighed, self._looked_again))

    def _looked(self, task: Task) -> tuple[Facts, list[str]]:
        """Return what all rows show, and which columns are text only in some parts."""
        kinds: dict[str, set[bool]] = {}
        facts = Facts()
        rows = 0
        for found in self._asked(lambda frame: look(frame, task)):
            rows += found.n_rows
            self._say(f"Looking at the rows: {rows:,}")
            for name, is_number in _kinds(found, task):
                kinds.setdefault(name, set()).add(is_number)
            if not _both(kinds):
                facts = facts.merge(found)
        return facts, _both(kinds)

    def _looked_again(self, plan: Plan) -> Any:
        return merged(self._asked(lambda frame: look_again(frame, plan)))

    def _weighed(self, plan: Plan) -> Any:
        return merged(self._asked(lambda frame: weigh_again(frame, plan)))

    def _asked(self, question: Callable[[Any], Any]) -> Iterator[Any]:
        """Ask every part of the files; an error says where it is."""
        with closing(self.table.parts()) as parts:
            for part in parts:
                try:
                    answer = question(part.frame)
                except DataError as error:
                    self._refuse_change()
                    raise part.located(error) from None
                yield answer
        self._refuse_change()

    def _refuse_change(self) -> None:
        if self.table.stamps() != self._stamps:
            raise DataError(
                f"{self.label} changed while the tree was grown. Fit again while "
                "nothing writes to it."
            )

    def engine(self, plan: Plan) -> PassEngine:
        """Return who counts the rows by a plan."""
        self._plan = plan
        self._store = None
        # The plan may be that of other files, whose columns show more.
        learnt = {column.name: column for column in plan.schema.columns}
        self.table = self.table.for_columns(learnt)
        return PassEngine(plan, self)

    def _parts(self) -> Generator[Part, None, None]:
        """Yield all rows, encoded; the first time they are put in the store."""
        if self._store is not None:
            for arrays in self._store.batches():
                yield self._unpacked(arrays)
            return
        store = self._new_store() if self._cache else None
        plan, rows = self._known_plan, 0
        for part in self._asked(lambda frame: encode_part(frame, plan)):
            rows += part.n_rows
            self._say(f"Encoding the rows: {rows:,} of {plan.n_rows:,}")
            if store is not None:
                store.append(_packed(part))
            yield part
        if rows != plan.n_rows:
            raise DataError(
                f"{self.label} changed while the tree was grown: it had "
                f"{plan.n_rows:,} rows and now has {rows:,}. Fit again while nothing "
                "writes to it."
            )
        self._store = store

    def _new_store(self) -> BatchStore:
        store = BatchStore(self._temporary())
        self._open.callback(store.remove)
        return store

    @property
    def _known_plan(self) -> Plan:
        if self._plan is None:
            raise AssertionError("rows are counted by a plan")
        return self._plan

    def _unpacked(self, arrays: list[Any]) -> Part:
        n = len(self._known_plan.schema.columns)
        weights = arrays[n + 1] if len(arrays) > n + 1 else None
        return Part(tuple(arrays[:n]), arrays[n], weights)

    def _temporary(self) -> Path:
        if self._folder is None:
            try:
                folder = tempfile.TemporaryDirectory(
                    prefix="branchwise-", dir=self._folder_wanted
                )
            except OSError as error:
                raise DataError(
                    f"temporary_folder cannot be used: {error.strerror}. Got "
                    f"{self._folder_wanted!r}; choose another, or go without "
                    "(cache=False, --no-cache)."
                ) from None
            self._folder = Path(self._open.enter_context(folder))
        return self._folder

    def run(self, job: Job) -> Any:
        """Ask every part, one after the other."""
        with closing(self._parts()) as parts:
            return merged(map(job, parts))

    def finish(
        self, route: Route, bucket: Ints, below: Below
    ) -> Iterator[tuple[int, Tree]]:
        """Bring the rows of open nodes together in files, and finish file by file.

        Where there are many files a pass makes only some of them.
        """
        n_files = int(bucket.max()) + 1
        for first in range(0, n_files, MOST_FILES):
            among = (bucket >= first) & (bucket < first + MOST_FILES)
            now = np.where(among, bucket - first, -1)
            for at, (rows, nodes) in enumerate(self._together(route, now)):
                self._say(f"Finishing nodes: {first + at + 1:,} of {n_files:,} files")
                yield from finished(rows, nodes, below)

    def _together(self, route: Route, bucket: Ints) -> Iterator[tuple[Part, Any]]:
        """Yield the rows of each bucket, and their nodes."""
        stores = [self._new_store() for _ in range(int(bucket.max()) + 1)]
        with closing(self._parts()) as parts:
            for part in parts:
                _spill(part, route.nodes_of(part), bucket, stores)
        for store in stores:
            batches = list(store.batches())
            store.remove()
            rows = joined([self._unpacked(batch[1:]) for batch in batches])
            yield rows, np.concatenate([batch[0] for batch in batches])


def _packed(part: Part) -> list[Any]:
    weights = [] if part.weights is None else [part.weights]
    return [*part.codes, part.target, *weights]


def _spill(part: Part, nodes: Any, bucket: Ints, stores: list[BatchStore]) -> None:
    """Add the rows of open nodes to the files of their buckets."""
    place = np.where(nodes >= 0, bucket[nodes], -1)
    if part.weights is not None:
        place = np.where(part.weights > 0, place, -1)
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(stores) + 1))
    for number, store in enumerate(stores):
        rows = order[bounds[number] : bounds[number + 1]]
        if len(rows):
            store.append([nodes[rows], *_packed(part.take(rows))])


def _kinds(facts: Facts, task: Task) -> Iterator[tuple[str, bool]]:
    """Yield which columns are numbers and which are not, where they have values."""
    for found in facts.columns:
        if not found.is_empty:
            yield found.column.name, found.column.is_numeric
    if facts.labels is not None:
        for label in list(facts.labels)[:1]:
            yield task.target, value_type(label) == "number"


def _both(kinds: Mapping[str, set[bool]]) -> list[str]:
    return [name for name, seen in kinds.items() if len(seen) > 1]
