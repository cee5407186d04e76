"""Thresholds of numeric columns, and surrogate splits on other columns.

C4.5 has its own rules for thresholds (Quinlan, "Improved Use of Continuous Attributes
in C4.5", JAIR 4, 1996): values must differ by a minimum, each side needs a tenth of
the cases of a class on average (but not more than 25), the threshold with the largest
gain wins, and its gain is reduced by log2 of the number of thresholds, divided by the
weight.

A surrogate replaces the split of a node where the value of its column is missing. It
is scored by the weight of the cases that it sends to the same branch, among those
where both columns are known, whatever their classes (Breiman et al., "CART", 1984,
section 5.3). The rules are those of rpart: a surrogate must agree with more weight
than is in the larger branch, which is what sending all cases there would do; it must
send at least two cases to each branch; of the best ones of all columns at most five
are kept, those that agree most first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import (
    TIE,
    Floats,
    Ints,
    distinct,
    first_best,
    first_best_of_rows,
    larger_side,
    midpoint,
    run_starts,
    selected,
)
from branchwise.data.conventions.threshold_positions import between
from branchwise.data.table_schema import Column
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, ImpuritySums64, Scores
from branchwise.grow.protocol import BranchSource
from branchwise.tree.splits import ABOVE, AT_MOST, STOP, Splits, Surrogates

#: C4.5 does not split between values that are closer than this.
_APART = 1e-5
#: A side of a threshold needs this share of the cases of an average class, ...
_SIDE_SHARE = 0.1
#: ... but never more cases than this.
_LARGEST_SIDE = 25.0


@dataclass(frozen=True)
class Thresholds:
    """All thresholds of the open nodes, with the class weights of both sides.

    ``low`` and ``high`` are the values beside a threshold. ``missing_to`` is the side
    that also has the missing cases, or STOP.
    """

    node: Ints
    left: Floats
    right: Floats
    left_cases: Floats
    right_cases: Floats
    low: Floats
    high: Floats
    missing_to: Ints

    @classmethod
    def between(cls, known: Counts, values: Floats, n_nodes: int) -> Thresholds:
        """Return the thresholds between neighbouring values of the same node."""
        thresholds = cls.along(known, n_nodes)
        after = np.flatnonzero(known.node[:-1] == known.node[1:])
        low, high = values[known.code[after]], values[known.code[after + 1]]
        return replace(thresholds, low=low, high=high)

    @classmethod
    def along(cls, ordered: Counts, n_nodes: int) -> Thresholds:
        """Split after every entry of a node but the last; values are positions."""
        weights, cases = ordered.totals(n_nodes)
        starts = run_starts(ordered.node)
        inner = np.flatnonzero(ordered.node[:-1] == ordered.node[1:])
        node = ordered.node[inner]
        left = _running(ordered.weights, starts)[inner]
        left_cases = _running(ordered.cases, starts)[inner]
        return cls(
            node,
            left,
            weights[node] - left,
            left_cases,
            cases[node] - left_cases,
            inner.astype(np.float64),
            (inner + 1).astype(np.float64),
            np.full(len(inner), STOP, dtype=np.intp),
        )

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Whether the values differ enough for C4.5."""
        return self.low + _APART < self.high

    def positioned(self, values: Floats, position: str) -> Floats:
        """Return the thresholds as numbers; ``values`` are all numbers of the table."""
        if position == "value":
            return at_values(midpoint(self.low, self.high), values)
        return between(self.low, self.high, position)

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
        if not some.any():
            return self
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
    threshold: Thresholds
    score: Floats
    gain: Floats
    resolution: Floats
    missing_to: Ints


def at_values(threshold: Floats, values: Floats) -> Floats:
    """Return thresholds moved down to a number of the table."""
    return values[np.searchsorted(values, threshold, side="right") - 1]


def best_by_score(thresholds: Thresholds, scores: Scores) -> BestThresholds:
    """Return the thresholds with the highest score, the lowest of equals."""
    starts = run_starts(thresholds.node)
    node = thresholds.node[starts]
    resolution = scores.resolution[node]
    best = first_best(scores.score, starts, resolution)
    return BestThresholds(
        node,
        selected(thresholds, best),
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
    n_thresholds: Ints,
    by_ratio: bool,
) -> BestThresholds:
    """Return the thresholds of largest gain, less log2(n_thresholds) / weight.

    ``n_thresholds`` is by node how many are admissible. Their scores are these gains,
    or ``by_ratio`` the ratios to the split information.
    """
    starts = run_starts(thresholds.node)
    node = thresholds.node[starts]
    resolution = scores.resolution[node]
    best = first_best(scores.gain, starts, resolution)
    choices = n_thresholds[node].astype(np.float64)
    left = scores.drop[best] - impurity_sums.log2(choices)
    total = (impurity_sums.weight(candidates.known) + candidates.unknown)[node]
    # A threshold without gain, apart from rounding, does not count.
    worth = left > impurity_sums.noise(total)
    gain = left * impurity_sums.unit / total
    score = left / scores.information[best] if by_ratio else gain
    return BestThresholds(
        node,
        selected(thresholds, best),
        np.where(worth, score, -np.inf),
        np.where(worth, gain, -np.inf),
        resolution,
        thresholds.missing_to[best],
    )


#: No node has more surrogates than this.
MOST_SURROGATES = 5
#: The least number of cases in each branch of a surrogate.
_FEWEST_CASES = 2


