"""``branchwise view``: the tree as an interactive page, in the browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from branchwise.cli.options import shared
from branchwise.cli.options.declaration import flag, option, takes
from branchwise.cli.options.shared import check_without_table, read_na_values
from branchwise.cli.support.models import check_two_streams, open_model
from branchwise.cli.support.rows import read_known_rows
from branchwise.cli.support.streams import (
    Reporter,
    check_outputs,
    open_output,
)
from branchwise.errors import DataError, ParameterError, counted
from branchwise.files.options import Reading
from branchwise.files.read_table import STANDARD_STREAM, TableFile
from branchwise.render.view import GENERATOR

#: So much of a file is read to tell whether it is a page of ours.
_HEAD = 4096
#: On these systems there is always a screen.
_WITH_SCREEN = ("darwin", "win32", "cygwin")


@takes(reading=shared.reading_options)
def view(
    model_path: str = shared.MODEL,
    output: str | None = shared.output_option(
        "The page to write; - is standard output.", "the model's name, ending in .html"
    ),
    title: str | None = shared.TITLE,
    data: str | None = option(
        "--data TABLE",
        "The table that the tree was grown from: nodes then show what every "
        "column would have gained.",
    ),
    missing: list[str] | None = shared.NA_VALUES,
    no_open: bool = flag("--no-open", "Write the page, but do not open it."),
    quiet: bool = shared.QUIET,
    *,
    reading: Reading,
) -> None:
    """Write the tree as one HTML page and open it in the browser.

    The page needs no network: it can be sent to anyone, and works as a file.

    \b
    Examples:
      branchwise view tree.json
      branchwise view tree.json -o report.html --title "Who buys again?"
      branchwise view tree.json --data data.csv --no-open
    """
    check_two_streams(MODEL=model_path, TABLE=data)
    check_without_table(reading, "--data", data, missing=missing)
    reporter = Reporter(quiet)
    model = open_model(model_path)
    target = output if output is not None else _beside(model_path)
    check_outputs({"-o": target}, model_path, data)
    if data is None:
        page = model.to_html(title=title)
    else:
        na_values = read_na_values(missing)
        with reporter.reading(data):
            table = TableFile(data, reading)
            rows = read_known_rows(model, table, None, None, na_values, reporter)
            page = rows.model.to_html(title=title, X=rows.X, y=rows.y)
    with open_output(target) as file:
        file.write(page.encode("utf-8"))
    if target == STANDARD_STREAM:
        return
    opened = not no_open and _open(target)
    nodes = counted(len(model.tree), "node")
    end = "opened in the browser." if opened else "open it in a browser."
    reporter.note(f"page of a tree of {nodes} written to {target}; {end}")


def _beside(model_path: str) -> str:
    """Return the name of a page next to a model, if nothing of the user's is there."""
    if model_path == STANDARD_STREAM:
        raise ParameterError(
            "-o must name the page where the model comes from standard input: there "
            "is no file name to take one from. Add -o tree.html."
        )
    path = Path(model_path).with_suffix(".html")
    if path.is_file() and not _is_ours(path):
        raise DataError(
            f"{str(path)!r} is there and was not written by branchwise. Name the page "
            f"with -o; -o {path} replaces that file."
        )
    return str(path)


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return GENERATOR.encode("ascii") in file.read(_HEAD)


def _open(path: str) -> bool:
    """Open a page in the browser of the user, if there is a screen to show it on."""
    screen = sys.platform in _WITH_SCREEN or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not screen:
        return False
    try:
        return webbrowser.open(Path(path).resolve().as_uri())
    except webbrowser.Error:
        return False
