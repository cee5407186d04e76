"""What a model answers: probabilities, costs and numbers, checked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    Model,
    ParameterError,
    Recipe,
    fit_tree,
)
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import CART
from tree_builder import TreeBuilder

# -- Probabilities

SCHEMA = Schema((Column("c", "categorical", ("x", "y")),), ("a", "b", "c"))


def by_hand(recipe: Recipe) -> Model:
    """A root of ten cases, 6, 3 and 1 of the classes; eight of them are x, two y."""
    builder = TreeBuilder(SCHEMA, weights=[6, 3, 1])
    builder.child(0, "c", values=["x"], weights=[6, 1, 1])
    builder.child(0, "c", values=["y"], weights=[0, 2, 0])
    tree = builder.build(missing="split", unseen="node")
    return Model(SCHEMA, tree, recipe)


ROWS: dict[str, list[Any]] = {"c": ["x", "y", None, "z"]}


@pytest.mark.parametrize(
    ("recipe", "x", "y", "root"),
    [
        (Recipe(), [6 / 8, 1 / 8, 1 / 8], [0, 1, 0], [0.6, 0.3, 0.1]),
        (
            Recipe(probabilities="laplace"),
            [7 / 11, 2 / 11, 2 / 11],
            [1 / 5, 3 / 5, 1 / 5],
            [7 / 13, 4 / 13, 2 / 13],
        ),
        (
            # Two cases more, 0.6, 0.3 and 0.1 of them.
            Recipe(probabilities="m-estimate"),
            [7.2 / 10, 1.6 / 10, 1.2 / 10],
            [1.2 / 4, 2.6 / 4, 0.2 / 4],
            [0.6, 0.3, 0.1],
        ),
        (
            Recipe(probabilities="m-estimate", m=10),
            [12 / 18, 4 / 18, 2 / 18],
            [6 / 12, 5 / 12, 1 / 12],
            [0.6, 0.3, 0.1],
        ),
        (
            Recipe(probabilities="m-estimate", m=0),
            [6 / 8, 1 / 8, 1 / 8],
            [0, 1, 0],
            [0.6, 0.3, 0.1],
        ),
    ],
    ids=["frequencies", "laplace", "m-estimate", "ten cases", "no cases"],
)
def test_probabilities(recipe, x, y, root):
    """A row without a value is 8 parts x and 2 parts y; an unseen one stops."""
    divided = 0.8 * np.array(x) + 0.2 * np.array(y)
    chances = by_hand(recipe).predict_proba(ROWS)
    np.testing.assert_allclose(chances, [x, y, divided, root])


def test_a_leaf_predicts_its_most_probable_class():
    """With ten cases more, y is most probably an a, though most of its cases are b."""
    model = by_hand(Recipe(probabilities="m-estimate", m=10))
    assert model.predict_proba({"c": ["y"]}).argmax() == 0
    assert model.predict({"c": ["y"]}).tolist() == ["a"]


@pytest.mark.parametrize(
    "estimator",
    [ID3Classifier(), C45Classifier(prune=False), CARTClassifier()],
    ids=repr,
)
def test_estimators_know_of_probabilities(estimator):
    X = {"c": ["x", "x", "x", "y", "y", "y"]}
    y = ["no", "no", "no", "yes", "yes", "no"]
    laplace = clone(estimator).set_params(probabilities="laplace").fit(X, y)
    np.testing.assert_allclose(
        laplace.predict_proba({"c": ["x", "y"]}), [[4 / 5, 1 / 5], [2 / 5, 3 / 5]]
    )
    # Three cases more, two of them no and one yes.
    m_estimate = clone(estimator).set_params(probabilities="m-estimate", m=3)
    m_estimate.fit(X, y)
    np.testing.assert_allclose(
        m_estimate.predict_proba({"c": ["x", "y"]}), [[5 / 6, 1 / 6], [3 / 6, 3 / 6]]
    )


# -- Costs


def test_costs_decide_for_whole_and_for_divided_rows():
    X = {"c": ["x"] * 8 + ["y"] * 2}
    y = ["a"] * 6 + ["b", "c"] + ["b", "b"]
    # Missing a b costs 7 times as much; x has 6 a, 1 b, 1 c.
    costs = ((0, 1, 1), (7, 0, 7), (1, 1, 0))
    model = fit_tree(X, y, Recipe(costs=costs, missing="split", unseen="node"))
    assert model.tree.prediction is not None
    # At x the answer a costs 7 + 1 = 8, b 6 + 1 = 7, c 6 + 7 = 13.
    assert model.predict({"c": ["x", "y"]}).tolist() == ["b", "b"]
    # Without costs a row of 8 parts x and 2 parts y is 0.6 a, 0.3 b and 0.1 c. Now a
    # costs 2.1 + 0.1, b 0.6 + 0.1.
    assert fit_tree(X, y).predict({"c": ["x"]}).tolist() == ["a"]
    plain = fit_tree(X, y, Recipe(missing="split"))
    assert plain.predict({"c": [None]}).tolist() == ["a"]
    assert model.predict({"c": [None]}).tolist() == ["b"]
    # The probabilities are what they were.
    np.testing.assert_allclose(
        model.predict_proba({"c": [None]}), plain.predict_proba({"c": [None]})
    )


def test_equal_costs_change_no_answer():
    X = {"c": list("xxxyyyzz"), "n": [1.0, 2, 3, 1, 2, 3, 1, None]}
    y = list("aabbbcca")
    for missing in ("branch", "split", "largest", "node"):
        recipe = Recipe(missing=missing)
        ones = tuple(tuple(float(i != j) for j in range(3)) for i in range(3))
        with_costs = fit_tree(X, y, replace(recipe, costs=ones))
        rows = {"c": ["x", "y", "z", None, None], "n": [1.0, None, None, 2.0, None]}
        expected = fit_tree(X, y, recipe).predict(rows).tolist()
        assert with_costs.predict(rows).tolist() == expected


def test_of_equally_cheap_answers_the_first_is_given():
    recipe = Recipe(costs=((0, 2), (1, 0)), max_depth=0)
    # One a and two b: either answer costs 2.
    assert fit_tree({"c": ["x"] * 3}, ["a", "b", "b"], recipe).to_text() == (
        "a (3/2, decided by costs)"
    )


# -- Numbers

NUMBERS = replace(CART, criterion="variance")


@pytest.fixture
def speeds() -> Model:
    X = {"road": ["town"] * 3 + ["land"], "rain": [0.0, 1.0, 4.0, 2.0]}
    return fit_tree(X, [50.0, 48.0, 31.0, 99.0], replace(NUMBERS, max_depth=1))


def test_numbers_of_whole_and_of_divided_rows(speeds):
    rows = {"road": ["town", "land", None], "rain": [0.0, 0.0, 0.0]}
    assert speeds.predict(rows).tolist() == [43.0, 99.0, 43.0]
    divided = fit_tree(
        {"road": ["town"] * 3 + ["land"]},
        [50.0, 48.0, 31.0, 99.0],
        replace(NUMBERS, missing="split"),
    )
    # Three parts town and one part land: the mean of all.
    assert divided.predict({"road": [None]}).tolist() == [57.0]


def test_numbers_have_no_probabilities(speeds):
    with pytest.raises(ParameterError) as caught:
        speeds.predict_proba({"road": ["town"], "rain": [0.0]})
    assert str(caught.value) == (
        "predict_proba needs a tree that predicts classes. Got one that predicts "
        "numbers; use predict."
    )


def test_numbers_are_scored_by_what_is_explained(speeds):
    rows = {"road": ["town", "town", "land"], "rain": [0.0, 0.0, 0.0]}
    # Answers 43, 43, 99; mean 60: 2 + 1 + 3 off, of 20, 14 and 34.
    y = [40.0, 46.0, 94.0]
    left, whole = 9 + 9 + 25, 400 + 196 + 1156
    assert speeds.score(rows, y) == pytest.approx(1 - left / whole)
    assert speeds.score(rows, speeds.predict(rows)) == 1.0
    same = {"road": ["town", "town"], "rain": [0.0, 0.0]}
    assert speeds.score(same, [43.0, 43.0]) == 1.0
    assert speeds.score(same, [44.0, 44.0]) == 0.0
    with pytest.raises(DataError, match="y must hold numbers to be predicted"):
        speeds.score(same, ["fast", "slow"])
    with pytest.raises(DataError):
        speeds.score(same, [43.0])


def test_the_score_is_that_of_scikit_learn():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200)
    fitted = CARTRegressor(max_depth=3).fit(X, y)
    assert fitted.model_.score(X, y) == pytest.approx(fitted.score(X, y), abs=1e-12)


def test_what_is_said_of_a_model_of_numbers(speeds):
    assert repr(speeds) == (
        "<branchwise CART model: 3 nodes, 2 leaves, depth 1, 2 columns, numbers>"
    )
    assert speeds.schema.describe() == (
        "road      categorical, 2 values: land, town\n"
        "rain      numeric\n"
        "(target)  target, numeric"
    )
    classes = fit_tree({"c": ["x", "y"]}, ["no", "yes"])
    assert repr(classes).endswith(" 1 column, 2 classes>")


# -- Importances


def squared(tree: Any, node: int) -> float:
    return float(tree.weights[node, 0] * tree.deviation[node] ** 2)


@pytest.mark.parametrize("missing", ["branch", "largest"])
def test_columns_count_by_the_variance_they_take_away(missing):
    rng = np.random.default_rng(11)
    X: dict[str, Any] = {
        "a": rng.integers(0, 9, 300).astype(float),
        "b": rng.choice(list("pqrst"), 300).tolist(),
        "noise": rng.integers(0, 4, 300).astype(float),
    }
    y = 3 * X["a"] + np.array([ord(v) - ord("p") for v in X["b"]]) ** 2
    X["a"][::17] = np.nan
    recipe = replace(NUMBERS, max_depth=5, missing=missing)
    model = fit_tree(X, y, recipe)
    tree = model.tree
    expected = np.zeros(3)
    for node in np.flatnonzero(tree.n_children):
        left = sum(squared(tree, child) for child in tree.children(node))
        expected[tree.column[node]] += squared(tree, node) - left
    np.testing.assert_allclose(
        model.feature_importances, expected / expected.sum(), atol=1e-9
    )
    assert model.feature_importances.sum() == pytest.approx(1)


def test_importances_are_those_of_scikit_learn():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 4))
    y = X[:, 0] + 2 * (X[:, 1] > 0) + 0.1 * rng.normal(size=150)
    ours = CARTRegressor(max_depth=3).fit(X, y).feature_importances_
    theirs = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours, theirs.feature_importances_, atol=1e-6)


def test_cases_that_stop_are_a_group_of_their_own():
    X = {"n": [1.0, 1.0, 5.0, 5.0, None, None], "c": list("xyxyxy")}
    y = [0.0, 1.0, 10.0, 11.0, 40.0, 41.0]
    recipe = replace(NUMBERS, max_depth=2, missing="node")
    model = fit_tree(X, y, recipe)
    assert model.tree.column[0] == 0
    # n parts 0.5, 10.5 and 40.5 around 17.1667; c the rest, by 0.5 each.
    by_n = 2 * sum((m - 103 / 6) ** 2 for m in (0.5, 10.5, 40.5))
    by_c = 4 * 0.25
    np.testing.assert_allclose(
        model.feature_importances, np.array([by_n, by_c]) / (by_n + by_c)
    )


def test_nothing_contributes_to_a_single_leaf():
    model = fit_tree({"n": [1.0, 2.0]}, [3.0, 3.0], NUMBERS)
    assert model.feature_importances.tolist() == [0.0]
