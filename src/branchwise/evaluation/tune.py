"""Parameter search on the same folds: grid search and successive halving.

The table is encoded once. Within a fold the candidates that grow the same tree, and
differ in how deep it may be or how it is pruned, follow each other, the deepest first,
so that it is grown once. Ensembles that differ in the number of trees have the first
trees of the largest. Every score is what a fit of its own would give.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer

from branchwise.data.columns import Coded
from branchwise.data.encoded_table import digest
from branchwise.ensemble.ensemble import Ensemble
from branchwise.errors import DataError, ParameterError
from branchwise.estimators.base import TreeEstimator
from branchwise.estimators.ensemble import EnsembleEstimator
from branchwise.evaluation.algorithms import (
    Grid,
    candidates,
    check_scoring,
    default_grid,
    is_regression,
    prepared,
    size_of,
)
from branchwise.evaluation.cross_validate import Progress, Rows, fitted_to
from branchwise.evaluation.folds import FoldAssignment, Split
from branchwise.evaluation.trials import (
    Fit,
    SearchResults,
    StateFile,
    Trial,
    candidate_key,
)
from branchwise.recipe import Recipe
from branchwise.threads import as_done, n_threads
from branchwise.train.train import without_limits

METHODS = ("grid", "halving")
#: Halving keeps one candidate of so many, for so many times the rows.
_FACTOR = 3
#: The fewest training rows, for each class, that a candidate is judged by.
_FEWEST = 20


class SearchInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search; ``results`` are of the candidates that were finished."""

    def __init__(self, results: SearchResults | None, done: int, total: int) -> None:
        super().__init__()
        self.results = results
        self.done = done
        self.total = total


