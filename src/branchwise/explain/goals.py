"""Which answers a search is after, and which parts of a tree can still give them.

A row that arrives at one node gets that node's answer. A divided row gets the answer
of a mean of nodes, which may be that of none of them; so a part of the tree is given
up for divided rows only where a bound excludes the answer: the difference between two
classes (in probability, or in what they cost) is linear in the shares, and cannot be
larger than the shares times its largest value below each node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.predict import Walker, class_chances
from branchwise.recipes import Recipe
from branchwise.table.schema import Columns
from branchwise.tree import Tree

#: Bounds are not trusted closer than this, far above what rounding and ties can do.
_SLACK = 1e-6
#: More entries than this are not worth a bound.
_MOST_BOUNDS = 20_000_000
#: A part of a row: node and share.
Part = tuple[int, float]


@dataclass(frozen=True)
class Goal:
    """The nodes that give a wanted answer, and bounds for divided rows.

    ``right`` tells for every node whether its answer is wanted, ``reachable`` whether
    one at or below it is. ``bounds`` are, for every node, the largest values of some
    amounts at or below it; all of them (or any, with ``any_of``) must be able to
    exceed ``least``.
    """

    right: list[bool]
    reachable: list[bool]
    bounds: Floats | None
    own: Floats | None
    least: Floats
    any_of: bool

    def hopeful(self, open_: Sequence[Part], arrived: Sequence[Part]) -> bool:
        """Whether a divided row may still get a wanted answer."""
        if self.bounds is None or self.own is None:
            return True
        most = np.zeros(len(self.least))
        for node, share in open_:
            most += share * self.bounds[node]
        for node, share in arrived:
            most += share * self.own[node]
        enough = most >= self.least
        return bool(enough.any() if self.any_of else enough.all())


def class_goal(tree: Tree, recipe: Recipe, code: int, wanted: bool) -> Goal:
    """Return the goal of a class, or (not ``wanted``) of any other class."""
    right = (tree.label == code) == wanted
    n_classes = tree.weights.shape[1]
    own = None
    if len(tree) * n_classes <= _MOST_BOUNDS:
        merit = class_chances(tree.weights, tree.weights[0], recipe)
        if recipe.costs is not None:
            merit = -merit @ np.asarray(recipe.costs, dtype=np.float64)
        lead = merit[:, [code]] - merit
        own = np.delete(lead if wanted else -lead, code, axis=1)
    least = np.full(n_classes - 1, 0.0)
    return _goal(tree, right, own, least, any_of=not wanted)


def number_goal(tree: Tree, low: float, high: float, strict: bool) -> Goal:
    """Return the goal of a mean between two numbers; strict excludes both."""
    mean = np.zeros(len(tree)) if tree.mean is None else tree.mean
    right = (mean > low) & (mean < high) if strict else (mean >= low) & (mean <= high)
    own = np.stack([mean, -mean], axis=1)
    return _goal(tree, right, own, np.array([low, -high]), any_of=False)


def _goal(
    tree: Tree,
    right: NDArray[np.bool_],
    own: Floats | None,
    least: Floats,
    any_of: bool,
) -> Goal:
    reachable = right.tolist()
    parent = tree.parent.tolist()
    for node in range(len(tree) - 1, 0, -1):
        if reachable[node]:
            reachable[parent[node]] = True
    bounds = None
    if own is not None:
        size = max(1.0, float(np.abs(own).max(initial=0.0)))
        least = least - _SLACK * size
        bounds = _largest_below(tree.parent, own)
    return Goal(right.tolist(), reachable, bounds, own, least, any_of)


def _largest_below(parent: Ints, own: Floats) -> Floats:
    """Return the largest entry at or below every node; children come after parents."""
    columns = []
    above = parent.tolist()
    for entries in own.T.tolist():
        for node in range(len(above) - 1, 0, -1):
            up = above[node]
            if entries[up] < entries[node]:
                entries[up] = entries[node]
        columns.append(entries)
    return np.array(columns).T.reshape(own.shape)


@dataclass(frozen=True)
class Judge:
    """Asks the model itself for the answer to an encoded row."""

    walker: Walker
    tree: Tree
    code: int
    wanted: bool
    low: float = -math.inf
    high: float = math.inf
    strict: bool = False

    def accepts(self, data: Columns) -> bool:
        """Whether the answer to the only row of the data is wanted."""
        arrivals = self.walker.walk(data)
        if not self.tree.predicts_numbers:
            return (int(self.walker.labels(arrivals)[0]) == self.code) == self.wanted
        number = float(self.walker.numbers(arrivals)[0])
        if self.strict:
            return self.low < number < self.high
        return self.low <= number <= self.high
