"""``branchwise view``: writes the page, and opens it where there is a screen."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from branchwise import datasets, fit_tree, load
from branchwise.cli.main import app


def run(*arguments, stdin=None):
    """Run a command; returns exit code, standard output and standard error."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def model(tmp_path):
    table = datasets.load("weather")
    path = tmp_path / "tree.json"
    fit_tree(table.X, table.y, target_name="play").save(path)
    return path


@pytest.fixture
def opened(monkeypatch):
    """Pages that would have been opened; there is a screen."""
    pages = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda url: pages.append(url) or True)
    return pages


def test_a_page_is_written_and_opened(model, opened):
    code, out, err = run("view", model)
    page = model.with_suffix(".html")
    assert (code, out) == (0, "")
    assert err == (
        f"note: page of a tree of 8 nodes written to {page}; opened in the browser.\n"
    )
    assert opened == [page.as_uri()]
    assert page.read_text(encoding="utf-8") == load(model).to_html()
    assert run("view", model, "--quiet")[2] == ""  # its own page may be replaced
    assert len(opened) == 2


def test_a_page_elsewhere_with_a_title(model, opened, tmp_path):
    other = tmp_path / "report.html"
    code, _, err = run("view", model, "-o", other, "--title", "Golf?", "--no-open")
    assert code == 0
    assert err.endswith(f"written to {other}; open it in a browser.\n")
    assert opened == []
    assert other.read_text(encoding="utf-8") == load(model).to_html(title="Golf?")


def test_without_a_screen_the_page_is_only_written(model, opened, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    code, _, err = run("view", model)
    assert code == 0
    assert "open it in a browser" in err
    assert opened == []


def test_a_browser_that_cannot_be_started(model, opened, monkeypatch):
    def fail(url):
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "open", fail)
    code, _, err = run("view", model)
    assert code == 0
    assert "open it in a browser" in err


def test_a_page_to_standard_output(model, opened):
    code, out, err = run("view", model, "-o", "-")
    assert (code, err) == (0, "")
    assert out == load(model).to_html()
    assert opened == []


def test_a_model_from_standard_input(model, opened, tmp_path):
    code, out, err = run("view", "-", stdin=model.read_bytes())
    assert (code, out) == (2, "")
    assert err == (
        "error: -o must name the page where the model comes from standard input: "
        "there is no file name to take one from. Add -o tree.html.\n"
    )
    page = tmp_path / "piped.html"
    assert run("view", "-", "-o", page, stdin=model.read_bytes())[0] == 0
    assert page.is_file()


def test_a_file_of_the_user_is_not_replaced_unasked(model, opened):
    page = model.with_suffix(".html")
    page.write_text("<p>mine</p>", encoding="utf-8")
    code, _, err = run("view", model)
    assert code == 1
    assert err == (
        f"error: {str(page)!r} is there and was not written by branchwise. Name the "
        f"page with -o; -o {page} replaces that file.\n"
    )
    assert page.read_text(encoding="utf-8") == "<p>mine</p>"
    assert run("view", model, "-o", page)[0] == 0


def test_bad_paths(model, tmp_path):
    code, _, err = run("view", tmp_path / "none.json")
    assert code == 1
    assert "There is no model file" in err
    code, _, err = run("view", model, "-o", tmp_path / "no" / "tree.html")
    assert code == 1
    assert "There is no directory" in err
    assert not Path(tmp_path / "no").exists()


def test_help_has_examples():
    code, out, _ = run("view", "--help")
    assert code == 0
    assert "branchwise view tree.json --data data.csv --no-open" in out


def test_with_its_table_a_page_shows_what_columns_would_have_gained(model, tmp_path):
    page = tmp_path / "page.html"
    plain, table = ("view", model, "-o", page, "--no-open"), datasets.path("weather")
    assert run(*plain)[0] == 0
    assert '"candidates"' not in page.read_text()
    assert run(*plain, "--data", table)[0] == 0
    assert '"candidates"' in page.read_text()
    other = tmp_path / "other.csv"
    lines = Path(table).read_text().splitlines(keepends=True)
    other.write_text("".join(lines[:8]))
    code, _, err = run(*plain, "--data", other)
    assert code == 1
    assert "grown from" in err
