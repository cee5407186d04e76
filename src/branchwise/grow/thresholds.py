"""Stage 5, numbers: every place where the numbers of a node can be cut, and the best.

C4.5 cuts numbers in its own way (Quinlan, "Improved Use of Continuous Attributes in
C4.5", JAIR 4, 1996): values must be apart, each side needs a tenth of the cases of
a class on average (but not more than 25), the cut with the largest gain wins, and
its gain is lowered by what it costs to say which of the cuts it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, run_starts
from branchwise.data.bins import midpoint
from branchwise.data.ties import first_best, larger_side
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, Masses64, Scores
from branchwise.tree.splits import STOP

#: Values nearer than this are not told apart by C4.5.
_APART = 1e-5
#: A side of a cut needs this share of the cases of an average class, ...
_SIDE_SHARE = 0.1
#: ... but never more cases than this.
_LARGEST_SIDE = 25.0


@dataclass(frozen=True)
class Cuts:
    """Every place where the numbers of a node can be cut in two.

    ``missing_to`` is the side that has the missing cases, too, or STOP.
    """

    node: Ints
    cut: Floats
    left: Floats
    right: Floats
    left_cases: Floats
    right_cases: Floats
    apart: NDArray[np.bool_]
    missing_to: Ints

    @classmethod
    def between(cls, known: Counts, values: Floats, n_nodes: int) -> Cuts:
        """Cut between neighbouring values of the same node."""
        cuts = cls.along(known, n_nodes)
        after = np.flatnonzero(known.node[:-1] == known.node[1:])
        low, high = values[known.code[after]], values[known.code[after + 1]]
        return replace(cuts, cut=midpoint(low, high), apart=low + _APART < high)

    @classmethod
    def along(cls, ordered: Counts, n_nodes: int) -> Cuts:
        """Cut behind every entry of a node but the last; the cut is its position."""
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

    def select(self, mask: NDArray[np.bool_]) -> Cuts:
        """Keep some of the cuts."""
        return Cuts(
            self.node[mask],
            self.cut[mask],
            self.left[mask],
            self.right[mask],
            self.left_cases[mask],
            self.right_cases[mask],
            self.apart[mask],
            self.missing_to[mask],
        )

    def with_missing(self, missing: Floats, cases: Floats, masses: Masses64) -> Cuts:
        """Try the missing cases of each node on either side of every cut.

        ``missing`` and ``cases`` are their weights and numbers by node. The larger
        side is tried first, so that it wins ties. Nodes without missing cases keep
        their cuts.
        """
        some = cases[self.node] > 0
        times = np.where(some, 2, 1)
        origin = np.repeat(np.arange(len(self.node)), times)
        again = np.arange(len(origin)) - np.repeat(np.cumsum(times) - times, times)
        larger = larger_side(masses.weight(self.left), masses.weight(self.right))
        node = self.node[origin]
        missing_to = np.where(some[origin], larger[origin] ^ again, STOP)
        on_left, on_right = missing_to == 0, missing_to == 1
        return Cuts(
            node,
            self.cut[origin],
            self.left[origin] + missing[node] * on_left[:, np.newaxis],
            self.right[origin] + missing[node] * on_right[:, np.newaxis],
            self.left_cases[origin] + cases[node] * on_left,
            self.right_cases[origin] + cases[node] * on_right,
            self.apart[origin],
            missing_to,
        )

    def candidates(self, missing: Floats, third: bool, masses: Masses64) -> Candidates:
        """Make candidates; missing values are a third branch or stay outside."""
        sides = [self.left, self.right]
        known = np.zeros_like(missing)
        known[self.node] = self.left + self.right
        outside = masses.weight(missing).copy()
        if third:
            sides.append(missing[self.node])
            known += missing
            outside[:] = 0.0
        # Nodes without a cut keep a weight, so that nothing divides by zero.
        outside[masses.weight(known) == 0] = 1.0
        branches = np.stack(sides, axis=1).reshape(-1, self.left.shape[1])
        starts = np.arange(len(self.node)) * len(sides)
        return Candidates(self.node, branches, starts, known, outside)


def _running(amounts: Floats, starts: Ints) -> Floats:
    """Return running sums that begin anew with each run.

    Sums within a node are exact; those over all nodes of a level need not be.
    """
    steps = amounts.copy()
    steps[starts[1:]] -= np.add.reduceat(amounts, starts, axis=0)[:-1]
    return np.cumsum(steps, axis=0)


@dataclass(frozen=True)
class BestCuts:
    """The best cut of every node that has one."""

    node: Ints
    cut: Floats
    score: Floats
    gain: Floats
    resolution: Floats
    missing_to: Ints


def placed(cut: Floats, values: Floats, at: str) -> Floats:
    """Leave cuts in the middle, or move them down to a number of the table."""
    if at == "midpoint":
        return cut
    return values[np.searchsorted(values, cut, side="right") - 1]


def best_by_score(cuts: Cuts, scores: Scores) -> BestCuts:
    """Take the cut with the highest score, of equals the lowest."""
    starts = run_starts(cuts.node)
    node = cuts.node[starts]
    resolution = scores.resolution[node]
    best = first_best(scores.score, starts, resolution)
    return BestCuts(
        node,
        cuts.cut[best],
        scores.score[best],
        scores.gain[best],
        resolution,
        cuts.missing_to[best],
    )


def quinlan_least(cuts: Cuts, n_classes: int, least: float) -> Floats:
    """Return the fewest cases that C4.5 wants on each side of a cut."""
    known = cuts.left_cases + cuts.right_cases
    wanted = known * _SIDE_SHARE / n_classes
    return np.where(wanted <= least, least, np.minimum(wanted, _LARGEST_SIDE))


def best_penalised(
    cuts: Cuts, scores: Scores, candidates: Candidates, masses: Masses64
) -> BestCuts:
    """Take the cut with the largest gain, and lower that by log2(cuts) / weight."""
    starts = run_starts(cuts.node)
    node = cuts.node[starts]
    resolution = scores.resolution[node]
    best = first_best(scores.gain, starts, resolution)
    n_cuts = np.diff(starts, append=len(cuts.node)).astype(np.float64)
    left = scores.drop[best] - masses.log2(n_cuts)
    total = (masses.weight(candidates.known) + candidates.unknown)[node]
    # A cut that tells nothing is none, whatever rounding says of it.
    worth = left > masses.noise(total)
    return BestCuts(
        node,
        cuts.cut[best],
        np.where(worth, left / scores.information[best], -np.inf),
        np.where(worth, left * masses.unit / total, -np.inf),
        resolution,
        cuts.missing_to[best],
    )
