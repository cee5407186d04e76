"""Algorithms: which options each has, recipes made of options, and shared options.

``given_recipe`` checks the growing options against the algorithm and fills in its
recipe; ``read_costs`` reads ``--costs``. The options of cross-validation follow.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from branchwise.cli.options.declaration import flag, option
from branchwise.cli.options.growing import given_parameters, option_of
from branchwise.cli.options.shared import splits
from branchwise.cli.support.training import as_amount
from branchwise.data.schema import Value
from branchwise.data.target import learn_target
from branchwise.errors import MOST_SEED, DataError, ParameterError, quoted
from branchwise.files.read_table import TableFile
from branchwise.recipe import (
    CRITERIA,
    FIELDS,
    PARAMETERS,
    RECIPES,
    Pruning,
    Recipe,
    pruning_of,
)

#: The values of ``--algorithm``.
ALGORITHMS = tuple(name for name in RECIPES if "--" not in name)


def full_name(algorithm: str, regression: bool) -> str:
    """Return the name of an algorithm in ``branchwise.recipe``."""
    return f"{algorithm} --regression" if regression else algorithm


def has_parameter(algorithm: str, parameter: str) -> bool:
    """Whether an algorithm has a parameter."""
    return algorithm in PARAMETERS[parameter].algorithms


def recipe_of(
    algorithm: str | None, regression: bool, options: Mapping[str, Any]
) -> Recipe:
    """Fill in a recipe with the growing options of a subcommand."""
    chosen = chosen_algorithm(algorithm, regression)
    return given_recipe(chosen, regression, given_parameters(options))


def given_recipe(algorithm: str, regression: bool, given: Mapping[str, Any]) -> Recipe:
    """Fill in a recipe with the parameters that were given.

    Parameters
    ----------
    algorithm : str
        What to start from.
    regression : bool
        Whether numbers are to be predicted.
    given : dict
        Parameters of the estimators; those that are not in a recipe are checked
        all the same. Costs are left for when the classes are known.
    """
    name = full_name(algorithm, regression)
    if name not in RECIPES:
        raise ParameterError(
            f"--regression applies only to --algorithm cart. Got {algorithm}: "
            "give --algorithm cart, too."
        )
    _check_unknown(name, given)
    if "pruning" in given and "prune" in given:
        raise ParameterError(
            "--no-prune and --pruning contradict each other. Give one of them."
        )
    if RECIPES[name].algorithm == "CART" and "pruning" not in given:
        # An alpha of 0 prunes nothing, as for the estimators.
        given = {n: v for n, v in given.items() if (n, v) != ("ccp_alpha", 0)}
    method = pruning_method(name, given)
    check_effects(given, {**given, "pruning": method})
    _check_rows_to_prune_with(method, given)
    if regression and method == "error-based":
        raise ParameterError(
            "--pruning error-based counts wrong classes, which --regression has none "
            "of. Use reduced-error or cost-complexity."
        )
    values = {n: v for n, v in given.items() if n in FIELDS and n != "costs"}
    if "criterion" in given and given["criterion"] not in CRITERIA[name]:
        raise ParameterError(
            f"--criterion must be one of {', '.join(CRITERIA[name])} with --algorithm "
            f"{name}. Got {given['criterion']}."
        )
    if given.get("group_values"):
        values["branching"] = "groups"
    return replace(RECIPES[name], **values | {"pruning": method})


def _check_unknown(name: str, given: Mapping[str, Any]) -> None:
    for parameter in given:
        if not has_parameter(name, parameter):
            known = " or ".join(PARAMETERS[parameter].algorithms)
            raise ParameterError(
                f"{option_of(parameter)} applies only to --algorithm {known}. Got "
                f"{name}: choose another algorithm, or leave the option out."
            )


def pruning_method(name: str, given: Mapping[str, Any]) -> Pruning | None:
    """Return how an algorithm prunes, with the parameters that were given."""
    if given.get("pruning") == "none":
        return None
    return pruning_of(RECIPES[name], given)


def has_effect(parameter: str, values: Mapping[str, Any]) -> bool:
    """Whether a parameter has an effect with the values of others."""
    needed = PARAMETERS[parameter].only_with
    return needed is None or values.get(needed[0], FIELDS[needed[0]]) == needed[1]


def check_effects(
    given: Mapping[str, Any], values: Mapping[str, Any], method: str = "--pruning"
) -> None:
    """Reject parameters that have no effect.

    Parameters
    ----------
    given : dict
        The parameters.
    values : dict
        The same, with the pruning method that they choose.
    method : str
        The option that names this method.
    """
    for parameter in given:
        needed = PARAMETERS[parameter].only_with
        if needed is None or has_effect(parameter, values):
            continue
        other, value = needed
        got = values.get(other, FIELDS[other]) or "none"
        if other == "pruning" and "prune" in given:
            got = option_of("prune")
        raise ParameterError(
            f"{option_of(parameter)} has no effect unless "
            f"{method if other == 'pruning' else option_of(other)} is {value}. "
            f"Got {got}."
        )


def _check_rows_to_prune_with(method: str | None, given: Mapping[str, Any]) -> None:
    sources = [name for name in ("validation", "validation_fraction") if name in given]
    if method == "reduced-error" and len(sources) != 1:
        raise ParameterError(
            "--pruning reduced-error needs rows to prune with: either --validation "
            "FILE or --validation-fraction SHARE. Got "
            + ("both." if sources else "neither.")
        )
    fraction = given.get("validation_fraction")
    if fraction is not None and not 0 < fraction < 1:
        raise ParameterError(
            f"--validation-fraction must be a share between 0 and 1. Got {fraction:g}."
        )


Costs = tuple[tuple[float, ...], ...]


def read_costs(given: str, labels: Any) -> Costs:
    """Return a row for each true class, with the cost of each predicted class.

    Parameters
    ----------
    given : str
        A table with a row for each true class, whose name is in the first column,
        and a column for each predicted class; or pairs such as ``yes:no=5``, where
        those that are not named cost 1.
    labels : pyarrow column
        The target, which tells the classes and their order.
    """
    return _read(given, learn_target(labels)[0])


def costs_by_class(given: str | None) -> Callable[[Sequence[Value]], Costs] | None:
    """Return what reads costs once the classes are known."""
    return None if given is None else lambda classes: _read(given, classes)


def _read(given: str, classes: Sequence[Value]) -> Costs:
    if Path(given).is_file():
        return _from_file(TableFile(given), classes)
    if "=" not in given:
        raise ParameterError(
            "--costs must be a file or pairs of a true and a predicted class with a "
            f"cost, such as yes:no=5. Got {given!r}, and there is no such file."
        )
    return _from_pairs(given, classes)


def _from_pairs(given: str, classes: Sequence[Value]) -> Costs:
    names = [str(label) for label in classes]
    costs = [[float(i != j) for j in range(len(names))] for i in range(len(names))]
    for entry in next(csv.reader([given]), []):
        pair, _, written = entry.rpartition("=")
        cost = as_amount(written)
        if cost is None or ":" not in pair:
            raise ParameterError(
                "--costs must have pairs of a true and a predicted class with a cost "
                f"that is not negative, such as yes:no=5. Got {entry!r}."
            )
        true, prediction = _split_pair(pair, names)
        costs[names.index(true)][names.index(prediction)] = cost
    return tuple(map(tuple, costs))


def _split_pair(pair: str, names: Sequence[str]) -> tuple[str, str]:
    """Split at the colon that has a class on both sides, for a name may have one."""
    for true, prediction in splits(pair, ":"):
        if true in names and prediction in names:
            return true, prediction
    raise ParameterError(
        f"--costs has {pair!r}, which are not two classes with a colon between them. "
        f"The classes are {quoted(names, 20)}."
    )


def _from_file(file: TableFile, classes: Sequence[Value]) -> Costs:
    names = [str(label) for label in classes]
    true_class, *predictions = file.names
    table = file.read(text_columns=[true_class], number_columns=predictions)
    rows = table[true_class].to_pylist()
    for found, where in (
        (rows, f"rows, in column {true_class!r}"),
        (predictions, "columns"),
    ):
        if sorted(map(str, found)) != sorted(names):
            raise DataError(
                f"{file.label} must have each of the classes {quoted(names, 20)} once "
                f"as its {where}. Got {quoted(found, 20)}."
            )
    costs = []
    for name in names:
        row = rows.index(name)
        cells = [table[prediction][row].as_py() for prediction in names]
        wrong = [cell for cell in cells if cell is None or as_amount(str(cell)) is None]
        if wrong:
            raise DataError(
                f"{file.label} must have a finite cost of at least 0 in every cell. "
                f"Got {'none' if wrong[0] is None else wrong[0]} in "
                f"{file.location(row)}."
            )
        costs.append(tuple(float(cell) for cell in cells))
    return tuple(costs)


#: The algorithm of every subcommand, for classes.
_DEFAULT = "c4.5"
EVALUATION = "Fitting and testing"


ALGORITHM, EVALUATED_ALGORITHM = (
    option(
        "--algorithm -a",
        "id3: one branch per value, by gain; c4.5: Quinlan's C4.5; cart: Breiman's "
        "two-way splits.",
        f"{_DEFAULT}; with --regression cart",
        panel=panel,
        choices=ALGORITHMS,
    )
    for panel in (None, EVALUATION)
)
REGRESSION, EVALUATED_REGRESSION = (
    flag("--regression", "cart: predict the numbers of the target, not classes.", panel)
    for panel in (None, EVALUATION)
)
FOLDS = option(
    "--cv N", "Number of folds, stratified by class.", "10", panel=EVALUATION, min=2
)
REPEATS = option(
    "--repeats N",
    "How many times cross-validation is repeated, each time with other folds.",
    "1",
    panel=EVALUATION,
    min=1,
)


def seed_option(panel: str, default: int | None = None) -> Any:
    """Declare ``--seed``, listed under a heading."""
    return option(
        "--seed N",
        "Random seed of the folds.",
        "0",
        default=default,
        panel=panel,
        min=0,
        max=MOST_SEED,
    )


def jobs_option(default: int | None = None) -> Any:
    """Declare ``--jobs``."""
    return option(
        "--jobs N",
        "Number of fits that run in parallel, -1 is one for each core; the result is "
        "the same.",
        "1" if default is None else None,
        default=default,
        panel=EVALUATION,
    )


def chosen_algorithm(given: str | None, regression: bool) -> str:
    """Return the algorithm: the one given, or the default."""
    return given or ("cart" if regression else _DEFAULT)
