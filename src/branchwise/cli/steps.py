"""``branchwise steps``: the worked solution of splits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import typer

from branchwise.cli import options
from branchwise.cli.fit import fit_rows
from branchwise.cli.options import Page, check_idle, growing, read_na_values, takes
from branchwise.cli.support import Reporter, check_outputs, open_output, style_of_file
from branchwise.cli.support.class_amounts import class_weighted
from branchwise.cli.support.models import open_model
from branchwise.cli.support.rows import (
    check_known_rows,
    check_two_streams,
    located,
    read_known_rows,
)
from branchwise.cli.support.training import read_training
from branchwise.errors import ParameterError, json_text
from branchwise.files.options import Reading
from branchwise.files.read_table import STANDARD_STREAM, TableFile
from branchwise.recipe.parameters import BUILT_IN, FOR_NUMBERS, canonical
from branchwise.steps.nodes import ALL, encoded
from branchwise.steps.result import DIGITS, Steps
from branchwise.train.hold_out import set_aside

_PAGE = Page("steps")
_STYLES = ("text", "markdown", "latex", "html", "json")
#: File ending -> style, unless --style is given.
_ENDINGS = {
    "": "text",
    ".txt": "text",
    ".md": "markdown",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
    ".json": "json",
}
#: Options of the table and of its weights, which a finished tree needs, too.
_WITH_MODEL = ("class_weight", "priors")
_NOT_PARAMETERS = (
    *("regression", "categorical", "numeric", "ignore", "categories", "order"),
    *("algorithm", "n_jobs"),
)


#: As ``branchwise fit`` has them, but --criterion may have several names.
_CRITERION = _PAGE.option("--criterion", panel="Growing")
_growing_options = growing.group(
    *(
        one.replace(default=_CRITERION) if one.name == "criterion" else one
        for one in growing.OPTIONS
    )
)


@takes(growth=_growing_options, reading=options.reading_options)
def steps(
    table_path: str = options.TABLE,
    target: str | None = _PAGE.option("--target"),
    model_path: str | None = _PAGE.option("--model"),
    nodes: list[str] | None = _PAGE.option("--node"),
    style: str | None = _PAGE.option("--style", choices=_STYLES),
    digits: int = _PAGE.option("--digits", DIGITS, min=1, max=15),
    reveal: bool = _PAGE.flag("--reveal"),
    worksheet: bool = _PAGE.flag("--worksheet"),
    rows: bool = _PAGE.flag("--rows"),
    output: str | None = _PAGE.option("--output"),
    algorithm: str | None = growing.TREE_ALGORITHM,
    regression: bool = growing.REGRESSION,
    quiet: bool = options.QUIET,
    *,
    growth: dict[str, Any],
    reading: Reading,
) -> None:
    """Print the worked solution of splits: counts, entropies, gains, and the choice."""
    grown_by = None
    if model_path is None:
        grown_by = growing.chosen_algorithm(algorithm, regression)
    criteria = _criteria(growth, grown_by in ("id3", "cart"))
    options = dict(locals()) | growth
    validation = growth["validation"]
    if model_path is None:
        _check_beyond_growth(options)
    wanted = _wanted(nodes)
    check_two_streams(
        TABLE=table_path, **{"--model": model_path, "--validation": validation}
    )
    check_outputs({"-o": output}, table_path, model_path, validation)
    if output is None or output == STANDARD_STREAM:
        style = style or "text"
    else:
        style = style_of_file(output, style, _ENDINGS)
    if style != "html":
        check_idle({"--reveal": reveal}, f"unless --style is html. Got {style}.")
    if style == "json":
        check_idle({"--worksheet": worksheet}, "with --style json. Leave it out.")
    check_idle(
        {"--reveal": reveal and worksheet},
        "beside --worksheet, which folds nothing. Leave it out.",
    )
    check_known_rows(table_path, "--validation", validation)
    reporter = Reporter(quiet)
    if model_path is None:
        found = _grow(options, wanted, reporter)
    else:
        found = _open(model_path, options, wanted, reporter)
    with open_output(output) as stream:
        written = _written(found, style, digits, reveal, worksheet)
        stream.write(written.encode("utf-8"))
    if output is not None:
        reporter.note(f"worked solution written to {output}.")


def _criteria(growth: dict[str, Any], has_criterion: bool) -> list[str]:
    """Take the criteria to compare out of the options.

    The first one grows the tree, if that is grown here by a criterion at all.
    """
    given = growth["criterion"]
    if given is None or "," not in given:
        return []
    names = [name.strip() for name in given.split(",")]
    allowed = (*BUILT_IN, *FOR_NUMBERS)
    for name in names:
        if canonical(name) not in allowed:
            raise ParameterError(
                f"--criterion must be a name among {', '.join(allowed)}, or several "
                f"with commas between them. Got {name!r} in {given!r}."
            )
    growth["criterion"] = names[0] if has_criterion else None
    return names


def _check_beyond_growth(options: Mapping[str, Any]) -> None:
    """Reject options that change predictions, but not the worked solution."""
    check_idle(
        {"--unseen-policy": options["unseen_policy"]},
        "here: the rows of a worked solution are those that the tree is grown from. "
        "Leave it out.",
    )
    check_idle(
        {"--probabilities laplace": options["probabilities"] == "laplace"},
        "here: the most probable class is the same as by frequencies. Leave it out.",
    )


def _wanted(given: list[str] | None) -> object:
    """Read which nodes are wanted."""
    if not given:
        return 0
    if given == [ALL]:
        return ALL
    try:
        return [int(text) for text in given]
    except ValueError:
        raise typer.BadParameter(
            f"--node must be the number of a node, or all by itself. Got "
            f"{', '.join(given)!r}."
        ) from None


def _file(options: Mapping[str, Any]) -> TableFile:
    na_values = read_na_values(options["missing"])
    return TableFile(options["table_path"], options["reading"], missing=na_values)


def _grow(options: Mapping[str, Any], wanted: object, reporter: Reporter) -> Steps:
    """Grow a tree and work it out."""
    if options["target"] is None:
        raise ParameterError(
            "--target must name the column to predict, unless --model is given. Got "
            "neither."
        )
    recipe = growing.recipe_of(options["algorithm"], options["regression"], options)
    with reporter.reading(options["table_path"]) as say:
        rows = read_training(_file(options), options)
        model = fit_rows(rows, recipe, options, say)
        X, y = rows.attributes, rows.labels
        weights = class_weighted(options, y, rows.weights)
        if options["validation_fraction"] is not None:
            # The tree was grown from the other rows.
            coded = encoded(model, X, y, weights)
            kept = np.flatnonzero(~set_aside(coded, options["validation_fraction"]))
            X, y = X.take(kept), y.take(kept)
            weights = None if weights is None else weights[kept]
        say("Working it out")
        return model.steps(X, y, wanted, weights, **_shown(options))


def _shown(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown beside the worked solution."""
    return {"criteria": options["criteria"], "rows": options["rows"]}


