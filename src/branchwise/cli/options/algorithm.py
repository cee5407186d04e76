"""Algorithms: which options each has, recipes made of options, and shared options.

``given_recipe`` checks the growing options against the algorithm and fills in its
recipe; ``read_costs`` reads ``--costs``. The options of cross-validation follow.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from branchwise.cli.options.declaration import flag, option
from branchwise.cli.options.growing import Algorithm, Pruning
from branchwise.cli.support.training import as_amount, number_or_rule, samples
from branchwise.data.schema import Value
from branchwise.data.target import learn_target
from branchwise.errors import MOST_SEED, DataError, ParameterError, quoted
from branchwise.files.read_table import TableFile
from branchwise.recipe import C45, CART, FOR_NUMBERS, ID3, Recipe, named

#: How messages name an algorithm; regression has another set of parameters.
_ID3, _C45, _CART, _REGRESSION = "id3", "c4.5", "cart", "cart --regression"
_ALGORITHMS = (_ID3, _C45, _CART, _REGRESSION)
_CLASSIFIERS = (_ID3, _C45, _CART)
_WITH_CHOICE = (_ID3, _CART, _REGRESSION)

_RECIPES = {
    _ID3: ID3,
    _C45: C45,
    _CART: CART,
    _REGRESSION: replace(CART, criterion="variance"),
}
#: The algorithms that have a parameter, for those that not all have.
_KNOWN_TO = {
    "class_weight": _CLASSIFIERS,
    "priors": _CLASSIFIERS,
    "costs": _CLASSIFIERS,
    "probabilities": _CLASSIFIERS,
    "m": _CLASSIFIERS,
    "criterion": _WITH_CHOICE,
    "min_samples_branch": (_C45,),
    "group_values": (_C45,),
    "threshold": (_C45,),
    "prune": (_C45,),
    "confidence": _CLASSIFIERS,
    "raise_subtrees": _CLASSIFIERS,
}
_CRITERIA = {
    _ID3: named(("gain", "gain_ratio", "gini")),
    _CART: named(("gini", "gain")),
    _REGRESSION: named(FOR_NUMBERS),
}
#: Parameters of one pruning method only.
ONLY_WITH = {
    "confidence": Pruning.ERROR_BASED,
    "raise_subtrees": Pruning.ERROR_BASED,
    "tolerance": Pruning.REDUCED_ERROR,
    "validation": Pruning.REDUCED_ERROR,
    "validation_fraction": Pruning.REDUCED_ERROR,
    "ccp_alpha": Pruning.COST_COMPLEXITY,
}
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
#: Parameters that are switched off, not on.
_NEGATED = ("prune", "raise_subtrees")


def option_of(parameter: str) -> str:
    """Name the option that sets a parameter of an estimator."""
    renamed = {"missing": "missing-policy", "unseen": "unseen-policy"}
    negation = "no-" if parameter in _NEGATED else ""
    return f"--{negation}{renamed.get(parameter, parameter).replace('_', '-')}"


def has_parameter(algorithm: str, parameter: str) -> bool:
    """Whether an algorithm has a parameter."""
    return algorithm in _KNOWN_TO.get(parameter, _ALGORITHMS)


def recipe_of(
    algorithm: Algorithm | None, regression: bool, options: Mapping[str, Any]
) -> Recipe:
    """Fill in a recipe with the growing options of a subcommand."""
    chosen = chosen_algorithm(algorithm, regression)
    return given_recipe(chosen, regression, given_parameters(options))


def given_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
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


def only_given(**parameters: Any) -> dict[str, Any]:
    """Keep the parameters that are not None, choices as plain texts."""
    return {
        name: str(value) if isinstance(value, StrEnum) else value
        for name, value in parameters.items()
        if value is not None
    }


def given_recipe(
    algorithm: Algorithm, regression: bool, given: Mapping[str, Any]
) -> Recipe:
    """Fill in a recipe with the parameters that were given.

    Parameters
    ----------
    algorithm : Algorithm
        What to start from.
    regression : bool
        Whether numbers are to be predicted.
    given : dict
        Parameters of the estimators; those that are not in a recipe are checked
        all the same. Costs are left for when the classes are known.
    """
    if regression and algorithm is not Algorithm.CART:
        raise ParameterError(
            f"--regression applies only to --algorithm cart. Got {algorithm.value}: "
            "give --algorithm cart, too."
        )
    name = _REGRESSION if regression else algorithm.value
    _check_unknown(name, given)
    if (
        name in (_CART, _REGRESSION)
        and "pruning" not in given
        and given.get("ccp_alpha") == 0
    ):
        # An alpha of 0 prunes nothing, as for the estimators.
        given = {n: value for n, value in given.items() if n != "ccp_alpha"}
    method = pruning_method(name, given)
    check_method(method, given, "--pruning", ONLY_WITH)
    _check_rows_to_prune_with(method, given)
    if name == _REGRESSION and method is Pruning.ERROR_BASED:
        raise ParameterError(
            "--pruning error-based counts wrong classes, which --regression has none "
            "of. Use reduced-error or cost-complexity."
        )
    if "m" in given and given.get("probabilities") != "m-estimate":
        raise ParameterError(
            "--m has no effect unless --probabilities is m-estimate. Give both or "
            "neither."
        )
    return _filled(name, method, given)


def _filled(name: str, method: Pruning, given: Mapping[str, Any]) -> Recipe:
    recipe = _RECIPES[name]
    shared = {field.name for field in fields(recipe) if field.init} - {"costs"}
    values = {n: v for n, v in given.items() if n in shared}
    values["pruning"] = None if method is Pruning.NONE else method.value
    if "criterion" in given:
        values["criterion"] = _criterion(name, given["criterion"])
    if given.get("group_values"):
        values["branching"] = "groups"
    return replace(recipe, **values)


def _criterion(name: str, given: str) -> str:
    if given not in _CRITERIA[name]:
        allowed = ", ".join(_CRITERIA[name])
        raise ParameterError(
            f"--criterion must be one of {allowed} with --algorithm {name}. Got "
            f"{given}."
        )
    return given


def _check_unknown(name: str, given: Mapping[str, Any]) -> None:
    for parameter in given:
        if not has_parameter(name, parameter):
            known = " or ".join(_KNOWN_TO[parameter])
            raise ParameterError(
                f"{option_of(parameter)} applies only to --algorithm {known}. Got "
                f"{name}: choose another algorithm, or leave the option out."
            )


def pruning_method(name: str, given: Mapping[str, Any]) -> Pruning:
    """Return how an algorithm prunes, with the parameters that were given."""
    if "pruning" in given and "prune" in given:
        raise ParameterError(
            "--no-prune and --pruning contradict each other. Give one of them."
        )
    if "prune" in given:
        return Pruning.NONE
    if "pruning" in given:
        return Pruning(given["pruning"])
    if name == _C45:
        return Pruning.ERROR_BASED
    # ccp_alpha implies cost-complexity pruning, as for the estimators of CART.
    implied = name in (_CART, _REGRESSION) and "ccp_alpha" in given
    return Pruning.COST_COMPLEXITY if implied else Pruning.NONE


def check_method(
    method: Pruning,
    given: Mapping[str, Any],
    option: str,
    only_with: Mapping[str, Pruning],
) -> None:
    """Reject parameters of another pruning method.

    Parameters
    ----------
    method : Pruning
        The pruning method.
    given : dict
        The parameters.
    option : str
        The option that chooses the method.
    only_with : dict
        The one method that has a parameter.
    """
    for parameter, needed in only_with.items():
        if parameter in given and method is not needed:
            raise ParameterError(
                f"{option_of(parameter)} has no effect unless {option} is "
                f"{needed.value}. Got {_described(method, given)}."
            )


def _described(method: Pruning, given: Mapping[str, Any]) -> str:
    return "--no-prune" if "prune" in given else method.value


def _check_rows_to_prune_with(method: Pruning, given: Mapping[str, Any]) -> None:
    sources = [name for name in ("validation", "validation_fraction") if name in given]
    if method is Pruning.REDUCED_ERROR and len(sources) != 1:
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
    pieces = pair.split(":")
    for at in range(1, len(pieces)):
        true, prediction = ":".join(pieces[:at]), ":".join(pieces[at:])
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
_DEFAULT = Algorithm.C45
EVALUATION = "Fitting and testing"


ALGORITHM, EVALUATED_ALGORITHM = (
    option(
        "--algorithm -a",
        None,
        "id3: one branch per value, by gain; c4.5: Quinlan's C4.5; cart: Breiman's "
        "two-way splits.",
        f"{_DEFAULT}; with --regression {Algorithm.CART}",
        panel=panel,
    )
    for panel in (None, EVALUATION)
)
REGRESSION, EVALUATED_REGRESSION = (
    flag("--regression", "cart: predict the numbers of the target, not classes.", panel)
    for panel in (None, EVALUATION)
)
FOLDS = option(
    "--cv", "N", "Number of folds, stratified by class.", "10", panel=EVALUATION, min=2
)
REPEATS = option(
    "--repeats",
    "N",
    "How many times cross-validation is repeated, each time with other folds.",
    "1",
    panel=EVALUATION,
    min=1,
)


def seed_option(panel: str, default: int | None = None) -> Any:
    """Declare ``--seed``, listed under a heading."""
    return option(
        "--seed",
        "N",
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
        "--jobs",
        "N",
        "Number of fits that run in parallel, -1 is one for each core; the result is "
        "the same.",
        "1" if default is None else None,
        default=default,
        panel=EVALUATION,
    )


def chosen_algorithm(given: Algorithm | None, regression: bool) -> Algorithm:
    """Return the algorithm: the one given, or the default."""
    if given is not None:
        return given
    return Algorithm.CART if regression else _DEFAULT
