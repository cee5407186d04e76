"""``branchwise diff``: what sets two models apart."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from branchwise.cli.options.shared import (
    MissingMarks,
    ModelPath,
    Quiet,
    missing_marks,
    refuse_without_table,
)
from branchwise.cli.support.models import open_model, read_for_model, refuse_two_streams
from branchwise.cli.support.rows import (
    OptionalTable,
    WordsForm,
    WordsFormat,
    print_written,
    true_classes,
    true_numbers,
)
from branchwise.cli.support.streams import Reporter
from branchwise.errors import DataError, ParameterError
from branchwise.explain.diff import ModelDiff, Side, diff_models
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from branchwise.model import Model

#: The exit code that --exit-code asks for where answers differ.
DIFFERENT = 1


def diff(
    old_path: ModelPath,
    new_path: ModelPath,
    table_path: OptionalTable = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column of TABLE with the true answers.",
            show_default="the target of the new model, if TABLE has it",
        ),
    ] = None,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="End with code 1 if answers differ: those to the rows of TABLE, or, "
            "without one, questions or answers of the trees.",
        ),
    ] = False,
    missing: MissingMarks = None,
    form: WordsFormat = WordsForm.TEXT,
    quiet: Quiet = False,
    *,
    reading: Reading,
) -> None:
    """Tell what sets a new model apart from an old one.

    Which questions moved, which columns are new, and, with a table, which rows change
    answer.

    \b
    Examples:
      branchwise diff old.json new.json
      branchwise diff old.json new.json test.csv
      branchwise diff old.json new.json test.csv --target play --format json
      branchwise diff old.json new.json test.csv --exit-code
    """
    refuse_two_streams(OLD=old_path, NEW=new_path, TABLE=table_path)
    refuse_without_table(reading, "TABLE", table_path)
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
    print_written(found, form)
    if exit_code and not found.same_answers:
        raise typer.Exit(DIFFERENT)


def _compared(
    old: Model,
    new: Model,
    file: TableFile,
    target: str | None,
    missing: list[str] | None,
    reporter: Reporter,
) -> ModelDiff:
    marks = missing_marks(missing)
    if target is None and new.schema.target in file.names:
        target = new.schema.target
    if target is not None:
        file.check_names([target])
    besides = [] if target is None else [target]
    sides = []
    for which, model in (("old", old), ("new", new)):
        try:
            named, table = read_for_model(model, file, marks, reporter, besides)
        except DataError as error:
            raise DataError(f"The {which} model cannot read it. {error}") from None
        sides.append(_side(named, table))
    truth = None if target is None else _truth(new, file, target, marks)
    return diff_models(sides[0], sides[1], X=table, y=truth)


def _side(model: Model, table: Any) -> Side:
    """Return a model that reads the table in its own way, whatever it is asked."""

    def score(_: object, truth: Any) -> float:
        known = np.array([label is not None for label in truth])
        rows = np.flatnonzero(known)
        return model.score(table.take(rows), [truth[row] for row in rows])

    return Side(
        model.schema,
        model.tree,
        model.recipe.algorithm,
        lambda _: model.predict(table),
        lambda _: model.apply(table),
        score,
        model.reasons,
    )


def _truth(model: Model, file: TableFile, target: str, marks: tuple[str, ...]) -> Any:
    """Read the true answers; None where there is none."""
    if model.tree.predicts_numbers:
        numbers = true_numbers(file, target, marks).tolist()
        return [None if number != number else number for number in numbers]
    truth = true_classes(file, target, model.schema, marks)
    return [None if code < 0 else truth.labels[code] for code in truth.codes.tolist()]
