"""The command line: diff."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from branchwise import datasets
from command_line import output, refusal, run

WEATHER = datasets.path("weather")


@pytest.fixture
def trees(tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    output("fit", WEATHER, "-t", "play", "-a", "id3", "-o", old)
    output("prune", old, "--collapse", 3, "-o", new)
    return old, new


def test_with_and_without_rows(trees):
    text = output("diff", *trees)
    assert text.endswith("splits on humidity <= 80 -> no (5/2)\n")
    assert "Answers" not in text
    text = output("diff", *trees, WEATHER)
    assert (
        "\nPredictions: 2 of 14 rows change (85.7 % agree)\nAccuracy: 1 -> 0.8" in text
    )
    document = json.loads(output("diff", *trees, WEATHER, "--format=json"))
    assert [row["row"] for row in document["predictions"]["changed"]] == [8, 10]
    assert "### Split removed: 1" in output("diff", *trees, "--format=markdown")


def test_the_truth_may_be_elsewhere_or_have_gaps(trees, tmp_path):
    text = Path(WEATHER).read_text(encoding="utf-8")
    data = tmp_path / "data.csv"
    data.write_text(text.replace("play", "truth", 1), encoding="utf-8")
    assert "Accuracy" not in output("diff", *trees, data)
    assert "Accuracy: 1 -> 0.8571" in output("diff", *trees, data, "--target=truth")
    header, first, *rest = text.splitlines()
    first = first.rpartition(",")[0] + ",?"
    data.write_text("\n".join([header, first, *rest]), encoding="utf-8")
    assert "Accuracy: 1 -> 0.8462" in output("diff", *trees, data)


def test_exit_codes(trees):
    old, new = trees
    assert run("diff", old, new)[0] == 0
    assert run("diff", old, new, "--exit-code")[0] == 1
    assert run("diff", old, new, WEATHER, "--exit-code")[0] == 1
    assert run("diff", old, old, WEATHER, "--exit-code")[0] == 0


def test_numbers(tmp_path):
    iris = datasets.path("iris")
    paths = []
    for depth in (1, 2):
        paths.append(tmp_path / f"{depth}.json")
        output(
            *("fit", iris, "-t", "petalwidth", "--algorithm=cart", "--regression"),
            *("--max-depth", depth, "-o", paths[-1]),
        )
    assert "R^2: " in output("diff", *paths, iris)


def test_refusals(trees, tmp_path):
    assert refusal("diff", *trees, "--target=play", code=2) == (
        "--target names a column of a TABLE. Give one, too."
    )
    assert refusal("diff", *trees, datasets.path("iris")).startswith(
        "The old model cannot read it. "
    )
    assert refusal("diff", *trees, WEATHER, "--target=pay").startswith(
        f"{WEATHER} has no column 'pay'."
    )
    assert refusal("diff", "-", "-", code=2).startswith("OLD and NEW are both -")


def test_help():
    assert "\n    branchwise diff " in output("diff", "--help")
