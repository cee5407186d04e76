"""``branchwise fit``: a table -> a model file, of a tree or of an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, overload

from branchwise.cli import options
from branchwise.cli.options import growing, read_na_values, takes
from branchwise.cli.options.engine import (
    RemoteTable,
    check_remote_options,
    engine_for,
    engine_options,
    remote_source,
)
from branchwise.cli.options.model_metadata import ModelOptions, hash_of_files
from branchwise.cli.show import report_model
from branchwise.cli.support import Reporter, check_outputs
from branchwise.cli.support.class_amounts import by_class, read_costs
from branchwise.cli.support.file_schema import as_read
from branchwise.cli.support.hints import remark_fit
from branchwise.cli.support.models import size_of, write_model
from branchwise.cli.support.rows import (
    check_known_rows,
    check_two_streams,
    located,
)
from branchwise.cli.support.training import (
    TrainingTable,
    assign_roles,
    read_training,
    validation_rows,
)
from branchwise.errors import counted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from branchwise.files.table_paths import files_of
from branchwise.fit import fit_tree
from branchwise.model import Model
from branchwise.recipe import Recipe
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.text.words import number

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble
    from branchwise.train.fit_findings import FitFinding


@takes(
    growth=growing.growing_options,
    ensembles=growing.ensemble_options,
    engines=engine_options,
    kept=ModelOptions,
    reading=options.reading_options,
)
def fit(
    table_paths: list[str] = options.TABLES,
    target: str = options.TARGET,
    output: str | None = options.MODEL_OUTPUT,
    algorithm: str | None = growing.ALGORITHM,
    regression: bool = growing.REGRESSION,
    output_format: str = options.FORMAT,
    quiet: bool = options.QUIET,
    *,
    growth: dict[str, Any],
    ensembles: dict[str, Any],
    engines: dict[str, Any],
    kept: ModelOptions,
    data_hash: bool = options.SHARED.flag("--data-hash"),
    reading: Reading,
) -> None:
    """Grow a tree, a forest, boosted trees or rules; write a model file."""
    growth["order"] = [*(growth["order"] or ()), *kept.orders] or None
    options = dict(locals()) | growth | ensembles | engines
    validation = growth["validation"]
    reporter = Reporter(quiet)
    kept.check(output, output_format, **{"--data-hash": data_hash})
    hashed = {"data_hash": hash_of_files(files_of(table_paths))} if data_hash else {}
    recipe = _recipe(algorithm, regression, options)
    found: list[FitFinding] = []
    options["on_finding"] = found.append
    check_two_streams(TABLE=table_paths[0], **{"--validation": validation})
    check_outputs({"-o": output}, *table_paths, validation)
    check_known_rows(table_paths[0], "--validation", validation)
    remote = engine_for(table_paths, engines["engine"]) is not None
    if not remote:
        check_remote_options(options)
    with reporter.reading(table_paths[0]) as say:
        if remote:
            source = remote_source(table_paths, options, say)
            model = _fit_remote(source, recipe, options, say)
            origin = f"{source.label} by the engine {source.engine}"
        else:
            na_values = read_na_values(growth["missing"])
            file = TableFile(table_paths[0], reading, missing=na_values)
            rows = read_training(file, options)
            model = fit_rows(rows, recipe, options, say)
            origin = counted(rows.n_rows, "row")
        titles = {} if remote else rows.file.column_labels
        model = kept.applied(model, titles, **hashed)
        if output is not None:
            say("Writing")
            write_model(model, output)
    if not remote:
        rows.remark(reading, reporter)
    if isinstance(recipe, Recipe) and isinstance(model, Model):
        _note_choices(recipe, model.recipe, reporter)
    remark_fit(found, reporter)
    report_model(
        model, f"{size_of(model)} from {origin}", output, output_format, reporter
    )


def _note_choices(given: Recipe, used: Recipe, reporter: Reporter) -> None:
    """Say what cross-validation has chosen."""
    if given.cross_validate:
        two_way = used.branching == "two-way"
        split = "two-way splits" if two_way else "groups"
        pruned = "not pruned" if used.pruning is None else f"{used.pruning} pruning"
        reporter.note(f"cross-validation chose {split}, {pruned}.")
    if isinstance(given.ccp_alpha, str):
        chosen = number(float(used.ccp_alpha))
        risk = " --risk errors" if used.counts_errors else ""
        reporter.note(f"cross-validation chose --ccp-alpha {chosen}{risk}.")


def _recipe(
    algorithm: str | None, regression: bool, options: Mapping[str, Any]
) -> Recipe | EnsembleRecipe:
    """Return the recipe of a tree or of an ensemble that the options name."""
    if algorithm in growing.ENSEMBLES:
        given = growing.given_parameters(options)
        from branchwise.cli.options.ensemble_growing import ensemble_recipe

        return ensemble_recipe(str(algorithm), regression, given)
    return growing.recipe_of(algorithm, regression, options)


@overload
def fit_rows(
    rows: TrainingTable,
    recipe: Recipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Model: ...


@overload
def fit_rows(
    rows: TrainingTable,
    recipe: Recipe | EnsembleRecipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Model | Ensemble: ...


def fit_rows(
    rows: TrainingTable,
    recipe: Recipe | EnsembleRecipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Model | Ensemble:
    """Grow from a table in memory, by the options of a subcommand."""
    aside = None
    if options["validation"] is not None:
        aside = validation_rows(options["validation"], rows, options["reading"])
    say(_growing(recipe))
    with located(rows.file if aside is None else None):
        model = _fitted(
            rows.attributes,
            rows.labels,
            recipe,
            options,
            **rows.roles.declared,
            sample_weight=rows.weights,
            validation=aside,
            target_name=rows.roles.target,
            n_jobs=options["n_jobs"],
            progress=lambda n: say(f"{_growing(recipe)}: {_size(recipe, n)}"),
        )
    return model.with_schema(as_read(model.schema, rows))


def _fit_remote(
    remote: RemoteTable,
    recipe: Recipe | EnsembleRecipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Model | Ensemble:
    """Grow from rows that an engine counts, or encodes, where they are."""
    roles = assign_roles(remote, options)
    validation = None
    if options["validation"] is not None:
        validation = remote_source([options["validation"]], options, say).source(roles)
    levels = count(1)

    def progress(n: int) -> None:
        level = f"level {next(levels)}, " if isinstance(recipe, Recipe) else ""
        say(f"{_growing(recipe)}: {level}{_size(recipe, n)}")

    return _fitted(
        remote.source(roles),
        roles.target,
        recipe,
        options,
        **roles.declared,
        sample_weight=roles.weight,
        validation=validation,
        ignore=[name for name in roles.ignored if name],
        categorical_features=remote.categorical_features(roles),
        engine=str(remote.engine),
        max_exact=options["max_exact"],
        date_features=options["reading"].date_features,
        progress=progress,
    )


def _fitted(
    source: object,
    target: object,
    recipe: Recipe | EnsembleRecipe,
    options: Mapping[str, Any],
    **others: Any,
) -> Model | Ensemble:
    """Fit with the options that every engine has."""
    costs, weights = options["costs"], options["class_weight"]
    others["priors"] = by_class("--priors", options["priors"])
    others["costs"] = None if costs is None else partial(read_costs, costs)
    if isinstance(recipe, Recipe):
        others["class_weight"] = by_class("--class-weight", weights)
        others["validation_fraction"] = options["validation_fraction"]
        others["on_finding"] = options.get("on_finding", lambda _: None)
        return fit_tree(source, target, recipe, **others)
    from branchwise.ensemble.fit import fit_ensemble

    # The recipe has refused rows held out for pruning, and it balances the samples.
    del others["validation"]
    weights = None if recipe.balanced_subsample else weights
    others["class_weight"] = by_class("--class-weight", weights)
    others["n_jobs"] = options["n_jobs"]
    return fit_ensemble(source, target, recipe, **others)


def _growing(recipe: Recipe | EnsembleRecipe) -> str:
    """Say what is being grown."""
    if isinstance(recipe, EnsembleRecipe) and recipe.method == "rules":
        return "Finding rules"
    return "Growing the tree" + ("" if isinstance(recipe, Recipe) else "s")


def _size(recipe: Recipe | EnsembleRecipe, n: int) -> str:
    """Say how much has been grown: nodes of a tree, trees of an ensemble."""
    if isinstance(recipe, Recipe):
        return f"{n:,} nodes"
    # Gradient boosting has several trees a round where there are many classes.
    fewer = recipe.method in ("gradient", "rules")  # rules stop at many leaves
    most = "" if fewer else f" of {recipe.n_estimators:,}"
    return f"{n:,}{most} trees"
