"""Cutting trees and putting them together again: the arrays, not the reasons."""

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
    """A tree made of another one.

    For each node ``source`` is the node of the old tree whose question and weights
    it has, ``place`` the one whose place it takes.
    """

    tree: Tree
    source: Ints
    place: Ints


def snipped(tree: Tree, leaves: Mask) -> Rearranged:
    """Make leaves of some nodes."""
    kept = np.ones(len(tree), dtype=bool)
    for start, stop in tree.levels():
        if start:
            parent = tree.parent[start:stop]
            kept[start:stop] = kept[parent] & ~leaves[parent]
    node = np.flatnonzero(kept)
    return _assembled(tree, node, node, leaves)


def rearranged(tree: Tree, raised: Ints, leaves: Mask) -> Rearranged:
    """Put a child in the place of a node, and make leaves of others.

    Parameters
    ----------
    tree : Tree
        What to start from.
    raised : array
        For each node the child that takes its place, or -1.
    leaves : array
        Which nodes become leaves; what is below them is gone.
    """
    return _assembled(tree, *_places(tree, raised, leaves), leaves)


def _assembled(tree: Tree, source: Ints, place: Ints, leaves: Mask) -> Rearranged:
    """Make a tree of nodes, level by level, in the places they take."""
    n_codes = tree.n_codes[place]
    leaf = leaves[source]
    new = replace(
        tree,
        column=np.where(leaf, -1, tree.column[source]),
        cut=np.where(leaf, np.nan, tree.cut[source]),
        n_children=np.where(leaf, 0, tree.n_children[source]),
        missing_to=np.where(leaf, STOP, tree.missing_to[source]),
        unseen_to=np.where(leaf, STOP, tree.unseen_to[source]),
        n_codes=n_codes,
        codes=tree.codes[ragged(tree.code_starts[place], n_codes)],
        weights=tree.weights[source],
        cases=tree.cases[source],
        **{
            name: None if (array := getattr(tree, name)) is None else array[source]
            for name in ("mean", "deviation", "answer", "class_cases")
        },
    )
    if tree.surrogates is not None:
        kept = tree.surrogates.take(np.where(leaf, -1, source))
        new = new.with_surrogates(kept)
    return Rearranged(new, source, place)


def _places(tree: Tree, raised: Ints, leaves: Mask) -> tuple[Ints, Ints]:
    """Return, level by level, the nodes of the new tree and the places they take."""
    place = np.zeros(1, dtype=np.intp)
    sources, places = [], []
    while len(place):
        source = place.copy()
        while (up := raised[source] >= 0).any():
            source[up] = raised[source[up]]
        sources.append(source)
        places.append(place)
        width = np.where(leaves[source], 0, tree.n_children[source])
        first = np.repeat(tree.first_child[source], width)
        offset = np.repeat(np.cumsum(width) - width, width)
        place = first + np.arange(len(first)) - offset
    return np.concatenate(sources), np.concatenate(places)


def subtree_sums(tree: Tree, own: NDArray[Any]) -> NDArray[Any]:
    """Add up what is at the leaves, and what is left behind at nodes, bottom up."""
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
