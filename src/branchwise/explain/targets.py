"""The answer that a change is to bring about, as the user names it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from branchwise.errors import ParameterError, quoted
from branchwise.explain.goals import Goal, Judge, class_goal, number_goal
from branchwise.predict import Walker
from branchwise.recipes import Recipe
from branchwise.table.schema import Schema, Value, value_type
from branchwise.tree import Tree
from branchwise.words import number, word

_COMPARED = re.compile(r"\s*(<=|>=|<|>)\s*(\S+)\s*")
_BETWEEN = re.compile(r"\s*(\S+)\s+to\s+(\S+)\s*")


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
        """Return the nodes that give the answer."""
        if tree.predicts_numbers:
            return number_goal(tree, self.low, self.high, self.strict)
        return class_goal(tree, recipe, self.code, self.wanted)

    def judge(self, tree: Tree, walker: Walker) -> Judge:
        """Return who asks the model."""
        return Judge(
            walker, tree, self.code, self.wanted, self.low, self.high, self.strict
        )


def target_of(target: object, schema: Schema, tree: Tree, now: Value) -> Target:
    """Read what the user wants; without a wish, any other class than now."""
    if isinstance(target, np.generic):
        target = target.item()
    if tree.predicts_numbers:
        return _range(target)
    if target is None:
        return Target(
            f"any answer but {word(now)}", schema.classes.index(now), wanted=False
        )
    return Target(word(schema.classes[code := _code(target, schema)]), code)


def _code(target: object, schema: Schema) -> int:
    same_type = value_type(target) == value_type(schema.classes[0])
    if same_type and target in schema.classes:
        return schema.classes.index(target)
    raise ParameterError(
        f"target must be one of the classes {quoted(schema.classes, 20)}. Got "
        f"{target!r}; without a target, any other class than now will do."
    )


def _range(target: object) -> Target:
    if isinstance(target, str):
        return _written_range(target)
    if isinstance(target, (tuple, list)) and len(target) == 2:
        low, high = (
            default if end is None else _end(end, target)
            for end, default in zip(target, (-math.inf, math.inf), strict=True)
        )
        return _between(low, high, target)
    raise _no_range(target)


def _written_range(target: str) -> Target:
    if found := _BETWEEN.fullmatch(target):
        return _between(_end(found[1], target), _end(found[2], target), target)
    if not (found := _COMPARED.fullmatch(target)):
        raise _no_range(target)
    sign, end = found[1], _end(found[2], target)
    words = f"a number {sign} {number(end)}"
    strict = "=" not in sign
    if sign.startswith("<"):
        return Target(words, high=end, strict=strict)
    return Target(words, low=end, strict=strict)


def _between(low: float, high: float, target: object) -> Target:
    if not low <= high:
        raise _no_range(target)
    return Target(f"a number from {number(low)} to {number(high)}", low=low, high=high)


def _end(end: object, target: object) -> float:
    try:
        value = float(end)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _no_range(target) from None
    if math.isnan(value) or isinstance(end, bool):
        raise _no_range(target)
    return value


def _no_range(target: object) -> ParameterError:
    return ParameterError(
        "target must be a range of numbers, since the tree predicts numbers: a pair "
        "(low, high) with None for no end, or a text such as '>= 10', '< 10' or "
        f"'10 to 20'. Got {target!r}."
    )
