"""Stage 9: rows -> the nodes they arrive at -> class distribution, label.

A row arrives at one node, a leaf or the node where it has to stop, or, where
missing or unseen values go down every branch, at several with a share each. The
distribution is the mean of the nodes' class frequencies, weighted by the shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, distinct
from branchwise.data.schema import Column, Columns
from branchwise.data.ties import cheapest, first_best, first_best_of_rows
from branchwise.native import available, extension, plain_array, plain_arrays
from branchwise.recipe import Recipe
from branchwise.threads import cached_property
from branchwise.tree.splits import EVERY_BRANCH, STOP, Router
from branchwise.tree.tree import Tree


@dataclass(frozen=True)
class Arrivals:
    """Where rows end: (row, node, share), sorted by row; shares of a row sum to 1."""

    row: Ints
    node: Ints
    share: Floats
    n_rows: int

    @property
    def undivided(self) -> bool:
        """Whether every row arrives at one node only."""
        return len(self.row) == self.n_rows


def class_chances(weights: Floats, root: Floats, recipe: Recipe | None) -> Floats:
    """Turn class weights into probabilities, as the recipe has it.

    ``root`` are the class weights of the whole table.
    """
    extra: Floats = np.zeros(weights.shape[1])
    if recipe is not None and recipe.probabilities == "laplace":
        extra = np.ones(weights.shape[1])
    if recipe is not None and recipe.probabilities == "m-estimate":
        extra = recipe.m * root / root.sum()
    chances: Floats = (weights + extra) / (
        weights.sum(axis=1, keepdims=True) + extra.sum()
    )
    return chances


def predicted_classes(weights: Floats, root: Floats, recipe: Recipe) -> Ints:
    """Return the class of nodes: the most probable, or the one of least cost.

    ``weights`` are the class weights of the nodes, ``root`` those of the whole table.
    """
    amounts = weights
    if recipe.probabilities != "frequencies":
        amounts = class_chances(weights, root, recipe)
    if recipe.costs is not None:
        return cheapest(amounts, recipe.costs)
    return first_best_of_rows(amounts)


def with_answers(tree: Tree, recipe: Recipe) -> Tree:
    """Give nodes their predictions where these need not be the most frequent classes.

    That is where predictions have costs, or probabilities are not frequencies. Without
    costs the array is left out if it would say nothing new.
    """
    smoothed = recipe.probabilities != "frequencies"
    if tree.predicts_numbers or (recipe.costs is None and not smoothed):
        return tree
    answer = predicted_classes(tree.weights, tree.weights[0], recipe)
    usual = recipe.costs is None and np.array_equal(answer, tree.heaviest)
    return replace(tree, answer=None if usual else answer)


def with_costs(tree: Tree, recipe: Recipe) -> Tree:
    """Give nodes their predictions where predictions have costs.

    Pruning goes by these. It does not go by smoothed probabilities, so that smoothing
    leaves the shape of a tree as it is.
    """
    return tree if recipe.costs is None else with_answers(tree, recipe)


class Walker:
    """Walks rows down a tree, all rows one level at a time."""

    def __init__(
        self, columns: Sequence[Column], tree: Tree, recipe: Recipe | None = None
    ) -> None:
        self._columns = columns
        self._tree = tree
        self._recipe = recipe

    @cached_property
    def _frequency(self) -> Floats:
        """Class probabilities of the nodes; divide once, not for every row."""
        return class_chances(self._tree.weights, self._tree.weights[0], self._recipe)

    @cached_property
    def _router(self) -> Router:
        return Router(self._columns, self._tree.splits)

    @cached_property
    def _native(self) -> NativeWalk:
        return NativeWalk(self._columns, self._tree)

    @property
    def _compiled(self) -> bool:
        """Whether the compiled walk is to be used: it knows nothing of surrogates."""
        return available() and self._tree.surrogates is None

    def walk(self, data: Columns) -> Arrivals:
        """Find where every row arrives."""
        if self._compiled:
            return Arrivals(*self._native.arrive(data), data.n_rows)
        row = np.arange(data.n_rows, dtype=np.intp)
        node = np.zeros(data.n_rows, dtype=np.intp)
        share = np.ones(data.n_rows)
        done: list[tuple[Ints, Ints, Floats]] = []
        while len(row):
            branch = self._router.branches(data, row, node)
            stopped = branch == STOP
            if stopped.any():
                done.append((row[stopped], node[stopped], share[stopped]))
            split = np.flatnonzero(branch == EVERY_BRANCH)
            moved = branch >= 0
            child = self._tree.first_child[node] + branch
            parts = self._every_branch(row, node, share, split)
            row = np.concatenate([row[moved], parts[0]])
            node = np.concatenate([child[moved], parts[1]])
            share = np.concatenate([share[moved], parts[2]])
        return _arrivals(done, data.n_rows)

    def _every_branch(
        self, row: Ints, node: Ints, share: Floats, split: Ints
    ) -> tuple[Ints, Ints, Floats]:
        if not len(split):
            return row[:0], node[:0], share[:0]
        origin, branch, part = self._router.every_branch(node[split])
        # Branches are numbered over all nodes, and so are children after the root.
        return row[split][origin], branch + 1, share[split][origin] * part

    def classify(self, data: Columns) -> NDArray[np.integer[Any]]:
        """Return the class codes of rows: their labels, without their arrivals."""
        known = self._native.labels(data) if self._compiled else None
        return self.labels(self.walk(data)) if known is None else known

    def distribution(self, arrivals: Arrivals) -> Floats:
        """Return class probabilities, one row a case."""
        if arrivals.undivided:
            certain: Floats = self._frequency[arrivals.node]
            return certain
        result = np.zeros((arrivals.n_rows, self._frequency.shape[1]))
        np.add.at(
            result,
            arrivals.row,
            self._frequency[arrivals.node] * arrivals.share[:, np.newaxis],
        )
        return result

    def labels(self, arrivals: Arrivals) -> Ints:
        """Return class codes: that of the node, or the most probable of several.

        So the label of a row never depends on the rows beside it.
        """
        if arrivals.undivided:
            label: Ints = self._tree.label[arrivals.node]
            return label
        starts = np.searchsorted(arrivals.row, np.arange(arrivals.n_rows))
        label = self._tree.label[arrivals.node[starts]]
        divided = np.flatnonzero(np.diff(starts, append=len(arrivals.row)) > 1)
        label[divided] = self._most_likely(self.distribution(arrivals)[divided])
        return label

    def _most_likely(self, chances: Floats) -> Ints:
        """Return the most probable classes, or the cheapest; of equals the first."""
        if self._recipe is not None and self._recipe.costs is not None:
            return cheapest(chances, self._recipe.costs)
        return first_best_of_rows(chances)

    def numbers(self, arrivals: Arrivals) -> Floats:
        """Return the numbers that the nodes expect, by shares for divided rows."""
        mean = self._tree.mean
        if mean is None:
            raise TypeError("this tree predicts classes, not numbers")
        if arrivals.undivided:
            return mean[arrivals.node]
        result = np.zeros(arrivals.n_rows)
        np.add.at(result, arrivals.row, mean[arrivals.node] * arrivals.share)
        return result

    def nodes(self, arrivals: Arrivals) -> Ints:
        """Return one node a row: that with the largest share, of equals the first."""
        if arrivals.undivided:
            return arrivals.node
        starts = np.searchsorted(arrivals.row, np.arange(arrivals.n_rows))
        best = first_best(arrivals.share, starts, np.zeros(arrivals.n_rows))
        return arrivals.node[best]


def _arrivals(done: Sequence[tuple[Ints, Ints, Floats]], n_rows: int) -> Arrivals:
    """Put what has arrived in the order of the rows."""
    if not done:
        nothing = np.empty(0, dtype=np.intp)
        return Arrivals(nothing, nothing, np.empty(0), n_rows)
    row, node, share = (np.concatenate(part) for part in zip(*done, strict=True))
    order = np.lexsort((node, row))
    return Arrivals(row[order], node[order], share[order], n_rows)


def visited(arrivals: Arrivals, tree: Tree) -> tuple[Ints, Ints]:
    """Return all (row, node) pairs on the ways of the rows, sorted and distinct."""
    rows, nodes = [], []
    row, node = arrivals.row, arrivals.node
    while len(row):
        rows.append(row)
        nodes.append(node)
        node = tree.parent[node]
        row, node = row[node >= 0], node[node >= 0]
    key = distinct(np.concatenate(rows) * len(tree) + np.concatenate(nodes))
    row, node = np.divmod(key, len(tree))
    return row, node


#: The compiled walk writes class codes as bytes, and one code is not a class.
_MOST_LABELS = 255


class NativeWalk:
    """Walks rows down a tree, in the compiled twin."""

    def __init__(self, columns: Sequence[Column], tree: Tree) -> None:
        n_classes = tree.weights.shape[1]
        self._labels_fit = n_classes <= _MOST_LABELS
        labels = tree.label if self._labels_fit else tree.label[:0]
        # All rows stay at the root of a tree that asks nothing.
        self._root_label = int(tree.label[0]) if tree.is_leaf[0] else None
        self._walk = extension().Walk(
            column=plain_array(tree.column.astype(np.int64, copy=False)),
            cut=plain_array(tree.cut),
            n_children=plain_array(tree.n_children.astype(np.int64, copy=False)),
            missing_to=plain_array(tree.missing_to.astype(np.int64, copy=False)),
            unseen_to=plain_array(tree.unseen_to.astype(np.int64, copy=False)),
            n_codes=plain_array(tree.n_codes.astype(np.int64, copy=False)),
            codes=plain_array(tree.codes.astype(np.int64, copy=False)),
            sizes=tree.weights.sum(axis=1),
            labels=labels.astype(np.uint8),
            values=[0 if c.is_numeric else len(c.categories) for c in columns],
        )

    def labels(self, data: Columns) -> NDArray[np.uint8] | None:
        """Return class codes; None where only the parts of rows can tell."""
        if not self._labels_fit:
            return None
        if self._root_label is not None:
            return np.full(data.n_rows, self._root_label, dtype=np.uint8)
        labels: NDArray[np.uint8] | None = self._walk.label(
            columns=plain_arrays(data.data), n_rows=data.n_rows
        )
        return labels

    def reached(self, data: Columns) -> NDArray[np.uint32]:
        """Return the node where each row arrives; a row must not be divided."""
        return self._arrive(data)[0]

    def arrive(self, data: Columns) -> tuple[Ints, Ints, Floats]:
        """Return where rows arrive: (row, node, share), sorted by row, then node."""
        reached, *parts = self._arrive(data)
        row = np.arange(data.n_rows, dtype=np.intp)
        node: Ints = reached.astype(np.intp)
        share = np.ones(data.n_rows)
        if not parts or not len(parts[0]):
            return row, node, share
        whole = reached != extension().DIVIDED
        row = np.concatenate([row[whole], parts[0]])
        node = np.concatenate([node[whole], parts[1]])
        share = np.concatenate([share[whole], parts[2]])
        # The parts of a row lie together already, in order: a stable sort will do.
        order = np.argsort(row, kind="stable")
        return row[order], node[order], share[order]

    def _arrive(self, data: Columns) -> tuple[NDArray[Any], ...]:
        """Return where whole rows arrive, and the parts of the others if there are."""
        if self._root_label is not None:
            return (np.zeros(data.n_rows, dtype=np.uint32),)
        arrived: tuple[NDArray[Any], ...] = self._walk.arrive(
            columns=plain_arrays(data.data), n_rows=data.n_rows
        )
        return arrived
