"""Growing options, one for each parameter, and the recipes that they make.

An option that is not given is None: each algorithm has its own defaults, and an option
that it does not have is an error only if it was given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import typer

from branchwise.cli.options import (
    CATEGORICAL,
    IGNORE,
    NA_VALUES,
    NUMERIC,
    SHARED,
    option,
)
from branchwise.errors import MOST_SEED, ParameterError
from branchwise.recipe import (
    CRITERIA,
    FIELDS,
    RECIPES,
    Recipe,
    default_text,
    pruning_of,
)
from branchwise.recipe.ensemble_recipe import (
    ENSEMBLE_FIELDS,
    TREE_PARAMETERS,
    EnsembleRecipe,
    tree_recipe,
)
from branchwise.recipe.parameters import (
    ALPHA_RULES,
    COLUMN_RULES,
    PARAMETERS,
    Parameter,
    Pruning,
)

#: How the value of an option is read from the command line, by the kind of parameter.
_TYPES: dict[str, type] = {"whole": int, "number": float, "flag": bool}
#: Parameters of a table or of a run, not of a tree.
_NOT_OF_TREES = ("weight", "n_jobs")


def key_of(parameter: Parameter) -> str:
    """Return the name of an option among the arguments of a subcommand."""
    return parameter.option.removeprefix("--").replace("-", "_")


def option_of(parameter: str) -> str:
    """Name the option that sets a parameter of an estimator."""
    if parameter in PARAMETERS:
        return PARAMETERS[parameter].option
    return f"--{parameter.replace('_', '-')}"


def declared(
    name: str, text: str = "", panel: str | None = None, shows_default: bool = True
) -> inspect.Parameter:
    """Return the option of a parameter, as an argument of a subcommand.

    ``text`` is the help, where it is not that of the parameter.
    """
    parameter = PARAMETERS[name]
    allowed = parameter.allowed
    text = text or _help(parameter)
    kind = _TYPES.get(allowed.kind, str)
    if kind is bool:
        default = option(parameter.option, text, default=False, panel=panel)
    else:
        none = ("none",) if allowed.accepts and allowed.accepts(None) else ()
        default = option(
            f"{parameter.option} {parameter.metavar or ''}",
            text,
            (shows_default and default_text(parameter)) or None,
            panel=panel,
            choices=(*none, *allowed.choices) if allowed.choices else (),
            min=allowed.least,
        )
        kind = kind | None  # type: ignore[assignment]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(
        key_of(parameter), keyword, default=default, annotation=kind
    )


def _help(parameter: Parameter) -> str:
    """Return the help of an option, after the one algorithm that has it."""
    text = parameter.off or parameter.help
    if len(parameter.algorithms) != 1:
        return text
    if ": " in text:
        return f"{parameter.algorithms[0]}, {text}"
    return f"{parameter.algorithms[0]}: {text[0].lower()}{text[1:]}"


def group(*options: inspect.Parameter) -> Callable[..., dict[str, Any]]:
    """Return a group of options that are passed on by name."""

    def given(**values: Any) -> dict[str, Any]:
        return values

    given.__signature__ = inspect.Signature(list(options))  # type: ignore[attr-defined]
    return given


def _columns(
    *,
    categorical: list[str] | None = CATEGORICAL,
    numeric: list[str] | None = NUMERIC,
    ignore: list[str] | None = IGNORE,
    missing: list[str] | None = NA_VALUES,
    categories: list[str] | None = SHARED.option("--categories"),
) -> None:
    """Declare the options of columns."""


#: The heading of the options of forests, which ``branchwise fit`` alone has.
_FORESTS = "Forests"
#: The options of columns, growing, pruning and weights.
OPTIONS = (
    *inspect.signature(_columns, eval_str=True).parameters.values(),
    *(
        declared(name, panel=p.group)
        for name, p in PARAMETERS.items()
        if p.group and p.group != _FORESTS
    ),
)
growing_options = group(*OPTIONS)
forest_options = group(
    *(
        declared(name, panel=_FORESTS)
        for name, p in PARAMETERS.items()
        if p.group == _FORESTS
    )
)


def given_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of estimators that options set."""
    given = {}
    for name, parameter in PARAMETERS.items():
        if parameter.group and name not in _NOT_OF_TREES:
            written = options.get(key_of(parameter))
            if written is not None and written is not False:
                given[name] = _value(parameter, written)
    return given


def _value(parameter: Parameter, written: Any) -> Any:
    match parameter.allowed.kind:
        case "flag":
            return not parameter.off
        case "cases":  # 5 is five cases, 0.05 is a share
            words = "a whole number or a share between 0 and 1"
            return _number(parameter.option, written, words, int, float)
        case "features" if written == "all":
            return None
        case "features" if written not in COLUMN_RULES:
            words = f"a number, a share, all, {' or '.join(COLUMN_RULES)}"
            return _number(parameter.option, written, words, int, float)
        case "alpha" if written not in ALPHA_RULES:
            words = f"a number, {' or '.join(ALPHA_RULES)}"
            return _number(parameter.option, written, words, float)
    return written


