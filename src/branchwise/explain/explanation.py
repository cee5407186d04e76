"""Explanations of single predictions: the path of a case and the leaves it reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from branchwise.data.arrays import Floats, first_best_of_rows
from branchwise.data.one_row import Cells
from branchwise.data.table_schema import Columns, Schema, Value
from branchwise.explain.path import Case, Step
from branchwise.shap.shap_values import ShapValues
from branchwise.stats import check_level, mean_interval, share_interval
from branchwise.text import SHOWN_VALUES
from branchwise.text.blocks import Block, Heading, Items, Paragraph
from branchwise.text.document import Document, as_text
from branchwise.text.label_words import target_unit
from branchwise.text.labels import class_called, target_title
from branchwise.text.predictions import deviation_of, label_of, reason
from branchwise.text.words import amount, share, word
from branchwise.threads import cached_property
from branchwise.train.fitted_tree import FittedTree

#: Leaves of a fractional case that are shown before the rest is only counted.
SHOWN_LEAVES = 10


@dataclass(frozen=True)
class Ending:
    """A node where a case, or a share of it, arrives: a leaf, or where it has to stop.

    ``label`` is the node's prediction, a class or a mean. ``cases`` is the number of
    training cases there, ``weight`` what they weigh; ``counts`` and ``weights`` are the
    same by class: empty where numbers are predicted, and ``counts`` where a model file
    of an earlier version has only weights. ``deviation`` is the standard deviation of
    numbers. ``interval``, of confidence ``level``, is that of the predicted class's
    share in ``counts`` (Wilson) or of the mean (Student); None for the mean of one
    case, and where ``counts`` is empty. ``reason`` tells what decided where costs or
    smoothed probabilities did.
    """

    case: Case
    node: int
    share: float
    label: Value
    cases: float
    weight: float
    counts: dict[Value, float]
    weights: dict[Value, float]
    deviation: float | None
    interval: tuple[float, float] | None
    level: float
    reason: str = ""

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The splits on the path, in order."""
        return self.case.steps(self.node)

    @property
    def stopped(self) -> bool:
        """Whether this is no leaf: the case could not go on."""
        return bool(self.case.tree.n_children[self.node])

    @property
    def name(self) -> str:
        """What the node is called: ``leaf 7`` or ``node 2``."""
        return f"{'node' if self.stopped else 'leaf'} {self.node}"

    def evidence(self) -> str:
        """Write the training cases of the node and the interval of its prediction."""
        cases = (
            f"{amount(self.cases)} training {'case' if self.cases == 1 else 'cases'}"
        )
        if self.weighted:
            cases += f" (of weight {amount(self.weight)})"
        level = share(self.level, 1)
        if self.deviation is not None:
            return f"{cases}: {self._numbers(level)}"
        schema = self.case.schema
        label = word(class_called(schema, self.label))
        by_weight = f"{share(self.weights[self.label], self.weight)} of weight"
        reason = f". {self.reason[0].upper()}{self.reason[1:]}" if self.reason else ""
        if not self.counts:
            return f"{cases}. Share of {label}: {by_weight}{reason}"
        fraction = share(self.counts[self.label], sum(self.counts.values()))
        low, high = (share(end, 1) for end in self.interval or (0.0, 1.0))
        by_cases = f"{fraction}{' of cases' if self.weighted else ''}"
        also = f"; {by_weight}" if self.weighted else ""
        return (
            f"{cases}: {_listed_by_size(self.counts, amount, schema)}. Share of "
            f"{label}: {by_cases}, {level} interval (Wilson) {low} to {high}"
            f"{also}{reason}"
        )

    @property
    def weighted(self) -> bool:
        """Whether training cases had weights other than 1."""
        return self.case.tree.is_weighted

    def _numbers(self, level: str) -> str:
        weighted = "weighted " if self.weighted else ""
        unit = target_unit(self.case.schema)
        spread = (
            f"{weighted}mean {unit.mean(float(self.label))}, {weighted}standard "
            f"deviation {unit.deviation(self.deviation or 0.0)}"
        )
        if self.interval is None:
            return f"{spread}; one case has no interval"
        low, high = map(unit.mean, self.interval)
        return f"{spread}; {level} interval of the mean (Student) {low} to {high}"

    def to_dict(self) -> dict[str, Any]:
        """Return the ending in plain values."""
        document = {
            "node": self.node,
            "is_leaf": not self.stopped,
            "share": self.share,
            "prediction": self.label,
            "cases": self.cases,
            "weight": self.weight,
            "counts": [self._described(label) for label in self.weights],
            "deviation": self.deviation,
            "interval": None if self.interval is None else list(self.interval),
            "level": self.level,
            "steps": [step.to_dict() for step in self.steps],
        }
        return document | ({"decided_by": self.reason} if self.reason else {})

    def _described(self, label: Value) -> dict[str, Any]:
        """Return the cases, the weight and the share of a class."""
        weight = self.weights[label]
        if not self.weighted:
            return {"class": label, "weight": weight, "share": weight / self.weight}
        return {
            "class": label,
            "cases": self.counts.get(label),
            "weight": weight,
            "weight_share": weight / self.weight,
        }


