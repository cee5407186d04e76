"""What would have to change: the smallest change of a row with another answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.data.one_row import Cells
from branchwise.data.schema import Columns, Schema, Value, value_type
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.explain.constraints import LARGEST, Lever, Range, Wishes
from branchwise.explain.constraints import Cells as CellSet
from branchwise.explain.explanation import answer_words, chances_list, chances_words
from branchwise.explain.goal import Goal, Judge, class_goal, number_goal
from branchwise.explain.path import condition_dict
from branchwise.explain.solver import Found, Search, changed_row
from branchwise.recipe import Recipe
from branchwise.text.conditions import Condition, amount, listed, number, one_of, word
from branchwise.text.document import Block, Heading, Items, Paragraph, Written
from branchwise.tree.apply import Walker
from branchwise.tree.tree import Tree

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


@dataclass(frozen=True)
class Change:
    """One cell that changes.

    Attributes
    ----------
    column : str
        The column.
    old, new : Value or None
        What the row has, and the nearest value that will do; None is missing.
    conditions : tuple of Condition
        All values that will do at the same price, everything else being equal.
    price, size : float
        What the change costs, and how far a number moves in units of its scale.
    whole : bool
        Whether only whole numbers will do.
    """

    column: str
    old: Value | None
    new: Value | None
    conditions: tuple[Condition, ...]
    price: float
    size: float
    whole: bool = False

    def __str__(self) -> str:
        old = "missing" if self.old is None else word(self.old)
        return f"{word(self.column)} from {old} to {self._wanted()}"

    def _wanted(self) -> str:
        if self.new is None:
            return "missing"
        bounds = {c.op: c.value for c in self.conditions}
        above, at_most = bounds.get(">"), bounds.get("<=")
        if self.whole and {">", "<="} & bounds.keys():
            return _whole_words(above, at_most)
        if isinstance(above, (int, float)) and isinstance(at_most, (int, float)):
            return f"more than {number(above)} and at most {number(at_most)}"
        if isinstance(above, (int, float)):
            return f"more than {number(above)}"
        if isinstance(at_most, (int, float)):
            return f"{number(at_most)} or less"
        if "is known" in bounds:
            return "any number"
        values = bounds.get("in")
        return (
            f"one of {listed(values)}" if isinstance(values, tuple) else word(self.new)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the change in plain values."""
        return {
            "column": self.column,
            "old": self.old,
            "new": self.new,
            "conditions": [condition_dict(c) for c in self.conditions],
            "price": self.price,
            "size": self.size,
            "text": str(self),
        }


@dataclass(frozen=True)
class Alternative:
    """A row with the wanted answer, and how it differs from the one that was given.

    ``cost`` is the sum of the prices, ``size`` that of the sizes; ``nodes`` is where
    the new row arrives. ``answer`` and ``probabilities`` are those of the model.
    """

    changes: tuple[Change, ...]
    row: dict[str, Value | None]
    answer: Value
    probabilities: dict[Value, float]
    cost: float
    size: float
    nodes: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the alternative in plain values."""
        return {
            "changes": [change.to_dict() for change in self.changes],
            "row": self.row,
            "answer": self.answer,
            "probabilities": chances_list(self.probabilities),
            "cost": self.cost,
            "size": self.size,
            "nodes": list(self.nodes),
        }


@dataclass(frozen=True, repr=False)
class WhatIf(Written):
    """The smallest change of a row that brings about an answer.

    Attributes
    ----------
    row : dict
        The row as it is.
    answer, probabilities
        What the model says to it.
    target : str
        The wanted answer, in words.
    alternatives : tuple of Alternative
        The cheapest ways to the target, to different leaves, best first; empty where
        there is none.
    reason : str or None
        Why there is none, or why nothing needs to change.
    """

    row: dict[str, Value | None]
    answer: Value
    probabilities: dict[Value, float]
    target: str
    alternatives: tuple[Alternative, ...]
    reason: str | None = None

    def __bool__(self) -> bool:
        return bool(self.alternatives)

    @property
    def best(self) -> Alternative:
        """The cheapest alternative."""
        if not self.alternatives:
            raise DataError(f"No change gives {self.target}. {self.reason}")
        return self.alternatives[0]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes of the cheapest alternative."""
        return self.best.changes

    def __repr__(self) -> str:
        if not self.alternatives:
            return f"<what if: no way to {self.target}>"
        changes = "; ".join(str(change) for change in self.changes)
        return f"<what if: {changes or 'nothing changes'}>"

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        now = f"{answer_words(self.answer)}{chances_words(self.probabilities)}"
        yield Paragraph(f"Now: {now}")
        if self.reason is not None:
            yield Paragraph(self.reason)
        for position, one in enumerate(self.alternatives):
            if one.changes:
                chances = chances_words(one.probabilities)
                yield Heading(f"{answer_words(one.answer)}{chances} {_if(position)}")
                yield Items([str(change) for change in one.changes])
                yield Paragraph(f"Cost {amount(one.cost)}.")

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        return {
            "row": self.row,
            "answer": self.answer,
            "probabilities": chances_list(self.probabilities),
            "target": self.target,
            "alternatives": [one.to_dict() for one in self.alternatives],
            "reason": self.reason,
        }


