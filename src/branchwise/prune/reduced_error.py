"""Pruning that needs no estimate: reduced error, a largest number of leaves, merging.

:func:`merged` makes a shorter tree with the same predictions, :func:`limited` one of at
most so many leaves, :func:`pruned` one that errs least on validation rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from branchwise.data.arrays import Floats, Ints, run_starts
from branchwise.data.ties import TIE
from branchwise.prune.cost_complexity import leaf_risk, left_behind
from branchwise.recipe import CriterionFunction
from branchwise.tree.edit import Mask, add_to_parents, snipped
from branchwise.tree.tree import Tree

#: Chances this close are equal.
_SAME_CHANCE = 1e-12

#: Turns class weights into probabilities.
Chances = Callable[[Floats], Floats]
#: Turns class weights into predicted classes.
Predicted = Callable[[Floats], Ints]


def merged(
    tree: Tree, chances: Chances | None, predicted: Predicted | None = None
) -> Tree:
    """Merge leaves that say the same.

    With ``chances`` two nodes say the same if they give all classes the same
    probabilities, and so would the two together; without it, if their answers are
    equal. Leaves are not joined where ``predicted`` says something else of all of them
    together than of each. Trees that predict numbers go by their means in any case.
    """
    tree = snipped(tree, _superfluous(tree, _says(tree, chances))).tree
    leader = _leaders(tree, _says(tree, chances), chances, predicted)
    return _joined(tree, leader)


def _says(tree: Tree, chances: Chances | None) -> Floats:
    """Return what nodes say: rows that are equal where nodes say the same."""
    if tree.mean is not None:
        return tree.mean[:, np.newaxis]
    if chances is None:
        return tree.label[:, np.newaxis].astype(np.float64)
    return np.column_stack([tree.label, chances(tree.weights)])


def _same(said: Floats, first: Ints, second: Ints) -> Mask:
    a, b = said[first], said[second]
    close = np.abs(a - b) <= _SAME_CHANCE * np.maximum(np.abs(a), np.abs(b))
    same: Mask = np.logical_and.reduce(close, axis=1)
    return same


def _superfluous(tree: Tree, said: Floats) -> Mask:
    """Find the nodes below which everything says what they say."""
    parent = tree.parent
    agrees = np.ones(len(tree), dtype=bool)
    agrees[1:] = _same(said, np.arange(1, len(tree)), parent[1:])
    single = np.ones(len(tree), dtype=bool)
    for start, stop in reversed(list(tree.levels())):
        if start:
            fails = np.arange(start, stop)[~(agrees & single)[start:stop]]
            single[parent[fails]] = False
    return single & ~tree.is_leaf


def _leaders(
    tree: Tree, said: Floats, chances: Chances | None, predicted: Predicted | None
) -> Ints:
    """Return for every node the sibling that it is to be joined with, or itself."""
    leader = np.arange(len(tree), dtype=np.intp)
    able = np.flatnonzero(tree.is_leaf & (tree.n_codes > 0))
    if not len(able):
        return leader
    # Equal rows come next to each other; of these the first leads.
    order = able[np.lexsort((able, *said[able].T, tree.parent[able]))]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (tree.parent[order[1:]] != tree.parent[order[:-1]]) | ~_same(
        said, order[1:], order[:-1]
    )
    starts = np.flatnonzero(new)
    first = np.minimum.reduceat(order, starts)
    width = np.diff(starts, append=len(order))
    leader[order] = np.repeat(first, width)
    together = np.add.reduceat(tree.weights[order], starts, axis=0)
    change = np.zeros(len(starts), dtype=bool)
    if chances is not None and tree.mean is None:
        differs = np.abs(np.repeat(chances(together), width, axis=0) - said[order, 1:])
        change = np.maximum.reduceat(differs.max(axis=1), starts) > _SAME_CHANCE
    if predicted is not None and tree.mean is None:
        change |= predicted(together) != tree.label[first]
    apart = order[np.repeat(change, width)]
    leader[apart] = apart
    return _at_least_two(tree, leader)


def _at_least_two(tree: Tree, leader: Ints) -> Ints:
    """Leave nodes alone that would keep a single branch."""
    leads = leader == np.arange(len(tree))
    branches = np.bincount(tree.parent[1:][leads[1:]], minlength=len(tree))
    alone = np.flatnonzero(branches[tree.parent] == 1)
    result = leader.copy()
    result[alone] = alone
    return result


def _joined(tree: Tree, leader: Ints) -> Tree:
    """Join leaves with their leaders."""
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
        cut=_cuts(tree, leader)[kept],
        n_children=n_children[kept],
        missing_to=_moved(tree, tree.missing_to, leader)[kept],
        unseen_to=_moved(tree, tree.unseen_to, leader)[kept],
        n_codes=n_codes,
        codes=tree.codes[code_order],
        weights=np.add.reduceat(tree.weights[order], starts, axis=0),
        cases=np.add.reduceat(tree.cases[order], starts),
        answer=None if tree.answer is None else tree.answer[kept],
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


def _cuts(tree: Tree, leader: Ints) -> Floats:
    """Take the cut away from nodes whose two sides are joined: a number is known."""
    cut = tree.cut.copy()
    cut[tree.parent[leader != np.arange(len(tree))]] = np.nan
    return cut


def _moved(tree: Tree, route: Ints, leader: Ints) -> Ints:
    """Return routes to where branches are now."""
    kept = leader == np.arange(len(tree))
    # How many nodes are left before each node: differences are places among siblings.
    before = np.cumsum(kept) - kept
    at = np.flatnonzero(route >= 0)
    first = tree.first_child[at]
    result = route.copy()
    result[at] = before[leader[first + route[at]]] - before[first]
    return result


#: Drops of impurity this close, relative to what there is, are equal.
_SAME_DROP = 1e-12


def limited(tree: Tree, max_leaves: int, criterion: str | CriterionFunction) -> Tree:
    """Keep the best splits that leave at most so many leaves.

    A split that would make too many leaves is passed over, and so is what is below
    it; of equals the first node in order is split.
    """
    risk = leaf_risk(tree, criterion)
    drop = risk - left_behind(tree, criterion)
    np.subtract.at(drop, tree.parent[1:], risk[1:])
    # In whole steps, so that not rounding decides between equals.
    drop = np.rint(drop / (_SAME_DROP * max(float(risk[0]), 1e-300)))
    leaves = np.ones(len(tree), dtype=bool)
    room = max_leaves - 1
    heap = [(-drop[0], 0)]
    while heap:
        _, node = heapq.heappop(heap)
        extra = int(tree.n_children[node]) - 1
        if extra < 0 or extra > room:
            continue
        leaves[node] = False
        room -= extra
        for child in tree.children(node):
            heapq.heappush(heap, (-drop[child], child))
    return snipped(tree, leaves & ~tree.is_leaf).tree


def pruned(tree: Tree, as_leaf: Floats, stopping: Floats, slack: float) -> Tree:
    """Prune a tree by its errors on a validation set.

    Parameters
    ----------
    tree : Tree
        What to prune.
    as_leaf : array
        For each node the errors on all validation cases that come by, if it were a
        leaf.
    stopping : array
        The errors on the cases that come no further than the node.
    slack : float
        By how much the errors may grow with each subtree that goes.
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
    return snipped(tree, leaf).tree
