"""Views state the truth: the printed tree, alternatives, smaller models, pictures."""

from __future__ import annotations

import json
import math
import operator
from typing import Any

import numpy as np

from branchwise import BranchwiseError, Model
from fit_answers import answers, as_columns, complete_rows
from fit_cases import PLAIN_NAMES, Case
from fit_laws import deals_rows, known_rows
from fit_trials import InvariantError, Refusal, fail_unless, fitted, same_bits

#: Depth beyond which the printed tree is broken into pieces.
DEEPEST_PRINTED = 20
BOUNDS = {"<=": operator.le, ">": operator.gt, ">=": operator.ge}


def check_text(case: Case) -> bool:
    """The printed tree decides as the model does."""
    model = fitted(case)
    if isinstance(model, Refusal) or not set(case.columns) <= set(PLAIN_NAMES):
        return False
    rows = complete_rows(case, model)
    if not rows or model.tree.max_depth > DEEPEST_PRINTED or not model.tree.max_depth:
        return False
    lines = model.to_text(max_values=10**6).splitlines()
    table = as_columns(rows, case.columns)
    predicted, nodes = model.predict(table).tolist(), model.apply(table).tolist()
    for row, label, node in zip(rows, predicted, nodes, strict=True):
        leaf = _printed_leaf(lines, row)
        if model.tree.n_children[node]:
            fail_unless(leaf is None, f"{row} stops, but is printed at {leaf!r}")
            continue
        fail_unless(leaf is not None, f"{row} has no leaf in print")
        if case.is_regression:
            said = float(str(leaf).partition(" (")[0].replace(",", ""))
            close = math.isclose(said, label, rel_tol=1e-3, abs_tol=1e-300)
            fail_unless(close, f"{row}: printed {leaf!r}, predicted {label}")
        else:
            told = str(leaf).rpartition(" (")[0]
            fail_unless(
                told == str(label), f"{row}: printed {leaf!r}, predicted {label!r}"
            )
    return True


def _printed_leaf(lines: list[str], row: dict[str, Any]) -> str | None:
    """Follow a row down the printed lines."""
    depth = 0
    for line in lines:
        bars = line.count("|   ")
        if bars < depth:
            return None  # every branch of the node was passed
        if bars > depth:
            continue
        question, _, leaf = line[4 * bars :].partition(":")
        if _asked(question, row):
            if leaf:
                return leaf.strip()
            depth += 1
    return None


def _asked(question: str, row: dict[str, Any]) -> bool:
    name, op, value = question.split(" ", 2)
    cell = row[name]
    if op == "not":  # in {...}
        return not _asked(f"{name} {value}", row)
    if op in BOUNDS:
        return bool(BOUNDS[op](cell, float(value)))
    if op == "is":
        return value == "known"
    values = value[1:-1].split(", ") if op == "in" else [value]
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return cell in map(float, values)
    return str(cell) in values


def check_views(case: Case) -> bool:
    """No view fails, and smaller models still predict."""
    model = fitted(case)
    if isinstance(model, Refusal) or len(model.tree) > 300:
        return False
    json.dumps(model.view(), allow_nan=False)
    for style in ("quinlan", "box", "markdown"):
        model.to_text(style=style, missing=True, empty_branches=True)
    for made in (model.to_svg, model.to_dot, model.to_mermaid, model.to_html):
        made()
    rules = model.rules()
    for rule in rules:
        rule.sentence()
    json.loads(rules.to_json())
    rows = known_rows(case)
    merged = model.merge_same_leaves()
    told, again = model.predict(rows), merged.predict(rows)
    if case.is_regression:  # means of several leaves are rounded
        close = np.allclose(told, again, rtol=1e-9, atol=0)
        fail_unless(close, f"predictions of merged leaves: {told} against {again}")
    else:
        same_bits(told, again, "predictions of merged leaves")
    for alpha in (0.0, 0.01):
        pruned = model.prune("cost-complexity", ccp_alpha=alpha)
        fail_unless(len(pruned.tree) <= len(model.tree), "pruning made nodes")
        answers(pruned, rows)
    model.pruning_path()
    _check_steps(case, model)
    return True


def _check_steps(case: Case, model: Model) -> None:
    """The worked solution is written, or refused with a reason."""
    weighted = "class_weight" in case.parameters or "priors" in case.parameters
    if weighted or deals_rows(case):
        return
    try:
        model.steps(case.columns, case.y, sample_weight=case.weights).to_text()
    except BranchwiseError:
        if case.is_regression:
            return
        raise InvariantError(
            "the worked solution is refused for the very rows"
        ) from None


def check_what_if(case: Case) -> bool:
    """A row that is changed as told gets the wanted prediction."""
    model = fitted(case)
    if isinstance(model, Refusal) or case.is_regression or len(model.tree) > 100:
        return False
    table = known_rows(case)
    rng = case.random("what if")
    at = rng.randrange(len(next(iter(table.values()))))
    row = {name: cells[at] for name, cells in table.items()}
    target = rng.choice(model.schema.classes)
    found = model.what_if(row, target, how_many=2)
    one = {name: [cell] for name, cell in row.items()}
    same_bits(model.predict(one).tolist(), [found.prediction], "answer to the row")
    found.to_text()
    for other in found.alternatives:
        changed = {name: [other.row[name]] for name in row}
        same_bits(model.predict(changed).tolist(), [target], "answer after the change")
        moved = {c.column for c in other.changes}
        kept = [n for n in row if n not in moved and _apart(row[n], other.row[n])]
        fail_unless(not kept, f"{kept} changed, too")
    return True


def _apart(one: Any, other: Any) -> bool:
    return one != other and not (one != one and other is None)


VIEWS = {"text": check_text, "views": check_views, "what_if": check_what_if}
