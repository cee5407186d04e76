"""What known and missing values of columns tell of the target, by its totals.

The totals are counted from rows in memory, or by one more pass of an engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Schema
from branchwise.data.target import Scale
from branchwise.engines.base import Plan
from branchwise.engines.memory import Training
from branchwise.grow.counts import Counts
from branchwise.grow.protocol import Engine
from branchwise.recipe import Recipe
from branchwise.text.label_words import target_unit
from branchwise.text.words import percent
from branchwise.tree.tree import Tree

#: Missing values tell of the target what is at least this share of its impurity ...
_TELLING = 0.05
#: ... and are significant: chi-square with one degree of freedom, p = 0.001.
_SIGNIFICANT = 10.83
#: Trees of fewer rows have no findings about missing values.
_ENOUGH_ROWS = 100
#: Rows of so many classes are counted class by class, which is faster than taking them.
_FEW_CLASSES = 4
#: Policies under which it plays a role whether a value is missing.
_USING = ("branch", "learned")


class MissingTotals(NamedTuple):
    """What known and missing values of a column tell of the target.

    ``totals`` has a row for known and one for missing values: the weight of each
    class, or weight, sum and sum of squares of numbers. ``share`` of the impurity is
    explained by it.
    """

    share: float
    n_rows: float
    totals: Floats
    is_regression: bool

    @classmethod
    def of_classes(cls, totals: Floats, n_rows: int) -> MissingTotals | None:
        """Return what weights of classes tell; None if values are all of one kind."""
        if not (totals.sum(axis=1) > 0).all():
            return None
        return cls(explained(totals, False), float(n_rows), totals, False)

    @classmethod
    def of_numbers(
        cls, centred: Floats, centre: float, n_rows: int
    ) -> MissingTotals | None:
        """Return what moments of numbers tell, which are less a number near them."""
        if not (centred[:, 0] > 0).all():
            return None
        share = explained(centred, True)
        totals = centred.copy()
        totals[:, 1] += totals[:, 0] * centre
        return cls(share, float(n_rows), totals, True)

    @property
    def is_telling(self) -> bool:
        """Whether it matters that a value is missing."""
        return self.share >= _TELLING and self.share * self.n_rows >= _SIGNIFICANT

    def words(self, schema: Schema, name: str) -> str:
        """Say how the target differs."""
        known, missing = self.totals
        if self.is_regression:
            unit = target_unit(schema)
            return (
                f"the mean is {unit.mean(missing[1] / missing[0])} where {name!r} is "
                f"missing, {unit.mean(known[1] / known[0])} where it is known"
            )
        shares = self.totals / self.totals.sum(axis=1, keepdims=True)
        label = int(np.argmax(np.abs(shares[1] - shares[0])))
        return (
            f"{percent(float(shares[1, label]))} are {schema.classes[label]!r} where "
            f"{name!r} is missing, {percent(float(shares[0, label]))} where it is known"
        )


#: Returns the totals of a column, by its position.
TotalsOf = Callable[[int], MissingTotals | None]


def uses_missing(recipe: Recipe) -> bool:
    """Whether it plays a role in a tree if a value is missing."""
    return recipe.missing in _USING


def columns_to_count(schema: Schema, tree: Tree, recipe: Recipe) -> list[int]:
    """Return the columns whose missing values a finding may be about."""
    if tree.n_cases < _ENOUGH_ROWS:
        return []
    missing = [at for at, column in enumerate(schema.columns) if column.has_missing]
    if uses_missing(recipe):
        return [at for at in missing if at == tree.column[0]]
    return missing


class RowTotals:
    """The totals of columns, counted from rows in memory.

    Only rows with a missing value are gone through: known values have what these
    leave of all rows.
    """

    def __init__(self, training: Training) -> None:
        self._training = training

    def __call__(self, index: int) -> MissingTotals | None:
        """Return the totals of a column; None if its values are all of one kind."""
        column, cells = self._training.columns[index], self._training.data.data[index]
        # Columns share a mask: taking new pages takes longer than filling them.
        is_missing = (
            np.isnan(cells, out=self._mask)
            if column.is_numeric
            else np.equal(cells, column.missing_code, out=self._mask)
        )
        n_rows, n_missing = len(cells), int(np.count_nonzero(is_missing))
        if n_missing in (0, n_rows):
            return None
        missing = self._sums_of(is_missing, n_missing)
        totals = np.stack([self._whole - missing, missing])
        if self._training.n_classes:
            return MissingTotals.of_classes(totals, n_rows)
        return MissingTotals.of_numbers(totals, self._centre, n_rows)

    @cached_property
    def _whole(self) -> Floats:
        """The totals of all rows."""
        return self._sums(slice(None))

    @cached_property
    def _centre(self) -> float:
        """A number near those to predict, so that squares lose no digits."""
        return float(np.mean(self._training.target))

    def _sums_of(self, chosen: NDArray[np.bool_], n_chosen: int) -> Floats:
        """Return the totals of some rows."""
        if self._rows_of_classes is None:
            return self._sums(np.flatnonzero(chosen))
        counts = [
            np.count_nonzero(np.logical_and(chosen, rows, out=self._mask_of_class))
            for rows in self._rows_of_classes
        ]
        return np.array([n_chosen - sum(counts), *counts], dtype=np.float64)

    @cached_property
    def _mask(self) -> NDArray[np.bool_]:
        """Which rows miss the column that is looked at."""
        return np.empty(len(self._training.target), dtype=np.bool_)

    @cached_property
    def _mask_of_class(self) -> NDArray[np.bool_]:
        """Which of these have a class."""
        return np.empty_like(self._mask)

    @cached_property
    def _rows_of_classes(self) -> list[NDArray[np.bool_]] | None:
        """Which rows have each class but the first, if there are few and no weights."""
        training = self._training
        if training.weights is not None or not 0 < training.n_classes <= _FEW_CLASSES:
            return None
        return [training.target == label for label in range(1, training.n_classes)]

    def _sums(self, rows: Any) -> Floats:
        """Return weights of classes, or weight, sum and sum of squares of numbers."""
        training = self._training
        target: Any = training.target[rows]
        weights = None if training.weights is None else training.weights[rows]
        if training.n_classes:
            found = np.bincount(target, weights, minlength=training.n_classes)
            return found.astype(np.float64)
        weight = np.ones(len(target)) if weights is None else weights
        centred = target - self._centre
        return np.array([weight.sum(), weight @ centred, weight @ centred**2])


class EngineTotals:
    """The totals of the columns that findings may be about, counted by an engine."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._found: dict[int, MissingTotals | None] = {}

    def count(self, engine: Engine, tree: Tree, recipe: Recipe) -> None:
        """Count the rows of the root once more, if there is a column to look at."""
        wanted = columns_to_count(self._plan.schema, tree, recipe)
        if not wanted:
            return
        engine.totals()
        for index in wanted:
            counts = engine.counts(index)
            missing = counts.code == engine.missing_code(index)
            self._found[index] = _of_counts(counts, missing, engine.scale, self._plan)

    def __call__(self, index: int) -> MissingTotals | None:
        """Return the totals of a column; None if nothing is known of it."""
        return self._found.get(index)


