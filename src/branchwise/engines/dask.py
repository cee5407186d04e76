"""Rows on Dask: partitions are read, encoded and counted where they lie.

Each partition is read once and then held by the workers as narrow codes. A level of
the tree is one job to all parts; their counts are added up by the workers, and only
the sum comes here, so what comes does not grow with the number of rows. The rows of
nodes that are small enough are brought together among the workers, which grow what
is below them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np

from branchwise.counts import Ints
from branchwise.engines.afield import (
    MOST_BATCHES,
    CutByBatch,
    Desk,
    Mark,
    answered,
    block_of,
    done,
    encoded,
    finished,
    mark_of,
    unpacked,
)
from branchwise.engines.dask_crew import Crew, connect, crew_of, put_together_by
from branchwise.engines.dask_tables import (
    PartedTable,
    What,
    parquet_frame,
    predict,
    series_name,
)
from branchwise.engines.jobs import Job
from branchwise.engines.learning import (
    Again,
    attributes_of,
    look,
    look_again,
    settle,
    weigh_again,
)
from branchwise.engines.parts import Below, Route
from branchwise.engines.passes import PassEngine
from branchwise.engines.task import Plan, Task
from branchwise.errors import DataError, check_limit
from branchwise.tree import Tree

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
