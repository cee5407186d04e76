"""Rows, estimator and tests of a report, and descriptions of the columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.checks import find_problems
from branchwise.data.columns import Numbers
from branchwise.data.table_schema import Schema
from branchwise.data.weights import with_class_weights
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.estimators.base import TreeEstimator
from branchwise.estimators.fitted import FittedEstimator
from branchwise.evaluation.algorithms import is_regression
from branchwise.evaluation.cross_validate import Rows
from branchwise.evaluation.folds import FoldAssignment
from branchwise.fit import fit_tree
from branchwise.model import Model
from branchwise.recipe import Recipe
from branchwise.report.labelled import SchemaLabels
from branchwise.text.words import UNNAMED


@dataclass(frozen=True)
class Source:
    """The training rows, other rows to test with if there are any, and the algorithm.

    ``pruned_with`` are the rows that reduced-error pruning was given; ``fixed_recipe``
    is a recipe whose ccp_alpha is already chosen; ``labels`` are for what is shown.
    """

    estimator: Any
    rows: Rows
    test: Rows | None
    target: str | None
    pruned_with: tuple[object, object] | None = None
    fixed_recipe: Recipe | None = None
    labels: SchemaLabels = field(default_factory=SchemaLabels)

    @property
    def recipe(self) -> Recipe:
        """The recipe of the estimator, or the fixed one."""
        own = self.fixed_recipe
        return own if own is not None else self.estimator.recipe

    @property
    def noun(self) -> str:
        """What is reported on: a tree, a forest, a rule set, an ensemble."""
        if isinstance(self.estimator, TreeEstimator):
            return "tree"
        nouns = {"forest": "forest", "rules": "rule set"}
        return nouns.get(self.estimator.recipe.method, "ensemble")

    @property
    def numbers(self) -> bool:
        """Whether numbers are predicted."""
        return not self.rows.classes

    def weights_of(self, rows: Ints | None = None) -> Floats | None:
        """Return the weights of training rows, those of their classes included."""
        own, estimator = self.rows, self.estimator
        return with_class_weights(
            own.weights if rows is None or own.weights is None else own.weights[rows],
            getattr(estimator, "class_weight", None),
            getattr(estimator, "priors", None),
            own.classes,
            own.target if rows is None else own.target[rows],
        )

    def grown(self, rows: Ints | None = None) -> Model:
        """Grow a tree from training rows, by default from all of them.

        All have the same classes, also those that do not occur in their rows.
        """
        own, estimator = self.rows, self.estimator
        table = own.table if rows is None else own.table[rows]
        labels = own.labels if rows is None else own.labels[rows]
        return fit_tree(
            table,
            labels,
            self.recipe,
            sample_weight=self.weights_of(rows),
            categorical_features=estimator.categorical_features,
            categories=estimator.categories,
            order=estimator.order,
            classes=own.classes or None,
            validation=self.pruned_with,
            validation_fraction=estimator.validation_fraction,
            target_name=self.target,
            n_jobs=estimator.n_jobs,
            on_finding=lambda _: None,  # of many trees: the page says it of one
        )


def open_source(
    estimator: object,
    X: object,
    y: object,
    test: tuple[object, object] | None,
    sample_weight: object,
    target: str | None,
    pruned_with: tuple[object, object] | None,
) -> Source:
    """Read all tables, each checked."""
    if not isinstance(estimator, FittedEstimator):
        raise ParameterError(
            "estimator must be one of branchwise's, such as C45Classifier(). Got "
            f"{type(estimator).__name__} instead."
        )
    numbers = is_regression(estimator)
    rows = Rows.of(X, y, numbers, sample_weight)
    if len(rows) < 2:
        raise DataError(
            f"A report needs at least two rows: to grow from, and to test with. Got "
            f"{len(rows)}."
        )
    if target is None:
        name = getattr(y, "name", None)
        target = name if isinstance(name, str) and name else None
    others = _test_rows(test, rows, numbers)
    if len(np.unique(rows.target)) < 2:
        raise DataError(
            "All rows have the same target value, so that there is nothing to learn "
            "and nothing to report on. Check the target."
        )
    return Source(estimator, rows, others, target, pruned_with)


def _test_rows(
    test: tuple[object, object] | None, rows: Rows, numbers: bool
) -> Rows | None:
    if test is None:
        return None
    if not isinstance(test, tuple) or len(test) != 2:
        raise ParameterError(
            "test must be a pair of a table and its target, (X_test, y_test). Got "
            f"{type(test).__name__} instead."
        )
    found = Rows.of(*test, numbers)
    if numbers:
        return found
    unknown = [label for label in found.classes if label not in rows.classes]
    if unknown:
        raise DataError(
            f"test has classes that the training rows do not have: {quoted(unknown)}. "
            f"The classes are {quoted(rows.classes)}: remove these rows."
        )
    return found.named(rows.classes)


#: So many values of a column are listed, the most frequent first.
_LISTED = 3
_BINS = 20


def described(source: Source, schema: Schema) -> dict[str, Any]:
    """Describe the columns and the target."""
    rows = source.rows
    columns = [
        _column(rows, at, column.name, column.kind)
        for at, column in enumerate(schema.columns)
    ]
    cells = len(rows) * len(columns)
    missing = sum(column["missing"] for column in columns)
    return {
        "rows": len(rows),
        "test_rows": None if source.test is None else len(source.test),
        "weighted": source.weights_of() is not None,
        "columns": columns,
        "missing": missing,
        "missing_share": missing / cells if cells else 0.0,
        "target": _target(rows, source.target or UNNAMED),
    }


def warnings_of(source: Source) -> list[dict[str, Any]]:
    """List what may be wrong with the table, the gravest first."""
    y = None if source.numbers else source.rows.labels
    found = find_problems(source.rows.table, y, source.target or UNNAMED)
    return [{**asdict(one), "columns": list(one.columns)} for one in found]


def _column(rows: Rows, at: int, name: str, kind: str) -> dict[str, Any]:
    raw = rows.table.column(at)
    told: dict[str, Any] = {"name": name, "kind": kind}
    if isinstance(raw, Numbers):
        known = raw.values[~np.isnan(raw.values)]
        told |= {"missing": len(raw.values) - len(known)}
        if kind != "numeric":
            values, counts = np.unique(known, return_counts=True)
            return told | _most(values.tolist(), counts)
        return told | {"distinct": len(np.unique(known))} | _spread(known)
    given = raw.codes[raw.codes >= 0]
    counts = np.bincount(given, minlength=len(raw.values))
    told |= {"missing": len(raw.codes) - len(given)}
    return told | _most(raw.values, counts)


def _most(values: Any, counts: Any) -> dict[str, Any]:
    """Return how many values there are, and which are there most often."""
    order = np.argsort(-counts, kind="stable")[:_LISTED].tolist()
    return {
        "distinct": int((counts > 0).sum()),
        "most": [
            {"value": values[at], "rows": int(counts[at])} for at in order if counts[at]
        ],
    }


def _spread(known: Floats) -> dict[str, Any]:
    if not len(known):
        return {"minimum": None, "median": None, "maximum": None}
    return {
        "minimum": float(known.min()),
        "median": float(np.median(known)),
        "maximum": float(known.max()),
    }


def _target(rows: Rows, name: str) -> dict[str, Any]:
    if rows.classes:
        counts = np.bincount(rows.target, minlength=len(rows.classes)).tolist()
        return {
            "name": name,
            "classes": [
                {"class": label, "rows": count, "share": count / len(rows)}
                for label, count in zip(rows.classes, counts, strict=True)
            ],
        }
    counts, edges = np.histogram(rows.target, bins=_BINS)
    return {
        "name": name,
        "mean": float(rows.target.mean()),
        "deviation": float(rows.target.std()),
        **_spread(rows.target),
        "histogram": {"edges": edges.tolist(), "rows": counts.tolist()},
    }


#: With more rows, a hold-out replaces the folds, unless cv is given.
MOST_ROWS_IN_FOLDS = 50_000
USUAL_FOLDS = 10
#: Regression trees take longer: the native kernel does not grow them.
SLOWER = 5
#: The share of the hold-out.
SET_ASIDE = 0.3


@dataclass(frozen=True)
class Plan:
    """How trees are tested: the folds, and their description."""

    assignment: FoldAssignment
    how: str
    note: str
    other_rows: bool = False


def plan_for(
    source: Source, cv: int | None, hold_out: float | None, seed: int, test_name: str
) -> Plan:
    """Choose the test: the given one, else by the number of rows."""
    given = [source.test is not None, cv is not None, hold_out is not None]
    if sum(given) > 1:
        raise ParameterError(
            "test, cv and hold_out exclude each other. Give one of them, or none."
        )
    if source.test is not None:
        rows = f"{len(source.test):,} rows"
        return Plan(
            FoldAssignment(hold_out=0.5, seed=seed),
            f"on {rows} of {test_name}, which the {source.noun} has not seen",
            "",
            other_rows=True,
        )
    n_rows, note = len(source.rows), ""
    if cv is None and hold_out is None:
        most = MOST_ROWS_IN_FOLDS // (SLOWER if source.numbers else 1)
        if n_rows > most:
            hold_out = SET_ASIDE
            note = (
                f"With more than {most:,} rows a hold-out replaces {USUAL_FOLDS} "
                f"folds. For cross-validation set cv to {USUAL_FOLDS}."
            )
        else:
            cv = max(2, min(USUAL_FOLDS, _most_alike(source.rows)))
            if cv < USUAL_FOLDS:
                note = f"There are too few rows for {USUAL_FOLDS} folds."
    assignment = FoldAssignment(
        cv=2 if cv is None else cv, hold_out=hold_out, seed=seed
    )
    one = f"an {source.noun}" if source.noun == "ensemble" else f"a {source.noun}"
    how = (
        f"by {assignment.described()}, each row with {one} that has not seen it"
        if hold_out is None
        else f"on {assignment.described()}, by {one} grown from the others"
    )
    return Plan(assignment, how, note)


def _most_alike(rows: Rows) -> int:
    """Return the rows of the largest class; without classes all."""
    return int(np.bincount(rows.target).max()) if rows.classes else len(rows)
