"""Alignment of two trees, node by node, and the differences that it finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from branchwise.data.arrays import Ints
from branchwise.data.table_schema import Column, Schema, Value
from branchwise.explain.path import condition_dict
from branchwise.text.column_conditions import (
    ColumnPath,
    path_conditions,
    restricted_path,
)
from branchwise.text.conditions import Condition, condition_of, phrase, surrogates_of
from branchwise.text.label_words import title_of
from branchwise.text.predictions import Reasons, label_of, prediction
from branchwise.text.signs import is_typeset, typeset_signs
from branchwise.text.words import amount, cases, word
from branchwise.threads import cached_property
from branchwise.train.fitted_tree import FittedTree
from branchwise.tree.splits import EVERY_BRANCH, STOP
from branchwise.tree.tree import Tree

Kind = Literal[
    "split changed",
    "split added",
    "split removed",
    "threshold changed",
    "branch added",
    "branch removed",
    "missing changed",
    "unseen changed",
    "prediction changed",
    "size changed",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Difference:
    """One difference of two trees, where ``way`` leads.

    ``old_node`` and ``new_node`` are compared (of a branch its child); None is no node.
    ``typeset`` are ``old`` and ``new`` with the signs of mathematics.
    """

    kind: Kind
    way: tuple[Condition, ...]
    old_node: int | None
    new_node: int | None
    old: str
    new: str
    typeset: tuple[str, str] = field(default=("", ""), compare=False, repr=False)

    def __str__(self) -> str:
        old, new = self.typeset if is_typeset() else (self.old, self.new)
        where = " and ".join(phrase(condition) for condition in self.way)
        position = f"where {where}" if where else "at the root"
        if not old:
            return f"{position}: {new}"
        return f"{position}: {old} -> {new}" if new else f"{position}: {old}"

    def to_dict(self) -> dict[str, Any]:
        """Return the difference in plain values."""
        told = vars(self) | {"way": [condition_dict(c) for c in self.way]}
        del told["typeset"]  # the same with other signs
        return told


#: The children of a node by their conditions.
_Branches = dict[tuple[object, ...], int]


@dataclass(frozen=True)
class _Side:
    schema: Schema
    shown: Schema
    tree: Tree
    reasons: Reasons

    def is_leaf(self, node: int) -> bool:
        return not self.tree.n_children[node]

    def column(self, node: int) -> Column:
        """Return the column that a node splits on."""
        return self.schema.columns[int(self.tree.column[node])]

    def prediction(self, node: int) -> str:
        return prediction(self.shown, self.tree, node, self.reasons)

    def label(self, node: int) -> Value:
        return label_of(self.schema, self.tree, node)

    def weight(self, node: int) -> float:
        return self._weights[node]

    @cached_property
    def _weights(self) -> list[float]:
        weights: list[float] = self.tree.weights.sum(axis=1).tolist()
        return weights

    def cases(self, node: int) -> str:
        count = cases(float(self.tree.case_counts[node]))
        if not self.tree.is_weighted:
            return count
        return f"{count} of weight {amount(self.weight(node))}"

    def split(self, node: int) -> str:
        column, threshold = self.column(node), float(self.tree.threshold[node])
        if column.is_numeric and threshold == threshold:
            return (
                f"splits on {phrase(Condition(column.name, '<=', threshold, column))}"
            )
        return f"splits on {word(title_of(column, column.name))}"

    def condition(self, child: int) -> Condition:
        return condition_of(self.schema, self.tree, child)

    def branches(self, node: int) -> _Branches:
        """Return the children by their conditions, without codes and thresholds."""
        return {
            _key(self.condition(child)): child for child in self.tree.children(node)
        }

    def lost(self, node: int, to: Ints) -> tuple[object, ...]:
        """Return the route of missing or unseen values, comparable between trees."""
        branch = int(to[node])
        if branch < 0:
            return (branch,)
        return _key(self.condition(int(self.tree.first_child[node]) + branch))

    def lost_words(self, node: int, to: Ints, which: str) -> str:
        """Write where missing or unseen values go."""
        branch = int(to[node])
        if branch == STOP:
            return f"{which} values stop"
        if branch == EVERY_BRANCH:
            return f"{which} values go down every branch"
        condition = self.condition(int(self.tree.first_child[node]) + branch)
        return f"{which} values go where {phrase(condition)}"

    def surrogates(self, node: int) -> str:
        """Write the surrogates of a node, if it has some."""
        surrogates = surrogates_of(self.schema, self.tree, node)
        if not surrogates:
            return ""
        return f" unless a surrogate is known ({'; '.join(map(str, surrogates))})"


def _key(condition: Condition) -> tuple[object, ...]:
    if condition.op not in ("=", "in"):
        return (condition.op,)
    value = condition.value
    return ("in", frozenset(value if isinstance(value, tuple) else (value,)))


@dataclass(frozen=True)
class _Pair:
    """Nodes of two trees that are compared, and the path that leads there."""

    first: _Side
    second: _Side
    a: int
    b: int
    path: ColumnPath

    def difference(self, kind: Kind, old: str, new: str) -> Difference:
        return Difference(kind, path_conditions(self.path), self.a, self.b, old, new)

    def at_leaves(self) -> Iterator[Difference]:
        """Compare two nodes one of which is a leaf."""
        first, second, a, b = self.first, self.second, self.a, self.b
        if not second.is_leaf(b):
            yield self.difference("split added", first.prediction(a), second.split(b))
        elif not first.is_leaf(a):
            yield self.difference("split removed", first.split(a), second.prediction(b))
        elif first.label(a) != second.label(b):
            now = second.prediction(b)
            yield self.difference("prediction changed", first.prediction(a), now)
        else:
            yield from self.sizes()

    def sizes(self) -> Iterator[Difference]:
        """Compare the weights of two nodes."""
        if self.first.weight(self.a) != self.second.weight(self.b):
            now = self.second.cases(self.b)
            yield self.difference("size changed", self.first.cases(self.a), now)

    def at_splits(self, before: _Branches, after: _Branches) -> Iterator[Difference]:
        """Compare two splits on the same column."""
        first, second, a, b = self.first, self.second, self.a, self.b
        old, new = float(first.tree.threshold[a]), float(second.tree.threshold[b])
        both_unknown = old != old and new != new
        if first.column(a).is_numeric and old != new and not both_unknown:
            yield self.difference("threshold changed", first.split(a), second.split(b))
        way = path_conditions(self.path)
        for key, child in before.items():
            if key not in after:
                words = f"{phrase(first.condition(child))} is no branch any more"
                yield Difference("branch removed", way, child, None, words, "")
        for key, child in after.items():
            if key not in before:
                words = f"{phrase(second.condition(child))} is a branch now"
                yield Difference("branch added", way, None, child, "", words)
        yield from self.routes("missing", first.surrogates(a), second.surrogates(b))
        if not first.column(a).is_numeric:  # no number is unseen
            yield from self.routes("unseen")

    def routes(
        self, which: Literal["missing", "unseen"], was: str = "", now: str = ""
    ) -> Iterator[Difference]:
        """Compare the routes of missing or unseen values and the surrogates."""
        kind: Kind = "missing changed" if which == "missing" else "unseen changed"
        first, second, a, b = self.first, self.second, self.a, self.b
        old, new = (getattr(side.tree, f"{which}_to") for side in (first, second))
        if first.lost(a, old) != second.lost(b, new) or was != now:
            before = first.lost_words(a, old, which) + was
            yield self.difference(kind, before, second.lost_words(b, new, which) + now)


def differences(old: FittedTree, new: FittedTree) -> Iterator[Difference]:
    """Yield what sets two trees apart, from the root down."""
    sides = [_Side(m.schema, m.shown_schema, m.tree, m.reasons) for m in (old, new)]
    plain = list(_differences(*sides))
    with typeset_signs():
        typeset = list(_differences(*sides))
    for one, same in zip(plain, typeset, strict=True):
        yield replace(one, typeset=(same.old, same.new))


def _differences(first: _Side, second: _Side) -> Iterator[Difference]:
    stack: list[tuple[int, int, ColumnPath]] = [(0, 0, {})]
    while stack:
        a, b, path = stack.pop()
        pair = _Pair(first, second, a, b, path)
        if first.is_leaf(a) or second.is_leaf(b):
            yield from pair.at_leaves()
            continue
        yield from pair.sizes()
        old_column, new_column = first.column(a), second.column(b)
        if old_column.name != new_column.name or (
            old_column.is_numeric != new_column.is_numeric
        ):
            yield pair.difference("split changed", first.split(a), second.split(b))
            continue
        before, after = first.branches(a), second.branches(b)
        yield from pair.at_splits(before, after)
        for key in reversed([key for key in before if key in after]):
            left, right = before[key], after[key]
            further = restricted_path(path, new_column, second.condition(right))
            stack.append((left, right, further))
