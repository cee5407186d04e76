"""``branchwise export``."""

from __future__ import annotations

import json

import pytest

from branchwise.export import verification
from branchwise.export.target import Runner, Target
from test_cli import WEATHER, run


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "tree.json"
    assert run("fit", WEATHER, "--target", "play", "-o", path, "-q")[0] == 0
    return path


def test_export_verifies_and_writes(model, tmp_path):
    path = tmp_path / "rules.json"
    code, out, err = run("export", model, "--to", "json", "-o", path)
    assert (code, out) == (0, "")
    assert err == (
        "note: json: 1,000 rows in rules_reader.py in a Python process: 0 differences\n"
    )
    assert json.loads(path.read_text())["format"] == "branchwise-rules"


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
    assert "answers in another way than the model, and is not written" in err
    assert not path.exists()


def test_files_that_are_no_text_need_a_name(model, tmp_path, monkeypatch):
    runner = Runner("a runner", lambda: None, lambda *_: None, "its form is checked")
    target = Target("blob", "", lambda plan, _: b"\xff", lambda _: [runner], {}, True)
    monkeypatch.setitem(verification.TARGETS, "blob", target)
    code, _, err = run("export", model, "--to", "blob")
    assert code == 2
    assert "Say where to with -o FILE" in err
    code, _, err = run("export", model, "--to", "blob", "-o", tmp_path / "out")
    assert code == 0
    assert err == "note: blob: not run; its form is checked\n"
    assert (tmp_path / "out").read_bytes() == b"\xff"
