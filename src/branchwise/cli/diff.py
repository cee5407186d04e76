"""``branchwise diff``: differences between two models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer

from branchwise.cli.options import shared
from branchwise.cli.options.declaration import flag, takes
from branchwise.cli.options.shared import (
    TextFormat,
    check_without_table,
    read_na_values,
)
from branchwise.cli.support.models import check_two_streams, open_model, read_for_model
from branchwise.cli.support.rows import print_written, true_classes, true_numbers
from branchwise.cli.support.streams import Reporter
from branchwise.errors import DataError, ParameterError
from branchwise.explain.diff import ModelDiff, Side, diff_models
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from branchwise.model import Model

#: The exit code of --exit-code where predictions differ.
DIFFERENT = 1


@takes(reading=shared.reading_options)
def diff(
    old_path: str = shared.MODEL,
    new_path: str = shared.MODEL,
    table_path: str | None = shared.OPTIONAL_TABLE,
    target: str | None = shared.target_option(
        "The column of TABLE with the true classes or numbers.",
        "the target of the new model, if TABLE has it",
    ),
    exit_code: bool = flag(
        "--exit-code",
        "Exit with code 1 if predictions differ: those for the rows of TABLE, "
        "or, without TABLE, if splits or leaf values of the trees differ.",
    ),
    missing: list[str] | None = shared.NA_VALUES,
    output_format: TextFormat = shared.TEXT_FORMAT,
    quiet: bool = shared.QUIET,
    *,
    reading: Reading,
) -> None:
    """Compare a new model with an old one.

    Which splits differ, which columns are new, and, with a table, for which rows the
    prediction changes.

    \b
    Examples:
      branchwise diff old.json new.json
      branchwise diff old.json new.json test.csv
      branchwise diff old.json new.json test.csv --target play --format json
      branchwise diff old.json new.json test.csv --exit-code
    """
    check_two_streams(OLD=old_path, NEW=new_path, TABLE=table_path)
    check_without_table(reading, "TABLE", table_path)
    old, new = open_model(old_path), open_model(new_path)
    if table_path is None:
        if target is not None:
            raise ParameterError("--target names a column of a TABLE. Give one, too.")
        found = old.diff(new)
    else:
        reporter = Reporter(quiet)
        with reporter.reading(table_path):
            table = TableFile(table_path, reading)
            found = _compared(old, new, table, target, missing, reporter)
    print_written(found, output_format)
    if exit_code and not found.same_predictions:
        raise typer.Exit(DIFFERENT)


def _compared(
    old: Model,
    new: Model,
    file: TableFile,
    target: str | None,
    missing: list[str] | None,
    reporter: Reporter,
) -> ModelDiff:
    na_values = read_na_values(missing)
    if target is None and new.schema.target in file.names:
        target = new.schema.target
    if target is not None:
        file.check_names([target])
    besides = [] if target is None else [target]
    sides = []
    for which, model in (("old", old), ("new", new)):
        try:
            named, table = read_for_model(model, file, na_values, reporter, besides)
        except DataError as error:
            raise DataError(f"The {which} model cannot read it. {error}") from None
        sides.append(Side(which, named, table))
    if target is not None:
        truth = _truth(new, file, target, na_values)
        rows = [row for row, label in enumerate(truth) if label is not None]
        labels = [truth[row] for row in rows]
        sides = [replace(side, labelled=(side.X.take(rows), labels)) for side in sides]
    return diff_models(*sides)


def _truth(
    model: Model, file: TableFile, target: str, na_values: tuple[str, ...]
) -> Any:
    """Read the true classes or numbers; None where there are none."""
    if model.tree.is_regression:
        numbers = true_numbers(file, target, na_values).tolist()
        return [None if number != number else number for number in numbers]
    truth = true_classes(file, target, model.schema, na_values)
    return [None if code < 0 else truth.labels[code] for code in truth.codes.tolist()]
