"""Dates in every view: texts, rules, explanations, changes, steps, pages, pictures."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from branchwise import RandomForestClassifier, fit_tree
from branchwise.recipe import CART

START = dt.date(2024, 1, 1)
DAYS = [START + dt.timedelta(5 * at) for at in range(40)]
TIMES = [dt.datetime(2024, 1, 1, 7) + dt.timedelta(minutes=30 * at) for at in range(40)]
Y = [*["early"] * 14, *["middle"] * 13, *["late"] * 13]
ROW = {"opened": dt.date(2024, 3, 1), "x": 1}


@pytest.fixture(scope="module")
def model():
    return fit_tree({"opened": DAYS, "x": [at % 3 for at in range(40)]}, Y, CART)


def first_last(model):
    """Return the day up to the first threshold, and the day after."""
    day = dt.date(1970, 1, 1) + dt.timedelta(int(min(model.tree.threshold)))
    return str(day), str(day + dt.timedelta(1))


def test_texts_and_pictures(model):
    up_to, above = first_last(model)
    for text in (str(model), str(model.rules()), model.to_dot(), model.to_svg()):
        assert up_to in text
    assert f"opened <= {up_to}: early" in str(model)
    assert f"if opened >= {above} and opened <= " in str(model.rules())
    simple = model.rules(simplify=True)
    assert f"if {above} <= opened <= " in str(simple)
    conditions = [r["conditions"] for r in model.rules().to_dict()["rules"]]
    assert conditions[0] == [{"column": "opened", "op": "<=", "value": up_to}]


def test_explanations_changes_and_differences(model):
    up_to, above = first_last(model)
    explained = model.explain(ROW)
    assert "(it is 2024-03-01)" in str(explained)
    assert '"value": "2024-03-01"' in explained.to_json()
    changed = model.what_if(ROW, "middle")
    assert f"opened from 2024-03-01 to {above} to " in str(changed)
    (change,) = changed.alternatives[0].changes
    assert (change.old, change.new) == ("2024-03-01", above)
    assert model.predict({"opened": change.new, "x": 1}) == ["middle"]
    assert changed.to_dict()["row"]["opened"] == "2024-03-01"
    other = fit_tree({"opened": DAYS[::-1], "x": [0] * 40}, Y, CART)
    assert "opened" in str(model.diff(other))
    assert "20" + up_to[2:] in str(model.diff(other))
    assert "2024-03-01" in str(model.shap(ROW))


def test_steps_and_reports(model):
    up_to, _ = first_last(model)
    table = {"opened": DAYS, "x": [at % 3 for at in range(40)]}
    written = str(model.steps(table, Y))
    assert f"opened <= {up_to}" in written
    assert str(int(min(model.tree.threshold))) not in written


def test_forests(model):
    table = {"opened": DAYS, "x": [at % 3 for at in range(40)]}
    forest = RandomForestClassifier(n_estimators=3, random_state=1).fit(table, Y)
    told = str(forest.explain(ROW))
    assert "2024-03-01" in told
    assert "opened <= 2024-" in told or "opened >= 2024-" in told
    assert "2024-" in json.dumps(forest.prototypes().to_dict())
