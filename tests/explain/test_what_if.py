"""The smallest change that changes a prediction: equal to brute force, and in words."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from branchwise import (
    DataError,
    ID3Classifier,
    Model,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.data.table_schema import Column, Schema
from branchwise.explain import solver as search
from branchwise.explain.constraints import threshold_span
from branchwise.recipe import CART, ID3
from tree_builder import TreeBuilder
from what_if_models import (
    LETTERS,
    OF_NUMBERS,
    RECIPES,
    random_model,
    random_row,
)


def domain(model: Model, name: str, now: Any, constraints: dict[str, Any]) -> list[Any]:
    """All cells that may make a difference, the present one first."""
    index = model.schema.names.index(name)
    column, tree = model.schema.columns[index], model.tree
    if name in constraints.get("immutable", ()):
        return [now]
    values: list[Any] = list(column.categories)
    if column.is_numeric:
        thresholds = tree.threshold[tree.column == index].tolist()
        if tree.surrogate_column is not None:
            thresholds += tree.surrogate_threshold[
                tree.surrogate_column == index
            ].tolist()
        known = [threshold for threshold in thresholds if not math.isnan(threshold)]
        values = [*known, *(math.nextafter(threshold, math.inf) for threshold in known)]
        if column.is_whole or name in constraints.get("whole", ()):
            values = [float(number) for number in range(-1, 8)]
        elif now is None:
            # A missing number may become any: also one between all thresholds.
            values += [0.0, *(low for low in [min(known, default=0.0)])]
    if constraints.get("allow_missing"):
        values.append(None)
    direction = constraints.get("monotone", {}).get(name)
    if direction and now is not None:
        values = [
            v
            for v in values
            if v is None or (v >= now if direction == "up" else v <= now)
        ]
    return [now, *(value for value in dict.fromkeys(values) if value != now)]


def cost_of_change(constraints: dict[str, Any], name: str, old: Any, new: Any) -> float:
    cost = constraints.get("costs", {}).get(name, 1.0)
    if callable(cost):
        return cost(old, new)
    return cost.get((old, new), 1.0) if isinstance(cost, dict) else cost


def cost_of(model: Model, constraints: dict[str, Any], old: Any, new: Any) -> tuple:
    costs, sizes = [], []
    for index, name in enumerate(model.schema.names):
        if old[name] == new[name]:
            continue
        costs.append(cost_of_change(constraints, name, old[name], new[name]))
        column = model.schema.columns[index]
        if column.is_numeric and None not in (old[name], new[name]):
            cost = constraints.get("costs", {}).get(name, 1.0)
            weight = cost if isinstance(cost, (int, float)) else 1.0
            half = threshold_span(model.tree, index, column)[0]
            sizes.append(weight * (abs(new[name] / 2 - old[name] / 2) / half))
    return math.fsum(costs), math.fsum(sizes)


def predict_one_by_one(model: Model, rows: list[Any]) -> list[Any]:
    """Predict rows as if each came alone: divided ones do not sit among others."""
    arrivals = model.arrivals(rows)
    parts = np.bincount(arrivals.row, minlength=len(rows))
    predictions: list[Any] = [None] * len(rows)
    for chosen in (np.flatnonzero(parts == 1), np.flatnonzero(parts > 1)):
        if len(chosen):
            predicted = model.predict([rows[at] for at in chosen])
            for at, prediction in zip(chosen, predicted, strict=True):
                predictions[at] = prediction
    return predictions


def brute_force(model: Model, row: Any, wanted: Any, constraints: Any) -> tuple | None:
    """Try every row; return the least cost, or None."""
    used = {model.schema.names[index] for index in model.tree.used_columns}
    domains = [
        domain(model, name, row[name], constraints) if name in used else [row[name]]
        for name in model.schema.names
    ]
    rows = [dict(zip(row, cells, strict=True)) for cells in product(*domains)]
    predictions = predict_one_by_one(model, rows)
    costs = [
        cost_of(model, constraints, row, one)
        for one, prediction in zip(rows, predictions, strict=True)
        if wanted(prediction)
    ]
    finite = [cost for cost in costs if math.isfinite(cost[0])]
    return min(finite, default=None)


def by_distance(old: float | None, new: float | None) -> float:
    return 0.5 if old is None or new is None else 0.5 + abs(new - old)


def random_constraints(rng: random.Random) -> dict[str, Any]:
    constraints: dict[str, Any] = {}
    if rng.random() < 0.3:
        constraints["immutable"] = rng.sample("unvm", rng.randrange(1, 3))
    if rng.random() < 0.3:
        table = {
            (a, b): rng.choice([0.5, 2.0, math.inf])
            for a in LETTERS
            for b in LETTERS
            if rng.random() < 0.7
        }
        constraints["costs"] = {
            "u": table,
            "v": rng.choice([0.0, 0.25, 3.0]),
            "n": rng.choice([2.0, by_distance, math.inf]),
        }
    if rng.random() < 0.3:
        constraints["monotone"] = {rng.choice("nm"): rng.choice(["up", "down"])}
    if rng.random() < 0.2:
        constraints["whole"] = ["n"]
    if rng.random() < 0.2:
        constraints["allow_missing"] = True
    return constraints


def check_against_brute_force(rng: random.Random, recipe: Recipe) -> bool:
    """Compare one random case; returns whether there was a change to be found."""
    model, row, constraints = (
        random_model(rng, recipe),
        random_row(rng),
        random_constraints(rng),
    )
    now = model.predict([row])[0]
    if model.tree.is_regression:
        low = rng.randrange(5) - 0.25
        target: Any = (low, low + rng.choice([0.5, 1.0]))

        def wanted(prediction: Any) -> bool:
            return target[0] <= prediction <= target[1]
    else:
        target = rng.choice([None, *model.schema.classes])

        def wanted(prediction: Any) -> bool:
            return bool(prediction != now if target is None else prediction == target)

    result = model.what_if(row, target, **constraints)
    best = brute_force(model, row, wanted, constraints)
    if best is None:
        assert not result.alternatives, (recipe, row, constraints, str(result))
        assert result.reason
        return False
    (one,) = result.alternatives
    assert (one.cost, one.size) == best, (recipe, row, constraints, str(result))
    assert cost_of(model, constraints, row, one.row) == best
    check_row(model, one, wanted)
    check_conditions(model, one, wanted)
    return bool(one.changes)


def check_row(model: Model, one: Any, wanted: Any) -> None:
    prediction = model.predict([one.row])[0]
    assert wanted(prediction)
    assert one.prediction == prediction
    if not model.tree.is_regression:
        probabilities = model.predict_proba([one.row])[0].tolist()
        assert list(one.probabilities.values()) == probabilities
    nodes = model.arrivals([one.row]).node.tolist()
    assert list(one.nodes) == nodes


def check_conditions(model: Model, one: Any, wanted: Any) -> None:
    """Every value that the words allow gives a wanted prediction, too."""
    for change in one.changes:
        others: list[Any] = []
        for condition in change.conditions:
            if condition.op == "in":
                others += condition.value
            elif condition.op == "<=":
                others.append(condition.value)
            elif condition.op == ">":
                others.append(math.nextafter(condition.value, math.inf))
        for other in others:
            row = {**one.row, change.column: other}
            assert wanted(model.predict([row])[0]), (change, row)


@settings(derandomize=True, deadline=None, max_examples=50, database=None)
@given(st.integers(0, 2**32), st.sampled_from([*RECIPES, *OF_NUMBERS]))
def test_equal_to_brute_force(seed, recipe):
    check_against_brute_force(random.Random(seed), recipe)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [*RECIPES, *OF_NUMBERS])
def test_equal_to_brute_force_on_many_trees(recipe):
    found = 0
    for seed in range(60):
        found += check_against_brute_force(random.Random(f"{seed} {recipe!r}"), recipe)
    assert found >= 10  # pruned trees are often a single leaf


# ------------------------------------------------------------------- in words

WEATHER = datasets.load("weather")
MODEL = ID3Classifier().fit(WEATHER.X, WEATHER.y).model_
HOT = {"outlook": "sunny", "temperature": 71, "humidity": 85, "windy": "TRUE"}


def test_the_words_of_changes():
    result = MODEL.what_if(HOT, "yes", how_many=9)
    assert str(result) == (
        "Now: no (no 100 %)\n"
        "\n"
        "yes (yes 100 %) if this changes:\n"
        "  - outlook from sunny to overcast\n"
        "Cost 1.\n"
        "\n"
        "yes (yes 100 %) also if this changes:\n"
        "  - humidity from 85 to 80 or less\n"
        "Cost 1.\n"
        "\n"
        "yes (yes 100 %) also if this changes:\n"
        "  - outlook from sunny to rainy\n"
        "  - windy from TRUE to FALSE\n"
        "Cost 2."
    )
    assert repr(result) == "<what if: outlook from sunny to overcast>"
    assert [one.cost for one in result.alternatives] == [1, 1, 2]
    assert result.best.row == HOT | {"outlook": "overcast"}
    assert result.changes[0].new == "overcast"


def test_costs_decide_first_and_the_first_column_last():
    cheap = MODEL.what_if(HOT, costs={"outlook": 2})
    assert [str(c) for c in cheap.changes] == ["humidity from 85 to 80 or less"]
    table = {("sunny", "overcast"): 5.0}
    assert MODEL.what_if(HOT, costs={"outlook": table}).changes[0].column == "humidity"
    # Two columns for the price of one, where the other is forbidden.
    both = MODEL.what_if(
        HOT, immutable="humidity", costs={"outlook": {("sunny", "overcast"): math.inf}}
    )
    assert [c.column for c in both.changes] == ["outlook", "windy"]
    X = {"b": ["p", "q", "p", "q"], "a": ["p", "p", "q", "q"]}
    tied = fit_tree(X, ["n", "y", "y", "y"]).what_if({"b": "p", "a": "p"})
    assert [c.column for c in tied.changes] == ["b"]


def test_a_number_lands_on_the_next_float():
    midpoints = replace(ID3, threshold="midpoint")
    X = {"n": [1.0, 2.0, 3.0, 4.0]}
    model = fit_tree(X, ["a", "a", "b", "b"], midpoints)
    (change,) = model.what_if({"n": 1.0}).changes
    assert change.new == math.nextafter(2.5, math.inf)
    assert str(change) == "n from 1 to more than 2.5"
    (change,) = model.what_if({"n": 4.0}).changes
    assert (change.new, str(change)) == (2.5, "n from 4 to 2.5 or less")
    (change,) = model.what_if({"n": 1.0}, whole=["n"]).changes
    assert (change.new, str(change)) == (3.0, "n from 1 to 3 or more")
    (change,) = model.what_if({"n": 4.0}, whole="n").changes
    assert (change.new, str(change)) == (2.0, "n from 4 to 2 or less")
    between = fit_tree({"n": [1.0, 2.0, 3.0]}, ["a", "b", "a"], midpoints)
    (change,) = between.what_if({"n": 1.0}).changes
    assert str(change) == "n from 1 to more than 1.5 and at most 2.5"
    (change,) = between.what_if({"n": 1.0}, whole=["n"]).changes
    assert str(change) == "n from 1 to 2"
    wide = fit_tree({"n": [0.0, 10.0, 20.0]}, ["a", "b", "a"], midpoints)
    (change,) = wide.what_if({"n": 0.0}, whole=["n"]).changes
    assert str(change) == "n from 0 to 6 to 15"


def test_numbers_that_were_whole_in_training_stay_whole():
    model = fit_tree({"n": [1.0, 2.0, 3.0, 4.0]}, ["a", "a", "b", "b"])
    (change,) = model.what_if({"n": 1.0}).changes
    assert (change.new, str(change)) == (3.0, "n from 1 to 3 or more")
    (change,) = model.what_if({"n": 3.5}).changes
    assert (change.new, str(change)) == (2.0, "n from 3.5 to 2 or less")


def test_numbers_at_the_end_of_the_scale():
    big = 1.7e308
    model = fit_tree({"n": [-big, big]}, ["a", "b"])
    result = model.what_if({"n": -big})
    assert model.predict([result.best.row])[0] == "b"
    assert math.isfinite(result.best.size)
    far = fit_tree({"n": [2.0**60, 2.0**61]}, ["a", "b"])
    result = far.what_if({"n": 2.0**60}, whole=["n"])
    assert far.predict([result.best.row])[0] == "b"


def test_a_range_of_numbers():
    model = fit_tree({"n": [1, 2, 3]}, [10.0, 20.0, 30.0], OF_NUMBERS[0])
    for target in (">= 15", "> 15", (15, 25), "15 to 25", (15, None), "< 30"):
        result = model.what_if({"n": 1}, target)
        assert result.best.prediction == (10 if target == "< 30" else 20), target
    assert str(model.what_if({"n": 1}, (25, 30)).changes[0]) == "n from 1 to 3 or more"
    assert not model.what_if({"n": 1}, "> 30")
    assert model.what_if({"n": 1}, ">= 30")


def test_nothing_needs_to_change():
    result = MODEL.what_if(HOT, "no", how_many=3)
    assert str(result) == "Now: no (no 100 %)\nThe prediction is no already."
    assert result.changes == ()
    assert repr(result) == "<what if: nothing changes>"


def test_why_there_is_no_change():
    stuck = MODEL.what_if(HOT, "yes", immutable=["outlook", "humidity"])
    assert not stuck
    assert stuck.reason == (
        "No allowed change gives yes. Without limits the smallest would be: outlook "
        "from sunny to overcast, but outlook is immutable."
    )
    assert repr(stuck) == "<what if: no way to yes>"
    with pytest.raises(DataError, match="No change gives yes"):
        _ = stuck.best
    wet = HOT | {"humidity": 70}
    kept = MODEL.what_if(
        wet, "no", immutable=["outlook"], monotone={"humidity": "down"}
    )
    assert "but outlook is immutable" in str(kept) or "go down" in str(kept)
    dear = MODEL.what_if(HOT, immutable="outlook", costs={"humidity": math.inf})
    assert not dear
    never = fit_tree({"a": ["x", "x", "x"]}, ["p", "p", "q"]).what_if({"a": "x"}, "q")
    assert never.reason == "No change gives q: no node of the tree predicts it."


def test_only_missing_values_get_there():
    X = {"a": ["x", "y", None, None]}
    model = fit_tree(X, ["p", "p", "q", "q"])
    result = model.what_if({"a": "x"}, "q")
    assert result.reason == (
        "No change gives q: only rows with missing values may get it. "
        "allow_missing=True proposes them."
    )
    (change,) = model.what_if({"a": "x"}, "q", allow_missing=True).changes
    assert str(change) == "a from x to missing"
    numbers = fit_tree({"n": [1, 1, None, None]}, ["p", "p", "q", "q"])
    (change,) = numbers.what_if({"n": None}, "p").changes
    assert str(change) == "n from missing to any number"


def test_a_mean_may_predict_what_no_node_does():
    """Two leaves say p and q, their mean says r; only a divided row gets it."""
    schema = Schema((Column("a", "categorical", ("x", "y")),), ("p", "q", "r"))
    builder = TreeBuilder(schema, weights=[6, 6, 8])
    builder.child(0, "a", values=["x"], weights=[6, 0, 4])
    builder.child(0, "a", values=["y"], weights=[0, 6, 4])
    model = Model(schema, builder.build(missing="split"), Recipe(missing="split"))
    assert model.predict([{"a": None}])[0] == "r"
    result = model.what_if({"a": "x"}, "r", allow_missing=True)
    assert str(result.changes[0]) == "a from x to missing"
    assert len(result.best.nodes) == 2
    assert not model.what_if({"a": "x"}, "r")


def test_a_stop_is_reached_by_a_known_value():
    """A value without a branch gets the prediction of the node."""
    X = {"a": ["x", "x", "y", "z", "z"], "b": ["u", "u", "v", "u", "v"]}
    model = fit_tree(X, ["p", "p", "p", "q", "p"], categories={"a": list("wxyz")})
    stopped = model.what_if({"a": "z", "b": "u"}, "p", immutable="b")
    values = stopped.changes[0].conditions[0].value
    assert stopped.best.row["a"] in "wxy"
    assert values


def test_all_forms():
    result = MODEL.what_if(HOT, "yes")
    document = json.loads(result.to_json())
    assert document["alternatives"][0]["row"]["outlook"] == "overcast"
    assert document["alternatives"][0]["changes"][0]["text"] == (
        "outlook from sunny to overcast"
    )
    assert "- outlook from sunny to overcast" in result.to_markdown()
    assert "<li>outlook from sunny to overcast</li>" in result._repr_html_()
    assert result.best.probabilities == {"no": 0.0, "yes": 1.0}


def test_monotone_categories_go_along_their_order():
    size = pd.Categorical(list("sml"), categories=list("sml"), ordered=True)
    model = fit_tree(pd.DataFrame({"size": size}), ["a", "b", "c"])
    up = model.what_if({"size": "m"}, monotone={"size": "up"})
    assert up.best.row == {"size": "l"}
    assert (
        model.what_if({"size": "m"}, monotone={"size": "down"}).best.row["size"] == "s"
    )
    assert not model.what_if({"size": "m"}, "a", monotone={"size": "up"})


def test_a_deep_tree():
    """A chain as deep as the table is long; nothing recurses."""
    n = 3000
    X = {"n": list(range(n))}
    model = fit_tree(X, [i % 2 for i in range(n)], replace(CART, max_leaf_nodes=None))
    row = {"n": 0}
    assert model.what_if(row).best.prediction == 1
    assert model.explain(row).prediction == 0


def test_a_search_without_end_is_given_up(monkeypatch):
    limited = partial(search.Search, most_steps=1)
    monkeypatch.setattr("branchwise.explain.what_if.Search", limited)
    with pytest.raises(DataError) as caught:
        MODEL.what_if(HOT)
    assert str(caught.value) == (
        "what_if has looked at too many combinations of changes: the row has missing "
        "or unseen values that are sent down every branch, and so reaches many leaves. "
        "Fill in some of them, or name columns that must not change in immutable."
    )


STRICT = fit_tree(WEATHER.X, WEATHER.y, Recipe(missing="error"))
NUMBERS = fit_tree({"n": [1, 2]}, [1.0, 2.0], OF_NUMBERS[0])


def case(call, error, *message):
    return pytest.param(call, error, "".join(message))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        case(
            lambda: MODEL.what_if(HOT, "maybe"),
            ParameterError,
            "target must be one of the classes 'no', 'yes'. Got 'maybe'; without a ",
            "target, any other class than now will do.",
        ),
        case(
            lambda: NUMBERS.what_if({"n": 1}),
            ParameterError,
            "target must be a range of numbers, since the tree predicts numbers: a ",
            "pair (low, high) with None for no end, or a text such as '>= 10', '< 10' ",
            "or '10 to 20'. Got None.",
        ),
        case(
            lambda: NUMBERS.what_if({"n": 1}, (3, 2)),
            ParameterError,
            "target must be a range of numbers, since the tree predicts numbers: a ",
            "pair (low, high) with None for no end, or a text such as '>= 10', '< 10' ",
            "or '10 to 20'. Got (3, 2).",
        ),
        case(
            lambda: NUMBERS.what_if({"n": 1}, ">= many"),
            ParameterError,
            "target must be a range of numbers, since the tree predicts numbers: a ",
            "pair (low, high) with None for no end, or a text such as '>= 10', '< 10' ",
            "or '10 to 20'. Got '>= many'.",
        ),
        case(
            lambda: MODEL.what_if(HOT, immutable=["wind"]),
            ParameterError,
            "immutable names columns of the tree. Got 'wind'; the columns are ",
            "'outlook', 'temperature', 'humidity', 'windy'.",
        ),
        case(
            lambda: MODEL.what_if(HOT, monotone={"windy": "up"}),
            ParameterError,
            "monotone is for numbers and for categories in an order. Got 'windy', ",
            "whose values have none; name it in immutable, or set the costs of its ",
            "changes in costs.",
        ),
        case(
            lambda: MODEL.what_if(HOT, monotone={"humidity": "left"}),
            ParameterError,
            "monotone must be 'up' or 'down' for every column. Got 'left' for ",
            "'humidity'.",
        ),
        case(
            lambda: MODEL.what_if(HOT, whole=["windy"]),
            ParameterError,
            "whole names columns of whole numbers. Got 'windy', which is categorical; ",
            "leave it out.",
        ),
        case(
            lambda: MODEL.what_if(HOT, costs={"windy": -1}),
            ParameterError,
            "costs of 'windy' must be numbers of at least 0, or infinity for a change ",
            "that is not allowed. Got -1.",
        ),
        case(
            lambda: MODEL.what_if(HOT, costs={"humidity": {(1, 2): 3}}),
            ParameterError,
            "costs of 'humidity' must be a number or a function of the old and the new",
            " value, since it holds numbers. Got a table of pairs.",
        ),
        case(
            lambda: MODEL.what_if(HOT, costs={"windy": {"TRUE": 3}}),
            ParameterError,
            "costs of 'windy' must name pairs (old value, new value). Got 'TRUE'.",
        ),
        case(
            lambda: MODEL.what_if(HOT, costs={"windy": {("TRUE", "a gale"): 3}}),
            ParameterError,
            "costs of 'windy' must name values of the column. Got 'a gale'; the values",
            " are 'FALSE', 'TRUE'.",
        ),
        case(
            lambda: MODEL.what_if(HOT, how_many=0),
            ParameterError,
            "how_many must be a whole number of at least 1. Got 0.",
        ),
        case(
            lambda: MODEL.what_if([HOT, HOT]),
            DataError,
            "what_if takes one row. Got 2; pass one of them.",
        ),
        case(
            lambda: STRICT.what_if(HOT, allow_missing=True),
            ParameterError,
            "allow_missing=True proposes missing values, but the tree was fitted with ",
            "missing='error' and refuses them. Leave allow_missing out.",
        ),
    ],
)
def test_messages(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("missing", ["largest", "split"])
def test_what_costs_have_decided_is_said(missing):
    table = {"a": [*"ppppqqqq"]}
    recipe = replace(CART, costs=((0.0, 1.0), (9.0, 0.0)), missing=missing)
    model = fit_tree(table, [*"nnnynnnn"], recipe)
    found = model.what_if({"a": ["q"]}, "y")
    told = "decided by costs: expected cost 0.75 against 2.25 for n"
    assert (found.decided_by, found.best.decided_by) == ("", told)
    assert f"y (n 75 %, y 25 %); {told}, if this changes:" in str(found)
    assert found.to_dict()["alternatives"][0]["decided_by"] == told
    back = model.what_if({"a": ["p"]}, "n")
    assert (back.decided_by, back.best.decided_by) == (told, "")
    assert str(back).splitlines()[0].endswith(f"; {told}")
    assert back.decided_by == model.explain({"a": ["p"]}).reason
    assert back.to_dict()["decided_by"] == told
    # A case that is divided between both leaves.
    gap = model.what_if({"a": [None]}, "n")
    assert gap.decided_by == model.explain({"a": [None]}).reason
