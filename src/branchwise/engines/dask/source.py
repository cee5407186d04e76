"""Rows on Dask: partitions are read, encoded and counted where they lie.

Each partition is read once and then held by the workers as narrow codes. A level of
the tree is one job to all parts; their counts are added up by the workers, and only
the sum comes here, so what comes does not grow with the number of rows. The rows of
nodes that are small enough are brought together among the workers, which grow what
is below them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, Protocol, Self, get_args

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.columns import RawColumn
from branchwise.data.frames import Frame
from branchwise.data.schema import Schema
from branchwise.engines.base import model_of
from branchwise.engines.dask.cluster import Crew, connect, crew_of, put_together_by
from branchwise.engines.fit_plan import Plan, Task
from branchwise.engines.level_engine import Job, PassEngine
from branchwise.engines.remote import (
    MOST_BATCHES,
    CutByBatch,
    Desk,
    Mark,
    answered,
    block_of,
    check_parquet,
    done,
    encoded,
    finished,
    held,
    mark_of,
    unpacked,
)
from branchwise.engines.scan import (
    Again,
    Below,
    Route,
    attributes_of,
    look,
    look_again,
    settle,
    weigh_again,
)
from branchwise.errors import DataError, ParameterError, check_limit, counted, quoted
from branchwise.files.parquet import declared_columns
from branchwise.tree.tree import Tree

What = Literal["classes", "probabilities", "leaves"]


class PartedTable:
    """A Dask DataFrame or 2-D array, and what lies beside it, part by part."""

    def __init__(self, X: Any, beside: Mapping[str, Any]) -> None:
        if isinstance(X, da.Array):
            X = _whole_rows(X)
        elif not isinstance(X, dd.DataFrame):
            raise DataError(
                "X must be a Dask DataFrame or a Dask array of two dimensions. Got "
                f"{type(X).__name__} instead; a table in memory needs no Dask."
            )
        self._X = X
        self._beside = {
            role: _parted_alike(role, column, X) for role, column in beside.items()
        }

    @property
    def named(self) -> bool:
        """Whether columns have names of the user's."""
        return isinstance(self._X, dd.DataFrame)

    @property
    def names(self) -> list[str]:
        """The names of the columns of X."""
        if self.named:
            return [str(name) for name in self._X.columns]
        return [f"x{index}" for index in range(self._X.shape[1])]

    @property
    def outline(self) -> Frame:
        """The table without its rows."""
        names = (*self.names, *self._beside)
        return Frame(names, 0, self.named, (_unread,) * len(names))

    def delayed(self, unread: AbstractSet[str]) -> list[Any]:
        """Return tasks that read the partitions but for some columns."""
        X = self._X
        if self.named and not unread.isdisjoint(self.names):
            # What is not needed is not even read from files.
            X = X[[name for name in X.columns if str(name) not in unread]]
        tables = _tasks(X)
        beside = {name: _tasks(column) for name, column in self._beside.items()}
        read = dask.delayed(held, pure=False)
        return [
            read(at, table, {name: tasks[at] for name, tasks in beside.items()})
            for at, table in enumerate(tables)
        ]


def parquet_frame(
    paths: Sequence[str], names: Sequence[str], missing: Sequence[str]
) -> Any:
    """Return columns of Parquet files as a DataFrame; some texts are missing values."""
    files = [str(path) for path in paths]
    check_parquet(files, "dask")
    frame = dd.read_parquet(files)
    declared = declared_columns(files[0])
    if not set(names) <= set(frame.columns):
        frame = frame.reset_index()  # a column that pandas wrote as the index
    return frame[list(names)].map_partitions(_as_read, tuple(missing), declared)


def _as_read(
    part: pd.DataFrame, missing: Sequence[str], declared: AbstractSet[str]
) -> pd.DataFrame:
    """Take columns as files are read: some texts are missing values.

    A dictionary that is not declared is only a way to store values.
    """
    part = part.copy(deep=False)
    for name, column in part.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            gone = [text for text in missing if text in column.cat.categories]
            kept = column.cat.remove_categories(gone)
            plain = kept.astype(column.cat.categories.dtype)
            part[name] = kept if name in declared else plain
        elif pd.api.types.is_string_dtype(column.dtype):
            part[name] = column.mask(column.isin(missing))
    return part


