"""Connections to DuckDB, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from branchwise.engines.sql.connections import (
    PORTION,
    Arrays,
    Connection,
    Described,
    T,
    plain_array,
    without_password,
)
from branchwise.errors import DataError, ParameterError
from branchwise.files.database import DUCKDB as DUCKDB_MARK
from branchwise.files.database import SQLITE as SQLITE_MARK
from branchwise.files.database import (
    duckdb_reader,
    import_duckdb,
    is_one_select,
    open_duckdb,
    open_sqlite,
    run_in_sqlite,
    sqlite_tables,
)
from branchwise.files.sql_dialects import DUCKDB, POSTGRESQL, SQLITE


class DuckDBConnection(Connection):
    """A connection to DuckDB."""

    dialect = DUCKDB

    def __init__(self, native: Any, label: str, owned: bool) -> None:
        super().__init__(native, label, owned)
        self._duckdb = duckdb = import_duckdb(label)
        self.errors = (duckdb.Error,)

    @classmethod
    def opening(cls, path: str) -> DuckDBConnection:
        """Open a file for reading."""
        try:
            native = open_duckdb(path)
        except import_duckdb(path).Error as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise DataError(f"{path} cannot be opened: {reason}.") from None
        return cls(native, path, owned=True)

    def _start(self, writes: bool) -> bool:
        del writes
        # A second BEGIN would end a transaction that the caller has begun: such a
        # one is known by its number, which is another for every other statement.
        first, second = (
            self.native.execute("SELECT txid_current()").fetchone() for _ in range(2)
        )
        if first == second:
            return False
        self.native.begin()
        return True

    def _execute(self, statement: str, values: Sequence[Any]) -> Any:
        if not values:
            return self.native.execute(statement)
        return self.native.execute(statement, list(values))

    def fetch(self, statement: str, values: Sequence[Any], kinds: str) -> Arrays:
        """Return the columns of a result."""
        if "o" in kinds:
            return super().fetch(statement, values, kinds)
        with self._told("be counted"):
            found = self._waited(lambda: self._execute(statement, values).fetchnumpy())
        return [
            plain_array(c, kind) for c, kind in zip(found.values(), kinds, strict=True)
        ]

    def stream(
        self, statement: str, values: Sequence[Any], kinds: str
    ) -> Iterator[Arrays]:
        """Yield the columns of a result, some rows at a time."""
        if "o" in kinds:
            yield from super().stream(statement, values, kinds)
            return
        with self._told("be counted"):
            query = partial(self.native.sql, statement, params=list(values))
            reader = self._waited(lambda: duckdb_reader(query(), PORTION))
            for batch in self._fetched(reader):
                yield [
                    plain_array(column.to_numpy(zero_copy_only=False), kind)
                    for column, kind in zip(batch.columns, kinds, strict=True)
                ]

    def arrow(self, statement: str) -> Any:
        """Return a result as an Arrow table, which keeps the types of columns."""
        with self._told("be counted"):
            return self._waited(lambda: self.native.sql(statement).to_arrow_table())

    def _interrupt(self) -> None:
        self.native.interrupt()

    def describe(self, source: str) -> list[Described]:
        """Return the columns of a source; raises what the driver does."""
        statement = f"SELECT * FROM {source} AS source LIMIT 0"  # noqa: S608
        if not is_one_select(self.native, statement):
            raise DataError(f"query must be one SELECT statement. Got {source!r}.")
        described = self.native.execute(f"DESCRIBE {statement}").fetchall()
        return [Described(str(row[0]), str(row[1])) for row in described]

    def _is_lost(self, error: Exception) -> bool:
        return isinstance(error, self._duckdb.ConnectionException)

    def _is_absent(self, error: Exception) -> bool:
        return isinstance(error, self._duckdb.CatalogException)


class SQLiteConnection(Connection):
    """A connection to SQLite."""

    dialect = SQLITE

    def __init__(self, native: Any, label: str, owned: bool) -> None:
        import sqlite3  # noqa: PLC0415  (not every Python is built with it)

        super().__init__(native, label, owned)
        self.errors = (sqlite3.Error, sqlite3.Warning, OverflowError)
        self._programming_error = sqlite3.ProgrammingError

    @classmethod
    def opening(cls, path: str) -> SQLiteConnection:
        """Open a file for reading."""
        return cls(open_sqlite(path), path, owned=True)

    def _start(self, writes: bool) -> bool:
        del writes
        if self.native.in_transaction:
            return False
        self.native.execute("BEGIN")
        return True

    def _execute(self, statement: str, values: Sequence[Any]) -> Any:
        cursor = self.native.cursor()
        cursor.row_factory = None  # the caller's connection may have one
        return cursor.execute(statement, tuple(values))

    def _interruptible(self, work: Callable[[], T]) -> T:
        return run_in_sqlite(work, self.native, self.timeout)

    def describe(self, source: str) -> list[Described]:
        """Return the columns of a source; raises what the driver does."""
        cursor = self._execute(f"SELECT * FROM {source} AS source LIMIT 0", ())  # noqa: S608
        return [Described(str(entry[0]), "") for entry in cursor.description]

    def tables(self) -> list[tuple[str, ...]]:
        """Return the names of all tables and views, other schemas' with the schema."""
        cursor = self.native.cursor()
        cursor.row_factory = None  # the caller's connection may have one
        return [(name,) for name in sqlite_tables(cursor)]

    def _is_lost(self, error: Exception) -> bool:
        return isinstance(error, self._programming_error) and "closed" in str(error)

    def _is_absent(self, error: Exception) -> bool:
        return "no such table" in str(error)


