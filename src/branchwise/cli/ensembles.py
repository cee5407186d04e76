"""Forests and boosting on the command line: ``branchwise fit --algorithm forest``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from branchwise.cli.options import growing, read_na_values
from branchwise.cli.options.engine import (
    RemoteTable,
    check_remote_options,
    engine_for,
    remote_source,
)
from branchwise.cli.options.ensemble_growing import ensemble_recipe
from branchwise.cli.support import (
    Reporter,
    check_outputs,
    print_lines,
)
from branchwise.cli.support.models import note_written, size_of, write_model
from branchwise.cli.support.rows import located
from branchwise.cli.support.training import (
    Roles,
    TrainingTable,
    assign_roles,
    by_class,
    read_costs,
    read_training,
)
from branchwise.errors import counted
from branchwise.files.read_table import STANDARD_STREAM, TableFile
from branchwise.recipe.ensemble_recipe import EnsembleRecipe

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble

_GROWING = "Growing the trees"


def fit_ensemble(
    algorithm: str,
    paths: Sequence[str],
    output: str | None,
    output_format: str,
    options: Mapping[str, Any],
    reporter: Reporter,
) -> None:
    """Grow an ensemble from a table, and write it to a model file."""
    given = growing.given_parameters(options)
    recipe = ensemble_recipe(algorithm, options["regression"], given)
    check_outputs({"-o": output}, *paths)
    remote = engine_for(paths, options["engine"]) is not None
    if not remote:
        check_remote_options(options)
    with reporter.reading(paths[0]) as say:
        if remote:
            source = remote_source(paths, options, say)
            ensemble = _fit_remote(source, recipe, options, say)
            origin = f"{source.label} by the engine {source.engine}"
        else:
            na_values = read_na_values(options["missing"])
            rows = read_training(
                TableFile(paths[0], options["reading"], missing=na_values), options
            )
            say(_GROWING)
            ensemble = _fit_rows(rows, recipe, options, say)
            origin = counted(rows.n_rows, "row")
        if output is not None:
            say("Writing")
            write_model(ensemble, output)
    if not remote:
        rows.remark(options["reading"], reporter)
    _report(ensemble, origin, output, output_format, reporter)


def _fit_rows(
    rows: TrainingTable,
    recipe: EnsembleRecipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Ensemble:
    """Grow from a table in memory."""
    with located(rows.file):
        return _fitted(
            rows.attributes,
            rows.labels,
            recipe,
            options,
            rows.roles,
            say,
            sample_weight=rows.weights,
            target_name=rows.roles.target,
        )


def _fit_remote(
    remote: RemoteTable,
    recipe: EnsembleRecipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Ensemble:
    """Grow from rows that an engine encodes where they are."""
    roles = assign_roles(remote, options)
    return _fitted(
        remote.source(roles),
        roles.target,
        recipe,
        options,
        roles,
        say,
        sample_weight=roles.weight,
        ignore=roles.ignored,
        categorical_features=remote.categorical_features(roles),
        engine=str(remote.engine),
        max_exact=options["max_exact"],
    )


def _fitted(
    source: object,
    target: object,
    recipe: EnsembleRecipe,
    options: Mapping[str, Any],
    roles: Roles,
    say: Callable[[str], None],
    **others: Any,
) -> Ensemble:
    """Grow with the options that every engine has."""
    from branchwise.ensemble import fit

    costs, weights = options["costs"], options["class_weight"]
    if recipe.balanced_subsample:
        weights = None
    # Gradient boosting has several trees a round where there are many classes.
    most = "" if recipe.method == "gradient" else f" of {recipe.n_estimators:,}"
    return fit.fit_ensemble(
        source,
        target,
        recipe,
        **roles.declared,
        n_jobs=options["n_jobs"],
        class_weight=by_class("--class-weight", weights),
        priors=by_class("--priors", options["priors"]),
        costs=None if costs is None else partial(read_costs, costs),
        progress=lambda n: say(f"{_GROWING}: {n:,}{most} trees"),
        **others,
    )


def _report(
    ensemble: Ensemble,
    origin: str,
    output: str | None,
    output_format: str,
    reporter: Reporter,
) -> None:
    """Note where an ensemble was written, and print what can be read from it."""
    summary = f"{size_of(ensemble)} from {origin}"
    note_written(summary, output, reporter)
    if output == STANDARD_STREAM:
        return  # it has the model, which is JSON already
    if output_format == "json":
        print_lines([ensemble.summary().to_json()])
    elif output is None:
        print_lines([str(ensemble.summary())])
