"""Data source and engine of databases: rows are counted by SQL, in the database.

DuckDB, SQLite and PostgreSQL. A level of the tree is one query, however many nodes it
has: rows are moved down the tree by joins with the routes of its nodes and counted by
GROUP BY. Nothing is written, unless temporary tables are allowed: then rows are stored
as codes, with the node they are in, and every level continues from the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np

from branchwise.data.arrays import Floats, Ints, distinct
from branchwise.data.schema import Column, Columns, check_names
from branchwise.engines.base import Plan, Task
from branchwise.engines.sql.connections import (
    Binder,
    Connection,
    Described,
    TooManyValues,
)
from branchwise.engines.sql.counting import (
    COLUMNS_A_QUERY,
    LONGEST_RESULT,
    WHOLE,
    Counting,
    Groups,
    by_branch,
    changed,
    only,
)
from branchwise.engines.sql.drivers import connected
from branchwise.engines.sql.queries import Writer
from branchwise.engines.sql.routes import (
    MOST_JOINED_LEVELS,
    Step,
    TooDeep,
    in_nodes,
    renumbering,
    step_of,
)
from branchwise.engines.sql.scan import learn
from branchwise.engines.sql.table_columns import Source
from branchwise.errors import DataError, ParameterError
from branchwise.files.read_table import MISSING
from branchwise.grow.counts import Counts
from branchwise.grow.protocol import Level, class_cases
from branchwise.tree.splits import EVERY_BRANCH, Router, Splits
from branchwise.tree.tree import Tree


class SqlEngine:
    """Counts and moves the rows of a database."""

    def __init__(self, writer: Writer, temporary_tables: bool) -> None:
        self._writer = writer
        self._plan = writer.plan
        self._columns = writer.plan.schema.columns
        self._connection = writer.source.connection
        self._temporary = temporary_tables
        self._table: str | None = None
        self._n_tables = 0
        self.whole = writer.plan.grid.whole
        self.scale = writer.plan.scale
        self._start()

    def _start(self) -> None:
        if self._table is not None:
            self._connection.drop(self._table)
        self._table = None
        self._steps: list[Step] = []
        self._n_nodes = 1
        self._cache: dict[int, Counts] = {}
        self._level: Level | None = None

    def totals(self) -> Level:
        """Put all rows in the root; return its class weights and cases."""
        self._start()
        return self._totals()

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column."""
        return self._plan.values.get(column, np.empty(0))

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""
        return self._writer.n_codes[column] - 1

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""
        if not self._cache:
            if self._temporary:
                self._keep()
            self._cache = self._counted(self._groups(), self._steps)
            self._check()
        counts = self._cache[column]
        if nodes is None or len(nodes) == self._n_nodes:
            return counts
        return only(counts, nodes, self._n_nodes)

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column by the branch that rows take, in place of their class."""
        decided = step_of(self._columns, splits, decided=True)
        groups = Groups(len(splits.sizes), None)
        found = self._counted(groups, [*self._steps, decided])
        for column in range(len(self._columns)):
            yield by_branch(found[column], splits)

    def retain(self, nodes: Ints) -> None:
        """Keep only some open nodes; drop the rows of the rest."""
        if self._steps:
            self._steps[-1] = self._steps[-1].retained(nodes)
        elif len(nodes) < self._n_nodes:
            self._steps.append(renumbering(self._n_nodes, nodes))
        self._n_nodes = len(nodes)
        self._cache = {}
        if self._level is not None:
            self._level = Level(self._level.weights[nodes], self._level.cases[nodes])

    def advance(self, splits: Splits) -> Level:
        """Move the rows of the open nodes down their branches."""
        level = derived_totals(self._cache, self._columns, self._plan, splits)
        step = step_of(self._columns, splits)
        # Without missing values there is nothing to divide, whatever the policy.
        divides = self._plan.grid.fractions
        self._steps.append(step if divides else step.undivided())
        self._n_nodes = len(splits.sizes)
        self._cache = {}
        if level is None:
            return self._totals()
        self._level = level
        return level

    def class_cases(self, tree: Tree) -> Floats:
        """Count the cases of each class down a finished tree, whatever they weigh."""
        return class_cases(self, self.cases_by_class, tree)

    def cases_by_class(self) -> Floats:
        """Count the cases of each class in the open nodes, whatever they weigh."""
        if self._temporary:
            self._keep()
        groups = replace(self._groups(), by_cases=True)
        counts = self._counted(groups, self._steps, columns=())[WHOLE]
        return counts.totals(self._n_nodes)[0]

    def _groups(self) -> Groups:
        if self._plan.spread is not None:
            return Groups(self._n_nodes, None, self.scale)
        return Groups(self._n_nodes, self._plan.n_classes)

    def _totals(self) -> Level:
        """Fetch the weights and cases of the nodes."""
        counts = self._counted(self._groups(), self._steps, columns=())[WHOLE]
        self._level = Level(*counts.totals(self._n_nodes))
        return self._level

    def _counted(
        self,
        groups: Groups,
        steps: Sequence[Step],
        columns: Sequence[int] | None = None,
    ) -> dict[int, Counts]:
        """Count columns; none of them is the rows themselves."""
        wanted = range(len(self._columns)) if columns is None else columns
        counts: dict[int, Counts] = {}
        for piece in self._portions(groups, wanted) or [[]]:
            counting = Counting(self._writer, groups, piece)
            binder = Binder(self._writer.dialect)
            written, rows = self._rows(binder, steps)
            statement = self._limited(counting.statement, written, rows, binder)
            result = self._connection.fetch(statement, binder.values, counting.kinds())
            counts |= counting.read(result, self._connection.label)
        return counts

    def _portions(self, groups: Groups, columns: Sequence[int]) -> list[list[int]]:
        """Divide columns among queries whose results are not too long."""
        rows = np.inf if self._level is None else self._level.cases.sum()
        portions: list[list[int]] = []
        length = 0.0
        for column in columns:
            keys = groups.n_nodes * groups.width * self._writer.n_codes[column]
            length += min(rows, keys)
            last = len(portions[-1]) if portions else COLUMNS_A_QUERY
            if last == COLUMNS_A_QUERY or length > LONGEST_RESULT:
                portions.append([])
                length = min(rows, keys)
            portions[-1].append(column)
        return portions

    def _rows(self, binder: Binder, steps: Sequence[Step]) -> tuple[list[str], str]:
        """Return the steps of a query for rows in their nodes, and the last name."""

        def written() -> tuple[list[str], str]:
            first: list[str] = []
            rows = self._table
            if rows is None:
                first, rows = self._writer.rows(binder)
            down, rows = in_nodes(self._writer, binder, rows, steps)
            return [*first, *down], rows

        found: tuple[list[str], str] = self._limited(written)
        return found

    def _limited(self, write: Any, *arguments: Any) -> Any:
        """Write a statement; raise if it would be too long or too deep."""
        try:
            return write(*arguments)
        except TooDeep:
            raise DataError(
                f"Level {len(self._steps)} of the tree is too deep for a query "
                f"that starts with the rows of {self._connection.label}: missing "
                f"values or many nodes allow {MOST_JOINED_LEVELS} levels. Allow "
                "temporary tables (temporary_tables=True), or limit max_depth."
            ) from None
        except TooManyValues:
            raise DataError(
                f"Level {len(self._steps)} of the tree needs a query with more than "
                f"{self._writer.dialect.most_values:,} values, which "
                f"{self._writer.dialect.title} does not take. Allow temporary tables "
                "(temporary_tables=True), grow a smaller tree with max_depth, or leave "
                "out columns with very many values."
            ) from None

    def _check(self) -> None:
        """Compare the counts with the known totals of the nodes."""
        if self._level is None:
            return
        for counts in self._cache.values():
            weights, cases = counts.totals(self._n_nodes)
            if not (
                np.array_equal(weights, self._level.weights)
                and np.array_equal(cases, self._level.cases)
            ):
                raise changed(self._connection.label)

    def _keep(self) -> None:
        """Store the rows with their current nodes in a temporary table."""
        if self._table is not None and not self._steps:
            return
        binder = Binder(self._writer.dialect)
        written, rows = self._rows(binder, self._steps)
        self._n_tables += 1
        columns = self._writer.stored()
        table = self._connection.create(f"branchwise {self._n_tables}", columns)
        names = ", ".join(name for name, _ in columns)
        steps = f"WITH {', '.join(written)} " if written else ""
        self._connection.run(
            f"INSERT INTO {table} ({names}) {steps}SELECT {names} FROM {rows}",  # noqa: S608
            binder.values,
        )
        if self._table is not None:
            self._connection.drop(self._table)
        self._table, self._steps = table, []


def derived_totals(
    cache: Mapping[int, Counts],
    columns: Sequence[Column],
    plan: Plan,
    splits: Splits,
) -> Level | None:
    """Return the totals of branches from the counts of nodes; None if unknown.

    Divided cases are rounded one by one, and cases routed by surrogates are not counted
    by the column of their node.
    """
    used = distinct(splits.column[splits.column >= 0]).tolist()
    if splits.surrogates is not None or any(at not in cache for at in used):
        return None
    router = Router(columns, splits)
    n_children = len(splits.sizes)
    width = plan.n_classes if plan.scale is None else plan.scale.width
    weights, cases = np.zeros((n_children, width)), np.zeros(n_children)
    for at in used:
        counts = cache[at]
        counts = counts.select(splits.column[counts.node] == at)
        cells = counts.code
        if columns[at].is_numeric:
            cells = np.append(plan.values[at], np.nan)[counts.code]
        data = Columns(len(cells), (np.empty(0),) * at + (cells,))
        branch = router.branches(data, np.arange(len(cells)), counts.node)
        if (branch == EVERY_BRANCH).any():
            return None
        taken = branch >= 0
        child = (router.first_branch[counts.node] + branch)[taken]
        np.add.at(weights, child, counts.weights[taken])
        np.add.at(cases, child, counts.cases[taken])
    return Level(weights, cases)


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
        return learn(self.source, task)

    def engine(self, plan: Plan) -> SqlEngine:
        """Return the engine that counts the rows."""
        return SqlEngine(Writer(self.source, plan), self._temporary_tables)

    def close(self) -> None:
        """Drop temporary tables, end the transaction and close own connections."""
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
