"""What is special about SQL: dialects, names, exact numbers, sizes, what is refused."""

from __future__ import annotations

import math
import os
import sqlite3
import struct
from random import Random

import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    ExportError,
    ID3Classifier,
    datasets,
    export,
    fit_tree,
)
from branchwise.export import sql, sql_cases, verification
from branchwise.export.plan import Field, Node, Plan, PlanSplit
from branchwise.files.sql_dialects import DIALECTS
from branchwise.tree.splits import STOP
from mixed_trees import HOSTILE, random_models

TEXT = ("a", "b")


@pytest.fixture
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y)


def options(dialect="sqlite", table="rows", form="query"):
    return {"dialect": dialect, "table": table, "form": form}


def plan_with(fields, question, classes=("no", "yes"), **changes):
    """Return the plan of a tree with one question and two leaves."""
    leaves = [Node(None, -1, code, (1.0 - code, float(code)), None) for code in (0, 1)]
    root = Node(question, 1, 0, (0.5, 0.5), None)
    of_plan = {
        "rejects_missing": False,
        "rejects_unseen": False,
        "costs": None,
        **changes,
    }
    return Plan("t", "a tree", tuple(fields), classes, (root, *leaves), **of_plan)


def text_plan(name="colour", values=TEXT, classes=("no", "yes")):
    question = PlanSplit(0, None, ((0,), (1,)), STOP, STOP, (0.5, 0.5))
    return plan_with([Field(name, 0, "text", False, values)], question, classes)


def answers(plan, rows, dialect="sqlite", **more):
    chosen = options(dialect, **more)
    content = sql.write(plan, chosen)
    (runner,) = sql.TARGET.runners(chosen)
    if runner.absent() is not None:
        pytest.skip(runner.absent())
    return runner.run(content, plan, rows)


def labels(*args, **more):
    return [None if a is None else a[0] for a in answers(*args, **more)]


def verified(model, **chosen):
    """Verify an export; None for what the dialect cannot carry."""
    try:
        return export.verify(model, "sql", **chosen)
    except ExportError as error:
        if "does not run" in str(error):
            raise
        return None


@pytest.mark.parametrize("form", ["query", "expression"])
@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"spark"}))
def test_dialects_answer_as_the_model_does(dialect, form, monkeypatch):
    monkeypatch.setattr(verification, "_N_PROBES", 60)
    tried = 0
    n_models = 14 if dialect == "sqlite" else 4
    for model in random_models(n_models, seed=300):
        done = verified(model, dialect=dialect, form=form)
        if done is None:
            continue
        if done.absent:
            pytest.skip(done.absent[0])
        assert not done.differences, str(done)
        tried += done.ok
    assert tried > n_models / 3


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_many_trees_and_rows_in_a_dialect(dialect, monkeypatch):
    monkeypatch.setattr(verification, "_N_PROBES", 10_000)
    for model in random_models(200, seed=1000):
        done = verified(model, dialect=dialect)
        assert done is None or not done.differences, str(done)


def adversarial_numbers():
    random = Random(5)
    bits = (random.getrandbits(64).to_bytes(8, "little") for _ in range(300))
    numbers = [struct.unpack("<d", eight)[0] for eight in bits]
    near = [random.random() * 10.0 ** random.randint(-20, 20) for _ in range(200)]
    named = [0.0, 0.1, 1 / 3, 77.5, -2.5, 1e22, 1e23, 5e-324, 2.2250738585072014e-308]
    named += [2.2250738585072009e-308, 1.7976931348623157e308, 2.0**53, 2.0**53 + 2]
    return [n for n in [*numbers, *near, *named] if math.isfinite(n)]


@pytest.mark.parametrize("dialect", ["ansi", "sqlite"])
def test_sqlite_reads_the_very_numbers(dialect):
    with sqlite3.connect(":memory:") as database:
        for number in adversarial_numbers():
            written = DIALECTS[dialect].number(number)
            assert database.execute(f"SELECT {written}").fetchone() == (number,)


@pytest.mark.parametrize("dialect", ["ansi", "duckdb"])
def test_duckdb_reads_the_very_numbers(dialect):
    duckdb = pytest.importorskip("duckdb")
    numbers = adversarial_numbers()
    written = ", ".join(f"({DIALECTS[dialect].number(n)})" for n in numbers)
    got = duckdb.connect().execute(f"VALUES {written}").fetchall()
    assert [row[0] for row in got] == numbers


def test_postgresql_reads_the_very_numbers():
    psycopg = pytest.importorskip("psycopg")
    if not os.environ.get(sql.ADDRESS):
        pytest.skip("no server")
    numbers = adversarial_numbers()
    written = ", ".join(f"({DIALECTS['postgresql'].number(n)})" for n in numbers)
    with psycopg.connect(os.environ[sql.ADDRESS]) as server:
        got = server.execute(f"VALUES {written}").fetchall()
    assert [row[0] for row in got] == numbers


