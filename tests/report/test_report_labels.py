"""Titles, units and words for values in all sections of a report."""

from __future__ import annotations

import hashlib
import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from branchwise import (
    CARTClassifier,
    CARTRegressor,
    ParameterError,
    RandomForestClassifier,
)
from branchwise.report import make_report
from command_line import output

LABELS = {
    "inc": {"title": "Net <income>", "unit": "k€"},
    "own": {
        "title": "Housing",
        "words": {"r": "rents", "o": "owns"},
        "order": ["r", "o"],
    },
    "id": "Customer no.",
    "risk": {"title": "Default", "words": {"g": "no default", "b": "default & loss"}},
}


def rows(n=60):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "inc": rng.integers(1, 90, n) + 0.5,
            "own": rng.choice(["r", "o"], n),
            "id": [f"c{at}" for at in range(n)],
        }
    )
    bad = (table["inc"] < 30) & (table["own"] == "r")
    return table, pd.Series(np.where(bad, "b", "g"), name="risk")


@pytest.fixture(scope="module", name="report")
def labelled_report():
    X, y = rows()
    tree = CARTClassifier(max_depth=2)
    return make_report(X.drop(columns="id"), y, tree, cv=2, labels=LABELS)


def words_of(page):
    """Return the words of a page, without the data of its viewer."""
    page = re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", page)
    return page.replace("&nbsp;", " ")


def test_the_page_has_titles_and_words(report):
    page = words_of(report.to_html())
    assert "<h1>Default: report on a decision tree</h1>" in page
    section = dict(re.findall(r'(?s)<section id="(\w+)".*?>(.*?)</section>', page))
    for name, expected in (
        ("data", "Net &lt;income&gt;"),
        ("data", r"owns \("),
        ("data", r"to [\d.]+ k€, median"),
        ("data", "default &amp; loss"),
        ("tree", "Housing"),
        ("tree", r"Net &lt;income&gt; &lt;= [\d.]+ k€"),
        ("rules", "then Default"),
        ("rules", r"Net &lt;income&gt; ≤ [\d.]+ k€"),
        ("rules", "no default"),
        ("root", "The root splits on (Housing|Net &lt;income&gt;)"),
        ("root", r"k€</"),
        ("importances", ">Housing<"),
        ("importances", "Net &lt;income&gt;"),
        ("evaluation", "default &amp; loss"),
        ("reproduce", r"model = tree.model_.with_labels\(labels\)"),
    ):
        assert re.search(expected, section[name]), (name, expected)
    for name in ("data", "rules", "root", "importances", "evaluation"):
        assert not re.search(r">(inc|own|risk|g|b)\b", section[name]), name
    # The viewer and the picture on paper are those of the labelled tree.
    drawn = unescape(re.search(r'(?s)srcdoc="(.*?)"', page)[1])
    assert '"target":"Default"' in drawn
    assert '"name":"Housing"' in drawn


def test_findings_as_values_keep_the_names(report):
    sections = report.sections
    names = ["inc", "own"]
    assert [one["name"] for one in sections["data"]["columns"]] == names
    assert sections["data"]["target"]["name"] == "risk"
    assert [one["class"] for one in sections["evaluation"]["classes"]] == ["b", "g"]
    assert sections["root_split"]["column"] in names
    assert {one["column"] for one in sections["root_split"]["candidates"]} == {*names}
    assert {rule["prediction"] for rule in sections["rules"]["rules"]} == {"b", "g"}
    assert [one["column"] for one in sections["importances"]["columns"]] == names
    assert list(sections["shap"]["mean_size"]) == names
    assert report.model.schema.columns[1].kind == "ordinal"  # the order of the labels
    json.loads(report.to_json())


