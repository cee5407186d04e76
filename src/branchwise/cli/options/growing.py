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
from branchwise.recipe.ensemble_recipe import ENSEMBLE_PARAMETERS
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
    order: list[str] | None = SHARED.option("--order"),
) -> None:
    """Declare the options of columns."""


#: The heading of the options of forests and of boosting.
_ENSEMBLES = "Ensembles"
#: The options of columns, growing, pruning and weights.
OPTIONS = (
    *inspect.signature(_columns, eval_str=True).parameters.values(),
    *(
        declared(name, panel=p.group)
        for name, p in PARAMETERS.items()
        if p.group and p.group != _ENSEMBLES
    ),
)
growing_options = group(*OPTIONS)
ensemble_options = group(
    *(
        declared(name, panel=_ENSEMBLES)
        for name, p in PARAMETERS.items()
        if p.group == _ENSEMBLES
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
            words = f"a number, a share, {', '.join(COLUMN_RULES)} or all"
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


#: The values of ``--algorithm``: of single trees, and of ensembles.
ALGORITHMS = tuple(name for name in RECIPES if "--" not in name)
ENSEMBLES = tuple(name for name in ENSEMBLE_PARAMETERS if "--" not in name)


def full_name(algorithm: str, regression: bool) -> str:
    """Return the name of an algorithm in ``branchwise.recipe``."""
    return f"{algorithm} --regression" if regression else algorithm


def has_parameter(algorithm: str, parameter: str) -> bool:
    """Whether an algorithm has a parameter."""
    if algorithm in ENSEMBLE_PARAMETERS:
        return parameter in ENSEMBLE_PARAMETERS[algorithm]
    return algorithm in PARAMETERS[parameter].algorithms


def check_parameters(name: str, given: Mapping[str, Any]) -> None:
    """Reject parameters that an algorithm does not have."""
    for parameter in given:
        if has_parameter(name, parameter):
            continue
        every = (*RECIPES, *ENSEMBLE_PARAMETERS)
        known = [one for one in every if has_parameter(one, parameter)]
        if name in RECIPES:  # some subcommands have single trees alone
            known = [one for one in known if one in RECIPES] or known
        raise ParameterError(
            f"{option_of(parameter)} applies only to --algorithm "
            f"{' or '.join(known)}. Got {name}: choose another algorithm, or leave the "
            "option out."
        )


def check_criterion(
    given: Mapping[str, Any], name: str, words: str = "--algorithm"
) -> None:
    """Reject a criterion that the trees of an algorithm do not have."""
    known = CRITERIA.get(name, ())
    if "criterion" in given and given["criterion"] not in known:
        allowed = f"one of {', '.join(known)}" if known else "left out"
        raise ParameterError(
            f"--criterion must be {allowed} with {words} {name}. Got "
            f"{given['criterion']}."
        )


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
            "--regression applies only to --algorithm cart, forest or gradient. Got "
            f"{algorithm}: give one of them, too."
        )
    check_parameters(name, given)
    if "pruning" in given and "prune" in given:
        raise ParameterError(
            "--no-prune and --pruning contradict each other. Give one of them."
        )
    if RECIPES[name].algorithm == "CART" and "pruning" not in given:
        # An alpha of 0 prunes nothing, as for the estimators.
        given = {n: v for n, v in given.items() if (n, v) != ("ccp_alpha", 0)}
    method = pruning_method(name, given)
    check_effects(given, _effective_values(name, given))
    _check_rows_to_prune_with(method, given)
    if regression and method == "error-based":
        raise ParameterError(
            "--pruning error-based counts wrong classes, which --regression has none "
            "of. Use reduced-error or cost-complexity."
        )
    values = {n: v for n, v in given.items() if n in FIELDS and n != "costs"}
    check_criterion(given, name)
    if given.get("group_values"):
        values["branching"] = "groups"
    return replace(RECIPES[name], **values | {"pruning": method})


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
    if name in ENSEMBLE_PARAMETERS:
        return _effective_in_ensembles(own)
    values = _effective_values(name, own)
    return {n: value for n, value in own.items() if has_effect(n, values)}


def _effective_values(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an algorithm's recipe, with the parameters given."""
    values = (
        vars(RECIPES[name]) | dict(given) | {"pruning": pruning_method(name, given)}
    )
    if given.get("group_values"):
        values["branching"] = "groups"
    return values


def _effective_in_ensembles(given: dict[str, Any]) -> dict[str, Any]:
    """Leave out how single trees are pruned: by held-out rows, or in folds."""
    idle = [
        ("pruning", given.get("pruning") == "reduced-error"),
        ("ccp_alpha", given.get("ccp_alpha") in ALPHA_RULES),
        ("validation_fraction", "n_iter_no_change" not in given),
        ("tol", "n_iter_no_change" not in given),
    ]
    return {n: v for n, v in given.items() if (n, True) not in idle}


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
        if other == "branching":
            # Only --group-values changes that.
            raise ParameterError(
                f"{option_of(parameter)} has no effect without "
                f"{option_of('group_values')}. Give it, too."
            )
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
    SHARED.option("--algorithm", panel=panel, choices=(*ALGORITHMS, *ENSEMBLES))
    for panel in (None, EVALUATION)
)
#: Where only a single tree will do.
TREE_ALGORITHM = SHARED.option(
    "--algorithm",
    text="id3: one branch per value, by gain; c4.5: Quinlan's C4.5; cart: Breiman's "
    "two-way splits.",
    choices=ALGORITHMS,
)
REGRESSION, EVALUATED_REGRESSION = (
    SHARED.flag("--regression", panel=panel) for panel in (None, EVALUATION)
)
FOLDS = SHARED.option("--cv", min=2)
REPEATS = SHARED.option("--repeats", min=1)
SEED = SHARED.option("--seed", min=0, max=MOST_SEED)


def chosen_algorithm(given: str | None, regression: bool) -> str:
    """Return the algorithm: the one given, or the default."""
    return given or ("cart" if regression else _DEFAULT)
