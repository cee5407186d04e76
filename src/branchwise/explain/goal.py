"""The goal of a what-if search: wanted predictions, bounds, and branches of a box.

A fractional case gets the prediction of a mean of nodes, which may differ from that of
each of them; so a subtree is excluded only where a bound excludes the prediction: the
difference between two classes (in probability, or in expected cost) is linear in the
shares, and cannot be larger than the shares times its largest value below each node.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.conventions.number_format import NumberFormat, parse_texts
from branchwise.data.table_schema import Columns, Schema, Value, value_type
from branchwise.errors import ParameterError, quoted
from branchwise.recipe import Recipe
from branchwise.text.label_words import target_unit
from branchwise.text.labels import class_called
from branchwise.text.words import number, word
from branchwise.tree.apply import Walker, node_probabilities
from branchwise.tree.tree import Tree

_COMPARED = re.compile(r"\s*(<=|>=|<|>)\s*(\S.*?)\s*")
_BETWEEN = re.compile(r"\s*(\S.*?)\s+to\s+(\S.*?)\s*")
#: Slack of the bounds, far above the effects of rounding and ties.
_SLACK = 1e-6
#: With more entries than this no bounds are computed.
_MOST_BOUNDS = 20_000_000
#: A part of a row: node and share.
Region = tuple[int, float]


@dataclass(frozen=True)
class Goal:
    """The nodes with a wanted prediction, and bounds for fractional cases.

    ``right`` tells for every node whether its prediction is wanted, ``reachable``
    whether one at or below it is. ``bounds`` are the largest values of some amounts at
    or below it; all of them (or any, with ``any_of``) must be able to exceed ``least``.
    """

    right: list[bool]
    reachable: list[bool]
    bounds: Floats | None
    own: Floats | None
    least: Floats
    any_of: bool

    def may_reach(self, open_: Sequence[Region], arrived: Sequence[Region]) -> bool:
        """Whether a fractional case may still get a wanted prediction."""
        if self.bounds is None or self.own is None:
            return True
        most = np.zeros(len(self.least))
        for node, share in open_:
            most += share * self.bounds[node]
        for node, share in arrived:
            most += share * self.own[node]
        enough = most >= self.least
        return bool(enough.any() if self.any_of else enough.all())


def class_goal(tree: Tree, recipe: Recipe, code: int, wanted: bool) -> Goal:
    """Return the goal of a class, or (not ``wanted``) of any other class."""
    right = (tree.label == code) == wanted
    n_classes = tree.weights.shape[1]
    own = None
    if len(tree) * n_classes <= _MOST_BOUNDS:
        merit = node_probabilities(tree, recipe)
        if recipe.costs is not None:
            merit = -merit @ np.asarray(recipe.costs, dtype=np.float64)
        lead = merit[:, [code]] - merit
        own = np.delete(lead if wanted else -lead, code, axis=1)
    least = np.full(n_classes - 1, 0.0)
    return _goal(tree, right, own, least, any_of=not wanted)


def number_goal(tree: Tree, low: float, high: float, strict: bool) -> Goal:
    """Return the goal of a mean between two numbers; strict excludes both."""
    mean = np.zeros(len(tree)) if tree.mean is None else tree.mean
    right = (mean > low) & (mean < high) if strict else (mean >= low) & (mean <= high)
    own = np.stack([mean, -mean], axis=1)
    return _goal(tree, right, own, np.array([low, -high]), any_of=False)


def _goal(
    tree: Tree,
    right: NDArray[np.bool_],
    own: Floats | None,
    least: Floats,
    any_of: bool,
) -> Goal:
    reachable = right.tolist()
    parent = tree.parent.tolist()
    for node in range(len(tree) - 1, 0, -1):
        if reachable[node]:
            reachable[parent[node]] = True
    bounds = None
    if own is not None:
        size = max(1.0, float(np.abs(own).max(initial=0.0)))
        least = least - _SLACK * size
        bounds = _largest_below(tree.parent, own)
    return Goal(right.tolist(), reachable, bounds, own, least, any_of)


def _largest_below(parent: Ints, own: Floats) -> Floats:
    """Return the largest entry at or below every node; children come after parents."""
    columns = []
    above = parent.tolist()
    for entries in own.T.tolist():
        for node in range(len(above) - 1, 0, -1):
            up = above[node]
            if entries[up] < entries[node]:
                entries[up] = entries[node]
        columns.append(entries)
    return np.array(columns).T.reshape(own.shape)


@dataclass(frozen=True)
class Target:
    """A wanted class, any class but one, or a range of numbers.

    ``code`` is that of the class, ``wanted`` whether it is the aim or to be avoided.
    """

    words: str
    code: int = -1
    wanted: bool = True
    low: float = -math.inf
    high: float = math.inf
    strict: bool = False

    def goal(self, tree: Tree, recipe: Recipe) -> Goal:
        """Return the nodes with a wanted prediction, and bounds."""
        if tree.is_regression:
            return number_goal(tree, self.low, self.high, self.strict)
        return class_goal(tree, recipe, self.code, self.wanted)

    def accepts(self, walker: Walker, data: Columns) -> bool:
        """Whether the model's prediction for the only row of the data is wanted."""
        arrivals = walker.walk(data)
        if self.code >= 0:
            return (int(walker.labels(arrivals)[0]) == self.code) == self.wanted
        mean = float(walker.numbers(arrivals)[0])
        if self.strict:
            return self.low < mean < self.high
        return self.low <= mean <= self.high


