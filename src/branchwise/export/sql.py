"""Export to SQL: a query that adds predictions to a table, or an expression to paste.

The query finds the node where a row ends with CASE expressions, and joins the
predictions of the nodes. For trees with fractional cases it computes the weight of a
case at every node, and sums weighted predictions.

To verify an export each available engine gets a table of the test rows, as bound
parameters or as columns, never as text. An export is one SELECT, and every engine runs
nothing else: SQLite and DuckDB are locked down once the table is filled, PostgreSQL
runs it as a cursor of a read-only transaction, Spark as a subquery.
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

from branchwise.data.arrow import rows_of_table, table_of_rows, timestamp_type
from branchwise.data.table_schema import Value, ValueType
from branchwise.errors import ExportError
from branchwise.export.base import Options, Prediction, Runner, Target
from branchwise.export.code_writer import comment
from branchwise.export.dates import moment_of_cell
from branchwise.export.plan import Field, Plan, Row
from branchwise.export.sql_cases import (
    Names,
    Wording,
    date_kind,
    date_literal,
    expression,
)
from branchwise.export.sql_query import (
    expected_cost,
    first_best,
    greatest,
    query,
    sums_of_ends,
    sums_of_trees,
)
from branchwise.files.database import (
    IN_MEMORY,
    is_one_select,
    open_duckdb,
    open_sqlite,
    restrict_sqlite,
)
from branchwise.files.sql_dialects import (
    DIALECTS,
    DUCKDB,
    POSTGRESQL,
    SPARK,
    SQLITE,
    Dialect,
)
from branchwise.text.as_html import macros

#: What is compared in the place of missing values.
_NOTHING: dict[ValueType, Value] = {"text": "", "number": 0.0, "boolean": False}


def _nothing(dialect: Dialect, field: Field) -> str:
    """Write what is compared in the place of a missing value."""
    if field.date is not None:
        return date_literal(dialect, field, 0.0)
    return dialect.value(_NOTHING[field.kind])


def _query_of_sums(plan: Plan, dialect: Dialect, names: Names) -> str:
    """Return the query that adds up: shares of a case at every end, or trees."""
    new = names.new
    steps: dict[str, Any] = {"whole": new("label of the whole"), "cases": new("cases")}
    add_up = sums_of_trees if plan.trees else sums_of_ends
    adding = add_up(plan, dialect, names, steps["cases"], steps["whole"])
    if plan.link is not None:
        steps |= {name: new(name) for name in ("top", "tops", "powers", "linked")}
        steps["power"] = [new("power") for _ in adding.outputs]
    costs = None if plan.votes else plan.costs
    if plan.classes:
        steps["scores"] = names.probabilities
        if costs is not None:
            steps["scores"] = [new(f"score {code}") for code in range(len(costs))]
            steps["with_scores"] = new("scores")
        steps["best"] = new("best")
        steps["with_best"] = new("best of all")
        steps["labelled"] = new("answers")
    query = macros(
        "export/templates/fractional.sql",
        plan=plan,
        dialect=dialect,
        number=dialect.number,
        value=dialect.value,
        greatest=partial(greatest, dialect),
        cost=partial(expected_cost, dialect, costs or ()),
        first_best=partial(first_best, dialect),
        labels=[dialect.value(label) for label in plan.classes],
        names=names,
        steps=steps,
        adding=adding,
        costs=costs,
        rejected=Wording(plan, dialect, names.compared).rejected(),
        nothing=partial(_nothing, dialect),
    )
    return str(query).strip()


def write(plan: Plan, options: Options) -> bytes:
    """Write the query, or the expression."""
    dialect = DIALECTS[options["dialect"]]
    depth = max(plan.depths)
    if dialect.most_levels is not None and depth > dialect.most_levels:
        raise ExportError(
            f"The dialect {dialect.name!r} bears trees of at most "
            f"{dialect.most_levels} levels, and this one has {depth:,}. Prune the "
            "tree, fit it with a smaller max_depth, or choose another dialect."
        )
    names = Names(plan, dialect, options["table"])
    about = f"-- {comment(plan.about)}, written by branchwise."
    if options["form"] == "expression" and plan.trees:
        raise ExportError(
            "form='expression' cannot carry an ensemble: no single CASE expression "
            "adds up trees. Use form='query'."
        )
    if options["form"] == "expression":
        lines = expression(plan, dialect, names)
    elif plan.divides or plan.trees:
        lines = [about, _query_of_sums(plan, dialect, names)]
    else:
        lines = [about, *query(plan, dialect, names)]
    return ("\n".join(lines) + "\n").encode()


#: Where a PostgreSQL server is that exports may be tried on.
ADDRESS = "BRANCHWISE_POSTGRESQL"
_Rows = list[tuple[Any, ...]]


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
        taken = {field.name.casefold() for field in self.plan.inputs}
        name = "row number"
        while name in taken:
            name += "'"
        return self.dialect.named(name)

    def creation(self) -> str:
        """Return the statement that makes the table."""
        columns = [f"{self.number} BIGINT"]
        for field in self.plan.inputs:
            kind = _column_type(self.dialect, field)
            columns.append(f"{self.dialect.named(field.name)} {kind}")
        return f"CREATE TABLE {self.named} ({', '.join(columns)})"

    @property
    def named(self) -> str:
        """The quoted name of the table."""
        return self.dialect.named(self.table)

    def insertion(self, mark: str) -> str:
        """Return the statement that fills a row."""
        marks = ", ".join([mark] * (len(self.plan.inputs) + 1))
        return f"INSERT INTO {self.named} VALUES ({marks})"  # noqa: S608

    def numbered(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows with their numbers, as the table has them."""
        for number, row in enumerate(self.rows):
            cells = zip(self.plan.inputs, row, strict=True)
            yield number, *(_cell(self.dialect, field, cell) for field, cell in cells)


