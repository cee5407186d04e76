"""Costs in growth and pruning: rows that weigh by the costs of their class."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from branchwise import (
    BaggedTrees,
    C45Classifier,
    CARTClassifier,
    ID3Classifier,
    Model,
    ParameterError,
    datasets,
    fit_tree,
)
from branchwise.engines.sql import SqlTable
from branchwise.recipe import C45, CART, ID3, Recipe, unpruned

LABOR = datasets.load("labor")
IRIS = datasets.load("iris")
COSTS = {("bad", "good"): 5}
MATRIX = ((0.0, 5.0), (1.0, 0.0))
RECIPES = {
    "id3": ID3,
    "id3 error-based": replace(ID3, pruning="error-based"),
    "c4.5": C45,
    "c4.5 without raising": replace(C45, raise_subtrees=False),
    "cart": CART,
    "cart alpha": replace(CART, pruning="cost-complexity", ccp_alpha=0.02),
    "cart best": replace(CART, pruning="cost-complexity", ccp_alpha="best"),
}
SHAPE = ("column", "threshold", "n_children", "missing_to", "unseen_to")


def by_hand(costs, y, weights=None):
    """The weight of each row: C N / sum of C, one row after the other."""
    classes = sorted(set(y))
    each = [1.0] * len(y) if weights is None else weights
    cost = {
        true: sum(row[j] for j in range(len(classes)) if j != i)
        for i, (true, row) in enumerate(zip(classes, costs, strict=True))
    }
    total = sum(w * cost[label] for w, label in zip(each, y, strict=True))
    return [
        w * cost[label] * sum(each) / total for w, label in zip(each, y, strict=True)
    ]


def by_weights_alone(recipe: Recipe) -> Recipe:
    """Without what counts cases: collapsing and error-based pruning."""
    if recipe.pruning != "error-based":
        return recipe
    return replace(unpruned(recipe), collapse=False)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("weighted", [False, True], ids=["cases", "weights"])
def test_two_classes_are_grown_and_pruned_by_weights(name, weighted):
    recipe = by_weights_alone(RECIPES[name])
    given = [1.0 + at % 3 for at in range(len(LABOR.y))] if weighted else None
    by_costs = fit_tree(
        LABOR.X,
        LABOR.y,
        replace(recipe, costs_in="growth"),
        costs=COSTS,
        sample_weight=given,
    )
    weights = by_hand(MATRIX, LABOR.y, given)
    expected = fit_tree(LABOR.X, LABOR.y, recipe, sample_weight=weights)
    for array in SHAPE:
        one, other = (getattr(m.tree, array) for m in (by_costs, expected))
        np.testing.assert_array_equal(one, other, err_msg=array)
    # The class of least expected cost is the one of most weight.
    assert by_costs.tree.label.tolist() == expected.tree.label.tolist()
    if recipe.missing != "split":  # whose fractions follow the weights of the tree
        found = by_costs.predict(LABOR.X).tolist()
        assert found == expected.predict(LABOR.X).tolist()
    assert by_costs.tree.is_weighted == weighted
    np.testing.assert_allclose(
        by_costs.tree.weights[0],
        [sum(w for w, y in zip(given or [1.0] * 57, LABOR.y, strict=True) if y == label)
         for label in ("bad", "good")],
        rtol=1e-12,
    )  # fmt: skip
    assert Model.from_bytes(by_costs.to_bytes()) == by_costs


@pytest.mark.parametrize("name", RECIPES)
def test_unit_costs_change_nothing(name):
    recipe = replace(RECIPES[name], costs_in="growth")
    for data, n in ((LABOR, 2), (IRIS, 3)):
        costs = tuple(tuple(float(i != j) for j in range(n)) for i in range(n))
        usual = fit_tree(data.X, data.y, RECIPES[name])
        by_costs = fit_tree(data.X, data.y, replace(recipe, costs=costs))
        prediction = usual.tree.heaviest
        assert by_costs.tree == replace(usual.tree, prediction=prediction)
        assert by_costs.recipe.ccp_alpha == usual.recipe.ccp_alpha


def test_what_it_is_for():
    """Training costs fall, and priors and class weights are altered by costs."""
    usual = CARTClassifier(max_depth=2, costs=COSTS).fit(LABOR.X, LABOR.y)
    grown = CARTClassifier(max_depth=2, costs=COSTS, costs_in="growth")
    grown.fit(LABOR.X, LABOR.y)

    def cost(model):
        wrong = zip(LABOR.y, model.predict(LABOR.X), strict=True)
        return sum(MATRIX[y == "good"][p == "good"] for y, p in wrong)

    assert cost(grown) == 7
    assert cost(usual) == 13
    assert grown.tree_.weights[0].tolist() == [20.0, 37.0]
    shares = {"bad": 0.5, "good": 0.5}
    even = CARTClassifier(costs=COSTS, costs_in="growth", priors=shares, max_depth=3)
    tree = even.fit(LABOR.X, LABOR.y).tree_
    altered = CARTClassifier(priors={"bad": 5, "good": 1}, max_depth=3)
    np.testing.assert_array_equal(
        tree.column, altered.fit(LABOR.X, LABOR.y).tree_.column
    )
    np.testing.assert_allclose(tree.weights[0], [28.5, 28.5])


@pytest.mark.parametrize("recipe", [ID3, C45, CART], ids=["id3", "c4.5", "cart"])
def test_every_engine_has_the_same_bytes(recipe, tmp_path):
    recipe = replace(recipe, costs_in="growth")
    frame = pd.DataFrame(IRIS.X)
    frame["kind"] = IRIS.y
    costs = {("Iris-virginica", "Iris-versicolor"): 7, ("Iris-setosa",) * 2: 0}
    expected = fit_tree(frame, "kind", recipe, costs=costs)
    path = tmp_path / "iris.parquet"
    frame.to_parquet(path, row_group_size=40)
    database = tmp_path / "iris.sqlite"
    with sqlite3.connect(database) as connection:
        frame.to_sql("iris", connection, index=False)
    connection.close()
    for source in (path, SqlTable(database, "iris")):
        engine = "chunked" if source is path else None
        model = fit_tree(source, "kind", recipe, costs=costs, engine=engine)
        assert model.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (
            lambda: Recipe(costs_in="leaves"),
            "costs_in must be 'prediction' or 'growth'. Got 'leaves' instead.",
        ),
        (
            lambda: fit_tree(LABOR.X, LABOR.y, Recipe(costs_in="growth")),
            "costs_in='growth' has no effect without costs.",
        ),
        (
            lambda: ID3Classifier(
                costs=COSTS,
                costs_in="growth",
                pruning="reduced-error",
                validation_fraction=0.3,
            ).fit(LABOR.X, LABOR.y),
            "pruning='reduced-error' counts other rows",
        ),
        (
            lambda: C45Classifier(costs=[[0, 1], [0, 0]], costs_in="growth").fit(
                LABOR.X, LABOR.y
            ),
            "costs_in='growth' needs costs of every class. Got none for 'good'",
        ),
        (
            lambda: BaggedTrees(
                estimator=CARTClassifier(costs=MATRIX, costs_in="growth")
            ).fit(LABOR.X, LABOR.y),
            "costs_in='growth' is for single trees.",
        ),
        (
            lambda: CARTClassifier(
                costs=COSTS, costs_in="growth"
            ).cost_complexity_pruning_path(LABOR.X, LABOR.y),
            "cost_complexity_pruning_path has impurities of cases",
        ),
        (
            lambda: fit_tree(
                LABOR.X, LABOR.y, Recipe(costs=MATRIX, costs_in="growth")
            ).steps(LABOR.X, LABOR.y),
            "this tree was grown from rows that weigh by costs",
        ),
    ],
)
def test_where_it_cannot_be(fit, message):
    with pytest.raises(ParameterError) as error:
        fit()
    assert message in str(error.value)
