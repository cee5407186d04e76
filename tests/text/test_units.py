"""Units of columns and of the target: currencies and per cent, as the file has them."""

from __future__ import annotations

import io
import json
import random
import re

import pytest

from branchwise import (
    BranchwiseWarning,
    ParameterError,
    RandomForestRegressor,
    fit_tree,
    load,
    read_table,
)
from branchwise.data.conventions.number_format import NumberFormat, parse_texts
from branchwise.data.table_schema import Column, Schema
from branchwise.evaluation.model_scores import NumberScores
from branchwise.recipe import Recipe
from branchwise.text.conditions import Condition, phrase, said
from branchwise.text.label_words import NO_UNIT, Unit, target_unit, unit_of
from branchwise.text.labels import with_labels

PERCENT = NumberFormat(",", percent=True)
EURO = NumberFormat(",", currency="€")
RATE = Column("rate", "numeric", number_format=PERCENT)
REGRESSION = Recipe("CART", "variance", branching="two-way", max_depth=2)


def german(number, decimals=2):
    text = f"{number:,.{decimals}f}"
    return text.translate(str.maketrans(",.", ".,"))


@pytest.fixture(scope="module", name="table")
def german_table(tmp_path_factory):
    rng = random.Random(7)
    lines = ["amount;rate;home;margin;fee"]
    for _ in range(120):
        amount, rate = rng.uniform(500, 9000), rng.uniform(0.5, 12)
        home = rng.choice(["rent", "own"])
        margin = 0.4 * rate + (home == "rent") + rng.gauss(0, 0.3)
        fee = 1.1 * amount + rng.gauss(0, 200)
        lines.append(
            f"{german(amount)} €;{german(rate)} %;{home};{german(margin)} %;"
            f"{german(fee)} €"
        )
    path = tmp_path_factory.mktemp("units") / "loans.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.warns(BranchwiseWarning, match="4 text columns are read as numbers"):
        return read_table(path)


@pytest.fixture(scope="module", name="margin")
def margin_tree(table):
    ignored = ["fee", "amount"]
    return fit_tree(table, "margin", REGRESSION, ignore=ignored)


@pytest.fixture(scope="module", name="fee")
def fee_tree(table):
    return fit_tree(table, "fee", REGRESSION, ignore=["margin"])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0439, "4.39"),
        (0.07, "7"),  # 100 * 0.07 is 7.000000000000001
        (0.57, "57"),
        (1.1, "110"),
        (-0.0005, "-0.05"),
        (0.0, "0"),
        (1, "100"),
        (1e-9, "1e-07"),
        (1.25e-9, "1.25e-07"),
        (1e15, "1e+17"),
    ],
)
def test_a_share_is_written_in_per_cent_with_its_own_digits(value, written):
    assert Unit("%", 2).exact(value) == written


def test_what_is_written_is_read_as_the_number_that_decides():
    rng, unit = random.Random(3), Unit("%", 2)
    shares = [rng.random() * 10 ** rng.randint(-2, 2) for _ in range(300)]
    texts = [unit.behind(unit.exact(share)) for share in shares]
    assert parse_texts(texts, NumberFormat(percent=True)) == shares


@pytest.mark.parametrize(
    ("condition", "phrased", "in_a_sentence"),
    [
        (("<=", 0.0439), "rate <= 4.39 %", "rate is at most 4.39 %"),
        ((">", 0.07), "rate > 7 %", "rate is above 7 %"),
        (
            ("within", (0.01, 0.035)),
            "1 < rate <= 3.5 %",
            "rate is above 1 and at most 3.5 %",
        ),
    ],
)
def test_conditions_have_the_unit_of_the_file(condition, phrased, in_a_sentence):
    written = Condition("rate", *condition, RATE)
    assert (phrase(written), said(written)) == (phrased, in_a_sentence)


