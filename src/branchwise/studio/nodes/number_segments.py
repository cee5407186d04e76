"""Segments of numbers at one node where numbers are predicted.

The kernel rounds distances from the mean of the node as the reference does, and leaves
out thresholds that are worse than another for sure. See ``threshold_segments.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.target import Scale
from branchwise.engines.memory_engine import Countable, MemoryEngine
from branchwise.grow.counts import Counts, moments_below
from branchwise.grow.moments import Moments64
from branchwise.grow.search import Search
from branchwise.native import extension, optional_array, plain_array
from branchwise.studio.nodes.column_batches import ColumnCounts
from branchwise.studio.nodes.threshold_segments import (
    Found,
    SegmentCounter,
    fewest_cases,
)
from branchwise.threads import cached_property


class NumberSegmentCounter(SegmentCounter):
    """Counts moments in segments of numbers."""

    def __init__(
        self,
        engine: MemoryEngine,
        all_rows: bool,
        impurity_sums: Moments64,
        scale: Scale,
        moments: Floats,
    ) -> None:
        super().__init__(engine, all_rows, impurity_sums)
        self.side_counter = self._sides
        self._moments = plain_array(moments)
        self._exponents = [float(each) for each in scale.sums.exponents]
        self._steps = impurity_sums.steps

    @cached_property
    def _distances(self) -> Floats:
        """The distances of all cases from the mean of the node, in two limbs."""
        distances = np.empty(2 * len(self._moments))
        extension().number_distances(
            moments=self._moments,
            sum_exponents=self._exponents,
            steps=self._steps,
            out=distances,
        )
        return distances

    def weights(self, own: Ints) -> Floats:
        """Add up the moments of some cases."""
        moments: Floats = self._moments[own].sum(axis=0)
        return moments

    def found(self, column: Countable, search: Search, unknown: Counts) -> Found:
        """Find the segments of a column, some cases of which are missing."""
        missing = search.in_terms(unknown).weights
        found: Found = extension().number_segments(
            codes=plain_array(column.codes),
            n_codes=column.n_codes,
            rows=self.rows,
            weights=optional_array(self.cases.weight),
            cases=optional_array(self.cases.case),
            moments=self._moments,
            distances=self._distances,
            sum_exponents=self._exponents,
            rules={**_rules(search, unknown), **self._steps},
            missing=missing[0] if len(missing) else np.zeros(3),
            poisson=search.recipe.criterion_name == "poisson",
        )
        return found

    def _sides(
        self, members: Sequence[ColumnCounts], threshold: Floats
    ) -> list[Counts]:
        """Count the known cases on both sides of a threshold of each column."""
        columns = [self.columns[member.index] for member in members]
        # Without a threshold all numbers are on the first side.
        above = [
            int(np.searchsorted(column.values, each, side="right"))
            for column, each in zip(columns, threshold, strict=True)
        ]
        codes = [column.codes for column in columns]
        given = self.rows, self.cases.case, self._moments
        left, left_cases = moments_below(codes, above, *given)
        found = []
        for at, member in enumerate(members):
            missing, missing_cases = member.unknown.totals(1)
            known = self._total[0] - missing[0], self._total[1] - missing_cases[0]
            weights = np.stack([left[at], known[0] - left[at]])
            cases = np.array([left_cases[at], known[1] - left_cases[at]])
            some = np.flatnonzero(weights[:, 0])
            code = np.array([0, above[at]])[some]
            found.append(Counts(np.zeros_like(some), code, weights[some], cases[some]))
        return found

    @cached_property
    def _total(self) -> tuple[Floats, float]:
        """The moments of all cases, and their number."""
        case = self.cases.case
        n_cases = float(len(self._moments) if case is None else case.sum())
        return self._moments.sum(axis=0), n_cases


def _rules(search: Search, unknown: Counts) -> dict[str, Any]:
    """Return what thresholds are admissible where numbers are predicted."""
    recipe, sums = search.recipe, search.impurity_sums
    missing = search.in_cases(unknown)
    some = len(unknown.node) > 0
    own_branch = recipe.missing == "branch" and some
    fewest = fewest_cases(search, search.level.cases)
    if own_branch and not search.enough(missing.weights, missing.cases)[0]:
        fewest = math.inf
    return {
        "weights_are_cases": recipe.weights_are_cases,
        "joins": recipe.missing == "learned" and some,
        "branch": own_branch,
        "fewest_cases": fewest,
        "fewest_weight": float(search.weight_in_leaf),
        "unit": float(sums.unit),
        "noise": float(sums.noise(np.ones(1))[0]) * sums.unit,
        "missing_cases": float(missing.cases.sum()),
    }
