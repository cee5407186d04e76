"""Criteria side by side: what each of them says of the columns of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from branchwise.engines.memory import Training
from branchwise.errors import ParameterError
from branchwise.recipe.parameters import BUILT_IN, FOR_NUMBERS, canonical
from branchwise.steps.nodes import node_steps
from branchwise.steps.numbers import CriterionScores
from branchwise.train.fitted_tree import FittedTree


def check_criteria(model: FittedTree, criteria: object) -> list[str]:
    """Return the names of criteria that are to be compared."""
    allowed = FOR_NUMBERS if model.tree.is_regression else BUILT_IN
    listed = isinstance(criteria, Sequence) and not isinstance(criteria, str)
    names = [canonical(name) for name in criteria] if listed else [criteria]  # type: ignore[attr-defined]
    wrong = [name for name in names if name not in allowed]
    if wrong or not listed:
        choices = ", ".join(map(repr, allowed))
        raise ParameterError(
            f"criteria must be a list of names among {choices}, for a tree that "
            f"predicts {'numbers' if model.tree.is_regression else 'classes'}. Got "
            f"{(wrong or names)[0]!r}."
        )
    return list(dict.fromkeys(map(str, names)))


def scores_by_criterion(
    model: FittedTree,
    training: Training,
    wanted: NDArray[np.bool_],
    criteria: Sequence[str],
) -> dict[int, tuple[CriterionScores, ...]]:
    """Score the columns of nodes by several criteria; the tree stays as it is."""
    found: dict[int, list[CriterionScores]] = {
        node: [] for node in np.flatnonzero(wanted).tolist()
    }
    for name in criteria:
        # The average gain is a rule of the gain ratio.
        average = model.recipe.average_gain and name == "gain_ratio"
        recipe = replace(model.recipe, criterion=name, average_gain=average)
        judged = FittedTree(model.schema, model.tree, recipe)
        for node in node_steps(judged, training, wanted):
            scores = {c.column: c.score for c in node.candidates}
            found[node.node].append(CriterionScores(name, scores, node.chosen))
    return {node: tuple(scores) for node, scores in found.items()}
