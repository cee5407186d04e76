"""Cross-validation of algorithms on the same folds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from branchwise.data.arrays import Floats, Ints
from branchwise.data.encoded_table import EncodedTable
from branchwise.data.table_schema import Value
from branchwise.data.target import learn_numbers, learn_target
from branchwise.data.weights import check_weights
from branchwise.errors import DataError, ParameterError
from branchwise.evaluation.algorithms import (
    BASELINE,
    candidate,
    is_regression,
    prepared,
    size_of,
)
from branchwise.evaluation.folds import FoldAssignment, Split
from branchwise.evaluation.metrics import (
    CLASS_SCORES,
    NUMBER_SCORES,
    OF_CLASS,
    SIZES,
    Fold,
    Reliability,
    Score,
    bounds,
    class_codes,
    class_scores,
    confusion,
    held_out_scores,
    number_scores,
    over_folds,
    over_rows,
    r_squared,
    scores_by_class,
    wilson,
)
from branchwise.evaluation.results import ClassReport, Comparison, Evaluation
from branchwise.threads import as_done, cached_property, n_threads


def evaluated(
    name: str,
    assignment: FoldAssignment,
    target: NDArray[Any],
    classes: Sequence[Value],
    folds: Sequence[Fold],
) -> Evaluation:
    """Sum up the folds of an algorithm."""
    seconds = float(np.mean([fold.seconds for fold in folds]))
    if not classes:
        found = [number_scores(target[fold.rows], fold) for fold in folds]
        scores = _summed_up(found, assignment, NUMBER_SCORES | SIZES)
        if assignment.hold_out is not None:
            scores |= _one_fold_of_numbers(target[folds[0].rows], folds[0])
        return Evaluation(
            name, assignment, len(target), scores, (), None, None, seconds
        )
    found = [class_scores(target[fold.rows], fold, len(classes)) for fold in folds]
    scores = _summed_up(found, assignment, CLASS_SCORES | SIZES)
    f1_bounds: list[tuple[float, float]] = []
    if assignment.hold_out is not None:
        fold = folds[0]
        one, f1_bounds = held_out_scores(
            target[fold.rows], fold.predicted, fold.probabilities, len(classes)
        )
        scores |= one
    true = np.concatenate([target[fold.rows] for fold in folds])
    guess = np.concatenate([fold.predicted for fold in folds])
    matrix = confusion(true, guess, len(classes))
    reliability = None
    probabilities = [
        fold.probabilities for fold in folds if fold.probabilities is not None
    ]
    if len(probabilities) == len(folds):
        reliability = Reliability.of(true, np.concatenate(probabilities))
    reports = _class_reports(assignment, target, classes, folds, matrix, f1_bounds)
    return Evaluation(
        name, assignment, len(target), scores, reports, matrix, reliability, seconds
    )


def _summed_up(
    found: Sequence[Mapping[str, float]],
    assignment: FoldAssignment,
    bounds: Mapping[str, tuple[float, float]],
) -> dict[str, Score]:
    return {
        name: over_folds(
            np.array([one[name] for one in found]), assignment.ratio
        ).clipped(*bounds[name])
        for name in found[0]
    }


def _one_fold_of_numbers(true: NDArray[np.float64], fold: Fold) -> dict[str, Score]:
    error = fold.predicted - true
    squared = over_rows(error**2)
    root = Score(
        math.sqrt(squared.mean),
        math.sqrt(max(squared.low, 0.0)),
        math.sqrt(max(squared.high, 0.0)),
    )
    scores = {"MAE": over_rows(np.abs(error)).clipped(0.0, math.inf), "RMSE": root}
    own = r_squared(true, fold.predicted)
    if not math.isnan(own):
        low, high = bounds(
            lambda counts: np.array([r_squared(true, fold.predicted, counts)]),
            np.ones(len(true), dtype=np.int64),
        )
        scores["R2"] = Score(own, float(low[0]), float(high[0]))
    return scores


def _class_reports(
    assignment: FoldAssignment,
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
            over_folds(by_fold[:, code, at], assignment.ratio).clipped(0.0, 1.0)
            for at in range(len(OF_CLASS))
        ]
        if assignment.hold_out is not None:
            right = int(matrix[code, code])
            scores[0] = wilson(right, int(matrix[:, code].sum()))
            scores[1] = wilson(right, int(matrix[code].sum()))
            scores[2] = Score(scores[2].mean, *f1_bounds[code])
        reports.append(ClassReport(label, int(rows[code]), *scores))
    return tuple(reports)


#: Called with the number of finished fits and of all fits.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Rows:
    """An encoded table, and what is to be predicted: class codes or numbers."""

    table: EncodedTable
    target: NDArray[Any]
    classes: tuple[Value, ...]
    weights: Floats | None = None

    @classmethod
    def of(
        cls, X: object, y: object, numbers: bool, sample_weight: object = None
    ) -> Rows:
        """Read a table and its target."""
        if y is None:
            raise DataError("y must have a class, or a number, for each row. Got None.")
        table = X if isinstance(X, EncodedTable) else EncodedTable(X)
        classes: tuple[Value, ...] = ()
        if numbers:
            target: NDArray[Any] = learn_numbers(y, table.n_rows)
        else:
            classes, target = learn_target(y, table.n_rows)
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, table.n_rows)
        return cls(table, target, classes, weights)

    def __len__(self) -> int:
        return int(self.table.n_rows)

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The target in the user's words."""
        if not self.classes:
            return self.target
        text = any(isinstance(label, str) for label in self.classes)
        labels: NDArray[Any] = np.array(self.classes, dtype=object if text else None)
        return labels.take(self.target)

    def take(self, rows: Ints) -> Rows:
        """Return some of the rows, without weights."""
        return Rows(self.table[rows], self.target[rows], self.classes)

    def named(self, classes: Sequence[Value]) -> Rows:
        """Return the rows with the codes of other classes, which have all of theirs."""
        position = class_codes(np.array(self.classes, dtype=object), classes)
        return replace(self, target=position[self.target], classes=tuple(classes))


