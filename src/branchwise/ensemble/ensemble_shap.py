"""Shapley values of ensembles: of averages, of votes, and of margins."""

from __future__ import annotations

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.one_row import open_rows
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.errors import DataError, ParameterError
from branchwise.shap.products import Term
from branchwise.shap.row_values import TreeSum, shap_of_sum
from branchwise.shap.shap_values import ShapValues
from branchwise.threads import n_threads
from branchwise.tree.splits import EVERY_BRANCH
from branchwise.tree.tree import Tree

#: What to do about rows that a tree divides.
_DO_NOT_DIVIDE = "fit with missing='largest' and unseen='largest'"


def shap_of_ensemble(
    ensemble: FittedTrees,
    X: object,
    background: object = None,
    interactions: bool = False,
    n_jobs: int | None = None,
    background_weight: object = None,
) -> ShapValues:
    """Return the Shapley values of the predictions of an ensemble for rows.

    Those of gradient boosting are of its margins, which are sums over trees.
    """
    loss = ensemble.recipe.loss
    if ensemble.recipe.voting == "hard":
        _check_undivided(ensemble, X, background, n_jobs)
    trees = TreeSum(
        ensemble.schema,
        ensemble.recipe.tree,
        _averaged(ensemble) if loss is None else ensemble.terms,
        ensemble.used_columns,
        lambda data: ensemble.sum_of_terms(data, n_threads(n_jobs)),
        "probability" if loss in (None, "squared_error") else "margin",
    )
    return shap_of_sum(trees, X, background, interactions, n_jobs, background_weight)


def _averaged(ensemble: FittedTrees) -> list[Term]:
    """Return the trees, or their votes, as terms of their average."""
    weights = ensemble.tree_weights
    if weights is None:
        weights = np.ones(len(ensemble))
    shares = (weights / weights.sum()).tolist()
    hard = ensemble.recipe.voting == "hard"
    values = list(map(_votes, ensemble.trees)) if hard else ensemble.node_values
    return [Term(*each) for each in zip(ensemble.trees, values, shares, strict=True)]


def _check_undivided(
    ensemble: FittedTrees, X: object, background: object, n_jobs: int | None
) -> None:
    """Refuse rows that a tree divides among several leaves, and has one vote for.

    Such a vote is no sum over leaves, which Shapley values are of. Mixtures of rows
    with a background may be divided where neither of them is.
    """
    trees = [at for at, tree in enumerate(ensemble.trees) if _divides(tree)]
    if not trees:
        return
    votes = "the vote of a boosted tree"
    instead = _DO_NOT_DIVIDE
    if ensemble.recipe.method == "forest":
        votes = "a vote, as with voting='hard',"
        instead = f"fit the forest with voting='soft', or {_DO_NOT_DIVIDE}"
    why = (
        f"Shapley values are of sums over nodes, and {votes} is a single one for a "
        "case that is divided among several nodes. "
    )
    if background is not None:
        raise ParameterError(
            f"{why}Got a background, whose mixtures with the rows may be divided: do "
            f"without it, or {instead}."
        )
    data = ensemble.encoded(open_rows(X), n_jobs)
    for at in trees:
        arrivals = ensemble.walkers[at].walk(data)
        if not arrivals.undivided:
            row = int(arrivals.row[np.flatnonzero(arrivals.share < 1)[0]])
            raise DataError(
                f"{why}Row {row} is divided by tree {at}: it has a missing value, or "
                "one without a training case at a node. Fill it in, explain the other "
                f"rows only, or {instead}.",
                row=row,
            )


def _divides(tree: Tree) -> bool:
    """Whether a tree sends some cases down every branch."""
    splits = tree.n_children > 0
    routes = np.concatenate([tree.missing_to[splits], tree.unseen_to[splits]])
    return bool((routes == EVERY_BRANCH).any())


def _votes(tree: Tree) -> Floats:
    """Return the vote of each node: 1 for its class."""
    votes: Floats = np.eye(tree.weights.shape[1])[tree.label]
    return votes
