"""Explanations of single predictions of a forest: votes, conditions, Shapley values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.one_row import Cells, open_rows
from branchwise.data.table_schema import Columns, Schema, Value
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.errors import counted
from branchwise.explain.explanation import (
    Explanations,
    prediction_words,
    probability_list,
    probability_words,
)
from branchwise.shap.shap_values import ShapValues, cell_words
from branchwise.stats import share_interval
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.bounds import plain_value
from branchwise.text.column_conditions import path_to
from branchwise.text.conditions import Condition, phrase
from branchwise.text.document import Document
from branchwise.text.label_words import target_unit
from branchwise.text.labels import class_called, target_title
from branchwise.text.words import share, word

#: Conditions that are shown; to_dict() has all of them.
_SHOWN_CONDITIONS = 10


@dataclass(frozen=True)
class SharedCondition:
    """A condition on the paths of trees, and the share of these trees that have it.

    Of numbers the trees have different thresholds; ``condition`` has their median, and
    ``value`` is that of the row.
    """

    condition: Condition
    share: float
    value: Value | None


@dataclass(frozen=True, repr=False)
class ForestExplanation(Document):
    """The explanation of a forest's prediction for one row, counted from 0.

    ``prediction`` and ``probabilities`` are what ``predict`` and ``predict_proba``
    return; ``votes`` are the numbers of trees that predict each class, and ``trees``
    what each tree predicts. ``interval``, of confidence ``level``, is that of the share
    of votes for the prediction over further trees (Wilson); where numbers are predicted
    it is ``predict_interval``'s, None for a forest without its training rows.
    ``conditions`` are those on the paths of the trees that voted for the prediction
    (of all trees where numbers are predicted), the most frequent first. ``shap`` is
    what each column contributed, or None.
    """

    row: int
    prediction: Value
    probabilities: dict[Value, float]
    votes: dict[Value, int]
    trees: tuple[Value, ...]
    interval: tuple[float, float] | None
    level: float
    conditions: tuple[SharedCondition, ...]
    target: str | None = None
    shap: ShapValues | None = None
    schema: Schema | None = None

    def __repr__(self) -> str:
        return (
            f"<explanation of row {self.row}: {prediction_words(self.prediction)}, "
            f"{counted(len(self.trees), 'tree')}>"
        )

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        schema = self.schema
        title = self.target if schema is None else target_title(schema)
        target = "Prediction" if title is None else word(title)
        probabilities = probability_words(self.probabilities, schema)
        predicted = prediction_words(self.prediction, schema)
        yield Paragraph(f"{target}: {predicted}{probabilities}")
        yield Paragraph(self._votes())
        if self.conditions:
            voters = "trees" if not self.votes else "trees that voted for it"
            yield Paragraph(f"Most frequent conditions on the paths of the {voters}:")
            yield Table(
                ["condition", "trees", "cell"],
                [
                    [
                        phrase(one.condition),
                        share(one.share, 1),
                        cell_words(one.value, one.condition.of),
                    ]
                    for one in self.conditions[:_SHOWN_CONDITIONS]
                ],
                words=(0, 2),
            )
            rest = len(self.conditions) - _SHOWN_CONDITIONS
            if rest > 0:
                yield Paragraph(f"... and {counted(rest, 'more condition')}.")
        if self.shap is not None:
            values = self.shap
            if values.classes:
                values = values.of_class(self.prediction)
            yield from values.row_blocks()

    def _votes(self) -> str:
        level = share(self.level, 1)
        n_trees = counted(len(self.trees), "tree")
        if not self.votes:
            low, high, unit = min(self.trees), max(self.trees), target_unit(self.schema)
            ends = " to ".join(map(unit.mean, (float(low), float(high))))
            words = f"{n_trees} predict {ends}"
            if self.interval is None:
                return f"{words}."
            ends = " to ".join(map(unit.mean, self.interval))
            return f"{words}; {level} interval of the target {ends}."
        votes = sorted(
            (pair for pair in self.votes.items() if pair[1]), key=lambda pair: -pair[1]
        )
        listed = ", ".join(f"{self._class(label)} {n:,}" for label, n in votes)
        words = f"Votes of {n_trees}: {listed}"
        if self.interval is None:
            return f"{words}."
        low, high = (share(end, 1) for end in self.interval)
        return (
            f"{words}; share of {self._class(self.prediction)}: {level} interval "
            f"(Wilson) over further trees {low} to {high}."
        )

    def _class(self, label: Value) -> str:
        return word(label if self.schema is None else class_called(self.schema, label))

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in plain values."""
        return {
            "row": self.row,
            "prediction": self.prediction,
            "probabilities": probability_list(self.probabilities),
            "votes": [{"class": c, "trees": n} for c, n in self.votes.items()],
            "trees": list(self.trees),
            "interval": None if self.interval is None else list(self.interval),
            "level": self.level,
            "conditions": [
                {
                    "column": one.condition.column,
                    "op": one.condition.op,
                    "value": plain_value(one.condition.of, one.condition.value),
                    "share": one.share,
                    "cell": one.value,
                }
                for one in self.conditions
            ],
            **({} if self.shap is None else {"shap": self.shap.to_dict()}),
        }


