"""Forests, boosting and rules on the command line: fit, predict, evaluate, tune."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import branchwise
from branchwise import (
    BoostedClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
    RuleClassifier,
    datasets,
)
from branchwise.ensemble.ensemble import Ensemble
from command_line import run


@pytest.fixture
def car(tmp_path: Path) -> Path:
    """The car data as a file."""
    path = tmp_path / "car.csv"
    table = datasets.load("car")
    columns = dict(table.X) | {"class": table.y}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_the_file_is_that_of_the_estimator(car: Path, tmp_path: Path) -> None:
    output = tmp_path / "forest.json"
    arguments = ["-t", "class", "-a", "forest", "--n-estimators", "7"]
    code, _, err = run("fit", str(car), *arguments, "-o", str(output))
    assert code == 0
    assert "forest of 7 CART trees" in err
    forest = branchwise.load(output)
    assert isinstance(forest, Ensemble)
    table = datasets.load("car")
    own = RandomForestClassifier(n_estimators=7).fit(table.X, table.y)
    assert [one.tree.column.tolist() for one in forest] == [
        one.tree.column.tolist() for one in own.model_
    ]


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        ("-a boosted --n-estimators 3", BoostedClassifier(n_estimators=3)),
        (
            (
                "-a boosted --base cart --max-depth 3 --n-iter-no-change 2 --tol 0.01 "
                "--validation-fraction 0.2"
            ),
            BoostedClassifier(
                base="cart",
                max_depth=3,
                n_iter_no_change=2,
                tol=0.01,
                validation_fraction=0.2,
            ),
        ),
        (
            "-a boosted --no-prune --min-samples-branch 5 --costs unacc:acc=3",
            BoostedClassifier(
                prune=False,
                min_samples_branch=5,
                costs=[[0, 1, 1, 1], [1, 0, 1, 1], [3, 1, 0, 1], [1, 1, 1, 0]],
            ),
        ),
        (
            (
                "-a gradient --n-estimators 3 --learning-rate 0.5 --subsample 0.5 "
                "--max-features 3 --random-state 4 --class-weight acc=2"
            ),
            GradientBoostingClassifier(
                n_estimators=3,
                learning_rate=0.5,
                subsample=0.5,
                max_features=3,
                random_state=4,
                class_weight={"acc": 2},
            ),
        ),
        (
            "-a forest --n-estimators 3 --splitter random --ccp-alpha 0.001",
            RandomForestClassifier(n_estimators=3, splitter="random", ccp_alpha=0.001),
        ),
        (
            (
                "-a rules --n-estimators 3 --max-rules 7 --rule-cost 0.5 "
                "--random-state 2 --class-weight acc=2"
            ),
            RuleClassifier(
                n_estimators=3,
                max_rules=7,
                rule_cost=0.5,
                random_state=2,
                class_weight={"acc": 2},
            ),
        ),
    ],
)
def test_ensembles_are_those_of_the_estimators(
    options: str, estimator: Any, car: Path, tmp_path: Path
) -> None:
    output = tmp_path / "ensemble.json"
    arguments = ["-t", "class", *options.split(), "-o", str(output)]
    code, _, err = run("fit", str(car), *arguments)
    assert code == 0, err
    found = branchwise.load(output)
    table = datasets.load("car")
    own = estimator.fit(table.X, table.y).model_
    assert found.recipe == own.recipe
    assert len(found) == len(own)
    assert (found.predict_proba(table.X) == own.predict_proba(table.X)).all()


def test_gradients_of_numbers(tmp_path: Path) -> None:
    path, output = tmp_path / "line.csv", tmp_path / "gradient.json"
    lines = ["x,y", *(f"{x},{x * 2}" for x in range(50))]
    path.write_text("\n".join(lines), encoding="utf-8")
    fit = ["-t", "y", "-a", "gradient", "--regression", "--loss", "poisson"]
    fit += ["--n-estimators", "5"]
    code, _, err = run("fit", str(path), *fit, "-o", str(output))
    assert "gradient boosting of 5 CART trees" in err
    assert code == 0
    x = {"x": list(range(50))}
    own = GradientBoostingRegressor(loss="poisson", n_estimators=5)
    own.fit(x, [v * 2.0 for v in x["x"]])
    assert branchwise.load(output).predict(x).tolist() == own.predict(x).tolist()


def test_comparison_and_search(car: Path, tmp_path: Path) -> None:
    names = "id3,c4.5,cart,forest,boosted,gradient,rules,sklearn"
    given = ["-t", "class", "--cv", "2", "--n-estimators", "2", "--format", "json"]
    code, out, err = run("evaluate", str(car), "--compare", names, *given)
    assert code == 0, err
    found = json.loads(out)["algorithms"]
    assert [one["algorithm"] for one in found] == [*names.split(","), "baseline"]
    best = tmp_path / "best.json"
    grid = ["--grid", "n_estimators=2,4", "--grid", "max_features=auto,none"]
    tuned = ["-t", "class", "-a", "forest", "--cv", "2", *grid, "-o", str(best)]
    code, out, err = run("tune", str(car), *tuned)
    assert code == 0, err
    assert "forest of " in err
    assert branchwise.load(best).schema.target == "class"
    assert len(out.splitlines()) == 5


def test_options(car: Path) -> None:
    options = "--base id3 --max-features 0.5 --no-bootstrap --max-samples 500"
    options += " --voting hard --random-state 3 --max-depth 4 --n-estimators 5"
    options += " --class-weight balanced_subsample --format json"
    arguments = ["-t", "class", "-a", "forest", *options.split()]
    code, out, err = run("fit", str(car), *arguments)
    assert code == 0, err
    told = json.loads(out)
    assert told["trees"] == 5
    assert told["algorithm"] == "ID3"
    assert sum(told["importances"].values()) == pytest.approx(1)
    assert 0.5 < told["out_of_bag_score"] < 1


def test_text(car: Path) -> None:
    _, out, _ = run(
        "fit", str(car), "-t", "class", "-a", "forest", "--n-estimators", "5"
    )
    lines = out.splitlines()
    assert lines[0].startswith("A forest of 5 CART trees predicts class ('acc', ")
    assert lines[2] == "Each node has 3 of 6 columns as candidates, drawn at random."
    assert lines[4].startswith("Out of bag, 9")
    assert lines[7].startswith("  safety")
    assert len(lines) == 13


def test_how_many_columns(car: Path) -> None:
    fit = ["-t", "class", "-a", "forest", "--n-estimators", "2"]
    _, usual, _ = run("fit", str(car), *fit)
    code, out, err = run("fit", str(car), *fit, "--max-features", "auto")
    assert code == 0, err
    assert out == usual
    assert "3 of 6 columns" in out
    _, out, _ = run("fit", str(car), *fit, "--max-features", "sqrt")
    assert "2 of 6 columns" in out


def test_predictions_and_scores(car: Path, tmp_path: Path) -> None:
    output = tmp_path / "forest.json"
    fit = ["-t", "class", "-a", "forest", "--n-estimators", "5", "-o", str(output)]
    run("fit", str(car), *fit)
    table = datasets.load("car")
    forest = RandomForestClassifier(n_estimators=5).fit(table.X, table.y)
    expected = forest.predict(table.X).tolist()
    for engine in ("memory", "chunked"):
        _, out, _ = run("predict", str(output), str(car), "--engine", engine)
        assert out.split()[1:] == expected
    _, out, _ = run("predict", str(output), str(car), "--proba")
    assert out.startswith("prediction,probability of acc,")
    _, out, _ = run("evaluate", str(output), str(car), "--target", "class")
    assert "accuracy 0.99" in out


@pytest.mark.parametrize("algorithm", ["forest", "boosted"])
def test_files_in_chunks_and_on_workers(
    car: Path, tmp_path: Path, algorithm: str
) -> None:
    written = {}
    for engine in ("memory", "chunked"):
        output = tmp_path / f"{engine}.json"
        code, _, err = run(
            *("fit", str(car), "-t", "class", "-a", algorithm, "--n-estimators", "4"),
            *("--engine", engine, "-o", str(output)),
        )
        assert code == 0, err
        written[engine] = output.read_bytes()
    assert written["chunked"] == written["memory"]
    assert f"{car.name} by the engine chunked" in " ".join(err.split())


def test_databases_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sales.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sales (a TEXT, y TEXT)")
    connection.execute("INSERT INTO sales VALUES ('x', 'no'), ('z', 'yes')")
    connection.commit()
    connection.close()
    where = [f"sqlite:///{path}", "--table", "sales", "-t", "y"]
    code, _, err = run("fit", *where, "-a", "forest")
    assert code == 2
    assert "engine='sql' grows single trees" in " ".join(err.split())


def test_numbers(tmp_path: Path) -> None:
    path, output = tmp_path / "line.csv", tmp_path / "forest.json"
    lines = ["x,y", *(f"{x},{x * 2.5}" for x in range(100))]
    path.write_text("\n".join(lines), encoding="utf-8")
    fit = ["-t", "y", "-a", "forest", "--regression", "--n-estimators", "5"]
    code, _, err = run("fit", str(path), *fit, "-o", str(output))
    assert code == 0, err
    x = {"x": list(range(100))}
    own = RandomForestRegressor(n_estimators=5).fit(x, [v * 2.5 for v in x["x"]])
    assert branchwise.load(output).predict(x).tolist() == own.predict(x).tolist()
    code, _, err = run("predict", str(output), str(path), "--proba")
    assert "it predicts numbers" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-a forest --confidence 0.1", "--confidence applies only to --algorithm"),
        (
            "-a forest --max-features foo",
            "must be a number, a share, auto, sqrt, log2, oob or all",
        ),
        ("-a forest --base c4.5 --criterion gini", "--criterion must be left out with"),
        (
            "-a c4.5 --n-estimators 5",
            "--n-estimators applies only to --algorithm forest",
        ),
        (
            "-a forest --regression --class-weight balanced",
            "--class-weight applies only",
        ),
        ("-a forest --max-exact 10", "--max-exact has no effect on rows in memory"),
        ("-a boosted --regression", "--algorithm boosted predicts classes."),
        (
            "-a boosted --base cart --confidence 0.1",
            "--confidence has no effect unless the pruning of the trees is error-based",
        ),
        ("-a boosted --max-features 2", "applies only to --algorithm forest or"),
        (
            "-a gradient --tol 0.1",
            "--tol has no effect unless --n-iter-no-change is given. Give both.",
        ),
        ("-a gradient --loss poisson", "applies only to --algorithm gradient --regr"),
        (
            "-a gradient --regression --loss log_loss",
            "loss must be 'squared_error' or 'poisson'. Got 'log_loss' instead.",
        ),
        (
            "-a forest --pruning reduced-error",
            "pruning='reduced-error' needs rows to prune with, for single trees.",
        ),
        ("-a rules --regression", "--algorithm rules predicts classes."),
        ("-a rules --max-depth 3", "--max-depth applies only to --algorithm id3 or"),
        ("-a rules --rule-cost -1", "Invalid value for '--rule-cost'"),
        ("-a forest --max-rules 3", "--max-rules applies only to --algorithm rules."),
        (
            "-a forest --n-estimators 0",
            "Invalid value for '--n-estimators'",
        ),
    ],
)
def test_errors(options: str, message: str, car: Path) -> None:
    code, _, err = run("fit", str(car), "-t", "class", *options.split())
    assert code != 0
    assert message in " ".join(err.split())


@pytest.fixture(scope="module", name="models")
def models_in_files(tmp_path_factory: Any) -> Path:
    """Return a folder with a table, a forest and boosted trees."""
    folder: Path = tmp_path_factory.mktemp("ensembles")
    tennis = datasets.load("tennis")
    columns = dict(tennis.X) | {"play": tennis.y}
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    text = "\n".join([",".join(columns), *rows])
    (folder / "tennis.csv").write_text(text, encoding="utf-8")
    for name, estimator in (
        ("forest", RandomForestClassifier(n_estimators=3)),
        ("boosted", BoostedClassifier(n_estimators=3, base="cart", max_depth=1)),
        ("gradient", GradientBoostingClassifier(n_estimators=3)),
        ("votes", RuleClassifier(rule_cost=0.1)),
        ("tree", ID3Classifier()),
    ):
        estimator.fit(tennis.X, tennis.y).model_.save(folder / f"{name}.json")
    return folder


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("show forest.json", "A forest of 3 CART trees predicts classes"),
        ("show forest.json", "--tree N shows a tree: 0 to 2."),
        ("show forest.json --style markdown", "| outlook | "),
        ("show forest.json --style html", "<h1>A forest</h1>"),
        ("show forest.json --format json", '"method": "forest"'),
        ("show boosted.json", "Boosting of 3 CART trees predicts classes"),
        ("show forest.json --tree 2", "outlook"),
        ("show forest.json --tree 2 --style svg", "<svg"),
        ("view forest.json --tree 1 -o - --no-open", "<!doctype html>"),
        ("rules forest.json --tree 0", "1. If "),
        ("explain forest.json tennis.csv --row 1", "Votes of 3 trees"),
        ("explain forest.json tennis.csv --row 1", "Most frequent conditions"),
        ("explain forest.json tennis.csv --shap", "Shapley values: base value"),
        ("explain forest.json tennis.csv --row 1 --tree 0", "Leaf "),
        ("explain boosted.json tennis.csv --row 2 --shap", "Row 2\nShapley values"),
        ("explain gradient.json --set wind=weak --shap", "margin of "),
        ("export forest.json --to json", '"trees"'),
        ("export boosted.json --to json --tree 1", '"format"'),
        ("predict gradient.json tennis.csv", "prediction\n"),
        ("evaluate boosted.json tennis.csv -t play", "accuracy "),
        ("show votes.json", "1. If outlook is "),
        ("show votes.json", "Before any vote, the scores are: "),
        ("show votes.json --style markdown", "1. If outlook is "),
        ("show votes.json --style html", "How much they cover"),
        ("show votes.json --format json", '"voting": true'),
        ("show votes.json --rules", "if outlook = "),
        ("rules votes.json", "; vote "),
        ("rules votes.json --class no --sort coverage --format csv", ",vote\n"),
        ("explain votes.json tennis.csv --row 1", "Of 5 rules 2 hold:"),
        ("explain votes.json tennis.csv --level 0.5", "50 % interval"),
        ("explain votes.json tennis.csv --row 1 --shap", "Row 1\nShapley values"),
        ("predict votes.json tennis.csv --proba", "prediction,"),
        ("evaluate votes.json tennis.csv -t play", "accuracy "),
    ],
)
def test_files_of_ensembles(line: str, expected: str, models: Path) -> None:
    code, out, err = run(*_with_folder(line, models))
    assert code == 0, err
    assert expected in out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("show forest.json --style box", "--style box shows one: choose it with --tr"),
        ("show forest.json --rules", "--rules shows one: choose it with --tree N, fr"),
        ("show forest.json --max-depth 1", "--max-depth shows one: choose it with"),
        ("show forest.json --tree 3", "--tree must be a number from 0 to 2, of the"),
        ("show tree.json --tree 0", "holds a single tree. Leave it out."),
        ("view forest.json --no-open", "Choose one with --tree N, from 0 to 2;"),
        (
            "rules forest.json",
            "judged out of bag, by its training rows: branchwise",
        ),
        ("steps tennis.csv -t play --model forest.json", "Leave --model out, and give"),
        ("explain boosted.json tennis.csv", "Give --shap for what each column contri"),
        ("what-if forest.json tennis.csv", "branchwise explain --shap tells what"),
        ("diff tree.json forest.json", "Compare ensembles by their scores"),
        ("prune forest.json --collapse 1", "Limit the trees of an ensemble when they"),
    ],
)
def test_what_ensembles_do_not_have(line: str, expected: str, models: Path) -> None:
    code, _, err = run(*_with_folder(line, models))
    assert code == 2
    assert expected in " ".join(err.split())
    if "tree.json" not in line and "--tree" not in line and "boosted" not in line:
        assert "holds an ensemble of 3 trees, and a single tree is needed" in err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("what-if votes.json tennis.csv", "holds rules that vote, and a single tree"),
        ("view votes.json --no-open", "branchwise show MODEL -o page.html writes a"),
        ("diff tree.json votes.json", "holds rules that vote, and a single tree"),
        ("prune votes.json --collapse 1", "branchwise rules lists them"),
        ("rules votes.json --no-simplify", "--no-simplify has no effect on rules that"),
        ("rules votes.json --class maybe", "--class must be one of 'no', 'yes'"),
        ("steps tennis.csv -t play -a rules", "'rules' is not one of 'id3', 'c4.5'"),
    ],
)
def test_what_rules_that_vote_do_not_have(
    line: str, expected: str, models: Path
) -> None:
    code, _, err = run(*_with_folder(line, models))
    assert code == 2
    assert expected in " ".join(err.split())


def _with_folder(line: str, folder: Path) -> list[str]:
    ours = (".json", ".csv")
    return [
        str(folder / word) if word.endswith(ours) else word for word in line.split()
    ]
