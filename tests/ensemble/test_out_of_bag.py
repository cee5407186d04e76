"""Out-of-bag predictions against a loop over rows and trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from branchwise import ParameterError, RandomForestClassifier, RandomForestRegressor
from branchwise.plot import plot_forest_error
from forest_tables import mixed


def _naive(forest: Any, X: Any) -> np.ndarray:
    samples = forest.model_.samples
    rows = []
    for row in range(len(X)):
        one = X.iloc[[row]]
        without = [
            model
            for tree, model in enumerate(forest.model_)
            if samples.times(tree)[row] == 0
        ]
        if forest.model_.is_regression:
            values = [model.predict(one) for model in without]
        else:
            values = [model.predict_proba(one)[0] for model in without]
        nothing = np.full(len(rows[0]) if rows else 1, np.nan)
        rows.append(np.mean(values, axis=0) if values else nothing)
    return np.array(rows)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_classes(n_jobs: int | None) -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=12, oob_score=True, n_jobs=n_jobs)
    expected = _naive(forest.fit(X, y), X)
    assert np.allclose(forest.oob_decision_function_, expected, equal_nan=True)
    known = ~np.isnan(expected[:, 0])
    codes = expected[known].argmax(axis=1)
    right = forest.classes_[codes] == y[known]
    assert forest.oob_score_ == pytest.approx(right.mean())
    matrix = forest.out_of_bag().confusion_matrix
    assert matrix.sum() == known.sum()
    assert np.trace(matrix) == right.sum()


def test_numbers() -> None:
    X, _ = mixed(80)
    y = X["income"] * 3 + X["age"].fillna(40) / 10
    forest = RandomForestRegressor(n_estimators=12, oob_score=True).fit(X, y)
    expected = _naive(forest, X)[:, 0]
    assert np.allclose(forest.oob_prediction_, expected, equal_nan=True)
    known = ~np.isnan(expected)
    rest = ((y[known] - expected[known]) ** 2).mean()
    assert forest.oob_score_ == pytest.approx(1 - rest / y[known].var(ddof=0))
    with pytest.raises(ParameterError, match="needs classes"):
        _ = forest.out_of_bag().confusion_matrix


def test_few_trees_leave_rows_without_a_prediction() -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=1, oob_score=True).fit(X, y)
    in_sample = forest.model_.samples.times(0) > 0  # type: ignore[union-attr]
    assert np.isnan(forest.oob_decision_function_[in_sample]).all()
    assert (forest.out_of_bag().class_codes[in_sample] == -1).all()


def test_no_row_is_out_of_bag() -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=2, bootstrap=False).fit(X, y)
    with pytest.raises(ParameterError, match="grown from all rows"):
        forest.out_of_bag()


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_error_of_the_first_trees(voting: str) -> None:
    X, y = mixed(80)
    weights = np.random.default_rng(6).integers(0, 3, len(X)).astype(float)
    forest = RandomForestClassifier(n_estimators=9, voting=voting).fit(X, y, weights)
    errors = forest.out_of_bag().error_by_trees
    for trees in range(1, 10):
        # Tree 3 of 4 is tree 3 of 9.
        fewer = RandomForestClassifier(n_estimators=trees, voting=voting)
        score = fewer.fit(X, y, weights).out_of_bag().score
        assert errors[trees - 1] == pytest.approx(1 - score)


def test_squared_error_of_the_first_trees() -> None:
    X, _ = mixed(80)
    y = X["income"] * 3 + X["age"].fillna(40) / 10
    forest = RandomForestRegressor(n_estimators=6).fit(X, y)
    errors = forest.out_of_bag().error_by_trees
    for trees in range(1, 7):
        out = RandomForestRegressor(n_estimators=trees).fit(X, y).out_of_bag()
        distances = (out.values[out.known, 0] - y[out.known]) ** 2
        assert errors[trees - 1] == pytest.approx(distances.mean())


def test_the_plot_of_the_error() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=5).fit(X, y)
    ax = plot_forest_error(forest)
    ax.figure.canvas.draw()
    line = ax.lines[0]
    assert line.get_xdata().tolist() == [1, 2, 3, 4, 5]
    assert np.array_equal(line.get_ydata(), forest.out_of_bag().error_by_trees)
    assert ax.get_ylabel() == "out-of-bag error rate"
    numbers = RandomForestRegressor(n_estimators=3).fit(X, X["income"]).model_
    again = plot_forest_error(numbers.out_of_bag(), ax=ax)
    assert again.get_ylabel() == "out-of-bag mean squared error"
    with pytest.raises(ParameterError, match="draws a fitted forest"):
        plot_forest_error("forest")


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_views_without_rows_out_of_bag(n_rows: int, bootstrap: bool) -> None:
    X, y = {"letter": ["a", "b"][:n_rows]}, ["no", "yes"][:n_rows]
    forest = RandomForestClassifier(n_estimators=1, bootstrap=bootstrap).fit(X, y)
    if bootstrap:  # the seed is one whose sample has every row
        assert not forest.out_of_bag().known.any()
    summary = forest.model_.summary()
    assert summary.oob_score is None
    assert "Out of bag" not in summary.to_text()
    assert "out of bag" not in forest.to_html()
    if bootstrap:
        assert "nan" not in forest.importances().to_text()
        assert "of which no row is out of bag" in forest.best_tree().summary
