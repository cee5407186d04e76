"""The smallest change, exactly: the boxes of a tree, the cheapest first.

A state of the search is a box (for every column the cells that a row may have) with
the nodes that its rows have come to so far. It goes on where a node parts the box;
where nothing is left to part, all rows of the box arrive at the same nodes and get
the same answer. The price of a box is that of its cheapest row, so it only grows as
boxes shrink, and the first finished box with a wanted answer is the best there is.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.schema import Columns
from branchwise.errors import DataError
from branchwise.explain.constraints import Cells, Charge, Lever
from branchwise.explain.goal import Crossroads, Goal, Judge, Outcome, Part
from branchwise.tree.splits import EVERY_BRANCH, STOP
from branchwise.tree.tree import Tree

#: Nodes to look at, in all boxes together, before the search is given up.
MOST_STEPS = 3_000_000


@dataclass(frozen=True)
class Box:
    """Cells for every column that was narrowed down, and what has to change."""

    cells: Mapping[int, Cells]
    charges: Mapping[int, Charge]

    @property
    def price(self) -> float:
        """What all changes cost together."""
        return math.fsum(charge.price for charge in self.charges.values())

    @property
    def size(self) -> float:
        """How far numbers move, all together."""
        return math.fsum(charge.size for charge in self.charges.values())

    @property
    def rank(self) -> tuple[float, float, list[int], list[tuple[bool, float]]]:
        """What decides between boxes: price, size, columns, cells."""
        columns = sorted(self.charges)
        cells = [self.charges[index].cell for index in columns]
        order = [(cell is None, -1.0 if cell is None else cell) for cell in cells]
        return self.price, self.size, columns, order

    def narrowed(
        self, narrowed: Mapping[int, Cells], levers: Mapping[int, Lever]
    ) -> Box | None:
        """Return the part of the box with these cells; None if it is empty."""
        charges = self.charges
        for index, cells in narrowed.items():
            charge = levers[index].charge(cells)
            if charge is None:
                return None
            if not levers[index].keeps(cells):
                charges = {**charges, index: charge}
        return Box({**self.cells, **narrowed}, charges)


class Found(NamedTuple):
    """A box whose rows get a wanted answer, and the nodes that they arrive at."""

    box: Box
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class _State:
    box: Box
    open: tuple[Part, ...]
    arrived: tuple[Part, ...]


@dataclass
class Search:
    """Looks for the cheapest rows with a wanted answer.

    ``row`` is the encoded row, ``judge`` has the last word where a row is divided.
    """

    tree: Tree
    levers: Mapping[int, Lever]
    goal: Goal
    judge: Judge
    row: Columns
    most_steps: int = MOST_STEPS
    _heap: list[tuple[float, float, int, _State]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self._roads = Crossroads(self.tree, self.levers)
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
        """Follow what is certain; part the box at the first choice, or finish it."""
        box, arrived = state.box, list(state.arrived)
        open_, waiting = list(state.open), []
        while open_:
            node, share = open_.pop()
            self._count_step()
            if not self._roads.n_children[node]:
                arrived.append((node, share))
                continue
            outcomes = self._roads.outcomes(node, box.cells)
            if len(outcomes) > 1:
                waiting.append((node, share, outcomes))
                continue
            (outcome,) = outcomes  # the cells of a box are never none at all
            narrower = box.narrowed(outcome.narrowed, self.levers)
            if narrower is None:
                return None
            box = narrower
            self._move(outcome, node, share, open_, arrived)
        if not waiting:
            return _State(box, (), tuple(arrived))
        self._part(box, waiting, arrived)
        return None

    def _count_step(self) -> None:
        self.most_steps -= 1
        if self.most_steps < 0:
            raise DataError(
                "what_if has looked at too many combinations of changes: the row has "
                "missing or unseen values that are sent down every branch, and so is "
                "in many places at once. Fill in some of them, or name columns that "
                "must not change in immutable."
            )

    def _part(
        self,
        box: Box,
        waiting: list[tuple[int, float, list[Outcome]]],
        arrived: list[Part],
    ) -> None:
        """Part a box at the node that has most of the row."""
        chosen = max(range(len(waiting)), key=lambda at: waiting[at][1])
        node, share, outcomes = waiting.pop(chosen)
        others = [(other, part) for other, part, _ in waiting]
        for outcome in outcomes:
            open_, there = list(others), list(arrived)
            self._move(outcome, node, share, open_, there)
            if not self._possible(open_, there):
                continue
            narrower = box.narrowed(outcome.narrowed, self.levers)
            if narrower is not None:
                self._push(_State(narrower, tuple(open_), tuple(there)))

    def _move(
        self,
        outcome: Outcome,
        node: int,
        share: float,
        open_: list[Part],
        arrived: list[Part],
    ) -> None:
        if outcome.to == STOP:
            arrived.append((node, share))
            return
        first = self._roads.first_child[node]
        if outcome.to != EVERY_BRANCH:
            open_.append((first + outcome.to, share))
            return
        width = self._roads.n_children[node]
        sizes = self.tree.splits.sizes[first - 1 : first - 1 + width]
        parts = (sizes / sizes.sum() * share).tolist()
        open_.extend(zip(range(first, first + width), parts, strict=True))

    def _push(self, state: _State) -> None:
        price, size = state.box.price, state.box.size
        heapq.heappush(self._heap, (price, size, next(self._number), state))

    def _possible(self, open_: Sequence[Part], arrived: Sequence[Part]) -> bool:
        """Whether rows that are at these nodes may still get a wanted answer."""
        if len(open_) + len(arrived) > 1:
            return self.goal.hopeful(open_, arrived)
        if arrived:
            return self.goal.right[arrived[0][0]]
        node = open_[0][0]
        if self.goal.reachable[node]:
            return True
        return self._divides[node] and self.goal.hopeful(open_, ())

    def _wanted(self, state: _State) -> bool:
        """Whether the rows of a finished box do get a wanted answer."""
        if len(state.arrived) == 1:
            return self.goal.right[state.arrived[0][0]]
        return self.goal.hopeful((), state.arrived) and self.judge.accepts(
            changed_row(self.row, state.box, self.levers)
        )

    def _where_rows_divide(self) -> list[bool]:
        """Tell for every node whether a row may be divided at or below it."""
        tree = self.tree
        gaps = [i for i, lever in self.levers.items() if lever.start.gap]
        unseen = [i for i, v in self.levers.items() if getattr(v.start, "unseen", 0)]
        divides: list[bool] = (
            ((tree.missing_to == EVERY_BRANCH) & _is_one_of(tree, gaps))
            | ((tree.unseen_to == EVERY_BRANCH) & _is_one_of(tree, unseen))
        ).tolist()
        if any(divides):
            parent = tree.parent.tolist()
            for node in range(len(tree) - 1, 0, -1):
                if divides[node]:
                    divides[parent[node]] = True
        return divides


def _is_one_of(tree: Tree, columns: list[int]) -> NDArray[np.bool_]:
    return np.isin(tree.column, columns)


def _keep(found: dict[tuple[int, ...], Found], new: Found) -> None:
    """Keep the best way to each set of nodes, and none that only adds to another."""
    old = found.get(new.nodes)
    if old is not None and old.box.rank <= new.box.rank:
        return
    changes = new.box.charges
    for other in found.values():
        if other.nodes != new.nodes and all(
            index in changes and changes[index].cell == charge.cell
            for index, charge in other.box.charges.items()
        ):
            return
    found[new.nodes] = new


def changed_row(row: Columns, box: Box, levers: Mapping[int, Lever]) -> Columns:
    """Return the encoded row with the changes of a box."""
    data = list(row.data)
    for index, charge in box.charges.items():
        column = levers[index].column
        cell = charge.cell
        if cell is None:
            cell = math.nan if column.is_numeric else column.missing_code
        data[index] = np.array([cell], dtype=data[index].dtype)
    return Columns(1, tuple(data))
