"""Rules of a tree: one for each leaf, the conditions on a column merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.table_schema import Schema, Value
from branchwise.stats import share_interval
from branchwise.text.column_conditions import (
    ColumnConditions,
    ColumnPath,
    path_conditions,
)
from branchwise.text.conditions import Condition, condition_on, said
from branchwise.text.label_words import NO_UNIT, Unit, target_unit
from branchwise.text.labels import class_called, target_title
from branchwise.text.predictions import Reasons, deviation_of, in_short, label_of
from branchwise.text.words import (
    amount,
    percent,
    percent_range,
    share,
    word,
)
from branchwise.tree.tree import Tree

#: The confidence level of the intervals.
INTERVAL = 0.95


@dataclass(frozen=True)
class Rule:
    """If all conditions hold, ``label`` is predicted: the path to one leaf.

    ``n`` is the number of training cases at the leaf, ``counts`` that of each class,
    ``node`` the number of the leaf in the tree. Cases with missing values count where
    the tree sends them, though no condition says so. Where numbers are predicted,
    ``label`` is their mean, ``deviation`` their standard deviation, and ``counts``
    is empty; so it is where a model file of an earlier version has only weights.

    What sentences need besides: ``total``, the number of all training cases; where
    cases had weights ``weight``, the weight of those at the leaf, ``weights``, that of
    each class, and ``total_weight``, that of all training cases; ``target``, the name
    of what is predicted; ``called``, what the class is called by a label, if it has
    one; ``reason``, what decided where costs or smoothed
    probabilities did; ``mean_interval``, the 95 % interval of a mean that was judged by
    other cases than those it was found in. Rules are equal whatever these are.
    """

    conditions: tuple[Condition, ...]
    label: Value
    n: float
    counts: dict[Value, float]
    node: int
    deviation: float | None = None
    total: float | None = field(default=None, compare=False, repr=False)
    target: str | None = field(default=None, compare=False, repr=False)
    weight: float | None = field(default=None, compare=False, repr=False)
    weights: dict[Value, float] = field(default_factory=dict, compare=False, repr=False)
    total_weight: float | None = field(default=None, compare=False, repr=False)
    reason: str = field(default="", compare=False, repr=False)
    called: Value | None = field(default=None, compare=False, repr=False)
    #: Of a predicted number, after a space.
    unit: Unit = field(default=NO_UNIT, compare=False, repr=False)
    mean_interval: tuple[float, float] | None = field(
        default=None, compare=False, repr=False
    )

    @property
    def right(self) -> float | None:
        """The number of cases that have the rule's class; None for numbers."""
        return self.counts.get(self.label) if self.deviation is None else None

    @property
    def coverage(self) -> float | None:
        """The share of all training cases that the rule covers."""
        return None if self.total is None else self.n / self.total

    @property
    def weight_share(self) -> float | None:
        """The share of the weight at the leaf that has the rule's class.

        None for numbers, and where cases had no weights.
        """
        if not self.weight or not self.weights:
            return None
        return self.weights[self.label] / self.weight

    @property
    def weight_coverage(self) -> float | None:
        """The share of all weight that the rule covers; None without weights."""
        if self.weight is None or not self.total_weight:
            return None
        return self.weight / self.total_weight

    @property
    def confidence(self) -> float | None:
        """The share of its cases that have the rule's class; None for numbers."""
        return None if self.right is None or not self.n else self.right / self.n

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the confidence (Wilson), or of a mean.

        It goes by the number of cases, not by their weight. A mean has one only where
        it was judged by other cases than those it was found in.
        """
        if self.confidence is None:
            return self.mean_interval
        return share_interval(self.confidence, self.n, INTERVAL)

    @property
    def low(self) -> float | None:
        """The lower end of the interval."""
        return None if self.interval is None else self.interval[0]

    @property
    def high(self) -> float | None:
        """The upper end of the interval."""
        return None if self.interval is None else self.interval[1]

    def __str__(self) -> str:
        conclusion = f"{self._prediction()} ({self._support()})"
        if not self.conditions:
            return f"always {conclusion}"
        return f"if {self.premise} then {conclusion}"

    @property
    def premise(self) -> str:
        """The conditions in words."""
        return " and ".join(str(condition) for condition in self.conditions)

    def sentence(self) -> str:
        """Return the rule as a sentence, with its coverage and confidence."""
        target = "the prediction" if self.target is None else word(self.target)
        average = "" if self.deviation is None else f" on {self._weighted}average"
        conclusion = f"{target} is {self._prediction()}{average} ({self._evidence()})"
        if not self.conditions:
            return f"In every case, {conclusion}."
        premise = " and ".join(said(condition) for condition in self.conditions)
        return f"If {premise}, then {conclusion}."

    def _prediction(self) -> str:
        if self.deviation is not None:
            return self.unit.mean(float(self.label))
        return word(self.label if self.called is None else self.called)

    @property
    def _weighted(self) -> str:
        return "" if self.weight is None else "weighted "

    def _spread(self) -> str:
        spread = self.unit.deviation(self.deviation or 0.0)
        return f"{self._weighted}standard deviation {spread}"

    def _support(self) -> str:
        if self.deviation is None:
            pieces = [self._right("case", "cases"), *self._by_weight()]
            return "; ".join(
                [*pieces, *([in_short(self.reason)] if self.reason else [])]
            )
        cases = "case" if self.n == 1 else "cases"
        of = "" if self.weight is None else "weighted mean of "
        return f"{of}{amount(self.n)} {cases}, {self._spread()}"

    def _right(self, one: str, many: str) -> str:
        """Write how many cases have the rule's class, as far as that is known."""
        if self.right is None:
            return f"{amount(self.n)} {one if self.n == 1 else many}"
        shown = share(self.right, self.n)
        return f"{amount(self.right)} of {amount(self.n)} {many}, {shown}"

    def _by_weight(self) -> list[str]:
        if self.weight_share is None:
            return []
        return [f"{share(self.weight_share, 1)} of weight"]

    def _evidence(self) -> str:
        """Write the support of the rule: cases, coverage, interval."""
        cases = "training case" if self.n == 1 else "training cases"
        pieces = []
        if self.deviation is not None:
            pieces.append(f"{amount(self.n)} {cases}, {self._spread()}")
        elif not self.n:
            pieces.append("no training case")
        else:
            pieces += [self._right(cases, cases), *self._by_weight()]
        if self.coverage is not None:
            covered = f"covers {percent(self.coverage)} of all"
            if self.weight_coverage is not None:
                covered += f" cases, {percent(self.weight_coverage)} of all weight"
            pieces.append(covered)
        if self.interval is not None:
            ends = " to ".join(map(self.unit.mean, self.interval))
            if self.deviation is None:
                ends = percent_range(*self.interval)
            pieces.append(f"{percent(INTERVAL)} interval {ends}")
        return "; ".join([*pieces, *([self.reason] if self.reason else [])])