def cross_validated(
    estimator: Any,
    X: object,
    y: object,
    *,
    cv: int = 10,
    repeats: int = 1,
    hold_out: float | None = None,
    seed: int = 0,
    sample_weight: object = None,
    n_jobs: int | None = None,
    name: str | None = None,
) -> Evaluation:
    """Evaluate an algorithm on rows that it was not fitted to.

    Parameters
    ----------
    estimator : estimator or str
        A scikit-learn estimator that takes the table, or one of ``CANDIDATES``.
    X, y : table and sequence
        The rows, as for ``fit``; X may be an ``EncodedTable``.
    cv, repeats, hold_out, seed
        The folds: see :class:`FoldAssignment`. Folds are stratified by class.
    sample_weight : sequence of float or None
        The weights of the rows, for fitting; scores count rows.
    n_jobs : int or None
        The number of folds that are fitted in parallel; None is one, -1 all cores.
    name : str or None
        What to call it.

    Returns
    -------
    Evaluation
        Scores with 95 % intervals, and more: ``print`` it.

    Examples
    --------
    >>> from branchwise import ID3Classifier, datasets
    >>> from branchwise.evaluation import cross_validated
    >>> votes = datasets.load("votes")
    >>> result = cross_validated(ID3Classifier(max_depth=2), votes.X, votes.y)
    >>> round(result["accuracy"].mean, 3)
    0.96
    """
    assignment = FoldAssignment(cv, repeats, hold_out, seed)
    if isinstance(estimator, str):
        name, estimator = name or estimator, candidate(estimator)
    called = name or type(estimator).__name__
    comparison = _compared(
        {called: estimator}, X, y, assignment, sample_weight, n_jobs, None
    )
    return comparison[called]


