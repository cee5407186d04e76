"""Databases in a sandbox, and the tables and queries of SQLite and DuckDB files.

All databases are opened here: for reading only, without other files, network and
extensions, and with a time limit for what is waited for.
"""

from __future__ import annotations

import contextlib
import difflib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from branchwise.data.arrow import declared_table, table_of_batches
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.options import MOST_BYTES, Reading
from branchwise.files.raw_bytes import raise_size
from branchwise.files.typed_columns import column_of_cells, typed_columns

T = TypeVar("T")

#: Steps of SQLite's virtual machine between checks of the time.
_STEPS = 100_000
#: Seconds between checks for Ctrl-C, and between interrupts.
_POLL = 0.1


class OverdueError(Exception):
    """A statement returned no row within the time limit."""


def run_interruptibly(
    work: Callable[[], T], interrupt: Callable[[], None], seconds: float | None
) -> T:
    """Call a function that waits for a database in a thread of its own.

    Drivers do not check for Ctrl-C while they wait; the calling thread does, and calls
    ``interrupt``, which makes the function raise an error. Raises OverdueError after so
    many seconds; None is no limit.
    """
    found: list[T] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def call() -> None:
        try:
            found.append(work())
        except BaseException as error:  # raised by the caller
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=call, daemon=True).start()
    try:
        in_time = _is_done(done, seconds)
    finally:
        # More than once: what has not begun yet does not notice.
        while not done.is_set():
            interrupt()
            done.wait(_POLL)
    if not in_time:
        raise OverdueError
    if failed:
        raise failed[0]
    return found[0]


def _is_done(done: threading.Event, seconds: float | None) -> bool:
    begun = monotonic()
    while not done.wait(_POLL):
        if seconds is not None and monotonic() - begun > seconds:
            return False
    return True


def run_in_sqlite(work: Callable[[], T], connection: Any, seconds: float | None) -> T:
    """Call a function that waits for SQLite, whose connections belong to one thread.

    The connection has no progress handler afterwards. Raises OverdueError after so many
    seconds; None is no limit.
    """
    reasons: list[BaseException] = []
    checks = _checks(seconds, reasons)
    next(checks)
    connection.set_progress_handler(checks.__next__, _STEPS)
    try:
        return work()
    except Exception:
        if reasons:
            raise reasons[0] from None
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _checks(seconds: float | None, reasons: list[BaseException]) -> Iterator[bool]:
    """Yield whether there is a reason to stop a statement.

    Ctrl-C is raised where Python code goes on, and SQLite forgets what its handler
    raises: a generator, unlike a function, goes on where it can be caught.
    """
    begun = monotonic()
    while True:
        try:
            yield bool(reasons)
            if seconds is not None and monotonic() - begun > seconds:
                reasons.append(OverdueError())
        except (Exception, KeyboardInterrupt, SystemExit) as reason:
            reasons.append(reason)


SQLITE = b"SQLite format 3\0"
#: What a DuckDB file has from its ninth byte on.
DUCKDB = b"DUCK"
IN_MEMORY = ":memory:"

#: No other file, no network, no extension, no variable of Python; and no way back.
_LOCKED: dict[str, Any] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "lock_configuration": True,
}
#: What a query may do, by SQLite's numbers: read, select, call functions, recurse.
_ALLOWED = frozenset((20, 21, 31, 33))


def import_duckdb(label: str) -> Any:
    """Return the package that opens a file."""
    try:
        import duckdb  # noqa: PLC0415  (an extra)
    except ImportError:
        raise ParameterError(
            f"{label} is a DuckDB file, which needs duckdb: pip install "
            "'branchwise[sql]'. Or save the table as Parquet."
        ) from None
    return duckdb


def open_duckdb(path: str, **settings: str) -> Any:
    """Open a file for reading, or a database in memory, in a sandbox."""
    config = {**_LOCKED, **settings}
    duckdb = import_duckdb(path)
    return duckdb.connect(path, read_only=path != IN_MEMORY, config=config)


def is_one_select(connection: Any, statement: str) -> bool:
    """Whether a statement for DuckDB is a single SELECT."""
    found = connection.extract_statements(statement)
    return [each.type.name for each in found] == ["SELECT"]


def duckdb_reader(relation: Any, n_rows: int) -> Any:
    """Return the batches of a result, of so many rows."""
    # The name of the method since DuckDB 1.4.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(n_rows)


