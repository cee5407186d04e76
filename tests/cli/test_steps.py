"""``branchwise steps``: how splits were found, on the command line."""

from __future__ import annotations

import json
from inspect import signature

import pytest
from typer.testing import CliRunner

from branchwise import datasets
from branchwise.cli.main import app
from branchwise.cli.options.engine import engine_options
from branchwise.cli.options.growing import ensemble_options
from branchwise.cli.options.model_metadata import ModelOptions

WEATHER = datasets.path("weather")
TENNIS = datasets.path("tennis")


def run(*arguments):
    """Run a command; returns exit code, standard output and standard error."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def output(*arguments):
    code, out, err = run(*arguments)
    assert code == 0, err
    return out


def refusal(*arguments, code):
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    return err


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "tree.json"
    output("fit", WEATHER, "-t", "play", "-a", "c4.5", "-o", path)
    return path


def test_help():
    text = output("steps", "--help")
    assert "branchwise steps data.csv --target play" in text
    for option in ("--node", "--style", "--model", "--min-gain", "--ccp-alpha", "-o"):
        assert option in text
    fitted, here = (
        {word.strip(".,:") for word in page.split() if word.startswith("--")}
        for page in (output("fit", "--help"), text)
    )
    # A worked solution has one tree, in memory, and writes no model.
    others = {
        "--" + name.replace("_", "-")
        for group in (engine_options, ensemble_options, ModelOptions)
        for name in signature(group).parameters
    }
    assert fitted - here - others == {"--format", "--data-hash"}


def test_the_root_of_a_tree_that_is_grown():
    text = output("steps", TENNIS, "--target", "play tennis", "-a", "id3")
    assert "gain(outlook) = 0.940 - 0.694 = 0.247\n" in text
    assert text.endswith("before it.\n")
    assert "gain(outlook) = 0.94029" in output(
        "steps", TENNIS, "-t", "play tennis", "-a", "id3", "--digits", 5
    )


def test_growing_options_count():
    text = output("steps", WEATHER, "-t", "play", "-a", "cart", "--min-samples-leaf", 3)
    assert "Worked solution of play: CART, gini" in text
    assert "with at least 3 cases on each side" in text
    text = output(
        "steps",
        WEATHER,
        "-t",
        "temperature",
        "-a",
        "cart",
        "--regression",
        "--node=all",
    )
    assert "Var(S) = 1/14 * sum of (y - 73.571)^2" in text
    text = output("steps", WEATHER, "-t", "play", "--class-weight", "no=2")
    assert "14 cases of weight 19; by weight: 10 no, 9 yes." in text
    text = output("steps", WEATHER, "-t", "play", "--ignore", "outlook,windy")
    assert "Column outlook" not in text


def test_a_model_and_its_table(tree):
    text = output("steps", WEATHER, "--model", tree, "--node", 3, "--node", 0)
    assert text.count("\nNode ") == 2
    assert "Node 3: outlook = sunny\n" in text
    assert "gain ratio(outlook) = 0.247 / 1.577 = 0.156" in text


def test_rows_that_are_set_aside_are_left_out(tmp_path):
    arguments = (
        WEATHER,
        "-t",
        "play",
        "--pruning",
        "reduced-error",
        "--validation-fraction",
        0.3,
    )
    text = output("steps", *arguments)
    assert "\n10 cases: " in text
    path = tmp_path / "t.json"
    output("fit", *arguments, "-o", path)
    message = refusal("steps", WEATHER, "--model", path, code=1)
    assert "leave out rows that were set aside for pruning" in message


def test_class_weights_of_a_model_are_given_again(tmp_path):
    path = tmp_path / "t.json"
    output("fit", WEATHER, "-t", "play", "--class-weight", "balanced", "-o", path)
    assert "14 cases: 7 no, 7 yes." in output(
        "steps", WEATHER, "--model", path, "--class-weight", "balanced"
    )
    assert "other counts" in refusal("steps", WEATHER, "--model", path, code=1)


@pytest.mark.parametrize(
    ("style", "begins", "holds"),
    [
        ("text", "Worked solution", "= 0.940"),
        ("markdown", "# Worked solution", "| outlook |"),
        ("latex", "\\documentclass", "\\tfrac{5}{14}"),
        ("html", "<!DOCTYPE html>", "<details>"),
        ("json", "{", '"criterion": "gain"'),
    ],
)
def test_styles(style, begins, holds, tmp_path):
    text = output("steps", TENNIS, "-t", "play tennis", "-a", "id3", "--style", style)
    assert text.startswith(begins)
    assert holds in text
    assert text.endswith("\n")
    path = tmp_path / "steps"
    code, out, err = run(
        "steps",
        TENNIS,
        "-t",
        "play tennis",
        "-a",
        "id3",
        "--style",
        style,
        "-o",
        path,
        "--node=all",
    )
    assert (code, out) == (0, "")
    assert err == f"note: worked solution written to {path}.\n"
    assert path.read_text(encoding="utf-8").startswith(begins)
    if style == "json":
        assert len(json.loads(path.read_text(encoding="utf-8"))["nodes"]) == 8


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("plain", "Worked solution"),
        ("s.TXT", "Worked solution"),
        ("s.md", "# Worked solution"),
        ("s.tex", "\\documentclass"),
        ("s.htm", "<!DOCTYPE html>"),
        ("s.json", "{"),
    ],
)
def test_a_file_has_the_style_of_its_ending(name, begins, tmp_path):
    path = tmp_path / name
    assert run("steps", TENNIS, "-t", "play tennis", "-a", "id3", "-o", path)[0] == 0
    assert path.read_text(encoding="utf-8").startswith(begins)


def test_endings_that_do_not_suit(tmp_path):
    asked = ["steps", TENNIS, "-t", "play tennis", "-a", "id3", "-o"]
    assert "no style is known for files that end in '.pdf'. Known are .txt" in refusal(
        *asked, tmp_path / "s.pdf", code=2
    )
    assert "a file that ends in '.html' is html. Got --style latex" in refusal(
        *asked, tmp_path / "s.html", "--style", "latex", code=2
    )
    assert not list(tmp_path.iterdir())


def test_reveal():
    shown = output(
        "steps", TENNIS, "-t", "play tennis", "-a", "id3", "--style", "html", "--reveal"
    )
    assert "<details open>" in shown
    message = refusal(
        "steps", TENNIS, "-t", "play tennis", "-a", "id3", "--reveal", code=2
    )
    assert "--reveal has no effect unless --style is html. Got text." in message


def test_refusals(tree, tmp_path):
    assert "--target must name the column" in refusal("steps", WEATHER, code=2)
    assert "node must be the number of a node, from 0, the root, to 7" in refusal(
        "steps", WEATHER, "--model", tree, "--node", 8, code=2
    )
    assert "--node must be the number of a node, or all" in refusal(
        "steps", WEATHER, "-t", "play", "--node", "root", code=2
    )
    for option in ("--max-depth=2", "--algorithm=cart", "--n-jobs=2", "--ignore=windy"):
        message = refusal("steps", WEATHER, "--model", tree, option, code=2)
        assert f"{option.split('=')[0]} has no effect beside --model" in message
    assert "--no-prune has no effect beside --model" in refusal(
        "steps", WEATHER, "--model", tree, "--no-prune", code=2
    )
    assert "both -" in refusal("steps", "-", "--model", "-", code=2)
    missing = tmp_path / "none" / "x.html"
    assert "There is no directory" in refusal(
        "steps", WEATHER, "-t", "play", "-o", missing, code=1
    )


TENNIS_ID3 = ("steps", TENNIS, "-t", "play tennis", "-a", "id3")


def test_worksheet_and_rows(tmp_path):
    text = output(*TENNIS_ID3, "--worksheet", "--rows")
    assert text.startswith("Worksheet of play tennis: ID3, gain\n")
    exercise, solutions = text.split("\nSolutions of play tennis: ID3, gain\n")
    assert "gain(outlook) = ____" in exercise
    assert "gain(outlook) = 0.940" in solutions
    assert exercise.count(" cloudy ") == 4
    path = tmp_path / "exercise.tex"
    assert run(*TENNIS_ID3, "--worksheet", "-o", path)[0] == 0
    assert r"\rule{5em}{0.4pt}" in path.read_text(encoding="utf-8")
    assert "--worksheet has no effect with --style json" in refusal(
        *TENNIS_ID3, "--worksheet", "--style", "json", code=2
    )
    assert "--reveal has no effect beside --worksheet" in refusal(
        *TENNIS_ID3, "--worksheet", "--reveal", "--style", "html", code=2
    )


def test_several_criteria(tree):
    text = output(*TENNIS_ID3, "--criterion", "gini, gain,gain_ratio")
    assert text.startswith("Worked solution of play tennis: ID3, gini\n")
    assert "column          gini     gain  gain_ratio\n" in text
    # The tree of C4.5, and that of a model, are grown by their own criterion.
    text = output("steps", WEATHER, "-t", "play", "--criterion", "gain,gini")
    assert "C4.5, gain_ratio\n" in text
    assert "Criteria side by side" in text
    assert "Criteria side by side" in output(
        "steps", WEATHER, "--model", tree, "--criterion", "gain,gini"
    )
    assert "Got 'foo' in 'gain,foo'" in refusal(
        *TENNIS_ID3, "--criterion", "gain,foo", code=2
    )
    assert (
        "--criterion must be names with commas between them, among 'gain'"
        in refusal(*TENNIS_ID3, "--criterion", "gain,variance", code=2)
    )
    assert "--criterion has no effect beside --model" in refusal(
        "steps", WEATHER, "--model", tree, "--criterion", "gain", code=2
    )
