"""Predictions of nodes in words, and why one is not the most frequent class.

A leaf is written ``label (cases)`` or ``label (cases/errors)``; where numbers are
predicted ``mean (cases)`` or ``mean (cases, ± deviation)``. Cases are counted whatever
they weigh: where they have weights, ``label (cases/errors, share of weight)`` and
``mean (weighted mean of cases, ± deviation)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats, first_best_of_rows
from branchwise.data.table_schema import Schema, Value
from branchwise.recipe import Recipe
from branchwise.text.label_words import target_unit
from branchwise.text.words import (
    amount,
    cases,
    percent,
    rounded,
    share,
    word,
)
from branchwise.tree.apply import node_probabilities
from branchwise.tree.tree import Tree

#: A deviation below this share of the root's is what rounding left of equal numbers.
_NO_DEVIATION = 1e-6
#: Why nodes predict another class than that of most weight, by node.
Reasons = Mapping[int, str]
#: Digits of expected costs: more where fewer do not tell them apart.
_COST_DIGITS = (3, 6, 9)
#: Probabilities, or expected costs, this close are equal.
_SAME_MERIT = 1e-9
#: What decides where probabilities are not frequencies.
_ESTIMATES = {
    "m-estimate": "the m-estimate",
    "laplace": "Laplace's estimate",
    "shrunk": "shrunk probabilities",
}


def reasons_of(classes: Sequence[Value], tree: Tree, recipe: Recipe) -> dict[int, str]:
    """Return, by node, the reasons for predicting another class than the usual one.

    Costs decide against the most probable class, smoothed probabilities against the
    class of most weight.
    """
    if tree.prediction is None:
        return {}
    probabilities = node_probabilities(tree, recipe)
    usual = (
        first_best_of_rows(probabilities) if recipe.costs is not None else tree.heaviest
    )
    return {
        node: reason(
            classes, probabilities[node], int(tree.label[node]), recipe, usual[node]
        )
        for node in np.flatnonzero(tree.label != usual).tolist()
    }


def reason(
    classes: Sequence[Value],
    probabilities: Floats,
    label: int,
    recipe: Recipe,
    usual: int,
) -> str:
    """Return why a class is predicted instead of the usual one, and by how much."""
    compared = (
        f"probability {percent(float(probabilities[label]))} against "
        f"{percent(float(probabilities[usual]))} for {word(classes[usual])}"
    )
    if recipe.costs is None:
        merits = probabilities
    else:
        expected_costs = probabilities @ np.array(recipe.costs)
        merits = -expected_costs
    best = float(merits.max())
    if merits[label] < best - _SAME_MERIT * abs(best):
        return f"set by hand: {compared}"
    if recipe.costs is not None:
        least, other = _told_apart(
            float(expected_costs[label]), float(expected_costs[usual])
        )
        beside = f", as for {word(classes[usual])}"
        if least != other:
            beside = f" against {other} for {word(classes[usual])}"
        return f"decided by costs: expected cost {least}{beside}"
    by = _ESTIMATES.get(recipe.probabilities, "the model file")
    return f"decided by {by}: {compared}"


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Write two costs with as few digits as tell them apart."""
    written = [(rounded(one, n), rounded(other, n)) for n in _COST_DIGITS]
    return next((pair for pair in written if pair[0] != pair[1]), written[0])


def label_of(schema: Schema, tree: Tree, node: int) -> Value:
    """Return the prediction of a node: a class or a mean."""
    if tree.mean is not None:
        return float(tree.mean[node]) + 0.0  # one zero, not two
    return schema.classes[int(tree.label[node])]


def deviation_of(tree: Tree, node: int) -> float | None:
    """Return the standard deviation of the numbers at a node; None for classes."""
    if tree.deviation is None:
        return None
    least = _NO_DEVIATION * float(tree.deviation[0])
    spread = float(tree.deviation[node])
    return spread if spread > least else 0.0


def outcome(schema: Schema, tree: Tree, node: int) -> str:
    """Write the prediction of a node without its cases, a number with its unit."""
    label = label_of(schema, tree, node)
    if not tree.is_regression:
        return word(label)
    return target_unit(schema).mean(float(label))


