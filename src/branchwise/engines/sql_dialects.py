"""How databases write names, casts and given values: what engines/sql*.py differ in.

Names are quoted. Values are never part of a statement: they are bound, one by one or
as columns of a relation that is joined. Only whole numbers that this program counts
itself (positions of columns, nodes, codes) stand in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError

#: From here on, adding it to a number rounds to whole numbers, half to even.
_ROUNDING = 2**52


@dataclass(frozen=True)
class SqlDialect:
    """What a database has of its own.

    ``mark`` is where a value is bound that is of one of the ``types``. ``lists`` tells
    whether whole columns of values can be bound. ``is_nan`` is the test for NaN, None
    where there is none. ``grouping_sets`` tells whether one pass can group by several
    columns; ``keep`` follows the name of a step that others are to share.
    ``most_values`` is how many values a statement takes, and ``forced`` how a table is
    joined that is to be looked up row by row. Up to ``nodes_in_case`` nodes CASE is
    used in place of joins, nested for so many levels.
    """

    name: str
    mark: str
    types: Mapping[str, str]
    lists: bool
    text_key: str
    is_nan: str | None = None
    grouping_sets: bool = True
    keep: str = "AS"
    forced: str = "JOIN"
    most_values: int | None = None
    nodes_in_case: int = 10_000
    levels_in_case: int = 300

    def named(self, *parts: str) -> str:
        """Quote a name, of one part or of several."""
        for part in parts:
            if "\0" in part:
                raise DataError(
                    f"{part!r} cannot be the name of a table or column: it holds the "
                    "character NUL. Rename it."
                )
        return ".".join('"' + part.replace('"', '""') + '"' for part in parts)

    def whole(self, most: int) -> str:
        """Return the type for whole numbers up to ``most``."""
        if self.grouping_sets and most < 2**15 - 2:
            return "SMALLINT"
        return self.types["i"]

    def double(self, expression: str) -> str:
        """Turn an expression into a float64."""
        return f"CAST({expression} AS {self.types['f']})"

    def as_text(self, expression: str) -> str:
        """Turn an expression into a text that compares by its bytes."""
        return self.text_key.format(expression)


DUCKDB = SqlDialect(
    "DuckDB",
    "${}",
    {"i": "BIGINT", "f": "DOUBLE", "t": "VARCHAR"},
    lists=True,
    text_key='CAST({} AS VARCHAR) COLLATE "binary"',
    is_nan="isnan({})",
    # It looks at a block of rows for every node.
    nodes_in_case=16,
)
SQLITE = SqlDialect(
    "SQLite",
    "?{}",
    {"i": "INTEGER", "f": "REAL", "t": "TEXT"},
    lists=False,
    # A plus takes away what the type of a column does to what it is compared with.
    text_key="(+{}) COLLATE BINARY",
    grouping_sets=False,
    keep="AS MATERIALIZED",
    forced="CROSS JOIN",
    most_values=32_000,
    # Its parser has a stack of a hundred entries.
    levels_in_case=8,
)
POSTGRESQL = SqlDialect(
    "PostgreSQL",
    "${}",
    {"i": "bigint", "f": "float8", "t": "text"},
    lists=True,
    text_key='CAST({} AS text) COLLATE "C"',
    is_nan="{} = 'NaN'",
    most_values=60_000,
)


@dataclass
class Binder:
    """The values of one statement, in the order of their marks."""

    dialect: SqlDialect
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

    def relation(self, columns: Sequence[tuple[str, Any]]) -> str:
        """Bind columns of values; return a query for them.

        Each column is given by its type, as the dialect has it, and its values.
        """
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
    up = f"({expression} + {_ROUNDING}e0) - {_ROUNDING}e0"
    down = f"({expression} - {_ROUNDING}e0) + {_ROUNDING}e0"
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


def coalesced(names: Sequence[str]) -> str:
    """Return the first of some expressions that is not NULL; SQLite wants two."""
    return f"COALESCE({', '.join(names)})" if len(names) > 1 else "".join(names)
