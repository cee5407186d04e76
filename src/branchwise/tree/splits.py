"""Stage 4: a split as data: the column, and which codes go down which branch.

A threshold, one branch per value and groups of values are one idea: a code leads
to a branch. A numeric column has two codes at a node, :data:`AT_MOST` and
:data:`ABOVE` its cut; a categorical column has those of its values. The
:class:`Router` is the one place where a row meets a split, in growth and in
prediction alike.

Where the value of its column is missing, a node may have surrogates: splits on other
columns that part the cases nearly as its own does, each tried where those before it
have no answer (Breiman et al., "CART", 1984, section 5.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats, Ints, run_starts
from branchwise.data.schema import Column, Columns
from branchwise.data.ties import first_best
from branchwise.errors import DataError
from branchwise.recipe import Policy
from branchwise.threads import cached_property

#: The case stops here and gets this node's answer.
STOP = -1
#: The case goes down every branch, by weight.
EVERY_BRANCH = -2


def routes(
    missing: Policy, unseen: Policy, sizes: Floats, starts: Ints, missing_branch: Ints
) -> tuple[Ints, Ints]:
    """Return ``missing_to`` and ``unseen_to`` for nodes that are split.

    ``sizes`` are the weights of all branches, node after node, a node's first at
    ``starts``; ``missing_branch`` is the branch of the missing values, be it their
    own or learnt, or STOP.
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


def refuse_missing(columns: Iterable[tuple[int, Column]], data: Columns) -> None:
    """Raise for the first missing cell, as the "error" policy asks."""
    for index, column in columns:
        cells = data.data[index]
        gone = np.isnan(cells) if column.is_numeric else cells == column.missing_code
        if gone.any():
            raise DataError(
                f"Column {column.name!r} is missing in row {int(np.argmax(gone))}, and "
                "missing='error' allows no missing values. Fill the gap or choose "
                "another policy: 'branch', 'split', 'largest' or 'node'."
            )


#: The codes of a number at a cut.
AT_MOST = 0
ABOVE = 1


@dataclass(frozen=True)
class Surrogates:
    """How many surrogates each node has; all of them, node after node, as splits.

    Those splits have two branches each, and values they know nothing of stop.
    """

    number: Ints
    splits: Splits

    @classmethod
    def of(
        cls, number: Ints, column: Ints, cut: Floats, n_codes: Ints, codes: Ints
    ) -> Surrogates:
        """Make surrogates of what tells them apart."""
        stop = np.full(len(column), STOP, dtype=np.intp)
        two = np.full(len(column), 2, dtype=np.intp)
        sizes = np.zeros(2 * len(column))
        return cls(number, Splits(column, cut, two, stop, stop, n_codes, codes, sizes))

    @classmethod
    def joined(cls, parts: Mapping[int, Surrogates], n_nodes: int) -> Surrogates:
        """Put parts together, each given by its first node; all others have none."""
        number = np.zeros(n_nodes, dtype=np.intp)
        for first, part in parts.items():
            number[first : first + len(part.number)] = part.number
        splits = [part.splits for part in parts.values()]
        return cls.of(
            number,
            np.concatenate([part.column for part in splits]),
            np.concatenate([part.cut for part in splits]),
            np.concatenate([part.n_codes for part in splits]),
            np.concatenate([part.codes for part in splits]),
        )

    @cached_property
    def first(self) -> Ints:
        """The first surrogate of each node, and one past the last of all."""
        return np.concatenate([[0], np.cumsum(self.number)]).astype(np.intp)

    def take(self, nodes: Ints) -> Surrogates:
        """Return the surrogates of other nodes: of these, -1 being one without."""
        number = np.where(nodes < 0, 0, self.number[nodes])
        chosen = ragged(self.first[nodes], number)
        sides = np.stack([2 * chosen, 2 * chosen + 1], axis=1).ravel()
        n_codes = self.splits.n_codes[sides]
        begin = (np.cumsum(self.splits.n_codes) - self.splits.n_codes)[sides]
        return Surrogates.of(
            number,
            self.splits.column[chosen],
            self.splits.cut[chosen],
            n_codes,
            self.splits.codes[ragged(begin, n_codes)],
        )


