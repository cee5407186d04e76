"""Reasons for predicting a class other than the most frequent: costs or smoothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from branchwise.data.arrays import Floats, first_best_of_rows
from branchwise.data.schema import Value
from branchwise.recipe import Recipe
from branchwise.text.conditions import percent, rounded, word
from branchwise.tree.apply import class_probabilities
from branchwise.tree.tree import Tree

#: Digits of expected costs: more where fewer do not tell them apart.
_COST_DIGITS = (3, 6, 9)


#: What decides where probabilities are not frequencies.
_ESTIMATES = {"m-estimate": "the m-estimate", "laplace": "Laplace's estimate"}


def reasons_of(classes: Sequence[Value], tree: Tree, recipe: Recipe) -> dict[int, str]:
    """Return, by node, the reasons for predicting another class than the usual one.

    Costs decide against the most probable class, smoothed probabilities against the
    class of most weight.
    """
    if tree.prediction is None:
        return {}
    probabilities = class_probabilities(tree.weights, tree.weights[0], recipe)
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
    if recipe.costs is not None:
        expected_costs = probabilities @ np.array(recipe.costs)
        least, other = _told_apart(
            float(expected_costs[label]), float(expected_costs[usual])
        )
        beside = f", as for {word(classes[usual])}"
        if least != other:
            beside = f" against {other} for {word(classes[usual])}"
        return f"decided by costs: expected cost {least}{beside}"
    by = _ESTIMATES.get(recipe.probabilities, "the model file")
    return (
        f"decided by {by}: probability {percent(float(probabilities[label]))} against "
        f"{percent(float(probabilities[usual]))} for {word(classes[usual])}"
    )


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Write two costs with as few digits as tell them apart."""
    written = [(rounded(one, n), rounded(other, n)) for n in _COST_DIGITS]
    return next((pair for pair in written if pair[0] != pair[1]), written[0])
