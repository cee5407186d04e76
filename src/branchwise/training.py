"""From encoded rows to a finished tree: growth and the pruning that belongs to it.

A :class:`Training` can be taken apart by rows without encoding anything again,
which is what validation sets and cross-validation are made of.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.engines.memory import MemoryEngine, class_cases_of
from branchwise.errors import BranchwiseWarning, ParameterError, quoted
from branchwise.grow import Progress, grow, recount
from branchwise.kernels import native
from branchwise.predict import with_answers, with_costs
from branchwise.prune import best_first, cost_complexity, error_based
from branchwise.recipes import Recipe
from branchwise.regrowth import cut_from_larger
from branchwise.table.bins import Edges, bin_columns, cut_numbers
from branchwise.table.memory import Shelf, digest
from branchwise.table.schema import Column, Columns, Value
from branchwise.table.target import Classes, Quantities, Scale, measure
from branchwise.table.weights import WeightGrid, weigh
from branchwise.tree import Tree

#: As many classes as a byte can tell apart.
_BYTE = 256


def warn_of_order(columns: Sequence[Column], recipe: Recipe) -> None:
    """Warn of ordered categories that splits may group against their order."""
    ordered = [column.name for column in columns if column.kind == "ordinal"]
    if not ordered or recipe.branching == "values":
        return
    for name in ordered:
        warnings.warn(
            f"Column {name!r} has ordered categories, and "
            f"branching={recipe.branching!r} may put any of them together, against "
            "their order. Turn the column into numbers if the order must hold, or make "
            "it unordered to silence this.",
            BranchwiseWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class Training:
    """Encoded columns, what is to be predicted (class codes or numbers), weights.

    ``shelf`` is where trees of the same columns are kept, if they are.
    """

    columns: tuple[Column, ...]
    data: Columns
    target: NDArray[np.intp] | Floats
    n_classes: int
    weights: Floats | None = None
    shelf: Shelf | None = None

    def take(self, rows: Ints) -> Training:
        """Keep some of the rows."""
        data = Columns(len(rows), tuple(cells[rows] for cells in self.data.data))
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self, data=data, target=self.target[rows], weights=weights, shelf=None
        )

    def grid(self, recipe: Recipe) -> WeightGrid:
        """Put the weights on a grid that suits the recipe."""
        # Cases are split only where values are missing and go down every branch.
        split = recipe.missing == "split" and any(c.has_missing for c in self.columns)
        return weigh(self.weights, self.data.n_rows, split, recipe.weights_are_cases)


def grown(
    training: Training,
    recipe: Recipe,
    threads: int = 1,
    progress: Progress | None = None,
) -> Tree:
    """Grow a tree and prune it as far as the training rows alone allow."""
    grid = training.grid(recipe)
    training, edges = in_bins(training, grid, recipe)
    if training.shelf is None or callable(recipe.criterion):
        # What a function of the user's says today it need not say tomorrow.
        tree = _whole(training, grid, recipe, threads, progress)
    else:
        told = _told(training), training.n_classes, digest(training.weights)
        tree = cut_from_larger(
            training.shelf.below(told),
            recipe,
            grid.total if recipe.weights_are_cases else grid.n_cases,
            lambda recipe: _whole(training, grid, recipe, threads, progress),
        )
    tree = _trimmed(with_costs(tree, recipe), training, grid, recipe)
    tree = with_class_cases(with_answers(tree, recipe), training, grid)
    return in_numbers(tree, edges) if edges else tree


def _told(training: Training) -> bytes:
    """Return what stands for the target; of few classes a byte a row will do."""
    few = 0 < training.n_classes <= _BYTE
    return digest(training.target.astype(np.uint8) if few else training.target)


def _whole(
    training: Training,
    grid: WeightGrid,
    recipe: Recipe,
    threads: int,
    progress: Progress | None,
) -> Tree:
    """Grow a tree, and leave it as it is."""
    if native.serves(recipe) and _native_holds(training):
        tree = native.grow_native(
            training.columns,
            training.data,
            training.target.astype(np.intp, copy=False),
            training.n_classes,
            grid,
            recipe,
            threads,
            progress,
        )
        return finished(tree, None, grid)
    target = target_of(training, grid, recipe)
    engine = MemoryEngine(training.columns, training.data, target, grid)
    tree = grow(engine, training.columns, recipe, progress)
    return finished(tree, engine.scale, grid)


def _native_holds(training: Training) -> bool:
    return native.holds(training.columns, training.n_classes, training.data.n_rows)


def in_bins(
    training: Training, grid: WeightGrid, recipe: Recipe
) -> tuple[Training, Edges]:
    """Put the numbers of long columns in bins, where the recipe wants that."""
    if recipe.max_bins is None:
        return training, {}
    counted = None if grid.weights is None else grid.weights > 0
    columns = training.columns
    data, edges = bin_columns(columns, training.data, recipe.max_bins, counted)
    return replace(training, data=data), edges


def in_numbers(tree: Tree, edges: Edges) -> Tree:
    """Turn cuts between bins into cuts between numbers."""
    tree = replace(tree, cut=cut_numbers(tree.cut, tree.column, edges))
    if tree.surrogate_cut is None or tree.surrogate_column is None:
        return tree
    cut = cut_numbers(tree.surrogate_cut, tree.surrogate_column, edges)
    return replace(tree, surrogate_cut=cut)


def target_of(
    training: Training, grid: WeightGrid, recipe: Recipe
) -> Classes | Quantities:
    """Make what is to be predicted ready to be counted."""
    if not recipe.predicts_numbers:
        return Classes(training.target.astype(np.intp), training.n_classes)
    return measure(training.target.astype(np.float64), grid)


def finished(tree: Tree, scale: Scale | None, grid: WeightGrid) -> Tree:
    """Return a grown tree with weights as they were given.

    Where numbers are predicted, their moments become weight, mean and deviation.
    """
    if scale is None:
        return replace(tree, weights=tree.weights * grid.unit)
    return replace(
        tree,
        weights=tree.weights[:, :1] * grid.unit,
        mean=scale.means(tree.weights),
        deviation=scale.deviations(tree.weights),
    )


def with_class_cases(tree: Tree, training: Training, grid: WeightGrid) -> Tree:
    """Tell how many cases of each class nodes have, where cases have weights."""
    if grid.weights is None or tree.predicts_numbers:
        return tree
    labels = Classes(training.target.astype(np.intp), training.n_classes)
    return tree.with_class_cases(
        class_cases_of(training.columns, training.data, labels, grid, tree)
    )


def check_costs(
    costs: tuple[tuple[float, ...], ...] | None, classes: Sequence[Value]
) -> None:
    """Refuse costs for another number of classes."""
    if costs is not None and len(costs) != len(classes):
        raise ParameterError(
            f"costs must have a row and a column for each of the {len(classes)} "
            f"classes {quoted(classes)}. Got {len(costs)} rows."
        )


def _trimmed(tree: Tree, training: Training, grid: WeightGrid, recipe: Recipe) -> Tree:
    """Take away what the recipe does not want to keep."""
    wanted = recipe.collapse or recipe.pruning == "error-based"
    if wanted and native.prunes(tree) and _native_holds(training):
        tree = limited(tree, recipe)
        labels = training.target.astype(np.intp, copy=False)
        tree = native.prune_native(
            training.columns, training.data, labels, grid.natural, tree, recipe
        )
        # Raised branches have other cases, and so perhaps other answers.
        return _worth_their_price(with_costs(tree, recipe), recipe)
    return trimmed(tree, recipe, recounter(training, grid.natural, recipe))


def limited(tree: Tree, recipe: Recipe) -> Tree:
    """Keep no more leaves than the recipe wants."""
    if recipe.max_leaf_nodes is None:
        return tree
    return best_first.limited(tree, recipe.max_leaf_nodes, recipe.criterion)


def trimmed(tree: Tree, recipe: Recipe, count: error_based.Recount) -> Tree:
    """Take away what the recipe does not want to keep.

    ``count`` counts the rows that the tree was grown from down other trees.
    """
    tree = limited(tree, recipe)
    if recipe.collapse:
        tree = error_based.collapsed(tree)
    if recipe.pruning == "error-based":
        door = count if recipe.raise_subtrees else None
        tree = error_based.pruned(tree, recipe.confidence, door)
    return _worth_their_price(tree, recipe)


def _worth_their_price(tree: Tree, recipe: Recipe) -> Tree:
    """Keep the leaves that earn what they cost, if they cost something."""
    if recipe.pruning != "cost-complexity":
        return tree
    return cost_complexity.pruned(tree, float(recipe.ccp_alpha), recipe.criterion)


def recounter(
    training: Training, grid: WeightGrid, recipe: Recipe
) -> error_based.Recount:
    """Return who counts the training rows down other trees."""
    new_values = recipe.branching == "values"

    def count(tree: Tree) -> tuple[Tree, Ints]:
        target = target_of(training, grid, recipe)
        engine = MemoryEngine(training.columns, training.data, target, grid)
        counted, origin = recount(engine, training.columns, tree, new_values)
        return with_costs(counted, recipe), origin

    return count
