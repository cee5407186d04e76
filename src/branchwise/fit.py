""":func:`fit_tree`: the one way from a table, or another source, to a model.

Source -> task -> plan (schema, classes, weights) -> tree -> pruned tree -> model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from branchwise.data.conventions.declared_columns import with_orders
from branchwise.data.descriptions import grown_now
from branchwise.data.table_schema import Schema, Value
from branchwise.engines.base import (
    MAX_EXACT,
    Plan,
    Source,
    Task,
    check_columns,
    engine_of,
    source_of,
)
from branchwise.engines.memory import MemoryTable, Training
from branchwise.errors import FitWarning, ParameterError, check_limit, quoted
from branchwise.model import Model
from branchwise.recipe import ID3, Recipe
from branchwise.recipe.parameters import ALPHA_RULES
from branchwise.threads import n_threads
from branchwise.train.train import check_costs, grown, settings_of
from branchwise.tree.tree import Tree

if TYPE_CHECKING:
    from branchwise.data.conventions.date_features import DateFeature
    from branchwise.grow.grow import Progress
    from branchwise.recipe.costs import Costs
    from branchwise.train.fit_findings import FitFinding
    from branchwise.train.missing_totals import TotalsOf

#: From classes to a cost matrix: a row for each true class, a column per prediction.
CostsOf = Callable[[Sequence[Value]], tuple[tuple[float, ...], ...]]
#: Nothing is said of trees of fewer rows, unless they are one leaf.
_FEW_ROWS = 100
#: Costs by the names of classes.
CostsByClass = CostsOf | Mapping[Any, Any]


def with_class_costs(
    recipe: Recipe, costs: CostsByClass | None, classes: Sequence[Value]
) -> Recipe:
    """Return the recipe with its costs, once the classes are known."""
    if isinstance(costs, Mapping):
        from branchwise.recipe.costs import costs_by_class  # noqa: PLC0415  (rare)

        recipe = replace(recipe, costs=costs_by_class(costs, classes))
    elif costs is not None:
        recipe = replace(recipe, costs=costs(classes))
    check_costs(recipe.costs, classes)
    return recipe


def fit_tree(
    source: object,
    target: object,
    recipe: Recipe = ID3,
    *,
    sample_weight: object = None,
    categorical_features: object = "from_dtype",
    categories: Mapping[Any, Sequence[Any]] | None = None,
    order: Mapping[Any, Sequence[Any]] | None = None,
    classes: Sequence[Value] | None = None,
    validation: object = None,
    validation_fraction: float | None = None,
    target_name: str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    engine: str | None = None,
    ignore: Sequence[str] = (),
    class_weight: object = None,
    priors: object = None,
    costs: CostsByClass | None = None,
    max_exact: int | None = None,
    date_features: Mapping[str, Sequence[str] | str] | None = None,
    on_finding: Callable[[FitFinding], object] | None = None,
    labels: object = None,
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
    order : dict or None
        The values of columns of ordered categories, by name or index, the lowest first:
        two-way splits keep to the order.
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
    class_weight : "balanced", dict, callable or None
        How much a case of each class counts; a callable takes the classes.
    priors : dict, callable or None
        The share of all weight that each class is to have.
    costs : dict, callable or None
        What wrong predictions cost, by pairs of a true and a predicted class; others
        cost 1. A callable takes the classes, and returns ``costs`` of the recipe.
    max_exact : int or None
        For rows that are not in memory: the most distinct numbers of a column with
        exact thresholds; columns with more are split between bins of a summary. By
        default 10,000.
    date_features : dict or None
        What is derived from columns of dates, as :func:`~branchwise.date_features`
        takes it, in every engine that has dates.
    on_finding : callable or None
        Called with what a user should know about the tree, such as that it is one leaf
        and why; its ``str`` is the text. By default a
        :class:`~branchwise.FitWarning` is given; :func:`not_wanted` saves the search.
    labels : dict, path or None
        Titles, units and words for values in views, as ``Model.with_labels`` takes
        them; an ``order`` of values among them is one of ``order``, too.

    Returns
    -------
    Model
        The schema and the tree.
    """
    labels, order = labels_and_order(labels, order)
    task = new_task(
        target,
        sample_weight=sample_weight,
        ignore=ignore,
        categorical_features=categorical_features,
        categories=categories,
        order=order,
        classes=classes,
        class_weight=class_weight,
        priors=priors,
        max_exact=max_exact,
        n_jobs=n_jobs,
        date_features=date_features,
        settings=settings_of(recipe),
    )
    by_costs = recipe.costs_in == "growth"
    if by_costs:
        from branchwise.train.cost_growth import cost_task  # noqa: PLC0415  (rare)

        task = cost_task(task, recipe, costs)
    named = isinstance(target, str)
    _check_validation(recipe, validation, validation_fraction)
    others: Any = nullcontext(validation)
    if named and validation is not None:
        others = source_of(validation, engine or engine_of(source))
    with others as aside:
        with source_of(source, engine, named) as data_source:
            check_possible(data_source, task, max_exact)
            _check_in_memory(data_source, recipe, validation_fraction)
            if named:
                check_columns(task, data_source.label, data_source.names)
            plan = data_source.learn(task)
            recipe = with_class_costs(recipe, costs, plan.schema.classes)
            given = aside, validation_fraction, progress
            if by_costs:
                weighted = not (sample_weight is class_weight is priors is None)
                tree, recipe, totals_of = _grown_by_costs(
                    data_source, plan, recipe, weighted, given
                )
            else:
                tree, recipe, aside, totals_of = _grown(
                    data_source, plan, recipe, None, *given
                )
        if aside is not None:
            tree = _pruned(tree, plan, recipe, aside)
    schema = plan.model_schema
    if named or target_name is not None:
        schema = named_schema(schema, target, target_name)
    model = labelled(Model(schema, tree, recipe), labels)
    if on_finding is not not_wanted:
        found = _findings_of(model, data_source, totals_of)
        _tell(found, on_finding)
    return model


