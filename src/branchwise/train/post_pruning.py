"""Pruning of a grown tree as set in its recipe, by the rows that it was grown from."""

from __future__ import annotations

import numpy as np

from branchwise.data.arrays import Ints
from branchwise.data.weights import WeightGrid
from branchwise.engines.memory import Training
from branchwise.prune import error_based, subtrees
from branchwise.prune.estimates import CostEstimate, cost_estimate
from branchwise.prune.risk import measure_of
from branchwise.recipe import Recipe
from branchwise.recipe.costs import Costs
from branchwise.tree.apply import with_costs
from branchwise.tree.tree import Tree


def pruned(
    tree: Tree,
    training: Training,
    grid: WeightGrid,
    recipe: Recipe,
    costs: Costs | None,
    is_native: bool,
) -> Tree:
    """Prune a tree from rows in memory, in the native kernel if it has room for them.

    ``costs`` are those that the rows weigh by; error-based pruning estimates them.
    """
    wanted = recipe.collapse or recipe.pruning == "error-based"
    if wanted and error_based.prunes(tree) and is_native:
        tree = limited(tree, recipe)
        labels = training.target.astype(np.intp, copy=False)
        tree = error_based.prune_native(
            training.columns,
            training.data,
            labels,
            grid.natural,
            tree,
            recipe,
            _estimate(tree, recipe, costs),
        )
        # Raised branches have other cases, and so possibly other predictions.
        return _worth_their_cost(with_costs(tree, recipe), recipe)
    return trimmed(tree, recipe, recounter(training, grid.natural, recipe), costs)


def _estimate(tree: Tree, recipe: Recipe, costs: Costs | None) -> CostEstimate | None:
    """Return the estimate of costs by which a tree is pruned, if there is one."""
    if costs is None:
        return None
    return cost_estimate(recipe, tree.weights[0], costs, by_costs=True)


def limited(tree: Tree, recipe: Recipe) -> Tree:
    """Limit the tree to ``max_leaf_nodes``."""
    if recipe.max_leaf_nodes is None:
        return tree
    return subtrees.limited(tree, recipe.max_leaf_nodes, recipe.criterion)


def trimmed(
    tree: Tree,
    recipe: Recipe,
    count: error_based.Recount,
    costs: Costs | None = None,
) -> Tree:
    """Prune a tree as set in the recipe; ``count`` counts its rows down other trees."""
    tree = limited(tree, recipe)
    estimate = _estimate(tree, recipe, costs)
    if recipe.collapse:
        tree = error_based.collapsed(tree, estimate)
    if recipe.pruning == "error-based":
        raise_with = count if recipe.raise_subtrees else None
        tree = error_based.pruned(tree, recipe.confidence, raise_with, estimate)
    return _worth_their_cost(tree, recipe)


def _worth_their_cost(tree: Tree, recipe: Recipe) -> Tree:
    """Apply cost-complexity pruning if ``ccp_alpha`` is a number above 0."""
    if recipe.pruning != "cost-complexity":
        return tree
    return subtrees.pruned(tree, float(recipe.ccp_alpha), measure_of(recipe))


def recounter(
    training: Training, grid: WeightGrid, recipe: Recipe
) -> error_based.Recount:
    """Return a function that counts the training rows down other trees."""
    new_values = recipe.branching == "values"

    def count(tree: Tree) -> tuple[Tree, Ints]:
        from branchwise.grow.grow import recount  # noqa: PLC0415  (rare)

        engine = training.engine(grid)
        counted, origin = recount(engine, training.columns, tree, new_values)
        return with_costs(counted, recipe), origin

    return count
