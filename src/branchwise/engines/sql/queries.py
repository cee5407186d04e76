"""SQL that encodes the rows of a source, and the templates of all statements.

Rows are a relation with a node, a class code (or the number to be predicted), the
weight and the case where they are not 1, and an attribute ``a0``, ``a1``, ... for each
column: a code, or the number itself where numbers are kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.data.encode import encode_columns
from branchwise.data.table_schema import Columns
from branchwise.data.target import class_codes, occurring_classes
from branchwise.engines.base import Plan
from branchwise.engines.sql.connections import Binder, binned, chosen, searched
from branchwise.engines.sql.table_columns import Source
from branchwise.errors import DataError
from branchwise.text.as_html import macros

#: The most values that are compared in turn; more use binary search, or a join.
_FEW_VALUES = 8
_MANY_VALUES = 256
#: The code of a value that the table did not have when it was scanned.
UNSEEN = -1


def code_of_key(
    key: str,
    codes: dict[object, int],
    missing: int,
    binder: Binder,
    joined: str | None = None,
) -> str:
    """Return the expression for the code of a value; NULL has the missing code.

    ``joined`` is the code of known values where they are joined with their codes.
    """
    code = _searched_code(key, codes, binder) if joined is None else joined
    if None not in codes:
        return code
    return f"CASE WHEN {key} IS NULL THEN {missing} ELSE {code} END"


def _searched_code(key: str, codes: dict[object, int], binder: Binder) -> str:
    known = [k for k in codes if k is not None]
    mixed = len({isinstance(k, str) for k in known}) > 1
    search = chosen if mixed or len(known) <= _FEW_VALUES else searched
    if search is searched:
        known.sort(key=_in_order)
    marks = [binder.bind(k) for k in known]
    return search(key, marks, [codes[k] for k in known], str(UNSEEN))


def _in_order(key: Any) -> Any:
    """Compare texts by their bytes, as databases do."""
    return key.encode() if isinstance(key, str) else key


def label_code(source: Source, plan: Plan, binder: Binder) -> str:
    """Return the expression for the class code of a row."""
    found = source.distinct(plan.task.target)
    _, labels = occurring_classes(found.raw, None)
    codes = class_codes(labels, plan.schema.classes).tolist()
    by_key = dict(zip(found.keys, codes, strict=True))
    key = source.cells(plan.task.target).key
    return code_of_key(key, by_key, UNSEEN, binder)


def weight_of(source: Source, plan: Plan, binder: Binder) -> str:
    """Return the expression for the weight of a row on the grid of the plan."""
    weight = "1e0"
    if plan.task.weight is not None:
        weight = source.cells(plan.task.weight).number
    if plan.class_factors is not None:
        label = label_code(source, plan, binder)
        marks = [binder.bind(float(factor)) for factor in plan.class_factors]
        factor = chosen(label, [str(c) for c in range(len(marks))], marks, "NULL")
        weight = f"({weight}) * ({factor})"
    if not plan.grid.step:
        return weight
    if plan.grid.unit != 1.0:
        weight = f"({weight}) / {binder.bind(plan.grid.unit)}"
    return binder.on_grid(weight, plan.grid.step)


@dataclass(frozen=True)
class Attribute:
    """How an attribute is compared: by its code, or as a number, missing or not."""

    index: int
    is_numeric: bool
    missing: str

    @property
    def name(self) -> str:
        """The name of the field."""
        return f"a{self.index}"


class Writer:
    """Writes statements for one source and plan."""

    def __init__(self, source: Source, plan: Plan) -> None:
        self.source = source
        self.dialect = source.connection.dialect
        self.plan = plan
        self.has_weight = plan.weighted or plan.grid.fractions
        self.has_case = plan.grid.fractions
        columns = plan.schema.columns
        #: For every column the code that is one past its largest.
        self.n_codes = [plan.n_codes(at) for at in range(len(columns))]
        #: Whether a column is counted by its numbers.
        self.by_number = [
            c.is_numeric and at not in plan.edges for at, c in enumerate(columns)
        ]
        self._codes = self._code_tables()
        #: The columns whose values are joined with their codes.
        self.joined = [
            at
            for at, codes in enumerate(self._codes)
            if self.dialect.lists and len(codes or ()) > _MANY_VALUES
        ]
        self.attributes = [
            Attribute(
                at,
                c.is_numeric,
                f"a{at} IS NULL"
                if self.by_number[at]
                else f"a{at} = {self.n_codes[at] - 1}",
            )
            for at, c in enumerate(columns)
        ]
        #: The fields that every step passes on unchanged.
        self.carried = ["y" if plan.spread is None else "v"]
        self.carried += [attribute.name for attribute in self.attributes]

    @property
    def fields(self) -> dict[str, str]:
        """The fields of rows beside their node, with their types."""
        types = self.dialect.types
        found = {"y": types["i"]} if self.plan.spread is None else {"v": types["f"]}
        found |= {"w": types["f"]} if self.has_weight else {}
        found |= {"k": types["f"]} if self.has_case else {}
        for at, by_number in enumerate(self.by_number):
            whole = self.dialect.whole(self.n_codes[at])
            found[f"a{at}"] = types["f"] if by_number else whole
        return found

    def _code_tables(self) -> list[dict[object, int] | None]:
        """Return for every column of values the codes of its keys."""
        frame = self.source.frame()
        tables: list[dict[object, int] | None] = []
        for at, column in enumerate(self.plan.schema.columns):
            if column.is_numeric:
                tables.append(None)
                continue
            encoded: Columns = encode_columns(frame, self.plan.schema, [at])
            keys = self.source.distinct(column.name).keys
            codes = encoded.data[at].astype(np.intp).tolist()
            table = dict(zip(keys, codes, strict=True))
            if any(table[k] != code for k, code in zip(keys, codes, strict=True)):
                raise DataError(
                    f"Column {column.name!r} has equal numbers that are not equal as "
                    "text. Cast it to one type in a query."
                )
            tables.append(table)
        return tables

    def rendered(self, template: str, binder: Binder, **context: Any) -> str:
        """Return a statement, or steps of one, each followed by a comma."""
        given = {"writer": self, "dialect": self.dialect, "binder": binder}
        return str(macros(f"engines/sql/templates/{template}", **given, **context))

    def rows(self, binder: Binder) -> tuple[str, str]:
        """Return the steps that encode all rows, and the name of the last."""
        plan, source = self.plan, self.source
        if plan.scale is None:
            target = label_code(source, plan, binder)
        else:
            target = binder.in_units(source.cells(plan.task.target).number, plan.scale)
        weight = weight_of(source, plan, binder) if plan.weighted else "1e0"
        steps = self.rendered("rows.sql", binder, target=target, weight=weight)
        return steps, '"branchwise rows"'

    def key(self, at: int) -> str:
        """Return the expression by which the values of a column are distinguished."""
        return self.source.cells(self.plan.schema.columns[at].name).key

    def keys_and_codes(self, at: int) -> list[tuple[str, list[Any]]]:
        """Return a relation of the values of a column and their codes."""
        codes = {
            k: code for k, code in (self._codes[at] or {}).items() if k is not None
        }
        kind = "t" if isinstance(next(iter(codes)), str) else "f"
        return [(kind, list(codes)), ("i", list(codes.values()))]

    def code(self, attribute: Attribute, binder: Binder) -> str:
        """Return the expression for a column: a code, or the number itself."""
        at = attribute.index
        column, codes = self.plan.schema.columns[at], self._codes[at]
        if codes is not None:
            joined = f"COALESCE(d{at}.c, {UNSEEN})" if at in self.joined else None
            return code_of_key(self.key(at), codes, column.missing_code, binder, joined)
        number = self.source.cells(column.name).number
        if self.by_number[at]:
            return number
        edges = [binder.bind(float(edge)) for edge in self.plan.edges[at]]
        gone, code = self.n_codes[at] - 1, binned(number, edges)
        return f"CASE WHEN {number} IS NULL THEN {gone} ELSE {code} END"
