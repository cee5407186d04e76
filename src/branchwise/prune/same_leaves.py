"""Leaves that say the same are one: a shorter tree with the same answers.

Two things are done. Bottom up, a node whose branches are all leaves that say what
the node says becomes a leaf. Then leaves of a node that say the same share a branch,
as values in a list or as "is known". The branch of missing values stays its own, so
that views go on telling what happens to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from branchwise.counts import Floats, Ints, run_starts
from branchwise.prune.surgery import Mask, snipped
from branchwise.tree import Tree

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
