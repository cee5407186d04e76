"""Prediction on small trees whose answers can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise import DataError, ID3Classifier, Model, Recipe, fit_tree
from branchwise.data.table_schema import Column, Columns, Schema
from branchwise.export.base import Prediction, model_predictions, sample_of_rows
from branchwise.export.plan import Row, make_plan
from branchwise.export.verification import probe_rows
from branchwise.tree.apply import Walker, visited
from mixed_trees import random_model
from random_tables import KERNELS
from tree_builder import TreeBuilder


@pytest.fixture(autouse=True, params=KERNELS)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each kernel grow and walk in turn."""
    monkeypatch.setenv("BRANCHWISE_KERNEL", request.param)


NUMBERS_AND_COLOURS = Schema(
    (
        Column("size", "numeric", has_missing=True),
        Column("colour", "categorical", ("blue", "green", "red"), has_missing=True),
    ),
    ("no", "yes"),
)


def small_tree(missing: str, unseen: str, missing_branch: bool = False) -> Model:
    """Return a tree to check by hand.

    =====  ========================  =========  ====
    node   reached by                no   yes   has
    =====  ========================  =========  ====
    0      (the root)                 8    12    20
    1      colour = blue              1     9    10
    2      colour = red               6     0     6
    3      colour is missing          1     3     4   (only if asked for)
    4 (3)  blue and size <= 2.5       1     1     2
    5 (4)  blue and size > 2.5        0     8     8
    =====  ========================  =========  ====
    """
    root = [8, 12] if missing_branch else [7, 9]
    builder = TreeBuilder(NUMBERS_AND_COLOURS, root)
    blue = builder.child(0, "colour", values=["blue"], weights=[1, 9])
    builder.child(0, "colour", values=["red"], weights=[6, 0])
    if missing_branch:
        builder.child(0, "colour", missing=True, weights=[1, 3])
    builder.child(blue, "size", at_most=2.5, weights=[1, 1])
    builder.child(blue, "size", above=2.5, weights=[0, 8])
    recipe = Recipe(missing=missing, unseen=unseen)
    return Model(NUMBERS_AND_COLOURS, builder.build(missing, unseen), recipe)


def ask(model: Model, colour: str | None, size: float | None) -> tuple[str, list]:
    row = {"size": np.array([size], dtype=float), "colour": [colour]}
    return model.predict(row).item(), model.predict_proba(row)[0].tolist()


# ------------------------------------------------------------- known and absent


def test_known_values_go_down_to_a_leaf() -> None:
    model = small_tree("node", "node")
    assert ask(model, "red", 1.0) == ("no", [1.0, 0.0])
    assert ask(model, "blue", 2.6) == ("yes", [0.0, 1.0])


def test_a_number_at_the_cut_is_at_most_the_cut() -> None:
    model = small_tree("node", "node")
    assert ask(model, "blue", 2.5)[1] == [0.5, 0.5]
    assert ask(model, "blue", np.nextafter(2.5, 3))[1] == [0.0, 1.0]


def test_equal_weight_goes_to_the_first_class() -> None:
    assert ask(small_tree("node", "node"), "blue", 1.0) == ("no", [0.5, 0.5])


@pytest.mark.parametrize("policy", ["node", "largest", "split", "branch", "error"])
def test_a_possible_value_without_a_branch_stops_whatever_the_policy(policy) -> None:
    # green is a category of the schema: neither missing nor unseen.
    model = small_tree(policy, policy)
    assert ask(model, "green", 1.0) == ("yes", [7 / 16, 9 / 16])
    row = {"size": [1.0], "colour": ["green"]}
    assert model.apply(row).tolist() == [0]


# -------------------------------------------------------------- missing policies


def test_missing_node_stops_where_it_is() -> None:
    model = small_tree("node", "node")
    assert ask(model, None, 1.0) == ("yes", [7 / 16, 9 / 16])
    assert ask(model, "blue", None) == ("yes", [0.1, 0.9])


def test_missing_largest_follows_the_branch_of_most_weight() -> None:
    model = small_tree("largest", "node")
    assert ask(model, None, 1.0) == ("no", [0.5, 0.5])
    assert ask(model, None, None) == ("yes", [0.0, 1.0])


