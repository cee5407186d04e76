"""Numbers of a column at one node in segments: between thresholds that may be the best.

The compiled kernel goes through all thresholds and leaves out those that are worse than
another for sure. The rest is scored as every threshold is.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.engines.memory_engine import Countable, MemoryEngine
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, Criterion
from branchwise.grow.search import Search
from branchwise.grow.thresholds import Thresholds
from branchwise.native import available, extension, optional_array, plain_array
from branchwise.tree.splits import STOP

#: Columns with fewer numbers are counted number by number.
MANY_NUMBERS = 4000
_ONE = np.zeros(1, dtype=np.intp)


@dataclass(frozen=True)
class Segments:
    """Counts of segments of numbers, and of missing ones.

    ``last`` has the code of the last number of each segment, ``known.code`` that of the
    first; ``n_numbers`` is how many numbers there are, ``n_thresholds`` how many
    thresholds are admissible.
    """

    known: Counts
    last: Ints
    unknown: Counts
    n_numbers: int
    n_thresholds: int

    def thresholds(self, known: Counts, values: Floats) -> Thresholds:
        """Return the thresholds between segments, ``known`` being their statistics."""
        left = np.cumsum(known.weights, axis=0)
        cases = np.cumsum(known.cases)
        n = len(cases) - 1
        return Thresholds(
            np.zeros(n, dtype=np.intp),
            left[:-1],
            left[-1] - left[:-1],
            cases[:-1],
            cases[-1] - cases[:-1],
            values[self.last[:-1]],
            values[known.code[1:]],
            np.full(n, STOP, dtype=np.intp),
        )


class SegmentCounter:
    """Counts numbers at one node in segments, where the compiled kernel can."""

    def __init__(
        self, engine: MemoryEngine, labels: NDArray[np.uint32], n_classes: int
    ) -> None:
        self._columns, self._cases = engine.countable, engine.root
        self._n_classes = n_classes
        self._step = engine.grid.step
        all_rows = len(self._cases.row) == len(labels)
        self._labels = labels if all_rows else labels[self._cases.row]
        self._rows = None if all_rows else plain_array(self._cases.row)

    def serves(self, column: int) -> bool:
        """Whether a column of numbers is counted in segments."""
        many = self._columns[column].n_codes > MANY_NUMBERS
        normal = self._step >= sys.float_info.min
        return many and normal and self._n_classes > 0 and available()

    def segments(self, index: int, search: Search) -> Segments:
        """Count the numbers of a column."""
        column, cases = self._columns[index], self._cases
        unknown = self._missing(column)
        rules = _Rules.of(search, unknown)
        values = column.values if search.recipe.quinlan_thresholds else None
        n_thresholds, n_numbers, first, last, weights, own_cases = (
            extension().threshold_segments(
                codes=plain_array(column.codes),
                n_codes=column.n_codes,
                rows=self._rows,
                labels=self._labels,
                n_classes=self._n_classes,
                weights=optional_array(cases.weight),
                cases=optional_array(cases.case),
                rules={**rules.numbers, "step": float(self._step)},
                values=optional_array(values),
                joining=optional_array(rules.joining),
                table=search.impurity_sums.whole_terms,
            )
        )
        node = np.zeros(len(first), dtype=np.intp)
        known = Counts(node, first.astype(np.intp), weights, own_cases)
        return Segments(known, last.astype(np.intp), unknown, n_numbers, n_thresholds)

    def _missing(self, column: Countable) -> Counts:
        """Count the cases whose number is missing."""
        missing, cases = column.n_codes - 1, self._cases
        own = np.zeros(0, dtype=np.intp)
        if len(column.codes) and int(column.codes.max()) == missing:
            codes = column.codes if self._rows is None else column.codes[self._rows]
            own = np.flatnonzero(codes == missing)
        weight = None if cases.weight is None else cases.weight[own]
        case = float(len(own) if cases.case is None else cases.case[own].sum())
        labels = self._labels[own]
        weights = np.bincount(labels, weight, self._n_classes).astype(np.float64)
        n = min(len(own), 1)
        return Counts(
            _ONE[:n],
            np.full(n, missing, dtype=np.intp),
            weights[np.newaxis][:n],
            np.array([case])[:n],
        )


@dataclass(frozen=True)
class _Rules:
    """What thresholds are admissible and how they are compared, as plain numbers."""

    numbers: dict[str, Any]
    joining: Floats | None

    @classmethod
    def of(cls, search: Search, unknown: Counts) -> _Rules:
        recipe, sums = search.recipe, search.impurity_sums
        criterion = Criterion.of(recipe)
        impurity = criterion.weighted_impurity(sums)
        unknown = search.in_terms(unknown)
        missing, missing_cases = unknown.totals(1)
        own_branch = recipe.missing == "branch" and len(unknown.node) > 0
        joins = recipe.missing == "learned" and len(unknown.node) > 0
        level = search.level
        cases = sums.weight(level.weights) if recipe.weights_are_cases else level.cases
        outside = np.zeros(1) if own_branch or joins else sums.weight(missing)
        shared = level.weights if own_branch or joins else level.weights - missing
        whole = int(impurity(shared)[0])
        information = sums.x_log2_x(sums.weight(level.weights))
        information = information - sums.x_log2_x(outside)
        if own_branch:
            whole -= int(impurity(missing)[0])
            information = information - sums.x_log2_x(sums.weight(missing))
        candidates = Candidates(_ONE, shared, _ONE, shared, outside)
        resolution = criterion.score(candidates, sums).resolution
        on_sides = cases if joins else cases - missing_cases
        fewest = _fewest_cases(search, on_sides)
        if own_branch and not search.enough(missing, missing_cases)[0]:
            fewest = math.inf
        by_ratio = recipe.criterion_name == "gain_ratio"
        numbers = {
            "gini": recipe.criterion_name == "gini",
            "by_ratio": by_ratio and not recipe.quinlan_thresholds,
            "weights_are_cases": recipe.weights_are_cases,
            "fewest_cases": fewest,
            "fewest_weight": float(search.weight_in_leaf),
            "whole": whole * sums.unit,
            "total": float(sums.weight(level.weights)[0]),
            "information": float(information[0]) * sums.unit,
            "unit": float(sums.unit),
            "resolution": float(resolution[0]),
            "min_gain": float(search.min_gain),
            "joining_cases": float(missing_cases[0]) if joins else 0.0,
        }
        return cls(numbers, missing[0] if joins else None)


def _fewest_cases(search: Search, cases: Floats) -> float:
    """Return the fewest cases on each side of thresholds that divide so many."""
    nothing = np.zeros((1, 1))
    divided = Thresholds(
        _ONE, nothing, nothing, cases, np.zeros(1), nothing[0], nothing[0], _ONE
    )
    return float(search.cases_on_a_side(divided)[0])