@dataclass(frozen=True)
class _Support:
    """Training cases at a node: how many, of which classes, and what these weigh.

    ``counts`` is None where only the weights of the classes are known.
    """

    cases: float
    counts: Floats | None
    weights: Floats

    def errors(self, code: int) -> float:
        """Return how many cases are of other classes than this one."""
        counts = self.weights if self.counts is None else self.counts
        # Not the sum less what is right, which would lose small errors.
        return float(counts[:code].sum() + counts[code + 1 :].sum())


def _support(tree: Tree, node: int) -> _Support:
    counts = tree.class_counts
    return _Support(
        float(tree.case_counts[node]),
        None if counts is None else counts[node],
        tree.weights[node],
    )


def prediction(
    schema: Schema, tree: Tree, node: int, reasons: Reasons | None = None
) -> str:
    """Write the prediction of a node, with its cases and its errors or deviation.

    ``reasons`` tell why nodes predict another class than that of most weight.
    """
    spread = deviation_of(tree, node) or 0.0
    return _outcome(schema, tree, node, _support(tree, node), spread, reasons)


def _outcome(
    schema: Schema,
    tree: Tree,
    node: int,
    support: _Support,
    spread: float = 0.0,
    reasons: Reasons | None = None,
) -> str:
    """Write the prediction of a node for these cases."""
    said = outcome(schema, tree, node)
    count = amount(support.cases)
    if tree.is_regression:
        if tree.is_weighted:
            count = f"weighted mean of {cases(support.cases)}"
        return f"{said} ({count}{_apart(schema, spread)})"
    if errors := support.errors(int(tree.label[node])):
        known = support.counts is not None
        count = f"{count}/{amount(errors)}" if known else cases(support.cases)
    notes = [count, *_notes(tree, node, support, reasons)]
    return f"{said} ({', '.join(notes)})"


def _apart(schema: Schema, spread: float) -> str:
    """Write a deviation, unless there is none."""
    return f", ± {target_unit(schema).deviation(spread)}" if spread else ""


def _notes(
    tree: Tree, node: int, support: _Support, reasons: Reasons | None
) -> list[str]:
    """Write the share of weight where there are errors, and the reason."""
    code = int(tree.label[node])
    notes = []
    weights = support.weights
    # Weights beyond those of the branches may be lost to rounding where cases are not.
    if tree.is_weighted and support.errors(code) and weights.any():
        piece = share(float(weights[code]), float(weights.sum()))
        notes.append(f"{piece} of weight")
    if reasons and node in reasons:
        notes.append(in_short(reasons[node]))
    return notes


def in_short(reason: str) -> str:
    """Write a reason without its figures: ``decided by costs``."""
    return reason.partition(":")[0]


def tally(schema: Schema, tree: Tree, node: int, reasons: Reasons | None = None) -> str:
    """Write the cases of a node and its errors or deviation, without the prediction."""
    support = _support(tree, node)
    count = cases(support.cases)
    if tree.is_regression:
        weighted = ", weighted" if tree.is_weighted else ""
        return f"{count}{weighted}{_apart(schema, deviation_of(tree, node) or 0.0)}"
    pieces = [count]
    errors = support.errors(int(tree.label[node]))
    if errors and support.counts is not None:
        pieces.append(cases(errors, "error"))
    return ", ".join([*pieces, *_notes(tree, node, support, reasons)])


def prediction_of_none(schema: Schema, tree: Tree, node: int) -> str:
    """Write the prediction of a node for values without training cases."""
    none = np.zeros(tree.weights.shape[1])
    return _outcome(schema, tree, node, _Support(0.0, none, none))


def prediction_of_stopped(schema: Schema, tree: Tree, node: int) -> str:
    """Write the prediction of a node for the cases that take none of its branches."""
    here = slice(tree.first_child[node], tree.first_child[node] + tree.n_children[node])

    def stopped(amounts: Floats) -> Floats:
        left: Floats = np.maximum(amounts[node] - amounts[here].sum(axis=0), 0.0)
        return left

    counts = None if tree.class_counts is None else stopped(tree.class_counts)
    n = stopped(tree.case_counts) if counts is None else counts.sum()
    support = _Support(float(n), counts, stopped(tree.weights))
    return _outcome(schema, tree, node, support)
