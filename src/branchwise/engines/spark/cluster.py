"""Sessions of Spark: values and frames of the workers, merged results, errors."""

from __future__ import annotations

import os
import re
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from branchwise.engines.level_engine import Texts, merged
from branchwise.engines.spark.workers import (
    PAGES,
    Objects,
    Outcome,
    PartitionTask,
    Shipped,
    merge_results,
    opened,
)
from branchwise.errors import DataError

#: The number of results that one task merges, and the most that the driver gets.
FAN_IN = 16

_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_LONGEST = 500  # letters of a cause
_PYTHON_ERROR = re.compile(r"^\s*([A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b.*)$")


@dataclass(frozen=True)
class Enclosed:
    """A value that is sent with every task."""

    value: Any


def mapped(frame: Any, work: Any, schema: Any = PAGES) -> Any:
    """Apply a function to the Arrow batches of every partition, on the workers."""
    with warnings.catch_warnings():
        # PySpark checks the version of pandas here, which is not used.
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(work, schema)


def paged(frame: Any, work: Callable[..., Objects], *shipped: Shipped) -> Any:
    """Return the pages of the objects that a function makes of every partition."""
    return mapped(frame, PartitionTask(work, shipped))


class Session:
    """A session of Spark; ``failed`` says in errors what was not done."""

    def __init__(self, spark: Any, failed: str = "the tree was not grown") -> None:
        self._failed = failed
        # Spark Connect has no context, and says so by an AttributeError.
        self._context = getattr(spark, "sparkContext", None)
        # Ctrl-C closes the connection, and with it the tags of the session.
        if self._context is None:
            self._tag, self._untag = spark.addTag, spark.removeTag
            self._cancel = spark.interruptTag
        else:
            self._tag, self._untag = self._context.addJobTag, self._context.removeJobTag
            self._cancel = self._context.cancelJobsWithTag

    @property
    def n_tasks(self) -> int:
        """The number of tasks that run at the same time; 0 if that is not known."""
        return 0 if self._context is None else int(self._context.defaultParallelism)

    @contextmanager
    def shipped(self, value: Any) -> Iterator[Shipped]:
        """Broadcast a value to the workers, until the block ends."""
        if self._context is None:
            yield Enclosed(value)
            return
        with self.working():
            broadcast = self._context.broadcast(value)
        try:
            yield broadcast
        finally:
            broadcast.destroy()

    @contextmanager
    def persisted(self, frame: Any) -> Iterator[Any]:
        """Persist the rows of a frame until the block ends."""
        from pyspark.storagelevel import StorageLevel  # noqa: PLC0415

        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield kept
        finally:
            kept.unpersist()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Cancel the work on Ctrl-C, and shorten errors of Spark."""
        tag = f"branchwise-{uuid.uuid4().hex}"
        self._tag(tag)
        try:
            yield
        except Exception as error:
            if not _is_of_spark(error):
                raise
            raise DataError(
                "Spark could not go through the rows of the table, and "
                f"{self._failed}: {cause(error)}"
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

    def outcome(self, results: Any, n_partitions: int) -> Outcome:
        """Merge the results of partitions, on the workers while there are many.

        Each partition has one result, however often it is retried: Spark keeps that of
        one attempt.
        """
        while n_partitions > FAN_IN:
            n_partitions = -(-n_partitions // FAN_IN)
            together = results.repartition(n_partitions, "source")
            in_order = together.sortWithinPartitions("source", "page")
            results = paged(in_order, merge_results)
        return known(outcome for _, outcome in self.objects(results))

    def objects(self, pages: Any) -> Iterator[tuple[int, Any]]:
        """Fetch objects with their buckets, in the order of buckets."""
        columns = pages.select("bucket", "source", "page", "last", "data")
        rows = sorted(self.collected(columns), key=lambda row: row[:3])
        return opened((row.bucket, row.last, bytes(row.data)) for row in rows)


def session(master: str | None) -> Any:
    """Return the active session, or a new one."""
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


def parquet_frame(
    files: Texts, names: Texts, missing: Texts, address: str | None = None
) -> Any:
    """Return columns of Parquet files as a DataFrame; some texts are missing values."""
    from pyspark.sql import functions  # noqa: PLC0415

    frame = session(address).read.parquet(*files)
    # By position: Spark treats dots in names as fields, and ignores case.
    position = {field.name: at for at, field in enumerate(frame.schema.fields)}
    numbered = frame.toDF(*map(str, range(len(position))))
    columns = []
    for name in names:
        column = numbered[str(position[name])]
        if frame.schema.fields[position[name]].dataType.typeName() == "string":
            # Where that does not hold, or is unknown, there is NULL.
            column = functions.when(~column.isin(list(missing)), column)
        columns.append(column.alias(name))
    return numbered.select(columns)


def known(outcomes: Iterable[Outcome]) -> Outcome:
    """Merge outcomes, and raise the error if there is one."""
    total: Outcome = merged(outcomes) or Outcome(0)
    if total.failure is not None:
        raise total.failure
    return total


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j", "grpc")


def cause(error: Exception) -> str:
    """Return the cause of an error, without the stack of Spark.

    An error in Python is the last line of its traceback; of others the first lines
    of what Spark says.
    """
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "Traceback (most recent call last)" in text:
        errors = [match[1] for line in lines if (match := _PYTHON_ERROR.match(line))]
        lines = errors[-1:] or lines
    shown = " ".join(line for line in lines[:3] if not line.startswith("at "))
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."
