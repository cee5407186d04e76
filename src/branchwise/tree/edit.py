"""Edits of trees: subtrees become leaves, or branches replace their parents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.tree.splits import STOP, ragged
from branchwise.tree.tree import Tree

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rearranged:
    """A tree that was built from the nodes of another one.

    For each node ``source`` is the node of the old tree whose split and weights it
    has, ``position`` the node whose position it takes.
    """

    tree: Tree
    source: Ints
    position: Ints


def with_collapsed(tree: Tree, leaves: Mask) -> Rearranged:
    """Turn some nodes into leaves."""
    kept = np.ones(len(tree), dtype=bool)
    for start, stop in tree.levels():
        if start:
            parent = tree.parent[start:stop]
            kept[start:stop] = kept[parent] & ~leaves[parent]
    node = np.flatnonzero(kept)
    return _assembled(tree, node, node, leaves)


def rearranged(tree: Tree, raised: Ints, leaves: Mask) -> Rearranged:
    """Replace nodes by one of their children, and turn others into leaves.

    Parameters
    ----------
    tree : Tree
        The tree to edit.
    raised : array
        For each node the child that replaces it, or -1.
    leaves : array
        Which nodes become leaves; their subtrees are removed.
    """
    return _assembled(tree, *_positions(tree, raised, leaves), leaves)


def _assembled(tree: Tree, source: Ints, position: Ints, leaves: Mask) -> Rearranged:
    """Build a tree from nodes, level by level, at their positions."""
    n_codes = tree.n_codes[position]
    leaf = leaves[source]
    new = replace(
        tree,
        column=np.where(leaf, -1, tree.column[source]),
        threshold=np.where(leaf, np.nan, tree.threshold[source]),
        n_children=np.where(leaf, 0, tree.n_children[source]),
        missing_to=np.where(leaf, STOP, tree.missing_to[source]),
        unseen_to=np.where(leaf, STOP, tree.unseen_to[source]),
        n_codes=n_codes,
        codes=tree.codes[ragged(tree.code_starts[position], n_codes)],
        weights=tree.weights[source],
        cases=tree.cases[source],
        **{
            name: None if (array := getattr(tree, name)) is None else array[source]
            for name in ("mean", "deviation", "prediction", "class_cases")
        },
    )
    if tree.surrogates is not None:
        kept = tree.surrogates.take(np.where(leaf, -1, source))
        new = new.with_surrogates(kept)
    return Rearranged(new, source, position)


def _positions(tree: Tree, raised: Ints, leaves: Mask) -> tuple[Ints, Ints]:
    """Return, level by level, the nodes of the new tree and their positions."""
    position = np.zeros(1, dtype=np.intp)
    sources, positions = [], []
    while len(position):
        source = position.copy()
        while (up := raised[source] >= 0).any():
            source[up] = raised[source[up]]
        sources.append(source)
        positions.append(position)
        width = np.where(leaves[source], 0, tree.n_children[source])
        first = np.repeat(tree.first_child[source], width)
        offset = np.repeat(np.cumsum(width) - width, width)
        position = first + np.arange(len(first)) - offset
    return np.concatenate(sources), np.concatenate(positions)


def subtree_sums(tree: Tree, own: NDArray[Any]) -> NDArray[Any]:
    """Add up the amounts of each subtree, from the leaves up."""
    total = own.copy()
    for start, stop in reversed(list(tree.levels())):
        add_to_parents(tree, total, start, stop)
    return total


def add_to_parents(tree: Tree, total: NDArray[Any], start: int, stop: int) -> None:
    """Add the amounts of the nodes of one level to those of their parents."""
    if start:
        # A copy of these: NumPy would copy all of an array that overlaps them.
        amounts = total[start:stop].copy()
        np.add.at(total, tree.parent[start:stop], amounts)


def stopped_weights(tree: Tree) -> NDArray[np.float64]:
    """Return the class weights of the cases that go no further than each node."""
    below = np.zeros_like(tree.weights)
    np.add.at(below, tree.parent[1:], tree.weights[1:])
    return np.maximum(tree.weights - below, 0.0)
