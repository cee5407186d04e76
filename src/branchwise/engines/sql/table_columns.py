"""Columns of a table in a database: their types, and expressions for their cells.

A column holds numbers or values. Of values, every distinct cell is fetched once and
read by the same code as tables in memory; so a table has the same schema. ``key`` is
the expression by which the database distinguishes cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from branchwise.data.arrow import as_dictionary, declared_table, declares_values
from branchwise.data.columns import (
    LARGEST_EXACT,
    Coded,
    Numbers,
    RawColumn,
    raise_dates,
)
from branchwise.data.conventions.date_features import DateFeature, as_learnt
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.frames import Frame, read_vector
from branchwise.engines.sql.connections import Binder, Connection, Described
from branchwise.engines.sql.date_cells import date_expression, is_date
from branchwise.engines.sql.drivers import DuckDBConnection, PostgreSQLConnection
from branchwise.errors import DataError
from branchwise.files.sql_dates import derived_number
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
_NUMBERS = _WHOLE | _FLOATING | _LONG
_TRUTHS = frozenset(("BOOLEAN", "bool"))
#: Types of PostgreSQL that are text, or that are read as text.
_TEXTS = frozenset(
    (*("text", "varchar", "bpchar", "char", "name", "citext", "uuid", "enum"),)
)
#: Types of PostgreSQL that are times and durations; they may be read as text, too.
_TIMES = frozenset(("date", "time", "timetz", "timestamp", "timestamptz", "interval"))
#: Decimals of so many digits are a quotient of two whole float64 numbers.
_SHORT_DECIMAL = 15
#: The most columns of SQLite that one query inspects.
_AT_A_TIME = 100


@dataclass(frozen=True)
class Cells:
    """A column of the source.

    ``kind`` is "number", "truth" or "text". ``number`` and ``key`` are the expressions,
    ``inexact`` the test for integers that float64 cannot hold. ``date`` tells which
    dates the numbers are, if they are dates; ``feature`` how they are derived from
    dates.
    """

    name: str
    kind: str
    key: str
    number: str
    raw: str
    type: str = ""
    inexact: str = "1 = 0"
    date: DateFormat | None = None
    feature: DateFeature | None = None


@dataclass(frozen=True)
class Distinct:
    """The distinct cells of a column: keys (None is NULL), counts and values."""

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


def _declared(raw: RawColumn, labels: Sequence[str]) -> RawColumn:
    """Return values in the order in which they are declared."""
    if not isinstance(raw, Coded):
        return Coded(np.full(len(raw.values), -1), tuple(labels), declared=True)
    position = {label: at for at, label in enumerate(labels)}
    table = np.array([*(position[str(value)] for value in raw.values), -1])
    return Coded(table[raw.codes], tuple(labels), declared=True)


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
    #: What is derived from dates, by name, beside the columns of the table.
    features: dict[str, DateFeature] = field(default_factory=dict)
    _cells: dict[str, Cells] = field(default_factory=dict)
    _distinct: dict[str, Distinct] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.described)

    def prepare(self, names: Sequence[str]) -> None:
        """Determine the types of the cells of columns."""
        derived = [name for name in names if name in self.features]
        new = [n for n in names if n not in self._cells and n not in derived]
        loose = self.connection.dialect is SQLITE
        for cells in self._loose_cells(new) if loose else self._typed_cells(new):
            self._check_type(cells)
            self._cells[cells.name] = cells
        for name in derived:
            self._cells[name] = self._derived(self.features[name])

    def _derived(self, feature: DateFeature) -> Cells:
        """Return what is derived from a column of dates."""
        dates = self.cells(feature.of)
        if dates.date is None:
            raise DataError(
                f"Column {feature.of!r} of {self.connection.label} holds no dates but "
                f"{dates.type or dates.kind}, so that there is no {feature.feature} of "
                "them. Leave it out, or cast the column to a date in a query."
            )
        learnt = as_learnt(feature, dates.date)
        dialect = self.connection.dialect
        number = dialect.double(str(derived_number(dialect, dates.raw, learnt)))
        return Cells(feature.name, "number", number, number, dates.raw, feature=learnt)

    def cells(self, name: str) -> Cells:
        """Return a column that was prepared."""
        if name not in self._cells:
            self.prepare([name])
        return self._cells[name]

    def distinct(self, name: str) -> Distinct:
        """Return the distinct cells of a column, fetched once."""
        if name not in self._distinct:
            cells = self.cells(name)
            if isinstance(self.connection, DuckDBConnection):
                self._distinct[name] = self._distinct_in_arrow(self.connection, cells)
            else:
                self._distinct[name] = self._distinct_cells(cells)
        return self._distinct[name]

    def frame(self) -> Frame:
        """Return the table as a frame of the distinct cells of each column."""
        readers = tuple(partial(self._raw, name) for name in self.names)
        return Frame(self.names, 0, named=True, readers=readers)

    def _raw(self, name: str) -> RawColumn:
        return self.distinct(name).raw

    def _typed_cells(self, names: Sequence[str]) -> Iterator[Cells]:
        """Yield columns of a database where columns have types."""
        dialect = self.connection.dialect
        types = {column.name: column.type for column in self.described}
        for name in names:
            raw, type_name = f"source.{dialect.quoted(name)}", types[name]
            is_number = type_name in _NUMBERS or type_name.startswith("DECIMAL(")
            kind, number = "text", ""
            if name not in self.text_columns and is_date(type_name):
                yield self._date_cells(name, raw, type_name)
                continue
            if name in self.text_columns:
                pass
            elif type_name in _TRUTHS:
                kind = "truth"
                number = f"CASE WHEN {raw} THEN 1 WHEN NOT {raw} THEN 0 END"
            elif is_number:
                kind, number = "number", number_of(dialect, raw, type_name)
            key = number or dialect.as_text(raw)
            column = Cells(name, kind, key, number, raw, type_name)
            whole = type_name in _WHOLE
            yield replace(column, inexact=_beyond(raw)) if whole else column

    def _date_cells(self, name: str, raw: str, type_name: str) -> Cells:
        dialect = self.connection.dialect
        number, inexact, date = date_expression(dialect, raw, type_name, self._holds)
        return Cells(name, "number", number, number, raw, type_name, inexact, date)

    def _holds(self, condition: str) -> bool:
        """Whether a condition is true in all rows where it is known."""
        requested = (
            f"SELECT COUNT(*) FROM {self.relation} AS source WHERE NOT ({condition})"  # noqa: S608
        )
        (count,) = self.connection.fetch(requested, (), "i")
        return int(count[0]) == 0

    def _loose_cells(self, names: Sequence[str]) -> Iterator[Cells]:
        """Yield columns of SQLite, where every cell has a type of its own."""
        dialect = self.connection.dialect
        raws = [f"source.{dialect.quoted(name)}" for name in names]
        found = []
        for first in range(0, len(raws), _AT_A_TIME):
            found += self._types_of_cells(raws[first : first + _AT_A_TIME])
        for name, raw, (texts, blobs, numbers) in zip(names, raws, found, strict=True):
            if blobs:
                raise DataError(
                    f"Column {name!r} of {self.connection.label} holds values of type "
                    "bytes, which are no text and no numbers. Leave it out."
                )
            inexact = f"typeof({raw}) = 'integer' AND ({_beyond(raw)})"
            if texts or not numbers or name in self.text_columns:
                kind, number, key = "text", "", dialect.as_text(raw)
            else:
                is_number = f"typeof({raw}) IN ('integer', 'real')"
                number = f"CASE WHEN {is_number} THEN CAST({raw} AS REAL) END"
                kind, key = "number", number
            yield Cells(name, kind, key, number, raw, "", inexact)

    def _types_of_cells(self, raws: Sequence[str]) -> list[tuple[int, ...]]:
        """Count the texts, bytes and numbers of columns of SQLite."""
        dialect = self.connection.dialect
        binder = Binder(dialect)
        marks = ", ".join(binder.bind(mark) for mark in self.missing)
        wanted = []
        for raw in raws:
            mark = f"{dialect.as_text(raw)} IN ({marks})" if marks else "0"
            tests = (
                f"typeof({raw}) = 'text' AND NOT {mark}",
                f"typeof({raw}) = 'blob'",
                f"typeof({raw}) IN ('integer', 'real')",
            )
            wanted += [f"COALESCE(SUM({test}), 0)" for test in tests]
        requested = f"SELECT {', '.join(wanted)} FROM {self.relation} AS source"  # noqa: S608
        result = self.connection.fetch(requested, binder.values, "i" * len(wanted))
        counted = [int(each[0]) for each in result]
        return [tuple(counted[3 * at : 3 * at + 3]) for at in range(len(raws))]

    def _distinct_in_arrow(
        self, connection: DuckDBConnection, cells: Cells
    ) -> Distinct:
        """Fetch every distinct cell of a column of DuckDB once, with its type."""
        found = connection.arrow(
            f"SELECT {cells.key} AS k, any_value({cells.raw}) AS v, COUNT(*) AS n "  # noqa: S608
            f"FROM {self.relation} AS source GROUP BY 1"
        )
        # A dictionary column is an enumeration, whose values are declared.
        table = declared_table([found.column(1)], [cells.name], {cells.name})
        text = {0} if cells.name in self.text_columns else ()
        (column,) = typed_columns(table, connection.label, text, self.missing)
        raw = read_vector(column, cells.name)
        if declares_values(table.schema.field(0)):
            raw = _declared(raw, as_dictionary(column).dictionary.to_pylist())
        keys, count = found.column(0).to_pylist(), found.column(2).to_pylist()
        return Distinct(tuple(keys), tuple(count), raw)

    def _distinct_cells(self, cells: Cells) -> Distinct:
        """Fetch every distinct cell of a column once."""
        connection, name = self.connection, cells.name
        kind = f"typeof({cells.raw})" if connection.dialect is SQLITE else "0"
        # Equal numbers of two types are two texts.
        requested = (
            f"SELECT {cells.key}, {kind}, COUNT(*) FROM {self.relation} AS source "  # noqa: S608
            "GROUP BY 1, 2"
        )
        keys, _, count = connection.fetch(requested, (), "ooi")
        listed = keys.tolist()
        if cells.kind == "truth":
            listed = [None if key is None else bool(key) for key in listed]
        if cells.date is not None:
            numbers = np.array([np.nan if k is None else float(k) for k in listed])
            dates = Numbers(numbers, cells.date)
            return Distinct(tuple(keys.tolist()), tuple(count.tolist()), dates)
        as_text = name in self.text_columns
        column = column_of_cells(listed, name, connection.label, as_text, self.missing)
        raw = read_vector(column, name)
        if isinstance(connection, PostgreSQLConnection) and cells.type == "enum":
            raw = _declared(raw, connection.labels_of(cells.raw, self.relation))
        return Distinct(tuple(keys.tolist()), tuple(count.tolist()), raw)

    def _check_type(self, cells: Cells) -> None:
        """Reject a column of PostgreSQL that cannot be read as text or numbers."""
        if (
            not isinstance(self.connection, PostgreSQLConnection)
            or cells.kind != "text"
        ):
            return
        if cells.type in _TIMES and cells.name not in self.text_columns:
            raise_dates(f"Column {cells.name!r}", cells.type)
        if cells.type not in _TEXTS | _TIMES:
            raise DataError(
                f"Column {cells.name!r} of {self.connection.label} is of type "
                f"{cells.type}, which is neither text nor a number. Leave it out, or "
                "cast it in a query."
            )