def test_warnings_and_forests():
    X, y = rows()
    forest = RandomForestClassifier(n_estimators=4, max_depth=3, random_state=1)
    made = make_report(X, y, forest, cv=2, labels=LABELS)
    page = words_of(made.to_html())
    assert "Column &#39;Customer no.&#39; (id) looks like an identifier" in page
    assert "Default: report on a forest" in page
    section = dict(re.findall(r'(?s)<section id="(\w+)".*?>(.*?)</section>', page))
    assert "Otherwise, Default is no default" in section["rules"]
    for name in ("importances", "shap"):
        assert "Housing" in section[name] or "Net &lt;income&gt;" in section[name]
        assert not re.search(r">(inc|own)<", section[name])
    assert "model = forest.model_.with_labels(labels)" in section["reproduce"]


def test_numbers_have_the_unit_of_the_target():
    X, _ = rows()
    labels = {"inc": {"title": "Income", "unit": "k€"}}
    y = X.pop("inc")
    made = make_report(X[["own"]], y, CARTRegressor(max_depth=2), cv=2, labels=labels)
    page = words_of(made.to_html())
    for expected in (
        r"root mean squared error is [\d.]+ k€ \(95 % interval",
        r"<b>[\d.]+ k€</b><span>root mean squared error",
        r">mean</th><td>[\d.]+ k€<",
        r"± [\d.]+ k€</td>",  # of rules
        r"predicted Income \(k€\)<",  # of residuals
        r">Income \(k€\)<",  # of the histogram
        r"mean size of Shapley values \(k€\)",
        r"<td>-?[\d.]+ k€</td>",  # quantiles of errors
    ):
        assert re.search(expected, page), expected


def test_labels_that_cannot_be():
    X, y = rows(20)
    with pytest.raises(ParameterError, match="labels must be a dictionary by column"):
        make_report(X, y, labels=3)


def test_the_command_line(tmp_path):
    X, _ = rows(40)
    lines = ["rate;own;margin"]
    for at, (income, own) in enumerate(zip(X["inc"], X["own"], strict=True)):
        rate = f"{income / 10:.2f}".replace(".", ",")
        lines.append(f"{rate} %;{own};{1 + at % 3 + (own == 'r')},5 %")
    (tmp_path / "loans.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    labels = {"rate": "Interest", "own": LABELS["own"], "margin": "Gain"}
    (tmp_path / "names.json").write_text(json.dumps(labels), encoding="utf-8")
    files = [tmp_path / "loans.csv", "-t", "margin", "--regression", "-a", "cart"]
    files += ["--max-depth", 2, "--labels", tmp_path / "names.json"]
    page, tree = tmp_path / "page.html", tmp_path / "tree.json"
    told = output("report", *files, "--cv", 2, "-o", page, "--format", "json")
    sections = json.loads(told)
    page = words_of(page.read_text(encoding="utf-8"))
    assert "Gain: report on a decision tree" in page
    assert re.search(r"Interest ≤ [\d.]+ %", page)
    assert re.search(r"root mean squared error is [\d.]+ %", page)
    assert sections["data"]["columns"][0]["name"] == "rate"
    assert sections["data"]["columns"][0]["maximum"] < 0.1  # as the model has it
    commands = sections["reproduce"]["commands"]
    assert all("--labels names.json" in command for command in commands)
    assert "with_labels('names.json')" in sections["reproduce"]["python"][-1]
    assert sections["reproduce"]["files"][1]["name"] == "names.json"
    # The command gives the very model of the report.
    output("fit", *files, "-o", tree)
    marked = sections["reproduce"]["model_file"]["sha256"]
    assert hashlib.sha256(tree.read_bytes()).hexdigest() == marked


def test_titles_of_the_file_of_the_table(tmp_path):
    X, y = rows(40)
    columns = {"inc": X["inc"].tolist(), "risk": y.tolist()}
    fields = [
        pa.field("inc", pa.float64(), metadata={"title": "Income", "unit": "k€"}),
        pa.field("risk", pa.string(), metadata={"title": "Default"}),
    ]
    table, page = tmp_path / "rows.parquet", tmp_path / "page.html"
    parquet.write_table(pa.table(columns, schema=pa.schema(fields)), table)
    output("report", table, "-t", "risk", "--cv", 2, "-o", page, "-q")
    told = words_of(page.read_text(encoding="utf-8"))
    assert "Default: report on a decision tree" in told
    assert re.search(r"Income ≤ [\d.]+ k€", told)
