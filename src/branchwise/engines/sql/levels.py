"""SQL that sends rows down the levels of a tree within one statement.

Every level is a join with the routes of its nodes: which code of the column that a
node splits on leads to which child, with which share of the case. A route also has
the split of that child, so that the next level is one join, too. Where few nodes lead
to open ones, a CASE expression is used instead (``routes.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from branchwise.data.arrays import Ints, distinct
from branchwise.engines.sql.connections import Binder, coalesced
from branchwise.engines.sql.queries import Writer, on_grid, step_name
from branchwise.engines.sql.routes import (
    NUMBER_MISSING,
    SPLIT_OTHERS,
    Requested,
    Step,
    Ways,
    path,
    ways_down,
)
from branchwise.tree.splits import ABOVE, AT_MOST

#: The most levels of joins within one query.
MOST_JOINED_LEVELS = 60
#: Levels after which SQLite, which joins at most 64 tables at once, keeps the rows.
_KEPT_EVERY = 8


class TooDeep(Exception):  # noqa: N818  (caught where it can be said in words)
    """A tree has more levels than a query can join."""


def in_nodes(
    writer: Writer, binder: Binder, start: str, steps: Sequence[Step]
) -> tuple[list[str], str]:
    """Return the steps of a query for rows in their nodes, and the name of the last."""
    if not steps:
        return [], start
    ways = ways_down(steps, writer.dialect.nodes_in_case)
    if ways is not None:
        return _by_case(writer, binder, start, steps, ways)
    if len(steps) > MOST_JOINED_LEVELS:
        raise TooDeep
    return _Joins(writer, binder).joined_levels(start, steps)


def _by_case(
    writer: Writer, binder: Binder, start: str, steps: Sequence[Step], ways: Ways
) -> tuple[list[str], str]:
    dialect, attributes = writer.dialect, writer.attributes()
    fields = ", ".join([*writer.fields.carried, *writer.fields.amounts])
    written, rows = [], start
    for first in range(0, len(steps), dialect.levels_in_case):
        chunk = slice(first, first + dialect.levels_in_case)
        node = path(steps[chunk], ways[chunk], attributes, binder)
        positioned = (
            f"SELECT CAST({node} AS {dialect.types['i']}) AS node, {fields} "  # noqa: S608
            f"FROM {rows} AS rows"
        )
        rows = step_name("placed", first)
        written.append(
            f"{rows} {dialect.keep_rows} (SELECT * FROM ({positioned}) AS placed "  # noqa: S608
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

    def joined_levels(self, start: str, steps: Sequence[Step]) -> tuple[list[str], str]:
        """Return the steps of a query that move rows down, and the name of the last."""
        written = []
        rows, known = start, False
        for number, step in enumerate(steps):
            if not known:
                requesting, rows = self._with_splits(rows, step, number)
                written += requesting
            # Rows routed by surrogates come by several joins: splits are added later.
            known = number + 1 < len(steps) and not step.has_surrogates
            further = steps[number + 1].requested if known else ()
            written += self._moving(rows, step, number, further)
            rows = step_name("level", number)
        return written, rows

    def _with_splits(self, rows: str, step: Step, number: int) -> tuple[list[str], str]:
        """Add the split of its node to every row."""
        name, splits_on = step_name("splitting", number), step_name("splits", number)
        n_nodes = len(step.requested[0].column)
        every = np.arange(n_nodes)
        names, columns = _splits(step.requested, every)
        if n_nodes == 1:
            marks = [self._constant(kind, values[0]) for kind, values in columns]
            wanted = [f"{m} AS {n}" for m, n in zip(marks, names, strict=True)]
            body = f"SELECT rows.*, {', '.join(wanted)} FROM {rows} AS rows"  # noqa: S608
            return [f"{name} AS ({body})"], name
        relation = self._binder.relation([("i", every), *columns])
        wanted = [f"splits.{each}" for each in names]
        body = (
            f"SELECT rows.*, {', '.join(wanted)} FROM {rows} AS rows "  # noqa: S608
            f"{self.dialect.forced} {splits_on} AS splits ON splits.node = rows.node"
        )
        listed = ", ".join(["node", *names])
        return [f"{splits_on} ({listed}) AS ({relation})", f"{name} AS ({body})"], name

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
        further: Sequence[Requested],
    ) -> list[str]:
        """Send every row to its child, with the split of the child."""
        stride = max([NUMBER_MISSING + 1, *(n + 1 for n in self.n_codes)])
        relations, joins = [], []
        carried, _ = _splits(further, np.empty(0, dtype=np.intp))
        for turn, requested in enumerate(step.requested):
            name = step_name("routes", number, turn)
            names, columns = self._routes(step, turn, stride, further)
            relation = self._binder.relation(columns)
            relations.append(f"{name} ({', '.join(names)}) AS ({relation})")
            kind = "LEFT JOIN" if turn else self.dialect.forced
            way = f"rows.node * {stride} + {self._result(requested, turn)}"
            joins.append(f"{kind} {name} AS r{turn} ON r{turn}.way = {way}")
        child = "r0.child"
        if step.has_surrogates:
            others = [f"r{turn}.child" for turn in range(1, len(step.requested))]
            last = coalesced([*others, "r0.fallback"])
            splits_on = f"r0.child = {SPLIT_OTHERS}"
            child = f"CASE WHEN {splits_on} THEN {last} ELSE r0.child END"
        wanted = [f"{child} AS node", *(f"rows.{f}" for f in self.fields.carried)]
        wanted += self._chunks(step.divides)
        wanted += [f"r0.{each}" for each in carried]
        body = f"SELECT {', '.join(wanted)} FROM {rows} AS rows {' '.join(joins)}"  # noqa: S608
        conditions = ["node >= 0"] if step.has_surrogates else []
        conditions += ["w > 0"] if step.divides else []
        if conditions:
            body = f"SELECT * FROM ({body}) AS moved WHERE {' AND '.join(conditions)}"  # noqa: S608
        keep = (
            self.dialect.keep_rows if number % _KEPT_EVERY == _KEPT_EVERY - 1 else "AS"
        )
        return [*relations, f"{step_name('level', number)} {keep} ({body})"]

    def _routes(
        self, step: Step, turn: int, stride: int, further: Sequence[Requested]
    ) -> tuple[list[str], list[tuple[str, Any]]]:
        """Return the names and columns of the routes of a split."""
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
        more, requested = _splits(further, routes.child)
        return names + more, columns + requested

    def _chunks(self, divides: bool) -> list[str]:
        """Return the weight and the case of a row, or of a fraction of it."""
        grid = self.plan.grid
        amounts = [("w", grid.step, self.fields.has_weight)]
        amounts.append(("k", grid.case_step, self.fields.has_case))
        wanted = []
        for name, step, there in amounts:
            if there and divides:
                chunk = on_grid(f"rows.{name} * r0.share", step, self._binder)
                wanted.append(
                    f"CASE WHEN r0.share IS NULL THEN rows.{name} ELSE {chunk} END "
                    f"AS {name}"
                )
            elif there:
                wanted.append(f"rows.{name}")
        return wanted

    def _result(self, requested: Requested, turn: int) -> str:
        """Return the code of a row in the column that its node splits on."""
        whens = []
        for at in distinct(requested.column[requested.column >= 0]).tolist():
            code = f"rows.a{at}"
            if self.plan.schema.columns[at].is_numeric:
                gone = f"{code} IS NULL"
                if not self.by_number[at]:
                    gone = f"{code} = {self.n_codes[at] - 1}"
                code = (
                    f"CASE WHEN {gone} THEN {NUMBER_MISSING} "
                    f"WHEN {code} > rows.threshold{turn} THEN {ABOVE} "
                    f"ELSE {AT_MOST} END"
                )
            whens.append(f"WHEN {at} THEN {code}")
        return f"CASE rows.column{turn} {' '.join(whens)} ELSE 0 END" if whens else "0"


def _splits(
    requested: Sequence[Requested], nodes: Ints
) -> tuple[list[str], list[tuple[str, Any]]]:
    """Return the names and values of the columns and thresholds of nodes."""
    names, columns = [], []
    for turn, split_request in enumerate(requested):
        names += [f"column{turn}", f"threshold{turn}"]
        columns += [
            ("i", split_request.column[nodes]),
            ("f", split_request.threshold[nodes]),
        ]
    return names, columns
