"""Out-of-bag predictions: each training row by the trees grown without it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Columns
from branchwise.engines.memory import Training
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.sampling import Samples
from branchwise.errors import ParameterError
from branchwise.threads import cached_property, in_order, n_threads


def samples_of(ensemble: FittedTrees) -> Samples:
    """Return the training rows of an ensemble, which one from a file does not have."""
    if ensemble.samples is None:
        raise ParameterError(
            "Out-of-bag predictions need the training rows, which model files do not "
            "hold. Use the forest that was fitted, or fit it again: the same data and "
            "seed give the same forest."
        )
    return ensemble.samples


@dataclass(frozen=True)
class OutOfBag:
    """The predictions for training rows by the trees whose samples lack them.

    ``totals`` are sums over trees, ``n_trees`` their number for each row; rows that
    are in every sample, or that do not count, have none.
    """

    ensemble: FittedTrees
    totals: Floats
    n_trees: Ints

    @classmethod
    def of(cls, ensemble: FittedTrees, n_jobs: int | None = None) -> OutOfBag:
        """Predict the training rows of an ensemble."""
        samples = samples_of(ensemble)
        if samples.takes_all:
            raise ParameterError(
                "Every tree was grown from all rows, so none is out of bag. Fit with "
                "bootstrap=True, or max_samples below 1.0."
            )
        width = 1 if ensemble.is_regression else len(ensemble.schema.classes)
        n_rows = samples.training.data.n_rows
        totals, n_trees = np.zeros((n_rows, width)), np.zeros(n_rows, dtype=np.intp)

        def predicted(tree: int) -> tuple[Ints, Floats]:
            rows = np.flatnonzero(samples.out_of_bag(tree))
            return rows, ensemble.predicted(tree, _taken(samples.training, rows))

        # Added up in the order of trees, so that threads leave no trace.
        for rows, values in in_order(
            predicted, range(len(ensemble)), n_threads(n_jobs)
        ):
            totals[rows] += values
            n_trees[rows] += 1
        return cls(ensemble, totals, n_trees)

    @property
    def training(self) -> Training:
        """The training rows."""
        return samples_of(self.ensemble).training

    @cached_property
    def values(self) -> Floats:
        """Averages for each row: probabilities, shares of votes, or a number.

        NaN for rows that are in every sample.
        """
        with np.errstate(invalid="ignore"):
            values: Floats = self.totals / self.n_trees[:, np.newaxis]
        return values

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a prediction."""
        return self.n_trees > 0

    @cached_property
    def class_codes(self) -> Ints:
        """The predicted classes, as codes; -1 where there is no prediction."""
        codes = np.full(len(self.n_trees), -1, dtype=np.intp)
        codes[self.known] = self.ensemble.class_codes(self.values[self.known])
        return codes

    @cached_property
    def score(self) -> float:
        """The accuracy, or R squared, of the rows that have a prediction, by weight."""
        known, weights = self.known, self.training.weights
        weight = np.ones(len(known)) if weights is None else weights
        if not weight[known].any():
            return float("nan")
        target, weight = self.training.target[known], weight[known]
        if not self.ensemble.is_regression:
            right = self.class_codes[known] == target
            return float(np.average(right, weights=weight))
        mean = np.average(target, weights=weight)
        rest = np.average((target - self.values[known, 0]) ** 2, weights=weight)
        whole = np.average((target - mean) ** 2, weights=weight)
        return float(1.0 - rest / whole) if whole else float(rest == 0)

    @property
    def confusion_matrix(self) -> Ints:
        """Rows by true class (line) and predicted class (column)."""
        if self.ensemble.is_regression:
            raise ParameterError(
                "A confusion matrix needs classes, and this forest predicts numbers."
            )
        n_classes = len(self.ensemble.schema.classes)
        cells = self.training.target[self.known] * n_classes
        cells = cells.astype(np.intp) + self.class_codes[self.known]
        counts = np.bincount(cells, minlength=n_classes**2)
        return counts.reshape(n_classes, n_classes)


def _taken(training: Training, rows: Ints) -> Columns:
    return Columns(len(rows), tuple(cells[rows] for cells in training.data.data))
