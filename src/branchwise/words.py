"""Conditions, leaves and numbers in words: the only place that phrases them.

Everything is written with the names of the schema. Characters that do not print
(line breaks, control and direction marks) are shown as escapes, so that a name
can neither break a line nor disguise another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.splits import AT_MOST
from branchwise.table.schema import Schema, Value
from branchwise.tree import Tree

#: How many values of a list are shown before the rest is only counted.
SHOWN_VALUES = 8


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
    words = f"{plain(condition.column)} {condition.op}"
    if condition.value is None:
        return words
    if isinstance(condition.value, tuple):
        return f"{words} {{{listed(condition.value, limit)}}}"
    return f"{words} {word(condition.value)}"


def listed(values: Sequence[Value], limit: int = SHOWN_VALUES) -> str:
    """List values, counting those beyond the limit."""
    shown = ", ".join(word(value) for value in values[:limit])
    if len(values) > limit:
        shown += f", ... ({len(values) - limit:,} more)"
    return shown


def word(value: Value) -> str:
    """Write a value as the user knows it."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return number(value)
    written = plain(value)
    # Blanks at the ends, and nothing at all, would not be seen.
    return repr(written) if written != written.strip() or not written else written


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
    """Write a weight: whole numbers as such, others with two decimals at most."""
    rounded = round(float(weight), 2)
    return str(int(rounded)) if rounded == int(rounded) else f"{rounded:g}"


def answer(schema: Schema, tree: Tree, node: int) -> str:
    """Write what a node answers: ``label (cases)`` or ``label (cases/errors)``."""
    total = float(tree.weights[node].sum())
    label = int(tree.label[node])
    errors = total - float(tree.weights[node, label])
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
    return f"{np.floor(1000 * part / whole + 0.5) / 10:g} %"
