"""``branchwise rules``: forms, choices, generalised rules, refusals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from branchwise import datasets, load
from branchwise.cli.main import app


def run(*arguments, stdin=None):
    """Run a command; returns exit code, standard output and standard error."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def output(*arguments, stdin=None):
    code, out, err = run(*arguments, stdin=stdin)
    assert code == 0, err
    return out


def refusal(*arguments, code=2):
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.removeprefix("error: ").rstrip("\n")


WEATHER = Path(datasets.path("weather"))


@pytest.fixture
def tree(model):
    return model("weather")


def test_help_has_examples():
    text = output("rules", "--help")
    assert "Examples:\n    branchwise rules tree.json\n" in text
    assert "branchwise rules tree.json" in output("--help")


def test_sentences(tree):
    rules = load(tree).rules(simplify=True)
    text = output("rules", tree)
    assert text == rules.to_text() + "\n"
    assert text.splitlines()[3] == (
        "4. If outlook is sunny and humidity is at most 80, then play is yes (2 of "
        "2 training cases, 100 %; covers 14 % of all; 95 % interval 34-100 %)."
    )
    assert output("rules", "-", stdin=tree.read_bytes()) == text


def test_bounds_apart_or_together(tmp_path):
    table, tree = tmp_path / "data.csv", tmp_path / "tree.json"
    table.write_text("n,y\n1,a\n2,b\n3,a\n", encoding="utf-8")
    output("fit", table, "-t", "y", "-a", "id3", "-o", tree)

    def conditions(*options):
        text = output("rules", tree, "--format", "csv", *options)
        return [line["conditions"] for line in csv.DictReader(io.StringIO(text))]

    assert conditions() == ["n <= 1", "n = 2", "n >= 3"]
    assert conditions("--simplify") == conditions()
    assert conditions("--no-simplify")[1] == "n >= 2 and n <= 2"


def test_class_and_order(tree):
    rules = load(tree).rules(simplify=True)
    assert output("rules", tree, "--class", "yes", "--sort", "coverage") == (
        rules.for_class("yes").sort_by("coverage").to_text() + "\n"
    )
    assert output("rules", tree, "--sort", "confidence") == (
        rules.sort_by("confidence").to_text() + "\n"
    )


def test_classes_that_are_no_text(tmp_path):
    table, tree = tmp_path / "data.csv", tmp_path / "tree.json"
    table.write_text("c,y\na,0\nb,1\n", encoding="utf-8")
    output("fit", table, "-t", "y", "-a", "id3", "-o", tree)
    assert output("rules", tree, "--class", "1").startswith("1. If c is b, then y is 1")


def test_other_forms(tree):
    rules = load(tree).rules(simplify=True)
    assert output("rules", tree, "--format", "markdown") == rules.to_markdown() + "\n"
    document = json.loads(output("rules", tree, "--format", "json"))
    assert document == json.loads(rules.to_json())
    lines = list(csv.DictReader(io.StringIO(output("rules", tree, "--format", "csv"))))
    assert [line["label"] for line in lines] == [rule.label for rule in rules]
    assert [float(line["low"]) for line in lines] == rules.to_columns()["low"]


def test_numbers(tmp_path):
    table, tree = tmp_path / "data.csv", tmp_path / "tree.json"
    table.write_text("n,y\n1,1.5\n2,2.5\n", encoding="utf-8")
    fit = ("fit", table, "-t", "y", "-o", tree, "--algorithm", "cart", "--regression")
    output(*fit)
    assert output("rules", tree).startswith(
        "1. If n is at most 1, then y is 1.5 on average (1 training case, standard "
        "deviation 0; covers 50 % of all).\n"
    )
    assert refusal("rules", tree, "--class", "1") == (
        "--class needs a model that predicts classes. This one predicts numbers."
    )
    assert "needs a tree that predicts classes" in refusal(
        "rules", tree, "--generalise", table
    )


def test_generalised(tree):
    data = datasets.load("weather")
    listed = load(tree).generalised_rules(data.X, data.y)
    table = listed.table(data.X, data.y)
    both = ("rules", tree, "--generalise", WEATHER, "--test", WEATHER)
    assert output(*both) == f"{listed.to_text()}\n\n{table}\n"
    assert output(*both[:4]) == f"{listed.to_text()}\n\n{listed.table()}\n"
    assert output(*both, "--format", "markdown") == (
        f"{listed.to_markdown()}\n\n{table.to_markdown()}\n"
    )
    document = json.loads(output(*both, "--format", "json"))
    assert document == {
        **json.loads(listed.to_json()),
        "table": json.loads(json.dumps(table.to_dict())),
    }
    lines = list(csv.DictReader(io.StringIO(output(*both, "--format", "csv"))))
    assert [line["conditions"] for line in lines] == table.to_columns()["conditions"]
    assert [float(line["test_used"]) for line in lines] == [3, 2, 4, 4, 1, 0]


