"""Prediction: the nodes that rows arrive at, and their classes or numbers.

A row arrives at one node, a leaf or where it stops, or, where missing or unseen values
go down every branch, at several, whose probabilities are averaged by its shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import (
    Floats,
    Ints,
    cheapest,
    distinct,
    first_best,
    first_best_of_rows,
)
from branchwise.data.table_schema import Column, Columns
from branchwise.native import available, extension, plain_array, plain_arrays
from branchwise.recipe import Recipe
from branchwise.threads import cached_property
from branchwise.tree.splits import EVERY_BRANCH, STOP, Router
from branchwise.tree.tree import SURROGATE_ARRAYS, Tree


@dataclass(frozen=True)
class Arrivals:
    """Final nodes of rows: (row, node, share), sorted by row; shares sum to 1."""

    row: Ints
    node: Ints
    share: Floats
    n_rows: int

    @property
    def undivided(self) -> bool:
        """Whether every row arrives at one node only."""
        return len(self.row) == self.n_rows


def class_probabilities(weights: Floats, root: Floats, recipe: Recipe | None) -> Floats:
    """Return the probabilities of class weights; ``root`` are those of the table."""
    extra: Floats = np.zeros(weights.shape[1])
    if recipe is not None and recipe.probabilities == "laplace":
        extra = np.ones(weights.shape[1])
    if recipe is not None and recipe.probabilities == "m-estimate":
        # In a unit near its sum: times m, weights near 1e300 would overflow.
        scaled = np.ldexp(root, -np.frexp(root.sum())[1])
        extra = recipe.m * scaled / scaled.sum()
    probabilities: Floats = (weights + extra) / (
        weights.sum(axis=1, keepdims=True) + extra.sum()
    )
    return probabilities


def node_probabilities(tree: Tree, recipe: Recipe | None) -> Floats:
    """Return the class probabilities of every node of a tree."""
    if recipe is None or recipe.probabilities != "shrunk":
        return class_probabilities(tree.weights, tree.weights[0], recipe)
    frequencies = class_probabilities(tree.weights, tree.weights[0], None)
    probabilities = frequencies.copy()
    for start, stop in tree.levels():
        if start:
            here, above = slice(start, stop), tree.parent[start:stop]
            change = (frequencies[here] - frequencies[above]) / _less(
                tree, above, recipe
            )
            probabilities[here] = probabilities[above] + change
    return probabilities


def _less(tree: Tree, above: Ints, recipe: Recipe) -> Floats:
    """Return by how much a split of nodes counts less (Agarwal et al. 2022)."""
    less: Floats = 1.0 + recipe.shrinkage / tree.weights[above].sum(
        axis=1, keepdims=True
    )
    return less


def probabilities_at(tree: Tree, weights: Floats, node: Ints, recipe: Recipe) -> Floats:
    """Return the probabilities of class weights in the place of nodes of a tree."""
    own = class_probabilities(weights, tree.weights[0], recipe)
    if recipe.probabilities != "shrunk":
        return own
    known, above = node_probabilities(tree, recipe), tree.parent[node]
    frequencies = class_probabilities(tree.weights, tree.weights[0], None)
    change = (own - frequencies[above]) / _less(tree, above, recipe)
    return np.where(node[:, np.newaxis] == 0, known[0], known[above] + change)


def predicted_classes(weights: Floats, root: Floats, recipe: Recipe) -> Ints:
    """Return the most probable classes of nodes, or those of the least cost."""
    amounts = weights
    if recipe.probabilities != "frequencies":
        amounts = class_probabilities(weights, root, recipe)
    return chosen_classes(amounts, recipe)


def chosen_classes(amounts: Floats, recipe: Recipe) -> Ints:
    """Return the classes of largest probability, or those of the least cost."""
    if recipe.costs is not None:
        return cheapest(amounts, recipe.costs)
    return first_best_of_rows(amounts)


def with_predictions(tree: Tree, recipe: Recipe) -> Tree:
    """Set the predictions of nodes that may differ from the most frequent classes.

    They differ with costs, or where probabilities are not frequencies; the array is
    left out if it equals the most frequent classes and there are no costs.
    """
    smoothed = recipe.probabilities != "frequencies"
    if tree.is_regression or (recipe.costs is None and not smoothed):
        return tree
    amounts = node_probabilities(tree, recipe) if smoothed else tree.weights
    prediction = chosen_classes(amounts, recipe)
    usual = recipe.costs is None and np.array_equal(prediction, tree.heaviest)
    return replace(tree, prediction=None if usual else prediction)


def with_costs(tree: Tree, recipe: Recipe) -> Tree:
    """Set the predictions of nodes if the recipe has costs: pruning uses these.

    It does not use smoothed probabilities, which must not change the shape of a tree.
    """
    return tree if recipe.costs is None else with_predictions(tree, recipe)


class Walker:
    """Sends rows down a tree, all rows one level at a time."""

    def __init__(
        self, columns: Sequence[Column], tree: Tree, recipe: Recipe | None = None
    ) -> None:
        self._columns = columns
        self._tree = tree
        self._recipe = recipe

    @cached_property
    def _frequency(self) -> Floats:
        """Class probabilities of the nodes; divide once, not for every row."""
        return node_probabilities(self._tree, self._recipe)

    @cached_property
    def _router(self) -> Router:
        return Router(self._columns, self._tree.splits)

    @cached_property
    def native(self) -> NativeWalk:
        """The walk of the compiled extension."""
        shared = vars(self._tree).get(_SHARED)
        if shared is None:
            return NativeWalk(self._columns, self._tree)
        walk: NativeWalk = shared.of(self._columns, self._tree)
        return walk

    @property
    def _compiled(self) -> bool:
        """Whether to use the native implementation."""
        return available()

    def walk(self, data: Columns) -> Arrivals:
        """Find where every row arrives."""
        if self._compiled:
            return Arrivals(*self.native.arrive(data), data.n_rows)
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
            pieces = self._every_branch(row, node, share, split)
            row = np.concatenate([row[moved], pieces[0]])
            node = np.concatenate([child[moved], pieces[1]])
            share = np.concatenate([share[moved], pieces[2]])
        return _arrivals(done, data.n_rows)

    def _every_branch(
        self, row: Ints, node: Ints, share: Floats, split: Ints
    ) -> tuple[Ints, Ints, Floats]:
        if not len(split):
            return row[:0], node[:0], share[:0]
        origin, branch, piece = self._router.every_branch(node[split])
        # Branches are numbered over all nodes, and so are children after the root.
        return row[split][origin], branch + 1, share[split][origin] * piece

    def classify(self, data: Columns) -> NDArray[np.integer[Any]]:
        """Return the class codes of rows: their labels, without their arrivals."""
        known = self.native.labels(data) if self._compiled else None
        if known is None:
            return self.labels(self.walk(data))
        codes, fractional = known
        if len(fractional):
            blended = self.native.blend(data, self._frequency, fractional)
            codes[fractional] = self._most_likely(blended)
        return codes

    def probabilities(self, data: Columns) -> Floats:
        """Return class probabilities, one row a case, without their arrivals."""
        return self.blend(data, self._frequency)

    def quantities(self, data: Columns) -> Floats:
        """Return the numbers that are predicted for rows, without their arrivals."""
        return self.blend(data, self._means)[:, 0]

    def blend(self, data: Columns, values: Floats) -> Floats:
        """Return the values of the nodes where rows arrive, weighted by shares."""
        if self._compiled:
            return self.native.blend(data, values)
        return _blended(self.walk(data), values)

    @property
    def _means(self) -> Floats:
        """The numbers that the nodes predict, as a column."""
        if self._tree.mean is None:
            raise TypeError("this tree predicts classes, not numbers")
        return self._tree.mean[:, np.newaxis]

    @property
    def node_values(self) -> Floats:
        """What each node predicts: the probability of each class, or one number."""
        return self._means if self._tree.is_regression else self._frequency

    def node_of_row(self, cells: list[int | float]) -> int | None:
        """Return the node that a row arrives at.

        ``cells`` are the codes and numbers of the columns that the tree uses. Returns
        None where the row is divided between several nodes, and where only the
        reference knows.
        """
        return self.native.node_of_row(cells) if self._compiled else None

    def probabilities_of_node(self, node: int) -> Floats:
        """Return the class probabilities of a node, as those of a table of one row."""
        probabilities: Floats = self._frequency[node : node + 1].copy()
        return probabilities

    def distribution(self, arrivals: Arrivals) -> Floats:
        """Return class probabilities, one row a case."""
        return _blended(arrivals, self._frequency)

    def labels(self, arrivals: Arrivals) -> Ints:
        """Return the class of the node, or the most probable class of several nodes.

        So the label of a row never depends on other rows.
        """
        if arrivals.undivided:
            label: Ints = self._tree.label[arrivals.node]
            return label
        starts = np.searchsorted(arrivals.row, np.arange(arrivals.n_rows))
        label = self._tree.label[arrivals.node[starts]]
        fractional = np.flatnonzero(np.diff(starts, append=len(arrivals.row)) > 1)
        label[fractional] = self._most_likely(self.distribution(arrivals)[fractional])
        return label

    def _most_likely(self, probabilities: Floats) -> Ints:
        """Return the classes of highest probability, or of least cost."""
        if self._recipe is not None and self._recipe.costs is not None:
            return cheapest(probabilities, self._recipe.costs)
        return first_best_of_rows(probabilities)

    def numbers(self, arrivals: Arrivals) -> Floats:
        """Return the numbers that the nodes predict, weighted by shares."""
        return _blended(arrivals, self._means)[:, 0]

    def nodes(self, arrivals: Arrivals) -> Ints:
        """Return the node of the largest share of each row, the first of equals."""
        if arrivals.undivided:
            return arrivals.node
        starts = np.searchsorted(arrivals.row, np.arange(arrivals.n_rows))
        best = first_best(arrivals.share, starts, np.zeros(arrivals.n_rows))
        return arrivals.node[best]


def add_up(
    walkers: Sequence[Walker], data: Columns, values: Sequence[Floats]
) -> Floats:
    """Return sums over trees of the values of the nodes where rows arrive.

    ``values`` has, for each tree, a line for each node. Trees are added in their order.
    """
    total = np.zeros((data.n_rows, values[0].shape[1]))
    if available():
        extension().add_up(
            walks=[walker.native.walk for walker in walkers],
            columns=plain_arrays(data.data),
            n_rows=data.n_rows,
            numbers=plain_arrays(values),
            width=total.shape[1],
            totals=total.reshape(-1),
        )
        return total
    for walker, numbers in zip(walkers, values, strict=True):
        total += walker.blend(data, numbers)
    return total


def _blended(arrivals: Arrivals, values: Floats) -> Floats:
    """Return the values of the nodes of rows, weighted by shares."""
    found: Floats = values[arrivals.node]
    if arrivals.undivided:
        return found
    result = np.zeros((arrivals.n_rows, values.shape[1]))
    np.add.at(result, arrivals.row, found * arrivals.share[:, np.newaxis])
    return result


def _arrivals(done: Sequence[tuple[Ints, Ints, Floats]], n_rows: int) -> Arrivals:
    """Sort arrivals by row."""
    if not done:
        nothing = np.empty(0, dtype=np.intp)
        return Arrivals(nothing, nothing, np.empty(0), n_rows)
    row, node, share = (np.concatenate(piece) for piece in zip(*done, strict=True))
    order = np.lexsort((node, row))
    return Arrivals(row[order], node[order], share[order], n_rows)


def visited(arrivals: Arrivals, tree: Tree) -> tuple[Ints, Ints]:
    """Return all (row, node) pairs on the paths of the rows, sorted and distinct."""
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


#: Where a tree of several models has its :class:`_SharedWalk`, which is no field.
_SHARED = "_shared_walk"


def share_walk(tree: Tree) -> None:
    """Let the models of a tree, whose arrays must not change, share a native walk."""
    vars(tree)[_SHARED] = _SharedWalk()


def is_shared(tree: Tree) -> bool:
    """Whether several models may have a tree."""
    return _SHARED in vars(tree)


class _SharedWalk:
    """The walk of a tree that was prepared last, and the columns of its model."""

    def __init__(self) -> None:
        self._known: tuple[Sequence[Column], NativeWalk] | None = None

    def of(self, columns: Sequence[Column], tree: Tree) -> NativeWalk:
        """Return the walk; models of the same rows have the same columns."""
        known = self._known
        if known is None or known[0] is not columns:
            known = self._known = columns, NativeWalk(columns, tree)
        return known[1]


#: The native implementation returns class codes as bytes, one of them reserved.
_MOST_LABELS = 255
#: The arrays of a tree that the native implementation takes beside its thresholds.
_WHOLE_NUMBERS = (
    "column",
    "n_children",
    "missing_to",
    "unseen_to",
    "n_codes",
    "codes",
)


def native_arrays(tree: Tree) -> dict[str, NDArray[Any]]:
    """Return the splits of a tree as the native implementation takes them."""
    return {
        "threshold": plain_array(tree.threshold),
        **{
            name: plain_array(getattr(tree, name).astype(np.int64, copy=False))
            for name in _WHOLE_NUMBERS
        },
    }


def native_values(columns: Sequence[Column]) -> list[int]:
    """Return the number of values of each column, 0 for numbers."""
    return [0 if column.is_numeric else len(column.categories) for column in columns]


def native_surrogates(tree: Tree) -> dict[str, NDArray[Any]] | None:
    """Return the surrogates of a tree as the native implementation takes them."""
    if tree.n_surrogates is None:
        return None
    return {
        spec.name: plain_array(getattr(tree, spec.name).astype(spec.dtype, copy=False))
        for spec in SURROGATE_ARRAYS
    }


class NativeWalk:
    """Sends rows down a tree with the compiled extension."""

    def __init__(self, columns: Sequence[Column], tree: Tree) -> None:
        n_classes = tree.weights.shape[1]
        self._labels_fit = n_classes <= _MOST_LABELS
        labels = tree.label if self._labels_fit else tree.label[:0]
        # All rows stay at the root of a tree without splits.
        self._root_label = int(tree.label[0]) if tree.is_leaf[0] else None
        self._fractional = extension().FRACTIONAL
        self.walk = extension().Walk(
            tree=native_arrays(tree),
            sizes=tree.weights.sum(axis=1),
            labels=labels.astype(np.uint8),
            values=native_values(columns),
            surrogates=native_surrogates(tree),
        )

    def labels(self, data: Columns) -> tuple[NDArray[np.uint8], Ints] | None:
        """Return class codes, and the rows that are divided between several nodes.

        Those have no code yet. Returns None if there are too many classes.
        """
        if not self._labels_fit:
            return None
        if self._root_label is not None:
            nothing = np.empty(0, dtype=np.intp)
            return np.full(data.n_rows, self._root_label, dtype=np.uint8), nothing
        labels: tuple[NDArray[np.uint8], Ints] = self.walk.label(
            columns=plain_arrays(data.data), n_rows=data.n_rows
        )
        return labels

    def blend(self, data: Columns, values: Floats, rows: Ints | None = None) -> Floats:
        """Return the values of the nodes where rows arrive, weighted by their shares.

        ``values`` has a line for each node; ``rows`` ascend, None being all of them.
        """
        if self._root_label is not None:
            n_rows = data.n_rows if rows is None else len(rows)
            return np.repeat(values[:1], n_rows, axis=0)
        blended: Floats = self.walk.blend(
            columns=plain_arrays(data.data),
            n_rows=data.n_rows,
            numbers=plain_array(values),
            rows=rows,
        )
        return blended

    def node_of_row(self, cells: list[int | float]) -> int | None:
        """Return the node where a row arrives; None if it is divided."""
        node: int = self.walk.node(cells)
        return None if node == self._fractional else node

    def reached(self, data: Columns) -> NDArray[np.uint32]:
        """Return the node where each row arrives; a row must not be divided."""
        return self._arrive(data)[0]

    def arrive(self, data: Columns) -> tuple[Ints, Ints, Floats]:
        """Return where rows arrive: (row, node, share), sorted by row, then node."""
        reached, *pieces = self._arrive(data)
        row = np.arange(data.n_rows, dtype=np.intp)
        node: Ints = reached.astype(np.intp)
        share = np.ones(data.n_rows)
        if not pieces or not len(pieces[0]):
            return row, node, share
        whole = reached != self._fractional
        row = np.concatenate([row[whole], pieces[0]])
        node = np.concatenate([node[whole], pieces[1]])
        share = np.concatenate([share[whole], pieces[2]])
        # The shares of a row are adjacent and in order: a stable sort keeps them so.
        order = np.argsort(row, kind="stable")
        return row[order], node[order], share[order]

    def _arrive(self, data: Columns) -> tuple[NDArray[Any], ...]:
        """Return where undivided rows arrive, and the shares of divided rows if any."""
        if self._root_label is not None:
            return (np.zeros(data.n_rows, dtype=np.uint32),)
        arrived: tuple[NDArray[Any], ...] = self.walk.arrive(
            columns=plain_arrays(data.data), n_rows=data.n_rows
        )
        return arrived
