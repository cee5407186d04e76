"""From the options of ``branchwise fit`` that were given to a recipe."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from branchwise.cli.options.growing import Algorithm, Pruning
from branchwise.cli.support.training import as_amount
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
#: Who knows a parameter that not all know.
_KNOWN_TO = {
    "class_weight": _CLASSIFIERS,
    "priors": _CLASSIFIERS,
    "costs": _CLASSIFIERS,
    "probabilities": _CLASSIFIERS,
    "m": _CLASSIFIERS,
    "criterion": _WITH_CHOICE,
    "min_samples_branch": (_C45,),
    "group_values": (_C45,),
    "cut": (_C45,),
    "prune": (_C45,),
    "confidence": _CLASSIFIERS,
    "raise_subtrees": _CLASSIFIERS,
}
_CRITERIA = {
    _ID3: named(("gain", "gain_ratio", "gini")),
    _CART: named(("gini", "gain")),
    _REGRESSION: named(FOR_NUMBERS),
}
#: What only one way of pruning knows.
ONLY_WITH = {
    "confidence": Pruning.ERROR_BASED,
    "raise_subtrees": Pruning.ERROR_BASED,
    "tolerance": Pruning.REDUCED_ERROR,
    "validation": Pruning.REDUCED_ERROR,
    "validation_fraction": Pruning.REDUCED_ERROR,
    "ccp_alpha": Pruning.COST_COMPLEXITY,
}
#: Parameters that are switched off, not on.
_NEGATED = ("prune", "raise_subtrees")


def option_of(parameter: str) -> str:
    """Name the option that sets a parameter of an estimator."""
    renamed = {"missing": "missing-policy", "unseen": "unseen-policy"}
    negation = "no-" if parameter in _NEGATED else ""
    return f"--{negation}{renamed.get(parameter, parameter).replace('_', '-')}"


def knows(algorithm: str, parameter: str) -> bool:
    """Whether a parameter has an effect on an algorithm."""
    return algorithm in _KNOWN_TO.get(parameter, _ALGORITHMS)


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
        Parameters of the estimators; those that are no part of a recipe are checked
        all the same. Costs are left for when the classes are known.
    """
    if regression and algorithm is not Algorithm.CART:
        raise ParameterError(
            f"--regression has no effect with --algorithm {algorithm.value}. Only cart "
            "knows it: give --algorithm cart, too."
        )
    name = _REGRESSION if regression else algorithm.value
    _refuse_unknown(name, given)
    if (
        name in (_CART, _REGRESSION)
        and "pruning" not in given
        and given.get("ccp_alpha") == 0
    ):
        # Leaves for nothing, which is no pruning, as for the estimators.
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


def _refuse_unknown(name: str, given: Mapping[str, Any]) -> None:
    for parameter in given:
        if not knows(name, parameter):
            known = ", ".join(_KNOWN_TO[parameter])
            raise ParameterError(
                f"{option_of(parameter)} has no effect with --algorithm {name}. Those "
                f"that know it: {known}."
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
    # A price for leaves is the wish to prune by it, as for the estimators of CART.
    implied = name in (_CART, _REGRESSION) and "ccp_alpha" in given
    return Pruning.COST_COMPLEXITY if implied else Pruning.NONE


def check_method(
    method: Pruning,
    given: Mapping[str, Any],
    option: str,
    only_with: Mapping[str, Pruning],
) -> None:
    """Refuse parameters that another way of pruning knows.

    Parameters
    ----------
    method : Pruning
        The way of pruning.
    given : dict
        The parameters.
    option : str
        The option that chooses the method.
    only_with : dict
        The one method that knows a parameter.
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
    """Return a row for each true class, with what each answer costs.

    Parameters
    ----------
    given : str
        A table with a row for each true class, whose name is in the first column,
        and a column for each answer; or pairs such as ``yes:no=5``, where those that
        are not named cost 1.
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
            "--costs must be a file or pairs of a true class and an answer with their "
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
                "--costs must have pairs of a true class and an answer with a cost "
                f"that is not negative, such as yes:no=5. Got {entry!r}."
            )
        true, answer = _split_pair(pair, names)
        costs[names.index(true)][names.index(answer)] = cost
    return tuple(map(tuple, costs))


def _split_pair(pair: str, names: Sequence[str]) -> tuple[str, str]:
    """Split at the colon that has a class on both sides, for a name may have one."""
    parts = pair.split(":")
    for at in range(1, len(parts)):
        true, answer = ":".join(parts[:at]), ":".join(parts[at:])
        if true in names and answer in names:
            return true, answer
    raise ParameterError(
        f"--costs has {pair!r}, which are not two classes with a colon between them. "
        f"The classes are {quoted(names, 20)}."
    )


def _from_file(file: TableFile, classes: Sequence[Value]) -> Costs:
    names = [str(label) for label in classes]
    true_class, *answers = file.names
    table = file.read(text_columns=[true_class], number_columns=answers)
    rows = table[true_class].to_pylist()
    for found, where in (
        (rows, f"rows, in column {true_class!r}"),
        (answers, "columns"),
    ):
        if sorted(map(str, found)) != sorted(names):
            raise DataError(
                f"{file.label} must have each of the classes {quoted(names, 20)} once "
                f"as its {where}. Got {quoted(found, 20)}."
            )
    costs = []
    for name in names:
        row = rows.index(name)
        cells = [table[answer][row].as_py() for answer in names]
        wrong = [cell for cell in cells if cell is None or as_amount(str(cell)) is None]
        if wrong:
            raise DataError(
                f"{file.label} must have a finite cost of at least 0 in every cell. "
                f"Got {'none' if wrong[0] is None else wrong[0]} in {file.place(row)}."
            )
        costs.append(tuple(float(cell) for cell in cells))
    return tuple(costs)


DEALING = "Fitting and testing"


def seed_option(panel: str) -> Any:
    """Return ``--seed``, listed under a heading."""
    return typer.Option(
        "--seed",
        min=0,
        max=MOST_SEED,
        metavar="N",
        help="Another number deals the rows in another way.",
        show_default="0",
        rich_help_panel=panel,
    )


AlgorithmOf = Annotated[
    Algorithm | None,
    typer.Option(
        "--algorithm",
        "-a",
        help="How trees are grown, as for branchwise fit.",
        show_default="id3; with --regression cart",
        rich_help_panel=DEALING,
    ),
]
Regression = Annotated[
    bool,
    typer.Option(
        "--regression",
        help="cart: predict the numbers of the target, not classes.",
        rich_help_panel=DEALING,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--cv",
        min=2,
        metavar="N",
        help="The number of folds, each with its share of every class.",
        show_default="10",
        rich_help_panel=DEALING,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        min=1,
        metavar="N",
        help="How many times the folds are dealt anew.",
        show_default="1",
        rich_help_panel=DEALING,
    ),
]
Seed = Annotated[int | None, seed_option(DEALING)]
FitsAtOnce = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="How many fits go side by side, -1 is one for each core; the result is "
        "the same.",
        show_default="1",
        rich_help_panel=DEALING,
    ),
]


def chosen_algorithm(given: Algorithm | None, regression: bool) -> Algorithm:
    """Return the algorithm: the one given, or the one that can do it."""
    if given is not None:
        return given
    return Algorithm.CART if regression else Algorithm.ID3
