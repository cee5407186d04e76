"""The recipes of ensembles that growing options make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from branchwise.cli.options import check_idle, growing
from branchwise.errors import ParameterError
from branchwise.recipe.ensemble_recipe import (
    ENSEMBLE_PARAMETERS,
    NUMBER_LOSSES,
    EnsembleRecipe,
    boosted_recipe,
    forest_recipe,
    gradient_recipe,
    rules_recipe,
)
from branchwise.recipe.parameters import PARAMETERS

#: The algorithm of the trees, unless ``--base`` names one.
_BASES = {"forest": "cart", "boosted": "c4.5"}


def ensemble_recipe(
    algorithm: str, regression: bool, given: Mapping[str, Any]
) -> EnsembleRecipe:
    """Fill in the recipe of an ensemble with the parameters that were given.

    Costs are left for when the classes are known.
    """
    name = growing.full_name(algorithm, regression)
    if name not in ENSEMBLE_PARAMETERS:
        raise ParameterError(
            f"--algorithm {algorithm} predicts classes. Got --regression: give "
            "--algorithm gradient, forest or cart, too, or leave it out."
        )
    growing.check_parameters(name, given)
    base = given.get("base", _BASES.get(algorithm, ""))
    growing.check_criterion(given, growing.full_name(base, regression), "trees of")
    if "n_iter_no_change" not in given:
        idle = {
            growing.option_of(other): given.get(other)
            for other in ("validation_fraction", "tol")
        }
        check_idle(idle, "unless --n-iter-no-change is given. Give both.")
    values = {**given, "pruning": _pruning(algorithm, given)}
    effective = {n: v for n, v in given.items() if n != "validation_fraction"}
    growing.check_effects(effective, values, "the pruning of the trees")
    return _recipe(algorithm, regression, given)


def _pruning(algorithm: str, given: Mapping[str, Any]) -> str | None:
    """Return how the trees are pruned."""
    if algorithm == "boosted":
        pruned = given.get("base", "c4.5") == "c4.5" and "prune" not in given
        return "error-based" if pruned else None
    usual = "cost-complexity" if given.get("ccp_alpha", 0) != 0 else "none"
    method = given.get("pruning", usual)
    return None if method == "none" else method


def _recipe(
    algorithm: str, regression: bool, given: Mapping[str, Any]
) -> EnsembleRecipe:
    values = {name: value for name, value in given.items() if name != "costs"}
    if values.get("pruning") == "none":
        values["pruning"] = None
    if algorithm == "boosted":
        return boosted_recipe(values)
    if algorithm == "rules":
        return rules_recipe(values)
    if algorithm == "gradient" and regression:
        loss = values.get("loss", "squared_error")
        PARAMETERS["loss"].check(loss, NUMBER_LOSSES)
        return gradient_recipe(loss, values)
    if algorithm == "gradient":
        return gradient_recipe("log_loss", values)
    return forest_recipe(regression, values)