def _number(name: str, text: str, words: str, *types: type) -> Any:
    """Read a number as the first type that can."""
    for read in types:
        with suppress(ValueError):
            return read(text)
    raise typer.BadParameter(f"{name} must be {words}. Got {text!r}.")


#: The value of ``--class-weight`` that balances the sample of each tree of a forest.
BALANCED_SAMPLES = "balanced_subsample"
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
    """Fill in a recipe with the parameters of the estimators that were given.

    Those that are not in a recipe are checked all the same. Costs are left for when
    the classes are known.
    """
    name = full_name(algorithm, regression)
    if name not in RECIPES:
        raise ParameterError(
            f"--regression applies only to --algorithm cart. Got {algorithm}: "
            "give --algorithm cart, too."
        )
    for parameter in given:
        if not has_parameter(name, parameter):
            known = " or ".join(PARAMETERS[parameter].algorithms)
            raise ParameterError(
                f"{option_of(parameter)} applies only to --algorithm {known}. Got "
                f"{name}: choose another algorithm, or leave the option out."
            )
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


#: The value of ``--algorithm`` for forests.
FOREST = "forest"


def forest_recipe(regression: bool, options: Mapping[str, Any]) -> EnsembleRecipe:
    """Fill in the recipe of a forest with the options of ``branchwise fit``."""
    given = given_parameters(options)
    own = {*ENSEMBLE_FIELDS, "base"}
    tree = {*TREE_PARAMETERS, *(() if regression else ("class_weight", "priors"))}
    for parameter in given:
        if parameter not in own | tree - {"pruning", "ccp_alpha"}:
            known = " or ".join(PARAMETERS[parameter].algorithms)
            raise ParameterError(
                f"{option_of(parameter)} applies only to --algorithm {known}. Got "
                f"{FOREST}: choose another algorithm, or leave the option out."
            )
    base = given.get("base", "cart")
    name = full_name(base, regression)
    if "criterion" in given and given["criterion"] not in CRITERIA.get(name, ()):
        known = ", ".join(CRITERIA.get(name, ())) or "left out"
        raise ParameterError(
            f"--criterion must be {known} with trees of {name}. Got "
            f"{given['criterion']}."
        )
    values = {name: given[name] for name in ENSEMBLE_FIELDS if name in given}
    if regression:
        values.setdefault("max_features", None)
    if given.get("class_weight") == BALANCED_SAMPLES:
        values["balanced_subsample"] = True
    trees = {name: value for name, value in given.items() if name != "costs"}
    return EnsembleRecipe(tree=tree_recipe(base, regression, trees), **values)


def pruning_method(name: str, given: Mapping[str, Any]) -> Pruning | None:
    """Return how an algorithm prunes, with the parameters that were given."""
    if given.get("pruning") == "none":
        return None
    return pruning_of(RECIPES[name], given)


def has_effect(parameter: str, values: Mapping[str, Any]) -> bool:
    """Whether a parameter has an effect with the values of others."""
    needed = PARAMETERS[parameter].only_with
    return needed is None or values.get(needed[0], FIELDS[needed[0]]) == needed[1]


def effective_parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have an effect on an algorithm."""
    own = {n: value for n, value in given.items() if has_parameter(name, n)}
    values = own | {"pruning": pruning_method(name, own)}
    return {n: value for n, value in own.items() if has_effect(n, values)}


def check_effects(
    given: Mapping[str, Any], values: Mapping[str, Any], method: str = "--pruning"
) -> None:
    """Reject parameters that have no effect.

    ``values`` are the same, with the pruning method that they choose; ``method`` is the
    option that names it.
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


#: The algorithm of every subcommand, for classes.
_DEFAULT = "c4.5"
EVALUATION = "Fitting and testing"


ALGORITHM, EVALUATED_ALGORITHM = (
    SHARED.option("--algorithm", panel=panel, choices=ALGORITHMS)
    for panel in (None, EVALUATION)
)
FIT_ALGORITHM = SHARED.option("--algorithm", choices=(*ALGORITHMS, FOREST))
REGRESSION, EVALUATED_REGRESSION = (
    SHARED.flag("--regression", panel=panel) for panel in (None, EVALUATION)
)
FOLDS = SHARED.option("--cv", min=2)
REPEATS = SHARED.option("--repeats", min=1)
SEED = SHARED.option("--seed", min=0, max=MOST_SEED)


def chosen_algorithm(given: str | None, regression: bool) -> str:
    """Return the algorithm: the one given, or the default."""
    return given or ("cart" if regression else _DEFAULT)
