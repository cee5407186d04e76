"""Candidates and previews of nodes; what a split by hand must be like."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from branchwise import DataError, ParameterError, Recipe, fit_tree, grow_by_hand
from branchwise.fit import not_wanted
from branchwise.recipe import C45, CART, ID3
from hand_grown import NUMBERS, ORDER, RECIPES, by_recipe, options, table


@pytest.mark.parametrize("name", ["id3", "c4.5", "cart", "c4.5 groups", "cart p-value"])
def test_figures_are_those_of_the_worked_solution(name):
    recipe = RECIPES[name]
    rows = table(150, 1, missing=True)
    model = fit_tree(rows, "y", recipe, on_finding=not_wanted, order=ORDER)
    worked = model.steps(rows.drop(columns="y"), rows.y, node=0).nodes[0]
    session = grow_by_hand(rows, "y", recipe, order=ORDER)
    found = session.candidates("/")
    assert found[0].column == worked.chosen
    for each in found:
        told = worked.candidate(each.column)
        assert each.score == pytest.approx(told.score)
        assert each.gain == pytest.approx(told.gain)
        assert [child.cases for child in each.children] == [
            branch.cases for branch in told.branches
        ]
        assert [child.weights for child in each.children] == [
            branch.weights for branch in told.branches
        ]
        assert (each.reason is None) == (told.out is None)
    if worked.p_value is not None:
        assert found[0].p_value == pytest.approx(worked.p_value.total)


def previewed(session, node, candidate):
    if candidate.threshold is not None:
        return session.preview(node, candidate.column, threshold=candidate.threshold)
    return session.preview(node, candidate.column, groups=candidate.groups)


@pytest.mark.parametrize("name", by_recipe())
def test_a_preview_has_the_figures_of_a_candidate(name):
    recipe = {**RECIPES, **NUMBERS}[name]
    rows = table(120, 2, missing=True, numbers=name in NUMBERS)
    session = grow_by_hand(rows, "y", recipe, **options(rows))
    session.split("/", "e")
    for node in ("/", "/1"):
        for each in session.candidates(node):
            if not each.splits:
                continue
            again = previewed(session, node, each)
            assert replace(again, reason=each.reason) == replace(
                each,
                score=again.score,
                gain=again.gain,
                gain_ratio=again.gain_ratio,
                p_value=again.p_value,
            )
            if recipe.max_bins is None:
                assert again.score == pytest.approx(each.score)
                assert again.gain == pytest.approx(each.gain)
                assert again.p_value == pytest.approx(each.p_value)
            assert session.preview(node, each.column) == each


@pytest.mark.parametrize("recipe", [ID3, C45, CART, replace(CART, criterion="gain")])
def test_the_best_of_many_thresholds_is_that_of_growth(recipe):
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(rng.normal(size=(5000, 2)), columns=list("ab"))
    rows["y"] = np.where(rows.a + rng.normal(size=5000) > 0.3, "yes", "no")
    session = grow_by_hand(rows, "y", recipe)
    best = session.candidates("/")[0]
    session.grow("/", levels=1)
    assert session.model.tree.threshold[0] == best.threshold


def test_candidates_without_the_compiled_kernel(monkeypatch):
    rows = table(300, 4)
    session = grow_by_hand(rows, "y", CART, order=ORDER)
    found = session.candidates("/")
    monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    reference = grow_by_hand(rows, "y", CART, order=ORDER)
    assert list(reference.candidates("/")) == list(found)
    reference.grow("/")
    monkeypatch.delenv("BRANCHWISE_KERNEL")
    session.grow("/")
    assert reference.model.to_bytes() == session.model.to_bytes()


def test_all_columns_have_a_split_or_a_reason():
    rows = table(60, 5)
    rows["one"] = "always"
    rows["none"] = np.nan
    rows["few"] = 0.0
    rows.loc[0, "few"] = 1.0
    session = grow_by_hand(rows, "y", replace(CART, min_samples_leaf=3))
    found = session.candidates("/")
    assert {each.column for each in found} == set(rows.columns) - {"y"}
    reasons = {each.column: each.reason for each in found if each.reason}
    assert reasons == {
        "one": "it has one value here",
        "none": "all its values are missing here",
        "few": "no threshold leaves enough cases on both sides",
    }
    assert "not chosen" in found.to_text()
    assert len(found.to_frame()) == len(found) == len(found.to_dict()["candidates"])
    assert "columns" in repr(found)
    bare = grow_by_hand(rows, "y", replace(CART, min_gain=0.4)).candidates("/")
    assert "its gain is below min_gain=0.4" in {each.reason for each in bare}
    tested = replace(CART, max_p_value=1e-30)
    bare = grow_by_hand(rows, "y", tested).candidates("/")
    assert "its p-value is above max_p_value=1e-30" in {each.reason for each in bare}
    values = replace(ID3, min_samples_leaf=40)
    bare = grow_by_hand(rows, "y", values).candidates("/")
    reason = "no grouping of its values leaves enough cases in the branches"
    assert reason in {each.reason for each in bare}
    noise = rows.assign(a=np.arange(60) % 2 + np.arange(60) / 1000)
    bare = grow_by_hand(noise[["a", "y"]], "y", C45).candidates("/")
    assert bare[0].reason == "no threshold gains more than choosing it costs"


def test_dates_are_split_at_dates():
    days = pd.date_range("2024-01-01", periods=60)
    late = np.arange(60) > 30
    rows = pd.DataFrame({"day": days, "y": np.where(late, "b", "a")})
    session = grow_by_hand(rows, "y", CART)
    best = session.candidates("/")[0]
    assert best.shown_threshold == "2024-01-31"
    session.split("/", "day", threshold="2024-01-31")
    first = session.model.to_bytes()
    session.undo()
    session.split("/", "day", threshold=dt.date(2024, 1, 31))
    assert session.model.to_bytes() == first
    session.undo()
    session.split("/", "day")
    assert session.model.to_bytes() == first
    with pytest.raises(ParameterError, match="threshold must be a date for column"):
        session.split("/", "day", threshold="soon")


def test_ordered_values_are_split_at_one():
    rows = table(200, 6)
    session = grow_by_hand(rows, "y", CART, order=ORDER)
    session.split("/", "d", threshold="mid")
    told = [
        child.condition for child in session.preview("/", "d", threshold="mid").children
    ]
    assert told == ["d <= mid", "d = hi"]
    first = session.model.to_bytes()
    session.split("/", "d", groups=[["hi"], ["mid", "lo"]])
    assert session.model.to_bytes() == first


ROWS = table(80, 7)
COSTS = ((0, 1, 1), (2, 0, 1), (1, 1, 0))


@pytest.mark.parametrize(
    ("node", "column", "given", "message"),
    [
        ("/", "z", {}, "column must be one of 'a', 'b', 'c', 'd', 'e'. Got 'z'"),
        ("/", 9, {}, "column must be a name, or a position from 0 to 4. Got 9"),
        ("/", "a", {"threshold": 99}, "its numbers are from"),
        ("/", "a", {"threshold": "much"}, "threshold must be a number for column 'a'"),
        ("/", "a", {"threshold": float("nan")}, "threshold must be a text, a finite"),
        (
            "/",
            "a",
            {"groups": [[1], [2]]},
            "column 'a' has numbers, which are split at",
        ),
        ("/", "a", {"values": True}, "Got values; give a threshold"),
        ("/", "c", {"threshold": "x"}, "column 'c' has categories without an order"),
        ("/", "d", {"threshold": "hi"}, "threshold must have rows on both sides"),
        ("/", "d", {"threshold": "none"}, "Got 'none'"),
        ("/", "c", {"groups": [["x"], ["y"]]}, "groups must have all values with rows"),
        (
            "/",
            "c",
            {"groups": [list("xyz"), list("zuvw")]},
            "groups must have each value once. Got 'z' in two places",
        ),
        ("/", "c", {"groups": [list("xyzuvw"), ["q"]]}, "Got 'q'"),
        ("/", "c", {"groups": [list("xyzuvw"), []]}, "Got an empty one, without any"),
        ("/", "c", {"groups": [list("xyzuvw")]}, "groups must be two at least"),
        ("/", "c", {"groups": 3}, "groups must be a list with a list of values"),
        (
            "/",
            "c",
            {"groups": [["x"], list("yzuvw")], "values": True},
            "A split has one of threshold, groups and values. Got 'groups', 'values'",
        ),
        ("/9", "a", {}, "Got '/9', but '/' has the branches 0 to 1"),
        ("/0/1", "a", {}, "Got '/0/1', but '/0' is a leaf"),
        ("0/1", "a", {}, "node must be '/', the root, a path of positions"),
        (99, "a", {}, "or a number from 0, the root, to 2. Got 99"),
        ("/1", "a", {}, "split changes node '/1', which is locked"),
    ],
)
def test_splits_are_checked(node, column, given, message):
    session = grow_by_hand(ROWS, "y", CART, order=ORDER)
    session.split("/", "e", values=True)
    session.lock("/1")
    before = session.model.to_bytes()
    with pytest.raises(ParameterError) as caught:
        session.split(node, column, **given)
    assert message in str(caught.value) or (
        # A split of the root would remove what is locked: it is checked before.
        node == "/" and "would remove node '/1' below it" in str(caught.value)
    )
    session.unlock("/1")
    if node == "/1":
        session.split(node, column, **given)
        return
    with pytest.raises(ParameterError) as caught:
        session.split(node, column, **given)
    assert message in str(caught.value)
    assert session.model.to_bytes() == before
    assert len(session.history) == 4


def act(session, what, *given):
    getattr(session, what)(*given)


@pytest.mark.parametrize(
    ("what", "given", "message"),
    [
        (
            "prune",
            ("/0",),
            "node must be a node with branches to prune. Got '/0', a leaf",
        ),
        ("prune", ("/1",), "prune changes node '/1', which is locked. Call"),
        ("prune", ("/1/0",), "which is below '/1', and that is locked"),
        ("prune", ("/",), "prune at node '/' would remove node '/1' below it"),
        ("grow", ("/1",), "grow changes node '/1', which is locked"),
        (
            "grow",
            ("/0", CART, 0),
            "levels must be None or a whole number of at least 1",
        ),
        ("grow", ("/0", "C4.5"), "recipe must be a Recipe. Got str"),
        ("grow", ("/0", NUMBERS["regression"]), "recipe must predict the same as"),
        (
            "grow",
            ("/0", replace(CART, max_depth=1)),
            "max_depth=1 of the recipe is the depth of the whole tree, and node '/0'",
        ),
        (
            "grow",
            ("/0", replace(CART, criterion=lambda nodes, branches: nodes[:, 0])),
            "criterion must have a name",
        ),
        (
            "grow",
            ("/0", replace(CART, pruning="reduced-error")),
            "pruning='reduced-error' needs other rows to prune with",
        ),
        (
            "grow",
            (
                "/0",
                replace(CART, costs=COSTS, costs_in="growth"),
            ),
            "costs_in='growth' weighs rows by costs while the tree is grown",
        ),
        (
            "grow",
            ("/0", replace(CART, costs=((0, 1), (1, 0)))),
            "costs must have a row and a column for each of the 3 classes",
        ),
        (
            "unlock",
            ("/0",),
            "node must be a locked node. Got '/0'; the locked ones are: '/1'",
        ),
        ("relabel", ("/0", "D"), "prediction must be one of the classes 'A', 'B', 'C'"),
        ("relabel", ("/1", "A"), "relabel changes node '/1', which is locked"),
        ("note", ("/0", 3), "text must be a text of at most 10,000 characters. Got 3"),
        ("note", ("/0", "x" * 10_001), "text must be a text of at most 10,000"),
        ("set_missing", ("/0", "stop"), "node must be a node with branches. Got '/0'"),
        ("set_missing", ("/", 2), "the position of a branch, from 0 to 1. Got 2"),
        ("set_missing", ("/", "nowhere"), "missing must be 'largest', 'stop', 'every'"),
        ("set_missing", ("/", "every"), "session whose recipe has missing='split'"),
        ("redo", (), "There is nothing to redo"),
        ("goto", (99,), "from 0, the start, to 3. Got 99"),
        ("apply", ({"do": "fly", "node": "/"},), "'do' of an action must be one of"),
    ],
)
def test_actions_are_checked(what, given, message):
    rows = table(100, 8, missing=True)
    session = grow_by_hand(rows, "y", CART)
    session.split("/", "e", values=True)
    session.split("/1", "a", threshold=0)
    session.lock("/1")
    before = session.to_text()
    with pytest.raises(ParameterError) as caught:
        act(session, what, *given)
    assert message in str(caught.value)
    assert session.to_text() == before


def test_the_start_cannot_be_undone():
    session = grow_by_hand(ROWS, "y", CART)
    with pytest.raises(ParameterError, match="There is nothing to undo"):
        session.undo()


def test_missing_values_of_their_own_branch_stay_there():
    rows = table(100, 8, missing=True)
    session = grow_by_hand(rows, "y", ID3)
    session.split("/", "e", values=True)
    with pytest.raises(ParameterError, match="have a branch of their own at node '/'"):
        session.set_missing("/", "stop")
    # No row gets to the branch of missing values of a column that has none left.
    session.split("/2", "a", threshold=0)
    assert session.model.tree.n_leaves == 5 + ("a is missing" in str(session.model)) - 1


def test_a_node_without_rows_has_no_candidates():
    rows = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "y": list("xyxy")})
    session = grow_by_hand(rows, "y", replace(CART, missing="largest"))
    session.split("/", "a", threshold=2)
    session.set_missing("/", 0)
    less = session.refit(rows[rows.a != 4].assign(a=[1.0, 2.0, 3.0]), keep="all")
    assert less.misfits == []
    weighted = pd.DataFrame({"c": list("ppqq"), "y": list("xyxy"), "w": [1, 1, 1, 0]})
    session = grow_by_hand(weighted, "y", CART, sample_weight="w")
    session.split("/", "c", values=True)
    session.note("/0", "seen")
    other = weighted.assign(c=list("pppp"))
    assert "it has" not in str(session.misfits)
    assert len(session.refit(other, keep="all").misfits) == 2


def test_options_are_checked():
    with pytest.raises(ParameterError, match="grow_by_hand has no parameter 'engine'"):
        grow_by_hand(ROWS, "y", engine="memory")
    with pytest.raises(ParameterError, match="recipe must be a Recipe"):
        grow_by_hand(ROWS, "y", "c4.5")
    with pytest.raises(ParameterError, match="validation_fraction must be None or a"):
        grow_by_hand(ROWS, "y", validation_fraction=2.0)
    with pytest.raises(ParameterError, match="class_weight must be made of texts"):
        grow_by_hand(ROWS, "y", class_weight=lambda classes: dict.fromkeys(classes, 1))
    with pytest.raises(DataError, match="missing"):
        grow_by_hand(table(50, 1, missing=True), "y", replace(CART, missing="error"))

    class Far:
        engine_name = "sql"

    with pytest.raises(ParameterError, match="needs the rows in memory"):
        grow_by_hand(Far(), "y")


def test_numbers_are_set_by_hand():
    rows = table(50, 9, numbers=True)
    session = grow_by_hand(rows, "y", NUMBERS["regression"])
    session.split("/", "e")
    before = session.model.to_bytes()
    session.lock("/0")
    session.unlock("/0")
    session.relabel("/0", 3)
    assert session.model.tree.mean[1] == 3.0
    assert "relabel /0 3" in str(session.history)
    assert set(session.model.predict(rows[rows.e == "p"])) == {3.0}
    assert replace_in_python(session, rows) == session.model
    session.lock("/0")
    assert session.refit(rows, keep="locked").model.tree.mean[1] == 3.0
    session.unlock("/0")
    session.prune("/")
    session.undo()
    assert session.model.tree.mean[1] == 3.0
    session.goto(3)
    assert session.model.to_bytes() == before
    with pytest.raises(ParameterError, match="prediction must be a number, for this"):
        session.relabel("/", "much")


def replace_in_python(session, rows):
    space = {"table": rows}
    exec(session.script(), space)
    return space["model"]


@pytest.mark.parametrize("name", ["c4.5", "cart", "regression"])
@pytest.mark.parametrize("levels", [None, 1])
def test_all_leaves_grow_in_one_step(name, levels):
    recipe = {**RECIPES, **NUMBERS}[name]
    rows = table(150, 3, missing=True, numbers=name in NUMBERS)
    one, many = (grow_by_hand(rows, "y", recipe, **options(rows)) for _ in range(2))
    for session in (one, many):
        session.split("/", "e", values=True)
        session.split("/0", "b", threshold=2)
        session.relabel("/0/1", (*session.schema.classes, 1)[0])
        session.lock("/1")
    before = one.model.to_bytes()
    one.grow("/", levels=levels, leaves=True)
    for leaf in [p for p in ("/0/0", "/0/1") if p not in many.locks]:
        many.grow(leaf, levels=levels)
    assert one.model.to_bytes() == many.model.to_bytes()
    assert len(one.history) == len(many.history) - 1
    assert one.state.hand == {"/", "/0"}
    assert replace_in_python(one, rows) == one.model
    assert "grow the leaves of /" in str(one.history)
    one.undo()
    assert one.model.to_bytes() == before
    with pytest.raises(ParameterError, match="leaves must be True, to keep the splits"):
        one.grow("/", leaves="all")


def test_a_recipe_survives_as_text():
    recipe = Recipe(criterion="gini", costs=((0, 2), (1, 0)), max_depth=3)
    rows = pd.DataFrame({"a": range(20), "y": ["u", "v"] * 10})
    session = grow_by_hand(rows, "y", recipe)
    session.grow("/", replace(recipe, max_depth=2))
    space = {"table": rows}
    exec(session.script(), space)
    assert space["model"] == session.model
    assert space["session"].recipe == replace(recipe, max_depth=2)


def test_no_node_is_left_without_rows():
    rows = pd.DataFrame(
        {
            "a": [1.0, 1.0, 2.0, 2.0, np.nan, np.nan],
            "c": list("pqppqr"),
            "y": list("xyxyxy"),
        }
    )
    session = grow_by_hand(rows, "y", replace(CART, missing="largest"))
    session.split("/", "a", threshold=1)
    session.set_missing("/", 1)
    session.split("/1", "c", values=True)
    with pytest.raises(ParameterError, match="would leave node '/1/1' without rows"):
        session.set_missing("/", 0)
    session.prune("/1")
    session.set_missing("/", 0)
    assert session.model.tree.case_counts.tolist() == [6, 4, 2]
