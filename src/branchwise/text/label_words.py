"""What columns, their values and numbers are called: titles, words and units.

The unit is that of a label, or the currency or per cent of the convention by which the
numbers of a file were read. 4.39 % is 0.0439 in the model: views write it as the user
did, with the very digits of the number that decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.descriptions import ColumnLabel
from branchwise.data.table_schema import Column, Schema, Value, Written
from branchwise.errors import plain
from branchwise.text.words import DEVIATION_DIGITS, MEAN_DIGITS, number, rounded

_PERCENT = "%"
_PERCENT_POWER = 2
#: Numbers of these powers of ten are written without an exponent, as Python does.
_PLAIN_POWERS = range(-4, 16)


class Unit(NamedTuple):
    """The unit of numbers; ``power`` is that of ten by which they are written."""

    name: str = ""
    power: int = 0

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Unit:
        """Return the unit of the target, or of a column, of a view."""
        return cls(
            fields.get("unit", ""), _PERCENT_POWER if fields.get("percent") else 0
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a view: the unit, and whether shares are in per cent."""
        named: dict[str, Any] = {"unit": self.name} if self.name else {}
        return named | ({"percent": True} if self.power else {})

    def scaled(self, value: float) -> float:
        """Return a number in this unit, for what is rounded or drawn."""
        return value * 10.0**self.power

    def exact(self, value: float) -> str:
        """Write a number without its unit; reading it gives the very same number."""
        written = number(value)
        return _moved(written, self.power) if self.power and value else written

    def rounded(self, value: float, digits: int) -> str:
        """Write a number with so many digits, and its unit."""
        return self.behind(rounded(self.scaled(value), digits))

    def mean(self, value: float) -> str:
        """Write a mean, a predicted number or an end of its interval."""
        return self.rounded(value, MEAN_DIGITS)

    def deviation(self, value: float) -> str:
        """Write a standard deviation."""
        return self.rounded(value, DEVIATION_DIGITS)

    def behind(self, written: str) -> str:
        """Write the unit behind a number."""
        return f"{written} {self.name}" if self.name else written

    def named(self, title: str) -> str:
        """Write the unit behind a title, for axes and heads of tables."""
        return f"{title} ({self.name})" if self.name else title


NO_UNIT = Unit()


def unit_of(column: Column | None) -> Unit:
    """Return the unit of a column of numbers."""
    if column is None or not column.is_numeric:
        return NO_UNIT
    return _unit(column.label, column.number_format)


def target_unit(schema: Schema | None) -> Unit:
    """Return the unit of predicted numbers; classes have none."""
    if schema is None or schema.classes:
        return NO_UNIT
    return _unit(schema.target_label, schema.target_format)


def _unit(label: ColumnLabel | None, how: Written | None) -> Unit:
    """Return the unit of a label, or else of the convention of a file."""
    written = how if isinstance(how, NumberFormat) else None
    named = None if label is None or not label.unit else plain(label.unit)
    if written is None:
        return Unit(named or "")
    # A label may say more, such as "% p.a.", or that these are shares.
    if written.percent and (named or _PERCENT).startswith(_PERCENT):
        return Unit(named or _PERCENT, _PERCENT_POWER)
    return Unit(named or plain(written.currency or ""))


def _moved(written: str, power: int) -> str:
    """Move the decimal point of a number that is written exactly."""
    moved = Decimal(written).scaleb(power).normalize()
    if moved.adjusted() in _PLAIN_POWERS:
        return f"{moved:f}"
    digits, _, exponent = f"{moved:e}".partition("e")
    return f"{digits}e{int(exponent):+03d}"


def title_of(column: Column | None, name: str) -> str:
    """Return what a column is called, by its name where it is not known."""
    label = None if column is None else column.label
    return (None if label is None else label.title) or name


def called(column: Column | None, value: Value, with_unit: bool = True) -> Value:
    """Return what a value is called, a number with its unit; else as it is."""
    if column is None:
        return value
    if column.is_numeric:
        unit = unit_of(column)
        if not unit.name or isinstance(value, str):
            return value  # a date is a text already
        written = unit.exact(value)
        return unit.behind(written) if with_unit else written
    code, label = column.code_of.get(value), column.label
    if code is None or label is None or not label.words:
        return value
    return label.words[code] or value


def values_called(
    column: Column, op: str, value: Value | tuple[Value, ...] | None
) -> Value | tuple[Value, ...] | None:
    """Return what the values of a condition are called; the unit comes last."""
    if not isinstance(value, tuple):
        return None if value is None else called(column, value)
    if op in ("within", "from"):
        above, at_most = value
        return called(column, above, with_unit=False), called(column, at_most)
    return tuple(called(column, each) for each in value)
