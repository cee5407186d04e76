"""What may change in a row, and what a change costs: one lever for each column.

A search narrows down, column by column, which cells a row may have. Such a set of
cells is a :class:`Range` of numbers or a choice :class:`Among` codes, in both cases
with or without the missing cell; a lever knows which cell of a set is cheapest.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from branchwise.table.schema import Column, Value

#: No finite number lies above.
LARGEST = sys.float_info.max
Price = Callable[[Value | None, Value | None], float]


class Range(NamedTuple):
    """Numbers above one bound and up to another; perhaps the missing cell, too."""

    above: float
    at_most: float
    gap: bool


class Among(NamedTuple):
    """Codes as the bits of a number; perhaps the missing or the unseen cell, too."""

    mask: int
    gap: bool
    unseen: bool


Cells = Range | Among
ANY_NUMBER = Range(-math.inf, LARGEST, False)
NO_NUMBER = Range(math.inf, -math.inf, False)


class Charge(NamedTuple):
    """The cheapest cell of a set: its price, how far away it is, and its value.

    ``cell`` is a number or a code, None the missing cell.
    """

    price: float
    size: float
    cell: float | int | None


@dataclass(frozen=True)
class Lever:
    """A column of the row: what it has, what it may have, and at what price.

    ``cell`` is the number or the code that the row has, None if that is missing or
    unseen; ``value`` the same as the user knows it. ``weight`` multiplies the size of
    changes, and half of it is measured in ``scale`` (half of a span, likewise).
    """

    index: int
    column: Column
    value: Value | None
    cell: float | int | None
    start: Cells
    price: Price
    weight: float = 1.0
    scale: float = 1.0
    whole: bool = False
    typical: float = 0.0
    _charges: dict[Cells, Charge | None] = field(default_factory=dict, compare=False)

    def keeps(self, cells: Cells) -> bool:
        """Whether what the row has now is among the cells."""
        if self.cell is None:
            return (
                cells.gap if self.value is None else bool(getattr(cells, "unseen", 0))
            )
        if isinstance(cells, Range):
            return cells.above < self.cell <= cells.at_most
        return bool(cells.mask >> int(self.cell) & 1)

    def charge(self, cells: Cells) -> Charge | None:
        """Return the cheapest change into these cells; None if there is none.

        What the row has now costs nothing, and is the cell of the charge then.
        """
        if cells not in self._charges:
            self._charges[cells] = self._cheapest(cells)
        return self._charges[cells]

    def _cheapest(self, cells: Cells) -> Charge | None:
        if self.keeps(cells):
            return Charge(0.0, 0.0, self.cell)
        known = self._number(cells) if isinstance(cells, Range) else self._code(cells)
        if not cells.gap:
            return known
        missing = Charge(self.price(self.value, None), 0.0, None)
        if math.isinf(missing.price):
            return known
        cheaper = known is None or missing[:2] < known[:2]
        return missing if cheaper else known

    def _code(self, cells: Among) -> Charge | None:
        best: Charge | None = None
        mask = cells.mask
        while mask:
            code = (mask & -mask).bit_length() - 1
            mask &= mask - 1
            price = self.price(self.value, self.column.categories[code])
            if math.isfinite(price) and (best is None or price < best.price):
                best = Charge(price, 0.0, code)
        return best

    def _number(self, cells: Range) -> Charge | None:
        number = self._nearest(cells)
        if number is None:
            return None
        price = self.price(self.value, number)
        if math.isinf(price):
            return None
        if self.cell is None:
            return Charge(price, 0.0, number)
        # Halves, because the distance itself may be beyond the largest number.
        size = abs(number / 2 - self.cell / 2) / self.scale
        return Charge(price, self.weight * size, number)

    def _nearest(self, cells: Range) -> float | None:
        """Return the number of a range that is closest to what the row has."""
        if cells.above >= cells.at_most:
            return None
        start = self.typical if self.cell is None else self.cell
        if self.whole:
            return _whole_number(start, cells)
        if start > cells.at_most:
            return cells.at_most
        if start <= cells.above:
            return math.nextafter(cells.above, math.inf)
        return start


def _whole_number(start: float, cells: Range) -> float | None:
    """Return the whole number of a range that is closest to a number."""
    low, high = -LARGEST, float(math.floor(cells.at_most))
    if cells.above > -math.inf:
        low = float(math.floor(cells.above) + 1)
        if low <= cells.above:  # so large that all numbers are whole
            low = math.nextafter(cells.above, math.inf)
    if low > high:
        return None
    return min(max(float(math.floor(start + 0.5)), low), high)


def same_price(price: float) -> Price:
    """Return the price list of a column whose every change costs the same."""
    return lambda _old, _new: price


def listed_price(
    table: Mapping[tuple[Value | None, Value | None], float],
) -> Price:
    """Return the price list of pairs of values; those that are not named cost 1."""
    return lambda old, new: float(table.get((old, new), 1.0))
