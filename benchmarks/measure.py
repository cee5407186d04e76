"""Lines of the table, and how their times are taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
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
    ``beside``. What was promised is the least ratio to a peer, or the largest figure of
    ours, so that the line says whether it was kept; ``bar`` is for everything else.
    """

    work: str
    ours: float
    peers: dict[str, float] = field(default_factory=dict)
    bar: str = ""
    at_least: dict[str, float] = field(default_factory=dict)
    at_most: float | None = None
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
        promised = ", ".join([self.bar] * bool(self.bar) + self._verdicts())
        return f"| {self.work} | {shown} | {ratios or self.beside} | {promised} |"

    def _verdicts(self) -> list[str]:
        """Say which promises were kept; a peer that is not installed has none."""
        verdicts = []
        for name, ratio in self.at_least.items():
            if name in self.peers:
                kept = self.peers[name] >= ratio * self.ours
                verdicts.append(f"{ratio:g} x {name}: {_verdict(kept)}")
        if self.at_most is not None:
            kept = self.ours <= self.at_most
            verdicts.append(f"at most {self.at_most:g} {self.unit}: {_verdict(kept)}")
        return verdicts


def _verdict(kept: bool) -> str:
    return "met" if kept else "**missed**"


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


class Runs:
    """How often works are run: as often as they ask for, or less."""

    most: int | None = None


class Shuffled:
    """A table whose rows are in a new order before every run.

    No run then meets a table that an earlier one has left in a cache, ours or the
    processor's. Rows beside it (weights) are put into the same order.
    """

    def __init__(self, X: pd.DataFrame, y: pd.Series, weights: Any = None) -> None:
        self._rows = (X, y, weights)
        self._rng = np.random.default_rng(len(X))
        self.shuffle()

    def shuffle(self) -> None:
        """Put the rows into a new order."""
        X, y, weights = self._rows
        order = self._rng.permutation(len(X))
        self.X = X.iloc[order].reset_index(drop=True)
        self.y = y.iloc[order].reset_index(drop=True)
        self.weights = None if weights is None else weights[order]


def best_times(
    actions: dict[str, Action],
    repeats: dict[str, int],
    before: Callable[[str], object] = lambda _: None,
) -> dict[str, float]:
    """Time actions in turns, in seconds of the processor; the best of each.

    ``before`` is called with the name of an action before each run, and not timed.
    """
    best = dict.fromkeys(actions, float("inf"))
    most = max(repeats.values())
    for turn in range(most if Runs.most is None else min(most, Runs.most)):
        for name, action in actions.items():
            if turn >= repeats[name]:
                continue
            before(name)
            start = time.process_time()
            action()
            best[name] = min(best[name], time.process_time() - start)
    return best


def compare(
    work: str,
    actions: dict[str, Action],
    turns: dict[str, int],
    bar: str = "",
    **promised: Any,
) -> Line:
    """Time our action and those of the peers."""
    times = best_times(actions, turns)
    ours = times.pop(OURS.name)
    return show(Line(work, ours, times, bar, **promised))


def compare_fits(
    work: str,
    X: pd.DataFrame,
    y: pd.Series,
    max_depth: int | None,
    bar: str,
    peers: list[Peer],
    repeats: int = 5,
    ours: Peer = OURS,
    at_least: dict[str, float] | None = None,
) -> Line:
    """Fit with every tool, rows in a new order for each fit of ours."""
    table = Shuffled(X, y)
    actions: dict[str, Action] = {
        peer.name: (lambda peer=peer: peer.fit(table.X, table.y, max_depth))
        for peer in [ours, *peers]
    }
    turns = dict.fromkeys(actions, 1) | {ours.name: repeats}
    times = best_times(
        actions, turns, lambda name: table.shuffle() if name == ours.name else None
    )
    return show(Line(work, times.pop(ours.name), times, bar, at_least or {}))
