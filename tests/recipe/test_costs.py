"""Costs by the names of classes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from branchwise import (
    BaggedTrees,
    BoostedClassifier,
    C45Classifier,
    CARTClassifier,
    ParameterError,
    RandomForestClassifier,
    fit_tree,
)
from branchwise.recipe import CART
from branchwise.recipe.costs import costs_by_class
from forest_tables import mixed

MATRIX = [[0, 5], [1, 0]]  # of no and yes
NAMED = {("no", "yes"): 5}


@pytest.mark.parametrize(
    "estimator",
    [
        CARTClassifier(max_depth=3),
        C45Classifier(),
        RandomForestClassifier(n_estimators=3),
        BoostedClassifier(n_estimators=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("costs", [NAMED, {"no": {"yes": 5}}], ids=["pairs", "dicts"])
def test_names_are_the_matrix(estimator: Any, costs: Any) -> None:
    X, y = mixed(150)
    by_name = estimator.set_params(costs=costs).fit(X, y).to_bytes()
    assert by_name == estimator.set_params(costs=MATRIX).fit(X, y).to_bytes()
    assert by_name != estimator.set_params(costs=None).fit(X, y).to_bytes()


def test_bagging_and_functions() -> None:
    X, y = mixed(150)
    bagged = [
        BaggedTrees(estimator=CARTClassifier(costs=costs), n_estimators=2).fit(X, y)
        for costs in (NAMED, MATRIX)
    ]
    assert bagged[0].to_bytes() == bagged[1].to_bytes()
    assert fit_tree(X, y, CART, costs=NAMED).recipe.costs == ((0, 5), (1, 0))


@given(st.dictionaries(st.tuples(*[st.sampled_from("abc")] * 2), st.floats(0, 1e100)))
def test_the_rest_costs_1(costs: dict[tuple[str, str], float]) -> None:
    named = {pair: cost for pair, cost in costs.items() if pair[0] != pair[1]}
    matrix = costs_by_class(named, "abc")
    for i, true in enumerate("abc"):
        for j, prediction in enumerate("abc"):
            assert matrix[i][j] == named.get((true, prediction), float(i != j))


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (
            {("no", "maybe"): 5},
            "costs has the class 'maybe'. The classes are 'no'",
        ),
        ({"no": 5}, "pairs of a true and a predicted class, such as"),
        ({("no", "yes"): -1}, "costs must be None or a square of numbers from 0"),
        ({("no", "yes"): "much"}, "costs must be None or a square of numbers from 0"),
        ({("no", "no"): 2}, "must be 0 where the class 'no' is predicted for itself"),
    ],
)
def test_errors(costs: Any, message: str) -> None:
    X, y = mixed(50)
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")):
        CARTClassifier(costs=costs).fit(X, y)
