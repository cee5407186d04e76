"""Importances on rows a tree has not seen, the pruning curve, the learning curve.

scikit-learn does the work: its ``permutation_importance`` and ``learning_curve`` get
numbers of rows in place of cells, and an estimator that knows what they stand for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection
from sklearn.base import BaseEstimator
from sklearn.inspection import permutation_importance

from branchwise.counts import Floats, Ints
from branchwise.evaluation.deals import Deal
from branchwise.evaluation.intervals import over_folds
from branchwise.model import Model
from branchwise.report.source import Rows, Source
from branchwise.report.testing import SLOWER, Part, Say, quiet_splits
from branchwise.table.schema import Columns

#: So many cells are shuffled and answered for again, at most.
_MOST_CELLS = 20_000_000
_MOST_SHUFFLED_ROWS = 10_000
_SHUFFLES = 10
#: A learning curve is drawn from so many rows, at most.
MOST_LEARNT_ROWS = 20_000
_SIZES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_FOLDS = 5
#: So many trees of the pruning curve are told.
_MOST_PRUNED = 60


def importances(
    source: Source, model: Model, parts: list[Part], seed: int, say: Say
) -> dict[str, Any]:
    """Tell how much columns contribute: in growing, and to answers for unseen rows."""
    n_columns = len(model.schema.columns)
    shuffles = math.ceil(_SHUFFLES / len(parts)) + (len(parts) > 1)
    widest = max(len(part.used) for part in parts)
    each = _MOST_CELLS // max(1, widest * widest * shuffles * len(parts))
    limit = min(_MOST_SHUFFLED_ROWS // len(parts), max(100, each))
    drops: list[Floats] = []
    for at, part in enumerate(parts):
        say(f"Shuffling columns: tree {at + 1} of {len(parts)}")
        drops.append(_drops(part, n_columns, limit, shuffles, seed))
    all_drops = np.concatenate(drops, axis=1)
    largest = max(len(part.test) for part in parts)
    impurity = model.feature_importances
    return {
        "score": "R squared" if source.numbers else "accuracy",
        "note": (
            f"Columns were shuffled in {limit:,} rows of each test part."
            if largest > limit
            else ""
        ),
        "shuffles": shuffles * len(parts),
        "columns": [
            {
                "column": column.name,
                "impurity": float(impurity[at]),
                "permutation": float(all_drops[at].mean()),
                "deviation": float(all_drops[at].std()),
            }
            for at, column in enumerate(model.schema.columns)
        ],
    }


def _drops(part: Part, n_columns: int, limit: int, shuffles: int, seed: int) -> Floats:
    """Return by how much the score drops, column by column, shuffle by shuffle."""
    found = np.zeros((n_columns, shuffles))
    used = part.used
    if not used:
        return found
    chosen = _some(len(part.test), limit, seed)
    shuffled = _Shuffled(part, part.encoded(chosen))
    # A cell is the row that it is taken from: what is shuffled is where from.
    places = np.tile(np.arange(len(chosen))[:, np.newaxis], (1, len(used)))
    result = permutation_importance(
        shuffled,
        places,
        part.test.truth[chosen],
        scoring=_score,
        n_repeats=shuffles,
        random_state=seed,
    )
    found[used] = result.importances
    return found


class _Shuffled(BaseEstimator):  # type: ignore[misc]
    """A fitted tree that answers for rows whose cells come from different rows."""

    def __init__(self, part: Part, data: Columns) -> None:
        self.part = part
        self.data = data

    def fit(self) -> Self:
        """Do nothing: the tree is there."""
        return self

    def predict(self, places: Ints) -> NDArray[Any]:
        """Answer for rows, each cell taken from its place."""
        cells = list(self.data.data)
        for at, column in enumerate(self.part.used):
            cells[column] = cells[column][places[:, at]]
        return self.part.answers(Columns(len(places), tuple(cells)))


class _Growing(BaseEstimator):  # type: ignore[misc]
    """Grows a tree from rows that are given by their numbers."""

    def __init__(self, source: Source, say: Say) -> None:
        self.source = source
        self.say = say

    def __sklearn_clone__(self) -> _Growing:
        return _Growing(self.source, self.say)  # the table is shared, not copied

    def fit(self, places: Ints, _: object) -> Self:
        """Grow."""
        rows = places[:, 0]
        self.say(f"Learning curve: a tree from {len(rows):,} rows")
        self.model_ = self.source.grown(rows)
        return self

    def predict(self, places: Ints) -> NDArray[Any]:
        """Answer for rows."""
        chosen, own = places[:, 0], self.source.rows
        test = Rows(own.table[chosen], own.truth[chosen], own.classes)
        part = Part(self.model_, chosen, test, 0)
        return part.answers(part.encoded())


def _score(estimator: Any, places: Ints, truth: NDArray[Any]) -> float:
    """Return the accuracy; of numbers the share of their variance explained."""
    answers = estimator.predict(places)
    if answers.dtype.kind != "f":
        return float((answers == truth).mean())
    varied = float(((truth - truth.mean()) ** 2).sum())
    left = float(((truth - answers) ** 2).sum())
    return 1.0 - left / varied if varied > 0 else float(left == 0.0)


def learning_curve(source: Source, model: Model, seed: int, say: Say) -> dict[str, Any]:
    """Grow trees from more and more of the rows, and test them on others.

    A price of leaves that cross-validation chose for the model is taken as it is.
    """
    rows = source.rows
    most = MOST_LEARNT_ROWS // (SLOWER if source.numbers else 1)
    chosen = _some(len(rows), most, seed)
    some = Rows(rows.table, rows.truth[chosen], rows.classes)
    alike = np.bincount(some.truth).max() if rows.classes else len(chosen)
    deal = Deal(cv=int(max(2, min(_FOLDS, alike))), seed=seed)
    splits = quiet_splits(deal, some)
    smallest = min(len(training) for training, _ in splits)
    sizes = np.unique([max(2, round(share * smallest)) for share in _SIZES])
    found = model_selection.learning_curve(
        _Growing(replace(source, settled=model.recipe), say),
        chosen[:, np.newaxis],
        some.truth,
        train_sizes=sizes[sizes <= smallest],
        cv=splits,
        scoring=_score,
        shuffle=True,
        random_state=seed,
        error_score="raise",
    )
    ratio = 1 / (deal.cv - 1)
    return {
        "score": "R squared" if source.numbers else "accuracy",
        "folds": deal.cv,
        "note": (
            f"Drawn from {len(chosen):,} of the {len(rows):,} rows."
            if len(chosen) < len(rows)
            else ""
        ),
        "sizes": [
            {
                "rows": int(size),
                "training": float(np.mean(training)),
                "testing": _plain(testing, ratio),
            }
            for size, training, testing in zip(*found[:3], strict=True)
        ],
    }


def pruning_curve(source: Source, model: Model, parts: list[Part]) -> dict[str, Any]:
    """Cut the tree back, leaf by leaf, and count the errors on rows it has not seen.

    The trees that are tested are cut back at the same prices; between two prices
    their geometric mean stands for both.
    """
    path = model.pruning_path()
    alphas = path.alpha
    ends = np.sqrt(alphas[:-1]) * np.sqrt(alphas[1:])
    prices = np.append(ends, 2 * alphas[-1] + 1)
    by_part = []
    for part in parts:
        own = part.model.pruning_path(part.test.table, part.test.labels)
        step = np.searchsorted(own.alpha, prices, side="right") - 1
        by_part.append(np.asarray(own.validation_error)[step])
    errors = np.array(by_part)
    # Of trees that err least, the smallest.
    best = len(path) - 1 - int(errors.mean(axis=0)[::-1].argmin())
    chosen = np.unique(np.linspace(0, len(path) - 1, _MOST_PRUNED).round().astype(int))
    ratio = 1 / (len(parts) - 1) if len(parts) > 1 else 0.0
    return {
        "error": "mean squared error" if source.numbers else _error_of(model),
        "trees": [
            {
                "alpha": float(alphas[at]),
                "leaves": int(path.n_leaves[at]),
                "training": float(path.train_error[at]),
                "testing": _plain(errors[:, at], ratio),
            }
            for at in chosen
        ],
        "best": {"leaves": int(path.n_leaves[best]), "alpha": float(alphas[best])},
        "left_out": len(path) - len(chosen),
    }


def _error_of(model: Model) -> str:
    return "share of errors" if model.recipe.costs is None else "mean cost"


def _plain(values: Floats, ratio: float) -> dict[str, float | None]:
    score = over_folds(np.asarray(values, dtype=np.float64), ratio)
    found = {"mean": score.mean, "low": score.low, "high": score.high}
    return {name: None if math.isnan(v) else v for name, v in found.items()}


def _some(n_rows: int, limit: int, seed: int) -> Ints:
    """Return so many rows, in order; always the same."""
    if n_rows <= limit:
        return np.arange(n_rows)
    picked = np.random.default_rng(seed).choice(n_rows, limit, replace=False)
    return np.sort(picked)
