"""Explanations of predictions: the path, missing values, intervals of leaves."""

from __future__ import annotations

import json
import math
import pickle
import random
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from branchwise import (
    C45Classifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    Model,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import CART
from branchwise.stats import mean_interval, share_interval, student
from tree_builder import TreeBuilder
from what_if_models import OF_NUMBERS, RECIPES, random_model, random_row

WEATHER = datasets.load("weather")
MODEL = ID3Classifier().fit(WEATHER.X, WEATHER.y).model_
HOT = {"outlook": "sunny", "temperature": 71, "humidity": 85, "windy": "TRUE"}
HOT_TEXT = (
    "Prediction: no (no 100 %)\n"
    "  1. outlook = sunny\n"
    "  2. humidity >= 81 (it is 85)\n"
    "Leaf 7 has 3 training cases: no 3. Share of no: 100 %, 95 % interval (Wilson) "
    "43.9 % to 100 %."
)


@pytest.mark.parametrize(
    "row",
    [
        HOT,
        [HOT],
        pd.Series(HOT),
        pd.DataFrame([HOT]),
        pd.DataFrame([HOT]).iloc[0],
        pl.DataFrame([HOT]),
        {name: [cell] for name, cell in HOT.items()},
    ],
    ids=["dict", "dicts", "series", "pandas", "iloc", "polars", "columns"],
)
def test_a_row_comes_in_any_form(row):
    assert str(MODEL.explain(row)) == HOT_TEXT


def test_rows_without_names():
    cells = [list(row.values()) for row in WEATHER.rows()]
    model = fit_tree(np.array(cells, dtype=object), WEATHER.y)
    expected = HOT_TEXT.replace("outlook", "x0").replace("humidity", "x2")
    for row in (
        list(HOT.values()),
        tuple(HOT.values()),
        np.array([*HOT.values()], "O"),
    ):
        assert str(model.explain(row)) == expected
    numbers = fit_tree(np.array([[1.0], [2.0]]), ["a", "b"])
    assert numbers.explain(np.array([1.0])).prediction == "a"
    assert numbers.explain(pl.Series([1.0])).prediction == "a"
    assert numbers.explain(pd.Series([1.0])).prediction == "a"
    record = np.array([("sunny", 71, 85, "TRUE")], [(name, "O") for name in HOT])[0]
    assert MODEL.explain(record).prediction == "no"


def test_several_rows():
    several = MODEL.explain(WEATHER.X)
    assert len(several) == 14
    assert repr(several) == "<explanations of 14 rows>"
    assert several[3].row == 3
    assert len(several[2:4]) == 2
    assert str(several).startswith("Row 0\nPrediction: no (no 100 %)\n")
    assert [e.prediction for e in several] == MODEL.predict(WEATHER.X).tolist()
    assert len(several.to_dict()["rows"]) == 14
    assert len(MODEL.explain(pd.DataFrame([HOT]).iloc[:0])) == 0


@pytest.mark.parametrize("recipe", [*RECIPES, *OF_NUMBERS])
def test_predictions_are_those_of_the_model(recipe):
    """And the way leads where the shares say, for every policy."""
    rng = random.Random(repr(recipe))
    for _ in range(4):
        model = random_model(rng, recipe)
        row = random_row(rng)
        explained = model.explain(row)
        assert explained.prediction == model.predict([row])[0]
        if not model.tree.is_regression:
            probabilities = model.predict_proba([row])[0].tolist()
            assert list(explained.probabilities.values()) == probabilities
        arrivals = model.arrivals([row])
        pairs = sorted((e.node, e.share) for e in explained.endings)
        assert pairs == list(zip(arrivals.node, arrivals.share, strict=True))
        shares = [ending.share for ending in explained.endings]
        assert shares == sorted(shares, reverse=True)
        for ending in explained.endings:
            check_way(model, row, ending)
        json.loads(explained.to_json())
        pickle.loads(pickle.dumps(explained))


def check_way(model, row, ending):
    part = math.prod(step.share for step in ending.steps)
    assert part == pytest.approx(ending.share)
    for step in ending.steps:
        assert step.value == row[step.column]
        if step.state == "known":
            assert step.action == "matching branch"
            assert meets(row[step.column], step.branch)
        else:
            assert step.action != "matching branch"
            assert (step.branch is None) == (step.action == "stopped")
            assert (step.value is None) == (step.state == "missing")
        if step.action == "surrogate":
            assert meets(row[step.surrogate.column], step.surrogate)
    stopped = [step.action == "stopped" for step in ending.steps]
    assert not any(stopped[:-1])
    assert ending.stopped == (bool(stopped) and stopped[-1])


def meets(value, condition):
    if value is None:
        return False
    return {
        "=": lambda: value == condition.value,
        "in": lambda: value in condition.value,
        "<=": lambda: value <= condition.value,
        ">": lambda: value > condition.value,
        "is known": lambda: True,
    }[condition.op]()


# ------------------------------------------- what was missing and what was done


def last_step(model, row):
    return str(model.explain(row).steps[-1])


def test_missing_values_stop_or_have_a_branch():
    rainy = HOT | {"outlook": "rainy", "windy": None}
    assert last_step(MODEL, rainy) == (
        "windy is missing: the case stops here and gets this node's prediction"
    )
    assert (
        str(MODEL.explain(rainy)).splitlines()[-1].startswith("Node 2 has 5 training")
    )
    assert last_step(MODEL, HOT | {"outlook": "foggy"}) == (
        "outlook is foggy, a value that training did not have: the case stops here "
        "and gets this node's prediction"
    )
    own = fit_tree({"a": ["x", "y", None]}, ["p", "q", "q"], Recipe(unseen="branch"))
    assert last_step(own, {"a": None}) == (
        "a is missing: missing values have a branch of their own"
    )
    assert last_step(own, {"a": "z"}) == (
        "a is z, a value that training did not have: taken for a missing value, which "
        "has a branch of its own"
    )


def test_a_known_value_without_a_branch():
    X = {"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "w"]}
    model = fit_tree(X, ["p", "q", "q", "q"])
    assert last_step(model, {"a": "x", "b": "w"}) == (
        "b is w, without a training case at this node: the case stops here and gets "
        "this node's prediction"
    )


def test_the_largest_the_learned_and_another_branch():
    X = {"a": ["x", "x", "y", None]}
    y = ["p", "p", "q", "q"]
    largest = fit_tree(X, y, replace(CART, missing="largest"))
    assert last_step(largest, {"a": None}) == (
        "a is missing: sent down the largest branch: a = x"
    )
    learned = fit_tree(X, y, replace(CART, missing="learned"))
    assert last_step(learned, {"a": None}) == (
        "a is missing: sent down the branch that training learned for missing values: "
        "a = y"
    )
    odd = replace(largest.tree, missing_to=1 - largest.tree.missing_to)
    odd.missing_to[1:] = -1
    named = Model(largest.schema, odd, largest.recipe)
    assert last_step(named, {"a": None}) == (
        "a is missing: sent down the branch that the tree has for such cases: a = y"
    )


def test_a_surrogate_replaces_a_split():
    X = {"n": [1, 2, 3, 4], "m": [10, 20, 30, 40], "u": ["x", "x", "y", "z"]}
    model = fit_tree(X, ["p", "p", "q", "q"], replace(CART, missing="surrogate"))
    assert last_step(model, {"n": None, "m": 20, "u": "y"}) == (
        "n is missing: replaced by the surrogate m <= 25 (it is 20): n <= 2"
    )
    assert last_step(model, {"n": None, "m": None, "u": "y"}) == (
        "n is missing: replaced by the surrogate u in {y, z} (it is y): n >= 3"
    )
    assert "the largest branch" in last_step(model, {"n": None, "m": None, "u": None})


def test_a_divided_case():
    model = C45Classifier(prune=False).fit(WEATHER.X, WEATHER.y).model_
    gone = HOT | {"outlook": None, "windy": None}
    explained = model.explain(gone)
    assert explained.fractional
    assert str(explained).startswith(
        "Prediction: no (no 50 %, yes 50 %)\n"
        "The case is divided among 4 nodes, and their predictions are averaged by its "
        "shares.\n"
        "\n"
        "35.7 % of the case: leaf 7, no\n"
        "  1. outlook is missing: every branch is followed, 35.7 % of the case where "
        "outlook = sunny\n"
        "  2. humidity > 75 (it is 85)\n"
        "3 training cases: no 3. Share of no: 100 %, 95 % interval (Wilson) 43.9 % to "
        "100 %.\n"
    )
    assert explained.to_text(max_leaves=1).endswith(
        "\n\n... and 3 more, with 64.3 % of the case"
    )
    assert explained.to_text(max_leaves=None) == str(explained)
    assert (
        repr(explained) == "<explanation of row 0: no, leaf 7, leaf 1, leaf 4, leaf 5>"
    )


# ------------------------------------------------------------- how sure it is


def test_intervals_are_those_of_the_books():
    for n, right in ((3, 3), (10, 0), (10, 4), (250, 200)):
        for level in (0.5, 0.9, 0.95, 0.999):
            exact = stats.binomtest(right, n).proportion_ci(level, method="wilson")
            got = share_interval(right / n, n, level)
            assert got == pytest.approx((exact.low, exact.high), abs=1e-12)
            assert 0 <= got[0] <= right / n <= got[1] <= 1
    for freedom in (0.5, 1, 4.5, 30, 1e5):
        for level in (0.1, 0.5, 0.95, 0.999):
            wanted = stats.t.ppf((1 + level) / 2, freedom)
            assert student(level, freedom) == pytest.approx(wanted, rel=1e-8)
    numbers = [3.0, 5.0, 10.0]
    exact = stats.t.interval(
        0.9, 2, np.mean(numbers), np.std(numbers, ddof=1) / math.sqrt(3)
    )
    got = mean_interval(float(np.mean(numbers)), float(np.std(numbers)), 3, 0.9)
    assert got == pytest.approx(exact)
    assert mean_interval(1.0, 0.0, 1, 0.9) is None
    assert share_interval(1.0, 0, 0.9) == (0.0, 1.0)


def test_numbers_have_an_interval_of_the_mean():
    model = CARTRegressor(max_depth=1).fit({"n": [1, 2, 3, 4]}, [1.0, 2.0, 9.0, 9.0])
    explained = model.model_.explain({"n": 1}, level=0.9)
    assert str(explained) == (
        "Prediction: 1.5\n"
        "  1. n <= 2 (it is 1)\n"
        "Leaf 1 has 2 training cases: mean 1.5, standard deviation 0.5; 90 % interval "
        "of the mean (Student) -1.6569 to 4.6569."
    )
    assert explained.endings[0].counts == {}
    alone = fit_tree({"n": [1, 2]}, [1.0, 2.0], OF_NUMBERS[0]).explain({"n": 1})
    assert str(alone).endswith("standard deviation 0; one case has no interval.")


def test_weights_are_told_where_they_are_not_the_cases():
    model = fit_tree({"a": ["x", "y"]}, ["p", "q"], sample_weight=[0.5, 2.0])
    assert str(model.explain({"a": "y"})).splitlines()[-1] == (
        "Leaf 2 has 1 training case (of weight 2): q 1. Share of q: 100 % of cases, "
        "95 % interval (Wilson) 20.7 % to 100 %; 100 % of weight."
    )


def test_costs_decide_the_prediction_but_not_the_shares():
    costs = ((0.0, 9.0), (1.0, 0.0))
    model = fit_tree(WEATHER.X, WEATHER.y, replace(CART, costs=costs, max_depth=1))
    explained = model.explain(HOT)
    ending = explained.endings[0]
    assert explained.prediction == "no" == ending.label
    assert ending.counts == {"no": 5.0, "yes": 5.0}


def test_a_tree_without_splits():
    model = fit_tree({"a": ["x"]}, ["p"])
    assert str(model.explain({"a": "x"})).startswith(
        "Prediction: p (p 100 %)\nLeaf 0 has"
    )


def test_the_target_is_named():
    model = fit_tree(WEATHER.X, WEATHER.y, target_name="play")
    assert str(model.explain(HOT)).startswith("play: no (")


NASTY = "</li><script>alert(1)</script>*_|`\n\u202e=cmd|'\x00🌳"


def test_nothing_escapes():
    X = {NASTY: [NASTY, "y"]}
    model = fit_tree(X, [NASTY, "q"], target_name=NASTY)
    for written in (model.explain({NASTY: NASTY}), model.what_if({NASTY: NASTY})):
        assert "\x00" not in str(written)
        assert "\u202e" not in str(written)
        html = written._repr_html_()
        assert "<script" not in html
        assert "</li><s" not in html
        assert "<script" not in written.to_markdown().replace("\\<", "")
        assert json.loads(written.to_json())["prediction"] == NASTY


def test_many_classes_are_counted():
    labels = [f"c{i:02}" for i in range(12)]
    model = fit_tree({"a": ["x"] * 12}, labels)
    assert "... (4 more)" in str(model.explain({"a": "x"}))


def test_a_chain_of_many_levels():
    """A case that is divided at every level: nothing recurses, nothing is quadratic."""
    levels = 4_000
    columns = (Column("a", "categorical", ("x", "y")), Column("n", "numeric"))
    builder = TreeBuilder(Schema(columns, ("p", "q")), weights=[levels + 1.0, 0])
    node = 0
    for level in range(levels):
        left = [levels - level, 0]
        builder.child(node, "n", at_most=float(level), weights=[1, 0])
        node = builder.child(node, "n", above=float(level), weights=left)
    tree = builder.build(missing="split")
    model = Model(builder.schema, tree, Recipe(missing="split"))
    deep = model.explain({"a": "x", "n": float(levels)})
    assert len(deep.steps) == levels
    divided = model.explain({"a": "x", "n": None})
    assert len(divided.endings) == levels + 1
    assert f"and {levels - 9:,} more" in str(divided)


@pytest.mark.parametrize("level", [0, 1, -1, "high", None, True])
def test_the_level_is_checked(level):
    with pytest.raises(ParameterError) as caught:
        MODEL.explain(HOT, level=level)
    assert str(caught.value) == (
        f"level must be a share above 0 and below 1, such as 0.95. Got {level!r}."
    )


def test_lacking_columns_are_refused_as_in_prediction():
    with pytest.raises(DataError, match="X lacks the columns"):
        MODEL.explain({"outlook": "sunny"})
    strict = fit_tree(WEATHER.X, WEATHER.y, Recipe(missing="error", unseen="error"))
    with pytest.raises(DataError, match="is missing in row 0"):
        strict.explain(HOT | {"outlook": None})
    with pytest.raises(DataError, match="'foggy' in row 0, which training did not"):
        strict.explain(HOT | {"outlook": "foggy"})
