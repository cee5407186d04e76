"""The signs of conditions: ``<=`` in plain text, ``≤`` in media that have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TYPESET = ContextVar("_TYPESET", default=False)
_SIGNS = {"<=": "≤", ">=": "≥"}


@contextmanager
def typeset_signs() -> Iterator[None]:
    """Write conditions with the signs of mathematics within."""
    before = _TYPESET.set(True)
    try:
        yield
    finally:
        _TYPESET.reset(before)


def is_typeset() -> bool:
    """Tell whether conditions are written with the signs of mathematics now."""
    return _TYPESET.get()


def sign(op: str, typeset: bool = False) -> str:
    """Write an operator, as ``typeset`` or the medium has it."""
    return _SIGNS.get(op, op) if typeset or _TYPESET.get() else op