def _listed_by_size(
    by_class: dict[Value, float],
    words: Callable[[float], str],
    schema: Schema | None = None,
) -> str:
    """List classes with their numbers, the largest first, without those of 0."""
    present = sorted(
        (pair for pair in by_class.items() if pair[1]), key=lambda pair: -pair[1]
    )
    shown = [
        f"{prediction_words(label, schema)} {words(each)}"
        for label, each in present[:SHOWN_VALUES]
    ]
    if len(present) > SHOWN_VALUES:
        shown.append(f"... ({len(present) - SHOWN_VALUES:,} more)")
    return ", ".join(shown)


@dataclass(frozen=True, repr=False)
class Explanation(Document):
    """The explanation of the prediction for one row, counted from 0.

    ``prediction`` and ``probabilities`` are what ``predict`` and ``predict_proba``
    return. ``endings`` is where the case arrives, the largest share first: one node,
    unless missing or unseen values went down every branch. ``reason`` tells what
    decided where costs or smoothed probabilities did. ``shap`` is what each column
    contributed, or None.
    """

    row: int
    prediction: Value
    probabilities: dict[Value, float]
    endings: tuple[Ending, ...]
    target: str | None = None
    reason: str = ""
    shap: ShapValues | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The splits on the path to the leaf of the case, or of most of its weight."""
        return self.endings[0].steps

    @property
    def fractional(self) -> bool:
        """Whether the case arrives at several nodes."""
        return len(self.endings) > 1

    def to_text(self, max_leaves: int | None = SHOWN_LEAVES) -> str:
        """Return the explanation as text, with so many leaves of a fractional case.

        Parameters
        ----------
        max_leaves : int or None
            How many leaves to write of a case that arrives at several; None is all.

        Returns
        -------
        str
            The path, the prediction and its interval.
        """
        most = len(self.endings) if max_leaves is None else max_leaves
        return as_text(self._blocks(most), compact=True)

    def __repr__(self) -> str:
        positions = ", ".join(ending.name for ending in self.endings[:SHOWN_LEAVES])
        predicted = prediction_words(self.prediction)
        return f"<explanation of row {self.row}: {predicted}, {positions}>"

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say."""
        return self._blocks(SHOWN_LEAVES)

    def _blocks(self, max_leaves: int) -> Iterator[Block]:
        yield from self._paths(max_leaves)
        if self.shap is not None:
            values = self.shap
            if values.classes:
                values = values.of_class(self.prediction)
            yield from values.row_blocks()

    def _paths(self, max_leaves: int) -> Iterator[Block]:
        schema = self.endings[0].case.schema
        target = word(target_title(schema) or "Prediction")
        probabilities = probability_words(self.probabilities, schema)
        predicted = prediction_words(self.prediction, schema)
        reason = f"; {self.reason}" if self.reason else ""
        yield Paragraph(f"{target}: {predicted}{probabilities}{reason}")
        if not self.fractional:
            (ending,) = self.endings
            yield from _steps(ending)
            yield Paragraph(f"{ending.name.capitalize()} has {ending.evidence()}.")
            return
        yield Paragraph(
            f"The case is divided among {len(self.endings):,} nodes, and their "
            "predictions are averaged by its shares."
        )
        for ending in self.endings[:max_leaves]:
            yield Heading(
                f"{share(ending.share, 1)} of the case: {ending.name}, "
                f"{prediction_words(ending.label, schema)}"
            )
            yield from _steps(ending)
            yield Paragraph(f"{ending.evidence()}.")
        rest = self.endings[max_leaves:]
        if rest:
            weight = share(sum(ending.share for ending in rest), 1)
            yield Heading(f"... and {len(rest):,} more, with {weight} of the case")

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation in plain values, with every leaf."""
        return {
            "row": self.row,
            "prediction": self.prediction,
            "probabilities": probability_list(self.probabilities),
            "fractional": self.fractional,
            **({"decided_by": self.reason} if self.reason else {}),
            "endings": [ending.to_dict() for ending in self.endings],
            **({} if self.shap is None else {"shap": self.shap.to_dict()}),
        }


def _steps(ending: Ending) -> Iterator[Block]:
    if ending.steps:
        yield Items([str(step) for step in ending.steps], numbered=True)


def prediction_words(prediction: Value, schema: Schema | None = None) -> str:
    """Write a prediction: a class in words, a number with the digits of a mean."""
    if isinstance(prediction, float):
        return target_unit(schema).mean(prediction)
    return word(prediction if schema is None else class_called(schema, prediction))


def probability_words(
    probabilities: dict[Value, float], schema: Schema | None = None
) -> str:
    """Write probabilities in brackets, the largest first, without those of 0."""
    words = _listed_by_size(probabilities, lambda each: share(each, 1), schema)
    return f" ({words})" if words else ""


def probability_list(probabilities: dict[Value, float]) -> list[dict[str, Any]]:
    """Return probabilities as a list: the keys of a JSON object can only be text."""
    return [{"class": label, "probability": p} for label, p in probabilities.items()]


class Explanations(Document, Sequence[Explanation]):
    """The explanations of several rows, in their order."""

    def __init__(self, explanations: Sequence[Explanation]) -> None:
        self._all = tuple(explanations)

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> Explanations: ...
    def __getitem__(self, index: int | slice) -> Explanation | Explanations:
        if isinstance(index, slice):
            return Explanations(self._all[index])
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"<explanations of {len(self):,} rows>"

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say of every row."""
        for explanation in self._all:
            yield Heading(f"Row {explanation.row}")
            yield from explanation.blocks()

    def to_dict(self) -> dict[str, Any]:
        """Return the explanations in plain values."""
        return {"rows": [explanation.to_dict() for explanation in self._all]}


