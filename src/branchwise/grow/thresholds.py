"""Thresholds of numeric columns: all candidates, and the best of each node.

C4.5 has its own rules (Quinlan, "Improved Use of Continuous Attributes in C4.5", JAIR
4, 1996): values must differ by a minimum, each side needs a tenth of the cases of a
class on average (but not more than 25), the threshold with the largest gain wins, and
its gain is reduced by log2 of the number of thresholds, divided by the weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import (
    Floats,
    Ints,
    first_best,
    larger_side,
    midpoint,
    run_starts,
    selected,
)
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, ImpuritySums64, Scores
from branchwise.tree.splits import STOP

#: C4.5 does not split between values that are closer than this.
_APART = 1e-5
#: A side of a threshold needs this share of the cases of an average class, ...
_SIDE_SHARE = 0.1
#: ... but never more cases than this.
_LARGEST_SIDE = 25.0


@dataclass(frozen=True)
class Thresholds:
    """All thresholds of the open nodes, with the class weights of both sides.

    ``missing_to`` is the side that also has the missing cases, or STOP.
    """

    node: Ints
    threshold: Floats
    left: Floats
    right: Floats
    left_cases: Floats
    right_cases: Floats
    apart: NDArray[np.bool_]
    missing_to: Ints

    @classmethod
    def between(cls, known: Counts, values: Floats, n_nodes: int) -> Thresholds:
        """Return the thresholds between neighbouring values of the same node."""
        thresholds = cls.along(known, n_nodes)
        after = np.flatnonzero(known.node[:-1] == known.node[1:])
        low, high = values[known.code[after]], values[known.code[after + 1]]
        return replace(
            thresholds, threshold=midpoint(low, high), apart=low + _APART < high
        )

    @classmethod
    def along(cls, ordered: Counts, n_nodes: int) -> Thresholds:
        """Split after every entry of a node but the last; thresholds are positions."""
        weights, cases = ordered.totals(n_nodes)
        starts = run_starts(ordered.node)
        inner = np.flatnonzero(ordered.node[:-1] == ordered.node[1:])
        node = ordered.node[inner]
        left = _running(ordered.weights, starts)[inner]
        left_cases = _running(ordered.cases, starts)[inner]
        return cls(
            node,
            inner.astype(np.float64),
            left,
            weights[node] - left,
            left_cases,
            cases[node] - left_cases,
            np.ones(len(inner), dtype=bool),
            np.full(len(inner), STOP, dtype=np.intp),
        )

    @property
    def fewest_cases(self) -> Floats:
        """The cases of the smaller side."""
        return np.minimum(self.left_cases, self.right_cases)

    def select(self, mask: NDArray[np.bool_]) -> Thresholds:
        """Keep some of the thresholds."""
        return selected(self, mask)

    def with_missing(
        self, missing: Floats, cases: Floats, impurity_sums: ImpuritySums64
    ) -> Thresholds:
        """Add candidates with the missing cases on either side of every threshold.

        ``missing`` and ``cases`` are their weights and numbers by node. The larger side
        is tried first, so that it wins ties.
        """
        some = cases[self.node] > 0
        times = np.where(some, 2, 1)
        origin = np.repeat(np.arange(len(self.node)), times)
        again = np.arange(len(origin)) - np.repeat(np.cumsum(times) - times, times)
        larger = larger_side(
            impurity_sums.weight(self.left), impurity_sums.weight(self.right)
        )
        new = selected(self, origin)
        missing_to = np.where(some[origin], larger[origin] ^ again, STOP)
        on_left, on_right = missing_to == 0, missing_to == 1
        return replace(
            new,
            left=new.left + missing[new.node] * on_left[:, np.newaxis],
            right=new.right + missing[new.node] * on_right[:, np.newaxis],
            left_cases=new.left_cases + cases[new.node] * on_left,
            right_cases=new.right_cases + cases[new.node] * on_right,
            missing_to=missing_to,
        )

    def candidates(
        self, missing: Floats, third: bool, impurity_sums: ImpuritySums64
    ) -> Candidates:
        """Return candidates; missing values are a third branch or in none."""
        sides = [self.left, self.right]
        known = np.zeros_like(missing)
        known[self.node] = self.left + self.right
        outside = impurity_sums.weight(missing).copy()
        if third:
            sides.append(missing[self.node])
            known += missing
            outside[:] = 0.0
        # Nodes without a threshold keep a weight, to avoid division by zero.
        outside[impurity_sums.weight(known) == 0] = 1.0
        branches = np.stack(sides, axis=1).reshape(-1, self.left.shape[1])
        starts = np.arange(len(self.node)) * len(sides)
        return Candidates(self.node, branches, starts, known, outside)


def _running(amounts: Floats, starts: Ints) -> Floats:
    """Return cumulative sums of each run.

    Sums within a node are exact; those over all nodes of a level need not be.
    """
    steps = amounts.copy()
    steps[starts[1:]] -= np.add.reduceat(amounts, starts, axis=0)[:-1]
    return np.cumsum(steps, axis=0)


@dataclass(frozen=True)
class BestThresholds:
    """The best threshold of every node that has one."""

    node: Ints
    threshold: Floats
    score: Floats
    gain: Floats
    resolution: Floats
    missing_to: Ints


def positioned(threshold: Floats, values: Floats, at: str) -> Floats:
    """Return thresholds as midpoints, or moved down to a number of the table."""
    if at == "midpoint":
        return threshold
    return values[np.searchsorted(values, threshold, side="right") - 1]


def best_by_score(thresholds: Thresholds, scores: Scores) -> BestThresholds:
    """Return the thresholds with the highest score, the lowest of equals."""
    starts = run_starts(thresholds.node)
    node = thresholds.node[starts]
    resolution = scores.resolution[node]
    best = first_best(scores.score, starts, resolution)
    return BestThresholds(
        node,
        thresholds.threshold[best],
        scores.score[best],
        scores.gain[best],
        resolution,
        thresholds.missing_to[best],
    )


def quinlan_least(thresholds: Thresholds, n_classes: int, least: float) -> Floats:
    """Return the least number of cases on each side of a threshold in C4.5."""
    known = thresholds.left_cases + thresholds.right_cases
    wanted = known * _SIDE_SHARE / n_classes
    return np.where(wanted <= least, least, np.minimum(wanted, _LARGEST_SIDE))


def best_penalised(
    thresholds: Thresholds,
    scores: Scores,
    candidates: Candidates,
    impurity_sums: ImpuritySums64,
) -> BestThresholds:
    """Return the thresholds of largest gain, less log2(n_thresholds) / weight."""
    starts = run_starts(thresholds.node)
    node = thresholds.node[starts]
    resolution = scores.resolution[node]
    best = first_best(scores.gain, starts, resolution)
    n_thresholds = np.diff(starts, append=len(thresholds.node)).astype(np.float64)
    left = scores.drop[best] - impurity_sums.log2(n_thresholds)
    total = (impurity_sums.weight(candidates.known) + candidates.unknown)[node]
    # A threshold without gain, apart from rounding, does not count.
    worth = left > impurity_sums.noise(total)
    return BestThresholds(
        node,
        thresholds.threshold[best],
        np.where(worth, left / scores.information[best], -np.inf),
        np.where(worth, left * impurity_sums.unit / total, -np.inf),
        resolution,
        thresholds.missing_to[best],
    )
