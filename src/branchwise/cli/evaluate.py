"""``branchwise evaluate``: scores of a model, or cross-validation of algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from branchwise.cli.options import shared
from branchwise.cli.options.algorithm import (
    EVALUATED_ALGORITHM,
    EVALUATED_REGRESSION,
    EVALUATION,
    FOLDS,
    REPEATS,
    jobs_option,
    seed_option,
)
from branchwise.cli.options.declaration import argument, option, takes
from branchwise.cli.options.growing import option_of
from branchwise.cli.options.shared import OutputFormat, read_na_values
from branchwise.cli.support.cross_validation import (
    OF_COLUMNS,
    FoldOptions,
    Growth,
    evaluate_table,
    growth_options,
)
from branchwise.cli.support.models import (
    check_two_streams,
    located,
    open_model,
    read_for_model,
)
from branchwise.cli.support.rows import Truth, true_classes, true_column, true_numbers
from branchwise.cli.support.streams import Reporter, print_json, print_lines
from branchwise.errors import ParameterError, quoted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from branchwise.model import Model

if TYPE_CHECKING:
    from branchwise.evaluation.results import NumberScores


@takes(growth=growth_options, reading=shared.reading_options)
def evaluate(
    first_path: str = argument(
        "MODEL|TABLE",
        "A model file and then a table, or a table alone; - is standard input.",
    ),
    table_path: str | None = argument(
        "TABLE", "The rows to test the model on.", default=None
    ),
    target: str | None = shared.target_option(
        "The column with the true classes or numbers.", "the target of the model"
    ),
    output_format: OutputFormat = shared.FORMAT,
    quiet: bool = shared.QUIET,
    algorithm: str | None = EVALUATED_ALGORITHM,
    regression: bool = EVALUATED_REGRESSION,
    compare: str | None = option(
        "--compare NAME,...",
        "Algorithms to compare: id3, c4.5, cart, sklearn. Each growing option "
        "is passed to the algorithms that have it.",
        panel=EVALUATION,
    ),
    cv: int | None = FOLDS,
    repeats: int | None = REPEATS,
    hold_out: float | None = option(
        "--hold-out SHARE",
        "In place of folds: the share of the rows to test on.",
        panel=EVALUATION,
    ),
    seed: int | None = seed_option(EVALUATION),
    jobs: int | None = jobs_option(),
    *,
    growth: Growth,
    reading: Reading,
) -> None:
    """Score a model on labelled rows, or cross-validate an algorithm on a table.

    With a model and a table the predictions of the model are compared with the true
    classes: accuracy, a report for each class, the confusion matrix; for numbers R^2,
    the mean absolute error and the root mean squared error.

    With a table alone, trees are grown from some of its rows and tested on the others:
    by cross-validation, or with a hold-out. The same --seed gives the same folds.

    \b
    Examples:
      branchwise evaluate tree.json test.csv
      branchwise evaluate tree.json test.csv --target "play golf" --format json
      branchwise evaluate data.csv --target play --cv 10 --repeats 3
      branchwise evaluate data.csv -t play --hold-out 0.3 -a c4.5 --confidence 0.1
      branchwise evaluate data.csv -t play --compare id3,c4.5,cart,sklearn --jobs -1
      branchwise evaluate data.csv -t price -a cart --regression
    """
    reporter = Reporter(quiet)
    fold_options = {
        "--algorithm": algorithm,
        "--regression": regression or None,
        "--compare": compare,
        "--cv": cv,
        "--repeats": repeats,
        "--hold-out": hold_out,
        "--seed": seed,
        "--jobs": jobs,
    }
    if table_path is None:
        _check_unseen(growth)
        folds = FoldOptions(algorithm, regression, compare, cv, repeats, hold_out, seed)
        evaluate_table(
            first_path, target, growth, folds, reading, jobs, output_format, reporter
        )
        return
    _check_growing(growth, fold_options)
    missing = growth.of_columns("missing")
    _evaluate_model(
        first_path, table_path, target, missing, reading, output_format, reporter
    )


def _check_unseen(growth: Growth) -> None:
    """Reject a policy for unseen values, which no fold has."""
    if growth.options["unseen_policy"] is not None:
        raise ParameterError(
            "--unseen-policy has no effect here: the categories of all folds are those "
            "of the whole table. Leave it out."
        )


def _check_growing(growth: Growth, fold_options: dict[str, Any]) -> None:
    """Reject growing options: the model is grown already."""
    names = [name for name, value in fold_options.items() if value is not None]
    names += [option_of(name) for name in growth.given]
    for name in OF_COLUMNS:
        if name != "missing" and growth.of_columns(name):
            names.append(f"--{name}")
    if names:
        raise ParameterError(
            f"{names[0]} has no effect on a model that is grown already. Give a table "
            "alone to grow trees and test them, or leave it out."
        )


def _evaluate_model(
    model_path: str,
    table_path: str,
    target: str | None,
    missing: list[str] | None,
    reading: Reading,
    output_format: OutputFormat,
    reporter: Reporter,
) -> None:
    check_two_streams(MODEL=model_path, TABLE=table_path)
    model = open_model(model_path)
    na_values = read_na_values(missing)
    with reporter.reading(table_path) as say:
        file = TableFile(table_path, reading)
        target = true_column(model.schema, target, file)
        truth = _true_targets(model, file, target, na_values)
        named_model, table = read_for_model(model, file, na_values, reporter, [target])
        say("Predicting")
        with located(file):
            predicted = named_model.predict(table)
        say("Comparing")
        if isinstance(truth, Truth):
            compared = _compared_classes(truth, predicted, model, target, file)
        else:
            compared = _compared_numbers(truth, predicted, target, file)
    scores, document, notes = compared
    for note in notes:
        reporter.note(note)
    if output_format is OutputFormat.JSON:
        print_json(document)
    else:
        print_lines(scores.lines())


#: Scores, the same in plain values, and notes.
_Compared = tuple[Any, dict[str, Any], Iterator[str]]


def _compared_classes(
    truth: Truth, predicted: Any, model: Model, target: str, file: TableFile
) -> _Compared:
    from branchwise.evaluation.metrics import class_codes
    from branchwise.evaluation.results import ClassScores

    known, given = model.schema.classes, truth.codes >= 0
    codes = class_codes(predicted[given], known)
    scores = ClassScores.compare(truth.codes[given], codes, truth.labels, len(known))
    document = {
        "rows": scores.rows,
        "rows_without_class": int((~given).sum()),
        **scores.document(),
        "unknown_classes": list(truth.unknown),
    }
    return scores, document, _class_notes(truth, target, file)


def _compared_numbers(
    truth: NDArray[np.float64], predicted: Any, target: str, file: TableFile
) -> _Compared:
    from branchwise.evaluation.results import NumberScores

    known = ~np.isnan(truth)
    scores = NumberScores.compare(truth[known], predicted[known].astype(np.float64))
    without = int((~known).sum())
    document = {
        "rows": scores.rows,
        "rows_without_number": without,
        **scores.document(),
    }
    return scores, document, _number_notes(scores, without, target, file)


def _true_targets(
    model: Model, file: TableFile, target: str, missing: tuple[str, ...]
) -> Truth | NDArray[np.float64]:
    if model.tree.is_regression:
        return true_numbers(file, target, missing)
    return true_classes(file, target, model.schema, missing)


def _class_notes(truth: Truth, target: str, file: TableFile) -> Iterator[str]:
    """Yield notes about rows without a class, and about unknown classes."""
    without = int((truth.codes < 0).sum())
    if without:
        yield (
            f"rows without a class in column {target!r} are left out: {without:,} "
            f"of {len(truth.codes):,} in {file.label}."
        )
    if truth.unknown:
        first = len(truth.labels) - len(truth.unknown)
        rows = int((truth.codes >= first).sum())
        yield (
            f"column {target!r} of {file.label} has classes that the tree does not "
            f"know and never predicts: {quoted(truth.unknown)}. These rows count "
            f"as errors: {rows:,}."
        )


def _number_notes(
    scores: NumberScores, without: int, target: str, file: TableFile
) -> Iterator[str]:
    """Yield notes about rows without a number, and about a constant target."""
    if without:
        yield (
            f"rows without a number in column {target!r} are left out: "
            f"{without:,} of {scores.rows + without:,} in {file.label}."
        )
    if scores.r2 is None:
        yield (
            f"column {target!r} of {file.label} has the same number everywhere, so "
            "that R^2 is not defined."
        )
