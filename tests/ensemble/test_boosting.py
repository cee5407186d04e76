"""Boosting by weights of rows, against a naive loop with the same trees."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from branchwise import (
    BoostedClassifier,
    C45Classifier,
    CARTClassifier,
    ID3Classifier,
    Model,
    ParameterError,
    datasets,
)
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from forest_tables import mixed


@parametrize_with_checks([BoostedClassifier(n_estimators=4)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        BoostedClassifier(n_estimators=4, base="cart", max_depth=2),
        BoostedClassifier(n_estimators=4, n_iter_no_change=2, validation_fraction=0.3),
    ],
)
def test_scikit_learn_with_other_options(estimator: Any, check: Any) -> None:
    check(estimator)


def content(boosted: Any) -> list[Any]:
    """Return the model files of all trees, and their weights."""
    trees = [model.to_bytes() for model in boosted.model_]
    return [*trees, boosted.tree_weights.tobytes()]


def naive(
    estimator: Any, X: Any, y: Any, n_estimators: int, weights: Any = None
) -> tuple[list[Any], list[float]]:
    """Boost with fits of a single tree: SAMME as Zhu et al. write it."""
    y = np.asarray(y)
    weights = np.ones(len(y)) if weights is None else weights
    total, n_classes = weights.sum(), len(set(y))
    trees, votes = [], []
    for _ in range(n_estimators):
        tree = clone(estimator).fit(X, y, weights)
        wrong = tree.predict(X) != y
        error = weights[wrong].sum() / weights.sum()
        if error == 0 or error >= 1 - 1 / n_classes:
            break
        trees.append(tree)
        votes.append(math.log((1 - error) / error) + math.log(n_classes - 1))
        weights = weights * np.exp(votes[-1] * wrong)
        weights = weights / weights.sum() * total
    return trees, votes


@pytest.mark.parametrize(
    ("base", "estimator"),
    [
        ({}, C45Classifier()),
        ({"base": "cart", "max_depth": 2}, CARTClassifier(max_depth=2)),
        ({"base": "id3", "max_depth": 1}, ID3Classifier(max_depth=1)),
    ],
)
def test_a_naive_loop(base: dict[str, Any], estimator: Any) -> None:
    X, y = mixed()
    boosted = BoostedClassifier(n_estimators=6, **base).fit(X, y)
    trees, votes = naive(estimator, X, y, 6)
    assert len(boosted) == len(trees) > 1
    assert np.allclose(boosted.tree_weights, votes, rtol=1e-9)
    for model, tree in zip(boosted.model_, trees, strict=True):
        assert isinstance(model, Model)
        assert (model.predict(X) == tree.predict(X)).all()
    classes = boosted.classes_
    shares = sum(
        vote * (tree.predict(X)[:, np.newaxis] == classes)
        for tree, vote in zip(trees, votes, strict=True)
    ) / sum(votes)
    assert np.allclose(boosted.predict_proba(X), shares)
    assert (boosted.predict(X) == classes[shares.argmax(axis=1)]).all()


def test_several_classes_and_weights() -> None:
    car = datasets.load("car")
    X, y = car.X, np.asarray(car.y)
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    boosted = BoostedClassifier(n_estimators=4, max_depth=3).fit(X, y, weights)
    _, votes = naive(C45Classifier(max_depth=3), X, y, 4, weights)
    assert np.allclose(boosted.tree_weights, votes, rtol=1e-9)


@pytest.mark.parametrize("base", ["id3", "c4.5", "cart"])
@pytest.mark.parametrize("options", [{}, {"n_iter_no_change": 3}])
def test_any_order_of_rows(base: str, options: Any) -> None:
    X, y = mixed()
    boosted = BoostedClassifier(base=base, max_depth=3, **options).fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(boosted).set_params(n_jobs=2).fit(X.iloc[order], y.iloc[order])
    assert content(boosted) == content(again)
    assert len(boosted) > 1
    proba = boosted.predict_proba(X)
    assert (boosted.predict_proba(X.iloc[order]) == proba[order]).all()


def test_training_error_falls() -> None:
    X, y = mixed()
    boosted = BoostedClassifier(n_estimators=40, base="cart", max_depth=2).fit(X, y)
    errors = [np.mean(stage != y) for stage in boosted.staged_predict(X)]
    assert len(errors) == len(boosted) == boosted.n_estimators_
    assert errors[-1] < errors[0] / 2
    assert (boosted.estimator_errors_ < 0.5).all()
    shares = list(boosted.staged_predict_proba(X))
    assert np.array_equal(shares[-1], boosted.predict_proba(X))


def test_a_perfect_tree_ends_the_boosting() -> None:
    tennis = datasets.load("tennis")
    boosted = BoostedClassifier(base="id3").fit(tennis.X, tennis.y)
    assert len(boosted) == 1
    assert boosted.tree_weights.tolist() == [1.0]
    alone = ID3Classifier(threshold="midpoint").fit(tennis.X, tennis.y)
    assert boosted[0] == alone.model_
    later = BoostedClassifier(base="cart", max_depth=2, n_estimators=100)
    later.fit(tennis.X, tennis.y)
    assert np.isfinite(later.tree_weights).all()


def test_guessing_ends_the_boosting() -> None:
    # Nothing to learn: the first tree is a leaf, which half of the rows contradict.
    X = {"a": ["x"] * 8}
    boosted = BoostedClassifier(n_estimators=5).fit(X, list("yynn") * 2)
    assert len(boosted) == 1
    assert boosted.predict_proba(X)[0].tolist() == [1.0, 0.0]
    one = BoostedClassifier().fit({"a": ["x", "y"]}, ["only", "only"])
    assert one.predict({"a": ["x"]}).tolist() == ["only"]


def test_early_stop() -> None:
    X, y = mixed()
    boosted = BoostedClassifier(
        n_estimators=200, base="cart", max_depth=2, n_iter_no_change=4
    ).fit(X, y)
    scores = boosted.validation_score_
    assert len(scores) == len(boosted) < 200
    assert not (scores[-1] + 1e-4 < scores[-5:-1]).any()
    grown = sum(boosted[0].tree.weights[0])
    assert grown == len(X) - round(len(X) * 0.1)


def test_costs_pickles_importances_and_views() -> None:
    X, y = mixed()
    boosted = BoostedClassifier(n_estimators=5, base="cart", max_depth=3).fit(X, y)
    dear = clone(boosted).set_params(costs=[[0, 1], [5, 0]]).fit(X, y)
    assert (dear.predict(X) == "yes").mean() > (boosted.predict(X) == "yes").mean()
    restored = pickle.loads(pickle.dumps(boosted))
    assert (restored.predict_proba(X) == boosted.predict_proba(X)).all()
    assert boosted.feature_importances_.sum() == pytest.approx(1)
    assert "boosting of 5 CART trees" in repr(boosted.model_)
    with pytest.raises(ParameterError, match="Out-of-bag predictions need a forest"):
        boosted.model_.out_of_bag()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base": "cat"}, "base must be 'id3' or 'c4.5' or 'cart'. Got 'cat'"),
        ({"n_estimators": 0}, "n_estimators must be a whole number of at least 1"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be None or a whole number"),
        ({"validation_fraction": 1.5}, "validation_fraction must be"),
        ({"validation_fraction": None}, "validation_fraction must be a share"),
        ({"tol": -1}, "tol must be a finite number of at least 0"),
        ({"criterion": "variance", "base": "cart"}, "Use GradientBoostingRegressor"),
        ({"base": "cart", "confidence": 0.1}, "has no effect unless pruning"),
        ({"prune": 1}, "prune must be True or False"),
    ],
)
def test_errors(given: dict[str, Any], message: str) -> None:
    X, y = mixed(50)
    with pytest.raises(ParameterError, match=message):
        BoostedClassifier(**given).fit(X, y)


def test_weights_of_trees_are_those_of_votes() -> None:
    with pytest.raises(ParameterError, match="method='boosted' adds up weighted votes"):
        EnsembleRecipe(method="boosted", voting="soft")


def test_votes_of_all_trees_are_exactly_1() -> None:
    rng = np.random.default_rng(0)
    # Rows on the left are certain, those on the right are not.
    X = {"x": np.repeat([0, 1], 200), "z": rng.normal(size=400)}
    y = np.where(X["x"] == 0, 0, rng.integers(0, 2, 400))
    boosted = BoostedClassifier(n_estimators=12, base="cart", max_depth=2).fit(X, y)
    assert len(boosted) == 12
    agreed = boosted.predict_proba(X)[:, 0] == 1
    assert agreed.any()
    for _ in range(50):
        boosted.model_.tree_weights = rng.uniform(0.1, 3.0, 12)
        assert (boosted.predict_proba(X)[agreed, 0] == 1).all()
