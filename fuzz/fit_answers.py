"""What a model says: predictions, counts, rules, explanations and views agree."""

from __future__ import annotations

import json
import math
import pickle
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from branchwise import Model, load
from fit_cases import Case, is_missing
from fit_laws import known_rows
from fit_trials import Refusal, fail_unless, fitted, same_bits

#: Rows of a smaller share of the weight may be too light to count.
LEAST_SHARE = 2.0**-48


def answers(model: Model, rows: Any) -> list[Any]:
    """Return all that a model predicts."""
    found = [model.predict(rows), model.apply(rows)]
    if not model.tree.is_regression:
        found.append(model.predict_proba(rows))
    return found


def check_save_load(case: Case) -> bool:
    """A model that was saved and loaded is the same, and so are its predictions."""
    model = fitted(case)
    if isinstance(model, Refusal):
        return False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        again = load(path)
    copy = pickle.loads(pickle.dumps(model))
    for other in (again, copy):
        fail_unless(model.to_bytes() == other.to_bytes(), "other bytes after loading")
    rows = known_rows(case)
    for one, other in zip(answers(model, rows), answers(again, rows), strict=True):
        same_bits(one, other, "predictions after loading")
    return True


def check_predict_in_parts(case: Case) -> bool:
    """A row gets the same predictions alone, in a chunk, and in the whole table."""
    model = fitted(case)
    if isinstance(model, Refusal):
        return False
    rows = known_rows(case)
    n = len(next(iter(rows.values())))
    whole = answers(model, rows)
    size = case.random("parts").choice([1, 2, 7]) if n < 100 else n // 7
    starts = range(0, n, size)
    parts = [
        answers(model, {name: cells[i : i + size] for name, cells in rows.items()})
        for i in starts
    ]
    for at, expected in enumerate(whole):
        got = np.concatenate([part[at] for part in parts])
        same_bits(expected, got, f"predictions in parts of {size}")
    order = list(range(n))[::-1]
    turned = answers(model, {name: [c[i] for i in order] for name, c in rows.items()})
    for expected, got in zip(whole, turned, strict=True):
        same_bits(expected[::-1], got, "predictions of rows in reverse")
    return True


def check_probabilities(case: Case) -> bool:
    """Probabilities add up to 1, and the most probable class is predicted."""
    model = fitted(case)
    if isinstance(model, Refusal):
        return False
    rows = known_rows(case)
    predicted = model.predict(rows)
    if case.is_regression:
        low, high = min(case.y), max(case.y)
        lost = _left_out(case)
        inside = (predicted >= low - lost) & (predicted <= high + lost)
        fail_unless(inside.all(), f"mean {predicted[~inside]} not in {low}..{high}")
        return True
    chances = model.predict_proba(rows)
    fail_unless(np.isfinite(chances).all(), "a probability is not finite")
    off = np.abs(chances.sum(axis=1) - 1).max()
    fail_unless(off < 1e-9, f"probabilities add up to 1 but for {off}")
    fail_unless((chances >= 0).all(), f"a probability is {chances.min()}")
    if "costs" not in case.parameters:
        position = {label: at for at, label in enumerate(model.schema.classes)}
        codes = [position[label] for label in predicted.tolist()]
        own, best = chances[np.arange(len(codes)), codes], chances.max(axis=1)
        row = int(np.argmax(best - own))
        fail_unless(
            (own >= best * (1 - 1e-6)).all(),
            f"row {row} is predicted at {own[row]} where another has {best[row]}",
        )
    importances = model.feature_importances
    fail_unless(np.isfinite(importances).all(), f"importances {importances}")
    return True


def check_recount(case: Case) -> bool:
    """Every node has the weights, cases and mean of the training rows that reach it."""
    skipped = ("class_weight", "priors", "validation_fraction")
    if any(name in case.parameters for name in skipped):
        return False
    model = fitted(case)
    if isinstance(model, Refusal):
        return False
    split = model.recipe.missing == "split"
    if split and case.differences:
        return False
    tree = model.tree
    weights = case.weights or [1.0] * case.n_rows
    total = math.fsum(weights)
    if any(0 < w < total * LEAST_SHARE for w in weights):
        return False
    rows_of: list[list[int]] = [[] for _ in range(len(tree))]
    for row, node in enumerate(model.apply(case.columns).tolist()):
        while node >= 0:
            rows_of[node].append(row)
            node = int(tree.parent[node])
    for node, rows in enumerate(rows_of):
        present = [row for row in rows if weights[row] > 0]
        fail_unless(
            tree.cases[node] == len(present),
            f"node {node} says {tree.cases[node]} cases and has {len(present)}",
        )
        if case.is_regression:
            _check_mean(case, tree, node, present, weights)
        else:
            _check_weights(case, model, node, present, weights, total)
    return True


