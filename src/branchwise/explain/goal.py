"""The goal of a what-if search: wanted predictions, bounds, and branches of a box.

A row that reaches one node gets the prediction of that node. A fractional case gets
the prediction of a mean of nodes, which may differ from that of each of them; so for
fractional cases a subtree is excluded only where a bound excludes the prediction: the
difference between two classes (in probability, or in expected cost) is linear in the
shares, and cannot be larger than the shares times its largest value below each node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.schema import Columns
from branchwise.explain.constraints import NO_NUMBER, Among, Cells, FeatureDomain, Range
from branchwise.recipe import Recipe
from branchwise.threads import cached_property
from branchwise.tree.apply import Walker, class_probabilities
from branchwise.tree.splits import ABOVE, STOP
from branchwise.tree.tree import Tree

#: Slack of the bounds, far above the effects of rounding and ties.
_SLACK = 1e-6
#: With more entries than this no bounds are computed.
_MOST_BOUNDS = 20_000_000
#: A part of a row: node and share.
Region = tuple[int, float]


@dataclass(frozen=True)
class Goal:
    """The nodes with a wanted prediction, and bounds for fractional cases.

    ``right`` tells for every node whether its prediction is wanted, ``reachable``
    whether one at or below it is. ``bounds`` are, for every node, the largest values
    of some amounts at or below it; all of them (or any, with ``any_of``) must be able
    to exceed ``least``.
    """

    right: list[bool]
    reachable: list[bool]
    bounds: Floats | None
    own: Floats | None
    least: Floats
    any_of: bool

    def may_reach(self, open_: Sequence[Region], arrived: Sequence[Region]) -> bool:
        """Whether a fractional case may still get a wanted prediction."""
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
        merit = class_probabilities(tree.weights, tree.weights[0], recipe)
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
class PredictionCheck:
    """Checks whether the model gives a wanted prediction for an encoded row."""

    walker: Walker
    tree: Tree
    code: int
    wanted: bool
    low: float = -math.inf
    high: float = math.inf
    strict: bool = False

    def accepts(self, data: Columns) -> bool:
        """Whether the prediction for the only row of the data is wanted."""
        arrivals = self.walker.walk(data)
        if not self.tree.is_regression:
            return (int(self.walker.labels(arrivals)[0]) == self.code) == self.wanted
        number = float(self.walker.numbers(arrivals)[0])
        if self.strict:
            return self.low < number < self.high
        return self.low <= number <= self.high


Restricted = dict[int, Cells]


class Outcome(NamedTuple):
    """A possible outcome at a node: a branch, STOP or EVERY_BRANCH, and its cells."""

    to: int
    restricted: Restricted


class BranchOutcomes:
    """The nodes of a tree as places where cells part."""

    def __init__(self, tree: Tree, domains: Mapping[int, FeatureDomain]) -> None:
        self._tree = tree
        self._domains = domains
        # Lists, since single entries of arrays are slow.
        self.column: list[int] = tree.column.tolist()
        self.first_child: list[int] = tree.first_child.tolist()
        self.n_children: list[int] = tree.n_children.tolist()
        self.missing_to: list[int] = tree.missing_to.tolist()
        self._unseen_to: list[int] = tree.unseen_to.tolist()
        self._threshold: list[float] = tree.threshold.tolist()
        self._code_starts: list[int] = tree.code_starts.tolist()
        self._codes: list[int] = tree.codes.tolist()
        self._masks: dict[int, list[int]] = {}

    def outcomes(self, node: int, cells: Mapping[int, Cells]) -> list[Outcome]:
        """Part the cells that a row may have by where they lead from a node."""
        index = self.column[node]
        mine = cells.get(index) or self._domains[index].start
        splits_on = mine.is_missing and self._n_surrogates[node] > 0
        regions: dict[int, Cells] = {}
        if isinstance(mine, Range):
            self._piece_numbers(node, mine, regions, mine.is_missing and not splits_on)
        else:
            self._piece_codes(node, mine, regions, mine.is_missing and not splits_on)
        found = [Outcome(to, {index: region}) for to, region in regions.items()]
        if splits_on:
            found.extend(self._split(node, index, mine, cells))
        return found

    def _piece_numbers(
        self, node: int, mine: Range, regions: dict[int, Cells], is_missing: bool
    ) -> None:
        low, high = self._sides(node)
        missing = self.missing_to[node] if is_missing else None
        threshold = self._threshold[node]
        sides = [(low, mine.above, min(mine.at_most, threshold))]
        if low == high:
            sides = [(low, mine.above, mine.at_most)]
        else:
            sides.append((high, max(mine.above, threshold), mine.at_most))
        for to, above, at_most in sides:
            if above < at_most:
                regions[to] = Range(above, at_most, to == missing)
        if missing is not None and missing not in regions:
            regions[missing] = NO_NUMBER._replace(is_missing=True)

    def _sides(self, node: int) -> tuple[int, int]:
        """Return the children of numbers up to the threshold and above it."""
        sides = [STOP, STOP]
        for branch in range(self.n_children[node]):
            for code in self._codes_of(node, branch):
                sides[code] = branch
        return sides[0], sides[1]

    def _codes_of(self, node: int, branch: int) -> list[int]:
        child = self.first_child[node] + branch
        return self._codes[self._code_starts[child] : self._code_starts[child + 1]]

    def _piece_codes(
        self, node: int, mine: Among, regions: dict[int, Cells], is_missing: bool
    ) -> None:
        left = mine.mask
        masks: dict[int, int] = {}
        for branch, mask in enumerate(self._branch_masks(node)):
            if left & mask:
                masks[branch] = left & mask
                left &= ~mask
            if not left:
                break
        if left:
            masks[STOP] = left
        missing = self.missing_to[node] if is_missing else None
        unseen = self._unseen_to[node] if mine.unseen else None
        for to in dict.fromkeys([*masks, missing, unseen]):
            if to is not None:
                regions[to] = Among(masks.get(to, 0), to == missing, to == unseen)

    def _branch_masks(self, node: int) -> list[int]:
        if node not in self._masks:
            self._masks[node] = [
                _mask(self._codes_of(node, b)) for b in range(self.n_children[node])
            ]
        return self._masks[node]

    # ------------------------------------------------------------ surrogates

    @cached_property
    def _n_surrogates(self) -> list[int]:
        if self._tree.n_surrogates is None:
            return [0] * len(self._tree)
        numbers: list[int] = self._tree.n_surrogates.tolist()
        return numbers

    def _split(
        self, node: int, index: int, mine: Cells, cells: Mapping[int, Cells]
    ) -> Iterator[Outcome]:
        """Yield the outcomes of each surrogate, where those before it are missing."""
        only_missing: Cells = (
            NO_NUMBER._replace(is_missing=True)
            if isinstance(mine, Range)
            else Among(0, True, False)
        )
        restricted: Restricted = {index: only_missing}
        surrogates = self._tree.surrogates
        if surrogates is None:
            return
        its_own = surrogates.take(np.array([node])).splits
        ends = np.cumsum(its_own.n_codes)
        codes = [region.tolist() for region in np.split(its_own.codes, ends[:-1])]
        for at, column in enumerate(its_own.column.tolist()):
            there = restricted.get(column) or cells.get(column)
            there = there or self._domains[column].start
            sides = codes[2 * at], codes[2 * at + 1]
            *known, unknown = _stand_in(there, float(its_own.threshold[at]), sides)
            for branch, region in enumerate(known):
                if region is not None:
                    yield Outcome(branch, {**restricted, column: region})
            if unknown is None:
                return
            restricted = {**restricted, column: unknown}
        yield Outcome(self.missing_to[node], restricted)


def _mask(codes: list[int]) -> int:
    mask = 0
    for code in codes:
        mask |= 1 << code
    return mask


def _stand_in(
    cells: Cells, threshold: float, sides: tuple[list[int], list[int]]
) -> list[Cells | None]:
    """Part cells into those of the first side, of the second and of neither."""
    if isinstance(cells, Among):
        masks = [cells.mask & _mask(side) for side in sides]
        left = cells.mask & ~masks[0] & ~masks[1]
        known: list[Cells | None] = [
            Among(m, False, False) if m else None for m in masks
        ]
        neither = Among(left, cells.is_missing, cells.unseen)
        return [*known, neither if any(neither) else None]
    low = Range(cells.above, min(cells.at_most, threshold), False)
    high = Range(max(cells.above, threshold), cells.at_most, False)
    if sides[0][0] == ABOVE:
        low, high = high, low
    regions: list[Cells | None] = [
        region if region.above < region.at_most else None for region in (low, high)
    ]
    return [*regions, NO_NUMBER._replace(is_missing=True) if cells.is_missing else None]
