"""The node of a row as one expression: CASE in CASE, down to the open nodes alone.

Where few nodes lead to open ones this beats joins; a chain of joins is also planned
anew for every level, which takes a database ever longer. Cases that are divided, or
that other columns place, cannot be told by one such expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.engines.sql_dialects import Binder, searched
from branchwise.engines.sql_routes import NUMBER_MISSING, Step
from branchwise.splits import ABOVE, AT_MOST

#: Expressions may be nested a thousand times in DuckDB; a level takes two or three.
_DEEPEST = 300
#: Nodes of every level that may always lead to open ones: a deep tree is a narrow one.
_NARROW = 3

#: By level: for every node that leads to open ones the codes that lead to each child.
Ways = list[dict[int, dict[int, list[int]]]]


@dataclass(frozen=True)
class Attribute:
    """How an attribute is compared: by its code, or as a number, missing or not."""

    name: str
    is_numeric: bool
    missing: str


def ways_down(steps: Sequence[Step], most_nodes: int) -> Ways | None:
    """Return the nodes that lead to open ones; None if these are too many."""
    if len(steps) > _DEEPEST or any(s.divides or s.has_surrogates for s in steps):
        return None
    most_nodes = max(most_nodes, _NARROW * len(steps))
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
            column = int(step.asked[0].column[node])
            cut = float(step.asked[0].cut[node])
            whens = []
            for child, codes in children.items():
                ends = str(child) if below is None else below[child]
                if column < 0:
                    here[node] = ends
                    break
                condition = _condition(attributes[column], cut, codes, binder)
                whens.append(f"WHEN {condition} THEN {ends}")
            else:
                here[node] = f"CASE {' '.join(whens)} END"
        below = here
    if not below:
        return "NULL"
    nodes = sorted(below)
    if len(steps[0].asked[0].column) == 1:
        return below[0]  # all rows are in the one node that there is
    return searched("node", [str(n) for n in nodes], [below[n] for n in nodes], "NULL")


def _condition(
    attribute: Attribute, cut: float, codes: Sequence[int], binder: Binder
) -> str:
    """Return the test for some of the codes of an attribute."""
    if not attribute.is_numeric:
        return f"{attribute.name} IN ({', '.join(map(str, codes))})"
    tests = [attribute.missing] if NUMBER_MISSING in codes else []
    known = f"NOT ({attribute.missing})"
    if {AT_MOST, ABOVE} <= set(codes):
        tests.append(known)
    elif cut == cut:
        # Bound where it is used alone: databases refuse what no mark stands for.
        for code, sign in ((AT_MOST, "<="), (ABOVE, ">")):
            if code in codes:
                tests.append(f"{attribute.name} {sign} {binder.bind(cut)} AND {known}")
    return " OR ".join(tests)
