"""DMN decision tables of rules that vote: structure, cells, and what they predict."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from branchwise import C45Classifier, ExportError, RuleClassifier, export
from branchwise.export.base import plan_of
from branchwise.export.rule_sets import dmn
from branchwise.export.rule_sets.voted_rules import voted_rules

SPACE = "{https://www.omg.org/spec/DMN/20191111/MODEL/}"
#: The children of each element, in their order, as the schema of DMN 1.3 has them.
CHILDREN = {
    "definitions": "(decision )*(inputData )*",
    "decision": "(description )?variable (informationRequirement )*"
    "(decisionTable |literalExpression )",
    "informationRequirement": "(requiredDecision |requiredInput )",
    "decisionTable": "(input )*(output )+(rule )*",
    "input": "inputExpression ",
    "inputExpression": "text ",
    "rule": "(description )?(inputEntry )*(outputEntry )+",
    "inputEntry": "text ",
    "outputEntry": "text ",
    "literalExpression": "text ",
    "inputData": "variable ",
}
#: Attributes that an element must have.
NEEDED = {
    "definitions": {"name", "namespace"},
    "decision": {"id", "name"},
    "inputData": {"id", "name"},
    "variable": {"name", "typeRef"},
    "requiredDecision": {"href"},
    "requiredInput": {"href"},
}


def table(n_rows: int = 240) -> pd.DataFrame:
    """Return columns of every type, with names and values that need escapes."""
    draw = np.random.default_rng(5)
    days = np.datetime64("2024-01-01") + draw.integers(0, 300, n_rows)
    X = pd.DataFrame(
        {
            "a-b <&>": draw.choice(['"', "\\", "x, y", "é\n", "not(null)"], n_rows),
            "size": draw.normal(size=n_rows).round(2),
            "opened": days.astype("datetime64[s]"),
            "flag": draw.random(n_rows) < 0.5,
            "if": pd.Categorical(draw.integers(1, 6, n_rows)),
        }
    )
    X["a-b <&>"] = X["a-b <&>"].where(draw.random(n_rows) > 0.1)
    X["size"] = X["size"].where(draw.random(n_rows) > 0.1)
    return X


def labels(X: pd.DataFrame, n_classes: int) -> np.ndarray:
    late = (X["opened"] > "2024-05-01").to_numpy().astype(int)
    odd = X["if"].isin([2, 5]).to_numpy().astype(int)
    quoted = X["a-b <&>"].isin(['"', "x, y"]).to_numpy().astype(int)
    big = (X["size"] > 0.3).to_numpy().astype(int)
    parts = late + big * X["flag"].to_numpy() + odd * quoted
    return np.array(['say "a"', "b", "c"])[parts % n_classes]


def fitted(n_classes: int = 2, **given: object) -> RuleClassifier:
    X = table()
    return RuleClassifier(n_estimators=4, rule_cost=0.2, **given).fit(
        X, labels(X, n_classes)
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables_predict_what_the_rules_do(n_classes):
    rules = fitted(n_classes)
    used = {c.column for rule in rules.rules() for c in rule.conditions}
    assert len(used) == 5
    done = export.verify(rules.model_, "dmn")
    assert done.ok, str(done)
    assert export.verify(rules.model_, "dmn", table(60)).ok


def test_structure():
    root = ET.fromstring(fitted(3).export("dmn"))
    assert root.tag == f"{SPACE}definitions"
    ids = [one.get("id") for one in root.iter() if one.get("id") is not None]
    assert len(set(ids)) == len(ids)
    for one in root.iter():
        assert one.tag.startswith(SPACE)
        tag = one.tag.removeprefix(SPACE)
        below = "".join(f"{child.tag.removeprefix(SPACE)} " for child in one)
        assert re.fullmatch(CHILDREN.get(tag, ""), below), (tag, below)
        assert NEEDED.get(tag, set()) <= set(one.attrib), tag
        if one.get("href"):
            assert one.get("href", "").removeprefix("#") in ids
    tables = list(root.iter(f"{SPACE}decisionTable"))
    assert len(tables) == 3
    for one in tables:
        assert one.get("hitPolicy") == "COLLECT"
        assert one.get("aggregation") == "SUM"
        width = len(one.findall(f"{SPACE}input"))
        for rule in one.findall(f"{SPACE}rule"):
            assert len(rule.findall(f"{SPACE}inputEntry")) == width
    names = {
        one.get("name"): one.get("label") for one in root.iter(f"{SPACE}inputData")
    }
    assert names["a_b"] == "a-b <&>"
    assert all(re.fullmatch("[a-z_0-9]+", name) for name in names)


def test_every_rule_is_a_line_with_its_vote():
    rules = fitted(3)
    root = ET.fromstring(rules.export("dmn"))
    lines = [
        float(rule.find(f"{SPACE}outputEntry/{SPACE}text").text)
        for rule in root.iter(f"{SPACE}rule")
        if rule.find(f"{SPACE}description").text != "before any vote"
    ]
    assert sorted(lines) == sorted(rules.rules().votes)
    assert len(voted_rules(plan_of(rules.model_))) == len(lines)


def test_a_changed_vote_is_a_difference(monkeypatch):
    rules = fitted()
    vote = max(rules.rules().votes)
    monkeypatch.setattr(
        dmn, "feel_number", lambda n: "0" if n == vote else f"{float(n):.20f}"
    )
    with pytest.raises(ExportError, match="differs from the model, and is not written"):
        rules.export("dmn")


def test_a_single_class_and_no_rule():
    X = table(40)
    alone = RuleClassifier(n_estimators=2).fit(X, ["yes"] * 40)
    assert export.verify(alone.model_, "dmn").ok
    none = fitted(3, max_rules=1)
    assert export.verify(none.model_, "dmn").ok


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('a"b\\', '"a\\"b\\\\"'),
        ("a\nb", '"a\\u000Ab"'),
        ("é", '"é"'),
        (True, "true"),
        (3, "3"),
        (1e-7, "0.0000001"),
        (-2.5e20, "-250000000000000000000"),
    ],
)
def test_values_in_feel(value, written):
    assert dmn.feel(value) == written


def test_what_it_cannot_carry():
    X = table(60)
    tree = C45Classifier().fit(X, labels(X, 2))
    with pytest.raises(ExportError, match="takes rules that vote, those of RuleClass"):
        tree.export("dmn")
    with pytest.raises(ExportError, match=r"form='rules' of .* takes rules that vote"):
        tree.export("pmml", form="rules", verify=False)
    plan = plan_of(fitted().model_)
    fields = (replace(plan.fields[0], name="a\x00"), *plan.fields[1:])
    with pytest.raises(ExportError, match="DMN, cannot hold the character"):
        dmn.write(replace(plan, fields=fields), {})
