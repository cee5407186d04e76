"""Splits as arrays, surrogate splits, and the routing of rows to branches.

Thresholds, one branch per value and groups of values have the same representation:
codes lead to branches. A numeric column has two codes at a node, :data:`AT_MOST` and
:data:`ABOVE` its threshold; a categorical column has those of its values.

Where the value of its column is missing, a node may have surrogates: splits on other
columns, each used where the columns of those before it are missing as well (Breiman et
al., "CART", 1984, section 5.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats, Ints, first_best, run_starts
from branchwise.data.table_schema import Column, Columns
from branchwise.recipe.parameters import Policy
from branchwise.threads import cached_property

#: The case stops here and gets the prediction of this node.
STOP = -1
#: The case goes down every branch, by weight.
EVERY_BRANCH = -2


def routes(
    missing: Policy, unseen: Policy, sizes: Floats, starts: Ints, missing_branch: Ints
) -> tuple[Ints, Ints]:
    """Return ``missing_to`` and ``unseen_to`` for nodes that are split.

    ``sizes`` are the weights of all branches, node after node, a node's first at
    ``starts``; ``missing_branch`` is the branch of the missing values, their own or
    the learnt one, or STOP.
    """
    largest: Ints = first_best(sizes, starts, np.zeros(len(starts))) - starts
    missing_to = _route(missing, largest, missing_branch)
    if unseen == "branch":
        return missing_to, missing_to
    return missing_to, _route(unseen, largest, missing_branch)


def _route(policy: Policy, largest: Ints, missing_branch: Ints) -> Ints:
    if policy == "branch":
        return missing_branch
    if policy == "learned":
        return np.where(missing_branch == STOP, largest, missing_branch)
    if policy in ("largest", "surrogate"):
        return largest
    return np.full_like(largest, EVERY_BRANCH if policy == "split" else STOP)


#: The codes of a number at a threshold.
AT_MOST = 0
ABOVE = 1


@dataclass(frozen=True)
class Surrogates:
    """The number of surrogates of each node, and their splits, of two branches each."""

    number: Ints
    splits: Splits

    @classmethod
    def of(
        cls, number: Ints, column: Ints, threshold: Floats, n_codes: Ints, codes: Ints
    ) -> Surrogates:
        """Build surrogates from their columns, thresholds and codes."""
        stop = np.full(len(column), STOP, dtype=np.intp)
        two = np.full(len(column), 2, dtype=np.intp)
        sizes = np.zeros(2 * len(column))
        return cls(
            number, Splits(column, threshold, two, stop, stop, n_codes, codes, sizes)
        )

    @classmethod
    def joined(cls, pieces: Mapping[int, Surrogates], n_nodes: int) -> Surrogates:
        """Join surrogates, each given by its first node; other nodes have none."""
        number = np.zeros(n_nodes, dtype=np.intp)
        for first, piece in pieces.items():
            number[first : first + len(piece.number)] = piece.number
        splits = [piece.splits for piece in pieces.values()]
        names = ("column", "threshold", "n_codes", "codes")
        arrays = ([getattr(piece, name) for piece in splits] for name in names)
        return cls.of(number, *map(np.concatenate, arrays))

    @cached_property
    def first(self) -> Ints:
        """The first surrogate of each node, and one past the last of all."""
        return np.concatenate([[0], np.cumsum(self.number)]).astype(np.intp)

    def take(self, nodes: Ints) -> Surrogates:
        """Return the surrogates of these nodes; -1 is a node without any."""
        number = np.where(nodes < 0, 0, self.number[nodes])
        chosen = ragged(self.first[nodes], number)
        sides = np.stack([2 * chosen, 2 * chosen + 1], axis=1).ravel()
        n_codes = self.splits.n_codes[sides]
        begin = (np.cumsum(self.splits.n_codes) - self.splits.n_codes)[sides]
        return Surrogates.of(
            number,
            self.splits.column[chosen],
            self.splits.threshold[chosen],
            n_codes,
            self.splits.codes[ragged(begin, n_codes)],
        )


def ragged(begin: Ints, length: Ints) -> Ints:
    """Return the concatenated positions of runs."""
    offset = begin - (np.cumsum(length) - length)
    positions: Ints = np.arange(int(length.sum())) + np.repeat(offset, length)
    return positions


@dataclass(frozen=True)
class Splits:
    """The splits of the open nodes of one level.

    Per node: the column (-1: no split), the threshold (NaN: none), how many branches,
    and where missing and unseen values go. Per branch, node after node: how many codes
    lead to it (the branch of missing values has none), those codes, and the weight of
    the known values there. And surrogates, if there are any.
    """

    column: Ints
    threshold: Floats
    n_branches: Ints
    missing_to: Ints
    unseen_to: Ints
    n_codes: Ints
    codes: Ints
    sizes: Floats
    surrogates: Surrogates | None = None


class Router:
    """Finds the branch that a row takes at a node."""

    def __init__(self, columns: Sequence[Column], splits: Splits) -> None:
        self._columns = columns
        self._splits = splits
        self.first_branch = np.cumsum(splits.n_branches) - splits.n_branches
        node = np.repeat(np.arange(len(splits.column)), splits.n_branches)
        within = np.arange(len(node)) - self.first_branch[node]
        # (node, code) -> branch, sorted for binary search: a table of all values
        # at all nodes could be far larger than the tree.
        self._stride = int(splits.codes.max(initial=0)) + 1
        key = np.repeat(node, splits.n_codes) * self._stride + splits.codes
        order = np.argsort(key)
        self._key = key[order]
        self._branch = np.repeat(within, splits.n_codes)[order]
        self._surrogates: Router | None = None
        if splits.surrogates is not None:
            self._surrogates = Router(columns, splits.surrogates.splits)

    def branches(self, data: Columns, row: Ints, node: Ints) -> Ints:
        """Return each row's branch at its node, or STOP or EVERY_BRANCH."""
        column = self._splits.column[node]
        if not len(column):
            return np.empty(0, dtype=np.intp)
        if (column == column[0]).all():
            return self._at_column(int(column[0]), data, row, node)
        branch = np.empty(len(row), dtype=np.intp)
        order = np.argsort(column, kind="stable")
        starts = run_starts(column[order])
        for piece in np.split(order, starts[1:]):
            index = int(column[piece[0]])
            branch[piece] = self._at_column(index, data, row[piece], node[piece])
        return branch

    def _at_column(self, index: int, data: Columns, row: Ints, node: Ints) -> Ints:
        if index < 0:
            return np.full(len(row), STOP, dtype=np.intp)
        cells = data.data[index][row]
        column = self._columns[index]
        if column.is_numeric:
            missing = np.isnan(cells)
            with np.errstate(invalid="ignore"):
                above = cells > self._splits.threshold[node]
            branch = self._find(node, np.where(above, ABOVE, AT_MOST))
        else:
            missing = cells == column.missing_code
            branch = self._find(node, cells.astype(np.intp))
            unseen = cells == column.unseen_code
            branch = np.where(unseen, self._splits.unseen_to[node], branch)
        branch = np.where(missing, self._splits.missing_to[node], branch)
        if self._splits.surrogates is not None:
            gone = np.flatnonzero(missing)
            branch[gone] = self._by_surrogates(
                data, row[gone], node[gone], branch[gone]
            )
        return branch

    def _by_surrogates(
        self, data: Columns, row: Ints, node: Ints, branch: Ints
    ) -> Ints:
        """Apply the surrogates in turn; a case that none can route keeps its branch."""
        surrogates, router = self._splits.surrogates, self._surrogates
        if surrogates is None or router is None:
            return branch
        first, last = surrogates.first[node], surrogates.first[node + 1]
        open_ = np.flatnonzero(first < last)
        turn = 0
        while len(open_):
            branch_to = router.branches(data, row[open_], first[open_] + turn)
            branch[open_] = np.where(branch_to == STOP, branch[open_], branch_to)
            turn += 1
            open_ = open_[(branch_to == STOP) & (first[open_] + turn < last[open_])]
        return branch

    def _find(self, node: Ints, code: Ints) -> Ints:
        if not len(self._key):
            return np.full(len(node), STOP, dtype=np.intp)
        # A code past the stride would be that of the next node.
        wanted = node * self._stride + np.minimum(code, self._stride - 1)
        position = np.minimum(np.searchsorted(self._key, wanted), len(self._key) - 1)
        found = (self._key[position] == wanted) & (code < self._stride)
        return np.where(found, self._branch[position], STOP)

    def every_branch(self, node: Ints) -> tuple[Ints, Ints, Floats]:
        """Send cases down every branch of their nodes, by weight.

        Returns of every fraction the case, the branch (over all nodes) and its share.
        """
        width = self._splits.n_branches[node]
        origin = np.repeat(np.arange(len(node)), width)
        offset = np.arange(len(origin)) - np.repeat(np.cumsum(width) - width, width)
        target = self.first_branch[node][origin] + offset
        size = self._splits.sizes[target]
        whole = np.add.reduceat(size, np.cumsum(width) - width)
        # Branches without any weight, as recounting may leave them, get no share.
        whole = whole[origin]
        share = np.divide(size, whole, out=np.zeros_like(size), where=whole > 0)
        return origin, target, share