def compare(
    algorithms: Mapping[str, Any] | Sequence[str],
    X: object,
    y: object,
    *,
    cv: int = 10,
    repeats: int = 1,
    hold_out: float | None = None,
    seed: int = 0,
    regression: bool = False,
    sample_weight: object = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Evaluate several algorithms on the same folds, and the baseline with them.

    Parameters
    ----------
    algorithms : dict of estimators, or names
        What to compare: estimators by name, or names among ``CANDIDATES``.
    X, y, cv, repeats, hold_out, seed, sample_weight, n_jobs
        As in :func:`cross_validated`.
    regression : bool
        Whether names are those of regressors.
    progress : callable or None
        Called with the number of finished fits and of all fits.

    Returns
    -------
    Comparison
        The evaluations by name, and how they differ.
    """
    if isinstance(algorithms, str) or not isinstance(algorithms, Iterable):
        raise ParameterError(
            "algorithms must be a list of names, such as ['id3', 'cart'], or a dict of "
            f"estimators by name. Got {algorithms!r}, which is neither."
        )
    if not isinstance(algorithms, Mapping):
        algorithms = {name: candidate(name, regression) for name in algorithms}
    if not algorithms:
        raise ParameterError("algorithms must name at least one. Got none.")
    numbers = {
        is_regression(estimator, f"algorithms[{name!r}]")
        for name, estimator in algorithms.items()
    }
    if len(numbers) > 1:
        raise ParameterError(
            "algorithms must all predict classes or all predict numbers. Got both."
        )
    everyone = dict(algorithms)
    everyone.setdefault(BASELINE, candidate(BASELINE, numbers.pop()))
    assignment = FoldAssignment(cv, repeats, hold_out, seed)
    return _compared(everyone, X, y, assignment, sample_weight, n_jobs, progress)


def _compared(
    algorithms: Mapping[str, Any],
    X: object,
    y: object,
    assignment: FoldAssignment,
    sample_weight: object,
    n_jobs: int | None,
    progress: Progress | None,
) -> Comparison:
    numbers = is_regression(next(iter(algorithms.values())))
    rows = Rows.of(X, y, numbers, sample_weight)
    splits = assignment.splits(rows.target, not numbers)
    ready = {name: prepared(one, rows.table) for name, one in algorithms.items()}
    jobs = [(name, split) for name in ready for split in splits]
    found: dict[int, Fold] = {}

    def work(job: tuple[str, Split]) -> Fold:
        name, split = job
        return tested(*ready[name], rows, split)

    for at, fold in as_done(work, jobs, n_threads(n_jobs)):
        found[at] = fold
        if progress is not None:
            progress(len(found), len(jobs))
    results = {}
    for position, name in enumerate(ready):
        start = position * len(splits)
        folds = [found[start + at] for at in range(len(splits))]
        results[name] = evaluated(name, assignment, rows.target, rows.classes, folds)
    return Comparison(results)


def tested(estimator: Any, table: Any, rows: Rows, split: Split) -> Fold:
    """Fit to the training rows of a fold, and predict the others."""
    training, testing = split
    fitted, seconds = fitted_to(estimator, table, rows, training)
    fold = predicted_fold(fitted, table[testing], testing, rows.classes, len(training))
    return replace(fold, seconds=seconds)


def fitted_to(
    estimator: Any, table: Any, rows: Rows, training: Ints
) -> tuple[Any, float]:
    """Fit a copy of an estimator to some rows, and return how many seconds it took."""
    weights = rows.weights
    extra = {} if weights is None else {"sample_weight": weights[training]}
    if hasattr(estimator, "steps"):
        extra = {f"{estimator.steps[-1][0]}__{k}": v for k, v in extra.items()}
    start = time.perf_counter()
    fitted = clone(estimator).fit(table[training], rows.labels[training], **extra)
    return fitted, time.perf_counter() - start


def predicted_fold(
    fitted: Any, table: Any, testing: Ints, classes: Sequence[Value], n_training: int
) -> Fold:
    """Predict the rows of a fold, which are at some positions among all rows."""
    leaves, depth = size_of(fitted)
    probabilities = None
    predicted = np.asarray(fitted.predict(table))
    if not classes:
        predicted = predicted.astype(np.float64)
    else:
        predicted = class_codes(predicted, classes)
        if hasattr(fitted, "predict_proba"):
            probabilities = np.zeros((len(testing), len(classes)))
            known = class_codes(fitted.classes_, classes)
            probabilities[:, known] = fitted.predict_proba(table)
    return Fold(testing, predicted, probabilities, leaves, depth, math.nan, n_training)
