"""Read-only access to tables and queries of SQLite and DuckDB files."""

from __future__ import annotations

import contextlib
import difflib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from branchwise.data.arrow import declared_table, table_of_batches
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.options import MOST_BYTES, Reading
from branchwise.files.parquet import in_file_order, typed_columns
from branchwise.files.python_cells import column_of_cells
from branchwise.files.raw_bytes import raise_size

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

    Drivers do not check for Ctrl-C while they wait; the calling thread does.

    Parameters
    ----------
    work : callable
        What to call.
    interrupt : callable
        Stops the function, which then raises an error.
    seconds : float or None
        The time limit; None is no limit.

    Raises
    ------
    OverdueError
        If it took longer.
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

    The connection has no progress handler afterwards.

    Parameters
    ----------
    work : callable
        What to call.
    connection : sqlite3.Connection
        What it waits for.
    seconds : float or None
        The time limit; None is no limit.

    Raises
    ------
    OverdueError
        If it took longer.
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
#: What a query may do, by SQLite's numbers: read, select, call functions, recurse.
_ALLOWED = frozenset((20, 21, 31, 33))


class _Database:
    """Base class of both kinds of database."""

    label: str
    names: tuple[str, ...]
    declared: frozenset[str] = frozenset()

    def _limit(self, path: str, reading: Reading) -> int:
        """Return the most bytes that may be read."""
        if reading.max_size is not None:
            return reading.max_size
        stored = Path(path).stat().st_size
        return min(MOST_BYTES, max(_USUAL_BYTES, _PER_BYTE * stored))

    def location(self, row: int) -> str:
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
                    f"{self.label} is a database: say what to read with "
                    f"{reading.option('table')} or {reading.option('query')}. Its "
                    f"tables are {listed}."
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
    """A table or a query of an SQLite file, which is opened for reading only.

    Parameters
    ----------
    path : str
        The file itself: a database cannot be read from a stream.
    label : str
        Name in messages.
    reading : Reading
        Which table or query.
    """

    def __init__(self, path: str, label: str, reading: Reading) -> None:
        self.label = label
        self._path = path
        self._most_bytes = self._limit(path, reading)
        with self._connected() as connection:
            found = connection.execute(
                "select name from sqlite_schema where type in ('table', 'view') and "
                "name not like 'sqlite\\_%' escape '\\' order by name"
            )
            tables = [name for (name,) in found]
            self._query = self._statement(tables, reading)
            self._open_sandbox(connection)
            cursor = self._waited(connection, lambda: self._described(connection))
            if cursor.description is None:
                raise DataError(
                    f"query must be one select statement. Got {self._query!r}."
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
            cursor = self._waited(connection, lambda: connection.execute(self._query))
            while rows := self._waited(connection, lambda: cursor.fetchmany(_FETCHED)):
                for column, index in zip(columns, indices, strict=True):
                    column.extend(row[index] for row in rows)
                size += sum(_size(row) for row in rows)
                if size > self._most_bytes:
                    raise_size(self.label, self._most_bytes)
        return [
            column_of_cells(
                cells, self.names[index], self.label, index in text, missing
            )
            for cells, index in zip(columns, indices, strict=True)
        ]

    def _described(self, connection: Any) -> Any:
        """Fetch the names of the columns, without running the query if it is one."""
        import sqlite3  # noqa: PLC0415

        try:
            return connection.execute(f"select * from ({self._query}) limit 0")  # noqa: S608
        except sqlite3.OperationalError:
            return connection.execute(self._query)

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
        except (
            *(sqlite3.Error, sqlite3.Warning),
            *(OverflowError, UnicodeDecodeError, OverdueError),
        ) as error:
            raise self._failed(error) from None

    def _open_sandbox(self, connection: Any) -> None:
        """Restrict the connection to reading."""
        import sqlite3  # noqa: PLC0415

        connection.execute("pragma trusted_schema = off")
        connection.set_authorizer(
            lambda action, *_: (
                sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
            )
        )

    def _waited(self, connection: Any, work: Callable[[], Any]) -> Any:
        return run_in_sqlite(work, connection, _MOST_SECONDS)


class DuckDBFile(_Database):
    """A table or a query of a DuckDB file, which is opened for reading only.

    Parameters
    ----------
    path : str
        The file itself: a database cannot be read from a stream.
    label : str
        Name in messages.
    reading : Reading
        Which table or query.
    """

    def __init__(self, path: str, label: str, reading: Reading) -> None:
        self.label = label
        self._path = path
        self._most_bytes = self._limit(path, reading)
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
            # What comes as a dictionary is an enumeration.
            self.declared = frozenset(
                str(entry[0]) for entry in found if str(entry[1]).startswith("ENUM")
            )

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are, those in ``text`` as text."""
        with self._connected() as connection:
            table = self._fetched(connection)
        table = table.select(list(indices))
        table = declared_table(table.columns, table.column_names, self.declared)
        positions = in_file_order(indices, text)
        return typed_columns(table, self.label, positions, missing)

    def _fetched(self, connection: Any) -> Any:
        """Fetch all rows within the limits of size and time."""
        batches: list[Any] = []
        size = 0
        reader = self._waited(connection, lambda: _reader(connection, self._query))
        try:
            while True:
                batch = self._waited(connection, lambda: next(reader, None))
                if batch is None:
                    break
                batches.append(batch)
                size += batch.nbytes
                if size > self._most_bytes:
                    raise_size(self.label, self._most_bytes)
        except OSError as error:  # so Arrow passes on what DuckDB says
            raise self._failed(error) from None
        finally:
            # Closing a running query would wait for its end.
            connection.interrupt()
            reader.close()
        return table_of_batches(batches, reader.schema)

    def _waited(self, connection: Any, work: Callable[[], Any]) -> Any:
        return run_interruptibly(work, connection.interrupt, _MOST_SECONDS)

    def _check_select(self, connection: Any) -> None:
        statements = connection.extract_statements(self._query)
        if len(statements) != 1 or statements[0].type.name != "SELECT":
            raise DataError(f"query must be one select statement. Got {self._query!r}.")

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
            # No other file, no network, no extension; the setting is irreversible.
            "enable_external_access": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "lock_configuration": True,
            # Larger results are not spilled to files either.
            "memory_limit": f"{max(self._most_bytes, _LEAST_MEMORY)}B",
            "temp_directory": "",
        }
        try:
            connection = duckdb.connect(self._path, read_only=True, config=sandbox)
            try:
                yield connection
            finally:
                connection.close()
        except (duckdb.Error, UnicodeDecodeError, OverdueError) as error:
            raise self._failed(error) from None


def _reader(connection: Any, query: str) -> Any:
    relation = connection.sql(query)
    # The name of the method since DuckDB 1.4.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(_FETCHED)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _size(row: Sequence[Any]) -> int:
    texts = sum(len(cell) for cell in row if isinstance(cell, (str, bytes)))
    return _CELL_BYTES * len(row) + texts
