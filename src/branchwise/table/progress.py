"""Whom to tell how much of a table has been read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Told = Callable[[str], None]

_told: ContextVar[Told | None] = ContextVar("_told", default=None)


@contextmanager
def telling(told: Told) -> Iterator[None]:
    """Tell how much has been read, such as "1,000 rows", while a block of code runs.

    Parameters
    ----------
    told : callable
        Takes the text; it may be called from another thread.
    """
    before = _told.set(told)
    try:
        yield
    finally:
        _told.reset(before)


def reading_progress() -> Told | None:
    """Return whom to tell, if anybody."""
    return _told.get()
