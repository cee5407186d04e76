"""Recipes as the page chooses them: an algorithm and its parameters by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from branchwise.errors import ParameterError, quoted
from branchwise.recipe import (
    CRITERIA,
    FIELDS,
    RECIPES,
    Recipe,
    default_text,
    pruning_of,
)
from branchwise.recipe.parameters import PARAMETERS, Parameter

_REGRESSION = " --regression"
#: The algorithm for classes, as on the command line.
_DEFAULT = "c4.5"
#: Parameters that are no fields of a recipe, but choose some.
_CHOICES = ("prune", "group_values")
#: Fields that the page has no form for.
_LEFT_OUT = ("costs", "costs_in", "algorithm", "validation", "validation_fraction")


def algorithms(regression: bool) -> list[dict[str, str]]:
    """Return the algorithms for classes or numbers, with what they are called."""
    return [
        {"name": name.removesuffix(_REGRESSION), "words": recipe.algorithm}
        for name, recipe in RECIPES.items()
        if recipe.is_regression == regression
    ]


def own_parameters(name: str) -> dict[str, Parameter]:
    """Return the parameters of an algorithm that the page may choose."""
    return {
        each: parameter
        for each, parameter in PARAMETERS.items()
        if parameter.group
        and name in parameter.algorithms
        and (each in FIELDS or each in _CHOICES)
        and each not in _LEFT_OUT
    }


@cache
def recipe_choices() -> dict[str, list[dict[str, Any]]]:
    """Return the parameters of each algorithm, for the form of the page."""
    return {
        name: [
            {
                "name": parameter.name,
                "kind": parameter.allowed.kind,
                "choices": list(parameter.allowed.choices or ()),
                "default": default_text(parameter),
                "help": parameter.help,
            }
            for parameter in own_parameters(name).values()
        ]
        for name in RECIPES
    }


def recipe_of_options(given: Mapping[str, Any], regression: bool) -> Recipe:
    """Return the recipe of an algorithm with the parameters that are given."""
    options = dict(given)
    options.pop("regression", None)
    algorithm = options.pop("algorithm", None)
    if algorithm is None:
        algorithm = "cart" if regression else _DEFAULT
    name = f"{algorithm}{_REGRESSION}" if regression else algorithm
    if (
        not isinstance(algorithm, str)
        or name not in RECIPES
        or _REGRESSION in algorithm
    ):
        known = [each for each in RECIPES if _REGRESSION not in each]
        allowed = (
            "'cart' to predict numbers" if regression else f"one of {quoted(known)}"
        )
        raise ParameterError(f"algorithm must be {allowed}. Got {algorithm!r:.60}.")
    own = own_parameters(name)
    for parameter in options:
        if parameter not in own:
            raise ParameterError(
                f"recipe has no parameter {parameter!r:.60} for {name}. It has "
                f"{quoted(own, 99)}."
            )
    criterion = options.get("criterion")
    if criterion is not None and criterion not in CRITERIA.get(name, ()):
        known = list(CRITERIA.get(name, ()))
        allowed = f"one of {quoted(known)}" if known else "left out"
        raise ParameterError(
            f"criterion must be {allowed} with {name}. Got {criterion!r:.60}."
        )
    for flag in _CHOICES:
        if not isinstance(options.get(flag, False), bool):
            raise ParameterError(
                f"{flag} must be true or false. Got {options[flag]!r:.60}."
            )
    values = {key: value for key, value in options.items() if key in FIELDS}
    if values.get("pruning") == "none":
        options["prune"] = False
        del values["pruning"]
    values["pruning"] = pruning_of(RECIPES[name], options)
    if options.get("group_values"):
        values["branching"] = "groups"
    return replace(RECIPES[name], **values)
