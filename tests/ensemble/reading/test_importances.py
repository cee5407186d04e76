"""Permutation importances against a loop over trees, columns and rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from branchwise import ParameterError, RandomForestClassifier, RandomForestRegressor
from branchwise.ensemble.reading.importances import permutation
from branchwise.stats import student
from forest_tables import mixed


def _numbers() -> tuple[pd.DataFrame, pd.Series]:
    X, _ = mixed(120)
    return X, X["income"] * 3 + X["age"].fillna(40) / 10


def _naive(forest: Any, X: pd.DataFrame, y: Any, weights: Any = None) -> np.ndarray:
    """Return how much the error rises, by tree and column."""
    samples = forest.model_.samples
    weights = np.ones(len(X)) if weights is None else weights
    lines = []
    for tree, model in enumerate(forest.model_):
        times = samples.times(tree)
        rows = [row for row in samples.order.tolist() if times[row] == 0]

        def error(table: pd.DataFrame, rows: Any = rows, model: Any = model) -> float:
            wrong = [
                (float(p) - float(y[r])) ** 2
                if forest.model_.is_regression
                else float(p != y[r])
                for p, r in zip(model.predict(table), rows, strict=True)
            ]
            return float(np.average(wrong, weights=weights[rows]))

        plain = X.iloc[rows].reset_index(drop=True)
        line = []
        for at, name in enumerate(X.columns):
            order = permutation(forest.random_state, tree, at, len(rows))
            cells = plain[name].to_numpy()[order]
            line.append(error(plain.assign(**{name: cells})) - error(plain))
        lines.append(line)
    return np.array(lines)


@pytest.mark.parametrize("case", ["classes", "weights", "hard", "numbers"])
def test_every_tree_and_column(case: str) -> None:
    X, y = _numbers() if case == "numbers" else mixed(120)
    weights = None
    if case == "weights":
        weights = np.random.default_rng(5).integers(0, 3, len(X)).astype(float)
    forest: Any = RandomForestClassifier(n_estimators=6, random_state=3)
    if case == "hard":
        forest = RandomForestClassifier(n_estimators=6, base="id3", voting="hard")
    if case == "numbers":
        forest = RandomForestRegressor(n_estimators=6, max_features=2)
    found = forest.fit(X, y, weights).importances()
    expected = _naive(forest, X, y, weights)
    order = [list(X.columns).index(name) for name in found.columns]
    assert np.allclose(found.by_tree, expected[:, order])
    assert np.allclose(found.permutation, expected.mean(axis=0)[order])
    assert (np.diff(found.permutation) <= 0).all()
    half = student(0.95, 5) * expected.std(axis=0, ddof=1)[order] / np.sqrt(6)
    assert np.allclose(found.high - found.permutation, half)
    assert np.allclose(found.permutation - found.low, half)
    assert np.array_equal(found.impurity, forest.feature_importances_[order])


def test_rows_in_any_order_and_threads() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=8).fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).set_params(n_jobs=3).fit(X.iloc[order], y.iloc[order])
    assert forest.importances().to_json() == again.importances().to_json()
    errors = forest.out_of_bag().error_by_trees
    assert np.array_equal(errors, again.out_of_bag().error_by_trees, equal_nan=True)
    assert forest.out_of_bag().score == again.out_of_bag().score


def test_numbers_in_any_order() -> None:
    X, y = _numbers()
    forest = RandomForestRegressor(n_estimators=8).fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).fit(X.iloc[order], y.iloc[order])
    assert forest.importances().to_json() == again.importances().to_json()
    errors = forest.out_of_bag().error_by_trees
    assert np.array_equal(errors, again.out_of_bag().error_by_trees, equal_nan=True)
    assert forest.out_of_bag().score == again.out_of_bag().score


def test_a_permutation_has_every_row_once() -> None:
    orders = {tuple(permutation(0, tree, at, 50)) for tree in (0, 1) for at in (0, 1)}
    assert len(orders) == 4
    assert all(sorted(order) == list(range(50)) for order in orders)


def test_formats() -> None:
    X, y = mixed(80)
    X = X.rename(columns={"noise": "a|b<c>"})
    found = RandomForestClassifier(n_estimators=5).fit(X, y).importances(level=0.9)
    text, markdown, html = str(found), found.to_markdown(), found.to_html()
    assert text.splitlines()[0].split() == [
        "column",
        "permutation",
        "90",
        "%",
        "interval",
        "impurity",
    ]
    assert r"a\|b\<c\>" in markdown
    assert "a|b&lt;c&gt;" in html
    assert list(found.to_frame()["column"]) == list(found.columns)
    lines = json.loads(found.to_json())["columns"]
    assert [line["permutation"] for line in lines] == found.permutation.tolist()
    assert repr(found) == "<importances of 5 columns in 5 trees>"
    assert len(found) == 5


def test_one_tree_has_no_interval() -> None:
    X, y = mixed(80)
    found = RandomForestClassifier(n_estimators=1).fit(X, y).importances()
    assert np.isnan(found.low).all()
    assert {line["low"] for line in found.to_dict()["columns"]} == {None}
    assert " to " not in str(found).splitlines()[1]


def test_numbers_are_not_percent() -> None:
    X, y = _numbers()
    found = RandomForestRegressor(n_estimators=3).fit(X, y).importances()
    assert "mean squared error" in str(found)
    assert "%" not in str(found).splitlines()[1].rpartition("  ")[0]


def test_no_row_is_out_of_bag() -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=2, bootstrap=False).fit(X, y)
    with pytest.raises(ParameterError, match="grown from all rows"):
        forest.importances()
    with pytest.raises(ParameterError, match="level must be a share"):
        forest.importances(level=95)
