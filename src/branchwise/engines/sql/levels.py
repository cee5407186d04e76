"""Rows on their way down the tree, level by level, within one statement.

Every level is a join with the routes of its nodes: which code of the column that a node
asks for leads where, with which share of the case. A route also brings along what the
node it leads to asks for, so that the next level is one join, too. Where few nodes lead
to open ones, an expression does it (``sql_paths.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from branchwise.data.arrays import Ints, distinct
from branchwise.engines.sql.connections import Binder, coalesced
from branchwise.engines.sql.queries import Writer, on_grid, step_name
from branchwise.engines.sql.routes import (
    ASK_OTHERS,
    NUMBER_MISSING,
    Asked,
    Step,
    Ways,
    path,
    ways_down,
)
from branchwise.tree.splits import ABOVE, AT_MOST

#: Levels that rows are taken down by joins within one query.
MOST_JOINED_LEVELS = 60
#: Levels after which SQLite, which joins at most 64 tables at once, keeps the rows.
_KEPT_EVERY = 8


class TooDeep(Exception):  # noqa: N818  (caught where it can be said in words)
    """A tree has more levels than a query can take rows down."""


def in_nodes(
    writer: Writer, binder: Binder, start: str, steps: Sequence[Step]
) -> tuple[list[str], str]:
    """Return the steps of a query for rows in their nodes, and the last's name."""
    if not steps:
        return [], start
    ways = ways_down(steps, writer.dialect.nodes_in_case)
    if ways is not None:
        return _by_case(writer, binder, start, steps, ways)
    if len(steps) > MOST_JOINED_LEVELS:
        raise TooDeep
    return _Joins(writer, binder).way_down(start, steps)


def _by_case(
    writer: Writer, binder: Binder, start: str, steps: Sequence[Step], ways: Ways
) -> tuple[list[str], str]:
    dialect, attributes = writer.dialect, writer.attributes()
    fields = ", ".join([*writer.fields.carried, *writer.fields.amounts])
    written, rows = [], start
    for first in range(0, len(steps), dialect.levels_in_case):
        part = slice(first, first + dialect.levels_in_case)
        node = path(steps[part], ways[part], attributes, binder)
        placed = (
            f"SELECT CAST({node} AS {dialect.types['i']}) AS node, {fields} "  # noqa: S608
            f"FROM {rows} AS rows"
        )
        rows = step_name("placed", first)
        written.append(
            f"{rows} {dialect.keep} (SELECT * FROM ({placed}) AS placed "  # noqa: S608
            "WHERE node IS NOT NULL)"
        )
    return written, rows


