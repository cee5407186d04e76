"""Reduced-error pruning, limiting the number of leaves, and merging of leaves.

:func:`pruned` returns the subtree with the fewest errors on validation rows,
:func:`limited` one with at most so many leaves, :func:`merged` a smaller tree with the
same predictions.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from branchwise.data.arrays import TIE, Floats, Ints, run_starts
from branchwise.prune.cost_complexity import leaf_risk, left_behind
from branchwise.recipe import CriterionFunction
from branchwise.tree.tree import Mask, Tree, add_to_parents, with_collapsed

#: Probabilities this close are equal.
_SAME_PROBABILITY = 1e-12

#: Turns class weights into probabilities.
ProbabilityFunction = Callable[[Floats], Floats]
#: Turns class weights into predicted classes.
Predicted = Callable[[Floats], Ints]


def merged(
    tree: Tree,
    probabilities: ProbabilityFunction | None,
    predicted: Predicted | None = None,
) -> Tree:
    """Merge leaves with the same prediction.

    With ``probabilities`` two nodes are equal if they have the same probabilities of
    all classes, alone and merged; without it, if they predict the same class. Leaves
    are not merged where ``predicted`` differs for the merged leaf. Nodes of regression
    trees are equal if their means are.
    """
    tree = with_collapsed(
        tree, _superfluous(tree, _prediction_keys(tree, probabilities))
    ).tree
    leader = _leaders(
        tree, _prediction_keys(tree, probabilities), probabilities, predicted
    )
    return _joined(tree, leader)


def _prediction_keys(tree: Tree, probabilities: ProbabilityFunction | None) -> Floats:
    """Return rows that are equal where nodes have equal predictions."""
    if tree.mean is not None:
        return tree.mean[:, np.newaxis]
    if probabilities is None:
        return tree.label[:, np.newaxis].astype(np.float64)
    return np.column_stack([tree.label, probabilities(tree.weights)])


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
        differs = np.abs(
            np.repeat(probabilities(together), width, axis=0) - keys[order, 1:]
        )
        change = np.maximum.reduceat(differs.max(axis=1), starts) > _SAME_PROBABILITY
    if predicted is not None and tree.mean is None:
        change |= predicted(together) != tree.label[first]
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


def _joined(tree: Tree, leader: Ints) -> Tree:
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


def pruned(tree: Tree, as_leaf: Floats, stopping: Floats, slack: float) -> Tree:
    """Prune a tree by its errors on a validation set.

    Parameters
    ----------
    tree : Tree
        The tree to prune.
    as_leaf : array
        For each node the errors on all validation cases that reach it, if it were a
        leaf.
    stopping : array
        The errors on the cases that stop at the node.
    slack : float
        By how much the errors may grow with each collapsed subtree.
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
