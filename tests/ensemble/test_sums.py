"""Sums over trees in the compiled kernel against sums of single trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise import RandomForestClassifier, RandomForestRegressor
from branchwise.native import available, extension
from branchwise.tree.apply import add_up
from forest_tables import mixed

pytestmark = pytest.mark.skipif(not available(), reason="needs the extension")


def _one_by_one(forest: Any, X: Any) -> np.ndarray:
    data = forest.model_.encoded(X)
    total = np.zeros((data.n_rows, forest.model_.node_values[0].shape[1]))
    for tree in range(len(forest)):
        total += forest.model_.predicted(tree, data)
    return total / len(forest)


@pytest.mark.parametrize("base", ["id3", "c4.5", "cart"])
@pytest.mark.parametrize("n_rows", [0, 1, 511, 513, 40_000])
def test_classes(base: str, n_rows: int) -> None:
    """C4.5 divides cases with missing values; 40,000 rows are several runs."""
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=7, base=base).fit(X, y)
    rows = np.random.default_rng(0).integers(0, len(X), n_rows)
    new = X.iloc[rows].reset_index(drop=True)
    assert np.array_equal(forest.predict_proba(new), _one_by_one(forest, new))
    forest.set_params(n_jobs=2)
    assert np.array_equal(forest.predict_proba(new), _one_by_one(forest, new))


def test_categories_alone() -> None:
    """Cells are bytes; trees test different columns, some none."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.integers(0, 6, (300, 12))).astype(str)
    X.columns = [f"x{j}" for j in range(12)]
    y = (X["x0"] == X["x1"]) | (X["x2"] == "3")
    for depth in (0, 1, None):
        forest = RandomForestClassifier(n_estimators=20, max_depth=depth, base="id3")
        forest.fit(X, y)
        assert np.array_equal(forest.predict_proba(X), _one_by_one(forest, X))


def test_many_values_are_lists_of_codes() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.integers(0, 400, 900), "b": rng.normal(size=900)})
    forest = RandomForestClassifier(n_estimators=5, categorical_features=["a"])
    forest.fit(X, X["a"] % 7 == 0)
    assert np.array_equal(forest.predict_proba(X), _one_by_one(forest, X))


def test_numbers() -> None:
    X, _ = mixed()
    forest = RandomForestRegressor(n_estimators=9).fit(X, X["income"])
    assert np.array_equal(forest.predict(X), _one_by_one(forest, X)[:, 0])


def test_surrogates() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=6, missing="surrogate").fit(X, y)
    assert np.array_equal(forest.predict_proba(X), _one_by_one(forest, X))


def test_arguments_are_checked() -> None:
    X, y = mixed()
    model = RandomForestClassifier(n_estimators=2, base="id3").fit(X, y).model_
    data, walks = model.encoded(X), [walker.native.walk for walker in model.walkers]
    columns = [np.ascontiguousarray(cells) for cells in data.data]
    values = [np.ascontiguousarray(numbers) for numbers in model.node_values]
    good = {
        "walks": walks,
        "columns": columns,
        "n_rows": data.n_rows,
        "numbers": values,
        "width": 2,
        "totals": np.zeros(2 * data.n_rows),
    }
    extension().add_up(**good)
    expected = add_up(model.walkers, data, model.node_values)
    assert np.array_equal(good["totals"].reshape(-1, 2), expected)  # type: ignore[union-attr]
    for bad, message in [
        ({"walks": walks[:1]}, "numbers must have one entry for each of the walks"),
        ({"width": 0}, "width must be above 0"),
        ({"width": 3}, "totals must have"),
        ({"totals": np.zeros(3)}, "totals must have"),
        ({"numbers": [values[0], values[1][:-1]]}, "one line for each node"),
        ({"numbers": [values[0], values[1][:, :1].copy()]}, "as many columns as width"),
        ({"columns": columns[:1]}, "one entry for each column"),
    ]:
        with pytest.raises(ValueError, match=message):
            extension().add_up(**good | bad)
    with pytest.raises(TypeError, match="must be a Walk"):
        extension().add_up(**good | {"walks": [walks[0], 3]})
    other = RandomForestClassifier(n_estimators=1).fit(X[["age"]], y).model_
    with pytest.raises(ValueError, match="same columns as the first"):
        extension().add_up(
            **good
            | {
                "walks": [walks[0], other.walkers[0].native.walk],
                "numbers": [values[0], np.ascontiguousarray(other.node_values[0])],
            }
        )
