"""Rules of a forest against a walk of every tree, row by row."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from branchwise import (
    ParameterError,
    RandomForestClassifier,
    RandomForestRegressor,
    datasets,
)
from branchwise.rules.rule import Rule
from branchwise.rules.rule_set import Rules
from branchwise.stats import share_interval, student
from branchwise.text.conditions import Condition, condition_of
from forest_tables import mixed


def _categories(n_rows: int = 300) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {
            "a": rng.choice(["x", "y"], n_rows),
            "b": rng.choice(["u", "v", "w"], n_rows),
            "c": rng.choice(["p", "q"], n_rows),
        }
    )
    y = np.where((X["a"] == "x") & (X["b"] != "u"), "yes", "no")
    return X, pd.Series(np.where(rng.random(n_rows) < 0.1, "yes", y))


def _holds(condition: Condition, cells: pd.Series) -> np.ndarray:
    value: Any = condition.value
    match condition.op:
        case "=":
            found = cells == value
        case "in":
            found = cells.isin(value)
        case "not in":
            found = cells.notna() & ~cells.isin(value)
        case "<=":
            found = cells <= value
        case ">":
            found = cells > value
        case "within":
            found = (cells > value[0]) & (cells <= value[1])
        case "is known":
            found = cells.notna()
        case _:
            found = cells.isna()
    return found.to_numpy(dtype=bool)


def _covered(rule: Rule, X: pd.DataFrame) -> np.ndarray:
    masks = [_holds(condition, X[condition.column]) for condition in rule.conditions]
    return np.logical_and.reduce(masks)


def _paths(model: Any, depth: int) -> set[frozenset[Any]]:
    """Return the (column, values) of the paths of a tree of two-way splits."""
    tree, found = model.tree, set()
    for node in range(1, len(tree)):
        conditions: dict[str, set[Any]] = {}
        at, length = node, 0
        while at > 0:
            condition = condition_of(model.schema, tree, at)
            value: Any = condition.value
            values = set(value if isinstance(value, tuple) else [value])
            known = conditions.setdefault(condition.column, values)
            known &= values
            at, length = int(tree.parent[at]), length + 1
        if length <= depth and tree.cases[node] >= 3:
            found.add(frozenset((c, frozenset(v)) for c, v in conditions.items()))
    return found


def test_frequencies() -> None:
    X, y = _categories()
    forest = RandomForestClassifier(n_estimators=20, max_features=1).fit(X, y)
    rules = forest.rules(at_most=6)
    assert 1 < len(rules) <= 6
    counts = Counter(path for model in forest.model_ for path in _paths(model, 3))
    for rule, frequency in zip(rules, rules.frequency, strict=True):
        masks = {
            frozenset(
                (c.column, frozenset(X[c.column][_holds(c, X[c.column])]))
                for c in rule.conditions
            )
        }
        assert counts[masks.pop()] / 20 == frequency
    assert min(rules.frequency) >= 2 / 20


@pytest.mark.parametrize("weighted", [False, True])
def test_cases_are_averages_over_trees(weighted: bool) -> None:
    X, y = _categories()
    weights = np.ones(len(X))
    if weighted:
        weights = np.random.default_rng(3).integers(0, 4, len(X)).astype(float)
    forest = RandomForestClassifier(n_estimators=10, max_features=1)
    forest.fit(X, y, weights if weighted else None)
    for rule in forest.rules():
        covered = _covered(rule, X) & (weights > 0)
        own = frozenset(
            (c.column, frozenset(X[c.column][_holds(c, X[c.column])]))
            for c in rule.conditions
        )
        absent = [
            forest.model_.samples.times(tree) == 0  # type: ignore[union-attr]
            for tree, model in enumerate(forest.model_)
            if own in _paths(model, 3)
        ]
        n = np.mean([(covered & out).sum() for out in absent])
        right = np.mean([(covered & out & (y == rule.label)).sum() for out in absent])
        total = np.mean([(out & (weights > 0)).sum() for out in absent])
        assert rule.n == pytest.approx(n)
        assert rule.confidence == pytest.approx(right / n)
        assert rule.coverage == pytest.approx(n / total)
        assert rule.interval == pytest.approx(share_interval(right / n, n, 0.95))
        prior = np.average(y == rule.label, weights=weights)
        assert rule.low > prior  # type: ignore[operator]
        if weighted:
            weight = np.mean([weights[covered & out].sum() for out in absent])
            assert rule.weight == pytest.approx(weight)


def test_rules_that_hold_predict_together() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=20).fit(X, y)
    rules = forest.rules(at_most=6)
    found, predicted = rules.predict_proba(X), rules.predict(X)
    covers = [_covered(rule, X) for rule in rules]
    rest = ~np.logical_or.reduce(covers)
    for row in range(len(X)):
        holding = [
            [rule.counts[label] / rule.n for label in ("no", "yes")]
            for rule, cover in zip(rules, covers, strict=True)
            if cover[row]
        ]
        own = y[rest] if rest.any() else y
        usual = [float(np.mean(own == label)) for label in ("no", "yes")]
        expected = np.mean(holding, axis=0) if holding else usual
        assert found[row] == pytest.approx(expected)
        assert predicted[row] == ("no", "yes")[int(np.argmax(found[row]))]
    assert rules.accuracy == pytest.approx(rules.score(X, y))
    assert rules.accuracy > 0.75
    assert rules.forest_accuracy == forest.out_of_bag().score
    assert np.array_equal(rules.predict_proba(X[5:8]), found[5:8])


def test_no_rule_follows_from_others() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=30, max_features="sqrt").fit(X, y)
    rules = forest.rules(at_most=15)
    covers = np.array([_covered(rule, X) for rule in rules] + [np.ones(len(X))])
    assert np.linalg.matrix_rank(covers.astype(float)) == len(rules) + 1
    assert len(rules) <= 15
    assert all(len(rule.conditions) <= 3 for rule in rules)


def test_rules_are_short_and_hold_for_different_rows() -> None:
    X, y = mixed()
    rules = RandomForestClassifier(n_estimators=30).fit(X, y).rules(at_most=15)
    covers = np.array([_covered(rule, X) for rule in rules] + [np.ones(len(X))])
    assert len(np.unique(covers.astype(bool), axis=0)) == len(rules) + 1
    assert len(rules) <= 15
    assert all(len(rule.conditions) <= 3 for rule in rules)


def test_thresholds_of_the_same_tenth_are_the_same() -> None:
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"x": rng.normal(size=400), "z": rng.normal(size=400)})
    y = pd.Series(np.where(X["x"] > 0.05, "high", "low"))
    rules = RandomForestClassifier(n_estimators=20, max_features=None).fit(X, y).rules()
    assert len(rules) == 1
    (condition,) = rules[0].conditions
    assert condition.column == "x"
    assert condition.value == pytest.approx(0.05, abs=0.03)
    assert rules.frequency == (1.0,)


def test_rows_in_any_order() -> None:
    X, y = mixed()
    weights = np.random.default_rng(3).random(len(X))
    forest = RandomForestClassifier(n_estimators=12).fit(X, y, weights)
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).set_params(n_jobs=2)
    again.fit(X.iloc[order], y.iloc[order], weights[order])
    assert forest.rules().to_json() == again.rules().to_json()


@pytest.mark.parametrize("base", ["id3", "c4.5"])
def test_many_branches(base: str) -> None:
    car = datasets.load("car")
    forest = RandomForestClassifier(n_estimators=15, base=base).fit(car.X, car.y)
    rules = forest.rules(at_most=5, max_conditions=2)
    assert 0 < len(rules) <= 5
    assert "persons is 2" in rules.to_text()


def test_views() -> None:
    X, y = mixed()
    rules = RandomForestClassifier(n_estimators=10).fit(X, y).rules(at_most=4)
    assert isinstance(rules, Rules)
    assert f"otherwise {rules.default}" in repr(rules)
    text = rules.to_text()
    assert f"Otherwise, bought is {rules.default}." in text or "Otherwise, the" in text
    assert "of the trees" in text
    assert rules.to_markdown().startswith("1. If ")
    assert rules.to_frame()["frequency"].tolist() == list(rules.frequency)
    document = json.loads(rules.to_json())
    assert document["default"] == rules.default
    assert document["rules"][0]["frequency"] == rules.frequency[0]
    assert len(rules.sort_by("coverage")) == len(rules)
    assert {rule.label for rule in rules.for_class("yes")} <= {"yes"}


@pytest.mark.parametrize("wrong", [0, 2.5, "all", True])
def test_impossible_numbers(wrong: Any) -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ParameterError, match="at_most must be a whole number"):
        forest.rules(wrong)
    with pytest.raises(ParameterError, match="max_conditions must be a whole number"):
        forest.rules(max_conditions=wrong)


def test_there_may_be_no_rule() -> None:
    X, _ = mixed(60)
    y = pd.Series(["a", "b"] * 30)
    rules = RandomForestClassifier(n_estimators=3, max_depth=1).fit(X, y).rules()
    assert len(rules) == 0
    assert set(rules.predict(X)) == {rules.default}
    assert "Otherwise, " in rules.to_text()


def test_what_rules_need() -> None:
    X, y = mixed(80)
    forest = RandomForestClassifier(n_estimators=2, bootstrap=False).fit(X, y)
    with pytest.raises(ParameterError, match="grown from all rows"):
        forest.rules()


def _spent(n_rows: int = 400) -> tuple[pd.DataFrame, pd.Series]:
    X, _ = mixed(n_rows)
    noise = np.random.default_rng(5).normal(size=n_rows)
    target = 3 * (X["size"] == "l") + 2 * (X["income"] > 0) + noise
    return X, pd.Series(target, name="spent")


@pytest.mark.parametrize("weighted", [False, True])
def test_means_are_judged_out_of_bag(weighted: bool) -> None:
    X, y = _spent()
    weights = np.ones(len(X))
    if weighted:
        weights = np.random.default_rng(3).integers(0, 4, len(X)).astype(float)
    forest = RandomForestRegressor(n_estimators=12, max_features=2)
    rules = forest.fit(X, y, weights if weighted else None).rules(at_most=5)
    assert 1 < len(rules) <= 5
    samples = forest.model_.samples
    out = np.array([samples.times(tree) == 0 for tree in range(12)])  # type: ignore[union-attr]
    usual = np.average(y, weights=weights)
    for rule, frequency in zip(rules, rules.frequency, strict=True):
        covered = _covered(rule, X) & (weights > 0)
        # Which trees have the rule is told by its frequency alone: try all that may.
        n_trees = round(frequency * 12)
        assert n_trees == pytest.approx(frequency * 12)
        if n_trees == 12:
            share = out.mean(axis=0)
            amounts = (share * weights)[covered]
            mean = np.average(y[covered], weights=amounts)
            spread = np.average((y[covered] - mean) ** 2, weights=amounts)
            n = share[covered].sum()
            assert rule.label == pytest.approx(mean)
            assert rule.deviation == pytest.approx(np.sqrt(spread))
            assert rule.n == pytest.approx(n)
            assert rule.coverage == pytest.approx(n / share[weights > 0].sum())
            half = student(0.95, n - 1) * np.sqrt(spread / (n - 1))
            assert rule.interval == pytest.approx((mean - half, mean + half))
        assert rule.interval is not None
        low, high = rule.interval
        assert low < rule.label < high  # type: ignore[operator]
        assert not low <= usual <= high
        assert (rule.weight is not None) == weighted
    assert rules.accuracy > 0.3
    assert rules.forest_accuracy == forest.out_of_bag().score
    assert all("interval" in rule.sentence() for rule in rules)


def test_a_stable_rule_of_numbers_is_in_every_tree() -> None:
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"x": rng.normal(size=400), "z": rng.normal(size=400)})
    y = pd.Series(np.where(X["x"] > 0.05, 10.0, 2.0), name="height")
    forest = RandomForestRegressor(n_estimators=20, max_features=None, max_depth=1)
    rules = forest.fit(X, y).rules()
    assert len(rules) == 1
    assert rules.frequency == (1.0,)
    assert rules[0].label == pytest.approx(2.0, abs=0.3)
    assert "on average" in rules.to_text()
    assert "Otherwise, height is" in rules.to_text()
    assert "R squared of the rules is" in rules.to_text()


def test_rules_of_numbers_predict_together() -> None:
    X, y = _spent()
    forest = RandomForestRegressor(n_estimators=15).fit(X, y)
    rules = forest.rules(at_most=6)
    found = rules.predict(X)
    covers = [_covered(rule, X) for rule in rules]
    rest = ~np.logical_or.reduce(covers)
    usual = y[rest].mean() if rest.any() else y.mean()
    for row in range(len(X)):
        holding = [
            float(rule.label)
            for rule, cover in zip(rules, covers, strict=True)
            if cover[row]
        ]
        assert found[row] == pytest.approx(np.mean(holding) if holding else usual)
    assert rules.default == pytest.approx(usual)
    assert rules.accuracy == pytest.approx(rules.score(X, y))
    with pytest.raises(ParameterError, match="predict_proba needs rules"):
        rules.predict_proba(X)


def test_views_of_rules_of_numbers() -> None:
    X, y = _spent(200)
    forest = RandomForestRegressor(n_estimators=8).fit(X, y)
    rules = forest.rules(at_most=4)
    table = rules.to_frame()
    assert table["mean"].tolist() == [rule.label for rule in rules]
    assert (table["low"] < table["mean"]).all()
    assert (table["mean"] < table["high"]).all()
    document = json.loads(rules.to_json())
    assert document["r_squared"] == rules.accuracy
    assert document["rules"][0]["interval"] == list(rules[0].interval)  # type: ignore[arg-type]
    assert "otherwise" in repr(rules)
    assert "In rules" in forest.to_html()
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).fit(X.iloc[order], y.iloc[order]).rules(at_most=4)
    assert again.to_json() == rules.to_json()


def test_rules_of_a_constant() -> None:
    X, _ = mixed(60)
    rules = RandomForestRegressor(n_estimators=3).fit(X, np.full(60, 4.0)).rules()
    assert len(rules) == 0
    assert rules.default == 4.0
    assert set(rules.predict(X)) == {4.0}
