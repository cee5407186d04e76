"""C4.5's rules: the rules of a tree, made more general one by one.

Each rule loses conditions, one at a time, as long as the pessimistic estimate of its
error rate does not rise: the estimate that error-based pruning uses, here per case
that the rule covers (Quinlan, "Simplifying decision trees", 1987; "C4.5", 1993,
chapter 5). Which of the rules are kept, and in which order, ``selection.py`` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints, add_up
from branchwise.covering import Coverage, Mask
from branchwise.prune.error_based import Estimate
from branchwise.rules import Rule
from branchwise.table.schema import Value
from branchwise.words import Condition


@dataclass(frozen=True)
class Cases:
    """Rows whose class is known: class codes (-1 for none of the tree's), weights."""

    coverage: Coverage
    labels: Ints
    weights: Floats

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weights.sum())


@dataclass(frozen=True)
class Candidate:
    """A generalised rule: conditions, class code, the leaf that it comes from.

    ``rate`` is the pessimistic estimate of its error rate, ``bits`` are the rows
    that it covers, packed.
    """

    conditions: tuple[Condition, ...]
    label: int
    node: int
    rate: float
    bits: NDArray[np.uint8]

    def rows(self, n_rows: int) -> Ints:
        """Return the rows that the rule covers."""
        return np.flatnonzero(np.unpackbits(self.bits, count=n_rows))


def candidates(
    rules: Iterable[Rule], classes: Sequence[Value], cases: Cases, estimate: Estimate
) -> list[Candidate]:
    """Generalise rules; what is no rule of its own any more is left out.

    That is: what equals a rule before it, what has lost all its conditions, and what
    is expected to err more often than its class as the answer to everything.
    """
    code = {label: at for at, label in enumerate(classes)}
    found: dict[tuple[int, frozenset[Condition]], Candidate] = {}
    for rule in rules:
        candidate = generalised(rule, code[rule.label], cases, estimate)
        key = candidate.label, frozenset(candidate.conditions)
        if candidate.conditions and key not in found:
            found[key] = candidate
    right = add_up(cases.labels, cases.weights, len(classes))
    bar = error_rates(estimate, np.full(len(classes), cases.total), right)
    return [c for c in found.values() if c.rate <= bar[c.label]]


def generalised(rule: Rule, label: int, cases: Cases, estimate: Estimate) -> Candidate:
    """Drop conditions of a rule while that does not raise its estimated error rate."""
    kept = list(rule.conditions)
    dropping = _Dropping(rule.conditions, label, cases)
    rate = error_rates(estimate, *dropping.now())[0]
    while kept:
        rates = error_rates(estimate, *dropping.without_each())
        if rates.min() > rate:
            break
        # Of equals the last goes: it was asked where fewer cases were left.
        at = int(np.flatnonzero(rates == rates.min())[-1])
        rate = rates[at]
        dropping.drop(at)
        del kept[at]
    covered = dropping.failures == 0
    return Candidate(tuple(kept), label, rule.node, float(rate), np.packbits(covered))


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

    def _sums(self, parts: Sequence[Ints]) -> tuple[Floats, Floats]:
        total = np.array([self._weights[rows].sum() for rows in parts])
        return total, np.array([self._right[rows].sum() for rows in parts])

    def without_each(self) -> tuple[Floats, Floats]:
        """Return the same for the rule without each of its conditions."""
        near = np.flatnonzero(self.failures == 1)
        more, more_right = self._sums([near[fails[near]] for fails in self._fails])
        total, right = self.now()
        return total + more, right + more_right

    def drop(self, at: int) -> None:
        """Drop a condition."""
        self.failures -= self._fails.pop(at)


def error_rates(estimate: Estimate, total: Floats, right: Floats) -> Floats:
    """Return the pessimistic error rates of rules; 1 for one that covers nothing.

    Parameters
    ----------
    estimate : Estimate
        What error-based pruning expects.
    total, right : array
        The weight that each rule covers, and how much of it has the rule's class.
    """
    errors = total - right
    expected = errors + estimate.added(total, errors)
    rates: Floats = np.where(total > 0, expected / np.where(total > 0, total, 1), 1.0)
    return rates
