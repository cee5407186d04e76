"""Corrections for categories of many values in CART, compared on held-out rows.

    python benchmarks/many_values.py [seed ...]

A prototype of two-class CART by Gini, in which the score of a column's best two groups
of values can be corrected in several ways, grows trees from made tables: columns that
tell of the class, noise columns of 50 to 8,000 values, and columns of 50 or 200 values
with rates of their own. It prints the area under the ROC curve on other rows, then that
of CARTClassifier. Seeds 1 to 3, 11 and 12 chose the correction; 21 to 23 confirmed it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from branchwise import CARTClassifier, FitWarning
from branchwise.grow.many_values import _NULL_SPREAD, FEW_VALUES, null_excess

Array = NDArray[Any]
#: Rows, depth, fewest cases of a leaf; values of noise columns and of telling ones.
TABLES = {
    "no such column": (40_000, 6, 100, (), ()),
    "noise of 50 values": (40_000, 6, 100, (50,), ()),
    "noise of 500 values": (40_000, 6, 100, (500,), ()),
    "noise of 8,000 values": (40_000, 6, 100, (8000,), ()),
    "noise of 8,000 values, deep": (40_000, 30, 20, (8000,), ()),
    "200 telling values": (40_000, 6, 100, (), (200,)),
    "200 telling values and noise": (40_000, 6, 100, (8000,), (200,)),
    "2,000 rows, noise of 50 values": (2_000, 6, 10, (50,), ()),
    "2,000 rows, noise of 500 values": (2_000, 6, 10, (500,), ()),
    "2,000 rows, 50 telling values": (2_000, 6, 10, (), (50,)),
    "2,000 rows, 200 telling values": (2_000, 6, 10, (), (200,)),
}
#: What is done about many values, with the names of columns in the output.
CORRECTIONS = {
    "plain": "as they are",
    "corrected": "less what k > 8 values gain at random more than 8 do",
    "mean": "the same without the three standard deviations",
    "branches": "less (k - 2) / (n - 1) of the impurity, if k > 8",
    "every": "the same for all k",
    "order": "in the order of shares that are smoothed (10 cases)",
    "score": "scored by shares that are smoothed (50 cases)",
    "fold": "order and score from different halves of the rows",
}


def weighted_gini(of_last: Array, n: Array) -> Array:
    return 2 * of_last * (n - of_last) / np.maximum(n, 1)


def best_prefix(key: Array, n: Array, last: Array, least: float) -> tuple[float, Array]:
    """Return the gain of the best groups in an order, and the values of the first."""
    order = np.argsort(key, kind="stable")
    left, left_last = np.cumsum(n[order])[:-1], np.cumsum(last[order])[:-1]
    all_n, all_last = n.sum(), last.sum()
    gain = weighted_gini(all_last, all_n) - weighted_gini(left_last, left)
    gain -= weighted_gini(all_last - left_last, all_n - left)
    gain[(left < least) | (all_n - left < least)] = -np.inf
    if not len(gain):
        return -np.inf, order
    best = int(np.argmax(gain))
    return float(gain[best]), order[: best + 1]


def by_values(
    codes: Array, y: Array, fold: Array, least: float, how: str
) -> tuple[float, Array]:
    """Return the score of the best two groups of values, and the first group."""
    n = np.bincount(codes).astype(float)
    last = np.bincount(codes, y)
    present = np.flatnonzero(n)
    k, total, mean = len(present), len(y), float(y.mean())
    if k < 2:
        return -np.inf, present
    n, last = n[present], last[present]
    if how == "score":
        last = n * (last + 50 * mean) / (n + 50)
    key = (last + 10 * mean) / (n + 10) if how == "order" else last / n
    score, group = best_prefix(key, n, last, least)
    values, cases = np.array([k]), np.array([float(total)])
    excess = float(null_excess(values, cases)[0])
    if how == "mean" and k > FEW_VALUES:
        excess -= _NULL_SPREAD * (k**0.5 - FEW_VALUES**0.5)
    if how == "every" or (how == "branches" and k > FEW_VALUES):
        excess = k - 2.0
    impurity = float(weighted_gini(np.array(mean * total), np.array(total)))
    if how in ("corrected", "mean", "branches", "every"):
        score -= excess / (total - 1) * impurity
    if how == "fold" and np.isfinite(score):
        score = 0.0
        for one in (fold, ~fold):
            own = np.bincount(codes[one], minlength=present[-1] + 1)[present]
            own_last = np.bincount(codes[one], y[one], present[-1] + 1)[present]
            smooth = (own_last + 2 * mean) / (own + 2)
            score += best_prefix(smooth, n - own, last - own_last, least / 2)[0]
        score = score if np.isfinite(score) else -1.0
    return score, present[group]


def by_threshold(x: Array, y: Array, least: float) -> tuple[float, float]:
    order = np.argsort(x, kind="stable")
    numbers, labels = x[order], y[order]
    n, left = len(y), np.arange(1, len(y), dtype=float)
    left_last, last = np.cumsum(labels)[:-1], labels.sum()
    gain = weighted_gini(last, np.array(float(n))) - weighted_gini(left_last, left)
    gain = gain - weighted_gini(last - left_last, n - left)
    gain[(numbers[1:] == numbers[:-1]) | (left < least) | (n - left < least)] = -np.inf
    if not len(gain):
        return -np.inf, 0.0
    best = int(np.argmax(gain))
    return float(gain[best]), float(numbers[best] + numbers[best + 1]) / 2


def predicted(
    X: list[Array], y: Array, others: list[Array], depth: int, least: float, how: str
) -> Array:
    """Grow a tree and return what it predicts for other rows."""
    result = np.empty(len(others[0]))
    fold = np.random.default_rng(0).random(len(y)) < 0.5
    open_nodes = [(np.arange(len(y)), np.arange(len(result)), 0)]
    while open_nodes:
        rows, reached, level = open_nodes.pop()
        labels = y[rows]
        result[reached] = (labels.sum() + 0.5) / (len(rows) + 1)
        if level >= depth or len(rows) < 2 * least or labels.std() == 0:
            continue
        best: tuple[float, int, Any] = (-np.inf, -1, None)
        for j, cells in enumerate(X):
            if cells.dtype.kind == "f":
                score, at = by_threshold(cells[rows], labels, least)
            else:
                score, at = by_values(cells[rows], labels, fold[rows], least, how)
            best = max(best, (score, -j, at), key=lambda one: one[:2])
        if best[0] == -np.inf:
            continue
        j, at = -best[1], best[2]
        if X[j].dtype.kind == "f":
            left, left_others = X[j][rows] <= at, others[j][reached] <= at
        else:
            left, left_others = np.isin(X[j][rows], at), np.isin(others[j][reached], at)
            unseen = ~np.isin(others[j][reached], X[j][rows])
            left_others[unseen] = left.mean() >= 0.5
        open_nodes.append((rows[left], reached[left_others], level + 1))
        open_nodes.append((rows[~left], reached[~left_others], level + 1))
    return result


def table(seed: int, n: int, noise: Any, telling: Any) -> tuple[list[Array], Array]:
    """Return three numbers and six values of which some tell, others, and classes."""
    rng = np.random.default_rng(seed)
    x, c = rng.normal(size=(3, n)), rng.integers(0, 6, n)
    logit = 0.8 * x[0] - 0.6 * x[1] * (x[0] > 0)
    logit += np.array([-0.6, -0.3, 0, 0.2, 0.4, 0.7])[c] - 0.7
    columns = [*x, c]
    for k in telling:
        columns.append(rng.integers(0, k, n))
        logit += rng.normal(0, 0.7, k)[columns[-1]]
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    return [*columns, *(rng.integers(0, k, n) for k in noise)], y


def areas(seed: int, name: str) -> Iterator[float]:
    """Yield the area under the curve with each correction, and of CARTClassifier."""
    n, depth, least, noise, telling = TABLES[name]
    X, y = table(seed, n + max(n // 2, 2000), noise, telling)
    own, others = [cells[:n] for cells in X], [cells[n:] for cells in X]
    for how in CORRECTIONS:
        yield roc_auc_score(y[n:], predicted(own, y[:n], others, depth, least, how))
    kinds = [j for j, cells in enumerate(X) if cells.dtype.kind != "f"]
    first, rest = ({f"x{j}": cells for j, cells in enumerate(p)} for p in (own, others))
    for how in ("plain", "corrected"):
        tree = CARTClassifier(
            max_depth=depth, min_samples_leaf=least, many_values=how,
            categorical_features=kinds,
        )  # fmt: skip
        tree.fit(first, y[:n].astype(int))
        yield roc_auc_score(y[n:], tree.predict_proba(rest)[:, 1])


def main() -> None:
    seeds = [int(seed) for seed in sys.argv[1:]] or [21, 22, 23]
    warnings.simplefilter("ignore", FitWarning)
    for how, meaning in CORRECTIONS.items():
        print(f"{how}: {meaning}")
    print(f"{'':32}", *(f"{how:>9}" for how in (*CORRECTIONS, "CART:", "CART")))
    for name in TABLES:
        found = np.mean([list(areas(seed, name)) for seed in seeds], axis=0)
        print(f"{name:32}", *(f"{area:9.3f}" for area in found), flush=True)


if __name__ == "__main__":
    main()
