"""Adding rounds of boosting is boosting all of them at once, to the byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from branchwise import (
    BoostedClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ParameterError,
    RandomForestClassifier,
)
from forest_tables import mixed

ESTIMATORS: dict[str, Any] = {
    "boosted": BoostedClassifier(max_depth=2),
    "held out": BoostedClassifier(max_depth=2, n_iter_no_change=3),
    "gradient": GradientBoostingClassifier(),
    "drawn": GradientBoostingClassifier(subsample=0.6, max_features=2, missing="split"),
    "three classes": GradientBoostingClassifier(max_depth=2),
    "stopped": GradientBoostingClassifier(n_iter_no_change=1, learning_rate=1.0),
    "numbers": GradientBoostingRegressor(),
    "counts": GradientBoostingRegressor(loss="poisson", subsample=0.5),
}


def rows_of(name: str) -> tuple[Any, Any]:
    X, y = mixed(200)
    if name == "three classes":
        return X, np.where(X["noise"] > 1, "maybe", y)
    if name == "numbers":
        return X.drop(columns="income"), X["income"]
    if name == "counts":
        return X.drop(columns="income"), np.exp(X["income"].clip(-2, 2)).round()
    return X, y


@pytest.mark.parametrize("name", ESTIMATORS)
def test_adding_rounds_is_boosting_all_of_them(name: str) -> None:
    X, y = rows_of(name)
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    whole = clone(ESTIMATORS[name]).set_params(n_estimators=8).fit(X, y, weights)
    warm = clone(whole).set_params(n_estimators=3, warm_start=True).fit(X, y, weights)
    first = warm.model_.trees
    warm.set_params(n_estimators=8).fit(X, y, weights)
    assert warm.model_.to_bytes() == whole.model_.to_bytes()
    assert warm.model_.trees[: len(first)] == first
    for record in ("estimator_errors_", "train_score_", "validation_score_"):
        if hasattr(whole, record):
            assert np.array_equal(getattr(warm, record), getattr(whole, record))
    assert warm.n_estimators_ == whole.n_estimators_
    again = warm.fit(X, y, weights)
    assert again.model_.to_bytes() == whole.model_.to_bytes()


def test_rounds_are_not_grown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows_of("three classes")
    warm = GradientBoostingClassifier(n_estimators=5, warm_start=True).fit(X, y)
    grown = []
    from branchwise.ensemble import gradient

    grow = gradient.grown_from_bins

    def counting(*given: Any, **more: Any) -> Any:
        grown.append(1)
        return grow(*given, **more)

    monkeypatch.setattr(gradient, "grown_from_bins", counting)
    warm.set_params(n_estimators=7).fit(X, y)
    assert len(grown) == 2 * 3


def test_a_random_seed_is_kept() -> None:
    X, y = rows_of("drawn")
    warm = GradientBoostingClassifier(
        n_estimators=2, subsample=0.5, random_state=None, warm_start=True
    ).fit(X, y)
    seed = warm.model_.recipe.random_state
    warm.set_params(n_estimators=4).fit(X, y)
    whole = GradientBoostingClassifier(n_estimators=4, subsample=0.5, random_state=seed)
    assert warm.model_.to_bytes() == whole.fit(X, y).model_.to_bytes()


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(),
        RandomForestClassifier(class_weight={"no": 2.0}),
        BoostedClassifier(max_depth=2),
        GradientBoostingClassifier(),
    ],
)
@pytest.mark.parametrize("differs", ["rows", "targets", "weights", "cells"])
def test_trees_of_other_rows_are_refused(estimator: Any, differs: str) -> None:
    """What is out of bag would be wrong: samples are drawn again when it is read."""
    X, y = mixed(100)
    warm = clone(estimator).set_params(n_estimators=2, warm_start=True).fit(X, y)
    warm.set_params(n_estimators=3)
    y = np.asarray(y)
    order = np.random.default_rng(0).permutation(100)
    weights = None
    match differs:
        case "rows":
            order = order[:90]
        case "targets":
            y = y[order]
        case "weights":
            weights = np.ones(100)
            weights[3] = 2
        case "cells":
            X = X.assign(income=X["income"] + (np.arange(100) == 50))
    with pytest.raises(ParameterError, match="same rows, and the rows, their targets"):
        warm.fit(X.iloc[order], y[order], weights)
    assert len(warm.model_) == 2  # the model that was there


@pytest.mark.parametrize(
    ("estimator", "given", "said"),
    [
        (RandomForestClassifier(), {"random_state": 1}, "random_state is 1 where it w"),
        (RandomForestClassifier(), {"bootstrap": False}, "bootstrap is False where"),
        (
            RandomForestClassifier(),
            {"max_depth": 3},
            "max_depth is 3 where it was None",
        ),
        (BoostedClassifier(), {"max_depth": 3}, "max_depth is 3 where it was None"),
        (
            GradientBoostingClassifier(),
            {"learning_rate": 0.5},
            r"learning_rate is 0.5 where it was 0.1. Set it back, or fit with warm_sta",
        ),
    ],
)
def test_other_parameters_are_refused(
    estimator: Any, given: dict[str, Any], said: str
) -> None:
    X, y = mixed(100)
    warm = clone(estimator).set_params(n_estimators=2, warm_start=True).fit(X, y)
    with pytest.raises(ParameterError, match=said):
        warm.set_params(n_estimators=4, **given).fit(X, y)


def test_rows_may_be_in_another_order() -> None:
    X, y = mixed(100)
    y = np.asarray(y)
    whole = RandomForestClassifier(n_estimators=4).fit(X, y)
    warm = RandomForestClassifier(n_estimators=2, warm_start=True).fit(X, y)
    order = np.random.default_rng(0).permutation(100)
    warm.set_params(n_estimators=4).fit(X.iloc[order], y[order])
    assert warm.model_.to_bytes() == whole.model_.to_bytes()
    assert warm.out_of_bag().score == whole.out_of_bag().score


@pytest.mark.parametrize("name", ["boosted", "gradient"])
def test_rounds_cannot_be_taken_away(name: str) -> None:
    X, y = rows_of(name)
    warm = clone(ESTIMATORS[name]).set_params(n_estimators=5, warm_start=True)
    warm.fit(X, y).set_params(n_estimators=2)
    with pytest.raises(ParameterError, match="n_estimators must be at least 5"):
        warm.fit(X, y)


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(), BoostedClassifier(), ESTIMATORS["gradient"]]
)
def test_trees_of_another_table_are_refused(estimator: Any) -> None:
    X, y = mixed(100)
    warm = clone(estimator).set_params(n_estimators=2, warm_start=True).fit(X, y)
    fewer = X[X["size"] != "m"]
    with pytest.raises(ParameterError, match="warm_start adds trees of the same table"):
        warm.set_params(n_estimators=4).fit(fewer, y[fewer.index])
