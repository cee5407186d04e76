""":func:`fit_ensemble`: from a table to an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, cast

from branchwise.data.arrays import Ints
from branchwise.data.conventions.declared_columns import with_orders
from branchwise.data.descriptions import grown_now
from branchwise.data.table_schema import Schema, Value
from branchwise.engines.base import (
    MAX_EXACT,
    Plan,
    Source,
    Task,
    check_columns,
    source_of,
)
from branchwise.engines.chunk import Chunk, training_of, without_codes
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.level_engine import RemoteTable
from branchwise.engines.memory import MemoryTable
from branchwise.engines.subsamples import RowSampler, sampled_rows
from branchwise.ensemble.boosting import boosted_trees
from branchwise.ensemble.drawn_columns import choose_columns
from branchwise.ensemble.early_stop import OnRound
from branchwise.ensemble.ensemble import Ensemble
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.forest import (
    GrowTrees,
    TreeProgress,
    grow_from_files,
    grow_on_workers,
    grow_trees,
)
from branchwise.ensemble.gradient import gradient_trees
from branchwise.ensemble.losses import TARGETS
from branchwise.ensemble.sampling import Samples, Subsamples, rows_kept
from branchwise.ensemble.voting.fit_rules import voting_trees
from branchwise.errors import ParameterError
from branchwise.fit import (
    CostsByClass,
    check_possible,
    features_of,
    with_class_costs,
)
from branchwise.grow.draws import Keys
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.threads import n_threads
from branchwise.train.train import task_of
from branchwise.tree.tree import Tree


def fit_ensemble(
    source: object,
    target: object,
    recipe: EnsembleRecipe,
    *,
    sample_weight: object = None,
    categorical_features: object = "from_dtype",
    categories: Mapping[Any, Sequence[Any]] | None = None,
    order: Mapping[Any, Sequence[Any]] | None = None,
    classes: Sequence[Value] | None = None,
    target_name: str | None = None,
    n_jobs: int | None = None,
    progress: TreeProgress | None = None,
    engine: str | None = None,
    ignore: Sequence[str] = (),
    class_weight: object = None,
    priors: object = None,
    costs: CostsByClass | None = None,
    earlier: FittedTrees | None = None,
    on_round: OnRound | None = None,
    max_exact: int | None = None,
    date_features: Mapping[str, Sequence[str] | str] | None = None,
) -> Ensemble:
    """Grow an ensemble from a table.

    Workers of Dask and Spark encode the rows and grow the trees of forests; boosting,
    where each round needs the one before, is grown in this process. Files of more rows
    than ``most_rows`` of :class:`~branchwise.engines.chunked.ChunkedTable` are drawn
    from: each tree of a forest has its own random sample of so many rows. Databases
    (``engine="sql"``) are refused. See ``docs/scale.md``.

    Parameters
    ----------
    source, target, sample_weight, categorical_features, categories, order, classes
        As in :func:`~branchwise.fit_tree`.
    recipe : EnsembleRecipe
        The recipe of the trees, and how many there are.
    target_name, n_jobs, engine, ignore, class_weight, priors, costs
        As in :func:`~branchwise.fit_tree`; threads grow different trees.
    progress : callable or None
        Called with the number of trees so far.
    earlier : Ensemble or None
        An ensemble that has the first trees, of the same rows and parameters.
    on_round : callable or None
        Called after each round of boosting with the error of its tree, or the loss of
        the training rows, and with that of held-out rows or None.
    max_exact : int or None
        As in :func:`~branchwise.fit_tree`, for files of more than ``most_rows`` rows.
    date_features : dict or None
        As in :func:`~branchwise.fit_tree`.

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
            with_orders(categories, order),
            classes,
            class_weight,
            priors,
            max_exact=MAX_EXACT if max_exact is None else max_exact,
            threads=threads,
            date_features=features_of(date_features, ignore),
        ),
    )
    named = isinstance(target, str)
    if recipe.loss is not None:
        task = replace(task, criterion=TARGETS[recipe.loss])
    with source_of(source, engine, named) as data_source:
        _check_engine(data_source)
        check_possible(data_source, task, max_exact)
        if named:
            check_columns(task, data_source.label, data_source.names)
        plan = data_source.learn(task)
        schema = plan.schema
        tree = with_class_costs(recipe.tree, costs, schema.classes)
        recipe = replace(recipe, tree=tree)
        if earlier is not None:
            _check_columns(earlier, schema)
            if recipe.max_features == "oob":
                # The number of columns that was chosen for the trees that are there.
                recipe = replace(recipe, max_features=earlier.recipe.max_features)
        growth = _Growth(recipe, threads, earlier, progress, on_round)
        ensemble = growth.from_source(data_source, plan)
    if target_name is not None or named:
        name = target_name or str(target)
        ensemble.schema = replace(ensemble.schema, target=name)
    ensemble.schema = replace(ensemble.schema, metadata=grown_now())
    return ensemble


