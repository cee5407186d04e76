"""Base class of database connections, bound values, and parts of expressions.

All reading is done in one transaction that sees one state of the table. Nothing is
written but, where that is allowed, temporary tables, which are dropped at the end
whatever happens. Passwords never get into messages.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from branchwise.data.target import LOWEST_BIT, Scale
from branchwise.errors import DataError
from branchwise.files.database import OverdueError, no_table, run_interruptibly
from branchwise.files.sql_dialects import POSTGRESQL, Dialect

#: Adding and subtracting it rounds smaller numbers to whole ones, half to even.
_ROUNDING = 2.0**52


@dataclass
class Binder:
    """The values of one statement, in the order of their marks; expressions of them."""

    dialect: Dialect
    values: list[Any] = field(default_factory=list)
    _known: dict[tuple[type, Any], str] = field(default_factory=dict)

    def bind(self, value: Any) -> str:
        """Bind a text, a number or a truth value; return its mark."""
        key = type(value), value
        if key not in self._known:
            kind = "t" if isinstance(value, str) else "f"
            if isinstance(value, (bool, int)):
                kind = "i"
            self._known[key] = self._mark(value, self.dialect.types[kind])
        return self._known[key]

    def _mark(self, value: Any, type_name: str) -> str:
        self.values.append(value)
        most = self.dialect.most_values
        if most is not None and len(self.values) > most:
            raise TooManyValues
        mark = self.dialect.mark.format(len(self.values))
        # SQLite knows the type of a value by the value itself.
        return f"CAST({mark} AS {type_name})" if self.dialect.lists else mark

    def relation(self, columns: Collection[tuple[str, Any]]) -> str:
        """Return a query for columns of values, each given with its type."""
        if self.dialect.lists:
            lists = [
                self._mark(_listed(values), f"{self.dialect.types[kind]}[]")
                for kind, values in columns
            ]
            if self.dialect is POSTGRESQL:
                return f"SELECT * FROM unnest({', '.join(lists)})"  # noqa: S608
            return "SELECT " + ", ".join(f"unnest({each})" for each in lists)
        rows = list(zip(*(_listed(values) for _, values in columns), strict=True))
        if not rows:
            return f"SELECT {', '.join('0' for _ in columns)} WHERE 1 = 0"
        return "VALUES " + ", ".join(f"({', '.join(map(self._cell, r))})" for r in rows)

    def _cell(self, value: Any) -> str:
        if value is None:
            return "NULL"
        return str(value) if isinstance(value, int) else self.bind(value)

    def constant(self, kind: str, value: Any) -> str:
        """Return a value of a type as an expression; NaN is NULL."""
        if kind == "i":
            return str(int(value))
        if value != value:
            return f"CAST(NULL AS {self.dialect.types['f']})"
        return self.bind(float(value))

    def on_grid(self, amount: str, step: float) -> str:
        """Return the expression that rounds an amount to a grid."""
        if step == 1.0:
            return f"({rounded(f'({amount})')})"
        mark = self.bind(float(step))
        return f"({rounded(f'(({amount}) / {mark})')}) * {mark}"

    def nearest(self, number: str, step: float) -> str:
        """Return the expression for the nearest multiple of a step, of any number."""
        most = self.bind(_ROUNDING * step)
        fine = self.on_grid(number, step)
        return f"CASE WHEN abs({number}) >= {most} THEN {number} ELSE {fine} END"

    def in_units(self, number: str, scale: Scale) -> str:
        """Return the expression for a number in the unit of a scale."""
        scaled = f"({number}) * {self.bind(2.0**-scale.unit)}"
        return self.nearest(f"({scaled})", 2.0**LOWEST_BIT) if scale.rounds else scaled


class TooManyValues(Exception):  # noqa: N818  (caught where it can be said in words)
    """A statement would have more values than the database takes."""


def _listed(values: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Return plain values; NaN, which is no number to compare with, is missing."""
    if not isinstance(values, np.ndarray):
        return list(values)
    if values.dtype.kind == "f" and np.isnan(values).any():
        return [None if value != value else value for value in values.tolist()]
    listed: list[Any] = values.tolist()
    return listed


def rounded(expression: str) -> str:
    """Round to whole numbers as numpy.rint does, below 2**52 either way.

    The expression is repeated, so it should be a name.
    """
    up = f"({expression} + {_ROUNDING:.0f}e0) - {_ROUNDING:.0f}e0"
    down = f"({expression} - {_ROUNDING:.0f}e0) + {_ROUNDING:.0f}e0"
    return f"CASE WHEN {expression} < 0 THEN {down} ELSE {up} END"


def chosen(key: str, keys: Sequence[str], codes: Sequence[object], other: str) -> str:
    """Return an expression for the code of a key, by comparing with all of them."""
    pairs = zip(keys, codes, strict=True)
    whens = " ".join(f"WHEN {k} THEN {c}" for k, c in pairs)
    return f"CASE {key} {whens} ELSE {other} END" if whens else other