def test_numbers_are_written_as_a_person_would():
    number = DIALECTS["sqlite"].number
    assert number(3.0) == "3.0"
    assert number(77.5) == "77.5"
    assert number(-0.15) == "-15.0 / 100.0"
    assert number(5 / 14) == "5.0 / 14.0"
    assert DIALECTS["ansi"].number(0.15) == "15E0 / 100E0"
    assert DIALECTS["duckdb"].number(0.15) == "0.15e0"
    assert DIALECTS["postgresql"].number(0.15) == "'0.15'::float8"
    assert DIALECTS["spark"].number(0.15) == "0.15D"


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_hostile_names_and_values_do_nothing_else(dialect):
    """Every text as the name of a column, a value, a class and the table."""
    for text in filter(None, HOSTILE if dialect == "sqlite" else HOSTILE[2::4]):
        plan = text_plan(f"{text} column", (text, "b"), ("no", f"yes {text}"))
        rows = [(text,), ("b",), (None,), (text + " ",), (text.swapcase() + "x",)]
        assert labels(plan, rows, dialect, table=f"{text} table") == [
            *("no", f"yes {text}"),
            *["no"] * 3,
        ]


def test_a_canary_lives():
    evil = "x'); DROP TABLE canary; --"
    plan = text_plan(evil, (evil, '"; DROP TABLE canary; --'))
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE canary (song TEXT)")
        trial = sql.Trial(DIALECTS["sqlite"], evil, plan, [(evil,)], "not needed")
        database.execute(trial.creation())
        database.executemany(trial.insertion("?"), trial.numbered())
        query = sql.write(plan, options(table=evil)).decode()
        assert database.execute(query).fetchall() == [(0, evil, "no", 1.0, 0.0)]
        names = database.execute("SELECT name FROM sqlite_schema").fetchall()
        assert names == [("canary",), (evil,)]


def test_the_case_of_letters_counts_whatever_the_table_says():
    query = sql.write(text_plan(), options()).decode()
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE rows (colour TEXT COLLATE NOCASE)")
        database.executemany("INSERT INTO rows VALUES (?)", [("b",), ("B",), ("b ",)])
        got = database.execute(query).fetchall()
        assert [row[1] for row in got] == ["yes", "no", "no"]
    duckdb = pytest.importorskip("duckdb")
    database = duckdb.connect()
    database.execute("CREATE TABLE rows (colour VARCHAR COLLATE NOCASE)")
    database.execute("INSERT INTO rows VALUES ('b'), ('B')")
    query = sql.write(text_plan(), options("duckdb")).decode()
    assert dict(r[:2] for r in database.execute(query).fetchall()) == {
        "b": "yes",
        "B": "no",
    }


def number_plan(cut, missing_to=STOP):
    question = PlanSplit(0, cut, ((0,), (1,)), missing_to, STOP, (0.5, 0.5))
    return plan_with([Field("x", 0, "number", True, ())], question)


def test_integers_compare_as_numbers():
    query = sql.write(number_plan(2.0**53), options()).decode()
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE rows (x INTEGER)")
        database.execute("INSERT INTO rows VALUES (?)", (2**53 + 1,))
        assert database.execute(query).fetchone()[1] == "no"


@pytest.mark.parametrize("missing_to", [STOP, 0, 1])
def test_nan_is_missing(missing_to):
    duckdb = pytest.importorskip("duckdb")
    plan = number_plan(1.5, missing_to)
    query = sql.write(plan, options("duckdb")).decode()
    database = duckdb.connect()
    database.execute("CREATE TABLE rows (i INTEGER, x DOUBLE)")
    database.execute("INSERT INTO rows VALUES (0, 'NaN'), (1, NULL), (2, 1), (3, 2)")
    got = sorted(database.execute(query).fetchall())
    assert got[0][2:] == got[1][2:]
    assert got[0][3] == {STOP: 0.5, 0: 1.0, 1: 0.0}[missing_to]
    assert [row[2] for row in got[2:]] == ["no", "yes"]


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_numbers_and_booleans_as_values(dialect):
    question = PlanSplit(0, None, ((0, 2), (1,)), STOP, STOP, (0.5, 0.5))
    fields = [Field("true", 0, "number", False, (1, 0.1, -7))]
    rows = [(1,), (0.1,), (-7.0,), (math.nextafter(0.1, 1),), (None,)]
    plan = plan_with(fields, question, (1, 2.5))
    assert labels(plan, rows, dialect) == [1, 2.5, 1, 1, 1]
    question = PlanSplit(0, None, ((0,), (1,)), 1, STOP, (0.5, 0.5))
    # To SQLite, TRUE is the column of that name.
    fields = [Field("true", 0, "boolean", False, (False, True))]
    plan = plan_with(fields, question, (False, True))
    got = labels(plan, [(True,), (False,), (None,)], dialect)
    assert got == [True, False, True]
    assert {type(label) for label in got} == {bool}


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_nul_and_nothing_are_values(dialect):
    plan = text_plan(values=("a\0b", ""))
    rows = [("a\0b",), ("",), ("a",), (None,)]
    assert labels(plan, rows, dialect) == ["no", "yes", "no", "no"]