def test_generalised_with_options(tree, tmp_path):
    data = datasets.load("weather")
    weights = [1.0 + at % 2 for at in range(len(data.y))]
    table = tmp_path / "weighed.csv"
    rows = list(csv.reader(WEATHER.read_text(encoding="utf-8").splitlines()))
    rows[0][-1:] = ["truth", "w"]
    for row, weight in zip(rows[1:], weights, strict=True):
        row.append(str(weight))
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    listed = load(tree).generalised_rules(
        data.X, data.y, confidence=0.4, sample_weight=weights
    )
    options = ("--target", "truth", "--weight", "w", "--confidence", "0.4")
    got = output("rules", tree, "--generalise", table, *options)
    assert got == f"{listed.to_text()}\n\n{listed.table()}\n"


def test_rows_without_a_class_are_left_out(tree, tmp_path):
    table = tmp_path / "gaps.csv"
    text = WEATHER.read_text(encoding="utf-8").replace("sunny,85,85,FALSE,no", "", 1)
    table.write_text(text.rstrip() + "\nsunny,85,85,FALSE,?\n", encoding="utf-8")
    code, out, err = run("rules", tree, "--generalise", table)
    assert code == 0
    assert "rows without a value in column 'play' are left out: 1 of 14" in err
    assert "of 13 training" not in out
    assert "2 of 2 training cases" in out


@pytest.mark.parametrize(
    "options",
    [
        ("--test", "x.csv"),
        ("--target", "play"),
        ("--weight", "w"),
        ("--confidence", "0.1"),
        ("--missing", "NA"),
    ],
)
def test_options_without_effect(tree, options):
    assert refusal("rules", tree, *options) == (
        f"{options[0]} has no effect without --generalise. Give --generalise TABLE "
        "with the rows that the tree was grown from."
    )


@pytest.mark.parametrize(
    "options", [("--no-simplify",), ("--class", "yes"), ("--sort", "tree")]
)
def test_options_that_do_not_go_together(tree, options):
    assert refusal("rules", tree, "--generalise", WEATHER, *options) == (
        f"{options[0]} does not go with --generalise, whose rules are simplified and "
        "decide together, in their order. Give one of them."
    )


def test_what_else_is_refused(tree):
    assert refusal("rules", tree, "--class", "maybe") == (
        "--class must be one of 'no', 'yes'. Got 'maybe' instead."
    )
    assert "standard input can be only one" in refusal(
        "rules", "-", "--generalise", "-"
    )
    assert refusal("rules", "none.json", code=1).startswith("There is no model file")
    lenses = datasets.path("lenses")
    assert "play" in refusal("rules", tree, "--generalise", lenses, code=1)
    assert "confidence must be" in refusal(
        "rules", tree, "--generalise", WEATHER, "--confidence", "0.9"
    )


PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def shown(command):
    """Return what the page on the command line shows for a command."""
    text = PAGE.read_text(encoding="utf-8")
    _, after = text.split(f"$ branchwise {command}\n", 1)
    ends = [after.index(end) for end in ("\n```", "\n\n$ ") if end in after]
    return after[: min(ends)] + "\n"


@pytest.mark.parametrize(
    "options",
    ["--class no --sort coverage", "--class no --format csv"],
)
def test_the_page_shows_what_is_printed(tree, options):
    expected = shown(f"rules tree.json {options}")
    assert output("rules", tree, *options.split()) == expected


def test_the_page_shows_generalised_rules(tmp_path):
    source = Path(datasets.path("house_votes")).read_text(encoding="utf-8")
    head, *rows = source.splitlines()
    parts = {
        "train": [row for at, row in enumerate(rows) if at % 3],
        "validation": rows[::3],
    }
    for name, part in parts.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *part]), "utf-8")
    tree, train = tmp_path / "votes.json", tmp_path / "train.csv"
    output("fit", train, "-t", "Class", "-a", "id3", "-o", tree)
    test = ("--test", tmp_path / "validation.csv")
    got = output("rules", tree, "--generalise", train, *test)
    command = "rules votes.json --generalise train.csv --test validation.csv"
    assert got == shown(command)