def test_missing_largest_takes_the_first_of_equals() -> None:
    builder = TreeBuilder(NUMBERS_AND_COLOURS, [6, 6])
    builder.child(0, "colour", values=["red"], weights=[1, 3])
    builder.child(0, "colour", values=["blue"], weights=[4, 0])
    builder.child(0, "colour", values=["green"], weights=[1, 3])
    model = Model(
        NUMBERS_AND_COLOURS, builder.build("largest"), Recipe(missing="largest")
    )
    row = {"size": [1.0], "colour": [None]}
    assert model.apply(row).tolist() == [1]


def test_missing_split_shares_the_case_out_by_weight() -> None:
    model = small_tree("split", "node")
    # 10/16 blue, of which size <= 2.5 answers half no; 6/16 red.
    at_most, red = 10 / 16, 6 / 16
    chances = [at_most * 0.5 + red, at_most * 0.5]
    assert ask(model, None, 1.0)[1] == pytest.approx(chances)
    assert ask(model, None, 1.0)[0] == "no"
    # Missing twice: 10/16 * (2/10 * half + 8/10 * yes) + 6/16 * no.
    chances = [10 / 16 * 0.1 + 6 / 16, 10 / 16 * 0.9]
    assert ask(model, None, None) == ("yes", pytest.approx(chances))


def test_missing_branch_is_a_branch_like_another() -> None:
    model = small_tree("branch", "node", missing_branch=True)
    assert ask(model, None, 1.0) == ("yes", [0.25, 0.75])
    # No case was missing at the question about size: the case stops there.
    assert ask(model, "blue", None) == ("yes", [0.1, 0.9])


def test_missing_error_raises_only_where_it_matters() -> None:
    model = small_tree("error", "node")
    with pytest.raises(DataError, match="'size' is missing in row 1"):
        model.predict({"size": [1.0, None], "colour": ["blue", "blue"]})
    with pytest.raises(DataError, match="'colour' is missing in row 0"):
        model.predict({"size": [1.0, 1.0], "colour": [None, "blue"]})
    # A column that the tree does not ask about may be missing.
    table = {"a": ["p", "q"], "b": ["u", "u"]}
    grown = fit_tree(table, ["no", "yes"], Recipe(missing="error"))
    assert grown.predict({"a": ["q"], "b": [None]}).tolist() == ["yes"]


def test_missing_error_raises_in_training() -> None:
    table = {"a": ["p", "q"], "b": ["u", None]}
    with pytest.raises(DataError, match="'b' is missing in row 1"):
        fit_tree(table, ["no", "yes"], Recipe(missing="error"))


# --------------------------------------------------------------- unseen policies


@pytest.mark.parametrize(
    ("policy", "chances"),
    [
        ("node", [7 / 16, 9 / 16]),
        ("largest", [0.5, 0.5]),
        ("split", [10 / 16 * 0.5 + 6 / 16, 10 / 16 * 0.5]),
    ],
)
def test_unseen_policies(policy: str, chances: list[float]) -> None:
    model = small_tree("node", policy)
    assert ask(model, "violet", 1.0)[1] == pytest.approx(chances)


def test_unseen_branch_takes_it_for_missing() -> None:
    model = small_tree("branch", "branch", missing_branch=True)
    assert ask(model, "violet", 1.0) == ask(model, None, 1.0)
    assert ask(model, "violet", 1.0)[1] == [0.25, 0.75]


def test_unseen_split_gives_the_branch_of_missing_its_share() -> None:
    model = small_tree("branch", "split", missing_branch=True)
    chances = [0.5 * 0.5 + 0.3 * 1 + 0.2 * 0.25, 0.5 * 0.5 + 0.2 * 0.75]
    assert ask(model, "violet", 1.0)[1] == pytest.approx(chances)


def test_unseen_error_names_the_column_and_the_row() -> None:
    model = small_tree("node", "error")
    with pytest.raises(DataError, match="'colour' has the value 'violet' in row 1"):
        model.predict({"size": [1.0, 1.0], "colour": ["red", "violet"]})
    assert ask(model, None, 1.0)[1] == [7 / 16, 9 / 16]


