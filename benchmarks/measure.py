"""Lines of the table, and how their times are taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from branchwise.data.cache import Fingerprints
from branchwise.estimators import base
from peers import OURS, Peer

# A fit that is timed for the second time must not remember the first one.
base.FINGERPRINTS = Fingerprints(cache_size=0)

Action = Callable[[], Any]


@dataclass
class Line:
    """One line of the table: our time, the peers' times, and what was promised.

    A line of something else than time has a unit, and says the peers' figures in
    ``beside``.
    """

    work: str
    ours: float
    peers: dict[str, float] = field(default_factory=dict)
    bar: str = ""
    unit: str = "s"
    beside: str = ""
    digits: int = 3

    def row(self) -> str:
        """Write the line in Markdown."""
        ratios = ", ".join(
            f"{name} {_seconds(seconds)} (**{seconds / self.ours:.1f} x**)"
            for name, seconds in self.peers.items()
        )
        shown = (
            _seconds(self.ours)
            if self.unit == "s"
            else f"{_amount(self.ours, self.digits)} {self.unit}"
        )
        return f"| {self.work} | {shown} | {ratios or self.beside} | {self.bar} |"


def _seconds(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"


def _amount(amount: float, digits: int) -> str:
    return f"{amount:,.0f}" if amount >= 1000 else f"{amount:.{digits}g}"


def show(line: Line) -> Line:
    """Print a line as soon as it is there."""
    print(line.row(), flush=True)
    return line


def best_times(actions: dict[str, Action], repeats: dict[str, int]) -> dict[str, float]:
    """Time actions in turns; the best of each."""
    best = dict.fromkeys(actions, float("inf"))
    for turn in range(max(repeats.values())):
        for name, action in actions.items():
            if turn >= repeats[name]:
                continue
            start = time.perf_counter()
            action()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def compare(
    work: str, actions: dict[str, Action], turns: dict[str, int], bar: str = ""
) -> Line:
    """Time our action and those of the peers."""
    times = best_times(actions, turns)
    ours = times.pop(OURS.name)
    return show(Line(work, ours, times, bar))


def compare_fits(
    work: str,
    X: pd.DataFrame,
    y: pd.Series,
    max_depth: int | None,
    bar: str,
    peers: list[Peer],
    repeats: int = 5,
    ours: Peer = OURS,
) -> Line:
    """Fit with every tool."""
    actions: dict[str, Action] = {
        peer.name: (lambda peer=peer: peer.fit(X, y, max_depth))
        for peer in [ours, *peers]
    }
    turns = dict.fromkeys(actions, 1) | {ours.name: repeats}
    return compare(work, actions, turns, bar)