def explain_rows(
    model: FittedTree, X: object, level: float = 0.95, shap: ShapValues | None = None
) -> Explanation | Explanations:
    """Explain the predictions for a table or a row; ``shap`` are its values."""
    schema, tree, walker = model.schema, model.tree, model.walker
    data, cells = model.encoded_rows(X)
    level = check_level(level)
    arrivals = walker.walk(data)
    if tree.is_regression:
        predictions = (walker.numbers(arrivals) + 0.0).tolist()
        probabilities = np.empty((data.n_rows, 0))
    else:
        predictions = [schema.classes[int(code)] for code in walker.classify(data)]
        probabilities = walker.distribution(arrivals)
    starts = np.searchsorted(arrivals.row, np.arange(data.n_rows + 1))
    explanations = []
    for row in range(data.n_rows):
        case = _case(model, cells, data, row)
        here = slice(starts[row], starts[row + 1])
        arrived = zip(
            arrivals.node[here].tolist(), arrivals.share[here].tolist(), strict=True
        )
        endings = sorted(
            (
                _ending(case, node, weight, level, model.reasons.get(node, ""))
                for node, weight in arrived
            ),
            key=lambda ending: (-ending.share, ending.node),
        )
        by_class = dict(zip(schema.classes, probabilities[row].tolist(), strict=True))
        reasons = [ending.reason for ending in endings]
        by = decided_by(model, probabilities[row], predictions[row], reasons)
        explanations.append(
            Explanation(
                row,
                predictions[row],
                by_class,
                tuple(endings),
                schema.target,
                by,
                None if shap is None else shap[row],
            )
        )
    return explanations[0] if data.n_rows == 1 else Explanations(explanations)


def _case(model: FittedTree, cells: Cells, data: Columns, row: int) -> Case:
    """Return a row as a case before the tree."""
    columns, used = model.schema.columns, model.tree.used_columns
    values = {index: cells.value(index, row) for index in used}
    codes = {
        index: 0 if columns[index].is_numeric else int(data.data[index][row])
        for index in used
    }
    return Case(model.schema, model.tree, model.recipe, values, codes)


def decided_by(
    model: FittedTree, probabilities: Floats, prediction: Value, reasons: Sequence[str]
) -> str:
    """Return the reason for predicting another class than the most probable.

    ``reasons`` are those of the leaves that the case reaches. For a fractional case
    only costs can be the reason: its class follows from probabilities.
    """
    if len(reasons) == 1:
        return reasons[0]
    if model.recipe.costs is None or model.tree.is_regression:
        return ""
    label = model.schema.classes.index(prediction)
    usual = int(first_best_of_rows(probabilities[None])[0])
    if label == usual:
        return ""
    return reason(model.schema.classes, probabilities, label, model.recipe, usual)


def _ending(
    case: Case, node: int, fraction: float, level: float, reason: str
) -> Ending:
    tree, schema = case.tree, case.schema
    n, weight = float(tree.cases[node]), sum(tree.weights[node].tolist())
    label = label_of(schema, tree, node)
    spread = deviation_of(tree, node)
    counts: dict[Value, float] = {}
    weights: dict[Value, float] = {}
    interval = None
    if spread is not None:
        interval = mean_interval(float(label), spread, n, level)
    else:
        weights = dict(zip(schema.classes, tree.weights[node].tolist(), strict=True))
        if tree.class_counts is not None:
            each = tree.class_counts[node].tolist()
            counts = dict(zip(schema.classes, each, strict=True))
            interval = share_interval(counts[label] / sum(each), n, level)
    return Ending(
        case,
        node,
        fraction,
        label,
        n,
        weight,
        counts,
        weights,
        spread,
        interval,
        level,
        reason,
    )
