""":func:`fit_ensemble`: from a table to an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from branchwise.data.table_schema import Value
from branchwise.engines.base import Task, source_of
from branchwise.engines.memory import MemoryTable, Training
from branchwise.ensemble.boosting import boosted_trees
from branchwise.ensemble.early_stop import OnRound
from branchwise.ensemble.ensemble import Ensemble
from branchwise.ensemble.forest import TreeProgress, grow_trees
from branchwise.ensemble.gradient import gradient_trees
from branchwise.ensemble.losses import TARGETS
from branchwise.ensemble.sampling import Samples
from branchwise.errors import ParameterError
from branchwise.fit import CostsOf
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.threads import n_threads
from branchwise.train.train import check_costs, task_of, warn_of_order
from branchwise.tree.tree import Tree


def fit_ensemble(
    source: object,
    target: object,
    recipe: EnsembleRecipe,
    *,
    sample_weight: object = None,
    categorical_features: object = "from_dtype",
    categories: Mapping[Any, Sequence[Any]] | None = None,
    classes: Sequence[Value] | None = None,
    target_name: str | None = None,
    n_jobs: int | None = None,
    progress: TreeProgress | None = None,
    ignore: Sequence[str] = (),
    class_weight: object = None,
    priors: object = None,
    costs: CostsOf | None = None,
    earlier: Sequence[Tree] = (),
    on_round: OnRound | None = None,
) -> Ensemble:
    """Grow an ensemble from a table in memory.

    Parameters
    ----------
    source, target, sample_weight, categorical_features, categories, classes
        As in :func:`~branchwise.fit_tree`; the table must be in memory.
    recipe : EnsembleRecipe
        The recipe of the trees, and how many there are.
    target_name, n_jobs, ignore, class_weight, priors, costs
        As in :func:`~branchwise.fit_tree`; threads grow different trees.
    progress : callable or None
        Called with the number of trees so far.
    earlier : sequence of Tree
        The first trees of a forest, if they are grown already.
    on_round : callable or None
        Called after each round of boosting with the error of its tree, or the loss of
        the training rows, and with that of held-out rows or None.

    Returns
    -------
    Ensemble
        The schema, the trees and the recipe; and the rows, for what is out of bag.
    """
    threads = n_threads(n_jobs)
    task = task_of(
        recipe.tree,
        Task(
            target,
            sample_weight,
            tuple(ignore),
            categorical_features,
            categories,
            classes,
            class_weight,
            priors,
            threads=threads,
        ),
    )
    named = isinstance(target, str)
    if recipe.loss is not None:
        task = replace(task, criterion=TARGETS[recipe.loss])
    with source_of(source, None, named) as data_source:
        if not isinstance(data_source, MemoryTable):
            raise ParameterError(
                "Ensembles are grown from rows in memory, and these are in "
                f"{data_source.label}. Read them with branchwise.read_table, or a "
                "sample of them."
            )
        schema = data_source.learn(task).schema
        rows: Training = data_source.rows
    warn_of_order(schema.columns, recipe.tree)
    if costs is not None:
        recipe = replace(recipe, tree=replace(recipe.tree, costs=costs(schema.classes)))
    check_costs(recipe.tree.costs, schema.classes)
    samples = Samples(replace(rows, cache=None), recipe)
    if target_name is not None or named:
        schema = replace(schema, target=target_name or str(target))
    match recipe.method:
        case "boosted":
            boosted = boosted_trees(samples, threads, progress, on_round)
            return Ensemble(
                schema, boosted.trees, recipe, boosted.weights, samples=samples
            )
        case "gradient":
            found = gradient_trees(samples, threads, progress, on_round)
            return Ensemble(
                schema, found.trees, recipe, initial=found.initial, samples=samples
            )
    numbers = range(len(earlier), recipe.n_estimators)
    trees = (*earlier, *grow_trees(samples, numbers, threads, progress))
    return Ensemble(schema, trees, recipe, samples=samples)
