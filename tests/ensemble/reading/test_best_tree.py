"""The tree nearest to a forest, against a loop over trees and rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

from branchwise import (
    Model,
    ParameterError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from forest_tables import mixed


def _figures(forest: Any, X: Any, y: Any, weights: np.ndarray) -> list[Any]:
    """Return the agreement and the score of each tree."""
    out, figures = forest.out_of_bag(), []
    score = r2_score if forest.model_.is_regression else accuracy_score
    together = out.values[:, 0]
    if not forest.model_.is_regression:
        together = forest.classes_[out.class_codes]
    for tree, model in enumerate(forest.model_):
        absent = (forest.model_.samples.times(tree) == 0) & (weights > 0)
        own, weight = model.predict(X[absent]), weights[absent]
        figures.append(
            (
                score(together[absent], own, sample_weight=weight),
                score(y[absent], own, sample_weight=weight),
            )
        )
    return figures


@pytest.mark.parametrize("case", ["classes", "hard", "weights", "numbers"])
def test_agreement_with_the_forest(case: str) -> None:
    X, y = mixed(150)
    weights = np.ones(len(X))
    forest: Any = RandomForestClassifier(n_estimators=10)
    if case == "hard":
        forest = RandomForestClassifier(n_estimators=10, voting="hard", base="c4.5")
    if case == "weights":
        weights = np.random.default_rng(3).integers(0, 4, len(X)).astype(float)
    if case == "numbers":
        forest, y = RandomForestRegressor(n_estimators=10), X["income"] * 3
    forest.fit(X, y, weights if case == "weights" else None)
    figures = _figures(forest, X, y, weights)
    best = forest.best_tree()
    assert isinstance(best, Model)
    assert best.agreement == pytest.approx(max(agreement for agreement, _ in figures))
    agreement, score = figures[best.number]
    assert best.agreement == pytest.approx(agreement)
    assert best.oob_score == pytest.approx(score)
    assert best == forest[best.number]


def test_words_and_pickles() -> None:
    X, y = mixed(80)
    best = RandomForestClassifier(n_estimators=5).fit(X, y).best_tree()
    assert f"Tree {best.number}, out of bag: agrees with the forest in" in repr(best)
    again = pickle.loads(pickle.dumps(best))
    assert repr(again) == repr(best)
    assert str(again) == str(best)
    numbers = RandomForestRegressor(n_estimators=5).fit(X, X["income"]).best_tree()
    assert "R squared" in numbers.summary


def test_rows_in_any_order() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=8).fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).set_params(n_jobs=2).fit(X.iloc[order], y.iloc[order])
    assert repr(forest.best_tree()) == repr(again.best_tree())


def test_no_row_is_out_of_bag() -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=2, bootstrap=False).fit(X, y)
    with pytest.raises(ParameterError, match="grown from all rows"):
        forest.best_tree()
