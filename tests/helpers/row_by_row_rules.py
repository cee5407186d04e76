"""Generalisation of one rule at a time, by counting rows: the oracle of bit sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.prune.estimates import Estimate
from branchwise.rules.generalise import Cases, Mask, error_rates
from branchwise.rules.rule import Rule
from branchwise.text.conditions import Condition


def generalised_row_by_row(
    rule: Rule, label: int, cases: Cases, estimate: Estimate
) -> tuple[tuple[Condition, ...], float, Ints]:
    """Drop conditions of a rule; return the others, the error rate, covered rows."""
    kept = list(rule.conditions)
    dropping = _Dropping(rule.conditions, label, cases)
    rate = error_rates(estimate, *dropping.now())[0]
    while kept:
        rates = error_rates(estimate, *dropping.without_each())
        if rates.min() > rate:
            break
        # Of equals the last is dropped: fewer cases reached its split.
        at = int(np.flatnonzero(rates == rates.min())[-1])
        rate = rates[at]
        dropping.drop(at)
        del kept[at]
    return tuple(kept), float(rate), np.flatnonzero(dropping.failures == 0)


class _Dropping:
    """Counts, for each row, the conditions of a rule that it fails.

    A row that fails one only is what the rule gains without that condition.
    """

    def __init__(
        self, conditions: Sequence[Condition], label: int, cases: Cases
    ) -> None:
        self._fails: list[Mask] = [~cases.coverage.holds(c) for c in conditions]
        self._weights = cases.weights
        self._right = np.where(cases.labels == label, cases.weights, 0.0)
        self.failures = np.zeros(len(cases.labels), dtype=np.int32)
        for fails in self._fails:
            self.failures += fails

    def now(self) -> tuple[Floats, Floats]:
        """Return the weight that the rule covers, and how much of it is right."""
        return self._sums([np.flatnonzero(self.failures == 0)])

    def _sums(self, pieces: Sequence[Ints]) -> tuple[Floats, Floats]:
        total = np.array([self._weights[rows].sum() for rows in pieces])
        return total, np.array([self._right[rows].sum() for rows in pieces])

    def without_each(self) -> tuple[Floats, Floats]:
        """Return the same for the rule without each of its conditions."""
        near = np.flatnonzero(self.failures == 1)
        more, more_right = self._sums([near[fails[near]] for fails in self._fails])
        total, right = self.now()
        return total + more, right + more_right

    def drop(self, at: int) -> None:
        """Drop a condition."""
        self.failures -= self._fails.pop(at)