def series_name(column: Any) -> str | None:
    """Return the name of a Series; arrays have names that mean nothing."""
    name = column.name if isinstance(column, dd.Series) else None
    return name if isinstance(name, str) and name else None


def _unread() -> RawColumn:
    raise AssertionError("an outline has no rows")


def _tasks(collection: Any) -> list[Any]:
    tasks = collection.to_delayed()
    return list(tasks.ravel() if isinstance(tasks, np.ndarray) else tasks)


def _whole_rows(X: Any) -> Any:
    """Return an array whose rows are not cut in pieces."""
    if X.ndim != 2:
        raise DataError(
            f"X must be a table. Expected 2D array, got {X.ndim}D array instead. "
            "Reshape your data: X.reshape(-1, 1) if it is one column."
        )
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _parted_alike(role: str, column: Any, X: Any) -> Any:
    """Check that a column is parted as the table is, as far as can be known."""
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
    n_table, n_column = _n_parts(X), _n_parts(column)
    if n_table != n_column:
        raise DataError(
            f"{role} must be parted as X is. Got {counted(n_column, 'partition')} for "
            f"{counted(n_table, 'partition')} of X; make both of one table, or "
            "repartition one."
        )
    return column


def _n_parts(collection: Any) -> int:
    if isinstance(collection, da.Array):
        return int(collection.numblocks[0])
    return int(collection.npartitions)


