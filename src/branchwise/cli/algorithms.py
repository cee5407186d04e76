"""From the options of ``branchwise fit`` that were given to a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any

from branchwise.cli.growing import Algorithm, Pruning
from branchwise.criteria import FOR_NUMBERS, named
from branchwise.errors import ParameterError
from branchwise.recipes import C45, CART, ID3, Recipe

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