def test_unseen_and_missing_go_their_own_ways() -> None:
    model = small_tree("largest", "node")
    data = {"size": np.array([1.0, 1.0]), "colour": [None, "violet"]}
    assert model.apply(data).tolist() == [3, 0]


# ------------------------------------------------------------------------ shares


def test_shares_at_the_leaves() -> None:
    model = small_tree("split", "node")
    data = {"size": np.array([np.nan, 1.0, np.nan]), "colour": [None, "red", "blue"]}
    arrivals = model.arrivals(data)
    assert not arrivals.undivided
    assert arrivals.row.tolist() == [0, 0, 0, 1, 2, 2]
    assert arrivals.node.tolist() == [2, 3, 4, 2, 3, 4]
    shares = [6 / 16, 10 / 16 * 0.2, 10 / 16 * 0.8, 1, 0.2, 0.8]
    assert arrivals.share.tolist() == pytest.approx(shares)


def test_arrivals_come_in_the_order_of_rows_and_nodes() -> None:
    # At the second question one part of the case is split, the other goes on.
    schema = Schema(
        (
            Column("colour", "categorical", ("blue", "red")),
            Column("size", "numeric"),
            Column("age", "numeric"),
        ),
        ("no", "yes"),
    )
    builder = TreeBuilder(schema, [4, 4])
    blue = builder.child(0, "colour", values=["blue"], weights=[2, 2])
    red = builder.child(0, "colour", values=["red"], weights=[2, 2])
    builder.child(blue, "size", at_most=1, weights=[2, 0])
    builder.child(blue, "size", above=1, weights=[0, 2])
    builder.child(red, "age", at_most=1, weights=[2, 0])
    builder.child(red, "age", above=1, weights=[0, 2])
    model = Model(schema, builder.build("split"), Recipe(missing="split"))
    rows = {"colour": [None, "red"], "size": [np.nan, 1.0], "age": [1.0, 2.0]}
    arrivals = model.arrivals(rows)
    assert arrivals.row.tolist() == [0, 0, 0, 1]
    assert arrivals.node.tolist() == [3, 4, 5, 6]
    assert arrivals.share.tolist() == [0.25, 0.25, 0.5, 1.0]


def test_apply_gives_the_node_of_the_largest_share() -> None:
    model = small_tree("split", "node")
    data = {"size": np.array([np.nan, 1.0, np.nan]), "colour": [None, "red", "blue"]}
    assert model.apply(data).tolist() == [4, 2, 4]


def test_apply_takes_the_first_of_equal_shares() -> None:
    builder = TreeBuilder(NUMBERS_AND_COLOURS, [3, 3])
    builder.child(0, "colour", values=["blue"], weights=[1, 1])
    builder.child(0, "colour", values=["green"], weights=[2, 0])
    builder.child(0, "colour", values=["red"], weights=[0, 2])
    model = Model(NUMBERS_AND_COLOURS, builder.build("split"), Recipe(missing="split"))
    assert model.apply({"size": [1.0], "colour": [None]}).tolist() == [1]


def test_a_tie_of_shared_out_chances_goes_to_the_first_class() -> None:
    # Thirds: 1/3 no + 1/3 half + 1/3 yes is one half of each, however it is added.
    builder = TreeBuilder(NUMBERS_AND_COLOURS, [3, 3])
    builder.child(0, "colour", values=["blue"], weights=[0, 2])
    builder.child(0, "colour", values=["green"], weights=[1, 1])
    builder.child(0, "colour", values=["red"], weights=[2, 0])
    model = Model(NUMBERS_AND_COLOURS, builder.build("split"), Recipe(missing="split"))
    assert ask(model, None, 1.0) == ("no", pytest.approx([0.5, 0.5]))


def test_a_label_does_not_depend_on_the_rows_beside_it() -> None:
    """Costs and smoothed chances may give another label than the node has."""
    model = random_model(7, seed=1020)
    assert model.recipe.costs is not None
    assert model.recipe.probabilities == "laplace"
    plan = make_plan(model.schema, model.tree, model.recipe)
    rows = probe_rows(plan, 60)

    def answers(some: list[Row]) -> list[Prediction]:
        sample = sample_of_rows(some, model.schema, plan)
        return model_predictions(model.schema, model.tree, model.recipe, sample)

    assert answers(rows) == [answers([row])[0] for row in rows]


