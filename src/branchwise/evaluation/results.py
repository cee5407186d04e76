"""Results of evaluations and comparisons: text, tables, plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Value
from branchwise.errors import ParameterError, counted, quoted
from branchwise.evaluation.folds import FoldAssignment
from branchwise.evaluation.metrics import (
    OF_CLASS,
    SIZES,
    Reliability,
    Score,
    over_folds,
)
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.document import Document
from branchwise.text.words import word

#: Methods of confidence intervals.
OVER_FOLDS = "Student's t over folds, with the corrected variance of Nadeau and Bengio"
OF_NUMBERS = "normal for averages over rows, else bootstrap"
OF_CLASSES = f"Wilson's for shares of rows, {OF_NUMBERS}"
_CONFUSION = (
    "confusion matrix: a row for each true class, a column for each predicted one"
)
_RELIABILITY = "calibration: share of right predictions, by predicted probability"


class Tables(Framed, Document):
    """Results in tables; a dataframe has the main one."""

    compact = False

    def lines(self) -> list[str]:
        """Write all tables, line by line."""
        return self.to_text().split("\n")


@dataclass(frozen=True)
class ClassReport:
    """Precision, recall and F1 of one class."""

    label: Value
    rows: int
    precision: Score
    recall: Score
    f1: Score


@dataclass(frozen=True)
class Evaluation(Tables):
    """Scores of an algorithm on rows that it was not fitted to.

    ``evaluation["accuracy"]`` is a score with its interval; ``scores`` has all of
    them. ``print(evaluation)`` shows everything.

    Attributes
    ----------
    name : str
        The algorithm.
    assignment : FoldAssignment
        The folds.
    n_rows : int
        The number of rows.
    scores : dict of str to Score
        Mean, interval and the values of the folds.
    classes : tuple of ClassReport
        Precision, recall and F1 of each class.
    confusion : array or None
        Rows by true and by predicted class, all folds together.
    reliability : Reliability or None
        Predicted probabilities and shares of right predictions.
    seconds : float
        The mean time of a fit.
    """

    name: str
    assignment: FoldAssignment
    n_rows: int
    scores: Mapping[str, Score]
    classes: tuple[ClassReport, ...]
    confusion: NDArray[np.int64] | None
    reliability: Reliability | None
    seconds: float

    def __getitem__(self, score: str) -> Score:
        if score not in self.scores:
            raise ParameterError(
                f"There is no score {score!r}. Choose among {quoted(self.scores, 20)}."
            )
        return self.scores[score]

    @property
    def interval(self) -> str:
        """The method of the intervals."""
        if self.assignment.hold_out is None:
            return OVER_FOLDS
        return OF_CLASSES if self.classes else OF_NUMBERS

    def __repr__(self) -> str:
        name, score = next(iter(self.scores.items()))
        span = "" if math.isnan(score.low) else f" ({_interval(score)})"
        return (
            f"<evaluation of {self.name}: {name} {_figure(score.mean)}{span}, "
            f"{self.assignment.described()}, {counted(self.n_rows, 'row')}>"
        )

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the scores as lists, a column each; NaN where there is no interval."""
        figures = {
            figure: [getattr(score, figure) for score in self.scores.values()]
            for figure in ("mean", "low", "high", "deviation")
        }
        return {"score": list(self.scores), **figures}

    def blocks(self) -> Iterator[Block]:
        """Yield all tables."""
        yield Paragraph(
            f"{self.name}: {self.assignment.described()}, {self.n_rows:,} rows"
        )
        rows = []
        for name, score in self.scores.items():
            digits = 1 if name in SIZES else 4
            span, deviation = _interval(score, digits), _figure(score.deviation, digits)
            rows.append([name, _figure(score.mean, digits), span, deviation])
        yield Table(["score", "mean", "95 % interval", "deviation"], rows)
        if self.classes:
            yield _class_table(self.classes)
        if self.confusion is not None:
            names = [word(report.label) for report in self.classes]
            yield from confusion_blocks(names, self.confusion)
        if self.reliability is not None:
            yield from reliability_blocks(self.reliability)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as a dictionary."""
        folds = asdict(self.assignment)
        if self.assignment.hold_out is not None:
            folds["cv"] = None
        told: dict[str, Any] = {
            "algorithm": self.name,
            "rows": self.n_rows,
            "folds": folds,
            "interval": self.interval,
            "scores": plain_scores(self.scores),
            "fit_seconds": self.seconds,
        }
        if self.classes:
            told["classes"] = [
                {"class": one.label, "rows": one.rows}
                | {name: _plain(getattr(one, name)) for name in OF_CLASS}
                for one in self.classes
            ]
        if self.confusion is not None:
            told["confusion_matrix"] = self.confusion.tolist()
        if self.reliability is not None:
            told["calibration"] = plain_bins(self.reliability)
        return told


@dataclass(frozen=True)
class Comparison(Tables):
    """Evaluations of several algorithms on the same folds.

    ``comparison["cart"]`` is one of them.

    Attributes
    ----------
    evaluations : dict of str to Evaluation
        The evaluations by the names of the algorithms, in order.
    """

    evaluations: Mapping[str, Evaluation]

    def __getitem__(self, name: str) -> Evaluation:
        if name not in self.evaluations:
            raise ParameterError(
                f"There is no {name!r} in this comparison. Choose among "
                f"{quoted(self.evaluations, 20)}."
            )
        return self.evaluations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.evaluations)

    def __len__(self) -> int:
        return len(self.evaluations)

    def difference(self, name: str, other: str, score: str) -> Score:
        """Return by how much one is above another, fold by fold.

        From folds the interval has the corrected variance; from one hold-out there is
        none.

        Parameters
        ----------
        name, other : str
            Two of the compared candidates.
        score : str
            Which score, such as ``"accuracy"``.

        Returns
        -------
        Score
            The mean difference and its interval.
        """
        one, two = self[name][score], self[other][score]
        if len(one.folds) < 2:
            return Score(one.mean - two.mean)
        pairs = np.array(one.folds) - np.array(two.folds)
        return over_folds(pairs, self[name].assignment.ratio)

    def __repr__(self) -> str:
        first = next(iter(self.evaluations.values()))
        main = next(iter(first.scores))
        means = ", ".join(
            f"{name} {_figure(one[main].mean)}"
            for name, one in self.evaluations.items()
        )
        return (
            f"<comparison by {main}: {means}; {first.assignment.described()}, "
            f"{counted(first.n_rows, 'row')}>"
        )

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a line for each algorithm as lists, a column each.

        A score has its mean, and the ends of its interval; NaN where there is none.
        """
        every = list(self.evaluations.values())
        columns: dict[str, list[Any]] = {"algorithm": list(self.evaluations)}
        for name in every[0].scores:
            columns[name] = [one[name].mean for one in every]
            columns[f"{name} low"] = [one[name].low for one in every]
            columns[f"{name} high"] = [one[name].high for one in every]
        columns["fit seconds"] = [one.seconds for one in every]
        return columns

    def blocks(self) -> Iterator[Block]:
        """Yield all tables."""
        first = next(iter(self.evaluations.values()))
        yield Paragraph(f"{first.assignment.described()}, {first.n_rows:,} rows; means")
        names = list(first.scores)
        body = []
        for one in self.evaluations.values():
            digits = {name: 1 if name in SIZES else 4 for name in names}
            means = [_figure(one.scores[name].mean, digits[name]) for name in names]
            body.append([one.name, *means, _time(one.seconds)])
        yield Table(["algorithm", *names, "fit"], body)
        main = names[0]
        yield Paragraph(f"{main}, and its difference from that of {first.name}")
        rows = []
        for one in self.evaluations.values():
            beside = ["", ""]
            if one.name != first.name:
                difference = self.difference(one.name, first.name, main)
                beside = [f"{difference.mean:+.4g}", _interval(difference)]
            score = one[main]
            rows.append([one.name, _figure(score.mean), _interval(score), *beside])
        head = ["algorithm", main, "95 % interval", "difference", "95 % interval"]
        yield Table(head, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as a dictionary."""
        first = next(iter(self.evaluations))
        main = next(iter(self[first].scores))
        return {
            "algorithms": [one.to_dict() for one in self.evaluations.values()],
            "differences": [
                {
                    "algorithm": name,
                    "from": first,
                    "score": main,
                    **_plain(self.difference(name, first, main)),
                }
                for name in self.evaluations
                if name != first
            ],
        }


def _class_table(reports: Sequence[ClassReport]) -> Table:
    head = ["class"]
    for name in OF_CLASS:
        head += [name, "95 % interval"]
    body = []
    for report in reports:
        row = [word(report.label)]
        for name in OF_CLASS:
            score = getattr(report, name)
            row += [_figure(score.mean), _interval(score)]
        body.append([*row, f"{report.rows:,}"])
    return Table([*head, "rows"], body)


def confusion_blocks(
    names: Sequence[str], counts: NDArray[np.int64]
) -> Iterator[Block]:
    """Write a confusion matrix; the predicted classes are the first of the names."""
    yield Paragraph(_CONFUSION)
    rows = [
        [name, *(f"{count:,}" for count in row)]
        for name, row in zip(names, counts.tolist(), strict=True)
    ]
    yield Table(["", *names[: counts.shape[1]]], rows)


def score_table(scores: Mapping[str, Score]) -> Table:
    """Write scores with their intervals."""
    rows = [
        [name, _figure(score.mean), _interval(score)] for name, score in scores.items()
    ]
    return Table(["score", "value", "95 % interval"], rows)


def plain_scores(scores: Mapping[str, Score]) -> dict[str, dict[str, Any]]:
    """Return scores in plain values, by their names in JSON."""
    return {
        name.lower().replace(" ", "_"): _plain(score) for name, score in scores.items()
    }


def reliability_blocks(found: Reliability) -> Iterator[Block]:
    """Write how often predictions are right, by their probability."""
    yield Paragraph(_RELIABILITY)
    body = [
        [
            f"{one['from']:.1f} to {one['to']:.1f}",
            f"{one['rows']:,}",
            f"{one['mean_probability']:.4f}",
            f"{one['right']:.4f}",
        ]
        for one in plain_bins(found)
        if one["rows"]
    ]
    yield Table(["probability", "rows", "mean probability", "right"], body)


def _figure(value: float, digits: int = 4) -> str:
    if math.isnan(value):
        return "-"
    # Errors are in the unit of the numbers, and may be large.
    return f"{value:,.{digits}f}" if abs(value) < 1e4 else f"{value:,.5g}"


def _interval(score: Score, digits: int = 4) -> str:
    if math.isnan(score.low):
        return "-"
    return f"{_figure(score.low, digits)} to {_figure(score.high, digits)}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _plain(score: Score) -> dict[str, Any]:
    return {
        "mean": _known(score.mean),
        "low": _known(score.low),
        "high": _known(score.high),
        "folds": [_known(value) for value in score.folds],
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def plain_bins(found: Reliability) -> list[dict[str, Any]]:
    """Return the bins of predicted probabilities in plain values."""
    bins = zip(found.rows, found.mean_probability, found.share_right, strict=True)
    return [
        {
            "from": float(found.edges[at]),
            "to": float(found.edges[at + 1]),
            "rows": int(rows),
            "mean_probability": float(mean) if rows else None,
            "right": float(right) if rows else None,
        }
        for at, (rows, mean, right) in enumerate(bins)
    ]
