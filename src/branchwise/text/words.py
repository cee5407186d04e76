"""Values, numbers and shares in words.

Characters that do not print (line breaks, control and direction marks) are shown as
escapes, so that a name can neither break a line nor disguise another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from branchwise.data.table_schema import Schema, Value
from branchwise.errors import plain
from branchwise.text import SHOWN_VALUES

#: The name of a target without a name.
UNNAMED = "target"
_QUOTES = "'\""


#: Digits of a mean and of a deviation.
MEAN_DIGITS = 5


DEVIATION_DIGITS = 3


def listed(values: Sequence[Value], limit: int = SHOWN_VALUES) -> str:
    """List values, counting those beyond the limit."""
    shown = [list_item(value) for value in values[:limit]]
    if len(values) > limit:
        shown.append(f"... ({len(values) - limit:,} more)")
    return ", ".join(shown)


def list_item(value: Value) -> str:
    """Write a value of a list, in quotes if it could be taken for several."""
    written = word(value)
    return (
        _in_quotes(written) if "," in written and written[0] not in _QUOTES else written
    )


def word(value: Value) -> str:
    """Write a value as the user knows it."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return number(value)
    written = plain(value)
    # Whitespace at the ends and the empty text would be invisible.
    hidden = not written or written != written.strip() or written[0] in _QUOTES
    return _in_quotes(written) if hidden else written


def _in_quotes(text: str) -> str:
    quote = _QUOTES[1] if _QUOTES[0] in text else _QUOTES[0]
    return f"{quote}{text}{quote}"


def target(schema: Schema) -> str:
    """Write the name of the target."""
    return UNNAMED if schema.target is None else word(schema.target)


def number(value: float) -> str:
    """Write a number so that reading it back gives the very same number."""
    if isinstance(value, int):
        return str(value)
    written = repr(float(value))
    return written.removesuffix(".0")


def amount(weight: float) -> str:
    """Write a weight: whole numbers as such, others with two decimals at most.

    Very small and very large ones, which would become 0 or fill the line, are
    written with an exponent.
    """
    if not weight or 0.01 <= weight < 1e15:
        return f"{weight:.2f}".rstrip("0").rstrip(".")
    return f"{weight:.3g}"


def cases(weight: float, noun: str = "case") -> str:
    """Write how many cases, or errors, there are."""
    count = amount(weight)
    return f"{count} {noun}" + ("" if count == "1" else "s")


def rounded(value: float, digits: int) -> str:
    """Write a number with so many digits, and all that it has before the point.

    Like amounts, very small and very large ones are written with an exponent.
    """
    size = abs(value)
    if not size:
        return "0"
    if not 1e-4 <= size < 1e15:
        return f"{value:.{digits}g}"
    positions = max(0, digits - 1 - math.floor(math.log10(size)))
    written = f"{value:.{positions}f}"
    return written.rstrip("0").rstrip(".") if positions else written


def mean(value: float) -> str:
    """Write the mean that a leaf predicts."""
    return rounded(value, MEAN_DIGITS)


def deviation(value: float) -> str:
    """Write a standard deviation."""
    return rounded(value, DEVIATION_DIGITS)


def share(piece: float, whole: float) -> str:
    """Write a share in percent."""
    return f"{math.floor(1000 * (piece / whole) + 0.5) / 10:g} %"


def percent(piece: float) -> str:
    """Write a share as whole percent; with more digits next to 0 and to 1."""
    if 0.01 <= piece <= 0.99 or piece in (0.0, 1.0):
        return f"{math.floor(100 * piece + 0.5)} %"
    if piece < 0.5:
        return f"{rounded(100 * piece, 2)} %"
    positions = max(1, -math.floor(math.log10(100 * (1.0 - piece))))
    return f"{100 * piece:.{positions}f} %"


def percent_range(low: float, high: float) -> str:
    """Write an interval of shares in whole percent, never narrower than it is."""
    # What rounding has added to a bound must not move it by a percent.
    below = math.floor(100 * low + 1e-9)
    above = math.ceil(100 * high - 1e-9)
    return f"{max(below, 0)}-{min(above, 100)} %"
