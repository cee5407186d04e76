"""Conditions in words, with the names of the schema.

No other module phrases these. ``text/words.py`` writes their values and numbers,
``text/column_conditions.py`` merges those of a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from branchwise.data.table_schema import Column, Schema, Value
from branchwise.text import SHOWN_VALUES
from branchwise.text.signs import sign
from branchwise.text.words import list_item, listed, word
from branchwise.tree.splits import AT_MOST, STOP
from branchwise.tree.tree import Tree


@dataclass(frozen=True)
class Condition:
    """The condition of a branch.

    ``op`` is ``=``, ``in``, ``<=``, ``>``, ``is missing`` or ``is known``;
    ``value`` is a value, a tuple of values, a number or None accordingly.
    Simplified rules also have ``within``, whose value is the pair of numbers that the
    column is above and at most, and ``not in`` a tuple of values: any other value that
    the column may have. ``of`` is the column, if it is known: it decides how the
    condition is worded, not what it means.
    """

    column: str
    op: str
    value: Value | tuple[Value, ...] | None = None
    of: Column | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return phrase(self)

    @property
    def worded(self) -> Condition:
        """The condition as it is written; it has the same numbers and values of ``of``.

        Of whole numbers those above 3 are ``>=`` 4, and those above 3 and at most 7
        ``from`` 4 to 7; 0 and 1 are ``=``; numbers that are dates are these; a long
        list is ``not in`` the other values. Ordered values that follow one another are
        bounds. A column has its title, its unit and its words.
        """
        written, of = self._written, self.of
        if of is None or (of.label is None and of.number_format is None):
            return written
        from branchwise.text.label_words import title_of, values_called  # noqa: PLC0415

        name = title_of(of, written.column)
        value = values_called(of, written.op, written.value)
        # Without its column it is not worded again.
        return replace(written, column=name, value=value, of=None)

    @property
    def _written(self) -> Condition:
        """The condition as it is written, with names and values as they are."""
        if self.of is None:
            return self
        if self.op == "in" and self.of.kind == "ordinal":
            return _as_bounds(self, self.of.categories)
        if self.op == "in":
            return by_the_rest(self, self.of)
        if not self.of.is_whole or self.op not in ("<=", ">", "within"):
            return self
        from branchwise.text.bounds import whole_bounds  # noqa: PLC0415  (not to fit)

        op, value = whole_bounds(self.op, self.value, self.of)  # type: ignore[arg-type]
        return replace(self, op=op, value=value)

    def exact_for(self, value: object) -> Condition:
        """Return the condition in words that are true of a number that is not whole."""
        whole = not isinstance(value, float) or value.is_integer()
        if whole or self.op == "in" or self.of is None:
            return self
        of = None if self.of.date else replace(self.of, number_kind="any")
        return replace(self, of=of)


def _as_bounds(condition: Condition, order: tuple[Value, ...]) -> Condition:
    """Return a list of ordered values as bounds, where they follow one another."""
    values: tuple[Value, ...] = condition.value  # type: ignore[assignment]
    first = order.index(values[0])
    last = first + len(values) - 1
    if order[first : last + 1] != values:
        return condition
    above, at_most = order[first - 1], order[last]
    if last == len(order) - 1:
        known = replace(condition, op="is known", value=None)
        return replace(condition, op=">", value=above) if first else known
    if first:
        return replace(condition, op="within", value=(above, at_most))
    return replace(condition, op="<=", value=at_most)


def phrase(
    condition: Condition, limit: int = SHOWN_VALUES, typeset: bool = False
) -> str:
    """Write a condition, with at most ``limit`` values of a list.

    With ``typeset`` it has the signs of mathematics.
    """
    return _phrased(condition.worded, limit, typeset)


def phrases(condition: Condition) -> tuple[str, str]:
    """Write a condition with its column, and without it."""
    worded = condition.worded
    return _phrased(worded, SHOWN_VALUES, typeset=False), without_column(worded)


def _phrased(worded: Condition, limit: int, typeset: bool) -> str:
    if worded.op in ("within", "from"):
        above, at_most = _bounds(worded)
        below = sign("<" if worded.op == "within" else "<=", typeset)
        up_to = sign("<=", typeset)
        return f"{above} {below} {word(worded.column)} {up_to} {at_most}"
    return f"{word(worded.column)} {_demand(worded, limit, typeset)}"


def _demand(condition: Condition, limit: int, typeset: bool = False) -> str:
    """Write a condition without its column."""
    op = sign(condition.op, typeset)
    if condition.value is None:
        return op
    if isinstance(condition.value, tuple):
        return f"{op} {{{listed(condition.value, limit)}}}"
    return f"{op} {word(condition.value)}"


def said(condition: Condition, limit: int = SHOWN_VALUES) -> str:
    """Write a condition as a part of a sentence: ``humidity is at most 80``."""
    condition = condition.worded
    column, value = word(condition.column), condition.value
    if condition.op in ("within", "from"):
        above, at_most = _bounds(condition)
        least = "above" if condition.op == "within" else "at least"
        return f"{column} is {least} {above} and at most {at_most}"
    if value is None:
        return f"{column} {condition.op}"
    if isinstance(value, tuple):
        return f"{column} is {_alternatives(condition.op, value, limit)}"
    return f"{column} is {_SAID[condition.op]}{word(value)}"


_SAID = {"=": "", "<=": "at most ", ">": "above ", ">=": "at least "}


def _bounds(condition: Condition) -> tuple[str, str]:
    above, at_most = condition.value  # type: ignore[misc,str-unpack]
    return word(above), word(at_most)


def _alternatives(op: str, values: tuple[Value, ...], limit: int) -> str:
    """Write values of which a column has one, or none."""
    first, last = ("neither ", " nor ") if op == "not in" else ("", " or ")
    if not values:
        return "none of its values"
    if len(values) == 1:
        return f"{'not ' if op == 'not in' else ''}{list_item(values[0])}"
    if len(values) > limit or (op == "not in" and len(values) > 2):
        some = "none" if op == "not in" else "one"
        return f"{some} of {listed(values, limit)}"
    return f"{first}{listed(values[:-1], limit)}{last}{list_item(values[-1])}"


def condition_of(schema: Schema, tree: Tree, node: int) -> Condition:
    """Return the condition of the branch to a node."""
    parent = int(tree.parent[node])
    column = schema.columns[int(tree.column[parent])]
    threshold = float(tree.threshold[parent]) + 0.0
    return condition_on(column, tree.codes_of(node), threshold)


def condition_on(column: Column, codes: Sequence[int], threshold: float) -> Condition:
    """Return the condition of codes: values, or sides of a threshold; none: missing."""
    if not codes:
        return Condition(column.name, "is missing", of=column)
    if not column.is_numeric:
        values = tuple(column.categories[code] for code in codes)
        return one_of(column.name, values, column)
    if len(codes) > 1:
        return Condition(column.name, "is known", of=column)
    side = "<=" if codes[0] == AT_MOST else ">"
    return Condition(column.name, side, threshold, column)


def branch(
    schema: Schema,
    tree: Tree,
    node: int,
    limit: int = SHOWN_VALUES,
    missing: bool = False,
    typeset: bool = False,
) -> str:
    """Write the condition of the branch to a node, optionally with missing values."""
    words = phrase(condition_of(schema, tree, node), limit, typeset)
    parent = int(tree.parent[node])
    chosen = int(tree.first_child[parent] + tree.missing_to[parent])
    joins = tree.missing_to[parent] >= 0 and chosen == node
    if missing and joins and not tree.is_missing_branch(node):
        return f"{words} or missing"
    return words


def edge(
    schema: Schema,
    tree: Tree,
    node: int,
    limit: int = SHOWN_VALUES,
    typeset: bool = False,
) -> str:
    """Write the condition of the branch to a node without the column."""
    return without_column(condition_of(schema, tree, node).worded, limit, typeset)


def without_column(
    condition: Condition, limit: int = SHOWN_VALUES, typeset: bool = False
) -> str:
    """Write a worded condition without its column."""
    if condition.op == "within":  # of ordered values
        above, at_most = _bounds(condition)
        return f"> {above} and {sign('<=', typeset)} {at_most}"
    if condition.op == "=":
        return word(condition.value)  # type: ignore[arg-type]
    if condition.op == "in":
        return listed(condition.value, limit)  # type: ignore[arg-type]
    return _demand(condition, limit, typeset).removeprefix("is ")


def missing_stops(tree: Tree, node: int) -> bool:
    """Whether missing values stop at a split node and get its prediction."""
    return bool(tree.missing_to[node] == STOP and tree.n_children[node])


def absent_values(schema: Schema, tree: Tree, node: int) -> tuple[Value, ...]:
    """Return the possible values that have no branch at a node.

    Values that a split further up sends down another branch are not possible.
    """
    index = int(tree.column[node])
    column = schema.columns[index]
    absent = set(range(len(column.categories)))
    for child in tree.children(node):
        absent.difference_update(tree.codes_of(child))
    below, above = node, int(tree.parent[node])
    while above >= 0 and absent:
        if tree.column[above] == index:
            absent.intersection_update(tree.codes_of(below))
        below, above = above, int(tree.parent[above])
    return tuple(column.categories[code] for code in sorted(absent))


def one_of(
    column: str, values: tuple[Value, ...], of: Column | None = None
) -> Condition:
    """Return the condition that a column has one of these values."""
    if len(values) == 1:
        return Condition(column, "=", values[0], of)
    return Condition(column, "in", values, of)


class Surrogate(NamedTuple):
    """One surrogate of a node: what sends a case down each of the two branches."""

    first: Condition
    second: Condition

    def __str__(self) -> str:
        return f"{self.first}, {self.second}"


def surrogates_of(schema: Schema, tree: Tree, node: int) -> list[Surrogate]:
    """Return the surrogates of a node in the order in which they are tried.

    Where a case meets neither condition of one, because the value is missing or had
    no case at the node, the next one is tried. Where there is none left, the case
    goes down the branch that ``tree.missing_to`` names.
    """
    if tree.surrogates is None:
        return []
    mine = tree.surrogates.take(np.array([node]))
    codes = np.split(mine.splits.codes, np.cumsum(mine.splits.n_codes)[:-1])
    sides = (each.tolist() for each in codes)
    thresholds = mine.splits.threshold.tolist()
    columns = [schema.columns[index] for index in mine.splits.column.tolist()]
    return [
        Surrogate(*(condition_on(column, next(sides), threshold) for _ in range(2)))
        for column, threshold in zip(columns, thresholds, strict=True)
    ]


#: A shorter list of values is never written by what is not in it.
_LONG_LIST = 3


def by_the_rest(condition: Condition, column: Column) -> Condition:
    """Return a long list of values as those that are not in it, if these are few."""
    inside: tuple[Value, ...] = condition.value  # type: ignore[assignment]
    n_others = len(column.categories) - len(inside)
    if len(inside) < _LONG_LIST or 2 * n_others > len(inside) or not n_others:
        return condition
    known = set(inside)
    others = tuple(value for value in column.categories if value not in known)
    return replace(condition, op="not in", value=others)
