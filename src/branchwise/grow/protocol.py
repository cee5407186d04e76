"""Protocols between growing and counting, and recounting of rows down given splits.

Subtree raising needs a subtree with other cases in it. The splits stay; the weights
of branches, and so the fractions of a case with a missing value, are counted again.
Where a node has one branch per value, a value that had no case there before gets a
branch, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, distinct, run_starts, selected
from branchwise.data.table_schema import Column
from branchwise.data.target import Scale
from branchwise.grow.counts import Counts
from branchwise.tree.splits import ABOVE, AT_MOST, STOP, Splits, Surrogates, ragged
from branchwise.tree.tree import Tree


class CountSource(Protocol):
    """Adds up the counts of the open nodes."""

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column; a code is a position."""

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""


@dataclass(frozen=True)
class Level:
    """The open nodes of one level: their class weights and numbers of cases."""

    weights: Floats
    cases: Floats

    def __len__(self) -> int:
        return len(self.cases)


class BranchSource(CountSource, Protocol):
    """Adds up counts by the branch that rows take, too."""

    def branch_counts(self, splits: Splits) -> Iterator[Counts]:
        """Count every column in turn by the branch of the open nodes that rows take,
        in place of their class. Rows whose own value leads to no branch are left out.
        """  # noqa: D205


class Engine(BranchSource, Protocol):
    """Holds rows, counts them by open node, and moves them down splits.

    Open nodes are numbered from 0 within a level. An engine returns weights on the
    exact grid of ``data/weights.py``, so that all engines grow the same tree.
    """

    #: Whether all weights are whole numbers.
    whole: bool
    #: How numbers to be predicted are counted; None where classes are.
    scale: Scale | None

    def totals(self) -> Level:
        """Restart with all rows in the root; return its weights and cases."""

    def advance(self, splits: Splits) -> Level:
        """Move the rows of the open nodes down their branches, which become the
        open nodes; return their class weights and cases.
        """  # noqa: D205

    def retain(self, nodes: Ints) -> None:
        """Keep only some open nodes, renumbered in that order; drop the rest."""

    def class_cases(self, tree: Tree) -> Floats:
        """Count the cases of each class down a finished tree, whatever they weigh."""


class Levels:
    """The arrays of the tree, level by level."""

    def __init__(self, n_roots: int) -> None:
        self.n_nodes = 0
        self._levels: list[dict[str, NDArray[Any]]] = []
        # No codes lead to the root; the codes of a level are added with its parents.
        self._n_codes = np.zeros(n_roots, dtype=np.intp)
        self._codes = np.empty(0, dtype=np.intp)
        #: By the first node of a level.
        self._surrogates: dict[int, Surrogates] = {}

    def add(self, level: Level, open_nodes: Ints, splits: Splits | None) -> None:
        """Record a level, and the codes that lead to the next one."""
        n = len(level)
        piece = {
            "column": np.full(n, -1, dtype=np.intp),
            "threshold": np.full(n, np.nan),
            "n_children": np.zeros(n, dtype=np.intp),
            "missing_to": np.full(n, STOP, dtype=np.intp),
            "unseen_to": np.full(n, STOP, dtype=np.intp),
            "n_codes": self._n_codes,
            "codes": self._codes,
            "weights": level.weights,
            "cases": level.cases,
        }
        if splits is not None:
            piece["column"][open_nodes] = splits.column
            piece["threshold"][open_nodes] = splits.threshold
            piece["n_children"][open_nodes] = splits.n_branches
            piece["missing_to"][open_nodes] = splits.missing_to
            piece["unseen_to"][open_nodes] = splits.unseen_to
            self._n_codes = splits.n_codes
            self._codes = splits.codes
        self._levels.append(piece)
        if splits is not None and splits.surrogates is not None:
            among = np.full(n, -1, dtype=np.intp)
            among[open_nodes] = np.arange(len(open_nodes))
            self._surrogates[self.n_nodes] = splits.surrogates.take(among)
        self.n_nodes += n

    @property
    def n_next(self) -> int:
        """How many nodes the next level has."""
        return len(self._n_codes)

    def tree(self) -> Tree:
        """Join the levels."""
        tree = Tree(
            **{
                name: np.concatenate([piece[name] for piece in self._levels])
                for name in self._levels[0]
            }
        )
        if not self._surrogates:
            return tree
        return tree.with_surrogates(Surrogates.joined(self._surrogates, self.n_nodes))


def prescribed_splits(
    source: CountSource,
    columns: Sequence[Column],
    tree: Tree,
    nodes: Ints,
    new_values: bool,
) -> tuple[Splits, Ints]:
    """Return the splits of open nodes that are these nodes of the tree, recounted.

    Also returns the children of the branches, -1 for those of values that are new
    there.
    """
    old = _Branches.of(tree, nodes)
    new = []
    size = np.zeros(len(old.node))
    for index in distinct(tree.column[nodes]).tolist():
        open_nodes = np.flatnonzero(tree.column[nodes] == index)
        met = _met(source, columns[index], index, tree, nodes, open_nodes)
        branch = old.find(met)
        np.add.at(size, branch[branch >= 0], met.weight[branch >= 0])
        unseen = (branch < 0) & (met.code >= 0)
        if new_values and unseen.any():
            new.append(selected(met, unseen))
    return _assembled(tree, nodes, old, size, new)


