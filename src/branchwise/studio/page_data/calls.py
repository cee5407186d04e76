"""Calls of the page, which work beside them waits for."""

from __future__ import annotations

import threading


class Calls:
    """Calls of the page that are in progress, for work beside them to wait for."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until there are none."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count)
