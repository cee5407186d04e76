"""Shapley values by their definition: sums over all subsets, written naively."""

from __future__ import annotations

import math
import random

import numpy as np

from branchwise.model import Model
from branchwise.tree.splits import EVERY_BRANCH, STOP

Row = dict[str, object]


def subsets(n: int) -> range:
    """Return all sets of n columns, as bits."""
    return range(2**n)


def shapley(worth: np.ndarray, n: int) -> np.ndarray:
    """Return the Shapley value of each player; ``worth`` is that of each set."""
    values = np.zeros((n, worth.shape[1]))
    for i in range(n):
        for s in subsets(n):
            if s >> i & 1:
                continue
            size = s.bit_count()
            weight = math.factorial(size) * math.factorial(n - size - 1)
            values[i] += weight / math.factorial(n) * (worth[s | 1 << i] - worth[s])
    return values


def interactions(worth: np.ndarray, n: int) -> np.ndarray:
    """Return halves of the interaction indices, and main effects on the diagonal."""
    matrix = np.zeros((n, n, worth.shape[1]))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            for s in subsets(n):
                if s >> i & 1 or s >> j & 1:
                    continue
                size = s.bit_count()
                weight = math.factorial(size) * math.factorial(n - size - 2)
                a, b = 1 << i, 1 << j
                change = worth[s | a | b] - worth[s | a] - worth[s | b] + worth[s]
                matrix[i, j] += weight / math.factorial(n - 1) / 2 * change
    values = shapley(worth, n)
    for i in range(n):
        matrix[i, i] = values[i] - matrix[i].sum(axis=0)
    return matrix


def predictions(model: Model, rows: list[Row]) -> np.ndarray:
    """Return what is predicted: a probability for each class, or a number."""
    if model.tree.is_regression:
        return model.predict(rows)[:, np.newaxis]
    return model.predict_proba(rows)


def worth_by_background(
    model: Model, row: Row, background: list[Row], weights: list[float]
) -> np.ndarray:
    """Return the mean prediction for rows that have some cells of the row."""
    names = model.schema.names
    hybrids = [
        {c: (row if s >> i & 1 else other)[c] for i, c in enumerate(names)}
        for s in subsets(len(names))
        for other in background
    ]
    predicted = predictions(model, hybrids)
    by_set = predicted.reshape(2 ** len(names), len(background), -1)
    return np.einsum("sbk,b->sk", by_set, np.array(weights) / sum(weights))


def worth_by_training(model: Model, row: Row) -> np.ndarray:
    """Return predictions where unknown columns go as the training cases went."""
    n = len(model.schema.names)
    return np.array([_expected(model, row, s, 0) for s in subsets(n)])


def _value(model: Model, node: int) -> np.ndarray:
    if model.tree.is_regression:
        return np.array([model.tree.mean[node]])
    return model.walker.probabilities_of_node(node)[0]


def _expected(model: Model, row: Row, known: int, node: int, turn: int = 0):
    tree = model.tree
    children = tree.children(node)
    if not children:
        return _value(model, node)
    index, threshold, codes = _test(tree, node, turn)
    if not known >> index & 1:
        stops = tree.missing_to[node] == STOP
        return _everywhere(model, row, known, node, stops)
    column = model.schema.columns[index]
    cell = row[column.name]
    missing = cell is None or cell != cell
    code = None
    if not missing:
        code = int(cell > threshold) if column.is_numeric else column.code_of.get(cell)
    for child, leading in zip(children, codes, strict=True):
        if code is not None and code in leading:
            return _expected(model, row, known, child)
    if missing or turn:
        if tree.n_surrogates is not None and turn < tree.n_surrogates[node]:
            return _expected(model, row, known, node, turn + 1)
        route = tree.missing_to[node]
    else:
        route = tree.unseen_to[node] if code is None else STOP
    if route == EVERY_BRANCH:
        return _everywhere(model, row, known, node, False)
    if route == STOP:
        return _value(model, node)
    return _expected(model, row, known, children[route])


def _everywhere(model: Model, row: Row, known: int, node: int, stops: bool):
    """Return the mean over all branches by weight, and over what stopped here."""
    children = model.tree.children(node)
    sizes = [model.tree.weights[child].sum() for child in children]
    weight = sum(sizes)
    if stops:
        weight = max(weight, model.tree.weights[node].sum())
    total = (weight - sum(sizes)) * _value(model, node)
    for size, child in zip(sizes, children, strict=True):
        total = total + size * _expected(model, row, known, child)
    return total / weight


def _test(tree, node, turn):
    """Return column, threshold and codes of a split or of a surrogate."""
    if turn == 0:
        codes = [tree.codes_of(child) for child in tree.children(node)]
        return int(tree.column[node]), float(tree.threshold[node]), codes
    at = int(tree.n_surrogates[:node].sum()) + turn - 1
    ends = np.cumsum(tree.surrogate_n_codes)
    codes = [
        tree.surrogate_codes[ends[b] - tree.surrogate_n_codes[b] : ends[b]].tolist()
        for b in (2 * at, 2 * at + 1)
    ]
    return int(tree.surrogate_column[at]), float(tree.surrogate_threshold[at]), codes


def random_rows(model: Model, n_rows: int, rng: random.Random) -> list[Row]:
    """Return rows with known, missing and unseen cells, as the model takes them."""
    tree = model.tree
    surrogate = [] if tree.surrogate_column is None else tree.surrogate_column
    thresholds: dict[int, list[float]] = {}
    for index, threshold in zip(tree.column, tree.threshold, strict=True):
        thresholds.setdefault(int(index), []).append(float(threshold))
    for at, index in enumerate(surrogate):
        near = float(tree.surrogate_threshold[at])
        thresholds.setdefault(int(index), []).append(near)

    def cell(index, column):
        if model.recipe.missing != "error" and rng.random() < 0.2:
            return None
        if column.is_numeric:
            known = [t for t in thresholds.get(index, []) if t == t] or [0.0]
            at = rng.choice(known)
            return at + rng.choice([-1.0, 0.0, 1.0]) * abs(at) * rng.choice([0.1, 1.0])
        if model.recipe.unseen != "error" and rng.random() < 0.15:
            others = {"text": "never seen", "number": 12345.0}
            if column.value_type in others:
                return others[column.value_type]
        return rng.choice(column.categories) if column.categories else None

    columns = list(enumerate(model.schema.columns))
    return [{c.name: cell(i, c) for i, c in columns} for _ in range(n_rows)]
