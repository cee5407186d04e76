"""Results in notebooks and as dataframes: short, escaped, and with all figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    ID3Classifier,
    RandomForestClassifier,
    datasets,
    inspect_table,
)
from branchwise.evaluation import compare, cross_validated, learning_curve, search
from branchwise.evaluation.model_scores import ClassScores, NumberScores

TENNIS = datasets.load("tennis")
IRIS = datasets.load("iris")
HOSTILE = "<script>&\"'"


def hostile_table() -> tuple[dict[str, list[Any]], list[str]]:
    """Return a table whose names and values would be HTML."""
    column = [HOSTILE, "plain"] * 10
    return {HOSTILE: column, "id": [f"a{n}" for n in range(20)]}, column


def class_scores() -> ClassScores:
    return ClassScores.compare(
        np.array([0, 1, 1]),
        np.array([0, 1, 0]),
        np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]),
        ["a", "b"],
    )


def number_scores() -> NumberScores:
    return NumberScores.compare(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.5, 4.0]))


def rule_list() -> Any:
    model = C45Classifier().fit(IRIS.X, IRIS.y).model_
    return model.generalised_rules(IRIS.X, IRIS.y)


def pruning_table() -> Any:
    return CARTClassifier().fit(TENNIS.X, TENNIS.y).model_.pruning_path()


def grid_search(grid: dict[str, Any]) -> Any:
    return search(CARTClassifier(), IRIS.X, IRIS.y, grid, cv=3)


RESULTS: dict[str, tuple[Callable[[], Any], str, list[str], int]] = {
    "compare": (
        lambda: compare(["id3", "cart"], TENNIS.X, TENNIS.y, cv=3),
        "<comparison by accuracy: id3 ",
        ["algorithm", "accuracy", "accuracy low", "fit seconds"],
        3,
    ),
    "cross_validated": (
        lambda: cross_validated(ID3Classifier(), TENNIS.X, TENNIS.y, cv=3, name="id3"),
        "<evaluation of id3: accuracy ",
        ["score", "mean", "low", "high", "deviation"],
        8,
    ),
    "search": (
        lambda: grid_search({"max_depth": [1, 2, None]}),
        "<search of 3 candidates: best accuracy 0.9",
        ["rank", "max_depth", "mean_test", "test_2", "train_0"],
        3,
    ),
    "inspect_table": (
        lambda: inspect_table(*hostile_table()),
        "<2 findings: leak (",
        ["kind", "columns", "message", "advice"],
        2,
    ),
    "rules": (
        lambda: ID3Classifier().fit(TENNIS.X, TENNIS.y).rules(),
        "<5 rules of branchwise>",
        ["rule", "conditions", "label", "cases", "confidence"],
        5,
    ),
    "rules of a forest": (
        lambda: (
            RandomForestClassifier(n_estimators=5, random_state=0)
            .fit(IRIS.X, IRIS.y)
            .rules(at_most=2)
        ),
        "<2 rules of a forest of 5 trees, otherwise ",
        ["rule", "conditions", "frequency"],
        2,
    ),
    "table of rules": (
        lambda: rule_list().table(),
        "<table of 5 rules, otherwise ",
        ["rule", "estimated_error", "conditions"],
        6,
    ),
    "pruning table": (
        pruning_table,
        "<pruning table: ",
        ["alpha", "n_leaves", "train_error"],
        3,
    ),
    "learning curve": (
        lambda: learning_curve(ID3Classifier(), IRIS.X, IRIS.y, sizes=(0.5, 1.0), cv=3),
        "<learning curve: accuracy 0.9",
        ["rows", "train", "test"],
        2,
    ),
    "scores of classes": (
        class_scores,
        "<scores of 2 classes: accuracy 0.6667, 3 rows>",
        ["class", "precision", "recall", "f1", "rows"],
        2,
    ),
    "scores of numbers": (
        number_scores,
        "<scores of numbers: R^2 0.9464, 3 rows>",
        ["r2", "mean_absolute_error"],
        1,
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_show_themselves(name: str) -> None:
    make, short, columns, n_rows = RESULTS[name]
    found = make()
    assert repr(found).startswith(short)
    assert len(repr(found)) <= 250
    assert "\n" not in repr(found)
    page = found._repr_html_()
    assert "<table>" in page
    assert "<script" not in page
    for library in ("pandas", "polars"):
        frame = found.to_frame(library)
        assert frame.shape[0] == n_rows
        assert set(columns) <= set(frame.columns)


def test_names_in_tables_are_escaped() -> None:
    X, y = hostile_table()
    shown = inspect_table(X, y)._repr_html_()
    assert "&lt;script&gt;&amp;" in shown
    rules = ID3Classifier().fit({HOSTILE: X[HOSTILE]}, y).rules()
    assert "&lt;script&gt;&amp;" in rules._repr_html_()
    assert "&lt;script&gt;&amp;" in rules.to_html()


def test_findings_are_a_list() -> None:
    assert inspect_table({"x": ["a", "b"] * 10}) == []
    nothing = inspect_table({"x": ["a", "b"] * 10})
    assert repr(nothing) == "<0 findings>"
    assert "Nothing seems wrong" in nothing._repr_html_()
    assert len(nothing.to_frame()) == 0


def test_a_frame_of_parameters_of_several_types() -> None:
    found = grid_search({"ccp_alpha": [0.0, "1-se"], "max_depth": [None, 2]})
    frame = found.to_frame("polars")
    assert set(frame["ccp_alpha"]) == {"0", "1-se"}
    assert set(frame["max_depth"]) == {None, 2}
    scores = frame.select("test_0", "test_1", "test_2").mean_horizontal()
    assert scores.to_list() == pytest.approx(frame["mean_test"].to_list())
    assert found.to_csv().splitlines()[0].split(",") == frame.columns


def test_long_results_are_cut_in_notebooks() -> None:
    found = grid_search({"min_samples_leaf": list(range(1, 26))})
    assert found._repr_html_().count("<tr>") == 21
    assert "... and 5 more" in found._repr_html_()
    numbers = {"x": list(range(150))}
    rules = ID3Classifier().fit(numbers, [n % 2 for n in range(150)]).rules()
    assert rules._repr_html_().count("<tr>") == 101
    assert "... (50 more; to_frame() has all of them)" in rules._repr_html_()
    assert rules.to_html().count("<li>") == 150
