"""Groups of cases with their impurity, from class weights or moments of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from branchwise.counts import Floats
from branchwise.criteria import Masses64
from branchwise.recipes import Recipe
from branchwise.steps.numbers import Group
from branchwise.steps.walk import Rows
from branchwise.table.target import Quantities
from branchwise.words import Condition


class Grouper:
    """Makes groups of class weights, or of moments of numbers."""

    def __init__(self, rows: Rows, recipe: Recipe, masses: Masses64) -> None:
        self.masses = masses
        self.scoring = recipe.scoring
        self._quantities = rows.target if isinstance(rows.target, Quantities) else None

    def impurities(self, statistics: Floats) -> Floats | None:
        """Return mass by weight, as the criterion has it."""
        if self.scoring.function is not None:
            return None
        mass = self.scoring.mass(self.masses)(statistics)
        weight = self.masses.weight(statistics)
        impurity: Floats = mass * self.masses.unit / np.where(weight > 0, weight, 1.0)
        return np.maximum(impurity, 0.0) if self.scoring.name != "poisson" else impurity

    def groups(
        self, conditions: Sequence[Condition | None], statistics: Floats, cases: Floats
    ) -> tuple[Group, ...]:
        """Make a group of each row of statistics."""
        impurities = self.impurities(statistics)
        weight = self.masses.weight(statistics)
        means: list[float | None] = [None] * len(weight)
        by_class = statistics.tolist()
        if self._quantities is not None:
            mean = statistics[:, 1] / np.where(weight > 0, weight, 1.0)
            means = (
                self._quantities.plain(self._quantities.centre + mean) + 0.0
            ).tolist()
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
        if self.scoring.function is not None:
            return None
        left = int(self.scoring.mass(self.masses)(branches).sum())
        return left * self.masses.unit / weight
