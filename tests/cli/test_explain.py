"""The command line: explain."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from branchwise import datasets, load
from command_line import output, refusal, run

WEATHER = datasets.path("weather")
YES = (
    "play: yes (yes 100 %)\n"
    "  1. outlook = sunny\n"
    "  2. humidity <= 80 (it is 70)\n"
    "Leaf 6 has 2 training cases: yes 2. Share of yes: 100 %, 95 % interval (Wilson) "
    "34.2 % to 100 %.\n"
)


@pytest.fixture
def tree(model):
    return model("weather")


def test_one_row_of_a_table(tree):
    assert output("explain", tree, WEATHER, "--row", 8).startswith("play: yes (yes 100")
    document = json.loads(output("explain", tree, WEATHER, "--row", 8, "--format=json"))
    assert (document["row"], document["prediction"]) == (8, "yes")


def test_typed_cells(tree):
    assert output("explain", tree, "--set", "outlook=sunny", "--set=humidity=70") == YES
    text = output("explain", tree, "--set", "outlook=rainy", "--set", "windy=?")
    assert "windy is missing: the case stops here" in text
    text = output("explain", tree, WEATHER, "--row", 0, "--set", "humidity=70")
    assert text == YES


def test_all_rows_and_an_empty_table(tree, tmp_path):
    text = output("explain", tree, WEATHER)
    assert text.count("\nplay: ") == 14
    assert output("explain", tree, WEATHER, "--format=markdown").startswith(
        "### Row 0\n"
    )
    empty = tmp_path / "empty.csv"
    empty.write_text("outlook,temperature,humidity,windy\n", encoding="utf-8")
    assert output("explain", tree, empty) == "\n"


def test_the_table_from_standard_input(tree):
    new = "outlook,temperature,humidity,windy\nsunny,71,70,TRUE\n"
    assert output("explain", tree, "-", stdin=new) == YES
    assert "80 % interval" in output("explain", tree, "-", "--level=0.8", stdin=new)


def test_refusals(tree):
    assert refusal("explain", tree, code=2) == (
        "There is no row to look at. Give a TABLE, or the cells of a row with --set "
        "COLUMN=VALUE."
    )
    assert refusal("explain", tree, "--set=windy=TRUE", "--row=0", code=2) == (
        "--row chooses a row of a TABLE. Give one, too."
    )
    assert refusal("explain", tree, WEATHER, "--row=14") == (
        f"{WEATHER} has no row 14. Rows are counted from 0, and it has 14."
    )
    assert refusal("explain", tree, WEATHER, "--set=windy=TRUE", code=2) == (
        f"--set fills in one row, and {WEATHER} has 14. Choose one with --row."
    )
    assert refusal("explain", tree, "--set=windy", code=2) == (
        "--set must be COLUMN=VALUE. Got 'windy'; put it in quotes if it has spaces."
    )
    assert refusal("explain", tree, "--set=wind=TRUE", code=2) == (
        "--set must name a column of the tree. Got 'wind'; the columns are 'outlook', "
        "'temperature', 'humidity', 'windy'."
    )
    assert refusal("explain", tree, "--set=humidity=high") == (
        "Column 'humidity' takes a number. Got 'high'; correct it, or leave it empty "
        "if it is missing."
    )
    assert refusal("explain", tree, WEATHER, "--level=2", code=2).startswith(
        "level must"
    )
    assert refusal("explain", "-", "-", code=2).startswith("MODEL and TABLE are both -")


def test_booleans_and_names_with_signs(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("a=b,y\n1,p\n2,q\n", encoding="utf-8")
    path = tmp_path / "m.json"
    output("fit", data, "-t", "y", "-a", "id3", "-o", path)
    assert "a=b <= 1 (it is 1)" in output("explain", path, "--set", "a=b=1")
    model = load(path)
    assert model.schema.names == ["a=b"]


def test_help():
    text = output("explain", "--help")
    assert "\n    branchwise explain " in text
    assert run("explain")[0] == 2


def test_the_page_shows_what_happens(tree, tmp_path, monkeypatch):
    """The section on explanations of docs/command_line.md, command by command."""
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text("utf-8")
    section = page.split("\n## Explanations\n")[1].split("\n## ")[0]
    shown = section.split("```console\n")[1].split("\n```")[0]
    monkeypatch.chdir(tmp_path)
    Path("weather.csv").write_bytes(Path(WEATHER).read_bytes())
    new = "outlook,temperature,humidity,windy\nsunny,71,70,TRUE\nrainy,,90,?\n"
    Path("new.csv").write_text(new, encoding="utf-8")
    output("prune", tree, "--collapse", 3, "-o", "smaller.json")
    examples = shown.split("$ branchwise ")[1:]
    assert len(examples) == 4
    for example in examples:
        command, _, wanted = example.partition("\n")
        assert output(*shlex.split(command)).rstrip("\n") == wanted.rstrip("\n")


def test_shapley_values(tree, tmp_path):
    text = output("explain", tree, WEATHER, "--row", 8, "--shap")
    assert (
        "Shapley values: base value 0.6429, prediction 1 (probability of play" in text
    )
    compared = output("explain", tree, WEATHER, "--shap", "--background", WEATHER)
    assert compared.count("Shapley values: base value 0.6429") == 9
    found = output("explain", tree, WEATHER, "--row=8", "--shap", "--format=json")
    document = json.loads(found)
    assert document["shap"]["rows"][0]["row"] == 8
    assert document["shap"]["columns"] == load(tree).schema.names


def test_backgrounds_that_cannot_be_used(tree, tmp_path):
    message = refusal("explain", tree, WEATHER, "--background", WEATHER, code=2)
    assert "--background has no effect without --shap" in message
    empty = tmp_path / "empty.csv"
    empty.write_text("outlook,temperature,humidity,windy\n", encoding="utf-8")
    message = refusal("explain", tree, WEATHER, "--shap", "--background", empty)
    assert "--background must have at least one row" in message
    message = refusal("explain", tree, "-", "--shap", "--background", "-", code=2)
    assert "standard input can be only one" in message
