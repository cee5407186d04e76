"""Export to JSON: rules that a program of one page can apply; see ``docs/export.md``.

Rules do not repeat long paths from the root: a deep tree is divided into pieces, one
for each split at the limit of depth, and a rule may lead on to the rules of another
piece. ``rules_reader.py`` applies them, and verifies the exports.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from branchwise.export.base import Options, Target, program_runner
from branchwise.export.plan import Field, Node, Plan, PlanSplit
from branchwise.tree.splits import ABOVE, AT_MOST, EVERY_BRANCH, STOP

#: A tree with more levels of splits is divided into pieces.
_MOST_LEVELS = 100


def write(plan: Plan, options: Options) -> bytes:
    """Write the rules."""
    trees = [_rules(tree) for tree in plan.trees or (plan,)]
    in_pieces = any("parts" in rules for rules in trees)
    document: dict[str, Any] = {
        "format": "branchwise-rules",
        "version": _version(plan, in_pieces),
        "about": plan.about,
        "target": plan.target,
        "predicts": "numbers" if plan.is_regression else "classes",
        "classes": list(plan.classes),
        "costs": plan.costs,
        "missing": "refused" if plan.rejects_missing else "allowed",
        "unseen": "refused" if plan.rejects_unseen else "allowed",
        "columns": [_column(field) for field in plan.fields],
    }
    if plan.trees:
        document |= _combination(plan) | {"trees": trees}
    else:
        document |= trees[0]
    # Pieces are for programs alone: indented, they would be three times as large.
    indent = None if in_pieces else int(options["indent"]) or None
    return (json.dumps(document, indent=indent, allow_nan=False) + "\n").encode()


def _column(field: Field) -> dict[str, Any]:
    """Return the type of a column, and how it is derived, if it is."""
    if not field.numeric:
        return {"name": field.name, "type": field.kind, "values": list(field.values)}
    if field.feature is not None:
        how = {"of": field.feature.of, "feature": field.feature.feature}
        on = {} if field.feature.on is None else {"on": field.feature.on}
        return {"name": field.name, "type": "derived", **how, **on}
    if field.date is not None:
        return {"name": field.name, "type": "date", **field.date.fields}
    return {"name": field.name, "type": "number"}


def _version(plan: Plan, in_pieces: bool) -> int:
    if plan.derived:
        return 5
    if plan.trees:
        return 4 if plan.weights or plan.initial else 3
    return 2 if in_pieces else 1


def _combination(plan: Plan) -> dict[str, Any]:
    """Return how trees are added up."""
    if plan.initial:
        return {"initial": list(plan.initial), "link": plan.link}
    voting = {"voting": "hard" if plan.votes else "soft"}
    if plan.weights:
        return voting | {"weights": list(plan.weights), "divisor": plan.divisor}
    return voting


def _rules(plan: Plan) -> dict[str, Any]:
    """Return the rules of a tree, and of its further pieces if there are any."""
    rules, *pieces = _pieces(plan)
    return {"rules": rules} | ({"parts": pieces} if pieces else {})


def _pieces(plan: Plan) -> list[list[dict[str, Any]]]:
    """Return the rules of each piece, beginning with that of the root."""
    ways: list[tuple[dict[str, Any], ...]] = [()] * len(plan.nodes)
    roots = _roots(plan)
    piece = [0] * len(plan.nodes)
    pieces: list[list[dict[str, Any]]] = [[]]
    for position, node in enumerate(plan.nodes):
        if position in roots:
            leads = {"part": len(pieces) - 1}
            rule = {"node": position, "if": [*ways[position]], "then": leads}
            pieces[piece[position]].append(rule)
            ways[position], piece[position] = (), len(pieces)
            pieces.append([])
        ends = _end(plan, node)
        if ends is not None:
            then = _prediction(plan, node)
            rule = {"node": position, "if": [*ways[position], *ends], "then": then}
            pieces[piece[position]].append(rule)
        if node.split is not None:
            for branch in range(len(node.split.branches)):
                step = _condition(plan, node.split, branch)
                ways[node.child(branch)] = (*ways[position], step)
                piece[node.child(branch)] = piece[position]
        ways[position] = ()
    return pieces


def _roots(plan: Plan) -> set[int]:
    """Return the nodes below the root at which a piece begins."""
    if max(plan.depths) <= _MOST_LEVELS:
        return set()
    splitting = (p for p, node in enumerate(plan.nodes) if node.split is not None)
    return set(splitting) - {0}


def _prediction(plan: Plan, node: Node) -> dict[str, Any]:
    if plan.is_regression:
        return {"number": node.number}
    label = plan.classes[node.label]
    return {"class": label, "probabilities": list(node.probabilities)}


def _condition(plan: Plan, split: PlanSplit, branch: int) -> dict[str, Any]:
    """Return what a case must have to go down a branch."""
    condition = _wanted(plan, split, set(split.branches[branch]))
    condition["missing"] = _share(split.missing_to, branch, split)
    if not plan.fields[split.field].numeric:
        condition["unseen"] = _share(split.unseen_to, branch, split)
    if split.surrogates:
        condition["if_missing"] = [
            {
                "this": _wanted(plan, s, set(s.branches[branch])),
                "other": _wanted(plan, s, set(s.branches[1 - branch])),
            }
            for s in split.surrogates
        ]
    return condition


def _share(to: int, branch: int, split: PlanSplit) -> float:
    if to == EVERY_BRANCH:
        return split.shares[branch]
    return 1 if to == branch else 0


def _end(plan: Plan, node: Node) -> list[dict[str, Any]] | None:
    """Return the condition that ends a case at a node: None if none ends there."""
    split = node.split
    if split is None:
        return []
    field = plan.fields[split.field]
    codes = (AT_MOST, ABOVE) if field.numeric else range(len(field.values))
    absent = set(codes) - set(split.branch_of)
    missing = split.missing_to == STOP and not plan.rejects_missing
    unseen = split.unseen_to == STOP and not plan.rejects_unseen
    if not absent and not missing and (field.numeric or not unseen):
        return None
    condition = _wanted(plan, split, absent)
    condition["missing"] = int(missing)
    if not field.numeric:
        condition["unseen"] = int(unseen)
    return [condition]


def _wanted(plan: Plan, split: PlanSplit, codes: set[int]) -> dict[str, Any]:
    """Return the condition that the value has one of these codes."""
    field = plan.fields[split.field]
    condition: dict[str, Any] = {"column": field.name}
    if not field.numeric:
        condition["values"] = [field.values[code] for code in sorted(codes)]
    elif len(codes) != 1:
        condition["known"] = bool(codes)
    elif AT_MOST in codes:
        condition["at_most"] = _bound(field, split.threshold)
    else:
        condition["above"] = _bound(field, split.threshold)
    return condition


def _bound(field: Field, threshold: float | None) -> float | str | None:
    """Return a threshold: a number, or the last date up to it."""
    if field.date is None or threshold is None:
        return threshold
    return field.date.show(threshold)


_RUNNER = program_runner(
    "rules_reader.py in a Python process",
    lambda _: [sys.executable, "-I", "rules_reader.py", "rules.json"],
    "rules_reader.py.txt",
    "rules.json",
)

TARGET = Target(
    "json",
    ".json",
    write,
    lambda _: [_RUNNER],
    {"indent": ("1", "0", "2", "4")},
)