class PostgreSQLConnection(Connection):
    """A connection to PostgreSQL through psycopg."""

    dialect = POSTGRESQL

    def __init__(self, native: Any, owned: bool, secret: str = "") -> None:
        import psycopg  # noqa: PLC0415  (an extra)

        info = native.info
        label = f"PostgreSQL database {info.dbname!r} on {info.host or 'this machine'}"
        super().__init__(native, label, owned, secret or info.password)
        self._psycopg = psycopg
        self.errors = (psycopg.Error,)
        # Unless it is in autocommit mode, every statement begins a transaction.
        self._callers = info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    @classmethod
    def opening(cls, address: str) -> PostgreSQLConnection:
        """Connect to a server."""
        try:
            import psycopg  # noqa: PLC0415
        except ImportError:
            raise ParameterError(
                "A PostgreSQL database needs psycopg: pip install 'branchwise[sql]'."
            ) from None
        secret, shown = without_password(address)
        try:
            native = psycopg.connect(address)
        except psycopg.Error as error:
            reason = " ".join(str(error).split()).rstrip(".")
            if secret:
                reason = reason.replace(secret, "***").replace(unquote(secret), "***")
            raise DataError(f"{shown} cannot be reached: {reason}.") from None
        return cls(native, owned=True, secret=unquote(secret))

    def _start(self, writes: bool) -> bool:
        if self._callers:
            return False
        self._recover()
        mode = "READ WRITE" if writes else "READ ONLY"
        isolation = f"ISOLATION LEVEL REPEATABLE READ {mode}"
        if self.native.autocommit:
            self._execute(f"BEGIN {isolation}", ())
        else:
            self._execute(f"SET TRANSACTION {isolation}", ())
        # Estimates of long chains of joins end at one row, where loops look cheap.
        self._execute("SET LOCAL enable_nestloop = off", ())
        self._execute("SET LOCAL jit = off", ())
        return True

    def _roll_back(self) -> None:
        if self.native.autocommit:
            self._execute("ROLLBACK", ())
        else:
            self.native.rollback()

    def _execute(self, statement: str, values: Sequence[Any]) -> Any:
        cursor = self._psycopg.RawCursor(
            self.native, row_factory=self._psycopg.rows.tuple_row
        )
        return cursor.execute(statement, list(values) or None)

    def _portions(
        self, statement: str, values: Sequence[Any]
    ) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self._psycopg.RawServerCursor(
            self.native,
            name="branchwise",
            row_factory=self._psycopg.rows.tuple_row,
        )
        with cursor:
            cursor.execute(statement, list(values) or None)
            while rows := cursor.fetchmany(PORTION):
                yield rows

    def describe(self, source: str) -> list[Described]:
        """Return the columns of a source; raises what the driver does."""
        statement = f"SELECT * FROM {source} AS source LIMIT 0"  # noqa: S608
        cursor = self._psycopg.RawCursor(self.native)
        # Prepared, so that it cannot be more than one statement.
        cursor.execute(statement, prepare=True)
        columns = [(c.name, c.type_code) for c in cursor.description or ()]
        kinds = dict(
            self._execute(
                "SELECT t.oid::bigint, CASE WHEN COALESCE(b.typtype, t.typtype) = 'e' "
                "THEN 'enum' ELSE COALESCE(b.typname, t.typname) END FROM pg_type t "
                "LEFT JOIN pg_type b ON b.oid = t.typbasetype WHERE t.oid = ANY($1)",
                [[oid for _, oid in columns]],
            ).fetchall()
        )
        return [Described(name, kinds.get(oid, "?")) for name, oid in columns]

    def labels_of(self, name: str, source: str) -> list[str]:
        """Return the declared values of an enumeration, in their order."""
        found = self._execute(
            f"SELECT enumlabel FROM pg_enum WHERE enumtypid = (SELECT pg_typeof({name})"  # noqa: S608
            f"::oid FROM (SELECT 1) AS one LEFT JOIN {source} AS source ON FALSE) "
            "ORDER BY enumsortorder",
            (),
        )
        return [str(label) for (label,) in found.fetchall()]

    def _temporary_name(self, table: str) -> str:
        return f"pg_temp.{table}"

    def _interrupt(self) -> None:
        self.native.cancel()

    def _recover(self) -> None:
        if not self._callers and not self.native.autocommit:
            self.native.rollback()

    def _is_lost(self, error: Exception) -> bool:
        del error
        return bool(self.native.closed or self.native.broken)

    def _is_absent(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) in ("42P01", "3F000")


