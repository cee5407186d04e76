"""The number of columns that nodes draw, chosen by the error out of bag."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise import (
    GradientBoostingClassifier,
    ParameterError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from branchwise.ensemble.fit import fit_ensemble
from branchwise.recipe.ensemble_recipe import forest_recipe
from forest_tables import mixed


def interaction(n_rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Return classes that two of nine columns tell together."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.choice(list("abcd"), (n_rows, 9)), columns=list("pqrstuvwx"))
    return X, np.where((X["p"] < "c") == (X["q"] < "c"), "yes", "no")


def numbers(n_rows: int = 300, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Return numbers that all of eight columns tell alike."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 8)), columns=list("abcdefgh"))
    return X, X.sum(axis=1).to_numpy() + rng.normal(size=n_rows)


def losses_of(forest: Any, y: Any) -> Any:
    """Return the losses of rows by the trees grown without them."""
    found = forest.out_of_bag()
    assert found.known.all()
    if forest.model_.is_regression:
        return (found.values[:, 0] - y) ** 2
    return forest.classes_[found.class_codes] != y


def chosen_naively(
    make: Any, X: Any, y: Any, tried: list[int], weights: Any = None
) -> int:
    """Fit forests of 50 trees as long as the losses fall by a standard error."""
    weight = np.ones(len(y)) if weights is None else np.asarray(weights)
    best, lost = None, None
    for number in tried:
        forest = make(n_estimators=50, max_features=number).fit(X, y, weights)
        now = losses_of(forest, y).astype(float)
        if lost is not None:
            gain = weight * (lost - now)
            mean = gain.sum() / weight.sum()
            error = math.sqrt((weight * (lost - now - mean) ** 2).sum())
            # The largest weight is 1, as in the sums that are compared.
            gain, error = gain / weight.max(), error / math.sqrt(weight.max())
            if gain.sum() <= error:
                break
        best, lost = number, now
    assert best is not None
    return best


@pytest.mark.parametrize(
    ("make", "rows", "tried", "wanted"),
    [
        (RandomForestClassifier, interaction(), [3, 6, 9], 9),
        (RandomForestClassifier, mixed(), [2, 4, 5], 2),
        (RandomForestRegressor, numbers(), [8, 4, 2, 1], None),
        (RandomForestRegressor, numbers(150, 3), [8, 4, 2, 1], None),
    ],
)
def test_equals_the_forest_with_the_number_that_is_chosen_naively(
    make: Any, rows: Any, tried: list[int], wanted: int | None
) -> None:
    X, y = rows
    y = np.asarray(y)
    number = chosen_naively(make, X, y, tried)
    assert wanted in (None, number)
    chosen = make(n_estimators=60, max_features="oob").fit(X, y)
    assert chosen.max_features_ == chosen.model_.recipe.max_features == number
    given = make(n_estimators=60, max_features=number).fit(X, y)
    assert chosen.model_.to_bytes() == given.model_.to_bytes()


def test_rows_count_by_their_weight() -> None:
    X, y = interaction()
    weights = np.random.default_rng(1).integers(1, 5, len(y)).astype(float)
    number = chosen_naively(RandomForestClassifier, X, y, [3, 6, 9], weights)
    chosen = RandomForestClassifier(n_estimators=50, max_features="oob")
    assert chosen.fit(X, y, weights).max_features_ == number


def test_any_order_of_rows_and_any_number_of_threads_give_the_same_bytes() -> None:
    X, y = interaction()
    forest = RandomForestClassifier(n_estimators=20, max_features="oob").fit(X, y)
    order = np.random.default_rng(4).permutation(len(y))
    other = RandomForestClassifier(n_estimators=20, max_features="oob", n_jobs=3)
    other.fit(X.iloc[order], y[order])
    assert other.model_.to_bytes() == forest.model_.to_bytes()


def test_warm_start_keeps_the_number() -> None:
    X, y = interaction()
    whole = RandomForestClassifier(n_estimators=60, max_features="oob").fit(X, y)
    warm = RandomForestClassifier(n_estimators=50, max_features="oob", warm_start=True)
    warm.fit(X, y).set_params(n_estimators=60).fit(X, y)
    assert warm.model_.to_bytes() == whole.model_.to_bytes()


def test_progress_counts_every_tree() -> None:
    X, y = interaction(100)
    given = {"n_estimators": 53, "max_features": "oob"}
    seen: list[int] = []
    fit_ensemble(X, y, forest_recipe(False, given), progress=seen.append)
    assert seen == [51, 52, 53]


@pytest.mark.parametrize("n_rows", [2, 3])
def test_few_rows(n_rows: int) -> None:
    X = pd.DataFrame({"a": ["x", "y", "x"][:n_rows], "b": [1, 2, 3][:n_rows]})
    forest = RandomForestClassifier(n_estimators=2, max_features="oob")
    assert forest.fit(X, ["no", "yes", "no"][:n_rows]).max_features_ == 1


def test_no_more_columns_than_there_are() -> None:
    X, y = interaction(60)
    forest = RandomForestClassifier(n_estimators=2, max_features=50).fit(X, y)
    assert forest.max_features_ == 9


def test_errors() -> None:
    X, y = interaction(60)
    with pytest.raises(ParameterError, match=r"max_features='oob' needs rows that are"):
        RandomForestClassifier(max_features="oob", bootstrap=False).fit(X, y)
    with pytest.raises(ParameterError, match=r"Every tree was grown from all rows"):
        RandomForestClassifier(
            max_features="oob", bootstrap=False, max_samples=1.0
        ).fit(X, y)
    with pytest.raises(ParameterError, match=r"max_features='oob' is for forests"):
        GradientBoostingClassifier(max_features="oob").fit(X, y)
