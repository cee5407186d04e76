"""Trees held against plain implementations, and splits against all possible ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import c45_comparison
import naive
import naive_c45
import random_tables
from fit_cases import Case, is_missing
from fit_tables import family
from fit_trials import InvariantError, Refusal, fail_unless, fitted

#: What the plain implementations know.
NAIVE = set(naive.Settings.__dataclass_fields__)
NAIVE_C45 = {"confidence", "min_samples_branch", "prune", "raise_subtrees", "threshold"}
#: Rows that an oracle takes.
MOST_ROWS = 45
#: Weights further apart, or sums of them further from 1, are not for oracles.
WIDEST, LIGHTEST = 1e6, 1e-2
#: Categories of which all groupings are tried.
MOST_GROUPED = 8


def _plain_table(case: Case) -> tuple[list[dict[str, Any]], dict[str, Any]] | None:
    """Return rows and columns as the plain implementations have them."""
    columns: dict[str, Any] = {}
    cells_of: dict[str, list[Any]] = {}
    for name, cells in case.columns.items():
        kind = family(cells)
        if kind not in ("text", "whole", "number"):
            return None
        if kind == "text":
            columns[name] = sorted({c for c in cells if not is_missing(c)})
            cells_of[name] = [None if is_missing(c) else c for c in cells]
            continue
        if any(
            not math.isfinite(c) or abs(c) > 1e300 for c in cells if not is_missing(c)
        ):
            return None
        columns[name] = None
        cells_of[name] = [None if is_missing(c) else float(c) for c in cells]
    rows = [
        dict(zip(cells_of, row, strict=True))
        for row in zip(*cells_of.values(), strict=True)
    ]
    return rows, columns


def _plainer(case: Case, allowed: set[str], weighted: bool) -> Case:
    """Return the case with no more parameters and rows than an oracle can take."""
    parameters = {k: v for k, v in case.parameters.items() if k in allowed}
    given = [w for w in case.weights or [] if w > 0]
    keep = weighted and given and max(given) / min(given) < WIDEST
    total = math.fsum(given)
    weights = case.weights if keep and LIGHTEST < total < 1 / LIGHTEST else None
    made = replace(case, parameters=parameters, weights=weights)
    return made.take(range(min(case.n_rows, MOST_ROWS)))


def check_naive(case: Case) -> bool:
    """ID3 and C4.5 grow the trees of the plain implementations."""
    case = replace(case, y=[f"class {label}" for label in case.y])
    if 0 < case.parameters.get("min_gain", 0) < 1e-9:
        return False  # below what the plain implementations tell from no gain
    if case.estimator == "ID3Classifier":
        case = _plainer(case, NAIVE, weighted=True)
        plain = _plain_table(case)
        return plain is not None and _check_id3(case, *plain)
    if case.estimator == "C45Classifier":
        case = _plainer(case, NAIVE_C45, weighted=False)
        plain = _plain_table(case)
        return plain is not None and _check_c45(case, *plain)
    return False


def _check_id3(case: Case, rows: list[Any], columns: Any) -> bool:
    model = fitted(case, threshold="midpoint")
    if isinstance(model, Refusal):
        return False
    settings = naive.Settings(**case.parameters)
    expected = naive.fit(rows, case.y, columns, settings, case.weights)
    _compared(random_tables.assert_same_tree, model, expected)
    return True


def _check_c45(case: Case, rows: list[Any], columns: Any) -> bool:
    parameters = dict(case.parameters)
    least = parameters.pop("min_samples_branch", 2)
    if not isinstance(least, int):
        return False
    settings = naive_c45.Settings(min_branch=least, **parameters)
    model = fitted(case)
    if isinstance(model, Refusal):
        return False
    expected = naive_c45.fit(rows, case.y, columns, settings, sorted(set(case.y)))
    _compared(c45_comparison.assert_same_tree, model, expected)
    return True


def _compared(compare: Any, model: Any, expected: Any) -> None:
    try:
        compare(model, expected)
    except AssertionError as error:
        raise InvariantError(
            f"not the tree of the plain implementation: {error}"
        ) from None


# --------------------------------------------------------- the best two-way split


def check_best_split(case: Case) -> bool:
    """No two-way split of a node is better than the one that CART has chosen."""
    if not case.estimator.startswith("CART"):
        return False
    case = _plainer(case, {"max_depth", "min_samples_split", "unseen"}, weighted=False)
    known = [
        row
        for row in range(case.n_rows)
        if not any(is_missing(cells[row]) for cells in case.columns.values())
    ]
    if not known:
        return False
    case = case.take(known)
    model = fitted(case)
    if isinstance(model, Refusal):
        return False
    tree = model.tree
    rows_of: dict[int, list[int]] = {node: [] for node in range(len(tree))}
    for row, node in enumerate(model.apply(case.columns).tolist()):
        while node >= 0:
            rows_of[node].append(row)
            node = int(tree.parent[node])
    for node, rows in rows_of.items():
        if not tree.n_children[node]:
            continue
        chosen = sum(_impurity(case, rows_of[child]) for child in tree.children(node))
        for name, left in _two_way(case, rows):
            right = [row for row in rows if row not in left]
            other = _impurity(case, sorted(left)) + _impurity(case, right)
            slack = 1e-9 * float(_impurity(case, rows))
            fail_unless(
                float(chosen - other) <= slack,
                f"node {node}: {float(chosen)} is left, and a split of {name!r} into "
                f"rows {sorted(left)} and {right} leaves {float(other)}",
            )
    return True


def _impurity(case: Case, rows: list[int]) -> Fraction:
    """Return cases times Gini impurity, or the squared distances from the mean."""
    if case.is_regression:
        y = [Fraction(case.y[row]) for row in rows]
        return sum((v * v for v in y), Fraction()) - sum(y) ** 2 / len(y)
    labels = [case.y[row] for row in rows]
    squares = sum(labels.count(label) ** 2 for label in set(labels))
    return Fraction(len(rows)) - Fraction(squares, len(rows))


def _two_way(case: Case, rows: list[int]) -> Iterator[tuple[str, set[int]]]:
    """Yield the left sides of all two-way splits of some rows."""
    for name, cells in case.columns.items():
        values = sorted({cells[row] for row in rows})
        if family(cells) in ("whole", "number"):
            for low, _ in pairwise(values):
                yield name, {row for row in rows if cells[row] <= low}
        elif len(values) <= MOST_GROUPED:
            for size in range(1, len(values) // 2 + 1):
                for some in combinations(values, size):
                    yield name, {row for row in rows if cells[row] in some}


ORACLES = {"naive": check_naive, "best_split": check_best_split}
