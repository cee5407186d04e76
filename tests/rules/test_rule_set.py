"""The rules of a tree as one thing: merged, sorted, filtered, written."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    Model,
    ParameterError,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.data import one_row as make
from branchwise.data.table_schema import Column, Schema
from branchwise.recipe import C45, CART
from branchwise.rules.rule import INTERVAL, Rule
from branchwise.rules.rule_set import Rules
from branchwise.stats import share_interval
from branchwise.text.conditions import Condition, phrase, said
from branchwise.text.words import percent, percent_range
from naive_rules import fulfils, path
from tree_builder import TreeBuilder

law = settings(derandomize=True, deadline=None, max_examples=25, database=None)


def weather() -> Model:
    data = datasets.load("weather")
    return fit_tree(data.X, data.y, target_name="play")


# -- Merging: simplified, a rule covers the same rows

RECIPES = [
    Recipe(),
    CART,
    replace(CART, missing="branch"),
    replace(C45, pruning=None),
    replace(C45, branching="groups", missing="branch", pruning=None),
    replace(CART, missing="surrogate"),
    replace(CART, missing="learned"),
    replace(CART, criterion="variance"),
]
VALUES = list("abcdefg")


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, list[Any]], list[int]]:
    n_rows = draw(st.integers(4, 30))
    gap = draw(st.booleans())

    def cells(strategy: st.SearchStrategy[Any]) -> list[Any]:
        one = st.one_of(st.none(), strategy, strategy) if gap else strategy
        column = draw(st.lists(one, min_size=n_rows, max_size=n_rows))
        return column if any(cell is not None for cell in column) else [1] * n_rows

    X = {
        "c": cells(st.sampled_from(VALUES)),
        "d": cells(st.sampled_from(VALUES[:3])),
        "n": cells(st.integers(0, 9).map(float)),
        "m": cells(st.integers(0, 5).map(lambda v: v / 4)),
    }
    y = draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    return X, y


@law
@given(tables(), st.sampled_from(RECIPES), st.integers(0, 2**32))
def test_simplified_rules_cover_the_same_rows(table, recipe, seed):
    X, y = table
    if recipe.criterion == "variance":
        y = [float(label) for label in y]
    model = fit_tree(X, y, recipe)
    plain, simple = model.rules(), model.rules(simplify=True)
    assert [rule.node for rule in plain] == [rule.node for rule in simple]
    rng = np.random.default_rng(seed)
    possible = {column.name: column for column in model.schema.columns}
    for _ in range(60):
        row = {
            name: None
            if possible[name].has_missing and rng.random() < 0.2
            else rng.choice(list(possible[name].categories))
            if not possible[name].is_numeric
            else float(rng.integers(-1, 11)) / rng.choice([1, 4])
            for name in X
        }
        for one, other in zip(plain, simple, strict=True):
            expected = fulfils(path(model, one.node), row)
            assert fulfils(one.conditions, row) == expected
            assert fulfils(other.conditions, row) == expected


@law
@given(tables(), st.sampled_from(RECIPES), st.integers(0, 2**32))
def test_one_rule_at_most_holds_and_it_is_what_the_tree_says(table, recipe, seed):
    """Without missing or unseen values: exactly one, unless the row stops above."""
    X, y = table
    if recipe.criterion == "variance":
        y = [float(label) for label in y]
    model = fit_tree(X, y, recipe)
    rules = model.rules(simplify=True)
    rng = np.random.default_rng(seed)
    rows = {
        column.name: [
            str(rng.choice(list(column.categories)))
            if not column.is_numeric
            else float(rng.integers(-1, 11))
            for _ in range(40)
        ]
        for column in model.schema.columns
    }
    if any(isinstance(v, int) for c in model.schema.columns for v in c.categories):
        return  # a column without any value
    nodes, predictions = model.apply(rows).tolist(), model.predict(rows).tolist()
    for at, (node, prediction) in enumerate(zip(nodes, predictions, strict=True)):
        row = {name: cells[at] for name, cells in rows.items()}
        holding = [rule for rule in rules if fulfils(rule.conditions, row)]
        if model.tree.n_children[node]:
            assert holding == []
        else:
            (rule,) = holding
            assert (rule.node, rule.label) == (node, prediction)


SCHEMA = Schema(
    (Column("n", "numeric"), Column("c", "categorical", tuple("vwxyz"))),
    ("no", "yes"),
)


def simplified(*steps: dict[str, Any], schema: Schema = SCHEMA) -> list[str]:
    builder = TreeBuilder(schema, weights=[1, 1])
    node = 0
    for step in steps:
        node = builder.child(node, weights=[1, 1], **step)
    (rule,) = Model(schema, builder.build(), Recipe()).rules(simplify=True)
    return [str(condition) for condition in rule.conditions]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (
            [{"column": "n", "at_most": 90}, {"column": "n", "above": 77.5}],
            ["77.5 < n <= 90"],
        ),
        ([{"column": "n", "above": -1.5}], ["n > -1.5"]),
        ([{"column": "c", "values": list("vwxyz")}], []),
        ([{"column": "c", "values": list("vwxy")}], ["c not in {z}"]),
        ([{"column": "c", "values": list("vwx")}], ["c in {v, w, x}"]),
        ([{"column": "c", "values": ["y"]}], ["c = y"]),
        (
            [
                {"column": "c", "values": list("vwxy")},
                {"column": "n", "at_most": 1},
                {"column": "c", "values": list("xyz")},
            ],
            ["c in {x, y}", "n <= 1"],
        ),
    ],
)
def test_conditions_in_few_words(steps, expected):
    assert simplified(*steps) == expected


def test_two_of_three_values_are_listed_and_four_of_six_are_not():
    for values, expected in ((3, "c in {0, 1}"), (6, "c not in {4, 5}")):
        column = Column("c", "categorical", tuple(range(values)))
        schema = Schema((column,), ("no", "yes"))
        kept = range(2 * values // 3)
        step = {"column": "c", "values": list(kept)}
        assert simplified(step, schema=schema) == [expected]


def test_all_values_but_not_a_missing_one():
    column = Column("c", "categorical", ("x", "y"), has_missing=True)
    schema = Schema((column,), ("no", "yes"))
    step = {"column": "c", "values": ["x", "y"]}
    assert simplified(step, schema=schema) == ["c is known"]


def test_without_simplify_everything_is_as_it_was():
    model = weather()
    assert [str(rule) for rule in model.rules()] == [
        "if outlook = overcast then yes (4 of 4 cases, 100 %)",
        "if outlook = rainy and windy = FALSE then yes (3 of 3 cases, 100 %)",
        "if outlook = rainy and windy = TRUE then no (2 of 2 cases, 100 %)",
        "if outlook = sunny and humidity <= 80 then yes (2 of 2 cases, 100 %)",
        "if outlook = sunny and humidity >= 81 then no (3 of 3 cases, 100 %)",
    ]


# -- Sentences


def test_a_sentence_with_coverage_and_confidence():
    assert weather().rules()[3].sentence() == (
        "If outlook is sunny and humidity is at most 80, then play is yes (2 of 2 "
        "training cases, 100 %; covers 14 % of all; 95 % interval 34-100 %)."
    )


def test_sentences_of_numbers():
    X = {"x": [1.0, 2.0, 3.0, 8.0, 9.0]}
    recipe = replace(CART, criterion="variance", max_depth=2)
    model = fit_tree(X, [1.0, 2.0, 4.0, 9.5, 9.5], recipe, target_name="y")
    assert [rule.sentence() for rule in model.rules(simplify=True)] == [
        (
            "If x is at most 2, then y is 1.5 on average (2 training cases, standard "
            "deviation 0.5; covers 40 % of all)."
        ),
        (
            "If x is at least 3 and at most 5, then y is 4 on average (1 training "
            "case, standard deviation 0; covers 20 % of all)."
        ),
        (
            "If x is at least 6, then y is 9.5 on average (2 training cases, standard "
            "deviation 0; covers 40 % of all)."
        ),
    ]


def test_a_sentence_without_conditions_and_without_a_target():
    model = fit_tree({"c": ["x", "y"]}, ["no", "no"])
    (rule,) = model.rules()
    assert rule.sentence() == (
        "In every case, the prediction is no (2 of 2 training cases, 100 %; covers 100 "
        "% of all; 95 % interval 34-100 %)."
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("c", "=", "x"), "c is x"),
        (Condition("c", "in", ("x", "y")), "c is x or y"),
        (Condition("c", "in", ("x", "a,b", "z")), "c is x, 'a,b' or z"),
        (Condition("c", "not in", ("x",)), "c is not x"),
        (Condition("c", "not in", ("x", "y")), "c is neither x nor y"),
        (Condition("c", "not in", tuple("xyz")), "c is none of x, y, z"),
        (Condition("c", "in", ()), "c is none of its values"),
        (
            Condition("c", "in", tuple(range(10))),
            "c is one of 0, 1, 2, 3, 4, 5, 6, 7, ... (2 more)",
        ),
        (Condition("n", "<=", 0.5), "n is at most 0.5"),
        (Condition("n", ">", -3.0), "n is above -3"),
        (Condition("n", "within", (1.0, 2.5)), "n is above 1 and at most 2.5"),
        (Condition("n", "is missing"), "n is missing"),
        (Condition("n", "is known"), "n is known"),
        (Condition("a\nb", "=", ""), "a\\nb is ''"),
    ],
)
def test_conditions_as_people_say_them(condition, expected):
    assert said(condition) == expected


def test_new_conditions_in_signs():
    assert phrase(Condition("n", "within", (1.0, 2.5))) == "1 < n <= 2.5"
    assert phrase(Condition("c", "not in", ("x", "y"))) == "c not in {x, y}"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (0.0, "0 %"),
        (2 / 14, "14 %"),
        (0.125, "13 %"),
        (0.00123, "0.12 %"),
        (0.9901, "99.0 %"),
        (0.99997, "99.997 %"),
        (1.0, "100 %"),
    ],
)
def test_shares_in_percent(part, expected):
    assert percent(part) == expected


def test_intervals_are_never_written_narrower_than_they_are():
    assert percent_range(0.342, 1.0) == "34-100 %"
    assert percent_range(0.3499, 0.9501) == "34-96 %"
    assert percent_range(0.0, 0.11) == "0-11 %"


@pytest.mark.parametrize("cases", [1, 2, 7, 30, 1000])
def test_the_interval_solves_its_equation(cases):
    """Both ends are 1.96 standard deviations, of their own, from what was seen."""
    for right in range(0, cases + 1, max(1, cases // 7)):
        part = right / cases
        low, high = share_interval(part, cases, INTERVAL)
        assert 0 <= low <= part <= high <= 1
        for end in (low, high):
            if end in (0.0, 1.0) or abs(end - part) < 1e-12:
                continue
            distance = abs(part - end) / math.sqrt(end * (1 - end) / cases)
            assert distance == pytest.approx(1.959963984540054)


def test_the_interval_goes_by_cases_not_by_weight():
    X = {"c": ["x", "x", "y"]}
    one = fit_tree(X, ["a", "b", "b"], sample_weight=[3, 1, 4]).rules()[0]
    other = fit_tree(X, ["a", "b", "b"], sample_weight=[0.3, 0.1, 0.4]).rules()[0]
    assert one.interval == pytest.approx(other.interval)
    assert one.interval == pytest.approx(share_interval(0.5, 2, INTERVAL))
    assert (one.coverage, other.coverage) == pytest.approx((2 / 3, 2 / 3))
    assert (one.weight_coverage, one.weight_share) == pytest.approx((0.5, 0.75))


# -- Many rules as one thing


def test_rules_behave_like_a_list():
    rules = weather().rules()
    listed = list(rules)
    assert rules == listed
    assert listed == rules
    assert rules == tuple(listed)
    assert rules != listed[1:]
    assert rules != "rules"
    assert rules[0] == listed[0]
    assert rules[-1] == listed[-1]
    assert rules[1:3] == listed[1:3]
    assert isinstance(rules[1:3], Rules)
    assert len(rules) == 5
    assert listed[2] in rules
    assert rules.index(listed[2]) == 2
    assert list(reversed(rules)) == listed[::-1]
    assert rules + listed[:1] == [*listed, listed[0]]
    assert repr(rules) == "<5 rules of branchwise>"
    assert str(rules) == "\n".join(map(str, listed))
    with pytest.raises(TypeError):
        hash(rules)


def test_sorting_and_filtering():
    rules = weather().rules()
    assert [rule.n for rule in rules] == [4, 3, 2, 2, 3]
    by_coverage = rules.sort_by("coverage")
    assert [rule.n for rule in by_coverage] == [4, 3, 3, 2, 2]
    # Of equals the first in the tree.
    assert [rule.node for rule in by_coverage] == [1, 4, 7, 5, 6]
    assert by_coverage.sort_by("tree") == rules
    assert [rule.node for rule in rules.for_class("no")] == [5, 7]
    backwards = rules.for_class("no").sort_by("coverage")
    assert [rule.node for rule in backwards] == [7, 5]
    assert [rule.node for rule in backwards.sort_by("tree")] == [5, 7]
    assert [rule.node for rule in backwards[:1]] == [7]


def test_sorting_by_confidence():
    data = datasets.load("tennis")
    rules = fit_tree(data.X, data.y, Recipe(max_depth=1)).rules()
    assert [rule.confidence for rule in rules] == [1.0, 0.6, 0.6]
    by_confidence = rules[::-1].sort_by("confidence")
    assert [rule.confidence for rule in by_confidence] == [1.0, 0.6, 0.6]
    assert by_confidence == rules


def numbers() -> Rules:
    model = CARTRegressor(max_depth=1).fit({"x": [1.0, 2.0]}, [1.0, 3.0]).model_
    return model.rules()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: weather().rules().sort_by("size"),
            "order must be 'tree' or 'coverage' or 'confidence'. Got 'size' instead.",
        ),
        (
            lambda: numbers().sort_by("confidence"),
            (
                "order 'confidence' needs rules that predict classes. These predict "
                "numbers; use 'coverage' or 'tree'."
            ),
        ),
        (
            lambda: weather().rules().for_class("maybe"),
            "label must be one of the classes 'no', 'yes'. Got 'maybe' instead.",
        ),
        (
            lambda: numbers().for_class(1.0),
            (
                "for_class needs rules that predict classes. These predict numbers; "
                "filter them by rule.label."
            ),
        ),
        (
            lambda: weather().rules().to_frame("excel"),
            (
                "library must be 'pandas', 'polars', 'pyarrow' or None, which is the "
                "first of them that is installed. Got 'excel' instead."
            ),
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ParameterError) as error:
        call()
    assert str(error.value) == message


# -- In many forms


def test_text_and_markdown():
    rules = weather().rules(simplify=True)
    text = rules.to_text().splitlines()
    assert text[:5] == [f"{at}. {rule.sentence()}" for at, rule in enumerate(rules, 1)]
    assert text[5:] == ["", rules.note]
    assert rules.to_markdown().splitlines()[0] == text[0]


def test_markdown_shows_names_as_they_are():
    name = "a|b <script> *x* [y](https://z.org) `q` m_n www.z.org x@z.org"
    model = fit_tree({name: ["</p>", "ok"]}, ["=cmd|' /C calc'!A0", "\\n"])
    first = model.rules().to_markdown().splitlines()[0]
    assert first.startswith(
        r"1. If a\|b \<script\> \*x\* \[y\](https\://z.org) \`q\` m\_n www\.z.org "
        r"x\@z.org is \</p\>, then the prediction is =cmd\|' /C calc'!A0 ("
    )


def test_a_table_of_rules():
    columns = weather().rules().to_columns()
    assert list(columns) == [
        *("rule", "conditions", "label", "cases", "right"),
        *("coverage", "confidence", "low", "high", "node"),
    ]
    assert columns["rule"] == [1, 2, 3, 4, 5]
    assert columns["conditions"][3] == "outlook = sunny and humidity <= 80"
    assert columns["label"] == ["yes", "yes", "no", "yes", "no"]
    assert columns["cases"] == columns["right"] == [4, 3, 2, 2, 3]
    assert columns["coverage"] == [4 / 14, 3 / 14, 2 / 14, 2 / 14, 3 / 14]
    assert columns["low"][2] == pytest.approx(2 / (2 + 1.959963984540054**2))
    assert columns["node"] == [1, 4, 5, 6, 7]
    number = numbers().to_columns()
    assert list(number) == [
        *("rule", "conditions", "mean", "deviation", "cases", "coverage", "node")
    ]
    assert number["mean"] == [1.0, 3.0]


@pytest.mark.parametrize(
    ("library", "kind"),
    [
        (None, pd.DataFrame),
        ("pandas", pd.DataFrame),
        ("polars", pl.DataFrame),
        ("pyarrow", pa.Table),
    ],
)
def test_a_frame_of_any_library(library, kind):
    rules = weather().rules()
    frame = rules.to_frame(library)
    assert isinstance(frame, kind)
    got = frame.to_pydict() if kind is pa.Table else frame.to_dict()
    as_lists = {
        name: list(cells.values()) if isinstance(cells, dict) else list(cells)
        for name, cells in got.items()
    }
    assert as_lists == rules.to_columns()


def test_a_frame_without_the_library(monkeypatch):
    monkeypatch.setattr(make, "find_spec", lambda _: None)
    with pytest.raises(ParameterError) as error:
        weather().rules().to_frame("polars")
    assert str(error.value) == (
        "library must be installed to make its dataframes: polars is not. Run pip "
        "install polars, or name another of 'pandas', 'polars', 'pyarrow'."
    )
    monkeypatch.setattr(make, "find_spec", lambda name: name != "pandas" or None)
    assert isinstance(weather().rules().to_frame(), pl.DataFrame)


def test_json_has_every_number():
    rules = weather().rules(simplify=True)
    document = json.loads(rules.to_json())
    assert document == json.loads(json.dumps(rules.to_dict()))
    assert (document["format"], document["version"]) == ("branchwise-rules", 1)
    assert (document["target"], document["classes"]) == ("play", ["no", "yes"])
    assert document["note"] == rules.note
    fourth = document["rules"][3]
    assert fourth["conditions"] == [
        {"column": "outlook", "op": "=", "value": "sunny"},
        {"column": "humidity", "op": "<=", "value": 80.0},
    ]
    assert fourth["counts"] == [
        {"class": "no", "cases": 0.0},
        {"class": "yes", "cases": 2.0},
    ]
    assert fourth["interval"] == list(rules[3].interval or ())
    assert (fourth["text"], fourth["sentence"]) == (
        str(rules[3]),
        rules[3].sentence(),
    )
    number = json.loads(numbers().to_json())["rules"][0]
    assert (number["mean"], number["deviation"], number["cases"]) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    "name", ['"rules": []', "quo\"te', \n\0 \u202e 🌳 --", "*/ </script>", "=1+1"]
)
def test_odd_names_are_kept_exactly(name):
    model = fit_tree({name: [name, "b"], "n": [1, 1]}, [name + "!", "no"])
    (rule, other) = sorted(
        json.loads(model.rules().to_json())["rules"], key=lambda r: r["label"] == "no"
    )
    assert (rule["conditions"][0]["column"], rule["label"]) == (name, name + "!")
    assert rule["conditions"][0]["value"] == name
    assert other["label"] == "no"
    assert len(model.rules().to_text().splitlines()) == 4


def test_long_sets_are_cut_short_in_print_only():
    rules = Rules([Rule((), "no", 1.0, {"no": 1.0}, 0)] * 1200, SCHEMA)
    assert str(rules).splitlines()[1000:] == [
        "... (1,200 rules; to_text() has all of them)"
    ]
    assert len(rules.to_text().splitlines()) == 1200


# -- What no rule speaks of


def noted(recipe: Recipe, **columns: list[Any]) -> str:
    X = columns or {"c": ["x", "x", "y", None], "n": [1.0, 2.0, 3.0, 3.0]}
    if recipe.missing == "error":
        X = {"c": ["x", "x", "y", "y"], "n": [1.0, 2.0, 3.0, 4.0]}
    return fit_tree(X, ["a", "b", "a", "b"], recipe).rules().note


KNOWN = "The rules are about known values. A missing value"
ELSEWHERE = (
    " A value that training had, but not at this split, gets the prediction of the "
    "node."
)
STOPS = "stops at the split and gets the prediction of that node"


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (
            Recipe(missing="node", unseen="node"),
            f"{KNOWN}, or one that training did not have, {STOPS}.{ELSEWHERE}",
        ),
        (
            Recipe(missing="split", unseen="largest"),
            (
                f"{KNOWN} goes down every branch, by weight; one that training did not "
                f"have follows one of the branches.{ELSEWHERE}"
            ),
        ),
        (
            Recipe(missing="error", unseen="error"),
            f"{KNOWN}, or one that training did not have, is refused.{ELSEWHERE}",
        ),
    ],
)
def test_the_note_says_what_no_rule_speaks_of(recipe, expected):
    assert noted(recipe) == expected


def test_the_note_on_branches_of_missing_values_and_on_surrogates():
    own = fit_tree({"c": ["x", "y", None]}, ["a", "b", "a"]).rules().note
    branch = "follows the branch of missing values, which has its own rules"
    assert f"{KNOWN} {branch}; one that training did not have {STOPS}." in own
    X = {"n": [1.0, 2.0, 3.0, 4.0, 5.0, None], "m": [1.0, 2.0, 2.5, 4.0, 5.0, 3.0]}
    model = CARTClassifier(missing="surrogate").fit(X, list("aaabbb")).model_
    assert model.tree.surrogates is not None
    assert "is replaced by other columns (surrogates)" in model.rules().note
    numeric = fit_tree({"n": [1.0, 2.0]}, ["a", "b"], Recipe(missing="node"))
    assert numeric.rules().note == f"{KNOWN} {STOPS}."
    assert fit_tree({"n": [1.0, 1.0]}, ["a", "b"]).rules().note == ""


# -- Large and deep trees


def test_a_list_with_as_many_branches_is_narrowed_quickly():
    values = tuple(range(4000))
    schema = Schema((Column("c", "categorical", values),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[8000, 1])
    most = builder.child(0, "c", values=values[:-1], weights=[8000, 0])
    builder.child(0, "c", values=values[-1:], weights=[0, 1])
    for value in values[:-1]:
        builder.child(most, "c", values=[value], weights=[2, 0])
    rules = Model(schema, builder.build(), Recipe()).rules(simplify=True)
    assert [rule.conditions for rule in rules[:2]] == [
        (Condition("c", "=", 0),),
        (Condition("c", "=", 1),),
    ]


def test_paths_share_what_they_ask():
    """Long lists at the top of a tree are not copied for every leaf."""
    values = tuple(range(2000))
    schema = Schema((Column("c", "categorical", values), Column("n", "numeric")), (0,))
    builder = TreeBuilder(schema, weights=[5000])
    node = builder.child(0, "c", values=values[:1500], weights=[4000])
    for cut in range(1500):
        builder.child(node, "n", at_most=cut, weights=[1])
        node = builder.child(node, "n", above=cut, weights=[3999 - cut])
    rules = Model(schema, builder.build(), Recipe()).rules()
    first = rules[0].conditions[0]
    assert all(rule.conditions[0] is first for rule in rules)
    assert len(rules) == 1501


def test_c45_rules_of_divided_cases():
    """Weights that are not whole: amounts and shares of what is there."""
    X = {"c": ["x", "x", "y", "y", None], "n": [1.0, 2.0, 3.0, 4.0, 5.0]}
    model = C45Classifier(prune=False, min_samples_branch=1).fit(X, list("aabbb"))
    rules = model.model_.rules(simplify=True)
    assert sum(rule.n for rule in rules) == pytest.approx(5.0)
    assert all(rule.sentence() for rule in rules)
    written = csv.DictReader(io.StringIO(rules.to_frame().to_csv()))
    assert [float(line["cases"]) for line in written] == [rule.n for rule in rules]


@pytest.mark.slow
def test_a_hundred_thousand_leaves_and_a_hundred_thousand_levels():
    rng = np.random.default_rng(0)
    X = {f"x{at}": rng.integers(0, 2000, 400_000).astype(float) for at in range(6)}
    y = rng.integers(0, 2, 400_000)
    model = fit_tree(X, y)
    rules = model.rules(simplify=True)
    assert len(rules) == model.tree.n_leaves > 100_000
    assert sum(rule.n for rule in rules) == 400_000
    text = rules.sort_by("coverage").to_text()
    assert text.count("\n") == len(rules) + 1
    assert len(json.loads(rules.to_json())["rules"]) == len(rules)

    schema = Schema((Column("n", "numeric"),), ("no", "yes"))
    builder = TreeBuilder(schema, weights=[1e6, 0])
    node = 0
    for cut in range(100_000):
        builder.child(node, "n", at_most=cut, weights=[1, 0])
        node = builder.child(node, "n", above=cut, weights=[1e6 - 1 - cut, 0])
    deep = Model(schema, builder.build(), Recipe()).rules(simplify=True)
    assert str(deep[99_999].conditions[0]) == "99998 < n <= 99999"
