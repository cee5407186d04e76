"""``branchwise fit``: a table -> a model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, Any

import typer

from branchwise.cli.options import growing
from branchwise.cli.options.algorithm import (
    AlgorithmName,
    Regression,
    chosen_algorithm,
    costs_by_class,
    given_recipe,
    only_given,
    option_of,
    read_costs,
)
from branchwise.cli.options.engine import (
    EngineChoice,
    Master,
    MaxExact,
    NoCache,
    Scheduler,
    TemporaryFolder,
    TemporaryTables,
    Timeout,
    check_remote_options,
    engine_for,
    remote_source,
)
from branchwise.cli.options.growing import Algorithm
from branchwise.cli.options.shared import (
    READING,
    Categorical,
    Format,
    Ignore,
    NAValues,
    Numeric,
    OutputFormat,
    Quiet,
    Table,
    TablePaths,
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
    number_or_rule,
    prior_weights,
    remark_columns,
    remark_findings,
    remark_target,
    samples,
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
#: Options that are parameters of the estimators as they are given.
_AS_THEY_ARE = (
    "criterion",
    "max_depth",
    "max_leaf_nodes",
    "min_gain",
    "max_p_value",
    "threshold",
    "max_bins",
    "pruning",
    "confidence",
    "tolerance",
    "validation",
    "validation_fraction",
    "class_weight",
    "priors",
    "costs",
    "probabilities",
    "m",
)
#: Options that are numbers of cases or shares.
_CASES = ("min_samples_split", "min_samples_leaf", "min_samples_branch")


def fit(
    table_paths: TablePaths,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column to predict.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The model file to write, - is standard output. Without it, the tree "
            "is printed.",
            show_default=False,
        ),
    ] = None,
    algorithm: AlgorithmName = None,
    regression: Regression = False,
    output_format: Format = OutputFormat.TEXT,
    quiet: Quiet = False,
    categorical: Categorical = None,
    numeric: Numeric = None,
    ignore: Ignore = None,
    missing: NAValues = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            "--categories",
            metavar="COLUMN=A,B,...",
            help="All possible values of a column, in order; may be repeated.",
            show_default=False,
            rich_help_panel=READING,
        ),
    ] = None,
    criterion: growing.CriterionOf = None,
    max_depth: growing.MaxDepth = None,
    max_leaf_nodes: growing.MaxLeafNodes = None,
    min_samples_split: growing.MinSamplesSplit = None,
    min_samples_leaf: growing.MinSamplesLeaf = None,
    min_samples_branch: growing.MinSamplesBranch = None,
    min_gain: growing.MinGain = None,
    max_p_value: growing.MaxPValue = None,
    group_values: growing.GroupValues = False,
    threshold: growing.ThresholdAt = None,
    missing_policy: growing.MissingPolicy = None,
    unseen_policy: growing.UnseenPolicy = None,
    max_bins: growing.MaxBins = None,
    n_jobs: growing.Jobs = None,
    pruning: growing.PruningBy = None,
    no_prune: growing.NoPrune = False,
    confidence: growing.Confidence = None,
    no_raise_subtrees: growing.NoRaiseSubtrees = False,
    tolerance: growing.Tolerance = None,
    validation: growing.Validation = None,
    validation_fraction: growing.ValidationFraction = None,
    ccp_alpha: growing.Alpha = None,
    weight: growing.Weight = None,
    class_weight: growing.ClassWeight = None,
    priors: growing.Priors = None,
    costs: growing.Costs = None,
    probabilities: growing.ProbabilitiesFrom = None,
    m: growing.M = None,
    engine: EngineChoice = None,
    max_exact: MaxExact = None,
    no_cache: NoCache = False,
    temporary_folder: TemporaryFolder = None,
    temporary_tables: TemporaryTables = False,
    timeout: Timeout = None,
    scheduler: Scheduler = None,
    master: Master = None,
    *,
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
    options = dict(locals())  # by name, as the subcommands that grow share them
    recipe = recipe_of(algorithm, regression, options)
    reporter = Reporter(quiet)
    check_two_streams(TABLE=table_paths[0], **{"--validation": validation})
    check_output(output)
    keep_inputs({"-o": output}, *table_paths, validation)
    check_known_rows(table_paths[0], "--validation", validation)
    if engine_for(table_paths, engine) is not None:
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


def recipe_of(
    algorithm: Algorithm | None, regression: bool, options: Mapping[str, Any]
) -> Recipe:
    """Fill in a recipe with the growing options of a subcommand."""
    chosen = chosen_algorithm(algorithm, regression)
    return given_recipe(chosen, regression, growing_options(options))


def growing_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are parameters of estimators, where they are given."""
    plain = {name: options[name] for name in _AS_THEY_ARE}
    cases = {name: samples(option_of(name), options[name]) for name in _CASES}
    return only_given(
        **plain,
        **cases,
        group_values=options["group_values"] or None,
        missing=options["missing_policy"],
        unseen=options["unseen_policy"],
        prune=False if options["no_prune"] else None,
        raise_subtrees=False if options["no_raise_subtrees"] else None,
        ccp_alpha=number_or_rule("--ccp-alpha", options["ccp_alpha"]),
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
