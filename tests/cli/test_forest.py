"""``branchwise fit --algorithm forest``, and predictions of forests."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import branchwise
from branchwise import RandomForestClassifier, RandomForestRegressor, datasets
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
    assert lines[0].startswith("Out-of-bag accuracy: 0.9")
    assert lines[3].startswith("safety")
    assert len(lines) == 9


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
            "must be a number, a share, all, sqrt or log2",
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
        ("-a forest --engine chunked", "--algorithm forest grows from rows in memory"),
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


def test_views_of_single_trees_name_the_ensemble(car: Path, tmp_path: Path) -> None:
    output = tmp_path / "forest.json"
    fit = ["-t", "class", "-a", "forest", "--n-estimators", "2", "-o", str(output)]
    run("fit", str(car), *fit)
    _, _, err = run("show", str(output))
    assert "holds an ensemble of 2 trees" in err
