"""Explanations of a forest against its trees, one by one."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from branchwise import (
    BoostedClassifier,
    DataError,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ParameterError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from branchwise.explain.explanation import Explanations
from branchwise.stats import share_interval
from forest_tables import mixed


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("base", ["cart", "c4.5"])
def test_votes_and_conditions(base: str, voting: str) -> None:
    X, y = mixed(150)
    new, _ = mixed(12, seed=5)
    forest: Any = RandomForestClassifier(n_estimators=9, base=base, voting=voting)
    forest.fit(X, y)
    explained = forest.explain(new, level=0.9)
    assert isinstance(explained, Explanations)
    for row, found in enumerate(explained):
        one = new.iloc[[row]]
        own = [model.predict(one)[0] for model in forest.model_]
        assert list(found.trees) == own
        assert found.votes == {label: own.count(label) for label in ("no", "yes")}
        assert found.prediction == forest.predict(one)[0]
        expected = forest.predict_proba(one)[0]
        assert list(found.probabilities.values()) == expected.tolist()
        share = own.count(found.prediction) / 9
        assert found.interval == share_interval(share, 9, 0.9)
        columns: Counter[str] = Counter()
        voters = [
            m for m, v in zip(forest.model_, own, strict=True) if v == found.prediction
        ]
        for model in voters:
            # The path of the largest share, as single trees are explained.
            ending = model.explain(one).endings[0]
            columns.update({step.column for step in ending.steps})
        shares: dict[str, float] = {}
        for condition in found.conditions:
            name = condition.condition.column
            shares[name] = max(shares.get(name, 0.0), condition.share)
        assert set(shares) == set(columns)
        for name, share in shares.items():
            assert share <= columns[name] / len(voters) + 1e-12
        order = [condition.share for condition in found.conditions]
        assert order == sorted(order, reverse=True)


def test_numbers_have_an_interval_of_the_target() -> None:
    X, _ = mixed(150)
    y = X["income"] * 3 + X["age"].fillna(40) / 10
    forest = RandomForestRegressor(n_estimators=6).fit(X, y)
    found: Any = forest.explain(X.iloc[[3]], level=0.8)
    assert found.prediction == forest.predict(X.iloc[[3]])[0]
    assert list(found.trees) == [m.predict(X.iloc[[3]])[0] for m in forest.model_]
    assert list(found.interval) == forest.predict_interval(X.iloc[[3]], 0.8)[0].tolist()
    assert "80 % interval of the target" in str(found)
    forest.model_.samples = None
    assert forest.explain(X.iloc[[3]]).interval is None  # type: ignore[union-attr]
    assert "interval" not in str(forest.explain(X.iloc[[3]]))


def test_thresholds_are_medians() -> None:
    X, y = mixed(150)
    forest = RandomForestClassifier(n_estimators=9, max_depth=1, max_features=None)
    found: Any = forest.fit(X[["income"]], y).explain(X[["income"]].iloc[[0]])
    side = found.conditions[0].condition
    voters = [
        float(model.tree.threshold[0])
        for model, label in zip(forest.model_, found.trees, strict=True)
        if label == found.prediction
        and (X["income"][0] > model.tree.threshold[0]) == (side.op == ">")
    ]
    assert side.value == sorted(voters)[(len(voters) - 1) // 2]


@pytest.mark.parametrize("numbers", [False, True])
def test_shapley_values_are_the_means_of_the_trees(numbers: bool) -> None:
    X, y = mixed(150)
    forest: Any = RandomForestClassifier(n_estimators=5, max_depth=4)
    if numbers:
        forest, y = RandomForestRegressor(n_estimators=5, max_depth=4), X["income"] * 2
    forest.fit(X, y)
    for background in (None, X[:20]):
        found = forest.model_.shap(X[:10], background)
        single = [model.shap(X[:10], background) for model in forest.model_]
        assert np.allclose(
            found.values, np.mean([one.values for one in single], axis=0)
        )
        means = np.mean([one.base_values for one in single], axis=0)
        assert np.allclose(found.base_values, means)
        own = forest.predict(X[:10]) if numbers else forest.predict_proba(X[:10])
        assert np.array_equal(found.predictions, own)
        assert np.allclose(found.base_values + found.values.sum(axis=1), own)
    explained = forest.explain(X[:3], shap=True)
    assert "Shapley values: base value" in str(explained[1])
    assert explained[2].to_dict()["shap"]["rows"][0]["row"] == 2


def test_formats() -> None:
    X, y = mixed(100)
    X = X.rename(columns={"income": "<b>|"})
    found: Any = RandomForestClassifier(n_estimators=7).fit(X, y).explain(X.iloc[[0]])
    assert repr(found).startswith("<explanation of row 0: ")
    assert "Votes of 7 trees: " in str(found)
    assert "<b>" not in found.to_html()
    assert r"\<b\>\|" in found.to_markdown()
    document = json.loads(found.to_json())
    assert sum(vote["trees"] for vote in document["votes"]) == 7
    assert len(document["conditions"]) == len(found.conditions)


def test_what_explanations_need() -> None:
    X, y = mixed(80)
    divided = RandomForestClassifier(n_estimators=2, voting="hard", base="c4.5")
    with pytest.raises(DataError, match=r"Row \d+ is divided by tree 0: it has a"):
        divided.fit(X, y).explain(X, shap=True)
    with pytest.raises(ParameterError, match="do without it, or fit the forest with"):
        divided.explain(X, shap=True, background=X)
    forest = RandomForestClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ParameterError, match="background has no effect"):
        forest.explain(X, background=X)
    with pytest.raises(ParameterError, match="level must be a share"):
        forest.explain(X, level=95)


def test_shapley_values_of_votes() -> None:
    X, y = mixed(120)
    forest = RandomForestClassifier(n_estimators=5, max_depth=3, voting="hard")
    found = forest.fit(X, y).model_.shap(X[:10])
    assert np.array_equal(found.predictions, forest.predict_proba(X[:10]))
    total = found.base_values + found.values.sum(axis=1)
    assert np.allclose(total, found.predictions)


@pytest.mark.parametrize("base", ["cart", "c4.5"])
def test_shapley_values_of_boosted_trees(base: str) -> None:
    X, y = mixed(120)
    boosted = BoostedClassifier(n_estimators=5, base=base, max_depth=3).fit(X, y)
    if base == "c4.5":  # whose trees divide rows with a missing value
        X = X.dropna()
    found = boosted.model_.shap(X[:10])
    assert np.array_equal(found.predictions, boosted.predict_proba(X[:10]))
    total = found.base_values + found.values.sum(axis=1)
    assert np.allclose(total, found.predictions)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_shapley_values_of_margins(n_classes: int) -> None:
    X, _ = mixed(150)
    target = X["income"] * 3 + X["age"].fillna(40) / 10
    boosted: Any = GradientBoostingRegressor(n_estimators=4, max_depth=3)
    if n_classes:
        boosted = GradientBoostingClassifier(n_estimators=4, max_depth=3)
        target = np.digitize(target, [5.0, 9.0][: n_classes - 1])
    model = boosted.fit(X, target).model_
    for background in (None, X[:15]):
        found = model.shap(X[:10], background)
        margins = model.margins(X[:10])
        if n_classes == 2:
            margins = np.concatenate([-margins, margins], axis=1)
        if not n_classes:
            margins = margins[:, 0]
        assert np.array_equal(found.predictions, margins)
        assert np.allclose(found.base_values + found.values.sum(axis=1), margins)
        # A sum over trees: the values are the sums of those of the trees.
        width = model.n_outputs
        for turn in range(width):
            single = [one.shap(X[:10], background) for one in list(model)[turn::width]]
            values = found.values
            if n_classes:
                values = values[..., turn if n_classes == 3 else 1]
            assert np.allclose(values, np.sum([one.values for one in single], axis=0))
    if n_classes:
        assert found[:, 1].outcome == "margin of 1"
        assert "margin of each class" in str(found)


def test_boosting_is_no_forest() -> None:
    X, y = mixed(100)
    boosted = GradientBoostingClassifier(n_estimators=2).fit(X, y).model_
    for read in (
        boosted.out_of_bag,
        boosted.importances,
        boosted.best_tree,
        boosted.rules,
        boosted.prototypes,
        boosted.proximities,
    ):
        with pytest.raises(ParameterError, match="need a forest, whose trees are"):
            read()
