"""CART's pruning: a subtree must take away more risk than its leaves cost.

The weakest link is the node whose subtree takes away least risk for each leaf it
adds. Cutting it again and again gives nested trees, one of which is best for every
price of a leaf, ``alpha`` (Breiman, Friedman, Olshen and Stone, "CART", 1984,
section 3.3).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.recipe import CriterionFunction
from branchwise.tree.edit import snipped, stopped_weights
from branchwise.tree.tree import Tree


def leaf_risk(tree: Tree, criterion: str | CriterionFunction) -> Floats:
    """Return the impurity of every node times its share of the training weight.

    Classes have the Gini impurity where the tree was grown by it, else entropy in
    bits; numbers have their variance, or half their Poisson deviance less what is the
    same for every tree.
    """
    weight = tree.weights.sum(axis=1)
    risk: Floats = weight / weight[0] * impurity(tree, criterion)
    return risk


def impurity(tree: Tree, criterion: str | CriterionFunction) -> Floats:
    """Return the impurity of every node."""
    if tree.mean is None or tree.deviation is None:
        return class_impurity(tree.weights, criterion)
    if criterion != "poisson":
        return tree.deviation**2
    # Sums of y log y are not kept, but leaves have the same one in every tree.
    rate = np.where(tree.mean > 0, tree.mean, 1.0)
    deviance: Floats = np.maximum(tree.mean, 0.0) * np.log(tree.mean.max() / rate)
    return deviance


def class_impurity(weights: Floats, criterion: str | CriterionFunction) -> Floats:
    """Return the Gini impurity, or else the entropy, of rows of class weights."""
    total = weights.sum(axis=1, keepdims=True)
    share = weights / np.where(total > 0, total, 1.0)
    if criterion == "gini":
        gini: Floats = 1.0 - (share * share).sum(axis=1)
        return gini
    logs = np.log2(np.where(share > 0, share, 1.0))
    entropy: Floats = -(share * logs).sum(axis=1)
    return entropy + 0.0


def left_behind(tree: Tree, criterion: str | CriterionFunction) -> Floats:
    """Return the risk of the cases that stop at inner nodes."""
    stopped = stopped_weights(tree)
    weight = stopped.sum(axis=1) / tree.weights[0].sum()
    if tree.predicts_numbers:
        # What they are alone is not known; that they are like the node is a guess.
        return np.where(tree.is_leaf, 0.0, weight * impurity(tree, criterion))
    return np.where(tree.is_leaf, 0.0, weight * class_impurity(stopped, criterion))


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
    risk, leaves = links.full_risk[0], links.full_leaves[0]
    same_price = _SAME_PRICE * max(links.own[0] / links.unit, 1e-300)
    alphas, risks, sizes = [0.0], [risk / links.unit], [leaves]
    cut_alphas, cut_risks = alphas.copy(), risks.copy()
    step = np.full(len(tree), -1, dtype=np.intp)
    for (price, _), node in links.cuts():
        if price > alphas[-1] + same_price:
            alphas.append(price)
            risks.append(risks[-1])
            sizes.append(sizes[-1])
        risk += links.gain[node]
        leaves -= links.fewer[node]
        risks[-1], sizes[-1] = risk / links.unit, leaves
        step[node] = len(alphas) - 1
        cut_alphas.append(alphas[-1])
        cut_risks.append(risks[-1])
    step[step < 0] = len(alphas)
    return PruningPath(
        np.array(alphas),
        np.array(risks),
        np.array(sizes),
        step,
        np.array(cut_alphas),
        np.array(cut_risks),
    )


#: A price, rounded and exact: the second is looked at where the first is the same.
_Price = tuple[float, Fraction]
#: The nodes below one that become leaves, as a heap: the highest price, negated, first.
_Corners = list[tuple[_Price, int]]


_NEVER: _Price = (math.inf, Fraction(0))


class _Links:
    """The prices at which subtrees no longer pay, found from the leaves up.

    The least cost of a subtree (its risk, and the price of its leaves) is a concave
    function of the price, made of straight lines. A node lies at each of its corners:
    it becomes a leaf there. The function of a node is the sum of its children's up to
    the price at which the node as a leaf costs no more; from there on it is the cost
    of that leaf. So a node drops the corners above its own price and adds itself: each
    corner is added once and dropped at most once, however deep the tree.

    Risks are whole multiples of ``1 / unit``: their sums are exact in any order, prices
    are compared exactly and rounded once. ``gain`` and ``fewer`` say what cutting a
    node adds to the risk, and how many leaves it saves, when all corners below its
    price are cut.
    """

    def __init__(self, tree: Tree, criterion: str | CriterionFunction) -> None:
        own = leaf_risk(tree, criterion)
        at_leaves = np.where(tree.is_leaf, own, left_behind(tree, criterion))
        whole, self.unit = _whole_numbers(np.concatenate([own, at_leaves]))
        self.own, self.at_leaves = whole[: len(tree)], whole[len(tree) :]
        self.parent: list[int] = tree.parent.tolist()
        self.is_leaf: list[bool] = tree.is_leaf.tolist()
        self.full_risk = self.at_leaves.copy()
        self.full_leaves = [int(leaf) for leaf in self.is_leaf]
        for node in range(len(tree) - 1, 0, -1):
            self.full_risk[self.parent[node]] += self.full_risk[node]
            self.full_leaves[self.parent[node]] += self.full_leaves[node]
        self.gain = [0] * len(tree)
        self.fewer = [0] * len(tree)

    def cuts(self) -> _Corners:
        """Return the prices of the nodes that become leaves, and these, in order."""
        useless, below = self._useless()
        # The risk and the leaves of each node when all corners below it are cut.
        risk = self.at_leaves.copy()
        leaves = [int(leaf) for leaf in self.is_leaf]
        corners: list[_Corners] = [[] for _ in risk]
        for node in range(len(risk) - 1, -1, -1):
            if below[node]:
                continue
            if useless[node]:
                gain = self.own[node] - self.full_risk[node]
                fewer = self.full_leaves[node] - 1
            else:
                gain, fewer = self.own[node] - risk[node], leaves[node] - 1
                gain, fewer = self._dropped(gain, fewer, corners[node])
            price = self._price(gain, fewer)
            if price < _NEVER and not self.is_leaf[node]:
                heapq.heappush(corners[node], (_negated(price), node))
                self.gain[node], self.fewer[node] = gain, fewer
                risk[node], leaves[node] = self.own[node], 1
            if node:
                above = self.parent[node]
                risk[above] += risk[node]
                leaves[above] += leaves[node]
                corners[above] = _joined(corners[above], corners[node])
                corners[node] = []
        return sorted((_negated(price), node) for price, node in corners[0])

    def _useless(self) -> tuple[list[bool], list[bool]]:
        """Tell which subtrees pay at no price, and which nodes are below such ones.

        Those nearest to the root are cut before all others.
        """
        useless = [False] * len(self.own)
        below = [False] * len(self.own)
        for node, leaf in enumerate(self.is_leaf):
            if node:
                above = self.parent[node]
                below[node] = below[above] or useless[above]
            if not leaf and not below[node]:
                gain = self.own[node] - self.full_risk[node]
                useless[node] = gain <= 0
        return useless, below

    def _price(self, gain: int, fewer: int) -> _Price:
        """Return the price of a leaf at which a subtree no longer pays."""
        if gain <= 0:
            return 0.0, Fraction(0)
        # Below a single branch: cutting saves no leaf, and no price asks for it.
        return (gain / (fewer * self.unit), Fraction(gain, fewer)) if fewer else _NEVER

    def _dropped(self, gain: int, fewer: int, corners: _Corners) -> tuple[int, int]:
        """Drop the corners that a node does not live to see; of equals it goes first.

        Its gain and its leaves are then those above what is left of the corners.
        """
        while corners and self._price(gain, fewer) <= _negated(corners[0][0]):
            node = heapq.heappop(corners)[1]
            gain += self.gain[node]
            fewer += self.fewer[node]
        return gain, fewer


def _negated(price: _Price) -> _Price:
    return -price[0], -price[1]


def _joined(some: _Corners, others: _Corners) -> _Corners:
    """Move the corners of the smaller heap into the larger one."""
    if len(some) < len(others):
        some, others = others, some
    for corner in others:
        heapq.heappush(some, corner)
    return some


def _whole_numbers(values: Floats) -> tuple[list[int], int]:
    """Return numbers as whole multiples of one over a common unit, exactly."""
    mantissa, exponent = np.frexp(values)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    shift = exponent.astype(np.int64) - 53
    lowest = min(int(shift[digits != 0].min(initial=0)), 0)
    shifts = np.where(digits != 0, shift - lowest, 0)
    whole = [d << s for d, s in zip(digits.tolist(), shifts.tolist(), strict=True)]
    return whole, 1 << -lowest


def pruned(tree: Tree, alpha: float, criterion: str | CriterionFunction) -> Tree:
    """Return the best tree for a price of a leaf."""
    path = pruning_path(tree, criterion)
    return at_price(tree, path, alpha)


def at_price(tree: Tree, path: PruningPath, alpha: float) -> Tree:
    """Return the tree of a path that is best for a price."""
    last = int(np.searchsorted(path.alphas, alpha, side="right")) - 1
    return snipped(tree, (path.step <= last) & ~tree.is_leaf).tree
