"""Signs of conditions: ``≤`` where the medium has it, ``<=`` in plain text and code."""

from __future__ import annotations

import pytest

from branchwise import datasets, fit_tree
from branchwise.text.conditions import Condition, phrase
from branchwise.text.signs import typeset_signs

WEATHER = datasets.load("weather")
MODEL = fit_tree(WEATHER.X, WEATHER.y)
ROW = {"outlook": "sunny", "temperature": 70, "humidity": 70, "windy": "FALSE"}


def test_within_they_are_typeset():
    condition = Condition("a <= b", "<=", 2.5)
    with typeset_signs():
        # Names stay as they are.
        assert phrase(condition) == str(condition) == "a <= b ≤ 2.5"
    assert phrase(condition) == "a <= b <= 2.5"
    assert phrase(condition, typeset=True) == "a <= b ≤ 2.5"


def test_an_error_does_not_leave_them_on():
    with pytest.raises(KeyError), typeset_signs():
        raise KeyError
    assert str(Condition("n", "<=", 1)) == "n <= 1"


@pytest.mark.parametrize(
    "result",
    [
        MODEL.explain(ROW),
        MODEL.generalised_rules(WEATHER.X, WEATHER.y).table(),
        MODEL.steps(WEATHER.X, WEATHER.y, 3),
    ],
    ids=["explanation", "table of rules", "steps"],
)
def test_documents(result):
    text = result.to_text()
    assert "<= 80" in text
    assert "≤" not in text
    for written in (result.to_markdown(), result.to_html()):
        assert "≤ 80" in written
        assert "&lt;= 80" not in written
        assert r"\<= 80" not in written


def test_worked_solutions_in_latex():
    written = MODEL.steps(WEATHER.X, WEATHER.y, 3).to_latex()
    assert r"\ensuremath{\le}" in written
    assert r"\ensuremath{\ge}" in written
    assert r"\textless{}= 80" not in written
