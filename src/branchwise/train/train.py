"""Growing and pruning of trees, from encoded rows or by the counts of an engine.

Rows of a :class:`Training` can be selected without encoding them again, as for
validation sets and cross-validation. Smaller trees of the same rows are derived from
larger ones in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.bins import (
    Edges,
    bin_codes,
    bin_columns,
    bins_of_thresholds,
    codes_as_numbers,
    numbers_of_thresholds,
    with_bins,
)
from branchwise.data.encoded_table import LRUCache
from branchwise.data.table_schema import Column, Columns, Value
from branchwise.data.target import Classes, Quantities, Scale
from branchwise.data.weights import WeightGrid
from branchwise.engines.base import Plan, Source, Task
from branchwise.engines.chunk import Chunk, cells_of, memory_engine
from branchwise.engines.level_engine import PassEngine
from branchwise.engines.memory import Training, class_cases_of
from branchwise.errors import ParameterError, quoted
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import Progress, grow, recount
from branchwise.grow.protocol import Engine
from branchwise.grow.thresholds import at_values
from branchwise.prune import error_based, subtrees
from branchwise.prune.risk import measure_of
from branchwise.recipe import Recipe, unpruned
from branchwise.threads import cached_property
from branchwise.tree.apply import with_costs, with_predictions
from branchwise.tree.tree import Tree, with_collapsed

if TYPE_CHECKING:
    from branchwise.grow.draws import ColumnDraws

#: Parameters that apply after growth: the grown tree does not depend on them.
_AFTER_GROWTH = ("max_leaf_nodes", "costs", "probabilities", "m")


@dataclass(frozen=True)
class _Kept:
    """A cached tree, and the recipe that it was grown with."""

    tree: Tree
    recipe: Recipe

    @cached_property
    def cases(self) -> Floats:
        """The cases of every node, as the recipe counts them."""
        if self.recipe.weights_are_cases:
            weights: Floats = self.tree.weights.sum(axis=1)
            return weights
        return self.tree.cases

    @cached_property
    def fewest_cases(self) -> float:
        """The least number of cases of a node that was split."""
        return float(self.cases[~self.tree.is_leaf].min(initial=np.inf))


def thinned_from_larger(
    cache: LRUCache, recipe: Recipe, n_cases: float, grow: Callable[[Recipe], Tree]
) -> Tree:
    """Return what ``grow(recipe)`` returns, if possible without calling it.

    The cache has trees of the same rows, targets and weights; fractional limits refer
    to ``n_cases``.
    """
    name = ("tree", without_limits(recipe))
    kept = cache.get(name)
    if not isinstance(kept, _Kept) or not _covers(kept.recipe, recipe, n_cases):
        wider = recipe
        if isinstance(kept, _Kept):
            # After a second size, further ones are likely: grow one that covers them.
            wider = _wider(kept.recipe, recipe, n_cases)
        kept = _Kept(_read_only(grow(wider)), wider)
        cache.put(name, kept, _bytes(kept.tree))
    return _truncated(kept, recipe.max_depth, recipe.cases_to_split(n_cases))


@lru_cache(maxsize=256)
def without_limits(recipe: Recipe) -> Recipe:
    """Return the recipe without pruning and the limits that truncate a tree."""
    usual: dict[str, Any] = {
        name: Recipe.__dataclass_fields__[name].default for name in _AFTER_GROWTH
    }
    return replace(unpruned(recipe), max_depth=None, min_samples_split=2, **usual)


def _covers(wide: Recipe, narrower: Recipe, n_cases: float) -> bool:
    deep = wide.max_depth is None or (
        narrower.max_depth is not None and narrower.max_depth <= wide.max_depth
    )
    return deep and wide.cases_to_split(n_cases) <= narrower.cases_to_split(n_cases)


def _wider(one: Recipe, other: Recipe, n_cases: float) -> Recipe:
    fewest = min(one, other, key=lambda recipe: recipe.cases_to_split(n_cases))
    depth = None if one.max_depth != other.max_depth else one.max_depth
    return replace(other, max_depth=depth, min_samples_split=fewest.min_samples_split)


def _truncated(kept: _Kept, max_depth: int | None, cases_to_split: float) -> Tree:
    tree = kept.tree
    if max_depth is not None and max_depth >= tree.max_depth:
        max_depth = None
    if max_depth is None and cases_to_split <= kept.fewest_cases:
        return tree
    leaves = kept.cases < cases_to_split
    if max_depth is not None:
        leaves |= tree.depth >= max_depth
    return with_collapsed(tree, leaves).tree


def _read_only(tree: Tree) -> Tree:
    """Make the arrays of a cached tree read-only."""
    for array in vars(tree).values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return tree


def _bytes(tree: Tree) -> int:
    return sum(
        array.nbytes for array in vars(tree).values() if isinstance(array, np.ndarray)
    )


def grown(
    training: Training,
    recipe: Recipe,
    threads: int = 1,
    progress: Progress | None = None,
) -> Tree:
    """Grow a tree and prune it as far as the training rows alone allow."""
    grid = training.grid(recipe)
    rows, edges = training, Edges()
    if recipe.max_bins is not None:
        as_codes = is_native(training, recipe)
        rows, edges = in_bins(training, grid, recipe, as_codes, threads)
    if training.cache is None or callable(recipe.criterion):
        # A user's function need not be deterministic.
        tree = _whole(rows, grid, recipe, threads, progress)
    else:
        tree = thinned_from_larger(
            training.cache.below((*training.target_digest, training.n_classes)),
            recipe,
            grid.total if recipe.weights_are_cases else grid.n_cases,
            lambda recipe: _whole(rows, grid, recipe, threads, progress),
        )
    return _completed(tree, edges, training, grid, recipe)


def grown_from_bins(
    training: Training,
    binned: Training,
    edges: Edges,
    recipe: Recipe,
    drawn: ColumnDraws | None,
    progress: Progress | None = None,
    threads: int = 1,
) -> Tree:
    """Grow and prune one tree of an ensemble from rows that are binned already.

    ``training`` has the same rows in numbers. With ``drawn`` only random columns may
    split a node.
    """
    grid = training.grid(recipe)
    tree = _whole(binned, grid, recipe, threads, progress, drawn)
    return _completed(tree, edges, training, grid, recipe)


def _completed(
    tree: Tree, edges: Edges, training: Training, grid: WeightGrid, recipe: Recipe
) -> Tree:
    """Prune a grown tree, and add its predictions."""
    if edges:
        tree = in_numbers(tree, edges)
    tree = _trimmed(with_costs(tree, recipe), training, grid, recipe)
    return with_class_cases(with_predictions(tree, recipe), training, grid)


def _whole(
    training: Training,
    grid: WeightGrid,
    recipe: Recipe,
    threads: int,
    progress: Progress | None,
    drawn: ColumnDraws | None = None,
) -> Tree:
    """Grow a tree without pruning it."""
    target = training.prepared(grid)
    columns, data = training.columns, training.data
    if is_native(training, recipe):
        grown = _natively(columns, data, target, grid, recipe, threads, progress, drawn)
        if grown is not None:
            scale = None if isinstance(target, Classes) else target.scale
            return finished(grown, scale, grid)
    # The reference takes bins as numbers.
    data = codes_as_numbers(columns, data)
    engine = replace(training, data=data).engine(grid)
    tree = grow(engine, columns, recipe, progress, drawn=drawn)
    return finished(tree, engine.scale, grid)


def _natively(
    columns: Sequence[Column],
    data: Columns,
    target: Classes | Quantities,
    grid: WeightGrid,
    recipe: Recipe,
    *further: Any,
) -> Tree | None:
    """Grow a tree in the native kernel; None where only the reference can."""
    if isinstance(target, Classes):
        labels, n_classes = target.labels, target.n_classes
        return native.grow_native(
            columns, data, labels, n_classes, grid, recipe, *further
        )
    return native.grow_numbers(columns, data, target, grid, recipe, *further)


def is_native(training: Training, recipe: Recipe) -> bool:
    """Whether the native kernel grows trees from these rows."""
    return native.serves(recipe, training.columns) and _native_holds(training)


def _native_holds(training: Training) -> bool:
    n_classes = max(training.n_classes, 1)
    return native.holds(training.columns, n_classes, training.data.n_rows)


def in_bins(
    training: Training,
    grid: WeightGrid,
    recipe: Recipe,
    as_codes: bool = False,
    threads: int = 1,
) -> tuple[Training, Edges]:
    """Bin the columns with many distinct numbers, if the recipe has ``max_bins``.

    The compiled kernel grows from the bins as codes.
    """
    if recipe.max_bins is None:
        return training, {}
    counted = None if grid.weights is None else grid.weights > 0
    columns, at = training.columns, recipe.threshold
    given = columns, training.data, recipe.max_bins, counted
    if as_codes:
        data, edges = bin_codes(*given, threads, at)
    else:
        data, edges = bin_columns(*given, at)
    return replace(training, columns=with_bins(columns, edges), data=data), edges


def in_numbers(tree: Tree, edges: Edges) -> Tree:
    """Convert thresholds between bins into thresholds between numbers."""
    return _converted(tree, edges, numbers_of_thresholds)


def between_bins(tree: Tree, edges: Edges) -> Tree:
    """Convert thresholds between numbers into thresholds between bins."""
    return _converted(tree, edges, bins_of_thresholds)


def _converted(
    tree: Tree, edges: Edges, convert: Callable[[Floats, Ints, Edges], Floats]
) -> Tree:
    """Convert the thresholds of splits and of surrogates."""
    tree = replace(tree, threshold=convert(tree.threshold, tree.column, edges))
    if tree.surrogate_threshold is None or tree.surrogate_column is None:
        return tree
    threshold = convert(tree.surrogate_threshold, tree.surrogate_column, edges)
    return replace(tree, surrogate_threshold=threshold)


def finished(tree: Tree, scale: Scale | None, grid: WeightGrid) -> Tree:
    """Return a grown tree with weights as they were given.

    Where numbers are predicted, their moments become weight, mean and deviation.
    """
    if scale is None:
        return replace(tree, weights=tree.weights * grid.unit)
    means, variances = native.summarise(scale, tree.weights)
    return replace(
        tree,
        weights=tree.weights[:, :1] * grid.unit,
        mean=means,
        deviation=np.ldexp(np.sqrt(variances), scale.unit),
    )


def with_class_cases(tree: Tree, training: Training, grid: WeightGrid) -> Tree:
    """Add the number of cases of each class to nodes, where cases have weights."""
    if grid.weights is None or tree.is_regression:
        return tree
    labels = Classes(training.target.astype(np.intp), training.n_classes)
    return tree.with_class_cases(
        class_cases_of(training.columns, training.data, labels, grid, tree)
    )


def task_of(recipe: Recipe, task: Task) -> Task:
    """Return the task with the settings of the recipe."""
    criterion = recipe.criterion if recipe.is_regression else None
    return replace(
        task,
        criterion=None if criterion is None else str(criterion),
        weights_are_cases=recipe.weights_are_cases,
        divides=recipe.missing == "split",
        rejects_missing=recipe.missing == "error",
        max_bins=recipe.max_bins,
        threshold=recipe.threshold,
    )


def check_costs(
    costs: tuple[tuple[float, ...], ...] | None, classes: Sequence[Value]
) -> None:
    """Reject costs for another number of classes."""
    if costs is not None and len(costs) != len(classes):
        raise ParameterError(
            f"costs must have a row and a column for each of the {len(classes)} "
            f"classes {quoted(classes)}. Got {len(costs)} rows."
        )


def _trimmed(tree: Tree, training: Training, grid: WeightGrid, recipe: Recipe) -> Tree:
    """Prune a tree as set in the recipe."""
    wanted = recipe.collapse or recipe.pruning == "error-based"
    if wanted and error_based.prunes(tree) and _native_holds(training):
        tree = limited(tree, recipe)
        labels = training.target.astype(np.intp, copy=False)
        tree = error_based.prune_native(
            training.columns, training.data, labels, grid.natural, tree, recipe
        )
        # Raised branches have other cases, and so possibly other predictions.
        return _worth_their_cost(with_costs(tree, recipe), recipe)
    return trimmed(tree, recipe, recounter(training, grid.natural, recipe))


def limited(tree: Tree, recipe: Recipe) -> Tree:
    """Limit the tree to ``max_leaf_nodes``."""
    if recipe.max_leaf_nodes is None:
        return tree
    return subtrees.limited(tree, recipe.max_leaf_nodes, recipe.criterion)


def trimmed(tree: Tree, recipe: Recipe, count: error_based.Recount) -> Tree:
    """Prune a tree as set in the recipe; ``count`` counts its rows down other trees."""
    tree = limited(tree, recipe)
    if recipe.collapse:
        tree = error_based.collapsed(tree)
    if recipe.pruning == "error-based":
        raise_with = count if recipe.raise_subtrees else None
        tree = error_based.pruned(tree, recipe.confidence, raise_with)
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
        engine = training.engine(grid)
        counted, origin = recount(engine, training.columns, tree, new_values)
        return with_costs(counted, recipe), origin

    return count


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
        tree = _natively(columns, cells_of(chunk, plan), target, grid, recipe)
        if tree is None:
            tree = grow(memory_engine(chunk, plan), columns, recipe, whole=grid)
        if self.recipe.threshold == "value":
            tree = _converted(tree, dict(plan.values), _at_values)
        return tree

    @classmethod
    def serves(cls, plan: Plan, recipe: Recipe) -> bool:
        """Whether the native kernel grows subtrees from the rows of a node."""
        n_classes = max(plan.n_classes, 1)
        # Even of a node without rows.
        columns = plan.schema.columns
        return native.serves(recipe, columns) and native.holds(columns, n_classes, 0)


def _at_values(threshold: Floats, column: Ints, values: Edges) -> Floats:
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
) -> Tree:
    """Grow a tree and prune it as far as the rows that it is grown from allow.

    ``count_again`` may count the rows again once the tree is grown.
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

    tree = with_predictions(trimmed(tree, recipe, counted), recipe)
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
