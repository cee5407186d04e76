"""Error-based pruning (C4.5): pessimistic error estimates and subtree raising.

The training errors of a leaf are too low an estimate, so they are replaced by the
upper end of a confidence interval for its error rate. Bottom up, a node becomes a
leaf, or is replaced by its largest branch, where the estimate is no higher (Quinlan,
"C4.5", 1993, section 4.2). ``prune/estimates.py`` has the estimates.

Raising a branch sends it the cases of its siblings, so these have to be counted
again: ``recount`` does so in the engine that holds the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.arrays import TIE, Ints
from branchwise.data.table_schema import Column, Columns
from branchwise.data.weights import WeightGrid
from branchwise.grow.criteria import ImpuritySums
from branchwise.grow.native_table import grid_options, table_arguments
from branchwise.native import available, extension, plain_array
from branchwise.prune.estimates import CostEstimate, Estimate
from branchwise.recipe import Recipe
from branchwise.tree.apply import native_surrogates
from branchwise.tree.tree import (
    ARRAYS,
    PREDICTION_ARRAYS,
    SURROGATE_ARRAYS,
    Mask,
    Tree,
    add_to_parents,
    at_label,
    rearranged,
    stopped_weights,
    subtree_sums,
    with_collapsed,
)

#: Counts the training cases down a tree; also returns the source of its nodes, -1
#: for new leaves.
Recount = Callable[[Tree], tuple[Tree, Ints]]

#: A leaf with at most so many more errors is no worse.
_COLLAPSE_SLACK = 1e-3


def collapsed(tree: Tree, costs: CostEstimate | None = None) -> Tree:
    """Collapse subtrees whose errors, or costs, are no fewer than those of a leaf."""
    stopped = stopped_weights(tree)
    if costs is None:
        errors = tree.weights.sum(axis=1) - at_label(tree, tree.weights)
        behind = stopped.sum(axis=1) - at_label(tree, stopped)
    else:
        expected, prediction = costs.seen(tree.weights)
        each = np.arange(len(tree))
        errors = expected[each, prediction]
        behind = costs.seen(stopped)[0][each, prediction]
    below = subtree_sums(tree, np.where(tree.is_leaf, errors, behind))
    useless = (below >= errors - _COLLAPSE_SLACK) & ~tree.is_leaf
    return with_collapsed(tree, useless).tree


def pruned(
    tree: Tree,
    confidence: float,
    recount: Recount | None,
    costs: CostEstimate | None = None,
) -> Tree:
    """Prune a tree; without ``recount`` branches are not raised.

    All nodes whose subtrees are finished are decided in one round: one count of rows.
    With ``costs`` these are estimated in place of errors.
    """
    estimate = costs or Estimate(confidence, float(tree.weights[0].sum()))
    if recount is None:
        return _without_raising(tree, estimate)
    state = _State.of(tree, tree.is_leaf, estimate)
    while not state.done[0]:
        state = _next_round(state, estimate, recount)
    return state.tree


def _without_raising(tree: Tree, estimate: Estimate) -> Tree:
    """Collapse nodes only: one pass, as no cases move."""
    as_leaf = estimate.of(tree.weights)
    left_behind = estimate.of(stopped_weights(tree))
    errors = np.where(tree.is_leaf, as_leaf, left_behind)
    leaf = np.zeros(len(tree), dtype=bool)
    for start, stop in reversed(list(tree.levels())):
        here = slice(start, stop)
        leaf[here] = as_leaf[here] <= errors[here] + estimate.slack
        errors[here] = np.where(leaf[here], as_leaf[here], errors[here])
        add_to_parents(tree, errors, start, stop)
    return with_collapsed(tree, leaf & ~tree.is_leaf).tree


@dataclass(frozen=True)
class _State:
    """A partly pruned tree: which subtrees are finished, and their estimates."""

    tree: Tree
    done: Mask
    errors: ImpuritySums

    @classmethod
    def of(cls, tree: Tree, done: Mask, estimate: Estimate) -> _State:
        return cls(tree, done, _tree_errors(tree, estimate))


def _tree_errors(tree: Tree, estimate: Estimate) -> ImpuritySums:
    """Estimate the errors of every subtree."""
    at_leaves = np.where(tree.is_leaf, estimate.of(tree.weights), 0)
    left_behind = np.where(tree.is_leaf, 0, estimate.of(stopped_weights(tree)))
    errors: ImpuritySums = subtree_sums(tree, at_leaves + left_behind)
    return errors


def _next_round(state: _State, estimate: Estimate, recount: Recount) -> _State:
    tree, errors = state.tree, state.errors
    undone = np.zeros(len(tree), dtype=np.intp)
    np.add.at(undone, tree.parent[1:], ~state.done[1:])
    ready = ~state.done & (undone == 0)
    as_leaf = estimate.of(tree.weights)
    largest = _largest_child(tree)
    as_branch = _as_branches(tree, ready, largest, estimate, recount, as_leaf)
    leaf = ready & (as_leaf <= np.minimum(errors, as_branch) + estimate.slack)
    up = ready & ~leaf & (as_branch <= errors + estimate.slack)
    raised = np.where(up, largest, -1)
    new = rearranged(tree, raised, leaf)
    done = (state.done | ready)[new.source]
    if not up.any():
        return _State.of(new.tree, done, estimate)
    # Raised branches have other cases and are decided again.
    done &= ~_at_or_below(new.tree, up[new.position])
    counted, origin = recount(new.tree)
    return _State.of(
        counted, np.where(origin < 0, True, done[origin]) | counted.is_leaf, estimate
    )


def _largest_child(tree: Tree) -> Ints:
    """Return the child with the most weight, of equals the last; -1 for leaves."""
    weight = tree.weights.sum(axis=1)
    most = np.zeros(len(tree))
    np.maximum.at(most, tree.parent[1:], weight[1:])
    large = np.flatnonzero(weight[1:] >= most[tree.parent[1:]] * (1 - TIE)) + 1
    largest = np.full(len(tree), -1, dtype=np.intp)
    largest[tree.parent[large]] = large  # the last one stays
    return largest


def _at_or_below(tree: Tree, chosen: Mask) -> Mask:
    below = chosen.copy()
    for start, stop in tree.levels():
        if start:
            below[start:stop] |= below[tree.parent[start:stop]]
    return below


def _as_branches(
    tree: Tree,
    ready: Mask,
    largest: Ints,
    estimate: Estimate,
    recount: Recount,
    as_leaf: ImpuritySums,
) -> ImpuritySums:
    """Estimate the errors of nodes if their largest branches replaced them."""
    result = as_leaf.copy()
    # A branch that is a leaf, given all cases of the node, is that leaf.
    able = ready & ~tree.is_leaf[largest]
    if able.any():
        raised = np.where(able, largest, -1)
        candidate = rearranged(tree, raised, np.zeros(len(tree), dtype=bool))
        counted, origin = recount(candidate.tree)
        old = np.flatnonzero(origin >= 0)
        position = candidate.position[origin[old]]
        result[position] = _tree_errors(counted, estimate)[old]
        result[~able] = as_leaf[~able]
    return result


def prunes(tree: Tree) -> bool:
    """Whether to prune this tree natively."""
    allowed = ARRAYS + PREDICTION_ARRAYS + SURROGATE_ARRAYS
    return set(tree.arrays) <= set(allowed) and available()


def prune_native(
    columns: Sequence[Column],
    data: Columns,
    labels: Ints,
    grid: WeightGrid,
    tree: Tree,
    recipe: Recipe,
    costs: CostEstimate | None = None,
) -> Tree:
    """Collapse a tree and prune it by error estimates, with the compiled extension.

    The result has no predictions of its own: with costs they are to be set again.
    """
    prunes = recipe.pruning == "error-based"
    collapses = recipe.collapse
    if tree.prediction is not None:
        # Predictions of least cost matter to collapsing alone: estimates of errors are
        # those of the most frequent class.
        tree = collapsed(tree, costs) if collapses else tree
        tree, collapses = replace(tree, prediction=None), False
    # Collapsing needs no estimate, and so no limit of the weight.
    total = float(tree.weights[0].sum()) if prunes else 0.0
    estimate = costs or Estimate(recipe.confidence, total)
    arrays = extension().prune(
        **table_arguments(columns, data, labels, tree.weights.shape[1], grid),
        tree={spec.name: plain_array(getattr(tree, spec.name)) for spec in ARRAYS},
        surrogates=native_surrogates(tree),
        options={
            **grid_options(grid),
            "log_confidence": math.log(estimate.confidence),
            "z": estimate.z,
            "bits": estimate.bits,
            "slack": estimate.slack,
            "collapses": collapses,
            "prunes": prunes,
            "raises": recipe.raise_subtrees,
            "new_values": recipe.branching == "values",
            # A matrix as one list: a row for each true class.
            "costs": [] if costs is None else costs.costs.ravel().tolist(),
            "case_factors": [] if costs is None else costs.factors.tolist(),
            "usual_costs": [] if costs is None else costs.usual.tolist(),
        },
    )
    origin = arrays.pop("origin")
    smaller = Tree(**arrays)
    if tree.surrogates is None:
        return smaller
    return smaller.with_surrogates(tree.surrogates.take(origin))
