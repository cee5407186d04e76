"""Comparison of two models: splits, columns, predictions."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from branchwise import (
    CARTClassifier,
    DataError,
    ID3Classifier,
    Model,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.recipe import C45, CART

WEATHER = datasets.load("weather")
OLD = fit_tree(WEATHER.X, WEATHER.y, target_name="play")


def part(start, stop):
    X = {name: cells[start:stop] for name, cells in WEATHER.X.items()}
    return X, WEATHER.y[start:stop]


NEW = fit_tree(*part(0, 11), target_name="play")
NUMBERS = replace(CART, criterion="variance")


def test_in_words():
    assert str(OLD.diff(NEW, WEATHER.X, WEATHER.y)) == (
        "Old: ID3, 8 nodes, 5 leaves, depth 2\n"
        "New: ID3, 8 nodes, 5 leaves, depth 2\n"
        "Only the old tree splits on windy.\n"
        "Only the new tree splits on temperature.\n"
        "\n"
        "Split changed: 1\n"
        "  - where outlook = rainy: splits on windy -> splits on temperature <= 66\n"
        "\n"
        "Size changed: 3\n"
        "\n"
        "Predictions: 1 of 14 rows change (92.9 % agree)\n"
        "Accuracy: 1 -> 0.9286\n"
        "  old  new  rows\n"
        "  no   no      4\n"
        "  no   yes     1\n"
        "  yes  yes     9\n"
        "  - row 13: no (outlook = rainy and windy = TRUE) -> yes (outlook = rainy and "
        "temperature >= 67)"
    )


def test_all_forms():
    diff = OLD.diff(NEW, WEATHER.X, WEATHER.y)
    assert repr(diff) == "<diff of two models: 4 differences, 1 changed prediction>"
    document = json.loads(diff.to_json())
    assert document["predictions"]["agreement"] == 1 - 1 / 14
    assert document["predictions"]["changed"][0]["row"] == 13
    assert document["differences"][0]["kind"] == "size changed"
    assert "| no | yes | 1 |" in diff.to_markdown()
    assert (
        '<td class="words">no</td><td class="words">yes</td><td>1</td>'
        in diff._repr_html_()
    )


def test_a_model_and_itself():
    diff = OLD.diff(OLD, WEATHER.X)
    assert diff.same_splits
    assert diff.same_predictions
    assert diff.differences == ()
    assert str(OLD.diff(OLD)).endswith(
        "The trees have the same splits and predictions."
    )


@pytest.mark.parametrize(
    "recipe", [Recipe(), C45, CART, replace(CART, missing="split")]
)
def test_changed_rows_are_those_of_prediction(recipe):
    votes = datasets.load("house_votes")
    halves = [
        fit_tree({k: v[i::2] for k, v in votes.X.items()}, votes.y[i::2], recipe)
        for i in (0, 1)
    ]
    diff = halves[0].diff(halves[1], votes.X, votes.y)
    before, after = (half.predict(votes.X) for half in halves)
    wanted = np.flatnonzero(before != after).tolist()
    assert [row.row for row in diff.predictions.changed] == wanted
    assert diff.predictions.agreement == pytest.approx(np.mean(before == after))
    assert sum(diff.predictions.crosstab.values()) == len(votes.y)
    assert diff.predictions.old_score == halves[0].score(votes.X, votes.y)
    assert diff.predictions.new_score == halves[1].score(votes.X, votes.y)
    for row in diff.predictions.changed:
        assert (row.old, row.new) == (before[row.row], after[row.row])
    back = halves[1].diff(halves[0], votes.X)
    assert back.by_kind.keys() == {mirrored(kind) for kind in diff.by_kind}
    assert (back.only_old, back.only_new) == (diff.only_new, diff.only_old)


def mirrored(kind):
    swapped = {"added": "removed", "removed": "added"}
    what, _, how = kind.rpartition(" ")
    return f"{what} {swapped.get(how, how)}"


def kinds(old, new):
    return {
        kind: [str(d) for d in found] for kind, found in old.diff(new).by_kind.items()
    }


def test_splits_that_come_and_go():
    short = OLD.collapse_nodes(3)
    assert kinds(OLD, short) == {
        "split removed": ["where outlook = sunny: splits on humidity <= 80 -> no (5/2)"]
    }
    assert kinds(short, OLD) == {
        "split added": ["where outlook = sunny: no (5/2) -> splits on humidity <= 80"]
    }


def test_thresholds_and_predictions_that_move():
    old = fit_tree({"n": [1, 2, 3, 4]}, ["p", "p", "q", "q"])
    moved = fit_tree({"n": [1, 2, 3, 4]}, ["p", "p", "p", "q"])
    assert kinds(old, moved) == {
        "threshold changed": ["at the root: splits on n <= 2 -> splits on n <= 3"],
        "size changed": [
            "where n <= 3: 2 cases -> 3 cases",
            "where n >= 4: 2 cases -> 1 case",
        ],
    }
    turned = fit_tree({"n": [1, 2, 3, 4]}, ["q", "q", "p", "p"])
    assert kinds(old, turned) == {
        "prediction changed": [
            "where n <= 2: p (2) -> q (2)",
            "where n >= 3: q (2) -> p (2)",
        ]
    }


def test_branches_and_missing_values():
    X = {"a": ["x", "y", "z"]}
    groups = fit_tree(X, ["p", "q", "q"], replace(CART, missing="split", unseen="node"))
    found = kinds(fit_tree(X, ["p", "q", "q"]), groups)
    assert found["branch removed"] == [
        "at the root: a = y is no branch any more",
        "at the root: a = z is no branch any more",
    ]
    assert found["branch added"] == ["at the root: a in {y, z} is a branch now"]
    assert found["missing changed"] == [
        "at the root: missing values stop -> missing values go down every branch"
    ]
    every, there = "missing values go down every branch", "values go where a in {y, z}"
    largest = replace(CART, missing="largest", unseen="largest")
    assert kinds(groups, fit_tree(X, ["p", "q", "q"], largest)) == {
        "missing changed": [f"at the root: {every} -> missing {there}"],
        "unseen changed": [f"at the root: unseen values stop -> unseen {there}"],
    }


def test_surrogates_are_compared():
    surrogate = CARTClassifier(missing="surrogate", max_depth=1)
    new = surrogate.fit(WEATHER.X, WEATHER.y).model_
    old = CARTClassifier(max_depth=1).fit(WEATHER.X, WEATHER.y).model_
    assert "unless a surrogate is known (temp" in str(old.diff(new))


def test_schemas_may_differ():
    old = fit_tree({"a": ["x", "y"], "b": [1, 2]}, ["p", "q"], target_name="t")
    new = fit_tree(
        {"a": ["x", "z"], "b": ["1", "2"], "c": [1, 1]}, ["p", "r"], target_name="u"
    )
    diff = old.diff(new)
    assert diff.schema == (
        "only the new model has the column c",
        "values of a: no longer y",
        "values of a: also z",
        "b: numeric -> categorical",
        "target: t -> u",
        "classes: no longer q",
        "classes: also r",
    )
    assert not diff.same_predictions
    assert "Columns and classes\n  - only the new" in str(diff)


def test_numbers():
    old = fit_tree({"n": [1, 2]}, [1.0, 2.0], NUMBERS)
    new = fit_tree({"n": [1, 2]}, [1.0, 2.5], NUMBERS)
    diff = old.diff(new, {"n": [1, 2]}, [1.0, 2.0])
    assert diff.predictions.largest_difference == 0.5
    assert "R^2: 1 -> 0.5\nLargest change: 0.5\n  - row 1: 2 (n >= 2) -> 2.5" in str(
        diff
    )
    classes = fit_tree({"n": [1, 2]}, ["p", "q"])
    assert old.diff(classes).schema == (
        "the old model predicts numbers, the new one classes",
    )
    with pytest.raises(DataError) as caught:
        old.diff(classes, {"n": [1]})
    assert str(caught.value) == (
        "The predictions for X cannot be compared: one model predicts classes and the "
        "other numbers. Leave out X to compare the models themselves."
    )


def test_columns_that_cannot_be_compared():
    new = fit_tree({"a": ["x", "y"]}, ["p", "q"])
    with pytest.raises(DataError, match=r"^The new model cannot predict X\. X lacks"):
        OLD.diff(new, WEATHER.X)
    text = fit_tree(WEATHER.X | {"humidity": list("abcdefghijklmn")}, WEATHER.y)
    with pytest.raises(DataError, match="The new model cannot predict X"):
        OLD.diff(text, WEATHER.X)


def test_what_is_passed_is_checked():
    with pytest.raises(ParameterError) as caught:
        OLD.diff(ID3Classifier())
    assert str(caught.value) == (
        "other must be a branchwise Model. Got ID3Classifier; a fitted estimator has "
        "it as model_."
    )
    with pytest.raises(ParameterError) as caught:
        OLD.diff(OLD, y=[1])
    assert str(caught.value) == "y needs the rows X that it belongs to. Pass both."


def test_long_lists_are_shortened():
    n = 60
    X = {"n": list(range(n))}
    labels = ["p" if i % 2 else "q" for i in range(n)]
    other = ["q" if i % 2 else "p" for i in range(n)]
    diff = fit_tree(X, labels).diff(fit_tree(X, other), X)
    assert "... (40 more)" in str(diff)
    assert len(diff.to_dict()["predictions"]["changed"]) == n


def test_names_are_escaped():
    nasty = "<b>\n*|"
    old = fit_tree({nasty: ["x", "y"]}, ["p", "q"])
    new = fit_tree({nasty: ["x", "y"]}, ["q", "p"])
    diff = old.diff(new, {nasty: ["x"]})
    assert "<b>" not in diff.to_html()
    assert "\n*" not in str(diff)


def test_wide_trees_take_no_quadratic_time():
    values = [f"v{i}" for i in range(2000)]
    model = fit_tree({"a": values}, [str(i % 2) for i in range(2000)])
    assert isinstance(model, Model)
    assert model.diff(model).differences == ()
