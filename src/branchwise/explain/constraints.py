"""What the user allows to change, and the prices: parameters become levers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from branchwise.data.schema import Column, Columns, Schema, Value
from branchwise.errors import ParameterError, quoted
from branchwise.recipe import Recipe
from branchwise.tree.tree import Tree

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


_DIRECTIONS = ("up", "down")


@dataclass(frozen=True)
class Wishes:
    """What may change and what it costs; columns by name.

    See :meth:`branchwise.model.Model.what_if` for the meaning.
    """

    immutable: Collection[str] = ()
    costs: Mapping[str, Any] | None = None
    monotone: Mapping[str, str] | None = None
    whole: Collection[str] = ()
    allow_missing: bool = False

    def checked(self, schema: Schema, recipe: Recipe) -> Wishes:
        """Refuse names that are no columns, and wishes that make no sense."""
        wishes = replace(
            self, immutable=_names(self.immutable), whole=_names(self.whole)
        )
        for parameter in ("immutable", "costs", "monotone", "whole"):
            _known(parameter, getattr(wishes, parameter) or (), schema)
        columns = dict(zip(schema.names, schema.columns, strict=True))
        for name in wishes.whole:
            if not columns[name].is_numeric:
                raise ParameterError(
                    f"whole names columns of whole numbers. Got {name!r}, which is "
                    f"{columns[name].kind}; leave it out."
                )
        for name, direction in (self.monotone or {}).items():
            _check_direction(columns[name], direction)
        for name, cost in (self.costs or {}).items():
            _price(columns[name], cost)
        if self.allow_missing and recipe.missing == "error":
            raise ParameterError(
                "allow_missing=True proposes missing values, but the tree was fitted "
                "with missing='error' and refuses them. Leave allow_missing out."
            )
        return wishes

    @property
    def unlimited(self) -> Wishes:
        """The same prices without anything that must stay as it is."""
        costs = {n: c for n, c in (self.costs or {}).items() if not _forbids(c)}
        return replace(self, immutable=(), monotone=None, costs=costs)

    def forbids(self, name: str) -> str | None:
        """Tell why a column must not change as one would like, if it must not."""
        if name in self.immutable:
            return "immutable"
        if self.monotone and name in self.monotone:
            return f"only allowed to go {self.monotone[name]}"
        if self.costs and _forbids(self.costs.get(name)):
            return "too costly"
        return None

    def levers(
        self, schema: Schema, tree: Tree, data: Columns, values: Mapping[int, Any]
    ) -> dict[int, Lever]:
        """Return the lever of every column that the tree asks about."""
        return {
            index: self._lever(schema, tree, data, values, index) for index in values
        }

    def _lever(
        self,
        schema: Schema,
        tree: Tree,
        data: Columns,
        values: Mapping[int, Any],
        index: int,
    ) -> Lever:
        column = schema.columns[index]
        price, weight = _price(column, (self.costs or {}).get(column.name, 1.0))
        cell = _cell(column, data.data[index][0], values[index])
        scale, typical = cut_span(tree, index) if column.is_numeric else (1.0, 0.0)
        return Lever(
            index,
            column,
            values[index],
            cell,
            self._start(column, cell, values[index]),
            price,
            weight,
            scale,
            column.name in self.whole,
            typical,
        )

    def _start(self, column: Column, cell: Any, value: Value | None) -> Cells:
        """Return the cells that the column may have at all."""
        missing, unseen = value is None, cell is None and value is not None
        gap = missing or (self.allow_missing and column.name not in self.immutable)
        if column.is_numeric:
            return _number_start(self, column, cell, gap)
        mask = (1 << len(column.categories)) - 1
        if column.name in self.immutable:
            mask = 0 if cell is None else 1 << cell
        elif cell is not None and self.monotone and column.name in self.monotone:
            up = self.monotone[column.name] == "up"
            below = (1 << (cell if up else cell + 1)) - 1
            mask = mask & ~below if up else below
        return Among(mask, gap, unseen)


def _number_start(wishes: Wishes, column: Column, cell: Any, gap: bool) -> Range:
    start = ANY_NUMBER
    if column.name in wishes.immutable:
        start = NO_NUMBER
        if cell is not None:
            start = Range(math.nextafter(cell, -math.inf), cell, False)
    elif cell is not None and wishes.monotone and column.name in wishes.monotone:
        if wishes.monotone[column.name] == "up":
            start = start._replace(above=math.nextafter(cell, -math.inf))
        else:
            start = start._replace(at_most=cell)
    return start._replace(gap=gap)


def _cell(column: Column, cell: Any, value: Value | None) -> float | int | None:
    if value is None:
        return None
    if column.is_numeric:
        return float(cell) + 0.0
    return None if int(cell) == column.unseen_code else int(cell)


def cut_span(tree: Tree, index: int) -> tuple[float, float]:
    """Return half the span that sizes are measured in, and a typical number.

    The span is what lies between the lowest and the highest cut of the column in the
    tree; with one cut only it is the size of that cut, and 1 with a cut at 0.
    """
    cuts = tree.cut[tree.column == index]
    if tree.surrogate_cut is not None and tree.surrogate_column is not None:
        own = tree.surrogate_column == index
        cuts = np.concatenate([cuts, tree.surrogate_cut[own]])
    cuts = cuts[~np.isnan(cuts)]
    if not len(cuts):
        return 0.5, 0.0
    low, high = float(cuts.min()), float(cuts.max())
    half = high / 2 - low / 2
    return half or abs(low) / 2 or 0.5, low


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _known(parameter: str, names: Iterable[Any], schema: Schema) -> None:
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise ParameterError(
            f"{parameter} names columns of the tree. Got {quoted(unknown)}; the "
            f"columns are {quoted(schema.names, 20)}."
        )


def _check_direction(column: Column, direction: object) -> None:
    if direction not in _DIRECTIONS:
        raise ParameterError(
            f"monotone must be 'up' or 'down' for every column. Got {direction!r} for "
            f"{column.name!r}."
        )
    if column.kind == "categorical":
        raise ParameterError(
            "monotone is for numbers and for categories in an order. Got "
            f"{column.name!r}, whose values have none; name it in immutable, or price "
            "its changes in costs."
        )


def _forbids(cost: Any) -> bool:
    if isinstance(cost, Mapping):
        return any(math.isinf(price) for price in cost.values())
    return callable(cost) or (isinstance(cost, (int, float)) and math.isinf(cost))


def _price(column: Column, cost: Any) -> tuple[Price, float]:
    """Return the price list of a column, and what multiplies the size of changes."""
    if callable(cost):
        return _asked_price(column, cost), 1.0
    if isinstance(cost, Mapping):
        if column.is_numeric:
            raise ParameterError(
                f"costs of {column.name!r} must be a number or a function of the old "
                "and the new value, since it holds numbers. Got a table of pairs."
            )
        for pair, price in cost.items():
            _check_pair(column, pair)
            _check_price(column, price)
        return listed_price(cost), 1.0
    price = _check_price(column, cost)
    return same_price(price), price if math.isfinite(price) else 1.0


def _asked_price(column: Column, ask: Callable[[Any, Any], Any]) -> Price:
    return lambda old, new: _check_price(column, ask(old, new))


def _check_pair(column: Column, pair: Any) -> None:
    if not (isinstance(pair, tuple) and len(pair) == 2):
        raise ParameterError(
            f"costs of {column.name!r} must name pairs (old value, new value). Got "
            f"{pair!r}."
        )
    if pair[1] is not None and pair[1] not in column.code_of:
        raise ParameterError(
            f"costs of {column.name!r} must name values of the column. Got "
            f"{pair[1]!r}; the values are {quoted(column.categories, 20)}."
        )


def _check_price(column: Column, price: Any) -> float:
    if isinstance(price, (int, float, np.integer, np.floating)) and price >= 0:
        return float(price)
    raise ParameterError(
        f"costs of {column.name!r} must be numbers of at least 0, or infinity for a "
        f"change that is not allowed. Got {price!r}."
    )
