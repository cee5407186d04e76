"""Sum up the folds of an algorithm: scores, classes, intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Ints
from branchwise.evaluation.deals import Deal
from branchwise.evaluation.drawn import WeighedClasses, bounds
from branchwise.evaluation.intervals import Score, over_folds, over_rows, wilson
from branchwise.evaluation.metrics import (
    CLASS_SCORES,
    NUMBER_SCORES,
    OF_CLASS,
    SIZES,
    Fold,
    Reliability,
    brier_by_row,
    class_scores,
    confusion,
    log_loss_by_row,
    number_scores,
    scores_by_class,
)
from branchwise.evaluation.reports import ClassReport, Evaluation
from branchwise.table.schema import Value


def evaluated(
    name: str,
    deal: Deal,
    target: NDArray[Any],
    classes: Sequence[Value],
    folds: Sequence[Fold],
) -> Evaluation:
    """Sum up the folds of an algorithm."""
    seconds = float(np.mean([fold.seconds for fold in folds]))
    if not classes:
        found = [number_scores(target[fold.rows], fold) for fold in folds]
        scores = _summed_up(found, deal, NUMBER_SCORES | SIZES)
        if deal.hold_out is not None:
            scores |= _one_part_of_numbers(target[folds[0].rows], folds[0])
        return Evaluation(name, deal, len(target), scores, (), None, None, seconds)
    found = [class_scores(target[fold.rows], fold, len(classes)) for fold in folds]
    scores = _summed_up(found, deal, CLASS_SCORES | SIZES)
    f1_bounds: list[tuple[float, float]] = []
    if deal.hold_out is not None:
        part = target[folds[0].rows]
        one, f1_bounds = _one_part_of_classes(part, folds[0], len(classes))
        scores |= one
    true = np.concatenate([target[fold.rows] for fold in folds])
    guess = np.concatenate([fold.predicted for fold in folds])
    matrix = confusion(true, guess, len(classes))
    reliability = None
    chances = [fold.chances for fold in folds if fold.chances is not None]
    if len(chances) == len(folds):
        reliability = Reliability.of(true, np.concatenate(chances))
    reports = _class_reports(deal, target, classes, folds, matrix, f1_bounds)
    return Evaluation(
        name, deal, len(target), scores, reports, matrix, reliability, seconds
    )


def _summed_up(
    found: Sequence[Mapping[str, float]],
    deal: Deal,
    bounds: Mapping[str, tuple[float, float]],
) -> dict[str, Score]:
    return {
        name: over_folds(np.array([one[name] for one in found]), deal.ratio).clipped(
            *bounds[name]
        )
        for name in found[0]
    }


def _one_part_of_classes(
    true: Ints, fold: Fold, n_classes: int
) -> tuple[dict[str, Score], list[tuple[float, float]]]:
    """Return what a single part of the rows tells of the error of its scores.

    The second are the bounds of the F1 of each class.
    """
    right = int((true == fold.predicted).sum())
    scored = WeighedClasses(true, fold.predicted, fold.chances, n_classes)
    own = scored(np.ones(len(true)))
    low, high = bounds(scored, len(true))
    names = ["balanced accuracy", *[""] * n_classes, "AUC", "calibration error"]
    scores = {"accuracy": wilson(right, len(true))}
    for at, value in enumerate(own):
        if names[at]:
            scores[names[at]] = Score(float(value), float(low[at]), float(high[at]))
    if fold.chances is not None:
        scores["log loss"] = over_rows(log_loss_by_row(true, fold.chances))
        scores["Brier score"] = over_rows(brier_by_row(true, fold.chances))
    clipped = {name: one.clipped(*CLASS_SCORES[name]) for name, one in scores.items()}
    f1 = zip(low[1 : n_classes + 1], high[1 : n_classes + 1], strict=True)
    return clipped, [(float(one), float(other)) for one, other in f1]


def _one_part_of_numbers(true: NDArray[np.float64], fold: Fold) -> dict[str, Score]:
    error = fold.predicted - true
    squared = over_rows(error**2)
    root = Score(
        math.sqrt(squared.mean),
        math.sqrt(max(squared.low, 0.0)),
        math.sqrt(max(squared.high, 0.0)),
    )
    scores = {"MAE": over_rows(np.abs(error)).clipped(0.0, math.inf), "RMSE": root}
    if len(true) > 1 and float(np.ptp(true)) > 0:

        def explained(counts: NDArray[np.float64]) -> NDArray[np.float64]:
            centre = np.average(true, weights=counts)
            whole = float(counts @ (true - centre) ** 2)
            left = float(counts @ error**2)
            return np.array([1 - left / whole if whole > 0 else math.nan])

        low, high = bounds(explained, len(true))
        own = float(explained(np.ones(len(true)))[0])
        scores["R2"] = Score(own, float(low[0]), float(high[0]))
    return scores


def _class_reports(
    deal: Deal,
    target: Ints,
    classes: Sequence[Value],
    folds: Sequence[Fold],
    matrix: NDArray[np.int64],
    f1_bounds: Sequence[tuple[float, float]],
) -> tuple[ClassReport, ...]:
    by_fold = np.array(
        [
            scores_by_class(target[fold.rows], fold.predicted, len(classes))
            for fold in folds
        ]
    )
    rows = np.bincount(target, minlength=len(classes))
    reports = []
    for code, label in enumerate(classes):
        scores = [
            over_folds(by_fold[:, code, at], deal.ratio).clipped(0.0, 1.0)
            for at in range(len(OF_CLASS))
        ]
        if deal.hold_out is not None:
            right = int(matrix[code, code])
            scores[0] = wilson(right, int(matrix[:, code].sum()))
            scores[1] = wilson(right, int(matrix[code].sum()))
            scores[2] = Score(scores[2].mean, *f1_bounds[code])
        reports.append(ClassReport(label, int(rows[code]), *scores))
    return tuple(reports)
