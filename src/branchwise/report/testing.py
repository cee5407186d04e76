"""Tests of trees on unseen rows: scores, importances, learning and pruning curves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection
from sklearn.base import BaseEstimator
from sklearn.inspection import permutation_importance

from branchwise.data.arrays import Floats, Ints
from branchwise.data.encode import encode_columns
from branchwise.data.table_schema import Columns
from branchwise.ensemble.ensemble import Ensemble
from branchwise.evaluation.algorithms import BASELINE, candidate
from branchwise.evaluation.cross_validate import Rows, evaluated, predicted_fold
from branchwise.evaluation.folds import FoldAssignment
from branchwise.evaluation.metrics import Fold, over_folds, r_squared, wilson
from branchwise.evaluation.results import Evaluation
from branchwise.model import Model
from branchwise.report.inputs import SLOWER, Plan, Source
from branchwise.shap.shap_values import ShapValues


@dataclass(frozen=True)
class FoldTest:
    """A tree, and rows that it was not grown from.

    ``rows`` are their positions among all rows that are tested.
    """

    model: Model
    rows: Ints
    test: Rows
    n_training: int

    @property
    def used(self) -> list[int]:
        """The columns that the tree splits on."""
        return self.model.tree.used_columns

    def encoded(self, chosen: Ints | None = None) -> Columns:
        """Return the columns that the tree splits on, encoded."""
        model, table = self.model, self.test.table
        allow = model.recipe.unseen != "error"
        picked = table if chosen is None else table[chosen]
        return encode_columns(picked, model.schema, self.used, allow_unseen=allow)

    def predictions(self, data: Columns) -> NDArray[Any]:
        """Return the codes of the classes, or the numbers, of encoded rows."""
        walker = self.model.walker
        if self.model.tree.is_regression:
            return walker.quantities(data)
        return walker.classify(data).astype(np.intp)

    def tested(self) -> Fold:
        """Return the predictions for all rows."""
        data, tree = self.encoded(), self.model.tree
        probabilities = None
        if not tree.is_regression:
            probabilities = self.model.walker.probabilities(data)
        return Fold(
            self.rows,
            self.predictions(data),
            probabilities,
            float(tree.n_leaves),
            float(tree.max_depth),
            math.nan,
            self.n_training,
        )


def permutation_drops(
    fold_test: FoldTest, n_columns: int, limit: int, shuffles: int, seed: int
) -> Floats:
    """Return by how much the score drops, column by column, shuffle by shuffle."""
    found = np.zeros((n_columns, shuffles))
    used = fold_test.used
    if not used:
        return found
    chosen = some_rows(len(fold_test.test), limit, seed)
    shuffled = _Shuffled(fold_test, fold_test.encoded(chosen))
    # A cell holds the row that it is taken from: shuffling permutes these rows.
    positions = np.tile(np.arange(len(chosen))[:, np.newaxis], (1, len(used)))
    result = permutation_importance(
        shuffled,
        positions,
        fold_test.test.target[chosen],
        scoring=plain_score,
        n_repeats=shuffles,
        random_state=seed,
    )
    found[used] = result.importances
    return found


class _Shuffled(BaseEstimator):  # type: ignore[misc]
    """A fitted tree that predicts rows whose cells come from different rows."""

    def __init__(self, fold_test: FoldTest, data: Columns) -> None:
        self.fold_test = fold_test
        self.data = data

    def fit(self) -> Self:
        """Do nothing: the tree is fitted."""
        return self

    def predict(self, positions: Ints) -> NDArray[Any]:
        """Predict rows, each cell taken from its position."""
        cells = list(self.data.data)
        for at, column in enumerate(self.fold_test.used):
            cells[column] = cells[column][positions[:, at]]
        return self.fold_test.predictions(Columns(len(positions), tuple(cells)))


def plain_score(estimator: Any, positions: Ints, truth: NDArray[Any]) -> float:
    """Return the accuracy; of numbers the share of their variance explained."""
    predictions = estimator.predict(positions)
    if predictions.dtype.kind != "f":
        return float((predictions == truth).mean())
    score = r_squared(truth, predictions)
    return float((truth == predictions).all()) if math.isnan(score) else score


def some_rows(n_rows: int, limit: int, seed: int) -> Ints:
    """Return so many rows, in order; always the same."""
    if n_rows <= limit:
        return np.arange(n_rows)
    picked = np.random.default_rng(seed).choice(n_rows, limit, replace=False)
    return np.sort(picked)


#: Called with a description of the current step.
Say = Callable[[str], None]
#: The most points of a scatter chart.
_SHOWN_POINTS = 1500
_GROUPS = 5
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def fold_tests_of(source: Source, model: Model, plan: Plan, say: Say) -> list[FoldTest]:
    """Grow the trees that are tested."""
    if source.test is not None:
        everything = np.arange(len(source.test))
        return [FoldTest(model, everything, source.test, len(source.rows))]
    fold_tests = []
    splits = quiet_splits(plan.assignment, source.rows)
    for at, (training, testing) in enumerate(splits):
        say(f"Testing: tree {at + 1} of {len(splits)}")
        rows = source.rows
        model = source.grown(training)
        fold_tests.append(FoldTest(model, testing, rows.take(testing), len(training)))
    return fold_tests


def quiet_splits(assignment: FoldAssignment, rows: Rows) -> list[tuple[Ints, Ints]]:
    """Return the folds; the report itself warns of rare classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return assignment.splits(rows.target, bool(rows.classes))