def _open(
    path: str, options: Mapping[str, Any], wanted: object, reporter: Reporter
) -> Steps:
    """Work out a tree that was grown before."""
    names = [n for n in growing.given_parameters(options) if n not in _WITH_MODEL]
    given = dict.fromkeys(names, True) | {n: options[n] for n in _NOT_PARAMETERS}
    check_idle(
        {growing.option_of(name): value for name, value in given.items()},
        "beside --model, whose tree is grown already. Leave out one of them.",
    )
    model = open_model(
        path, "Leave --model out, and give the options that a single tree grows with."
    )
    with reporter.reading(options["table_path"]) as say:
        rows = read_known_rows(
            model, _file(options), options["target"], options["weight"], reporter
        )
        weights = class_weighted(options, rows.y, rows.weights)
        say("Working it out")
        with located(rows.file):
            return rows.model.steps(rows.X, rows.y, wanted, weights, **_shown(options))


def _written(
    found: Steps, style: str, digits: int, reveal: bool, worksheet: bool
) -> str:
    if style == "json":
        return json_text(found.to_dict(), indent=2) + "\n"
    if style == "html":
        return found.to_html(digits, reveal, worksheet=worksheet)
    if style == "latex":
        return found.to_latex(digits, worksheet=worksheet)
    write = found.to_text if style == "text" else found.to_markdown
    return write(digits, worksheet=worksheet) + "\n"
