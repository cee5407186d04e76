"""Summaries of ensembles in words, and their pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import branchwise
from branchwise import (
    BoostedClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    datasets,
)
from forest_tables import mixed

IRIS = datasets.load("iris")


@pytest.mark.parametrize(
    ("estimator", "sentences"),
    [
        (
            RandomForestClassifier(n_estimators=4),
            [
                "A forest of 4 CART trees predicts classes ('Iris-setosa', ",
                "Each node has 2 of 4 columns as candidates, drawn at random.",
                "Probabilities are the averages of those of the trees.",
                "Out of bag, ",
            ],
        ),
        (
            RandomForestClassifier(n_estimators=4, voting="hard", bootstrap=False),
            ["Each tree votes for a class; the most frequent is predicted."],
        ),
        (
            BoostedClassifier(n_estimators=3),
            ["Boosting of 3 C4.5 trees", "with a weight of "],
        ),
        (
            GradientBoostingClassifier(n_estimators=3),
            [
                "Gradient boosting of 9 CART trees in 3 rounds predicts",
                "add up to a margin of each class, from which probabilities follow.",
            ],
        ),
    ],
)
def test_sentences(estimator: Any, sentences: list[str]) -> None:
    model = estimator.fit(IRIS.X, IRIS.y).model_
    summary = model.summary()
    text = str(summary)
    for sentence in sentences:
        assert sentence in text
    told = json.loads(summary.to_json())
    assert told["trees"] == len(model) == len(told["leaves"]) == len(told["depths"])
    assert told["nodes"] == sum(map(len, model.trees))
    assert sum(told["importances"].values()) == pytest.approx(1)
    assert next(iter(told["importances"])) in ("petallength", "petalwidth")
    assert "| petalwidth |" in summary.to_markdown()


def test_numbers() -> None:
    X, _ = mixed(100)
    y = X.pop("income")
    forest = RandomForestRegressor(n_estimators=4).fit(X, y).model_
    assert "A forest of 4 CART trees predicts income from" in str(forest.summary())
    assert "Out of bag, R squared is " in str(forest.summary())
    assert "is the average of the trees." in str(forest.summary())
    for loss, words in (
        ("squared_error", "add up to the prediction."),
        ("poisson", "add up to the logarithm of the prediction."),
    ):
        boosted = GradientBoostingRegressor(n_estimators=2, loss=loss)
        assert words in str(boosted.fit(X, y - y.min()).model_.summary())


def test_pages_of_ensembles_without_rows(tmp_path: Path) -> None:
    X, y = mixed(100)
    X = X.rename(columns={"income": "<script>"})
    forest = RandomForestClassifier(n_estimators=3).fit(X, y).model_
    forest.save(tmp_path / "forest.json")
    again: Any = branchwise.load(tmp_path / "forest.json")
    assert "which a model file does not hold." in str(again.summary())
    assert again.summary().oob_score is None
    boosted = BoostedClassifier(n_estimators=2).fit(X, y).model_
    for model in (again, boosted):
        page = model.to_html()
        assert "<title>" in page
        assert "<script>&" not in page
        assert "&lt;script&gt;" in page
        assert "iframe" not in page
        model.to_html(tmp_path / "page.html", title="A <b> title")
        written = (tmp_path / "page.html").read_text("utf-8")
        assert "<h1>A &lt;b&gt; title</h1>" in written


def test_a_single_leaf() -> None:
    one = BoostedClassifier(n_estimators=3).fit({"a": [1, 1]}, ["no", "no"])
    text = one.model_.summary().to_text()
    assert "A tree has 1 leaf, and a depth of 0." in text
    assert "with a weight of 1." in text
    assert "Which columns matter" in one.to_html()
