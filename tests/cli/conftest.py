"""Models on disk, and the program itself, for tests of the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from branchwise import datasets
from command_line import output


@pytest.fixture
def model(tmp_path):
    """Fit ID3 to a bundled table or a file, and return the path of the model file."""

    def make(table, *options, target=None):
        if table in datasets.names():
            target = datasets.load(table).target
            table = datasets.path(table)
        path = tmp_path / "tree.json"
        output("fit", table, "--target", target, "-o", path, "-a", "id3", *options)
        return path

    return make


@pytest.fixture
def start():
    """Start the real program, and see to it that it ends."""
    started = []

    def begin(*arguments, code="from branchwise.cli.main import main; main()"):
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()