def target_of(target: object, schema: Schema, tree: Tree, now: Value) -> Target:
    """Parse the target; None is any class other than the present prediction."""
    if isinstance(target, np.generic):
        target = target.item()
    if tree.is_regression:
        return _Ranges(schema).of(target)
    if target is None:
        return Target(
            f"any class but {word(class_called(schema, now))}",
            schema.classes.index(now),
            wanted=False,
        )
    code = _code(target, schema)
    return Target(word(class_called(schema, schema.classes[code])), code)


def _code(target: object, schema: Schema) -> int:
    same_type = value_type(target) == value_type(schema.classes[0])
    if same_type and target in schema.classes:
        return schema.classes.index(target)
    raise ParameterError(
        f"target must be one of the classes {quoted(schema.classes, 20)}. Got "
        f"{target!r}; without a target, any other class than now will do."
    )


@dataclass(frozen=True)
class _Ranges:
    """Ranges of predicted numbers, which may be written with their unit."""

    schema: Schema

    def of(self, target: object) -> Target:
        """Parse a range."""
        if isinstance(target, str):
            return self._written(target)
        if isinstance(target, (tuple, list)) and len(target) == 2:
            low, high = (
                default if end is None else self._end(end, target)
                for end, default in zip(target, (-math.inf, math.inf), strict=True)
            )
            return self._between(low, high, target)
        raise _no_range(target)

    def _written(self, target: str) -> Target:
        if match := _BETWEEN.fullmatch(target):
            low, high = (self._end(end, target) for end in match.groups())
            return self._between(low, high, target)
        if not (match := _COMPARED.fullmatch(target)):
            raise _no_range(target)
        sign, end = match[1], self._end(match[2], target)
        words = f"a number {sign} {self._words(end)}"
        strict = "=" not in sign
        if sign.startswith("<"):
            return Target(words, high=end, strict=strict)
        return Target(words, low=end, strict=strict)

    def _between(self, low: float, high: float, target: object) -> Target:
        if not low <= high:
            raise _no_range(target)
        ends = f"{self._words(low)} to {self._words(high)}"
        return Target(f"a number from {ends}", low=low, high=high)

    def _words(self, end: float) -> str:
        unit = target_unit(self.schema)
        return unit.behind(unit.exact(end)) if math.isfinite(end) else number(end)

    def _end(self, end: object, target: object) -> float:
        written = self._with_unit(end) if isinstance(end, str) else None
        if written is not None:
            return written
        try:
            value = float(end)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise _no_range(target) from None
        if math.isnan(value) or isinstance(end, bool):
            raise _no_range(target)
        return value

    def _with_unit(self, text: str) -> float | None:
        """Read a number as the training table has it, or behind a point with a unit."""
        how, unit = self.schema.target_format, target_unit(self.schema)
        if how is not None:
            for each in (how, replace(how, decimal=".", thousands=None)):
                value = parse_texts([text], each)[0]
                if value is not None:
                    return value
        if unit.name and not unit.power and text.endswith(unit.name):
            return parse_texts([text.removesuffix(unit.name)], NumberFormat())[0]
        return None


def _no_range(target: object) -> ParameterError:
    return ParameterError(
        "target must be a range of numbers, since the tree predicts numbers: a pair "
        "(low, high) with None for no end, or a text such as '>= 10', '< 10' or "
        f"'10 to 20'. Got {target!r}."
    )
