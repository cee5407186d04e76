"""Checks of the fields of a parsed model file, with their messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from typing import Any

from branchwise.errors import ModelFileError, quoted


def shown(value: object) -> str:
    """Format a value of a file for a message, truncated if it is long."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def fields_of(value: Any, where: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a value that must be an object with these fields, and maybe others."""
    if not isinstance(value, dict):
        raise ModelFileError(
            f"{where} must be an object with named fields, not {shown(value)}"
        )
    absent = [name for name in names if name not in value]
    if absent:
        raise ModelFileError(f"{where} lacks {quoted(absent)}")
    return value


def check_known(
    fields: dict[str, Any], known: Collection[str], where: str, what: str
) -> None:
    """Reject a field whose meaning is not known."""
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise ModelFileError(f"{where} has the unknown {what} {shown(unknown[0])}")


def typed(
    fields: dict[str, Any], name: str, where: str, what: str | tuple[str, ...]
) -> Any:
    """Return a field, which must be of one of ``CHECKS``, or among some texts."""
    value = fields[name]
    if isinstance(what, tuple):
        valid, what = value in what, f"one of {quoted(what, limit=len(what))}"
    else:
        valid = CHECKS[what](value)
    if not valid:
        raise ModelFileError(f"{name!r} of {where} must be {what}, not {shown(value)}")
    return value


def _is_square_or_null(value: object) -> bool:
    if not isinstance(value, list):
        return value is None
    return all(
        isinstance(row, list)
        and len(row) == len(value)
        and all(cost is not None and _is_number_or_null(cost) for cost in row)
        for row in value
    )


def _is_number_or_null(value: object) -> bool:
    if type(value) is int:
        return abs(value) < 2**63
    return value is None or isinstance(value, float)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_finite(value: object) -> bool:
    if type(value) is int:
        return abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)


#: The types of fields, by their names in messages.
CHECKS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "text or null": lambda value: value is None or isinstance(value, str),
    "true or false": lambda value: isinstance(value, bool),
    "a list": lambda value: isinstance(value, list),
    "a number of 64 bits": _is_number_or_null,
    "a whole number from 0": _is_count,
    "a finite number": _is_finite,
    "null or a square of numbers": _is_square_or_null,
}