def search(
    estimator: Any,
    X: object,
    y: object,
    grid: Grid | None = None,
    *,
    method: str = "grid",
    cv: int = 10,
    seed: int = 0,
    scoring: str | None = None,
    sample_weight: object = None,
    n_jobs: int | None = None,
    state: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> SearchResults:
    """Search for the parameters of an algorithm with the best score.

    Parameters
    ----------
    estimator : estimator
        The algorithm, with the parameters that are the same for all candidates.
    X, y : table and sequence
        The rows; X may be an ``EncodedTable``.
    grid : dict, list of dicts, or None
        The values to try of each parameter, all with all; None is the usual grid of
        the algorithm. What several dicts have in common is tried once.
    method : {"grid", "halving"}
        "grid" tries every candidate on all rows; "halving" all candidates on few rows,
        then the best third of them on three times as many, and so on.
    cv, seed : int
        The number of folds, and their random seed.
    scoring : str or None
        One of scikit-learn's scorers that fits what is predicted; by default accuracy,
        or R squared.
    sample_weight : sequence of float or None
        The weights of the rows, for fitting.
    n_jobs : int or None
        The number of fits that run in parallel; None is one, -1 all cores.
    state : str, path or None
        A file that fits are written to as they finish. If it is there, its fits are
        not done again.
    progress : callable or None
        Called with the number of finished fits and of all fits.

    Returns
    -------
    SearchResults
        The candidates, the best first.

    Examples
    --------
    >>> from branchwise import C45Classifier, datasets
    >>> from branchwise.evaluation import search
    >>> votes = datasets.load("votes")
    >>> found = search(
    ...     C45Classifier(), votes.X, votes.y, {"confidence": [0.01, 0.25]}, cv=5
    ... )
    >>> found.best_params_
    {'confidence': 0.01}
    """
    if method not in METHODS:
        raise ParameterError(
            f"method must be {' or '.join(map(repr, METHODS))}. Got {method!r} instead."
        )
    numbers = is_regression(estimator)
    listed = candidates(estimator, default_grid(estimator) if grid is None else grid)
    rows = Rows.of(X, y, numbers, sample_weight)
    check_scoring(scoring, rows.classes)
    job = _Search(
        estimator,
        rows,
        FoldAssignment(cv, seed=seed).splits(rows.target, not numbers),
        scoring,
        n_threads(n_jobs),
        progress or (lambda *_: None),
        seed,
        method,
    )
    job.file = StateFile(state, job.described())
    return job.run(listed)


def fitted(
    estimator: Any,
    parameters: Mapping[str, Any],
    X: object,
    y: object,
    sample_weight: object = None,
) -> Any:
    """Fit a candidate to all rows; the estimator itself stays as it is."""
    extra = {} if sample_weight is None else {"sample_weight": sample_weight}
    return clone(estimator).set_params(**parameters).fit(X, y, **extra)


@dataclass
class _Search:
    """What all fits of a search share."""

    estimator: Any
    rows: Rows
    splits: list[Split]
    scoring: str | None
    threads: int
    progress: Progress
    seed: int
    method: str
    file: StateFile = field(init=False)
    finished: int = 0
    total: int = 0

    def described(self) -> dict[str, Any]:
        """Tell what must be the same for fits to be of this search."""
        table = self.rows.table
        pieces = [repr((table.names, table.named, self.rows.classes)).encode()]
        for raw in table.columns:
            cells = raw.codes if isinstance(raw, Coded) else raw.values
            names = repr(raw.values).encode() if isinstance(raw, Coded) else b""
            pieces += [digest(cells), names]
        pieces += [digest(self.rows.target), digest(self.rows.weights)]
        assignments = [
            digest(piece.astype(np.int64)) for split in self.splits for piece in split
        ]
        return {
            "estimator": repr((type(self.estimator).__name__, self._fixed())),
            "scoring": self.scoring,
            "data": blake2b(b"\0".join(pieces), digest_size=16).hexdigest(),
            "folds": blake2b(b"".join(assignments), digest_size=16).hexdigest(),
        }

    def _fixed(self) -> list[tuple[str, Any]]:
        given = self.estimator.get_params()
        return sorted((n, v) for n, v in given.items() if n != "n_jobs")

    def _rounds(self, n_candidates: int) -> list[int]:
        """Return the training rows of each round, from few to all."""
        most = len(self.splits[0][0])
        if self.method == "grid":
            return [most]
        fewest = _FEWEST * max(2, len(self.rows.classes))
        needed = math.ceil(math.log(max(n_candidates, 2), _FACTOR))
        possible = int(math.log(max(most / fewest, 1.0), _FACTOR))
        steps = min(needed, possible)
        return [most // _FACTOR**step for step in range(steps, -1, -1)]

    def run(self, listed: list[dict[str, Any]]) -> SearchResults:
        """Try all candidates, round by round."""
        left = {candidate_key(one): one for one in listed}
        rounds = self._rounds(len(left))
        self.total = self._n_fits(len(left), len(rounds))
        last = {key: (one, 0) for key, one in left.items()}
        found = None
        for at, n_rows in enumerate(rounds):
            last |= {key: (one, n_rows) for key, one in left.items()}
            try:
                self._round(list(left.values()), n_rows)
            except KeyboardInterrupt:
                found = self._results(last, complete=False)
                raise SearchInterrupted(found, self.finished, self.total) from None
            found = self._results(last, complete=at + 1 == len(rounds))
            if found is None:
                break
            ranked = [
                candidate_key(t.parameters) for t in found.trials if t.rows == n_rows
            ]
            best = ranked[: math.ceil(len(left) / _FACTOR)]
            left = {key: one for key, one in left.items() if key in best}
        if found is None:
            raise DataError("The search has no candidate that was finished.")
        return found

    def _n_fits(self, n_candidates: int, n_rounds: int) -> int:
        fits = 0
        for _ in range(n_rounds):
            fits += n_candidates * len(self.splits)
            n_candidates = math.ceil(n_candidates / _FACTOR)
        return fits

    def _round(self, left: Sequence[dict[str, Any]], n_rows: int) -> None:
        jobs = []
        for group in self._groups(left):
            for fold in range(len(self.splits)):
                keys = [(candidate_key(one), fold, n_rows) for one in group]
                pairs = zip(group, keys, strict=True)
                todo = [one for one, key in pairs if key not in self.file.done]
                self.finished += len(group) - len(todo)
                if todo:
                    jobs.append((todo, fold, n_rows))
        self.progress(self.finished, self.total)
        for _, fits in as_done(lambda job: self._fits(*job), jobs, self.threads):
            self.file.add(fits)
            self.finished += len(fits)
            self.progress(self.finished, self.total)

    def _groups(self, left: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """Put candidates together that share a grown tree, the widest limits first."""
        if isinstance(self.estimator, EnsembleEstimator):
            shared: list[dict[str, Any]] = []
            alone: list[dict[str, Any]] = []
            for one in left:
                recipe = clone(self.estimator).set_params(**one).recipe
                (shared if recipe.begins_with_fewer else alone).append(one)
            return [*_by_trees(shared), *([one] for one in alone)]
        if not isinstance(self.estimator, TreeEstimator):
            return [[one] for one in left]
        groups: dict[Any, list[tuple[Recipe, dict[str, Any]]]] = {}
        for one in left:
            recipe = clone(self.estimator).set_params(**one).recipe
            groups.setdefault(without_limits(recipe), []).append((recipe, one))
        n_rows = self.rows.table.n_rows

        def width(entry: tuple[Recipe, dict[str, Any]]) -> tuple[float, float]:
            recipe = entry[0]
            depth = math.inf if recipe.max_depth is None else recipe.max_depth
            return -depth, recipe.cases_to_split(n_rows)

        return [
            [one for _, one in sorted(group, key=width)] for group in groups.values()
        ]

    def _fits(
        self, group: Sequence[dict[str, Any]], fold: int, n_rows: int
    ) -> list[Fit]:
        training, testing = self.splits[fold]
        if n_rows < len(self.splits[0][0]):
            # The rows of a round are among those of the next one.
            order = np.random.default_rng([self.seed, fold]).permutation(len(training))
            training = np.sort(training[order[:n_rows]])
        fits, largest = [], None
        for one in group:
            fit, fitted = self._fit(one, fold, n_rows, (training, testing), largest)
            fits.append(fit)
            if isinstance(fitted, EnsembleEstimator):
                largest = largest or fitted
        return fits

    def _fit(
        self,
        parameters: dict[str, Any],
        fold: int,
        n_rows: int,
        split: Split,
        largest: Any = None,
    ) -> tuple[Fit, Any]:
        """Fit a candidate, or take the first trees of a larger ensemble; score it."""
        candidate = clone(self.estimator).set_params(**parameters)
        own, table = prepared(candidate, self.rows.table)
        if largest is None:
            fitted, fit_seconds = fitted_to(own, table, self.rows, split[0])
        else:
            fitted, fit_seconds = _first_trees(largest, candidate), 0.0
        start = time.perf_counter()
        labels = self.rows.labels
        train, test = (self._score(fitted, table[rows], labels[rows]) for rows in split)
        seconds = fit_seconds, time.perf_counter() - start
        key, size = candidate_key(parameters), size_of(fitted)
        return Fit(key, fold, n_rows, train, test, *seconds, *size), fitted

    def _score(self, fitted: Any, X: Any, y: Any) -> float:
        if self.scoring in (None, "accuracy", "r2"):
            return float(fitted.score(X, y))
        try:
            return float(get_scorer(self.scoring)(fitted, X, y))
        except (ValueError, TypeError, AttributeError) as error:
            raise ParameterError(
                f"scoring {self.scoring!r} cannot score these rows: {error}"
            ) from None

    def _results(
        self, last: Mapping[str, tuple[dict[str, Any], int]], complete: bool
    ) -> SearchResults | None:
        """Rank the candidates whose fits are all done, each by its last round."""
        trials = []
        for key, (parameters, n_rows) in last.items():
            wanted = [(key, fold, n_rows) for fold in range(len(self.splits))]
            if all(fit in self.file.done for fit in wanted):
                fits = [self.file.done[fit] for fit in wanted]
                trials.append(_trial(parameters, n_rows, fits))
        if not trials:
            return None
        usual = "R2" if is_regression(self.estimator) else "accuracy"
        scoring, n_folds = self.scoring or usual, len(self.splits)
        return SearchResults.ranked(trials, scoring, self.method, n_folds, complete)


def _by_trees(left: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Put ensembles together that differ in the number of trees, the largest first."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in left:
        rest = {name: value for name, value in one.items() if name != "n_estimators"}
        groups.setdefault(candidate_key(rest), []).append(one)
    return [
        sorted(group, key=lambda one: -one.get("n_estimators", 0))
        for group in groups.values()
    ]


def _first_trees(largest: Any, candidate: Any) -> Any:
    """Return an ensemble of fewer trees: the same, and only the first of them."""
    fitted, model = copy(largest), largest.model_
    fitted.n_estimators = candidate.n_estimators
    a_round = model.n_outputs if model.recipe.adds_margins else 1
    n_trees = candidate.n_estimators * a_round
    weights = model.tree_weights
    fitted.model_ = Ensemble(
        model.schema,
        model.trees[:n_trees],
        candidate.recipe,
        None if weights is None else weights[:n_trees],
        model.initial,
        samples=model.samples,
    )
    return fitted


def _trial(parameters: dict[str, Any], n_rows: int, fits: Sequence[Fit]) -> Trial:
    def mean(name: str) -> float:
        return float(np.mean([getattr(fit, name) for fit in fits]))

    return Trial(
        parameters,
        n_rows,
        np.array([fit.train for fit in fits]),
        np.array([fit.test for fit in fits]),
        mean("fit_seconds"),
        mean("score_seconds"),
        mean("leaves"),
        mean("depth"),
    )