def ragged(begin: Ints, length: Ints) -> Ints:
    """Return the positions of runs, one after the other."""
    offset = begin - (np.cumsum(length) - length)
    positions: Ints = np.arange(int(length.sum())) + np.repeat(offset, length)
    return positions


@dataclass(frozen=True)
class Splits:
    """What the open nodes of one level do.

    Per node: the column (-1: no split), the cut (NaN: none), how many branches,
    and where missing and unseen values go. Per branch, node after node: how many
    codes lead to it (the branch of missing values has none), those codes, and the
    weight that is known to go there. And surrogates, if there are any.
    """

    column: Ints
    cut: Floats
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
        for part in np.split(order, starts[1:]):
            index = int(column[part[0]])
            branch[part] = self._at_column(index, data, row[part], node[part])
        return branch

    def _at_column(self, index: int, data: Columns, row: Ints, node: Ints) -> Ints:
        if index < 0:
            return np.full(len(row), STOP, dtype=np.intp)
        cells = data.data[index][row]
        column = self._columns[index]
        if column.is_numeric:
            missing = np.isnan(cells)
            with np.errstate(invalid="ignore"):
                above = cells > self._splits.cut[node]
            branch = self._find(node, np.where(above, ABOVE, AT_MOST))
        else:
            missing = cells == column.missing_code
            branch = self._find(node, cells.astype(np.intp))
            unseen = cells == column.unseen_code
            branch = np.where(unseen, self._splits.unseen_to[node], branch)
        branch = np.where(missing, self._splits.missing_to[node], branch)
        if self._splits.surrogates is not None:
            gone = np.flatnonzero(missing)
            branch[gone] = self._stand_in(data, row[gone], node[gone], branch[gone])
        return branch

    def _stand_in(self, data: Columns, row: Ints, node: Ints, branch: Ints) -> Ints:
        """Ask the surrogates in turn; a case that none knows keeps its branch."""
        surrogates, router = self._splits.surrogates, self._surrogates
        if surrogates is None or router is None:
            return branch
        first, last = surrogates.first[node], surrogates.first[node + 1]
        open_ = np.flatnonzero(first < last)
        turn = 0
        while len(open_):
            answer = router.branches(data, row[open_], first[open_] + turn)
            branch[open_] = np.where(answer == STOP, branch[open_], answer)
            turn += 1
            open_ = open_[(answer == STOP) & (first[open_] + turn < last[open_])]
        return branch

    def _find(self, node: Ints, code: Ints) -> Ints:
        if not len(self._key):
            return np.full(len(node), STOP, dtype=np.intp)
        # A code past the stride would be taken for one of the next node.
        wanted = node * self._stride + np.minimum(code, self._stride - 1)
        position = np.minimum(np.searchsorted(self._key, wanted), len(self._key) - 1)
        found = (self._key[position] == wanted) & (code < self._stride)
        return np.where(found, self._branch[position], STOP)

    def every_branch(self, node: Ints) -> tuple[Ints, Ints, Floats]:
        """Take cases down every branch of their nodes, by weight.

        Returns for every part which case it is of, the branch (numbered over all
        nodes) and its share of the case.
        """
        width = self._splits.n_branches[node]
        origin = np.repeat(np.arange(len(node)), width)
        offset = np.arange(len(origin)) - np.repeat(np.cumsum(width) - width, width)
        target = self.first_branch[node][origin] + offset
        size = self._splits.sizes[target]
        whole = np.add.reduceat(size, np.cumsum(width) - width)
        # Branches that all weigh nothing, as recounting may leave them, share nothing.
        whole = whole[origin]
        share = np.divide(size, whole, out=np.zeros_like(size), where=whole > 0)
        return origin, target, share
