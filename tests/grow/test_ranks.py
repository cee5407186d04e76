"""Ordered categories are split as the numbers of their ranks, and never otherwise."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    ParameterError,
    RandomForestClassifier,
    fit_tree,
    load,
)
from branchwise.data.table_schema import Column
from branchwise.grow.ranks import codes_of_sides
from branchwise.native import VARIABLE
from branchwise.recipe import CART
from branchwise.text.conditions import Condition, said

SIZES = ("xs", "s", "m", "l", "xl", "xxl", "xxxl")
GRADES = ("low", "mid", "high", "top")


def _ordered(ranks, names):
    codes = np.where(np.isnan(ranks), -1, ranks).astype(int)
    return pd.Categorical.from_codes(codes, names, ordered=True)


def _tables(seed, n=150, missing=0.1):
    """Return a table of ordered categories, one of their ranks, and a target."""
    rng = np.random.default_rng(seed)
    size = rng.integers(0, len(SIZES), n).astype(float)
    grade = rng.integers(0, len(GRADES), n).astype(float)
    other = rng.normal(size=n).round(1)
    y = size + grade + other + rng.normal(size=n)
    size[rng.random(n) < missing] = np.nan
    grade[rng.random(n) < missing] = np.nan
    words = {"size": _ordered(size, SIZES), "grade": _ordered(grade, GRADES)}
    numbers = {"size": size, "grade": grade}
    shared = {"other": other}
    return pd.DataFrame(words | shared), pd.DataFrame(numbers | shared), y


@pytest.mark.parametrize("kernel", ["native", "reference"])
@pytest.mark.parametrize(
    "missing", ["learned", "branch", "split", "surrogate", "largest", "node"]
)
def test_trees_are_those_of_the_ranks(missing, kernel, monkeypatch):
    monkeypatch.setenv(VARIABLE, kernel)
    words, numbers, y = _tables(len(missing))
    classes = np.digitize(y, [2.0, 5.0])
    for estimator, target in (
        (CARTClassifier(missing=missing, max_depth=5), classes),
        (CARTRegressor(missing=missing, max_depth=4), y),
    ):
        ordered = estimator.fit(words, target).model_
        ranks = estimator.fit(numbers, target).model_
        assert ordered.tree.column.tolist() == ranks.tree.column.tolist()
        assert ordered.tree.weights.tolist() == ranks.tree.weights.tolist()
        assert (ordered.predict(words) == ranks.predict(numbers)).all()
        assert np.isnan(ordered.tree.threshold[ordered.tree.column < 2]).all()


def test_both_kernels_grow_the_same_tree(monkeypatch):
    words, _, y = _tables(1)
    classes = np.digitize(y, [2.0, 5.0])
    found = []
    for kernel in ("native", "reference"):
        monkeypatch.setenv(VARIABLE, kernel)
        table = words.copy()
        forest = RandomForestClassifier(n_estimators=3, splitter="random").fit(
            table, classes
        )
        surrogates = CARTClassifier(missing="surrogate").fit(table, classes)
        found.append([surrogates.model_.to_bytes(), forest.model_.to_bytes()])
    assert found[0] == found[1]


def test_a_value_without_cases_at_a_node_goes_by_its_rank():
    table = {"size": ["xs", "xs", "xxxl", "xxxl"]}
    tree = CARTClassifier(order={"size": SIZES}).fit(table, [0, 0, 1, 1])
    assert tree.predict({"size": list(SIZES)}).tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_conditions_are_bounds():
    words, _, y = _tables(2, missing=0)
    model = CARTClassifier(max_depth=2).fit(words[["size"]], y > 4).model_
    first, second = model.rules()[0].conditions, model.rules()[-1].conditions
    assert str(model).startswith("size <= m:\n|   size <= s: ")
    assert "size > m:" in str(model)
    assert str(first[0]) == "size <= s"
    assert said(first[0]) == "size is at most s"
    assert first[0].op == "in"
    assert first[0].value == ("xs", "s")
    assert "in {" not in "".join(map(str, (*first, *second)))
    column = Column("size", "ordinal", SIZES)
    inner = Condition("size", "in", ("s", "m"), column)
    assert str(inner) == "xs < size <= m"
    assert str(Condition("size", "in", SIZES, column)) == "size is known"
    apart = Condition("size", "in", ("s", "l"), column)
    assert apart.worded is apart
    assert str(apart) == "size in {s, l}"


def test_one_branch_per_value_is_as_without_an_order():
    words, _, y = _tables(3)
    plain = words.assign(size=words["size"].cat.as_unordered())
    for estimator in (ID3Classifier(max_depth=2), C45Classifier()):
        ordered = estimator.fit(words, y > 4).model_
        assert ordered.tree == estimator.fit(plain, y > 4).model_.tree


def test_groups_of_values_are_runs_of_their_order():
    words, _, y = _tables(4, n=300)
    tree = C45Classifier(group_values=True, prune=False).fit(words, y > 4)
    children = np.flatnonzero(tree.tree_.n_codes > 1)
    assert len(children)
    for child in children:
        parent = tree.tree_.parent[child]
        if tree.tree_.column[parent] > 1:
            continue
        siblings = tree.tree_.children(parent)
        runs = sorted(tree.tree_.codes_of(s) for s in siblings if s)
        runs = [run for run in runs if run]
        assert all(a[-1] < b[0] for a, b in pairwise(runs))


def test_the_order_is_in_the_file_and_in_new_tables(tmp_path):
    words, _, y = _tables(5)
    tree = CARTClassifier(unseen="error").fit(words, y > 4)
    tree.model_.save(tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    assert again.schema.columns[0].kind == "ordinal"
    as_text = words.astype({"size": object, "grade": object})
    assert (again.predict(as_text) == tree.predict(words)).all()
    strange = as_text.iloc[:1].assign(size="huge")
    with pytest.raises(DataError, match=r"'huge' in row 0.*Declare it in order="):
        again.predict(strange)


def test_unseen_values_follow_their_policy():
    table = {"size": ["xs", "s", "m", "l", "l", "l"]}
    y = [0, 0, 1, 1, 1, 1]
    for policy, label in (("largest", 1), ("node", 1)):
        tree = CARTClassifier(order={"size": SIZES}, unseen=policy).fit(table, y)
        assert tree.predict({"size": ["huge"]}).tolist() == [label]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["a"], "order must be None or a dict"),
        ({"x": "ab"}, r"order\['x'\] must be a list of values"),
        ({"x": []}, r"order\['x'\] is empty"),
        ({"x": ["a", "a"]}, r"order\['x'\] lists 'a' more than once"),
        ({"z": ["a", "b"]}, "order names 'z', which is not a column"),
        ({"c": ["a", "b"]}, "order and categories both name 'c'"),
    ],
)
def test_wrong_orders_are_named(order, message):
    table = {"x": ["a", "b"], "c": ["a", "b"]}
    with pytest.raises(ParameterError, match=message):
        fit_tree(table, [0, 1], CART, categories={"c": ["a", "b"]}, order=order)


def test_a_value_outside_the_order_is_named():
    with pytest.raises(DataError, match=r"'c' in row 1.*Add it to order="):
        fit_tree({"x": ["a", "c"]}, [0, 1], CART, order={"x": ["a", "b"]})


def test_numbers_may_have_an_order():
    tree = CARTClassifier(order={"x": [3, 1, 2]}).fit({"x": [3, 1, 2, 2]}, [0, 0, 1, 1])
    assert str(tree.model_) == "x <= 1: 0 (2)\nx = 2: 1 (2)"


def test_steps_name_the_values():
    words, _, y = _tables(6, n=60, missing=0)
    model = CARTClassifier(max_depth=1).fit(words[["size"]], y > 4).model_
    steps = model.steps(words[["size"]], y > 4)
    assert "size <= " in steps.to_text()
    assert "0.5" not in str(steps.nodes[0].candidates[0].threshold)
    assert steps.nodes[0].candidates[0].threshold in SIZES


def test_exports_are_verified():
    words, _, y = _tables(7, n=80)
    model = CARTClassifier(max_depth=3).fit(words, y > 4).model_
    for name in ("python", "sql", "javascript", "json"):
        assert model.export(name)


@pytest.mark.parametrize(
    ("sides", "threshold", "codes"),
    [([0], 1.5, [0, 1]), ([1], 1.0, [2, 3]), ([0, 1], np.nan, [0, 1, 2, 3])],
)
def test_codes_of_sides(sides, threshold, codes):
    assert codes_of_sides(sides, threshold, 4) == codes
