"""Data source and storage of the chunked engine: files larger than memory.

The files are read twice: once to scan them, once to encode the rows into a compressed
temporary file of small integer codes, which all later passes read. Without that file
every pass reads the files again. Only a chunk of the rows and the counts of the open
nodes are in memory, however many rows there are; nodes with few rows are finished
from a second temporary file, in which their rows are grouped.
"""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.data.arrow import as_array, from_array, pa, release_memory, text_column
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.table_schema import Column, Value
from branchwise.engines.base import Plan, Task
from branchwise.engines.chunk import (
    Below,
    Chunk,
    Route,
    check_n_rows,
    encode_chunk,
    finished,
    joined,
)
from branchwise.engines.chunk_texts import (
    arrow_values,
    kinds_of,
    known_values,
    merged_values,
    mixed_columns,
)
from branchwise.engines.level_engine import Job, PassEngine, merged
from branchwise.engines.scan import finalise, scan
from branchwise.engines.summaries import ColumnSummary, Summary
from branchwise.errors import DataError, check_limit
from branchwise.files.dataset import StreamedTable
from branchwise.files.number_columns import NumberColumns, warn_numbers
from branchwise.files.options import as_number
from branchwise.files.read_table import own_na_values
from branchwise.tree.tree import Tree


class BatchStore:
    """A temporary file of batches of arrays, written once and read many times."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._writer: Any = None
        self.sizes: list[int] = []

    def append(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Add a batch; every batch has arrays of the same types."""
        columns = [from_array(array) for array in arrays]
        names = [str(at) for at in range(len(columns))]
        batch = pa.record_batch(columns, names)
        with self._free_bytes():
            if self._writer is None:
                handle, name = tempfile.mkstemp(".codes", dir=self._folder)
                self._path = Path(name)
                self._file = open(handle, "wb")  # noqa: PTH123, SIM115
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._writer = pa.ipc.new_file(
                    self._file, batch.schema, options=options
                )
            self._writer.write_batch(batch)
        self.sizes.append(len(arrays[0]))

    def close(self) -> None:
        """End writing."""
        if self._writer is not None and not self._file.closed:
            with self._free_bytes():
                self._writer.close()
                self._file.close()

    @property
    def n_bytes(self) -> int:
        """The size of the file."""
        return 0 if self._path is None else self._path.stat().st_size

    def batches(self) -> Iterator[list[NDArray[np.generic]]]:
        """Read all batches, one after the other."""
        self.close()
        if self._path is None:
            return
        with pa.OSFile(str(self._path)) as source, pa.ipc.open_file(source) as file:
            for at in range(file.num_record_batches):
                yield [as_array(column) for column in file.get_batch(at).columns]
        release_memory()

    def remove(self) -> None:
        """Delete the file."""
        if self._path is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        self._path = self._writer = None

    @contextlib.contextmanager
    def _free_bytes(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.remove()
            reason = "it is full" if error.errno == errno.ENOSPC else error.strerror
            raise DataError(
                f"The folder {str(self._folder)!r} for temporary files cannot take the "
                f"encoded rows: {reason}. Free some space, choose another "
                "temporary_folder, or do without (cache=False)."
            ) from None


#: Rows of a node that is finished in memory.
MOST_ROWS = 500_000
#: Files of rows that are written at the same time.
MOST_FILES = 200

Say = Callable[[str], None]


class ChunkedTable:
    """A table in files, read in chunks.

    Parameters
    ----------
    source : str, path, list of them, pyarrow dataset or StreamedTable
        The files: a path, a pattern such as ``"data/*.parquet"``, a folder.
    cache : bool
        Whether encoded rows are kept in a temporary file. Without it every pass
        reads the files again, and no node is finished in memory.
    temporary_folder : str or None
        The folder of temporary files; by default that of the system.
    most_rows : int
        Nodes with at most so many rows are finished in memory; 0 is none. So many rows
        of a larger table are drawn for a tree of a forest.
    say : callable or None
        Called from time to time with a description of the progress.
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
        table = StreamedTable.of(source)
        #: Whether spellings of a value are merged, once all of them are known.
        self._merges = table.reading.merge_case
        self._known: dict[str, Sequence[Value]] = {}
        reading = replace(table.reading, merge_case=False)
        self.table = self._given = replace(table, reading=reading)
        self.label = self.table.label
        self.most_rows = most_rows if cache else 0
        #: The most rows that are in memory for the trees of an ensemble.
        self.most_in_memory = most_rows
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
        """Delete the temporary files."""
        self._open.close()
        self._folder = self._store = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.table.names

    def learn(self, task: Task) -> Plan:
        """Scan all rows once; twice where text occurs late in a column of numbers."""
        # The results of an earlier fit are not declared by the files.
        self.table = self._given.with_named_dates()
        self._stamps = self.table.stamps()
        # Texts are dates only once it is known how they are written.
        statistics, numbers = self._detected(replace(task, date_features=()))
        if numbers.formats:
            warn_numbers(numbers)
            self.table = self.table.with_number_formats(numbers.formats)
        if self._merges:
            known = merged_values(self.table) | self._known
            self.table = replace(self.table, known_values=known)
        if numbers.formats or task.date_features or self._merges:
            statistics, _ = self._scanned(task)

        def again(request: Callable[[Any, Plan], Any], plan: Plan) -> Any:
            return merged(self._requested(lambda frame: request(frame, plan)))

        plan = finalise(statistics, task, again)
        how = self._target_format(task)
        na_values = own_na_values(self.table.missing)
        schema = replace(plan.schema, target_format=how, na_values=na_values)
        return replace(plan, schema=replace(schema, merge_case=self._merges))

    def _target_format(self, task: Task) -> NumberFormat | None:
        """Return how the numbers of the target are written, unless plainly."""
        table = self.table
        if not (task.is_regression and table.is_delimited):
            return None
        said = NumberColumns(table.reading, table.label, table.number_formats)
        how = said.known_format(task.target)
        return how if isinstance(how, NumberFormat) else None

    def _detected(self, task: Task) -> tuple[Summary, NumberColumns]:
        """Scan all rows, and detect numbers and dates that are not written plainly.

        The target is scanned as text only where it must be: if it is no plain number,
        or other columns have decimal commas, so that its points may be thousands.
        """
        given = self.table
        detects = task.is_regression and given.is_delimited
        detects = detects and task.target not in given.number_formats
        try:
            statistics, mixed = self._scanned_as_one(task)
        except DataError as error:
            numbers = self._with_target(given, task) if detects else None
            if numbers is None or task.target not in numbers.formats:
                raise error from None
            return Summary(), numbers
        numbers = self._written_numbers(statistics, task, {*mixed})
        if detects and numbers.has_decimal_commas:
            numbers = self._with_target(given, task) or numbers
        return statistics, numbers

    def _scanned_as_one(self, task: Task) -> tuple[Summary, list[str]]:
        """Scan all rows; columns that mix numbers and text are text."""
        statistics, mixed = self._scanned(task)
        if mixed:
            text = {*self.table.text_columns, *mixed}
            self.table = replace(self.table, text_columns=text)
            statistics, _ = self._scanned(task)
        return statistics, mixed

    def _with_target(self, given: StreamedTable, task: Task) -> NumberColumns | None:
        """Detect numbers, also those of the target; None if rows are not valid."""
        name = task.target
        self.table = replace(
            given,
            text_columns={*given.text_columns, name},
            number_columns={*given.number_columns} - {name},
        )
        as_classes = replace(
            task, criterion=None, classes=None, class_weight=None, priors=None
        )
        try:
            statistics, mixed = self._scanned_as_one(as_classes)
        except DataError:
            return None
        texts = [str(label) for label in statistics.labels or ()]
        numbers = self._written_numbers(statistics, as_classes, {*mixed}, texts)
        self.table = replace(
            self.table,
            text_columns={*self.table.text_columns} - {name},
            number_columns=given.number_columns,
        )
        return numbers

    def _written_numbers(
        self,
        statistics: Summary,
        task: Task,
        mixed: Collection[str],
        of_target: Sequence[str] = (),
    ) -> NumberColumns:
        """Detect text columns of numbers that are not written plainly.

        ``of_target`` are the texts of the target, if it is to be detected, too.
        """
        table = self.table
        numbers = NumberColumns(table.reading, table.label)
        if not table.is_delimited:
            return numbers
        fixed = {*table.text_columns, *table.number_columns, task.target} - {*mixed}

        def values(summaries: Iterable[ColumnSummary]) -> dict[str, Any]:
            return {
                summary.column.name: arrow_values(summary)
                for summary in summaries
                if summary.column.name not in fixed and not summary.is_empty
            }

        def reread(names: Sequence[str]) -> dict[str, Any]:
            found = {task.target: text_column(of_target)} if of_target else {}
            if not found.keys() >= {*names}:
                text = {*table.text_columns, *names}
                self.table = replace(table, text_columns=text)
                found |= values(self._scanned(task)[0].columns)
                self.table = table
            return {name: found[name] for name in names}

        columns = values(statistics.columns)
        if of_target:
            plain = all(as_number(text) is not None for text in of_target)
            texts = text_column(of_target)
            columns[task.target] = texts.cast(pa.float64()) if plain else texts
        numbers.detected(columns, list(columns), reread)
        numbers.detected_dates(columns, list(columns))
        numbers.check_ambiguous()
        return numbers

    def _scanned(self, task: Task) -> tuple[Summary, list[str]]:
        """Return the summary of all rows, and the columns that mix numbers and text."""
        kinds: dict[str, set[bool]] = {}
        statistics = Summary()
        rows = 0
        for summary in self._requested(lambda frame: scan(frame, task)):
            rows += summary.n_rows
            self._say(f"Scanning the rows: {rows:,}")
            for name, is_number in kinds_of(summary, task):
                kinds.setdefault(name, set()).add(is_number)
            if not mixed_columns(kinds):
                statistics = statistics.merge(summary)
        return statistics, mixed_columns(kinds)

    def _requested(self, request: Callable[[Any], Any]) -> Iterator[Any]:
        """Yield the results of a request for every chunk; errors name the location."""
        with closing(self.table.chunks()) as chunks:
            for chunk in chunks:
                try:
                    result = request(chunk.frame)
                except DataError as error:
                    self._check_change()
                    raise chunk.located(error) from None
                yield result
        self._check_change()

    def _check_change(self) -> None:
        if self.table.stamps() != self._stamps:
            raise DataError(
                f"{self.label} changed while the tree was grown. Fit again while "
                "nothing writes to it."
            )

    def engine(self, plan: Plan) -> PassEngine:
        """Return the engine that counts the rows by a plan."""
        self.use(plan)
        return PassEngine(plan, self)

    def use(self, plan: Plan) -> None:
        """Encode the rows by a plan from now on."""
        self._plan = plan
        self._store = None
        # The plan may be that of other files, with other summaries.
        stored = [c for c in plan.schema.columns if c.date_feature is None]
        learnt = {column.name: column for column in stored}
        how = plan.schema.target_format
        if how is not None:
            target = str(plan.task.target)
            learnt[target] = Column(target, "numeric", number_format=how)
        self.table = self.table.for_columns(learnt)
        if plan.schema.merge_case:
            known = known_values(plan.schema, str(plan.task.target))
            self.table = replace(self.table, known_values=known)

    def merge_into(self, plan: Plan) -> None:
        """Merge spellings into the values of the plan of other rows."""
        self._known = known_values(plan.schema, str(plan.task.target))

    def whole(self, plan: Plan) -> Chunk:
        """Return all rows in memory, encoded by a plan."""
        self.use(plan)
        rows = joined(list(self._requested(lambda frame: encode_chunk(frame, plan))))
        check_n_rows(self.label, plan, rows.n_rows)
        return rows

    def chunks(self) -> Generator[Chunk, None, None]:
        """Yield all rows, encoded; the first pass writes them to the store."""
        if self._store is not None:
            for arrays in self._store.batches():
                yield self.deserialised(arrays)
            return
        store = self.new_store() if self._cache else None
        plan, rows = self.plan, 0
        for chunk in self._requested(lambda frame: encode_chunk(frame, plan)):
            rows += chunk.n_rows
            self._say(f"Encoding the rows: {rows:,} of {plan.n_rows:,}")
            if store is not None:
                store.append(serialised(chunk))
            yield chunk
        check_n_rows(self.label, plan, rows)
        self._store = store

    def new_store(self) -> BatchStore:
        """Return a temporary file that is deleted with the others."""
        store = BatchStore(self._temporary())
        self._open.callback(store.remove)
        return store

    @property
    def plan(self) -> Plan:
        """The plan that rows are encoded by."""
        if self._plan is None:
            raise AssertionError("rows are counted by a plan")
        return self._plan

    def deserialised(self, arrays: list[Any]) -> Chunk:
        """Return the rows of arrays that were written to a store."""
        n = len(self.plan.schema.columns)
        weights = arrays[n + 1] if len(arrays) > n + 1 else None
        return Chunk(tuple(arrays[:n]), arrays[n], weights)

    def _temporary(self) -> Path:
        if self._folder is None:
            try:
                folder = tempfile.TemporaryDirectory(
                    prefix="branchwise-", dir=self._folder_wanted
                )
            except OSError as error:
                raise DataError(
                    f"temporary_folder cannot be used: {error.strerror}. Got "
                    f"{self._folder_wanted!r}; choose another, or do without "
                    "(cache=False)."
                ) from None
            self._folder = Path(self._open.enter_context(folder))
        return self._folder

    def run(self, job: Job) -> Any:
        """Run a job on every chunk, one after the other."""
        with closing(self.chunks()) as chunks:
            return merged(map(job, chunks))

    def finish(
        self, route: Route, bucket: Ints, below: Below
    ) -> Iterator[tuple[int, Tree]]:
        """Group the rows of open nodes in files, some in each pass, and finish each."""
        n_files = int(bucket.max()) + 1
        for first in range(0, n_files, MOST_FILES):
            among = (bucket >= first) & (bucket < first + MOST_FILES)
            now = np.where(among, bucket - first, -1)
            for at, (rows, nodes) in enumerate(self._together(route, now)):
                self._say(f"Finishing nodes: {first + at + 1:,} of {n_files:,} files")
                yield from finished(rows, nodes, below)

    def _together(self, route: Route, bucket: Ints) -> Iterator[tuple[Chunk, Any]]:
        """Yield the rows of each bucket, and their nodes."""
        stores = [self.new_store() for _ in range(int(bucket.max()) + 1)]
        with closing(self.chunks()) as chunks:
            for chunk in chunks:
                nodes = route.nodes_of(chunk)
                for number, chosen in chunk.by_bucket(nodes, bucket):
                    own = serialised(chunk.take(chosen))
                    stores[number].append([nodes[chosen], *own])
        for store in stores:
            batches = list(store.batches())
            store.remove()
            rows = joined([self.deserialised(batch[1:]) for batch in batches])
            yield rows, np.concatenate([batch[0] for batch in batches])


def serialised(chunk: Chunk) -> list[Any]:
    """Return the arrays of rows, for a store."""
    weights = [] if chunk.weights is None else [chunk.weights]
    return [*chunk.codes, chunk.target, *weights]
