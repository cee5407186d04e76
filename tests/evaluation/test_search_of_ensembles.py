"""Searches of forests and boosting: scores are those of fits of their own."""

from __future__ import annotations

import pytest

from branchwise import (
    BoostedClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    RuleClassifier,
    datasets,
)
from branchwise.evaluation import search
from branchwise.evaluation.algorithms import default_grid

IRIS = datasets.load("iris")
GRID = {"n_estimators": [1, 4], "max_depth": [1, 2]}


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(random_state=3),
        BoostedClassifier(base="cart"),
        BoostedClassifier(base="cart", n_iter_no_change=1),
        GradientBoostingClassifier(subsample=0.5),
    ],
)
def test_scores_are_those_of_fits_of_their_own(estimator):
    scoring = "neg_log_loss"
    found = search(estimator, IRIS.X, IRIS.y, GRID, cv=2, scoring=scoring)
    apart = {
        (n_estimators, depth): search(
            estimator,
            IRIS.X,
            IRIS.y,
            {"n_estimators": [n_estimators], "max_depth": [depth]},
            cv=2,
            scoring=scoring,
        ).best
        for n_estimators in GRID["n_estimators"]
        for depth in GRID["max_depth"]
    }
    for one in found.trials:
        own = apart[one.parameters["n_estimators"], one.parameters["max_depth"]]
        assert one.test.tolist() == own.test.tolist()
        assert one.train.tolist() == own.train.tolist()
        assert (one.leaves, one.depth) == (own.leaves, own.depth)


@pytest.mark.parametrize(
    "estimator", [RuleClassifier(), RandomForestClassifier(max_features="oob")]
)
def test_rules_and_chosen_columns_are_not_those_of_more_trees(estimator):
    numbers = [2, 5, 60]
    found = search(estimator, IRIS.X, IRIS.y, {"n_estimators": numbers}, cv=2)
    for one in found.trials:
        own = search(
            estimator,
            IRIS.X,
            IRIS.y,
            {"n_estimators": [one.parameters["n_estimators"]]},
            cv=2,
        )
        assert one.test.tolist() == own.best.test.tolist()


def test_trees_are_grown_once_for_all_numbers_of_trees(monkeypatch):
    grown = []
    fit = RandomForestClassifier.fit

    def counted(self, *args, **kwargs):
        grown.append(self.n_estimators)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(RandomForestClassifier, "fit", counted)
    search(RandomForestClassifier(), IRIS.X, IRIS.y, GRID, cv=2)
    assert grown == [4] * 4


def test_what_is_given_is_not_in_the_default_grid():
    grid = default_grid(RandomForestRegressor(max_features=2))
    assert [sorted(piece) for piece in grid] == [["min_samples_leaf", "n_estimators"]]
    for estimator in (RandomForestClassifier(), BoostedClassifier()):
        assert "n_estimators" in default_grid(estimator)[0]


def test_the_default_grids_try_how_many_columns():
    (classes,), (numbers,) = map(
        default_grid, (RandomForestClassifier(), RandomForestRegressor())
    )
    assert classes["max_features"] == ("auto", 0.5, None)
    # Of numbers "auto" is all columns, as 1.0 is.
    assert numbers["max_features"] == ("sqrt", 0.5, 1.0)
