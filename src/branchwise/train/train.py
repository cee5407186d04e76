"""Growing and pruning of trees from encoded rows.

Rows of a :class:`Training` can be selected without encoding them again, as for
validation sets and cross-validation. Smaller trees of the same rows are derived from
larger ones in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

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
from branchwise.engines.base import Task
from branchwise.engines.memory import Training
from branchwise.errors import ParameterError, quoted
from branchwise.grow import native_kernel as native
from branchwise.recipe import Recipe, unpruned
from branchwise.threads import cached_property
from branchwise.tree.apply import (
    is_shared,
    share_walk,
    with_costs,
    with_predictions,
)
from branchwise.tree.tree import Tree, with_collapsed

if TYPE_CHECKING:
    from branchwise.grow.draws import ColumnDraws
    from branchwise.grow.grow import Progress
    from branchwise.recipe.costs import Costs

#: Parameters that apply after growth: the grown tree does not depend on them.
_AFTER_GROWTH = ("max_leaf_nodes", "costs", "probabilities", "m")


@dataclass(frozen=True)
class _Kept:
    """A cached tree, and the recipe that it was grown with."""

    tree: Tree
    recipe: Recipe
    to_split: float

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
    kept, to_split = cache.get(name), recipe.cases_to_split(n_cases)
    if not isinstance(kept, _Kept) or not _covers(kept, recipe.max_depth, to_split):
        wider = recipe
        if isinstance(kept, _Kept):
            # After a second size, further ones are likely: grow one that covers them.
            wider = _wider(kept.recipe, recipe, n_cases)
        tree = _shared(grow(wider))
        kept = _Kept(tree, wider, wider.cases_to_split(n_cases))
        # Models may share a walk, which has about as many bytes as its tree.
        cache.put(name, kept, 2 * _bytes(tree))
    return _truncated(kept, recipe.max_depth, to_split)


@lru_cache(maxsize=256)
def without_limits(recipe: Recipe) -> Recipe:
    """Return the recipe without pruning and the limits that truncate a tree."""
    usual: dict[str, Any] = {
        name: Recipe.__dataclass_fields__[name].default for name in _AFTER_GROWTH
    }
    unlimited = replace(unpruned(recipe), max_depth=None, min_samples_split=2, **usual)
    return _first_equal(unlimited)


@lru_cache(maxsize=256)
def _first_equal(recipe: Recipe) -> Recipe:
    """Return the first of equal recipes: a key of the cache is compared by identity."""
    return recipe


def _covers(kept: _Kept, max_depth: int | None, cases_to_split: float) -> bool:
    deepest = kept.recipe.max_depth
    deep = deepest is None or (max_depth is not None and max_depth <= deepest)
    return deep and kept.to_split <= cases_to_split


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


def _shared(tree: Tree) -> Tree:
    """Let a cached tree be that of several models: its arrays become read-only."""
    for array in vars(tree).values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    share_walk(tree)
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
    costs: Costs | None = None,
) -> Tree:
    """Grow a tree and prune it as far as the training rows alone allow.

    ``costs`` are those that the rows weigh by; error-based pruning estimates them.
    """
    grid = training.grid(recipe)
    rows, edges = training, Edges()
    if recipe.max_bins is not None:
        as_codes = is_native(training, recipe)
        rows, edges = in_bins(training, grid, recipe, as_codes, threads)
    if training.cache is None or callable(recipe.criterion):
        # A user's function need not be deterministic.
        tree = _whole(rows, grid, recipe, threads, progress)
    else:
        cache = training.cache.below((*training.target_digest, training.n_classes))
        tree = thinned_from_larger(
            cache,
            recipe,
            grid.total if recipe.weights_are_cases else grid.n_cases,
            lambda recipe: _whole(rows, grid, recipe, threads, progress),
        )
        if costs is None and is_pruned(recipe) and is_shared(tree):
            return _completed_once(
                cache,
                tree,
                recipe,
                lambda: completed(tree, edges, training, grid, recipe),
            )
    return completed(tree, edges, training, grid, recipe, costs)


class _Completed(NamedTuple):
    """A cached tree, and what it became when it was pruned."""

    grown: Tree
    tree: Tree


@lru_cache(maxsize=256)
def _without_size(recipe: Recipe) -> Recipe:
    return _first_equal(replace(recipe, max_depth=None, min_samples_split=2))


def _completed_once(
    cache: LRUCache, grown: Tree, recipe: Recipe, complete: Callable[[], Tree]
) -> Tree:
    """Return what ``complete()`` returns, called once for recipes that grow one tree.

    Limits of depth beyond that of the tree are such, and those of cases below its own.
    """
    name = ("completed", _without_size(recipe))
    known = cache.get(name)
    if isinstance(known, _Completed) and known.grown is grown:
        return known.tree
    tree = _shared(complete())
    cache.put(name, _Completed(grown, tree), 2 * _bytes(tree))
    return tree


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
    return completed(tree, edges, training, grid, recipe)


def completed(
    tree: Tree,
    edges: Edges,
    training: Training,
    grid: WeightGrid,
    recipe: Recipe,
    costs: Costs | None = None,
) -> Tree:
    """Prune a grown tree, and add its predictions."""
    if edges:
        tree = in_numbers(tree, edges)
    tree = with_costs(tree, recipe)
    if is_pruned(recipe):
        from branchwise.train.post_pruning import pruned  # noqa: PLC0415  (rare)

        tree = pruned(tree, training, grid, recipe, costs, native_holds(training))
    return with_class_cases(with_predictions(tree, recipe), training, grid)


def is_pruned(recipe: Recipe) -> bool:
    """Whether a grown tree is pruned by the rows that it is grown from."""
    limited = recipe.collapse or recipe.max_leaf_nodes is not None
    return limited or recipe.pruning in ("error-based", "cost-complexity")


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
        further: tuple[Any, ...] = (threads, progress, drawn, training.times)
        if not isinstance(target, Classes):
            further = *further, True
        grown = natively(columns, data, target, grid, recipe, *further)
        if grown is not None:
            return finished(grown, None, grid)
    from branchwise.grow.grow import grow  # noqa: PLC0415  (rare)

    # The reference takes bins as numbers.
    data = codes_as_numbers(columns, data)
    engine = replace(training, data=data).engine(grid)
    tree = grow(engine, columns, recipe, progress, drawn=drawn)
    return finished(tree, engine.scale, grid)


def natively(
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


def counts_times(training: Training, recipe: Recipe) -> bool:
    """Whether trees can be grown from rows that have ``times``."""
    return (
        training.weights is None
        and is_native(training, recipe)
        and not training.grid(recipe).fractions
        and not is_pruned(recipe)
    )


def is_native(training: Training, recipe: Recipe) -> bool:
    """Whether the native kernel grows trees from these rows."""
    return native.serves(recipe, training.columns) and native_holds(training)


def native_holds(training: Training) -> bool:
    """Whether the native kernel can hold tables of all values and classes."""
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
    return with_thresholds(tree, edges, numbers_of_thresholds)


def between_bins(tree: Tree, edges: Edges) -> Tree:
    """Convert thresholds between numbers into thresholds between bins."""
    return with_thresholds(tree, edges, bins_of_thresholds)


def with_thresholds(
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

    Moments become weight, mean and deviation; ``scale`` is None where nodes have none.
    """
    if scale is None:
        if grid.unit == 1:
            return tree
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
    from branchwise.engines.memory_engine import class_cases_of  # noqa: PLC0415

    labels = Classes(training.target.astype(np.intp), training.n_classes)
    return tree.with_class_cases(
        class_cases_of(training.columns, training.data, labels, grid, tree)
    )


def task_of(recipe: Recipe, task: Task) -> Task:
    """Return the task with the settings of the recipe."""
    return replace(task, **settings_of(recipe))


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Return the settings of a task that a recipe has."""
    return {
        "criterion": str(recipe.criterion) if recipe.is_regression else None,
        "weights_are_cases": recipe.weights_are_cases,
        "divides": recipe.missing == "split",
        "rejects_missing": recipe.missing == "error",
        "max_bins": recipe.max_bins,
        "threshold": recipe.threshold,
    }


def check_costs(
    costs: tuple[tuple[float, ...], ...] | None, classes: Sequence[Value]
) -> None:
    """Reject costs for another number of classes."""
    if costs is not None and len(costs) != len(classes):
        raise ParameterError(
            f"costs must have a row and a column for each of the {len(classes)} "
            f"classes {quoted(classes)}. Got {len(costs)} rows."
        )
