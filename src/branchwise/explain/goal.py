"""Which answers a search is after, and which parts of a tree can still give them.

A row that arrives at one node gets that node's answer. A divided row gets the answer
of a mean of nodes, which may be that of none of them; so a part of the tree is given
up for divided rows only where a bound excludes the answer: the difference between two
classes (in probability, or in what they cost) is linear in the shares, and cannot be
larger than the shares times its largest value below each node.
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
from branchwise.explain.constraints import NO_NUMBER, Among, Cells, Lever, Range
from branchwise.recipe import Recipe
from branchwise.threads import cached_property
from branchwise.tree.apply import Walker, class_chances
from branchwise.tree.splits import ABOVE, STOP
from branchwise.tree.tree import Tree

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


Narrowed = dict[int, Cells]


class Outcome(NamedTuple):
    """One way to go on: a branch, STOP or EVERY_BRANCH, and what leads there."""

    to: int
    narrowed: Narrowed


class Crossroads:
    """The nodes of a tree as places where cells part."""

    def __init__(self, tree: Tree, levers: Mapping[int, Lever]) -> None:
        self._tree = tree
        self._levers = levers
        # Lists, since single entries of arrays are slow.
        self.column: list[int] = tree.column.tolist()
        self.first_child: list[int] = tree.first_child.tolist()
        self.n_children: list[int] = tree.n_children.tolist()
        self.missing_to: list[int] = tree.missing_to.tolist()
        self._unseen_to: list[int] = tree.unseen_to.tolist()
        self._cut: list[float] = tree.cut.tolist()
        self._code_starts: list[int] = tree.code_starts.tolist()
        self._codes: list[int] = tree.codes.tolist()
        self._masks: dict[int, list[int]] = {}

    def outcomes(self, node: int, cells: Mapping[int, Cells]) -> list[Outcome]:
        """Part the cells that a row may have by where they lead from a node."""
        index = self.column[node]
        mine = cells.get(index) or self._levers[index].start
        asks = mine.gap and self._n_surrogates[node] > 0
        parts: dict[int, Cells] = {}
        if isinstance(mine, Range):
            self._part_numbers(node, mine, parts, mine.gap and not asks)
        else:
            self._part_codes(node, mine, parts, mine.gap and not asks)
        found = [Outcome(to, {index: part}) for to, part in parts.items()]
        if asks:
            found.extend(self._ask(node, index, mine, cells))
        return found

    def _part_numbers(
        self, node: int, mine: Range, parts: dict[int, Cells], gap: bool
    ) -> None:
        low, high = self._sides(node)
        missing = self.missing_to[node] if gap else None
        cut = self._cut[node]
        sides = [(low, mine.above, min(mine.at_most, cut))]
        if low == high:
            sides = [(low, mine.above, mine.at_most)]
        else:
            sides.append((high, max(mine.above, cut), mine.at_most))
        for to, above, at_most in sides:
            if above < at_most:
                parts[to] = Range(above, at_most, to == missing)
        if missing is not None and missing not in parts:
            parts[missing] = NO_NUMBER._replace(gap=True)

    def _sides(self, node: int) -> tuple[int, int]:
        """Return where numbers up to the cut and above it lead."""
        sides = [STOP, STOP]
        for branch in range(self.n_children[node]):
            for code in self._codes_of(node, branch):
                sides[code] = branch
        return sides[0], sides[1]

    def _codes_of(self, node: int, branch: int) -> list[int]:
        child = self.first_child[node] + branch
        return self._codes[self._code_starts[child] : self._code_starts[child + 1]]

    def _part_codes(
        self, node: int, mine: Among, parts: dict[int, Cells], gap: bool
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
        missing = self.missing_to[node] if gap else None
        unseen = self._unseen_to[node] if mine.unseen else None
        for to in dict.fromkeys([*masks, missing, unseen]):
            if to is not None:
                parts[to] = Among(masks.get(to, 0), to == missing, to == unseen)

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

    def _ask(
        self, node: int, index: int, mine: Cells, cells: Mapping[int, Cells]
    ) -> Iterator[Outcome]:
        """Ask the surrogates in turn, each where those before it know nothing."""
        only_missing: Cells = (
            NO_NUMBER._replace(gap=True)
            if isinstance(mine, Range)
            else Among(0, True, False)
        )
        narrowed: Narrowed = {index: only_missing}
        surrogates = self._tree.surrogates
        if surrogates is None:
            return
        its_own = surrogates.take(np.array([node])).splits
        ends = np.cumsum(its_own.n_codes)
        codes = [part.tolist() for part in np.split(its_own.codes, ends[:-1])]
        for at, column in enumerate(its_own.column.tolist()):
            there = narrowed.get(column) or cells.get(column)
            there = there or self._levers[column].start
            sides = codes[2 * at], codes[2 * at + 1]
            *known, unknown = _stand_in(there, float(its_own.cut[at]), sides)
            for branch, part in enumerate(known):
                if part is not None:
                    yield Outcome(branch, {**narrowed, column: part})
            if unknown is None:
                return
            narrowed = {**narrowed, column: unknown}
        yield Outcome(self.missing_to[node], narrowed)


def _mask(codes: list[int]) -> int:
    mask = 0
    for code in codes:
        mask |= 1 << code
    return mask


def _stand_in(
    cells: Cells, cut: float, sides: tuple[list[int], list[int]]
) -> list[Cells | None]:
    """Part cells into those of the first side, of the second and of neither."""
    if isinstance(cells, Among):
        masks = [cells.mask & _mask(side) for side in sides]
        left = cells.mask & ~masks[0] & ~masks[1]
        known: list[Cells | None] = [
            Among(m, False, False) if m else None for m in masks
        ]
        neither = Among(left, cells.gap, cells.unseen)
        return [*known, neither if any(neither) else None]
    low = Range(cells.above, min(cells.at_most, cut), False)
    high = Range(max(cells.above, cut), cells.at_most, False)
    if sides[0][0] == ABOVE:
        low, high = high, low
    parts: list[Cells | None] = [
        part if part.above < part.at_most else None for part in (low, high)
    ]
    return [*parts, NO_NUMBER._replace(gap=True) if cells.gap else None]
