"""Comparison of two models: schemas, trees and predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.table_schema import Column, Schema, Value
from branchwise.errors import DataError, counted
from branchwise.explain.alignment import KINDS, Difference, differences
from branchwise.explain.explanation import prediction_words
from branchwise.text.blocks import Block, Heading, Items, Paragraph, Table
from branchwise.text.column_conditions import path_to
from branchwise.text.conditions import phrase
from branchwise.text.document import Document
from branchwise.text.labels import called_columns
from branchwise.text.signs import is_typeset
from branchwise.text.words import listed, number, share, word
from branchwise.threads import cached_property
from branchwise.train.fitted_tree import FittedTree

#: The schemas of the old and the new model, for their labels.
Schemas = tuple[Schema | None, Schema | None]
#: Entries of a list that are shown before the rest is only counted.
SHOWN = 20


@dataclass(frozen=True)
class Side:
    """A model, the rows to compare predictions for, and those whose truth is known."""

    which: str
    model: FittedTree
    X: Any = None
    labelled: tuple[object, object] | None = None

    def rule(self, node: int) -> tuple[str, str]:
        """Write the conditions of the path to a node, in plain signs and typeset."""
        conditions = path_to(self.model.schema, self.model.tree, node)
        plain, typeset = (
            " and ".join(phrase(c, typeset=signs) for c in conditions) or "always"
            for signs in (False, True)
        )
        return plain, typeset

    def called(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Call a method of the model; errors say which of the two it is."""
        try:
            return call(*arguments)
        except DataError as error:
            message = f"The {self.which} model cannot predict X. {error}"
            raise DataError(message) from None