def _column_type(dialect: Dialect, field: Field) -> str:
    if field.date is not None:
        return dialect.dates[date_kind(field)][1]
    return dialect.column_types[field.kind]


def _cell(dialect: Dialect, field: Field, cell: Any) -> Any:
    if field.date is not None:
        return cell if dialect is SQLITE else moment_of_cell(field.date, cell)
    return float(cell) if field.kind == "number" and cell is not None else cell


def _on_sqlite(trial: Trial) -> _Rows:
    with closing(open_sqlite(IN_MEMORY)) as database:
        database.execute(trial.creation())
        database.executemany(trial.insertion("?"), trial.numbered())
        restrict_sqlite(database)
        rows: _Rows = database.execute(trial.statement).fetchall()
        return rows


def _on_duckdb(trial: Trial) -> _Rows:
    kinds = {"text": "string", "number": "float64", "boolean": "bool"}
    types: dict[str, Any] = {
        f"c{i}": kinds[f.kind] for i, f in enumerate(trial.plan.inputs)
    }
    for i, field in enumerate(trial.plan.inputs):
        if field.date is not None:
            types[f"c{i}"] = timestamp_type(field.date.zoned)
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
        # As Arrow, for which times with a time zone need no further package.
        return rows_of_table(database.sql(trial.statement).to_arrow_table())


def _on_postgresql(trial: Trial) -> _Rows:
    import psycopg  # noqa: PLC0415

    with psycopg.connect(os.environ[ADDRESS]) as server, server.cursor() as cursor:
        # The temporary table shadows any other of its name, and is dropped at the end.
        cursor.execute(trial.creation().replace("CREATE", "CREATE TEMPORARY", 1))
        cursor.executemany(trial.insertion("%s"), trial.numbered())
        cursor.execute("SET TRANSACTION READ ONLY")
        # A cursor of the server takes one SELECT, and neither COPY nor a second one.
        with server.cursor("branchwise") as predictions:
            rows: _Rows = predictions.execute(trial.statement).fetchall()
        server.rollback()
        return rows


