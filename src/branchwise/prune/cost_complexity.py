"""CART's pruning: a subtree must take away more risk than its leaves cost.

The weakest link is the node whose subtree takes away least risk for each leaf it
adds. Cutting it again and again gives nested trees, one of which is best for every
price of a leaf, ``alpha`` (Breiman, Friedman, Olshen and Stone, "CART", 1984,
section 3.3).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from branchwise.counts import Floats, Ints
from branchwise.criteria import CriterionFunction
from branchwise.prune.risk import leaf_risk, left_behind
from branchwise.prune.surgery import snipped, subtree_sums
from branchwise.tree import Tree

#: Prices this close, relative to the risk of the root, are one price.
_SAME_PRICE = 1e-12


@dataclass(frozen=True)
class PruningPath:
    """The nested trees of a pruning.

    ``alphas`` are the prices of a leaf from which on each tree is the best,
    ``risks`` the total risk of its leaves, ``n_leaves`` its size; ``step`` says for
    every node of the full tree with which of the trees it becomes a leaf (the number
    of trees for one that never does). ``cut_alphas`` and ``cut_risks`` go cut by cut,
    beginning with the full tree, where several nodes may be cut at one price.
    """

    alphas: Floats
    risks: Floats
    n_leaves: Ints
    step: Ints
    cut_alphas: Floats
    cut_risks: Floats

    def totals(self, tree: Tree, passing: Floats, stopping: Floats) -> Floats:
        """Add up for each of the trees what its nodes account for.

        A leaf accounts for ``passing``, all that comes by there, an inner node for
        ``stopping``, what comes no further.
        """
        n_trees = len(self.alphas)
        since = np.where(tree.is_leaf, 0, self.step)
        # From the root down: a node is there until one above it becomes a leaf.
        until = np.full(len(tree), n_trees)
        for start, stop in tree.levels():
            if start:
                parent = tree.parent[start:stop]
                until[start:stop] = np.minimum(until[parent], self.step[parent])
        inner = np.minimum(since, until)
        change = np.zeros(n_trees + 1)
        np.add.at(change, since, np.where(since < until, passing, 0.0))
        np.add.at(change, until, np.where(since < until, -passing, 0.0))
        change[0] += stopping[inner > 0].sum()
        np.add.at(change, inner, np.where(inner > 0, -stopping, 0.0))
        return np.cumsum(change)[:-1]


def pruning_path(tree: Tree, criterion: str | CriterionFunction) -> PruningPath:
    """Cut weakest links until the root is left."""
    links = _Links(tree, criterion)
    alphas, risks, sizes = [0.0], [], []
    cut_alphas, cut_risks = [0.0], [links.risk[0]]
    step = np.full(len(tree), -1, dtype=np.intp)
    while True:
        for node in links.weakest(alphas[-1]):
            step[node] = len(alphas) - 1
            links.cut(node)
            cut_alphas.append(alphas[-1])
            cut_risks.append(links.risk[0])
        risks.append(links.risk[0])
        sizes.append(links.leaves[0])
        if links.leaves[0] == 1:
            break
        alphas.append(links.next_price())
    step[step < 0] = len(alphas)
    return PruningPath(
        np.array(alphas),
        np.array(risks),
        np.array(sizes),
        step,
        np.array(cut_alphas),
        np.array(cut_risks),
    )


class _Links:
    """Subtrees with their risks and leaves, kept up to date while they are cut."""

    def __init__(self, tree: Tree, criterion: str | CriterionFunction) -> None:
        self.tree = tree
        self.own: list[float] = leaf_risk(tree, criterion).tolist()
        at_leaves = np.where(tree.is_leaf, self.own, left_behind(tree, criterion))
        self.risk: list[float] = subtree_sums(tree, at_leaves).tolist()
        self.leaves: list[int] = subtree_sums(
            tree, tree.is_leaf.astype(np.intp)
        ).tolist()
        self.parent: list[int] = tree.parent.tolist()
        self.gone = tree.is_leaf.tolist()
        self.slack = _SAME_PRICE * max(self.own[0], 1e-300)
        self.heap = [
            (self.price(n), n) for n in np.flatnonzero(tree.n_children).tolist()
        ]
        heapq.heapify(self.heap)

    def price(self, node: int) -> float:
        """Return the price of a leaf at which a subtree no longer pays."""
        gain, fewer = self.own[node] - self.risk[node], self.leaves[node] - 1
        if not fewer:
            # Below a single branch: cutting saves no leaf, and no price asks for it.
            return math.inf if gain > 0 else 0.0
        return max(gain, 0.0) / fewer

    def next_price(self) -> float:
        """Return the lowest price at which some subtree no longer pays."""
        self._forget()
        return self.heap[0][0]

    def weakest(self, alpha: float) -> Iterator[int]:
        """Yield the nodes whose subtrees do not pay at a price."""
        while True:
            self._forget()
            if not self.heap or self.heap[0][0] > alpha + self.slack:
                return
            yield heapq.heappop(self.heap)[1]

    def _forget(self) -> None:
        """Drop entries of nodes that are gone, or whose price has changed."""
        while self.heap:
            price, node = self.heap[0]
            if not self.gone[node] and price == self.price(node):
                return
            heapq.heappop(self.heap)

    def cut(self, node: int) -> None:
        """Make a leaf of a node; the subtrees above it pay less or more."""
        less = self.leaves[node] - 1
        more = self.own[node] - self.risk[node]
        stack = [node]
        while stack:
            below = stack.pop()
            self.gone[below] = True
            stack.extend(c for c in self.tree.children(below) if not self.gone[c])
        while node >= 0:
            self.leaves[node] -= less
            self.risk[node] += more
            if not self.gone[node]:
                heapq.heappush(self.heap, (self.price(node), node))
            node = self.parent[node]


def pruned(tree: Tree, alpha: float, criterion: str | CriterionFunction) -> Tree:
    """Return the best tree for a price of a leaf."""
    path = pruning_path(tree, criterion)
    return at_price(tree, path, alpha)


def at_price(tree: Tree, path: PruningPath, alpha: float) -> Tree:
    """Return the tree of a path that is best for a price."""
    last = int(np.searchsorted(path.alphas, alpha, side="right")) - 1
    return snipped(tree, (path.step <= last) & ~tree.is_leaf).tree
