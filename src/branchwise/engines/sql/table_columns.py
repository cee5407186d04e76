"""Columns of a table in a database: their types, and expressions for their cells.

A column holds numbers or values. Of values, every distinct cell is fetched once and
read by the same code as tables in memory; so a table has the same schema. ``key`` is
the expression by which the database distinguishes cells.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from branchwise.data.arrow import as_dictionary, declared_table, declares_values
from branchwise.data.columns import LARGEST_EXACT, Coded, RawColumn, raise_dates
from branchwise.data.frames import Frame, read_vector
from branchwise.engines.sql.connections import Binder, Connection, Described
from branchwise.engines.sql.drivers import DuckDBConnection, PostgreSQLConnection
from branchwise.errors import DataError
from branchwise.files.sql_dialects import SQLITE, Dialect
from branchwise.files.typed_columns import column_of_cells, typed_columns

_WHOLE = frozenset(
    (
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
        *("int2", "int4", "int8", "oid"),
    )
)
_FLOATING = frozenset(("FLOAT", "DOUBLE", "float4", "float8", "numeric"))
_LONG = frozenset(("HUGEINT", "UHUGEINT", "BIGNUM", "VARINT"))
_TRUTHS = frozenset(("BOOLEAN", "bool"))
#: Types of PostgreSQL that are text, or that are read as text.
_TEXTS = frozenset(
    (*("text", "varchar", "bpchar", "char", "name", "citext", "uuid", "enum"),)
)
#: Types of PostgreSQL that are dates and times; they are read as text, too.
_DATES = frozenset(("date", "time", "timetz", "timestamp", "timestamptz", "interval"))
#: Decimals of so many digits are a quotient of two whole float64 numbers.
_SHORT_DECIMAL = 15
#: The most columns of SQLite that one query inspects.
_AT_A_TIME = 100


@dataclass(frozen=True)
class Cells:
    """A column of the source.

    ``kind`` is "number", "truth" or "text". ``number`` and ``key`` are the expressions,
    ``inexact`` the test for integers that float64 cannot hold.
    """

    name: str
    kind: str
    key: str
    number: str
    raw: str
    type: str = ""
    inexact: str = "1 = 0"


@dataclass(frozen=True)
class Distinct:
    """The distinct cells of a column: keys, how often each occurs, and their values.

    A key of None is a cell that is NULL.
    """

    keys: tuple[Any, ...]
    count: tuple[int, ...]
    raw: RawColumn


def number_of(dialect: Dialect, raw: str, type_name: str) -> str:
    """Return the float64 of a cell, NULL where it is missing."""
    if type_name.startswith("DECIMAL(") or type_name in _LONG:
        digits = type_name.removeprefix("DECIMAL(").split(",")[0]
        short = digits.isdigit() and int(digits) <= _SHORT_DECIMAL
        # Longer ones are converted to the nearest float64 through their text.
        return dialect.double(raw if short else f"CAST({raw} AS VARCHAR)")
    number = dialect.double(raw)
    if dialect.is_nan is None or type_name in _WHOLE:
        return number
    return f"CASE WHEN {dialect.is_nan.format(raw)} THEN NULL ELSE {number} END"


def typed_cells(
    connection: Connection, name: str, type_name: str, as_text: bool
) -> Cells:
    """Return a column of a database where columns have types."""
    dialect = connection.dialect
    raw = f"source.{dialect.quoted(name)}"
    kind = "text"
    if not as_text:
        if type_name in _TRUTHS:
            kind = "truth"
        elif type_name in _WHOLE | _FLOATING | _LONG or type_name.startswith(
            "DECIMAL("
        ):
            kind = "number"
    number = number_of(dialect, raw, type_name) if kind == "number" else ""
    if kind == "truth":
        number = f"CASE WHEN {raw} THEN 1 WHEN NOT {raw} THEN 0 END"
    key = number or dialect.as_text(raw)
    column = Cells(name, kind, key, number, raw, type_name)
    return replace(column, inexact=_beyond(raw)) if type_name in _WHOLE else column


def loose_cells(
    connection: Connection,
    source: str,
    names: Sequence[str],
    text: Collection[str],
    missing: Sequence[str],
) -> list[Cells]:
    """Return the columns of SQLite, where every cell has a type of its own."""
    dialect = connection.dialect
    raws = [f"source.{dialect.quoted(name)}" for name in names]
    found = []
    for first in range(0, len(raws), _AT_A_TIME):
        chunk = raws[first : first + _AT_A_TIME]
        found += _types_of_cells(connection, source, chunk, missing)
    columns = []
    for at, name in enumerate(names):
        texts, blobs, numbers = found[at]
        if blobs:
            raise DataError(
                f"Column {name!r} of {connection.label} holds values of type bytes, "
                "which are no text and no numbers. Leave it out."
            )
        is_text = bool(texts) or not numbers or name in text
        is_number = f"typeof({raws[at]}) IN ('integer', 'real')"
        number = f"CASE WHEN {is_number} THEN CAST({raws[at]} AS REAL) END"
        key = dialect.as_text(raws[at]) if is_text else number
        columns.append(
            Cells(
                name,
                "text" if is_text else "number",
                key,
                "" if is_text else number,
                raws[at],
                "",
                f"typeof({raws[at]}) = 'integer' AND ({_beyond(raws[at])})",
            )
        )
    return columns


def _types_of_cells(
    connection: Connection, source: str, raws: Sequence[str], missing: Sequence[str]
) -> list[tuple[int, ...]]:
    """Count the texts, bytes and numbers of columns of SQLite."""
    binder = Binder(connection.dialect)
    marks = ", ".join(binder.bind(mark) for mark in missing)
    wanted = []
    for raw in raws:
        mark = f"{connection.dialect.as_text(raw)} IN ({marks})" if marks else "0"
        tests = (
            f"typeof({raw}) = 'text' AND NOT {mark}",
            f"typeof({raw}) = 'blob'",
            f"typeof({raw}) IN ('integer', 'real')",
        )
        wanted += [f"COALESCE(SUM({test}), 0)" for test in tests]
    requested = f"SELECT {', '.join(wanted)} FROM {source} AS source"  # noqa: S608
    result = connection.fetch(requested, binder.values, "i" * len(wanted))
    counted = [int(each[0]) for each in result]
    return [tuple(counted[3 * at : 3 * at + 3]) for at in range(len(raws))]


def distinct(
    connection: Connection,
    source: str,
    cells: Cells,
    missing: Sequence[str],
    as_text: bool,
) -> Distinct:
    """Fetch every distinct cell of a column once."""
    where = f"FROM {source} AS source GROUP BY 1"
    if isinstance(connection, DuckDBConnection):
        found = connection.arrow(
            f"SELECT {cells.key} AS k, any_value({cells.raw}) AS v, COUNT(*) AS n "
            f"{where}"
        )
        # A dictionary column is an enumeration, whose values are declared.
        table = declared_table([found.column(1)], [cells.name], {cells.name})
        text = {0} if as_text else ()
        (column,) = typed_columns(table, connection.label, text, missing)
        raw = read_vector(column, cells.name)
        if declares_values(table.schema.field(0)):
            raw = _declared(raw, as_dictionary(column).dictionary.to_pylist())
        keys, count = found.column(0).to_pylist(), found.column(2).to_pylist()
        return Distinct(tuple(keys), tuple(count), raw)
    kind = "typeof(" + cells.raw + ")" if connection.dialect is SQLITE else "0"
    # Equal numbers of two types are two texts.
    requested = f"SELECT {cells.key}, {kind}, COUNT(*) {where}, 2"
    keys, _, count = connection.fetch(requested, (), "ooi")
    listed = keys.tolist()
    if cells.kind == "truth":
        listed = [None if key is None else bool(key) for key in listed]
    column = column_of_cells(listed, cells.name, connection.label, as_text, missing)
    raw = read_vector(column, cells.name)
    if isinstance(connection, PostgreSQLConnection) and cells.type == "enum":
        raw = _declared(raw, connection.labels_of(cells.raw, source))
    return Distinct(tuple(keys.tolist()), tuple(count.tolist()), raw)


def _declared(raw: RawColumn, labels: Sequence[str]) -> RawColumn:
    """Return values in the order in which they are declared."""
    if not isinstance(raw, Coded):
        return Coded(np.full(len(raw.values), -1), tuple(labels), declared=True)
    position = {label: at for at, label in enumerate(labels)}
    table = np.array([*(position[str(value)] for value in raw.values), -1])
    return Coded(table[raw.codes], tuple(labels), declared=True)


def check_type(connection: Connection, cells: Cells, as_text: bool) -> None:
    """Reject a column of PostgreSQL that cannot be read as text or numbers."""
    if not isinstance(connection, PostgreSQLConnection) or cells.kind != "text":
        return
    if cells.type in _DATES and not as_text:
        raise_dates(f"Column {cells.name!r}", cells.type)
    if cells.type not in _TEXTS | _DATES:
        raise DataError(
            f"Column {cells.name!r} of {connection.label} is of type {cells.type}, "
            "which is neither text nor a number. Leave it out, or cast it in a query."
        )


def _beyond(raw: str) -> str:
    """Return the test for integers that float64 cannot hold."""
    return f"{raw} > {LARGEST_EXACT} OR {raw} < -{LARGEST_EXACT}"


@dataclass
class Source:
    """A table or query of an open connection, with the results fetched so far."""

    connection: Connection
    relation: str
    described: Sequence[Described]
    text_columns: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    _cells: dict[str, Cells] = field(default_factory=dict)
    _distinct: dict[str, Distinct] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.described)

    def prepare(self, names: Sequence[str]) -> None:
        """Determine the types of the cells of columns."""
        new = [name for name in names if name not in self._cells]
        if self.connection.dialect is SQLITE:
            found = loose_cells(
                self.connection, self.relation, new, self.text_columns, self.missing
            )
        else:
            types = {column.name: column.type for column in self.described}
            found = [
                typed_cells(
                    self.connection, name, types[name], name in self.text_columns
                )
                for name in new
            ]
        for cells in found:
            check_type(self.connection, cells, cells.name in self.text_columns)
            self._cells[cells.name] = cells

    def cells(self, name: str) -> Cells:
        """Return a column that was prepared."""
        if name not in self._cells:
            self.prepare([name])
        return self._cells[name]

    def distinct(self, name: str) -> Distinct:
        """Return the distinct cells of a column, fetched once."""
        if name not in self._distinct:
            cells = self.cells(name)
            self._distinct[name] = distinct(
                self.connection,
                self.relation,
                cells,
                self.missing,
                name in self.text_columns,
            )
        return self._distinct[name]

    def frame(self) -> Frame:
        """Return the table as a frame of the distinct cells of each column."""
        readers = tuple(partial(self._raw, name) for name in self.names)
        return Frame(self.names, 0, named=True, readers=readers)

    def _raw(self, name: str) -> RawColumn:
        return self.distinct(name).raw
