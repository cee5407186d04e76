"""Splits of a level as relations to join rows with, or as CASE expressions.

Rows are sent down the levels of a tree within one statement. Every level is a join
with the routes of its nodes: which code of the column that a node splits on leads to
which child, with which share of the case. A route also has the split of that child,
so that the next level is one join, too. Where few nodes lead to open ones, a CASE
expression is used instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, distinct
from branchwise.data.table_schema import Column
from branchwise.engines.sql.connections import Binder, coalesced, searched
from branchwise.engines.sql.queries import Attribute, Writer
from branchwise.tree.splits import ABOVE, AT_MOST, EVERY_BRANCH, Router, Splits

#: The code of a missing number at a threshold, beside AT_MOST and ABOVE.
NUMBER_MISSING = 2
#: The child of a row with a missing value that surrogates may route.
SPLIT_OTHERS = -2
#: The child of rows that are dropped.
NOWHERE = -1


class Requested(NamedTuple):
    """The splits of nodes: a column (-1: none) and a threshold (NaN: none)."""

    column: Ints
    threshold: Floats


class Routes(NamedTuple):
    """The children that codes lead to at a node; a share of NaN is a whole case."""

    node: Ints
    code: Ints
    child: Ints
    share: Floats

    def renamed(self, new: Ints, dropping: bool) -> Routes:
        """Renumber the children; ``dropping`` those that lead to none."""
        child = np.where(self.child >= 0, new[self.child], self.child)
        routes = self._replace(child=child)
        return routes.select(child != NOWHERE) if dropping else routes

    def select(self, kept: NDArray[np.bool_]) -> Routes:
        """Keep some of the routes."""
        return Routes(
            self.node[kept], self.code[kept], self.child[kept], self.share[kept]
        )


@dataclass(frozen=True)
class Step:
    """One level: the splits of nodes and their surrogates, the routes of codes, and
    the routes of rows that no split can place.
    """  # noqa: D205

    requested: tuple[Requested, ...]
    routes: tuple[Routes, ...]
    fallback: Ints
    n_children: int
    has_surrogates: bool = False

    def undivided(self) -> Step:
        """Leave out the routes of fractional cases, where no case can be divided."""
        first = self.routes[0]
        whole = first.select(np.isnan(first.share))
        return replace(self, routes=(whole, *self.routes[1:]))

    @property
    def divides(self) -> bool:
        """Whether cases go down more than one branch."""
        return bool((~np.isnan(self.routes[0].share)).any())

    def retained(self, nodes: Ints) -> Step:
        """Keep only some of the children, renumbered in that order."""
        new = np.full(self.n_children, NOWHERE, dtype=np.intp)
        new[nodes] = np.arange(len(nodes))
        dropping = not self.has_surrogates
        routes = tuple(r.renamed(new, dropping) for r in self.routes)
        fallback = np.where(self.fallback >= 0, new[self.fallback], self.fallback)
        return replace(self, routes=routes, fallback=fallback, n_children=len(nodes))


def renumbering(n_nodes: int, nodes: Ints) -> Step:
    """Return the step that only keeps some nodes, without splits."""
    nothing = Requested(np.full(n_nodes, -1, dtype=np.intp), np.full(n_nodes, np.nan))
    every = np.arange(n_nodes)
    routes = Routes(every, np.zeros(n_nodes, np.intp), every, np.full(n_nodes, np.nan))
    fallback = np.full(n_nodes, NOWHERE, dtype=np.intp)
    return Step((nothing,), (routes,), fallback, n_nodes).retained(nodes)


def missing_codes(columns: Sequence[Column], of: Ints) -> Ints:
    """Return the codes of missing values at nodes that split on these columns."""
    codes = [NUMBER_MISSING if c.is_numeric else c.missing_code for c in columns]
    return np.array([*codes, 0], dtype=np.intp)[of]


def step_of(columns: Sequence[Column], splits: Splits, decided: bool = False) -> Step:
    """Return the step of splits; ``decided`` leaves out missing values."""
    first = np.cumsum(splits.n_branches) - splits.n_branches
    node = np.repeat(np.arange(len(splits.column)), splits.n_branches)
    owner = np.repeat(np.arange(len(node)), splits.n_codes)
    known = Routes(node[owner], splits.codes, owner, np.full(len(owner), np.nan))
    nowhere = np.full(len(splits.column), NOWHERE, dtype=np.intp)
    requested = Requested(splits.column, splits.threshold)
    n_children = len(splits.sizes)
    if decided:
        return Step((requested,), (known,), nowhere, n_children)
    if splits.surrogates is not None:
        return _with_surrogates(columns, splits, requested, known, first)
    missing = missing_codes(columns, splits.column)
    on_values = np.array([*(not c.is_numeric for c in columns), False])[splits.column]
    unseen_to = np.where(on_values, splits.unseen_to, NOWHERE)
    routes = _joined(
        known,
        _special(columns, splits, first, splits.missing_to, missing),
        _special(columns, splits, first, unseen_to, missing + 1),
    )
    return Step((requested,), (routes,), nowhere, n_children)


def _joined(*routes: Routes) -> Routes:
    return Routes(*map(np.concatenate, zip(*routes, strict=True)))


def _special(
    columns: Sequence[Column], splits: Splits, first: Ints, to: Ints, code: Ints
) -> Routes:
    """Return the routes of one code of each node, down one branch or all of them."""
    split = splits.n_branches > 0
    one = np.flatnonzero(split & (to >= 0))
    down = Routes(one, code[one], first[one] + to[one], np.full(len(one), np.nan))
    every = np.flatnonzero(split & (to == EVERY_BRANCH))
    if not len(every):
        return down
    origin, target, share = Router(columns, splits).every_branch(every)
    owner = every[origin]
    return _joined(down, Routes(owner, code[owner], target, share))


def _with_surrogates(
    columns: Sequence[Column],
    splits: Splits,
    requested: Requested,
    known: Routes,
    first: Ints,
) -> Step:
    surrogates = splits.surrogates
    if surrogates is None:
        raise AssertionError("only for splits that have surrogates")
    split = np.flatnonzero(splits.n_branches > 0)
    code = missing_codes(columns, splits.column)[split]
    unknown = np.full(len(split), np.nan)
    others = Routes(split, code, np.full(len(split), SPLIT_OTHERS), unknown)
    fallback = np.where(
        splits.missing_to >= 0, first + splits.missing_to, splits.missing_to
    )
    split_requests, routes = [requested], [_joined(known, others)]
    for turn in range(int(surrogates.number.max(initial=0))):
        nodes = np.flatnonzero(surrogates.number > turn)
        which = surrogates.first[nodes] + turn
        column = np.full(len(splits.column), -1, dtype=np.intp)
        threshold = np.full(len(splits.column), np.nan)
        column[nodes] = surrogates.splits.column[which]
        threshold[nodes] = surrogates.splits.threshold[which]
        split_requests.append(Requested(column, threshold))
        routes.append(_surrogate_routes(surrogates.splits, nodes, which, first))
    n_children = len(splits.sizes)
    return Step(tuple(split_requests), tuple(routes), fallback, n_children, True)


def _surrogate_routes(splits: Splits, nodes: Ints, which: Ints, first: Ints) -> Routes:
    """Return the routes of one surrogate of each node."""
    sides = np.stack([2 * which, 2 * which + 1], axis=1).ravel()
    n_codes = splits.n_codes[sides]
    begin = (np.cumsum(splits.n_codes) - splits.n_codes)[sides]
    owner = np.repeat(np.arange(len(sides)), n_codes)
    within = np.arange(len(owner)) - (np.cumsum(n_codes) - n_codes)[owner]
    node = nodes[owner // 2]
    child = first[node] + owner % 2
    codes = splits.codes[begin[owner] + within]
    return Routes(node, codes, child, np.full(len(owner), np.nan))


#: Expressions may be nested a thousand times in DuckDB; a level takes two or three.
_DEEPEST = 300
#: Nodes of every level for which expressions are always used: deep trees have few.
_FEW_COLUMNS = 3

#: By level: for every node that leads to open ones the codes that lead to each child.
Ways = list[dict[int, dict[int, list[int]]]]


def ways_down(steps: Sequence[Step], most_nodes: int) -> Ways | None:
    """Return the nodes that lead to open ones; None if these are too many."""
    if len(steps) > _DEEPEST or any(s.divides or s.has_surrogates for s in steps):
        return None
    most_nodes = max(most_nodes, _FEW_COLUMNS * len(steps))
    wanted: set[int] | None = None
    ways: Ways = []
    for step in reversed(steps):
        level: dict[int, dict[int, list[int]]] = {}
        routes = step.routes[0]
        kept = np.arange(len(routes.node))
        if wanted is not None:
            kept = np.flatnonzero(np.isin(routes.child, list(wanted)))
        if len(kept) > 4 * most_nodes:
            return None
        for at in kept.tolist():
            node, child = int(routes.node[at]), int(routes.child[at])
            level.setdefault(node, {}).setdefault(child, []).append(
                int(routes.code[at])
            )
        most_nodes -= len(level)
        if most_nodes < 0:
            return None
        wanted = set(level)
        ways.append(level)
    return ways[::-1]


def path(
    steps: Sequence[Step],
    ways: Ways,
    attributes: Sequence[Attribute],
    binder: Binder,
) -> str:
    """Return the expression for the node of a row after some levels, of which the
    first is that of its ``node`` now; NULL where it is in none of them.
    """  # noqa: D205
    below: Mapping[int, str] | None = None
    for step, level in zip(reversed(steps), reversed(ways), strict=True):
        here = {}
        for node, children in level.items():
            column = int(step.requested[0].column[node])
            threshold = float(step.requested[0].threshold[node])
            whens = []
            for child, codes in children.items():
                ends = str(child) if below is None else below[child]
                if column < 0:
                    here[node] = ends
                    break
                condition = _condition(attributes[column], threshold, codes, binder)
                whens.append(f"WHEN {condition} THEN {ends}")
            else:
                here[node] = f"CASE {' '.join(whens)} END"
        below = here
    if not below:
        return "NULL"
    nodes = sorted(below)
    if len(steps[0].requested[0].column) == 1:
        return below[0]  # there is only one node
    return searched("node", [str(n) for n in nodes], [below[n] for n in nodes], "NULL")


def _condition(
    attribute: Attribute, threshold: float, codes: Sequence[int], binder: Binder
) -> str:
    """Return the test for some of the codes of an attribute."""
    if not attribute.is_numeric:
        return f"{attribute.name} IN ({', '.join(map(str, codes))})"
    tests = [attribute.missing] if NUMBER_MISSING in codes else []
    known = f"NOT ({attribute.missing})"
    if {AT_MOST, ABOVE} <= set(codes):
        tests.append(known)
    elif threshold == threshold:
        # Bound only where it is used: databases reject unused values.
        for code, sign in ((AT_MOST, "<="), (ABOVE, ">")):
            if code in codes:
                tests.append(
                    f"{attribute.name} {sign} {binder.bind(threshold)} AND {known}"
                )
    return " OR ".join(tests)


#: The most levels of joins within one query.
MOST_JOINED_LEVELS = 60
#: Levels after which SQLite, which joins at most 64 tables at once, keeps the rows.
_KEPT_EVERY = 8


class TooDeep(Exception):  # noqa: N818  (caught where it can be said in words)
    """A tree has more levels than a query can join."""


def in_nodes(
    writer: Writer, binder: Binder, start: str, steps: Sequence[Step]
) -> tuple[str, str]:
    """Return the steps of a query for rows in their nodes, and the name of the last."""
    if not steps:
        return "", start
    ways = ways_down(steps, writer.dialect.nodes_in_case)
    if ways is not None:
        return _by_case(writer, binder, start, steps, ways)
    if len(steps) > MOST_JOINED_LEVELS:
        raise TooDeep
    return _by_joins(writer, binder, start, steps)


def _by_case(
    writer: Writer, binder: Binder, start: str, steps: Sequence[Step], ways: Ways
) -> tuple[str, str]:
    paths, rows = [], start
    for first in range(0, len(steps), writer.dialect.levels_in_case):
        chunk = slice(first, first + writer.dialect.levels_in_case)
        node = path(steps[chunk], ways[chunk], writer.attributes, binder)
        paths.append((f'"branchwise placed {first}"', rows, node))
        rows = paths[-1][0]
    return writer.rendered("paths.sql", binder, paths=paths), rows


#: The columns of a relation by name: the type of each, and its values.
Relation = dict[str, tuple[str, Any]]


def _by_joins(
    writer: Writer, binder: Binder, start: str, steps: Sequence[Step]
) -> tuple[str, str]:
    stride = max([NUMBER_MISSING + 1, *(n + 1 for n in writer.n_codes)])
    levels = []
    has_splits = False
    for number, step in enumerate(steps):
        # Rows routed by surrogates come by several joins: splits are added later.
        carries = number + 1 < len(steps) and not step.has_surrogates
        further = steps[number + 1].requested if carries else ()
        every = np.arange(len(step.requested[0].column))
        turns = range(len(step.requested))
        levels.append(
            {
                "step": step,
                "n_nodes": len(every),
                "nodes": ("i", every),
                "splits": {} if has_splits else _splits(step.requested, every),
                "columns": [_split_on(writer, each) for each in step.requested],
                "routes": [_routes(step, turn, stride, further) for turn in turns],
                "further": list(_splits(further, every[:0])),
                "last_child": coalesced(
                    [*(f"r{turn}.child" for turn in turns[1:]), "r0.fallback"]
                ),
                "is_kept": number % _KEPT_EVERY == _KEPT_EVERY - 1,
            }
        )
        has_splits = carries
    codes = {"NUMBER_MISSING": NUMBER_MISSING, "ABOVE": ABOVE, "AT_MOST": AT_MOST}
    codes["SPLIT_OTHERS"] = SPLIT_OTHERS
    written = writer.rendered(
        "joins.sql", binder, levels=levels, start=start, stride=stride, **codes
    )
    return written, f'"branchwise level {len(steps) - 1}"'


def _split_on(writer: Writer, requested: Requested) -> list[Attribute]:
    used = distinct(requested.column[requested.column >= 0])
    return [writer.attributes[at] for at in used.tolist()]


def _routes(
    step: Step, turn: int, stride: int, further: Sequence[Requested]
) -> Relation:
    """Return the routes of a split, with the splits of the children."""
    routes = step.routes[turn]
    relation: Relation = {
        "way": ("i", routes.node * stride + routes.code),
        "child": ("i", routes.child),
    }
    if turn == 0 and step.divides:
        relation["share"] = ("f", routes.share)
    if turn == 0 and step.has_surrogates:
        relation["fallback"] = ("i", step.fallback[routes.node])
    return relation | _splits(further, routes.child)


def _splits(requested: Sequence[Requested], nodes: Ints) -> Relation:
    """Return the columns and thresholds of nodes."""
    relation: Relation = {}
    for turn, request in enumerate(requested):
        relation[f"column{turn}"] = ("i", request.column[nodes])
        relation[f"threshold{turn}"] = ("f", request.threshold[nodes])
    return relation
