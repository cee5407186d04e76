"""Numbers of a column at one node in segments: between thresholds that may be the best.

The compiled kernel goes through all thresholds and leaves out those that are worse than
another for sure. The rest is scored as every threshold is.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.engines.memory_engine import Countable, MemoryEngine
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, Criterion, ImpuritySums64
from branchwise.grow.search import Search
from branchwise.grow.thresholds import Thresholds
from branchwise.native import available, extension, optional_array, plain_array
from branchwise.studio.nodes.column_batches import SideCounter

#: Columns with fewer numbers are counted number by number.
MANY_NUMBERS = 4000
_ONE = np.zeros(1, dtype=np.intp)


@dataclass(frozen=True)
class Segments:
    """Counts of segments of numbers, and of missing ones.

    ``last`` has the code of the last number of each segment, ``known.code`` that of the
    first. ``known.weights`` are class weights, or the statistics of the numbers to be
    predicted. ``n_numbers`` is how many numbers there are, ``n_thresholds`` how many
    thresholds are admissible.
    """

    known: Counts
    last: Ints
    unknown: Counts
    n_numbers: int
    n_thresholds: int


#: What the kernel returns: how many thresholds and numbers there are, and by segment
#: the first and the last code, the statistics and the cases.
Found = tuple[int, int, Ints, Ints, Floats, Floats]


class SegmentCounter(ABC):
    """Counts numbers at one node in segments, where the compiled kernel can.

    ``all_rows``: the node has all rows of the table.
    """

    #: Counts the sides of thresholds; None where segments tell them.
    side_counter: SideCounter | None = None

    def __init__(
        self,
        engine: MemoryEngine,
        all_rows: bool,
        impurity_sums: ImpuritySums64,
    ) -> None:
        self.columns, self.cases = engine.countable, engine.root
        self.rows = None if all_rows else plain_array(self.cases.row)
        self._able = _are_comparable(impurity_sums, engine.grid.step)

    def serves(self, column: int) -> bool:
        """Whether a column of numbers is counted in segments."""
        many = self.columns[column].n_codes > MANY_NUMBERS
        return many and self._able and available()

    def segments(self, index: int, search: Search) -> Segments:
        """Count the numbers of a column."""
        column = self.columns[index]
        unknown = self._missing(column)
        found = self.found(column, search, unknown)
        n_thresholds, n_numbers, first, last, weights, own_cases = found
        node = np.zeros(len(first), dtype=np.intp)
        known = Counts(node, first.astype(np.intp), weights, own_cases)
        return Segments(known, last.astype(np.intp), unknown, n_numbers, n_thresholds)

    def _missing(self, column: Countable) -> Counts:
        """Count the cases whose number is missing."""
        missing, case = column.n_codes - 1, self.cases.case
        own = np.zeros(0, dtype=np.intp)
        if len(column.codes) and int(column.codes.max()) == missing:
            codes = column.codes if self.rows is None else column.codes[self.rows]
            own = np.flatnonzero(codes == missing)
        n_cases = float(len(own) if case is None else case[own].sum())
        n = min(len(own), 1)
        return Counts(
            _ONE[:n],
            np.full(n, missing, dtype=np.intp),
            self.weights(own)[np.newaxis][:n],
            np.array([n_cases])[:n],
        )

    @abstractmethod
    def weights(self, own: Ints) -> Floats:
        """Add up the weights, or the moments, of some cases."""

    @abstractmethod
    def found(self, column: Countable, search: Search, unknown: Counts) -> Found:
        """Find the segments of a column, some cases of which are missing."""


class ClassSegmentCounter(SegmentCounter):
    """Counts classes in segments of numbers."""

    def __init__(
        self,
        engine: MemoryEngine,
        labels: NDArray[np.uint32],
        n_classes: int,
        impurity_sums: ImpuritySums64,
    ) -> None:
        all_rows = len(engine.root.row) == len(labels)
        super().__init__(engine, all_rows, impurity_sums)
        self._labels = labels if all_rows else labels[self.cases.row]
        self._n_classes, self._step = n_classes, float(engine.grid.step)
        self._known_rules: _Rules | None = None

    def weights(self, own: Ints) -> Floats:
        """Add up the weights of some cases by class."""
        weight = None if self.cases.weight is None else self.cases.weight[own]
        counted = np.bincount(self._labels[own], weight, self._n_classes)
        return counted.astype(np.float64)

    def found(self, column: Countable, search: Search, unknown: Counts) -> Found:
        """Find the segments of a column, some cases of which are missing."""
        cases, rules = self.cases, self._rules(search, unknown)
        values = column.values if search.recipe.quinlan_thresholds else None
        found: Found = extension().threshold_segments(
            codes=plain_array(column.codes),
            n_codes=column.n_codes,
            rows=self.rows,
            labels=self._labels,
            n_classes=self._n_classes,
            weights=optional_array(cases.weight),
            cases=optional_array(cases.case),
            rules={**rules.numbers, "step": self._step},
            values=optional_array(values),
            joining=optional_array(rules.joining),
            table=search.impurity_sums.whole_terms,
        )
        return found

    def _rules(self, search: Search, unknown: Counts) -> _Rules:
        """Return the rules of a column: without missing cases those of all others."""
        if len(unknown.node):
            return _Rules.of(search, unknown)
        if self._known_rules is None:
            self._known_rules = _Rules.of(search, unknown)
        return self._known_rules


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
        fewest = fewest_cases(search, on_sides)
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


#: Scores above this share of a node's impurity tell thresholds apart.
_LEAST_SCORE = 2.0**-120


def _are_comparable(sums: ImpuritySums64, step: float) -> bool:
    """Whether the kernel can tell scores apart as well as they are here.

    Weights, and scores in the units of the numbers to be predicted, must be normal
    floats.
    """
    least = float(sums.in_units(np.array([_LEAST_SCORE]), _ONE)[0])
    return min(step, least) >= sys.float_info.min


def fewest_cases(search: Search, cases: Floats) -> float:
    """Return the fewest cases on each side of thresholds that divide so many."""
    nothing = np.zeros((1, 1))
    divided = Thresholds(
        _ONE, nothing, nothing, cases, np.zeros(1), nothing[0], nothing[0], _ONE
    )
    return float(search.cases_on_a_side(divided)[0])
