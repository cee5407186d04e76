"""Trees and the rows they are tested on: other rows, a part set aside, or folds."""

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
from branchwise.data.schema import Columns
from branchwise.errors import DataError, ParameterError
from branchwise.evaluation.cross_validate import evaluated
from branchwise.evaluation.folds import Deal
from branchwise.evaluation.metrics import Fold, over_folds, wilson
from branchwise.evaluation.results import Evaluation
from branchwise.model import Model
from branchwise.report.inputs import Rows, Source

#: Told what is being done.
Say = Callable[[str], None]
#: With more rows, one part is set aside in place of folds, unless folds are asked for.
MOST_ROWS_IN_FOLDS = 50_000
USUAL_FOLDS = 10
#: Trees that predict numbers take longer: the kernel does not know them.
SLOWER = 5
#: The share of the rows that is set aside then.
SET_ASIDE = 0.3
#: So many points of a cloud are shown.
_SHOWN_POINTS = 1500
_GROUPS = 5
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Part:
    """A tree, and rows that it was not grown from.

    ``rows`` are their positions among all rows that are tested.
    """

    model: Model
    rows: Ints
    test: Rows
    n_training: int

    @property
    def used(self) -> list[int]:
        """The columns that the tree asks about."""
        return self.model.tree.used_columns

    def encoded(self, chosen: Ints | None = None) -> Columns:
        """Return the cells that the tree asks about, in its codes."""
        model, table = self.model, self.test.table
        allow = model.recipe.unseen != "error"
        picked = table if chosen is None else table[chosen]
        return encode_columns(picked, model.schema, self.used, allow)

    def answers(self, data: Columns) -> NDArray[Any]:
        """Return the codes of the classes, or the numbers, of encoded rows."""
        walker = self.model.walker
        if self.model.tree.predicts_numbers:
            return walker.numbers(walker.walk(data))
        return walker.classify(data).astype(np.intp)

    def tested(self) -> Fold:
        """Answer for all rows."""
        data, tree = self.encoded(), self.model.tree
        chances = None
        if not tree.predicts_numbers:
            chances = self.model.walker.distribution(self.model.walker.walk(data))
        return Fold(
            self.rows,
            self.answers(data),
            chances,
            float(tree.n_leaves),
            float(tree.max_depth),
            math.nan,
            self.n_training,
        )

    def baseline(self, training: NDArray[Any], n_classes: int) -> Fold:
        """Answer as one who has seen nothing but the answers of the training rows."""
        size = len(self.rows)
        chances = None
        if n_classes:
            shares = np.bincount(training, minlength=n_classes) / len(training)
            chances = np.tile(shares, (size, 1))
            answers: NDArray[Any] = np.full(size, int(shares.argmax()))
        else:
            answers = np.full(size, float(training.mean()))
        return Fold(self.rows, answers, chances, 1.0, 0.0, math.nan, len(training))


@dataclass(frozen=True)
class Plan:
    """How trees are tested, in words; ``deal`` says it for the scores."""

    deal: Deal
    how: str
    note: str
    other_rows: bool = False


def plan_for(
    source: Source, cv: int | None, hold_out: float | None, seed: int, test_name: str
) -> Plan:
    """Decide how to test: as asked for, else as the number of rows suggests."""
    given = [source.test is not None, cv is not None, hold_out is not None]
    if sum(given) > 1:
        raise ParameterError(
            "test, cv and hold_out are three ways to test a tree. Give one of them, or "
            "none."
        )
    if source.test is not None:
        rows = f"{len(source.test):,} rows"
        return Plan(
            Deal(hold_out=0.5, seed=seed),
            f"on {rows} of {test_name}, which the tree has not seen",
            "",
            other_rows=True,
        )
    n_rows, note = len(source.rows), ""
    if cv is None and hold_out is None:
        most = MOST_ROWS_IN_FOLDS // (SLOWER if source.numbers else 1)
        if n_rows > most:
            hold_out = SET_ASIDE
            note = (
                f"With more than {most:,} rows one part is set aside in place of "
                f"{USUAL_FOLDS} folds. To have folds all the same, say how many: "
                f"cv={USUAL_FOLDS}, or --cv {USUAL_FOLDS} on the command line."
            )
        else:
            cv = max(2, min(USUAL_FOLDS, _most_alike(source.rows)))
            if cv < USUAL_FOLDS:
                note = f"There are too few rows for {USUAL_FOLDS} folds."
    deal = Deal(cv=2 if cv is None else cv, hold_out=hold_out, seed=seed)
    how = (
        f"by {deal.described()}, each row with a tree that has not seen it"
        if hold_out is None
        else f"on {deal.described()}, by a tree grown from the others"
    )
    return Plan(deal, how, note)


