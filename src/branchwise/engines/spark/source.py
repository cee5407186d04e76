"""Spark DataFrames: partitions count their rows, and only counts reach the driver.

The table is read once. Spark keeps its rows as narrow codes, in memory and where
that is short on disk; every level is a pass over them with the splits so far, and
answers are merged by the workers until few are left. Workers need branchwise and
pyarrow installed.
"""

from __future__ import annotations

import os
import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self

from branchwise.data.arrays import Ints
from branchwise.engines.fit_plan import Facts, Plan, Task
from branchwise.engines.level_engine import Job, PassEngine, merged
from branchwise.engines.remote import PAGES, check_parquet, opened, sent
from branchwise.engines.scan import Again, Below, Route, look_again, settle, weigh_again
from branchwise.engines.spark.workers import (
    FACTS,
    REPORT,
    ROWS,
    Ask,
    AskByPlan,
    Cut,
    Encode,
    GrowBelow,
    Merge,
    Outcome,
    Pack,
    Shipped,
)
from branchwise.errors import DataError, check_limit
from branchwise.tree.tree import Tree

#: Answers of so many partitions are merged in one place; the driver gets no more.
FAN_IN = 16

_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_LONGEST = 500  # letters of a cause
_PYTHON_ERROR = re.compile(r"^\s*([A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b.*)$")


@dataclass(frozen=True)
class Enclosed:
    """What travels with every piece of work."""

    value: Any


def mapped(frame: Any, work: Any, schema: Any = PAGES) -> Any:
    """Let the workers do something with the Arrow batches of every partition."""
    with warnings.catch_warnings():
        # PySpark looks at the version of pandas here, which has no part in this.
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(work, schema)


class Session:
    """A session of Spark."""

    def __init__(self, spark: Any) -> None:
        # Spark Connect has no context, and says so by an AttributeError.
        self._context = getattr(spark, "sparkContext", None)
        # The session's own tags are forgotten with the connection, which Ctrl-C cuts.
        if self._context is None:
            self._tag, self._untag = spark.addTag, spark.removeTag
            self._cancel = spark.interruptTag
        else:
            self._tag, self._untag = self._context.addJobTag, self._context.removeJobTag
            self._cancel = self._context.cancelJobsWithTag

    @contextmanager
    def shipped(self, thing: Any) -> Iterator[Shipped]:
        """Send something to every worker, where it stays until the end."""
        if self._context is None:
            yield Enclosed(thing)
            return
        with self.working():
            broadcast = self._context.broadcast(thing)
        try:
            yield broadcast
        finally:
            broadcast.destroy()

    @contextmanager
    def persisted(self, frame: Any) -> Iterator[Any]:
        """Let Spark keep the rows of a frame until the end, once they are made."""
        from pyspark.storagelevel import StorageLevel  # noqa: PLC0415

        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield kept
        finally:
            kept.unpersist()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Cancel the work on Ctrl-C, and tell in a few words what went wrong."""
        tag = f"branchwise-{uuid.uuid4().hex}"
        self._tag(tag)
        try:
            yield
        except Exception as error:
            if not _is_of_spark(error):
                raise
            raise DataError(
                "Spark could not go through the rows of the table, and the tree was "
                f"not grown: {cause(error)}"
            ) from None
        except BaseException:
            self._cancel(tag)
            raise
        finally:
            self._untag(tag)

    def collected(self, frame: Any) -> list[Any]:
        """Return the rows of a small frame."""
        with self.working():
            rows: list[Any] = frame.collect()
            return rows

    def outcome(self, answers: Any, n_partitions: int) -> Outcome:
        """Put the answers of partitions together, on the workers while there are many.

        Each partition answers once, however often it is tried: Spark takes the
        result of one of the tries.
        """
        while n_partitions > FAN_IN:
            n_partitions = -(-n_partitions // FAN_IN)
            together = answers.repartition(n_partitions, "source")
            in_order = together.sortWithinPartitions("source", "page")
            answers = mapped(in_order, Merge())
        return known(outcome for _, outcome in self.things(answers))

    def things(self, pages: Any) -> Iterator[tuple[int, Any]]:
        """Bring things to the driver, with their buckets and in the order of those."""
        columns = pages.select("bucket", "source", "page", "last", "data")
        rows = sorted(self.collected(columns), key=lambda row: row[:3])
        return opened((row.bucket, row.last, bytes(row.data)) for row in rows)


def session(master: str | None) -> Any:
    """Return the session there is, or one of our own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Workers on this machine must find the packages that this process has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("branchwise")
    if master is not None:
        builder = builder.master(master)
    for name, value in _QUIET.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def chosen(frame: Any, names: Sequence[str], missing: Sequence[str]) -> Any:
    """Return some columns of a frame, of which some texts are missing values."""
    from pyspark.sql import functions  # noqa: PLC0415

    # By position: Spark takes dots in names for parts, and knows no case.
    place = {field.name: at for at, field in enumerate(frame.schema.fields)}
    numbered = frame.toDF(*map(str, range(len(place))))
    columns = []
    for name in names:
        column = numbered[str(place[name])]
        if frame.schema.fields[place[name]].dataType.typeName() == "string":
            # Where that does not hold, or is unknown, there is NULL.
            column = functions.when(~column.isin(list(missing)), column)
        columns.append(column.alias(name))
    return numbered.select(columns)


def known(outcomes: Iterable[Outcome]) -> Outcome:
    """Put outcomes together, and raise what was wrong."""
    total: Outcome = merged(outcomes) or Outcome(0)
    if total.failure is not None:
        raise total.failure
    return total


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j", "grpc")


def cause(error: Exception) -> str:
    """Say what went wrong, without the way through Spark.

    An error in Python is the last line of its traceback; of others the first lines
    of what Spark says.
    """
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "Traceback (most recent call last)" in text:
        found = [match[1] for line in lines if (match := _PYTHON_ERROR.match(line))]
        lines = found[-1:] or lines
    told = " ".join(line for line in lines[:3] if not line.startswith("at "))
    return told if len(told) <= _LONGEST else told[: _LONGEST - 3] + "..."


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
