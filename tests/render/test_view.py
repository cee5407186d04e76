"""The dictionary that views are drawn from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    Model,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.data.table_schema import Column, Schema
from branchwise.grow.criteria import entropy
from branchwise.render.view import style_and_script, view
from tree_builder import TreeBuilder


@pytest.fixture
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y)


def test_a_view_in_full(weather):
    seen = weather.view()
    assert seen["classes"] == ["no", "yes"]
    assert seen["n_nodes"] == 8
    nodes = seen["nodes"]
    assert nodes["branch"][:4] == [
        "",
        "outlook = overcast",
        "outlook = rainy",
        "outlook = sunny",
    ]
    assert nodes["edge"][1:] == [
        "overcast",
        "rainy",
        "sunny",
        "FALSE",
        "TRUE",
        "≤ 80",
        "≥ 81",
    ]
    assert nodes["summary"][0] == "yes (14/5)"
    assert nodes["prediction"][:2] == ["yes", "yes"]
    assert nodes["tally"][:2] == ["14 cases, 5 errors", "4 cases"]
    assert seen["shortened"] == {}
    assert nodes["weights"][0] == [5, 9]
    assert nodes["threshold"][3] == 80
    assert nodes["threshold"][0] is None
    assert nodes["impurity"][0] == pytest.approx(entropy([5, 9]))
    assert nodes["gain"][0] == pytest.approx(0.24674981977443933)
    assert nodes["gain"][1] == 0


def test_every_list_is_documented_and_has_every_node(weather):
    nodes = weather.view()["nodes"]
    page = (Path(__file__).parents[2] / "docs" / "views.md").read_text("utf-8")
    table = page.partition("| list | for a node |\n|---|---|\n")[2].partition("\n\n")[0]
    documented = re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)
    assert [*nodes, "cases", "class_cases"] == documented
    assert {len(entries) for entries in nodes.values()} == {8}


def test_a_view_of_some_lists(weather):
    whole = weather.view()
    some = view(weather.schema, weather.tree, weather.recipe, lists=("edge", "gain"))
    assert list(some["nodes"]) == ["edge", "gain"]
    for name, entries in some["nodes"].items():
        assert entries == whole["nodes"][name]
    assert {**some, "nodes": None} == {**whole, "nodes": None}


def random_table(rng, n=200):
    X = {
        "colour": rng.choice(["red", "green", "blue", None], n).tolist(),
        "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        "shape": rng.choice(["round", "</script>", "a\nb"], n).tolist(),
    }
    return X, rng.choice(["yes", "no", "maybe"], n).tolist()


@pytest.mark.parametrize(
    "estimator",
    [
        C45Classifier(),
        C45Classifier(group_values=True),
        CARTClassifier(missing="surrogate"),
        CARTClassifier(missing="learned", max_depth=3),
        CARTRegressor(max_depth=4),
    ],
)
def test_a_view_is_plain_and_agrees_with_the_model(estimator):
    rng = np.random.default_rng(1)
    X, y = random_table(rng)
    if isinstance(estimator, CARTRegressor):
        y = rng.normal(size=200)
    model = estimator.fit(X, y).model_
    seen = json.loads(json.dumps(model.view(), allow_nan=False))
    nodes = seen["nodes"]
    reached = model.apply(X)
    if seen["predicts"] == "classes":
        shown = np.array(nodes["probabilities"])[reached]
        undivided = model.arrivals(X).undivided
        assert not undivided or np.array_equal(shown, model.predict_proba(X))
        gains = np.array(nodes["gain"])
        assert (gains >= 0).all()
    else:
        assert np.array_equal(np.array(nodes["mean"])[reached], model.predict(X))
        # The law of total variance, at the root.
        kids = model.tree.children(0)
        within = sum(nodes["weight"][k] * nodes["impurity"][k] for k in kids)
        if sum(nodes["weight"][k] for k in kids) == nodes["weight"][0]:
            left = nodes["impurity"][0] - within / nodes["weight"][0]
            assert nodes["gain"][0] == pytest.approx(left)
    for node, surrogates in seen["surrogates"].items():
        assert nodes["n_children"][int(node)] == 2
        assert all(len(surrogate["branches"]) == 2 for surrogate in surrogates)


@pytest.mark.parametrize(
    ("weights", "tally"),
    [
        ([1, 0], "1 case"),
        ([1, 1], "2 cases, 1 error"),
        ([2.5, 0.25], "2.75 cases, 0.25 errors"),
        ([1e20, 0.001], "1e+20 cases, 0.001 errors"),
    ],
)
def test_tallies(weights, tally):
    schema = Schema((Column("c", "numeric"),), ("no", "yes"))
    tree = TreeBuilder(schema, weights=weights).build()
    assert Model(schema, tree, Recipe()).view()["nodes"]["tally"] == [tally]


def test_tallies_of_numbers():
    X = {"x": [1, 1, 8, 9]}
    model = CARTRegressor(max_depth=1).fit(X, [1.0, 1.0, 5.0, 6.0]).model_
    assert model.view()["nodes"]["tally"] == [
        "4 cases, ± 2.28",
        "2 cases",
        "2 cases, ± 0.5",
    ]


def test_long_branches_are_there_in_full():
    X = {"c": list("abcdefgh"), "n": range(8)}
    model = CARTClassifier(max_depth=1).fit(X, [0] * 5 + [1] * 3).model_
    assert model.view()["shortened"] == {}
    seen = model.view(max_values=3)
    assert seen["nodes"]["branch"][1] == "c in {a, b, c, ... (2 more)}"
    assert seen["shortened"] == {"1": "c in {a, b, c, d, e}"}


def test_the_scripts_of_a_page_declare_every_function_once():
    """They are one module, which a name declared twice would break."""
    names = re.findall(r"^(?:async )?function (\w+)", style_and_script()[1], re.M)
    assert len(names) == len(set(names)) > 100