def searched(
    key: str, keys: Sequence[str], codes: Sequence[object], other: str, leaf: int = 6
) -> str:
    """Return an expression for the code of a key, by halving its sorted keys."""
    if len(keys) <= leaf:
        return chosen(key, keys, codes, other)
    half = len(keys) // 2
    low = searched(key, keys[:half], codes[:half], other, leaf)
    high = searched(key, keys[half:], codes[half:], other, leaf)
    return f"CASE WHEN {key} < {keys[half]} THEN {low} ELSE {high} END"


def binned(number: str, edges: Sequence[str], first: int = 0) -> str:
    """Return an expression for the bin of a number: how many edges are below it."""
    if not edges:
        return str(first)
    half = len(edges) // 2
    low = binned(number, edges[:half], first)
    high = binned(number, edges[half + 1 :], first + half + 1)
    return f"CASE WHEN {number} <= {edges[half]} THEN {low} ELSE {high} END"


def coalesced(expressions: Iterable[str]) -> str:
    """Return the first of some expressions that is not NULL; SQLite wants two."""
    names = list(expressions)
    return f"COALESCE({', '.join(names)})" if len(names) > 1 else "".join(names)


T = TypeVar("T")

#: Rows that are fetched at a time where they are not all needed at once.
PORTION = 100_000
#: The types of arrays, by the kinds of result columns.
KINDS = {"i": np.int64, "f": np.float64}
Arrays = list[NDArray[Any]]
_TABLES = (
    "SELECT table_name, table_schema, table_schema = current_schema() FROM "
    "information_schema.tables WHERE table_schema NOT IN ('pg_catalog', "
    "'information_schema') ORDER BY table_name"
)


@dataclass(frozen=True)
class Described:
    """A column of a table: its name and its type, as the database calls it."""

    name: str
    type: str


