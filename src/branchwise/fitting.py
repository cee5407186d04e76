"""The whole pipeline on one screen: table -> schema and codes -> tree -> model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from branchwise.errors import DataError, ParameterError, quoted
from branchwise.far import fit_elsewhere, task_by_names
from branchwise.grow import Progress
from branchwise.missing import refuse_missing
from branchwise.model import Model
from branchwise.named import named_columns
from branchwise.places import is_files, place_of
from branchwise.recipes import ID3, Recipe
from branchwise.shares import with_class_weights
from branchwise.table.encode import learn_columns, shelf_of_rows
from branchwise.table.frames import open_table
from branchwise.table.labels import learn_numbers, learn_target
from branchwise.table.schema import Schema, Value
from branchwise.table.weights import check_weights
from branchwise.threads import n_threads
from branchwise.training import Training, check_costs, grown, warn_of_order
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
    engine: str | None = None,
    ignore: Sequence[str] = (),
    class_weight: object = None,
    priors: object = None,
    max_exact: int | None = None,
) -> Model:
    """Grow a tree from a table.

    Parameters
    ----------
    source : table, files, or a table elsewhere
        A pandas, polars or pyarrow table, a numpy array, a dict of columns or a
        list of dicts. Or rows that stay where they are: a path, a pattern such as
        ``"data/*.parquet"`` or a list of them, a table of a database
        (:class:`~branchwise.engines.sql.SqlTable`), a DataFrame of Dask or Spark; see
        ``docs/scale.md``.
    target : sequence or str
        The label of each row: text, whole numbers, booleans or categories. Or the name
        of the column that has it, which all other columns are attributes to predict.
    recipe : Recipe
        The algorithm and its limits.
    sample_weight : sequence of float, str or None
        The weight of each row, or with a named target the column that has it; rows of
        weight 0 are left out.
    categorical_features : "from_dtype", "all", mask, indices or names
        Number columns whose values are names.
    categories : dict or None
        The possible values of columns, in order, by name or index.
    classes : sequence or None
        The possible classes, in order; by default those that occur, sorted.
    validation : pair of table and target, source or None
        Rows for reduced-error pruning that the tree is not grown from; with a named
        target a source that has that column.
    validation_fraction : float or None
        The share of the rows that is set aside for that instead.
    target_name : str or None
        What views call the target; by default the name of the series.
    n_jobs : int or None
        Threads to read the table and to grow with; None is one, -1 all cores. The
        tree is the same.
    progress : callable or None
        Called now and then with the number of nodes so far.
    engine : {"memory", "chunked", "sql", "dask", "spark"} or None
        Who holds the rows and adds up the counts; by default the one that suits the
        source. The tree is the same.
    ignore : sequence of str
        With a named target: columns that are no attributes.
    class_weight : "balanced", dict or None
        How much a case of each class counts.
    priors : dict or None
        The share of all weight that each class is to have.
    max_exact : int or None
        Of rows elsewhere: the most distinct numbers of a column that are kept apart;
        columns with more are cut between bins of a summary. By default 10,000.

    Returns
    -------
    Model
        The schema and the tree.
    """
    threads = n_threads(n_jobs)
    if isinstance(ignore, str):
        raise ParameterError(
            f"ignore must be a list of names of columns. Got {ignore!r}; put it in a "
            "list."
        )
    # A list of text is no list of files unless a column of theirs is the target.
    rows_only = engine is None and not isinstance(target, str) and is_files(source)
    place = None if rows_only else place_of(source, engine)
    if place is not None:
        task = task_by_names(target, sample_weight, max_exact, validation_fraction)
        task = replace(
            task,
            ignored=tuple(ignore),
            categorical_features=categorical_features,
            categories=categories,
            classes=classes,
            class_weight=class_weight,
            priors=priors,
        )
        return fit_elsewhere(place, task, recipe, validation, progress, target_name)
    _refuse_max_exact(max_exact)
    if isinstance(target, str):
        named = named_columns(source, target, sample_weight, ignore)
        source, target, sample_weight, name = named
        target_name = name if target_name is None else target_name
        if validation is not None:
            validation = named_columns(validation, name, None, ignore, True)[:2]
    elif len(ignore):
        raise ParameterError(
            "ignore has no effect unless target is the name of a column. Got "
            f"{quoted(ignore)}; leave those columns out of the table."
        )
    frame = open_table(source)
    columns, data = learn_columns(frame, categorical_features, categories, threads)
    warn_of_order(columns, recipe)
    possible, wanted = _wanted(target, frame.n_rows, recipe, classes)
    if recipe.missing == "error":
        refuse_missing(enumerate(columns), data)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, frame.n_rows)
    weights = with_class_weights(weights, class_weight, priors, possible, wanted)
    if target_name is None:
        target_name = _name_of(target)
    schema = Schema(columns, possible, target_name, frame.named)
    check_costs(recipe.costs, possible)
    shelf = shelf_of_rows(frame, categorical_features, categories)
    training = Training(columns, data, wanted, len(possible), weights, shelf)
    return _fitted(
        schema, training, recipe, validation, validation_fraction, threads, progress
    )


def _refuse_max_exact(max_exact: int | None) -> None:
    if max_exact is not None:
        raise ParameterError(
            "max_exact has no effect on rows in memory, whose numbers are all kept "
            f"apart unless the recipe has max_bins. Got {max_exact!r}."
        )


def _wanted(
    target: object, n_rows: int, recipe: Recipe, classes: Sequence[Value] | None
) -> tuple[tuple[Value, ...], Any]:
    """Return the classes and their codes, or no classes and numbers."""
    if target is None:
        raise DataError(
            "Growing a tree requires y to be passed, but the target y is None. Pass "
            "one label for each row."
        )
    if recipe.predicts_numbers:
        return (), learn_numbers(target, n_rows, recipe.criterion)
    return learn_target(target, n_rows, classes)


def _fitted(
    schema: Schema,
    training: Training,
    recipe: Recipe,
    validation: Any,
    validation_fraction: float | None,
    threads: int,
    progress: Progress | None,
) -> Model:
    """Grow and prune."""
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
