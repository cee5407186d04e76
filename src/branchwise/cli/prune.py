"""``branchwise prune``: a model file -> a smaller one, without growing it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from branchwise.cli import options
from branchwise.cli.options import Page, check_idle, check_without_table, growing, takes
from branchwise.cli.options.model_metadata import ModelOptions
from branchwise.cli.show import report_model
from branchwise.cli.support import check_outputs, print_json, print_lines
from branchwise.cli.support.models import open_model, size_of, write_model
from branchwise.cli.support.rows import (
    Inputs,
    KnownRows,
    check_two_streams,
    input_options,
    located,
    read_known_rows,
)
from branchwise.errors import ParameterError
from branchwise.model import Model
from branchwise.recipe import FIELDS
from branchwise.recipe.parameters import PARAMETERS, PRUNINGS, Pruning
from branchwise.text.document import aligned

_PAGE = Page("prune")
#: The columns of a pruning path, and what they are called in print.
_PATH_COLUMNS = {
    "alpha": "alpha",
    "n_leaves": "leaves",
    "train_error": "training error",
    "validation_error": "error on data",
}


#: Help that differs from that of branchwise fit.
_HELP = {
    "raise_subtrees": "error-based with --data: no subtree raising.",
    "ccp_alpha": "cost-complexity: the complexity parameter, in units of impurity "
    "or errors (--path lists the effective values); or the one with the least error "
    "on --data, or the largest within one standard error of that.",
}
#: The options of one pruning method each.
pruning_options = growing.group(
    *(
        growing.declared(name, _HELP.get(name, ""), shows_default=name != "ccp_alpha")
        for name, parameter in PARAMETERS.items()
        if (parameter.only_with or ("",))[0] == "pruning" and name in FIELDS
    )
)


@takes(pruning=pruning_options, kept=ModelOptions, inputs=input_options)
def prune(
    *,
    model_path: str = options.MODEL,
    output: str | None = options.MODEL_OUTPUT,
    method: Pruning | None = _PAGE.option("--method", choices=PRUNINGS),
    data_path: str | None = _PAGE.option("--data"),
    target: str | None = _PAGE.option("--target"),
    weight: str | None = _PAGE.option("--weight"),
    pruning: dict[str, Any],
    collapse: list[int] | None = _PAGE.option("--collapse"),
    merge_same_leaves: bool = _PAGE.flag("--merge-same-leaves"),
    change_probabilities: bool = _PAGE.flag("--change-probabilities"),
    path: bool = _PAGE.flag("--path"),
    kept: ModelOptions,
    output_format: str = options.FORMAT,
    inputs: Inputs,
) -> None:
    """Make the tree of a model file smaller, without growing it again."""
    given = growing.given_parameters(pruning)
    changes = method is not None or bool(collapse) or merge_same_leaves or kept.given
    kept.check(output, output_format)
    _check_request(path, changes, output)
    _check_method(method, given)
    _check_data(method, given, data_path is not None, path, weight)
    if not merge_same_leaves:
        why = "without --merge-same-leaves."
        check_idle({"--change-probabilities": change_probabilities}, why)
    check_without_table(
        inputs.reading, "--data", data_path, missing=inputs.missing, target=target
    )
    reporter = inputs.reporter
    check_two_streams(MODEL=model_path, **{"--data": data_path})
    check_outputs({"-o": output}, data_path)  # a model may be pruned in its place
    model = open_model(
        model_path,
        "Limit the trees of an ensemble when they are grown: branchwise fit has "
        "--max-depth, --min-samples-leaf and --max-leaf-nodes.",
    )
    with reporter.working(f"Reading {data_path or model_path}") as say:
        rows = KnownRows(model)
        if data_path is not None:
            file = inputs.open(data_path)
            rows = read_known_rows(model, file, target, weight, reporter)
        say("Pruning")
        if path:
            table = rows.model.pruning_path(rows.X, rows.y)
        else:
            smaller = rows.model
            if collapse:
                smaller = smaller.collapse_nodes(*collapse)
            if method is not None:
                smaller = _pruned(smaller, rows, method, given)
            if merge_same_leaves:
                smaller = smaller.merge_same_leaves(change_probabilities)
            # Whether columns have names is as it was.
            smaller = Model(model.schema, smaller.tree, smaller.recipe)
            smaller = kept.applied(smaller)
        if output is not None:
            say("Writing")
            write_model(smaller, output)
    if path:
        _print_path(table, output_format)
    else:
        before = size_of(model).removeprefix("tree of ")
        summary = f"{size_of(smaller)} pruned from {before}"
        report_model(smaller, summary, output, output_format, reporter)


def _check_request(path: bool, changes: bool, output: str | None) -> None:
    if path and (changes or output is not None):
        raise ParameterError(
            "--path only prints a table, so --method, --collapse, "
            "--merge-same-leaves, --drop-unused, metadata and --output have no effect "
            "beside it. Give it alone."
        )
    if not path and not changes:
        raise ParameterError(
            "No pruning was requested. Give --method, --collapse, "
            "--merge-same-leaves, --drop-unused or --path."
        )


def _check_method(method: Pruning | None, given: Mapping[str, Any]) -> None:
    growing.check_effects(given, {"pruning": method}, "--method")
    if method == "cost-complexity" and "ccp_alpha" not in given:
        raise ParameterError(
            "--method cost-complexity needs --ccp-alpha. --path lists the effective "
            "values."
        )


def _check_data(
    method: Pruning | None,
    given: Mapping[str, Any],
    has_data: bool,
    path: bool,
    weight: str | None,
) -> None:
    """Reject rows that have no effect, and require rows that are needed."""
    by_rule = isinstance(given.get("ccp_alpha"), str)
    if not has_data and (method == "reduced-error" or by_rule):
        what = f"--ccp-alpha {given['ccp_alpha']}" if by_rule else f"--method {method}"
        raise ParameterError(
            f"{what} needs rows to prune with, other than those that the tree was "
            "grown from. Give them with --data."
        )
    if not has_data:
        why = "without --data: subtree raising needs the training rows."
        check_idle({"--no-raise-subtrees": given.get("raise_subtrees") is False}, why)
    by_number = method == "cost-complexity" and not by_rule
    check_idle(
        {"--data": has_data and not path and (method is None or by_number)},
        "unless --method is error-based or reduced-error, --ccp-alpha is best or 1-se, "
        "or --path is given.",
    )
    if path or not has_data:
        check_idle(
            {"--weight": weight}, "without --method and --data, whose rows it weighs."
        )


def _pruned(
    model: Model, rows: KnownRows, method: Pruning, given: Mapping[str, Any]
) -> Model:
    parameters = dict(given)
    if method == "error-based" and rows.X is None:
        parameters["raise_subtrees"] = False
    if rows.weights is not None:
        parameters["sample_weight"] = rows.weights
    with located(rows.file):
        return model.prune(method, rows.X, rows.y, **parameters)


def _print_path(table: Any, output_format: str) -> None:
    columns = {name: getattr(table, name) for name in _PATH_COLUMNS}
    known = {n: c.tolist() for n, c in columns.items() if c is not None}
    rows = list(zip(*known.values(), strict=True))
    if output_format == "json":
        print_json([dict(zip(known, row, strict=True)) for row in rows])
        return
    head = [_PATH_COLUMNS[name] for name in known]
    cells = [
        [f"{cell:,}" if isinstance(cell, int) else f"{cell:.6g}" for cell in row]
        for row in rows
    ]
    print_lines(aligned([head, *cells], [True for _ in head]))