def tree_rules(
    schema: Schema,
    tree: Tree,
    simplify: bool = False,
    reasons: Reasons | None = None,
) -> list[Rule]:
    """Return one rule for each leaf, in the order in which the tree is printed.

    The conditions of a path on a column are merged. With ``simplify``, two bounds are
    one condition, a list of most values says which are not in it, and a list of all is
    left out.
    """
    return [
        _rule(schema, tree, node, _conditions(path, simplify), reasons or {})
        for node, path in _leaf_paths(schema, tree)
    ]


class PathRule(NamedTuple):
    """The path to a leaf: its conditions, its class and its node.

    It has of a :class:`Rule` what generalising takes.
    """

    conditions: tuple[Condition, ...]
    label: Value
    node: int


def path_rules(schema: Schema, tree: Tree) -> Iterator[PathRule]:
    """Yield the rules of the leaves, without their figures and words."""
    labels = tree.label.tolist()
    for node, path in _leaf_paths(schema, tree):
        conditions = path_conditions(path)
        yield PathRule(conditions, schema.classes[labels[node]], node)


def _leaf_paths(schema: Schema, tree: Tree) -> Iterator[tuple[int, ColumnPath]]:
    """Walk the tree with the merged conditions of each path.

    A path keeps one entry a column, so that deep trees do not take quadratic time.
    """
    # Lists: an entry of an array takes several times as long to read.
    n_children, first_child = tree.n_children.tolist(), tree.first_child.tolist()
    columns, thresholds = tree.column.tolist(), (tree.threshold + 0.0).tolist()
    codes, starts = tree.codes.tolist(), tree.code_starts.tolist()
    # Paths that test a column once share its values: nodes of categories are many.
    shared: dict[tuple[int, tuple[int, ...]], ColumnConditions] = {}
    stack: list[tuple[int, ColumnPath]] = [(0, {})]
    while stack:
        node, path = stack.pop()
        if n_children[node] == 0:
            yield node, path
            continue
        column, first = schema.columns[columns[node]], first_child[node]
        before = path.get(column.name)
        for child in reversed(range(first, first + n_children[node])):
            own = tuple(codes[starts[child] : starts[child + 1]])
            is_shared = before is None and not column.is_numeric
            found = shared.get((columns[node], own)) if is_shared else None
            if found is None:
                condition = condition_on(column, own, thresholds[node])
                found = (before or ColumnConditions(column)).restricted(condition)
            if is_shared:
                shared[columns[node], own] = found
            stack.append((child, {**path, column.name: found}))


def _conditions(path: ColumnPath, simplify: bool) -> tuple[Condition, ...]:
    pieces = (
        column_conditions.simple if simplify else column_conditions.conditions
        for column_conditions in path.values()
    )
    return tuple(condition for piece in pieces for condition in piece)


def _rule(
    schema: Schema,
    tree: Tree,
    node: int,
    conditions: tuple[Condition, ...],
    reasons: Reasons,
) -> Rule:
    rule = Rule(
        conditions,
        label_of(schema, tree, node),
        float(tree.case_counts[node]),
        _by_class(schema, tree, tree.class_counts, node),
        node,
        deviation_of(tree, node),
        total=float(tree.case_counts[0]),
        target=target_title(schema),
        reason=reasons.get(node, ""),
        called=class_called(schema, label_of(schema, tree, node)),
        unit=target_unit(schema),
    )
    if not tree.is_weighted:
        return rule
    return replace(
        rule,
        weight=float(tree.weights[node].sum()),
        weights=_by_class(schema, tree, tree.weights, node),
        total_weight=float(tree.weights[0].sum()),
    )


def _by_class(
    schema: Schema, tree: Tree, amounts: NDArray[np.float64] | None, node: int
) -> dict[Value, float]:
    """Return the amounts of the classes at a node; none for numbers, or if unknown."""
    if amounts is None or tree.is_regression:
        return {}
    return dict(zip(schema.classes, amounts[node].tolist(), strict=True))
