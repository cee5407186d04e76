"""Reports on forests and boosting: findings that others find, too, and safe pages."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from branchwise import (
    BoostedClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RuleClassifier,
    datasets,
)
from branchwise.evaluation import cross_validated
from branchwise.report import EnsembleReport, make_report
from command_line import run

IRIS = datasets.load("iris")
FLOWERS = {name: IRIS.X[name] for name in ("sepallength", "sepalwidth", "petallength")}
WIDTHS = IRIS.X["petalwidth"]


@pytest.fixture(scope="module", name="forest")
def forest_report() -> EnsembleReport:
    """Return the report on a forest."""
    estimator = RandomForestClassifier(n_estimators=8)
    found = make_report(IRIS.X, IRIS.y, estimator, cv=2, target_name="species")
    assert isinstance(found, EnsembleReport)
    return found


def test_findings_are_those_of_the_forest(forest: EnsembleReport) -> None:
    sections = json.loads(forest.to_json())
    own = RandomForestClassifier(n_estimators=8).fit(IRIS.X, IRIS.y)
    scores = cross_validated(own, IRIS.X, IRIS.y, cv=2)
    told = sections["evaluation"]["scores"]["accuracy"]
    assert told["mean"] == scores["accuracy"].mean
    assert sections["evaluation"]["on_training_rows"]["accuracy"] == own.score(
        IRIS.X, IRIS.y
    )
    errors = own.out_of_bag().error_by_trees
    assert sections["error_by_trees"]["errors"] == [
        None if math.isnan(e) else e for e in errors
    ]
    assert sections["error_by_trees"]["rows"] == "out of bag"
    assert sections["best_tree"]["number"] == own.best_tree().number
    assert len(sections["rules"]["rules"]) == len(own.rules())
    assert sections["model"]["trees"] == 8
    assert sections["shap"]["rows"] == list(range(150))
    sizes = own.model_.shap(IRIS.X).importances
    assert sections["shap"]["mean_size"]["petalwidth"] == sizes[3].tolist()
    assert sections["model"]["chosen"] == {"n_estimators": "8"}
    assert repr(forest).startswith("<branchwise report on 150 rows: <branchwise forest")


def test_the_page_of_a_forest(forest: EnsembleReport, tmp_path: Path) -> None:
    forest.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<h1>species: report on a forest</h1>" in page
    assert "A forest of 8 CART trees predicts species from 4 columns of 150" in page
    for title in (
        "The data",
        "How well it does",
        "How many trees it needs",
        "Which columns matter",
        "What columns contribute",
        "In rules",
        "The tree nearest to it",
        "How to reproduce it",
    ):
        assert f"{title}</h2>" in page
    assert "forest = RandomForestClassifier(n_estimators=8)" in page
    assert 'class="viewer"' in page


@pytest.mark.parametrize(
    ("estimator", "rounds"),
    [(BoostedClassifier(n_estimators=3, base="cart", max_depth=1), 3)],
)
def test_boosting(estimator: Any, rounds: int) -> None:
    found = make_report(IRIS.X, IRIS.y, estimator, hold_out=0.3, title="<b>")
    page = found.to_html()
    assert "<h1>&lt;b&gt;</h1>" in page
    assert "How many rounds it needs</h2>" in page
    assert "tested on" in page.lower()
    assert "by an ensemble grown from the others" in page
    assert "In rules</h2>" not in page
    sections = found.sections
    assert len(sections["error_by_trees"]["errors"]) == rounds
    accuracy = sections["evaluation"]["scores"]["accuracy"]["mean"]
    assert sections["error_by_trees"]["errors"][-1] == pytest.approx(1 - accuracy)
    assert sections["rules"] is sections["best_tree"] is None


def test_rules_that_vote() -> None:
    found = make_report(IRIS.X, IRIS.y, RuleClassifier(), hold_out=0.3)
    sections, page = found.sections, found.to_html()
    rules = found.model.voting_rules()
    assert sections["model"]["leaves"] == len(rules)
    assert [rule["vote"] for rule in sections["rules"]["rules"]] == list(rules.votes)
    assert sections["error_by_trees"]["errors"] == []
    assert "by a rule set grown from the others" in page
    assert f"A set of {len(rules)} rules predicts" in page
    assert "rule_set = RuleClassifier()" in page
    for title in ("The rules", "How much they cover", "Which rules overlap"):
        assert f"{title}</h2>" in page
    assert " needs</h2>" not in page
    assert "of the rule sets tested" in page


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestRegressor(n_estimators=4),
        RandomForestRegressor(n_estimators=2, bootstrap=False),
        GradientBoostingRegressor(n_estimators=4),
    ],
)
def test_numbers(estimator: Any) -> None:
    test = ({n: c[:60] for n, c in FLOWERS.items()}, WIDTHS[:60])
    rows = ({n: c[60:] for n, c in FLOWERS.items()}, WIDTHS[60:])
    found = make_report(*rows, estimator, test=test, target_name="width")
    own = estimator.fit(*rows)
    error = np.sqrt(np.mean((own.predict(test[0]) - np.array(test[1])) ** 2))
    assert found.sections["evaluation"]["scores"]["rmse"]["mean"] == pytest.approx(
        error
    )
    page = found.to_html()
    assert "of the test table, which the " in page
    assert "so that points stand in columns" not in page


def test_a_row_that_cannot_be_explained_leaves_shapley_values_out() -> None:
    widths = [None if at % 5 == 0 else w for at, w in enumerate(IRIS.X["petalwidth"])]
    X = dict(IRIS.X) | {"petalwidth": widths}
    found = make_report(X, IRIS.y, BoostedClassifier(n_estimators=2), cv=2)
    assert "is a single one for" in found.sections["shap"]["left_out"]
    assert "is a single one for" in found.to_html()


def test_names_are_escaped() -> None:
    hostile = "</script><script>alert(1)</script>"
    X = {hostile: IRIS.X["petalwidth"], "b": ["<img onerror=x>", "-->"] * 75}
    y = [label.replace("Iris-", "<i>") for label in IRIS.y]
    page = make_report(X, y, RandomForestClassifier(n_estimators=3), cv=2).to_html()
    assert hostile not in page
    assert "<img onerror" not in page
    assert "<i>" not in page


def test_the_command_line(tmp_path: Path) -> None:
    table, page = tmp_path / "iris.csv", tmp_path / "page.html"
    columns = dict(IRIS.X) | {"species": IRIS.y}
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    table.write_text("\n".join([",".join(columns), *lines]), encoding="utf-8")
    given = [str(table), "-t", "species", "-a", "forest", "--n-estimators", "3"]
    code, out, err = run(
        "report", *given, "--cv", "2", "-o", str(page), "--format", "json"
    )
    assert code == 0, err
    assert "report on a forest of 3 CART trees" in err
    told = json.loads(out)["reproduce"]
    assert told["commands"][1].endswith("--output ensemble.json")
    model = tmp_path / "ensemble.json"
    run("fit", *given, "-o", str(model))
    assert (
        hashlib.sha256(model.read_bytes()).hexdigest() == told["model_file"]["sha256"]
    )