def _most_alike(rows: Rows) -> int:
    """Return the rows of the largest class; without classes all."""
    return int(np.bincount(rows.truth).max()) if rows.classes else len(rows)


def parts_of(source: Source, model: Model, plan: Plan, say: Say) -> list[Part]:
    """Grow the trees that are tested."""
    if source.test is not None:
        everything = np.arange(len(source.test))
        return [Part(model, everything, source.test, len(source.rows))]
    parts = []
    splits = quiet_splits(plan.deal, source.rows)
    for at, (training, testing) in enumerate(splits):
        say(f"Testing: tree {at + 1} of {len(splits)}")
        rows = source.rows
        test = Rows(rows.table[testing], rows.truth[testing], rows.classes)
        parts.append(Part(source.grown(training), testing, test, len(training)))
    return parts


def quiet_splits(deal: Deal, rows: Rows) -> list[tuple[Ints, Ints]]:
    """Deal rows; that a class is too rare for every fold is said elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return deal.splits(rows.truth, bool(rows.classes))


def evaluation_of(
    source: Source, model: Model, plan: Plan, parts: list[Part]
) -> dict[str, Any]:
    """Score the answers, beside those of one who knows only how frequent they are."""
    folds = [part.tested() for part in parts]
    rows = source.rows if source.test is None else source.test
    found = _scores(model.recipe.algorithm, plan, rows, folds)
    training = source.rows.truth
    usual = [
        part.baseline(
            training if plan.other_rows else np.delete(training, part.rows),
            len(rows.classes),
        )
        for part in parts
    ]
    baseline = _scores("baseline", plan, rows, usual)
    told = {
        "how": plan.how,
        "note": plan.note,
        "rows": int(sum(len(fold.rows) for fold in folds)),
        "parts": len(parts),
        "interval": found.interval,
        "scores": found.document()["scores"],
        "baseline": baseline.document()["scores"],
        "on_training_rows": _on_training_rows(source, model),
    }
    if source.numbers:
        return told | _errors(rows, folds)
    return told | _of_classes(found)


def _scores(name: str, plan: Plan, rows: Rows, folds: list[Fold]) -> Evaluation:
    return evaluated(name, plan.deal, rows.truth, rows.classes, folds)


def _on_training_rows(source: Source, model: Model) -> dict[str, float]:
    """Return how well the tree does on what it was grown from: too well."""
    rows = source.rows
    if not source.numbers:
        right = model.predict(rows.table) == model.schema.class_array[rows.truth]
        return {"accuracy": float(np.mean(right))}
    error = model.predict(rows.table).astype(np.float64) - rows.truth
    return {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt((error**2).mean())),
    }


def _of_classes(found: Evaluation) -> dict[str, Any]:
    told = found.document()
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
    residual: Floats = rows.truth[at] - predicted
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
    """Sort rows by the predicted number and sum up about equal parts of them."""
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, _GROUPS + 1)))
    place = np.clip(np.searchsorted(edges[1:-1], predicted, side="left"), 0, None)
    told = []
    for group in np.unique(place):
        own = residual[place == group]
        inside = predicted[place == group]
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


def refuse_one_answer(rows: Rows) -> None:
    """Refuse rows that all have the same answer: there is nothing to report on."""
    if len(np.unique(rows.truth)) < 2:
        raise DataError(
            "All rows have the same answer, so that there is nothing to learn and "
            "nothing to report on. Check the target."
        )


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
