"""Teaching mode: a class chooses splits while their figures are hidden.

While it is on, candidates are told in the order of the columns and without scores. A
guess names a column; revealing the node compares it with the best one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from branchwise.errors import ParameterError

#: What tells which candidate is the best.
HIDDEN = ("score", "gain", "gain_ratio", "p_value")
#: Points for the best candidate; others have their share of its score.
FULL_POINTS = 100


class Teaching:
    """Guesses of the class, revealed nodes, and points."""

    def __init__(self) -> None:
        self.on = False
        self.guesses: dict[str, str] = {}
        self.revealed: dict[str, int] = {}

    def state(self) -> dict[str, Any]:
        """Return what the page shows: whether it is on, and the points."""
        return {
            "on": self.on,
            "guesses": dict(self.guesses),
            "revealed": list(self.revealed),
            "points": {
                "class": sum(self.revealed.values()),
                "machine": FULL_POINTS * len(self.revealed),
            },
        }

    def switch(self, on: bool) -> None:
        """Begin anew, or stop; points are kept until it begins again."""
        if on and not self.on:
            self.guesses, self.revealed = {}, {}
        self.on = on

    def forget(self, path: str) -> None:
        """Forget what was guessed and revealed below a node that has changed."""
        stem = path if path == "/" else f"{path}/"
        for known in (self.guesses, self.revealed):
            for each in [p for p in known if p != path and p.startswith(stem)]:
                del known[each]

    def guess(self, path: str, column: str) -> None:
        """Keep the column that the class chooses for a node."""
        if not self.on:
            raise ParameterError(
                "guess is for teaching mode, which is off. Switch it on first."
            )
        if path in self.revealed:
            raise ParameterError(
                f"node {path!r} has been revealed, so there is nothing to guess. "
                "Choose another node."
            )
        self.guesses[path] = column

    def reveal(self, path: str, ranked: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Show the figures of a node; give points for the guess."""
        if not self.on:
            raise ParameterError(
                "reveal is for teaching mode, which is off. Switch it on first."
            )
        guessed = self.guesses.get(path)
        if guessed is None:
            raise ParameterError(
                f"node {path!r} has no guess yet. Guess a column before its figures "
                "are revealed."
            )
        points = points_of(guessed, ranked)
        self.revealed.setdefault(path, points)
        best = next((c["column"] for c in ranked if c["reason"] is None), None)
        return {**self.state(), "guess": guessed, "best": best, "earned": points}

    def hides(self, path: str) -> bool:
        """Whether the figures of a node are hidden."""
        return self.on and path not in self.revealed

    def shown(
        self, path: str, candidates: list[dict[str, Any]], columns: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return candidates without what is hidden, in the order of the columns."""
        if not self.hides(path):
            return candidates
        order = {name: at for at, name in enumerate(columns)}
        found = sorted(candidates, key=lambda each: order.get(each["column"], 0))
        return [{**each, **dict.fromkeys(HIDDEN)} for each in found]


def points_of(guessed: str, ranked: Sequence[Mapping[str, Any]]) -> int:
    """Return the points of a guess: its share of the score of the machine's choice."""
    best = next((each for each in ranked if each["reason"] is None), None)
    own = next((each for each in ranked if each["column"] == guessed), None)
    if best is None or own is None or own["score"] is None or not best["score"] > 0:
        return 0
    share = max(0.0, min(1.0, float(own["score"]) / float(best["score"])))
    return round(FULL_POINTS * share)
