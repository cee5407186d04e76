"""``max_features="auto"``: of classes the square root rounded up, of numbers all."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ParameterError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from branchwise.ensemble.drawn_columns import _numbers
from branchwise.recipe.ensemble_recipe import (
    EnsembleRecipe,
    forest_recipe,
    gradient_recipe,
)
from branchwise.recipe.parameters import PARAMETERS

#: How many columns there are, and the square root of it rounded up and down.
ROOTS = [
    (1, 1, 1),
    (2, 2, 1),
    (4, 2, 2),
    (5, 3, 2),
    (6, 3, 2),
    (16, 4, 4),
    (20, 5, 4),
    (100, 10, 10),
]


def table(n_columns: int, n_rows: int = 60) -> tuple[pd.DataFrame, Any]:
    """Return a table of categories, and classes that two columns tell."""
    rng = np.random.default_rng(n_columns)
    cells = rng.choice(list("abcd"), (n_rows, n_columns))
    X = pd.DataFrame(cells, columns=[f"c{at}" for at in range(n_columns)])
    return X, np.where((X["c0"] < "c") == (X[f"c{n_columns - 1}"] < "b"), "yes", "no")


@pytest.mark.parametrize(("n_columns", "up", "down"), ROOTS)
def test_of_classes_the_square_root_rounded_up(
    n_columns: int, up: int, down: int
) -> None:
    recipe = forest_recipe(False, {})
    assert recipe.max_features == "auto"
    assert recipe.columns_drawn(n_columns) == up
    assert replace(recipe, max_features="sqrt").columns_drawn(n_columns) == down
    X, y = table(n_columns)
    forest = RandomForestClassifier(n_estimators=3).fit(X, y)
    assert forest.max_features_ == up
    given = RandomForestClassifier(n_estimators=3, max_features=up).fit(X, y)
    assert forest.model_.trees == given.model_.trees
    down_forest = RandomForestClassifier(n_estimators=3, max_features="sqrt").fit(X, y)
    given = RandomForestClassifier(n_estimators=3, max_features=down).fit(X, y)
    assert down_forest.model_.trees == given.model_.trees
    assert down_forest.max_features_ == down


@pytest.mark.parametrize(("n_columns", "up", "down"), ROOTS)
def test_of_numbers_all_columns(n_columns: int, up: int, down: int) -> None:
    recipe = forest_recipe(True, {"max_features": "auto"})
    assert recipe.columns_drawn(n_columns) == n_columns
    assert replace(recipe, max_features="sqrt").columns_drawn(n_columns) == down
    X, y = table(n_columns)
    numbers = np.arange(len(y)) * (y == "yes")
    auto = RandomForestRegressor(n_estimators=2, max_features="auto").fit(X, numbers)
    assert auto.max_features_ == n_columns
    usual = RandomForestRegressor(n_estimators=2).fit(X, numbers)
    assert auto.model_.trees == usual.model_.trees


def test_every_number_of_columns() -> None:
    recipe = EnsembleRecipe()
    for n_columns in range(1, 2000):
        drawn = recipe.columns_drawn(n_columns)
        assert (drawn - 1) ** 2 < n_columns <= drawn**2
    # Large squares are told from one column more.
    for root in (10**3, 10**4, 10**5):
        assert recipe.columns_drawn(root**2) == root
        assert recipe.columns_drawn(root**2 + 1) == root + 1


def test_defaults() -> None:
    assert EnsembleRecipe().max_features == "auto"
    assert RandomForestClassifier().max_features == "auto"
    assert RandomForestRegressor().max_features == 1.0
    assert forest_recipe(True, {}).max_features == 1.0
    assert GradientBoostingClassifier().max_features is None


def test_extremely_randomised_trees() -> None:
    X, y = table(6)
    options: dict[str, Any] = {"n_estimators": 3, "splitter": "random"}
    forest = RandomForestClassifier(**options).fit(X, y)
    given = RandomForestClassifier(**options, max_features=3).fit(X, y)
    assert forest.model_.trees == given.model_.trees


@pytest.mark.parametrize(
    "estimator", [GradientBoostingClassifier, GradientBoostingRegressor]
)
def test_gradient_boosting_has_all_columns(estimator: Any) -> None:
    X, y = table(6)
    if estimator is GradientBoostingRegressor:
        y = (y == "yes") * 1.0
    usual = estimator(n_estimators=3).fit(X, y)
    auto = estimator(n_estimators=3, max_features="auto").fit(X, y)
    assert auto.model_.trees == usual.model_.trees
    recipe = gradient_recipe("log_loss", {"max_features": "auto"})
    assert recipe.columns_drawn(20) == 20


def test_any_order_of_rows_and_any_number_of_threads_give_the_same_bytes() -> None:
    X, y = table(6, 200)
    forest = RandomForestClassifier(n_estimators=5).fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    other = RandomForestClassifier(n_estimators=5, n_jobs=3)
    other.fit(X.iloc[order], y[order])
    assert other.model_.to_bytes() == forest.model_.to_bytes()


def test_out_of_bag_begins_with_the_square_root_rounded_down() -> None:
    classes = forest_recipe(False, {"max_features": "oob"})
    assert list(_numbers(classes, 5)) == [2, 4, 5]
    assert list(_numbers(classes, 6)) == [2, 4, 6]
    assert list(_numbers(classes, 20)) == [math.isqrt(20), 8, 16, 20]
    assert list(_numbers(forest_recipe(True, {"max_features": "oob"}), 6)) == [6, 3, 1]


def test_what_is_allowed_is_told() -> None:
    X, y = table(4)
    with pytest.raises(ParameterError, match=r"None, 'auto', 'sqrt', 'log2', 'oob', a"):
        RandomForestClassifier(max_features="automatic").fit(X, y)
    with pytest.raises(ParameterError, match=r"of them, 'auto', 'sqrt' or 'log2'\."):
        GradientBoostingClassifier(max_features="oob").fit(X, y)
    declared = PARAMETERS["max_features"]
    assert '"auto", "sqrt", "log2", "oob"' in declared.type
    assert "|auto|sqrt|log2|" in str(declared.metavar)


def test_the_summary_tells_the_number() -> None:
    X, y = table(6)
    forest = RandomForestClassifier(n_estimators=2).fit(X, y)
    assert "Each node has 3 of 6 columns as candidates" in str(forest.model_.summary())
    two, y = table(2)
    forest = RandomForestClassifier(n_estimators=2).fit(two, y)
    assert "as candidates, drawn" not in str(forest.model_.summary())