def evaluation_of(
    source: Source, model: Model | Ensemble, plan: Plan, folds: list[Fold]
) -> dict[str, Any]:
    """Score the predictions, and those of the baseline."""
    rows = source.rows if source.test is None else source.test
    usual = [_baseline(source, plan, fold.rows) for fold in folds]
    found, baseline = (
        evaluated(name, plan.assignment, rows.target, rows.classes, own)
        for name, own in ((source.noun, folds), (BASELINE, usual))
    )
    told = {
        "how": plan.how,
        "note": plan.note,
        "rows": int(sum(len(fold.rows) for fold in folds)),
        "parts": len(folds),
        "interval": found.interval,
        "scores": found.to_dict()["scores"],
        "baseline": baseline.to_dict()["scores"],
        "on_training_rows": _on_training_rows(source, model),
    }
    if source.numbers:
        return told | _errors(rows, folds)
    return told | _of_classes(found)


def _baseline(source: Source, plan: Plan, testing: Ints) -> Fold:
    """Test the baseline, which counts rows: their weights are for growing."""
    labels = source.rows.labels
    training = labels if plan.other_rows else np.delete(labels, testing)
    baseline, classes = candidate(BASELINE, source.numbers), source.rows.classes
    fitted = baseline.fit(np.zeros((len(training), 1)), training)
    table = np.zeros((len(testing), 1))
    return predicted_fold(fitted, table, testing, classes, len(training))


def _on_training_rows(source: Source, model: Model | Ensemble) -> dict[str, float]:
    """Return the scores on the training rows, which are optimistic."""
    rows = source.rows
    if not source.numbers:
        right = model.predict(rows.table) == model.schema.class_array[rows.target]
        return {"accuracy": float(np.mean(right))}
    error = model.predict(rows.table).astype(np.float64) - rows.target
    return {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt((error**2).mean())),
    }


def _of_classes(found: Evaluation) -> dict[str, Any]:
    told = found.to_dict()
    calibration = [row for row in told.get("calibration", ()) if row["rows"]]
    for row in calibration:
        interval = wilson(row["right"] * row["rows"], row["rows"])
        row |= {"low": interval.low, "high": interval.high}
    return {
        "classes": told["classes"],
        "confusion_matrix": told["confusion_matrix"],
        "calibration": calibration,
    }


