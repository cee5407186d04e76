"""Exact best-first search for the cheapest change of a row.

A state of the search is a box (for every column the cells that a row may have) with
the nodes that its rows have reached so far. A node may split the box; where no node
splits it any more, all rows of the box reach the same leaves and get the same
prediction. The cost of a box is that of its cheapest row, so it only grows as boxes
shrink, and the first finished box with a wanted prediction is optimal.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np

from branchwise.data.table_schema import Columns
from branchwise.errors import DataError
from branchwise.explain.constraints import (
    NO_NUMBER,
    Among,
    Cells,
    CostFunction,
    FeatureDomain,
    Range,
)
from branchwise.explain.goal import Goal, Region
from branchwise.threads import cached_property
from branchwise.tree.splits import ABOVE, EVERY_BRANCH, STOP
from branchwise.tree.tree import Tree

#: Nodes to look at, in all boxes together, before the search is given up.
MOST_STEPS = 3_000_000


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
        missing = self.missing_to[node] if mine.is_missing and not splits_on else None
        regions: Mapping[int, Cells] = (
            self._numbers(node, mine, missing)
            if isinstance(mine, Range)
            else self._values(node, mine, missing)
        )
        found = [Outcome(to, {index: region}) for to, region in regions.items()]
        if splits_on:
            found.extend(self._split(node, index, mine, cells))
        return found

    def _numbers(self, node: int, mine: Range, missing: int | None) -> dict[int, Range]:
        """Part numbers by branch; the missing cell goes to the branch given."""
        low, high = self._sides(node)
        threshold = self._threshold[node]
        sides = [(low, mine.above, min(mine.at_most, threshold))]
        if low == high:
            sides = [(low, mine.above, mine.at_most)]
        else:
            sides.append((high, max(mine.above, threshold), mine.at_most))
        regions = {
            to: Range(above, at_most, to == missing)
            for to, above, at_most in sides
            if above < at_most
        }
        if missing is not None and missing not in regions:
            regions[missing] = NO_NUMBER._replace(is_missing=True)
        return regions

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

    def _values(self, node: int, mine: Among, missing: int | None) -> dict[int, Among]:
        """Part codes by branch; the missing cell goes to the branch given."""
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
        unseen = self._unseen_to[node] if mine.unseen else None
        return {
            to: Among(masks.get(to, 0), to == missing, to == unseen)
            for to in dict.fromkeys([*masks, missing, unseen])
            if to is not None
        }

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


@dataclass(frozen=True)
class Box:
    """Cells of every restricted column, and the changes that they require."""

    cells: Mapping[int, Cells]
    cost_functions: Mapping[int, CostFunction]

    @property
    def cost(self) -> float:
        """What all changes cost together."""
        return math.fsum(each.cost for each in self.cost_functions.values())

    @property
    def size(self) -> float:
        """How far numbers move, all together."""
        return math.fsum(each.size for each in self.cost_functions.values())

    @property
    def rank(self) -> tuple[float, float, list[int], list[tuple[bool, float]]]:
        """The order of boxes: by cost, size, columns, cells."""
        columns = sorted(self.cost_functions)
        cells = [self.cost_functions[index].cell for index in columns]
        order = [(cell is None, -1.0 if cell is None else cell) for cell in cells]
        return self.cost, self.size, columns, order

    def restricted(
        self, restricted: Mapping[int, Cells], domains: Mapping[int, FeatureDomain]
    ) -> Box | None:
        """Return the part of the box with these cells; None if it is empty."""
        cost_functions = self.cost_functions
        for index, cells in restricted.items():
            cost_function = domains[index].cost_function(cells)
            if cost_function is None:
                return None
            if not domains[index].keeps(cells):
                cost_functions = {**cost_functions, index: cost_function}
        return Box({**self.cells, **restricted}, cost_functions)


class Found(NamedTuple):
    """A box whose rows get a wanted prediction, and the nodes that they reach."""

    box: Box
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class _State:
    box: Box
    open: tuple[Region, ...]
    arrived: tuple[Region, ...]


@dataclass
class Search:
    """Best-first search for the cheapest rows with a wanted prediction.

    ``row`` is the encoded row; ``check`` predicts fractional cases with the model.
    """

    tree: Tree
    domains: Mapping[int, FeatureDomain]
    goal: Goal
    accepts: Callable[[Columns], bool]
    row: Columns
    most_steps: int = MOST_STEPS
    _heap: list[tuple[float, float, int, _State]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self._outcomes = BranchOutcomes(self.tree, self.domains)
        self._divides = self._where_rows_divide()

    def best(self, how_many: int = 1) -> list[Found]:
        """Return the cheapest boxes that arrive at different nodes, best first."""
        found: dict[tuple[int, ...], Found] = {}
        self._heap.clear()
        self._push(_State(Box({}, {}), ((0, 1.0),), ()))
        last = (math.inf, math.inf)
        while self._heap and self._heap[0][:2] <= last:
            *cost, _, state = heapq.heappop(self._heap)
            finished = self._go_on(state)
            if finished is None or not self._wanted(finished):
                continue
            nodes = tuple(sorted(node for node, _ in finished.arrived))
            _keep(found, Found(finished.box, nodes))
            if len(found) >= how_many and math.isinf(last[0]):
                # Boxes that cost the same may still come before this one.
                last = (cost[0], cost[1])
        return sorted(found.values(), key=lambda one: one.box.rank)[:how_many]

    def _go_on(self, state: _State) -> _State | None:
        """Follow certain branches; split the box at the first choice, or finish it."""
        box, arrived = state.box, list(state.arrived)
        open_, waiting = list(state.open), []
        while open_:
            node, share = open_.pop()
            self._count_step()
            if not self._outcomes.n_children[node]:
                arrived.append((node, share))
                continue
            outcomes = self._outcomes.outcomes(node, box.cells)
            if len(outcomes) > 1:
                waiting.append((node, share, outcomes))
                continue
            (outcome,) = outcomes  # the cells of a box are never none at all
            narrower = box.restricted(outcome.restricted, self.domains)
            if narrower is None:
                return None
            box = narrower
            self._move(outcome, node, share, open_, arrived)
        if not waiting:
            return _State(box, (), tuple(arrived))
        self._piece(box, waiting, arrived)
        return None

    def _count_step(self) -> None:
        self.most_steps -= 1
        if self.most_steps < 0:
            raise DataError(
                "what_if has looked at too many combinations of changes: the row has "
                "missing or unseen values that are sent down every branch, and so "
                "reaches many leaves. Fill in some of them, or name columns that "
                "must not change in immutable."
            )

    def _piece(
        self,
        box: Box,
        waiting: list[tuple[int, float, list[Outcome]]],
        arrived: list[Region],
    ) -> None:
        """Part a box at the node that has most of the row."""
        chosen = max(range(len(waiting)), key=lambda at: waiting[at][1])
        node, share, outcomes = waiting.pop(chosen)
        others = [(other, region) for other, region, _ in waiting]
        for outcome in outcomes:
            open_, there = list(others), list(arrived)
            self._move(outcome, node, share, open_, there)
            if not self._possible(open_, there):
                continue
            narrower = box.restricted(outcome.restricted, self.domains)
            if narrower is not None:
                self._push(_State(narrower, tuple(open_), tuple(there)))

    def _move(
        self,
        outcome: Outcome,
        node: int,
        share: float,
        open_: list[Region],
        arrived: list[Region],
    ) -> None:
        if outcome.to == STOP:
            arrived.append((node, share))
            return
        first = self._outcomes.first_child[node]
        if outcome.to != EVERY_BRANCH:
            open_.append((first + outcome.to, share))
            return
        width = self._outcomes.n_children[node]
        sizes = self.tree.splits.sizes[first - 1 : first - 1 + width]
        regions = (sizes / sizes.sum() * share).tolist()
        open_.extend(zip(range(first, first + width), regions, strict=True))

    def _push(self, state: _State) -> None:
        cost, size = state.box.cost, state.box.size
        heapq.heappush(self._heap, (cost, size, next(self._number), state))

    def _possible(self, open_: Sequence[Region], arrived: Sequence[Region]) -> bool:
        """Whether rows at these nodes may still get a wanted prediction."""
        if len(open_) + len(arrived) > 1:
            return self.goal.may_reach(open_, arrived)
        if arrived:
            return self.goal.right[arrived[0][0]]
        node = open_[0][0]
        if self.goal.reachable[node]:
            return True
        return self._divides[node] and self.goal.may_reach(open_, ())

    def _wanted(self, state: _State) -> bool:
        """Whether the rows of a finished box get a wanted prediction."""
        if len(state.arrived) == 1:
            return self.goal.right[state.arrived[0][0]]
        return self.goal.may_reach((), state.arrived) and self.accepts(
            changed_row(self.row, state.box, self.domains)
        )

    def _where_rows_divide(self) -> list[bool]:
        """Return for every node whether a row may become fractional at or below it."""
        tree = self.tree
        missing = [i for i, v in self.domains.items() if v.start.is_missing]
        unseen = [i for i, v in self.domains.items() if getattr(v.start, "unseen", 0)]
        divides: list[bool] = (
            ((tree.missing_to == EVERY_BRANCH) & np.isin(tree.column, missing))
            | ((tree.unseen_to == EVERY_BRANCH) & np.isin(tree.column, unseen))
        ).tolist()
        if any(divides):
            parent = tree.parent.tolist()
            for node in range(len(tree) - 1, 0, -1):
                if divides[node]:
                    divides[parent[node]] = True
        return divides


def _keep(found: dict[tuple[int, ...], Found], new: Found) -> None:
    """Keep the cheapest box of each set of nodes, and none that extends another."""
    old = found.get(new.nodes)
    if old is not None and old.box.rank <= new.box.rank:
        return
    changes = new.box.cost_functions
    for other in found.values():
        if other.nodes != new.nodes and all(
            index in changes and changes[index].cell == cost_function.cell
            for index, cost_function in other.box.cost_functions.items()
        ):
            return
    found[new.nodes] = new


def changed_row(
    row: Columns, box: Box, domains: Mapping[int, FeatureDomain]
) -> Columns:
    """Return the encoded row with the changes of a box."""
    data = list(row.data)
    for index, cost_function in box.cost_functions.items():
        column = domains[index].column
        cell = cost_function.cell
        if cell is None:
            cell = math.nan if column.is_numeric else column.missing_code
        data[index] = np.array([cell], dtype=data[index].dtype)
    return Columns(1, tuple(data))
