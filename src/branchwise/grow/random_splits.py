"""Extremely randomised splits: one random split of each column at a node.

The threshold of a numeric column is drawn evenly between the smallest and the largest
number of the node (Geurts, Ernst, Wehenkel, "Extremely randomized trees", 2006), and a
category goes to one of two groups by a random bit. The best column is chosen as usual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, larger_side, run_starts
from branchwise.grow.categories import Grouping
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import ImpuritySums64
from branchwise.grow.draws import SPLIT, Keys, draws, uniform
from branchwise.tree.splits import STOP


@dataclass(frozen=True)
class RandomSplits:
    """The random splits of the open nodes of a level, by the keys of these nodes."""

    keys: Keys

    def _drawn(self, column: int) -> Keys:
        return draws(self.keys ^ np.uint64(SPLIT), np.full(len(self.keys), column))

    def threshold_between(
        self, column: int, known: Counts, values: Floats
    ) -> NDArray[np.bool_]:
        """Tell which threshold of each node, between neighbouring numbers, is drawn.

        These are the thresholds of :meth:`Thresholds.between`.
        """
        starts = run_starts(known.node)
        ends = np.append(starts[1:], len(known.node)) - 1
        node = known.node[starts]
        low, high = values[known.code[starts]], values[known.code[ends]]
        with np.errstate(over="ignore", invalid="ignore"):
            at = low + uniform(self._drawn(column))[node] * (high - low)
        drawn = np.full(len(self.keys), np.nan)
        # The difference of huge numbers is no number.
        drawn[node] = np.where(at < high, at, low)
        after = np.flatnonzero(known.node[:-1] == known.node[1:])
        drawn = drawn[known.node[after]]
        below = values[known.code[after]] <= drawn
        between: NDArray[np.bool_] = below & (drawn < values[known.code[after + 1]])
        return between

    def grouping(
        self,
        column: int,
        known: Counts,
        unknown: Counts,
        impurity_sums: ImpuritySums64,
        learned: bool,
    ) -> Grouping:
        """Divide the values of every node in two groups.

        With ``learned`` missing cases join the group with the larger weight.
        """
        missing_to = np.full(len(self.keys), STOP, dtype=np.intp)
        starts = run_starts(known.node)
        node = known.node[starts]
        numbers = draws(self._drawn(column)[known.node], known.code)
        group = (numbers >> np.uint64(63)).astype(np.intp)
        width = np.diff(starts, append=len(known.node))
        # If all are in one group, the value with the smallest number is the other.
        ones = np.add.reduceat(group, starts)
        alike = np.repeat((ones == 0) | (ones == width), width)
        smallest = _first_smallest(numbers, starts, width)
        group[smallest] ^= alike[smallest]
        group ^= np.repeat(group[starts], width)
        if not learned:
            return Grouping(group, missing_to)
        weight = impurity_sums.weight(known.weights)
        sides = [np.add.reduceat(weight * (group == side), starts) for side in (0, 1)]
        joining = np.zeros(len(self.keys), dtype=bool)
        joining[unknown.node] = unknown.cases > 0
        joining[node] &= width > 1
        missing_to[node] = np.where(joining[node], larger_side(*sides), STOP)
        return Grouping(group, missing_to)


def _first_smallest(numbers: Keys, starts: Ints, width: Ints) -> Ints:
    """Return where the smallest number of each node with several values is."""
    least = np.repeat(np.minimum.reduceat(numbers, starts), width)
    at = np.flatnonzero((numbers == least) & np.repeat(width > 1, width))
    owner = np.repeat(np.arange(len(starts)), width)[at]
    first: Ints = at[run_starts(owner)] if len(at) else at
    return first
