"""Quantiles against a loop over trees, rows and leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from branchwise import ParameterError, RandomForestClassifier, RandomForestRegressor
from branchwise.ensemble.reading import quantiles as module
from forest_tables import mixed
from selection import first_fast

QUANTILES = [0.0, 0.05, 0.25, 0.5, 0.9, 1.0]


def _table(n_rows: int = 120, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    X, _ = mixed(n_rows, seed)
    noise = np.random.default_rng(seed).integers(0, 4, n_rows)
    return X, (X["income"] * 3 + X["age"].fillna(40) / 10).round() + noise


def _weights_of(forest: Any, X: Any, one: Any, weights: np.ndarray) -> np.ndarray:
    """Return the weight of each training row for one row, as the docstring says."""
    samples, total = forest.model_.samples, np.zeros(len(X))
    for tree, model in enumerate(forest.model_):
        amount = samples.times(tree) * weights
        rows = model.arrivals(X)
        for node, share in _shares(model, one):
            # All that went through the node: its own, and what arrives below it.
            in_node = np.zeros(len(X))
            for row, at, part in zip(rows.row, rows.node, rows.share, strict=True):
                while at > node:
                    at = model.tree.parent[at]
                if at == node:
                    in_node[row] += amount[row] * part
            total += share * in_node / in_node.sum()
    return total / len(forest.model_)


def _shares(model: Any, one: Any) -> list[tuple[int, float]]:
    arrivals = model.arrivals(one)
    return list(zip(arrivals.node.tolist(), arrivals.share.tolist(), strict=True))


def _naive(weights: np.ndarray, y: np.ndarray, quantile: float) -> float:
    total = 0.0
    for target in sorted(set(y[weights > 0].tolist())):
        total += float(weights[y == target].sum())
        if total >= quantile - 1e-12:
            return target
    raise AssertionError(total)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_samples_leaf": 8, "max_features": 2},
        {"missing": "split", "unseen": "split", "min_samples_leaf": 5},
        {"missing": "node", "unseen": "node"},
        {"bootstrap": False},
    ],
)
@pytest.mark.parametrize("weighted", first_fast([True, False]))
def test_quantiles_by_definition(options: Any, weighted: bool) -> None:
    X, y = _table()
    new, _ = _table(25, seed=7)
    new["colour"] = new["colour"].where(new.index % 3 > 0, "violet")
    weights = np.ones(len(X))
    if weighted:
        weights = np.random.default_rng(3).integers(0, 4, len(X)) / 2
    forest = RandomForestRegressor(n_estimators=6, **options)
    forest.fit(X, y, weights if weighted else None)
    found = forest.predict_quantiles(new, QUANTILES)
    means = forest.predict(new)
    for at in range(len(new)):
        own = _weights_of(forest, X, new.iloc[[at]], weights)
        assert own @ y.to_numpy() == pytest.approx(means[at])
        expected = [_naive(own, y.to_numpy(), q) for q in QUANTILES]
        assert found[at].tolist() == expected


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _table(300)
    forest = RandomForestRegressor(n_estimators=5, unseen="node").fit(X, y)
    new = X.assign(colour="violet")
    whole = forest.predict_quantiles(new, QUANTILES)
    monkeypatch.setattr(module, "_MOST_ENTRIES", 40)
    monkeypatch.setattr(module, "_MOST_ROWS", 7)
    monkeypatch.setattr(module, "_WALKED", 50)
    assert np.array_equal(whole, forest.predict_quantiles(new, QUANTILES))
    again = clone(forest).set_params(n_jobs=2).fit(X, y)
    assert np.array_equal(whole, again.predict_quantiles(new, QUANTILES))


def test_rows_in_any_order() -> None:
    X, y = _table(200)
    weights = np.random.default_rng(3).random(len(X))
    forest = RandomForestRegressor(n_estimators=5, min_samples_leaf=4)
    whole = forest.fit(X, y, weights).predict_quantiles(X, 0.3)
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).fit(X.iloc[order], y.iloc[order], weights[order])
    assert np.array_equal(whole, again.predict_quantiles(X, 0.3))


def test_intervals_hold_what_they_promise() -> None:
    X, new = mixed(1500)[0], mixed(500, seed=8)[0]
    y, wanted = (
        table["income"] + np.random.default_rng(len(table)).normal(size=len(table))
        for table in (X, new)
    )
    forest = RandomForestRegressor(n_estimators=30, min_samples_leaf=10).fit(X, y)
    low, high = forest.predict_interval(new, level=0.8).T
    assert 0.75 <= ((low <= wanted) & (wanted <= high)).mean() <= 0.88
    assert np.array_equal(low, forest.predict_quantiles(new, (1 - 0.8) / 2))
    assert (low <= high).all()


def test_shapes() -> None:
    X, y = _table()
    forest = RandomForestRegressor(n_estimators=3).fit(X, y)
    assert forest.predict_quantiles(X, 0.5).shape == (120,)
    assert forest.predict_quantiles(X, [0.5]).shape == (120, 1)
    assert forest.predict_quantiles(X[:0], [0.1, 0.9]).shape == (0, 2)
    constant = RandomForestRegressor(n_estimators=3).fit(X, [1.5] * len(X))
    assert set(constant.predict_quantiles(X, 0.5).tolist()) == {1.5}


@pytest.mark.parametrize("wrong", [1.5, [0.5, -0.1], "half", None, [[0.5]], [np.nan]])
def test_impossible_quantiles(wrong: Any) -> None:
    X, y = _table()
    forest = RandomForestRegressor(n_estimators=2).fit(X, y)
    with pytest.raises(ParameterError, match="quantiles must be a number from 0 to 1"):
        forest.predict_quantiles(X, wrong)


def test_what_quantiles_need() -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=2).fit(X, y)
    assert not hasattr(forest, "predict_quantiles")
    with pytest.raises(ParameterError, match="Quantiles need a forest that predicts"):
        forest.model_.predict_quantiles(X)
    numbers = RandomForestRegressor(n_estimators=2).fit(X, X["income"]).model_
    with pytest.raises(ParameterError, match="level must be a share"):
        numbers.predict_interval(X, level=90)
    numbers.samples = None
    with pytest.raises(ParameterError, match="Quantiles need the training rows"):
        numbers.predict_quantiles(X)


def test_many_targets() -> None:
    """Ranks of 13 bits are found in three steps."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"x": rng.random(6000), "c": rng.choice(list("abcde"), 6000)})
    y = X["x"].to_numpy() * 5 + rng.normal(size=6000)
    forest = RandomForestRegressor(n_estimators=4, min_samples_leaf=40).fit(X, y)
    some = X.iloc[:8]
    found = forest.predict_quantiles(some, QUANTILES)
    samples = forest.model_.samples
    weights = np.zeros((len(some), len(X)))
    for tree, model in enumerate(forest.model_):
        times = samples.times(tree)  # type: ignore[union-attr]
        node, own = model.arrivals(X).node, model.arrivals(some).node
        for row, at in enumerate(own):
            inside = (node == at) * times
            weights[row] += inside / inside.sum() / 4
    for row, each in enumerate(weights):
        assert found[row].tolist() == [_naive(each, y, q) for q in QUANTILES]


@pytest.mark.parametrize("most", [1 << 8, 1 << 16, 1 << 20, 1 << 40])
def test_the_order_of_nodes(most: int) -> None:
    numbers = np.random.default_rng(1).integers(0, most, 2000)
    numbers[::3] = numbers[0]
    expected = np.argsort(numbers, kind="stable")
    assert np.array_equal(module._stable_order(numbers, most), expected)
