"""The tree as text, in Quinlan's form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from branchwise import Model, Recipe, datasets, fit_tree
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import C45, CART
from tree_builder import TreeBuilder

GOLDEN = Path(__file__).parents[1] / "golden"


def grow(name: str, **options: Any) -> Model:
    data = datasets.load(name)
    return fit_tree(data.X, data.y, categories=data.categories, **options)


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


@pytest.mark.parametrize(
    "name",
    [
        "fish",
        "golf",
        "house_votes",
        "iris",
        "labor",
        "lenses",
        "tennis",
        "toy",
        "voters",
        "votes",
        "weather",
    ],
)
def test_bundled_tables(name):
    assert grow(name).to_text() == golden(name)


def test_print_is_to_text():
    model = grow("labor")
    assert str(model) == model.to_text() == golden("labor")


def test_only_the_upper_levels():
    assert grow("car").to_text(max_depth=2) == golden("car_depth_2")
    assert grow("tennis").to_text(max_depth=0) == "yes (14/5) ..."
    assert grow("tennis").to_text(max_depth=2) == golden("tennis")
    assert grow("tennis").to_text(max_depth=99) == golden("tennis")


def test_branches_without_cases():
    assert grow("toy").to_text(empty_branches=True) == golden("toy_empty_branches")
    # Nothing to show where every value has a branch.
    assert grow("tennis").to_text(empty_branches=True) == golden("tennis")


def test_several_branches_without_cases_share_a_line():
    declared = {"c": ["x", *"abcdefghij", "y"]}
    model = fit_tree({"c": ["x", "y"]}, ["no", "yes"], categories=declared)
    assert model.to_text(empty_branches=True) == (
        "c = x: no (1)\n"
        "c = y: yes (1)\n"
        "c in {a, b, c, d, e, f, g, h, ... (2 more)}: no (0)"
    )
    assert model.to_text(empty_branches=True, max_values=2).endswith(
        "c in {a, b, ... (8 more)}: no (0)"
    )


def test_a_single_leaf():
    assert grow("tennis", recipe=Recipe(max_depth=0)).to_text() == "yes (14/5)"
    assert fit_tree({"a": [1, 2]}, ["x", "x"]).to_text(max_depth=0) == "x (2)"


def test_long_lists_of_values_are_cut_short():
    values = tuple(f"v{i:03}" for i in range(300))
    schema = Schema((Column("c", "categorical", values),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[2, 3])
    builder.child(0, "c", values=values[:150], weights=[2, 1])
    builder.child(0, "c", values=values[150:], weights=[0, 2])
    model = Model(schema, builder.build(), Recipe())
    assert model.to_text().startswith(
        "c in {v000, v001, v002, v003, v004, v005, v006, v007, ... (142 more)}: "
        "no (3/1)\n"
    )
    assert model.to_text(max_values=1).startswith("c in {v000, ... (149 more)}: ")
    assert "more" not in model.to_text(max_values=300)


def test_a_list_of_most_values_names_the_others():
    values = tuple(f"v{i:03}" for i in range(300))
    schema = Schema((Column("c", "categorical", values),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[2, 3])
    builder.child(0, "c", values=values[:-2], weights=[2, 1])
    builder.child(0, "c", values=values[-2:], weights=[0, 2])
    model = Model(schema, builder.build(), Recipe())
    assert model.to_text() == (
        "c not in {v298, v299}: no (3/1)\nc in {v298, v299}: yes (2)"
    )
    assert model.view()["nodes"]["edge"] == ["", "not in {v298, v299}", "v298, v299"]


def test_names_cannot_break_a_line():
    X = {"new\nline": ["a\r\nb", "\u2028"], "\u202e": ["x", "x"]}
    text = fit_tree(X, ["\x1b[31m", "ok"]).to_text()
    assert text == "new\\nline = a\\r\\nb: \\x1b[31m (1)\nnew\\nline = \\u2028: ok (1)"
    assert len(text.splitlines()) == 2


def chain(levels: int) -> Model:
    """A tree that asks one question after the other."""
    schema = Schema((Column("n", "numeric"),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[levels, 1])
    node = 0
    for level in range(levels):
        builder.child(node, "n", at_most=level, weights=[1, 0])
        node = builder.child(node, "n", above=level, weights=[levels - level - 1, 1])
    return Model(schema, builder.build(), Recipe())


def test_deep_subtrees_are_broken_off():
    assert chain(60).to_text() == golden("chain_60")


def test_subtrees_are_broken_off_only_where_needed():
    text = chain(24).to_text()
    assert "[S" not in text
    assert len(text.splitlines()) == 48
    assert "[S1]" in chain(25).to_text()


def test_subtrees_are_numbered_in_order():
    text = chain(200).to_text()
    for number in range(1, 9):
        assert text.count(f"[S{number}]") == 2
        mention, heading = f": [S{number}]", f"\n\nSubtree [S{number}]\n\n"
        assert text.index(mention) < text.index(heading)
    assert "[S9]" not in text


def test_a_cut_hides_subtrees_too():
    model = chain(60)
    assert "[S" not in model.to_text(max_depth=10)
    assert model.to_text(max_depth=30).count("Subtree") == 1
    assert model.to_text(max_depth=30).endswith(" ...")


def test_long_trees_are_printed_in_part():
    model = chain(2000)
    printed = str(model).splitlines()
    assert len(printed) == 1001
    assert printed[-1] == "... (a tree of 4,001 nodes; to_text() has all of it)"
    assert printed[:1000] == model.to_text().splitlines()[:1000]


def test_nothing_recurses():
    levels = 10_000
    lines = chain(levels).to_text().splitlines()
    leaves = [line for line in lines if line.endswith(")")]
    assert len(leaves) == levels + 1
    assert leaves[-1].strip("| ") == "n > 9999: yes (1)"


@pytest.mark.slow
def test_a_hundred_thousand_levels():
    levels = 100_000
    model = chain(levels)
    assert model.to_text().count("\nSubtree [S") == (levels - 1) // 24
    rules = model.rules()
    assert len(rules) == levels + 1
    assert str(rules[-1]) == "if n > 99999 then yes (1 of 1 cases, 100 %)"
    assert str(rules[7]) == "if n > 6 and n <= 7 then no (1 of 1 cases, 100 %)"


# -- Groups, numbers, costs and missing values


SPEEDS: dict[str, list[Any]] = {
    "road": ["town", "town", "town", "land", "land", "motorway", "motorway", None],
    "rain": [0.0, 1.0, 4.0, 0.0, 3.0, 0.5, 5.0, None],
}
KMH = [50.0, 48.0, 30.0, 100.0, 80.0, 130.0, 110.0, 90.0]


def speeds(**options: Any) -> Model:
    recipe = replace(CART, criterion="variance", max_depth=2, **options)
    return fit_tree(SPEEDS, KMH, recipe, target_name="speed")


def test_c45_trees():
    data = datasets.load("labor")
    model = fit_tree(data.X, data.y, C45, categories=data.categories)
    assert model.to_text() == golden("labor_c45")
    # Missing values go down every branch: nothing is to be said.
    assert model.to_text(missing=True) == golden("labor_c45")


def test_groups_of_values():
    data = datasets.load("car")
    model = fit_tree(data.X, data.y, replace(CART, max_depth=4))
    assert model.to_text() == golden("car_cart")
    grouped = fit_tree(data.X, data.y, replace(C45, branching="groups", max_depth=3))
    assert grouped.to_text() == golden("car_c45_groups")


def test_numbers():
    assert speeds().to_text() == (
        "road in {land, motorway}:\n"
        "|   road = land: 90 (3, ± 8.16)\n"
        "|   road = motorway: 120 (2, ± 10)\n"
        "road = town:\n"
        "|   rain <= 2: 49 (2, ± 1)\n"
        "|   rain > 2: 30 (1)"
    )
    assert speeds().to_text(max_depth=0) == "79.75 (8, ± 32.3) ..."
    assert speeds(min_samples_split=9).to_text() == "79.75 (8, ± 32.3)"


def test_where_missing_values_go():
    assert speeds().to_text(missing=True) == (
        "road in {land, motorway} or missing:\n"
        "|   road = land or missing: 90 (3, ± 8.16)\n"
        "|   road = motorway: 120 (2, ± 10)\n"
        "road = town:\n"
        "|   rain <= 2 or missing: 49 (2, ± 1)\n"
        "|   rain > 2: 30 (1)"
    )
    assert speeds(missing="node").to_text(missing=True, max_depth=1) == (
        "road in {land, motorway}: 105 (4, ± 18) ...\n"
        "road = town: 42.667 (3, ± 8.99) ...\n"
        "road is missing: 79.75 (1)"
    )
    own = speeds(missing="branch")
    assert "is missing" in own.to_text()
    lines = own.to_text(missing=True).splitlines()
    assert [line for line in lines if "or missing" in line] == []
    # Where training had none, the branch is missing, too: they stop.
    assert set(own.to_text().splitlines()) < set(lines)
    for line in set(lines) - set(own.to_text().splitlines()):
        assert line.endswith("(0)")


def test_missing_values_that_are_refused_go_nowhere():
    X = {"c": ["x", "y"]}
    model = fit_tree(X, ["no", "yes"], Recipe(missing="error"))
    assert model.to_text(missing=True) == model.to_text()
    other = fit_tree(X, ["no", "yes"], Recipe(missing="node"))
    assert other.to_text(missing=True) == f"{model.to_text()}\nc is missing: no (0)"


def test_groups_without_cases():
    """Only values that can arrive at a node are shown, with the node's answer."""
    X = {"c": list("aabbccdd"), "n": [0.0, 1.0] * 4}
    y = [1.0, 1.0, 2.0, 2.0, 10.0, 30.0, 11.0, 31.0]
    recipe = replace(CART, criterion="variance")
    model = fit_tree(X, y, recipe, categories={"c": list("abcde")})
    assert model.to_text(empty_branches=True) == (
        "c in {a, b}:\n"
        "|   c = a: 1 (2)\n"
        "|   c = b: 2 (2)\n"
        "c in {c, d}:\n"
        "|   n = 0:\n"
        "|   |   c = c: 10 (1)\n"
        "|   |   c = d: 11 (1)\n"
        "|   n = 1:\n"
        "|   |   c = c: 30 (1)\n"
        "|   |   c = d: 31 (1)\n"
        "c = e: 11 (0)"
    )
    assert model.predict({"c": ["e"], "n": [0.0]}).tolist() == [11.0]


def test_costs_choose_the_answers():
    data = datasets.load("tennis")
    costs = ((0.0, 1.0), (9.0, 0.0))  # no play on a fine day is worst
    model = fit_tree(data.X, data.y, replace(CART, max_depth=2, costs=costs))
    assert model.to_text() == (
        "outlook = cloudy: yes (4)\n"
        "outlook in {rainy, sunny}:\n"
        "|   humidity = high: yes (5/4, decided by costs)\n"
        "|   humidity = normal: yes (5/1)"
    )
