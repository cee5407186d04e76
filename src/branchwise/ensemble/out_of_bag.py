"""Out-of-bag predictions: each training row by the trees grown without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.engines.memory import Training
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.sampling import Samples
from branchwise.errors import ParameterError
from branchwise.threads import cached_property, in_order, n_threads


def validate_forest(ensemble: FittedTrees, what: str) -> None:
    """Refuse boosting, whose trees are not independent of each other."""
    if ensemble.recipe.method != "forest":
        raise ParameterError(
            f"{what} need a forest, whose trees are grown from samples of their own. "
            f"Got {ensemble!r}."
        )


def samples_of(ensemble: FittedTrees, what: str = "Out-of-bag predictions") -> Samples:
    """Return the training rows of an ensemble, which one from a file does not have."""
    validate_forest(ensemble, what)
    if ensemble.samples is None:
        raise ParameterError(
            f"{what} need the training rows, which model files do not hold. Use the "
            "forest that was fitted, or fit it again: the same data and seed give the "
            "same forest."
        )
    return ensemble.samples


def validate_out_of_bag(samples: Samples) -> None:
    """Refuse samples that have all rows, and trees that depend on earlier ones."""
    if samples.recipe.method != "forest":
        raise ParameterError(
            "Boosted trees correct each other, so none of them can be left out for the "
            "rows that it did not see. Hold rows out instead: n_iter_no_change, or "
            "cross-validation."
        )
    if samples.takes_all:
        raise ParameterError(
            "Every tree was grown from all rows, so none is out of bag. Fit with "
            "bootstrap=True, or max_samples below 1.0."
        )


def has_out_of_bag(ensemble: FittedTrees) -> bool:
    """Whether an ensemble has its rows, and trees that were grown without some."""
    samples = ensemble.samples
    return (
        samples is not None
        and samples.recipe.method == "forest"
        and not samples.takes_all
        and any(samples.out_of_bag(tree).any() for tree in range(len(ensemble)))
    )


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
        validate_out_of_bag(samples_of(ensemble))
        totals, n_trees = nothing_yet(ensemble)
        for rows, values in predictions_by_tree(ensemble, n_jobs):
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
        order = samples_of(self.ensemble).order
        rows = order[self.known[order]]
        predictions = (
            self.values[:, 0] if self.ensemble.is_regression else self.class_codes
        )
        return score_of(self.ensemble, rows, predictions[rows])

    @cached_property
    def error_by_trees(self) -> Floats:
        """The error of the first tree, of the first two trees, and so on.

        The share of rows whose class is predicted wrong, or the mean squared error, by
        weight, of the rows that have a prediction so far; NaN before the first one.
        """
        ensemble, order = self.ensemble, samples_of(self.ensemble).order
        target = self.training.target
        weight = row_weights(self.training)
        totals, n_trees = nothing_yet(ensemble)
        loss = np.zeros(len(n_trees))
        errors = []
        for rows, values in predictions_by_tree(ensemble):
            totals[rows] += values
            n_trees[rows] += 1
            means = totals[rows] / n_trees[rows, np.newaxis]
            loss[rows] = losses(ensemble, target[rows], combined(ensemble, means))
            # In the order of contents, so that that of the rows leaves no trace.
            known = order[n_trees[order] > 0]
            errors.append(average(loss[known], weight[known]))
        return np.array(errors)

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


def predictions_by_tree(
    ensemble: FittedTrees, n_jobs: int | None = None
) -> Iterator[tuple[Ints, Floats]]:
    """Yield, in the order of trees, the rows out of bag and what is predicted."""
    samples, threads = samples_of(ensemble), n_threads(n_jobs)

    def predicted(tree: int) -> tuple[Ints, Floats]:
        rows = np.flatnonzero(samples.out_of_bag(tree))
        return rows, ensemble.predicted(tree, samples.training.data.take(rows))

    # A few trees at a time: all of them would not fit in memory.
    for start in range(0, len(ensemble), 4 * threads):
        trees = range(start, min(start + 4 * threads, len(ensemble)))
        yield from in_order(predicted, trees, threads)


def nothing_yet(ensemble: FittedTrees) -> tuple[Floats, Ints]:
    """Return sums and numbers of predictions for every row before the first tree."""
    width = 1 if ensemble.is_regression else len(ensemble.schema.classes)
    n_rows = samples_of(ensemble).training.data.n_rows
    return np.zeros((n_rows, width)), np.zeros(n_rows, dtype=np.intp)


def combined(ensemble: FittedTrees, means: Floats) -> Floats | Ints:
    """Return class codes, or numbers, of averages over trees."""
    return means[:, 0] if ensemble.is_regression else ensemble.class_codes(means)


def losses(
    ensemble: FittedTrees, target: Floats | Ints, predictions: Floats | Ints
) -> Floats:
    """Return 1 for a wrong class and 0 for the right one, or squared distances."""
    if ensemble.is_regression:
        squared: Floats = (target.astype(np.float64) - predictions) ** 2
        return squared
    wrong: Floats = (target != predictions).astype(np.float64)
    return wrong


def row_weights(training: Training) -> Floats:
    """Return the weights of the training rows, 1 where none were given."""
    if training.weights is None:
        return np.ones(training.data.n_rows)
    return training.weights


def average(values: Floats, weights: Floats) -> float:
    """Return a mean by weight; NaN without any weight."""
    whole = float(weights.sum())
    return float((values * weights).sum() / whole) if whole > 0 else float("nan")


def score_of(ensemble: FittedTrees, rows: Ints, predictions: Floats | Ints) -> float:
    """Return the accuracy, or R squared, of predictions for some training rows.

    The rows are in the order of contents, so that sums do not depend on the table's.
    """
    training = samples_of(ensemble).training
    target, weight = training.target[rows], row_weights(training)[rows]
    error = average(losses(ensemble, target, predictions), weight)
    if not ensemble.is_regression or np.isnan(error):
        return 1.0 - error
    mean = np.full(len(rows), average(target.astype(np.float64), weight))
    whole = average(losses(ensemble, target, mean), weight)
    return 1.0 - error / whole if whole else float(error == 0)
