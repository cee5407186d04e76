"""Rules: one for each leaf, true of the data they were learnt from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from branchwise import Model, Recipe, datasets, fit_tree
from branchwise.rules import Rule
from branchwise.table.schema import Column, Schema
from branchwise.tree import TreeBuilder
from branchwise.words import Condition

GOLDEN = Path(__file__).parent / "golden"
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


@pytest.mark.parametrize("name", TABLES)
def test_rules_are_true(name):
    """Every case fulfils one rule; the counts are those of the cases that do."""
    data = datasets.load(name)
    model = grow(name)
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


def test_weighted_rules_show_weights():
    model = fit_tree(
        {"c": ["x", "x", "y"]}, ["no", "yes", "yes"], sample_weight=[0.5, 2.25, 1]
    )
    assert [str(rule) for rule in model.rules()] == [
        "if c = x then yes (2.25 of 2.75 cases, 81.8 %)",
        "if c = y then yes (1 of 1 cases, 100 %)",
    ]


def test_names_that_do_not_print_are_escaped():
    model = fit_tree({"a\nb": ["x\u202e", " "]}, ["\t", "ok"])
    assert [str(rule) for rule in model.rules()] == [
        "if a\\nb = ' ' then ok (1 of 1 cases, 100 %)",
        "if a\\nb = x\\u202e then \\t (1 of 1 cases, 100 %)",
    ]
