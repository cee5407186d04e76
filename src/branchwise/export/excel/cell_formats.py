"""How cells of numbers are shown: with the unit of their column, or of the target.

A cell of per cent takes 4.39 % as people type it; it holds 0.0439, as the model does.
"""

from __future__ import annotations

import math

from branchwise.export.plan import Field, Plan
from branchwise.text.label_words import Unit, unit_of
from branchwise.text.words import MEAN_DIGITS

PROBABILITY = "0.0%"
#: Digits after the point of cells to fill in.
_TYPED_DECIMALS = 2
_MOST_DECIMALS = 9
#: Longer units are in the header only.
_LONGEST = 40


def input_format(field: Field) -> str | None:
    """Return how a number that is typed in is shown; None as it is."""
    unit = unit_of(field.schema_column)
    if unit.power:
        return _format(unit, _TYPED_DECIMALS)
    return f"General{_quoted(unit.name)}" if _is_short(unit) else None


def prediction_format(plan: Plan) -> str | None:
    """Return how predicted numbers are shown, with the digits of means; None as is."""
    unit = plan.unit
    if not _is_short(unit):
        return None
    # What the trees of an ensemble add may be small beside what they begin with.
    numbers = [*plan.initial, *(node.number or 0.0 for node in plan.nodes)]
    largest = max(abs(unit.scaled(number)) for number in numbers)
    power = math.floor(math.log10(largest)) if largest else 0
    return _format(unit, min(max(MEAN_DIGITS - 1 - power, 0), _MOST_DECIMALS))


def _is_short(unit: Unit) -> bool:
    return 0 < len(unit.name) <= _LONGEST


def _format(unit: Unit, decimals: int) -> str:
    point = "." if decimals else ""
    digits = f"#,##0{point}{'0' * decimals}"
    if not unit.power:
        return f"{digits}{_quoted(unit.name)}"
    rest = unit.name.removeprefix("%").strip()
    return f"{digits}%{_quoted(rest) if rest else ''}"


def _quoted(name: str) -> str:
    """Write a unit behind a number; quotes would end it."""
    return f'" {name.replace(chr(34), chr(39))}"'
