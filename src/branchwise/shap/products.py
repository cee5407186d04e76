"""The prediction of a tree as a sum of products, one factor for each column.

A case ends at a leaf, or at a node where it has to stop. The share of the case that
ends there is a product over the columns on the path: the factor of a column depends on
the cell of that column only. It is 1 or 0 where the case goes one way, a fraction where
it goes down every branch. Surrogates are tests of their own, one after the other, so
several paths may lead to a leaf.

This is what makes Shapley values exact in polynomial time (``shapley``), for branches
of any number and groups of values as for thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Column, Columns
from branchwise.threads import cached_property
from branchwise.tree.splits import EVERY_BRANCH, STOP, Router
from branchwise.tree.tree import Tree


@dataclass(frozen=True)
class Term:
    """A tree of a sum of trees: the values of its nodes, and the weight of the tree.

    ``values`` has a line for each node and a column for each output.
    """

    tree: Tree
    values: Floats
    weight: float = 1.0


@dataclass(frozen=True)
class Factors:
    """The factors of rows: distinct patterns, one column a factor, and whose they are.

    ``of_row`` is the pattern of each row.
    """

    patterns: Floats
    of_row: Ints

    @classmethod
    def ones(cls, n_rows: int) -> Factors:
        """Return the factors of rows before the root: none."""
        return cls(np.ones((1, 0)), np.zeros(n_rows, dtype=np.intp))

    def times(self, at: int, factor: Floats) -> Factors:
        """Multiply the factor at a position, or add it behind the last one."""
        patterns = self.patterns
        if at == patterns.shape[1]:
            patterns = np.column_stack([patterns, np.ones(len(patterns))])
        distinct, code = np.unique(factor, return_inverse=True)
        pair, of_row = np.unique(
            self.of_row * len(distinct) + code, return_inverse=True
        )
        patterns = patterns[pair // len(distinct)]
        patterns[:, at] *= distinct[pair % len(distinct)]
        # Patterns that differed in this column only may be the same now.
        patterns, merged = np.unique(patterns, axis=0, return_inverse=True)
        return Factors(patterns, merged.reshape(-1)[of_row.reshape(-1)])


@dataclass(frozen=True)
class Product:
    """A node where cases end, and the factors of two kinds of rows on one path to it.

    ``rows`` are the rows to explain; ``others`` are the background, or how the training
    cases went. A factor belongs to each of the ``columns``.
    """

    node: int
    columns: tuple[int, ...]
    rows: Factors
    others: Factors

    def times(self, column: int, rows: Floats, others: Floats) -> Product:
        """Follow a branch of a test of a column."""
        columns = self.columns
        if column not in columns:
            columns = (*columns, column)
        at = columns.index(column)
        return replace(
            self,
            columns=columns,
            rows=self.rows.times(at, rows),
            others=self.others.times(at, others),
        )

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """Which patterns of rows, with some of the others' cells, may end here."""
        either = (self.rows.patterns > 0)[:, np.newaxis] | (self.others.patterns > 0)
        pairs: NDArray[np.bool_] = np.logical_and.reduce(either, axis=2)
        possible: NDArray[np.bool_] = np.logical_or.reduce(pairs, axis=1)
        return possible


