"""``branchwise studio``: growing a tree by hand in the browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from branchwise.cli import options
from branchwise.cli.options import (
    Page,
    argument,
    check_idle,
    check_share,
    growing,
    read_na_values,
    reading_options,
    takes,
)
from branchwise.cli.show import open_in_browser
from branchwise.cli.support import Reporter
from branchwise.cli.support.class_amounts import by_class
from branchwise.cli.support.training import assign_roles
from branchwise.errors import DataError, ParameterError
from branchwise.files.options import Reading
from branchwise.studio.server import MOST_UPLOAD, check_installed, serve
from branchwise.studio.workspace import Workspace

_PAGE = Page("studio")
#: Options of growing that sessions do not have.
_LEFT_OUT = ("validation", "validation_fraction", "priors", "costs", "costs_in")
_growing_options = growing.group(
    *(one for one in growing.OPTIONS if one.name not in _LEFT_OUT)
)
#: Options of growing that say how a table is read.
_READING = ("categorical", "numeric", "ignore", "missing", "categories", "order")


@takes(growth=_growing_options, reading=reading_options)
def studio(
    table_path: str | None = argument(
        "[TABLE]", "A CSV, TSV, Parquet, Excel or other table file.", default=None
    ),
    target: str | None = _PAGE.option("--target"),
    algorithm: str | None = growing.TREE_ALGORITHM,
    regression: bool = growing.REGRESSION,
    session: str | None = _PAGE.option("--session"),
    journal: str | None = _PAGE.option("--journal"),
    hold_out: float | None = _PAGE.option("--hold-out"),
    port: int | None = _PAGE.option("--port", min=0, max=65_535),
    max_upload: str | None = _PAGE.option("--max-upload"),
    no_browser: bool = _PAGE.flag("--no-browser"),
    quiet: bool = options.QUIET,
    *,
    growth: dict[str, Any],
    reading: Reading,
) -> None:
    """Grow a tree by hand, in the browser."""
    given = dict(locals()) | growth
    most = _largest_upload(max_upload)
    _check(given)
    check_installed()
    reporter = Reporter(quiet)
    workspace = Workspace(journal)
    try:
        if table_path is not None:
            with reporter.reading(table_path):
                _prepare(workspace, table_path, given)

        def ready(address: str, entry: str) -> None:
            typer.echo(f"branchwise studio: {address}")
            opened = not no_browser and open_in_browser(entry)
            where = "opened in the browser" if opened else "open it in a browser"
            reporter.note(f"{where}; Ctrl-C stops the studio.")

        serve(workspace, port=port or 0, max_upload=most, on_ready=ready)
    except KeyboardInterrupt as stop:
        # Ctrl-C is the way to stop it; SIGTERM has an exit code of its own.
        if type(stop) is not KeyboardInterrupt:
            raise
    finally:
        workspace.close()
    reporter.note("the studio has stopped.")


def _largest_upload(given: str | None) -> int:
    """Read a size, as ``--max-size`` has it."""
    if given is None:
        return MOST_UPLOAD
    try:
        size = Reading(max_size=given, flags=True).max_size  # type: ignore[arg-type]
    except ParameterError as error:
        words = str(error).replace("--max-size", "--max-upload")
        raise ParameterError(words) from None
    return size or MOST_UPLOAD


def _check(given: Mapping[str, Any]) -> None:
    """Reject options that have no effect, and files that cannot be kept."""
    check_share("--hold-out", given["hold_out"])
    named = {growing.option_of(n): True for n in growing.given_parameters(given)}
    read = {f"--{name}": given[name] for name in _READING}
    others = {
        "--algorithm": given["algorithm"],
        "--regression": given["regression"],
        "--hold-out": given["hold_out"],
        "--weight": given["weight"],
        "--n-jobs": given["n_jobs"],
    }
    if given["table_path"] is None:
        own = {"--target": given["target"], "--session": given["session"]}
        why = "without a TABLE. Name the table, or choose all of it on the page."
        check_idle({**own, **read, **named, **others}, why)
        if given["reading"] != Reading():
            raise ParameterError(f"Options of reading have no effect {why}")
    elif given["session"] is not None:
        idle = {"--target": given["target"], **named, **others}
        check_idle(idle, "beside --session, which has its own. Leave out one of them.")
    elif given["target"] is None:
        check_idle(
            {**named, **others},
            "without --target. Name the column to predict, or choose all of it on the "
            "page.",
        )
    journal = given["journal"]
    if journal is not None and Path(journal).exists() and journal != given["session"]:
        raise DataError(
            f"--journal {journal} is there already. Go on with it by --session "
            f"{journal}, or choose another name."
        )


def _prepare(workspace: Workspace, path: str, given: Mapping[str, Any]) -> None:
    """Load the table, and begin or open the session that the options name."""
    missing = read_na_values(given["missing"])
    workspace.open_file(path, given["reading"], missing)
    file = workspace.loaded.file
    known = {**given, "target": given["target"] or file.names[0]}
    roles = assign_roles(file, known)
    kinds = {
        **dict.fromkeys(roles.numbers, "number"),
        **dict.fromkeys(roles.text, "category"),
        **dict.fromkeys(roles.ignored, "ignore"),
    }
    if given["session"] is not None:
        workspace.reopen(given["session"], kinds)
    elif given["target"] is not None:
        kinds.pop(roles.target, None)
        weights = by_class("--class-weight", given["class_weight"])
        workspace.begin(
            given["target"],
            growing.recipe_of(given["algorithm"], given["regression"], given),
            kinds,
            validation_fraction=given["hold_out"],
            sample_weight=roles.weight,
            class_weight=weights,
            n_jobs=given["n_jobs"],
            **roles.declared,
        )
    else:
        workspace.suggest(kinds)
