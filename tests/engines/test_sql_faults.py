"""Databases that cannot be read, connections that end, and what is left behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from branchwise import DataError, ParameterError
from branchwise.engines.base import Task
from branchwise.engines.sql import SqlTable
from branchwise.engines.sql import routes as sql_routes
from branchwise.engines.sql.drivers import connected
from branchwise.grow.grow import grow
from branchwise.recipe import ID3
from sql_sources import (
    HOSTILE,
    difference,
    in_duckdb,
    in_postgresql,
    in_sqlite,
    named,
)

TABLE = {
    "x": [1, 2, 3, 4, 5, 6] * 5,
    "z": ["a", "b", None] * 10,
    "y": ["no", "yes", "no", "no", "yes"] * 6,
}
#: In PostgreSQL, whichever connection they belong to.
TEMPORARY_TABLES = "SELECT relname FROM pg_class WHERE relpersistence = 't'"


def fit(table, recipe=ID3, progress=None):
    with table.open() as rows:
        plan = rows.learn(Task("y", divides=recipe.missing == "split"))
        return grow(rows.engine(plan), plan.schema.columns, recipe, progress)


def stop(_):
    raise KeyboardInterrupt


@pytest.fixture
def sqlite(tmp_path):
    with closing(sqlite3.connect(in_sqlite(TABLE, tmp_path / "t.sqlite"))) as found:
        yield found


@pytest.fixture
def duckdb_connection(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(in_duckdb(TABLE, tmp_path / "t.duckdb"))) as found:
        yield found


def temporary_tables_of_sqlite(connection):
    return connection.execute("SELECT name FROM temp.sqlite_schema").fetchall()


def temporary_tables_of_duckdb(connection):
    found = connection.execute("SELECT table_name FROM duckdb_tables() WHERE temporary")
    return found.fetchall()


def test_nothing_is_left_in_sqlite(sqlite):
    table = SqlTable(sqlite, "t", temporary_tables=True)
    fit(table)
    assert temporary_tables_of_sqlite(sqlite) == []
    with pytest.raises(KeyboardInterrupt):
        fit(table, progress=stop)
    assert temporary_tables_of_sqlite(sqlite) == []
    assert not sqlite.in_transaction
    sqlite.execute("BEGIN")
    sqlite.execute("DELETE FROM t WHERE x = 6")
    with pytest.raises(KeyboardInterrupt):
        fit(table, progress=stop)
    assert temporary_tables_of_sqlite(sqlite) == []
    # The caller's transaction is the caller's.
    assert sqlite.in_transaction
    assert sqlite.execute("SELECT COUNT(*) FROM t").fetchone() == (25,)


def test_nothing_is_left_in_duckdb(duckdb_connection):
    table = SqlTable(duckdb_connection, "t", temporary_tables=True)
    fit(table)
    with pytest.raises(KeyboardInterrupt):
        fit(table, progress=stop)
    assert temporary_tables_of_duckdb(duckdb_connection) == []
    duckdb_connection.begin()
    duckdb_connection.execute("DELETE FROM t WHERE x = 6")
    with pytest.raises(KeyboardInterrupt):
        fit(table, progress=stop)
    assert temporary_tables_of_duckdb(duckdb_connection) == []
    duckdb_connection.commit()
    assert duckdb_connection.execute("SELECT COUNT(*) FROM t").fetchone() == (25,)


def test_a_table_that_is_called_like_ours_is_left_alone(
    sqlite,
    duckdb_connection,
    postgresql,
):
    import psycopg

    in_postgresql(TABLE, postgresql)
    with psycopg.connect(postgresql, autocommit=True) as server:
        for connection in (sqlite, duckdb_connection, server):
            for number in range(1, 5):
                table = named(f"branchwise {number}")
                connection.execute(f"DROP TABLE IF EXISTS {table}")
                connection.execute(f"CREATE TABLE {table} (kept INTEGER)")
            connection.commit()
            wanted = fit(SqlTable(connection, "t"))
            found = fit(SqlTable(connection, "t", temporary_tables=True))
            assert difference(wanted, found) is None
            for number in range(1, 5):
                connection.execute(f"SELECT kept FROM {named(f'branchwise {number}')}")


def test_a_transaction_of_postgresql_is_the_callers(postgresql):
    import psycopg

    in_postgresql(TABLE, postgresql)
    with psycopg.connect(postgresql) as connection:
        connection.execute("DELETE FROM t WHERE x = 6")
        table = SqlTable(connection, "t", temporary_tables=True)
        with pytest.raises(KeyboardInterrupt):
            fit(table, progress=stop)
        assert connection.execute(TEMPORARY_TABLES).fetchall() == []
        assert connection.execute("SELECT COUNT(*) FROM t").fetchone() == (25,)
        connection.rollback()
        fit(table)
        assert connection.info.transaction_status.name == "IDLE"


@pytest.mark.parametrize("temporary", [False, True])
def test_a_connection_that_is_closed_in_the_middle(
    sqlite, duckdb_connection, temporary
):
    for connection in (sqlite, duckdb_connection):
        table = SqlTable(connection, "t", temporary_tables=temporary)
        with pytest.raises(
            DataError, match=r"database cannot be counted: the conn.*lost"
        ):
            fit(table, progress=lambda _, c=connection: c.close())


def test_a_server_that_ends_the_connection(postgresql):
    import psycopg

    in_postgresql(TABLE, postgresql)
    with psycopg.connect(postgresql, autocommit=True) as other:

        def cut(_):
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE "
                "pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

        for temporary in (False, True):
            table = SqlTable(postgresql, "t", temporary_tables=temporary)
            with pytest.raises(DataError, match=r"'postgres' on .*connection was lost"):
                fit(table, progress=cut)
            assert other.execute(TEMPORARY_TABLES).fetchall() == []


def test_interrupting_postgresql_leaves_the_callers_connection(postgresql):
    import psycopg

    in_postgresql(TABLE, postgresql)
    for autocommit in (True, False):
        with psycopg.connect(postgresql, autocommit=autocommit) as connection:
            table = SqlTable(connection, "t", temporary_tables=True)
            with pytest.raises(KeyboardInterrupt):
                fit(table, progress=stop)
            assert connection.execute(TEMPORARY_TABLES).fetchall() == []
            assert connection.execute("SHOW enable_nestloop").fetchone() == ("on",)
            fit(table)


def test_the_rows_are_seen_in_one_state(postgresql):
    import psycopg

    in_postgresql(TABLE, postgresql)
    wanted = fit(SqlTable(postgresql, "t"))
    in_postgresql(TABLE, postgresql)
    with psycopg.connect(postgresql, autocommit=True) as writer:

        def write(_):
            writer.execute("INSERT INTO t VALUES (9, 'new', 'other')")

        tree = fit(SqlTable(postgresql, "t"), progress=write)
    assert tree.weights.tolist() == wanted.weights.tolist()


def test_a_query_that_gives_other_rows_every_time(sqlite):
    sampled = SqlTable(sqlite, query="SELECT * FROM t ORDER BY random() LIMIT 12")
    told = []
    for _ in range(20):
        try:
            fit(sampled)
        except DataError as error:
            told.append(str(error))
    assert any("changed while they were read" in each for each in told)


def test_a_locked_file(tmp_path):
    path = in_sqlite(TABLE, tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        reader = sqlite3.connect(path, timeout=0)
        with (
            closing(reader),
            pytest.raises(DataError, match="Wait until its writer is done"),
        ):
            SqlTable(reader, "t").open()


def test_nothing_can_be_written_through_an_address(tmp_path):
    path = in_sqlite(TABLE, tmp_path / "t.sqlite")
    with SqlTable(path, "t").open() as rows, pytest.raises(DataError, match="readonly"):
        rows.connection.run("DELETE FROM t")
    pytest.importorskip("duckdb")
    path = in_duckdb(TABLE, tmp_path / "t.duckdb")
    with (
        SqlTable(path, "t").open() as rows,
        pytest.raises(DataError, match="read-only"),
    ):
        rows.connection.run("DELETE FROM t")


@pytest.mark.parametrize("query", ["SELECT 1) AS a; DROP TABLE t; --", "DROP TABLE t"])
def test_a_query_is_one_select(tmp_path, query, request):
    places = [in_sqlite(TABLE, tmp_path / "t.sqlite")]
    if pytest.importorskip("duckdb"):
        places.append(in_duckdb(TABLE, tmp_path / "t.duckdb"))
    for place in places:
        with pytest.raises(DataError):
            SqlTable(place, query=query).open()
        fit(SqlTable(place, "t"))


def test_postgresql_takes_one_select_only(postgresql):
    in_postgresql(TABLE, postgresql)
    for query in ("SELECT 1) AS a; DROP TABLE t; --", "DELETE FROM t RETURNING *"):
        with pytest.raises(DataError):
            SqlTable(postgresql, query=query).open()
    fit(SqlTable(postgresql, "t"))


def test_wrong_names_are_told_with_the_nearest(tmp_path, postgresql):
    places = [in_sqlite({**TABLE}, tmp_path / "t.sqlite", "customers")]
    places.append(in_duckdb(TABLE, tmp_path / "t.duckdb", "customers"))
    places.append(in_postgresql(TABLE, postgresql, "customers"))
    for place in places:
        with pytest.raises(DataError, match="Did you mean 'customers'"):
            SqlTable(place, "custmers").open()
        with (
            SqlTable(place, "customers").open() as rows,
            pytest.raises(DataError, match="Did you mean 'x'"),
        ):
            rows.learn(Task("xx"))


def test_what_may_not_be_read_is_told_without_the_password(postgresql):
    import psycopg

    in_postgresql(TABLE, postgresql)
    with psycopg.connect(postgresql, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS poor")
        admin.execute("CREATE ROLE poor LOGIN PASSWORD 'secret-word'")
    address = postgresql.replace("tester@", "poor:secret-word@")
    with pytest.raises(DataError, match="permission denied") as caught:
        SqlTable(address, "t").open()
    assert "secret-word" not in str(caught.value)
    nowhere = "postgresql://poor:secret-word@/none?host=/nowhere"
    with pytest.raises(DataError, match="cannot be reached") as caught:
        SqlTable(nowhere, "t").open()
    assert "secret-word" not in str(caught.value)
    broken = "postgresql://poor:secret-word@host:port/none"
    with pytest.raises(DataError, match="cannot be reached") as caught:
        SqlTable(broken, "t").open()
    assert "secret-word" not in str(caught.value)


def test_addresses(tmp_path, monkeypatch):
    path = in_sqlite(TABLE, tmp_path / "t.db")
    for address in (path, tmp_path / "t.db", f"sqlite:///{path}"):
        fit(SqlTable(address, "t"))
    monkeypatch.chdir(tmp_path)
    fit(SqlTable("sqlite:///t.db", "t"))
    (tmp_path / "text").write_text("no database")
    with pytest.raises(DataError, match="neither a SQLite nor a DuckDB file"):
        SqlTable("text", "t").open()
    with pytest.raises(DataError, match="No such file"):
        SqlTable("sqlite:///none.db", "t").open()
    with pytest.raises(ParameterError, match="must begin with sqlite:///"):
        SqlTable("mysql://host/db", "t").open()
    with pytest.raises(ParameterError, match="Got int"):
        SqlTable(7, "t").open()
    with pytest.raises(ParameterError, match="Got neither"):
        SqlTable("t.db")
    with pytest.raises(ParameterError, match="Got both"):
        SqlTable("t.db", "t", "SELECT 1")


def test_hostile_names_of_tables_and_columns(tmp_path):
    for number, name in enumerate(word for word in HOSTILE if word):
        columns = {name: TABLE["z"], "the target": TABLE["y"], f"{name}.": TABLE["x"]}
        path = in_sqlite(columns, tmp_path / f"{number}.sqlite", name)
        with SqlTable(path, name).open() as rows:
            plan = rows.learn(Task("the target"))
            tree = grow(rows.engine(plan), plan.schema.columns, ID3)
        assert plan.schema.names == [name, f"{name}."]
        assert len(tree.column) > 2


def test_equal_names_of_a_join_are_refused(postgresql):
    in_postgresql(TABLE, postgresql)
    query = "SELECT a.*, b.x FROM t AS a JOIN t AS b USING (z)"
    with pytest.raises(DataError, match="more than one column named 'x'"):
        fit(SqlTable(postgresql, query=query))


def test_a_tree_that_is_too_deep_for_a_query_says_what_to_do(sqlite, monkeypatch):
    monkeypatch.setattr(sql_routes, "MOST_JOINED_LEVELS", 1)
    divided = replace(ID3, missing="split", unseen="split")
    with pytest.raises(DataError, match=r"temporary_tables=True.*max_depth"):
        fit(SqlTable(sqlite, "t"), divided)
    fit(SqlTable(sqlite, "t", temporary_tables=True), divided)


def test_too_many_values_for_a_query_say_what_to_do(tmp_path):
    n = 33_000
    columns = {"x": [f"v{i}" for i in range(n)], "y": [i % 2 for i in range(n)]}
    path = in_sqlite(columns, tmp_path / "t.sqlite")
    with pytest.raises(DataError, match=r"more than 32,000 values"):
        fit(SqlTable(path, "t"))


def test_names_in_duckdb_and_postgresql(tmp_path, postgresql):
    table = 'a "table"; DROP TABLE t; --'
    columns = {"select": TABLE["x"], "100%s $1": TABLE["z"], "y": TABLE["y"]}
    for place in (
        in_duckdb(columns, tmp_path / "t.duckdb", table),
        in_postgresql(columns, postgresql, table),
    ):
        tree = fit(SqlTable(place, table))
        assert fit(SqlTable(place, query=f"SELECT * FROM {named(table)}")) is not None
        assert len(tree.column) > 2


class Wrapped:
    """Stands in for a connection of SQLAlchemy, which has methods of the same names."""

    def __init__(self, driver_connection: object) -> None:
        self.connection = SimpleNamespace(driver_connection=driver_connection)

    def in_transaction(self) -> bool:
        return False


Wrapped.__module__ = "sqlalchemy.engine.base"


def test_connections_within_those_of_sqlalchemy(tmp_path):
    path = in_sqlite({"a": ["x", "y"], "label": ["p", "q"]}, tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as native:
        wrapped = connected(Wrapped(native))
        assert wrapped.native is native
        assert [column.name for column in wrapped.describe("t")] == ["a", "label"]


@pytest.mark.parametrize("within", [None, object()])
def test_an_engine_of_sqlalchemy_is_no_connection(within):
    with pytest.raises(ParameterError, match=r"not an engine\) of SQLAlchemy. Got Wr"):
        connected(Wrapped(within))