def test_the_way_of_a_shared_out_row_has_every_node_once() -> None:
    model = small_tree("split", "node")
    arrivals = model.arrivals(
        {"size": np.array([np.nan, 1.0]), "colour": [None, "red"]}
    )
    row, node = visited(arrivals, model.tree)
    assert list(zip(row.tolist(), node.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (0, 4),
        (1, 0),
        (1, 2),
    ]


def test_cases_split_in_growth_leave_their_shares_behind() -> None:
    # Known: u, u, v. The fourth row goes 2/3 to u and 1/3 to v.
    table = {"a": ["u", "u", "v", None]}
    model = fit_tree(table, ["no", "no", "yes", "yes"], Recipe(missing="split"))
    np.testing.assert_allclose(model.tree.weights, [[2, 2], [2, 2 / 3], [0, 4 / 3]])
    np.testing.assert_allclose(model.tree.cases, [4, 8 / 3, 4 / 3])
    chances = model.predict_proba({"a": [None]})[0]
    assert chances.tolist() == pytest.approx([2 / 3 * 3 / 4, 2 / 3 / 4 + 1 / 3])
    assert model.predict({"a": [None]}).tolist() == ["no"]


def test_a_tie_of_fractions_goes_to_the_first_class() -> None:
    # Every branch gets 2 yes and a third of 6 no: as many of each.
    table = {"a": ["u", "v", "w"] * 2 + [None] * 6}
    model = fit_tree(table, ["yes"] * 6 + ["no"] * 6, Recipe(missing="split"))
    assert model.predict({"a": ["u", "v", "w"]}).tolist() == ["no"] * 3


def test_fractions_of_cases_add_up_to_whole_ones() -> None:
    # Every branch of a has 2 cases and a third of 6 others: 4, enough to be split.
    table = {
        "a": ["u", "v", "w"] * 2 + [None] * 6,
        "b": ["p", "p", "p", "q", "q", "q"] * 2,
    }
    labels = ["yes"] * 6 + ["no"] * 6
    for least in (3, 4):
        recipe = Recipe(missing="split", min_samples_split=least)
        assert fit_tree(table, labels, recipe).tree.max_depth == 2


def test_the_largest_of_equal_fractions_is_the_first() -> None:
    # Below every branch of a: two cases with q, and six thirds with p.
    table = {"a": ["u", "v", "w"] * 2 + [None] * 6, "b": ["q"] * 6 + ["p"] * 6}
    labels = list("yyynnn" + "ynynyn")
    model = fit_tree(table, labels, Recipe(missing="split", unseen="largest"))
    np.testing.assert_allclose(model.tree.weights.sum(axis=1)[4:6], [2, 2])
    assert model.tree.unseen_to[:4].tolist() == [0, 0, 0, 0]


# ------------------------------------------------------------------------- rest


def test_growing_sends_missing_to_the_largest_branch() -> None:
    table = {"a": ["u", "u", "v", None]}
    model = fit_tree(table, ["no", "no", "yes", "yes"], Recipe(missing="largest"))
    assert model.tree.weights.tolist() == [[2, 2], [2, 1], [0, 1]]
    assert model.tree.missing_to.tolist() == [0, -1, -1]


def test_growing_leaves_missing_at_the_node() -> None:
    table = {"a": ["u", "u", "v", None]}
    model = fit_tree(table, ["no", "no", "yes", "yes"], Recipe(missing="node"))
    assert model.tree.weights.tolist() == [[2, 2], [2, 0], [0, 1]]
    assert model.predict_proba({"a": [None]}).tolist() == [[0.5, 0.5]]


def test_growing_gives_missing_numbers_a_third_branch() -> None:
    table = {"a": np.array([1.0, 2.0, np.nan, np.nan])}
    recipe = Recipe(threshold="midpoint")
    model = fit_tree(table, ["no", "yes", "yes", "maybe"], recipe)
    assert model.tree.weights.tolist() == [[1, 1, 2], [0, 1, 0], [0, 0, 1], [1, 0, 1]]
    assert model.predict({"a": np.array([1.5, 1.6, np.nan])}).tolist() == [
        "no",
        "yes",
        "maybe",
    ]


def test_growing_tells_known_from_missing_where_there_is_no_cut() -> None:
    table = {"a": np.array([7.0, 7.0, np.nan])}
    model = fit_tree(table, ["no", "no", "yes"])
    assert np.isnan(model.tree.threshold).all()
    numbers = np.array([-1e300, 7.0, 1e300, np.nan])
    assert model.predict({"a": numbers}).tolist() == ["no", "no", "no", "yes"]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1.0, 2.0)),
        (np.nextafter(-1.0, -2.0), -1.0),
        (0.0, 5e-324),
        (-5e-324, 0.0),
        (1.5e308, 1.7e308),
        (-1.7e308, 1.7e308),
    ],
)
def test_growing_cuts_between_any_two_numbers(low: float, high: float) -> None:
    numbers = {"a": np.array([low, high, low])}
    model = fit_tree(numbers, ["no", "yes", "no"])
    assert low <= model.tree.threshold[0] < high
    assert model.tree.weights.tolist() == [[2, 1], [2, 0], [0, 1]]
    assert model.predict(numbers).tolist() == ["no", "yes", "no"]


