"""Spark DataFrames: partitions count their rows, and only counts reach the driver.

The table is read once. Spark keeps its rows as narrow codes, in memory and where
that is short on disk; every level is a pass over them with the splits so far, and
answers are merged by the workers until few are left. Workers need branchwise and
pyarrow installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from branchwise.counts import Ints
from branchwise.engines.afield import check_parquet
from branchwise.engines.facts import Facts
from branchwise.engines.jobs import Job
from branchwise.engines.learning import Again, look_again, settle, weigh_again
from branchwise.engines.parts import Below, Route
from branchwise.engines.passes import PassEngine
from branchwise.engines.sending import sent
from branchwise.engines.spark_session import Session, chosen, known, mapped, session
from branchwise.engines.spark_workers import (
    FACTS,
    REPORT,
    ROWS,
    Ask,
    AskByPlan,
    Cut,
    Encode,
    GrowBelow,
    Pack,
    Shipped,
)
from branchwise.engines.task import Plan, Task
from branchwise.errors import DataError, check_limit
from branchwise.tree import Tree

#: Nodes are finished in so many places for every partition, if there are as many.
PLACES_EACH = 4

_CHANGED = (
    "The table changed while the tree was grown: it had {:,} rows at first and has "
    "{:,} now. Spark reads rows again that it lost with a worker; save the table and "
    "fit again while nothing writes to it."
)


@dataclass(frozen=True)
class _Blocks:
    """The rows of the table as they were read, kept by Spark."""

    pages: Any
    n_partitions: int

    def of(self, bucket: int) -> Any:
        """Return the pages of rows, or of what they show."""
        return self.pages.where(f"bucket = {bucket}")


class SparkTable:
    """The rows of a Spark DataFrame.

    Close it after use, or use it in a ``with`` statement: Spark then forgets the rows
    that it kept, also after an error or Ctrl-C.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The table. It is read once, but for partitions that Spark loses.
    most_rows : int, default=500_000
        The most rows that one worker brings together to finish nodes at once; 0 never
        does.
    """

    engine_name = "spark"
    label = "a Spark DataFrame"

    def __init__(self, frame: Any, most_rows: int = 500_000) -> None:
        check_limit("most_rows", most_rows, 0, optional=False)
        if frame.isStreaming:
            raise DataError(
                "The DataFrame is a stream, which has no end, and a tree is grown from "
                "all rows. Save some of it as a table, and grow the tree from that."
            )
        self._frame = frame
        self._most_rows = most_rows
        self._session = Session(frame.sparkSession)
        self._blocks: _Blocks | None = None
        self._held = ExitStack()
        self._read = ExitStack()

    @staticmethod
    def frame_of(
        paths: Sequence[str],
        names: Sequence[str],
        missing: Sequence[str],
        master: str | None = None,
    ) -> Any:
        """Let Spark read Parquet files.

        Parameters
        ----------
        paths : sequence of str
            The files.
        names : sequence of str
            The columns.
        missing : sequence of str
            The texts that are missing values.
        master : str or None
            The master of the session, such as ``"local[2]"``, unless there is one.
        """
        check_parquet(paths, "spark")
        frame = session(master).read.parquet(*paths)
        return chosen(frame, names, missing)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._frame.columns)

    def learn(self, task: Task) -> Plan:
        """Look at all rows once."""
        blocks = self._packed(task)
        shown = self._session.outcome(blocks.of(FACTS), blocks.n_partitions)

        def ask(plan: Plan, question: Callable[[Any, Plan], Any]) -> Any:
            with self._session.shipped(plan) as there:
                answers = mapped(blocks.of(ROWS), AskByPlan(there, question))
                found = self._session.outcome(answers, blocks.n_partitions)
            _check_unchanged(plan.n_rows, found.n_rows)
            return found.answer

        again = Again(
            lambda plan: ask(plan, weigh_again), lambda plan: ask(plan, look_again)
        )
        return settle(shown.answer or Facts(), task, again)

    def engine(self, plan: Plan) -> PassEngine:
        """Return who counts the rows by a plan."""
        blocks = self._blocks or self._packed(plan.task)
        there = self._held.enter_context(self._session.shipped(plan))
        encoded = mapped(blocks.of(ROWS), Encode(there))
        parts = self._held.enter_context(self._session.persisted(encoded))
        runner = _Runner(
            self._session,
            plan,
            there,
            parts,
            blocks.n_partitions,
            self._most_rows,
            self._forget_blocks,
        )
        return PassEngine(plan, runner)

    def _packed(self, task: Task) -> _Blocks:
        """Read the table, and let Spark keep what was read."""
        self.close()
        left_out = set(task.ignored) - {task.target, task.weight}
        kept = {
            f"c{at}": name
            for at, name in enumerate(self._frame.columns)
            if name not in left_out
        }
        # Columns are chosen by position: names may have dots, quotes and cases.
        numbered = self._frame.toDF(
            *(f"c{at}" for at in range(len(self._frame.columns)))
        )
        read = Pack(tuple(kept.values()), task)
        rows = mapped(numbered.select(*kept), read)
        pages = self._read.enter_context(self._session.persisted(rows))
        # Every partition ends with what it shows; so this reads them all.
        ends = pages.where(f"bucket = {FACTS} AND last").select("source")
        n_partitions = len(self._session.collected(ends))
        self._blocks = _Blocks(pages, n_partitions)
        return self._blocks

    def _forget_blocks(self) -> None:
        """Give up rows as they were read, once they are there as codes."""
        self._read.close()
        self._blocks = None

    def close(self) -> None:
        """Let Spark forget what it kept."""
        with self._held:
            self._forget_blocks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass
class _Runner:
    """Asks the parts that Spark keeps."""

    session: Session
    plan: Plan
    there: Shipped
    parts: Any
    n_partitions: int
    most_rows: int
    encoded: Callable[[], None]

    def run(self, job: Job) -> Any:
        """Ask every part and put the answers together."""
        with self.session.shipped(sent(job, self.plan)) as asked:
            answers = mapped(self.parts, Ask(self.there, asked))
            outcome = self.session.outcome(answers, self.n_partitions)
        _check_unchanged(self.plan.n_rows, outcome.n_rows)
        self.encoded()
        return outcome.answer

    def finish(
        self, route: Route, bucket: Ints, below: Below
    ) -> Iterator[tuple[int, Tree]]:
        """Bring the rows of open nodes together by bucket, and grow what is below."""
        n_buckets = int(bucket.max(initial=-1)) + 1
        cut, grown = sent((route, bucket), self.plan), sent(below, self.plan)
        with self.session.shipped(cut) as ways, self.session.shipped(grown) as growing:
            pieces = mapped(self.parts, Cut(self.there, ways))
            # One place more for the report of how many rows were cut up.
            n_places = min(n_buckets + 1, PLACES_EACH * self.n_partitions)
            together = pieces.repartition(n_places, "bucket")
            in_order = together.sortWithinPartitions("bucket", "source", "page")
            trees = mapped(in_order, GrowBelow(self.there, growing))
            things = self.session.things(trees)
        for found, thing in things:
            if found == REPORT:
                _check_unchanged(self.plan.n_rows, known([thing]).n_rows)
            else:
                yield thing


def _check_unchanged(expected: int, found: int) -> None:
    """Refuse rows that became more or fewer."""
    if found != expected:
        raise DataError(_CHANGED.format(expected, found))
