"""``branchwise report``: the page, the findings, and how to make them again."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from branchwise.cli.main import app


def run(*arguments, stdin=None):
    """Run a command; returns exit code, standard output and standard error."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "days.csv"
    rows = []
    for day in range(60):
        outlook, humidity = ("sunny", "rainy", "cloudy")[day % 3], 60 + 7 * day % 40
        bad = humidity > 75 if outlook == "sunny" else outlook == "rainy" and day % 2
        rows.append(
            f"{day},{outlook},{humidity},{'no' if bad else 'yes'},{1 + day % 2}"
        )
    path.write_text("\n".join(["day,outlook,humidity,play,w", *rows]) + "\n")
    return path


def commands(page):
    block = re.search(r"<pre><code>(branchwise report.*?)</code></pre>", page, re.S)
    return [shlex.split(unescape(line)) for line in block[1].split("\n")]


def test_a_page_is_written(table, tmp_path):
    page = tmp_path / "report.html"
    code, out, err = run("report", table, "-t", "play", "-o", page, "--cv", 2)
    assert (code, out) == (0, "")
    assert re.fullmatch(
        r"note: report on a tree of \d+ nodes \(\d+ leaves, depth \d+\) from 60 rows "
        rf"written to {re.escape(str(page))}; open it in a browser.\n",
        err,
    )
    written = page.read_text(encoding="utf-8")
    assert written.startswith("<!DOCTYPE html>")
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    assert digest in written
    assert f"{table.stat().st_size:,}" in written
    assert str(tmp_path) not in written  # names, but not where files are


def test_its_commands_make_the_same_page_and_model(table, tmp_path, monkeypatch):
    page = tmp_path / "report.html"
    growing = ("--ignore", "day", "--weight", "w", "--class-weight", "no=3,yes=1")
    more = ("-a", "cart", "--max-depth", 3, "--min-samples-leaf", "2", "--seed", 5)
    first = run("report", table, "-t", "play", "-o", page, "--cv", 2, *growing, *more)
    assert first[0] == 0
    written = page.read_text(encoding="utf-8")
    again, fit = commands(written)
    assert again[:2] == ["branchwise", "report"]
    assert fit[:2] == ["branchwise", "fit"]
    monkeypatch.chdir(tmp_path)
    page.unlink()
    assert run(*again[1:])[0] == 0
    assert page.read_text(encoding="utf-8") == written
    assert run(*fit[1:])[0] == 0
    model = (tmp_path / "tree.json").read_bytes()
    assert hashlib.sha256(model).hexdigest() in written


def test_other_rows_and_the_findings(table, tmp_path):
    page, other = tmp_path / "report.html", tmp_path / "other.csv"
    lines = table.read_text().splitlines()
    other.write_text("\n".join([lines[0], *lines[31:]]) + "\n")
    code, out, err = run(
        *("report", table, "-t", "play", "-o", page, "--test", other),
        *("--title", "Days", "--format", "json", "--quiet", "-a", "id3"),
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["title"] == "Days"
    assert found["evaluation"]["rows"] == 30
    assert "other.csv" in found["evaluation"]["how"]
    names = [file["name"] for file in found["reproduce"]["files"]]
    assert names == ["days.csv", "other.csv"]
    assert "<h1>Days</h1>" in page.read_text(encoding="utf-8")


def test_numbers(table, tmp_path):
    page = tmp_path / "report.html"
    code, out, _ = run(
        *("report", table, "-t", "humidity", "--regression", "-o", page),
        *("--hold-out", 0.3, "--format", "json"),
    )
    assert code == 0
    found = json.loads(out)
    assert found["model"]["algorithm"] == "CART"
    assert set(found["evaluation"]["scores"]) >= {"mae", "rmse", "r2"}
    assert "--algorithm cart" in found["reproduce"]["commands"][1]


def test_standard_streams(table, tmp_path):
    content = table.read_text()
    code, out, err = run(
        "report", "-", "-t", "play", "-o", "-", "--cv", 2, stdin=content
    )
    assert (code, err) == (0, "")
    assert out.startswith("<!DOCTYPE html>")


def test_pruning_is_switched_off_as_for_fit(table, tmp_path):
    page = tmp_path / "report.html"
    options = ("--pruning", "none", "--cv", 2, "--ignore", "day")
    assert run("report", table, "-t", "play", "-o", page, *options)[0] == 0
    assert "C45Classifier(prune=False)" in page.read_text(encoding="utf-8")
    fit = commands(page.read_text(encoding="utf-8"))[1]
    model = tmp_path / "tree.json"
    run("fit", table, *fit[3:-1], model)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    assert digest in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("-t", "plai"), 1, "has no column 'plai'"),
        (("-t", "play", "--cv", "3", "--hold-out", "0.3"), 2, "--cv and --hold-out"),
        (("-t", "play", "--hold-out", "1.5"), 2, "--hold-out must be a share"),
        (("-t", "play", "--regression"), 1, "must hold numbers"),
        (("-t", "play", "--criterion", "gini"), 2, "--criterion applies only to"),
        (
            ("-t", "play", "--regression", "-a", "id3"),
            2,
            "--regression applies only to",
        ),
        (("-t", "play", "--cv", "60"), 1, "Choose fewer folds"),
        (("-t", "play", "--test", "nowhere.csv"), 1, "no file 'nowhere.csv'"),
        (("-t", "outlook", "--test", "-"), 1, "standard input"),
    ],
)
def test_errors_leave_nothing_behind(table, tmp_path, options, code, said):
    page = tmp_path / "report.html"
    got, out, err = run("report", table, "-o", page, *options)
    assert (got, out) == (code, "")
    assert said in err
    assert "Traceback" not in err
    assert not page.exists()


def test_two_results_for_one_stream(table):
    code, _, err = run("report", table, "-t", "play", "-o", "-", "--format", "json")
    assert code == 2
    assert "both write to standard output" in err


def test_no_page_without_a_place(table):
    assert run("report", table, "-t", "play")[0] == 2
    code, _, err = run("report", table, "-t", "play", "-o", "/nowhere/report.html")
    assert code == 1
    assert "There is no directory" in err


def test_what_the_page_of_the_docs_shows(tmp_path, monkeypatch):
    root = Path(__file__).parents[2]
    text = (root / "docs" / "report.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ branchwise (report .*)\n(note: .*)$", text, re.M)
    assert len(shown) == 1
    shutil.copy(root / "tests" / "data" / "credit-g.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    for command, note in shown:
        assert run(*shlex.split(command)) == (0, "", f"{note}\n")


def test_help_has_examples():
    code, out, _ = run("report", "--help")
    assert code == 0
    assert out.count("branchwise report ") >= 4
    assert "--hold-out SHARE" in out


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--ignore", "outlook", "--categorical", "humidity", "--missing", "sunny"],
        ["--weight", "humidity", "-a", "cart", "--max-depth", 2],
    ],
)
def test_the_lines_in_python_grow_the_same_tree(table, tmp_path, monkeypatch, options):
    page = tmp_path / "report.html"
    how = ["-t", "play", "--cv", 2, "--format", "json", "-o", page, *options]
    code, out, err = run("report", table, *how)
    assert code == 0, err
    found = json.loads(out)["reproduce"]
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec("\n".join(found["python"]), names)
    grown = names["tree"].model_.to_bytes()
    assert hashlib.sha256(grown).hexdigest() == found["model_file"]["sha256"]