def _errors(rows: Rows, folds: list[Fold]) -> dict[str, Any]:
    """Return the errors of predicted numbers: points, quantiles, and by range."""
    at = np.concatenate([fold.rows for fold in folds])
    predicted = np.concatenate([fold.predicted for fold in folds])
    residual: Floats = rows.target[at] - predicted
    step = max(1, -(-len(at) // _SHOWN_POINTS))
    return {
        "residuals": {
            "predicted": predicted[::step].tolist(),
            "residual": residual[::step].tolist(),
            "shown": len(predicted[::step]),
            "of": len(at),
        },
        "error_quantiles": [
            {"share": share, "error": float(np.quantile(residual, share))}
            for share in _QUANTILES
        ],
        "errors_by_range": list(_by_range(predicted, residual)),
    }


def _by_range(predicted: Floats, residual: Floats) -> list[dict[str, Any]]:
    """Summarise the errors of about equal groups of rows, by predicted number."""
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, _GROUPS + 1)))
    position = np.clip(np.searchsorted(edges[1:-1], predicted, side="left"), 0, None)
    told = []
    for group in np.unique(position):
        own = residual[position == group]
        inside = predicted[position == group]
        told.append(
            {
                "from": float(inside.min()),
                "to": float(inside.max()),
                "rows": len(own),
                "mean_error": float(own.mean()),
                "mae": float(np.abs(own).mean()),
                "rmse": float(np.sqrt((own**2).mean())),
            }
        )
    return told


#: The most cells that are shuffled and predicted again.
_MOST_CELLS = 20_000_000
_MOST_SHUFFLED_ROWS = 10_000
_SHUFFLES = 10
#: The most rows of a learning curve.
MOST_LEARNT_ROWS = 20_000
_SIZES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_FOLDS = 5
#: The most trees of the pruning curve.
_MOST_PRUNED = 60


