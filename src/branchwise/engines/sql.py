"""The engine that counts in the database where the rows lie; rows never leave it.

DuckDB, SQLite and PostgreSQL. A level of the tree is one query, however many nodes it
has: rows are taken down the tree by joins with the routes of its nodes and counted by
GROUP BY. Nothing is written, unless temporary tables are allowed: then rows are kept
as codes, with the node they are in, and every level starts where the last one ended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from types import TracebackType
from typing import Any, ClassVar, Self

from branchwise.engines.sql_connections import Connection, Described
from branchwise.engines.sql_drivers import connected
from branchwise.engines.sql_engine import SqlEngine
from branchwise.engines.sql_learning import learn
from branchwise.engines.sql_queries import Writer
from branchwise.engines.sql_source import Source
from branchwise.engines.task import Plan, Task
from branchwise.errors import ParameterError
from branchwise.table.read import MISSING, check_names

#: Seconds of a statement without a row, unless the user says otherwise: more than
#: a level of a tree from many millions of rows takes.
MOST_SECONDS = 3600.0


@dataclass(frozen=True)
class SqlTable:
    """A table, a view or a query of a database, to be learnt from where it lies.

    Parameters
    ----------
    database : str, path or connection
        ``sqlite:///path``, ``duckdb:///path``, ``postgresql://user@host/name``, the
        path of a SQLite or DuckDB file, or a connection of sqlite3, duckdb or
        psycopg, also within a connection of SQLAlchemy. Files are opened for reading
        only.
    table : str or None
        A table or view; ``schema.table`` where it is in another schema.
    query : str or None
        A SELECT instead, such as a join.
    temporary_tables : bool
        Whether temporary tables may be created: faster for deep trees. They are
        dropped at the end.
    missing : sequence of str
        The texts that are missing values, as NULL is.
    text_columns : collection of str
        Columns whose numbers are wanted as text.
    timeout : float or None
        Seconds that the database may take for a statement without giving a row,
        before it is interrupted: a view can be endless. None is no limit.

    Examples
    --------
    >>> SqlTable("postgresql://reader@db/shop", "sales.customers").table
    'sales.customers'
    """

    engine_name: ClassVar[str] = "sql"

    database: Any = field(repr=False)  # an address may hold a password
    table: str | None = None
    query: str | None = None
    _: KW_ONLY
    temporary_tables: bool = False
    missing: Sequence[str] = MISSING
    text_columns: Collection[str] = ()
    timeout: float | None = MOST_SECONDS

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            got = "neither" if self.table is None else "both"
            raise ParameterError(
                "A database needs either table, the name of a table or view, or query, "
                f"a SELECT. Got {got}."
            )
        given = self.timeout
        is_number = isinstance(given, Real) and not isinstance(given, bool)
        if given is not None and not (is_number and given > 0):
            raise ParameterError(
                "timeout must be a number of seconds above 0, or None for no limit. "
                f"Got {given!r}."
            )

    @property
    def label(self) -> str:
        """What messages call it; an address may hold a password, so it is not said."""
        return f"the table {self.table!r}" if self.query is None else "the query"

    def open(self) -> SqlRows:
        """Connect, and find out which columns there are."""
        connection = connected(self.database)
        connection.timeout = self.timeout
        try:
            return SqlRows(connection, self)
        except BaseException:
            connection.close()
            raise


class SqlRows:
    """The rows of an :class:`SqlTable`, seen in one state until they are closed."""

    engine_name = "sql"

    def __init__(self, connection: Connection, table: SqlTable) -> None:
        self.connection = connection
        self.label = table.label
        self._temporary_tables = table.temporary_tables
        relation, described = _relation(connection, table)
        connection.begin(writes=table.temporary_tables)
        self.source = Source(
            connection,
            relation,
            described,
            frozenset(table.text_columns),
            tuple(table.missing),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.source.names

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse a name that is no column."""
        check_names(self.label, self.names, names)

    def learn(self, task: Task) -> Plan:
        """Look at all rows by queries."""
        self.check_names([task.target, *([] if task.weight is None else [task.weight])])
        return learn(self.source, task)

    def engine(self, plan: Plan) -> SqlEngine:
        """Return who counts the rows."""
        return SqlEngine(Writer(self.source, plan), self._temporary_tables)

    def close(self) -> None:
        """Drop what was created, end the transaction and what was opened for it."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _relation(connection: Connection, table: SqlTable) -> tuple[str, list[Described]]:
    """Return what stands after FROM, and its columns."""
    if table.query is not None:
        query = table.query.strip().rstrip(";")
        relation = f"({query}\n)"  # a comment may end it
        return relation, connection.opened(relation, None)
    name = str(table.table)
    whole = connection.dialect.named(name)
    if "." in name:
        # A dot may be part of a name, but seldom is.
        parts = connection.dialect.named(*name.split("."))
        if not connection.has_table(name):
            return parts, connection.opened(parts, name)
    return whole, connection.opened(whole, name)
