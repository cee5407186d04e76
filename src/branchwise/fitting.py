"""The whole pipeline on one screen: table -> schema and codes -> tree -> model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from branchwise.errors import DataError, ParameterError
from branchwise.grow import Progress
from branchwise.missing import refuse_missing
from branchwise.model import Model
from branchwise.recipes import ID3, Recipe
from branchwise.table.encode import (
    learn_columns,
    learn_numbers,
    learn_target,
    shelf_of_rows,
)
from branchwise.table.frames import open_table
from branchwise.table.schema import Schema, Value
from branchwise.table.weights import check_weights
from branchwise.threads import n_threads
from branchwise.training import Training, check_costs, grown
from branchwise.validation import (
    choose_alpha,
    encode_validation,
    held_out,
    prune_by_validation,
)


def fit_tree(
    source: object,
    target: object,
    recipe: Recipe = ID3,
    *,
    sample_weight: object = None,
    categorical_features: object = "from_dtype",
    categories: Mapping[Any, Sequence[Any]] | None = None,
    classes: Sequence[Value] | None = None,
    validation: tuple[object, object] | None = None,
    validation_fraction: float | None = None,
    target_name: str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Model:
    """Grow a tree from a table.

    Parameters
    ----------
    source : table
        A pandas, polars or pyarrow table, a numpy array, a dict of columns or a
        list of dicts.
    target : sequence
        The label of each row: text, whole numbers, booleans or categories.
    recipe : Recipe
        The algorithm and its limits.
    sample_weight : sequence of float or None
        The weight of each row; rows of weight 0 are left out.
    categorical_features : "from_dtype", "all", mask, indices or names
        Number columns whose values are names.
    categories : dict or None
        The possible values of columns, in order, by name or index.
    classes : sequence or None
        The possible classes, in order; by default those that occur, sorted.
    validation : pair of table and target, or None
        Rows for reduced-error pruning that the tree is not grown from.
    validation_fraction : float or None
        The share of the rows that is set aside for that instead.
    target_name : str or None
        What views call the target; by default the name of the series.
    n_jobs : int or None
        Threads to read the table and to grow with; None is one, -1 all cores. The
        tree is the same.
    progress : callable or None
        Called now and then with the number of nodes so far.

    Returns
    -------
    Model
        The schema and the tree.
    """
    threads = n_threads(n_jobs)
    frame = open_table(source)
    columns, data = learn_columns(frame, categorical_features, categories, threads)
    if target is None:
        raise DataError(
            "Growing a tree requires y to be passed, but the target y is None. Pass "
            "one label for each row."
        )
    if recipe.predicts_numbers:
        possible: tuple[Value, ...] = ()
        wanted: Any = learn_numbers(target, frame.n_rows, recipe.criterion)
    else:
        possible, wanted = learn_target(target, frame.n_rows, classes)
    if recipe.missing == "error":
        refuse_missing(enumerate(columns), data)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, frame.n_rows)
    name = target_name if target_name is not None else _name_of(target)
    schema = Schema(columns, possible, name, frame.named)
    check_costs(recipe.costs, possible)
    shelf = shelf_of_rows(frame, categorical_features, categories)
    training = Training(columns, data, wanted, len(possible), weights, shelf)
    aside = _set_aside(schema, training, recipe, validation, validation_fraction)
    if aside is not None:
        training, validating = aside
    if isinstance(recipe.ccp_alpha, str):
        alpha = choose_alpha(training, recipe, recipe.ccp_alpha, threads)
        recipe = replace(recipe, ccp_alpha=alpha)
    tree = grown(training, recipe, threads, progress)
    if aside is not None:
        tree = prune_by_validation(tree, validating, recipe)
    return Model(schema, tree, recipe)


def _set_aside(
    schema: Schema,
    training: Training,
    recipe: Recipe,
    validation: tuple[object, object] | None,
    fraction: float | None,
) -> tuple[Training, Training] | None:
    """Return rows to grow from and rows to prune with, where pruning needs them."""
    given = [validation is not None, fraction is not None]
    if recipe.pruning != "reduced-error":
        if any(given):
            name = "validation" if given[0] else "validation_fraction"
            raise ParameterError(
                f"{name} has no effect unless pruning is 'reduced-error'. Got "
                f"pruning={recipe.pruning!r}."
            )
        return None
    if sum(given) != 1:
        raise ParameterError(
            "pruning='reduced-error' needs rows to prune with: either validation, a "
            "table and its target, or validation_fraction, the share of the rows that "
            "is set aside. Got " + ("both." if all(given) else "neither.")
        )
    if fraction is not None:
        return held_out(training, fraction)
    return training, encode_validation(schema, recipe, validation)


def _name_of(target: object) -> str | None:
    name = getattr(target, "name", None)
    # A polars series without a name has an empty one.
    return name if isinstance(name, str) and name else None
