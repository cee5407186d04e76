"""From encoded rows to a finished tree: growth and the pruning that belongs to it.

A :class:`Training` can be taken apart by rows without encoding anything again,
which is what validation sets and cross-validation are made of.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, distinct
from branchwise.data.bins import Edges, bin_columns, cut_bins, cut_numbers
from branchwise.data.encoded_table import Shelf, digest
from branchwise.data.schema import Column, Columns, Value
from branchwise.data.target import Classes, Quantities, Scale, measure
from branchwise.data.weights import WeightGrid, weigh
from branchwise.engines.base import Place
from branchwise.engines.fit_plan import Plan, Task
from branchwise.engines.level_engine import PassEngine
from branchwise.engines.memory import MemoryEngine, class_cases_of
from branchwise.engines.scan import Part, cells_of
from branchwise.errors import BranchwiseWarning, DataError, ParameterError, quoted
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import Progress, count_down, grow, recount
from branchwise.prune import cost_complexity, error_based, reduced_error
from branchwise.prune import reduced_error as best_first
from branchwise.recipe import ALPHA_RULES, Recipe, unpruned
from branchwise.threads import cached_property
from branchwise.tree.apply import with_answers, with_costs
from branchwise.tree.edit import snipped, stopped_weights
from branchwise.tree.tree import Tree

#: What is decided after growth: it may differ where the grown tree is the same.
_AFTER_GROWTH = ("max_leaf_nodes", "costs", "probabilities", "m")


@dataclass(frozen=True)
class _Kept:
    """A tree, and the limits of depth and of cases that it was grown with."""

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
        """The fewest cases of a node that was split."""
        return float(self.cases[~self.tree.is_leaf].min(initial=np.inf))


def cut_from_larger(
    shelf: Shelf, recipe: Recipe, n_cases: float, grow: Callable[[Recipe], Tree]
) -> Tree:
    """Return what ``grow(recipe)`` returns, if possible without calling it.

    Parameters
    ----------
    shelf : Shelf
        Where trees of the same rows, targets and weights are kept.
    recipe : Recipe
        How the tree is to be grown.
    n_cases : float
        The number of cases that shares are taken of.
    grow : callable
        Grows a tree.
    """
    name = ("tree", without_limits(recipe))
    kept = shelf.get(name)
    if not isinstance(kept, _Kept) or not _covers(kept.recipe, recipe, n_cases):
        wider = recipe
        if isinstance(kept, _Kept):
            # Who asks for a second size will ask for more of them.
            wider = _wider(kept.recipe, recipe, n_cases)
        kept = _Kept(_read_only(grow(wider)), wider)
        shelf.put(name, kept, _bytes(kept.tree))
    return _cut(kept, recipe.max_depth, recipe.cases_to_split(n_cases))


@lru_cache(maxsize=256)
def without_limits(recipe: Recipe) -> Recipe:
    """Return what the recipe says of growth: all but limits that cut and pruning."""
    usual: dict[str, Any] = {
        name: Recipe.__dataclass_fields__[name].default for name in _AFTER_GROWTH
    }
    return replace(unpruned(recipe), max_depth=None, min_samples_split=2, **usual)


def _covers(wide: Recipe, narrow: Recipe, n_cases: float) -> bool:
    deep = wide.max_depth is None or (
        narrow.max_depth is not None and narrow.max_depth <= wide.max_depth
    )
    return deep and wide.cases_to_split(n_cases) <= narrow.cases_to_split(n_cases)


def _wider(one: Recipe, other: Recipe, n_cases: float) -> Recipe:
    fewest = min(one, other, key=lambda recipe: recipe.cases_to_split(n_cases))
    depth = None if one.max_depth != other.max_depth else one.max_depth
    return replace(other, max_depth=depth, min_samples_split=fewest.min_samples_split)


def _cut(kept: _Kept, max_depth: int | None, cases_to_split: float) -> Tree:
    tree = kept.tree
    if max_depth is not None and max_depth >= tree.max_depth:
        max_depth = None
    if max_depth is None and cases_to_split <= kept.fewest_cases:
        return tree
    leaves = kept.cases < cases_to_split
    if max_depth is not None:
        leaves |= tree.depth >= max_depth
    return snipped(tree, leaves).tree


def _read_only(tree: Tree) -> Tree:
    """Let nobody change the arrays of a tree that others will get, too."""
    for array in vars(tree).values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return tree


def _bytes(tree: Tree) -> int:
    return sum(
        array.nbytes for array in vars(tree).values() if isinstance(array, np.ndarray)
    )


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
    if wanted and error_based.prunes(tree) and _native_holds(training):
        tree = limited(tree, recipe)
        labels = training.target.astype(np.intp, copy=False)
        tree = error_based.prune_native(
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


@dataclass(frozen=True)
class Below:
    """Grows what is below a node of a tree from the rows of the node."""

    plan: Plan
    recipe: Recipe

    def __call__(self, part: Part) -> Tree:
        """Grow from rows of one node; the bars are those of the whole table."""
        return native.grow_native(
            self.plan.schema.columns,
            cells_of(part, self.plan),
            part.target.astype(np.intp),
            self.plan.n_classes,
            self.plan.grid_of(part.weights),
            self.recipe,
        )

    @classmethod
    def serves(cls, plan: Plan, recipe: Recipe) -> bool:
        """Whether the rows of a node are all that is needed.

        C4.5 cuts at numbers of the whole table, wherever those are.
        """
        anywhere = recipe.cut == "value" and bool(plan.values)
        if anywhere or not native.serves(recipe):
            return False
        return native.holds(plan.schema.columns, plan.n_classes, 0)  # of a small node


def task_of(recipe: Recipe, task: Task) -> Task:
    """Fill in what the recipe has to say about the reading of the rows."""
    criterion = recipe.criterion if recipe.predicts_numbers else None
    return replace(
        task,
        criterion=None if criterion is None else str(criterion),
        weights_are_cases=recipe.weights_are_cases,
        divides=recipe.missing == "split",
        refuses_missing=recipe.missing == "error",
        max_bins=recipe.max_bins,
    )


def refuse_rules(recipe: Recipe, label: str) -> None:
    """Refuse, before any work, what needs the rows in memory."""
    if isinstance(recipe.ccp_alpha, str) and recipe.ccp_alpha in ALPHA_RULES:
        raise ParameterError(
            f"ccp_alpha={recipe.ccp_alpha!r} chooses the price by cross-validation, "
            f"which needs the rows in memory, and they are in {label}. Give a number, "
            "or choose it on a sample of the rows."
        )


def grown_elsewhere(
    place: Place,
    plan: Plan,
    recipe: Recipe,
    progress: Progress | None = None,
) -> Tree:
    """Grow a tree and prune it as far as the rows that it is grown from allow."""
    check_costs(recipe.costs, plan.schema.classes)
    engine = place.engine(plan)
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

    tree = with_answers(trimmed(tree, recipe, counted), recipe)
    if plan.weighted and not tree.predicts_numbers:
        tree = tree.with_class_cases(engine.class_cases(tree))
    return in_numbers(tree, plan.edges) if plan.edges else tree


def _from(recipe: Recipe, depth: int) -> Recipe:
    """Return the recipe for what is below a node at a depth."""
    if recipe.max_depth is None:
        return recipe
    return replace(recipe, max_depth=recipe.max_depth - depth)


def plan_for(others: Place, plan: Plan, tree: Tree) -> Plan:
    """Return how rows to prune with are counted: by the schema that is learnt, without
    weights. They may have strange values; of their numbers it matters on which side of
    the tree's cuts they are.
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
    strange = [label for label in found.schema.classes if label not in known]
    if strange:
        raise DataError(
            f"In the validation set: y has {quoted(strange)}, but the classes of the "
            f"tree are {quoted(known)}. Leave those rows out."
        )
    edges = _cuts_of(tree, plan)
    values = {index: np.arange(len(cuts) + 1.0) for index, cuts in edges.items()}
    return replace(
        found, schema=plan.schema, edges=edges, values=values, strangers=True
    )


