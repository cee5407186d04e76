"""Quantiles of what a regression forest predicts, from the targets in the leaves.

A tree gives the training rows in the leaf of a case their shares of the leaf's weight;
the average over trees is a distribution of targets, whose mean is the prediction of the
forest and whose quantiles are predicted here (Meinshausen, "Quantile Regression
Forests", 2006). A row counts in a tree as often as it is in the tree's sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, run_starts
from branchwise.data.table_schema import Columns
from branchwise.ensemble.fitted_trees import FittedTrees, blocks_of
from branchwise.ensemble.out_of_bag import row_weights, samples_of
from branchwise.errors import ParameterError
from branchwise.stats import check_level
from branchwise.threads import in_order, n_threads
from branchwise.tree.apply import Arrivals
from branchwise.tree.splits import ragged
from branchwise.tree.tree import Tree, subtree_sums

#: Targets of leaves, and rows, that are looked at together.
_MOST_ENTRIES, _MOST_ROWS = 1 << 21, 1 << 12
#: Rows that are sent down one tree after the other: trees stay in the caches.
_WALKED = 1 << 16
#: Bits of ranks that are looked at together, the first ones first.
_BITS = 6
#: A share this close below a quantile has reached it: shares are rounded.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class TreeTargets:
    """The training targets in the nodes of a tree, and how many there are below.

    Entries are the ranks of the targets that arrive at a node and go no further, and
    their weights. Those of a subtree are adjacent: from ``first`` on, ``n_entries`` in
    number and ``below`` in weight.
    """

    tree: Tree
    rank: NDArray[np.int32]
    amount: Floats
    first: Ints
    n_entries: Ints
    below: Floats

    def arrived(self, arrivals: Arrivals) -> Arrived:
        """Return the targets of rows: those of the nodes where they arrive."""
        node = arrivals.node
        below = self.below[node]
        # A leaf that no training row arrives at has the targets of its parent.
        while (empty := below <= 0).any():
            node = np.where(empty, self.tree.parent[node], node)
            below = self.below[node]
        start = np.arange(arrivals.n_rows + 1)
        if not arrivals.undivided:
            start = np.searchsorted(arrivals.row, start)
        return Arrived(
            self,
            start,
            arrivals.row,
            self.first[node],
            self.n_entries[node],
            arrivals.share / below,
        )


class Arrived(NamedTuple):
    """The targets of rows in a tree: ``start`` is where the arrivals of a row begin.

    An arrival has ``length`` entries of the tree, from ``first`` on, times ``scale``.
    """

    targets: TreeTargets
    start: Ints
    row: Ints
    first: Ints
    length: Ints
    scale: Floats

    def sizes(self) -> Ints:
        """Return the number of entries of each row."""
        if len(self.length) == len(self.start) - 1:
            return self.length
        total = np.concatenate([[0], np.cumsum(self.length)])
        sizes: Ints = np.diff(total[self.start])
        return sizes

    def entries(self, first: int, last: int) -> tuple[Ints, NDArray[np.int32], Floats]:
        """Return the row, the rank and the weight of all targets of some rows."""
        piece = slice(int(self.start[first]), int(self.start[last]))
        length = self.length[piece]
        at = ragged(self.first[piece], length)
        weight = self.targets.amount[at] * np.repeat(self.scale[piece], length)
        return np.repeat(self.row[piece] - first, length), self.targets.rank[at], weight


@dataclass(frozen=True)
class LeafTargets:
    """The training targets in the leaves of a forest; ``targets`` are sorted."""

    targets: Floats
    trees: list[TreeTargets]

    @classmethod
    def of(cls, ensemble: FittedTrees, threads: int = 1) -> LeafTargets:
        """Send the training rows of a forest down its trees."""
        samples = samples_of(ensemble, "Quantiles")
        training, order = samples.training, samples.order
        target = training.target.astype(np.float64)
        weight = row_weights(training)
        targets, rank = np.unique(target[order], return_inverse=True)
        # By rank, and in the order of contents, so that sums do not depend on the
        # order of the table.
        by_rank = np.argsort(rank, kind="stable")
        order = order[by_rank]
        ranks: NDArray[np.int32] = rank[by_rank].astype(np.int32)
        data = training.data.take(order)

        def of_tree(tree: int) -> TreeTargets:
            times = samples.times(tree)[order]
            arrivals = ensemble.walkers[tree].walk(data)
            return _targets_of(
                ensemble.trees[tree], arrivals, ranks, weight[order] * times
            )

        return cls(targets, in_order(of_tree, range(len(ensemble)), threads))


def _targets_of(
    tree: Tree, arrivals: Arrivals, rank: NDArray[np.int32], weight: Floats
) -> TreeTargets:
    """Sort the targets of the rows of a tree by node, and merge equal ones.

    The rows are sorted by rank.
    """
    amounts = weight[arrivals.row]
    kept = np.flatnonzero(amounts > 0)
    amounts = amounts[kept] * arrivals.share[kept]
    node, ranks = arrivals.node[kept], rank[arrivals.row[kept]]
    order = _stable_order(node, len(tree))
    node, ranks, amounts = node[order], ranks[order], amounts[order]
    starts = run_starts(node * (int(rank[-1]) + 1) + ranks)
    merged, node = np.add.reduceat(amounts, starts), node[starts]
    own = np.bincount(node, merged, minlength=len(tree)).astype(np.float64)
    count = np.bincount(node, minlength=len(tree))
    n_entries = subtree_sums(tree, count)
    first = _preorder(tree, count, n_entries)
    # Of a node, entries are adjacent and in order already.
    run = np.cumsum(count) - count
    position = np.arange(len(node)) + np.repeat(first - run, count)
    sorted_ranks, sorted_amounts = np.empty_like(ranks[starts]), np.empty_like(merged)
    sorted_ranks[position], sorted_amounts[position] = ranks[starts], merged
    below = subtree_sums(tree, own)
    return TreeTargets(tree, sorted_ranks, sorted_amounts, first, n_entries, below)


def _preorder(tree: Tree, count: Ints, below: Ints) -> Ints:
    """Return where entries begin, a node before its children, each with its subtree."""
    first = np.zeros(len(tree), dtype=np.intp)
    for start, stop in list(tree.levels())[1:]:
        parent, sizes = tree.parent[start:stop], below[start:stop]
        before = np.cumsum(sizes) - sizes
        siblings = before[tree.first_child[parent] - start]
        first[start:stop] = first[parent] + count[parent] + before - siblings
    return first


def _stable_order(numbers: Ints, most: int) -> Ints:
    """Return the stable order of numbers below ``most``, 16 bits at a time.

    So few bits are sorted without comparisons.
    """
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    if most > 1 << 16:
        high = (numbers >> 16)[order]
        if most <= 1 << 32:
            high = high.astype(np.uint16)
        order = order[np.argsort(high, kind="stable")]
    return order


def predict_quantiles(
    ensemble: FittedTrees,
    leaves: LeafTargets,
    X: object,
    quantiles: object,
    n_jobs: int | None = None,
) -> Floats:
    """Return quantiles for rows: (rows, quantiles), or (rows,) for a single one."""
    wanted = checked_quantiles(quantiles)
    data = ensemble.encoded(X, n_jobs)

    def predicted(block: Columns) -> Floats:
        arrived = [
            targets.arrived(walker.walk(block))
            for targets, walker in zip(leaves.trees, ensemble.walkers, strict=True)
        ]
        sizes = np.sum([each.sizes() for each in arrived], axis=0)
        found = [
            _quantiles(leaves.targets, arrived, first, last, wanted)
            for first, last in _pieces(sizes)
        ]
        return np.concatenate([np.empty((0, len(wanted))), *found])

    blocks = blocks_of(data, _WALKED)
    found = np.concatenate(in_order(predicted, blocks, n_threads(n_jobs)))
    return found if np.ndim(quantiles) else found[:, 0]  # type: ignore[arg-type]


def interval_quantiles(level: float) -> tuple[float, float]:
    """Return the quantiles at the ends of an interval."""
    tail = (1.0 - check_level(level)) / 2
    return tail, 1.0 - tail


def checked_quantiles(quantiles: object) -> Floats:
    """Return quantiles as an array: one, or several, from 0 to 1."""
    try:
        given = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    except (TypeError, ValueError):
        given = np.full(1, np.nan)
    if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():
        raise ParameterError(
            "quantiles must be a number from 0 to 1, or several, such as "
            f"[0.05, 0.5, 0.95]. Got {quantiles!r}."
        )
    return given


def _pieces(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Divide rows, given their numbers of entries: the first row, and the one after."""
    whole = np.concatenate([[0], np.cumsum(sizes)])
    first, n_rows = 0, len(sizes)
    while first < n_rows:
        last = int(np.searchsorted(whole, whole[first] + _MOST_ENTRIES, "right")) - 1
        last = min(max(last, first + 1), first + _MOST_ROWS, n_rows)
        yield first, last
        first = last