def test_growing_shares_out_by_the_sides_of_a_cut_that_is_a_number() -> None:
    # Nothing lies between: the cut is the lower number, which is at most the cut.
    low, high = 1.0, np.nextafter(1.0, 2.0)
    numbers = {"a": np.array([low, low, high, np.nan])}
    model = fit_tree(numbers, ["no", "no", "yes", "yes"], Recipe(missing="split"))
    assert model.tree.threshold[0] == low
    np.testing.assert_allclose(model.tree.weights, [[2, 2], [2, 2 / 3], [0, 4 / 3]])


def test_no_rows_give_no_answers() -> None:
    model = small_tree("split", "node")
    nothing = {"size": np.empty(0), "colour": np.empty(0, dtype=str)}
    assert model.predict(nothing).shape == (0,)
    assert model.predict_proba(nothing).shape == (0, 2)
    assert model.apply(nothing).shape == (0,)


def test_a_root_alone_answers_for_everything() -> None:
    model = ID3Classifier(max_depth=0).fit({"a": ["p", "q", "q"]}, ["n", "y", "y"])
    rows = {"a": ["p", None, "never seen"]}
    assert model.predict(rows).tolist() == ["y"] * 3
    np.testing.assert_allclose(model.predict_proba(rows), [[1 / 3, 2 / 3]] * 3)
    assert model.apply(rows).tolist() == [0] * 3
    assert model.decision_path(rows).toarray().tolist() == [[1]] * 3


def test_a_code_past_those_of_the_tree_is_not_taken_for_the_next_node() -> None:
    # red has the highest code and no branch anywhere; blue of the next node does.
    builder = TreeBuilder(NUMBERS_AND_COLOURS, [4, 4])
    low = builder.child(0, "size", at_most=1.0, weights=[2, 2])
    high = builder.child(0, "size", above=1.0, weights=[2, 2])
    for node in (low, high):
        builder.child(node, "colour", values=["blue"], weights=[2, 0])
        builder.child(node, "colour", values=["green"], weights=[0, 2])
    walker = Walker(NUMBERS_AND_COLOURS.columns, builder.build())
    codes = np.array([0, 1, 2, 3, 4], dtype=np.uint8)  # ..., missing, unseen
    data = Columns(5, (np.zeros(5), codes))
    assert walker.walk(data).node.tolist() == [3, 4, 1, 1, 1]


def test_the_answer_to_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    # Smoothed, the class of the table is the most probable one even at the leaf of the
    # other; a row that is divided beside it changes nothing of that.
    X = {"a": ["x"] * 9 + ["y"] * 2}
    y = ["no"] * 9 + ["yes"] * 2
    recipe = Recipe(missing="split", probabilities="m-estimate", m=20.0)
    model = fit_tree(X, y, recipe)
    assert model.predict({"a": ["y"]}).tolist() == ["no"]
    assert model.predict({"a": ["y", None]}).tolist() == ["no", "no"]
