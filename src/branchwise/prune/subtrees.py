"""Pruning without rows: cost-complexity pruning, limits of leaves, merging of leaves.

Cost-complexity pruning (CART): the weakest link is the node whose subtree reduces the
risk least for each leaf it adds. Pruning it repeatedly gives nested trees, one of which
is best for every complexity parameter ``alpha`` (Breiman, Friedman, Olshen and Stone,
"CART", 1984, section 3.3). :func:`limited` returns a tree with at most so many leaves,
:func:`merged` a smaller one with the same predictions, and :func:`by_validation` the
one with the fewest errors on validation rows, which the caller has counted.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.arrays import TIE, Floats, Ints, run_starts
from branchwise.prune.risk import Measure, leaf_risk, left_behind
from branchwise.recipe.parameters import CriterionFunction
from branchwise.tree.tree import Mask, Tree, add_to_parents, with_collapsed

#: Alphas this close, relative to the risk of the root, are equal.
_SAME_ALPHA = 1e-12


@dataclass(frozen=True)
class PruningPath:
    """The nested trees of a pruning.

    ``alphas`` are the least complexity parameters for which each tree is the best,
    ``risks`` the total risk of its leaves. ``step`` says for every node of the full
    tree with which of the trees it becomes a leaf (the number of trees: never). The
    ``pruned`` arrays have an entry for every pruned node, as several nodes may share an
    alpha.
    """

    alphas: Floats
    risks: Floats
    n_leaves: Ints
    step: Ints
    pruned_alphas: Floats
    pruned_risks: Floats

    def totals(self, tree: Tree, passing: Floats, stopping: Floats) -> Floats:
        """Add up for each of the trees what its nodes account for.

        A leaf accounts for ``passing``, the amount of all its rows, an inner node for
        ``stopping``, that of the rows that stop there.
        """
        n_trees = len(self.alphas)
        since = np.where(tree.is_leaf, 0, self.step)
        # From the root down: a node exists until one above it becomes a leaf.
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


def pruning_path(tree: Tree, measure: Measure) -> PruningPath:
    """Prune weakest links until only the root is left."""
    links = _Links(tree, measure)
    risk, leaves = links.full_risk[0], links.full_leaves[0]
    same_cost = _SAME_ALPHA * max(links.own[0] / links.unit, 1e-300)
    alphas, risks, sizes = [0.0], [risk / links.unit], [leaves]
    pruned_alphas, pruned_risks = alphas.copy(), risks.copy()
    step = np.full(len(tree), -1, dtype=np.intp)
    for link_alpha, node in links.pruned_nodes():
        if link_alpha > alphas[-1] + same_cost:
            alphas.append(link_alpha)
            risks.append(risks[-1])
            sizes.append(sizes[-1])
        risk += links.gain[node]
        leaves -= links.fewer[node]
        risks[-1], sizes[-1] = risk / links.unit, leaves
        step[node] = len(alphas) - 1
        pruned_alphas.append(alphas[-1])
        pruned_risks.append(risks[-1])
    step[step < 0] = len(alphas)
    return PruningPath(
        np.array(alphas),
        np.array(risks),
        np.array(sizes),
        step,
        np.array(pruned_alphas),
        np.array(pruned_risks),
    )


#: Nodes below one that become leaves, as a heap: the highest alpha, negated, first.
_Corners = list[tuple[float, int]]


class _Links:
    """The alphas at which nodes become leaves, computed from the leaves up.

    The least cost of a subtree (its risk plus alpha for each of its leaves) is a
    concave, piecewise linear function of alpha. At each of its corners a node becomes a
    leaf. The function of a node is the sum of those of its children up to the alpha at
    which the node as a leaf costs no more; from there on it is the cost of that leaf.
    So a node drops the corners above its own alpha and adds itself: each corner is
    added once and dropped at most once, however deep the tree.

    Risks are whole multiples of ``1 / unit``: their sums are exact in any order, alphas
    are compared exactly and rounded once. ``gain`` and ``fewer`` are the risk that
    pruning a node adds, and the leaves it saves, when all corners below its alpha are
    pruned. Alphas are compared as whole numbers: shifted by so many bits that two
    fractions of at most so many leaves are equal, or at least 1 apart.
    """

    def __init__(self, tree: Tree, measure: Measure) -> None:
        own = leaf_risk(tree, measure)
        at_leaves = np.where(tree.is_leaf, own, left_behind(tree, measure))
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
        self.shift = 2 * self.full_leaves[0].bit_length()

    def pruned_nodes(self) -> list[tuple[float, int]]:
        """Return the alphas of the nodes that become leaves, and these, in order."""
        useless, below = self._useless()
        # The risk and the leaves of each node when all corners below it are pruned.
        risk = self.at_leaves.copy()
        leaves = [int(leaf) for leaf in self.is_leaf]
        corners: dict[int, _Corners] = {}
        for node in range(len(risk) - 1, -1, -1):
            if below[node]:
                continue
            if not self.is_leaf[node]:
                here = corners.setdefault(node, [])
                if useless[node]:
                    gain = self.own[node] - self.full_risk[node]
                    fewer = self.full_leaves[node] - 1
                else:
                    gain, fewer = self.own[node] - risk[node], leaves[node] - 1
                    gain, fewer = self._dropped(gain, fewer, here)
                link_alpha = self._alpha(gain, fewer)
                if link_alpha < math.inf:
                    heapq.heappush(here, (-link_alpha, node))
                    self.gain[node], self.fewer[node] = gain, fewer
                    risk[node], leaves[node] = self.own[node], 1
            if node:
                above = self.parent[node]
                risk[above] += risk[node]
                leaves[above] += leaves[node]
                if node in corners:
                    below_it = corners.pop(node)
                    corners[above] = _joined(corners.get(above, []), below_it)
        ordered = sorted((-alpha, node) for alpha, node in corners.get(0, []))
        return [(self._rounded(node), node) for _, node in ordered]

    def _useless(self) -> tuple[list[bool], list[bool]]:
        """Tell which subtrees are useless at any alpha, and which nodes are below them.

        Those nearest to the root are pruned before all others.
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

    def _alpha(self, gain: int, fewer: int) -> float:
        """Return the alpha at which a node becomes a leaf, as it is compared."""
        if gain <= 0:
            return 0
        # A single branch: pruning saves no leaf, and no alpha requires it.
        return (gain << self.shift) // fewer if fewer else math.inf

    def _rounded(self, node: int) -> float:
        """Return the alpha of a node that becomes a leaf."""
        gain = self.gain[node]
        return gain / (self.fewer[node] * self.unit) if gain > 0 else 0.0

    def _dropped(self, gain: int, fewer: int, corners: _Corners) -> tuple[int, int]:
        """Drop the corners above the alpha of a node, which is the first of equals.

        Returns its gain and its leaves relative to the remaining corners.
        """
        while corners and self._alpha(gain, fewer) <= -corners[0][0]:
            node = heapq.heappop(corners)[1]
            gain += self.gain[node]
            fewer += self.fewer[node]
        return gain, fewer


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


