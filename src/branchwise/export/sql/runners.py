"""Runners of SQL exports: each available engine gets a table of the test rows.

Rows reach the engines as bound parameters or as columns, never as text. An export is
one SELECT, and every engine runs nothing else: SQLite and DuckDB are locked down once
the table is filled, PostgreSQL runs it as a cursor of a read-only transaction, Spark as
a subquery.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from branchwise.data.arrow import table_of_rows
from branchwise.errors import ExportError
from branchwise.export.base import Options, Prediction, Runner
from branchwise.export.plan import Field, Plan, Row
from branchwise.files.database import (
    IN_MEMORY,
    is_one_select,
    open_duckdb,
    open_sqlite,
    restrict_sqlite,
)
from branchwise.files.sql_dialects import (
    DUCKDB,
    POSTGRESQL,
    SPARK,
    SQLITE,
    Dialect,
)

#: Where a PostgreSQL server is that exports may be tried on.
ADDRESS = "BRANCHWISE_POSTGRESQL"
#: What writes an export: the runner of an expression needs the query, too.
Writer = Callable[[Plan, Options], bytes]


@dataclass(frozen=True)
class Trial:
    """A table with the rows to try, and the statement that reads it.

    The table is named as the export has it; its first column numbers the rows.
    """

    dialect: Dialect
    table: str
    plan: Plan
    rows: Sequence[Row]
    statement: str

    @property
    def number(self) -> str:
        """The column with the numbers of the rows, a name that no other column has."""
        taken = {field.name.casefold() for field in self.plan.fields}
        name = "row number"
        while name in taken:
            name += "'"
        return self.dialect.named(name)

    def creation(self) -> str:
        """Return the statement that makes the table."""
        columns = [f"{self.number} BIGINT"]
        for field in self.plan.fields:
            kind = self.dialect.column_types[field.kind]
            columns.append(f"{self.dialect.named(field.name)} {kind}")
        return f"CREATE TABLE {self.named} ({', '.join(columns)})"

    @property
    def named(self) -> str:
        """The quoted name of the table."""
        return self.dialect.named(self.table)

    def insertion(self, mark: str) -> str:
        """Return the statement that fills a row."""
        marks = ", ".join([mark] * (len(self.plan.fields) + 1))
        return f"INSERT INTO {self.named} VALUES ({marks})"  # noqa: S608

    def numbered(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows with their numbers, as the table has them."""
        for number, row in enumerate(self.rows):
            yield number, *(map(_cell, self.plan.fields, row))


def _cell(field: Field, cell: Any) -> Any:
    return float(cell) if field.kind == "number" and cell is not None else cell


Engine = Callable[[Trial], list[tuple[Any, ...]]]


def _on_sqlite(trial: Trial) -> list[tuple[Any, ...]]:
    with closing(open_sqlite(IN_MEMORY)) as database:
        database.execute(trial.creation())
        database.executemany(trial.insertion("?"), trial.numbered())
        restrict_sqlite(database)
        rows: list[tuple[Any, ...]] = database.execute(trial.statement).fetchall()
        return rows


def _on_duckdb(trial: Trial) -> list[tuple[Any, ...]]:
    kinds = {"text": "string", "number": "float64", "boolean": "bool"}
    types = {f"c{i}": kinds[f.kind] for i, f in enumerate(trial.plan.fields)}
    types = {"number": "int64", **types}
    with closing(open_duckdb(IN_MEMORY)) as database:
        database.execute(trial.creation())
        # One after the other, rows would take minutes.
        database.register("given to branchwise", table_of_rows(trial.numbered(), types))
        database.execute(
            f'INSERT INTO {trial.named} SELECT * FROM "given to branchwise"'  # noqa: S608
        )
        if not is_one_select(database, trial.statement):
            raise ExportError("it is not one SELECT statement")
        rows: list[tuple[Any, ...]] = database.execute(trial.statement).fetchall()
        return rows