def test_a_label_says_more_than_the_file():
    schema = Schema((RATE,), (), "gain", target_format=EURO)
    assert (unit_of(RATE), target_unit(schema)) == (Unit("%", 2), Unit("€"))
    assert unit_of(Column("n", "numeric", number_format=NumberFormat(","))) == NO_UNIT
    for unit, expected in (
        ("% p.a.", Unit("% p.a.", 2)),
        ("of 1", Unit("of 1")),  # then these are shares
    ):
        labels = {"rate": {"unit": unit}, "gain": {"unit": "k€"}}
        labelled = with_labels(schema, labels)
        assert unit_of(labelled.columns[0]) == expected
        assert target_unit(labelled) == Unit("k€")


def test_views_of_a_tree_of_per_cent(margin, table):
    decides = repr(float(margin.tree.threshold[0]))
    shown = f"{Unit('%', 2).exact(float(decides))} %"
    steps = margin.steps(table.select(["rate", "home"]), table["margin"], rows=True)
    for view in (
        margin.to_text(),
        margin.to_dot(),
        margin.to_svg(),
        margin.to_text(style="markdown"),
        margin.rules().to_text(),
        steps.to_text(),
    ):
        assert shown in view
        assert decides not in view
    first = steps.to_text()
    assert re.search(r"120 cases, mean [\d.]+ %\.", first)
    assert f"The best is {shown}" in first
    assert re.search(r"(?m)^ *0 +[\d.]+ % +(own|rent) +-?[\d.]+ %$", first)  # the rows
    assert re.search(r"\d % \(\d+, ± [\d.]+ %\)", margin.to_text())
    ends = re.findall(r">(-?[\d.]+ %)<", margin.to_svg())
    assert len(ends) == 2 + margin.tree.n_leaves  # of the scale of colours, too


def test_what_is_not_for_readers_keeps_the_number(margin):
    decides = float(margin.tree.threshold[0])
    view = margin.view()
    assert view["nodes"]["threshold"][0] == decides
    assert (view["unit"], view["percent"]) == ("%", True)
    assert view["columns"][0]["percent"] is True
    assert "percent" not in view["columns"][1]
    rules = json.loads(margin.rules().to_json())["rules"]
    bounds = [c["value"] for rule in rules for c in rule["conditions"]]
    assert decides in bounds
    assert repr(decides) in margin.export("python")
    assert load(margin.to_bytes()).to_text() == margin.to_text()


def test_a_target_in_euros(fee):
    assert fee.schema.target_format.currency == "€"
    assert re.search(r"[\d.]+ € \(\d+, ± [\d.]+ €\)", fee.to_text())
    row = {"amount": "1.500,00 €", "rate": "2,00 %", "home": "own"}
    explained = fee.explain(row, shap=True).to_text()
    for expected in (
        r"^fee: [\d.]+ €\n",
        r"\(it is 1500 €\)",
        r"mean [\d.]+ €, standard deviation [\d.]+ €; 95 % interval",
        r"\(Student\) [\d.]+ € to [\d.]+ €",
        r"base value [\d.]+ €",
        r"[+-][\d.]+ € +1500 €",
    ):
        assert re.search(expected, explained), expected
    rule = fee.rules()[0]
    assert re.search(r"standard deviation [\d.]+ €", str(rule))
    assert " €" in fee.shap(row).to_svg()


def test_forests_of_a_target_with_a_unit(table):
    forest = RandomForestRegressor(n_estimators=8, max_depth=3, random_state=1)
    ensemble = forest.fit(table.drop_columns(["margin", "rate"]), "fee").model_
    row = {"amount": "1.500,00 €", "home": "own"}
    told = ensemble.explain(row).to_text()
    assert re.search(r"8 trees predict [\d.]+ € to [\d.]+ €; ", told)
    assert re.search(r"interval of the target [\d.]+ € to [\d.]+ €", told)
    rules = ensemble.rules()
    assert re.search(r"then fee is [\d.]+ € on average", rules.to_text())
    assert re.search(r"Otherwise, fee is [\d.]+ €", rules.to_text())