def pruned(tree: Tree, alpha: float, measure: Measure) -> Tree:
    """Return the best tree for a complexity parameter."""
    path = pruning_path(tree, measure)
    return at_alpha(tree, path, alpha)


def at_alpha(tree: Tree, path: PruningPath, alpha: float) -> Tree:
    """Return the best tree of a path for a complexity parameter."""
    last = int(np.searchsorted(path.alphas, alpha, side="right")) - 1
    return with_collapsed(tree, (path.step <= last) & ~tree.is_leaf).tree


#: Probabilities this close are equal.
_SAME_PROBABILITY = 1e-12

#: Turns class weights into probabilities, for cases in the place of nodes of a tree.
ProbabilityFunction = Callable[[Tree, Floats, Ints], Floats]
#: Turns them into predicted classes.
Predicted = Callable[[Tree, Floats, Ints], Ints]


def merged(
    tree: Tree,
    probabilities: ProbabilityFunction | None,
    predicted: Predicted | None = None,
) -> Tree:
    """Merge leaves with the same prediction.

    With ``probabilities`` nodes are equal if all classes have the same probabilities,
    alone and merged; without, if they predict the same class. Leaves are not merged
    where ``predicted`` differs for the merged leaf. Regression compares means.
    """
    keys = _prediction_keys(tree, probabilities)
    tree = with_collapsed(tree, _superfluous(tree, keys)).tree
    keys = _prediction_keys(tree, probabilities)
    return _with_leaders(tree, _leaders(tree, keys, probabilities, predicted))


