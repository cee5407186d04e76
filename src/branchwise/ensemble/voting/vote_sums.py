"""Votes of rules for classes: what a vote of each rule would change.

A rule that holds for a row adds its vote to the score of its class; the probabilities
of the classes are in proportion to the exponentials of the scores. For each rule, the
first and second derivatives of the log likelihood by its vote are sums over the rows
that it covers. Terms are rounded to a grid on which sums are exact, so that the order
of rows does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.native import available, extension, plain_array
from branchwise.rules.generalise import Bits, rows_of

#: Terms of sums are multiples of its inverse.
GRID = 2.0**32
#: Votes are held near 0 as by so many rows of which half are of a rule's class: this
#: is added to second derivatives.
RIDGE = 1.0


class VoteSums:
    """The scores of rows, and for each rule the derivatives by its vote.

    ``sets`` are the rows that each rule covers, ``labels`` the class codes of rules and
    ``target`` those of rows, ``weights`` the weights of rows, whose mean is 1, and
    ``initial`` the scores before any vote.
    """

    def __init__(
        self,
        sets: Sequence[Bits],
        labels: Ints,
        target: Ints,
        weights: Floats,
        initial: Floats,
    ) -> None:
        self._rows = [rows_of(bits) for bits in sets]
        self._labels = labels
        self._target = target
        self._weights = weights * GRID
        self._powers = np.tile(_powers(initial), (len(target), 1))
        # One class after the other, as the native implementation adds them.
        self._total = np.zeros(len(target))
        for column in self._powers.T:
            self._total += column

    def of_rules(self, rules: Ints) -> tuple[Floats, Floats]:
        """Return the first and second derivatives of some rules."""
        found = np.array([self._sums(rule) for rule in rules.tolist()]).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _sums(self, rule: int) -> tuple[float, float]:
        rows, label = self._rows[rule], self._labels[rule]
        share = self._powers[rows, label] / self._total[rows]
        away = (self._target[rows] == label) - share
        weights = self._weights[rows]
        first = np.rint(weights * away).astype(np.int64)
        second = np.rint(weights * (share * (1.0 - share))).astype(np.int64)
        return float(first.sum()) / GRID, float(second.sum()) / GRID

    def vote(self, rule: int, amount: float) -> None:
        """Add to the vote of a rule."""
        rows, label = self._rows[rule], self._labels[rule]
        before = self._powers[rows, label]
        after = before * math.exp(amount)
        self._powers[rows, label] = after
        self._total[rows] += after - before

    def adjusted(self, rules: Ints, votes: Floats) -> tuple[Floats, float]:
        """Take a Newton step for the vote of each of some rules in turn.

        Returns the votes, none of which is below 0, and the largest change.
        """
        votes, largest = votes.copy(), 0.0
        for at, rule in enumerate(rules.tolist()):
            first, second = self._sums(rule)
            vote = float(votes[at])
            step = (first - RIDGE * vote) / (second + RIDGE)
            step = max(vote + min(max(step, -1.0), 1.0), 0.0) - vote
            if step:
                self.vote(rule, step)
                votes[at] = vote + step
                largest = max(largest, abs(step))
        return votes, largest

    def rows(self, rule: int) -> Ints:
        """Return the rows that a rule covers."""
        return self._rows[rule]


class NativeVoteSums:
    """The same in the compiled kernel, with the same bits."""

    def __init__(
        self,
        sets: Sequence[Bits],
        labels: Ints,
        target: Ints,
        weights: Floats,
        initial: Floats,
    ) -> None:
        self._sums = extension().VoteSums(
            sets=np.stack(sets),
            labels=plain_array(labels.astype(np.int64, copy=False)),
            target=plain_array(target.astype(np.int64, copy=False)),
            weights=plain_array(weights * GRID),
            powers=plain_array(_powers(initial)),
        )

    def of_rules(self, rules: Ints) -> tuple[Floats, Floats]:
        """Return the first and second derivatives of some rules."""
        if not len(rules):
            return np.zeros(0), np.zeros(0)
        first, second = self._sums.sums_of(plain_array(rules.astype(np.int64)))
        return first / GRID, second / GRID

    def vote(self, rule: int, amount: float) -> None:
        """Add to the vote of a rule."""
        self._sums.vote(rule=rule, factor=math.exp(amount))

    def adjusted(self, rules: Ints, votes: Floats) -> tuple[Floats, float]:
        """Take a Newton step for the vote of each of some rules in turn."""
        adjusted: tuple[Floats, float] = self._sums.adjust(
            rules=plain_array(rules.astype(np.int64, copy=False)),
            votes=plain_array(votes),
            grid=GRID,
            ridge=RIDGE,
        )
        return adjusted

    def rows(self, rule: int) -> Ints:
        """Return the rows that a rule covers."""
        rows: Ints = self._sums.rows(rule=rule)
        return rows


def _powers(initial: Floats) -> Floats:
    return np.array([math.exp(score) for score in initial.tolist()])


def vote_sums(
    sets: Sequence[Bits], labels: Ints, target: Ints, weights: Floats, initial: Floats
) -> VoteSums | NativeVoteSums:
    """Return the sums, of the compiled kernel where there is one."""
    kind = NativeVoteSums if available() and len(sets) else VoteSums
    return kind(sets, labels, target, weights, initial)
