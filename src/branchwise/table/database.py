"""Tables of SQLite and DuckDB files, and queries to them. Nothing is ever written."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from branchwise.errors import DataError, ParameterError, quoted
from branchwise.table.cells import column_of_cells
from branchwise.table.reading import Reading
from branchwise.table.typed import in_file_order, typed_columns

SQLITE = b"SQLite format 3\0"
#: What a DuckDB file has from its ninth byte on.
DUCKDB = b"DUCK"

_FETCHED = 10_000
#: Steps of SQLite's machine after which Python may look for Ctrl-C.
_STEPS = 100_000
#: What a query may do, by SQLite's numbers: read, select, call functions, recurse.
_ALLOWED = frozenset((20, 21, 31, 33))


class _Database:
    """What both kinds of database have in common."""

    label: str
    names: tuple[str, ...]

    def place(self, row: int) -> str:
        """Tell which row it is, counted from 1."""
        return f"row {row + 1:,}"

    def _statement(self, tables: Sequence[str], reading: Reading) -> str:
        """Return the query, or one for all of a table."""
        if reading.query is not None:
            return reading.query.strip().rstrip(";")
        table = reading.table
        if table is None:
            if len(tables) != 1:
                listed = quoted(tables, 20) if tables else "none"
                raise ParameterError(
                    f"{self.label} is a database: say what to read with --table or "
                    f"--query. Its tables are {listed}."
                )
            table = tables[0]
        if table not in tables:
            close = difflib.get_close_matches(table, tables, 1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            raise DataError(
                f"{self.label} has no table {table!r}.{meant} Its tables are "
                f"{quoted(tables, 20)}."
            )
        return f"select * from {_identifier(table)}"  # noqa: S608  (quoted)

    def _failed(self, error: Exception) -> DataError:
        reason = " ".join(str(error).split()).rstrip(".")
        if reason == "not authorized":
            reason = "a query may only select"
        return DataError(
            f"{self.label} cannot be read: {reason}. Check --table or --query, and "
            "that the file is whole."
        )


class SQLiteFile(_Database):
    """A table or a query of an SQLite file, which is opened for reading only.

    Parameters
    ----------
    path : str
        The file itself: a database cannot be read from a stream.
    label : str
        What messages call it.
    reading : Reading
        Which table or query.
    """

    def __init__(self, path: str, label: str, reading: Reading) -> None:
        self.label = label
        self._path = path
        self._most_bytes = reading.most_bytes
        with self._connected() as connection:
            found = connection.execute(
                "select name from sqlite_schema where type in ('table', 'view') and "
                "name not like 'sqlite\\_%' escape '\\' order by name"
            )
            tables = [name for (name,) in found]
            self._query = self._statement(tables, reading)
            self._open_sandbox(connection)
            cursor = connection.execute(self._query)
            if cursor.description is None:
                raise DataError(
                    f"--query must be one select statement. Got {self._query!r}."
                )
            self.names = tuple(str(entry[0]) for entry in cursor.description)

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as numbers or text, whatever types the cells have."""
        columns: list[list[Any]] = [[] for _ in indices]
        size = 0
        with self._connected() as connection:
            self._open_sandbox(connection)
            cursor = connection.execute(self._query)
            while rows := cursor.fetchmany(_FETCHED):
                for column, index in zip(columns, indices, strict=True):
                    column.extend(row[index] for row in rows)
                size += sum(_size(row) for row in rows)
                if size > self._most_bytes:
                    raise DataError(
                        f"{self.label} gives more than {self._most_bytes:,} bytes. If "
                        "that is what it should give, allow more with --max-size."
                    )
        return [
            column_of_cells(
                cells, self.names[index], self.label, index in text, missing
            )
            for cells, index in zip(columns, indices, strict=True)
        ]

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        import sqlite3  # noqa: PLC0415  (not every Python is built with it)

        try:
            where = f"{Path(self._path).resolve().as_uri()}?mode=ro"
            connection = sqlite3.connect(where, uri=True)
            try:
                yield connection
            finally:
                connection.close()
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise self._failed(error) from None

    def _open_sandbox(self, connection: Any) -> None:
        """Let a query only look; Ctrl-C gets through to a long one."""
        import sqlite3  # noqa: PLC0415

        connection.execute("pragma trusted_schema = off")
        connection.set_progress_handler(lambda: None, _STEPS)
        connection.set_authorizer(
            lambda action, *_: (
                sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
            )
        )


class DuckDBFile(_Database):
    """A table or a query of a DuckDB file, which is opened for reading only.

    Parameters
    ----------
    path : str
        The file itself: a database cannot be read from a stream.
    label : str
        What messages call it.
    reading : Reading
        Which table or query.
    """

    def __init__(self, path: str, label: str, reading: Reading) -> None:
        self.label = label
        self._path = path
        with self._connected() as connection:
            listed = connection.execute(
                "select table_name from information_schema.tables where table_schema = "
                "current_schema() order by table_name"
            ).fetchall()
            tables = [name for (name,) in listed]
            self._query = self._statement(tables, reading)
            self._check_select(connection)
            shape = f"select * from ({self._query}) limit 0"  # noqa: S608
            found = connection.execute(shape).description
            self.names = tuple(str(entry[0]) for entry in found)

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, dates and those in ``text`` as text."""
        with self._connected() as connection:
            table = connection.sql(self._query).to_arrow_table()
        table = table.select(list(indices))
        positions = in_file_order(indices, text)
        return typed_columns(table, self.label, positions, missing)

    def _check_select(self, connection: Any) -> None:
        statements = connection.extract_statements(self._query)
        if len(statements) != 1 or statements[0].type.name != "SELECT":
            raise DataError(
                f"--query must be one select statement. Got {self._query!r}."
            )

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            import duckdb  # noqa: PLC0415
        except ImportError:
            raise ParameterError(
                f"{self.label} is a DuckDB file, which needs duckdb: pip install "
                "'branchwise[sql]'. Or save the table as Parquet."
            ) from None
        sandbox = {
            # No other file, no network, no extension; and it cannot be undone.
            "enable_external_access": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "lock_configuration": True,
        }
        try:
            connection = duckdb.connect(self._path, read_only=True, config=sandbox)
            try:
                yield connection
            finally:
                connection.close()
        except duckdb.Error as error:
            raise self._failed(error) from None


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _size(row: Sequence[Any]) -> int:
    return 8 * len(row) + sum(len(c) for c in row if isinstance(c, (str, bytes)))
