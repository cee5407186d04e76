"""Trees and the rows they are tested on: other rows, a part set aside, or folds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.errors import DataError, ParameterError
from branchwise.evaluation.deals import Deal
from branchwise.evaluation.intervals import wilson
from branchwise.evaluation.metrics import Fold
from branchwise.evaluation.reports import Evaluation
from branchwise.evaluation.summing import evaluated
from branchwise.model import Model
from branchwise.report.source import Rows, Source
from branchwise.table.encode import encode_columns
from branchwise.table.schema import Columns

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
