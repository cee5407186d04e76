"""Trees tested on unseen rows, and their permutation importances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.inspection import permutation_importance

from branchwise.data.arrays import Floats, Ints
from branchwise.data.encode import encode_columns
from branchwise.data.schema import Columns
from branchwise.evaluation.cross_validate import Rows
from branchwise.evaluation.metrics import Fold, r_squared
from branchwise.model import Model


@dataclass(frozen=True)
class FoldTest:
    """A tree, and rows that it was not grown from.

    ``rows`` are their positions among all rows that are tested.
    """

    model: Model
    rows: Ints
    test: Rows
    n_training: int

    @property
    def used(self) -> list[int]:
        """The columns that the tree splits on."""
        return self.model.tree.used_columns

    def encoded(self, chosen: Ints | None = None) -> Columns:
        """Return the columns that the tree splits on, encoded."""
        model, table = self.model, self.test.table
        allow = model.recipe.unseen != "error"
        picked = table if chosen is None else table[chosen]
        return encode_columns(picked, model.schema, self.used, allow_unseen=allow)

    def predictions(self, data: Columns) -> NDArray[Any]:
        """Return the codes of the classes, or the numbers, of encoded rows."""
        walker = self.model.walker
        if self.model.tree.is_regression:
            return walker.numbers(walker.walk(data))
        return walker.classify(data).astype(np.intp)

    def tested(self) -> Fold:
        """Return the predictions for all rows."""
        data, tree = self.encoded(), self.model.tree
        probabilities = None
        if not tree.is_regression:
            probabilities = self.model.walker.distribution(self.model.walker.walk(data))
        return Fold(
            self.rows,
            self.predictions(data),
            probabilities,
            float(tree.n_leaves),
            float(tree.max_depth),
            math.nan,
            self.n_training,
        )


def permutation_drops(
    fold_test: FoldTest, n_columns: int, limit: int, shuffles: int, seed: int
) -> Floats:
    """Return by how much the score drops, column by column, shuffle by shuffle."""
    found = np.zeros((n_columns, shuffles))
    used = fold_test.used
    if not used:
        return found
    chosen = some_rows(len(fold_test.test), limit, seed)
    shuffled = _Shuffled(fold_test, fold_test.encoded(chosen))
    # A cell holds the row that it is taken from: shuffling permutes these rows.
    positions = np.tile(np.arange(len(chosen))[:, np.newaxis], (1, len(used)))
    result = permutation_importance(
        shuffled,
        positions,
        fold_test.test.target[chosen],
        scoring=plain_score,
        n_repeats=shuffles,
        random_state=seed,
    )
    found[used] = result.importances
    return found


class _Shuffled(BaseEstimator):  # type: ignore[misc]
    """A fitted tree that predicts rows whose cells come from different rows."""

    def __init__(self, fold_test: FoldTest, data: Columns) -> None:
        self.fold_test = fold_test
        self.data = data

    def fit(self) -> Self:
        """Do nothing: the tree is fitted."""
        return self

    def predict(self, positions: Ints) -> NDArray[Any]:
        """Predict rows, each cell taken from its position."""
        cells = list(self.data.data)
        for at, column in enumerate(self.fold_test.used):
            cells[column] = cells[column][positions[:, at]]
        return self.fold_test.predictions(Columns(len(positions), tuple(cells)))


def plain_score(estimator: Any, positions: Ints, truth: NDArray[Any]) -> float:
    """Return the accuracy; of numbers the share of their variance explained."""
    predictions = estimator.predict(positions)
    if predictions.dtype.kind != "f":
        return float((predictions == truth).mean())
    score = r_squared(truth, predictions)
    return float((truth == predictions).all()) if math.isnan(score) else score


def some_rows(n_rows: int, limit: int, seed: int) -> Ints:
    """Return so many rows, in order; always the same."""
    if n_rows <= limit:
        return np.arange(n_rows)
    picked = np.random.default_rng(seed).choice(n_rows, limit, replace=False)
    return np.sort(picked)
