"""Number of threads, and locks and cached properties that survive a fork."""

from __future__ import annotations

import numbers
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, TypeVar

from branchwise.errors import ParameterError

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801  (named as in functools)
        """``functools.cached_property`` of Python 3.12, which has no lock.

        That of 3.11 holds one lock for all instances while it computes. Threads that
        read it at the same time compute the same value twice.
        """

        def __init__(self, compute: Any) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's ``n_jobs`` into a number of threads."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ParameterError(
            "n_jobs must be None or a whole number other than 0 (-1: all cores). Got "
            f"{n_jobs!r} instead."
        )
    if n_jobs > 0:
        return min(int(n_jobs), 256)
    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> list[Result]:
    """Call a function for every item, and return the results in the same order.

    With any number of threads the error, if there is one, is that of the first item
    in order that has one. Threads only help where the function releases the GIL.
    """
    if threads == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def as_done(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    threads: int,
    stop: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Result]]:
    """Call a function for every item, and yield (position, result) as it is done.

    When the caller stops (Ctrl-C, an error), pending items are cancelled, and ``stop``
    is called, which may end those that have begun.
    """
    if threads == 1:
        for at, item in enumerate(items):
            yield at, function(item)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        begun = {pool.submit(function, item): at for at, item in enumerate(items)}
        for future in as_completed(begun):
            yield begun[future], future.result()
    finally:
        stop()
        pool.shutdown(wait=True, cancel_futures=True)


__all__ = ["cached_property", "fork_safe_lock"]


def fork_safe_lock() -> threading.Lock:
    """Return a lock that no thread holds while the process forks.

    It is meant for locks of modules, which live as long as the process: those of
    objects would be kept alive.
    """
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire,
            after_in_parent=lock.release,
            after_in_child=lock.release,
        )
    return lock
