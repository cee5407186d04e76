"""Export to JSON: rules that a program of a page can follow.

There is a rule for every node at which a case can end. A rule has one condition for
each question on the way, and each condition gives a case a share: 1 where it is met, 0
where it is not, and ``missing`` or ``unseen`` where the value is missing or none of the
column's values. The share of a case in a rule is the product of its conditions', from
left to right. Unless cases are divided, exactly one rule has a share of 1.

No rule repeats a long way from the root: a deep tree is cut into parts, one for each
question, and a rule may lead on to the rules of another part. These begin with the
share that the case has so far.
``rules_reader.py`` is such a program, and the one that verifies.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from branchwise.export.base import Answer, Options, Runner, Target, always, run_program
from branchwise.export.plan import (
    ABOVE,
    AT_MOST,
    EVERY_BRANCH,
    STOP,
    Field,
    Node,
    Plan,
    Question,
    Row,
)

#: A tree with more levels of questions is cut into parts.
_MOST_LEVELS = 100


def write(plan: Plan, options: Options) -> bytes:
    """Write the rules."""
    rules, *parts = _parts(plan)
    document: dict[str, Any] = {
        "format": "branchwise-rules",
        "version": 2 if parts else 1,
        "about": plan.about,
        "target": plan.target,
        "predicts": "numbers" if plan.predicts_numbers else "classes",
        "classes": list(plan.classes),
        "costs": plan.costs,
        "missing": "refused" if plan.refuses_missing else "allowed",
        "unseen": "refused" if plan.refuses_unseen else "allowed",
        "columns": [
            {"name": f.name, "type": f.kind, "values": list(f.values)}
            if not f.numeric
            else {"name": f.name, "type": "number"}
            for f in plan.fields
        ],
        "rules": rules,
    }
    indent = int(options["indent"]) or None
    if parts:
        # For programs alone: indented, it would be three times as large.
        document["parts"] = parts
        indent = None
    return (json.dumps(document, indent=indent, allow_nan=False) + "\n").encode()


def _parts(plan: Plan) -> list[list[dict[str, Any]]]:
    """Return the rules of each part, beginning with that of the root."""
    ways: list[tuple[dict[str, Any], ...]] = [()] * len(plan.nodes)
    roots = _roots(plan)
    part = [0] * len(plan.nodes)
    parts: list[list[dict[str, Any]]] = [[]]
    for position, node in enumerate(plan.nodes):
        if position in roots:
            leads = {"part": len(parts) - 1}
            rule = {"node": position, "if": [*ways[position]], "then": leads}
            parts[part[position]].append(rule)
            ways[position], part[position] = (), len(parts)
            parts.append([])
        ends = _end(plan, node)
        if ends is not None:
            parts[part[position]].append(
                {"node": position, "if": [*ways[position], *ends], **_then(plan, node)}
            )
        if node.question is not None:
            for branch in range(len(node.question.branches)):
                step = _condition(plan, node.question, branch)
                ways[node.child(branch)] = (*ways[position], step)
                part[node.child(branch)] = part[position]
        ways[position] = ()
    return parts


def _roots(plan: Plan) -> set[int]:
    """Return the nodes below the root at which a part begins."""
    depth = [0] * len(plan.nodes)
    for position, parent in enumerate(plan.parents):
        if parent >= 0:
            depth[position] = depth[parent] + 1
    if max(depth) <= _MOST_LEVELS:
        return set()
    asking = (p for p, node in enumerate(plan.nodes) if node.question is not None)
    return set(asking) - {0}


def _then(plan: Plan, node: Node) -> dict[str, Any]:
    if plan.predicts_numbers:
        return {"then": {"number": node.number}}
    then = {"class": plan.classes[node.label], "probabilities": list(node.chances)}
    return {"then": then}


def _condition(plan: Plan, question: Question, branch: int) -> dict[str, Any]:
    """Return what a case must have to go down a branch."""
    condition = _wanted(plan, question, set(question.branches[branch]))
    condition["missing"] = _share(question.missing_to, branch, question)
    if not plan.fields[question.field].numeric:
        condition["unseen"] = _share(question.unseen_to, branch, question)
    if question.surrogates:
        condition["if_missing"] = [
            {
                "this": _wanted(plan, s, set(s.branches[branch])),
                "other": _wanted(plan, s, set(s.branches[1 - branch])),
            }
            for s in question.surrogates
        ]
    return condition


def _share(to: int, branch: int, question: Question) -> float:
    if to == EVERY_BRANCH:
        return question.shares[branch]
    return 1 if to == branch else 0


def _end(plan: Plan, node: Node) -> list[dict[str, Any]] | None:
    """Return the condition that ends a case at a node: None if none ends there."""
    question = node.question
    if question is None:
        return []
    field = plan.fields[question.field]
    absent = set(_codes(field)) - set(question.branch_of)
    missing = question.missing_to == STOP and not plan.refuses_missing
    unseen = question.unseen_to == STOP and not plan.refuses_unseen
    if not absent and not missing and (field.numeric or not unseen):
        return None
    condition = _wanted(plan, question, absent)
    condition["missing"] = int(missing)
    if not field.numeric:
        condition["unseen"] = int(unseen)
    return [condition]


def _codes(field: Field) -> Sequence[int]:
    return (AT_MOST, ABOVE) if field.numeric else range(len(field.values))


def _wanted(plan: Plan, question: Question, codes: set[int]) -> dict[str, Any]:
    """Return the condition that the value has one of these codes."""
    field = plan.fields[question.field]
    condition: dict[str, Any] = {"column": field.name}
    if not field.numeric:
        condition["values"] = [field.values[code] for code in sorted(codes)]
    elif len(codes) != 1:
        condition["known"] = bool(codes)
    elif AT_MOST in codes:
        condition["at_most"] = question.cut
    else:
        condition["above"] = question.cut
    return condition


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Answer]:
    reader = (files("branchwise.export") / "rules_reader.py").read_bytes()
    command = [sys.executable, "-I", "rules_reader.py", "rules.json"]
    named = {"rules_reader.py": reader, "rules.json": content}
    return run_program(command, named, rows, plan)


_RUNNER = Runner("rules_reader.py in a Python process", always, _run)

TARGET = Target(
    "json", ".json", write, lambda _: [_RUNNER], {"indent": ("1", "0", "2", "4")}
)
