"""Scores of folds by the metrics of scikit-learn, and their confidence intervals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Value
from branchwise.stats import share_interval, student

#: Names of scores, and the values that each can have.
CLASS_SCORES: dict[str, tuple[float, float]] = {
    "accuracy": (0.0, 1.0),
    "balanced accuracy": (0.0, 1.0),
    "log loss": (0.0, math.inf),
    "AUC": (0.0, 1.0),
    "Brier score": (0.0, 2.0),
    "calibration error": (0.0, 1.0),
}
NUMBER_SCORES: dict[str, tuple[float, float]] = {
    "MAE": (0.0, math.inf),
    "RMSE": (0.0, math.inf),
    "R2": (-math.inf, 1.0),
}
SIZES: dict[str, tuple[float, float]] = {
    "leaves": (1.0, math.inf),
    "depth": (0.0, math.inf),
}
OF_CLASS = ("precision", "recall", "f1")


@dataclass(frozen=True)
class Fold:
    """The predictions for the rows of a fold, and the size of the tree.

    ``probabilities`` has a column for each class; it is None for regression.
    """

    rows: Ints
    predicted: NDArray[Any]
    probabilities: Floats | None
    leaves: float
    depth: float
    seconds: float
    n_training: int


def class_scores(true: Ints, fold: Fold, n_classes: int) -> dict[str, float]:
    """Score predicted classes."""
    probabilities = fold.probabilities
    if probabilities is None:  # an estimator without probabilities
        probabilities = np.eye(n_classes)[fold.predicted]
        log_loss = auc = brier = error = math.nan
    else:
        log_loss = _log_loss(true, probabilities)
        auc = area(true, probabilities)
        brier = float(brier_by_row(true, probabilities).mean())
        error = Reliability.of(true, probabilities).error
    return {
        "accuracy": float(metrics.accuracy_score(true, fold.predicted)),
        "balanced accuracy": balanced_accuracy(true, fold.predicted),
        "log loss": log_loss,
        "AUC": auc,
        "Brier score": brier,
        "calibration error": error,
        "leaves": fold.leaves,
        "depth": fold.depth,
    }


def class_codes(labels: Any, classes: Sequence[Value]) -> NDArray[np.intp]:
    """Return the position of each label among the classes."""
    code = {label: at for at, label in enumerate(classes)}
    return np.array([code[label] for label in labels.tolist()], dtype=np.intp)


def balanced_accuracy(true: Ints, predicted: Ints) -> float:
    """Return the mean recall of the classes that are there."""
    with warnings.catch_warnings():
        # A class that is predicted, but not there, has no recall.
        warnings.simplefilter("ignore", UserWarning)
        return float(metrics.balanced_accuracy_score(true, predicted))


def confusion(true: Ints, predicted: Ints, n_classes: int) -> NDArray[np.int64]:
    """Count rows by their true class, and by the predicted one.

    Unlike that of scikit-learn, it does not warn of a single class.
    """
    pairs = np.bincount(true * n_classes + predicted, minlength=n_classes**2)
    return pairs.reshape(n_classes, n_classes).astype(np.int64)


def scores_by_class(true: Ints, predicted: Ints, n_classes: int) -> Floats:
    """Return precision, recall and F1 of each class; NaN where there is nothing."""
    pieces = metrics.precision_recall_fscore_support(
        true, predicted, labels=np.arange(n_classes), zero_division=np.nan
    )
    scores: Floats = np.array(pieces[:3], dtype=np.float64).T
    return scores


def r_squared(true: Floats, predicted: Floats, counts: Floats | None = None) -> float:
    """Return the share of the variance that is explained; NaN where there is none.

    ``counts`` is how often each row counts, by default once.
    """
    if len(true) < 2 or float(np.ptp(true)) == 0:
        return math.nan
    score = float(
        metrics.r2_score(true, predicted, sample_weight=counts, force_finite=False)
    )
    return score if math.isfinite(score) else math.nan


def number_scores(true: Floats, fold: Fold) -> dict[str, float]:
    """Score predicted numbers."""
    squared = float(metrics.mean_squared_error(true, fold.predicted))
    return {
        "MAE": float(metrics.mean_absolute_error(true, fold.predicted)),
        "RMSE": math.sqrt(squared),
        "R2": r_squared(true, fold.predicted),
        "leaves": fold.leaves,
        "depth": fold.depth,
    }


def _log_loss(true: Ints, probabilities: Floats) -> float:
    labels = np.arange(probabilities.shape[1])
    if len(labels) < 2:
        return 0.0
    return float(metrics.log_loss(true, probabilities, labels=labels))


def log_loss_by_row(true: Ints, probabilities: Floats) -> Floats:
    """Return what each row adds to the log loss, as scikit-learn bounds it."""
    least = np.finfo(np.float64).eps
    own = probabilities[np.arange(len(true)), true]
    by_row: Floats = -np.log(np.clip(own, least, 1.0))
    return by_row


def area(true: Ints, probabilities: Floats) -> float:
    """Return the area under the ROC curve: one class against the rest, averaged.

    A class that no row has, or that all have, has no curve.
    """
    areas = []
    classes = [1] if probabilities.shape[1] == 2 else range(probabilities.shape[1])
    for code in classes:
        own = true == code
        if 0 < own.sum() < len(own):
            areas.append(metrics.roc_auc_score(own, probabilities[:, code]))
    return float(np.mean(areas)) if areas else math.nan


def brier_by_row(true: Ints, probabilities: Floats) -> Floats:
    """Return the squared distance of each row's probabilities from the truth.

    Of two classes it is that of one of them, as usual.
    """
    wanted = np.zeros_like(probabilities)
    wanted[np.arange(len(true)), true] = 1.0
    squared: Floats = ((probabilities - wanted) ** 2).sum(axis=1)
    return squared / 2 if probabilities.shape[1] == 2 else squared


#: The number of bins of predicted probabilities.
_BINS = 10


def _binned(true: Ints, probabilities: Floats) -> tuple[Ints, Floats, Floats]:
    """Return bin and probability of each prediction, and whether it is right."""
    prediction = probabilities.argmax(axis=1)
    probability = probabilities[np.arange(len(true)), prediction]
    position = np.clip(np.ceil(probability * _BINS) - 1, 0, _BINS - 1)
    return (
        position.astype(np.intp),
        probability,
        (prediction == true).astype(np.float64),
    )


@dataclass(frozen=True)
class Reliability:
    """Calibration: the share of right predictions, by their probability.

    ``edges`` bound the bins of equal width; ``rows`` counts the predictions in each,
    ``mean_probability`` is their mean probability, ``share_right`` the share that is
    right.
    """

    edges: Floats
    rows: Ints
    mean_probability: Floats
    share_right: Floats

    @classmethod
    def of(cls, true: Ints, probabilities: Floats) -> Reliability:
        """Sort the predictions into bins."""
        position, probability, right = _binned(true, probabilities)
        rows = np.bincount(position, minlength=_BINS)
        some = np.maximum(rows, 1)
        mean_probability = np.bincount(position, probability, _BINS) / some
        share_right = np.bincount(position, right, _BINS) / some
        edges = np.linspace(0.0, 1.0, _BINS + 1)
        return cls(edges, rows, mean_probability, share_right)

    @property
    def error(self) -> float:
        """The expected calibration error: the mean difference, weighted by bin."""
        differences = np.abs(self.mean_probability - self.share_right)
        return float((differences * self.rows).sum() / max(int(self.rows.sum()), 1))


#: The share of the intervals that are to contain the truth.
LEVEL = 0.95


@dataclass(frozen=True)
class Score:
    """A score and its interval; NaN is what is not defined or not known."""

    mean: float
    low: float = math.nan
    high: float = math.nan
    folds: tuple[float, ...] = ()

    @property
    def deviation(self) -> float:
        """The standard deviation of the folds."""
        known = [value for value in self.folds if not math.isnan(value)]
        return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan

    def clipped(self, low: float, high: float) -> Score:
        """Keep the interval within the values that the score can have."""
        inner = max(self.low, low), min(self.high, high)
        return self if math.isnan(self.low) else Score(self.mean, *inner, self.folds)


def over_folds(values: Floats, ratio: float) -> Score:
    """Average the scores of folds, NaN where there is none.

    ``ratio`` is that of rows for testing to rows for fitting.
    """
    folds = tuple(float(value) for value in values)
    known = values[~np.isnan(values)]
    if not len(known):
        return Score(math.nan, folds=folds)
    mean = float(known.mean())
    if len(known) < 2:
        return Score(mean, folds=folds)
    spread = math.sqrt((1 / len(known) + ratio) * float(known.var(ddof=1)))
    reach = student(LEVEL, len(known) - 1) * spread
    return Score(mean, mean - reach, mean + reach, folds)


def wilson(successes: float, trials: float) -> Score:
    """Return a share with Wilson's interval."""
    if trials <= 0:
        return Score(math.nan)
    share = successes / trials
    return Score(share, *share_interval(share, trials, LEVEL))


