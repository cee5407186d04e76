"""Two trees laid on each other from the root, and where they part.

Nodes are compared that are reached by the same questions and branches. Where both ask
about the same column, the comparison goes on below the branches that they share (for
numbers also where the cut has moved); where the questions differ, it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from branchwise.counts import Ints
from branchwise.explain.steps import condition_dict
from branchwise.forks import cached_property
from branchwise.missing import EVERY_BRANCH, STOP
from branchwise.rules import Way, narrowed_way, way_conditions
from branchwise.surrogates import surrogates_of
from branchwise.table.schema import Column, Schema
from branchwise.tree import Tree
from branchwise.words import (
    Condition,
    Reasons,
    amount,
    answer,
    cases,
    condition_of,
    phrase,
    word,
)

Kind = Literal[
    "question changed",
    "question added",
    "question removed",
    "cut changed",
    "branch added",
    "branch removed",
    "missing changed",
    "unseen changed",
    "answer changed",
    "size changed",
]
KINDS: tuple[Kind, ...] = (
    "question changed",
    "question added",
    "question removed",
    "cut changed",
    "branch added",
    "branch removed",
    "missing changed",
    "unseen changed",
    "answer changed",
    "size changed",
)


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in two trees.

    ``old_node`` and ``new_node`` are the nodes that are compared (for a branch the
    child that it leads to), None where a tree has none; ``way`` leads there.
    """

    kind: Kind
    way: tuple[Condition, ...]
    old_node: int | None
    new_node: int | None
    old: str
    new: str

    def __str__(self) -> str:
        where = " and ".join(phrase(condition) for condition in self.way)
        place = f"where {where}" if where else "at the root"
        if not self.old:
            return f"{place}: {self.new}"
        return (
            f"{place}: {self.old} -> {self.new}" if self.new else f"{place}: {self.old}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the difference in plain values."""
        return {
            "kind": self.kind,
            "way": [condition_dict(condition) for condition in self.way],
            "old_node": self.old_node,
            "new_node": self.new_node,
            "old": self.old,
            "new": self.new,
        }


#: The children of a node by what leads to them.
_Branches = dict[tuple[object, ...], int]


@dataclass(frozen=True)
class _Side:
    schema: Schema
    tree: Tree
    reasons: Reasons

    def is_leaf(self, node: int) -> bool:
        return not self.tree.n_children[node]

    def column(self, node: int) -> str:
        return self.schema.columns[int(self.tree.column[node])].name

    def is_numeric(self, node: int) -> bool:
        return self.schema.columns[int(self.tree.column[node])].is_numeric

    def answer(self, node: int) -> str:
        return answer(self.schema, self.tree, node, self.reasons)

    def label(self, node: int) -> object:
        if self.tree.mean is not None:
            return float(self.tree.mean[node])
        return self.schema.classes[int(self.tree.label[node])]

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

    def question(self, node: int) -> str:
        name = word(self.column(node))
        if self.is_numeric(node) and self.tree.cut[node] == self.tree.cut[node]:
            cut = Condition(self.column(node), "<=", float(self.tree.cut[node]))
            return f"asks {phrase(cut)}"
        return f"asks {name}"

    def asked(self, node: int) -> Column:
        """Return the column that a node asks about."""
        return self.schema.columns[int(self.tree.column[node])]

    def condition(self, child: int) -> Condition:
        return condition_of(self.schema, self.tree, child)

    def branches(self, node: int) -> _Branches:
        """Return the children by what leads to them, whatever the codes and the cut."""
        return {
            _key(self.condition(child)): child for child in self.tree.children(node)
        }

    def lost(self, node: int, to: Ints) -> tuple[object, ...]:
        """Tell where cases without an answer go, in terms that trees can share."""
        branch = int(to[node])
        if branch < 0:
            return (branch,)
        return _key(self.condition(int(self.tree.first_child[node]) + branch))

    def lost_words(self, node: int, to: Ints, which: str) -> str:
        """Write where cases without an answer go."""
        branch = int(to[node])
        if branch == STOP:
            return f"{which} values stop"
        if branch == EVERY_BRANCH:
            return f"{which} values go down every branch"
        condition = self.condition(int(self.tree.first_child[node]) + branch)
        return f"{which} values go where {phrase(condition)}"

    def surrogates(self, node: int) -> str:
        """Write the surrogates of a node, if it has some."""
        asked = surrogates_of(self.schema, self.tree, node)
        if not asked:
            return ""
        return f" unless a surrogate answers ({'; '.join(map(str, asked))})"


def _key(condition: Condition) -> tuple[object, ...]:
    if condition.op not in ("=", "in"):
        return (condition.op,)
    value = condition.value
    return ("in", frozenset(value if isinstance(value, tuple) else (value,)))


def differences(
    old: tuple[Schema, Tree, Reasons], new: tuple[Schema, Tree, Reasons]
) -> Iterator[Difference]:
    """Yield what sets two trees apart, from the root down."""
    first, second = _Side(*old), _Side(*new)
    stack: list[tuple[int, int, Way]] = [(0, 0, {})]
    while stack:
        a, b, way = stack.pop()
        if first.is_leaf(a) or second.is_leaf(b):
            yield from _at_leaves(first, second, a, b, way)
            continue
        yield from _sizes(first, second, a, b, way)
        if first.column(a) != second.column(b) or (
            first.is_numeric(a) != second.is_numeric(b)
        ):
            yield _found(
                "question changed", way, a, b, first.question(a), second.question(b)
            )
            continue
        before, after = first.branches(a), second.branches(b)
        yield from _at_questions(first, second, a, b, way, before, after)
        for key in reversed([key for key in before if key in after]):
            left, right = before[key], after[key]
            further = narrowed_way(way, second.asked(b), second.condition(right))
            stack.append((left, right, further))


def _found(
    kind: Kind, way: Way, a: int | None, b: int | None, old: str, new: str
) -> Difference:
    return Difference(kind, way_conditions(way), a, b, old, new)


def _at_leaves(
    first: _Side, second: _Side, a: int, b: int, way: Way
) -> Iterator[Difference]:
    if not second.is_leaf(b):
        was = first.answer(a)
        yield _found("question added", way, a, b, was, second.question(b))
    elif not first.is_leaf(a):
        now = second.answer(b)
        yield _found("question removed", way, a, b, first.question(a), now)
    elif first.label(a) != second.label(b):
        yield _found("answer changed", way, a, b, first.answer(a), second.answer(b))
    else:
        yield from _sizes(first, second, a, b, way)


def _sizes(
    first: _Side, second: _Side, a: int, b: int, way: Way
) -> Iterator[Difference]:
    if first.weight(a) != second.weight(b):
        old, new = first.cases(a), second.cases(b)
        yield _found("size changed", way, a, b, old, new)


def _at_questions(
    first: _Side,
    second: _Side,
    a: int,
    b: int,
    way: Way,
    before: _Branches,
    after: _Branches,
) -> Iterator[Difference]:
    """Compare two questions about the same column."""
    cuts = float(first.tree.cut[a]), float(second.tree.cut[b])
    if first.is_numeric(a) and cuts[0] != cuts[1] and not all(c != c for c in cuts):
        yield _found("cut changed", way, a, b, first.question(a), second.question(b))
    for key, child in before.items():
        if key not in after:
            words = f"{phrase(first.condition(child))} is no branch any more"
            yield _found("branch removed", way, child, None, words, "")
    for key, child in after.items():
        if key not in before:
            words = f"{phrase(second.condition(child))} is a branch now"
            yield _found("branch added", way, None, child, "", words)
    yield from _at_gaps(first, second, a, b, way)


def _at_gaps(
    first: _Side, second: _Side, a: int, b: int, way: Way
) -> Iterator[Difference]:
    """Compare what missing and unseen values do at a question."""
    old, new = first.tree, second.tree
    asked = first.surrogates(a), second.surrogates(b)
    gaps = first.lost(a, old.missing_to), second.lost(b, new.missing_to)
    if gaps[0] != gaps[1] or asked[0] != asked[1]:
        yield _found(
            "missing changed",
            way,
            a,
            b,
            first.lost_words(a, old.missing_to, "missing") + asked[0],
            second.lost_words(b, new.missing_to, "missing") + asked[1],
        )
    if first.is_numeric(a):  # no number is unseen
        return
    if first.lost(a, old.unseen_to) != second.lost(b, new.unseen_to):
        yield _found(
            "unseen changed",
            way,
            a,
            b,
            first.lost_words(a, old.unseen_to, "unseen"),
            second.lost_words(b, new.unseen_to, "unseen"),
        )
