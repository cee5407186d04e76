"""Constraints of a what-if search: which columns may change, and what it costs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from branchwise.data.conventions.date_format import UNITS
from branchwise.data.table_schema import Column, Columns, Schema, Value
from branchwise.errors import ParameterError, quoted
from branchwise.recipe import Recipe
from branchwise.text.bounds import shown
from branchwise.tree.tree import Tree

#: No finite number lies above.
LARGEST = sys.float_info.max
CostSpec = Callable[[Value | None, Value | None], float]


class Range(NamedTuple):
    """Numbers above one bound and up to another; perhaps the missing cell, too."""

    above: float
    at_most: float
    is_missing: bool


class Among(NamedTuple):
    """Codes as the bits of a number; perhaps the missing or the unseen cell, too."""

    mask: int
    is_missing: bool
    unseen: bool


Cells = Range | Among
ANY_NUMBER = Range(-math.inf, LARGEST, False)
NO_NUMBER = Range(math.inf, -math.inf, False)


class CostFunction(NamedTuple):
    """The cheapest cell of a set: its cost, its distance, and its value.

    ``cell`` is a number or a code, None the missing cell.
    """

    cost: float
    size: float
    cell: float | int | None


@dataclass(frozen=True)
class FeatureDomain:
    """The domain of a column: the value of the row, allowed values, and their costs.

    ``cell`` is the number or the code of ``value``, None if that is missing or unseen.
    ``weight`` multiplies the size of changes, half of which is measured in ``scale``
    (half of a span, likewise).
    """

    index: int
    column: Column
    value: Value | None
    cell: float | int | None
    start: Cells
    cost: CostSpec
    weight: float = 1.0
    scale: float = 1.0
    whole: bool = False
    typical: float = 0.0
    _cost_functions: dict[Cells, CostFunction | None] = field(
        default_factory=dict, compare=False
    )

    def keeps(self, cells: Cells) -> bool:
        """Whether what the row has now is among the cells."""
        if self.cell is None:
            return (
                cells.is_missing
                if self.value is None
                else bool(getattr(cells, "unseen", 0))
            )
        if isinstance(cells, Range):
            return cells.above < self.cell <= cells.at_most
        return bool(cells.mask >> int(self.cell) & 1)

    def cost_function(self, cells: Cells) -> CostFunction | None:
        """Return the cheapest change into these cells; None if there is none.

        What the row has now costs nothing, and is the cell of the result then.
        """
        if cells not in self._cost_functions:
            self._cost_functions[cells] = self._cheapest(cells)
        return self._cost_functions[cells]

    def _cheapest(self, cells: Cells) -> CostFunction | None:
        if self.keeps(cells):
            return CostFunction(0.0, 0.0, self.cell)
        known = self._number(cells) if isinstance(cells, Range) else self._code(cells)
        if not cells.is_missing:
            return known
        missing = CostFunction(self.cost(self.value, None), 0.0, None)
        if math.isinf(missing.cost):
            return known
        cheaper = known is None or missing[:2] < known[:2]
        return missing if cheaper else known

    def _code(self, cells: Among) -> CostFunction | None:
        best: CostFunction | None = None
        mask = cells.mask
        while mask:
            code = (mask & -mask).bit_length() - 1
            mask &= mask - 1
            cost = self.cost(self.value, self.column.categories[code])
            if math.isfinite(cost) and (best is None or cost < best.cost):
                best = CostFunction(cost, 0.0, code)
        return best

    def _number(self, cells: Range) -> CostFunction | None:
        number = self._nearest(cells)
        if number is None:
            return None
        cost = self.cost(self.value, shown(self.column, number))
        if math.isinf(cost):
            return None
        if self.cell is None:
            return CostFunction(cost, 0.0, number)
        # Halves, because the distance itself may be beyond the largest number.
        size = abs(number / 2 - self.cell / 2) / self.scale
        return CostFunction(cost, self.weight * size, number)

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


_DIRECTIONS = ("up", "down")
#: In microseconds.
_HALF_YEAR = UNITS["day"] * 365 / 2


@dataclass(frozen=True)
class Constraints:
    """What may change and what it costs; columns by name.

    See :meth:`branchwise.model.Model.what_if` for the meaning.
    """

    immutable: Collection[str] = ()
    costs: Mapping[str, Any] | None = None
    monotone: Mapping[str, str] | None = None
    whole: Collection[str] = ()
    allow_missing: bool = False

    def checked(self, schema: Schema, recipe: Recipe) -> Constraints:
        """Check names, directions and costs, and return the constraints normalised."""
        constraints = replace(
            self, immutable=_names(self.immutable), whole=_names(self.whole)
        )
        for parameter in ("immutable", "costs", "monotone", "whole"):
            _known(parameter, getattr(constraints, parameter) or (), schema)
        columns = dict(zip(schema.names, schema.columns, strict=True))
        for name in constraints.whole:
            if not columns[name].is_numeric:
                raise ParameterError(
                    f"whole names columns of whole numbers. Got {name!r}, which is "
                    f"{columns[name].kind}; leave it out."
                )
        for name, direction in (self.monotone or {}).items():
            _check_direction(columns[name], direction)
        for name, cost in (self.costs or {}).items():
            _cost(columns[name], cost)
        if self.allow_missing and recipe.missing == "error":
            raise ParameterError(
                "allow_missing=True proposes missing values, but the tree was fitted "
                "with missing='error' and refuses them. Leave allow_missing out."
            )
        return constraints

    @property
    def unlimited(self) -> Constraints:
        """The same costs without immutable, monotone or forbidden columns."""
        costs = {n: c for n, c in (self.costs or {}).items() if not _forbids(c)}
        return replace(self, immutable=(), monotone=None, costs=costs)

    def forbids(self, name: str) -> str | None:
        """Return why changes of a column are limited; None if they are not."""
        if name in self.immutable:
            return "immutable"
        if self.monotone and name in self.monotone:
            return f"only allowed to go {self.monotone[name]}"
        if self.costs and _forbids(self.costs.get(name)):
            return "too costly"
        return None

    def domains(
        self, schema: Schema, tree: Tree, data: Columns, values: Mapping[int, Any]
    ) -> dict[int, FeatureDomain]:
        """Return the domain of every column that the tree splits on."""
        domains = {}
        for index, value in values.items():
            column = schema.columns[index]
            cost, weight = _cost(column, (self.costs or {}).get(column.name, 1.0))
            cell = _cell(column, data.data[index][0], value)
            start = self._start(column, cell, value)
            scale, typical = (
                threshold_span(tree, index, column) if column.is_numeric else (1.0, 0.0)
            )
            # Numbers that were whole in training are whole in words, too.
            whole = column.is_whole or column.name in self.whole
            domains[index] = FeatureDomain(
                index, column, value, cell, start, cost, weight, scale, whole, typical
            )
        return domains

    def _start(self, column: Column, cell: Any, value: Value | None) -> Cells:
        """Return the cells that the column may have at all."""
        fixed = column.name in self.immutable
        direction = None if cell is None else (self.monotone or {}).get(column.name)
        is_missing = value is None or (self.allow_missing and not fixed)
        if column.is_numeric:
            return _numbers(cell, fixed, direction)._replace(is_missing=is_missing)
        mask = (1 << len(column.categories)) - 1
        if fixed:
            mask = 0 if cell is None else 1 << cell
        elif direction == "up":
            mask &= ~((1 << cell) - 1)
        elif direction == "down":
            mask = (1 << (cell + 1)) - 1
        return Among(mask, is_missing, cell is None and value is not None)


def _numbers(cell: Any, fixed: bool, direction: str | None) -> Range:
    """Return the numbers that a column may have: its own, or those in a direction."""
    if fixed and cell is None:
        return NO_NUMBER
    above, at_most, _ = ANY_NUMBER
    if fixed or direction == "up":
        above = math.nextafter(cell, -math.inf)
    if fixed or direction == "down":
        at_most = cell
    return Range(above, at_most, False)


def _cell(column: Column, cell: Any, value: Value | None) -> float | int | None:
    if value is None:
        return None
    if column.is_numeric:
        return float(cell) + 0.0
    return None if int(cell) == column.unseen_code else int(cell)


def threshold_span(tree: Tree, index: int, column: Column) -> tuple[float, float]:
    """Return half the span that scales sizes, and a typical number.

    The span is the distance between the lowest and the highest threshold of the
    column in the tree; with a single threshold its absolute value, or 1 if it is 0; of
    dates a year.
    """
    thresholds = tree.threshold[tree.column == index]
    if tree.surrogate_threshold is not None and tree.surrogate_column is not None:
        own = tree.surrogate_column == index
        thresholds = np.concatenate([thresholds, tree.surrogate_threshold[own]])
    thresholds = thresholds[~np.isnan(thresholds)]
    if not len(thresholds):
        return 0.5, 0.0
    low, high = float(thresholds.min()), float(thresholds.max())
    half = high / 2 - low / 2
    if column.date is not None:
        return half or _HALF_YEAR / column.date.step, low
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
            f"{column.name!r}, whose values have none; name it in immutable, or set "
            "the costs of its changes in costs."
        )


def _forbids(cost: Any) -> bool:
    if isinstance(cost, Mapping):
        return any(math.isinf(each) for each in cost.values())
    return callable(cost) or (isinstance(cost, (int, float)) and math.isinf(cost))


def _cost(column: Column, cost: Any) -> tuple[CostSpec, float]:
    """Return the costs of changes of a column, and the factor of their size."""
    if callable(cost):
        return lambda old, new: _check_cost(column, cost(old, new)), 1.0
    if isinstance(cost, Mapping):
        if column.is_numeric:
            raise ParameterError(
                f"costs of {column.name!r} must be a number or a function of the old "
                "and the new value, since it holds numbers. Got a table of pairs."
            )
        for pair, each in cost.items():
            _check_pair(column, pair)
            _check_cost(column, each)
        return lambda old, new: float(cost.get((old, new), 1.0)), 1.0
    amount = _check_cost(column, cost)
    return lambda _old, _new: amount, amount if math.isfinite(amount) else 1.0


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


def _check_cost(column: Column, cost: Any) -> float:
    if isinstance(cost, (int, float, np.integer, np.floating)) and cost >= 0:
        return float(cost)
    raise ParameterError(
        f"costs of {column.name!r} must be numbers of at least 0, or infinity for a "
        f"change that is not allowed. Got {cost!r}."
    )
