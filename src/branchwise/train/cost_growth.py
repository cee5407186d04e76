"""Growth and pruning by costs: rows weigh by what it costs to misclassify them.

A row of class k weighs in proportion to C_k, the sum of the costs of predicting any
other class for it, and all rows together as much as before: the altered priors of
Breiman, Friedman, Olshen and Stone (1984, section 4.4.1), in C4.5 the instance weights
of Ting (2002). Splits are chosen by these weights, so that errors are costs. With two
classes that is exact; with more, C_k does not tell which wrong class is predicted.
Error-based pruning estimates all costs (``prune/estimates.py``), cost-complexity
pruning the impurities of rows of these weights. The finished tree has the weights of
its rows, as they were given, and predicts by all costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Value
from branchwise.data.weights import CostPriors
from branchwise.engines.base import Task
from branchwise.errors import ParameterError, quoted
from branchwise.prune.estimates import case_factors
from branchwise.recipe import Recipe
from branchwise.recipe.costs import Costs, costs_by_class
from branchwise.train.train import check_costs
from branchwise.tree.tree import Tree


def cost_task(task: Task, recipe: Recipe, costs: Any) -> Task:
    """Return the task whose rows weigh by the costs of their classes."""
    given = recipe.costs if costs is None else costs
    if given is None:
        raise ParameterError(
            "costs_in='growth' has no effect without costs. Give costs, or leave it "
            "out."
        )
    return replace(task, priors=CostPriors(partial(class_costs, given), task.priors))


def class_costs(given: Any, classes: Sequence[Value]) -> Floats:
    """Return the sum of the costs of each class; see ``costs`` of ``fit_tree``."""
    matrix: Costs = given
    if isinstance(given, Mapping):
        matrix = costs_by_class(given, classes)
    elif callable(given):
        matrix = given(classes)
    check_costs(matrix, classes)
    sums: Floats = np.array(matrix, dtype=np.float64).sum(axis=1)
    free = [label for label, cost in zip(classes, sums, strict=True) if not cost]
    if free:
        raise ParameterError(
            "costs_in='growth' needs costs of every class. Got none for "
            f"{quoted(free, 20)}: give some, or leave its rows out."
        )
    return sums


def without_costs(recipe: Recipe) -> Recipe:
    """Return the recipe to grow from rows that weigh by costs."""
    return replace(recipe, costs=None, costs_in="prediction")


def with_true_weights(tree: Tree, recipe: Recipe, weighted: bool) -> Tree:
    """Return a tree that was grown by costs with the weights of its rows.

    ``weighted`` says that rows had weights of their own; otherwise they are cases.
    """
    if not weighted:
        cases = tree.weights if tree.class_cases is None else tree.class_cases
        return replace(tree, weights=cases, class_cases=None)
    if recipe.costs is None:
        raise AssertionError("the tree was grown by costs")
    factors = case_factors(tree.weights[0], recipe.costs)
    return replace(tree, weights=tree.weights * factors)
