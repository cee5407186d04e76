"""Random models of every kind, with names and values that are hard to carry."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from branchwise import C45Classifier, CARTClassifier, CARTRegressor, ID3Classifier
from branchwise.model import Model

#: Names and values that other languages could take for their own.
HOSTILE = (
    "plain",
    "two words",
    "it's",
    'say "hi"',
    "back\\slash",
    "line\nbreak",
    "carriage\rreturn",
    "tab\there",
    "emoji 😀",
    "\u202eright to left",
    "שלום",
    "e\u0301 and é",
    "*/ int x; /*",
    "// comment",
    "-- comment",
    "</script><script>alert(1)</script>",
    "<!-- & ]]> -->",
    "'; DROP TABLE rows; --",
    '"; import os; os._exit(1); "',
    "=1+1",
    "+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "{curly} {0} %s %d ${x} `x`",
    "#{x} \\N \\u0041 \\x41",
    "NULL",
    "null",
    "None",
    "nan",
    "true",
    "0",
    "1.0",
    "",
    " blank ",
    "??/ trigraph",
    "\u2028 separator \u2029",
    "\ufeffbom",
    "class",
    "return",
    "ends with a backslash\\",
    "'''; open('x', 'w'); \"\"\"",
    "*\\/ #define int char",
    "%:include <x> ??/",
    "`${globalThis.x = 1}`",
    "]]> <!--<script>",
    "__proto__",
    "constructor",
    "cells",
    "tree go",
    "Größe",
    "GROSSE",
)
ESTIMATORS = (
    ID3Classifier,
    lambda: ID3Classifier(missing="node", unseen="largest", max_depth=3),
    lambda: ID3Classifier(missing="largest", unseen="branch"),
    lambda: ID3Classifier(missing="split", unseen="split"),
    lambda: ID3Classifier(missing="branch", unseen="error"),
    lambda: ID3Classifier(missing="error", unseen="node"),
    C45Classifier,
    lambda: C45Classifier(group_values=True, prune=False, probabilities="laplace"),
    lambda: CARTClassifier(max_depth=5),
    lambda: CARTClassifier(missing="surrogate", probabilities="m-estimate"),
    lambda: CARTClassifier(missing="learned", unseen="split"),
    lambda: CARTClassifier(
        missing="split", unseen="node", probabilities="m-estimate", m=9.0
    ),
    lambda: CARTRegressor(max_depth=4),
    lambda: CARTRegressor(missing="split", unseen="split", max_depth=4),
)

#: Columns to learn from need names that are not blank.
NAMES = [word for word in HOSTILE if word.strip()]


def random_models(n: int, seed: int = 0, hostile: bool = True) -> Iterator[Model]:
    """Yield random models: every estimator in turn, on random tables."""
    for number in range(n):
        yield random_model(number, seed + number, hostile)


@lru_cache(maxsize=64)
def random_model(kind: int, seed: int, hostile: bool = True) -> Model:
    """Fit the estimator of some kind to a random table."""
    rng = np.random.default_rng(seed)
    words = random.Random(seed)
    estimator = ESTIMATORS[kind % len(ESTIMATORS)]()
    n_rows = int(rng.integers(20, 300))
    gaps = getattr(estimator, "missing", None) != "error"
    names = words.sample(NAMES, 6) if hostile else [f"column {i}" for i in range(6)]
    table = {name: random_column(rng, words, n_rows, gaps, hostile) for name in names}
    if words.random() < 0.3:  # numbers that are values
        few = [name for name in names if len(set(map(str, table[name]))) < 20]
        estimator.set_params(categorical_features=few)
    return fit(estimator, table, rng, words, n_rows, hostile)


def fit(estimator, table, rng, words, n_rows, hostile) -> Model:
    weight = rng.choice([0.5, 1.0, 1.7, 3.0], n_rows) if words.random() < 0.3 else None
    if isinstance(estimator, CARTRegressor):
        y = rng.normal(size=n_rows) * 10.0 ** int(rng.integers(-3, 4))
    else:
        y = random_labels(rng, words, n_rows, hostile)
        classes = sorted(set(y))
        if words.random() < 0.2 and len(classes) > 1:
            costs = rng.integers(1, 9, (len(classes), len(classes))).astype(float)
            np.fill_diagonal(costs, 0.0)
            estimator.set_params(costs=costs.tolist())
    return estimator.fit(table, y, sample_weight=weight).model_


def random_labels(rng, words, n_rows, hostile):
    kind = words.choice(["text", "text", "boolean", "number"])
    if kind == "boolean":
        return [bool(b) for b in rng.random(n_rows) < 0.5]
    if kind == "number":
        return rng.integers(-1, 4, n_rows).tolist()
    names = words.sample(HOSTILE, int(rng.integers(2, 6))) if hostile else ["no", "yes"]
    return [names[i] for i in rng.integers(0, len(names), n_rows)]


def random_column(rng, words, n_rows, gaps, hostile):
    kind = words.choice(["text", "text", "number", "number", "boolean"])
    if kind == "number":
        scale = 10.0 ** int(rng.integers(-6, 7))
        numbers = rng.normal(size=n_rows) * scale
        if words.random() < 0.5:
            numbers = rng.integers(-3, 9, n_rows) * words.choice([1.0, 0.1, 1 / 3])
        if gaps:
            numbers = np.where(rng.random(n_rows) < 0.15, np.nan, numbers)
        return numbers
    values = [True, False]
    if kind == "text":
        n_values = int(rng.integers(2, 9))
        values = words.sample(HOSTILE, n_values) if hostile else list("abcdefgh")
    cells = [values[i] for i in rng.integers(0, len(values), n_rows)]
    if gaps:
        cells = [None if rng.random() < 0.15 else cell for cell in cells]
    return cells
