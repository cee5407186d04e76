"""Rules: one for each leaf, true of the data they were learnt from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from branchwise import Model, Recipe, datasets, fit_tree
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import C45, CART
from branchwise.rules.rule import Rule
from branchwise.text.conditions import Condition
from tree_builder import TreeBuilder

GOLDEN = Path(__file__).parents[1] / "golden"
TABLES = [name for name in datasets.names() if name != "votes"]


def grow(name: str, **options: Any) -> Model:
    data = datasets.load(name)
    return fit_tree(data.X, data.y, categories=data.categories, **options)


@pytest.mark.parametrize("name", ["tennis", "lenses", "labor", "iris", "toy"])
def test_rules_in_full(name):
    written = "\n".join(str(rule) for rule in grow(name).rules()) + "\n"
    assert written == (GOLDEN / f"{name}_rules.txt").read_text(encoding="utf-8")


def holds(condition: Condition, cell: Any) -> bool:
    """Evaluate a condition, without the library."""
    match condition.op:
        case "=":
            return bool(cell == condition.value)
        case "in":
            return cell in condition.value
        case "<=":
            return cell is not None and cell <= condition.value
        case ">":
            return cell is not None and cell > condition.value
        case "is missing":
            return cell is None
        case "is known":
            return cell is not None
    raise AssertionError(condition.op)


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        replace(CART, missing="branch"),
        replace(C45, branching="groups", missing="branch"),
    ],
    ids=["values", "two-way", "groups"],
)
@pytest.mark.parametrize("name", TABLES)
def test_rules_are_true(name, recipe):
    """Every case fulfils one rule; the counts are those of the cases that do."""
    data = datasets.load(name)
    model = grow(name, recipe=recipe)
    rules = model.rules()
    assert len(rules) == model.tree.n_leaves
    counts: list[dict[Any, int]] = [dict.fromkeys(rule.counts, 0) for rule in rules]
    for index, label in enumerate(data.y):
        fulfilled = [
            number
            for number, rule in enumerate(rules)
            if all(holds(c, data.X[c.column][index]) for c in rule.conditions)
        ]
        assert len(fulfilled) == 1
        counts[fulfilled[0]][label] += 1
    for rule, count in zip(rules, counts, strict=True):
        assert rule.counts == count
        assert rule.n == sum(count.values())
        assert rule.counts[rule.label] == max(count.values())


def test_the_parts_of_a_rule():
    rules = grow("tennis").rules()
    assert rules[1] == Rule(
        (Condition("outlook", "=", "rainy"), Condition("wind", "=", "strong")),
        "no",
        2.0,
        {"no": 2.0, "yes": 0.0},
        4,
    )
    assert [c.op for c in rules[1].conditions] == ["=", "="]
    assert str(rules[1]) == (
        "if outlook = rainy and wind = strong then no (2 of 2 cases, 100 %)"
    )


def test_a_single_leaf_is_a_rule_without_conditions():
    model = grow("tennis", recipe=Recipe(max_depth=0))
    (rule,) = model.rules()
    assert rule.conditions == ()
    assert str(rule) == "always yes (9 of 14 cases, 64.3 %)"


def test_rules_come_in_the_order_of_the_text():
    model = grow("labor")
    leaves = [line for line in model.to_text().splitlines() if not line.endswith(":")]
    for rule, line in zip(model.rules(), leaves, strict=True):
        assert line.strip("| ").startswith(str(rule.conditions[-1]).split(" ")[0])
        assert f": {rule.label} (" in line


SCHEMA = Schema(
    (Column("n", "numeric", (), True), Column("c", "categorical", tuple("wxyz"))),
    ("no", "yes"),
)


def path_of(*steps: dict[str, Any]) -> list[str]:
    """Return the conditions of the leaf at the end of a chain of branches."""
    builder = TreeBuilder(SCHEMA, weights=[1, 1])
    node = 0
    for step in steps:
        node = builder.child(node, weights=[1, 1], **step)
    model = Model(SCHEMA, builder.build(), Recipe())
    (rule,) = model.rules()
    return [str(condition) for condition in rule.conditions]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (
            [{"column": "n", "at_most": 5}, {"column": "n", "at_most": 3}],
            ["n <= 3"],
        ),
        (
            [{"column": "n", "above": 1}, {"column": "n", "above": 2}],
            ["n > 2"],
        ),
        (
            [
                {"column": "n", "at_most": 5},
                {"column": "c", "values": ["x"]},
                {"column": "n", "above": 1},
                {"column": "n", "at_most": 4.5},
            ],
            ["n > 1", "n <= 4.5", "c = x"],
        ),
        (
            [{"column": "c", "values": list("xyz")}, {"column": "c", "values": ["y"]}],
            ["c = y"],
        ),
        (
            [{"column": "c", "values": ["y"]}, {"column": "c", "values": list("xyz")}],
            ["c = y"],
        ),
        (
            [
                {"column": "c", "values": list("wxy")},
                {"column": "c", "values": list("xyz")},
            ],
            ["c in {x, y}"],
        ),
        ([{"column": "n", "missing": True}], ["n is missing"]),
        (
            [{"column": "c", "values": ["x"]}, {"column": "n", "missing": True}],
            ["c = x", "n is missing"],
        ),
    ],
)
def test_conditions_on_a_column_are_merged(steps, expected):
    assert path_of(*steps) == expected


def test_a_bound_says_that_a_number_is_known():
    """A split of known from missing numbers, below it one at a cut."""
    X = {"n": [1, 1, None, None], "c": ["x", "y", "x", "y"]}
    model = fit_tree(X, ["no", "no", "yes", "yes"])
    assert [str(rule) for rule in model.rules()] == [
        "if n is known then no (2 of 2 cases, 100 %)",
        "if n is missing then yes (2 of 2 cases, 100 %)",
    ]
    assert [rule.conditions[0].op for rule in model.rules()] == [
        "is known",
        "is missing",
    ]


def test_weighted_rules_count_cases_and_name_weights():
    model = fit_tree(
        {"c": ["x", "x", "y"]}, ["no", "yes", "yes"], sample_weight=[0.5, 2.25, 1]
    )
    assert [str(rule) for rule in model.rules()] == [
        "if c = x then yes (1 of 2 cases, 50 %; 81.8 % of weight)",
        "if c = y then yes (1 of 1 cases, 100 %; 100 % of weight)",
    ]
    assert model.rules()[0].sentence() == (
        "If c is x, then the prediction is yes (1 of 2 training cases, 50 %; 81.8 % of "
        "weight; covers 67 % of all cases, 73 % of all weight; 95 % interval 9-91 %)."
    )


def test_names_that_do_not_print_are_escaped():
    model = fit_tree({"a\nb": ["x\u202e", " "]}, ["\t", "ok"])
    assert [str(rule) for rule in model.rules()] == [
        "if a\\nb = ' ' then ok (1 of 1 cases, 100 %)",
        "if a\\nb = x\\u202e then \\t (1 of 1 cases, 100 %)",
    ]


def test_long_sets_are_narrowed_quickly():
    """Groups below groups: what is left is the last of them, in order."""
    values = tuple(range(3000))
    schema = Schema((Column("c", "categorical", values),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[1, 1])
    node = 0
    for step in range(0, 2990, 10):
        node = builder.child(node, "c", values=values[step:], weights=[1, 1])
    (rule,) = Model(schema, builder.build(), Recipe()).rules()
    assert rule.conditions == (Condition("c", "in", values[2980:]),)
    assert str(rule).startswith("if c in {2980, 2981, ")
    assert "2987, ... (12 more)} then no (1 of 2 cases, 50 %)" in str(rule)


# -- Numbers and costs


def test_rules_that_predict_numbers():
    X = {"x": [1.0, 2.0, 3.0, 8.0, 9.0], "c": list("abbab")}
    recipe = replace(CART, criterion="variance", max_depth=2)
    model = fit_tree(X, [1.0, 2.0, 4.0, 9.5, 9.5], recipe)
    rules = model.rules()
    assert [str(rule) for rule in rules] == [
        "if x <= 2 then 1.5 (2 cases, standard deviation 0.5)",
        "if x >= 3 and x <= 5 then 4 (1 case, standard deviation 0)",
        "if x >= 6 then 9.5 (2 cases, standard deviation 0)",
    ]
    first = rules[0]
    assert (first.label, first.n, first.counts, first.deviation) == (1.5, 2.0, {}, 0.5)
    assert first.conditions == (Condition("x", "<=", 2.0),)
    assert all(type(rule.label) is float for rule in rules)
    single = fit_tree(X, [1.0, 2.0, 4.0, 9.5, 9.5], replace(recipe, max_depth=0))
    assert [str(rule) for rule in single.rules()] == [
        "always 5.2 (5 cases, standard deviation 3.64)"
    ]


def test_rules_of_numbers_are_true():
    rng = np.random.default_rng(5)
    X: dict[str, list[Any]] = {
        "c": rng.choice(list("abcdef"), 200).tolist(),
        "n": rng.integers(0, 12, 200).astype(float).tolist(),
    }
    X["n"][7] = X["c"][9] = None
    y = rng.integers(0, 50, 200).astype(float)
    recipe = replace(CART, criterion="variance", max_depth=6, missing="branch")
    model = fit_tree(X, y, recipe)
    total = 0
    for rule in model.rules():
        rows = [
            row
            for row in range(200)
            if all(holds(c, X[c.column][row]) for c in rule.conditions)
        ]
        total += len(rows)
        assert rule.n == len(rows)
        np.testing.assert_allclose(rule.label, y[rows].mean())
        np.testing.assert_allclose(rule.deviation, y[rows].std(), atol=1e-4)
    assert total == 200


def test_classes_have_no_deviation():
    assert {rule.deviation for rule in grow("tennis").rules()} == {None}


def test_costs_choose_the_prediction_of_a_rule():
    X = {"c": ["x", "x", "x", "y"]}
    recipe = Recipe(costs=((0.0, 1.0), (5.0, 0.0)))
    rules = fit_tree(X, ["no", "no", "yes", "no"], recipe).rules()
    assert [str(rule) for rule in rules] == [
        "if c = x then yes (1 of 3 cases, 33.3 %; decided by costs)",
        "if c = y then no (1 of 1 cases, 100 %)",
    ]
    assert (
        rules[0]
        .sentence()
        .endswith("decided by costs: expected cost 0.667 against 1.67 for no).")
    )
    assert rules[0].counts == {"no": 2.0, "yes": 1.0}