class _Joins:
    """Writes the joins of one statement."""

    def __init__(self, writer: Writer, binder: Binder) -> None:
        self.plan, self.dialect = writer.plan, writer.dialect
        self.fields, self.n_codes = writer.fields, writer.n_codes
        self.by_number = writer.by_number
        self._binder = binder

    def way_down(self, start: str, steps: Sequence[Step]) -> tuple[list[str], str]:
        """Return the steps of a query that take rows down, and the name of the last."""
        written = []
        rows, known = start, False
        for number, step in enumerate(steps):
            if not known:
                asking, rows = self._asking(rows, step, number)
                written += asking
            # Rows that stand-ins place come by several ways: they are asked later.
            known = number + 1 < len(steps) and not step.has_surrogates
            further = steps[number + 1].asked if known else ()
            written += self._moving(rows, step, number, further)
            rows = step_name("level", number)
        return written, rows

    def _asking(self, rows: str, step: Step, number: int) -> tuple[list[str], str]:
        """Give every row what its node asks for."""
        name, asks = step_name("asking", number), step_name("asks", number)
        n_nodes = len(step.asked[0].column)
        every = np.arange(n_nodes)
        names, columns = _questions(step.asked, every)
        if n_nodes == 1:
            marks = [self._constant(kind, values[0]) for kind, values in columns]
            wanted = [f"{m} AS {n}" for m, n in zip(marks, names, strict=True)]
            body = f"SELECT rows.*, {', '.join(wanted)} FROM {rows} AS rows"  # noqa: S608
            return [f"{name} AS ({body})"], name
        relation = self._binder.relation([("i", every), *columns])
        wanted = [f"asks.{each}" for each in names]
        body = (
            f"SELECT rows.*, {', '.join(wanted)} FROM {rows} AS rows "  # noqa: S608
            f"{self.dialect.forced} {asks} AS asks ON asks.node = rows.node"
        )
        listed = ", ".join(["node", *names])
        return [f"{asks} ({listed}) AS ({relation})", f"{name} AS ({body})"], name

    def _constant(self, kind: str, value: Any) -> str:
        if kind == "i":
            return str(int(value))
        if value != value:
            return f"CAST(NULL AS {self.dialect.types['f']})"
        return self._binder.bind(float(value))

    def _moving(
        self,
        rows: str,
        step: Step,
        number: int,
        further: Sequence[Asked],
    ) -> list[str]:
        """Send every row where its answer leads, with what is asked there."""
        stride = max([NUMBER_MISSING + 1, *(n + 1 for n in self.n_codes)])
        relations, joins = [], []
        carried, _ = _questions(further, np.empty(0, dtype=np.intp))
        for turn, asked in enumerate(step.asked):
            name = step_name("routes", number, turn)
            names, columns = self._routes(step, turn, stride, further)
            relation = self._binder.relation(columns)
            relations.append(f"{name} ({', '.join(names)}) AS ({relation})")
            kind = "LEFT JOIN" if turn else self.dialect.forced
            way = f"rows.node * {stride} + {self._answer(asked, turn)}"
            joins.append(f"{kind} {name} AS r{turn} ON r{turn}.way = {way}")
        child = "r0.child"
        if step.has_surrogates:
            others = [f"r{turn}.child" for turn in range(1, len(step.asked))]
            last = coalesced([*others, "r0.fallback"])
            asks = f"r0.child = {ASK_OTHERS}"
            child = f"CASE WHEN {asks} THEN {last} ELSE r0.child END"
        wanted = [f"{child} AS node", *(f"rows.{f}" for f in self.fields.carried)]
        wanted += self._parts(step.divides)
        wanted += [f"r0.{each}" for each in carried]
        body = f"SELECT {', '.join(wanted)} FROM {rows} AS rows {' '.join(joins)}"  # noqa: S608
        conditions = ["node >= 0"] if step.has_surrogates else []
        conditions += ["w > 0"] if step.divides else []
        if conditions:
            body = f"SELECT * FROM ({body}) AS moved WHERE {' AND '.join(conditions)}"  # noqa: S608
        keep = self.dialect.keep if number % _KEPT_EVERY == _KEPT_EVERY - 1 else "AS"
        return [*relations, f"{step_name('level', number)} {keep} ({body})"]

    def _routes(
        self, step: Step, turn: int, stride: int, further: Sequence[Asked]
    ) -> tuple[list[str], list[tuple[str, Any]]]:
        """Return the names and columns of the routes of a question."""
        routes = step.routes[turn]
        names = ["way", "child"]
        columns: list[tuple[str, Any]] = [
            ("i", routes.node * stride + routes.code),
            ("i", routes.child),
        ]
        if turn == 0 and step.divides:
            names.append("share")
            columns.append(("f", routes.share))
        if turn == 0 and step.has_surrogates:
            names.append("fallback")
            columns.append(("i", step.fallback[routes.node]))
        more, asked = _questions(further, routes.child)
        return names + more, columns + asked

    def _parts(self, divides: bool) -> list[str]:
        """Return the weight and the case of a row, or of a part of it."""
        grid = self.plan.grid
        amounts = [("w", grid.step, self.fields.has_weight)]
        amounts.append(("k", grid.case_step, self.fields.has_case))
        wanted = []
        for name, step, there in amounts:
            if there and divides:
                part = on_grid(f"rows.{name} * r0.share", step, self._binder)
                wanted.append(
                    f"CASE WHEN r0.share IS NULL THEN rows.{name} ELSE {part} END "
                    f"AS {name}"
                )
            elif there:
                wanted.append(f"rows.{name}")
        return wanted

    def _answer(self, asked: Asked, turn: int) -> str:
        """Return the code by which a row answers the question of its node."""
        whens = []
        for at in distinct(asked.column[asked.column >= 0]).tolist():
            code = f"rows.a{at}"
            if self.plan.schema.columns[at].is_numeric:
                gone = f"{code} IS NULL"
                if not self.by_number[at]:
                    gone = f"{code} = {self.n_codes[at] - 1}"
                code = (
                    f"CASE WHEN {gone} THEN {NUMBER_MISSING} "
                    f"WHEN {code} > rows.cut{turn} THEN {ABOVE} ELSE {AT_MOST} END"
                )
            whens.append(f"WHEN {at} THEN {code}")
        return f"CASE rows.ask{turn} {' '.join(whens)} ELSE 0 END" if whens else "0"


def _questions(
    asked: Sequence[Asked], nodes: Ints
) -> tuple[list[str], list[tuple[str, Any]]]:
    """Return the names and columns of what nodes ask for."""
    names, columns = [], []
    for turn, question in enumerate(asked):
        names += [f"ask{turn}", f"cut{turn}"]
        columns += [("i", question.column[nodes]), ("f", question.cut[nodes])]
    return names, columns