class Connection:
    """Base class of the three kinds of connection.

    ``label`` is the name of the database in messages; ``errors`` are the exceptions of
    its driver; ``timeout`` is the most seconds of a statement without a row.
    """

    dialect: Dialect
    errors: tuple[type[Exception], ...]
    timeout: float | None = None

    def __init__(self, native: Any, label: str, owned: bool, secret: str = "") -> None:
        self.native = native
        self.label = label
        self._owned = owned
        self._secret = secret
        self._ours = False
        self._temporary: list[str] = []

    def begin(self, writes: bool) -> None:
        """Start the transaction, unless the caller is in one already."""
        with self._told("begin to read"):
            self._ours = self._start(writes)

    def fetch(self, statement: str, values: Sequence[Any], kinds: str) -> Arrays:
        """Return the columns of a result: "i" whole numbers, "f" numbers, "o" any."""
        pieces = list(self.stream(statement, values, kinds))
        if len(pieces) == 1:
            return pieces[0]
        return [
            np.concatenate([piece[at] for piece in pieces])
            if pieces
            else np.empty(0, dtype=KINDS.get(kind, object))
            for at, kind in enumerate(kinds)
        ]

    def stream(
        self, statement: str, values: Sequence[Any], kinds: str
    ) -> Iterator[Arrays]:
        """Yield the columns of a result, some rows at a time."""
        with self._told("be counted"):
            for rows in self._fetched(self._portions(statement, values)):
                yield columns_of(rows, kinds)

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement without a result."""
        with self._told("be counted"):
            self._waited(lambda: self._execute(statement, values))

    def rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a result as they are."""
        with self._told("be read"):
            for rows in self._fetched(self._portions(statement, ())):
                yield from rows

    def write(self, statement: str) -> None:
        """Run a statement of the caller's that writes."""
        with self._told("be written to"):
            self._waited(lambda: self._execute(statement, ()))

    def create(self, name: str, columns: Mapping[str, str]) -> str:
        """Create a temporary table; return its quoted name."""
        table = self.dialect.quoted(name)
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        self._temporary.append(table)
        self.run(f"CREATE TEMPORARY TABLE {table} ({listed})")
        return table

    def drop(self, table: str) -> None:
        """Drop a temporary table that was created here."""
        self.run(f"DROP TABLE IF EXISTS {self._temporary_name(table)}")
        self._temporary.remove(table)

    def close(self) -> None:
        """Drop temporary tables and roll back, also after an error; raise none."""
        if self._ours:
            # The rollback also drops the tables that were created in the transaction.
            with contextlib.suppress(*self.errors):
                self._roll_back()
            self._temporary.clear()
        else:
            with contextlib.suppress(*self.errors):
                self._recover()
        for table in self._temporary:
            with contextlib.suppress(*self.errors):
                self._execute(f"DROP TABLE IF EXISTS {self._temporary_name(table)}", ())
        self._temporary.clear()
        self._ours = False
        if self._owned:
            with contextlib.suppress(*self.errors):
                self.native.close()

    def describe(self, source: str) -> list[Described]:
        """Return the columns of a source; raises what the driver does."""
        raise NotImplementedError

    def tables(self) -> list[tuple[str, ...]]:
        """Return the names of all tables and views, other schemas' with the schema."""
        found = self._execute(_TABLES, ()).fetchall()
        return [(name,) if here else (schema, name) for name, schema, here in found]

    def has_table(self, name: str) -> bool:
        """Whether a table of that very name, dots included, is known to be there."""
        with contextlib.suppress(*self.errors):
            return (name,) in self.tables()
        return False

    def _start(self, writes: bool) -> bool:
        raise NotImplementedError

    def _roll_back(self) -> None:
        self._execute("ROLLBACK", ())

    def _execute(self, statement: str, values: Sequence[Any]) -> Any:
        raise NotImplementedError

    def _portions(
        self, statement: str, values: Sequence[Any]
    ) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self._execute(statement, values)
        while rows := cursor.fetchmany(PORTION):
            yield rows

    def _fetched(self, portions: Iterator[T]) -> Iterator[T]:
        """Yield the portions of a result; the time between two of them is limited."""
        while (portion := self._waited(lambda: next(portions, None))) is not None:
            yield portion

    def _waited(self, work: Callable[[], T]) -> T:
        """Call a function that waits for the database, with a timeout and Ctrl-C."""
        try:
            return self._interruptible(work)
        except OverdueError:
            raise DataError(
                f"{self.label} gave no row for {self.timeout:g} seconds. Its view or "
                "query may be endless. If it is only slow, raise timeout, or store "
                "its rows in a table."
            ) from None

    def _interruptible(self, work: Callable[[], T]) -> T:
        return run_interruptibly(work, self._interrupt, self.timeout)

    def _interrupt(self) -> None:
        """Interrupt the running statement, from another thread."""
        raise NotImplementedError

    def _temporary_name(self, table: str) -> str:
        """Return a name that can only be that of a temporary table."""
        return f"temp.{table}"

    def opened(self, source: str, table: str | None) -> list[Described]:
        """Return the columns of a table or query; raise if it cannot be read."""
        try:
            return self._waited(lambda: self.describe(source))
        except self.errors as error:
            with contextlib.suppress(*self.errors):
                if table is not None and self._is_absent(error):
                    self._suggest(table)
            self._reject("be read", error)

    def _suggest(self, table: str) -> None:
        self._recover()
        tables = [".".join(pieces) for pieces in self.tables()]
        if table not in tables:
            raise no_table(self.label, table, tables)

    def _recover(self) -> None:
        """Make the connection usable after an error."""

    @contextlib.contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        try:
            yield
        except self.errors as error:
            self._reject(doing, error)

    def _reject(self, doing: str, error: Exception) -> NoReturn:
        reason = " ".join(str(error).split()).rstrip(".")
        if self._secret:
            reason = reason.replace(self._secret, "***")
        advice = "Check the table or the query, and that you may read it"
        if self._is_lost(error):
            reason = f"the connection was lost ({reason})"
            advice = "Connect again and restart; no temporary tables are left"
        elif "locked" in reason:
            advice = "Wait until its writer is done, or copy the file"
        raise DataError(f"{self.label} cannot {doing}: {reason}. {advice}.") from None

    def _is_lost(self, error: Exception) -> bool:
        """Whether an error says that the connection has ended."""
        raise NotImplementedError

    def _is_absent(self, error: Exception) -> bool:
        """Whether an error says that there is no such table."""
        raise NotImplementedError


def columns_of(rows: list[tuple[Any, ...]], kinds: str) -> Arrays:
    """Convert rows to arrays; a missing number is NaN."""
    columns = []
    for cells, kind in zip(zip(*rows, strict=True), kinds, strict=True):
        array: NDArray[Any] = np.empty(len(cells), dtype=KINDS.get(kind, object))
        array[:] = cells
        columns.append(array)
    return columns


def plain_array(column: Any, kind: str) -> NDArray[Any]:
    """Return an array of DuckDB's, in which missing numbers are masked, as NaN."""
    if isinstance(column, np.ma.MaskedArray):
        missing = np.nan if kind == "f" else 0
        column = np.where(np.ma.getmaskarray(column), missing, column.data)
    return np.asarray(column, dtype=KINDS[kind])


def without_password(address: str) -> tuple[str, str]:
    """Return the password of an address, and the address without it."""
    try:
        pieces = urlsplit(address)
        secret = pieces.password or ""
    except ValueError:
        return "", "The PostgreSQL database"
    shown = re.sub(r"password=[^&]*", "password=***", address)
    if secret:
        shown = shown.replace(f":{secret}@", ":***@", 1)
    return secret, shown
