"""The tree: built by hand, checked when it is, and as deep as anyone likes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from branchwise import DataError, Model, Recipe, fit_tree, load
from branchwise.data.arrays import first_best, first_best_of_rows
from branchwise.data.table_schema import Column, Schema
from branchwise.tree.tree import ARRAYS, ArraySpec, Tree
from branchwise.tree.validation import validate
from random_tables import KERNELS
from selection import first_fast
from tree_builder import TreeBuilder

SCHEMA = Schema(
    (
        Column("size", "numeric"),
        Column("colour", "categorical", ("blue", "green", "red")),
    ),
    ("no", "yes"),
)


def builder_of_seven() -> TreeBuilder:
    """Build in an order of its own: the tree numbers nodes level by level."""
    builder = TreeBuilder(SCHEMA, [7, 9], cases=17)
    small = builder.child(0, "size", at_most=1.5, weights=[3, 5])
    builder.child(small, "colour", values=["blue"], weights=[0, 5])
    large = builder.child(0, "size", above=1.5, weights=[4, 4])
    builder.child(large, "colour", values=["red", "blue"], weights=[1, 4], cases=4)
    builder.child(small, "colour", values=["green"], weights=[3, 0])
    builder.child(large, "colour", missing=True, weights=[3, 0])
    return builder


@pytest.fixture
def tree() -> Tree:
    return builder_of_seven().build()


# --------------------------------------------------------------------- by hand


def test_nodes_are_numbered_level_by_level(tree: Tree) -> None:
    assert tree.column.tolist() == [0, 1, 1, -1, -1, -1, -1]
    assert tree.threshold[0] == 1.5
    assert np.isnan(tree.threshold[1:]).all()
    assert tree.n_children.tolist() == [2, 2, 2, 0, 0, 0, 0]
    assert tree.weights.tolist() == [
        [7, 9],
        [3, 5],
        [4, 4],
        [0, 5],
        [3, 0],
        [1, 4],
        [3, 0],
    ]
    assert tree.cases.tolist() == [17, 8, 8, 5, 3, 4, 3]


def test_what_follows_from_the_arrays(tree: Tree) -> None:
    assert len(tree) == 7
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    assert [list(tree.children(node)) for node in (0, 1, 2, 6)] == [
        [1, 2],
        [3, 4],
        [5, 6],
        [],
    ]
    assert tree.depth.tolist() == [0, 1, 1, 2, 2, 2, 2]
    assert list(tree.levels()) == [(0, 1), (1, 3), (3, 7)]
    assert (tree.max_depth, tree.n_leaves) == (2, 4)
    assert tree.is_leaf.tolist() == [False] * 3 + [True] * 4
    assert list(tree.preorder()) == [0, 1, 3, 4, 2, 5, 6]
    assert tree.used_columns == [0, 1]


def test_labels_and_their_ties(tree: Tree) -> None:
    assert tree.label.tolist() == [1, 1, 0, 1, 0, 1, 0]


def test_codes_and_the_branch_of_missing(tree: Tree) -> None:
    assert [tree.codes_of(node) for node in range(7)] == [
        [],
        [0],
        [1],
        [0],
        [1],
        [0, 2],
        [],
    ]
    missing = [node for node in range(7) if tree.is_missing_branch(node)]
    assert missing == [6]
    assert tree.missing_to.tolist() == [-1, -1, 1, -1, -1, -1, -1]
    assert tree.unseen_to.tolist() == [-1] * 7


def test_policies_become_branches() -> None:
    builder = TreeBuilder(SCHEMA, [7, 9])
    builder.child(0, "size", at_most=1.5, weights=[3, 5])
    builder.child(0, "size", above=1.5, weights=[4, 4])
    tree = builder.build(missing="largest", unseen="split")
    assert tree.missing_to.tolist() == [0, -1, -1]
    assert tree.unseen_to.tolist() == [-2, -1, -1]


def test_equality_is_that_of_all_arrays(tree: Tree) -> None:
    assert tree == builder_of_seven().build()
    assert tree != "a tree"
    for spec in ARRAYS:
        changed = getattr(tree, spec.name).copy()
        changed[0] += 1
        assert tree != replace(tree, **{spec.name: changed})


def test_a_root_alone() -> None:
    tree = TreeBuilder(SCHEMA, [1, 2]).build()
    assert (len(tree), tree.n_leaves, tree.max_depth) == (1, 1, 0)
    assert list(tree.preorder()) == [0]
    assert list(tree.levels()) == [(0, 1)]


def test_the_builder_refuses() -> None:
    builder = builder_of_seven()
    refused = [
        ("size", {"at_most": 1, "above": 1}, "exactly one of .* Got 2"),
        ("size", {}, "exactly one of .* Got 0"),
        ("weight", {"at_most": 1}, "'weight' is not a column"),
        ("colour", {"values": ["red"]}, "children on another column"),
        ("size", {"above": 2.5}, "has the threshold 1.5 already"),
        ("size", {"values": ["red"]}, "'size' is numeric: give at_most"),
    ]
    for column, arguments, complaint in refused:
        with pytest.raises(DataError, match=complaint):
            builder.child(0, column, weights=[1, 1], **arguments)
    with pytest.raises(DataError, match="'colour' is categorical: give values"):
        builder.child(1, "colour", at_most=1, weights=[1, 1])
    with pytest.raises(DataError, match="'pink' is not a category of 'colour'"):
        builder.child(1, "colour", values=["red", "pink"], weights=[1, 1])
    for parent in (-1, 7):
        with pytest.raises(DataError, match=f"There is no node {parent}"):
            builder.child(parent, "size", at_most=1, weights=[1, 1])
    with pytest.raises(DataError, match=r"each of the 2 classes. Got shape \(3,\)"):
        builder.child(6, "size", at_most=1, weights=[1, 1, 1])


def test_a_refused_child_leaves_no_trace() -> None:
    builder = builder_of_seven()
    with pytest.raises(DataError, match="each of the 2 classes"):
        builder.child(2, "size", at_most=1.0, weights=[1, 1, 1])
    assert len(builder.build()) == 7


def test_the_builder_checks_what_it_has_built() -> None:
    builder = TreeBuilder(SCHEMA, [1, 1])
    builder.child(0, "colour", missing=True, weights=[1, 0])
    builder.child(0, "colour", values=["red"], weights=[0, 1])
    with pytest.raises(DataError, match="a branch that no value leads to"):
        builder.build()  # the branch of missing values must be the last
    builder = TreeBuilder(SCHEMA, [1, 1])
    builder.child(0, "colour", values=["red"], weights=[0, 1])
    builder.child(0, "colour", missing=True, weights=[1, 0])
    assert builder.build("branch").missing_to[0] == 1
    with pytest.raises(DataError, match="a branch that no value leads to"):
        builder.build("node")


# -------------------------------------------------------------------- complaints


def complaint(tree: Tree, **changed: object) -> str:
    """What validate() says about a tree with some arrays changed."""
    arrays = {
        name: np.array(value, dtype=getattr(tree, name).dtype)
        for name, value in changed.items()
    }
    with pytest.raises(DataError, match=r"^Not a sane tree: ") as raised:
        validate(replace(tree, **arrays), SCHEMA)
    return str(raised.value)


def with_entry(array: np.ndarray, index: object, value: float) -> np.ndarray:
    changed = array.copy()
    changed[index] = value
    return changed


def test_a_sane_tree_is_accepted(tree: Tree) -> None:
    validate(tree, SCHEMA)


def test_no_nodes_at_all() -> None:
    empty = Tree(
        **{
            spec.name: np.empty((0, 2) if spec.name == "weights" else 0, spec.dtype)
            for spec in ARRAYS
        }
    )
    with pytest.raises(DataError, match="a tree has at least one node"):
        validate(empty, SCHEMA)


@pytest.mark.parametrize(
    "spec", [spec for spec in ARRAYS if spec.name not in ("column", "codes")]
)
def test_arrays_of_another_length(tree: Tree, spec: ArraySpec) -> None:
    said = complaint(tree, **{spec.name: getattr(tree, spec.name)[:-1]})
    assert f"array {spec.key!r} has shape (6" in said


def test_a_column_array_of_another_length(tree: Tree) -> None:
    assert "has shape (7,), expected (6,)" in complaint(tree, column=tree.column[:-1])


def test_codes_in_two_dimensions(tree: Tree) -> None:
    assert "array 'codes' has shape" in complaint(tree, codes=tree.codes[:, np.newaxis])


def test_weights_of_another_number_of_classes(tree: Tree) -> None:
    said = complaint(tree, weights=tree.weights[:, :1])
    assert "array 'weights' has shape (7, 1), expected (7, 2)" in said


def test_numbers_of_children(tree: Tree) -> None:
    for wrong in (-1, 7, 2**62):
        said = complaint(tree, n_children=with_entry(tree.n_children, 0, wrong))
        assert "n_children is negative or larger than the tree" in said
    for wrong in (1, 3):
        said = complaint(tree, n_children=with_entry(tree.n_children, 0, wrong))
        assert "n_children must add up to 6" in said


def test_a_node_that_nothing_leads_to(tree: Tree) -> None:
    said = complaint(
        tree, n_children=[0, 2, 2, 2, 0, 0, 0], column=[-1, 1, 1, 0, -1, -1, -1]
    )
    assert "a node that no other node leads to" in said


def test_a_column_without_children_and_the_reverse(tree: Tree) -> None:
    for node, column in ((0, -1), (6, 1)):
        said = complaint(tree, column=with_entry(tree.column, node, column))
        assert "both a column and children, or neither" in said


def test_a_leaf_has_no_column(tree: Tree) -> None:
    complaint(tree, column=with_entry(tree.column, 6, -7))


def test_numbers_of_codes(tree: Tree) -> None:
    for node, wrong in ((1, -1), (1, 2), (1, 2**62)):
        said = complaint(tree, n_codes=with_entry(tree.n_codes, node, wrong))
        assert "n_codes must add up to the number of codes" in said


@pytest.mark.parametrize("name", ["missing_to", "unseen_to"])
def test_ways_that_are_not_there(tree: Tree, name: str) -> None:
    way = getattr(tree, name)
    for node, wrong in ((0, 2), (0, -3), (6, 0), (6, -2)):
        said = complaint(tree, **{name: with_entry(way, node, wrong)})
        assert f"{name} points to a branch that is not there" in said


def test_a_column_that_the_schema_has_not(tree: Tree) -> None:
    said = complaint(tree, column=with_entry(tree.column, 0, 2))
    assert "a column beyond those of the schema" in said


def test_cuts(tree: Tree) -> None:
    for node in (1, 6):
        said = complaint(tree, threshold=with_entry(tree.threshold, node, 0.5))
        assert "a threshold on a column without numbers" in said
    for wrong in (np.inf, -np.inf):
        assert "an infinite threshold" in complaint(
            tree, threshold=with_entry(tree.threshold, 0, wrong)
        )


def test_two_sides_of_no_cut(tree: Tree) -> None:
    complaint(tree, threshold=with_entry(tree.threshold, 0, np.nan))


def test_codes(tree: Tree) -> None:
    said = complaint(tree, n_codes=[1, 0, 1, 1, 1, 2, 0])
    assert "codes that lead to the root" in said
    for position, wrong in ((0, 2), (0, -1), (2, 3), (2, -1)):
        said = complaint(tree, codes=with_entry(tree.codes, position, wrong))
        assert "a code that is no value of its column" in said
    said = complaint(tree, codes=with_entry(tree.codes, 1, 0))
    assert "two branches of a node for the same value" in said


def test_a_branch_that_no_value_leads_to(tree: Tree) -> None:
    assert tree.missing_to[2] == 1
    for elsewhere in (-1, -2, 0):
        said = complaint(tree, missing_to=with_entry(tree.missing_to, 2, elsewhere))
        assert "a branch that no value leads to" in said


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_weights_and_cases_that_cannot_be(tree: Tree, wrong: float) -> None:
    said = complaint(tree, weights=with_entry(tree.weights, (3, 1), wrong))
    assert "array 'weights' has entries that are negative or not finite" in said
    said = complaint(tree, cases=with_entry(tree.cases, 3, wrong))
    assert "array 'cases' has entries that are negative or not finite" in said


def test_a_node_without_weight(tree: Tree) -> None:
    said = complaint(tree, weights=with_entry(tree.weights, 3, 0.0))
    assert "a node without any weight" in said


# ------------------------------------------------------------------ nothing recurses


@pytest.fixture(scope="module", params=first_fast((5_000, 20_000, 100_000)))
def chain(request: pytest.FixtureRequest) -> Model:
    """A tree of so many questions, one below the other."""
    levels = request.param
    schema = Schema((Column("x", "numeric"),), ("no", "yes"))
    builder = TreeBuilder(schema, [levels, 1])
    node = 0
    for level in range(levels):
        builder.child(node, "x", at_most=float(level), weights=[1, 0])
        node = builder.child(
            node, "x", above=float(level), weights=[levels - level - 1, 1]
        )
    return Model(schema, builder.build(), Recipe())


def test_a_deep_chain_knows_its_shape(chain: Model) -> None:
    tree, levels = chain.tree, chain.tree.n_leaves - 1
    assert (len(tree), tree.max_depth) == (2 * levels + 1, levels)
    assert sum(1 for _ in tree.preorder()) == len(tree)
    assert f"depth {levels:,}" in repr(chain)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_deep_chain_predicts(
    chain: Model, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    levels = chain.tree.n_leaves - 1
    numbers = np.array([-1.0, 0.5, levels - 1.0, levels - 0.5, np.nan])
    arrivals = chain.arrivals({"x": numbers})
    assert chain.tree.depth[arrivals.node].tolist() == [1, 2, levels, levels, 0]
    assert chain.tree.label[arrivals.node].tolist() == [0, 0, 0, 1, 0]
    row, node = chain.visited(arrivals)
    assert np.bincount(row).tolist() == [2, 3, levels + 1, levels + 1, 1]
    assert len(np.unique(node)) == levels + 4


def test_a_deep_chain_prints(chain: Model) -> None:
    text, levels = chain.to_text(), chain.tree.n_leaves - 1
    assert text.startswith("x <= 0: no (1)\nx > 0:\n|   x <= 1: no (1)\n")
    assert text.count("x <= ") == text.count("x > ") == levels
    # Too deep to indent: broken off every 24 levels.
    assert text.count("Subtree [S") == (levels - 1) // 24
    assert max(map(len, text.splitlines())) < 200
    last = str(chain).splitlines()[-1]
    assert last == f"... (a tree of {2 * levels + 1:,} nodes; to_text() has all of it)"


def test_a_deep_chain_gives_rules(chain: Model) -> None:
    rules, levels = chain.rules(), chain.tree.n_leaves - 1
    assert len(rules) == levels + 1
    assert str(rules[0]) == "if x <= 0 then no (1 of 1 cases, 100 %)"
    assert str(rules[1]) == "if x > 0 and x <= 1 then no (1 of 1 cases, 100 %)"
    assert str(rules[-1]) == f"if x > {levels - 1} then yes (1 of 1 cases, 100 %)"


def test_a_deep_chain_is_saved_and_loaded(chain: Model, tmp_path: Path) -> None:
    path = tmp_path / "chain.json"
    chain.save(path)
    loaded = load(path)
    assert loaded.tree == chain.tree
    assert loaded.to_bytes() == chain.to_bytes() == path.read_bytes()


@pytest.mark.parametrize("levels", first_fast([1_100, 2_000]))
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_long_chain_is_grown(
    kernel: str, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    # Labels in turn: the best cut takes one number off an end, again and again.
    numbers = np.arange(levels + 1.0)
    labels = np.arange(levels + 1) % 2
    model = fit_tree({"x": numbers}, labels)
    assert model.tree.max_depth == levels
    assert len(model.tree) == 2 * levels + 1
    np.testing.assert_array_equal(model.predict({"x": numbers}), labels)
    rules = model.rules()
    assert len(rules) == levels + 1
    assert all(len(rule.conditions) <= 2 for rule in rules)


def test_ties_in_rows_are_those_in_runs():
    """Nearly equal, beyond the resolution, impossible: the first of equals wins."""
    random = np.random.default_rng(0)
    scores = random.choice([-np.inf, 0.0, 1.0, 1.0 - 1e-10, 1.0 - 1e-6, 1.0], (400, 5))
    scores[:3] = -np.inf
    for resolution in (np.zeros(len(scores)), np.full(len(scores), 1e-5)):
        starts = np.arange(len(scores)) * 5
        wanted = first_best(scores.ravel(), starts, resolution) - starts
        assert np.array_equal(first_best_of_rows(scores, resolution), wanted)
    nearly = np.array([[1.0 - 1e-10, 1.0], [0.5, 1.0]])
    assert first_best_of_rows(nearly).tolist() == [0, 1]


def test_branches_that_weigh_more_than_their_node(tree: Tree) -> None:
    for name in ("weights", "cases"):
        amounts = getattr(tree, name).copy()
        amounts[5] = 100.0
        with pytest.raises(DataError, match=f"the {name} of the branches add up to"):
            validate(replace(tree, **{name: amounts}), SCHEMA)
        # Parts of divided cases are rounded, each for itself.
        amounts = getattr(tree, name).copy()
        amounts[0] *= 1 - 1e-9
        validate(replace(tree, **{name: amounts}), SCHEMA)
    cases = tree.cases.copy()
    cases[6] = 0.0
    with pytest.raises(DataError, match="a node without any case"):
        validate(replace(tree, cases=cases), SCHEMA)
