"""A tree as rules: one for each leaf, the conditions on a column merged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from branchwise.table.schema import Schema, Value
from branchwise.tree import Tree
from branchwise.words import Condition, amount, condition_of, share, word


@dataclass(frozen=True)
class Rule:
    """The way to one leaf: if all conditions hold, the answer is ``label``.

    ``counts`` is the training weight of each class at the leaf, ``n`` their sum,
    ``node`` the number of the leaf in the tree.
    """

    conditions: tuple[Condition, ...]
    label: Value
    n: float
    counts: dict[Value, float]
    node: int

    def __str__(self) -> str:
        right = self.counts[self.label]
        support = f"{amount(right)} of {amount(self.n)} cases, {share(right, self.n)}"
        if not self.conditions:
            return f"always {word(self.label)} ({support})"
        premise = " and ".join(str(condition) for condition in self.conditions)
        return f"if {premise} then {word(self.label)} ({support})"


def tree_rules(schema: Schema, tree: Tree) -> list[Rule]:
    """Return one rule for each leaf, in the order in which the tree is printed."""
    return [_rule(schema, tree, node, path) for node, path in _leaf_paths(schema, tree)]


@dataclass(frozen=True)
class _Merged:
    """All that a path has asked of one column."""

    above: float = -math.inf
    at_most: float = math.inf
    other: Condition | None = None

    def narrowed(self, condition: Condition) -> _Merged:
        if condition.op == ">":
            return replace(self, above=max(self.above, float(condition.value)))  # type: ignore[arg-type]
        if condition.op == "<=":
            return replace(self, at_most=min(self.at_most, float(condition.value)))  # type: ignore[arg-type]
        if self == _Merged():
            return replace(self, other=condition)
        if condition.op == "is known":
            return self  # a number within bounds is known
        return replace(self, other=_both(self.other, condition))

    def conditions(self, column: str) -> Iterator[Condition]:
        bounded = False
        if self.above > -math.inf:
            bounded = True
            yield Condition(column, ">", self.above)
        if self.at_most < math.inf:
            bounded = True
            yield Condition(column, "<=", self.at_most)
        if self.other is not None and not (bounded and self.other.op == "is known"):
            yield self.other


def _both(first: Condition | None, second: Condition) -> Condition:
    """Return what two conditions on the values of a column leave."""
    if first is None or first.op not in _BY_VALUE or second.op not in _BY_VALUE:
        return second
    allowed = _values(second)
    left = tuple(value for value in _values(first) if value in allowed)
    if len(left) == 1:
        return Condition(first.column, "=", left[0])
    return Condition(first.column, "in", left)


def _values(condition: Condition) -> tuple[Value, ...]:
    value = condition.value
    if isinstance(value, tuple):
        return value
    return () if value is None else (value,)


_BY_VALUE = ("=", "in")
_Path = dict[str, _Merged]


def _leaf_paths(schema: Schema, tree: Tree) -> Iterator[tuple[int, _Path]]:
    """Walk the tree with the merged conditions of each path.

    A path keeps one entry a column, so that deep trees do not take quadratic time.
    """
    stack: list[tuple[int, _Path]] = [(0, {})]
    while stack:
        node, path = stack.pop()
        if tree.n_children[node] == 0:
            yield node, path
        for child in reversed(tree.children(node)):
            condition = condition_of(schema, tree, child)
            merged = path.get(condition.column, _Merged()).narrowed(condition)
            stack.append((child, {**path, condition.column: merged}))


def _rule(schema: Schema, tree: Tree, node: int, path: _Path) -> Rule:
    weights = tree.weights[node].tolist()
    return Rule(
        tuple(c for column, merged in path.items() for c in merged.conditions(column)),
        schema.classes[int(tree.label[node])],
        sum(weights),
        dict(zip(schema.classes, weights, strict=True)),
        node,
    )
