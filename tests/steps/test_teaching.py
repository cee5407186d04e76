"""Worked solutions for teaching: folds, worksheets, criteria, rows, the tree so far."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    ParameterError,
    datasets,
)
from branchwise.steps.result import Steps
from branchwise.text.blocks import BLANK

TENNIS = datasets.load("tennis")
WEATHER = datasets.load("weather")


def steps(estimator: Any, data: Any = TENNIS, node: Any = 0, **options: Any) -> Steps:
    model = estimator.fit(data.X, data.y).model_
    return model.steps(data.X, data.y, node, **options)


class Visible(HTMLParser):
    """Collects what a page shows before anything is opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self._folded = 0
        self._summary = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "details":
            self._folded += 1
        self._summary = tag == "summary"

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self._folded -= 1

    def handle_data(self, data: str) -> None:
        if not self._folded or (self._summary and self._folded == 1):
            self.text += data


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        (ID3Classifier(), TENNIS),
        (C45Classifier(), WEATHER),
        (CARTClassifier(), WEATHER),
        (CARTClassifier(missing="learned"), TENNIS),
    ],
    ids=["id3", "c4.5", "cart", "groups"],
)
def test_a_folded_page_gives_nothing_away(estimator: Any, data: Any) -> None:
    found = steps(estimator, data, "all", criteria=["gain", "gini"])
    shown = Visible(found.to_html_fragment()).text.replace("C4.5", "")
    assert "Column outlook" in shown
    assert "Show the choice" in shown
    assert "Node 1" in shown  # closed, without its path
    assert not re.search(r"\d\.\d", shown)  # no figure, no threshold
    for word in ("chosen", "is out", " = ", "<=", "leaf", "predicts", "H"):
        assert word not in shown
    revealed = Visible(found.to_html_fragment(reveal=True)).text
    assert "Node 1: " in revealed
    assert re.search(r"\d\.\d", revealed)


def test_one_node_further_down_says_where_it_is() -> None:
    shown = Visible(steps(ID3Classifier(), node=3).to_html_fragment()).text
    assert "Node 3: outlook = sunny" in shown
    assert "0.971" not in shown


def test_a_worksheet_has_blanks_and_then_the_solutions() -> None:
    found = steps(ID3Classifier(), node="all", rows=True)
    for text in (found.to_text(worksheet=True), found.to_markdown(worksheet=True)):
        text = text.replace("\\_", "_")
        exercise, solutions = re.split("\n(?:# )?Solutions", text)
        assert exercise.startswith(("Worksheet: ID3, gain", "# Worksheet: ID3, gain"))
        assert not re.search(r"\d\.\d", exercise)
        assert f"H(outlook = sunny) = {BLANK}" in exercise
        assert f"gain(wind) = {BLANK}" in exercise
        assert f"The column that is chosen: {BLANK}, because" in exercise
        assert f"Node 2: {BLANK}" in exercise
        assert "outlook is chosen" not in exercise
        assert "Node 1" not in exercise  # a leaf
        assert "gain(outlook) = 0.940 - 0.694 = 0.247" in solutions
        assert "outlook is chosen" in solutions
        assert "Node 2: outlook = rainy" in solutions


@pytest.mark.parametrize("estimator", [C45Classifier(), CARTClassifier()])
def test_a_worksheet_does_not_tell_thresholds_and_groups(estimator: Any) -> None:
    text = steps(estimator, WEATHER).to_text(worksheet=True)
    exercise = text.split("\nSolutions")[0]
    assert exercise.count("Find the best threshold.") == 2
    assert "<=" not in exercise
    assert "{" not in exercise
    assert f"(S | humidity) = {BLANK}" in exercise
    if isinstance(estimator, C45Classifier):
        assert exercise.count("gain ratio(") == 4


def test_a_worksheet_of_numbers() -> None:
    X = {"rooms": [2, 3, 3, 4, 5, 5], "garden": ["no", "no", "yes", "yes", "no", "yes"]}
    rent = [500, 600, 650, 800, 900, 1000]
    model = CARTRegressor().fit(X, rent).model_
    exercise = model.steps(X, rent, "all").to_text(worksheet=True)
    exercise = exercise.split("\nSolutions")[0]
    assert f"Var(S) = {BLANK}" in exercise
    assert f"{BLANK} cases, mean {BLANK}" in exercise


def test_worksheets_as_pages_and_in_latex() -> None:
    found = steps(ID3Classifier(), node="all")
    page = found.to_html(worksheet=True)
    assert "<title>Worksheet: ID3, gain</title>" in page
    assert '<h1 class="new-page">Solutions: ID3, gain</h1>' in page
    assert "<details>" not in page
    latex = found.to_latex(worksheet=True)
    assert "\\clearpage\n\\section*{Solutions: ID3{,} gain}" in latex
    assert r"\text{H}(\text{S}) &= \rule{5em}{0.4pt}" in latex


