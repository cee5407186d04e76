"""Stage 4: a split as data: the column, and which codes go down which branch.

A threshold, one branch per value and groups of values are one idea: a code leads
to a branch. A numeric column has two codes at a node, :data:`AT_MOST` and
:data:`ABOVE` its cut; a categorical column has those of its values. The
:class:`Router` is the one place where a row meets a split, in growth and in
prediction alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.counts import Floats, Ints, run_starts
from branchwise.missing import STOP
from branchwise.table.schema import Column, Columns

#: The codes of a number at a cut.
AT_MOST = 0
ABOVE = 1


@dataclass(frozen=True)
class Splits:
    """What the open nodes of one level do.

    Per node: the column (-1: no split), the cut (NaN: none), how many branches,
    and where missing and unseen values go. Per branch, node after node: how many
    codes lead to it (the branch of missing values has none), those codes, and the
    weight that is known to go there.
    """

    column: Ints
    cut: Floats
    n_branches: Ints
    missing_to: Ints
    unseen_to: Ints
    n_codes: Ints
    codes: Ints
    sizes: Floats


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

    def branches(self, data: Columns, row: Ints, node: Ints) -> Ints:
        """Return each row's branch at its node, or STOP or EVERY_BRANCH."""
        column = self._splits.column[node]
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
        return np.where(missing, self._splits.missing_to[node], branch)

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
        return origin, target, size / whole[origin]
