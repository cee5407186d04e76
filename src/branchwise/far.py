"""The pipeline for rows that stay where they are: place -> plan -> tree -> model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from branchwise.elsewhere import (
    Place,
    grown_elsewhere,
    plan_for,
    prune_elsewhere,
    refuse_rules,
    task_of,
)
from branchwise.engines.sketch import MAX_EXACT
from branchwise.engines.task import Task, check_columns
from branchwise.errors import ParameterError, check_limit
from branchwise.grow import Progress
from branchwise.model import Model
from branchwise.places import place_of
from branchwise.recipes import Recipe
from branchwise.table.schema import Value
from branchwise.training import warn_of_order

#: Classes -> a row for each true class, with what each answer costs.
CostsOf = Callable[[Sequence[Value]], tuple[tuple[float, ...], ...]]


def task_by_names(
    target: object,
    sample_weight: object,
    max_exact: int | None,
    validation_fraction: float | None,
) -> Task:
    """Return what is wanted of rows elsewhere, by the names of their columns."""
    for name, given in (("target", target), ("sample_weight", sample_weight)):
        if not isinstance(given, str) and (name == "target" or given is not None):
            raise ParameterError(
                f"{name} must be the name of a column where the rows are not in "
                f"memory. Got {type(given).__name__}."
            )
    if validation_fraction is not None:
        raise ParameterError(
            "validation_fraction sets rows aside by their contents, which needs them "
            "in memory. Pass validation, a source with other rows."
        )
    check_limit("max_exact", max_exact, least=2)
    exact = MAX_EXACT if max_exact is None else int(max_exact)
    return Task(str(target), sample_weight, max_exact=exact)  # type: ignore[arg-type]


def fit_elsewhere(
    place: Place,
    task: Task,
    recipe: Recipe,
    validation: object = None,
    progress: Progress | None = None,
    target_name: str | None = None,
    costs_of: CostsOf | None = None,
) -> Model:
    """Grow a tree from rows that stay where they are.

    ``costs_of`` tells what wrong answers cost, once the classes are known.
    """
    refuse_rules(recipe, place.label)
    task = task_of(recipe, task)
    others = _others(place, recipe, validation)
    with place:
        check_columns(task, place.label, place.names)
        plan = place.learn(task)
        warn_of_order(plan.schema.columns, recipe)
        if costs_of is not None:
            recipe = replace(recipe, costs=costs_of(plan.schema.classes))
        tree = grown_elsewhere(place, plan, recipe, progress)
    if others is not None:
        with others:
            tree = prune_elsewhere(tree, others, plan_for(others, plan, tree), recipe)
    name = task.target if target_name is None else target_name
    return Model(replace(plan.schema, target=name), tree, recipe)


def _others(place: Place, recipe: Recipe, validation: object) -> Place | None:
    """Return where the rows to prune with are, if the recipe needs some."""
    if (validation is not None) != (recipe.pruning == "reduced-error"):
        raise ParameterError(
            "validation, a source with rows to prune with, goes with "
            f"pruning='reduced-error' and with nothing else. Got "
            f"pruning={recipe.pruning!r} and "
            f"{'no' if validation is None else 'a'} validation source."
        )
    if validation is None:
        return None
    return place_of(validation, place.engine_name)