def _on_spark(trial: Trial) -> _Rows:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    session = SparkSession.builder.master("local[1]").getOrCreate()
    names = [trial.number, *(trial.dialect.named(f.name) for f in trial.plan.inputs)]
    kinds = ["BIGINT", *(_column_type(trial.dialect, f) for f in trial.plan.inputs)]
    schema = ", ".join(f"{n} {k}" for n, k in zip(names, kinds, strict=True))
    frame = session.createDataFrame(list(trial.numbered()), schema)
    frame.createOrReplaceTempView(trial.named)
    # As a subquery nothing but a SELECT is accepted.
    statement = f"SELECT * FROM (\n{trial.statement})"  # noqa: S608
    try:
        return [tuple(row) for row in session.sql(statement).collect()]
    finally:
        session.catalog.dropTempView(trial.table)


_Engine = Callable[[Trial], _Rows]


def _run(
    engine: _Engine,
    options: Options,
    own: Dialect,
    content: bytes,
    plan: Plan,
    rows: Sequence[Row],
) -> list[Prediction]:
    """Return the predictions of an engine, in the order of the rows."""
    statement = content.decode()
    labels: dict[int, Any] | None = None
    trial = partial(Trial, own, options["table"], plan, rows)
    if options["form"] == "expression":
        number, table = trial("").number, trial("").named
        of_label = f"SELECT {number}, {statement} FROM {table}"  # noqa: S608
        labels = dict(_results(engine, trial(of_label)))
        statement = write(plan, {**options, "form": "query"}).decode()
    first = len(plan.inputs) + 1
    known = {value: value for value in plan.classes}
    predictions: list[Prediction] = []
    for row in sorted(_results(engine, trial(statement)), key=lambda row: row[0]):
        label: Any = row[first] if labels is None else labels[row[0]]
        probabilities = row[first + 1 :]
        rejected = label is None and not any(probabilities)
        prediction = (known.get(label, label), probabilities)
        predictions.append(None if rejected else prediction)
    return predictions


def _results(engine: _Engine, trial: Trial) -> _Rows:
    try:
        return engine(trial)
    except Exception as error:
        raise ExportError(f"The export does not run: {error}") from error


def _no_package(name: str, told: str) -> str | None:
    return None if find_spec(name) is not None else told


def _no_postgresql() -> str | None:
    if find_spec("psycopg") is not None and not os.environ.get(ADDRESS):
        return f"{ADDRESS} does not give the address of a PostgreSQL server"
    return _no_package("psycopg", "psycopg is not installed (pip install psycopg)")


_NO_DUCKDB = "DuckDB is not installed (pip install 'branchwise[sql]')"
_NO_SPARK = "PySpark is not installed (pip install pyspark)"
_ENGINES: dict[str, tuple[str, Callable[[], str | None], _Engine, Dialect]] = {
    "sqlite": (f"SQLite {sqlite3.sqlite_version}", lambda: None, _on_sqlite, SQLITE),
    "duckdb": (
        "DuckDB",
        partial(_no_package, "duckdb", _NO_DUCKDB),
        _on_duckdb,
        DUCKDB,
    ),
    "postgresql": ("PostgreSQL", _no_postgresql, _on_postgresql, POSTGRESQL),
    "spark": ("Spark", partial(_no_package, "pyspark", _NO_SPARK), _on_spark, SPARK),
}


def runners(options: Options) -> list[Runner]:
    """Return the engines that run a dialect; standard SQL has to run in two."""
    dialect = options["dialect"]
    engines = ["sqlite", "duckdb"] if dialect not in _ENGINES else [dialect]
    return [
        Runner(name, absent, partial(_run, engine, options, own))
        for name, absent, engine, own in (_ENGINES[e] for e in engines)
    ]


TARGET = Target(
    "sql",
    ".sql",
    write,
    runners,
    {
        "dialect": tuple(DIALECTS),
        "table": ("rows",),
        "form": ("query", "expression"),
    },
)
