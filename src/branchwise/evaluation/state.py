"""A search's fits, written down as they finish, so that it can go on later.

The file has one JSON document a line: the first tells which search it is, each other
what one fit has found. A line that was cut off, by Ctrl-C or a full disk, is done
again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from branchwise.errors import DataError

_KIND = "branchwise search"
_VERSION = 1


@dataclass(frozen=True)
class Fit:
    """What one candidate has scored on one fold."""

    candidate: str
    fold: int
    rows: int
    train: float
    test: float
    fit_seconds: float
    score_seconds: float
    leaves: float
    depth: float

    @property
    def key(self) -> tuple[str, int, int]:
        """Candidate, fold and number of training rows."""
        return self.candidate, self.fold, self.rows


def candidate_key(parameters: Mapping[str, Any]) -> str:
    """Write parameters such that equal ones are equal texts."""
    plain = {
        name: value if isinstance(value, (str, int, float, type(None))) else repr(value)
        for name, value in parameters.items()
    }
    return json.dumps(plain, sort_keys=True)


class StateFile:
    """Fits that are done, and a place for those to come.

    Parameters
    ----------
    path : str, path or None
        The file; it is made if it is not there. None keeps nothing.
    search : dict
        What must be the same for its fits to be those of this search.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, search: Mapping[str, Any]
    ) -> None:
        self.done: dict[tuple[str, int, int], Fit] = {}
        self._path = None if path is None else Path(path)
        self._head = {"kind": _KIND, "version": _VERSION, **search}
        if self._path is not None:
            self._open(self._path)

    def _open(self, path: Path) -> None:
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            if content:
                self._refuse("is no such file")
            path.write_text(json.dumps(self._head) + "\n", encoding="utf-8")
            return
        first, *lines = whole.splitlines()
        self._check(first)
        for line in lines:
            fit = self._read(line)
            self.done[fit.key] = fit
        if len(whole) < len(content):
            with path.open("rb+") as file:
                file.truncate(len(whole))

    def _check(self, line: bytes) -> None:
        try:
            head = json.loads(line)
        except ValueError:
            head = None
        if not isinstance(head, dict) or head.get("kind") != _KIND:
            self._refuse("is no such file")
        other = [name for name, value in self._head.items() if head.get(name) != value]
        if other:
            self._refuse(f"is of a search that differs in {' and '.join(other)}")

    def _refuse(self, why: str) -> None:
        raise DataError(
            f"{str(self._path)!r} is to hold the fits of this search, but {why}. Name "
            "another file, which is made if it is not there, or remove this one."
        )

    def _read(self, line: bytes) -> Fit:
        try:
            return Fit(**json.loads(line))
        except (ValueError, TypeError):
            self._refuse(f"has a line that is no fit: {line[:60]!r}")
            raise

    def add(self, fits: Iterable[Fit]) -> None:
        """Write fits down."""
        fits = list(fits)
        self.done.update((fit.key, fit) for fit in fits)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(fit)) + "\n" for fit in fits)
