"""Comparison of two models: schemas, trees and predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.data.schema import Column, Schema, Value
from branchwise.errors import DataError, counted
from branchwise.explain.explanation import prediction_words
from branchwise.explain.path import condition_dict
from branchwise.text.conditions import (
    Condition,
    Reasons,
    amount,
    cases,
    condition_of,
    listed,
    number,
    phrase,
    prediction,
    share,
    surrogates_of,
    word,
)
from branchwise.text.document import Block, Grid, Heading, Items, Paragraph, Written
from branchwise.text.paths import ColumnPath, path_conditions, path_to, restricted_path
from branchwise.threads import cached_property
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
KINDS: tuple[Kind, ...] = (
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
)


@dataclass(frozen=True)
class Difference:
    """One difference of two trees.

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
        position = f"where {where}" if where else "at the root"
        if not self.old:
            return f"{position}: {self.new}"
        return (
            f"{position}: {self.old} -> {self.new}"
            if self.new
            else f"{position}: {self.old}"
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


#: The children of a node by their conditions.
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

    def prediction(self, node: int) -> str:
        return prediction(self.schema, self.tree, node, self.reasons)

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

    def split(self, node: int) -> str:
        name = word(self.column(node))
        if (
            self.is_numeric(node)
            and self.tree.threshold[node] == self.tree.threshold[node]
        ):
            threshold = Condition(
                self.column(node), "<=", float(self.tree.threshold[node])
            )
            return f"splits on {phrase(threshold)}"
        return f"splits on {name}"

    def split_column(self, node: int) -> Column:
        """Return the column that a node splits on."""
        return self.schema.columns[int(self.tree.column[node])]

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
        split_column = surrogates_of(self.schema, self.tree, node)
        if not split_column:
            return ""
        return f" unless a surrogate is known ({'; '.join(map(str, split_column))})"


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
    stack: list[tuple[int, int, ColumnPath]] = [(0, 0, {})]
    while stack:
        a, b, way = stack.pop()
        if first.is_leaf(a) or second.is_leaf(b):
            yield from _at_leaves(first, second, a, b, way)
            continue
        yield from _sizes(first, second, a, b, way)
        if first.column(a) != second.column(b) or (
            first.is_numeric(a) != second.is_numeric(b)
        ):
            yield _found("split changed", way, a, b, first.split(a), second.split(b))
            continue
        before, after = first.branches(a), second.branches(b)
        yield from _at_splits(first, second, a, b, way, before, after)
        for key in reversed([key for key in before if key in after]):
            left, right = before[key], after[key]
            further = restricted_path(
                way, second.split_column(b), second.condition(right)
            )
            stack.append((left, right, further))


def _found(
    kind: Kind, way: ColumnPath, a: int | None, b: int | None, old: str, new: str
) -> Difference:
    return Difference(kind, path_conditions(way), a, b, old, new)


def _at_leaves(
    first: _Side, second: _Side, a: int, b: int, way: ColumnPath
) -> Iterator[Difference]:
    if not second.is_leaf(b):
        was = first.prediction(a)
        yield _found("split added", way, a, b, was, second.split(b))
    elif not first.is_leaf(a):
        now = second.prediction(b)
        yield _found("split removed", way, a, b, first.split(a), now)
    elif first.label(a) != second.label(b):
        yield _found(
            "prediction changed", way, a, b, first.prediction(a), second.prediction(b)
        )
    else:
        yield from _sizes(first, second, a, b, way)


def _sizes(
    first: _Side, second: _Side, a: int, b: int, way: ColumnPath
) -> Iterator[Difference]:
    if first.weight(a) != second.weight(b):
        old, new = first.cases(a), second.cases(b)
        yield _found("size changed", way, a, b, old, new)


def _at_splits(
    first: _Side,
    second: _Side,
    a: int,
    b: int,
    way: ColumnPath,
    before: _Branches,
    after: _Branches,
) -> Iterator[Difference]:
    """Compare two splits on the same column."""
    thresholds = float(first.tree.threshold[a]), float(second.tree.threshold[b])
    if (
        first.is_numeric(a)
        and thresholds[0] != thresholds[1]
        and not all(c != c for c in thresholds)
    ):
        yield _found("threshold changed", way, a, b, first.split(a), second.split(b))
    for key, child in before.items():
        if key not in after:
            words = f"{phrase(first.condition(child))} is no branch any more"
            yield _found("branch removed", way, child, None, words, "")
    for key, child in after.items():
        if key not in before:
            words = f"{phrase(second.condition(child))} is a branch now"
            yield _found("branch added", way, None, child, "", words)
    yield from _at_missing(first, second, a, b, way)


def _at_missing(
    first: _Side, second: _Side, a: int, b: int, way: ColumnPath
) -> Iterator[Difference]:
    """Compare the routes of missing and unseen values at a split."""
    old, new = first.tree, second.tree
    split_column = first.surrogates(a), second.surrogates(b)
    missing_routes = first.lost(a, old.missing_to), second.lost(b, new.missing_to)
    if missing_routes[0] != missing_routes[1] or split_column[0] != split_column[1]:
        yield _found(
            "missing changed",
            way,
            a,
            b,
            first.lost_words(a, old.missing_to, "missing") + split_column[0],
            second.lost_words(b, new.missing_to, "missing") + split_column[1],
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


#: Entries of a list that are shown before the rest is only counted.
SHOWN = 20


@dataclass(frozen=True)
class Side:
    """A model as the comparison needs it.

    ``predict``, ``apply`` and ``score`` take a table (and the truth).
    """

    schema: Schema
    tree: Tree
    algorithm: str
    predict: Callable[[object], NDArray[np.generic]]
    apply: Callable[[object], NDArray[np.integer[Any]]]
    score: Callable[[object, object], float]
    reasons: Reasons

    def rule(self, node: int) -> str:
        """Write the conditions of the path to a node."""
        conditions = path_to(self.schema, self.tree, node)
        return " and ".join(phrase(c) for c in conditions) or "always"


@dataclass(frozen=True)
class ChangedRow:
    """A row with different predictions, and the rules that lead to them."""

    row: int
    old: Value
    new: Value
    old_rule: str
    new_rule: str

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Predictions:
    """The predictions of two models for the same rows.

    ``old_score`` and ``new_score`` are accuracies, or shares of explained variance,
    where the truth is given.
    """

    n_rows: int
    changed: tuple[ChangedRow, ...]
    crosstab: dict[tuple[Value, Value], int]
    largest_difference: float | None
    old_score: float | None
    new_score: float | None

    @property
    def agreement(self) -> float:
        """The share of rows with the same prediction."""
        return 1.0 if not self.n_rows else 1 - len(self.changed) / self.n_rows

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        return {
            "rows": self.n_rows,
            "agreement": self.agreement,
            "changed": [row.to_dict() for row in self.changed],
            "crosstab": [
                {"old": old, "new": new, "rows": n}
                for (old, new), n in self.crosstab.items()
            ],
            "largest_difference": self.largest_difference,
            "old_score": self.old_score,
            "new_score": self.new_score,
        }


@dataclass(frozen=True, repr=False)
class ModelDiff(Written):
    """The differences of two models.

    Attributes
    ----------
    schema : tuple of str
        How columns, their values and the classes differ, in words.
    only_old, only_new : tuple of str
        The columns that only one of the trees splits on.
    differences : tuple of Difference
        Where the trees differ, from the root down.
    predictions : Predictions or None
        How the predictions for rows differ, where rows were given.
    """

    sizes: tuple[str, str]
    schema: tuple[str, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    differences: tuple[Difference, ...]
    predictions: Predictions | None = None

    @cached_property
    def by_kind(self) -> dict[str, list[Difference]]:
        """The differences by kind, the kinds in a fixed order."""
        groups: dict[str, list[Difference]] = {kind: [] for kind in KINDS}
        for difference in self.differences:
            groups[difference.kind].append(difference)
        return {kind: found for kind, found in groups.items() if found}

    @property
    def same_splits(self) -> bool:
        """Whether splits and predictions are the same; sizes do not count."""
        return not self.schema and set(self.by_kind) <= {"size changed"}

    @property
    def same_predictions(self) -> bool:
        """Whether all rows have the same prediction; without rows, same_splits."""
        if self.predictions is None:
            return self.same_splits
        return not self.predictions.changed

    def __repr__(self) -> str:
        told = counted(len(self.differences), "difference")
        rows = self.predictions
        changed = (
            f", {counted(len(rows.changed), 'changed prediction')}" if rows else ""
        )
        return f"<diff of two models: {told}{changed}>"

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        yield Paragraph(f"Old: {self.sizes[0]}")
        yield Paragraph(f"New: {self.sizes[1]}")
        if self.schema:
            yield Heading("Columns and classes")
            yield Items(_shortened(self.schema))
        for which, names in (("old", self.only_old), ("new", self.only_new)):
            if names:
                yield Paragraph(f"Only the {which} tree splits on {listed(names)}.")
        if not self.differences:
            yield Paragraph("The trees have the same splits and predictions.")
        for kind, found in self.by_kind.items():
            yield Heading(f"{kind.capitalize()}: {len(found):,}")
            if kind != "size changed":
                yield Items(_shortened([str(one) for one in found]))
        if self.predictions is not None:
            yield from _prediction_blocks(self.predictions)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        return {
            "old": self.sizes[0],
            "new": self.sizes[1],
            "same_splits": self.same_splits,
            "same_predictions": self.same_predictions,
            "schema": list(self.schema),
            "only_old": list(self.only_old),
            "only_new": list(self.only_new),
            "differences": [one.to_dict() for one in self.differences],
            "predictions": None
            if self.predictions is None
            else self.predictions.to_dict(),
        }


def _shortened(lines: Sequence[str]) -> list[str]:
    if len(lines) <= SHOWN:
        return list(lines)
    return [*lines[:SHOWN], f"... ({len(lines) - SHOWN:,} more)"]


def _prediction_blocks(predictions: Predictions) -> Iterator[Block]:
    changed = predictions.changed
    yield Heading(
        f"Predictions: {len(changed):,} of {predictions.n_rows:,} rows change "
        f"({share(predictions.agreement, 1)} agree)"
    )
    if predictions.old_score is not None and predictions.new_score is not None:
        name = "R^2" if predictions.largest_difference is not None else "Accuracy"
        yield Paragraph(
            f"{name}: {predictions.old_score:.4g} -> {predictions.new_score:.4g}"
        )
    if predictions.largest_difference is not None:
        yield Paragraph(f"Largest change: {number(predictions.largest_difference)}")
    if predictions.crosstab and changed:
        yield Grid(
            ["old", "new", "rows"],
            [
                [word(a), word(b), f"{n:,}"]
                for (a, b), n in predictions.crosstab.items()
            ],
            [False, False, True],
        )
    if changed:
        yield Items(_shortened([_row_words(row) for row in changed]))


def _row_words(row: ChangedRow) -> str:
    old, new = prediction_words(row.old), prediction_words(row.new)
    return f"row {row.row}: {old} ({row.old_rule}) -> {new} ({row.new_rule})"


def diff_models(old: Side, new: Side, X: object = None, y: object = None) -> ModelDiff:
    """Compare two models, and their predictions for a table if there is one."""
    used = [
        {side.schema.names[at] for at in side.tree.used_columns} for side in (old, new)
    ]
    pair = [(side.schema, side.tree, side.reasons) for side in (old, new)]
    comparable = old.tree.is_regression == new.tree.is_regression
    return ModelDiff(
        (_size(old), _size(new)),
        tuple(_schema_differences(old.schema, new.schema)),
        tuple(name for name in old.schema.names if name in used[0] - used[1]),
        tuple(name for name in new.schema.names if name in used[1] - used[0]),
        tuple(differences(*pair)) if comparable else (),
        None if X is None else _predictions(old, new, X, y, comparable),
    )


def _size(side: Side) -> str:
    tree = side.tree
    return (
        f"{side.algorithm}, {counted(len(tree), 'node')}, {tree.n_leaves:,} "
        f"{'leaf' if tree.n_leaves == 1 else 'leaves'}, depth {tree.max_depth:,}"
    )


def _schema_differences(old: Schema, new: Schema) -> Iterator[str]:
    before = {column.name: column for column in old.columns}
    after = {column.name: column for column in new.columns}
    for which, mine, other in (("old", before, after), ("new", after, before)):
        names = [name for name in mine if name not in other]
        if names:
            noun = "column" if len(names) == 1 else "columns"
            yield f"only the {which} model has the {noun} {listed(names)}"
    for name, column in before.items():
        if name in after:
            yield from _column_differences(column, after[name])
    if old.target != new.target and None not in (old.target, new.target):
        yield f"target: {word(old.target or '')} -> {word(new.target or '')}"
    if bool(old.classes) != bool(new.classes):
        kinds = ["classes" if s.classes else "numbers" for s in (old, new)]
        yield f"the old model predicts {kinds[0]}, the new one {kinds[1]}"
    else:
        yield from _value_differences("classes", old.classes, new.classes)


def _column_differences(old: Column, new: Column) -> Iterator[str]:
    name = word(old.name)
    if old.kind != new.kind:
        yield f"{name}: {old.kind} -> {new.kind}"
    if not old.is_numeric and not new.is_numeric:
        yield from _value_differences(
            f"values of {name}", old.categories, new.categories
        )


def _value_differences(
    what: str, old: Sequence[Value], new: Sequence[Value]
) -> Iterator[str]:
    gone = [value for value in old if value not in new]
    come = [value for value in new if value not in old]
    if gone:
        yield f"{what}: no longer {listed(gone)}"
    if come:
        yield f"{what}: also {listed(come)}"


def _predictions(
    old: Side, new: Side, X: object, y: object, comparable: bool
) -> Predictions:
    if not comparable:
        raise DataError(
            "The predictions for X cannot be compared: one model predicts classes and "
            "the other numbers. Leave out X to compare the models themselves."
        )
    before = _called("old", old.predict, X)
    after = _called("new", new.predict, X)
    scores: tuple[float | None, float | None] = (None, None)
    if y is not None:
        scores = _called("old", old.score, X, y), _called("new", new.score, X, y)
    changed = tuple(_changed(old, new, X, before.tolist(), after.tolist()))
    if not old.tree.is_regression:
        crosstab = _crosstab(old, new, before, after)
        return Predictions(len(before), changed, crosstab, None, *scores)
    largest_change = float(
        np.abs(after.astype(float) - before.astype(float)).max(initial=0)
    )
    return Predictions(len(before), changed, {}, largest_change, *scores)


def _changed(
    old: Side, new: Side, X: object, before: list[Value], after: list[Value]
) -> Iterator[ChangedRow]:
    rows = [at for at, prediction in enumerate(before) if prediction != after[at]]
    if not rows:
        return
    nodes = [_called("old", old.apply, X), _called("new", new.apply, X)]
    rules = [
        {node: side.rule(node) for node in set(reached[rows].tolist())}
        for side, reached in zip((old, new), nodes, strict=True)
    ]
    for row in rows:
        led = [rule[int(at[row])] for rule, at in zip(rules, nodes, strict=True)]
        yield ChangedRow(row, before[row], after[row], *led)


def _called(which: str, call: Callable[..., Any], *arguments: object) -> Any:
    try:
        return call(*arguments)
    except DataError as error:
        raise DataError(f"The {which} model cannot predict X. {error}") from None


def _crosstab(
    old: Side, new: Side, before: NDArray[Any], after: NDArray[Any]
) -> dict[tuple[Value, Value], int]:
    """Count pairs of old and new classes, in the order of the classes."""
    counts: dict[tuple[Value, Value], int] = {}
    for pair in zip(before.tolist(), after.tolist(), strict=True):
        counts[pair] = counts.get(pair, 0) + 1
    pairs = ((a, b) for a in old.schema.classes for b in new.schema.classes)
    return {pair: counts[pair] for pair in pairs if pair in counts}
