"""``branchwise tune``: grids, results, drawings, Ctrl-C and going on."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from branchwise import C45Classifier, datasets, load
from branchwise.cli import support
from branchwise.evaluation import search
from command_line import output, refusal, run

CAR = datasets.path("car")
GRID = ["--grid", "max_depth=2,4,none", "--grid", "min-samples-leaf=1,0.02"]


@pytest.fixture
def car(tmp_path, monkeypatch):
    """Every fourth car, in a directory of its own."""
    # What is started there finds the package, even by a path relative to here.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(os.path.abspath, sys.path)))
    monkeypatch.chdir(tmp_path)
    head, *rows = Path(CAR).read_text(encoding="utf-8").splitlines()
    (tmp_path / "car.csv").write_text("\n".join([head, *rows[::4]]) + "\n")
    return ["tune", "car.csv", "--target", datasets.load("car").target, "--cv", "3"]


def test_the_command_is_the_function(car):
    code, out, err = run(
        *car, "-a", "c4.5", "--grid", "confidence=0.05,0.5", "-o", "best.json"
    )
    assert code == 0
    whole = datasets.load("car")
    X = {name: cells[::4] for name, cells in whole.X.items()}
    y = whole.y[::4]
    found = search(C45Classifier(), X, y, {"confidence": [0.05, 0.5]}, cv=3)
    rows = [line.rsplit("  ", 1)[0].rstrip() for line in out.splitlines()]
    assert rows[1:] == [line.rsplit("  ", 1)[0].rstrip() for line in found.lines()][1:]
    best = found.best
    assert f"best: confidence={best.parameters['confidence']:g} (accuracy" in err
    assert "leaves, depth" in err.splitlines()[-1]
    wanted = C45Classifier(**best.parameters).fit(X, y).model_
    model = load("best.json")
    assert model.tree == wanted.tree
    assert model.schema.target == whole.target


def test_results_and_drawing(car):
    pytest.importorskip("matplotlib").use("agg")
    out = output(*car, *GRID, "--results", "r.csv", "--plot", "t.png", "--jobs", 2)
    assert out.splitlines()[0].split()[:2] == ["max_depth", "min_samples_leaf"]
    rows = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert len(rows) == 6
    assert {row["max_depth"] for row in rows} == {"2", "4", "none"}
    scores = [float(row["mean_test"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert Path("t.png").read_bytes()[:4] == b"\x89PNG"
    Path("r.csv").unlink()
    for options, message in (
        ([*GRID, "--plot", "t.csv"], "must name a file that ends in one of"),
        (
            ["--grid", "max_depth=2", "--plot", "p.png"],
            "and --grid has one of each. Give --grid several, such as max_depth=2,4,8",
        ),
    ):
        written = [*options, "--results", "r.csv", "-o", "b.json", "-q"]
        assert message in refusal(*car, *written, code=2)
        assert sorted(p.name for p in Path().iterdir()) == ["car.csv", "t.png"]


def test_json_halving_and_the_smaller_tree(car):
    arguments = [*car, *GRID, "--method", "halving", "--format", "json"]
    document = json.loads(output(*arguments))
    assert document["method"] == "halving"
    assert document["complete"]
    assert len(document["candidates"]) == 6
    output(*car, *GRID, "--one-se", "-o", "small.json", "-q")
    smaller = json.loads(output(*car, *GRID, "--format", "json"))["one_se"]
    assert load("small.json").recipe.max_depth == smaller["parameters"]["max_depth"]
    assert json.loads(output(*car, *GRID, "-o", "-", "-q"))  # the model itself


def test_what_is_given_holds_for_all(car):
    out = output(
        *car, "--grid", "max_depth=1,9", "-a", "cart", "--criterion", "gain", "-ob.json"
    )
    assert load("b.json").recipe.criterion == "gain"
    assert "criterion" not in out


def test_tables_of_every_form(car, tmp_path):
    plain = output(*car, *GRID, "--format", "json")
    rows = (tmp_path / "car.csv").read_text().splitlines()
    (tmp_path / "other.txt").write_text("\n".join(rows[1:]).replace(",", ";"))
    named = ["--separator", ";", "--no-header", "--names", rows[0]]
    other = output("tune", "other.txt", *car[2:], *GRID, *named, "--format", "json")
    assert without_fit_times(other) == without_fit_times(plain)
    _, _, err = run("tune", "other.txt", *car[2:], *GRID, "--separator", ";")
    assert "has no column 'class'" in err


def without_fit_times(text):
    found = json.loads(text)
    return [
        (one["parameters"], one["mean_test"], one["leaves"])
        for one in found["candidates"]
    ]


def test_numbers(tmp_path):
    out = output(
        *("tune", datasets.path("iris"), "-t", "petalwidth", "--regression"),
        *("--cv=3", "--grid", "max_depth=1,3", "--scoring", "neg_mean_absolute_error"),
    )
    assert out.splitlines()[1].split()[0] == "3"


def test_the_usual_grid_on_a_small_table():
    code, out, err = run("tune", datasets.path("weather"), "-t", "play", "--cv", "3")
    assert code == 0, err
    assert out.splitlines()[-1] == "... and 110 more"


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(car, start):
    grid = "--grid=min_samples_leaf=" + ",".join(map(str, range(1, 101)))
    arguments = [*car, grid, "--resume", "state", "--results", "r.csv", "--jobs=1"]
    state = Path("state")
    process = start(*arguments)
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
        if state.exists() and len(state.read_bytes().splitlines()) > 5:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"the same command goes on from state." in err
    assert err.split()[-1] == b"interrupted"
    done = len(state.read_bytes().splitlines()) - 1
    assert 5 <= done < 300
    whole = output(*arguments)
    fresh = output(*[a for a in arguments if a not in ("--resume", "state")])

    def without_times(text):
        return [line.rsplit("  ", 1)[0].rstrip() for line in text.splitlines()]

    assert without_times(whole) == without_times(fresh)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--grid", "max_depth"],
            "--grid must be a parameter, = and the values",
        ),
        (["--grid", "max_depth=2,,3"], "Got 'max_depth=2,,3'."),
        (
            ["--grid", "a=1", "--grid", "a=2"],
            "--grid names 'a' twice. Give all",
        ),
        (["--grid", "depth=2"], "The grid names 'depth', which C45Classifier does not"),
        (["--grid", "max_depth=-3"], "max_depth must be None or a whole number"),
        (
            ["--grid", "max_depth=3", "--max-depth", "3"],
            "--max-depth and --grid max_depth=... both set max_depth.",
        ),
        (["--grid", "max_depth=2,3,2"], "has 2 twice for 'max_depth'. Give every"),
        (["--scoring", "speed"], "scoring must be one of scikit-learn's scorers"),
        (["--scoring", "r2"], "scoring must be a score of classes, which are"),
        (["--scoring", "roc_auc"], "Choose 'roc_auc_ovr' or 'roc_auc_ovo'."),
        (["--scoring", "f1"], "Choose 'f1_macro' or 'f1_weighted'."),
        (["--one-se"], "--one-se has no effect without -o: it says which tree"),
        (
            ["-a", "id3", "--regression"],
            "--regression applies only to --algorithm cart, forest or gradient",
        ),
        (["--jobs", "0"], "n_jobs must be None or a whole number other than 0"),
    ],
)
def test_bad_usage(car, options, message):
    assert message in refusal(*car, *options, code=2)


def test_bad_files(car, tmp_path):
    for option in ("-o", "--results", "--plot", "--resume"):
        message = refusal(*car, option, "nowhere/best.json")
        assert "There is no directory" in message
        assert message.endswith(f"choose another directory with {option}.")
    message = refusal(*car, "--results", tmp_path)
    assert "is a directory. Give the name of a file with --results, such" in message
    assert message.endswith("results.csv.")
    (tmp_path / "other").write_text("x\n")
    assert "is to hold the fits of this search, but is no such file" in refusal(
        *car, "--resume", "other", *GRID
    )
    assert "has no column 'price'" in refusal("tune", "car.csv", "-t", "price")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize(("patience", "shows"), [(0.01, True), (60.0, False)])
def test_fits_are_counted_on_a_terminal_after_a_while(monkeypatch, patience, shows):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(support, "_PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    with support.Reporter().counting("Fitting") as progress:
        time.sleep(0.2)
        progress(7, 40)
        time.sleep(0.3)
    assert ("7/40" in terminal.getvalue()) is shows


def test_nothing_is_counted_elsewhere(monkeypatch):
    monkeypatch.setattr(support, "_PATIENCE", 0.0)
    for quiet, stream in ((False, io.StringIO()), (True, Terminal())):
        monkeypatch.setattr(sys, "stderr", stream)
        with support.Reporter(quiet).counting("Fitting") as progress:
            progress(7, 40)
            time.sleep(0.05)
        assert stream.getvalue() == ""
