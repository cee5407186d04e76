"""Conditions on whole numbers, on 0 and 1 and on most values, in their words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from branchwise import CARTClassifier
from branchwise.data.table_schema import Column
from branchwise.text.column_conditions import ColumnConditions, simplified
from branchwise.text.conditions import Condition, phrase, said

WHOLE = Column("n", "numeric", number_kind="whole")
BINARY = Column("b", "numeric", number_kind="binary")
ANY = Column("x", "numeric")
LETTERS = Column("c", "categorical", tuple("abcde"))


@pytest.mark.parametrize(
    ("condition", "words", "sentence"),
    [
        (Condition("n", "<=", 3.0, WHOLE), "n <= 3", "n is at most 3"),
        (Condition("n", ">", 3.0, WHOLE), "n >= 4", "n is at least 4"),
        (Condition("n", ">", 3.5, WHOLE), "n >= 4", "n is at least 4"),
        (Condition("n", "<=", -0.5, WHOLE), "n <= -1", "n is at most -1"),
        (Condition("n", ">", 3.0), "n > 3", "n is above 3"),
        (
            Condition("n", "within", (3.0, 7.0), WHOLE),
            "4 <= n <= 7",
            "n is at least 4 and at most 7",
        ),
        (Condition("n", "within", (3.0, 4.0), WHOLE), "n = 4", "n is 4"),
        (Condition("b", "<=", 0.0, BINARY), "b = 0", "b is 0"),
        (Condition("b", ">", 0.0, BINARY), "b = 1", "b is 1"),
        (
            Condition("x", "within", (3.0, 7.0), ANY),
            "3 < x <= 7",
            "x is above 3 and at most 7",
        ),
        (Condition("c", "in", tuple("abde"), LETTERS), "c not in {c}", "c is not c"),
        (Condition("c", "in", ("a", "b", "d"), LETTERS), "c in {a, b, d}", None),
    ],
)
def test_words(condition, words, sentence):
    assert phrase(condition) == str(condition) == words
    assert sentence is None or said(condition) == sentence


def test_signs_of_typeset_media():
    assert phrase(Condition("n", ">", 3.0, WHOLE), typeset=True) == "n ≥ 4"
    assert phrase(Condition("x", "<=", 3.0, ANY), typeset=True) == "x ≤ 3"
    within = Condition("n", "within", (3.0, 7.0), WHOLE)
    assert phrase(within, typeset=True) == "4 ≤ n ≤ 7"
    assert phrase(replace(within, of=ANY), typeset=True) == "3 < n ≤ 7"
    assert phrase(Condition("a <= b", "<=", 1.0), typeset=True) == "a <= b ≤ 1"


def test_words_do_not_change_what_a_condition_is():
    condition = Condition("n", ">", 3.0, WHOLE)
    assert condition == Condition("n", ">", 3.0)
    assert hash(condition) == hash(Condition("n", ">", 3.0))
    assert repr(condition) == "Condition(column='n', op='>', value=3.0)"


def test_merged_conditions_of_a_path():
    path = ColumnConditions(WHOLE).restricted(Condition("n", ">", 3.0))
    path = path.restricted(Condition("n", "<=", 7.0))
    assert [str(condition) for condition in path.conditions] == ["n >= 4", "n <= 7"]
    assert [str(c) for c in simplified(path.conditions, WHOLE)] == ["4 <= n <= 7"]


def test_a_number_that_is_not_whole_follows_the_threshold():
    X = {"n": [1, 2, 3, 4, 5, 6] * 4, "b": [0, 1] * 12}
    y = ["low" if n <= 3 else "high" for n in X["n"]]
    model = CARTClassifier(threshold="readable").fit(X, y).model_
    assert model.to_text() == "n <= 3: low (12)\nn >= 4: high (12)"
    assert "n >= 4 (it is 5)" in str(model.explain({"n": 5, "b": 0}))
    between = str(model.explain({"n": 3.5, "b": 0}))
    assert "high" in between
    assert "n > 3 (it is 3.5)" in between