def _cuts_of(tree: Tree, plan: Plan) -> Edges:
    """Return the cuts of every numeric column, in order."""
    column, cut = tree.column, tree.cut
    if tree.surrogate_column is not None and tree.surrogate_cut is not None:
        column = np.concatenate([column, tree.surrogate_column])
        cut = np.concatenate([cut, tree.surrogate_cut])
    made = ~np.isnan(cut)
    return {index: distinct(cut[made & (column == index)]) for index in plan.values}


def prune_elsewhere(tree: Tree, place: Place, plan: Plan, recipe: Recipe) -> Tree:
    """Prune by the errors on other rows, of which a plan says how to count them."""
    engine = place.engine(plan)
    between = replace(tree, cut=cut_bins(tree.cut, tree.column, plan.edges))
    if tree.surrogate_cut is not None and tree.surrogate_column is not None:
        cut = cut_bins(tree.surrogate_cut, tree.surrogate_column, plan.edges)
        between = replace(between, surrogate_cut=cut)
    counted = count_down(engine, between)
    stopped = np.where(
        tree.is_leaf[:, np.newaxis], counted.weights, stopped_weights(counted)
    )
    passing, stopping = (
        _errors(weights, tree, plan, recipe) for weights in (counted.weights, stopped)
    )
    slack = recipe.tolerance * plan.grid.total
    return reduced_error.pruned(tree, passing, stopping, slack)


def _errors(weights: Floats, tree: Tree, plan: Plan, recipe: Recipe) -> Floats:
    """Return what is wrong where rows of these weights get the answers of nodes."""
    if plan.scale is not None and tree.mean is not None:
        return plan.scale.distances(weights, tree.mean)
    if recipe.costs is not None:
        costs = np.array(recipe.costs)[:, tree.label].T
        priced: Floats = (weights * costs).sum(axis=1)
        return priced
    right = np.take_along_axis(weights, tree.label[:, np.newaxis], axis=1)[:, 0]
    wrong: Floats = weights.sum(axis=1) - right
    return wrong
