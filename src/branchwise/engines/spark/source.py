"""Data source of the Spark engine, and lazy prediction on Spark.

The table is read once. Spark caches its rows as small integer codes, in memory and,
if necessary, on disk; every level is a pass over them with the splits so far, and the
workers merge their results until few are left. Only counts reach the driver. Workers
need branchwise and pyarrow installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from branchwise.data.arrays import Ints
from branchwise.data.arrow import batch_of_rows, table_of, with_columns
from branchwise.engines.base import Plan, Task
from branchwise.engines.cell_counts import CellCounts, TableCounts
from branchwise.engines.chunk import Below, Chunk, Route, check_n_rows, joined
from branchwise.engines.level_engine import (
    Job,
    PassEngine,
    RemoteTable,
    sent,
    shares_of,
)
from branchwise.engines.prediction import (
    Keep,
    What,
    kept_columns,
    predicted_columns,
    prediction_names,
)
from branchwise.engines.scan import finalise
from branchwise.engines.spark.cluster import (
    Session,
    known,
    mapped,
    paged,
    parquet_frame,
)
from branchwise.engines.spark.workers import (
    REPORT,
    ROWS,
    SUMMARY,
    Shipped,
    encode_rows,
    grow_below,
    read_rows,
    run_job,
    scan_again,
    shared_work,
    slice_rows,
)
from branchwise.engines.summaries import Summary
from branchwise.errors import BranchwiseError, DataError, check_limit, quoted
from branchwise.tree.tree import Tree

#: Buckets of nodes to finish for every partition.
POSITIONS_EACH = 4


@dataclass(frozen=True)
class _Blocks:
    """The rows of the table as they were read, kept by Spark."""

    pages: Any
    n_partitions: int

    def of(self, bucket: int) -> Any:
        """Return the pages of rows, or of their summaries."""
        return self.pages.where(f"bucket = {bucket}")


class SparkTable(RemoteTable):
    """The rows of a Spark DataFrame.

    Close it after use, or use it in a ``with`` statement: Spark then releases the rows
    that it cached, also after an error or Ctrl-C.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The table. It is read once, but for partitions that Spark loses.
    most_rows : int, default=500_000
        The most rows that one worker gets to finish nodes at once; 0 is none.
    """

    engine_name = "spark"
    label = "a Spark DataFrame"
    _read_parquet = staticmethod(parquet_frame)

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

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._frame.columns)

    def learn(self, task: Task) -> Plan:
        """Scan all rows once, and return the plan of counting them."""
        blocks = self._serialised(task)
        scanned = self._session.outcome(blocks.of(SUMMARY), blocks.n_partitions)

        def again(request: Callable[[Any, Plan], Any], plan: Plan) -> Any:
            with self._session.shipped(plan) as shipped_plan:
                work = partial(scan_again, request=request)
                results = paged(blocks.of(ROWS), work, shipped_plan)
                outcome = self._session.outcome(results, blocks.n_partitions)
            _check_unchanged(plan, outcome.n_rows)
            return outcome.result

        return finalise(scanned.result or Summary(), task, again)

    def engine(self, plan: Plan) -> PassEngine:
        """Return the engine that counts the rows by a plan."""
        blocks = self._blocks or self._serialised(plan.task)
        shipped_plan = self._held.enter_context(self._session.shipped(plan))
        encoded = paged(blocks.of(ROWS), encode_rows, shipped_plan)
        chunks = self._held.enter_context(self._session.persisted(encoded))
        runner = _Runner(
            self._session,
            plan,
            shipped_plan,
            chunks,
            blocks.n_partitions,
            self._most_rows,
            self._forget_blocks,
        )
        return PassEngine(plan, runner)

    def prepared(self, plan: Plan, prepare: Callable[[Chunk], Any]) -> SparkRows:
        """Fetch all rows, encoded by the workers."""
        blocks = self._blocks or self._serialised(plan.task)
        with self._session.shipped(plan) as shipped_plan:
            encoded = paged(blocks.of(ROWS), encode_rows, shipped_plan)
            chunks = [chunk for _, chunk in self._session.objects(encoded)]
        for chunk in chunks:
            if isinstance(chunk, BranchwiseError):
                raise chunk
        _check_unchanged(plan, sum(chunk.n_rows for chunk in chunks))
        self._forget_blocks()
        spark = self._frame.sparkSession
        return SparkRows(
            self._session, spark, blocks.n_partitions, prepare(joined(chunks))
        )

    def _serialised(self, task: Task) -> _Blocks:
        """Read the table, and let Spark cache its rows."""
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
        read = partial(read_rows, names=tuple(kept.values()), task=task)
        rows = paged(numbered.select(*kept), read)
        pages = self._read.enter_context(self._session.persisted(rows))
        # Every partition ends with its summary; so this reads them all.
        ends = pages.where(f"bucket = {SUMMARY} AND last").select("source")
        n_partitions = len(self._session.collected(ends))
        self._blocks = _Blocks(pages, n_partitions)
        return self._blocks

    def _forget_blocks(self) -> None:
        """Release the rows as read, once they are encoded."""
        self._read.close()
        self._blocks = None

    def close(self) -> None:
        """Release the rows that Spark has cached."""
        with self._held:
            self._forget_blocks()


@dataclass
class _Runner:
    """Runs jobs on the encoded rows that Spark caches."""

    session: Session
    plan: Plan
    shipped_plan: Shipped
    chunks: Any
    n_partitions: int
    most_rows: int
    encoded: Callable[[], None]

    def run(self, job: Job) -> Any:
        """Run a job on every partition, and merge the results."""
        with self.session.shipped(sent(job, self.plan)) as requested:
            results = paged(self.chunks, run_job, self.shipped_plan, requested)
            outcome = self.session.outcome(results, self.n_partitions)
        _check_unchanged(self.plan, outcome.n_rows)
        self.encoded()
        return outcome.result

    def finish(
        self, route: Route, bucket: Ints, below: Below
    ) -> Iterator[tuple[int, Tree]]:
        """Group the rows of open nodes by bucket, and grow their subtrees."""
        n_buckets = int(bucket.max(initial=-1)) + 1
        routed, grown = sent((route, bucket), self.plan), sent(below, self.plan)
        with (
            self.session.shipped(routed) as shipped_route,
            self.session.shipped(grown) as shipped_below,
        ):
            slices = paged(self.chunks, slice_rows, self.shipped_plan, shipped_route)
            # One bucket more for the number of rows that were distributed.
            n_positions = min(n_buckets + 1, POSITIONS_EACH * self.n_partitions)
            together = slices.repartition(n_positions, "bucket")
            in_order = together.sortWithinPartitions("bucket", "source", "page")
            trees = paged(in_order, grow_below, self.shipped_plan, shipped_below)
            objects = self.session.objects(trees)
        for number, result in objects:
            if number == REPORT:
                _check_unchanged(self.plan, known([result]).n_rows)
            else:
                yield result


@dataclass(frozen=True)
class SparkRows:
    """Something that was made of all rows, broadcast to the workers for their work."""

    session: Session
    spark: Any
    n_partitions: int
    value: Any

    def shares(
        self, work: Callable[[Any, Sequence[int]], list[Any]], numbers: Sequence[int]
    ) -> Iterator[tuple[Sequence[int], list[Any]]]:
        """Divide numbered work among the workers; yield numbers and results."""
        from pyspark import cloudpickle  # noqa: PLC0415

        every = shares_of(numbers, self.session.n_tasks or self.n_partitions)
        # A criterion may be a function of the user, which pickle alone cannot send.
        payload = cloudpickle.dumps((work, every, self.value))
        with self.session.shipped(payload) as shipped:
            tasks = self.spark.range(0, len(every), 1, len(every))
            for at, results in self.session.objects(paged(tasks, shared_work, shipped)):
                if isinstance(results, BranchwiseError):
                    raise results
                yield every[at], results


def _check_unchanged(plan: Plan, n_rows: int) -> None:
    check_n_rows(
        "The table",
        plan,
        n_rows,
        "Spark reads rows again that it lost with a worker; save the table. ",
    )


_TYPES = {bool: "boolean", int: "long", float: "double", str: "string"}


def spark_predictions(
    model: Any, frame: Any, wanted: Sequence[What], keep: Keep
) -> Any:
    """Return a lazy DataFrame of predictions, after the columns that are kept."""
    numbered, positions = _numbered(model, frame)
    added = _added(model, wanted)
    kept = kept_columns(keep, frame.columns, "The table", list(added))
    schema = deepcopy(numbered.schema)
    for at, kind in enumerate(added.values()):
        schema.add(f"added{at}", kind)
    new = tuple(schema.names[len(frame.columns) :])
    work = _Predict(model, tuple(wanted), positions, new)
    chosen = [f"c{frame.columns.index(name)}" for name in kept]
    rows = mapped(numbered, work, schema).select(*chosen, *new)
    return rows.toDF(*kept, *added)


def spark_counts(model: Any, frame: Any) -> TableCounts:
    """Count the cells that training did not have, in one pass on the workers."""
    numbered, positions = _numbered(model, frame)
    kinds = [each.name for each in fields(CellCounts)]
    names = ["column", "rows", *kinds]
    schema = ", ".join(f"{name} long" for name in names)
    counted = mapped(numbered, _Count(model, positions, tuple(names)), schema)
    total = counted.groupBy("column").sum(*names[1:])
    found = TableCounts.of_none(model)
    session = Session(frame.sparkSession, "its cells were not counted")
    for at, n_rows, *cells in session.collected(total):
        own = {} if at < 0 else {at: CellCounts(*cells)}
        found = replace(found, columns=found.columns | own)
        if at < 0:
            found = replace(found, n_rows=n_rows)
    return found


@dataclass(frozen=True)
class _Count:
    """Makes a row of counts for each column; the column -1 counts the rows."""

    model: Any
    positions: dict[str, int]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            found = TableCounts.of_rows(self.model, table_of(batch, self.positions))
            rows = [(-1, found.n_rows, 0, 0, 0, 0)]
            rows += [(at, 0, *vars(own).values()) for at, own in found.columns.items()]
            yield batch_of_rows(rows, self.names)


def _numbered(model: Any, frame: Any) -> tuple[Any, dict[str, int]]:
    """Return a frame with numbered columns, and the positions of those in use."""
    if not hasattr(frame, "mapInArrow"):
        raise DataError(
            f"source must be a DataFrame of Spark. Got {type(frame).__name__}."
        )
    columns = [model.schema.columns[at] for at in model.used_columns]
    names = list(dict.fromkeys(column.given_as for column in columns))
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(
            f"The table lacks {quoted(absent)}, which the tree splits on. Its "
            f"columns are {quoted(frame.columns, 20)}; rename or add what is lacking."
        )
    names = names or frame.columns[:1]  # to count the rows
    # By position: Spark treats dots in names as access to fields.
    numbered = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
    return numbered, {name: frame.columns.index(name) for name in names}


def _added(model: Any, wanted: Sequence[What]) -> dict[str, str]:
    """Return the columns that are added, with their types."""
    classes = model.schema.classes
    types = {
        "classes": _TYPES[type(classes[0])] if classes else "double",
        "probabilities": "double",
        "leaves": "long",
    }
    return {
        name: types[what]
        for what in wanted
        for name in prediction_names(model.schema, what)
    }


@dataclass(frozen=True)
class _Predict:
    """Adds columns to the batches of a partition."""

    model: Any
    wanted: tuple[What, ...]
    positions: dict[str, int]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = table_of(batch, self.positions)
            added = predicted_columns(self.model, rows, self.wanted)
            yield with_columns(batch, self.names, list(added.values()))
