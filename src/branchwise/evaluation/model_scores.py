"""Scores of the predictions of a finished model: of classes, and of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Schema, Value
from branchwise.errors import counted
from branchwise.evaluation.metrics import (
    CLASS_SCORES,
    OF_CLASS,
    Reliability,
    Score,
    confusion,
    held_out_scores,
    r_squared,
)
from branchwise.evaluation.results import (
    Tables,
    confusion_blocks,
    plain_bins,
    plain_scores,
    reliability_blocks,
    score_table,
)
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.label_words import NO_UNIT, Unit
from branchwise.text.labels import class_called
from branchwise.text.words import word

_AVERAGES = ("macro avg", "weighted avg")
_SCORES = ("precision", "recall", "f1-score")


@dataclass(frozen=True)
class ClassScores(Tables):
    """How the classes that a model predicts compare with the true ones.

    ``labels`` are the classes of the model, then those that it does not know;
    ``scores`` are over all classes, with their intervals. ``schema`` is that of the
    model, whose labels say what its classes are called.
    """

    labels: Sequence[Value]
    rows: int
    correct: int
    scores: Mapping[str, Score]
    report: dict[str, dict[str, float]]
    confusion: NDArray[np.int64]
    reliability: Reliability
    schema: Schema | None = None

    @classmethod
    def compare(
        cls,
        true: Ints,
        predicted: Ints,
        probabilities: Floats,
        labels: Sequence[Value],
        schema: Schema | None = None,
    ) -> ClassScores:
        """Compare codes of classes, and probabilities of those the model knows."""
        every = np.arange(len(labels))
        report = metrics.classification_report(
            true,
            predicted,
            labels=every,
            target_names=[str(code) for code in every],
            output_dict=True,
            zero_division=0,
        )
        # Classes that the model does not know are never predicted.
        n_known = probabilities.shape[1]
        matrix = confusion(true, predicted, len(labels))[:, :n_known]
        correct = int((true == predicted).sum())
        wide = np.pad(probabilities, ((0, 0), (0, len(labels) - n_known)))
        found, _ = held_out_scores(true, predicted, wide, len(labels))
        scores = {name: found[name] for name in CLASS_SCORES}
        reliability = Reliability.of(true, wide)
        found_scores = (scores, report, matrix, reliability)
        return cls(labels, len(true), correct, *found_scores, schema)

    @property
    def accuracy(self) -> float:
        """The share of rows whose class is predicted right."""
        return self.correct / self.rows

    @property
    def baseline(self) -> float:
        """The share of the rows that have the most frequent class."""
        return int(self.confusion.sum(axis=1).max()) / self.rows

    def __repr__(self) -> str:
        return (
            f"<scores of {counted(len(self.labels), 'class', 'classes')}: accuracy "
            f"{self.accuracy:.4f}, {counted(self.rows, 'row')}>"
        )

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the scores of the classes as lists, a column each."""
        classes = self.to_dict()["classes"]
        return {name: [one[name] for one in classes] for name in classes[0]}

    def _name(self, label: Value) -> str:
        return word(label if self.schema is None else class_called(self.schema, label))

    def blocks(self) -> Iterator[Block]:
        """Yield all tables."""
        share = f"{self.correct:,} of {self.rows:,} rows"
        yield Paragraph(f"accuracy {self.accuracy:.4f} ({share})")
        yield score_table(self.scores)
        names = [self._name(label) for label in self.labels]
        keys = [*map(str, range(len(names))), *_AVERAGES]
        rows = [
            _row(name, self.report[key])
            for name, key in zip([*names, *_AVERAGES], keys, strict=True)
        ]
        yield Table(["class", *_SCORES, "rows"], rows)
        yield from confusion_blocks(names, self.confusion)
        yield from reliability_blocks(self.reliability)
        yield Paragraph(
            f"accuracy {self.accuracy:.4f}; always predicting the most frequent class "
            f"of these rows: {self.baseline:.4f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scores in plain values."""
        return {
            "rows": self.rows,
            "correct": self.correct,
            "accuracy": self.accuracy,
            "baseline_accuracy": self.baseline,
            "scores": plain_scores(self.scores),
            "classes": [
                {"class": label, **_plain_report(self.report[str(at)])}
                for at, label in enumerate(self.labels)
            ],
            "macro_average": _plain_report(self.report["macro avg"]),
            "weighted_average": _plain_report(self.report["weighted avg"]),
            "confusion_matrix": {
                "true": list(self.labels),
                "predicted": list(self.labels[: self.confusion.shape[1]]),
                "rows": self.confusion.tolist(),
            },
            "calibration": plain_bins(self.reliability),
        }


def _row(name: str, scores: dict[str, float]) -> list[str]:
    figures = [f"{scores[score]:.4f}" for score in _SCORES]
    return [name, *figures, f"{int(scores['support']):,}"]


def _plain_report(report: dict[str, float]) -> dict[str, Any]:
    scores = {name: report[key] for name, key in zip(OF_CLASS, _SCORES, strict=True)}
    return {**scores, "rows": int(report["support"])}


@dataclass(frozen=True)
class NumberScores(Tables):
    """Scores of predicted numbers.

    ``r2`` is the share of the variance that is explained, None where the true
    numbers do not vary; the errors are in the unit of the numbers. ``unit`` is how that
    is written.
    """

    rows: int
    r2: float | None
    mean_absolute_error: float
    root_mean_squared_error: float
    unit: Unit = NO_UNIT

    @classmethod
    def compare(
        cls, true: Floats, predicted: Floats, unit: Unit = NO_UNIT
    ) -> NumberScores:
        """Compare numbers."""
        r2 = r_squared(true, predicted)
        return cls(
            len(true),
            None if math.isnan(r2) else r2,
            float(metrics.mean_absolute_error(true, predicted)),
            math.sqrt(metrics.mean_squared_error(true, predicted)),
            unit,
        )

    def __repr__(self) -> str:
        r2 = "not defined" if self.r2 is None else f"{self.r2:.4f}"
        return f"<scores of numbers: R^2 {r2}, {counted(self.rows, 'row')}>"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the scores as lists of one number, a column each."""
        return {name: [value] for name, value in self.to_dict().items()}

    def blocks(self) -> Iterator[Block]:
        """Yield all tables."""
        rows = [
            ["mean absolute error", self._error(self.mean_absolute_error)],
            ["root mean squared error", self._error(self.root_mean_squared_error)],
            ["rows", f"{self.rows:,}"],
        ]
        first = ["R^2", "-" if self.r2 is None else f"{self.r2:.4f}"]
        yield Table(first, rows, words=(0, 1))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores in plain values."""
        return {name: value for name, value in vars(self).items() if name != "unit"}

    def _error(self, value: float) -> str:
        return self.unit.behind(f"{self.unit.scaled(value):.5g}")