def _on_postgresql(trial: Trial) -> list[tuple[Any, ...]]:
    import psycopg  # noqa: PLC0415

    with psycopg.connect(os.environ[ADDRESS]) as server, server.cursor() as cursor:
        # The temporary table shadows any other of its name, and is dropped at the end.
        cursor.execute(trial.creation().replace("CREATE", "CREATE TEMPORARY", 1))
        cursor.executemany(trial.insertion("%s"), trial.numbered())
        cursor.execute("SET TRANSACTION READ ONLY")
        # A cursor of the server takes one SELECT, and neither COPY nor a second one.
        with server.cursor("branchwise") as predictions:
            rows: list[tuple[Any, ...]] = predictions.execute(
                trial.statement
            ).fetchall()
        server.rollback()
        return rows


def _on_spark(trial: Trial) -> list[tuple[Any, ...]]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    session = SparkSession.builder.master("local[1]").getOrCreate()
    names = [trial.number, *(trial.dialect.named(f.name) for f in trial.plan.fields)]
    kinds = ["BIGINT", *(trial.dialect.column_types[f.kind] for f in trial.plan.fields)]
    schema = ", ".join(f"{n} {k}" for n, k in zip(names, kinds, strict=True))
    frame = session.createDataFrame(list(trial.numbered()), schema)
    frame.createOrReplaceTempView(trial.named)
    # As a subquery nothing but a SELECT is accepted.
    statement = f"SELECT * FROM (\n{trial.statement})"  # noqa: S608
    try:
        return [tuple(row) for row in session.sql(statement).collect()]
    finally:
        session.catalog.dropTempView(trial.table)


def _run(
    write: Writer,
    engine: Engine,
    options: Options,
    own: Dialect,
    content: bytes,
    plan: Plan,
    rows: Sequence[Row],
) -> list[Prediction]:
    """Return the predictions of an engine, in the order of the rows."""
    query = content.decode()
    labels: dict[int, Any] | None = None
    trial = partial(Trial, own, options["table"], plan, rows)
    if options["form"] == "expression":
        number, table = trial("").number, trial("").named
        statement = f"SELECT {number}, {query} FROM {table}"  # noqa: S608
        labels = dict(_results(engine, trial(statement)))
        query = write(plan, {**options, "form": "query"}).decode()
    got = sorted(_results(engine, trial(query)), key=lambda row: row[0])
    skipped = len(plan.fields) + 1
    return [
        _prediction(
            row[skipped] if labels is None else labels[row[0]], probabilities, plan
        )
        for row in got
        for probabilities in [row[skipped + 1 :]]
    ]


def _prediction(label: Any, probabilities: tuple[float, ...], plan: Plan) -> Prediction:
    if label is None and not any(probabilities):
        return None
    known = {value: value for value in plan.classes}
    return known.get(label, label), probabilities


def _results(engine: Engine, trial: Trial) -> list[tuple[Any, ...]]:
    try:
        return engine(trial)
    except Exception as error:
        raise ExportError(f"The export does not run: {error}") from error


def _no_duckdb() -> str | None:
    if find_spec("duckdb") is None:
        return "DuckDB is not installed (pip install 'branchwise[sql]')"
    return None


def _no_postgresql() -> str | None:
    if find_spec("psycopg") is None:
        return "psycopg is not installed (pip install psycopg)"
    if not os.environ.get(ADDRESS):
        return f"{ADDRESS} does not give the address of a PostgreSQL server"
    return None


def _no_spark() -> str | None:
    if find_spec("pyspark") is None:
        return "PySpark is not installed (pip install pyspark)"
    return None


_ENGINES: dict[str, tuple[str, Callable[[], str | None], Engine, Dialect]] = {
    "sqlite": (f"SQLite {sqlite3.sqlite_version}", lambda: None, _on_sqlite, SQLITE),
    "duckdb": ("DuckDB", _no_duckdb, _on_duckdb, DUCKDB),
    "postgresql": ("PostgreSQL", _no_postgresql, _on_postgresql, POSTGRESQL),
    "spark": ("Spark", _no_spark, _on_spark, SPARK),
}


def runners(write: Writer, options: Options) -> list[Runner]:
    """Return the engines that run a dialect; standard SQL has to run in two."""
    dialect = options["dialect"]
    engines = ["sqlite", "duckdb"] if dialect not in _ENGINES else [dialect]
    return [
        Runner(name, absent, partial(_run, write, engine, options, own))
        for name, absent, engine, own in (_ENGINES[e] for e in engines)
    ]
