"""Values, numbers, conditions and paths in words.

No other module phrases these. Everything is written with the names of the schema.
Characters that do not print (line breaks, control and direction marks) are shown as
escapes, so that a name can neither break a line nor disguise another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from branchwise.data.table_schema import Column, Schema, Value
from branchwise.errors import plain
from branchwise.text import SHOWN_VALUES
from branchwise.text.signs import sign
from branchwise.threads import cached_property
from branchwise.tree.splits import AT_MOST, STOP
from branchwise.tree.tree import Tree

#: The name of a target without a name.
UNNAMED = "target"
_QUOTES = "'\""
#: Digits of a mean and of a deviation.
_MEAN_DIGITS = 5
_DEVIATION_DIGITS = 3


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
        bounds. A column with a label has its title, its unit and its words.
        """
        written = self._written
        if self.of is None or self.of.label is None:
            return written
        from branchwise.text.label_words import title_of, values_called  # noqa: PLC0415

        name = title_of(self.of, written.column)
        value = values_called(self.of, written.op, written.value)
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
            return _by_the_rest(self, self.of)
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
    worded = condition.worded
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
        return f"{'not ' if op == 'not in' else ''}{_item(values[0])}"
    if len(values) > limit or (op == "not in" and len(values) > 2):
        some = "none" if op == "not in" else "one"
        return f"{some} of {listed(values, limit)}"
    return f"{first}{listed(values[:-1], limit)}{last}{_item(values[-1])}"


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
    return rounded(value, _MEAN_DIGITS)


def deviation(value: float) -> str:
    """Write a standard deviation."""
    return rounded(value, _DEVIATION_DIGITS)


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
        return replace(one_of(column.name, values), of=column)
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


def one_of(column: str, values: tuple[Value, ...]) -> Condition:
    """Return the condition that a column has one of these values."""
    if len(values) == 1:
        return Condition(column, "=", values[0])
    return Condition(column, "in", values)


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


@dataclass(frozen=True)
class ColumnConditions:
    """The conditions of a path on one column; the paths below it share this."""

    column: Column
    above: float = -math.inf
    at_most: float = math.inf
    values: tuple[Value, ...] | None = None
    known: bool = False
    missing: bool = False

    def restricted(self, condition: Condition) -> ColumnConditions:
        """Return the conditions with one more condition."""
        value = condition.value
        match condition.op:
            case ">":
                return replace(self, above=max(self.above, float(value)))  # type: ignore[arg-type]
            case "<=":
                return replace(self, at_most=min(self.at_most, float(value)))  # type: ignore[arg-type]
            case "is known":
                return replace(self, known=True)
            case "is missing":
                return replace(self, missing=True)
        given = value if isinstance(value, tuple) else (value,)
        return replace(self, values=self._common(given))  # type: ignore[arg-type]

    def _common(self, given: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the values that are left of those so far.

        The shorter of the lists is gone through: a node may have as many branches
        as its list has values.
        """
        if self.values is None:
            return given
        if len(given) < len(self.values):
            return tuple(value for value in given if value in self._allowed)
        allowed = set(given)
        return tuple(value for value in self.values if value in allowed)

    @cached_property
    def _allowed(self) -> frozenset[Value]:
        return frozenset(self.values or ())

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions, each bound one of its own."""
        name = self.column.name
        found = []
        if self.above > -math.inf:
            found.append(Condition(name, ">", self.above, self.column))
        if self.at_most < math.inf:
            found.append(Condition(name, "<=", self.at_most, self.column))
        if self.values is not None:
            found.append(replace(one_of(name, self.values), of=self.column))
        if self.known and not found:  # a number within bounds is known
            found.append(Condition(name, "is known"))
        if self.missing:
            found.append(Condition(name, "is missing"))
        return tuple(found)

    @cached_property
    def simple(self) -> tuple[Condition, ...]:
        """The conditions, in as few words as will do."""
        return simplified(self.conditions, self.column)


ColumnPath = dict[str, ColumnConditions]


def restricted_path(
    way: ColumnPath, column: Column, condition: Condition
) -> ColumnPath:
    """Return a path with one more condition."""
    column_conditions = way.get(column.name) or ColumnConditions(column)
    return {**way, column.name: column_conditions.restricted(condition)}


def path_conditions(way: ColumnPath) -> tuple[Condition, ...]:
    """Return the conditions of a path, those on a column merged."""
    return tuple(
        c for column_conditions in way.values() for c in column_conditions.conditions
    )


def path_to(schema: Schema, tree: Tree, node: int) -> tuple[Condition, ...]:
    """Return the conditions of the path from the root to a node."""
    below = []
    while node > 0:
        below.append(node)
        node = int(tree.parent[node])
    way: ColumnPath = {}
    for child in reversed(below):
        column = schema.columns[int(tree.column[tree.parent[child]])]
        column_conditions = way.get(column.name) or ColumnConditions(column)
        way[column.name] = column_conditions.restricted(
            condition_of(schema, tree, child)
        )
    return path_conditions(way)


def simplified(
    conditions: tuple[Condition, ...], column: Column
) -> tuple[Condition, ...]:
    """Return equivalent conditions on one column in as few words as possible."""
    if [c.op for c in conditions] == [">", "<="]:
        pair = (conditions[0].value, conditions[1].value)
        return (Condition(column.name, "within", pair, column),)  # type: ignore[arg-type]
    return tuple(s for c in conditions for s in _shortened(c, column))


#: A shorter list of values is never written by what is not in it.
_LONG_LIST = 3


def _shortened(condition: Condition, column: Column) -> tuple[Condition, ...]:
    """Return a list of values as it is, turned round, or not at all."""
    if condition.op != "in":
        return (condition,)
    if len(condition.value) == len(column.categories):  # type: ignore[arg-type]
        # All values: but a missing one is none of them.
        known = Condition(column.name, "is known", of=column)
        return (known,) if column.has_missing else ()
    if column.kind == "ordinal":
        return (condition,)
    return (_by_the_rest(condition, column),)


def _by_the_rest(condition: Condition, column: Column) -> Condition:
    """Return a long list of values as those that are not in it, if these are few."""
    inside: tuple[Value, ...] = condition.value  # type: ignore[assignment]
    n_others = len(column.categories) - len(inside)
    if len(inside) < _LONG_LIST or 2 * n_others > len(inside) or not n_others:
        return condition
    known = set(inside)
    others = tuple(value for value in column.categories if value not in known)
    return replace(condition, op="not in", value=others)
