"""Where the cells of a column lead from a node: the branches of a search.

At a node, the cells that a row may still have in the column are parted by where they
lead: down a branch, nowhere (the row stops), or down every branch. Where a missing
cell is answered by surrogates, the cells of their columns are parted, too. The parts
of all nodes together cut the space of rows into boxes, in each of which every row
arrives at the same nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from branchwise.explain.levers import NO_NUMBER, Among, Cells, Lever, Range
from branchwise.forks import cached_property
from branchwise.missing import STOP
from branchwise.splits import ABOVE
from branchwise.tree import Tree

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
