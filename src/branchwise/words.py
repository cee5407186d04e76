"""Conditions, leaves and numbers in words: the only place that phrases them.

Everything is written with the names of the schema. Characters that do not print
(line breaks, control and direction marks) are shown as escapes, so that a name
can neither break a line nor disguise another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from branchwise.splits import AT_MOST
from branchwise.table.schema import Schema, Value
from branchwise.tree import Tree

#: How many values of a list are shown before the rest is only counted.
SHOWN_VALUES = 8
_QUOTES = "'\""


@dataclass(frozen=True)
class Condition:
    """What a branch asks for.

    ``op`` is ``=``, ``in``, ``<=``, ``>``, ``is missing`` or ``is known``;
    ``value`` is a value, a tuple of values, a number or None accordingly.
    """

    column: str
    op: str
    value: Value | tuple[Value, ...] | None = None

    def __str__(self) -> str:
        return phrase(self)


def phrase(condition: Condition, limit: int = SHOWN_VALUES) -> str:
    """Write a condition, with at most ``limit`` values of a list."""
    words = f"{word(condition.column)} {condition.op}"
    if condition.value is None:
        return words
    if isinstance(condition.value, tuple):
        return f"{words} {{{listed(condition.value, limit)}}}"
    return f"{words} {word(condition.value)}"


def listed(values: Sequence[Value], limit: int = SHOWN_VALUES) -> str:
    """List values, counting those beyond the limit."""
    shown = [_item(value) for value in values[:limit]]
    if len(values) > limit:
        shown.append(f"... ({len(values) - limit:,} more)")
    return ", ".join(shown)


def _item(value: Value) -> str:
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
    # Blanks at the ends, and nothing at all, would not be seen.
    hidden = not written or written != written.strip() or written[0] in _QUOTES
    return _in_quotes(written) if hidden else written


def _in_quotes(text: str) -> str:
    quote = _QUOTES[1] if _QUOTES[0] in text else _QUOTES[0]
    return f"{quote}{text}{quote}"


def plain(text: str) -> str:
    """Show characters that do not print as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


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


def answer(schema: Schema, tree: Tree, node: int) -> str:
    """Write what a node answers: ``label (cases)`` or ``label (cases/errors)``."""
    weights = tree.weights[node]
    label = int(tree.label[node])
    total = float(weights.sum())
    errors = float(weights[:label].sum() + weights[label + 1 :].sum())
    count = amount(total) if not errors else f"{amount(total)}/{amount(errors)}"
    return f"{word(schema.classes[label])} ({count})"


def condition_of(schema: Schema, tree: Tree, node: int) -> Condition:
    """Tell what leads from its parent to a node."""
    parent = int(tree.parent[node])
    column = schema.columns[int(tree.column[parent])]
    if tree.is_missing_branch(node):
        return Condition(column.name, "is missing")
    codes = tree.codes_of(node)
    if column.is_numeric:
        if len(codes) > 1:
            return Condition(column.name, "is known")
        op = "<=" if codes[0] == AT_MOST else ">"
        return Condition(column.name, op, float(tree.cut[parent]))
    values = tuple(column.categories[code] for code in codes)
    if len(values) == 1:
        return Condition(column.name, "=", values[0])
    return Condition(column.name, "in", values)


def absent_values(schema: Schema, tree: Tree, node: int) -> tuple[Value, ...]:
    """Return the possible values that have no branch at a node."""
    column = schema.columns[int(tree.column[node])]
    present = {code for child in tree.children(node) for code in tree.codes_of(child)}
    return tuple(v for code, v in enumerate(column.categories) if code not in present)


def share(part: float, whole: float) -> str:
    """Write a share in percent."""
    return f"{math.floor(1000 * (part / whole) + 0.5) / 10:g} %"