def test_criteria_side_by_side() -> None:
    names = ["gain", "gain_ratio", "gini"]
    found = steps(ID3Classifier(), criteria=names)
    gain, ratio, gini = found[0].by_criterion
    assert gain.chosen == ratio.chosen == gini.chosen == "outlook"
    for one, name in ((gain, "gain"), (ratio, "gain_ratio"), (gini, "gini")):
        own = steps(ID3Classifier(criterion=name))[0]
        assert one.scores == {c.column: c.score for c in own.candidates}
    text = str(found)
    assert "column          gain  gain_ratio     gini\n" in text
    assert "outlook        0.247       0.156    0.116\n" in text
    assert "All of them choose outlook." in text
    assert found.to_dict()["nodes"][0]["by_criterion"][1]["criterion"] == "gain_ratio"


def test_criteria_that_differ() -> None:
    # Many values raise the gain, and lower the gain ratio.
    X = {"id": list("abcdefgh"), "half": ["x", "x", "x", "x", "x", "y", "y", "y"]}
    y = ["n", "n", "n", "n", "p", "p", "p", "p"]
    model = ID3Classifier().fit(X, y).model_
    text = str(model.steps(X, y, criteria=["entropy", "gain_ratio", "gini"]))
    assert "chosen     id        half     id\n" in text
    assert "They differ. gain and gini: id; gain_ratio: half." in text


def test_criteria_of_numbers_and_of_c45() -> None:
    X, y = {"x": [1, 2, 3, 4]}, [1.0, 1.0, 4.0, 5.0]
    model = CARTRegressor().fit(X, y).model_
    found = model.steps(X, y, criteria=["variance", "poisson"])
    assert [one.chosen for one in found[0].by_criterion] == ["x", "x"]
    found = steps(C45Classifier(), WEATHER, criteria=["gain", "gain_ratio"])
    assert [one.chosen for one in found[0].by_criterion] == ["outlook", "outlook"]


@pytest.mark.parametrize("criteria", [["gain", "variance"], "gain", ["best"], 3])
def test_criteria_that_do_not_suit(criteria: Any) -> None:
    with pytest.raises(ParameterError, match=r"criteria must be a list of names among"):
        steps(ID3Classifier(), criteria=criteria)


def test_the_rows_of_a_node() -> None:
    found = steps(ID3Classifier(), node=[0, 3], rows=True)
    assert found[0].rows is not None
    assert found[0].rows.total == 14
    assert found[3].rows is not None
    assert [cells[0] for cells in found[3].rows.cells] == ["0", "1", "7", "8", "10"]
    assert {cells[1] for cells in found[3].rows.cells} == {"sunny"}
    text = str(found)
    assert "row  outlook  temperature  humidity  wind    class\n" in text
    assert "  7  sunny    medium       high      weak    no\n" in text
    assert steps(ID3Classifier())[0].rows is None


def test_many_rows_missing_cells_and_weights() -> None:
    X = {"x": [1.5, None] * 40, "c": ["a", "b", None, "b"] * 20}
    y = ["p", "q"] * 40
    weights = [1.0, 2.0] * 40
    weights[0] = 0.0
    model = CARTClassifier().fit(X, y, sample_weight=weights).model_
    found = model.steps(X, y, sample_weight=weights, rows=True)[0].rows
    assert found is not None
    assert (found.total, len(found.cells)) == (79, 50)
    assert found.head == ("row", "x", "c", "class", "weight")
    assert found.cells[:2] == (("1", "", "b", "q", "2"), ("2", "1.5", "", "p", "1"))
    text = str(model.steps(X, y, sample_weight=weights, rows=True))
    assert "... and 29 more rows." in text


def test_the_tree_so_far() -> None:
    text = str(steps(ID3Classifier(), node="all"))
    node_2, node_3 = text.split("\nThe tree so far\n~~~~~~~~~~~~~~~\n\n")[1:]
    assert node_2.startswith(
        "outlook = cloudy: yes (4)\n"
        "outlook = rainy:\n"
        "|   wind = strong: no (2)\n"
        "|   wind = weak: yes (3)\n"
        "outlook = sunny: ?\n"
    )
    assert "?" not in node_3
    alone = str(steps(ID3Classifier(), node=3)).split("so far")[1]
    assert "outlook = rainy: ?\n" in alone  # which nothing was told about
    assert "|   humidity = high: no (3)\n" in alone
    assert "so far" not in str(steps(ID3Classifier()))


def test_the_tree_so_far_is_drawn_in_latex() -> None:
    page = steps(ID3Classifier(), node="all").to_latex()
    assert page.count(r"\begin{forest}") == page.count(r"\end{forest}") == 2
    assert r"\usepackage{forest}" in page
    label = r"edge label={node[midway,fill=white,font=\small]{strong}}"
    assert rf"[{{no (2)}},{label}" in page
    assert r"\usepackage{forest}" not in steps(ID3Classifier()).to_latex()


def test_large_trees_are_not_drawn() -> None:
    X = {"x": list(range(80))}
    y = [n % 2 for n in range(80)]
    model = ID3Classifier().fit(X, y).model_
    last = max(model.tree.parent.tolist())
    assert "so far" not in str(model.steps(X, y, node=last))


def test_the_target_is_in_the_title() -> None:
    X = {"outlook": ["a", "b"] * 4, "play": ["yes", "no"] * 4}
    model = ID3Classifier().fit(X, "play").model_
    attributes = {"outlook": X["outlook"]}
    text = str(model.steps(attributes, X["play"]))
    assert text.startswith("Worked solution of play: ID3, gain\n")