class Tests:
    """The tests of a tree, each of a single column.

    A test is a node and a turn: its split (0), or one of its surrogates (1, ...).
    Its outcomes are the branches of the node, the next surrogate, and stopping here.
    """

    def __init__(self, columns: Sequence[Column], tree: Tree) -> None:
        self._columns = columns
        self._tree = tree
        self._router = Router(columns, replace(tree.splits, surrogates=None))
        self._surrogates = tree.surrogates
        if tree.surrogates is not None:
            self._surrogate_router = Router(columns, tree.surrogates.splits)

    def column(self, node: int, turn: int) -> int:
        """Return the column of a test."""
        if turn == 0 or self._surrogates is None:
            return int(self._tree.column[node])
        return int(self._surrogates.splits.column[self._surrogate(node, turn)])

    def _surrogate(self, node: int, turn: int) -> int:
        return int(self._tree.surrogates.first[node]) + turn - 1  # type: ignore[union-attr]

    def _n_surrogates(self, node: int) -> int:
        return 0 if self._surrogates is None else int(self._surrogates.number[node])

    def training_shares(self, node: int) -> Floats:
        """Return which share of the training weight went which way, as one row.

        Where missing values stop, what is not in the branches stopped at the node.
        """
        tree = self._tree
        below = tree.weights[list(tree.children(node))].sum(axis=1)
        stopped = 0.0
        if tree.missing_to[node] == STOP:
            stopped = max(float(tree.weights[node].sum() - below.sum()), 0.0)
        weights = np.array([[*below, 0.0, stopped]])
        shares: Floats = weights / weights.sum()
        return shares

    def shares(self, data: Columns, node: int, turn: int) -> Floats:
        """Return which share of each row goes which way: a column for each outcome."""
        n_rows, n_children = data.n_rows, int(self._tree.n_children[node])
        rows, nodes = np.arange(n_rows), np.full(n_rows, node)
        onward = np.zeros(n_rows, dtype=bool)
        if turn:
            at = np.full(n_rows, self._surrogate(node, turn))
            branch = self._surrogate_router.branches(data, rows, at)
            onward = branch == STOP  # it does not know the value
        else:
            branch = self._router.branches(data, rows, nodes)
            if self._n_surrogates(node):
                onward = self._is_missing(data, node)
        if turn == self._n_surrogates(node):
            # The last one: the node says where missing values go.
            branch = np.where(onward & (turn > 0), self._tree.missing_to[node], branch)
            onward = np.zeros(n_rows, dtype=bool)
        outcome = np.where(branch == STOP, n_children + 1, branch)
        outcome = np.where(onward, n_children, outcome)
        shares = np.zeros((n_rows, n_children + 2))
        whole = np.flatnonzero(outcome != EVERY_BRANCH)
        shares[whole, outcome[whole]] = 1.0
        fractional = np.flatnonzero(outcome == EVERY_BRANCH)
        if len(fractional):
            _, _, share = self._router.every_branch(nodes[fractional[:1]])
            shares[fractional, :n_children] = share
        return shares

    def _is_missing(self, data: Columns, node: int) -> NDArray[np.bool_]:
        index = int(self._tree.column[node])
        cells, column = data.data[index], self._columns[index]
        missing: NDArray[np.bool_] = (
            np.isnan(cells) if column.is_numeric else cells == column.missing_code
        )
        return missing


def products(
    columns: Sequence[Column], tree: Tree, data: Columns, background: Columns | None
) -> Iterator[Product]:
    """Yield every node where cases may end, once for each path that leads to it.

    Without a background the others are one row: the shares of the training cases.
    """
    tests = Tests(columns, tree)
    n_others = 1 if background is None else background.n_rows
    root = Product(0, (), Factors.ones(data.n_rows), Factors.ones(n_others))
    stack = [(root, 0)]
    while stack:
        here, turn = stack.pop()
        node = here.node
        if tree.is_leaf[node]:
            yield here
            continue
        column = tests.column(node, turn)
        rows = tests.shares(data, node, turn)
        if background is None:
            others = tests.training_shares(node)
        else:
            others = tests.shares(background, node, turn)
        n_children = int(tree.n_children[node])
        for outcome in range(n_children + 2):
            if not rows[:, outcome].any() and not others[:, outcome].any():
                continue
            next_ = here.times(column, rows[:, outcome], others[:, outcome])
            if not next_.possible.any():
                continue
            if outcome < n_children:
                child = int(tree.first_child[node]) + outcome
                stack.append((replace(next_, node=child), 0))
            elif outcome == n_children:
                stack.append((next_, turn + 1))
            else:
                yield next_
