"""Which rules vote, and how much: the smallest loss with a charge for each rule.

Rules are chosen by how much a vote of theirs would lower the logarithmic loss of the
training rows: by one Newton step from the votes of those that are chosen already. The
charge of a rule grows with the logarithm of the number of candidates: the best of many
rules that say nothing lowers the loss by about that much. After each choice the votes
of all chosen rules are adjusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.ensemble.voting.vote_sums import RIDGE, NativeVoteSums, VoteSums
from branchwise.rules.generalise import Bits

#: The largest change of a vote in one step.
_LARGEST_STEP = 3.0
#: At most one new rule for so many that are chosen, but for the first.
_PER_CHOSEN = 8
#: Rules that are looked at for each that may be chosen.
_LOOKED_AT = 16
#: All rules are looked at again once so many times as many are chosen.
_GROWTH = 1.5
#: In between, those that saved most before: at least so many.
_FEWEST_LOOKED_AT = 256
#: Votes that change by less are adjusted no more.
_SMALL_STEP = 0.01
_MOST_SWEEPS = 50
#: Rules with smaller votes are left out.
_LEAST_VOTE = 0.05


class VoteSelection:
    """Chooses rules, the most useful first, and adjusts their votes."""

    def __init__(
        self, sums: VoteSums | NativeVoteSums, sets: Sequence[Bits], cost: float
    ) -> None:
        self._sums = sums
        self._sets = sets
        self._n_rules = len(sets)
        self._charge = cost * math.log(max(len(sets), 2))
        self.rules: list[int] = []
        self.votes: list[float] = []

    def run(self, max_rules: int | None) -> None:
        """Choose rules until none is worth its charge.

        A vote mostly lowers what other rules would save. So most of the time only those
        are looked at that saved most before; all of them from time to time, and before
        the choice ends.
        """
        most = self._n_rules if max_rules is None else max_rules
        every: Ints = np.arange(self._n_rules)
        saved: Floats = np.zeros(self._n_rules)
        next_scan = 0
        while len(self.rules) < most:
            scans_all = len(self.rules) >= next_scan
            near = every
            if scans_all:
                next_scan = int(_GROWTH * len(self.rules)) + 1
            else:
                n_near = _LOOKED_AT * len(self.rules) // _PER_CHOSEN
                order = np.argsort(-saved, kind="stable")
                near = order[: max(n_near, _FEWEST_LOOKED_AT)]
            first, second, saved[near] = self._savings(near)
            wanted = most - len(self.rules)
            if self._choose(near, first, second, saved[near], wanted):
                self._adjust()
            elif scans_all:
                break
            else:
                next_scan = 0
        for _ in range(_MOST_SWEEPS):
            if self._adjust() < _SMALL_STEP:
                break
        kept = [at for at, vote in enumerate(self.votes) if vote >= _LEAST_VOTE]
        self.rules = [self.rules[at] for at in kept]
        self.votes = [self.votes[at] for at in kept]

    def _savings(self, rules: Ints) -> tuple[Floats, Floats, Floats]:
        """Return derivatives, and by how much a vote of each rule lowers the loss."""
        first, second = self._sums.of_rules(rules)
        saved: Floats = np.maximum(first, 0.0) ** 2 / (2.0 * (second + RIDGE))
        return first, second, saved

    def _choose(
        self, rules: Ints, first: Floats, second: Floats, saved: Floats, most: int
    ) -> bool:
        """Choose the best rules that have no row in common; tell whether there is one.

        What such a rule changes does not depend on the others.
        """
        worth = saved > self._charge
        worth[np.isin(rules, self.rules)] = False
        order: Ints = np.flatnonzero(worth)
        if not len(order):
            return False
        order = order[np.argsort(-saved[order], kind="stable")]
        most = min(most, max(1, len(self.rules) // _PER_CHOSEN))
        touched = np.zeros_like(self._sets[0])
        n_chosen = 0
        for at in order[: _LOOKED_AT * most].tolist():
            rule = int(rules[at])
            if (touched & self._sets[rule]).any():
                continue
            touched |= self._sets[rule]
            step = min(float(first[at] / (second[at] + RIDGE)), _LARGEST_STEP)
            self._sums.vote(rule, step)
            self.rules.append(rule)
            self.votes.append(step)
            n_chosen += 1
            if n_chosen == most:
                break
        return n_chosen > 0

    def _adjust(self) -> float:
        """Take a Newton step for each vote in turn; return the largest change."""
        rules: Ints = np.array(self.rules, dtype=np.intp)
        votes, largest = self._sums.adjusted(rules, np.array(self.votes))
        self.votes = votes.tolist()
        return largest
