"""Search for surrogate splits: splits on other columns that agree with a split.

A surrogate replaces the split of a node where the value of its column is missing. It
is scored by the weight of the cases that it sends to the same branch, among those
where both columns are known, whatever their classes (Breiman et al., "CART",
1984, section 5.3). The rules are those of rpart: a surrogate must agree with more
weight than is in the larger branch, which is what sending all cases there would do;
it must send at least two cases to each branch; of the best ones of all columns at
most five are kept, those that agree most first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.arrays import (
    TIE,
    Floats,
    Ints,
    distinct,
    first_best,
    first_best_of_rows,
    larger_side,
    run_starts,
)
from branchwise.data.schema import Column
from branchwise.grow.counts import Counts
from branchwise.grow.protocol import Engine
from branchwise.grow.thresholds import Thresholds, positioned
from branchwise.tree.splits import ABOVE, AT_MOST, Splits, Surrogates

#: No node has more surrogates than this.
MOST_SURROGATES = 5
#: The least number of cases in each branch of a surrogate.
_FEWEST_CASES = 2


def with_surrogates(
    splits: Splits, source: Engine, columns: Sequence[Column], threshold: str
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
            best = _best_thresholds(
                known, source.values(index), len(sizes.most), threshold
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


def _best_thresholds(known: Counts, values: Floats, n_nodes: int, at: str) -> _Best:
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
    threshold[node] = positioned(thresholds.threshold[best // 2], values, at)
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
