"""Conditions, answers and numbers in words."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise.table.schema import Column, Schema
from branchwise.tree import Tree, TreeBuilder
from branchwise.words import (
    SHOWN_VALUES,
    Condition,
    absent_values,
    amount,
    answer,
    condition_of,
    listed,
    number,
    phrase,
    plain,
    share,
    word,
)


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
    answers = [answer(SCHEMA, tree, node) for node in range(len(tree))]
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
        assert answer(schema, tree, 0) == expected


def test_absent_values(tree):
    assert absent_values(SCHEMA, tree, 0) == ("never",)
    assert absent_values(SCHEMA, tree, 1) == ()
    assert absent_values(SCHEMA, tree, 2) == ()
