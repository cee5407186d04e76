"""``branchwise explain``, ``what-if`` and ``diff``: predictions in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from branchwise.cli import options
from branchwise.cli.options import Page, check_without_table, listed_names, takes
from branchwise.cli.support import Reporter
from branchwise.cli.support.models import open_any, open_model, tree_of
from branchwise.cli.support.rows import (
    Inputs,
    check_two_streams,
    class_written,
    input_options,
    located,
    print_written,
    read_for_model,
    read_rows,
    read_truth,
    split_pair,
)
from branchwise.errors import DataError, ParameterError
from branchwise.explain.diff import ModelDiff, Side, diff_models
from branchwise.explain.explanation import Explanations
from branchwise.files.options import as_number
from branchwise.files.read_table import TableFile
from branchwise.model import Model

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble

_EXPLAIN, _WHAT_IF, _DIFF = map(Page, ("explain", "what-if", "diff"))
#: The exit code of --exit-code where predictions differ.
DIFFERENT = 1


@takes(inputs=input_options)
def explain(
    model_path: str = options.MODEL,
    table_path: str | None = options.OPTIONAL_TABLE,
    row: int | None = _EXPLAIN.option("--row", min=0),
    settings: list[str] | None = options.SETTINGS,
    level: float = _EXPLAIN.option("--level", 0.95),
    shap: bool = _EXPLAIN.flag("--shap"),
    background: str | None = _EXPLAIN.option("--background"),
    tree: int | None = options.TREE,
    output_format: str = options.TEXT_FORMAT,
    *,
    inputs: Inputs,
) -> None:
    """Explain the predictions for the rows of a table, or for one row."""
    check_two_streams(
        MODEL=model_path, TABLE=table_path, **{"--background": background}
    )
    if background is not None and not shap:
        raise ParameterError("--background has no effect without --shap. Give both.")
    model = open_any(model_path)
    if tree is not None:
        model = tree_of(model, model_path, tree)
    corrects = False
    if not isinstance(model, Model):
        method = model.recipe.method
        # Rules that vote are explained by those that hold, or by Shapley values alone.
        corrects = method != "forest" and (method != "rules" or shap)
        if corrects and not shap:
            raise ParameterError(
                f"{model_path} holds boosted trees, which correct each other: the way "
                "through one of them explains little. Give --shap for what each column "
                f"contributed, or choose one with --tree N, from 0 to {len(model) - 1}."
            )
    rows = read_rows(model, table_path, row, settings, inputs)
    others = None if background is None else _read_background(model, background, inputs)
    with located(rows.file if row is None else None):
        if corrects:
            values = rows.model.shap(rows.rows, others)
            values = replace(values, rows=tuple(n + rows.first for n in values.rows))
            print_written(values, output_format)
            return
        explained = rows.model.explain(rows.rows, level, shap=shap, background=others)
    if not isinstance(explained, Explanations):
        explained = replace(explained, row=rows.first)
        if getattr(explained, "shap", None) is not None:
            values = replace(explained.shap, rows=(rows.first,))
            explained = replace(explained, shap=values)
    print_written(explained, output_format)


def _read_background(model: Model | Ensemble, path: str, inputs: Inputs) -> Any:
    """Read the rows that a row is compared with."""
    with inputs.opened(path) as (file, _):
        _, table = read_for_model(model, file, inputs.reporter)
    if not table.num_rows:
        raise DataError(
            f"--background must have at least one row. {file.label} has none."
        )
    return table


@takes(inputs=input_options)
def what_if(
    model_path: str = options.MODEL,
    table_path: str | None = options.OPTIONAL_TABLE,
    row: int | None = _WHAT_IF.option("--row", min=0),
    settings: list[str] | None = options.SETTINGS,
    target: str | None = _WHAT_IF.option("--target"),
    immutable: list[str] | None = _WHAT_IF.option("--immutable"),
    cost: list[str] | None = _WHAT_IF.option("--cost"),
    monotone: list[str] | None = _WHAT_IF.option("--monotone"),
    whole: list[str] | None = _WHAT_IF.option("--whole"),
    allow_missing: bool = _WHAT_IF.flag("--allow-missing"),
    how_many: int = _WHAT_IF.option("--how-many", 1, min=1),
    output_format: str = options.TEXT_FORMAT,
    *,
    inputs: Inputs,
) -> None:
    """Find the smallest change of a row that changes its prediction."""
    check_two_streams(MODEL=model_path, TABLE=table_path)
    model = open_model(
        model_path,
        "branchwise explain --shap tells what each column contributed to the "
        "predictions of an ensemble.",
    )
    if table_path is not None:
        row = row or 0
    rows = read_rows(model, table_path, row, settings, inputs)
    names = model.schema.names
    label = None if target is None else class_written(model.schema, target)
    result = rows.model.what_if(
        rows.rows,
        target if label is None else label,
        immutable=listed_names(immutable, names),
        costs=_costs(cost, names),
        monotone=dict(split_pair("--monotone", m, names) for m in monotone or ()),
        whole=listed_names(whole, names),
        allow_missing=allow_missing,
        how_many=how_many,
    )
    print_written(result, output_format)


def _costs(given: Sequence[str] | None, names: Sequence[str]) -> dict[str, Any]:
    unit_costs: dict[str, Any] = {}
    for entry in given or ():
        name, text = split_pair("--cost", entry, names)
        unit_costs[name] = as_number(text)
        if unit_costs[name] is None:
            raise ParameterError(
                f"--cost must be COLUMN=COST with a number of at least 0, or inf. Got "
                f"{entry!r}."
            )
    return unit_costs


@takes(inputs=input_options)
def diff(
    old_path: str = options.MODEL,
    new_path: str = options.MODEL,
    table_path: str | None = options.OPTIONAL_TABLE,
    target: str | None = _DIFF.option("--target"),
    exit_code: bool = _DIFF.flag("--exit-code"),
    output_format: str = options.TEXT_FORMAT,
    *,
    inputs: Inputs,
) -> None:
    """Compare a new model with an old one."""
    check_two_streams(OLD=old_path, NEW=new_path, TABLE=table_path)
    check_without_table(inputs.reading, "TABLE", table_path)
    advice = "Compare ensembles by their scores: branchwise evaluate MODEL TABLE."
    old, new = open_model(old_path, advice), open_model(new_path, advice)
    if table_path is None:
        if target is not None:
            raise ParameterError("--target names a column of a TABLE. Give one, too.")
        found = old.diff(new)
    else:
        with inputs.opened(table_path) as (table, _):
            found = _compared(old, new, table, target, inputs.reporter)
    print_written(found, output_format)
    if exit_code and not found.same_predictions:
        raise typer.Exit(DIFFERENT)


def _compared(
    old: Model,
    new: Model,
    file: TableFile,
    target: str | None,
    reporter: Reporter,
) -> ModelDiff:
    if target is None and new.schema.target in file.names:
        target = new.schema.target
    if target is not None:
        file.check_names([target])
    besides = [] if target is None else [target]
    sides = []
    for which, model in (("old", old), ("new", new)):
        try:
            named, table = read_for_model(model, file, reporter, besides)
        except DataError as error:
            raise DataError(f"The {which} model cannot read it. {error}") from None
        sides.append(Side(which, named, table))
    if target is not None:
        truth = read_truth(new, file, target)
        rows = np.flatnonzero(truth.known)
        labels = truth.values[rows].tolist()
        if truth.labels:
            labels = [truth.labels[code] for code in labels]
        sides = [replace(side, labelled=(side.X.take(rows), labels)) for side in sides]
    return diff_models(*sides)