class Predicting(Protocol):
    """A model, as far as it is needed here."""

    schema: Schema

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the class, or the number, of each row."""

    def predict_proba(self, X: object) -> Floats:
        """Return the probabilities of the classes."""

    def apply(self, X: object) -> Ints:
        """Return the node that each row arrives at."""

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""


def predict(model: Predicting, X: Any, what: What = "classes") -> Any:
    """Predict where the rows lie, when the answer is asked for.

    Parameters
    ----------
    model : Model
        What :func:`~branchwise.fit_tree` or :func:`~branchwise.load` returns, or an
        estimator that is fitted. It is sent to each worker once.
    X : dask.dataframe.DataFrame or dask.array.Array
        The rows.
    what : {"classes", "probabilities", "leaves"}, default="classes"
        The class of each row, or the number where numbers are predicted; the
        probability of each class; or the node that each row arrives at.

    Returns
    -------
    Series, DataFrame or array of Dask
        Lazy, with the partitions and the index of X: a Series, for probabilities a
        DataFrame with a column for each class; arrays for an array.
    """
    model = model_of(model)
    if what not in get_args(What):
        raise ParameterError(
            f"what must be one of {quoted(get_args(What))}. Got {what!r}."
        )
    if what == "probabilities" and not model.schema.classes:
        raise ParameterError(
            "what='probabilities' needs a tree that predicts classes. Got one that "
            "predicts numbers; use 'classes', which are its numbers."
        )
    token = dask.base.tokenize(model.to_bytes())
    sent = dask.delayed(model, name=f"branchwise-model-{token}", traverse=False)
    if isinstance(X, dd.DataFrame):
        meta = _frame_answers(X._meta, model, what)  # noqa: SLF001
        return X.map_partitions(
            _frame_answers, sent, what, meta=meta, enforce_metadata=False
        )
    if not isinstance(X, da.Array):
        raise DataError(
            "X must be a Dask DataFrame or a Dask array of two dimensions. Got "
            f"{type(X).__name__} instead; use model.predict for a table in memory."
        )
    X = _whole_rows(X)
    meta = _answers(np.empty((0, X.shape[1]), X.dtype), model, what)
    shape: dict[str, Any] = {"drop_axis": 1}
    if meta.ndim == 2:
        shape = {"chunks": (X.chunks[0], (meta.shape[1],))}
    return X.map_blocks(_answers, model=sent, what=what, meta=meta, **shape)


def _answers(rows: Any, model: Predicting, what: What) -> NDArray[Any]:
    if what == "probabilities":
        return model.predict_proba(rows)
    return model.predict(rows) if what == "classes" else model.apply(rows)


def _frame_answers(rows: pd.DataFrame, model: Predicting, what: What) -> Any:
    found = _answers(rows, model, what)
    if what == "probabilities":
        return pd.DataFrame(found, rows.index, list(model.schema.classes))
    name = model.schema.target if what == "classes" else "leaf"
    return pd.Series(found, rows.index, name=name)


__all__ = ["DaskTable", "What", "predict"]

#: Rows are brought together in no more blocks than that: each is a task of its own.
MOST_BLOCKS = 50_000
#: Batches of nodes for each thread, so that none waits long for the others.
BATCHES_PER_THREAD = 4


class DaskTable:
    """A Dask table, to grow trees from where its partitions lie.

    Use it in a ``with`` statement, or call :meth:`close`: workers hold encoded rows
    until then.

    Parameters
    ----------
    X : dask.dataframe.DataFrame or dask.array.Array
        The table. Its index means nothing; the columns of an array are x0, x1, ...
    y, weights : Series or 1-D array of Dask, or None
        The target and the weights, where they are not columns of the table. They must
        be parted as it is. :attr:`target` and :attr:`weight` are their names.
    client : distributed.Client or None, default=None
        Who does the work; None is the current client or, where there is none, this
        process.
    most_rows : int, default=500_000
        As many rows one worker may be given to finish nodes with; 0 is none.
    retries : int, default=2
        How often a partition that fails is tried again, by a client.
    hold : bool, default=True
        Whether workers hold what they have read, as codes and numbers, until it is
        encoded. If not, partitions are read twice, and take less memory.
    """

    engine_name = "dask"
    label = "a Dask table"

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
        names = PartedTable(X, {}).names
        #: What a task calls the target and the weights that lie beside the table.
        own = series_name(y)
        self.target = None if y is None else _free_name(own or "y", names)
        self.weight = None if weights is None else _free_name("weights", names)
        given = {self.target: y, self.weight: weights}
        self._table = PartedTable(X, {name: given[name] for name in given if name})
        self._target_name = own
        self.most_rows = most_rows
        self._crew = crew_of(client, retries)
        self._hold = hold
        self._held: tuple[frozenset[str], list[Any]] | None = None

    @staticmethod
    def frame_of(
        paths: Sequence[str],
        names: Sequence[str],
        missing: Sequence[str],
        scheduler: str | None = None,
    ) -> Any:
        """Return Parquet files as a DataFrame, and become a client of a scheduler.

        Parameters
        ----------
        paths : sequence of str
            The files.
        names : sequence of str
            The columns.
        missing : sequence of str
            The texts that are missing values.
        scheduler : str or None
            The address of the scheduler, unless there is a client.
        """
        frame = parquet_frame(paths, names, missing)
        if scheduler is not None:
            connect(scheduler)
        return frame

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all that workers hold."""
        self._held = None
        self._crew.release()

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Stop all work, and let go of it, when something goes wrong here."""
        try:
            yield
        except BaseException:
            self._held = None
            self._crew.release(cancel=True)
            raise

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._table.outline.names

    def learn(self, task: Task) -> Plan:
        """Look at all rows once (and at weights once or twice more)."""
        # What lacks in every partition is said before any is read.
        attributes_of(self._table.outline, task)
        with self.undone_on_error():
            tables = self._tables(task)
            plan = settle(
                self._merged(tables, "look", look, task),
                task,
                Again(
                    lambda plan: self._merged(tables, "weigh", weigh_again, plan),
                    lambda plan: self._merged(tables, "look again", look_again, plan),
                ),
            )
        schema = replace(plan.schema, named=self._table.named)
        if self.target is not None:
            schema = replace(schema, target=self._target_name)
        return replace(plan, schema=schema)

    def _tables(self, task: Task) -> list[Any]:
        """Return the partitions as they are read, or as they are held."""
        unread = frozenset(task.ignored) - {task.target, task.weight}
        if self._held is not None and self._held[0] == unread:
            return self._held[1]
        tables = self._crew.begin(self._table.delayed(unread))
        if self._hold:
            self._held = unread, tables
        return tables

    def _merged(
        self, tables: Sequence[Any], name: str, question: Any, word: object
    ) -> Any:
        crew = self._crew
        shared = crew.share(word, f"{name}-by")
        answers = crew.each(
            name,
            answered,
            range(len(tables)),
            tables,
            [question] * len(tables),
            [shared] * len(tables),
        )
        return crew.get([put_together_by(crew, answers)], answers)[0]

    def engine(self, plan: Plan) -> PassEngine:
        """Return who counts the rows by a plan, which are encoded for it."""
        crew = self._crew
        with self.undone_on_error():
            tables = self._tables(plan.task)
            desk = Desk(plan)
            shared = crew.share(desk, "plan")
            parts = crew.each(
                "encode", encoded, range(len(tables)), tables, desk=shared
            )
            marks = crew.get(crew.each("mark", mark_of, parts), parts)
            self._held = None
            n_rows = sum(mark.n_rows for mark in marks)
            if n_rows != plan.n_rows:
                raise DataError(
                    "The table changed while the tree was grown: it had "
                    f"{plan.n_rows:,} rows and now has {n_rows:,}. Fit again while "
                    "nothing writes to it."
                )
        return PassEngine(plan, DaskParts(self, crew, desk, shared, parts, marks))


class DaskParts:
    """Encoded rows on the workers, and who asks them."""

    def __init__(
        self,
        place: DaskTable,
        crew: Crew,
        desk: Desk,
        shared_desk: Any,
        parts: list[Any],
        marks: list[Mark],
    ) -> None:
        self.most_rows = place.most_rows
        self._place = place
        self._crew = crew
        self._desk = desk
        self._shared_desk = shared_desk
        self._parts = parts
        self._marks = marks

    def run(self, job: Job) -> Any:
        """Ask every part and put the answers together."""
        with self._place.undone_on_error():
            answers = self._done("count", job)
            whole = put_together_by(self._crew, answers)
            return self._crew.get([whole], answers)[0]

    def _done(self, name: str, job: object) -> list[Any]:
        return self._crew.at_home(
            name,
            done,
            self._parts,
            self._marks,
            desk=self._shared_desk,
            letter=self._crew.share(self._desk.letter(job), f"{name}-by"),
        )

    def finish(
        self, route: Route, bucket: Ints, below: Below
    ) -> Iterator[tuple[int, Tree]]:
        """Bring the rows of open nodes together by bucket, and grow what is below.

        Buckets that are neighbours share a batch: one task, to which every part sends
        one block. Where there are so many parts that there would be fewer batches than
        threads, nothing is brought together.
        """
        n_buckets, n_threads = int(bucket.max()) + 1, self._crew.n_threads
        n_batches = min(
            n_buckets,
            BATCHES_PER_THREAD * n_threads,
            MOST_BLOCKS // len(self._parts),
            MOST_BATCHES,
        )
        if n_batches < min(n_buckets, n_threads):
            return
        batch = np.where(bucket < 0, -1, bucket * n_batches // n_buckets)
        with self._place.undone_on_error():
            cut = self._done("cut", CutByBatch(route, batch, n_batches))
            batches = self._finished(cut, n_batches, below)
            while batches:
                # One at a time: all trees together may be large.
                for node, arrays in self._crew.get([batches.pop()], cut)[0]:
                    yield node, unpacked(arrays)

    def _finished(self, cut: list[Any], n_batches: int, below: Below) -> list[Any]:
        crew, n_parts = self._crew, len(cut)
        every = [number for number in range(n_batches) for _ in cut]
        blocks = crew.each("block", block_of, cut * n_batches, every)
        return crew.each(
            "finish",
            finished,
            [blocks[at : at + n_parts] for at in range(0, len(blocks), n_parts)],
            desk=self._shared_desk,
            letter=crew.share(self._desk.letter(below), "finish-by"),
        )


def _free_name(name: str, taken: Sequence[str]) -> str:
    """Return a name for a column that lies beside a table."""
    while name in taken:
        name += "_"
    return name
