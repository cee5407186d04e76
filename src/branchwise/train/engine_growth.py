"""Growing and pruning of trees by the counts of an engine, wherever the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.arrays import Edges, Floats, Ints, distinct
from branchwise.engines.base import Plan, Source
from branchwise.engines.chunk import Chunk, cells_of
from branchwise.engines.level_engine import PassEngine
from branchwise.errors import DataError, quoted
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import Progress, count_down, grow, recount
from branchwise.prune import subtrees
from branchwise.recipe import Recipe
from branchwise.train.train import between_bins, finished, in_numbers, trimmed
from branchwise.tree.apply import with_costs, with_predictions
from branchwise.tree.tree import Tree, stopped_weights


@dataclass(frozen=True)
class Below:
    """Grows the subtree of a node from the rows of the node."""

    plan: Plan
    recipe: Recipe

    def __call__(self, chunk: Chunk) -> Tree:
        """Grow from rows of one node; limits refer to the whole table."""
        return native.grow_native(
            self.plan.schema.columns,
            cells_of(chunk, self.plan),
            chunk.target.astype(np.intp),
            self.plan.n_classes,
            self.plan.grid_of(chunk.weights),
            self.recipe,
        )

    @classmethod
    def serves(cls, plan: Plan, recipe: Recipe) -> bool:
        """Whether the rows of a node are all that is needed.

        The thresholds of C4.5 are numbers of the whole table.
        """
        anywhere = recipe.threshold == "value" and bool(plan.values)
        if anywhere or recipe.is_regression or not native.serves(recipe):
            return False
        return native.holds(plan.schema.columns, plan.n_classes, 0)  # of a small node


def grown_by_engine(
    data_source: Source,
    plan: Plan,
    recipe: Recipe,
    progress: Progress | None = None,
) -> Tree:
    """Grow a tree and prune it as far as the rows that it is grown from allow."""
    engine = data_source.engine(plan)
    columns = plan.schema.columns
    finish = None
    if isinstance(engine, PassEngine) and Below.serves(plan, recipe):
        passing = engine

        def finish(cases: Floats, depth: int) -> Iterator[tuple[int, Tree]]:
            return passing.finish(cases, Below(plan, _from(recipe, depth)))

    tree = grow(engine, columns, recipe, progress, finish)
    tree = with_costs(finished(tree, plan.scale, plan.grid), recipe)

    def counted(tree: Tree) -> tuple[Tree, Ints]:
        new_values = recipe.branching == "values"
        again, origin = recount(engine, columns, tree, new_values)
        return with_costs(finished(again, None, plan.grid), recipe), origin

    tree = with_predictions(trimmed(tree, recipe, counted), recipe)
    if plan.weighted and not tree.is_regression:
        tree = tree.with_class_cases(engine.class_cases(tree))
    return in_numbers(tree, plan.edges) if plan.edges else tree


def _from(recipe: Recipe, depth: int) -> Recipe:
    """Return the recipe of a subtree whose root is at a depth."""
    if recipe.max_depth is None:
        return recipe
    return replace(recipe, max_depth=recipe.max_depth - depth)


def plan_for(others: Source, plan: Plan, tree: Tree) -> Plan:
    """Return the plan of validation rows: the learnt schema, without weights. They
    may have unseen categories; their numbers are binned by the thresholds of the
    tree.
    """  # noqa: D205
    task = replace(
        plan.task,
        weight=None,
        ignored=(*plan.task.ignored, *filter(None, [plan.task.weight])),
        class_weight=None,
        priors=None,
        divides=plan.grid.fractions,
        max_bins=None,
    )
    found = others.learn(task)
    known = plan.schema.classes
    unseen = [label for label in found.schema.classes if label not in known]
    if unseen:
        raise DataError(
            f"In the validation set: y has {quoted(unseen)}, but the classes of the "
            f"tree are {quoted(known)}. Leave those rows out."
        )
    edges = _thresholds_of(tree, plan)
    values = {
        index: np.arange(len(thresholds) + 1.0) for index, thresholds in edges.items()
    }
    return replace(
        found, schema=plan.schema, edges=edges, values=values, unseen_values=True
    )


def _thresholds_of(tree: Tree, plan: Plan) -> Edges:
    """Return the thresholds of every numeric column, in order."""
    column, threshold = tree.column, tree.threshold
    if tree.surrogate_column is not None and tree.surrogate_threshold is not None:
        column = np.concatenate([column, tree.surrogate_column])
        threshold = np.concatenate([threshold, tree.surrogate_threshold])
    made = ~np.isnan(threshold)
    return {
        index: distinct(threshold[made & (column == index)]) for index in plan.values
    }


def prune_by_engine(
    tree: Tree, data_source: Source, plan: Plan, recipe: Recipe
) -> Tree:
    """Prune by the errors on the validation rows of a source.

    ``plan`` is that of the rows that the tree was grown from.
    """
    plan = plan_for(data_source, plan, tree)
    engine = data_source.engine(plan)
    counted = count_down(engine, between_bins(tree, plan.edges))
    stopped = np.where(
        tree.is_leaf[:, np.newaxis], counted.weights, stopped_weights(counted)
    )
    passing, stopping = (
        _errors(weights, tree, plan, recipe) for weights in (counted.weights, stopped)
    )
    slack = recipe.tolerance * plan.grid.total
    return subtrees.by_validation(tree, passing, stopping, slack)


def _errors(weights: Floats, tree: Tree, plan: Plan, recipe: Recipe) -> Floats:
    """Return the errors of nodes as predictors of rows with these class weights."""
    if plan.scale is not None and tree.mean is not None:
        return plan.scale.distances(weights, tree.mean)
    if recipe.costs is not None:
        costs = np.array(recipe.costs)[:, tree.label].T
        priced: Floats = (weights * costs).sum(axis=1)
        return priced
    right = np.take_along_axis(weights, tree.label[:, np.newaxis], axis=1)[:, 0]
    wrong: Floats = weights.sum(axis=1) - right
    return wrong
