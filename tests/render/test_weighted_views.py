"""Weighted cases: every number that a view states is counted again from the rows."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from branchwise import datasets, fit_tree
from branchwise.data.table_schema import Column, Schema
from branchwise.data.weights import weigh
from branchwise.errors import DataError, ModelFileError
from branchwise.model import Model
from branchwise.model_file import from_bytes
from branchwise.native import available
from branchwise.recipe import C45, CART, ID3
from branchwise.render.view import compact
from branchwise.rules.rule import INTERVAL
from branchwise.stats import share_interval
from branchwise.text.words import amount, percent, share
from naive_rules import fulfils, path
from tree_builder import TreeBuilder

RECIPES = {
    "id3": ID3,
    "id3 depth 2": replace(ID3, max_depth=2),
    "c4.5": C45,
    "c4.5 groups": replace(C45, branching="groups"),
    "cart leaves": replace(CART, max_leaf_nodes=4),
    "cart costs": replace(CART, costs=((0, 1, 4), (2, 0, 1), (5, 1, 0))),
    "cart alpha": replace(CART, pruning="cost-complexity", ccp_alpha=0.01),
    "id3 laplace": replace(ID3, max_depth=1, probabilities="laplace"),
    "id3 m": replace(ID3, probabilities="m-estimate", m=7.0),
    "id3 bins": replace(ID3, max_bins=3),
}
WEIGHTS = {
    "rows": {"sample_weight": True},
    "balanced": {"class_weight": "balanced"},
    "priors": {"priors": {"a": 0.2, "b": 0.5, "c": 0.3}},
    "all": {"sample_weight": True, "class_weight": {"a": 3.0, "b": 0.5}},
}


def random_table(seed, n=60):
    rng = np.random.default_rng(seed)
    X = {
        "c": rng.choice(["x", "y", "z"], n).tolist(),
        "d": rng.choice(["p", "q"], n).tolist(),
        "n": rng.integers(0, 12, n).astype(float).tolist(),
    }
    y = [
        str(rng.choice(["a", "b", "c"], p=[0.7, 0.2, 0.1] if c == "x" else None))
        for c in X["c"]
    ]
    y[:3] = "a", "b", "c"
    weights = rng.choice([0.0, 0.25, 1.0, 2.5, 1 / 3], n)
    weights[:3] = 1.0
    return X, y, weights


def weighted_model(seed, how, recipe):
    """Return a model, its rows, and what each of them weighs."""
    X, y, weights = random_table(seed)
    how = dict(WEIGHTS[how])
    given = weights if how.pop("sample_weight", False) else None
    each = np.ones(len(y)) if given is None else given.copy()
    if (classes := how.get("class_weight")) == "balanced":
        classes = {label: len(y) / (3 * y.count(label)) for label in "abc"}
    if classes:
        each = each * [classes.get(label, 1.0) for label in y]
    if priors := how.get("priors"):
        found = {
            k: sum(w for w, g in zip(each, y, strict=True) if g == k) for k in "abc"
        }
        each = each * [priors[k] * sum(found.values()) / found[k] for k in y]
    rows = [dict(zip(X, cells, strict=True)) for cells in zip(*X.values(), strict=True)]
    model = fit_tree(X, y, recipe, sample_weight=given, **how)
    return model, rows, y, weigh(each, len(y), fractions=False).natural.weights


class Recount:
    """Cases and weights at a node, row by row."""

    def __init__(self, model, rows, y, each, node):
        way = path(model, node)
        here = [i for i, row in enumerate(rows) if each[i] > 0 and fulfils(way, row)]
        self.n = len(here)
        self.counts = {k: sum(y[i] == k for i in here) for k in "abc"}
        self.weights = {k: sum(each[i] for i in here if y[i] == k) for k in "abc"}
        self.weight = sum(self.weights.values())
        self.label = model.schema.classes[int(model.tree.label[node])]
        self.right = self.counts[self.label]
        self.part = share(self.weights[self.label], self.weight)


def check_rule(rule, here, whole):
    assert (rule.n, rule.counts, rule.right) == (here.n, here.counts, here.right)
    assert rule.coverage == here.n / whole.n
    assert rule.confidence == here.right / here.n
    assert rule.interval == share_interval(here.right / here.n, here.n, INTERVAL)
    assert rule.weights == pytest.approx(here.weights)
    covered = here.weight / whole.weight
    assert rule.weight_coverage == pytest.approx(covered)
    cases = f"{here.right} of {here.n} cases, {share(here.right, here.n)}"
    assert f"({cases}; {here.part} of weight" in str(rule)
    trained = "training case" if here.n == 1 else "training cases"
    stated = rule.sentence()
    assert f"({cases.replace('cases', trained)}; {here.part} of weight" in stated
    assert (
        f"covers {percent(here.n / whole.n)} of all cases, {percent(covered)}" in stated
    )


def check_text(said, here):
    errors = here.n - here.right
    expected = f"{here.n}/{errors}, {here.part} of weight" if errors else f"{here.n}"
    assert re.search(rf"\({re.escape(expected)}[,)]", said), said


def check_explanation(model, row, here):
    (ending,) = model.explain(row).endings
    listed = [f"{k} {n}" for k, n in here.counts.items() if n]
    low, high = share_interval(here.right / here.n, here.n, 0.95)
    told = ending.evidence()
    trained = "training case" if here.n == 1 else "training cases"
    assert told.startswith(f"{here.n} {trained} (of weight {amount(here.weight)}): ")
    assert all(part in told for part in listed)
    assert (
        f"Share of {here.label}: {share(here.right, here.n)} of cases, 95 % interval "
        f"(Wilson) {share(low, 1)} to {share(high, 1)}; {here.part} of weight" in told
    )
    for entry in ending.to_dict()["counts"]:
        assert entry["cases"] == here.counts[entry["class"]]
        weighed = here.weights[entry["class"]] / here.weight
        assert entry["weight_share"] == pytest.approx(weighed)


@pytest.mark.parametrize("how", WEIGHTS)
@pytest.mark.parametrize("name", RECIPES)
def test_every_view_states_what_the_rows_have(name, how):
    seed = sum(map(ord, name + how))
    model, rows, y, each = weighted_model(seed, how, RECIPES[name])
    for shown in (model, model.merge_same_leaves(True), load_again(model)):
        check_model(shown, rows, y, each)


def load_again(model):
    document = json.loads(model.to_bytes())
    assert "class_cases" in document["tree"]
    return Model(*from_bytes(model.to_bytes()))


def check_model(model, rows, y, each):
    nodes = [Recount(model, rows, y, each, i) for i in range(len(model.tree))]
    whole = nodes[0]
    tree, view = model.tree, model.view()
    by_class = [list(here.counts.values()) for here in nodes]
    assert tree.class_cases.tolist() == by_class
    assert tree.cases.tolist() == [here.n for here in nodes]
    page = compact(view)
    assert page["cases"] == view["nodes"]["cases"] == tree.cases.tolist()
    assert page["class_cases"] == view["nodes"]["class_cases"] == by_class
    for node, here in enumerate(nodes):
        check_text(view["nodes"]["summary"][node], here)
        errors = here.n - here.right
        noun = "case" if here.n == 1 else "cases"
        wrong = f", {errors} error{'' if errors == 1 else 's'}, {here.part} of weight"
        tally = view["nodes"]["tally"][node]
        assert tally.startswith(f"{here.n} {noun}" + (wrong if errors else ""))
    rules = model.rules()
    table = rules.to_columns()
    for at, rule in enumerate(rules):
        here = nodes[rule.node]
        check_rule(rule, here, whole)
        assert table["cases"][at] == here.n
        assert table["right"][at] == here.right
        assert table["weight_share"][at] == rule.weight_share
    told = json.loads(rules.to_json())["rules"]
    assert [entry["cases"] for entry in told] == table["cases"]
    arrived = model.apply({k: [row[k] for row in rows] for k in rows[0]})
    for i in range(0, len(rows), 17):
        check_explanation(model, rows[i], nodes[arrived[i]])
    for line in model.to_text().splitlines():
        found = re.search(r"\((\d+)", line)
        assert found is None or int(found[1]) in {here.n for here in nodes}


def test_car_in_balance():
    car = datasets.load("car")
    model = fit_tree(car.X, car.y, replace(ID3, max_depth=1), class_weight="balanced")
    assert str(model) == (
        "safety = high: vgood (576/511, 45.6 % of weight)\n"
        "safety = low: unacc (576)\n"
        "safety = med: good (576/537, 42.5 % of weight)"
    )
    assert model.rules()[0].sentence() == (
        "If safety is high, then the prediction is vgood (65 of 576 training cases, "
        "11.3 %; 45.6 % of weight; covers 33 % of all cases, 55 % of all weight; 95 % "
        "interval 8-15 %)."
    )
    drawn = [model.to_svg(), model.to_dot(), model.to_mermaid().replace("#37;", "%")]
    for picture in drawn:
        assert "576 cases, 511 errors, 45.6 % of weight" in picture
    assert "vgood: 65 cases, 45.6 % of weight" in drawn[0]


@pytest.mark.parametrize(
    "missing", ["split", "largest", "surrogate", "learned", "branch"]
)
def test_missing_values_count_where_the_tree_sends_them(missing):
    X, y, weights = random_table(5, 90)
    gone = np.random.default_rng(7).random((3, 90)) < 0.2
    for name, where in zip(X, gone, strict=True):
        X[name] = [None if w else cell for w, cell in zip(where, X[name], strict=True)]
    recipe = replace(CART, missing=missing, max_depth=4)
    model = fit_tree(X, y, recipe, sample_weight=weights)
    tree = model.tree
    assert np.allclose(tree.class_cases.sum(axis=1), tree.cases, rtol=1e-12)
    if missing != "split":
        assert (tree.class_cases.sum(axis=1) == tree.cases).all()
    inside = [y[i] for i in range(90) if weights[i] > 0]
    assert tree.class_cases[0].tolist() == [inside.count(k) for k in "abc"]
    counted = np.zeros_like(tree.weights)
    arrivals = model.arrivals(X)
    for row, node, part in zip(
        arrivals.row, arrivals.node, arrivals.share, strict=True
    ):
        while node >= 0 and weights[row] > 0:
            counted[node, "abc".index(y[row])] += part
            node = tree.parent[node]
    assert np.allclose(tree.class_cases, counted, rtol=1e-9)


@pytest.mark.parametrize("recipe", [C45, replace(CART, missing="split"), ID3])
def test_both_kernels_count_the_same(monkeypatch, recipe):
    if not available():
        pytest.skip("no compiled kernel")
    X, y, weights = random_table(11, 120)
    X["c"][::7] = [None] * len(X["c"][::7])
    native = fit_tree(X, y, recipe, sample_weight=weights)
    monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    assert fit_tree(X, y, recipe, sample_weight=weights) == native


def test_weights_of_one_leave_no_trace():
    X, y, _ = random_table(3)
    ones = np.ones(len(y))
    assert fit_tree(X, y, sample_weight=ones) == fit_tree(X, y)
    ones[5:20] = 0.0
    some = [i for i in range(len(y)) if ones[i]]
    fewer = {name: [cells[i] for i in some] for name, cells in X.items()}
    left = fit_tree(fewer, [y[i] for i in some])
    assert str(fit_tree(X, y, sample_weight=ones)) == str(left)
    assert fit_tree(X, y, sample_weight=ones).tree.class_cases is None


def without_class_cases(model):
    """A model as earlier versions have written it."""
    document = json.loads(model.to_bytes())
    del document["tree"]["class_cases"]
    return Model(*from_bytes(json.dumps(document).encode()))


def test_files_of_earlier_versions_tell_no_cases_of_classes():
    X, y, weights = random_table(4)
    old = without_class_cases(
        fit_tree(X, y, replace(ID3, max_depth=1), sample_weight=weights)
    )
    n, weight = int(old.tree.cases[1]), old.tree.weights[1]
    part = share(float(weight.max()), float(weight.sum()))
    rule = old.rules()[0]
    assert (rule.n, rule.counts, rule.interval) == (n, {}, None)
    assert f"({n} cases; {part} of weight)" in str(rule)
    assert f"({n} training cases; {part} of weight; covers" in rule.sentence()
    assert f"({n} cases, {part} of weight)" in str(old).splitlines()[0]
    told = str(old.explain({"c": X["c"][0], "d": "p", "n": 1.0}))
    assert "of weight" in told
    assert "interval" not in told
    assert old.to_svg()
    assert "class_cases" not in old.view()["nodes"]
    assert old.to_html()
    assert old.rules().to_columns()["right"][0] is None


def test_numbers_have_weighted_means_of_cases():
    model = fit_tree(
        {"x": [1, 2, 8, 9, 9]},
        [1.0, 1.0, 5.0, 6.0, 0.0],
        replace(CART, criterion="variance", max_depth=1),
        sample_weight=[1.0, 1.0, 3.0, 1.0, 0.0],
    )
    assert str(model) == (
        "x <= 5: 1 (weighted mean of 2 cases)\n"
        "x >= 6: 5.25 (weighted mean of 2 cases, ± 0.433)"
    )
    low, high = model.rules()
    assert str(high) == (
        "if x >= 6 then 5.25 (weighted mean of 2 cases, weighted standard deviation "
        "0.433)"
    )
    assert low.sentence() == (
        "If x is at most 5, then the prediction is 1 on weighted average (2 training "
        "cases, weighted standard deviation 0; covers 50 % of all cases, 33 % of all "
        "weight)."
    )
    told = str(model.explain({"x": 9}))
    assert (
        "2 training cases (of weight 4): weighted mean 5.25, weighted standard" in told
    )
    assert "2 cases, weighted, ± 0.433" in model.to_dot()
    assert list(model.rules().to_columns())[-2:] == ["weight_coverage", "node"]


def test_differences_name_weights():
    X, y, weights = random_table(6)
    one = fit_tree(X, y, replace(ID3, max_depth=1), sample_weight=weights)
    other = fit_tree(X, y, replace(ID3, max_depth=1), sample_weight=weights * 2)
    told = [difference.old for difference in one.diff(other).differences]
    n, weight = int(one.tree.cases[0]), float(one.tree.weights[0].sum())
    assert f"{n} cases of weight {amount(weight)}" in told


def test_rule_lists_count_cases():
    X, y, _ = random_table(8)
    weights = np.where(np.array(y) == "c", 4.0, 1.0)
    model = fit_tree(X, y, C45, sample_weight=weights)
    listed = model.generalised_rules(X, y, sample_weight=weights)
    rows = [dict(zip(X, cells, strict=True)) for cells in zip(*X.values(), strict=True)]
    for rule in listed:
        inside = [k for k, row in enumerate(rows) if fulfils(rule.conditions, row)]
        assert rule.n == len(inside)
        assert rule.right == sum(y[k] == rule.label for k in inside)
        assert rule.weight == sum(weights[inside])
    predicted = listed.predict(X)
    right = np.array([p == g for p, g in zip(predicted, y, strict=True)])
    summary = listed.table().summary["rules"]
    assert summary["accuracy"] == pytest.approx(right.mean())
    assert summary["weighted_accuracy"] == pytest.approx(
        weights[right].sum() / weights.sum()
    )


# -- The array


def small_builder(**root):
    schema = Schema((Column("c", "categorical", ("x", "y")),), ("no", "yes"))
    return TreeBuilder(schema, weights=[2.5, 4], **root)


def test_trees_by_hand_may_tell_cases_of_classes():
    builder = small_builder(class_cases=[5, 2])
    builder.child(0, "c", values=["x"], weights=[2, 1], class_cases=[4, 1])
    builder.child(0, "c", values=["y"], weights=[0.5, 3], class_cases=[1, 1])
    tree = builder.build()
    assert tree.cases.tolist() == [7, 5, 2]
    assert str(Model(builder.schema, tree, ID3)) == (
        "c = x: no (5/1, 66.7 % of weight)\nc = y: yes (2/1, 85.7 % of weight)"
    )


def test_cases_of_classes_are_for_all_nodes():
    builder = small_builder(class_cases=[5, 2])
    builder.child(0, "c", values=["x"], weights=[2, 1])
    builder.child(0, "c", values=["y"], weights=[0.5, 3])
    with pytest.raises(DataError, match="for all of the 3 nodes or for none"):
        builder.build()
    with pytest.raises(DataError, match="class_cases must have one entry for each of"):
        small_builder(class_cases=[1])


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([[5, 2], [4, 1], [1, 2]], "'class_cases' does not add up to 'cases'"),
        ([[5, 2], [6, -1], [1, 1]], "'class_cases' has entries that are negative"),
        ([[5, 2], [4, 1]], "'class_cases' has shape"),
        ([5, 2, 1], "'class_cases' must be a list of lists"),
    ],
)
def test_files_with_other_cases_of_classes_are_refused(cases, message):
    builder = small_builder(class_cases=[5, 2])
    builder.child(0, "c", values=["x"], weights=[2, 1], class_cases=[4, 1])
    builder.child(0, "c", values=["y"], weights=[0.5, 3], class_cases=[1, 1])
    document = json.loads(Model(builder.schema, builder.build(), ID3).to_bytes())
    document["tree"]["class_cases"] = cases
    with pytest.raises(ModelFileError, match=message):
        from_bytes(json.dumps(document).encode())


# -- What decides


def test_the_prediction_is_the_most_probable_class():
    X = {"x": list("aaab" + "b" * 9)}
    y = ["yes", "yes", *["no"] * 11]
    for name, m in (("m-estimate", 9.0), ("laplace", 2.0), ("frequencies", 2.0)):
        recipe = replace(ID3, probabilities=name, m=m)
        model = fit_tree(X, y, recipe)
        for again in (model, Model(*from_bytes(model.to_bytes()))):
            chances = again.predict_proba(X)
            best = again.schema.class_array[chances.argmax(axis=1)]
            assert again.predict(X).tolist() == best.tolist()
    model = fit_tree(X, y, replace(ID3, probabilities="m-estimate", m=9.0))
    assert str(model).splitlines()[0] == "x = a: no (3/2, decided by the m-estimate)"
    told = "decided by the m-estimate: probability 72 % against 28 % for yes"
    assert told in model.rules()[0].sentence()
    assert told in str(model.explain({"x": "a"}))
    assert model.view()["reasons"] == {"1": told}


def test_files_without_predictions_get_the_most_probable_class():
    X = {"x": list("aaab" + "b" * 9)}
    y = ["yes", "yes", *["no"] * 11]
    model = fit_tree(X, y, replace(ID3, probabilities="m-estimate", m=9.0))
    document = json.loads(model.to_bytes())
    del document["tree"]["answer"]
    again = Model(*from_bytes(json.dumps(document).encode()))
    assert again.predict({"x": ["a"]}).tolist() == ["no"]


def test_leaves_that_would_predict_another_class_together_are_not_merged():
    X = {"x": ["a", "b", *["c"] * 6]}
    y = ["yes", "yes", *["no"] * 6]
    model = fit_tree(X, y, replace(ID3, probabilities="m-estimate", m=4.0))
    merged = model.merge_same_leaves(change_probabilities=True)
    assert model.predict(X).tolist() == merged.predict(X).tolist()


def test_divided_cases_tell_what_costs_decided():
    X = {"x": ["a"] * 5 + ["b"] * 5}
    y = ["no"] * 4 + ["yes"] + ["no"] * 5
    costs = ((0.0, 1.0), (20.0, 0.0))
    recipe = replace(ID3, missing="split", unseen="split", costs=costs)
    told = fit_tree(X, y, recipe).explain({"x": None})
    assert told.prediction == "yes"
    assert told.reason == "decided by costs: expected cost 0.9 against 2 for no"
    assert told.reason in str(told)
    assert told.to_dict()["decided_by"] == told.reason


def test_equal_costs_are_told_as_such():
    recipe = replace(ID3, costs=((0.0, 3.0), (1.0, 0.0)))
    model = fit_tree({"x": ["a"] * 4}, ["p", "q", "q", "q"], recipe)
    assert model.reasons == {0: "decided by costs: expected cost 0.75, as for q"}
