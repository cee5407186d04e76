"""Messages of the page: plain dictionaries -> calls of a workspace -> plain values.

A message is ``{"method": name, "args": {...}}``, its response ``{"result": ...}`` or
``{"error": {"message": ..., "parameter": ...}}``. Nothing here knows of HTTP: the
server and the notebook widget both use :func:`respond`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.errors import BranchwiseError, ParameterError, quoted
from branchwise.recipe.parameters import PARAMETERS
from branchwise.studio.page_data.loaded_table import PAGE_READING
from branchwise.studio.workspace import Workspace

#: The most characters of a text, and of the content of a file, as base64.
_LONGEST_TEXT = 100_000
_LONGEST_CONTENT = 1_000_000_000
#: The deepest that values of a message may be nested.
_DEEPEST = 20

Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Argument:
    """An argument of a method: what it may be, in words and as a test."""

    words: str
    accepts: Check
    required: bool = False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def _is_content(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_CONTENT


def _is_whole(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and 0 <= value < 2**53


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_value(value: Any) -> bool:
    """Whether a value may be a cell, or a class."""
    return (
        value is None or isinstance(value, bool) or _is_text(value) or _is_number(value)
    )


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value))


def _is_row(value: Any) -> bool:
    return _is_mapping(value) and all(map(_is_value, value.values()))


def _is_kinds(value: Any) -> bool:
    return _is_mapping(value) and all(map(_is_text, value.values()))


def _is_values(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_value, value))


def _is_groups(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_values, value))


TEXT = Argument("a text", _is_text)
NODE = Argument('the path of a node, such as "/" or "/0/2"', _is_text, True)
COLUMN = Argument("the name of a column", _is_text, True)
WHOLE = Argument("a whole number of at least 0", _is_whole)
#: Folds and repeats of cross-validation: each takes time.
FEW = Argument("a whole number from 1 to 100", lambda v: _is_whole(v) and 1 <= v <= 100)
NUMBER = Argument("a finite number", _is_number)
FLAG = Argument("true or false", lambda value: isinstance(value, bool), True)
CONTENT = Argument("the content of a file", _is_content, True)
VALUE = Argument("a text, a number, true or false", _is_value)
OBJECT = Argument("an object", _is_mapping)
SPLIT = {
    "threshold": VALUE,
    "groups": Argument("a list of lists of values", _is_groups),
    "values": Argument(
        "true, or a list of values", lambda v: v is True or _is_values(v)
    ),
}


def _required(argument: Argument) -> Argument:
    return Argument(argument.words, argument.accepts, required=True)


#: The methods of a workspace that a message may call, with their arguments.
METHODS: dict[str, dict[str, Argument]] = {
    "state": {},
    "load": {"name": _required(TEXT), "content": CONTENT},
    "reread": {"reading": _required(OBJECT)},
    "start": {
        "target": COLUMN,
        "positive": VALUE,
        "kinds": Argument("an object of texts, by column", _is_kinds),
        "recipe": OBJECT,
        "validation_fraction": NUMBER,
    },
    "apply": {"action": _required(OBJECT)},
    "undo": {},
    "redo": {},
    "goto": {"number": _required(WHOLE)},
    "candidates": {"node": NODE},
    "preview": {"node": NODE, "column": COLUMN, **SPLIT},
    "distribution": {"node": NODE, "column": COLUMN},
    "node": {"node": NODE, "rows": WHOLE, "worked": Argument(FLAG.words, FLAG.accepts)},
    "score": {"method": TEXT, "folds": FEW, "repeats": FEW},
    "explain": {"row": Argument("an object of cells, by column", _is_row, True)},
    "export": {
        "target": _required(TEXT),
        "options": Argument("an object of texts, by name", _is_kinds),
    },
    "script": {},
    "save": {},
    "open": {"content": CONTENT},
    "diff": {"other": CONTENT},
    "teaching": {"on": FLAG},
    "guess": {"node": NODE, "column": COLUMN},
    "reveal": {"node": NODE},
}


#: With these words messages of errors begin that are about one of them.
_NAMES = frozenset(
    (
        *("algorithm", "regression", *PARAMETERS, *PAGE_READING),
        *(name for arguments in METHODS.values() for name in arguments),
    )
)


def respond(workspace: Workspace, message: object) -> dict[str, Any]:
    """Respond to a message; whatever it holds, no exception leaves this function.

    Parameters
    ----------
    workspace : Workspace
        What the messages of one page are about.
    message : dict
        A method and its arguments.

    Returns
    -------
    dict
        The result, or an error with a sentence and the argument that it is about.
    """

    def call() -> object:
        method, args = _checked(message)
        return getattr(workspace, method)(**args)

    return _guarded(workspace, call)


def response_text(workspace: Workspace, message: object) -> str:
    """Respond to a message with JSON."""
    return json.dumps(respond(workspace, message), allow_nan=False)


def loaded_text(workspace: Workspace) -> str:
    """Read the table that was received; respond as to the method ``load``."""
    return json.dumps(_guarded(workspace, workspace.received), allow_nan=False)


def _guarded(workspace: Workspace, call: Callable[[], object]) -> dict[str, Any]:
    """Return the result of a call, or what went wrong."""
    try:
        return {"result": plain_value(call())}
    except BranchwiseError as error:
        return _error(str(error), _parameter_of(error))
    except MemoryError:
        return _error("There is not enough memory for this.")
    except RecursionError:
        return _error("The message is nested too deeply.")
    except Exception as error:
        # The page must live on.
        workspace.failed(error)
        return _error(
            "This could not be done, because of a mistake in branchwise "
            f"({type(error).__name__}). The session is as it was before; please "
            "report it."
        )


def _checked(message: object) -> tuple[str, dict[str, Any]]:
    """Return the method and the arguments of a message that is well formed."""
    if not isinstance(message, dict):
        raise MessageError("A message must be an object with method and args.", None)
    method, args = message.get("method"), message.get("args", {})
    if not isinstance(method, str) or method not in METHODS:
        raise MessageError(
            f"method must be one of {quoted(METHODS, 99)}. Got {_short(method)}.",
            "method",
        )
    if not isinstance(args, dict):
        raise MessageError(f"args must be an object. Got {_short(args)}.", "args")
    return method, _checked_args(method, args)


def _checked_args(method: str, args: Mapping[Any, Any]) -> dict[str, Any]:
    known, found = METHODS[method], {}
    for name, value in args.items():
        if name not in known:
            allowed = quoted(known, 99) if known else "none"
            raise MessageError(
                f"{method} has no argument {_short(name)}; it has {allowed}.", None
            )
        if value is None and not known[name].required:
            continue
        if not known[name].accepts(value) or _depth(value) > _DEEPEST:
            raise MessageError(
                f"{name} must be {known[name].words}. Got {_short(value)}.", name
            )
        found[name] = value
    for name, argument in known.items():
        if argument.required and name not in found:
            raise MessageError(f"{method} needs {name}: {argument.words}.", name)
    return found


class MessageError(ParameterError):
    """A message that is not well formed; ``parameter`` is the argument at fault."""

    def __init__(self, message: str, parameter: str | None) -> None:
        super().__init__(message)
        self.parameter = parameter


def _parameter_of(error: BranchwiseError) -> str | None:
    """Return the argument, parameter or column that an error is about, if it tells."""
    if isinstance(error, MessageError):
        return error.parameter
    first = str(error).partition(" ")[0].partition("=")[0]
    return first if first in _NAMES else getattr(error, "column", None)


def _error(message: str, parameter: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "parameter": parameter}}


def _short(value: object) -> str:
    """Write a value of a message, only the beginning of a long one."""
    if isinstance(value, (dict, list)):
        return (
            f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value):,}"
        )
    text = repr(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _depth(value: object) -> int:
    """Return how deeply a value is nested, without recursion."""
    depth, level = 0, [value]
    while level and depth <= _DEEPEST:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        level, depth = inner, depth + 1
    return depth


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it: no NumPy types, None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain_value(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain_value(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
