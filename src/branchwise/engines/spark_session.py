"""Work for Spark: what is sent along, what comes back, and what is left behind.

The same calls serve classic sessions and Spark Connect, whose workers get what is
sent along with the work itself.
"""

from __future__ import annotations

import os
import re
import sys
import uuid
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from branchwise.engines.jobs import merged
from branchwise.engines.spark_workers import Merge, Outcome, Shipped
from branchwise.errors import DataError
from branchwise.table.pages import PAGES, opened

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
