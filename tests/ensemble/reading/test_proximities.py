"""Proximities and prototypes against loops over pairs of rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from branchwise import ParameterError, RandomForestClassifier, RandomForestRegressor
from forest_tables import mixed


def _shares(forest: Any, X: Any) -> list[list[dict[int, float]]]:
    """Return, by tree and row, the shares of the row at the nodes."""
    found = []
    for model in forest.model_:
        rows: list[dict[int, float]] = [{} for _ in range(len(X))]
        arrivals = model.arrivals(X)
        for row, node, share in zip(
            arrivals.row, arrivals.node, arrivals.share, strict=True
        ):
            rows[row][int(node)] = float(share)
        found.append(rows)
    return found


def _together(one: dict[int, float], other: dict[int, float]) -> float:
    return sum(share * other.get(node, 0.0) for node, share in one.items())


@pytest.mark.parametrize("base", ["cart", "c4.5"])
def test_every_pair(base: str) -> None:
    X, y = mixed(60)
    new, _ = mixed(15, seed=3)
    forest = RandomForestClassifier(n_estimators=7, base=base, max_depth=4).fit(X, y)
    old_rows, new_rows = _shares(forest, X), _shares(forest, new)
    expected = [
        [
            np.mean(
                [
                    _together(old[i], late[j])
                    for old, late in zip(old_rows, new_rows, strict=True)
                ]
            )
            for j in range(len(new))
        ]
        for i in range(len(X))
    ]
    found = forest.proximities(X, new)
    assert np.allclose(found.toarray(), expected)
    own = forest.proximities()
    assert np.allclose(own.toarray(), forest.proximities(X).toarray())
    assert np.allclose(own.toarray(), own.T.toarray())
    if base == "cart":
        assert (own.diagonal() == 1).all()


def test_pairs_out_of_bag() -> None:
    X, y = mixed(60)
    forest = RandomForestClassifier(n_estimators=9, max_depth=4).fit(X, y)
    shares, samples = _shares(forest, X), forest.model_.samples
    out = [samples.times(tree) == 0 for tree in range(9)]  # type: ignore[union-attr]
    found = forest.proximities(out_of_bag=True).toarray()
    for i in range(len(X)):
        for j in range(len(X)):
            trees = [tree for tree in range(9) if out[tree][i] and out[tree][j]]
            each = [_together(shares[tree][i], shares[tree][j]) for tree in trees]
            assert found[i, j] == pytest.approx(np.mean(each) if each else 0.0)


@pytest.mark.parametrize("base", ["cart", "c4.5"])
def test_prototypes_by_definition(base: str) -> None:
    X, y = mixed(80)
    weights = np.random.default_rng(3).integers(0, 4, len(X)).astype(float)
    forest = RandomForestClassifier(n_estimators=7, base=base).fit(X, y, weights)
    near = forest.proximities().toarray()
    found = forest.prototypes()
    assert found.classes == ("no", "yes")
    for label, row, value, cells in zip(
        found.classes, found.rows, found.proximity, found.cells, strict=True
    ):
        own = (y == label).to_numpy()
        means = (near[:, own] * weights[own]).sum(axis=1) / weights[own].sum()
        best = means[own & (weights > 0)].max()
        assert value == pytest.approx(best)
        assert means[row] == pytest.approx(best)
        assert own[row]
        expected = X.iloc[row].astype(object).where(X.iloc[row].notna(), None)
        assert list(cells) == expected.tolist()


def test_prototypes_of_rows_in_any_order() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=8).fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).set_params(n_jobs=2).fit(X.iloc[order], y.iloc[order])
    one, other = forest.prototypes(), again.prototypes()
    assert (one.cells, one.proximity) == (other.cells, other.proximity)


def test_formats() -> None:
    X, y = mixed(80)
    X["a|b"] = "<i>"
    found = RandomForestClassifier(n_estimators=3).fit(X, y).prototypes()
    lines = str(found).splitlines()
    assert lines[0].split() == ["column", "no", "yes"]
    assert [line.split()[0] for line in lines[1:7]] == list(X.columns)
    assert "&lt;i&gt;" in found.to_html()
    assert r"a\|b" in found.to_markdown()
    assert json.loads(found.to_json())["classes"][1]["class"] == "yes"
    assert list(found.to_frame()["row"]) == list(found.rows)
    assert (repr(found), len(found)) == ("<prototypes of 2 classes>", 2)


def test_what_they_need() -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ParameterError, match="about the training rows"):
        forest.proximities(X, out_of_bag=True)
    all_rows = RandomForestClassifier(n_estimators=2, bootstrap=False).fit(X, y)
    with pytest.raises(ParameterError, match="grown from all rows"):
        all_rows.proximities(out_of_bag=True)
    numbers = RandomForestRegressor(n_estimators=2).fit(X, X["income"])
    assert numbers.proximities(X[:3]).shape == (3, 3)
    with pytest.raises(ParameterError, match="prototypes needs a forest that predicts"):
        numbers.prototypes()
    forest.model_.samples = None
    with pytest.raises(ParameterError, match="Prototypes need the training rows"):
        forest.prototypes()
    assert forest.proximities(X[:2]).shape == (2, 2)
