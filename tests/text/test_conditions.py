"""Conditions, answers and numbers in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise.data.table_schema import Column, Schema
from branchwise.errors import plain
from branchwise.text.conditions import (
    SHOWN_VALUES,
    Condition,
    absent_values,
    branch,
    condition_of,
    missing_stops,
    phrase,
)
from branchwise.text.predictions import (
    deviation_of,
    label_of,
    prediction,
    prediction_of_none,
    prediction_of_stopped,
)
from branchwise.text.words import (
    amount,
    deviation,
    listed,
    mean,
    number,
    rounded,
    share,
    word,
)
from branchwise.tree.tree import Tree
from branchwise.tree.validation import validate
from tree_builder import TreeBuilder


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("wind", "=", "weak"), "wind = weak"),
        (Condition("wind", "in", ("weak", "strong")), "wind in {weak, strong}"),
        (Condition("legs", "in", (2, 4)), "legs in {2, 4}"),
        (Condition("age", "<=", 2.45), "age <= 2.45"),
        (Condition("age", ">", 3.0), "age > 3"),
        (Condition("age", "is missing"), "age is missing"),
        (Condition("age", "is known"), "age is known"),
        (Condition("tame", "=", True), "tame = True"),
        (Condition("tame", "=", False), "tame = False"),
        (Condition("legs", "=", 0), "legs = 0"),
        (Condition("size", "=", 0.5), "size = 0.5"),
        (Condition("note", "=", ""), "note = ''"),
        (Condition("a\nb", "=", "x"), "a\\nb = x"),
        (Condition("", "=", "x"), "'' = x"),
        (Condition(" a", "is missing"), "' a' is missing"),
        (Condition("bin", "=", "(0, 3]"), "bin = (0, 3]"),
        (Condition("bin", "in", ("(0, 3]", "x")), "bin in {'(0, 3]', x}"),
        (Condition("c", "in", ()), "c in {}"),
    ],
    ids=str,
)
def test_conditions(condition, expected):
    assert str(condition) == expected
    assert phrase(condition) == expected


def test_long_lists_are_cut_short_and_counted():
    values = tuple(f"v{i}" for i in range(1234))
    condition = Condition("c", "in", values)
    assert str(condition) == "c in {v0, v1, v2, v3, v4, v5, v6, v7, ... (1,226 more)}"
    assert phrase(condition, 2) == "c in {v0, v1, ... (1,232 more)}"
    assert listed(values[:SHOWN_VALUES]) == "v0, v1, v2, v3, v4, v5, v6, v7"
    assert listed(values[: SHOWN_VALUES + 1]).endswith("v7, ... (1 more)")
    assert listed(values, 0) == "... (1,234 more)"
    assert listed(()) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("with blanks inside", "with blanks inside"),
        ("", "''"),
        (" ", "' '"),
        (" left", "' left'"),
        ("right ", "'right '"),
        ("it's", "it's"),
        ("it's ", '"it\'s "'),
        ("'quoted'", "\"'quoted'\""),
        ('"quoted"', "'\"quoted\"'"),
        ("new\nline", "new\\nline"),
        ("\n", "\\n"),
        (" \n", "' \\n'"),
        ("tab\tbell\x07", "tab\\tbell\\x07"),
        ("\x00", "\\x00"),
        ("\u202eevil\u202c", "\\u202eevil\\u202c"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("hard\xa0blank", "hard\\xa0blank"),
        ("\ud83d", "\\ud83d"),
        ("\N{GRINNING FACE}", "\N{GRINNING FACE}"),
        ("stra\xdfe", "stra\xdfe"),
        ("\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
        ("\U000e0001", "\\U000e0001"),
    ],
    ids=ascii,
)
def test_text_that_does_not_print_is_shown(text, expected):
    shown = word(text)
    assert shown == expected
    assert shown.isprintable()
    assert plain(text).isprintable()


def test_a_list_cannot_be_mistaken_for_another():
    assert listed(("a, b", "c")) == "'a, b', c"
    assert listed(("a", "b", "c")) == "a, b, c"
    assert listed((" a,", "'b, c'")) == "' a,', \"'b, c'\""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "-0"),
        (2.45, "2.45"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e22, "1e+22"),
        (5e-324, "5e-324"),
        (2**60, "1152921504606846976"),
        (np.float64(77.5), "77.5"),
    ],
)
def test_numbers_can_be_read_back(value, expected):
    assert number(value) == expected
    assert float(number(value)) == value


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (0, "0"),
        (1.0, "1"),
        (10.0, "10"),
        (100.0, "100"),
        (2.5, "2.5"),
        (2.25, "2.25"),
        (1 / 3, "0.33"),
        (2.999, "3"),
        (1234567.25, "1234567.25"),
        (12345678.0, "12345678"),
        (0.01, "0.01"),
        (0.004, "0.004"),
        (1.5e-7, "1.5e-07"),
        (2.0**49, "562949953421312"),
        (1e15, "1e+15"),
        (1e300, "1e+300"),
    ],
)
def test_weights(weight, expected):
    assert amount(weight) == expected


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (1, 1, "100 %"),
        (0, 3, "0 %"),
        (1, 3, "33.3 %"),
        (2, 3, "66.7 %"),
        (1, 8, "12.5 %"),
        (1, 2000, "0.1 %"),
        (1, 2001, "0 %"),
        (1e300, 3e300, "33.3 %"),
        (1e-300, 4e-300, "25 %"),
    ],
)
def test_shares(part, whole, expected):
    assert share(part, whole) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (4.5, "4.5"),
        (-4.5, "-4.5"),
        (13 / 3, "4.3333"),
        (2 / 3, "0.66667"),
        (100.0, "100"),
        (99.9996, "100"),
        (1234.56, "1234.6"),
        (123456.7, "123457"),
        (1234560.0, "1234560"),
        (0.000123456, "0.00012346"),
        (1.5e-7, "1.5e-07"),
        (999999999999999.0, "999999999999999"),
        (1e15, "1e+15"),
        (-1e120 / 3, "-3.3333e+119"),
    ],
)
def test_means(value, expected):
    assert mean(value) == expected


def test_deviations_need_fewer_digits():
    assert deviation(13 / 3) == "4.33"
    assert deviation(1234.56) == "1235"
    assert rounded(13 / 3, 1) == "4"


SCHEMA = Schema(
    (
        Column("c", "categorical", ("x", "y", "z", "never")),
        Column("n", "numeric"),
        Column("legs", "categorical", (2, 4)),
    ),
    ("no", "yes"),
)


@pytest.fixture
def tree() -> Tree:
    builder = TreeBuilder(SCHEMA, weights=[6, 6])
    first = builder.child(0, "c", values=["x", "z"], weights=[3, 2])
    second = builder.child(0, "c", values=["y"], weights=[3, 3])
    builder.child(0, "c", missing=True, weights=[0, 1])
    builder.child(first, "n", at_most=1.5, weights=[3, 0])
    builder.child(first, "n", above=1.5, weights=[0, 2])
    builder.child(second, "legs", values=[4], weights=[2.5, 0.25])
    builder.child(second, "legs", values=[2], weights=[0.5, 2.75])
    return builder.build()


def test_the_conditions_of_a_tree(tree):
    conditions = [condition_of(SCHEMA, tree, node) for node in range(1, len(tree))]
    assert conditions == [
        Condition("c", "in", ("x", "z")),
        Condition("c", "=", "y"),
        Condition("c", "is missing"),
        Condition("n", "<=", 1.5),
        Condition("n", ">", 1.5),
        Condition("legs", "=", 4),
        Condition("legs", "=", 2),
    ]


def test_answers(tree):
    answers = [prediction(SCHEMA, tree, node) for node in range(len(tree))]
    assert answers == [
        "no (12/6)",
        "no (5/2)",
        "no (6/3)",
        "yes (1)",
        "no (3)",
        "yes (2)",
        "no (2.75/0.25)",
        "yes (3.25/0.5)",
    ]


def test_errors_are_not_lost_in_a_sum():
    schema = Schema((Column("n", "numeric"),), ("a", "b", "c"))
    for weights, expected in [
        ([1e-20, 1.0, 0.0], "b (1/1e-20)"),
        ([0.0, 0.3, 0.0], "b (0.3)"),
        ([0.1, 0.7, 0.2], "b (1/0.3)"),
    ]:
        tree = TreeBuilder(schema, weights=weights).build()
        assert prediction(schema, tree, 0) == expected


def test_absent_values(tree):
    assert absent_values(SCHEMA, tree, 0) == ("never",)
    assert absent_values(SCHEMA, tree, 1) == ()
    assert absent_values(SCHEMA, tree, 2) == ()


def test_values_that_went_elsewhere_are_not_absent():
    """A value that a group further up sends down another branch cannot arrive."""
    builder = TreeBuilder(SCHEMA, weights=[6, 6])
    first = builder.child(0, "c", values=["x", "y", "never"], weights=[4, 2])
    builder.child(0, "c", values=["z"], weights=[2, 4])
    between = builder.child(first, "n", at_most=1, weights=[2, 1])
    builder.child(first, "n", above=1, weights=[2, 1])
    builder.child(between, "c", values=["x"], weights=[2, 0])
    builder.child(between, "c", values=["y"], weights=[0, 1])
    tree = builder.build()
    assert absent_values(SCHEMA, tree, 0) == ()
    assert absent_values(SCHEMA, tree, 1) == ()
    assert absent_values(SCHEMA, tree, 3) == ("never",)


def test_no_value_arrives_where_only_missing_ones_do():
    builder = TreeBuilder(SCHEMA, weights=[3, 3])
    builder.child(0, "c", values=["x"], weights=[2, 1])
    missing = builder.child(0, "c", missing=True, weights=[1, 2])
    builder.child(missing, "c", values=["y"], weights=[1, 2])
    tree = builder.build()
    assert absent_values(SCHEMA, tree, 0) == ("y", "z", "never")
    assert absent_values(SCHEMA, tree, 2) == ()


# -- Numbers, costs and missing values


NUMBERS = Schema(SCHEMA.columns, ())


@pytest.fixture
def numbers(tree: Tree) -> Tree:
    """The same tree, with a mean and a deviation for each node."""
    result = replace(
        tree,
        weights=tree.weights.sum(axis=1, keepdims=True),
        mean=np.array([4.5, -13 / 3, 0.0, -0.0, 1e6, 1e-9, 2.0, 7.25]),
        deviation=np.array([1.2, 1 / 3, 0.0, 0.0, 1.3e-6, 1.1e-6, 1000.0, 1e-5]),
    )
    validate(result, NUMBERS)
    return result


def test_answers_that_are_numbers(numbers):
    answers = [prediction(NUMBERS, numbers, node) for node in range(len(numbers))]
    assert answers == [
        "4.5 (12, ± 1.2)",
        "-4.3333 (5, ± 0.333)",
        "0 (6)",
        "0 (1)",
        "1000000 (3, ± 1.3e-06)",
        "1e-09 (2)",  # what rounding left of equal numbers is no deviation
        "2 (2.75, ± 1000)",
        "7.25 (3.25, ± 1e-05)",
    ]


def test_the_parts_of_an_answer(tree, numbers):
    assert label_of(SCHEMA, tree, 3) == "yes"
    assert deviation_of(tree, 3) is None
    assert label_of(NUMBERS, numbers, 1) == -13 / 3
    assert str(label_of(NUMBERS, numbers, 3)) == "0.0"
    assert deviation_of(numbers, 1) == 1 / 3
    assert deviation_of(numbers, 5) == 0.0


def test_answers_to_nobody(tree, numbers):
    assert prediction_of_none(SCHEMA, tree, 0) == "no (0)"
    assert prediction_of_none(NUMBERS, numbers, 0) == "4.5 (0)"


def test_answers_to_those_that_stop():
    builder = TreeBuilder(SCHEMA, weights=[6, 6.5])
    builder.child(0, "c", values=["x"], weights=[3, 1])
    builder.child(0, "c", values=["y"], weights=[1, 3])
    tree = builder.build(missing="node")
    assert missing_stops(tree, 0)
    assert not missing_stops(tree, 1)
    assert prediction_of_stopped(SCHEMA, tree, 0) == "yes (4.5/2)"
    weighted = tree.with_class_cases(np.array([[6, 7], [3, 1], [1, 3]]))
    weights = np.array([[4.0, 4.0], [3, 1], [1, 3]])  # all of them in branches
    rounded_off = replace(weighted, weights=weights)
    assert prediction_of_stopped(SCHEMA, rounded_off, 0) == "no (5/3)"
    means = np.array([2.0, 1.0, 3.0])
    weights = tree.weights.sum(axis=1, keepdims=True)
    numbers = replace(tree, weights=weights, mean=means, deviation=means)
    assert prediction_of_stopped(NUMBERS, numbers, 0) == "2 (4.5)"


def test_answers_that_costs_have_chosen(tree):
    """Errors are counted against the answer, whatever is more frequent."""
    chosen = replace(tree, prediction=np.array([1, 1, 1, 0, 1, 1, 0, 1]))
    answers = [prediction(SCHEMA, chosen, node) for node in range(len(tree))]
    assert answers == [
        "yes (12/6)",
        "yes (5/3)",
        "yes (6/3)",
        "no (1/1)",
        "yes (3/3)",
        "yes (2)",
        "no (2.75/0.25)",
        "yes (3.25/0.5)",
    ]
    assert prediction_of_none(SCHEMA, chosen, 0) == "yes (0)"


@pytest.mark.parametrize(
    ("policy", "marked"),
    [("largest", [1]), ("node", []), ("split", []), ("branch", [])],
)
def test_the_branch_that_missing_values_take(policy, marked):
    builder = TreeBuilder(SCHEMA, weights=[6, 6])
    builder.child(0, "c", values=["x", "z"], weights=[4, 3])
    builder.child(0, "c", values=["y"], weights=[2, 3])
    tree = builder.build(missing=policy)
    plain_words = ["c in {x, z}", "c = y"]
    for node, words in enumerate(plain_words, start=1):
        assert branch(SCHEMA, tree, node) == words
        end = " or missing" if node in marked else ""
        assert branch(SCHEMA, tree, node, missing=True) == words + end
    assert branch(SCHEMA, tree, 1, limit=1) == "c in {x, ... (1 more)}"


def test_a_branch_of_missing_values_is_not_marked(tree):
    assert branch(SCHEMA, tree, 3, missing=True) == "c is missing"
    assert branch(SCHEMA, tree, 1, missing=True) == "c in {x, z}"


def test_a_cut_at_zero_has_no_sign():
    builder = TreeBuilder(SCHEMA, weights=[1, 1])
    builder.child(0, "n", at_most=-0.0, weights=[1, 0])
    builder.child(0, "n", above=-0.0, weights=[0, 1])
    assert branch(SCHEMA, builder.build(), 1) == "n <= 0"
