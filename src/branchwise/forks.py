"""Locks and cached properties that survive a fork while other threads work.

A child of ``fork`` has the forking thread only. A lock that another thread held at
that moment is never released there, and the child hangs when it wants it.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801  (named as in functools)
        """``functools.cached_property`` of Python 3.12, which has no lock.

        That of 3.11 holds one lock for all instances while it computes. Threads that
        ask at the same time compute the same value twice.
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
