"""``branchwise export``."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from branchwise.export import verification
from branchwise.export.base import Runner, Target
from command_line import WEATHER, run


@pytest.fixture(name="model")
def model_of_weather(model):
    return model("weather")


def test_export_verifies_and_writes(model, tmp_path):
    path = tmp_path / "rules.json"
    code, out, err = run("export", model, "--to", "json", "-o", path)
    assert (code, out) == (0, "")
    assert err == (
        "note: json: 1,000 rows in rules_reader.py in a Python process: 0 differences\n"
    )
    assert json.loads(path.read_text())["format"] == "branchwise-rules"


def test_forests_are_exported(tmp_path):
    forest = tmp_path / "forest.json"
    arguments = ("--target", "play", "-a", "forest", "--n-estimators", "3")
    assert run("fit", WEATHER, *arguments, "-o", forest)[0] == 0
    code, out, err = run("export", forest, "--to", "json", "--verify", WEATHER)
    assert code == 0
    assert "json: 14 rows" in err
    assert len(json.loads(out)["trees"]) == 3


def test_rows_of_a_table(model):
    code, out, err = run("export", model, "--to", "json", "--verify", WEATHER)
    assert code == 0
    assert "json: 14 rows" in err
    assert json.loads(out)["target"] == "play"


def test_without_verification(model):
    code, out, err = run("export", model, "--to", "json", "--no-verify")
    assert (code, err) == (0, "")
    assert json.loads(out)["classes"] == ["no", "yes"]


def test_options(model):
    arguments = ("export", model, "--to", "json", "--no-verify", "--option")
    assert len(run(*arguments, "indent=0")[1].splitlines()) == 1
    code, _, err = run(*arguments, "indent")
    assert code == 2
    assert "--option takes NAME=VALUE" in err
    code, _, err = run(*arguments, "font=serif")
    assert code == 2
    assert "no option 'font'" in err


def test_bad_usage(model):
    code, _, err = run("export", model, "--to", "cobol")
    assert code == 2
    assert "target must be one of" in err
    code, _, err = run(
        "export", model, "--to", "json", "--verify", WEATHER, "--no-verify"
    )
    assert code == 2
    assert "exclude each other" in err


def test_a_difference_is_an_error_and_nothing_is_written(model, tmp_path, monkeypatch):
    runner = Runner("a runner", lambda: None, lambda _, plan, rows: [None] * len(rows))
    target = Target("wrong", "", lambda plan, _: b"text", lambda _: [runner])
    monkeypatch.setitem(verification.TARGETS, "wrong", target)
    path = tmp_path / "out"
    code, out, err = run("export", model, "--to", "wrong", "-o", path)
    assert (code, out) == (1, "")
    assert "differs from the model, and is not written" in err
    assert not path.exists()


def test_files_that_are_no_text_need_a_name(model, tmp_path, monkeypatch):
    target = Target("blob", "", lambda plan, _: b"\xff", lambda _: [], {}, True)
    monkeypatch.setitem(verification.TARGETS, "blob", target)
    code, _, err = run("export", model, "--to", "blob")
    assert code == 2
    assert "Say where to with -o FILE" in err
    arguments = ("export", model, "--to", "blob", "-o", tmp_path / "out")
    code, _, err = run(*arguments, "--no-verify")
    assert (code, err) == (0, "")
    assert (tmp_path / "out").read_bytes() == b"\xff"


@pytest.mark.parametrize("target", sorted(set(verification.TARGETS) - {"dmn"}))
def test_what_was_not_run_is_not_written(target, model, tmp_path, monkeypatch):
    """The same for every target: no program to run it, or no row to try."""
    own = verification.TARGETS[target]
    asked = replace(own, runners=lambda _: [Runner("x", lambda: "no x here", None)])
    monkeypatch.setitem(verification.TARGETS, target, asked)
    path = tmp_path / "out"
    code, out, err = run("export", model, "--to", target, "-o", path)
    assert (code, out) == (1, "")
    assert f"The export to '{target}' cannot be verified here: no x here." in err
    answered = Runner("x", lambda: None, lambda *_: [])
    asked = replace(own, runners=lambda _: [answered])
    monkeypatch.setitem(verification.TARGETS, target, asked)
    empty = tmp_path / "empty.csv"
    empty.write_text("outlook,temperature,humidity,windy\n", encoding="utf-8")
    code, out, err = run("export", model, "--to", target, "--verify", empty, "-o", path)
    assert (code, out) == (1, "")
    assert f"The export to '{target}' was run on no row at all, which" in err
    assert not path.exists()
    assert run("export", model, "--to", target, "--no-verify", "-o", path)[0] == 0
    assert path.exists()