def _check_engine(data_source: Source) -> None:
    """Reject sources whose rows cannot be drawn."""
    if data_source.engine_name == "sql":
        raise ParameterError(
            "engine='sql' grows single trees, from counts that the database makes. The "
            "trees of an ensemble need samples of the rows themselves, and these are "
            f"in {data_source.label}. Read the rows, or a random sample of them, into "
            "a DataFrame, or export them to Parquet files."
        )


def _check_columns(earlier: FittedTrees, schema: Schema) -> None:
    """Reject trees of other columns or classes."""
    if _coded(earlier.schema) != _coded(schema):
        raise ParameterError(
            "warm_start adds trees of the same table, and its columns, their values or "
            "the classes differ from those of the trees that are there. Fit with "
            "warm_start=False."
        )


def _coded(schema: Schema) -> tuple[Any, ...]:
    """Return what the codes in trees stand for."""
    columns = [
        (column.name, column.kind, column.categories) for column in schema.columns
    ]
    return columns, schema.classes


def _check_rows(earlier: FittedTrees, samples: Samples) -> None:
    """Reject trees of other parameters or rows: samples are not known of these."""
    there, recipe = earlier.recipe, samples.recipe
    recipe = replace(recipe, n_estimators=there.n_estimators)
    changed = _changed(there, recipe) or _changed(there.tree, recipe.tree)
    if changed:
        name, (before, now) = next(iter(changed.items()))
        raise ParameterError(
            "warm_start adds trees with the parameters of those that are there, and "
            f"{name} is {now!r} where it was {before!r}. Set it back, or fit with "
            "warm_start=False."
        )
    if earlier.samples is None:
        raise ParameterError(
            "warm_start adds trees to those of an estimator that was fitted, which has "
            f"its rows, and {earlier!r} has none. Fit with warm_start=False."
        )
    if not samples.has_same_rows(earlier.samples):
        raise ParameterError(
            "warm_start adds trees of the same rows, and the rows, their targets or "
            "their weights differ from those of the trees that are there. Fit with "
            "warm_start=False."
        )


