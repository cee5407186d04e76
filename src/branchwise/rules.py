"""A tree as rules: one for each leaf, the conditions on a column merged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from branchwise.table.schema import Schema, Value
from branchwise.tree import Tree
from branchwise.words import (
    Condition,
    amount,
    condition_of,
    deviation,
    deviation_of,
    label_of,
    mean,
    one_of,
    share,
    word,
)


@dataclass(frozen=True)
class Rule:
    """The way to one leaf: if all conditions hold, the answer is ``label``.

    ``counts`` is the training weight of each class at the leaf, ``n`` their sum,
    ``node`` the number of the leaf in the tree. Cases with missing values count where
    the tree sends them, though no condition says so. Where numbers are predicted,
    ``label`` is their mean, ``deviation`` their standard deviation, and ``counts``
    is empty.
    """

    conditions: tuple[Condition, ...]
    label: Value
    n: float
    counts: dict[Value, float]
    node: int
    deviation: float | None = None

    def __str__(self) -> str:
        conclusion = f"{self._answer()} ({self._support()})"
        if not self.conditions:
            return f"always {conclusion}"
        premise = " and ".join(str(condition) for condition in self.conditions)
        return f"if {premise} then {conclusion}"

    def _answer(self) -> str:
        return word(self.label) if self.deviation is None else mean(float(self.label))

    def _support(self) -> str:
        if self.deviation is None:
            right = self.counts[self.label]
            return f"{amount(right)} of {amount(self.n)} cases, {share(right, self.n)}"
        cases = "case" if self.n == 1 else "cases"
        return (
            f"{amount(self.n)} {cases}, standard deviation {deviation(self.deviation)}"
        )


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
    allowed = set(_values(second))
    left = tuple(value for value in _values(first) if value in allowed)
    return one_of(first.column, left)


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
        label_of(schema, tree, node),
        sum(weights),
        {}
        if tree.predicts_numbers
        else dict(zip(schema.classes, weights, strict=True)),
        node,
        deviation_of(tree, node),
    )
