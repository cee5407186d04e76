"""Quantiles of what a regression forest predicts, from the targets in the leaves.

A tree gives the training rows in the leaf of a case their shares of the leaf's weight;
the average over trees is a distribution of targets, whose mean is the prediction of the
forest and whose quantiles are predicted here (Meinshausen, "Quantile Regression
Forests", 2006). A row counts in a tree as often as it is in the tree's sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, distinct, run_starts
from branchwise.data.table_schema import Columns
from branchwise.ensemble.fitted_trees import FittedTrees, blocks_of
from branchwise.ensemble.out_of_bag import row_weights, samples_of, taken
from branchwise.errors import ParameterError
from branchwise.stats import check_level
from branchwise.threads import in_order, n_threads
from branchwise.tree.apply import Arrivals
from branchwise.tree.splits import ragged
from branchwise.tree.tree import Tree, subtree_sums

#: Targets of leaves, and rows, that are looked at together.
_MOST_ENTRIES, _MOST_ROWS = 1 << 21, 1 << 12
#: A share this close below a quantile has reached it: shares are rounded.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class LeafTargets:
    """The training targets in the leaves of a forest.

    ``targets`` are the distinct ones, sorted. The nodes of all trees are numbered one
    tree after the other, from ``offset`` on; ``parent``, ``first_child`` and
    ``n_children`` are their shape. Entries are the ranks of the targets that arrive at
    a node and go no further, and their shares of its own weight; ``first`` is where
    those of a node begin. ``own`` is the weight of these rows, ``below`` and
    ``n_entries`` are weights and numbers of entries of whole subtrees.
    """

    targets: Floats
    offset: Ints
    parent: Ints
    first_child: Ints
    n_children: Ints
    first: Ints
    rank: NDArray[np.int32]
    share: Floats
    own: Floats
    below: Floats
    n_entries: Ints

    @classmethod
    def of(cls, ensemble: FittedTrees, threads: int = 1) -> LeafTargets:
        """Send the training rows of a forest down its trees."""
        samples = samples_of(ensemble, "Quantiles")
        training, order = samples.training, samples.order
        target = training.target.astype(np.float64)
        weight = row_weights(training)
        targets = distinct(target[order])
        rank = np.searchsorted(targets, target)

        def of_tree(tree: int) -> tuple[Any, ...]:
            times = samples.times(tree)
            # In the order of contents, so that the table's leaves no trace in sums.
            rows = order[times[order] > 0]
            arrivals = ensemble.walkers[tree].walk(taken(training.data, rows))
            weights = weight[rows] * times[rows]
            return _entries_of(ensemble.trees[tree], arrivals, rank[rows], weights)

        found = in_order(of_tree, range(len(ensemble)), threads)
        lists = [np.concatenate(column) for column in zip(*found, strict=True)]
        count, ranks, share, own, below, n_entries = lists
        trees = ensemble.trees
        offset = np.cumsum([0, *map(len, trees)])
        shifted = list(zip(trees, offset.tolist(), strict=False))
        return cls(
            targets,
            offset[:-1],
            np.concatenate([tree.parent + at for tree, at in shifted]),
            np.concatenate([tree.first_child + at for tree, at in shifted]),
            np.concatenate([tree.n_children for tree in trees]),
            np.concatenate([[0], np.cumsum(count)]),
            ranks,
            share,
            own,
            below,
            n_entries,
        )

    def arrived(
        self, ensemble: FittedTrees, data: Columns
    ) -> tuple[Ints, Ints, Floats]:
        """Return where rows arrive in all trees, sorted by row: row, node, share."""
        every = [walker.walk(data) for walker in ensemble.walkers]
        row = np.concatenate([arrivals.row for arrivals in every])
        node = np.concatenate(
            [
                arrivals.node + first
                for arrivals, first in zip(every, self.offset.tolist(), strict=True)
            ]
        )
        share = np.concatenate([arrivals.share for arrivals in every])
        # Rows of a block fit in 16 bits, which are sorted without comparisons.
        order = np.argsort(row.astype(np.uint16), kind="stable")
        row, node, share = row[order], node[order], share[order]
        # A leaf that no training row arrives at has the targets of its parent.
        while (empty := self.below[node] <= 0).any():
            node = np.where(empty, self.parent[node], node)
        return row, node, share

    def entries(
        self, row: Ints, node: Ints, share: Floats
    ) -> tuple[Ints, NDArray[np.int32], Floats]:
        """Return the row, the rank and the weight of all targets of arrivals."""
        row, node, share = self._at_leaves(row, node, share)
        length = self.first[node + 1] - self.first[node]
        at = ragged(self.first[node], length)
        origin = np.repeat(np.arange(len(node)), length)
        return row[origin], self.rank[at], self.share[at] * share[origin]

    def _at_leaves(
        self, row: Ints, node: Ints, share: Floats
    ) -> tuple[Ints, Ints, Floats]:
        """Divide cases that stop at nodes with children among all of the subtree."""
        stopped = self.n_children[node] > 0
        if not stopped.any():
            return row, node, share
        below = {at: self._descendants(at) for at in distinct(node[stopped]).tolist()}
        pieces = [below.get(at, np.array([at])) for at in node.tolist()]
        origin = np.repeat(np.arange(len(node)), list(map(len, pieces)))
        leaf = np.concatenate(pieces)
        portion = self.own[leaf] / self.below[node[origin]]
        portion[~stopped[origin]] = 1.0
        return row[origin], leaf, share[origin] * portion

    def _descendants(self, node: int) -> Ints:
        """Return a node and its descendants, those at which training rows arrive."""
        start, stop, found = node, node + 1, []
        # The descendants on a level are adjacent: children follow each other.
        while start < stop:
            found.append(np.arange(start, stop))
            last = stop - 1
            first, stop = self.first_child[start], self.first_child[last]
            start, stop = int(first), int(stop + self.n_children[last])
        every = np.concatenate(found)
        return every[self.own[every] > 0]


def _entries_of(
    tree: Tree, arrivals: Arrivals, rank: Ints, weight: Floats
) -> tuple[Any, ...]:
    """Sort the targets of the rows of a tree by node and rank, and merge equal ones.

    Returns, by node, the number of entries; by entry, rank and share; by node, weights
    and the weights and numbers of subtrees.
    """
    n_ranks = int(rank.max(initial=0)) + 1
    key = arrivals.node * n_ranks + rank[arrivals.row]
    order = np.argsort(key, kind="stable")
    starts = run_starts(key[order])
    amounts = (weight[arrivals.row] * arrivals.share)[order]
    merged = np.add.reduceat(amounts, starts)
    node, ranks = np.divmod(key[order][starts], n_ranks)
    own = np.bincount(node, merged, minlength=len(tree)).astype(np.float64)
    count = np.bincount(node, minlength=len(tree))
    return (
        count,
        ranks.astype(np.int32),
        merged / own[node],
        own,
        subtree_sums(tree, own),
        subtree_sums(tree, count),
    )


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
        row, node, share = leaves.arrived(ensemble, block)
        found = [
            _quantiles(leaves, row[piece] - first, node[piece], share[piece], n, wanted)
            for first, n, piece in _pieces(leaves, row, node, block.n_rows)
        ]
        return np.concatenate([np.empty((0, len(wanted))), *found])

    found = np.concatenate(in_order(predicted, blocks_of(data), n_threads(n_jobs)))
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


def _pieces(
    leaves: LeafTargets, row: Ints, node: Ints, n_rows: int
) -> Iterator[tuple[int, int, slice]]:
    """Divide arrivals, sorted by row: the first row, the number of rows, and where."""
    n_entries = np.cumsum(leaves.n_entries[node])
    starts = np.searchsorted(row, np.arange(n_rows + 1))
    whole = np.concatenate([[0], n_entries])[starts]
    first = 0
    while first < n_rows:
        last = int(np.searchsorted(whole, whole[first] + _MOST_ENTRIES, "right")) - 1
        last = min(max(last, first + 1), first + _MOST_ROWS, n_rows)
        yield first, last - first, slice(int(starts[first]), int(starts[last]))
        first = last


def _quantiles(
    leaves: LeafTargets,
    row: Ints,
    node: Ints,
    share: Floats,
    n_rows: int,
    wanted: Floats,
) -> Floats:
    """Return quantiles of rows by weight: first the range of ranks, then the rank."""
    row, rank, weight = leaves.entries(row, node, share)
    shift = max(1, len(leaves.targets) - 1).bit_length() // 2
    width = 1 << shift
    n_ranges = ((len(leaves.targets) - 1) >> shift) + 1
    range_of, within = rank >> shift, rank & (width - 1)
    sums = _cumulated(row * n_ranges + range_of, weight, n_rows, n_ranges)
    every, result = np.arange(n_rows), np.empty((n_rows, len(wanted)))
    for at, quantile in enumerate(wanted.tolist()):
        goal = sums[:, -1] * max(quantile - _TOLERANCE, 0.0)
        chosen = _first_reaching(sums, goal)
        before = np.where(chosen > 0, sums[every, chosen - 1], 0.0)
        inside = range_of == chosen[row]
        fine = _cumulated(
            row[inside] * width + within[inside], weight[inside], n_rows, width
        )
        # The same sum in another order may be a little less.
        rest = np.minimum(goal - before, fine[:, -1])
        result[:, at] = leaves.targets[(chosen << shift) + _first_reaching(fine, rest)]
    return result


def _cumulated(key: Ints, weight: Floats, n_rows: int, width: int) -> Floats:
    sums = np.bincount(key, weight, minlength=n_rows * width)
    return np.cumsum(sums.reshape(n_rows, width), axis=1, dtype=np.float64)


def _first_reaching(sums: Floats, goal: Floats) -> Ints:
    """Return where cumulated weights first reach a goal, and are above 0."""
    reached = (sums >= goal[:, np.newaxis]) & (sums > 0)
    first: Ints = np.argmax(reached, axis=1)
    return first