def open_sqlite(path: str) -> Any:
    """Open a file for reading, or a database in memory."""
    import sqlite3  # noqa: PLC0415  (not every Python is built with it)

    where = path
    if path != IN_MEMORY:
        where = f"{Path(path).resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(where, uri=path != IN_MEMORY)
    # Functions with side effects are not called by views.
    connection.execute("pragma trusted_schema = off")
    return connection


def restrict_sqlite(connection: Any) -> None:
    """Allow a connection nothing but SELECT; the driver rejects a second statement."""
    import sqlite3  # noqa: PLC0415

    def check(action: int, _: object, function: str | None, *__: object) -> int:
        allowed = action in _ALLOWED and function != "load_extension"
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(check)


def sqlite_tables(cursor: Any) -> list[str]:
    """Return the names of all tables and views."""
    found = cursor.execute(
        "select name from sqlite_schema where type in ('table', 'view') and "
        "name not like 'sqlite\\_%' escape '\\' order by name"
    )
    return [name for (name,) in found]


def no_table(label: str, table: str, tables: Sequence[str]) -> DataError:
    """Return the error of a table that a database does not have."""
    close = difflib.get_close_matches(table, tables, 1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    listed = f"Its tables are {quoted(tables, 20)}" if tables else "It has no table"
    return DataError(f"{label} has no table {table!r}.{meant} {listed}.")


_FETCHED = 10_000
#: Memory that DuckDB needs for itself.
_LEAST_MEMORY = 2**28
#: Seconds that a query may take until its first, or its next rows.
_MOST_SECONDS = 60.0
#: What a table may have unless the user says otherwise: a view has no size of its own,
#: a table not many times that of the file.
_USUAL_BYTES = 10**9
_PER_BYTE = 20
#: A cell as an object of Python, its text apart.
_CELL_BYTES = 40


class _Database(ABC):
    """A table or a query of a database file, which is opened for reading only."""

    names: tuple[str, ...]
    declared: frozenset[str] = frozenset()

    def __init__(self, path: str, label: str, reading: Reading) -> None:
        self.label = label
        self._path = path
        self._most_bytes = self._limit(reading)
        with self._connected() as connection:
            self._query = self._statement(self._tables(connection), reading)
            self._describe(connection)

    def location(self, row: int) -> str:
        """Tell which row it is, counted from 1."""
        return f"row {row + 1:,}"

    @abstractmethod
    def _errors(self) -> tuple[type[Exception], ...]:
        """Return the exceptions of the driver."""

    @abstractmethod
    def _open(self) -> Any:
        """Return a connection to the file."""

    @abstractmethod
    def _tables(self, connection: Any) -> list[str]:
        """Return the names of the tables and views."""

    @abstractmethod
    def _describe(self, connection: Any) -> None:
        """Set the names of the columns of the query, without running it."""

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        errors: tuple[type[Exception], ...]
        errors = (*self._errors(), UnicodeDecodeError, OverdueError)
        try:
            with contextlib.closing(self._open()) as connection:
                yield connection
        except errors as error:
            raise self._failed(error) from None

    def _limit(self, reading: Reading) -> int:
        """Return the most bytes that may be read."""
        if reading.max_size is not None:
            return reading.max_size
        stored = Path(self._path).stat().st_size
        return min(MOST_BYTES, max(_USUAL_BYTES, _PER_BYTE * stored))

    def _add(self, size: int, more: int) -> int:
        """Add to the size of what was read, unless it is too much."""
        if size + more > self._most_bytes:
            raise_size(self.label, self._most_bytes)
        return size + more

    def _statement(self, tables: Sequence[str], reading: Reading) -> str:
        """Return the query, or one for all of a table."""
        if reading.query is not None:
            return reading.query.strip().rstrip(";")
        table = reading.table
        if table is None:
            if len(tables) != 1:
                listed = quoted(tables, 20) if tables else "none"
                raise ParameterError(
                    f"{self.label} is a database: say what to read with "
                    f"{reading.option('table')} or {reading.option('query')}. Its "
                    f"tables are {listed}."
                )
            table = tables[0]
        if table not in tables:
            raise no_table(self.label, table, tables)
        return f"select * from {_identifier(table)}"  # noqa: S608  (quoted)

    def _not_one_select(self) -> DataError:
        return DataError(f"query must be one select statement. Got {self._query!r}.")

    def _failed(self, error: Exception) -> DataError:
        reason = " ".join(str(error).split()).rstrip(".")
        if isinstance(error, OverdueError):
            return DataError(
                f"{self.label} gave no row for {_MOST_SECONDS:g} seconds. Its view or "
                "query may be endless: store its rows in a table, and read that."
            )
        if reason == "not authorized":
            reason = "a query may only select"
        return DataError(
            f"{self.label} cannot be read: {reason}. Check the table or the query, and "
            "that the file is complete."
        )


class SQLiteFile(_Database):
    """A table or a query of an SQLite file."""

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as numbers or text, whatever types the cells have."""
        columns: list[list[Any]] = [[] for _ in indices]
        size = 0
        with self._connected() as connection:
            restrict_sqlite(connection)
            cursor = _waited(connection, lambda: connection.execute(self._query))
            while rows := _waited(connection, lambda: cursor.fetchmany(_FETCHED)):
                for column, index in zip(columns, indices, strict=True):
                    column.extend(row[index] for row in rows)
                size = self._add(size, sum(_size(row) for row in rows))
        return [
            column_of_cells(
                cells, self.names[index], self.label, index in text, missing
            )
            for cells, index in zip(columns, indices, strict=True)
        ]

    def _errors(self) -> tuple[type[Exception], ...]:
        import sqlite3  # noqa: PLC0415

        return sqlite3.Error, sqlite3.Warning, OverflowError

    def _open(self) -> Any:
        return open_sqlite(self._path)

    def _tables(self, connection: Any) -> list[str]:
        return sqlite_tables(connection)

    def _describe(self, connection: Any) -> None:
        restrict_sqlite(connection)
        cursor = _waited(connection, lambda: self._described(connection))
        if cursor.description is None:
            raise self._not_one_select()
        self.names = tuple(str(entry[0]) for entry in cursor.description)

    def _described(self, connection: Any) -> Any:
        """Fetch the names of the columns, without running the query if it is one."""
        import sqlite3  # noqa: PLC0415

        try:
            return connection.execute(f"select * from ({self._query}) limit 0")  # noqa: S608
        except sqlite3.OperationalError:
            return connection.execute(self._query)


def _waited(connection: Any, work: Callable[[], Any]) -> Any:
    return run_in_sqlite(work, connection, _MOST_SECONDS)


def _in_duckdb(connection: Any, work: Callable[[], Any]) -> Any:
    return run_interruptibly(work, connection.interrupt, _MOST_SECONDS)


class DuckDBFile(_Database):
    """A table or a query of a DuckDB file."""

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, those in ``text`` as text."""
        with self._connected() as connection:
            table = self._fetched(connection)
        table = table.select(list(indices))
        table = declared_table(table.columns, table.column_names, self.declared)
        positions = {at for at, index in enumerate(indices) if index in text}
        return typed_columns(table, self.label, positions, missing)

    def _errors(self) -> tuple[type[Exception], ...]:
        return (import_duckdb(self.label).Error,)

    def _open(self) -> Any:
        # Larger results are not spilled to files either.
        limit = f"{max(self._most_bytes, _LEAST_MEMORY)}B"
        return open_duckdb(self._path, memory_limit=limit, temp_directory="")

    def _tables(self, connection: Any) -> list[str]:
        listing = (
            "select table_name from information_schema.tables where table_schema = "
            "current_schema() order by table_name"
        )
        listed = _in_duckdb(connection, lambda: connection.execute(listing).fetchall())
        return [name for (name,) in listed]

    def _describe(self, connection: Any) -> None:
        if not is_one_select(connection, self._query):
            raise self._not_one_select()
        shape = f"select * from ({self._query}) limit 0"  # noqa: S608
        found = _in_duckdb(connection, lambda: connection.execute(shape)).description
        self.names = tuple(str(entry[0]) for entry in found)
        # What comes as a dictionary is an enumeration.
        self.declared = frozenset(
            str(entry[0]) for entry in found if str(entry[1]).startswith("ENUM")
        )

    def _fetched(self, connection: Any) -> Any:
        """Fetch all rows within the limits of size and time."""
        batches: list[Any] = []
        size = 0

        waited = partial(_in_duckdb, connection)
        reader = waited(lambda: duckdb_reader(connection.sql(self._query), _FETCHED))
        try:
            while (batch := waited(lambda: next(reader, None))) is not None:
                batches.append(batch)
                size = self._add(size, batch.nbytes)
        except OSError as error:  # so Arrow passes on what DuckDB says
            raise self._failed(error) from None
        finally:
            # Closing a running query would wait for its end.
            connection.interrupt()
            reader.close()
        return table_of_batches(batches, reader.schema)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _size(row: Sequence[Any]) -> int:
    texts = sum(len(cell) for cell in row if isinstance(cell, (str, bytes)))
    return _CELL_BYTES * len(row) + texts
