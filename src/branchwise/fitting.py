"""The whole pipeline on one screen: table -> schema and codes -> tree -> model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from branchwise.engines.memory import MemoryEngine
from branchwise.errors import DataError
from branchwise.grow import Progress, grow
from branchwise.kernels import native
from branchwise.missing import refuse_missing
from branchwise.model import Model
from branchwise.recipes import ID3, Recipe
from branchwise.table.bins import Edges, bin_columns, cut_numbers
from branchwise.table.encode import learn_columns, learn_target
from branchwise.table.frames import open_table
from branchwise.table.schema import Schema
from branchwise.table.weights import check_weights, weigh
from branchwise.threads import n_threads


def fit_tree(
    source: object,
    target: object,
    recipe: Recipe = ID3,
    *,
    sample_weight: object = None,
    categorical_features: object = "from_dtype",
    categories: Mapping[Any, Sequence[Any]] | None = None,
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
    classes, labels = learn_target(target, frame.n_rows)
    if recipe.missing == "error":
        refuse_missing(enumerate(columns), data)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, frame.n_rows)
    # Cases are split only where values are missing and go down every branch.
    fractions = recipe.missing == "split" and any(c.has_missing for c in columns)
    grid = weigh(weights, frame.n_rows, fractions)
    edges: Edges = {}
    if recipe.max_bins is not None:
        counted = None if grid.weights is None else grid.weights > 0
        data, edges = bin_columns(columns, data, recipe.max_bins, counted)
    if native.serves(recipe):
        tree = native.grow_native(
            columns, data, labels, len(classes), grid, recipe, threads, progress
        )
    else:
        engine = MemoryEngine(columns, data, labels, len(classes), grid)
        tree = grow(engine, columns, recipe, progress)
    if edges:
        tree = replace(tree, cut=cut_numbers(tree.cut, tree.column, edges))
    name = target_name if target_name is not None else _name_of(target)
    return Model(Schema(columns, classes, name, frame.named), tree, recipe)


def _name_of(target: object) -> str | None:
    name = getattr(target, "name", None)
    # A polars series without a name has an empty one.
    return name if isinstance(name, str) and name else None
