"""The growing options: one for each parameter of ``branchwise.recipe.PARAMETERS``.

An option that is not given is None: each algorithm has its own defaults, and an option
that it does not have is an error only if it was given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import typer

from branchwise.cli.options.declaration import flag, option
from branchwise.cli.options.shared import (
    CATEGORICAL,
    IGNORE,
    NA_VALUES,
    NUMERIC,
    READING,
)
from branchwise.recipe import ALPHA_RULES, PARAMETERS, Parameter, default_text

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

    Parameters
    ----------
    name : str
        The parameter.
    text : str
        The help, where it is not that of the parameter.
    panel : str or None
        The heading that lists it in the help.
    shows_default : bool
        Whether the help shows the default.
    """
    parameter = PARAMETERS[name]
    allowed = parameter.allowed
    text = text or _help(parameter)
    kind = _TYPES.get(allowed.kind, str)
    if kind is bool:
        default = flag(parameter.option, text, panel)
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
    categories: list[str] | None = option(
        "--categories COLUMN=A,B,...",
        "All possible values of a column, in order; may be repeated.",
        panel=READING,
    ),
) -> None:
    """Declare the options of columns."""


#: The options of columns, growing, pruning and weights.
growing_options = group(
    *inspect.signature(_columns, eval_str=True).parameters.values(),
    *(declared(name, panel=p.group) for name, p in PARAMETERS.items() if p.group),
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
        case "cases":
            return _cases(parameter.option, written)
        case "alpha":
            return _alpha(parameter.option, written)
    return written


def _cases(name: str, text: str) -> float:
    """Read a number of cases or a share: 5 is five cases, 0.05 is a share."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"{name} must be a whole number or a share between 0 and 1. Got {text!r}."
        ) from None


def _alpha(name: str, text: str) -> float | str:
    """Read a complexity parameter: a number, or the rule that chooses it."""
    if text in ALPHA_RULES:
        return text
    try:
        return float(text)
    except ValueError:
        rules = " or ".join(ALPHA_RULES)
        raise typer.BadParameter(
            f"{name} must be a number, {rules}. Got {text!r}."
        ) from None
