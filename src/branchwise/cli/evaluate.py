"""``branchwise evaluate``: scores of a model, or cross-validation of algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
    option_of,
    seed_option,
)
from branchwise.cli.options.declaration import argument, option, takes
from branchwise.cli.options.growing import Algorithm
from branchwise.cli.options.shared import OutputFormat, read_na_values
from branchwise.cli.support.cross_validation import (
    OF_COLUMNS,
    FoldOptions,
    Growth,
    NumberScores,
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
from branchwise.text.as_text import aligned
from branchwise.text.conditions import word

_AVERAGES = ("macro avg", "weighted avg")
_CONFUSION = (
    "confusion matrix: a row for each true class, a column for each predicted one"
)
_SCORES = ("precision", "recall", "f1-score")


@takes(growth=growth_options, reading=shared.reading_options)
def evaluate(
    first_path: str = argument(
        "MODEL|TABLE",
        "A model file and then a table, or a table alone; - is standard input.",
    ),
    table_path: str | None = argument(
        "TABLE", "The rows to test the model on.", default=None
    ),
    target: str | None = option(
        "--target -t",
        "COLUMN",
        "The column with the true classes or numbers.",
        "the target of the model",
    ),
    output_format: OutputFormat = shared.FORMAT,
    quiet: bool = shared.QUIET,
    algorithm: Algorithm | None = EVALUATED_ALGORITHM,
    regression: bool = EVALUATED_REGRESSION,
    compare: str | None = option(
        "--compare",
        "NAME,...",
        "Algorithms to compare: id3, c4.5, cart, sklearn. Each growing option "
        "is passed to the algorithms that have it.",
        panel=EVALUATION,
    ),
    cv: int | None = FOLDS,
    repeats: int | None = REPEATS,
    hold_out: float | None = option(
        "--hold-out",
        "SHARE",
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
    scores: ClassScores | NumberScores
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
            scores = ClassScores.compare(truth, _codes(model, predicted), model)
        else:
            scores = NumberScores.compare(truth, predicted.astype(np.float64))
    for note in scores.notes(target, file):
        reporter.note(note)
    if output_format is OutputFormat.JSON:
        print_json(scores.document())
    else:
        print_lines(scores.lines())


def _true_targets(
    model: Model, file: TableFile, target: str, missing: tuple[str, ...]
) -> Truth | NDArray[np.float64]:
    if model.tree.is_regression:
        return true_numbers(file, target, missing)
    return true_classes(file, target, model.schema, missing)


def _codes(model: Model, predicted: NDArray[np.generic]) -> NDArray[np.int64]:
    position = {label: code for code, label in enumerate(model.schema.classes)}
    return np.array([position[label] for label in predicted.tolist()], dtype=np.int64)


@dataclass(frozen=True)
class ClassScores:
    """How predicted classes compare with the true ones."""

    truth: Truth
    rows: int
    correct: int
    report: dict[str, dict[str, float]]
    confusion: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """The share of rows whose class is predicted right."""
        return self.correct / self.rows

    @classmethod
    def compare(
        cls, truth: Truth, predicted: NDArray[np.int64], model: Model
    ) -> ClassScores:
        """Compare the codes of classes."""
        from sklearn.metrics import classification_report

        from branchwise.evaluation.metrics import confusion

        given = truth.codes >= 0
        true, guess = truth.codes[given], predicted[given]
        labels = np.arange(len(truth.labels))
        report = classification_report(
            true,
            guess,
            labels=labels,
            target_names=[str(code) for code in labels],
            output_dict=True,
            zero_division=0,
        )
        correct = int((true == guess).sum())
        # Classes that the tree does not have are never predicted.
        matrix = confusion(true, guess, len(labels))
        known = matrix[:, : len(model.schema.classes)]
        return cls(truth, len(true), correct, report, known)

    def notes(self, target: str, file: TableFile) -> Iterator[str]:
        """Yield notes about rows and classes."""
        truth = self.truth
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

    def lines(self) -> list[str]:
        """Write the accuracy, a report for each class and the confusion matrix."""
        names = [word(label) for label in self.truth.labels]
        share = f"{self.correct:,} of {self.rows:,} rows"
        head = ["class", *_SCORES, "rows"]
        rows = [
            _score_row(name, self.report[str(at)]) for at, name in enumerate(names)
        ] + [_score_row(name, self.report[name]) for name in _AVERAGES]
        known = names[: self.confusion.shape[1]]
        matrix = [["", *known]] + [
            [name, *(f"{count:,}" for count in counts)]
            for name, counts in zip(names, self.confusion.tolist(), strict=True)
        ]
        return [
            f"accuracy {self.accuracy:.4f} ({share})",
            "",
            *aligned([head, *rows], [False, True, True, True, True]),
            "",
            _CONFUSION,
            "",
            *aligned(matrix, [False, *(True for _ in known)]),
        ]

    def document(self) -> dict[str, Any]:
        """Tell all in plain values."""
        labels = self.truth.labels
        return {
            "rows": self.rows,
            "rows_without_class": int((self.truth.codes < 0).sum()),
            "correct": self.correct,
            "accuracy": self.accuracy,
            "classes": [
                {"class": label, **_plain_scores(self.report[str(at)])}
                for at, label in enumerate(labels)
            ],
            "macro_average": _plain_scores(self.report["macro avg"]),
            "weighted_average": _plain_scores(self.report["weighted avg"]),
            "confusion_matrix": {
                "true": list(labels),
                "predicted": list(labels[: self.confusion.shape[1]]),
                "rows": self.confusion.tolist(),
            },
            "unknown_classes": list(self.truth.unknown),
        }


def _score_row(name: str, scores: dict[str, float]) -> list[str]:
    return [
        name,
        *(f"{scores[score]:.4f}" for score in _SCORES),
        f"{int(scores['support']):,}",
    ]


def _plain_scores(report: dict[str, float]) -> dict[str, Any]:
    return {
        "precision": report["precision"],
        "recall": report["recall"],
        "f1": report["f1-score"],
        "rows": int(report["support"]),
    }
