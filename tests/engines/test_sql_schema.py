"""A table in a database has the schema that it has when it is read into memory."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from branchwise import BranchwiseWarning, DataError, fit_tree, read_table
from branchwise.data.conventions.date_format import DateFormat
from branchwise.engines.base import Task
from branchwise.engines.scan import finalise, scan
from branchwise.engines.sql import SqlTable
from branchwise.files.read_table import MISSING
from branchwise.grow.grow import grow
from branchwise.recipe import CART, ID3
from sql_sources import (
    HOSTILE,
    difference,
    in_duckdb,
    in_memory,
    in_sqlite,
)

N = 60


def plan_of(place, task, **options):
    with SqlTable(place, **{"table": "t", **options}).open() as rows:
        return rows.learn(task)


def agree(path, task, **options):
    """Compare the plan of a database with that of the table in memory."""
    plan = plan_of(path, task, **options)
    table = read_table(path, table="t", missing=options.get("missing", MISSING))
    wanted = finalise(
        scan(table, task), task, lambda request, plan: request(table, plan)
    )
    na_values = options.get("missing")  # a model keeps those that are not the usual
    assert plan.schema == replace(wanted.schema, na_values=na_values)
    assert plan.n_rows == wanted.n_rows
    assert plan.grid == wanted.grid
    assert plan.spread == wanted.spread
    assert plan.values.keys() == wanted.values.keys()
    for at, values in plan.values.items():
        np.testing.assert_array_equal(values, wanted.values[at])
    assert plan.edges.keys() == wanted.edges.keys()
    for at, edges in plan.edges.items():
        np.testing.assert_array_equal(edges, wanted.edges[at])
    return plan


TYPED = {
    "colour": "['red', 'green', '', '?'][1 + i % 4]",
    "size": "CAST(['small', 'large'][1 + i % 2] AS size)",
    "flag": "i % 3 = 0",
    "gap": "CASE WHEN i % 7 = 0 THEN NULL ELSE i % 2 = 0 END",
    "tiny": "CAST(i % 11 AS TINYINT)",
    "price": "CAST(i * 0.29 AS DECIMAL(12, 3))",
    "huge": "CAST(i AS HUGEINT) * 3",
    "single": "CAST(i / 7 AS FLOAT)",
    "number": "CASE WHEN i % 9 = 0 THEN 'NaN'::DOUBLE WHEN i % 8 > 0 THEN i / 3 END",
    "day": "CAST(DATE '2024-01-30' + CAST(i % 5 AS INTEGER) AS VARCHAR)",
    "nothing": "CAST(NULL AS VARCHAR)",
    "no_number": "CAST(NULL AS DOUBLE)",
    "moment": "CAST(TIMESTAMP '2024-01-30 01:02:03' AS VARCHAR)",
    "id": "'x' || i",
    "long": "CAST(i / 4 AS DECIMAL(38, 10))",
    "zero": "CASE WHEN i = 3 THEN -0.0e0 ELSE 0.0e0 END",
    "code": "i % 4",
    "y": "['a', 'A', 'é'][1 + i % 3]",
}


@pytest.fixture
def typed(tmp_path):
    """Return a DuckDB file with columns of many types."""
    duckdb = pytest.importorskip("duckdb")
    path = str(tmp_path / "typed.duckdb")
    with closing(duckdb.connect(path)) as connection:
        connection.execute("CREATE TYPE size AS ENUM ('small', 'large', 'never')")
        columns = ", ".join(f"{cell} AS {name}" for name, cell in TYPED.items())
        connection.execute(
            f"CREATE TABLE t AS SELECT {columns} FROM range({N}) AS r(i)"
        )
    return path


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"categorical_features": ["code", "price", "number"]},
        {"categories": {"code": [3, 2, 1, 0], "colour": ["red", "green", "blue"]}},
        {"max_bins": 4},
        {"max_exact": 10},
        {"classes": ("é", "a", "A", "B")},
        {"target": "flag"},
        {"target": "tiny"},
        {"target": "size"},
        {"target": "price", "criterion": "variance"},
        {"target": "single", "criterion": "variance", "weight": "tiny"},
        {"weight": "price"},
    ],
    ids=str,
)
def test_duckdb_has_the_schema_of_memory(typed, choice):
    agree(typed, Task(**{"target": "y", **choice}))


def test_marks_of_missing_values_are_the_callers(typed):
    plan = agree(typed, Task("y"), missing=("red",))
    assert plan.schema.columns[0].categories == ("", "?", "green")


def test_trees_of_all_types_are_the_same(typed):
    table = read_table(typed, table="t")
    columns, _, engine, _ = in_memory(table, ID3)
    recipe = replace(ID3, max_depth=4)
    with SqlTable(typed, "t").open() as rows:
        plan = rows.learn(Task("y"))
        tree = grow(rows.engine(plan), columns, recipe)
    assert difference(tree, grow(engine, columns, recipe)) is None


LOOSE = {
    "mixed": [1, "a", 2.5, None] * 15,
    "whole": [1, 2.0, None, 4] * 15,
    "fractions": [1, 2.5, None, "?"] * 15,
    "marks": ["", "?", None, "x"] * 15,
    "hostile": [*HOSTILE, None, "NULL"] * 6,
    "empty": [None] * 60,
    "ABC": ["a", "A", "á", "Z"] * 15,
    "y": ["yes", "no", "yes", "maybe"] * 15,
}


def test_sqlite_has_the_schema_of_memory(tmp_path):
    path = in_sqlite(LOOSE, tmp_path / "t.sqlite")
    plan = agree(path, Task("y"))
    assert plan.schema.columns[0].categories == ("1", "2.5", "a")
    agree(path, Task("y", categorical_features=["whole", "fractions"]))
    columns, _, engine, _ = in_memory(read_table(path, table="t"), ID3)
    with SqlTable(path, "t").open() as rows:
        tree = grow(rows.engine(rows.learn(Task("y"))), columns, ID3)
    assert difference(tree, grow(engine, columns, ID3)) is None


def test_collations_of_sqlite_do_not_join_values(tmp_path):
    path = str(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x TEXT COLLATE NOCASE, y TEXT)")
        cells = [("a", "1"), ("A", "2"), ("a", "1"), ("A", "2")]
        connection.executemany("INSERT INTO t VALUES (?, ?)", cells)
        connection.commit()
    plan = agree(path, Task("y"))
    assert plan.schema.columns[0].categories == ("A", "a")
    with SqlTable(path, "t").open() as rows:
        engine = rows.engine(rows.learn(Task("y")))
        tree = grow(engine, plan.schema.columns, ID3)
    assert tree.n_children[0] == 2


def test_numbers_may_be_wanted_as_text(tmp_path):
    path = in_sqlite({"x": [7, 8, 7, 9], "y": list("abab")}, tmp_path / "t.sqlite")
    plan = plan_of(path, Task("y"), text_columns=["x"])
    assert plan.schema.columns[0].categories == ("7", "8", "9")


def test_columns_with_very_many_values_are_joined(tmp_path):
    rng = np.random.default_rng(0)
    cells = [f"v{v}" for v in rng.integers(0, 700, 2000)]
    columns = {"x": cells, "z": rng.integers(0, 3, 2000).tolist()}
    columns["y"] = [str(hash_of(cell) % 2) for cell in cells]
    path = in_duckdb(columns, tmp_path / "t.duckdb")
    learnt, _, engine, _ = in_memory(read_table(path, table="t"), CART)
    recipe = replace(CART, max_depth=3)
    with SqlTable(path, "t").open() as rows:
        tree = grow(rows.engine(rows.learn(Task("y"))), learnt, recipe)
    assert difference(tree, grow(engine, learnt, recipe)) is None


def hash_of(text):
    return sum(map(ord, text)) * 7 // 3


def test_postgresql_types(postgresql):
    import psycopg

    with psycopg.connect(postgresql) as connection:
        connection.execute('DROP SCHEMA IF EXISTS "odd ""one" CASCADE')
        connection.execute('CREATE SCHEMA "odd ""one"')
        connection.execute("DROP TYPE IF EXISTS size CASCADE")
        connection.execute("CREATE TYPE size AS ENUM ('small', 'large', 'never')")
        connection.execute("DROP TABLE IF EXISTS t CASCADE")
        cells = {
            '"Colour"': "(ARRAY['red', 'Red', '', 'é'])[1 + i % 4]",
            '"colour"': "(ARRAY['x', 'y'])[1 + i % 2]",
            "size": "(ARRAY['small', 'large'])[1 + i % 2]::size",
            "flag": "i % 3 = 0",
            "small": "i::smallint",
            "price": "(i / 7.0)::numeric(12, 4)",
            "number": "CASE WHEN i % 5 = 0 THEN 'NaN' ELSE i / 3.0 END::float8",
            "day": "date '2024-01-30' + i % 3",
            "nothing": "NULL::text",
            "y": "i % 2",
        }
        columns = ", ".join(f"{cell} AS {name}" for name, cell in cells.items())
        connection.execute(
            f"CREATE TABLE t AS SELECT {columns} FROM generate_series(1, 60) AS r(i)"
        )
        connection.execute('CREATE VIEW "odd ""one".v AS SELECT * FROM t')
    (day,) = [c for c in plan_of(postgresql, Task("y")).schema.columns if c.date]
    assert (day.name, day.kind, day.date) == ("day", "numeric", DateFormat("day"))
    plan = plan_of(postgresql, Task("y"), table='odd "one.v', text_columns=["day"])
    kinds = {c.name: (c.kind, c.categories, c.has_missing) for c in plan.schema.columns}
    assert kinds["Colour"] == ("categorical", ("Red", "red", "é"), True)
    assert kinds["colour"] == ("categorical", ("x", "y"), False)
    assert kinds["size"] == ("categorical", ("small", "large", "never"), False)
    assert kinds["flag"] == ("categorical", (False, True), False)
    assert kinds["small"] == ("numeric", (), False)
    assert kinds["price"][0] == "numeric"
    assert kinds["number"] == ("numeric", (), True)
    assert kinds["day"][1] == ("2024-01-30", "2024-01-31", "2024-02-01")
    assert kinds["nothing"] == ("categorical", (), True)
    assert plan.schema.classes == (0, 1)


def test_views_and_joins(tmp_path):
    path = in_sqlite({"id": [1, 2, 3], "x": ["a", "b", "a"]}, tmp_path / "t.sqlite")
    in_sqlite({"id": [1, 2, 3, 1], "y": [1, 0, 1, 1]}, path, "answers")
    query = "SELECT t.x, answers.y FROM t JOIN answers USING (id);"
    with SqlTable(path, query=query).open() as rows:
        plan = rows.learn(Task("y"))
        tree = grow(rows.engine(plan), plan.schema.columns, ID3)
    assert plan.n_rows == 4
    assert tree.n_children[0] == 2


REFUSED = [
    ({"target": "z"}, "no column 'z'"),
    ({"target": "colour"}, "y is missing in 30 rows"),
    ({"target": "number", "ignored": ()}, "y is missing"),
    ({"target": "price"}, "has fractions"),
    ({"target": "y", "criterion": "variance"}, "y must hold numbers"),
    ({"target": "y", "weight": "colour"}, "must hold the weights"),
    ({"target": "y", "weight": "number"}, "is missing in"),
    ({"target": "y", "rejects_missing": True}, "missing='error' allows none"),
    ({"target": "y", "categories": {"code": [1, 2]}}, "not among its declared"),
]


@pytest.mark.parametrize(("choice", "message"), REFUSED)
def test_what_cannot_be_counted_is_refused_by_name(typed, choice, message):
    with pytest.raises(DataError, match=message) as caught:
        plan_of(typed, Task(**choice))
    assert " row 0" not in str(caught.value)


def test_infinite_and_inexact_numbers_are_refused(tmp_path):
    infinite = {"x": [1.0, float("inf")], "y": ["a", "b"]}
    path = in_duckdb(infinite, tmp_path / "t.duckdb")
    with pytest.raises(DataError, match="Column 'x' is infinite in 1 row"):
        plan_of(path, Task("y"))
    path = in_sqlite({"x": [1, 2**53 + 1], "y": ["a", "b"]}, tmp_path / "t.sqlite")
    with pytest.raises(DataError, match=r"integers beyond 2\*\*53 in 1 row"):
        plan_of(path, Task("y"))
    path = in_sqlite({"x": [b"a", b"b"], "y": ["a", "b"]}, tmp_path / "u.sqlite")
    with pytest.raises(DataError, match=r"Column 'x'.* of type bytes"):
        plan_of(path, Task("y"))
    equal = {"x": [10**15, 1e15, "a"], "y": ["a", "b", "c"]}
    path = in_sqlite(equal, tmp_path / "w.sqlite")
    with (
        SqlTable(path, "t").open() as rows,
        pytest.raises(DataError, match="equal numbers that are not equal as text"),
    ):
        rows.engine(rows.learn(Task("y")))
    path = in_sqlite({"x": [], "y": []}, tmp_path / "v.sqlite")
    with pytest.raises(DataError, match="no rows"):
        plan_of(path, Task("y"))


@pytest.mark.parametrize(
    ("cells", "exact"),
    [
        ([1e17, 2.0], True),
        ([1e17, 2], True),
        ([1e19, -1e17], True),
        ([2**53, 1.5], True),
        ([2**60, 1.5], False),
        ([1.5, -(2**60)], False),
        ([2**60, 1e17], False),
        ([2**53 + 1, 3], False),
    ],
)
def test_integers_of_sqlite_must_be_exact_and_floats_need_not(tmp_path, cells, exact):
    """A table in memory, a reader and the engine go by the types of cells."""
    classes = ["a", "b"]
    path = in_sqlite({"x": cells, "y": classes}, tmp_path / "t.sqlite")

    def read():
        table = read_table(path)
        return fit_tree(table.drop_columns(["y"]), table["y"], recipe)

    recipe = replace(ID3, threshold="midpoint")
    ways = (
        lambda: fit_tree({"x": cells}, classes, recipe),
        read,
        lambda: fit_tree(SqlTable(path, "t"), "y", recipe),
    )
    if exact:
        first, *others = [way() for way in ways]
        assert first.tree.threshold[0] == sum(cells) / 2
        for other in others:
            assert difference(first.tree, other.tree) is None
        return
    if all(isinstance(cell, int) for cell in cells):
        # A reader takes a whole column of such integers for identifiers: text.
        with pytest.warns(BranchwiseWarning, match=r"beyond 2\^53 are taken as names"):
            model = read()
        assert model.schema.columns[0].categories == tuple(sorted(map(str, cells)))
        ways = (ways[0], ways[2])
    for way in ways:
        with pytest.raises(DataError, match=r"'x'.* beyond 2\*\*53"):
            way()