def _check_weights(
    case: Case,
    model: Model,
    node: int,
    rows: list[int],
    weights: list[float],
    total: float,
) -> None:
    for label, said in zip(
        model.schema.classes, model.tree.weights[node].tolist(), strict=True
    ):
        found = math.fsum(weights[row] for row in rows if case.y[row] == label)
        whole = case.weights is None or all(w == int(w) for w in weights)
        slack = 0.0 if whole and total < 2**52 else total * 2.0**-51 * (len(rows) + 1)
        fail_unless(
            abs(found - said) <= slack,
            f"node {node} says weight {said} for {label!r} and has {found}",
        )


def _check_mean(
    case: Case, tree: Any, node: int, rows: list[int], weights: list[float]
) -> None:
    if not rows:
        return
    total = sum(Fraction(weights[row]) for row in rows)
    exact = sum(Fraction(weights[row]) * Fraction(case.y[row]) for row in rows) / total
    said = float(tree.mean[node])
    apart = abs(Fraction(said) - exact)
    # Whole weights are not changed, unless their total needs more than 52 bits.
    if math.fsum(weights) < 2**52 and all(w == int(w) for w in weights):
        fail_unless(
            said == float(exact) or apart <= _left_out(case),
            f"node {node} has mean {said}, not {float(exact)}",
        )
        return
    largest = max(abs(case.y[row]) for row in rows)
    fail_unless(
        apart <= Fraction(largest) * Fraction(1, 10**9),
        f"node {node} has mean {said}, not about {float(exact)}",
    )


def _left_out(case: Case) -> float:
    """Return how much a mean may be off: digits below 2^-500 of the largest number."""
    return math.ldexp(max(map(abs, case.y)), -499)


# ---------------------------------------------------------------------------- rules


def complete_rows(case: Case, model: Model) -> list[dict[str, Any]]:
    """Return rows whose values are all there and known to the model."""
    table = known_rows(case)
    rows = [
        dict(zip(table, cells, strict=True))
        for cells in zip(*table.values(), strict=True)
    ]
    columns = {column.name: column for column in model.schema.columns}

    def known(name: str, cell: Any) -> bool:
        column = columns[name]
        return not is_missing(cell) and (column.is_numeric or cell in column.categories)

    return [row for row in rows if all(known(n, c) for n, c in row.items())]


def holds(condition: Any, row: dict[str, Any]) -> bool:
    """Tell whether a row without gaps fulfils a condition."""
    cell, value = row[condition.column], condition.value
    return {
        "=": lambda: cell == value,
        "in": lambda: cell in value,
        "not in": lambda: cell not in value,
        "<=": lambda: cell <= value,
        ">": lambda: cell > value,
        "within": lambda: value[0] < cell <= value[1],
        "is known": lambda: True,
        "is missing": lambda: False,
    }[condition.op]()


def as_columns(rows: list[dict[str, Any]], names: Any) -> dict[str, list[Any]]:
    """Turn rows into columns."""
    return {name: [row[name] for row in rows] for name in names}


def check_rules(case: Case) -> bool:
    """A row without gaps fulfils one rule, and gets its prediction."""
    model = fitted(case)
    if isinstance(model, Refusal):
        return False
    rows = complete_rows(case, model)
    plain, simple = model.rules(), model.rules(simplify=True)
    fail_unless(len(plain) == model.tree.n_leaves, "not a rule for each leaf")
    if not rows:
        return False
    table = as_columns(rows, case.columns)
    predicted, nodes = model.predict(table).tolist(), model.apply(table).tolist()
    for row, label, node in zip(rows, predicted, nodes, strict=True):
        for rules in (plain, simple):
            met = [r for r in rules if all(holds(c, row) for c in r.conditions)]
            if model.tree.n_children[node]:  # a value without a branch at the node
                fail_unless(
                    not met, f"{row} stops at node {node}, but fulfils {met[:1]}"
                )
                continue
            fail_unless(len(met) == 1, f"{row} fulfils {len(met)} rules")
            fail_unless(
                met[0].node == node and met[0].label == label,
                f"{row} is predicted {label!r} at node {node}; its rule says "
                f"{met[0].label!r} at node {met[0].node}",
            )
    return True


def check_explain(case: Case) -> bool:
    """Explanations have the predictions and probabilities of predict."""
    model = fitted(case)
    if isinstance(model, Refusal):
        return False
    rows = {name: cells[-8:] for name, cells in known_rows(case).items()}
    n = len(next(iter(rows.values())))
    explained = model.explain(rows)
    told = [explained] if n == 1 else list(explained)
    same_bits(model.predict(rows).tolist(), [e.prediction for e in told], "explain")
    if not case.is_regression:
        for expected, told_row in zip(model.predict_proba(rows), told, strict=True):
            chances = list(told_row.probabilities.values())
            same_bits(expected.tolist(), chances, "probabilities of explain")
    for explanation in told:
        explanation.to_text()
        json.dumps(explanation.to_dict(), allow_nan=False)
        whole = math.fsum(ending.share for ending in explanation.endings)
        fail_unless(abs(whole - 1) < 1e-9, f"shares of a divided case: {whole}")
    return True


ANSWERS = {
    "save_load": check_save_load,
    "predict_in_parts": check_predict_in_parts,
    "probabilities": check_probabilities,
    "recount": check_recount,
    "rules": check_rules,
    "explain": check_explain,
}
