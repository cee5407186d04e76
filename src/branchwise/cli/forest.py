"""Forests on the command line: ``branchwise fit --algorithm forest``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from branchwise.cli.options import growing, read_na_values
from branchwise.cli.options.engine import check_remote_options, engine_for
from branchwise.cli.show import note_written
from branchwise.cli.support import (
    Reporter,
    check_outputs,
    open_output,
    print_json,
    print_lines,
)
from branchwise.cli.support.rows import located
from branchwise.cli.support.training import (
    TrainingTable,
    by_class,
    read_costs,
    read_training,
)
from branchwise.errors import ParameterError, counted
from branchwise.files.read_table import STANDARD_STREAM, TableFile
from branchwise.recipe.ensemble_recipe import EnsembleRecipe

if TYPE_CHECKING:
    from branchwise.ensemble.ensemble import Ensemble

_GROWING = "Growing the forest"


def fit_forest(
    paths: Sequence[str],
    output: str | None,
    output_format: str,
    options: Mapping[str, Any],
    reporter: Reporter,
) -> None:
    """Grow a forest from a table, and write it to a model file."""
    recipe = growing.forest_recipe(options["regression"], options)
    check_outputs({"-o": output}, *paths)
    if engine_for(paths, options["engine"]) is not None:
        raise ParameterError(
            "--algorithm forest grows from rows in memory. Give one file, with "
            "--engine memory if it is large, or a sample of the rows."
        )
    check_remote_options(options)
    with reporter.reading(paths[0]) as say:
        na_values = read_na_values(options["missing"])
        rows = read_training(
            TableFile(paths[0], options["reading"], missing=na_values), options
        )
        say(_GROWING)
        with located(rows.file):
            forest = _fitted(rows, recipe, options, say)
        if output is not None:
            say("Writing")
            with open_output(output) as stream:
                stream.write(forest.to_bytes())
    rows.remark(options["reading"], reporter)
    _report(forest, rows.n_rows, output, output_format, reporter)


def _fitted(
    rows: TrainingTable,
    recipe: EnsembleRecipe,
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> Ensemble:
    from branchwise.ensemble.fit import fit_ensemble

    costs, weights = options["costs"], options["class_weight"]
    if weights == growing.BALANCED_SAMPLES:
        weights = None
    return fit_ensemble(
        rows.attributes,
        rows.labels,
        recipe,
        sample_weight=rows.weights,
        categories=rows.roles.categories or None,
        target_name=rows.roles.target,
        n_jobs=options["n_jobs"],
        class_weight=by_class("--class-weight", weights),
        priors=by_class("--priors", options["priors"]),
        costs=None if costs is None else partial(read_costs, costs),
        progress=lambda n: say(f"{_GROWING}: {n:,} of {recipe.n_estimators:,} trees"),
    )


def _report(
    forest: Ensemble,
    n_rows: int,
    output: str | None,
    output_format: str,
    reporter: Reporter,
) -> None:
    """Note where a forest was written, and print what can be read from it."""
    described = _described(forest)
    algorithm = forest.recipe.tree.algorithm
    summary = (
        f"forest of {counted(len(forest), f'{algorithm} tree')} "
        f"({counted(described['nodes'], 'node')}) from {counted(n_rows, 'row')}"
    )
    note_written(summary, output, reporter)
    if output == STANDARD_STREAM:
        return  # it has the model, which is JSON already
    if output_format == "json":
        print_json(described)
    elif output is None:
        print_lines(_lines(described))


def _described(forest: Ensemble) -> dict[str, Any]:
    """Return what is told of a forest, as plain values."""
    importances = zip(forest.schema.names, forest.feature_importances, strict=True)
    by_size = sorted(importances, key=lambda pair: -pair[1])
    score = None
    if forest.samples is not None and not forest.samples.takes_all:
        score = forest.out_of_bag().score
    return {
        "algorithm": forest.recipe.tree.algorithm,
        "trees": len(forest),
        "nodes": sum(len(tree) for tree in forest.trees),
        "target": forest.schema.target,
        "classes": list(forest.schema.classes),
        "out_of_bag_score": score,
        "importances": {name: float(share) for name, share in by_size},
    }


def _lines(described: Mapping[str, Any]) -> list[str]:
    score, importances = described["out_of_bag_score"], described["importances"]
    name = "accuracy" if described["classes"] else "R squared"
    lines = [] if score is None else [f"Out-of-bag {name}: {score:.4f}", ""]
    width = max(len(column) for column in importances)
    lines.append("Importances (share of the decrease in impurity)")
    lines += [
        f"{column:<{width}}  {share:.4f}" for column, share in importances.items()
    ]
    return lines
