"""Statements of databases that can be ended: by Ctrl-C, or when they take too long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")

#: Steps of SQLite's machine after which the time is looked at.
_STEPS = 100_000
#: Seconds after which Python looks for Ctrl-C, and interrupts again.
_POLL = 0.1


class OverdueError(Exception):
    """A statement gave no row for as long as it may take."""


def run_interruptibly(
    work: Callable[[], T], interrupt: Callable[[], None], seconds: float | None
) -> T:
    """Call something that waits for a database, in a thread of its own.

    Drivers do not look for Ctrl-C while they wait; the calling thread does.

    Parameters
    ----------
    work : callable
        What to call.
    interrupt : callable
        What makes it end early, by an error.
    seconds : float or None
        How long it may take; None is for ever.

    Raises
    ------
    OverdueError
        If it took longer.
    """
    found: list[T] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def call() -> None:
        try:
            found.append(work())
        except BaseException as error:  # raised by the caller
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=call, daemon=True).start()
    try:
        in_time = _is_done(done, seconds)
    finally:
        # More than once: what has not begun yet does not notice.
        while not done.is_set():
            interrupt()
            done.wait(_POLL)
    if not in_time:
        raise OverdueError
    if failed:
        raise failed[0]
    return found[0]


def _is_done(done: threading.Event, seconds: float | None) -> bool:
    begun = monotonic()
    while not done.wait(_POLL):
        if seconds is not None and monotonic() - begun > seconds:
            return False
    return True


def run_in_sqlite(work: Callable[[], T], connection: Any, seconds: float | None) -> T:
    """Call something that waits for SQLite, whose connections belong to one thread.

    The connection has no progress handler afterwards.

    Parameters
    ----------
    work : callable
        What to call.
    connection : sqlite3.Connection
        What it waits for.
    seconds : float or None
        How long it may take; None is for ever.

    Raises
    ------
    OverdueError
        If it took longer.
    """
    reasons: list[BaseException] = []
    checks = _checks(seconds, reasons)
    next(checks)
    connection.set_progress_handler(checks.__next__, _STEPS)
    try:
        return work()
    except Exception:
        if reasons:
            raise reasons[0] from None
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _checks(seconds: float | None, reasons: list[BaseException]) -> Iterator[bool]:
    """Return again and again whether there is a reason to end a statement.

    Ctrl-C is raised where Python code goes on, and SQLite forgets what its handler
    raises: a generator, unlike a function, goes on where it can be caught.
    """
    begun = monotonic()
    while True:
        try:
            yield bool(reasons)
            if seconds is not None and monotonic() - begun > seconds:
                reasons.append(OverdueError())
        except (Exception, KeyboardInterrupt, SystemExit) as reason:
            reasons.append(reason)