@pytest.mark.parametrize("form", ["query", "expression"])
def test_refused_rows_have_no_answer(form):
    X = {"prediction": ["red", "blue"] * 3, "n": [1.0, 2.0] * 3}
    model = ID3Classifier(missing="error", unseen="error").fit(X, [1, 2] * 3).model_
    done = export.verify(model, "sql", form=form, dialect="sqlite")
    assert done.ok, str(done)
    text = export.write(model, "sql", form=form, dialect="sqlite").decode()
    assert "THEN NULL" in text
    assert ('"answers"."prediction (2)"' in text) == (form == "query")


def chain(depth):
    """Return a tree that goes ever deeper, a leaf at each level."""
    nodes = []
    for level in range(depth):
        question = PlanSplit(0, float(depth - level), ((1,), (0,)), 1, STOP, (0.5, 0.5))
        nodes.append(Node(question, 2 * level + 1, 0, (0.5, 0.5), None))
        nodes.append(Node(None, -1, level % 2, (1.0, 0.0), None))
    nodes.append(Node(None, -1, 0, (0.0, 1.0), None))
    field = Field("x", 0, "number", True, ())
    return Plan("t", "a", (field,), ("no", "yes"), tuple(nodes), False, False, None)


@pytest.mark.parametrize("form", ["query", "expression"])
def test_five_thousand_levels(form):
    plan = chain(5000)
    rows = [(5001.0,), (4999.5,), (4001.5,), (1.5,), (1.0,), (None,)]
    wanted = ["no", "yes", "yes", "yes", "no", "no"]
    assert labels(plan, rows, form=form) == wanted


def test_spark_bears_five_hundred():
    sql.write(chain(500), options("spark"))
    with pytest.raises(ExportError, match=r"'spark' .* at most 500 .* one has 501\."):
        sql.write(chain(501), options("spark"))


def test_what_nests_too_deeply_takes_further_steps(monkeypatch):
    monkeypatch.setattr(sql_cases, "MOST_NESTED", 1)
    monkeypatch.setattr(verification, "_N_PROBES", 100)
    steps = 0
    for model in random_models(13, seed=20):
        try:
            content = export.write(model, "sql", dialect="sqlite")
            done = export.verify(model, "sql", dialect="sqlite")
        except ExportError:
            continue
        assert done.ok, str(done)
        steps += b'"step (2)"' in content
    assert steps
    with pytest.raises(ExportError, match=r"form='expression' .* nested more deeply"):
        export.write(model_of_depth(4), "sql", form="expression")


def model_of_depth(depth):
    rows = range(2**depth)
    X = {f"bit {b}": [f"{row >> b & 1}" for row in rows] for b in range(depth)}
    y = [row.bit_count() % 2 for row in rows]
    return fit_tree(X, y)


def test_divided_cases_are_added_up_in_several_steps(monkeypatch):
    monkeypatch.setattr(sql_cases, "_MOST_ENDS", 3)
    monkeypatch.setattr(verification, "_N_PROBES", 100)
    votes = datasets.load("weather")
    model = C45Classifier(prune=False).fit(votes.X, votes.y).model_
    for dialect in ("ansi", "sqlite"):
        done = export.verify(model, "sql", dialect=dialect)
        assert not done.differences, str(done)
        text = export.write(model, "sql", dialect=dialect).decode()
        assert '"sums (2)"' in text


@pytest.mark.parametrize("dialect", ["ansi", "sqlite"])
def test_a_column_called_true_is_divided(dialect):
    X = {"true": ["a", "b", None, "b"] * 4, "False": [1.0, None, 3.0, 4.0] * 4}
    tree = ID3Classifier(missing="split", unseen="split", max_depth=3)
    done = export.verify(tree.fit(X, [1, 2, 3, 1] * 4).model_, "sql", dialect=dialect)
    assert not done.differences, str(done)


def test_what_divides_too_much_is_refused(monkeypatch):
    table = datasets.load("weather")
    model = C45Classifier(prune=False).fit(table.X, table.y).model_
    with pytest.raises(ExportError, match=r"form='expression' cannot .* divides"):
        export.write(model, "sql", form="expression")
    monkeypatch.setattr(sql_cases, "_MOST_FACTORS", 3)
    with pytest.raises(ExportError, match=r"SQL cannot carry .* more than 3\. Prune"):
        export.write(model, "sql")