@dataclass(frozen=True)
class ChangedRow:
    """A row with different predictions, and the rules that lead to them."""

    row: int
    old: Value
    new: Value
    old_rule: str
    new_rule: str
    #: The rules with the signs of mathematics.
    typeset: tuple[str, str] = field(default=("", ""), compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        told = dict(vars(self))
        del told["typeset"]  # the same with other signs
        return told

    def in_words(self, schemas: Schemas) -> str:
        """Write the row, its predictions and their rules."""
        old, new = map(prediction_words, (self.old, self.new), schemas)
        was, now = self.typeset if is_typeset() else (self.old_rule, self.new_rule)
        return f"row {self.row}: {old} ({was}) -> {new} ({now})"


@dataclass(frozen=True)
class Predictions:
    """The predictions of two models for the same rows.

    Scores are accuracies, or shares of explained variance, where the truth is given.
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
class ModelDiff(Document):
    """The differences of two models.

    ``schema`` says how columns, their values and the classes differ; ``only_old`` and
    ``only_new`` are the columns that only one of the trees splits on; ``differences``
    is where the trees differ, from the root down; ``predictions`` how those for rows
    do. ``schemas`` have the labels of the models.
    """

    sizes: tuple[str, str]
    schema: tuple[str, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    differences: tuple[Difference, ...]
    predictions: Predictions | None = None
    schemas: Schemas = (None, None)

    @cached_property
    def by_kind(self) -> dict[str, list[Difference]]:
        """The differences by kind, the kinds in a fixed order."""
        groups: dict[str, list[Difference]] = {kind: [] for kind in KINDS}
        for difference in self.differences:
            groups[difference.kind].append(difference)
        return {kind: group for kind, group in groups.items() if group}

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
        differences = counted(len(self.differences), "difference")
        rows = self.predictions
        changed = (
            f", {counted(len(rows.changed), 'changed prediction')}" if rows else ""
        )
        return f"<diff of two models: {differences}{changed}>"

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        yield Paragraph(f"Old: {self.sizes[0]}")
        yield Paragraph(f"New: {self.sizes[1]}")
        if self.schema:
            yield Heading("Columns and classes")
            yield Items(_shortened(self.schema))
        only = [("old", self.only_old), ("new", self.only_new)]
        for (which, names), schema in zip(only, self.schemas, strict=True):
            if names:
                titles = listed(called_columns(schema, names))
                yield Paragraph(f"Only the {which} tree splits on {titles}.")
        if not self.differences:
            yield Paragraph("The trees have the same splits and predictions.")
        for kind, group in self.by_kind.items():
            yield Heading(f"{kind.capitalize()}: {len(group):,}")
            if kind != "size changed":
                yield Items(_shortened([str(one) for one in group]))
        if self.predictions is not None:
            yield from _prediction_blocks(self.predictions, self.schemas)

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


def _prediction_blocks(predictions: Predictions, schemas: Schemas) -> Iterator[Block]:
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
        yield Table(
            ["old", "new", "rows"],
            [
                [*map(prediction_words, pair, schemas), f"{n:,}"]
                for pair, n in predictions.crosstab.items()
            ],
            words=(0, 1),
            row_heads=False,
        )
    if changed:
        yield Items(_shortened([row.in_words(schemas) for row in changed]))


def diff_models(old: Side, new: Side) -> ModelDiff:
    """Compare two models, and their predictions for a table if there is one."""
    one, other = old.model, new.model
    used, later = (
        [model.schema.names[at] for at in model.tree.used_columns]
        for model in (one, other)
    )
    comparable = one.tree.is_regression == other.tree.is_regression
    return ModelDiff(
        (_size(one), _size(other)),
        tuple(_schema_differences(one.schema, other.schema)),
        tuple(name for name in used if name not in later),
        tuple(name for name in later if name not in used),
        tuple(differences(one, other)) if comparable else (),
        None if old.X is None else _predictions(old, new, comparable),
        (one.schema, other.schema),
    )


def _size(model: FittedTree) -> str:
    tree = model.tree
    return (
        f"{model.recipe.algorithm}, {counted(len(tree), 'node')}, {tree.n_leaves:,} "
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
    removed = [value for value in old if value not in new]
    added = [value for value in new if value not in old]
    if removed:
        yield f"{what}: no longer {listed(removed)}"
    if added:
        yield f"{what}: also {listed(added)}"


def _predictions(old: Side, new: Side, comparable: bool) -> Predictions:
    if not comparable:
        raise DataError(
            "The predictions for X cannot be compared: one model predicts classes and "
            "the other numbers. Leave out X to compare the models themselves."
        )
    before, after = (side.called(side.model.predict, side.X) for side in (old, new))
    scores = [
        side.labelled and side.called(side.model.score, *side.labelled)
        for side in (old, new)
    ]
    changed = tuple(_changed(old, new, before.tolist(), after.tolist()))
    if not old.model.tree.is_regression:
        crosstab = _crosstab(old.model, new.model, before, after)
        return Predictions(len(before), changed, crosstab, None, *scores)
    largest_change = float(
        np.abs(after.astype(float) - before.astype(float)).max(initial=0)
    )
    return Predictions(len(before), changed, {}, largest_change, *scores)


def _changed(
    old: Side, new: Side, before: list[Value], after: list[Value]
) -> Iterator[ChangedRow]:
    rows = [at for at, prediction in enumerate(before) if prediction != after[at]]
    if not rows:
        return
    nodes = [side.called(side.model.apply, side.X) for side in (old, new)]
    rules = [
        {node: side.rule(node) for node in set(reached[rows].tolist())}
        for side, reached in zip((old, new), nodes, strict=True)
    ]
    for row in rows:
        was, now = (rule[int(at[row])] for rule, at in zip(rules, nodes, strict=True))
        typeset = was[1], now[1]
        yield ChangedRow(row, before[row], after[row], was[0], now[0], typeset)


def _crosstab(
    old: FittedTree, new: FittedTree, before: NDArray[Any], after: NDArray[Any]
) -> dict[tuple[Value, Value], int]:
    """Count pairs of old and new classes, in the order of the classes."""
    counts = Counter(zip(before.tolist(), after.tolist(), strict=True))
    pairs = product(old.schema.classes, new.schema.classes)
    return {pair: counts[pair] for pair in pairs if pair in counts}
