"""Trees from rows that lie elsewhere: in files, in a database, on other machines.

The recipe, the loop and the pruning are those of rows in memory; only who adds up
the counts is another. What cannot be had from counts is refused before work starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

import numpy as np

from branchwise.arrays import distinct
from branchwise.counts import Floats, Ints
from branchwise.engines.base import Engine
from branchwise.engines.parts import Part, cells_of
from branchwise.engines.passes import PassEngine
from branchwise.engines.task import Plan, Task
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.grow import Progress, count_down, grow, recount
from branchwise.kernels import native
from branchwise.predict import with_answers, with_costs
from branchwise.prune import reduced_error
from branchwise.prune.surgery import stopped_weights
from branchwise.recipes import ALPHA_RULES, Recipe
from branchwise.table.bins import Edges, cut_bins
from branchwise.training import check_costs, finished, in_numbers, trimmed
from branchwise.tree import Tree


class Place(Protocol):
    """Where rows lie, and who can count them there."""

    #: The engine that it is for.
    engine_name: ClassVar[str]
    #: What messages call it.
    label: str

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    def learn(self, task: Task) -> Plan:
        """Look at all rows once."""

    def engine(self, plan: Plan) -> Engine:
        """Return who counts the rows by a plan."""

    def __enter__(self) -> Self:
        """Begin to use it."""

    def __exit__(self, *error: object) -> None:
        """Give back all that was taken: temporary files and tables, remote memory."""


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
