"""Bagged trees: the trees of an estimator, grown from samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from branchwise import (
    BaggedTrees,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    ParameterError,
    RandomForestClassifier,
)
from forest_tables import mixed

#: The same of scikit-learn's: a row of weight 2 is drawn once or not at all.
_SAMPLES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn, not weights"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [
        BaggedTrees(n_estimators=3),
        BaggedTrees(n_estimators=3, estimator=CARTRegressor()),
    ],
    expected_failed_checks=lambda estimator: _SAMPLES,
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [BaggedTrees(n_estimators=4, estimator=C45Classifier(), voting="hard")],
    expected_failed_checks=lambda estimator: _SAMPLES,
)
def test_scikit_learn_with_other_options(estimator: Any, check: Any) -> None:
    check(estimator)


def content(bagged: Any) -> list[bytes]:
    """Return the model files of all trees."""
    return [model.to_bytes() for model in bagged.model_]


@pytest.mark.parametrize(
    "estimator", [ID3Classifier(max_depth=3), C45Classifier(), CARTClassifier()]
)
def test_trees_are_those_of_the_estimator(estimator: Any) -> None:
    X, y = mixed()
    bagged = BaggedTrees(estimator=estimator, n_estimators=6).fit(X, y)
    samples = bagged.model_.samples
    assert samples is not None
    for tree, model in enumerate(bagged.model_):
        rows = samples.rows(tree)
        alone = clone(estimator).fit(X.iloc[rows], y.iloc[rows])
        assert model.recipe == alone.recipe
        assert (model.predict(X) == alone.predict(X)).all()
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(bagged).set_params(n_jobs=2).fit(X.iloc[order], y.iloc[order])
    assert content(bagged) == content(again)


def test_the_same_as_a_forest_without_draws_of_columns() -> None:
    X, y = mixed()
    tree = CARTClassifier(threshold="midpoint")
    bagged = BaggedTrees(estimator=tree, n_estimators=5, oob_score=True).fit(X, y)
    forest = RandomForestClassifier(n_estimators=5, max_features=None).fit(X, y)
    assert content(bagged) == content(forest)
    assert bagged.oob_score_ == forest.out_of_bag().score
    more = clone(bagged).set_params(warm_start=True, n_estimators=2).fit(X, y)
    assert content(more.set_params(n_estimators=5).fit(X, y)) == content(bagged)


def test_numbers() -> None:
    X, _ = mixed()
    y = X["income"] * 3 + X["age"].fillna(40) / 10
    bagged = BaggedTrees(estimator=CARTRegressor(), oob_score=True).fit(X, y)
    mean = np.mean([model.predict(X) for model in bagged.model_], axis=0)
    assert np.allclose(bagged.predict(X), mean, rtol=1e-14)
    assert bagged.score(X, y) > 0.9
    assert bagged.oob_prediction_.shape == (len(X),)
    assert is_regressor(bagged)
    assert not is_classifier(bagged)
    assert not hasattr(bagged, "predict_proba")


def test_nested_parameters() -> None:
    X, y = mixed()
    bagged = BaggedTrees(estimator=C45Classifier(confidence=0.1), n_estimators=3)
    assert bagged.get_params()["estimator__confidence"] == 0.1
    assert is_classifier(bagged)
    grid = {"estimator__confidence": [0.05, 0.5], "n_estimators": [2, 4]}
    search = GridSearchCV(bagged, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    costly = CARTClassifier(max_depth=2, costs=[[0, 1], [9, 0]])
    usual = BaggedTrees(estimator=CARTClassifier(max_depth=2)).fit(X, y)
    dear = BaggedTrees(estimator=costly).fit(X, y)
    assert (dear.predict(X) == "yes").mean() > (usual.predict(X) == "yes").mean()


def test_class_weights_of_the_estimator() -> None:
    X, y = mixed()
    tree = CARTClassifier(class_weight={"no": 3.0})
    bagged = BaggedTrees(estimator=tree, bootstrap=False, n_estimators=1).fit(X, y)
    counts = y.value_counts()
    expected = [3.0 * counts["no"], counts["yes"]]
    assert bagged[0].tree.weights[0].tolist() == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"estimator": DecisionTreeClassifier()}, "estimator must be an estimator of"),
        ({"estimator": CARTRegressor(), "voting": "hard"}, "predicts numbers"),
        ({"estimator": C45Classifier(pruning="reduced-error")}, "needs rows to prune"),
        ({"n_estimators": 0}, "n_estimators must be a whole number"),
        ({"bootstrap": False, "oob_score": True}, "set bootstrap=True"),
    ],
)
def test_errors(given: dict[str, Any], message: str) -> None:
    X, y = mixed(50)
    with pytest.raises(ParameterError, match=message):
        BaggedTrees(**given).fit(X, y)
