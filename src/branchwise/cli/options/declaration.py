"""Declarations of options: a call for each option, a function for each group."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import typer

Subcommand = Callable[..., None]
_Group = TypeVar("_Group", bound=Callable[..., Any])


def argument(metavar: str, text: str, default: Any = ...) -> Any:
    """Declare an argument; it must be given unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=text, show_default=False)


def option(
    names: str,
    text: str,
    shown: str | None = None,
    *,
    default: Any = None,
    panel: str | None = None,
    choices: Sequence[str] = (),
    **limits: Any,
) -> Any:
    """Declare an option.

    Parameters
    ----------
    names : str
        Its names and what stands for its value in the help: ``--output -o FILE``.
    text : str
        The help.
    shown : str or None
        The default value in words, where the help does not show the value itself.
    default : object
        The default value; with ``...`` the option must be given.
    panel : str or None
        The heading that lists it in the help.
    choices : sequence of str
        The values to choose from, if there is a choice.
    **limits : object
        ``min`` and ``max`` of a number.
    """
    words = names.split()
    flags = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(flags) :]) or None
    if choices:
        metavar = f"<{'|'.join(choices)}>"
        limits["parser"] = functools.partial(_one_of, choices)
    has_default = default not in (None, False, ...)
    return typer.Option(
        default,
        *flags,
        metavar=metavar,
        help=text,
        show_default=shown or has_default,
        rich_help_panel=panel,
        **limits,
    )


def _one_of(choices: Sequence[str], given: str) -> str:
    if given not in choices:
        known = ", ".join(map(repr, choices))
        raise typer.BadParameter(f"{given!r} is not one of {known}.")
    return given


def flag(names: str, text: str, panel: str | None = None) -> Any:
    """Declare an option without a value, which is off unless given."""
    return option(names, text, default=False, panel=panel)


def listed_under(panel: str) -> Callable[[_Group], _Group]:
    """List the options of a group under a heading of the help."""

    def decorate(group: _Group) -> _Group:
        for parameter in inspect.signature(group).parameters.values():
            parameter.default.rich_help_panel = panel
        return group

    return decorate


def takes(**groups: Callable[..., Any]) -> Callable[[Subcommand], Subcommand]:
    """Add groups of options to a subcommand.

    The parameters of each function are options; what it makes of them is passed to
    the subcommand as the parameter of this name, in whose place the help lists them.
    """

    def decorate(subcommand: Subcommand) -> Subcommand:
        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in _parameters(subcommand).items():
            own = _parameters(groups[name]) if name in groups else {name: parameter}
            parameters |= own

        @functools.wraps(subcommand)
        def run(**given: Any) -> None:
            for name, group in groups.items():
                own = {option: given.pop(option) for option in _parameters(group)}
                given[name] = group(**own)
            subcommand(**given)

        run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {n: p.annotation for n, p in parameters.items()}
        del run.__wrapped__
        return run

    return decorate


def leaving_out(
    group: Callable[..., Any], *names: str, then: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Return a group without some of its options, which are passed as None.

    ``then`` is applied to what the group makes of the others.
    """
    parameters = [p for n, p in _parameters(group).items() if n not in names]

    def smaller(**given: Any) -> Any:
        return then(group(**given, **dict.fromkeys(names)))

    smaller.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return smaller


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function, as keyword-only."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.signature(function, eval_str=True)
    return {n: p.replace(kind=keyword) for n, p in signature.parameters.items()}