def new_task(
    target: object,
    *,
    sample_weight: object = None,
    ignore: Sequence[str] = (),
    categorical_features: object = "from_dtype",
    categories: Mapping[Any, Sequence[Any]] | None = None,
    order: Mapping[Any, Sequence[Any]] | None = None,
    classes: Sequence[Value] | None = None,
    class_weight: object = None,
    priors: object = None,
    max_exact: int | None = None,
    n_jobs: int | None = None,
    date_features: Mapping[str, Sequence[str] | str] | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Task:
    """Return what is to be learnt, by the parameters of :func:`fit_tree`.

    ``settings`` are those of a recipe.
    """
    if isinstance(ignore, str):
        raise ParameterError(
            f"ignore must be a list of names of columns. Got {ignore!r}; put it in a "
            "list."
        )
    return Task(
        target,
        sample_weight,
        tuple(ignore),
        categorical_features,
        with_orders(categories, order),
        classes,
        class_weight,
        priors,
        max_exact=MAX_EXACT if max_exact is None else max_exact,
        threads=n_threads(n_jobs),
        date_features=features_of(date_features, ignore),
        **settings,
    )


def named_schema(schema: Schema, target: object, target_name: str | None) -> Schema:
    """Return the schema of a model that is grown now, with the name of its target."""
    if target_name is not None or isinstance(target, str):
        name = target if target_name is None else target_name
        schema = replace(schema, target=str(name))
    return replace(schema, metadata=grown_now())


def _tell(
    found: Sequence[FitFinding], on_finding: Callable[[FitFinding], object] | None
) -> None:
    """Pass on what was found about a tree, by default as warnings of ``fit_tree``."""
    if on_finding is None:
        warn_of(found, stacklevel=4)
        return
    for finding in found:
        on_finding(finding)


def not_wanted(finding: FitFinding) -> None:
    """Take no findings about a tree: they are not even looked for."""


def features_of(given: Any, ignored: Sequence[str] = ()) -> tuple[DateFeature, ...]:
    """Return what is derived from columns of dates that are not ignored."""
    if not given:
        return ()
    from branchwise.data.conventions.date_features import requested_features  # noqa: PLC0415  (few)

    found = given
    if isinstance(given, Mapping):
        found = requested_features("date_features", given)
    return tuple(feature for feature in found if feature.of not in ignored)


def labels_and_order(labels: object, order: Any) -> tuple[object, Any]:
    """Read labels before any growth, and add their orders to those given."""
    if labels is None:
        return None, order
    from branchwise.text.labels import read_labels  # noqa: PLC0415  (rare)

    read = read_labels(labels)
    ordered = {name: label.get("order") for name, label in read.items()}
    orders = {name: values for name, values in ordered.items() if values}
    if orders and (order is None or isinstance(order, Mapping)):
        order = {**orders, **(order or {})}
    return read, order


def labelled(model: Model, labels: object) -> Model:
    """Return a model with labels that are read already."""
    return model if labels is None else model.with_labels(labels)


def _findings_of(
    model: Model, source: Source, totals_of: TotalsOf | None
) -> list[FitFinding]:
    """Find what a user should know about a tree, also of its missing values."""
    schema, tree = model.schema, model.tree
    if len(tree) > 1 and tree.n_cases < _FEW_ROWS:
        return []
    from branchwise.train.fit_findings import fit_findings  # noqa: PLC0415  (rare)
    from branchwise.train.missing_totals import RowTotals  # noqa: PLC0415

    if isinstance(source, MemoryTable):
        totals_of = RowTotals(source.rows)
    return fit_findings(schema, tree, model.recipe, totals_of)


def warn_of(found: Sequence[FitFinding], stacklevel: int) -> None:
    """Give each finding about a tree as a warning."""
    for finding in found:
        warnings.warn(str(finding), FitWarning, stacklevel=stacklevel)


def check_possible(
    data_source: Source, task: Task, max_exact: int | None = None
) -> None:
    """Reject columns and parameters that the rows of a source do not allow."""
    named, weight = isinstance(task.target, str), task.weight
    weight_is_named = weight is None or isinstance(weight, str)
    if isinstance(data_source, MemoryTable):
        if max_exact is not None:
            raise ParameterError(
                "max_exact has no effect on rows in memory, whose numbers are all kept "
                f"apart unless the recipe has max_bins. Got {max_exact!r}."
            )
        if named and not weight_is_named:
            raise ParameterError(
                "sample_weight must be the name of a column where the target is one. "
                f"Got {type(weight).__name__}."
            )
        if task.ignored and not named:
            raise ParameterError(
                "ignore has no effect unless target is the name of a column. Got "
                f"{quoted(task.ignored)}; leave those columns out of the table."
            )
        return
    if not named or not weight_is_named:
        name, given = ("sample_weight", weight) if named else ("target", task.target)
        raise ParameterError(
            f"{name} must be the name of a column where the rows are not in "
            f"memory. Got {type(given).__name__}."
        )
    check_limit("max_exact", max_exact, least=2)


def _check_in_memory(
    data_source: Source, recipe: Recipe, validation_fraction: float | None
) -> None:
    """Reject parameters that need the rows in memory where they are not."""
    if isinstance(data_source, MemoryTable):
        return
    if validation_fraction is not None:
        raise ParameterError(
            "validation_fraction sets rows aside by their contents, which needs them "
            "in memory. Pass validation, a source with other rows."
        )
    if isinstance(recipe.ccp_alpha, str) and recipe.ccp_alpha in ALPHA_RULES:
        raise ParameterError(
            f"ccp_alpha={recipe.ccp_alpha!r} is chosen by cross-validation, which "
            f"needs the rows in memory, and they are in {data_source.label}. Give a "
            "number, or choose it on a sample of the rows."
        )
    if recipe.cross_validate:
        raise ParameterError(
            "cross_validate=True needs the rows in memory, and they are in "
            f"{data_source.label}. Leave it out, or fit a sample of the rows."
        )


def _check_validation(
    recipe: Recipe, validation: object, fraction: float | None
) -> None:
    """Reject rows to prune with where they have no effect, and require them."""
    given = [validation is not None, fraction is not None]
    if recipe.pruning != "reduced-error":
        if any(given):
            name = "validation" if given[0] else "validation_fraction"
            raise ParameterError(
                f"{name} has no effect unless pruning is 'reduced-error'. Got "
                f"pruning={recipe.pruning!r}."
            )
    elif sum(given) != 1:
        raise ParameterError(
            "pruning='reduced-error' needs rows to prune with: either validation, a "
            "table and its target, or validation_fraction, the share of the rows that "
            "is set aside. Got " + ("both." if all(given) else "neither.")
        )


def _grown(
    data_source: Source,
    plan: Plan,
    recipe: Recipe,
    costs: Costs | None,
    aside: Any,
    validation_fraction: float | None,
    progress: Progress | None,
) -> tuple[Tree, Recipe, Any, TotalsOf | None]:
    """Grow a tree; return it, the recipe that was used, and rows to prune with.

    An engine also returns what missing values tell of the target.
    """
    if not isinstance(data_source, MemoryTable):
        from branchwise.train.engine_growth import (  # noqa: PLC0415  (rare)
            grown_by_engine,
        )
        from branchwise.train.missing_totals import EngineTotals  # noqa: PLC0415

        counted = EngineTotals(plan)
        tree = grown_by_engine(
            data_source, plan, recipe, progress, counted.count, costs
        )
        return tree, recipe, aside, counted
    rows, task = data_source.rows, plan.task
    if validation_fraction is not None:
        from branchwise.train.hold_out import held_out  # noqa: PLC0415  (rare)

        rows, aside = held_out(rows, validation_fraction)
    elif aside is not None:
        aside = _encoded(plan.schema, recipe, task, aside)
    if isinstance(recipe.ccp_alpha, str) or recipe.cross_validate:
        from branchwise.train.cross_validation import settled  # noqa: PLC0415  (rare)

        recipe = settled(rows, recipe, task.threads)
    tree = grown(rows, recipe, task.threads, progress, costs)
    return tree, recipe, aside, None


def _grown_by_costs(
    data_source: Source, plan: Plan, recipe: Recipe, weighted: bool, given: Any
) -> tuple[Tree, Recipe, TotalsOf | None]:
    """Grow a tree from rows that weigh by costs; return it with their own weights."""
    from branchwise.train.cost_growth import (  # noqa: PLC0415  (rare)
        with_true_weights,
        without_costs,
    )

    bare = without_costs(recipe)
    tree, used, _, totals_of = _grown(data_source, plan, bare, recipe.costs, *given)
    recipe = replace(used, costs=recipe.costs, costs_in=recipe.costs_in)
    return with_true_weights(tree, recipe, weighted), recipe, totals_of


def _encoded(schema: Schema, recipe: Recipe, task: Task, validation: Any) -> Training:
    """Encode rows to prune with, which may lack columns that are ignored."""
    from branchwise.train.hold_out import encode_validation  # noqa: PLC0415

    if isinstance(validation, MemoryTable):
        unweighted = replace(task, weight=None)
        validation = validation.columns(unweighted)[:2]
    return encode_validation(schema, recipe, validation)


def _pruned(tree: Tree, plan: Plan, recipe: Recipe, aside: Training | Source) -> Tree:
    """Prune by the errors on rows that the tree was not grown from."""
    from branchwise.train import hold_out  # noqa: PLC0415

    if isinstance(aside, Training):
        return hold_out.prune_by_validation(tree, aside, recipe)
    return hold_out.prune_by_engine(tree, aside, plan, recipe)