def _changed(before: Any, now: Any) -> dict[str, tuple[Any, Any]]:
    """Return the fields that differ, but for those that are recipes themselves."""
    pairs = {
        field.name: (getattr(before, field.name), getattr(now, field.name))
        for field in fields(before)
        if field.name != "tree"
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True)
class _Growth:
    """How the trees of an ensemble are grown, whatever its rows are."""

    recipe: EnsembleRecipe
    threads: int
    earlier: FittedTrees | None
    progress: TreeProgress | None
    on_round: OnRound | None

    def from_source(self, data_source: Source, plan: Plan) -> Ensemble:
        """Grow from a source that has made a plan."""
        if isinstance(data_source, MemoryTable):
            rows = replace(data_source.rows, cache=None)
            return self.from_rows(Samples(rows, self.recipe), plan.schema)
        if isinstance(data_source, RemoteTable):
            return self._on_workers(data_source, without_codes(plan))
        files = cast(ChunkedTable, data_source)  # every other engine was rejected
        if plan.n_rows <= files.most_in_memory:
            plan = without_codes(plan)
            samples = samples_of_chunk(files.whole(plan), plan, self.recipe)
            return self.from_rows(samples, plan.schema)
        return self._from_files(files, plan)

    def _earlier_trees(self, samples: Samples) -> Sequence[Tree]:
        """Return the trees that are there, which must be of the same rows."""
        if self.earlier is None:
            return ()
        _check_rows(self.earlier, samples)
        return self.earlier.trees

    def from_rows(self, samples: Samples, schema: Schema) -> Ensemble:
        """Grow in this process."""
        rows = samples, self.threads, self.progress
        earlier = self._earlier_trees(samples)
        match self.recipe.method:
            case "boosted":
                boosted = boosted_trees(*rows, self.on_round, earlier)
                return Ensemble(
                    schema,
                    boosted.trees,
                    self.recipe,
                    boosted.weights,
                    samples=samples,
                )
            case "gradient":
                found = gradient_trees(*rows, self.on_round, earlier)
                return Ensemble(
                    schema,
                    found.trees,
                    self.recipe,
                    initial=found.initial,
                    samples=samples,
                )
            case "rules":
                rules = voting_trees(samples, schema, self.threads, self.progress)
                return Ensemble(
                    schema,
                    rules.trees,
                    self.recipe,
                    None,
                    rules.initial,
                    rules.rule_cases,
                    samples,
                )
        return self._forest(samples, schema, self._in_memory, earlier)

    def _in_memory(
        self, samples: Samples, numbers: Sequence[int], progress: TreeProgress | None
    ) -> list[Tree]:
        return grow_trees(samples, numbers, self.threads, progress)

    def _forest(
        self,
        samples: Samples,
        schema: Schema,
        grow: GrowTrees,
        earlier: Sequence[Tree],
    ) -> Ensemble:
        """Grow a forest wherever its rows are."""
        first = earlier
        if self.recipe.max_features == "oob":
            samples, first = choose_columns(samples, schema, self.threads, grow)
        numbers = range(len(first), self.recipe.n_estimators)
        trees = grow(samples, numbers, self._progress_after(len(first) - len(earlier)))
        return Ensemble(schema, (*first, *trees), samples.recipe, samples=samples)

    def _progress_after(self, n_trees: int) -> TreeProgress | None:
        """Count the trees that choosing the number of columns has grown, too."""
        report = self.progress
        return None if report is None else lambda n: report(n_trees + n)

    def _on_workers(self, table: RemoteTable, plan: Plan) -> Ensemble:
        prepare = partial(samples_of_chunk, plan=plan, recipe=self.recipe)
        rows = table.prepared(plan, prepare)
        if self.recipe.method != "forest":
            # Each round needs the one before, so there is nothing to share out.
            return self.from_rows(rows.value, plan.schema)
        grow = partial(grow_on_workers, rows)
        earlier = self._earlier_trees(rows.value)
        return self._forest(rows.value, plan.schema, grow, earlier)

    def _from_files(self, table: ChunkedTable, plan: Plan) -> Ensemble:
        """Grow every tree from its own sample of rows that do not fit in memory."""
        recipe, most, n_rows = self.recipe, table.most_in_memory, plan.grid.n_cases
        if recipe.method != "forest":
            why = "Boosting needs all rows in memory, for every round weighs each of "
            if recipe.method == "rules":
                why = "Rules need all rows in memory, for they are chosen by each of "
            how = "fit" if recipe.method == "rules" else "boost"
            raise ParameterError(
                f"{why}them anew, and {table.label} has {plan.n_rows:,} rows, where "
                f"most_rows allows {most:,}. Raise most_rows of ChunkedTable, {how} "
                "from a sample of the rows, or grow a forest, whose trees draw "
                "samples of their own."
            )
        wanted = min(most, n_rows)
        if recipe.max_samples is not None:
            wanted = recipe.rows_drawn(int(n_rows))
        if not 1 <= wanted <= most:
            raise ParameterError(
                f"max_samples must be at most most_rows, {most:,}, the rows in memory "
                f"for a tree. Got {recipe.max_samples!r}, which is {wanted:,.0f} of "
                f"{n_rows:,.0f} rows; raise most_rows of ChunkedTable, or leave "
                "max_samples out."
            )
        recipe = replace(recipe, max_samples=int(wanted))
        sampler = RowSampler(table, plan)
        samples = subsamples_of(sampler, plan, recipe, wanted / n_rows, most / n_rows)

        def grow(
            some: Samples, numbers: Sequence[int], progress: TreeProgress | None
        ) -> list[Tree]:
            own = cast(Subsamples, some)
            return grow_from_files(sampler, plan, own, numbers, self.threads, progress)

        return self._forest(samples, plan.schema, grow, self._earlier_trees(samples))


def samples_of_chunk(chunk: Chunk, plan: Plan, recipe: EnsembleRecipe) -> Samples:
    """Return samples of rows that a plan encoded without codes of numbers."""
    samples = Samples(training_of(chunk, plan), recipe)
    _ = samples.order  # sorted once, for all workers
    return samples


def subsamples_of(
    sampler: RowSampler, plan: Plan, recipe: EnsembleRecipe, rate: float, kept: float
) -> Subsamples:
    """Keep a share of the rows, for what is out of bag."""

    def draw(keys: Keys, _: int) -> Ints:
        return rows_kept(keys, recipe, kept)

    chunk, keys = sampler.collected([0], draw)[0]()
    rows, _ = sampled_rows(chunk, plan)
    return Subsamples(rows, recipe, keys, rate)