def _quantiles(
    targets: Floats,
    arrived: Sequence[Arrived],
    first: int,
    last: int,
    wanted: Floats,
) -> Floats:
    """Return quantiles of some rows by weight."""
    lists = zip(*(each.entries(first, last) for each in arrived), strict=True)
    row, rank, weight = map(np.concatenate, lists)
    n_rows = last - first
    shift = max(_bits_of(len(targets)) - _BITS, 0)
    range_of = rank >> shift
    sums = _cumulated(row, range_of, weight, n_rows)
    result = np.empty((n_rows, len(wanted)))
    for at, quantile in enumerate(wanted.tolist()):
        goal = sums[:, -1] * max(quantile - _TOLERANCE, 0.0)
        chosen, goal = _chosen(sums, goal)
        inside = range_of == chosen[row]
        entries = row[inside], rank[inside], weight[inside]
        result[:, at] = targets[_refined(*entries, chosen, goal, shift)]
    return result


def _refined(
    row: Ints,
    rank: NDArray[np.int32],
    weight: Floats,
    chosen: Ints,
    goal: Floats,
    shift: int,
) -> Ints:
    """Return the rank in which a goal is reached, within the first bits of each row."""
    while shift:
        bits = min(shift, _BITS)
        shift -= bits
        range_of = (rank >> shift) & ((1 << bits) - 1)
        sums = _cumulated(row, range_of, weight, len(chosen))
        # The same sum in another order may be a little less.
        digit, goal = _chosen(sums, np.minimum(goal, sums[:, -1]))
        chosen = (chosen << bits) + digit
        inside = range_of == digit[row]
        row, rank, weight = row[inside], rank[inside], weight[inside]
    return chosen


def _bits_of(n_targets: int) -> int:
    return max(1, n_targets - 1).bit_length()


def _cumulated(
    row: Ints, range_of: NDArray[np.int32], weight: Floats, n_rows: int
) -> Floats:
    width = 1 << _BITS
    key = row * width + range_of
    sums = np.bincount(key, weight, minlength=n_rows * width)
    return np.cumsum(sums.reshape(n_rows, width), axis=1, dtype=np.float64)


def _chosen(sums: Floats, goal: Floats) -> tuple[Ints, Floats]:
    """Return where cumulated weights first reach a goal, and what is left of it."""
    reached = (sums >= goal[:, np.newaxis]) & (sums > 0)
    first: Ints = np.argmax(reached, axis=1)
    before = sums[np.arange(len(first)), first - 1]
    return first, goal - np.where(first > 0, before, 0.0)