def _whole_words(above: Any, at_most: Any) -> str:
    low = "" if above is None else number(float(math.floor(above) + 1))
    high = "" if at_most is None else number(float(math.floor(at_most)))
    if low == high:
        return low
    if low and high:
        return f"{low} to {high}"
    return f"{low} or more" if low else f"{high} or less"


def _if(position: int) -> str:
    return "if this changes:" if position == 0 else "also if this changes:"


@dataclass(frozen=True)
class Asker:
    """One row before a model: all that answering "what if" takes."""

    schema: Schema
    tree: Tree
    recipe: Recipe
    walker: Walker
    cells: Cells
    data: Columns

    def what_if(self, target: object, wishes: Wishes, how_many: int) -> WhatIf:
        """Find the cheapest ways to a target."""
        self._check(how_many)
        wishes = wishes.checked(self.schema, self.recipe)
        answer, chances = self.reply(self.data)
        wanted = target_of(target, self.schema, self.tree, answer)
        levers = self._levers(wishes)
        found = self._search(wanted, levers).best(how_many)
        ways = tuple(self._alternative(one, levers) for one in found)
        reason = None
        if not ways:
            reason = self._why_not(wanted, wishes)
        elif not ways[0].changes:
            ways, reason = ways[:1], f"The answer is {wanted.words} already."
        return WhatIf(self.cells.row(0), answer, chances, wanted.words, ways, reason)

    def _check(self, how_many: object) -> None:
        if self.data.n_rows != 1:
            raise DataError(
                f"what_if takes one row. Got {self.data.n_rows:,}; pass one of them."
            )
        if isinstance(how_many, bool) or not isinstance(how_many, int) or how_many < 1:
            raise ParameterError(
                f"how_many must be a whole number of at least 1. Got {how_many!r}."
            )

    def reply(self, data: Columns) -> tuple[Value, dict[Value, float]]:
        """Return the model's own answer and probabilities."""
        arrivals = self.walker.walk(data)
        if self.tree.predicts_numbers:
            return float(self.walker.numbers(arrivals)[0]) + 0.0, {}
        label = self.schema.classes[int(self.walker.labels(arrivals)[0])]
        chances = self.walker.distribution(arrivals)[0].tolist()
        return label, dict(zip(self.schema.classes, chances, strict=True))

    def _levers(self, wishes: Wishes) -> dict[int, Lever]:
        values = {index: self.cells.value(index, 0) for index in self.tree.used_columns}
        return wishes.levers(self.schema, self.tree, self.data, values)

    def _search(self, target: Target, levers: dict[int, Lever]) -> Search:
        goal = target.goal(self.tree, self.recipe)
        judge = target.judge(self.tree, self.walker)
        return Search(self.tree, levers, goal, judge, self.data)

    def _alternative(self, found: Found, levers: dict[int, Lever]) -> Alternative:
        box = found.box
        answer, chances = self.reply(changed_row(self.data, box, levers))
        changes = tuple(
            _change(levers[index], box.cells[index], box.charges[index].cell)
            for index in sorted(box.charges)
        )
        row = self.cells.row(0) | {change.column: change.new for change in changes}
        return Alternative(
            changes, row, answer, chances, box.price, box.size, found.nodes
        )

    def _why_not(self, target: Target, wishes: Wishes) -> str:
        """Tell why no change leads to the target."""
        free = self._levers(wishes.unlimited)
        found = self._search(target, free).best()
        if found:
            changes = self._alternative(found[0], free).changes
            stuck = {c.column: wishes.forbids(c.column) for c in changes}
            reasons = [f"{word(c)} is {why}" for c, why in stuck.items() if why]
            needed = "; ".join(str(change) for change in changes)
            limits = f", but {' and '.join(reasons)}" if reasons else ""
            return (
                f"No allowed change gives {target.words}. Without limits the smallest "
                f"would be: {needed}{limits}."
            )
        if not np.any(target.goal(self.tree, self.recipe).right):
            return f"No change gives {target.words}: no node of the tree answers so."
        if wishes.allow_missing or self.recipe.missing == "error":
            return f"No change gives {target.words}: no row arrives where it is said."
        return (
            f"No change gives {target.words}: only rows with missing values may get "
            "it. allow_missing=True proposes them."
        )


def _change(lever: Lever, cells: CellSet, cell: float | None) -> Change:
    name = lever.column.name
    charge = lever.charge(cells)
    price, size = (0.0, 0.0) if charge is None else charge[:2]
    if cell is None:
        new: Value | None = None
        conditions: tuple[Condition, ...] = (Condition(name, "is missing"),)
    elif isinstance(cells, Range):
        new = float(cell)
        conditions = _bounds(name, cells)
    else:
        values = lever.column.categories
        new = values[int(cell)]
        same = [
            value
            for code, value in enumerate(values)
            if cells.mask >> code & 1 and lever.price(lever.value, value) == price
        ]
        conditions = (one_of(name, tuple(same)),)
    return Change(name, lever.value, new, conditions, price, size, lever.whole)


def _bounds(name: str, cells: Range) -> tuple[Condition, ...]:
    bounds = []
    if cells.above > -np.inf:
        bounds.append(Condition(name, ">", cells.above + 0.0))
    if cells.at_most < LARGEST:
        bounds.append(Condition(name, "<=", cells.at_most + 0.0))
    return tuple(bounds) or (Condition(name, "is known"),)