def _of_counts(
    counts: Counts, missing: Any, scale: Scale | None, plan: Plan
) -> MissingTotals | None:
    sides = (~missing, missing)
    totals = np.stack([counts.weights[side].sum(axis=0) for side in sides])
    if scale is None:
        return MissingTotals.of_classes(totals, plan.n_rows)
    unit = math.ldexp(1.0, scale.unit)
    weight, means = totals[:, 0], scale.means(totals)
    if not (weight > 0).all():
        return None
    centre = float((weight * means).sum() / weight.sum())
    distance = means - centre
    squares = scale.variances(totals) * unit * unit + distance**2
    moments = np.stack([weight, weight * distance, weight * squares], axis=1)
    return MissingTotals.of_numbers(moments, centre, plan.n_rows)


def explained(totals: Floats, is_regression: bool) -> float:
    """Return the share of the impurity (Gini, variance) that branches explain."""
    whole = totals.sum(axis=0, keepdims=True)
    before, after = (
        float(_impurities(piece, is_regression).sum()) for piece in (whole, totals)
    )
    return 1.0 - after / before if before > 0 else 0.0


def _impurities(totals: Floats, is_regression: bool) -> Floats:
    if is_regression:
        found: Floats = totals[:, 2] - totals[:, 1] ** 2 / totals[:, 0]
        return found
    size = totals.sum(axis=1)
    weighted: Floats = size - (totals**2).sum(axis=1) / size
    return weighted
