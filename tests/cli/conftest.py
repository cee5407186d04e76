"""Models on disk, and the program itself, for tests of the command line."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from branchwise import datasets
from command_line import output


@cache
def of_bundled(name, *options):
    """Return the bytes of the model file of a bundled table, fitted once."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tree.json"
        target = datasets.load(name).target
        given = datasets.path(name), "--target", target, "-o", path, "-a", "id3"
        output("fit", *given, *options)
        return path.read_bytes()


@pytest.fixture
def model(tmp_path):
    """Fit ID3 to a bundled table or a file, and return the path of the model file."""

    def make(table, *options, target=None):
        path = tmp_path / "tree.json"
        if table in datasets.names():
            path.write_bytes(of_bundled(table, *options))
        else:
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