@pytest.mark.parametrize(
    ("dialect", "name", "reason"),
    [
        ("duckdb", "", "at least one character"),
        ("sqlite", "a\0b", "the character NUL"),
        ("postgresql", "é" * 32, "at most 63 bytes"),
        ("spark", "${x}", "something else in the place"),
        ("ansi", "\ud800", "no valid Unicode"),
    ],
)
def test_names_that_cannot_be(dialect, name, reason):
    with pytest.raises(ExportError, match=rf"name of a .* '{dialect}': .*{reason}"):
        sql.write(text_plan(name), options(dialect))
    sql.write(text_plan("é" * 31 + "a"), options(dialect))


def test_names_of_classes_are_made_to_fit():
    plan = text_plan(classes=("é" * 32, "b"))
    text = sql.write(plan, options("postgresql")).decode()
    assert '"probability 1", "probability of b"' in text
    plan = text_plan(classes=("B", "b"))
    assert '"probability of b (2)"' in sql.write(plan, options()).decode()


@pytest.mark.parametrize("dialect", ["ansi", "sqlite", "duckdb", "spark"])
def test_names_that_differ_in_case_alone(dialect):
    X = {"A": ["x", "x", "y", "y"], "a": ["x", "y", "x", "y"]}
    model = fit_tree(X, ["1", "2", "3", "4"])
    with pytest.raises(ExportError, match="cannot tell the columns 'A' and 'a' apart"):
        export.write(model, "sql", dialect=dialect)
    assert '"rows"."a"' in export.write(model, "sql", dialect="postgresql").decode()


@pytest.mark.parametrize(
    ("dialect", "value", "reason"),
    [
        ("postgresql", "a\0", "which PostgreSQL cannot store"),
        ("ansi", "a\0", "standard SQL has no notation"),
        ("sqlite", "\udc00", "no valid Unicode"),
    ],
)
def test_values_that_cannot_be(dialect, value, reason):
    with pytest.raises(ExportError, match=reason):
        sql.write(text_plan(values=(value, "b")), options(dialect))


def test_numbers_that_cannot_be():
    question = PlanSplit(0, None, ((0,), (1,)), STOP, STOP, (0.5, 0.5))
    fields = [Field("n", 0, "number", False, (2**53 + 1, 1))]
    with pytest.raises(ExportError, match=r"'n' has the value 9007199254740993: whole"):
        sql.write(plan_with(fields, question), options())
    with pytest.raises(ExportError, match="beyond the integers of SQL"):
        sql.write(text_plan(classes=(1, 2**63)), options())


def test_texts_are_written_for_any_setting_of_the_engine():
    assert DIALECTS["postgresql"].text("a\\'\n") == r"E'a\\''\x0A'"
    assert DIALECTS["postgresql"].text("a'b") == "'a''b'"
    assert DIALECTS["spark"].text("it's ${x}\\") == (
        "'it' || char(39) || 's ' || char(36) || '{x}' || char(92)"
    )
    assert DIALECTS["sqlite"].text("a\nb") == "'a' || char(10) || 'b'"
    assert DIALECTS["duckdb"].text("") == "''"


def test_what_is_not_here_is_said(monkeypatch, weather):
    monkeypatch.setattr(sql, "find_spec", lambda name: None)
    for dialect, reason in {
        "duckdb": "DuckDB is not installed (pip install 'branchwise[sql]')",
        "postgresql": "psycopg is not installed (pip install psycopg)",
        "spark": "PySpark is not installed (pip install pyspark)",
    }.items():
        done = export.verify(weather, "sql", dialect=dialect)
        assert done.absent == (reason,)
    monkeypatch.setattr(sql, "find_spec", lambda name: "here")
    monkeypatch.delenv(sql.ADDRESS, raising=False)
    done = export.verify(weather, "sql", dialect="postgresql")
    assert "BRANCHWISE_POSTGRESQL does not give" in done.absent[0]


def test_what_does_not_run_is_said(weather):
    (runner,) = sql.TARGET.runners(options())
    plan = text_plan()
    with pytest.raises(ExportError, match=r"does not run: .*syntax error"):
        runner.run(b"SELEC", plan, [("a",)])


def test_surrogates_are_asked_in_turn(monkeypatch):
    monkeypatch.setattr(verification, "_N_PROBES", 300)
    table = datasets.load("weather")
    model = CARTClassifier(missing="surrogate").fit(table.X, table.y).model_
    assert model.tree.surrogates is not None
    assert export.verify(model, "sql", dialect="sqlite").ok