def connected(given: Any) -> Connection:
    """Return the connection of an address, a file or a connection of the user.

    A connection of SQLAlchemy has one of a driver within; an engine has none.
    """
    if isinstance(given, (str, PathLike)):
        return _opened(fspath(given))
    location = given
    if _modules(given)[0] == "sqlalchemy":
        within = getattr(given, "connection", None)
        location = getattr(within, "driver_connection", None)
    if {"duckdb", "_duckdb"} & set(_modules(location)):
        return DuckDBConnection(location, "The DuckDB database", owned=False)
    if "sqlite3" in _modules(location):
        return SQLiteConnection(location, "The SQLite database", owned=False)
    if "psycopg" in _modules(location):
        return PostgreSQLConnection(location, owned=False)
    raise ParameterError(
        "A database must be an address (sqlite:///path, duckdb:///path or "
        "postgresql://user@host/name), the path of a SQLite or DuckDB file, or a "
        "connection of sqlite3, duckdb or psycopg, also within a connection (not an "
        f"engine) of SQLAlchemy. Got {type(given).__name__}."
    )


def _modules(thing: Any) -> list[str]:
    """Return the packages of an object's class and its base classes."""
    return [kind.__module__.split(".")[0] for kind in type(thing).__mro__]


def _opened(address: str) -> Connection:
    scheme, found, rest = address.partition("://")
    if found and scheme in ("postgresql", "postgres"):
        return PostgreSQLConnection.opening(address)
    if found and scheme in ("sqlite", "duckdb"):
        path = rest.removeprefix("/")
        _first_bytes(path)
        return (SQLiteConnection if scheme == "sqlite" else DuckDBConnection).opening(
            path
        )
    if found:
        raise ParameterError(
            "The address of a database must begin with sqlite:///, duckdb:/// or "
            f"postgresql://. Got {scheme}://."
        )
    first = _first_bytes(address)
    if first.startswith(SQLITE_MARK):
        return SQLiteConnection.opening(address)
    if first[8:12] == DUCKDB_MARK:
        return DuckDBConnection.opening(address)
    raise DataError(f"{address} is neither a SQLite nor a DuckDB file.")


def _first_bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(16)
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}.") from None
