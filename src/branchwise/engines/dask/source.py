"""Data source of the Dask engine, and lazy prediction on Dask.

Each partition is read once and then held by the workers as small integer codes. A
level of the tree is one job for all partitions; the workers add up their counts, and
only the sum is sent here, so that its size does not grow with the number of rows. The
rows of small nodes are exchanged among the workers, which grow their subtrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, get_args

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.data.frames import Frame, unread
from branchwise.engines.base import Plan, Task, attributes_of
from branchwise.engines.cell_counts import TableCounts
from branchwise.engines.chunk import Below, Chunk, Route, check_n_rows
from branchwise.engines.dask.cluster import (
    Executor,
    executor_of,
    merge_results_on,
    parquet_frame,
)
from branchwise.engines.dask.workers import (
    MOST_BATCHES,
    Fingerprint,
    SliceByBatch,
    WorkerPlan,
    block_of,
    deserialised,
    done,
    encoded,
    fingerprint_of,
    finished,
    gathered,
    held,
    returned,
    shared_work,
)
from branchwise.engines.level_engine import Job, PassEngine, RemoteTable, shares_of
from branchwise.engines.prediction import What, predicted, prediction_names
from branchwise.engines.scan import finalise, scan
from branchwise.errors import DataError, ParameterError, check_limit, counted, quoted
from branchwise.tree.tree import Tree


class PartitionedTable:
    """A Dask DataFrame or 2-D array with further columns, by partition."""

    def __init__(self, X: Any, beside: Mapping[str, Any]) -> None:
        if isinstance(X, da.Array):
            X = _whole_rows(X)
        elif not isinstance(X, dd.DataFrame):
            raise DataError(
                "X must be a Dask DataFrame or a Dask array of two dimensions. Got "
                f"{type(X).__name__} instead; a table in memory needs no Dask."
            )
        #: The table, whose chunks have whole rows.
        self.rows = X
        self._beside = {
            role: _same_partitions(role, column, X) for role, column in beside.items()
        }

    @property
    def named(self) -> bool:
        """Whether the user has named the columns."""
        return isinstance(self.rows, dd.DataFrame)

    @property
    def names(self) -> list[str]:
        """The names of the columns of X."""
        if self.named:
            return [str(name) for name in self.rows.columns]
        return [f"x{index}" for index in range(self.rows.shape[1])]

    @property
    def outline(self) -> Frame:
        """The table without its rows."""
        names = (*self.names, *self._beside)
        return Frame(names, 0, self.named, (unread,) * len(names))

    def delayed(self, unread: AbstractSet[str]) -> list[Any]:
        """Return tasks that read the partitions without some columns."""
        X = self.rows
        if self.named and not unread.isdisjoint(self.names):
            # Columns that are not needed are not read from files.
            X = X[[name for name in X.columns if str(name) not in unread]]
        tables = _tasks(X)
        beside = {name: _tasks(column) for name, column in self._beside.items()}
        read = dask.delayed(held, pure=False)
        return [
            read(at, table, {name: tasks[at] for name, tasks in beside.items()})
            for at, table in enumerate(tables)
        ]


def series_name(column: Any) -> str | None:
    """Return the name of a Series; names of arrays have no meaning."""
    name = column.name if isinstance(column, dd.Series) else None
    return name if isinstance(name, str) and name else None


def _tasks(collection: Any) -> list[Any]:
    tasks = collection.to_delayed()
    return list(tasks.ravel() if isinstance(tasks, np.ndarray) else tasks)


def _whole_rows(X: Any) -> Any:
    """Return an array whose chunks have whole rows."""
    if X.ndim != 2:
        raise DataError(
            f"X must be a table. Expected 2D array, got {X.ndim}D array instead. "
            "Reshape your data: X.reshape(-1, 1) if it is one column."
        )
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _same_partitions(role: str, column: Any, X: Any) -> Any:
    """Check that a column has the partitions of the table, as far as known."""
    if not isinstance(column, (dd.Series, da.Array)) or column.ndim != 1:
        raise DataError(
            f"{role} must be a Dask Series or a Dask array of one dimension beside a "
            f"Dask table, or the name of a column. Got {type(column).__name__} instead."
        )
    if isinstance(X, da.Array) and isinstance(column, da.Array):
        rows, entries = X.shape[0], column.shape[0]
        if not math.isnan(rows) and not math.isnan(entries):
            if rows != entries:
                raise DataError(
                    f"{role} must have one value for each row of X. Got "
                    f"{counted(entries, 'value')} for {counted(rows, 'row')}."
                )
            return column.rechunk((X.chunks[0],))
    n_table, n_column = _n_chunks(X), _n_chunks(column)
    if n_table != n_column:
        raise DataError(
            f"{role} must have the partitions of X. Got "
            f"{counted(n_column, 'partition')} for "
            f"{counted(n_table, 'partition')} of X; make both of one table, or "
            "repartition one."
        )
    return column


def _n_chunks(collection: Any) -> int:
    if isinstance(collection, da.Array):
        return int(collection.numblocks[0])
    return int(collection.npartitions)


def dask_predictions(model: Any, X: Any, wanted: Sequence[What]) -> Any:
    """Predict lazily, on the workers that hold the rows.

    The model is sent to each worker once. The result has the partitions and the index
    of X: a Series, for probabilities a DataFrame; arrays for an array.
    """
    if len(wanted) > 1:
        raise ParameterError(
            f"what must be one of {quoted(get_args(What))} for a Dask table. Got "
            f"{quoted(wanted)}; predict them one by one."
        )
    what = wanted[0]
    token = dask.base.tokenize(model.to_bytes())
    sent = dask.delayed(model, name=f"branchwise-model-{token}", traverse=False)
    if isinstance(X, dd.DataFrame):
        meta = _frame_predictions(X._meta, model, what)  # noqa: SLF001
        return X.map_partitions(
            _frame_predictions, sent, what, meta=meta, enforce_metadata=False
        )
    if not isinstance(X, da.Array):
        raise DataError(
            "X must be a Dask DataFrame or a Dask array of two dimensions. Got "
            f"{type(X).__name__} instead; use model.predict for a table in memory."
        )
    X = _whole_rows(X)
    meta = predicted(model, np.empty((0, X.shape[1]), X.dtype), what)
    shape: dict[str, Any] = {"drop_axis": 1}
    if meta.ndim == 2:
        shape = {"chunks": (X.chunks[0], (meta.shape[1],))}
    return X.map_blocks(_block_predictions, model=sent, what=what, meta=meta, **shape)


def dask_counts(model: Any, X: Any) -> TableCounts:
    """Count the cells that training did not have, in one pass on the workers."""
    X = PartitionedTable(X, {}).rows
    if isinstance(X, dd.DataFrame):
        used = {model.schema.columns[at].given_as for at in model.used_columns}
        X = X[[name for name in X.columns if str(name) in used] or X.columns[:1]]
    sent = dask.delayed(model, traverse=False)
    count = dask.delayed(TableCounts.of_rows, pure=False)
    found = dask.compute(*(count(sent, rows) for rows in _tasks(X)))
    return reduce(TableCounts.merge, found, TableCounts.of_none(model))


def _block_predictions(rows: Any, model: Any, what: What) -> NDArray[Any]:
    return predicted(model, rows, what)


def _frame_predictions(rows: pd.DataFrame, model: Any, what: What) -> Any:
    found = predicted(model, rows, what)
    names = prediction_names(model.schema, what)
    if what == "probabilities":
        return pd.DataFrame(found, rows.index, names)
    return pd.Series(found, rows.index, name=names[0])


#: The most blocks of rows that are exchanged: each is a task.
MOST_BLOCKS = 50_000
#: Batches of nodes for each thread, to balance the load.
BATCHES_PER_THREAD = 4


class DaskTable(RemoteTable):
    """A Dask table whose trees are grown on the workers.

    Use it in a ``with`` statement, or call :meth:`close`: workers hold encoded rows
    until then.

    Parameters
    ----------
    X : dask.dataframe.DataFrame or dask.array.Array
        The table. Its index is ignored; the columns of an array are x0, x1, ...
    y, weights : Series or 1-D array of Dask, or None
        The target and the weights, where they are not columns of the table. They must
        have its partitions. :attr:`target` and :attr:`weight` are their names.
    client : distributed.Client or None, default=None
        The client whose workers are used; None is the current client or, without one,
        this process.
    most_rows : int, default=500_000
        The most rows that one worker gets to finish nodes; 0 is none.
    retries : int, default=2
        How often a partition that fails is tried again, by a client.
    hold : bool, default=True
        Whether workers hold the columns they have read until these are encoded. If
        not, partitions are read twice, and take less memory.
    """

    engine_name = "dask"
    label = "a Dask table"
    _read_parquet = staticmethod(parquet_frame)

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weights: Any = None,
        *,
        client: Any = None,
        most_rows: int = 500_000,
        retries: int = 2,
        hold: bool = True,
    ) -> None:
        check_limit("most_rows", most_rows, 0, optional=False)
        check_limit("retries", retries, 0, optional=False)
        names = PartitionedTable(X, {}).names
        #: Names of the target and the weights that are not columns of the table.
        own = series_name(y)
        self.target = None if y is None else _free_name(own or "y", names)
        self.weight = None if weights is None else _free_name("weights", names)
        given = {self.target: y, self.weight: weights}
        self._table = PartitionedTable(X, {name: given[name] for name in given if name})
        self._target_name = own
        self.most_rows = most_rows
        self._executor = executor_of(client, retries)
        self._hold = hold
        self._held: tuple[frozenset[str], list[Any]] | None = None

    def close(self) -> None:
        """Release the data on the workers."""
        self._held = None
        self._executor.release()

    @contextmanager
    def cancelled_on_error(self) -> Iterator[None]:
        """Cancel and release all work on errors."""
        try:
            yield
        except BaseException:
            self._held = None
            self._executor.release(cancel=True)
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._table.outline.names

    def learn(self, task: Task) -> Plan:
        """Scan all rows once (and weights once or twice more)."""
        # Missing columns are reported before any partition is read.
        attributes_of(self._table.outline, task)
        with self.cancelled_on_error():
            tables = self._tables(task)
            scanned = self._merged(tables, scan, task)
            plan = finalise(scanned, task, partial(self._merged, tables))
        schema = replace(plan.schema, named=self._table.named)
        if self.target is not None:
            schema = replace(schema, target=self._target_name)
        return replace(plan, schema=schema)

    def _tables(self, task: Task) -> list[Any]:
        """Return the tasks that read partitions, or the partitions that are held."""
        unread = frozenset(task.ignored) - {task.target, task.weight}
        if self._held is not None and self._held[0] == unread:
            return self._held[1]
        tables = self._executor.begin(self._table.delayed(unread))
        if self._hold:
            self._held = unread, tables
        return tables

    def _merged(self, tables: Sequence[Any], request: Any, argument: object) -> Any:
        executor, n = self._executor, len(tables)
        name = request.__name__
        shared = [executor.share(argument, f"{name}-by")] * n
        results = executor.each(name, returned, range(n), tables, [request] * n, shared)
        return executor.get([merge_results_on(executor, results)], results)[0]

    def engine(self, plan: Plan) -> PassEngine:
        """Encode the rows by a plan, and return the engine that counts them."""
        executor = self._executor
        with self.cancelled_on_error():
            worker_plan = WorkerPlan(plan)
            shared = executor.share(worker_plan, "plan")
            chunks = self._encoded(plan, shared)
            fingerprints: list[Fingerprint] = executor.get(
                executor.each("fingerprint", fingerprint_of, chunks), chunks
            )
            self._held = None
            check_n_rows("The table", plan, sum(each.n_rows for each in fingerprints))
        return PassEngine(
            plan,
            DaskPartitions(self, executor, worker_plan, shared, chunks, fingerprints),
        )

    def _encoded(self, plan: Plan, shared_plan: Any) -> list[Any]:
        tables = self._tables(plan.task)
        numbers = range(len(tables))
        each = self._executor.each
        return each("encode", encoded, numbers, tables, worker_plan=shared_plan)

    def prepared(self, plan: Plan, prepare: Callable[[Chunk], Any]) -> DaskRows:
        """Join all rows on a worker, from which this process and others fetch them."""
        executor = self._executor
        with self.cancelled_on_error():
            chunks = self._encoded(plan, executor.share(WorkerPlan(plan), "plan"))
            shared = executor.share(prepare, "gather-by")
            whole = executor.each("gather", gathered, [chunks], prepare=shared)
            rows = executor.get(whole, chunks)[0]
            self._held = None
            check_n_rows("The table", plan, rows.fingerprint.n_rows)
        return DaskRows(self, executor, whole[0], rows.fingerprint, rows.value)


@dataclass
class DaskPartitions:
    """Runs jobs on the encoded partitions of the workers."""

    table: DaskTable
    executor: Executor
    worker_plan: WorkerPlan
    shared_plan: Any
    chunks: list[Any]
    fingerprints: list[Fingerprint]

    def __post_init__(self) -> None:
        self.most_rows = self.table.most_rows

    def run(self, job: Job) -> Any:
        """Run a job on every partition, and merge the results."""
        with self.table.cancelled_on_error():
            results = self._done("count", job)
            whole = merge_results_on(self.executor, results)
            return self.executor.get([whole], results)[0]

    def _done(self, name: str, job: object) -> list[Any]:
        return self.executor.each_partition(
            name,
            done,
            self.chunks,
            self.fingerprints,
            worker_plan=self.shared_plan,
            payload=self.executor.share(self.worker_plan.payload(job), f"{name}-by"),
        )

    def finish(
        self, route: Route, bucket: Ints, below: Below
    ) -> Iterator[tuple[int, Tree]]:
        """Group the rows of open nodes by bucket, and grow their subtrees.

        Neighbouring buckets share a batch: one task, to which every partition sends one
        block. With so many partitions that there would be fewer batches than threads,
        nothing is grouped.
        """
        n_buckets, n_threads = int(bucket.max()) + 1, self.executor.n_threads
        n_batches = min(
            n_buckets,
            BATCHES_PER_THREAD * n_threads,
            MOST_BLOCKS // len(self.chunks),
            MOST_BATCHES,
        )
        if n_batches < min(n_buckets, n_threads):
            return
        batch = np.where(bucket < 0, -1, bucket * n_batches // n_buckets)
        with self.table.cancelled_on_error():
            sliced = self._done("slice", SliceByBatch(route, batch, n_batches))
            batches = self._finished(sliced, n_batches, below)
            while batches:
                # One at a time: all trees may be large.
                for node, arrays in self.executor.get([batches.pop()], sliced)[0]:
                    yield node, deserialised(arrays)

    def _finished(self, sliced: list[Any], n_batches: int, below: Below) -> list[Any]:
        executor, n_chunks = self.executor, len(sliced)
        every = [number for number in range(n_batches) for _ in sliced]
        blocks = executor.each("block", block_of, sliced * n_batches, every)
        return executor.each(
            "finish",
            finished,
            [blocks[at : at + n_chunks] for at in range(0, len(blocks), n_chunks)],
            worker_plan=self.shared_plan,
            payload=executor.share(self.worker_plan.payload(below), "finish-by"),
        )


@dataclass(frozen=True)
class DaskRows:
    """Something that was made of all rows, here and on the workers."""

    table: DaskTable
    executor: Executor
    held: Any
    fingerprint: Fingerprint
    value: Any

    def shares(
        self, work: Callable[[Any, Sequence[int]], list[Any]], numbers: Sequence[int]
    ) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Divide numbered work among the workers; yield numbers and results."""
        executor = self.executor
        every = shares_of(numbers, BATCHES_PER_THREAD * executor.n_threads)
        with self.table.cancelled_on_error():
            results = executor.each(
                "work",
                shared_work,
                [self.held] * len(every),
                every,
                fingerprint=self.fingerprint,
                function=executor.share(work, "work-by"),
            )
            for own, result in zip(every, results, strict=True):
                yield own, executor.get([result], results)[0]


def _free_name(name: str, taken: Sequence[str]) -> str:
    """Return an unused name for a further column of a table."""
    while name in taken:
        name += "_"
    return name
