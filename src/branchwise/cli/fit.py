"""``branchwise fit``: a table -> a model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from branchwise.cli.options import shared
from branchwise.cli.options.algorithm import (
    ALGORITHM,
    REGRESSION,
    costs_by_class,
    read_costs,
    recipe_of,
)
from branchwise.cli.options.declaration import takes
from branchwise.cli.options.engine import (
    check_remote_options,
    engine_for,
    engine_options,
    remote_source,
)
from branchwise.cli.options.growing import Algorithm, growing_options
from branchwise.cli.options.shared import (
    OutputFormat,
    Table,
    read_na_values,
    remark_header,
)
from branchwise.cli.show import report_model, size_of, write_model
from branchwise.cli.support.models import check_known_rows, check_two_streams, located
from branchwise.cli.support.streams import Reporter, check_output, keep_inputs
from branchwise.cli.support.training import (
    Roles,
    Weights,
    assign_roles,
    by_class,
    case_weights,
    class_weights,
    features_and_target,
    prior_weights,
    remark_columns,
    remark_findings,
    remark_target,
    validation_rows,
)
from branchwise.engines.base import source_of
from branchwise.errors import counted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from branchwise.fit import fit_source, fit_tree, task_by_names
from branchwise.model import Model
from branchwise.recipe import Recipe
from branchwise.text.conditions import number

_GROWING = "Growing the tree"


@takes(growth=growing_options, engines=engine_options, reading=shared.reading_options)
def fit(
    table_paths: list[str] = shared.TABLES,
    target: str = shared.TARGET,
    output: str | None = shared.MODEL_OUTPUT,
    algorithm: Algorithm | None = ALGORITHM,
    regression: bool = REGRESSION,
    output_format: OutputFormat = shared.FORMAT,
    quiet: bool = shared.QUIET,
    *,
    growth: dict[str, Any],
    engines: dict[str, Any],
    reading: Reading,
) -> None:
    """Grow a decision tree from a table and write it to a model file.

    Every column but the target is an attribute; see branchwise schema for what each
    is taken for.

    \b
    Examples:
      branchwise fit data.csv --target play -o tree.json
      branchwise fit data.csv --target play                  (just print the tree)
      branchwise fit data.csv -t play --ignore id --categorical zip --missing NA
      branchwise fit data.csv -t play --max-depth 3 --class-weight yes=2,no=1
      branchwise fit data.csv -t play -a c4.5 --confidence 0.1 --group-values
      branchwise fit data.csv -t play -a cart --ccp-alpha 1-se
      branchwise fit data.csv -t price -a cart --regression --min-samples-leaf 5
      branchwise fit data.csv -t play --pruning reduced-error --validation more.csv
      branchwise fit weather.arff -t play -o tree.json
      branchwise fit data.sqlite --table customers -t buys -o tree.json
      cat iris.data | branchwise fit - --no-header -t x4 -o tree.json
      branchwise fit sales/*.parquet -t churn -o tree.json    (larger than memory)
      branchwise fit postgresql://reader@db/shop --table sales -t churn
    """
    options = dict(locals()) | growth | engines
    validation = growth["validation"]
    recipe = recipe_of(algorithm, regression, options)
    reporter = Reporter(quiet)
    check_two_streams(TABLE=table_paths[0], **{"--validation": validation})
    check_output(output)
    keep_inputs({"-o": output}, *table_paths, validation)
    check_known_rows(table_paths[0], "--validation", validation)
    if engine_for(table_paths, engines["engine"]) is not None:
        fit_remote(table_paths, recipe, options, reporter)
        return
    check_remote_options(options)
    table_path = table_paths[0]
    with reporter.reading(table_path) as say:
        file = TableFile(table_path, reading)
        roles = roles_of(file, options)
        grown = grown_from(file, roles, recipe, options, say)
        model = grown.model
        if output is not None:
            say("Writing")
            write_model(model, output)
    remark_header(file, reading, reporter)
    remark_columns(grown.attributes, roles, reporter)
    remark_findings(grown.attributes, grown.labels, roles, reporter)
    remark_target(grown.labels, roles, reporter)
    if isinstance(recipe.ccp_alpha, str):
        chosen = number(float(model.recipe.ccp_alpha))
        reporter.note(f"cross-validation chose --ccp-alpha {chosen}.")
    rows = counted(len(grown.labels), "row")
    report_model(
        model, f"{size_of(model)} from {rows}", output, output_format, reporter
    )


def roles_of(file: Table, options: Mapping[str, Any]) -> Roles:
    """Assign a role to every column, by the options of a subcommand that grows."""
    names = ("weight", "categorical", "numeric", "ignore", "categories", "regression")
    return assign_roles(file, options["target"], **{n: options[n] for n in names})


@dataclass(frozen=True)
class Grown:
    """A model, and the rows that it was grown from."""

    model: Model
    attributes: Any
    labels: Any
    weights: Weights | None


def grown_from(
    file: TableFile,
    roles: Roles,
    recipe: Recipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Grown:
    """Read a table and grow a tree from it, by the options of a subcommand."""
    na_values = read_na_values(options["missing"])
    table = file.read(
        missing=na_values,
        text_columns=roles.text,
        number_columns=roles.numbers,
        ignore=roles.ignored,
    )
    labels, attributes = features_and_target(table, roles, file)
    weights = case_weights(table, roles.weight, file)
    weights = class_weights(options["class_weight"], labels, weights)
    weights = prior_weights(options["priors"], labels, weights)
    if options["costs"] is not None:
        recipe = replace(recipe, costs=read_costs(options["costs"], labels))
    aside = None
    if options["validation"] is not None:
        aside = validation_rows(
            options["validation"], table, roles, na_values, options["reading"]
        )
    say(_GROWING)
    with located(file, aside is None):
        model = fit_tree(
            attributes,
            labels,
            recipe,
            sample_weight=weights,
            categories=roles.categories or None,
            validation=aside,
            validation_fraction=options["validation_fraction"],
            target_name=roles.target,
            n_jobs=options["n_jobs"],
            progress=lambda nodes: say(f"{_GROWING}: {nodes:,} nodes"),
        )
    return Grown(model, attributes, labels, weights)


def fit_remote(
    table_paths: Sequence[str],
    recipe: Recipe,
    options: Mapping[str, Any],
    reporter: Reporter,
) -> None:
    """Grow a tree from rows that an engine counts where they are, and write it."""
    output = options["output"]
    levels = count(1)
    with reporter.working(f"Opening {table_paths[0]}") as say:
        remote = remote_source(table_paths, options, say)
        roles = roles_of(remote, options)
        validation = None
        if options["validation"] is not None:
            others = remote_source([options["validation"]], options, say)
            validation = others.source(roles)
        data_source = source_of(remote.source(roles), str(remote.engine))
        if data_source is None:
            raise AssertionError("rows in memory have no remote source")
        task = replace(
            task_by_names(
                roles.target,
                roles.weight,
                options["max_exact"],
                options["validation_fraction"],
            ),
            ignored=tuple(roles.ignored),
            categories=roles.categories or None,
            categorical_features=remote.categorical_features(roles),
            class_weight=by_class("--class-weight", options["class_weight"]),
            priors=by_class("--priors", options["priors"]),
        )
        model = fit_source(
            data_source,
            task,
            recipe,
            validation,
            lambda nodes: say(f"{_GROWING}: level {next(levels)}, {nodes:,} nodes"),
            costs_of=costs_by_class(options["costs"]),
        )
        if output is not None:
            say("Writing")
            write_model(model, output)
    summary = f"{size_of(model)} from {remote.label} by the engine {remote.engine}"
    report_model(model, summary, output, options["output_format"], reporter)
