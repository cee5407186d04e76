"""The rows of a source as codes: what every statement of the engine starts with.

Rows are a relation with a node, a class code (or the number to be predicted), the
weight and the case where they are not 1, and an attribute ``a0``, ``a1``, ... for each
column: a code, or the number itself where numbers are kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.engines.sql_dialects import (
    Binder,
    binned,
    chosen,
    searched,
)
from branchwise.engines.sql_moments import in_units, on_grid
from branchwise.engines.sql_paths import Attribute
from branchwise.engines.sql_source import Source
from branchwise.engines.task import Plan
from branchwise.errors import DataError
from branchwise.table.encode import encode_columns
from branchwise.table.labels import class_codes, occurring_classes
from branchwise.table.schema import Columns

#: Values that are compared one after the other; more are halved, or joined.
_FEW_VALUES = 8
_MANY_VALUES = 256
#: The code of a value that was not there when the table was looked at.
STRANGE = -1


def code_of_key(
    key: str,
    codes: dict[object, int],
    missing: int,
    binder: Binder,
) -> str:
    """Return the expression for the code of a value; NULL has the missing code."""
    known = [k for k in codes if k is not None]
    mixed = len({isinstance(k, str) for k in known}) > 1
    search = chosen if mixed or len(known) <= _FEW_VALUES else searched
    if search is searched:
        known.sort(key=_in_order)
    marks = [binder.bind(k) for k in known]
    code = search(key, marks, [codes[k] for k in known], str(STRANGE))
    if None not in codes:
        return code
    return f"CASE WHEN {key} IS NULL THEN {missing} ELSE {code} END"


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
    return code_of_key(key, by_key, STRANGE, binder)


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
    return on_grid(weight, plan.grid.step, binder)


@dataclass(frozen=True)
class Fields:
    """What rows have besides their attributes: whether weights and parts of cases."""

    n_attributes: int
    has_label: bool
    has_number: bool
    has_weight: bool
    has_case: bool

    @property
    def carried(self) -> list[str]:
        """The fields that every step hands on as they are."""
        names = ["y"] if self.has_label else []
        names += ["v"] if self.has_number else []
        return names + [f"a{index}" for index in range(self.n_attributes)]

    @property
    def amounts(self) -> list[str]:
        """The fields that are added up."""
        return [
            n for n, there in (("w", self.has_weight), ("k", self.has_case)) if there
        ]


class Writer:
    """Writes statements for one source and plan."""

    def __init__(self, source: Source, plan: Plan) -> None:
        self.source = source
        self.dialect = source.connection.dialect
        self.plan = plan
        self.fields = Fields(
            len(plan.schema.columns),
            plan.spread is None,
            plan.spread is not None,
            plan.weighted or plan.grid.fractions,
            plan.grid.fractions,
        )
        #: For every column the code that is one past its largest.
        self.n_codes = [plan.n_codes(at) for at in range(len(plan.schema.columns))]
        #: Whether a column is counted by its numbers.
        self.by_number = [
            column.is_numeric and at not in plan.edges
            for at, column in enumerate(plan.schema.columns)
        ]
        self._codes = self._code_tables()

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

    def rows(self, binder: Binder) -> tuple[list[str], str]:
        """Return the steps that make codes of all rows, and the name of the last."""
        wanted = [f"CAST(0 AS {self.dialect.types['i']}) AS node"]
        steps: list[str] = []
        joins = ""
        if self.fields.has_label:
            wanted.append(f"{label_code(self.source, self.plan, binder)} AS y")
        if self.plan.scale is not None:
            number = self.source.cells(self.plan.task.target).number
            wanted.append(f"{in_units(number, self.plan.scale, binder)} AS v")
        if self.fields.has_weight:
            weight = "1e0"
            if self.plan.weighted:
                weight = weight_of(self.source, self.plan, binder)
            wanted.append(f"{self.dialect.double(weight)} AS w")
        if self.fields.has_case:
            wanted.append(f"{self.dialect.double('1')} AS k")
        for at in range(self.fields.n_attributes):
            if self._is_joined(at):
                values, join, code = self._looked_up(at, binder)
                steps.append(values)
                joins += join
            else:
                code = self._attribute(at, binder)
            wanted.append(f"{code} AS a{at}")
        body = (
            f"SELECT {', '.join(wanted)} FROM {self.source.relation} AS source{joins}"  # noqa: S608
        )
        if self.plan.weighted:
            body = f"SELECT * FROM ({body}) AS weighed WHERE w > 0"  # noqa: S608
        steps.append(f"{step_name('rows')} AS ({body})")
        return steps, step_name("rows")

    def stored(self) -> list[tuple[str, str]]:
        """Return the fields of rows that are kept, with their types."""
        types = self.dialect.types
        fields = [("node", types["i"])]
        fields += [("y", types["i"])] if self.fields.has_label else []
        fields += [("v", types["f"])] if self.fields.has_number else []
        fields += [("w", types["f"])] if self.fields.has_weight else []
        fields += [("k", types["f"])] if self.fields.has_case else []
        for at, by_number in enumerate(self.by_number):
            kind = types["f"] if by_number else self.dialect.whole(self.n_codes[at])
            fields.append((f"a{at}", kind))
        return fields

    def _is_joined(self, at: int) -> bool:
        return self.dialect.lists and len(self._codes[at] or ()) > _MANY_VALUES

    def _looked_up(self, at: int, binder: Binder) -> tuple[str, str, str]:
        """Return a relation of the codes of values, the join with it, and the code."""
        table, name = self._codes[at] or {}, step_name("values", at)
        key = self.source.cells(self.plan.schema.columns[at].name).key
        keys = [k for k in table if k is not None]
        kind = "t" if isinstance(keys[0], str) else "f"
        body = binder.relation([(kind, keys), ("i", [table[k] for k in keys])])
        code = f"COALESCE(d{at}.c, {STRANGE})"
        if None in table:
            missing = self.plan.schema.columns[at].missing_code
            code = f"CASE WHEN {key} IS NULL THEN {missing} ELSE {code} END"
        join = f" LEFT JOIN {name} AS d{at} ON d{at}.k = {key}"
        return f"{name} (k, c) AS ({body})", join, code

    def _attribute(self, at: int, binder: Binder) -> str:
        """Return the expression for a column: a code, or the number itself."""
        column = self.plan.schema.columns[at]
        cells = self.source.cells(column.name)
        table = self._codes[at]
        if table is not None:
            missing = column.missing_code
            return code_of_key(cells.key, table, missing, binder)
        if self.by_number[at]:
            return cells.number
        edges = [binder.bind(float(edge)) for edge in self.plan.edges[at]]
        code = binned(cells.number, edges)
        return (
            f"CASE WHEN {cells.number} IS NULL THEN {self.n_codes[at] - 1} "
            f"ELSE {code} END"
        )

    def attributes(self) -> list[Attribute]:
        """Return how the attributes of rows are compared."""
        found = []
        for at, column in enumerate(self.plan.schema.columns):
            missing = f"a{at} = {self.n_codes[at] - 1}"
            if self.by_number[at]:
                missing = f"a{at} IS NULL"
            found.append(Attribute(f"a{at}", column.is_numeric, missing))
        return found


def step_name(*parts: object) -> str:
    """Return the name of a step: one that no table of a user will have."""
    return '"branchwise ' + " ".join(map(str, parts)) + '"'
