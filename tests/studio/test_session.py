"""Sessions: trees grown by hand are those that growing and counting would give."""

from __future__ import annotations

from dataclasses import replace

import pytest

import branchwise
from branchwise import fit_tree, grow_by_hand
from branchwise.fit import not_wanted
from branchwise.recipe import C45, CART, ID3
from branchwise.studio.nodes.node_paths import paths
from hand_grown import NUMBERS, RECIPES, by_recipe, options, table

EVERY = {**RECIPES, **NUMBERS}


def counted_anew(session):
    """Return the tree of a session with all rows counted down its splits again."""
    counts = session._editor.counts(session.recipe)
    return counts.counted(session.state.tree, counts.engine.root)


@pytest.mark.parametrize("name", by_recipe())
@pytest.mark.parametrize("missing", [False, True])
def test_growth_of_the_root_is_fit_tree(name, missing):
    recipe, weights = EVERY[name], len(name) % 2 == 0
    rows = table(150, 1, missing, name in NUMBERS, weights)
    fitted = fit_tree(rows, "y", recipe, on_finding=not_wanted, **options(rows))
    session = grow_by_hand(rows, "y", recipe, **options(rows))
    session.grow("/")
    assert session.model.to_bytes() == fitted.to_bytes()
    assert session.state.tree == counted_anew(session)
    # Of a session that began with another recipe as well.
    other = NUMBERS["regression"] if recipe.is_regression else ID3
    session = grow_by_hand(rows, "y", other, **options(rows))
    session.grow("/", recipe)
    assert session.model.to_bytes() == fitted.to_bytes()


def levels_by_hand(session, recipe, missing):
    """Split the leaves of a tree as their best candidates say, level by level."""
    for path in paths(session.state.tree):
        if session.origin(path) != "leaf":
            continue
        best = session.candidates(path)[0]
        assert best.reason is None
        if best.threshold is not None:
            session.split(path, best.column, threshold=best.threshold)
        else:
            session.split(path, best.column, groups=best.groups)


@pytest.mark.parametrize(
    "name", ["id3", "c4.5", "cart", "cart surrogates", "cart bins"]
)
@pytest.mark.parametrize("missing", [False, True])
def test_splits_by_hand_are_those_of_growth(name, missing):
    recipe = RECIPES[name]
    rows = table(120, 2, missing)
    grown = grow_by_hand(rows, "y", recipe, **options(rows))
    grown.grow("/", levels=2)
    made = grow_by_hand(rows, "y", recipe, **options(rows))
    for _ in range(2):
        levels_by_hand(made, recipe, missing)
    assert made.model.to_bytes() == grown.model.to_bytes()
    best = grow_by_hand(rows, "y", recipe, **options(rows))
    best.split("/", best.candidates("/")[0].column)
    again = grow_by_hand(rows, "y", recipe, **options(rows))
    again.grow("/", levels=1)
    assert best.model.to_bytes() == again.model.to_bytes()


def test_a_session_in_a_few_lines(tmp_path):
    rows = table(300, 3)
    session = grow_by_hand(rows, "y", CART, order=options(rows)["order"])
    session.split("/", "a", threshold=0.25)
    session.lock("/1")
    session.grow("/")
    assert session.origin("/") == "hand"
    assert session.origin("/1") == "leaf"
    assert session.origin("/0") == "grown"
    session.note("/1", "as the board decided")
    session.relabel("/0", "C")
    assert session.model.tree.label[1] == 2
    session.undo()
    session.save(tmp_path / "x.actions.json")
    opened = branchwise.open_session(tmp_path / "x.actions.json", rows)
    assert opened.model == session.model
    assert opened.notes == {"/1": "as the board decided"}
    opened.redo()
    assert opened.model.tree.label[1] == 2
    space = {"table": rows}
    exec(session.script(), space)
    assert space["model"].to_bytes() == session.model.to_bytes()


def test_a_grown_subtree_by_another_recipe():
    rows = table(300, 4, missing=True)
    session = grow_by_hand(rows, "y", ID3)
    session.split("/", "c", values=True)
    session.grow("/0", CART)
    assert session.state.tree == counted_anew(session)
    with pytest.raises(branchwise.ParameterError, match="divides cases"):
        session.grow("/1", C45)


@pytest.mark.parametrize("costs", [None, ((0, 1, 2), (3, 0, 1), (1, 1, 0))])
def test_a_class_that_is_set_by_hand_is_said_to_be(costs):
    rows = table(300, 5)
    session = grow_by_hand(rows, "y", replace(CART, costs=costs))
    # Branches are in the order of their first values.
    session.split("/", "c", groups=[["x"], list("yzuvw")])
    session.relabel("/0", "A")
    X = rows.drop(columns="y")
    assert "set by hand" in str(session.model)
    assert "A" in set(session.model.predict(X[X.c != "x"]))
    assert "Set by hand" in str(session.model.explain(X[X.c == "u"].iloc[0].to_dict()))
    session.undo()
    assert "set by hand" not in str(session.model)
