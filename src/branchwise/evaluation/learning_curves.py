"""Learning curves: scores by the number of training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import model_selection

from branchwise.data.arrays import Floats, Ints
from branchwise.data.one_row import Framed
from branchwise.evaluation.algorithms import check_scoring, is_regression, prepared
from branchwise.evaluation.cross_validate import Rows
from branchwise.evaluation.folds import FoldAssignment
from branchwise.text.blocks import Block, Table
from branchwise.text.document import Document


@dataclass(frozen=True)
class LearningCurve(Framed, Document):
    """Scores by the number of rows.

    Attributes
    ----------
    sizes : array
        The numbers of training rows.
    train, test : array
        The scores of training and test rows: a row for each size, a column for each
        fold.
    scoring : str
        The score; more is better.
    """

    sizes: Ints
    train: Floats
    test: Floats
    scoring: str

    def __repr__(self) -> str:
        least, most = int(self.sizes[0]), int(self.sizes[-1])
        first, last = (float(self.test[at].mean()) for at in (0, -1))
        return (
            f"<learning curve: {self.scoring} {first:.4f} with {least:,} rows, "
            f"{last:.4f} with {most:,}>"
        )

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the mean scores of the sizes as lists, a column each."""
        return {
            "rows": self.sizes.tolist(),
            "train": self.train.mean(axis=1).tolist(),
            "test": self.test.mean(axis=1).tolist(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the mean scores in plain values."""
        return {"scoring": self.scoring, **self.to_columns()}

    def blocks(self) -> Iterator[Block]:
        """Yield the mean scores as a table."""
        sizes, *means = self.to_columns().values()
        rows = [
            [f"{size:,}", f"{train:.4f}", f"{test:.4f}"]
            for size, train, test in zip(sizes, *means, strict=True)
        ]
        head = ["rows", f"training {self.scoring}", f"test {self.scoring}"]
        yield Table(head, rows, words=(), row_heads=False)


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
        The number of folds, and their random seed.
    scoring : str or None
        One of scikit-learn's scorers that fits what is predicted; by default accuracy,
        or R squared.
    n_jobs : int or None
        The number of fits that run in parallel.

    Returns
    -------
    LearningCurve
        Sizes of training sets, and the scores of training and test rows.
    """
    numbers = is_regression(estimator)
    rows = Rows.of(X, y, numbers)
    check_scoring(scoring, rows.classes)
    ready, table = prepared(estimator, rows.table)
    sizes_found, train, test = model_selection.learning_curve(
        ready,
        table,
        rows.labels,
        train_sizes=np.asarray(sizes),
        cv=FoldAssignment(cv, seed=seed).splits(rows.target, not numbers),
        scoring=scoring,
        shuffle=True,
        random_state=seed,
        n_jobs=n_jobs,
    )[:3]
    usual = "R2" if numbers else "accuracy"
    return LearningCurve(sizes_found, train, test, scoring or usual)
