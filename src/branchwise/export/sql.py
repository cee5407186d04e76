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

from branchwise.data.arrays import TIE
from branchwise.data.arrow import table_of_rows
from branchwise.data.table_schema import Value, ValueType
from branchwise.errors import ExportError
from branchwise.export.base import Options, Prediction, Runner, Target
from branchwise.export.code_writer import comment
from branchwise.export.plan import Field, Plan, Row
from branchwise.export.sql_cases import (
    End,
    Names,
    Wording,
    blocks_of_ends,
    expression,
    query,
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
from branchwise.tree.splits import EVERY_BRANCH, STOP

#: What is compared in the place of missing values.
_NOTHING: dict[ValueType, Value] = {"text": "", "number": 0.0, "boolean": False}


class _FractionalQuery:
    """Collects the steps, each a table that the next one reads."""

    def __init__(self, plan: Plan, dialect: Dialect, names: Names) -> None:
        self._plan = plan
        self._dialect = dialect
        self._names = names
        self._wording = Wording(plan, dialect, names.carried)
        self._steps: list[str] = []
        self._last = names.table
        self._one, self._nothing = dialect.number(1.0), dialect.number(0.0)
        #: Sums so far: the probability of every class, or the number.
        self._sums = names.probabilities or [names.prediction]
        #: The label of a case that is not fractional.
        self._whole = names.new("label of the whole")
        self._started = False

    def lines(self) -> list[str]:
        """Return the whole query."""
        self._add_cases()
        for block in blocks_of_ends(self._plan):
            self._add_sums(block)
        if not self._plan.is_regression:
            self._add_labels()
        names, last = self._names, self._last
        outputs = [f"{last}.{o}" for o in (names.prediction, *names.probabilities)]
        fields = zip(self._plan.fields, names.compared, names.carried, strict=True)
        same = [
            self._dialect.same.format(
                column, f"{last}.{name}", self._dialect.value(_NOTHING[field.kind])
            )
            for field, column, name in fields
        ]
        return [
            "WITH " + ",\n".join(self._steps),
            f"SELECT {names.table}.*,",
            f"  {', '.join(outputs)}",
            f"FROM {names.table}",
            f"LEFT JOIN {last} ON " + "\n  AND ".join(same),
        ]

    def _step(self, name: str, select: Sequence[str], rest: Sequence[str] = ()) -> None:
        """Add a step that reads the last one."""
        table = self._names.new(name)
        columns = ",\n    ".join(select)
        # Without it, engines put the expressions of a step wherever the next ones
        # use its columns, again and again. Cases are distinct anyhow.
        distinct = "DISTINCT " if self._dialect.keep == "AS" or not self._steps else ""
        lines = [f"  SELECT {distinct}{columns}", f"  FROM {self._last}", *rest]
        body = "\n".join(lines)
        self._steps.append(f"{table} {self._dialect.keep} (\n{body}\n)")
        self._last = table

    def _add_cases(self) -> None:
        """Select the distinct cases that have a prediction."""
        names = self._names
        pairs = zip(names.compared, names.carried, strict=True)
        rejected = Wording(self._plan, self._dialect, names.compared).rejected()
        where = []
        if rejected:
            where = [f"  WHERE CASE WHEN {' OR '.join(rejected)} THEN 0 ELSE 1 END = 1"]
        self._step("cases", [f"{column} AS {name}" for column, name in pairs], where)

    @property
    def _kept(self) -> list[str]:
        """What every step hands on."""
        if not self._started:
            return [*self._names.carried]
        label = [] if self._plan.is_regression else [self._whole]
        return [*self._names.carried, *self._sums, *label]

    def _add_sums(self, ends: Sequence[End]) -> None:
        """Add what the cases have at some ends to the sums."""
        new = self._names.new
        tested = sorted({node for end in ends for node, _ in end.way})
        outcome = {node: new(f"reply {node}") for node in tested}
        branches = {n: self._wording.branch(self._plan.split_of(n)) for n in tested}
        outcomes = [f"{branches[n]} AS {outcome[n]}" for n in tested]
        self._step("replies", [*self._kept, *outcomes])
        share = {end.position: new(f"share {end.position}") for end in ends}
        shares = [f"{self._share(e, outcome)} AS {share[e.position]}" for e in ends]
        # A fractional case may have all of its weight at one of these ends.
        alike = [
            end for end in ends if any(self._all_weight(*step) for step in end.way)
        ]
        flag = {end.position: new(f"whole {end.position}") for end in alike}
        flags = [
            f"{self._is_fractional(e, outcome)} AS {flag[e.position]}" for e in alike
        ]
        self._step("shares", [*self._kept, *shares, *flags])
        sums = [
            f"{self._sum(code, ends, share)} AS {name}"
            for code, name in enumerate(self._sums)
        ]
        if not self._plan.is_regression:
            sums.append(f"{self._label(ends, share, flag)} AS {self._whole}")
        self._step("sums", [*self._names.carried, *sums])
        self._started = True

    def _share(self, end: End, outcome: dict[int, str]) -> str:
        """Return the product of the shares that the splits on a path give a case."""
        factors = [self._factor(node, b, outcome[node]) for node, b in end.way]
        return " * ".join(factors) or self._one

    def _factor(self, position: int, branch: int, outcome: str) -> str:
        split = self._plan.split_of(position)
        piece = ""
        if split.divides and branch != STOP:
            given = self._dialect.number(split.shares[branch])
            piece = f" WHEN {EVERY_BRANCH} THEN {given}"
        return (
            f"CASE {outcome} WHEN {branch} THEN {self._one}{piece} "
            f"ELSE {self._nothing} END"
        )

    def _all_weight(self, position: int, branch: int) -> bool:
        """Tell whether a fractional case goes down one branch with all its weight."""
        split = self._plan.split_of(position)
        return split.divides and branch != STOP and split.shares[branch] == 1.0

    def _is_fractional(self, end: End, outcome: dict[int, str]) -> str:
        """Return 1 where a fractional case has all its weight at one end."""
        tests = [
            f"{outcome[node]} = {EVERY_BRANCH}"
            for node, branch in end.way
            if self._all_weight(node, branch)
        ]
        return f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END"

    def _sum(self, code: int, ends: Sequence[End], share: dict[int, str]) -> str:
        """Return the sum so far plus the terms of these ends, without those of 0."""
        terms = [self._sums[code]] if self._started else [self._nothing]
        for end in ends:
            node = self._plan.nodes[end.position]
            amount = node.probabilities[code] if node.number is None else node.number
            if amount:
                written = self._dialect.number(amount)
                terms.append(f"({written}) * {share[end.position]}")
        return " + ".join(terms)

    def _label(
        self, ends: Sequence[End], share: dict[int, str], flag: dict[int, str]
    ) -> str:
        """Return the label of the end that a case has come to as a whole."""
        tests = []
        for end in ends:
            test = f"{share[end.position]} = {self._one}"
            if end.position in flag:
                test += f" AND {flag[end.position]} = 0"
            label = self._plan.classes[self._plan.nodes[end.position].label]
            tests.append(f"WHEN {test} THEN {self._dialect.value(label)}")
        before = self._whole if self._started else "NULL"
        return f"CASE {' '.join(tests)} ELSE {before} END"

    def _add_labels(self) -> None:
        """Find the labels of fractional cases."""
        scores = self._sums
        if self._plan.costs is not None:
            scores = [self._names.new(f"score {a}") for a in range(len(self._sums))]
            costs = (f"{self._cost(a)} AS {name}" for a, name in enumerate(scores))
            self._step("scores", [*self._kept, *costs])
        best = self._names.new("best")
        handed_on = list(dict.fromkeys([*self._kept, *scores]))
        self._step("best of all", [*handed_on, f"{self._greatest(scores)} AS {best}"])
        least = f"{best} - ABS({best}) * ({self._dialect.number(TIE)})"
        labels = [self._dialect.value(label) for label in self._plan.classes]
        tests = [
            f"WHEN {score} >= {least} THEN {label}"
            for score, label in zip(scores[:-1], labels, strict=False)
        ]
        first = f"WHEN {self._whole} IS NOT NULL THEN {self._whole}"
        label = f"CASE {' '.join([first, *tests])} ELSE {labels[-1]} END"
        columns = [*self._names.carried, f"{label} AS {self._names.prediction}"]
        self._step("answers", [*columns, *self._sums])

    def _cost(self, predicted: int) -> str:
        rows = zip(self._sums, self._plan.costs or (), strict=True)
        terms = [f"{p} * ({self._dialect.number(row[predicted])})" for p, row in rows]
        return f"-({' + '.join([self._nothing, *terms])})"

    def _greatest(self, scores: Sequence[str]) -> str:
        if len(scores) == 1:
            return scores[0]
        if self._dialect.greatest is not None:
            return f"{self._dialect.greatest}({', '.join(scores)})"
        tests = []
        for index, score in enumerate(scores[:-1]):
            wins = " AND ".join(f"{score} >= {other}" for other in scores[index + 1 :])
            tests.append(f"WHEN {wins} THEN {score}")
        return f"CASE {' '.join(tests)} ELSE {scores[-1]} END"


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
    if options["form"] == "expression":
        lines = expression(plan, dialect, names)
    elif plan.divides:
        lines = [about, *_FractionalQuery(plan, dialect, names).lines()]
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


def _on_sqlite(trial: Trial) -> _Rows:
    with closing(open_sqlite(IN_MEMORY)) as database:
        database.execute(trial.creation())
        database.executemany(trial.insertion("?"), trial.numbered())
        restrict_sqlite(database)
        rows: _Rows = database.execute(trial.statement).fetchall()
        return rows


def _on_duckdb(trial: Trial) -> _Rows:
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
        rows: _Rows = database.execute(trial.statement).fetchall()
        return rows


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
    first = len(plan.fields) + 1
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
