"""Statements of databases end by Ctrl-C, and when they give no row for too long."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import threading
import time

import pytest

from branchwise import DataError, ParameterError, fit_tree, read_table
from branchwise.engines.sql import SqlTable
from command_line import run

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="a process cannot send Ctrl-C to itself alone"
)
#: Views without an end, that give rows of their own or none at all.
ENDLESS = {
    "rows": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT (n + 1) % 9 FROM r) "
    "SELECT n AS x, 'a' AS y FROM r",
    "no rows": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n % 9 FROM r) "
    "SELECT n AS x, 'a' AS y FROM r WHERE n < 0",
}


def connect(kind, path):
    module = pytest.importorskip({"sqlite": "sqlite3"}.get(kind, kind))
    return contextlib.closing(module.connect(str(path)))


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request, tmp_path):
    """Return a file with endless views."""
    path = tmp_path / f"data.{request.param}"
    with connect(request.param, path) as connection:
        for name, view in ENDLESS.items():
            connection.execute(f'CREATE VIEW "{name}" AS {view}')
        connection.execute("CREATE TABLE t AS SELECT 1 AS x, 'a' AS y")
        connection.commit()
    return path


@contextlib.contextmanager
def interrupted():
    """Press Ctrl-C soon; what is within must end within a second."""
    process = os.getpid()
    timer = threading.Timer(0.3, os.kill, (process, signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - begun < 1.3


@pytest.mark.parametrize("view", ENDLESS)
def test_an_endless_view_is_not_counted_for_ever(database, view):
    with pytest.raises(DataError, match=r"gave no row for 0\.3 seconds.*raise timeout"):
        fit_tree(SqlTable(str(database), view, timeout=0.3), "y")


def test_an_endless_view_of_postgresql_is_not_counted_for_ever(postgresql):
    import psycopg

    table = SqlTable(postgresql, query=ENDLESS["no rows"], timeout=0.3)
    with pytest.raises(DataError, match=r"gave no row for 0\.3 seconds"):
        fit_tree(table, "y")
    with psycopg.connect(postgresql) as connection:
        mine = SqlTable(connection, query=ENDLESS["no rows"], timeout=0.3)
        with pytest.raises(DataError, match=r"gave no row for 0\.3 seconds"):
            fit_tree(mine, "y")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.rollback()
        with interrupted():
            fit_tree(SqlTable(connection, query=ENDLESS["no rows"]), "y")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_connection_of_the_caller_is_usable_afterwards(database):
    with connect(database.suffix[1:], database) as connection:
        with pytest.raises(DataError, match="gave no row for"):
            fit_tree(SqlTable(connection, "no rows", timeout=0.3), "y")
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
        with interrupted():
            fit_tree(SqlTable(connection, "no rows", timeout=None), "y")
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]


@pytest.mark.parametrize("view", ENDLESS)
def test_ctrl_c_ends_counting(database, view):
    with interrupted():
        fit_tree(SqlTable(str(database), view), "y")


def test_ctrl_c_ends_reading(database):
    with interrupted():
        read_table(database, table="no rows")


def test_what_takes_the_rows_may_take_its_time(tmp_path):
    path = tmp_path / "data.sqlite"
    with connect("sqlite", path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x, 'a' AS y")
        connection.commit()
    with SqlTable(str(path), "t", timeout=0.1).open() as rows:
        found = rows.connection.rows("SELECT 1 UNION ALL SELECT 2")
        next(found)
        time.sleep(0.2)
        assert list(found) == [(2,)]


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "1", True])
def test_a_time_limit_is_a_number_of_seconds(timeout):
    with pytest.raises(ParameterError, match="timeout must be a number of seconds"):
        SqlTable("data.sqlite", "t", timeout=timeout)


def test_the_command_line_has_the_time_limit(database):
    given = (database, "--target", "y", "--table", "no rows", "-q")
    code, _, error = run("fit", *given, "--engine", "sql", "--timeout", "0.3")
    assert code == 1
    assert "gave no row for 0.3 seconds" in error
    code, _, error = run("fit", *given, "--timeout", "0.3")
    assert code == 2
    assert "--timeout has no effect without --engine sql" in error


def test_a_progress_handler_is_not_left_behind(tmp_path):
    calls = []
    with contextlib.closing(sqlite3.connect(tmp_path / "t.sqlite")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x, 'a' AS y")
        with pytest.raises(DataError):
            fit_tree(SqlTable(connection, "t"), "z")
        connection.set_progress_handler(lambda: calls.append(1), 1)
        connection.execute("SELECT * FROM t").fetchall()
    assert calls
