"""The command line: what-if."""

from __future__ import annotations

import json

import pytest

from branchwise import datasets
from command_line import output, refusal

WEATHER = datasets.path("weather")


@pytest.fixture
def tree(model):
    return model("weather")


def test_the_smallest_change(tree):
    options = ("--row=0", "--target=yes", "--immutable=outlook", "--cost=humidity=2")
    assert output("what-if", tree, WEATHER, *options) == (
        "Now: no (no 100 %)\n"
        "\n"
        "yes (yes 100 %) if this changes:\n"
        "  - humidity from 85 to 80 or less\n"
        "Cost 2.\n"
    )
    first = output("what-if", tree, WEATHER)
    assert first == output("what-if", tree, WEATHER, "--row=0")
    several = output("what-if", tree, WEATHER, "--how-many=3", "--format=json")
    assert len(json.loads(several)["alternatives"]) == 3
    assert "### yes" in output("what-if", tree, WEATHER, "--format=markdown")


def test_typed_cells_and_limits(tree):
    row = ("--set=outlook=sunny", "--set=humidity=85", "--set=windy=TRUE")
    text = output("what-if", tree, *row, "--monotone=humidity=down", "--whole=humidity")
    assert "outlook from sunny to overcast" in text
    stuck = output("what-if", tree, *row, "--immutable=outlook,humidity")
    assert "No allowed change gives any class but no." in stuck
    gone = output("what-if", tree, *row, "--immutable=outlook", "--allow-missing")
    assert "humidity from 85 to " in gone


def test_numbers_and_classes_that_are_numbers(tmp_path):
    iris, path = datasets.path("iris"), tmp_path / "m.json"
    output(
        *("fit", iris, "-t", "petalwidth", "--algorithm=cart", "--regression"),
        *("--max-depth=2", "-o", path),
    )
    assert "Cost 1." in output("what-if", path, iris, "--target", ">= 1.5")
    data = tmp_path / "data.csv"
    data.write_text("a,y\nu,1\nv,2\n", encoding="utf-8")
    output("fit", data, "-t", "y", "-a", "id3", "-o", path)
    assert "a from u to v" in output("what-if", path, data, "--target=2")


def test_refusals(tree):
    assert refusal("what-if", tree, WEATHER, "--cost=windy=much", code=2) == (
        "--cost must be COLUMN=COST with a number of at least 0, or inf. Got "
        "'windy=much'."
    )
    assert refusal("what-if", tree, WEATHER, "--target=maybe", code=2).startswith(
        "target must be one of the classes 'no', 'yes'. Got 'maybe'"
    )
    assert refusal("what-if", tree, WEATHER, "--immutable=wind", code=2).startswith(
        "immutable names columns of the tree. Got 'wind'"
    )
    assert refusal("what-if", tree, code=2).startswith("There is no row to look at.")


def test_help():
    assert "\n    branchwise what-if " in output("what-if", "--help")