def explain_forest(
    ensemble: FittedTrees,
    X: object,
    level: float,
    intervals: Floats | None,
    shap: ShapValues | None,
) -> ForestExplanation | Explanations:
    """Explain the predictions for a table or a row.

    ``intervals`` are those of the numbers that are predicted.
    """
    schema, frame = ensemble.schema, open_rows(X)
    data, cells = ensemble.encoded(frame), Cells(frame, schema)
    averages = ensemble.average(data)
    nodes = [walker.nodes(walker.walk(data)) for walker in ensemble.walkers]
    predicted = np.stack([_of_tree(ensemble, t, data) for t in range(len(ensemble))])
    codes = None if ensemble.is_regression else ensemble.class_codes(averages)
    explanations = []
    for row in range(data.n_rows):
        own = predicted[:, row]
        voters = np.arange(len(ensemble))
        votes: dict[Value, int] = {}
        trees: tuple[Value, ...] = tuple(own.tolist())
        interval = None if intervals is None else tuple(intervals[row].tolist())
        prediction: Value = float(averages[row, 0]) + 0.0
        if codes is not None:
            counts = np.bincount(own, minlength=len(schema.classes)).tolist()
            votes = dict(zip(schema.classes, counts, strict=True))
            trees = tuple(schema.classes[code] for code in own.tolist())
            prediction = schema.classes[int(codes[row])]
            voters = np.flatnonzero(own == codes[row])
            n = len(ensemble)
            interval = share_interval(votes[prediction] / n, n, level)
        explanations.append(
            ForestExplanation(
                row,
                prediction,
                dict(zip(schema.classes, averages[row].tolist(), strict=False)),
                votes,
                trees,
                interval,
                level,
                _conditions(ensemble, [int(n[row]) for n in nodes], voters, cells, row),
                schema.target,
                None if shap is None else shap[row],
                schema,
            )
        )
    if data.n_rows == 1:
        return explanations[0]
    return Explanations(cast(Any, explanations))


def _of_tree(ensemble: FittedTrees, tree: int, data: Columns) -> Any:
    """Return what one tree predicts: class codes, or numbers."""
    walker = ensemble.walkers[tree]
    if ensemble.is_regression:
        return walker.quantities(data)
    return walker.classify(data).astype(np.intp)


def _conditions(
    ensemble: FittedTrees, nodes: Sequence[int], voters: Ints, cells: Cells, row: int
) -> tuple[SharedCondition, ...]:
    """Return the conditions on the paths of a row, the most frequent first."""
    schema = ensemble.schema
    index = {column.name: at for at, column in enumerate(schema.columns)}
    found: dict[tuple[int, str, Any], list[Condition]] = defaultdict(list)
    for tree in voters.tolist():
        for condition in path_to(schema, ensemble.trees[tree], nodes[tree]):
            # Thresholds differ from tree to tree: their median is shown.
            number = condition.op in ("<=", ">")
            value = None if number else condition.value
            found[index[condition.column], condition.op, value].append(condition)
    ordered = sorted(found, key=lambda key: (-len(found[key]), key[0], repr(key)))
    shared = []
    for key in ordered:
        ranked = found[key]
        if key[1] in ("<=", ">"):
            ranked = sorted(ranked, key=lambda condition: cast(Any, condition.value))
        middle = ranked[(len(ranked) - 1) // 2]
        value = cells.value(key[0], row)
        shared.append(SharedCondition(middle, len(ranked) / len(voters), value))
    return tuple(shared)
