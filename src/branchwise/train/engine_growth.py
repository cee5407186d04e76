"""Growing and pruning of a tree by the counts of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.bins import (
    Edges,
    with_bins,
)
from branchwise.engines.base import Plan, Source
from branchwise.engines.chunk import Chunk, cells_of, memory_engine
from branchwise.engines.level_engine import PassEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import Progress, grow, recount
from branchwise.grow.protocol import Engine
from branchwise.grow.thresholds import at_values
from branchwise.recipe import Recipe
from branchwise.train.post_pruning import trimmed
from branchwise.train.train import finished, in_numbers, natively, with_thresholds
from branchwise.tree.apply import with_costs, with_predictions
from branchwise.tree.tree import Tree

if TYPE_CHECKING:
    from branchwise.recipe.costs import Costs


@dataclass(frozen=True)
class Below:
    """Grows the subtree of a node from the rows of the node."""

    plan: Plan
    recipe: Recipe

    def __call__(self, chunk: Chunk) -> Tree:
        """Grow from rows of one node; limits refer to the whole table."""
        plan, recipe = self.plan, self.recipe
        columns = with_bins(plan.schema.columns, plan.edges)
        grid = plan.grid_of(chunk.weights)
        if recipe.threshold == "value":
            # Thresholds at values are at those of the whole table.
            recipe = replace(recipe, threshold="midpoint")
        target = plan.target_of(chunk.target)
        tree = natively(columns, cells_of(chunk, plan), target, grid, recipe)
        if tree is None:
            tree = grow(memory_engine(chunk, plan), columns, recipe, whole=grid)
        if self.recipe.threshold == "value":
            tree = with_thresholds(tree, dict(plan.values), at_table_values)
        return tree

    @classmethod
    def serves(cls, plan: Plan, recipe: Recipe) -> bool:
        """Whether the native kernel grows subtrees from the rows of a node."""
        n_classes = max(plan.n_classes, 1)
        # Even of a node without rows.
        columns = plan.schema.columns
        return native.serves(recipe, columns) and native.holds(columns, n_classes, 0)


def at_table_values(threshold: Floats, column: Ints, values: Edges) -> Floats:
    """Move thresholds between numbers down to numbers of the table."""
    moved = threshold.copy()
    for index, numbers in values.items():
        own = (column == index) & ~np.isnan(threshold)
        moved[own] = at_values(threshold[own], numbers)
    return moved


def grown_by_engine(
    data_source: Source,
    plan: Plan,
    recipe: Recipe,
    progress: Progress | None = None,
    count_again: Callable[[Engine, Tree, Recipe], None] | None = None,
    costs: Costs | None = None,
) -> Tree:
    """Grow a tree and prune it as far as the rows that it is grown from allow.

    ``count_again`` may count the rows again once the tree is grown. ``costs`` are those
    that the rows weigh by; error-based pruning estimates them.
    """
    engine = data_source.engine(plan)
    columns = with_bins(plan.schema.columns, plan.edges)
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

    tree = with_predictions(trimmed(tree, recipe, counted, costs), recipe)
    if plan.weighted and not tree.is_regression:
        tree = tree.with_class_cases(engine.class_cases(tree))
    if count_again is not None:
        count_again(engine, tree, recipe)
    return in_numbers(tree, plan.edges) if plan.edges else tree


def _from(recipe: Recipe, depth: int) -> Recipe:
    """Return the recipe of a subtree whose root is at a depth."""
    if recipe.max_depth is None:
        return recipe
    return replace(recipe, max_depth=recipe.max_depth - depth)