def test_a_workbook_shows_units(fee, margin):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    for model, heading, typed, predicted in (
        (fee, "amount, €", 'General" €"', r'#,##0(\.0+)?" €"'),
        (margin, "rate, %", "#,##0.00%", r"#,##0\.0+%"),
    ):
        content = model.export("excel", verify=False)
        book = openpyxl.load_workbook(io.BytesIO(content))
        rows, rules = book["Rows"], book["Rules"]
        assert rows["A1"].value == heading
        assert rows.column_dimensions["A"].number_format == typed
        at = next(c.column for c in rows[1] if c.value == "prediction")
        assert re.fullmatch(predicted, rows.cell(2, at).number_format)
        assert re.fullmatch(predicted, rules["B2"].number_format)
        assert heading[-1] in rules["A2"].value
        guide = " ".join(str(line[0].value) for line in book["How to use"])
        assert ("Columns of per cent" in guide) == ("rate" in heading)


def test_a_readable_threshold_is_as_short_in_per_cent(margin):
    """The shortest decimal between shares is that between their per cents."""
    for threshold in margin.tree.threshold[~margin.tree.is_leaf]:
        if threshold == threshold:
            share = repr(float(threshold)).partition(".")[2].lstrip("0")
            percent = Unit("%", 2).exact(float(threshold)).replace(".", "")
            assert percent.strip("0") == share.strip("0")


def test_findings_have_the_unit(table):
    found = []
    recipe = Recipe("CART", "variance", branching="two-way", min_samples_leaf=100)
    fit_tree(table.select(["home", "fee"]), "fee", recipe, on_finding=found.append)
    assert re.search(r"it predicts the mean, [\d.]+ €, for every row", found[0].message)


def test_what_if_reads_and_writes_units(margin, fee):
    row = {"rate": "7,50 %", "home": "rent"}
    high = margin.predict(row)[0]
    for target in ("<= 2 %", "<= 2,0 %", "<= 0.02", (None, 0.02)):
        found = margin.what_if(row, target).to_text()
        assert re.search(r"rate from 7\.5 % to (more than [\d.]+ and )?", found), found
        assert re.search(r"(at most [\d.]+ %|[\d.]+ % or less)", found), found
    assert high > 0.02
    none = margin.what_if(row, "<= -90 %").to_text()
    assert "No change gives a number <= -90 %" in none
    row = {"amount": "8.000,00 €", "rate": "7,50 %", "home": "rent"}
    assert "amount from 8000 € to " in fee.what_if(row, "<= 6.000 €").to_text()
    with pytest.raises(ParameterError, match="Got '<= 6 %'"):
        fee.what_if(row, "<= 6 %")


def test_ranges_of_training_have_units(margin):
    told = margin.check_table({"rate": [0.5], "home": ["own"]}).to_text()
    assert re.search(r"rate +0 +0 +0 +1 +[\d.]+ to [\d.]+ %", told)


def test_scores_of_a_model(margin, table):
    true = table["margin"].to_numpy()
    scores = NumberScores.compare(true, true + 0.01, target_unit(margin.schema))
    assert re.search(r"mean absolute error +1 %", scores.to_text())
    assert scores.to_dict()["mean_absolute_error"] == pytest.approx(0.01)
    assert "unit" not in scores.to_dict()


def test_rules_of_a_forest_have_titles_and_units(table):
    forest = RandomForestRegressor(n_estimators=8, max_depth=3, random_state=1)
    ensemble = forest.fit(table.drop_columns(["fee", "amount"]), "margin").model_
    assert re.search(r"rate is (at most|above) [\d.]+ %", ensemble.rules().to_text())
    labels = {"rate": "Interest", "home": {"words": {"rent": "rented"}}}
    told = ensemble.with_labels(labels).rules().to_text()
    assert re.search(r"Interest is (at most|above) [\d.]+ %", told)
    assert not re.search(r"\brate\b|\brent\b", told)
