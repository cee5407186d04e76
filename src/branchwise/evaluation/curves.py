"""Scores against the number of training rows, by scikit-learn's ``learning_curve``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import model_selection

from branchwise.counts import Floats, Ints
from branchwise.evaluation.contenders import predicts_numbers, prepared
from branchwise.evaluation.deals import Deal
from branchwise.evaluation.run import Rows
from branchwise.evaluation.scorers import check_scoring


@dataclass(frozen=True)
class LearningCurve:
    """Scores by the number of rows: a row for each size, a column for each fold."""

    sizes: Ints
    train: Floats
    test: Floats
    scoring: str


def learning_curve(
    estimator: Any,
    X: object,
    y: object,
    *,
    sizes: Sequence[float] = (0.1, 0.325, 0.55, 0.775, 1.0),
    cv: int = 10,
    seed: int = 0,
    scoring: str | None = None,
    n_jobs: int | None = None,
) -> LearningCurve:
    """Fit to more and more rows.

    Parameters
    ----------
    estimator : estimator
        What to fit.
    X, y : table and sequence
        The rows.
    sizes : sequence of float
        Shares, or numbers, of the training rows of a fold.
    cv, seed : int
        The number of folds, and of the deal.
    scoring : str or None
        One of scikit-learn's scorers that fits what is predicted; by default accuracy,
        or R squared.
    n_jobs : int or None
        How many fits go side by side.
    """
    numbers = predicts_numbers(estimator)
    rows = Rows.of(X, y, numbers)
    check_scoring(scoring, rows.classes)
    ready, table = prepared(estimator, rows.table)
    sizes_found, train, test = model_selection.learning_curve(
        ready,
        table,
        rows.labels,
        train_sizes=np.asarray(sizes),
        cv=Deal(cv, seed=seed).splits(rows.target, not numbers),
        scoring=scoring,
        shuffle=True,
        random_state=seed,
        n_jobs=n_jobs,
    )[:3]
    usual = "R2" if numbers else "accuracy"
    return LearningCurve(sizes_found, train, test, scoring or usual)