def finished_splits(tree: Tree, nodes: Ints) -> tuple[Splits, Ints]:
    """Return the splits of nodes of a finished tree, like :func:`prescribed_splits`.

    Nothing is recounted: a case is divided as in prediction.
    """
    old = _Branches.of(tree, nodes)
    return _assembled(tree, nodes, old, tree.weights[old.child].sum(axis=1), [])


@dataclass(frozen=True)
class _Met:
    """The weight of each code at each open node; -1 is the code of missing values."""

    node: Ints
    code: Ints
    weight: Floats


def _met(
    source: CountSource,
    column: Column,
    index: int,
    tree: Tree,
    nodes: Ints,
    open_nodes: Ints,
) -> _Met:
    threshold = tree.threshold[nodes]
    counts = source.counts(index, open_nodes)
    missing = counts.code == source.missing_code(index)
    code = counts.code
    if column.is_numeric:
        numbers = np.append(source.values(index), np.nan)
        with np.errstate(invalid="ignore"):
            above = numbers[code] > threshold[counts.node]
        code = np.where(above, ABOVE, AT_MOST)
    code = np.where(missing, -1, code)
    starts = run_starts(counts.node, code)
    # Of numbers to predict the first of three moments is the weight.
    whole = counts.weights[:, :1] if tree.is_regression else counts.weights
    weight = np.add.reduceat(whole.sum(axis=1), starts)
    return _Met(counts.node[starts], code[starts], weight)


@dataclass(frozen=True)
class _Branches:
    """The branches of the open nodes: the child, and the codes that lead there."""

    node: Ints
    child: Ints
    n_codes: Ints
    codes: Ints
    first_code: Ints

    @classmethod
    def of(cls, tree: Tree, nodes: Ints) -> _Branches:
        width = tree.n_children[nodes]
        node = np.repeat(np.arange(len(nodes)), width)
        child = ragged(tree.first_child[nodes], width)
        n_codes = tree.n_codes[child]
        codes = tree.codes[ragged(tree.code_starts[child], n_codes)]
        first = np.full(len(child), np.iinfo(np.intp).max)
        np.minimum.at(first, np.repeat(np.arange(len(child)), n_codes), codes)
        return cls(node, child, n_codes, codes, first)

    def find(self, met: _Met) -> Ints:
        """Return the branch that each code of a node leads to, or -1."""
        stride = int(max(self.codes.max(initial=0), met.code.max(initial=0))) + 2
        owner = np.repeat(np.arange(len(self.node)), self.n_codes)
        # Missing values lead to a branch without codes, if the node has one.
        alone = np.flatnonzero(self.n_codes == 0)
        key = np.concatenate(
            [self.node[owner] * stride + self.codes + 1, self.node[alone] * stride]
        )
        branch = np.concatenate([owner, alone])
        order = np.argsort(key)
        wanted = met.node * stride + met.code + 1
        at = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
        return np.where(key[order][at] == wanted, branch[order][at], -1)


def _assembled(
    tree: Tree, nodes: Ints, old: _Branches, size: Floats, new: Sequence[_Met]
) -> tuple[Splits, Ints]:
    """Put old and new branches in the order of their nodes and first codes."""
    node = np.concatenate([old.node, *(met.node for met in new)])
    first = np.concatenate([old.first_code, *(met.code for met in new)])
    fresh = len(node) - len(old.node)
    child = np.concatenate([old.child, np.full(fresh, -1, dtype=np.intp)])
    n_codes = np.concatenate([old.n_codes, np.ones(fresh, dtype=np.intp)])
    sizes = np.concatenate([size, *(met.weight for met in new)])
    codes = np.concatenate([old.codes, *(met.code for met in new)])
    order = np.lexsort((first, node))
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    code_order = np.argsort(np.repeat(rank, n_codes), kind="stable")
    n_branches = np.bincount(node, minlength=len(nodes))
    first_branch = np.cumsum(n_branches) - n_branches

    def moved(route: Ints) -> Ints:
        """Return routes with the new numbers of branches."""
        at = np.flatnonzero(route >= 0)
        position = np.searchsorted(old.child, tree.first_child[nodes[at]] + route[at])
        result = route.copy()
        result[at] = rank[position] - first_branch[at]
        return result

    splits = Splits(
        tree.column[nodes],
        tree.threshold[nodes],
        n_branches,
        moved(tree.missing_to[nodes]),
        moved(tree.unseen_to[nodes]),
        n_codes[order],
        codes[code_order],
        sizes[order],
        None if tree.surrogates is None else tree.surrogates.take(nodes),
    )
    return splits, child[order]


def class_cases(
    engine: Engine, cases_by_class: Callable[[], Floats], tree: Tree
) -> Floats:
    """Count the cases of each class down a finished tree, level by level."""
    result = np.zeros_like(tree.weights)
    nodes = np.zeros(1, dtype=np.intp)
    engine.totals()
    while True:
        result[nodes] = cases_by_class()
        open_nodes = np.flatnonzero(tree.n_children[nodes] > 0)
        engine.retain(open_nodes)
        if not len(open_nodes):
            return result
        splits, nodes = finished_splits(tree, nodes[open_nodes])
        engine.advance(splits)
