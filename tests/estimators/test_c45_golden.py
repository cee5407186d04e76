"""The trees of Weka's J48, node by node: questions, cuts, labels, weights, errors."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from branchwise import C45Classifier, Model, datasets

DATA = Path(__file__).parents[1] / "data"
TREES = json.loads((DATA / "j48_trees.json").read_text(encoding="utf-8"))
BUNDLED = {
    "house-votes-84": "house_votes",
    "iris": "iris",
    "labor-neg": "labor",
    "lenses": "lenses",
    "tennis": "tennis",
    "weather-numeric": "weather",
}
#: J48 prints two decimals.
PRINTED = 0.005 + 1e-9


def table(name: str) -> tuple[dict, list[str]]:
    """Columns and labels; a column of numbers is an array, missing is None or NaN."""
    path = datasets.path(BUNDLED[name]) if name in BUNDLED else DATA / f"{name}.csv"
    with Path(path).open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    cells = dict(zip(header, zip(*rows, strict=True), strict=True))
    labels = list(cells.pop(header[-1]))
    return {column: as_column(values) for column, values in cells.items()}, labels


def as_column(cells: tuple[str, ...]) -> list[str | None] | np.ndarray:
    try:
        return np.array([np.nan if c == "?" else float(c) for c in cells])
    except ValueError:
        return [None if c == "?" else c for c in cells]


def fitted(name: str, prune: bool) -> Model:
    X, y = table(name)
    return C45Classifier(prune=prune).fit(X, y).model_


def ways_of(model: Model, node: int) -> dict[str, int]:
    """The children of a node by what leads there."""
    tree = model.tree
    column = model.schema.columns[tree.column[node]]
    names = ["<=", ">"] if column.is_numeric else column.categories
    return {
        names[code]: child
        for child in tree.children(node)
        for code in tree.codes_of(child)
    }


def assert_same(model: Model, node: int, expected: dict | list) -> int:
    """Compare a subtree with J48's; return how many nodes were compared."""
    tree = model.tree
    if isinstance(expected, list):
        label, weight, errors = expected
        assert tree.is_leaf[node]
        assert model.schema.classes[tree.label[node]] == label
        ours = tree.weights[node]
        assert abs(ours.sum() - weight) <= PRINTED
        assert abs(ours.sum() - ours.max() - errors) <= PRINTED
        return 1
    assert not tree.is_leaf[node]
    assert model.schema.names[tree.column[node]] == expected["asks"]
    if "cut" in expected:
        assert tree.threshold[node] == expected["cut"]
    ways = ways_of(model, node)
    compared = 1
    for way, below in expected["ways"].items():
        if isinstance(below, list) and below[1] == 0:
            # A value without cases: a leaf there, here the answer of the node.
            assert way not in ways
            assert model.schema.classes[tree.label[node]] == below[0]
        else:
            compared += assert_same(model, ways.pop(way), below)
    assert not ways
    return compared


@pytest.mark.parametrize("prune", [True, False], ids=["pruned", "unpruned"])
@pytest.mark.parametrize("name", TREES)
def test_equals_j48_node_by_node(name: str, prune: bool) -> None:
    model = fitted(name, prune)
    expected = TREES[name]["pruned" if prune else "unpruned"]
    assert assert_same(model, 0, expected) == len(model.tree)


def test_a_tree_that_differs_is_noticed() -> None:
    model = fitted("iris", prune=True)
    wrong = json.loads(json.dumps(TREES["iris"]["pruned"]))
    wrong["ways"]["<="][1] += 0.02
    with pytest.raises(AssertionError):
        assert_same(model, 0, wrong)


def test_without_raising_labor_is_smaller() -> None:
    # J48 -S: 3 nodes and 9 training errors, against 5 and 7 with raising.
    X, y = table("labor-neg")
    model = C45Classifier(raise_subtrees=False).fit(X, y).model_
    assert len(model.tree) == 3
    assert int((model.predict(X) != np.array(y)).sum()) == 9
