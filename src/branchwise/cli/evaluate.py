"""``branchwise evaluate``: how well a tree does on rows whose class is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from branchwise.cli.models import located, open_model, read_for_model
from branchwise.cli.options import (
    Form,
    Format,
    MissingMarks,
    ModelPath,
    Quiet,
    TablePath,
    missing_marks,
)
from branchwise.cli.predict import refuse_two_streams
from branchwise.cli.streams import Reporter, aligned, print_json, print_lines
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.model import Model
from branchwise.table.frames import read_vector
from branchwise.table.raw import Coded
from branchwise.table.read import TableFile
from branchwise.table.schema import Schema, Value, value_type
from branchwise.words import word

_AVERAGES = ("macro avg", "weighted avg")
_SCORES = ("precision", "recall", "f1-score")


def evaluate(
    model_path: ModelPath,
    table_path: TablePath,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column with the true classes.",
            show_default="the target of the model",
        ),
    ] = None,
    missing: MissingMarks = None,
    form: Format = Form.TEXT,
    quiet: Quiet = False,
) -> None:
    """Compare predictions with the true classes of a table.

    Prints the accuracy, a report for each class and the confusion matrix.

    \b
    Examples:
      branchwise evaluate tree.json test.csv
      branchwise evaluate tree.json test.csv --target "play golf"
      branchwise evaluate tree.json test.csv --format json
    """
    reporter = Reporter(quiet)
    refuse_two_streams(model_path, table_path)
    model = open_model(model_path)
    file = TableFile(table_path)
    target = _target(model.schema, target, file)
    marks = missing_marks(missing)
    with reporter.working(f"Reading {file.label}") as say:
        truth = _true_labels(file, target, model.schema, marks)
        named_model, table = read_for_model(model, file, marks, reporter, [target])
        say("Predicting")
        with located(file):
            predicted = _codes(named_model, table)
        say("Comparing")
        result = _compare(truth, predicted, len(model.schema.classes))
    _tell(truth, target, file, reporter)
    if form is Form.JSON:
        print_json(_document(truth, result))
    else:
        print_lines(_lines(truth, result))


@dataclass(frozen=True)
class _Truth:
    """The true classes: ``codes`` into ``labels``, -1 where there is none.

    ``labels`` are the classes of the model and, after them, the unknown ones.
    """

    labels: tuple[Value, ...]
    codes: NDArray[np.int64]
    unknown: tuple[Value, ...]


@dataclass(frozen=True)
class _Result:
    rows: int
    correct: int
    report: dict[str, dict[str, float]]
    confusion: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        return self.correct / self.rows


def _target(schema: Schema, given: str | None, file: TableFile) -> str:
    target = given if given is not None else schema.target
    if target is None:
        raise ParameterError(
            "The model does not know the name of its target. Name the column with the "
            "true classes with --target."
        )
    file.check_names([target])
    return target


def _true_labels(
    file: TableFile, target: str, schema: Schema, missing: tuple[str, ...]
) -> _Truth:
    column = file.read(only=[target], text_columns=[target], missing=missing)[target]
    raw = read_vector(column, target)
    if not isinstance(raw, Coded) or not (raw.codes >= 0).any():
        raise DataError(
            f"Column {target!r} of {file.label} has no class in any row. An evaluation "
            "needs rows whose class is known."
        )
    known = {_written(label): code for code, label in enumerate(schema.classes)}
    place = [known.get(_as_written(text, schema), -1) for text in raw.values]
    unknown = [v for v, at in zip(raw.values, place, strict=True) if at < 0]
    position = {label: len(known) + at for at, label in enumerate(unknown)}
    recode = [
        position[value] if at < 0 else at
        for value, at in zip(raw.values, place, strict=True)
    ]
    codes = np.array([*recode, -1], dtype=np.int64)[raw.codes]
    return _Truth((*schema.classes, *unknown), codes, tuple(unknown))


def _written(label: Value) -> object:
    """Return a class in the form in which texts of the table are compared."""
    return str(label).lower() if isinstance(label, bool) else label


def _as_written(text: Value, schema: Schema) -> object:
    """Read the text of a label as the model's classes are: text, number, truth."""
    kind = value_type(schema.classes[0])
    if kind == "text":
        return text
    if kind == "boolean":
        return str(text).lower()
    try:
        return float(text)
    except ValueError:
        return text


def _codes(model: Model, table: Any) -> NDArray[np.int64]:
    position = {label: code for code, label in enumerate(model.schema.classes)}
    predicted = model.predict(table).tolist()
    return np.array([position[label] for label in predicted], dtype=np.int64)


def _compare(truth: _Truth, predicted: NDArray[np.int64], n_classes: int) -> _Result:
    from sklearn.metrics import classification_report, confusion_matrix

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
    confusion = confusion_matrix(true, guess, labels=labels)
    # Nothing is ever predicted to be a class that the tree does not know.
    return _Result(
        len(true), int((true == guess).sum()), report, confusion[:, :n_classes]
    )


def _tell(truth: _Truth, target: str, file: TableFile, reporter: Reporter) -> None:
    without = int((truth.codes < 0).sum())
    if without:
        reporter.note(
            f"rows without a class in column {target!r} are left out: {without:,} of "
            f"{len(truth.codes):,} in {file.label}."
        )
    if truth.unknown:
        first = len(truth.labels) - len(truth.unknown)
        rows = int((truth.codes >= first).sum())
        reporter.note(
            f"column {target!r} of {file.label} has classes that the tree does not "
            f"know and never predicts: {quoted(truth.unknown)}. These rows count as "
            f"errors: {rows:,}."
        )


def _lines(truth: _Truth, result: _Result) -> list[str]:
    names = [word(label) for label in truth.labels]
    share = f"{result.correct:,} of {result.rows:,} rows"
    head = ["class", *_SCORES, "rows"]
    rows = [
        _score_row(name, result.report[str(at)]) for at, name in enumerate(names)
    ] + [_score_row(name, result.report[name]) for name in _AVERAGES]
    known = names[: result.confusion.shape[1]]
    matrix = [["", *known]] + [
        [name, *(f"{count:,}" for count in counts)]
        for name, counts in zip(names, result.confusion.tolist(), strict=True)
    ]
    return [
        f"accuracy {result.accuracy:.4f} ({share})",
        "",
        *aligned([head, *rows], [False, True, True, True, True]),
        "",
        "confusion matrix: a row for each true class, a column for each predicted one",
        "",
        *aligned(matrix, [False, *(True for _ in known)]),
    ]


def _score_row(name: str, scores: dict[str, float]) -> list[str]:
    return [
        name,
        *(f"{scores[score]:.4f}" for score in _SCORES),
        f"{int(scores['support']):,}",
    ]


def _document(truth: _Truth, result: _Result) -> dict[str, Any]:
    def scores(report: dict[str, float]) -> dict[str, Any]:
        return {
            "precision": report["precision"],
            "recall": report["recall"],
            "f1": report["f1-score"],
            "rows": int(report["support"]),
        }

    return {
        "rows": result.rows,
        "rows_without_class": int((truth.codes < 0).sum()),
        "correct": result.correct,
        "accuracy": result.accuracy,
        "classes": [
            {"class": label, **scores(result.report[str(at)])}
            for at, label in enumerate(truth.labels)
        ],
        "macro_average": scores(result.report["macro avg"]),
        "weighted_average": scores(result.report["weighted avg"]),
        "confusion_matrix": {
            "true": list(truth.labels),
            "predicted": list(truth.labels[: result.confusion.shape[1]]),
            "rows": result.confusion.tolist(),
        },
        "unknown_classes": list(truth.unknown),
    }
