"""Fit and test, fold by fold, the same folds for every algorithm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from branchwise.errors import ParameterError
from branchwise.evaluation.contenders import (
    BASELINE,
    contender,
    predicts_numbers,
    prepared,
    size_of,
)
from branchwise.evaluation.deals import Deal, Split
from branchwise.evaluation.metrics import Fold
from branchwise.evaluation.reports import Comparison, Evaluation
from branchwise.evaluation.summing import evaluated
from branchwise.forks import cached_property
from branchwise.table.encoded import EncodedTable
from branchwise.table.labels import learn_numbers, learn_target
from branchwise.table.schema import Value
from branchwise.table.weights import check_weights
from branchwise.threads import as_done, n_threads

#: Told how many fits of how many are done.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Rows:
    """A table that is read, and what is to be predicted: class codes or numbers."""

    table: EncodedTable
    target: NDArray[Any]
    classes: tuple[Value, ...]
    weights: NDArray[np.float64] | None

    @classmethod
    def of(
        cls, X: object, y: object, numbers: bool, sample_weight: object = None
    ) -> Rows:
        """Read a table and its target."""
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

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The target in the user's words."""
        if not self.classes:
            return self.target
        labels: NDArray[Any] = np.array(self.classes, dtype=_dtype(self.classes))
        return labels.take(self.target)


def _dtype(classes: Sequence[Value]) -> Any:
    return object if any(isinstance(label, str) for label in classes) else None


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
        A scikit-learn estimator that takes the table, or one of ``CONTENDERS``.
    X, y : table and sequence
        The rows, as for ``fit``; X may be an ``EncodedTable``.
    cv, repeats, hold_out, seed
        How the rows are dealt: see :class:`Deal`. Every fold has its share of every
        class.
    sample_weight : sequence of float or None
        The weights of the rows, for fitting; scores count rows.
    n_jobs : int or None
        How many folds are fitted side by side; None is one, -1 all cores.
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
    deal = Deal(cv, repeats, hold_out, seed)
    if isinstance(estimator, str):
        name, estimator = name or estimator, contender(estimator)
    called = name or type(estimator).__name__
    comparison = _compared({called: estimator}, X, y, deal, sample_weight, n_jobs, None)
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
        What to compare: estimators by name, or names among ``CONTENDERS``.
    X, y, cv, repeats, hold_out, seed, sample_weight, n_jobs
        As in :func:`cross_validated`.
    regression : bool
        Whether names are those of regressors.
    progress : callable or None
        Told how many fits are done, and how many there are.

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
        algorithms = {name: contender(name, regression) for name in algorithms}
    if not algorithms:
        raise ParameterError("algorithms must name at least one. Got none.")
    numbers = {
        predicts_numbers(estimator, f"algorithms[{name!r}]")
        for name, estimator in algorithms.items()
    }
    if len(numbers) > 1:
        raise ParameterError(
            "algorithms must all predict classes or all predict numbers. Got both."
        )
    everyone = dict(algorithms)
    everyone.setdefault(BASELINE, contender(BASELINE, numbers.pop()))
    deal = Deal(cv, repeats, hold_out, seed)
    return _compared(everyone, X, y, deal, sample_weight, n_jobs, progress)


def _compared(
    algorithms: Mapping[str, Any],
    X: object,
    y: object,
    deal: Deal,
    sample_weight: object,
    n_jobs: int | None,
    progress: Progress | None,
) -> Comparison:
    numbers = predicts_numbers(next(iter(algorithms.values())))
    rows = Rows.of(X, y, numbers, sample_weight)
    splits = deal.splits(rows.target, not numbers)
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
    for place, name in enumerate(ready):
        start = place * len(splits)
        folds = [found[start + at] for at in range(len(splits))]
        results[name] = evaluated(name, deal, rows.target, rows.classes, folds)
    return Comparison(results)


def tested(estimator: Any, table: Any, rows: Rows, split: Split) -> Fold:
    """Fit to one part of the rows, and predict the other."""
    training, testing = split
    weights = rows.weights
    extra = {} if weights is None else {"sample_weight": weights[training]}
    if hasattr(estimator, "steps"):
        extra = {f"{estimator.steps[-1][0]}__{k}": v for k, v in extra.items()}
    start = time.perf_counter()
    fitted = clone(estimator).fit(table[training], rows.labels[training], **extra)
    seconds = time.perf_counter() - start
    leaves, depth = size_of(fitted)
    counts = partial(Fold, leaves=leaves, depth=depth, seconds=seconds)
    if not rows.classes:
        predicted = np.asarray(fitted.predict(table[testing]), dtype=np.float64)
        return counts(testing, predicted, None, n_training=len(training))
    place = _places(fitted.classes_, rows.classes)
    chances = None
    if hasattr(fitted, "predict_proba"):
        chances = np.zeros((len(testing), len(rows.classes)))
        chances[:, place] = fitted.predict_proba(table[testing])
    codes = {label: at for at, label in enumerate(rows.classes)}
    answers = np.asarray(fitted.predict(table[testing])).tolist()
    predicted = np.array([codes[label] for label in answers], dtype=np.intp)
    return counts(testing, predicted, chances, n_training=len(training))


def _places(known: NDArray[Any], classes: Sequence[Value]) -> NDArray[np.intp]:
    codes = {label: at for at, label in enumerate(classes)}
    return np.array([codes[label] for label in known.tolist()], dtype=np.intp)
