"""``branchwise studio``: what it starts with, what it refuses, how it stops."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import webbrowser

import pytest
from typer.testing import CliRunner

from branchwise import datasets
from branchwise.cli import studio
from branchwise.cli.main import app

pytest.importorskip("uvicorn")
WEATHER = str(datasets.path("weather"))


@pytest.fixture(name="served")
def serving(monkeypatch):
    """Keep what would be served."""
    served = {}

    def serve(workspace, *, on_ready, **options):
        served.update(state=workspace.state(), options=options, workspace=workspace)
        if served["state"]["stage"] == "session":
            served["script"] = workspace.script()["text"]
            served["model"] = workspace.view.session.model
        on_ready("http://127.0.0.1:1/token/", "http://127.0.0.1:1/open/once")
        if served.get("stop"):
            raise served["stop"]

    monkeypatch.setattr(studio, "serve", serve)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda url: served.update(url=url) or True)
    return served


def run(*arguments):
    return CliRunner().invoke(app, ["studio", *arguments])


def test_without_a_table_the_page_asks_for_one(served):
    done = run()
    assert done.exit_code == 0, done.output
    assert "branchwise studio: http://127.0.0.1:1/token/" in done.output
    assert served["state"]["stage"] == "empty"
    assert served["options"] == {"port": 0, "max_upload": 500_000_000}
    # What other users of the computer see of the command is of no use afterwards.
    assert served["url"] == "http://127.0.0.1:1/open/once"


def test_without_a_target_the_page_asks_for_it(served):
    assert run(WEATHER, "--categorical", "humidity").exit_code == 0
    state = served["state"]
    assert state["stage"] == "table"
    assert state["table"]["name"] == "weather.csv"
    kinds = {column["name"]: column["kind"] for column in state["table"]["columns"]}
    assert kinds["humidity"] == "category"
    # They are kept unless the page corrects them.
    state = served["workspace"].start(target="play")
    assert state["kinds"] == {"humidity": "category"}
    state = served["workspace"].start(target="play", kinds={"humidity": "number"})
    assert state["kinds"] == {"humidity": "number"}


def test_a_table_and_a_target_are_a_session(served):
    options = ["-t", "play", "-a", "id3", "--max-depth", "3", "--ignore", "windy"]
    done = run(WEATHER, *options, "--port", "99", "--max-upload", "1MB", "--no-browser")
    assert done.exit_code == 0, done.output
    state = served["state"]
    assert state["stage"] == "session"
    assert state["target"] == "play"
    assert state["algorithm"] == "ID3"
    assert state["recipe"]["max_depth"] == 3
    assert [c["name"] for c in state["columns"]] == [
        *("outlook", "temperature", "humidity")
    ]
    assert served["options"] == {"port": 99, "max_upload": 1_000_000}
    assert "url" not in served


def test_the_script_has_the_options_of_reading(served, tmp_path, monkeypatch):
    text = "n;c;y\n1,5;red;a\n2,5;blue;b\n3,5;none;a\n"
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    options = ["--separator", ";", "--missing", "none", "--class-weight", "a=2,b=3"]
    done = run("t.txt", "-t", "y", *options, "--categorical", "n")
    assert done.exit_code == 0, done.output
    lines = served["script"].splitlines()
    assert lines[3] == (
        "table = branchwise.read_table('t.txt', separator=';', missing=['', 'none'], "
        "text_columns=['n'])"
    )
    known = {}
    exec("\n".join(lines), known)
    assert known["model"].to_bytes() == served["model"].to_bytes()
    assert served["state"]["tree"][0]["weights"] == [4, 3]


def test_numbers_are_predicted(served):
    done = run(WEATHER, "-t", "temperature", "--regression", "--hold-out", "0.3")
    assert done.exit_code == 0, done.output
    assert served["state"]["predicts"] == "numbers"
    assert served["state"]["validation_fraction"] == 0.3


def test_a_journal_is_kept_and_gone_on_with(served, tmp_path):
    journal = str(tmp_path / "play.actions.json")
    assert run(WEATHER, "-t", "play", "--journal", journal).exit_code == 0
    assert json.loads((tmp_path / "play.actions.json").read_text())["target"] == "play"
    done = run(WEATHER, "-t", "play", "--journal", journal)
    assert done.exit_code == 1
    assert f"Go on with it by --session {journal}" in done.output
    with (tmp_path / "play.actions.json").open("a") as file:
        file.write('{"do": "split", "node": "/", "column": "outlook"}\n')
    done = run(WEATHER, "--session", journal, "--journal", journal)
    assert done.exit_code == 0, done.output
    assert len(served["state"]["tree"]) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-t", "play"], "--target has no effect without a TABLE"),
        (["--max-depth", "3"], "--max-depth has no effect without a TABLE"),
        (["--separator", ";"], "Options of reading have no effect without a TABLE"),
        (["--session", "x"], "--session has no effect without a TABLE"),
        ([WEATHER, "--max-depth", "3"], "--max-depth has no effect without --target"),
        ([WEATHER, "-t", "play", "--session", "x"], "--target has no effect beside"),
        ([WEATHER, "-t", "play", "--hold-out", "2"], "--hold-out must be a share"),
        ([WEATHER, "-t", "play", "--max-upload", "much"], "--max-upload must be"),
        ([WEATHER, "-t", "nothing"], "nothing"),
        ([WEATHER, "--session", "absent.json"], "absent.json"),
        (["absent.csv", "-t", "play"], "absent.csv"),
        (["--port", "99999"], "--port"),
    ],
)
def test_what_cannot_be_done_is_refused(served, arguments, message):
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert message in re.sub(r"\s+", " ", done.output)
    assert "state" not in served


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("--port", port, "--no-browser")
    assert done.exit_code == 1
    assert f"--port {port} cannot be used" in done.output


def test_ctrl_c_is_the_way_to_stop(served):
    served["stop"] = KeyboardInterrupt()
    done = run(WEATHER)
    assert done.exit_code == 0
    assert "the studio has stopped" in done.output


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")
def test_it_serves_until_ctrl_c(tmp_path):
    command = [sys.executable, "-m", "branchwise", "studio", WEATHER, "-t", "play"]
    running = subprocess.Popen(
        [*command, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        restore_signals=True,
    )
    try:
        address = running.stdout.readline().rpartition(" ")[2].strip()
        with urllib.request.urlopen(address, timeout=20) as page:
            assert b"branchwise studio" in page.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address[:-5], timeout=20)
        origin = "/".join(address.split("/")[:3])
        request = urllib.request.Request(
            f"{address}api",
            b'{"method": "state"}',
            {"Content-Type": "application/json", "Origin": origin},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert json.load(answer)["result"]["stage"] == "session"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    finally:
        running.kill()
    assert running.returncode == 0, errors
    assert "Traceback" not in errors
    assert errors.rstrip().endswith("note: the studio has stopped.")
    assert list(tmp_path.iterdir()) == []