def with_surrogates(
    splits: Splits, source: BranchSource, columns: Sequence[Column], threshold: str
) -> Splits:
    """Add surrogates to two-way splits; ``threshold`` positions their thresholds."""
    if not len(splits.sizes):
        return splits
    sizes = _Sizes.of(splits)
    found = []
    agreement = np.full((len(splits.column), len(columns)), -np.inf)
    for index, counts in enumerate(source.branch_counts(splits)):
        known = counts.select(counts.code != source.missing_code(index))
        known = known.select(splits.column[known.node] != index)
        if columns[index].is_numeric:
            position = columns[index].position(threshold)
            best = _best_thresholds(
                known, source.values(index), len(sizes.most), position
            )
        else:
            best = _best_groups(known, sizes)
        found.append(best)
        agreement[:, index] = best.agreement
    # A surrogate must do better than sending all cases to the larger branch.
    agreement[agreement <= sizes.most[:, np.newaxis] * (1 + TIE)] = -np.inf
    node, column = _most_agreeing(agreement)
    return replace(splits, surrogates=_assembled(node, column, found, len(sizes.most)))


@dataclass(frozen=True)
class _Sizes:
    """By node the branch with the most weight, and that weight."""

    larger: Ints
    most: Floats

    @classmethod
    def of(cls, splits: Splits) -> _Sizes:
        sizes = np.zeros((len(splits.column), 2))
        sizes[splits.n_branches > 0] = splits.sizes.reshape(-1, 2)
        return cls(larger_side(sizes[:, 0], sizes[:, 1]), sizes.max(axis=1))


@dataclass(frozen=True)
class _Best:
    """The best surrogate of one column for each node; -inf where there is none.

    ``agreement`` and ``threshold`` are by node; ``owner``, ``code`` and ``branch`` say
    for each node in turn which code goes down which branch, sorted by node and branch.
    """

    agreement: Floats
    threshold: Floats
    owner: Ints
    code: Ints
    branch: Ints

    @classmethod
    def of(
        cls, agreement: Floats, threshold: Floats, owner: Ints, code: Ints, branch: Ints
    ) -> _Best:
        order = np.lexsort((code, branch, owner))
        return cls(agreement, threshold, owner[order], code[order], branch[order])


def _best_thresholds(
    known: Counts, values: Floats, n_nodes: int, position: str
) -> _Best:
    """Find the threshold that agrees most, in either direction; the lowest wins."""
    agreement, threshold = np.full(n_nodes, -np.inf), np.full(n_nodes, np.nan)
    thresholds = Thresholds.between(known, values, n_nodes)
    thresholds = thresholds.select(thresholds.fewest_cases >= _FEWEST_CASES)
    starts = run_starts(thresholds.node)
    node = thresholds.node[starts]
    if not len(node):
        return _Best.of(agreement, threshold, node, node, node)
    straight = thresholds.left[:, 0] + thresholds.right[:, 1]
    turned = thresholds.left[:, 1] + thresholds.right[:, 0]
    both = np.stack([straight, turned], axis=1).ravel()
    best = first_best(both, 2 * starts, np.zeros(len(starts)))
    agreement[node] = both[best]
    threshold[node] = selected(thresholds, best // 2).positioned(values, position)
    low = best % 2
    return _Best.of(
        agreement,
        threshold,
        np.repeat(node, 2),
        np.tile([AT_MOST, ABOVE], len(node)),
        np.stack([low, 1 - low], axis=1).ravel(),
    )


def _best_groups(known: Counts, sizes: _Sizes) -> _Best:
    """Send every value to the branch of most of its cases, of equals to the larger."""
    n_nodes = len(sizes.most)
    first, second = known.weights.T
    right, left = larger_side(first, second), larger_side(second, first)
    branch = np.where(right == left, sizes.larger[known.node], right)
    agreement = np.zeros(n_nodes)
    cases = np.zeros((n_nodes, 2))
    np.add.at(agreement, known.node, np.maximum(first, second))
    np.add.at(cases, (known.node, branch), known.cases)
    agreement[cases.min(axis=1) < _FEWEST_CASES] = -np.inf
    nowhere = np.full(n_nodes, np.nan)
    return _Best.of(agreement, nowhere, known.node, known.code, branch)


def _most_agreeing(agreement: Floats) -> tuple[Ints, Ints]:
    """Return (node, column) pairs, by node in the order in which they are used."""
    n_nodes, n_columns = agreement.shape
    every = np.arange(n_nodes)
    left = agreement.copy()
    turns = []
    for _ in range(min(MOST_SURROGATES, n_columns)):
        best = first_best_of_rows(left)
        turns.append(np.where(left[every, best] > -np.inf, best, -1))
        left[every, best] = -np.inf
    ranked = np.stack(turns, axis=1)
    node, turn = np.nonzero(ranked >= 0)
    return node, ranked[node, turn]


def _assembled(
    node: Ints, column: Ints, found: Sequence[_Best], n_nodes: int
) -> Surrogates:
    """Join the chosen surrogates, in the order of their nodes."""
    threshold = np.full(len(node), np.nan)
    sides, codes = [], []
    for index in distinct(column).tolist():
        best = found[index]
        chosen = np.flatnonzero(column == index)
        threshold[chosen] = best.threshold[node[chosen]]
        position = np.full(n_nodes, -1, dtype=np.intp)
        position[node[chosen]] = chosen
        wanted = position[best.owner] >= 0
        sides.append((2 * position[best.owner] + best.branch)[wanted])
        codes.append(best.code[wanted])
    nothing = [np.empty(0, dtype=np.intp)]
    side = np.concatenate(sides or nothing)
    order = np.argsort(side, kind="stable")
    return Surrogates.of(
        np.bincount(node, minlength=n_nodes),
        column,
        threshold,
        np.bincount(side, minlength=2 * len(node)),
        np.concatenate(codes or nothing)[order],
    )