def _prediction_keys(tree: Tree, probabilities: ProbabilityFunction | None) -> Floats:
    """Return rows that are equal where nodes have equal predictions."""
    if tree.mean is not None:
        return tree.mean[:, np.newaxis]
    if probabilities is None:
        return tree.label[:, np.newaxis].astype(np.float64)
    every = np.arange(len(tree))
    return np.column_stack([tree.label, probabilities(tree, tree.weights, every)])


def _same(keys: Floats, first: Ints, second: Ints) -> Mask:
    a, b = keys[first], keys[second]
    close = np.abs(a - b) <= _SAME_PROBABILITY * np.maximum(np.abs(a), np.abs(b))
    same: Mask = np.logical_and.reduce(close, axis=1)
    return same


def _superfluous(tree: Tree, keys: Floats) -> Mask:
    """Find the nodes whose subtrees have the same prediction everywhere."""
    parent = tree.parent
    agrees = np.ones(len(tree), dtype=bool)
    agrees[1:] = _same(keys, np.arange(1, len(tree)), parent[1:])
    single = np.ones(len(tree), dtype=bool)
    for start, stop in reversed(list(tree.levels())):
        if start:
            fails = np.arange(start, stop)[~(agrees & single)[start:stop]]
            single[parent[fails]] = False
    return single & ~tree.is_leaf


def _leaders(
    tree: Tree,
    keys: Floats,
    probabilities: ProbabilityFunction | None,
    predicted: Predicted | None,
) -> Ints:
    """Return for every node the sibling that it is merged with, or itself."""
    leader = np.arange(len(tree), dtype=np.intp)
    able = np.flatnonzero(tree.is_leaf & (tree.n_codes > 0))
    if not len(able):
        return leader
    # Equal rows are sorted next to each other; the first is the leader.
    order = able[np.lexsort((able, *keys[able].T, tree.parent[able]))]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (tree.parent[order[1:]] != tree.parent[order[:-1]]) | ~_same(
        keys, order[1:], order[:-1]
    )
    starts = np.flatnonzero(new)
    first = np.minimum.reduceat(order, starts)
    width = np.diff(starts, append=len(order))
    leader[order] = np.repeat(first, width)
    together = np.add.reduceat(tree.weights[order], starts, axis=0)
    change = np.zeros(len(starts), dtype=bool)
    if probabilities is not None and tree.mean is None:
        joined = probabilities(tree, together, first)
        differs = np.abs(np.repeat(joined, width, axis=0) - keys[order, 1:])
        change = np.maximum.reduceat(differs.max(axis=1), starts) > _SAME_PROBABILITY
    if predicted is not None and tree.mean is None:
        change |= predicted(tree, together, first) != tree.label[first]
    apart = order[np.repeat(change, width)]
    leader[apart] = apart
    return _at_least_two(tree, leader)


def _at_least_two(tree: Tree, leader: Ints) -> Ints:
    """Exclude nodes that would keep a single branch."""
    leads = leader == np.arange(len(tree))
    branches = np.bincount(tree.parent[1:][leads[1:]], minlength=len(tree))
    alone = np.flatnonzero(branches[tree.parent] == 1)
    result = leader.copy()
    result[alone] = alone
    return result


