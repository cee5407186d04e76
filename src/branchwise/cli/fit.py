"""``branchwise fit``: a table -> a model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any

from branchwise.cli import options
from branchwise.cli.ensembles import fit_ensemble
from branchwise.cli.options import growing, read_na_values, takes
from branchwise.cli.options.engine import (
    RemoteTable,
    check_remote_options,
    engine_for,
    engine_options,
    remote_source,
)
from branchwise.cli.show import report_model
from branchwise.cli.support import Reporter, check_outputs
from branchwise.cli.support.models import size_of, write_model
from branchwise.cli.support.rows import (
    check_known_rows,
    check_two_streams,
    located,
)
from branchwise.cli.support.training import (
    Roles,
    TrainingTable,
    assign_roles,
    by_class,
    read_costs,
    read_training,
    validation_rows,
)
from branchwise.errors import counted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from branchwise.fit import fit_tree
from branchwise.model import Model
from branchwise.recipe import Recipe
from branchwise.text.conditions import number

_GROWING = "Growing the tree"


@takes(
    growth=growing.growing_options,
    ensembles=growing.ensemble_options,
    engines=engine_options,
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
    reading: Reading,
) -> None:
    """Grow a tree, a forest or boosted trees from a table; write a model file."""
    options = dict(locals()) | growth | ensembles | engines
    validation = growth["validation"]
    reporter = Reporter(quiet)
    if algorithm in growing.ENSEMBLES:
        fit_ensemble(
            str(algorithm), table_paths, output, output_format, options, reporter
        )
        return
    recipe = growing.recipe_of(algorithm, regression, options)
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
        if output is not None:
            say("Writing")
            write_model(model, output)
    if not remote:
        rows.remark(reading, reporter)
    if isinstance(recipe.ccp_alpha, str):
        chosen = number(float(model.recipe.ccp_alpha))
        reporter.note(f"cross-validation chose --ccp-alpha {chosen}.")
    report_model(
        model, f"{size_of(model)} from {origin}", output, output_format, reporter
    )


def fit_rows(
    rows: TrainingTable,
    recipe: Recipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Model:
    """Grow a tree from a table in memory, by the options of a subcommand."""
    aside = None
    if options["validation"] is not None:
        aside = validation_rows(options["validation"], rows, options["reading"])
    say(_GROWING)
    with located(rows.file if aside is None else None):
        return _fitted(
            rows.attributes,
            rows.labels,
            recipe,
            options,
            rows.roles,
            sample_weight=rows.weights,
            validation=aside,
            target_name=rows.roles.target,
            n_jobs=options["n_jobs"],
            progress=lambda nodes: say(f"{_GROWING}: {nodes:,} nodes"),
        )


def _fit_remote(
    remote: RemoteTable,
    recipe: Recipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Model:
    """Grow a tree from rows that an engine counts where they are."""
    roles = assign_roles(remote, options)
    validation = None
    if options["validation"] is not None:
        validation = remote_source([options["validation"]], options, say).source(roles)
    levels = count(1)
    return _fitted(
        remote.source(roles),
        roles.target,
        recipe,
        options,
        roles,
        sample_weight=roles.weight,
        validation=validation,
        ignore=roles.ignored,
        categorical_features=remote.categorical_features(roles),
        engine=str(remote.engine),
        max_exact=options["max_exact"],
        progress=lambda nodes: say(
            f"{_GROWING}: level {next(levels)}, {nodes:,} nodes"
        ),
    )


def _fitted(
    source: object,
    target: object,
    recipe: Recipe,
    options: Mapping[str, Any],
    roles: Roles,
    **others: Any,
) -> Model:
    """Fit a tree with the options that every engine has."""
    costs = options["costs"]
    return fit_tree(
        source,
        target,
        recipe,
        **roles.declared,
        class_weight=by_class("--class-weight", options["class_weight"]),
        priors=by_class("--priors", options["priors"]),
        costs=None if costs is None else partial(read_costs, costs),
        validation_fraction=options["validation_fraction"],
        **others,
    )
