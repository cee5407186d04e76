"""Conditions, predictions, numbers and surrogates in words.

A leaf is written ``label (cases)`` or ``label (cases/errors)``; where numbers are
predicted ``mean (cases)`` or ``mean (cases, ± deviation)``. Cases are counted whatever
they weigh: where they have weights, ``label (cases/errors, share of weight)`` and
``mean (weighted mean of cases, ± deviation)``.

No other module phrases these. Everything is written with the names of the schema.
Characters that do not print (line breaks, control and direction marks) are shown as
escapes, so that a name can neither break a line nor disguise another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.schema import Schema, Value
from branchwise.errors import plain
from branchwise.tree.splits import AT_MOST, STOP
from branchwise.tree.tree import Tree

#: How many values of a list are shown before the rest is only counted.
SHOWN_VALUES = 8
#: The same, on a branch of a picture.
PICTURED_VALUES = 4
#: The name of a target without a name.
UNNAMED = "target"
_QUOTES = "'\""
#: Digits of a mean and of a deviation.
_MEAN_DIGITS = 5
_DEVIATION_DIGITS = 3
#: A deviation below this share of the root's is what rounding left of equal numbers.
_NO_DEVIATION = 1e-6
#: Why nodes predict another class than that of most weight, by node.
Reasons = Mapping[int, str]


@dataclass(frozen=True)
class Condition:
    """The condition of a branch.

    ``op`` is ``=``, ``in``, ``<=``, ``>``, ``is missing`` or ``is known``;
    ``value`` is a value, a tuple of values, a number or None accordingly.
    Simplified rules also have ``within``, whose value is the pair of numbers that the
    column is above and at most, and ``not in`` a tuple of values: any other value that
    the column may have.
    """

    column: str
    op: str
    value: Value | tuple[Value, ...] | None = None

    def __str__(self) -> str:
        return phrase(self)


def phrase(condition: Condition, limit: int = SHOWN_VALUES) -> str:
    """Write a condition, with at most ``limit`` values of a list."""
    if condition.op == "within":
        above, at_most = _bounds(condition)
        return f"{above} < {word(condition.column)} <= {at_most}"
    return f"{word(condition.column)} {_demand(condition, limit)}"


def _demand(condition: Condition, limit: int) -> str:
    """Write a condition without its column."""
    if condition.value is None:
        return condition.op
    if isinstance(condition.value, tuple):
        return f"{condition.op} {{{listed(condition.value, limit)}}}"
    return f"{condition.op} {word(condition.value)}"


def said(condition: Condition, limit: int = SHOWN_VALUES) -> str:
    """Write a condition as a part of a sentence: ``humidity is at most 77.5``."""
    column, value = word(condition.column), condition.value
    if condition.op == "within":
        above, at_most = _bounds(condition)
        return f"{column} is above {above} and at most {at_most}"
    if value is None:
        return f"{column} {condition.op}"
    if isinstance(value, tuple):
        return f"{column} is {_alternatives(condition.op, value, limit)}"
    return f"{column} is {_SAID[condition.op]}{word(value)}"


_SAID = {"=": "", "<=": "at most ", ">": "above "}


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


def label_of(schema: Schema, tree: Tree, node: int) -> Value:
    """Return the prediction of a node: a class or a mean."""
    if tree.mean is not None:
        return float(tree.mean[node]) + 0.0  # one zero, not two
    return schema.classes[int(tree.label[node])]


def deviation_of(tree: Tree, node: int) -> float | None:
    """Return the standard deviation of the numbers at a node; None for classes."""
    if tree.deviation is None:
        return None
    least = _NO_DEVIATION * float(tree.deviation[0])
    spread = float(tree.deviation[node])
    return spread if spread > least else 0.0


def outcome(schema: Schema, tree: Tree, node: int) -> str:
    """Write the prediction of a node without its cases."""
    label = label_of(schema, tree, node)
    return mean(float(label)) if tree.is_regression else word(label)


@dataclass(frozen=True)
class _Support:
    """Training cases at a node: how many, of which classes, and what these weigh.

    ``counts`` is None where only the weights of the classes are known.
    """

    cases: float
    counts: Floats | None
    weights: Floats

    def errors(self, code: int) -> float:
        """Return how many cases are of other classes than this one."""
        counts = self.weights if self.counts is None else self.counts
        # Not the sum less what is right, which would lose small errors.
        return float(counts[:code].sum() + counts[code + 1 :].sum())


def _support(tree: Tree, node: int) -> _Support:
    counts = tree.class_counts
    return _Support(
        float(tree.case_counts[node]),
        None if counts is None else counts[node],
        tree.weights[node],
    )


def prediction(
    schema: Schema, tree: Tree, node: int, reasons: Reasons | None = None
) -> str:
    """Write the prediction of a node, with its cases and its errors or deviation.

    ``reasons`` tell why nodes predict another class than that of most weight.
    """
    spread = deviation_of(tree, node) or 0.0
    return _outcome(schema, tree, node, _support(tree, node), spread, reasons)


def _outcome(
    schema: Schema,
    tree: Tree,
    node: int,
    support: _Support,
    spread: float = 0.0,
    reasons: Reasons | None = None,
) -> str:
    """Write the prediction of a node for these cases."""
    said = outcome(schema, tree, node)
    count = amount(support.cases)
    if tree.is_regression:
        if tree.is_weighted:
            count = f"weighted mean of {cases(support.cases)}"
        apart = f", ± {deviation(spread)}" if spread else ""
        return f"{said} ({count}{apart})"
    if errors := support.errors(int(tree.label[node])):
        known = support.counts is not None
        count = f"{count}/{amount(errors)}" if known else cases(support.cases)
    notes = [count, *_notes(tree, node, support, reasons)]
    return f"{said} ({', '.join(notes)})"


def _notes(
    tree: Tree, node: int, support: _Support, reasons: Reasons | None
) -> list[str]:
    """Write the share of weight where there are errors, and the reason."""
    code = int(tree.label[node])
    notes = []
    weights = support.weights
    # Weights beyond those of the branches may be lost to rounding where cases are not.
    if tree.is_weighted and support.errors(code) and weights.any():
        piece = share(float(weights[code]), float(weights.sum()))
        notes.append(f"{piece} of weight")
    if reasons and node in reasons:
        notes.append(in_short(reasons[node]))
    return notes


def in_short(reason: str) -> str:
    """Write a reason without its figures: ``decided by costs``."""
    return reason.partition(":")[0]


def tally(tree: Tree, node: int, reasons: Reasons | None = None) -> str:
    """Write the cases of a node and its errors or deviation, without the prediction."""
    support = _support(tree, node)
    count = cases(support.cases)
    if tree.is_regression:
        weighted = ", weighted" if tree.is_weighted else ""
        spread = deviation_of(tree, node)
        return f"{count}{weighted}" + (f", ± {deviation(spread)}" if spread else "")
    pieces = [count]
    errors = support.errors(int(tree.label[node]))
    if errors and support.counts is not None:
        pieces.append(_counted(errors, "error"))
    return ", ".join([*pieces, *_notes(tree, node, support, reasons)])


def cases(weight: float) -> str:
    """Write how many cases there are."""
    return _counted(weight, "case")


def _counted(weight: float, noun: str) -> str:
    count = amount(weight)
    return f"{count} {noun}" + ("" if count == "1" else "s")


def prediction_of_none(schema: Schema, tree: Tree, node: int) -> str:
    """Write the prediction of a node for values without training cases."""
    none = np.zeros(tree.weights.shape[1])
    return _outcome(schema, tree, node, _Support(0.0, none, none))


def prediction_of_stopped(schema: Schema, tree: Tree, node: int) -> str:
    """Write the prediction of a node for the cases that take none of its branches."""
    here = slice(tree.first_child[node], tree.first_child[node] + tree.n_children[node])

    def stopped(amounts: Floats) -> Floats:
        left: Floats = np.maximum(amounts[node] - amounts[here].sum(axis=0), 0.0)
        return left

    counts = None if tree.class_counts is None else stopped(tree.class_counts)
    n = stopped(tree.case_counts) if counts is None else counts.sum()
    support = _Support(float(n), counts, stopped(tree.weights))
    return _outcome(schema, tree, node, support)


def condition_of(schema: Schema, tree: Tree, node: int) -> Condition:
    """Return the condition of the branch to a node."""
    parent = int(tree.parent[node])
    column = schema.columns[int(tree.column[parent])]
    if tree.is_missing_branch(node):
        return Condition(column.name, "is missing")
    codes = tree.codes_of(node)
    if column.is_numeric:
        if len(codes) > 1:
            return Condition(column.name, "is known")
        op = "<=" if codes[0] == AT_MOST else ">"
        return Condition(column.name, op, float(tree.threshold[parent]) + 0.0)
    return one_of(column.name, tuple(column.categories[code] for code in codes))


def branch(
    schema: Schema,
    tree: Tree,
    node: int,
    limit: int = SHOWN_VALUES,
    missing: bool = False,
) -> str:
    """Write the condition of the branch to a node, optionally with missing values."""
    words = phrase(condition_of(schema, tree, node), limit)
    parent = int(tree.parent[node])
    chosen = int(tree.first_child[parent] + tree.missing_to[parent])
    joins = tree.missing_to[parent] >= 0 and chosen == node
    if missing and joins and not tree.is_missing_branch(node):
        return f"{words} or missing"
    return words


def edge(schema: Schema, tree: Tree, node: int, limit: int = SHOWN_VALUES) -> str:
    """Write the condition of the branch to a node without the column."""
    condition = condition_of(schema, tree, node)
    if condition.op == "=":
        return word(condition.value)  # type: ignore[arg-type]
    if isinstance(condition.value, tuple):
        return listed(condition.value, limit)
    return _demand(condition, limit).removeprefix("is ")


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


@dataclass(frozen=True)
class Surrogate:
    """One surrogate of a node: what sends a case down each of the two branches."""

    first: Condition
    second: Condition

    @property
    def conditions(self) -> tuple[Condition, Condition]:
        """Both conditions, in the order of the branches."""
        return self.first, self.second

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
    return [
        Surrogate(
            *(
                _condition(
                    schema,
                    int(mine.splits.column[index]),
                    float(mine.splits.threshold[index]),
                    codes[2 * index + branch].tolist(),
                )
                for branch in (0, 1)
            )
        )
        for index in range(len(mine.splits.column))
    ]


def _condition(
    schema: Schema, index: int, threshold: float, codes: list[int]
) -> Condition:
    column = schema.columns[index]
    if column.is_numeric:
        return Condition(column.name, "<=" if codes[0] == AT_MOST else ">", threshold)
    values = tuple(column.categories[code] for code in codes)
    if len(values) == 1:
        return Condition(column.name, "=", values[0])
    return Condition(column.name, "in", values)