def _with_leaders(tree: Tree, leader: Ints) -> Tree:
    """Merge leaves with their leaders."""
    order = np.argsort(leader, kind="stable")
    starts = run_starts(leader[order])
    kept = leader[order[starts]]
    if len(kept) == len(tree):
        return tree
    code_owner = np.repeat(leader, tree.n_codes)
    code_order = np.lexsort((tree.codes, code_owner))
    n_codes = np.bincount(code_owner, minlength=len(tree))[kept]
    gone = leader != np.arange(len(tree))
    n_children = tree.n_children - np.bincount(tree.parent[gone], minlength=len(tree))
    joined = replace(
        tree,
        column=tree.column[kept],
        threshold=_thresholds(tree, leader)[kept],
        n_children=n_children[kept],
        missing_to=_moved(tree, tree.missing_to, leader)[kept],
        unseen_to=_moved(tree, tree.unseen_to, leader)[kept],
        n_codes=n_codes,
        codes=tree.codes[code_order],
        weights=np.add.reduceat(tree.weights[order], starts, axis=0),
        cases=np.add.reduceat(tree.cases[order], starts),
        prediction=None if tree.prediction is None else tree.prediction[kept],
        class_cases=None
        if tree.class_cases is None
        else np.add.reduceat(tree.class_cases[order], starts, axis=0),
    )
    if tree.mean is None or tree.deviation is None:
        return joined
    weight = tree.weights[order, 0]
    spread = np.add.reduceat(weight * tree.deviation[order] ** 2, starts)
    deviation = np.where(
        np.diff(starts, append=len(order)) == 1,
        tree.deviation[kept],
        np.sqrt(spread / joined.weights[:, 0]),
    )
    return replace(joined, mean=tree.mean[kept], deviation=deviation)


def _thresholds(tree: Tree, leader: Ints) -> Floats:
    """Remove the threshold of nodes whose two sides are merged."""
    threshold = tree.threshold.copy()
    threshold[tree.parent[leader != np.arange(len(tree))]] = np.nan
    return threshold


def _moved(tree: Tree, route: Ints, leader: Ints) -> Ints:
    """Return routes with the new numbers of branches."""
    kept = leader == np.arange(len(tree))
    # Numbers of remaining nodes: differences are positions among siblings.
    before = np.cumsum(kept) - kept
    at = np.flatnonzero(route >= 0)
    first = tree.first_child[at]
    result = route.copy()
    result[at] = before[leader[first + route[at]]] - before[first]
    return result


#: Impurity decreases this close, relative to the total impurity, are equal.
_SAME_DROP = 1e-12


def limited(tree: Tree, max_leaves: int, criterion: str | CriterionFunction) -> Tree:
    """Keep the best splits that leave at most so many leaves.

    A split that would make too many leaves is passed over, and so is what is below
    it; of equals the first node in order is split.
    """
    risk = leaf_risk(tree, criterion)
    drop = risk - left_behind(tree, criterion)
    np.subtract.at(drop, tree.parent[1:], risk[1:])
    # Rounded to whole steps, so that rounding errors do not break ties.
    drop = np.rint(drop / (_SAME_DROP * max(float(risk[0]), 1e-300)))
    leaves = np.ones(len(tree), dtype=bool)
    n_more = max_leaves - 1
    heap = [(-drop[0], 0)]
    while heap:
        _, node = heapq.heappop(heap)
        extra = int(tree.n_children[node]) - 1
        if extra < 0 or extra > n_more:
            continue
        leaves[node] = False
        n_more -= extra
        for child in tree.children(node):
            heapq.heappush(heap, (-drop[child], child))
    return with_collapsed(tree, leaves & ~tree.is_leaf).tree


def by_validation(tree: Tree, as_leaf: Floats, stopping: Floats, slack: float) -> Tree:
    """Prune a tree by its errors on a validation set.

    ``as_leaf`` are the errors of each node on the validation cases that reach it, if it
    were a leaf, ``stopping`` those on the cases that stop there; the errors may grow by
    ``slack`` with each collapsed subtree.
    """
    below = np.where(tree.is_leaf, as_leaf, stopping)
    leaf = np.zeros(len(tree), dtype=bool)
    for start, stop in reversed(list(tree.levels())):
        here = slice(start, stop)
        inner = tree.n_children[here] > 0
        # Sums of fractions may differ in their last bits.
        leaf[here] = inner & (as_leaf[here] <= (below[here] + slack) * (1 + TIE))
        below[here] = np.where(leaf[here], as_leaf[here], below[here])
        add_to_parents(tree, below, start, stop)
    return with_collapsed(tree, leaf).tree