def importances(
    source: Source, model: Model, fold_tests: list[FoldTest], seed: int, say: Say
) -> dict[str, Any]:
    """Return impurity importances, and permutation importances on unseen rows."""
    n_columns = len(model.schema.columns)
    shuffles = math.ceil(_SHUFFLES / len(fold_tests)) + (len(fold_tests) > 1)
    widest = max(len(fold_test.used) for fold_test in fold_tests)
    each = _MOST_CELLS // max(1, widest * widest * shuffles * len(fold_tests))
    limit = min(_MOST_SHUFFLED_ROWS // len(fold_tests), max(100, each))
    drops: list[Floats] = []
    for at, fold_test in enumerate(fold_tests):
        say(f"Shuffling columns: tree {at + 1} of {len(fold_tests)}")
        drops.append(permutation_drops(fold_test, n_columns, limit, shuffles, seed))
    all_drops = np.concatenate(drops, axis=1)
    largest = max(len(fold_test.test) for fold_test in fold_tests)
    impurity = model.feature_importances
    return {
        "score": "R squared" if source.numbers else "accuracy",
        "note": (
            f"Columns were shuffled in {limit:,} rows of each test set."
            if largest > limit
            else ""
        ),
        "shuffles": shuffles * len(fold_tests),
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


#: Rows whose Shapley values are told.
_EXPLAINED_ROWS = 200


def explained_rows(source: Source, model: Model | Ensemble, seed: int) -> ShapValues:
    """Return the Shapley values of some of the training rows."""
    rows = some_rows(len(source.rows), _EXPLAINED_ROWS, seed)
    return model.shap(source.rows.table[rows])


def shap_section(values: ShapValues | None, why_not: str = "") -> dict[str, Any]:
    """Return the mean size of the values of each column, or why there are none."""
    if values is None:
        return {"left_out": why_not}
    sizes = values.importances.tolist()
    return {
        "rows": list(values.rows),
        "classes": list(values.classes),
        "mean_size": dict(zip(values.columns, sizes, strict=True)),
    }


class _Growing(BaseEstimator):  # type: ignore[misc]
    """Grows a tree from rows that are given by their numbers."""

    def __init__(self, source: Source, say: Say) -> None:
        self.source = source
        self.say = say

    def __sklearn_clone__(self) -> _Growing:
        return _Growing(self.source, self.say)  # the table is shared, not copied

    def fit(self, positions: Ints, _: object) -> Self:
        """Grow."""
        rows = positions[:, 0]
        self.say(f"Learning curve: a tree from {len(rows):,} rows")
        self.model_ = self.source.grown(rows)
        return self

    def predict(self, positions: Ints) -> NDArray[Any]:
        """Predict rows."""
        chosen = positions[:, 0]
        fold_test = FoldTest(self.model_, chosen, self.source.rows.take(chosen), 0)
        return fold_test.predictions(fold_test.encoded())


def learning_curve(source: Source, model: Model, seed: int, say: Say) -> dict[str, Any]:
    """Grow trees from more and more of the rows, and test them on others.

    A ccp_alpha that cross-validation chose for the model is not chosen again.
    """
    rows = source.rows
    most = MOST_LEARNT_ROWS // (SLOWER if source.numbers else 1)
    chosen = some_rows(len(rows), most, seed)
    some = Rows(rows.table, rows.target[chosen], rows.classes)
    alike = np.bincount(some.target).max() if rows.classes else len(chosen)
    assignment = FoldAssignment(cv=int(max(2, min(_FOLDS, alike))), seed=seed)
    splits = quiet_splits(assignment, some)
    smallest = min(len(training) for training, _ in splits)
    sizes = np.unique([max(2, round(share * smallest)) for share in _SIZES])
    found = model_selection.learning_curve(
        _Growing(replace(source, fixed_recipe=model.recipe), say),
        chosen[:, np.newaxis],
        some.target,
        train_sizes=sizes[sizes <= smallest],
        cv=splits,
        scoring=plain_score,
        shuffle=True,
        random_state=seed,
        error_score="raise",
    )
    ratio = 1 / (assignment.cv - 1)
    return {
        "score": "R squared" if source.numbers else "accuracy",
        "folds": assignment.cv,
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


def pruning_curve(
    source: Source, model: Model, fold_tests: list[FoldTest]
) -> dict[str, Any]:
    """Return the errors along the pruning path of the tree, on unseen rows.

    The trees of the folds are pruned with the same alphas; the geometric mean of two
    alphas represents the interval between them.
    """
    path = model.pruning_path()
    alphas = path.alpha
    ends = np.sqrt(alphas[:-1]) * np.sqrt(alphas[1:])
    alphas_above = np.append(ends, 2 * alphas[-1] + 1)
    by_fold = []
    for fold_test in fold_tests:
        own = fold_test.model.pruning_path(fold_test.test.table, fold_test.test.labels)
        step = np.searchsorted(own.alpha, alphas_above, side="right") - 1
        by_fold.append(np.asarray(own.validation_error)[step])
    errors = np.array(by_fold)
    # The smallest of the trees with the least error.
    best = len(path) - 1 - int(errors.mean(axis=0)[::-1].argmin())
    chosen = np.unique(np.linspace(0, len(path) - 1, _MOST_PRUNED).round().astype(int))
    ratio = 1 / (len(fold_tests) - 1) if len(fold_tests) > 1 else 0.0
    error = "share of errors" if model.recipe.costs is None else "mean cost"
    return {
        "error": "mean squared error" if source.numbers else error,
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


def _plain(values: Floats, ratio: float) -> dict[str, float | None]:
    score = over_folds(np.asarray(values, dtype=np.float64), ratio)
    found = {"mean": score.mean, "low": score.low, "high": score.high}
    return {name: None if math.isnan(v) else v for name, v in found.items()}
