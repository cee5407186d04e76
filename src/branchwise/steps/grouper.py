"""Groups of cases with their impurity, from class weights or moments of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from branchwise.counts import Floats
from branchwise.criteria import Masses64, log2
from branchwise.recipes import Recipe
from branchwise.steps.numbers import Group
from branchwise.steps.walk import Rows
from branchwise.words import Condition


class Grouper:
    """Makes groups of class weights, or of moments of numbers."""

    def __init__(self, rows: Rows, recipe: Recipe, masses: Masses64) -> None:
        self.masses = masses
        self.scoring = recipe.scoring
        self._unit = rows.unit
        self._scale = rows.engine.scale

    def impurities(self, statistics: Floats) -> Floats | None:
        """Return mass by weight, as the criterion has it."""
        if self.scoring.function is not None:
            return None
        if self._scale is not None and self.scoring.name == "poisson":
            mean = self._scale.means(statistics)
            return -mean * log2(mean)
        if self._scale is not None:
            return np.ldexp(self._scale.variances(statistics), 2 * self._scale.unit)
        mass = self.scoring.mass(self.masses)(statistics)
        weight = self.masses.weight(statistics)
        impurity: Floats = mass * self.masses.unit / np.where(weight > 0, weight, 1.0)
        return np.maximum(impurity, 0.0)

    def groups(
        self, conditions: Sequence[Condition | None], statistics: Floats, cases: Floats
    ) -> tuple[Group, ...]:
        """Make a group of each row of statistics."""
        impurities = self.impurities(statistics)
        weight = self.masses.weight(statistics) * self._unit
        means: list[float | None] = [None] * len(weight)
        if self._scale is None:
            by_class = (statistics * self._unit).tolist()
        else:
            means = self._scale.means(statistics).tolist()
            by_class = [[] for _ in means]
        return tuple(
            Group(
                condition,
                tuple(by_class[at]),
                float(weight[at]),
                float(cases[at]),
                None if impurities is None else float(impurities[at]),
                means[at],
            )
            for at, condition in enumerate(conditions)
        )

    def group(
        self, condition: Condition | None, statistics: Floats, cases: float
    ) -> Group:
        """Make one group."""
        return self.groups([condition], statistics[np.newaxis], np.array([cases]))[0]

    def remainder(self, branches: Floats, weight: float) -> float | None:
        """Return what is left of the impurity in branches of this weight."""
        impurities = self.impurities(branches)
        if impurities is None:
            return None
        if self._scale is not None:
            sizes = self.masses.weight(branches) * self._unit
            return float((impurities * sizes).sum()) / weight
        left = int(self.scoring.mass(self.masses)(branches).sum())
        return left * self.masses.unit / (weight / self._unit)
