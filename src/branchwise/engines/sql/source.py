"""Data source of databases: tables and queries of DuckDB, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, Self

from branchwise.data.table_schema import (
    check_names,
)
from branchwise.engines.base import Plan, Task
from branchwise.engines.sql.connections import (
    Connection,
    Described,
)
from branchwise.engines.sql.drivers import connected
from branchwise.engines.sql.queries import Writer
from branchwise.engines.sql.scan import learn
from branchwise.engines.sql.sql_engine import SqlEngine
from branchwise.engines.sql.table_columns import Source
from branchwise.errors import ParameterError
from branchwise.files.read_table import MISSING, own_na_values

#: The default timeout in seconds: more than a level of a tree from many millions of
#: rows takes.
MOST_SECONDS = 3600.0


@dataclass(frozen=True)
class SqlTable:
    """A table, a view or a query of a database, to be fitted in the database.

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
        Columns whose numbers are read as text.
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
        """The name in messages, without the address, which may hold a password."""
        return f"the table {self.table!r}" if self.query is None else "the query"

    def open(self) -> SqlRows:
        """Connect, and read the names and types of the columns."""
        connection = connected(self.database)
        connection.timeout = self.timeout
        try:
            return SqlRows(connection, self)
        except BaseException:
            connection.close()
            raise


class SqlRows:
    """The rows of an :class:`SqlTable`, in one snapshot until they are closed."""

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
        """Reject a name that is not a column."""
        check_names(self.label, self.names, names)

    def learn(self, task: Task) -> Plan:
        """Scan all rows by queries, and return the plan of counting them."""
        self.check_names([task.target, *([] if task.weight is None else [task.weight])])
        plan = learn(self.source, task)
        na_values = own_na_values(self.source.missing)
        return replace(plan, schema=replace(plan.schema, na_values=na_values))

    def engine(self, plan: Plan) -> SqlEngine:
        """Return the engine that counts the rows."""
        return SqlEngine(Writer(self.source, plan), self._temporary_tables)

    def close(self) -> None:
        """Drop temporary tables, end the transaction and close own connections."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _relation(connection: Connection, table: SqlTable) -> tuple[str, list[Described]]:
    """Return the relation after FROM, and its columns."""
    if table.query is not None:
        query = table.query.strip().rstrip(";")
        relation = f"({query}\n)"  # a comment may end it
        return relation, connection.opened(relation, None)
    name = str(table.table)
    whole = connection.dialect.quoted(name)
    if "." in name:
        # A dot may be part of a name, but seldom is.
        pieces = connection.dialect.quoted(*name.split("."))
        if not connection.has_table(name):
            return pieces, connection.opened(pieces, name)
    return whole, connection.opened(whole, name)
