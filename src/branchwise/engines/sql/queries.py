"""SQL that encodes the rows of a source, and that adds numbers up exactly.

Rows are a relation with a node, a class code (or the number to be predicted), the
weight and the case where they are not 1, and an attribute ``a0``, ``a1``, ... for each
column: a code, or the number itself where numbers are kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.data.encode import encode_columns
from branchwise.data.exact_sums import SPLITTER, Limbs
from branchwise.data.table_schema import Columns
from branchwise.data.target import LOWEST_BIT, Scale, class_codes, occurring_classes
from branchwise.engines.base import Plan
from branchwise.engines.sql.connections import (
    Binder,
    binned,
    chosen,
    rounded,
    searched,
)
from branchwise.engines.sql.table_columns import Source
from branchwise.errors import DataError

#: Numbers up to this are rounded to whole numbers; larger ones are whole.
_WHOLE = 2.0**52


def on_grid(amount: str, step: float, binder: Binder) -> str:
    """Return the expression that rounds an amount to a grid."""
    if step == 1.0:
        return f"({rounded(f'({amount})')})"
    mark = binder.bind(float(step))
    return f"({rounded(f'(({amount}) / {mark})')}) * {mark}"


def in_units(number: str, scale: Scale, binder: Binder) -> str:
    """Return the expression for a number in the unit of a scale."""
    scaled = f"({number}) * {binder.bind(2.0**-scale.unit)}"
    if not scale.rounds:
        return scaled
    return _rounded(f"({scaled})", 2.0**LOWEST_BIT, binder)


def _rounded(name: str, step: float, binder: Binder) -> str:
    """Return the expression for the nearest multiple of a step, of any number."""
    most = binder.bind(_WHOLE * step)
    fine = on_grid(name, step, binder)
    return f"CASE WHEN abs({name}) >= {most} THEN {name} ELSE {fine} END"


def terms(weight: str | None) -> tuple[list[dict[str, str]], list[str], list[str]]:
    """Return the terms whose sums are the weighted numbers ``v`` and their squares.

    These are fields to be added to the rows, some after the other, and the names of the
    terms of numbers and of squares. Without a weight all weigh 1.
    """
    fields = [
        _upper("v"),
        {"vl": "v - vh", "q": "v * v"},
        {"qr": _rest("q", "v", "v")},
    ]
    if weight is None:
        return fields, ["v"], ["q", "qr"]
    pairs = {"p": "v", "s": "q", "t": "qr"}
    halved = (weight, "q", "qr")
    fields += [
        {name: upper for each in halved for name, upper in _upper(each).items()},
        {f"{name}l": f"{name} - {name}h" for name in halved}
        | {name: f"{weight} * {by}" for name, by in pairs.items()},
        {f"{name}r": _rest(name, weight, by) for name, by in pairs.items()},
    ]
    return fields, ["p", "pr"], ["s", "sr", "t", "tr"]


def _upper(name: str) -> dict[str, str]:
    """Return the upper half of the bits of a number."""
    wide = f"({SPLITTER:.1f}e0 * {name})"
    return {f"{name}h": f"{wide} - ({wide} - {name})"}


def _rest(product: str, a: str, b: str) -> str:
    """Return the exact rounding error of the product of two numbers."""
    return f"((({a}h * {b}h - {product}) + {a}h * {b}l) + {a}l * {b}h) + {a}l * {b}l"


def limb(names: list[str], limbs: Limbs, at: int, binder: Binder) -> str:
    """Return the expression for a limb of the sum of terms."""
    pieces = []
    for name in names:
        piece = _rounded(name, limbs.steps[at], binder)
        if at:
            above = _rounded(name, limbs.steps[at - 1], binder)
            piece = f"({piece}) - ({above})"
        pieces.append(f"({piece})")
    return " + ".join(pieces)


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
) -> str:
    """Return the expression for the code of a value; NULL has the missing code."""
    known = [k for k in codes if k is not None]
    mixed = len({isinstance(k, str) for k in known}) > 1
    search = chosen if mixed or len(known) <= _FEW_VALUES else searched
    if search is searched:
        known.sort(key=_in_order)
    marks = [binder.bind(k) for k in known]
    code = search(key, marks, [codes[k] for k in known], str(UNSEEN))
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
    return on_grid(weight, plan.grid.step, binder)


@dataclass(frozen=True)
class Fields:
    """Further fields of rows: whether they have weights and fractions of cases."""

    n_attributes: int
    has_label: bool
    has_number: bool
    has_weight: bool
    has_case: bool

    @property
    def carried(self) -> list[str]:
        """The fields that every step passes on unchanged."""
        names = ["y"] if self.has_label else []
        names += ["v"] if self.has_number else []
        return names + [f"a{index}" for index in range(self.n_attributes)]

    @property
    def amounts(self) -> list[str]:
        """The fields that are added up."""
        return [
            n for n, there in (("w", self.has_weight), ("k", self.has_case)) if there
        ]


@dataclass(frozen=True)
class Attribute:
    """How an attribute is compared: by its code, or as a number, missing or not."""

    name: str
    is_numeric: bool
    missing: str


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
        """Return the steps that encode all rows, and the name of the last."""
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
        code = f"COALESCE(d{at}.c, {UNSEEN})"
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


def step_name(*pieces: object) -> str:
    """Return the name of a step, which no table of a user will have."""
    return '"branchwise ' + " ".join(map(str, pieces)) + '"'
