""":func:`fit_tree`: from a table or another source to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from branchwise.data.encode import cache_of_rows, check_missing, learn_columns
from branchwise.data.frames import Frame, open_table
from branchwise.data.schema import Schema, Value
from branchwise.data.target import check_rates, learn_numbers, learn_target
from branchwise.data.weights import check_weights, with_class_weights
from branchwise.engines.base import Source, is_files, source_of
from branchwise.engines.fit_plan import MAX_EXACT, Task, check_columns
from branchwise.engines.scan import attributes_of, special, weights_in
from branchwise.errors import DataError, ParameterError, check_limit, quoted
from branchwise.grow.grow import Progress
from branchwise.model import Model
from branchwise.recipe import ID3, Recipe
from branchwise.threads import n_threads
from branchwise.train.hold_out import (
    choose_alpha,
    encode_validation,
    held_out,
    prune_by_validation,
)
from branchwise.train.train import (
    Training,
    check_costs,
    check_rules,
    grown,
    grown_by_engine,
    plan_for,
    prune_by_engine,
    task_of,
    warn_of_order,
)

#: From classes to a cost matrix: a row for each true class, a column per prediction.
CostsOf = Callable[[Sequence[Value]], tuple[tuple[float, ...], ...]]


def task_by_names(
    target: object,
    sample_weight: object,
    max_exact: int | None,
    validation_fraction: float | None,
) -> Task:
    """Return the task of fitting a source, by the names of its columns."""
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


def fit_source(
    data_source: Source,
    task: Task,
    recipe: Recipe,
    validation: object = None,
    progress: Progress | None = None,
    target_name: str | None = None,
    costs_of: CostsOf | None = None,
) -> Model:
    """Grow a tree from the rows of a source, without loading them all into memory.

    ``costs_of`` returns the costs of wrong predictions, once the classes are known.
    """
    check_rules(recipe, data_source.label)
    task = task_of(recipe, task)
    others = _others(data_source, recipe, validation)
    with data_source:
        check_columns(task, data_source.label, data_source.names)
        plan = data_source.learn(task)
        warn_of_order(plan.schema.columns, recipe)
        if costs_of is not None:
            recipe = replace(recipe, costs=costs_of(plan.schema.classes))
        tree = grown_by_engine(data_source, plan, recipe, progress)
    if others is not None:
        with others:
            tree = prune_by_engine(tree, others, plan_for(others, plan, tree), recipe)
    name = task.target if target_name is None else target_name
    return Model(replace(plan.schema, target=name), tree, recipe)


def _others(data_source: Source, recipe: Recipe, validation: object) -> Source | None:
    """Return the source of validation rows, if the recipe needs some."""
    if (validation is not None) != (recipe.pruning == "reduced-error"):
        raise ParameterError(
            "validation, a source with rows to prune with, goes with "
            f"pruning='reduced-error' and with nothing else. Got "
            f"pruning={recipe.pruning!r} and "
            f"{'no' if validation is None else 'a'} validation source."
        )
    if validation is None:
        return None
    return source_of(validation, data_source.engine_name)


def named_columns(
    source: object,
    target: str,
    weight: object,
    ignore: Sequence[str],
    further: bool = False,
) -> tuple[Frame, Any, Any, str]:
    """Return the attributes, the target and the weights of a table, and its name.

    Further rows may lack columns that are ignored.
    """
    if not isinstance(weight, str) and weight is not None:
        raise ParameterError(
            "sample_weight must be the name of a column where the target is one. Got "
            f"{type(weight).__name__}."
        )
    task = Task(target, weight, tuple(ignore))
    frame = open_table(_read(source) if is_files(source) else source)
    attributes = attributes_of(frame, task)
    if not further:
        check_columns(task, "The table", frame.names)
    return attributes, special(frame, target), weights_in(frame, task), target


def _read(source: object) -> object:
    """Read a file into memory."""
    from branchwise.files.dataset import files_of  # noqa: PLC0415  (only for files)
    from branchwise.files.read_table import TableFile  # noqa: PLC0415

    files = files_of(source)
    if len(files) > 1:
        raise ParameterError(
            f"engine='memory' reads one file. Got {quoted(files)}; use "
            "engine='chunked' for several."
        )
    return TableFile(files[0]).read()


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
    source : table, files, or a remote table
        A pandas, polars or pyarrow table, a numpy array, a dict of columns or a
        list of dicts. Or rows that are not loaded into memory: a path, a pattern such
        as ``"data/*.parquet"`` or a list of them, a table of a database
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
        Number columns whose values are categories.
    categories : dict or None
        The possible values of columns, in order, by name or index.
    classes : sequence or None
        The possible classes, in order; by default those that occur, sorted.
    validation : pair of table and target, source or None
        Rows for reduced-error pruning that the tree is not grown from; with a named
        target a source that has that column.
    validation_fraction : float or None
        The share of the rows that is held out for that instead.
    target_name : str or None
        The name of the target in views; by default the name of the series.
    n_jobs : int or None
        Threads to read the table and to grow with; None is one, -1 all cores. The
        tree is the same.
    progress : callable or None
        Called from time to time with the number of nodes so far.
    engine : {"memory", "chunked", "sql", "dask", "spark"} or None
        Where the rows are held and counted; by default the engine of the source. The
        tree is the same.
    ignore : sequence of str
        With a named target: columns that are no attributes.
    class_weight : "balanced", dict or None
        How much a case of each class counts.
    priors : dict or None
        The share of all weight that each class is to have.
    max_exact : int or None
        For rows that are not in memory: the most distinct numbers of a column with
        exact thresholds; columns with more are split between bins of a summary. By
        default 10,000.

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
    # A list of text is a list of files only if the target is a column name.
    rows_only = engine is None and not isinstance(target, str) and is_files(source)
    data_source = None if rows_only else source_of(source, engine)
    if data_source is not None:
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
        return fit_source(data_source, task, recipe, validation, progress, target_name)
    _check_max_exact(max_exact)
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
        check_missing(enumerate(columns), data)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, frame.n_rows)
    weights = with_class_weights(weights, class_weight, priors, possible, wanted)
    if target_name is None:
        target_name = _name_of(target)
    schema = Schema(columns, possible, target_name, frame.named)
    check_costs(recipe.costs, possible)
    cache = cache_of_rows(frame, categorical_features, categories)
    training = Training(columns, data, wanted, len(possible), weights, cache)
    return _fitted(
        schema, training, recipe, validation, validation_fraction, threads, progress
    )


def _check_max_exact(max_exact: int | None) -> None:
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
    if recipe.is_regression:
        return (), learn_numbers(target, n_rows)
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
    if recipe.criterion == "poisson":
        _check_counted_rates(training, recipe)
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


def _check_counted_rates(training: Training, recipe: Recipe) -> None:
    """Check Poisson targets of the rows that count: vanishing weights are absent."""
    weights = training.grid(recipe).weights
    numbers = training.target if weights is None else training.target[weights > 0]
    check_rates(float(numbers.min()), float(numbers.max()))


def _set_aside(
    schema: Schema,
    training: Training,
    recipe: Recipe,
    validation: tuple[object, object] | None,
    fraction: float | None,
) -> tuple[Training, Training] | None:
    """Return rows to grow from, and validation rows if pruning needs them."""
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