def over_rows(values: Floats) -> Score:
    """Average what each row contributes, with the normal interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return Score(mean)
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    reach = z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Score(mean, mean - reach, mean + reach)


#: A function of how often each row counts.
Weighed = Callable[[Floats], Floats]
#: Number of bootstrap samples.
_DRAWS = 200


def bounds(scored: Weighed, times: Ints) -> tuple[Floats, Floats]:
    """Return the bounds of scores over draws of rows with replacement.

    ``times`` is how often each kind of row is there; ``scored`` takes how often each
    counts, and returns an array of scores.
    """
    random = np.random.default_rng(0)
    n_rows = int(times.sum())
    draws = []
    for _ in range(_DRAWS):
        counts = random.multinomial(n_rows, times / n_rows)
        draws.append(scored(counts.astype(np.float64)))
    shares = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what is never defined
        low, high = np.nanquantile(np.array(draws), shares, axis=0)
    return low, high


def held_out_scores(
    true: Ints, predicted: Ints, probabilities: Floats | None, n_classes: int
) -> tuple[dict[str, Score], list[tuple[float, float]]]:
    """Return the scores of predicted classes on rows of one table, with intervals.

    The second are the bounds of the F1 of each class.
    """
    scores = {"accuracy": wilson(int((true == predicted).sum()), len(true))}
    if probabilities is not None:
        scores["log loss"] = over_rows(log_loss_by_row(true, probabilities))
        scores["Brier score"] = over_rows(brier_by_row(true, probabilities))
    # Rows of a leaf are alike: a tree has few kinds, however many rows there are.
    kinds, times = _kinds_of_rows(true, predicted, probabilities)
    if probabilities is not None:
        probabilities = probabilities[kinds]
    scored = weighed_classes(true[kinds], predicted[kinds], probabilities, n_classes)
    own = scored(times.astype(np.float64))
    low, high = bounds(scored, times)
    names = ["balanced accuracy", *[""] * n_classes, "AUC", "calibration error"]
    for at, value in enumerate(own):
        if names[at]:
            scores[names[at]] = Score(float(value), float(low[at]), float(high[at]))
    clipped = {name: one.clipped(*CLASS_SCORES[name]) for name, one in scores.items()}
    f1 = zip(low[1 : n_classes + 1], high[1 : n_classes + 1], strict=True)
    return clipped, [(float(one), float(other)) for one, other in f1]


def _kinds_of_rows(
    true: Ints, predicted: Ints, probabilities: Floats | None
) -> tuple[Ints, Ints]:
    """Return a row of each kind, and how many rows are of it."""
    columns = [true, predicted]
    if probabilities is not None:
        columns += [*probabilities.T]
    order = np.lexsort(columns)
    new = np.zeros(len(true), dtype=bool)
    new[:1] = True
    for column in columns:
        sorted_column = column[order]
        new[1:] |= sorted_column[1:] != sorted_column[:-1]
    starts = np.flatnonzero(new)
    return order[starts], np.diff(np.append(starts, len(true)))


def weighed_classes(
    true: Ints, predicted: Ints, probabilities: Floats | None, n_classes: int
) -> Weighed:
    """Return a function that scores predicted classes by how often each row counts.

    It returns the balanced accuracy and the F1 of every class, then, where there are
    probabilities, the area under the ROC curve and the calibration error.
    """
    hits = (true == predicted).astype(np.float64)

    def of_classes(counts: Floats) -> Floats:
        right = np.bincount(true, counts * hits, n_classes)
        there = np.bincount(true, counts, n_classes)
        said = np.bincount(predicted, counts, n_classes)
        with np.errstate(invalid="ignore"):
            f1 = 2 * right / (there + said)
            balanced = (right[there > 0] / there[there > 0]).mean()
        return np.array([balanced, *f1])

    if probabilities is None:
        return of_classes
    codes = [1] if n_classes == 2 else range(n_classes)
    areas = [_weighed_area(true == code, probabilities[:, code]) for code in codes]
    position, probability, right = _binned(true, probabilities)

    def of_all(counts: Floats) -> Floats:
        found = np.array([area(counts) for area in areas])
        known = found[~np.isnan(found)]
        area = known.mean() if len(known) else np.nan
        differences = np.bincount(position, counts * (probability - right), _BINS)
        error = np.abs(differences).sum() / counts.sum()
        return np.array([*of_classes(counts), area, error])

    return of_all


def _weighed_area(own: Floats, probability: Floats) -> Callable[[Floats], float]:
    """Return a function that computes the area under the ROC curve of one class."""
    order = np.argsort(probability, kind="stable")
    is_own = own[order].astype(np.float64)
    ordered = probability[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))

    def area(counts: Floats) -> float:
        weight = counts[order]
        own = np.add.reduceat(weight * is_own, starts)
        other = np.add.reduceat(weight * (1 - is_own), starts)
        pairs = float(own.sum() * other.sum())
        below = np.cumsum(other) - other / 2
        return float((own * below).sum() / pairs) if pairs else np.nan

    return area
