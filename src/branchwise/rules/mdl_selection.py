"""Selection of a subset of rules by the minimum description length (MDL).

Of the rules of each class those are kept that take the fewest bits together with their
exceptions (Quinlan, "C4.5", 1993, chapter 5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from branchwise.data.arrays import TIE, Floats, Ints, run_starts
from branchwise.data.table_schema import Column
from branchwise.grow.counts import add_up
from branchwise.native import available, extension, plain_array
from branchwise.rules.generalise import Bits, Candidate, Cases, Mask, rows_of
from branchwise.text.conditions import Condition
from branchwise.tree.splits import ragged

#: Up to so many rules of a class all subsets are tried.
EXHAUSTIVE = 12
#: Bits of rules count less than those of exceptions: rules have much in common.
_RULE_WEIGHT = 0.5
#: Up to so many whole numbers have their logarithms of factorials in a table.
_LARGEST_TABLE = 2**20
_log_gamma_of_any = np.vectorize(math.lgamma, otypes=[np.float64])


@cache
def _log_gamma_table(size: int) -> Floats:
    """Return the logarithms of the gamma function at 0 (unused), 1, 2, ..."""
    return np.array([math.inf, *map(math.lgamma, range(1, size))])


def _log_gamma(numbers: Floats) -> Floats:
    """Return the logarithms of the gamma function, from a table for whole numbers."""
    largest = float(numbers.max(initial=1.0))
    if largest < _LARGEST_TABLE:
        whole = numbers.astype(np.intp)
        if (whole == numbers).all():
            return _log_gamma_table(1 << int(largest).bit_length())[whole]
    result: Floats = _log_gamma_of_any(numbers)
    return result


@dataclass(frozen=True)
class Selection:
    """The rules that are kept, in order, and the class of rows that fulfil none."""

    chosen: tuple[Candidate, ...]
    default: int


def selected(
    candidates: Sequence[Candidate], columns: Sequence[Column], cases: Cases
) -> Selection:
    """Choose among rules, and put the chosen in order."""
    cost = _bits(candidates, columns)
    by_class: dict[int, list[int]] = {}
    for at, candidate in enumerate(candidates):
        by_class.setdefault(candidate.label, []).append(at)
    kept: dict[int, list[Candidate]] = {}
    for label, positions in sorted(by_class.items()):
        sets = [candidates[at].bits for at in positions]
        problem = Subsets(sets, cost[positions], cases.labels == label, cases.weights)
        rules = [candidates[positions[at]] for at in problem.best()]
        if rules:
            kept[label] = sorted(rules, key=lambda rule: rule.rate)
    ordered = _ordered(kept, cases)
    default = _default(ordered, cases)
    return Selection(tuple(_without_harm(ordered, default, cases)), default)


def _bits(candidates: Sequence[Candidate], columns: Sequence[Column]) -> Floats:
    """Return how many bits it takes to tell each rule.

    A condition names its column and one side of one of its thresholds, one value, or of
    each value whether it is in the list. The order of conditions does not matter.
    """
    # Candidates share conditions: each is looked at once.
    shared = {id(c): c for candidate in candidates for c in candidate.conditions}
    thresholds: dict[str, set[object]] = {}
    for condition in shared.values():
        thresholds.setdefault(condition.column, set()).add(condition.value)
    by_name = {column.name: column for column in columns}

    def bits(condition: Condition) -> float:
        column = by_name[condition.column]
        where = math.log2(len(columns))
        if condition.value is None:
            return where + 1
        if column.is_numeric:
            return where + 1 + math.log2(len(thresholds[condition.column]))
        if condition.op == "=":
            return where + math.log2(len(column.categories))
        return where + len(column.categories)

    cost = {at: bits(condition) for at, condition in shared.items()}
    told = np.array([sum(cost[id(at)] for at in c.conditions) for c in candidates])
    orders = [math.lgamma(len(c.conditions) + 1) / math.log(2) for c in candidates]
    bits_of_rules: Floats = np.maximum(told - np.array(orders), 0.0)
    return bits_of_rules


class Subsets:
    """The rules of one class, of which a subset is to be chosen.

    ``rows`` are those that each rule covers, ``bits`` is what it takes to tell each
    rule, ``of_class`` tells which rows have the class, ``weights`` are those of all
    rows.
    """

    def __init__(
        self, sets: Sequence[Bits], bits: Floats, of_class: Mask, weights: Floats
    ) -> None:
        self._sets = sets
        self._bits = bits
        self._right = np.where(of_class, weights, 0.0)
        self._wrong = np.where(of_class, 0.0, weights)

    def best(self) -> list[int]:
        """Return the subset that takes the fewest bits; of equals one of few rules."""
        if len(self._sets) <= EXHAUSTIVE:
            return self._best_of_all()
        return self._greedy()

    def cost(
        self, right: Floats, wrong: Floats, bits: Floats, number: Floats
    ) -> Floats:
        """Return the bits of subsets and their exceptions.

        Among the cases that a subset covers the exceptions are those of other classes,
        among the rest those of its class; each is one of so many ways to pick them.
        """
        all_right, all_wrong = self._right.sum(), self._wrong.sum()
        order = _log_gamma(number + 1) / math.log(2)
        rules = np.maximum(bits - order, 0.0)
        covered = _log2_ways(right + wrong, wrong)
        rest = all_right + all_wrong - right - wrong
        result: Floats = (
            _RULE_WEIGHT * rules + covered + _log2_ways(rest, all_right - right)
        )
        return result

    def _best_of_all(self) -> list[int]:
        """Try every subset.

        Rows count by which of the rules cover them. What a subset does not cover are
        the rows of all sets of rules that have none in common with it.
        """
        n_rules = len(self._sets)
        which = np.zeros(len(self._right), dtype=np.intp)
        for at, bits in enumerate(self._sets):
            which[rows_of(bits)] |= 1 << at
        subsets = np.arange(1 << n_rules)
        has = (subsets[:, np.newaxis] >> np.arange(n_rules)) & 1
        left = []
        for weights in (self._right, self._wrong):
            sums = add_up(which, weights, len(subsets))
            for at in range(n_rules):
                sums = _with_subsets(sums, at)
            left.append(sums[::-1])  # at the complement of each subset
        right, wrong = (
            weights.sum() - rest
            for weights, rest in zip((self._right, self._wrong), left, strict=True)
        )
        size = has.sum(axis=1).astype(np.float64)
        cost = self.cost(right, wrong, has @ self._bits, size)
        equal = np.flatnonzero(cost <= cost.min() + _slack(float(cost.min())))
        best = int(equal[np.argmin(size[equal])])
        return np.flatnonzero(has[best]).tolist()

    def _greedy(self) -> list[int]:
        """Add or take away the rule that saves most bits, until none does."""
        sums = _NativeSums if available() else _Sums
        state = _Chosen(sums(self._sets, self._right, self._wrong), len(self._sets))
        now = float(self.cost(*np.zeros((4, 1)))[0])
        while True:
            sign = np.where(state.chosen, -1.0, 1.0)
            bits: Floats = self._bits[state.chosen].sum() + sign * self._bits
            number: Floats = np.count_nonzero(state.chosen) + sign
            cost = self.cost(*state.after_each(), bits, number)
            best = float(cost.min())
            if best >= now - _slack(now):
                return np.flatnonzero(state.chosen).tolist()
            at = int(np.flatnonzero(cost <= best + _slack(best))[0])
            state.toggle(at)
            now = float(cost[at])


def _slack(cost: float) -> float:
    """Costs no further apart are equal."""
    return TIE * max(1.0, abs(cost))


def _with_subsets(sums: Floats, at: int) -> Floats:
    """Add to the sums of sets with an element those of the same sets without it."""
    halves = sums.reshape(-1, 2, 1 << at).copy()
    halves[:, 1] += halves[:, 0]
    return halves.ravel()


def _log2_ways(whole: Floats, piece: Floats) -> Floats:
    """Return the base-2 logarithms of binomial coefficients."""
    ways = _log_gamma(whole + 1) - _log_gamma(piece + 1) - _log_gamma(whole - piece + 1)
    result: Floats = np.maximum(ways, 0.0) / math.log(2)
    return result


class _Chosen:
    """A growing and shrinking set of rules, and what each rule would change."""

    def __init__(self, sums: _Sums | _NativeSums, n_rules: int) -> None:
        self.chosen = np.zeros(n_rules, dtype=bool)
        self._sums = sums
        self._covered = [0.0, 0.0]

    def after_each(self) -> tuple[Floats, Floats]:
        """Return the covered weight, right and wrong, after a change of each rule."""
        free, sole = self._sums.by_rule()
        right, wrong = (
            covered + np.where(self.chosen, -lost, gained)
            for covered, gained, lost in zip(self._covered, free, sole, strict=True)
        )
        return right, wrong

    def toggle(self, at: int) -> None:
        """Let a rule come or go."""
        self._covered = [float(after[at]) for after in self.after_each()]
        self.chosen[at] = not self.chosen[at]
        self._sums.toggle(at, bool(self.chosen[at]))


class _Sums:
    """For every rule, the weight of its rows that no chosen rule covers, and of those
    that one covers, which is lost with the rule if it is that one.

    Only rules that share rows with the one that comes or goes are counted again.
    """  # noqa: D205

    def __init__(self, sets: Sequence[Bits], right: Floats, wrong: Floats) -> None:
        self._rows = rows = [rows_of(bits) for bits in sets]
        self._weights = (right, wrong)
        self._times = np.zeros(len(right), dtype=np.intp)
        owner, row = _entries(rows)
        # Rows of at most 16 bits are sorted in linear time.
        order = np.argsort(row.astype(np.min_scalar_type(len(right))), kind="stable")
        self._rule_of_entry = owner[order]
        self._first_entry = np.searchsorted(row[order], np.arange(len(right) + 1))
        #: By how many chosen rules cover a row (none, one), then right and wrong.
        self._sums: list[list[Floats]] = [
            [add_up(owner, weights[row], len(rows)) for weights in self._weights],
            [np.zeros(len(rows)) for _ in self._weights],
        ]

    def by_rule(self) -> Sequence[Sequence[Floats]]:
        """Return the weights: of no chosen rule, of one; right and wrong of each."""
        return self._sums

    def toggle(self, at: int, comes: bool) -> None:
        """Let a rule come or go."""
        rows = self._rows[at]
        before = self._times[rows]
        now = before + (1 if comes else -1)
        self._times[rows] = now
        for level in (0, 1):
            self._count(level, rows[before == level], -1.0)
            self._count(level, rows[now == level], 1.0)

    def _count(self, level: int, rows: Ints, sign: float) -> None:
        """Add rows to, or take them off, the sums of all rules that cover them."""
        degree = self._first_entry[rows + 1] - self._first_entry[rows]
        rules = self._rule_of_entry[ragged(self._first_entry[rows], degree)]
        for sums, weights in zip(self._sums[level], self._weights, strict=True):
            amount = np.repeat(weights[rows], degree)
            sums += sign * add_up(rules, amount, len(sums))


class _NativeSums:
    """The same sums in the compiled kernel; exact, so equal in any order."""

    def __init__(self, sets: Sequence[Bits], right: Floats, wrong: Floats) -> None:
        self._chosen = extension().ChosenRules(
            sets=np.stack(sets), right=plain_array(right), wrong=plain_array(wrong)
        )

    def by_rule(self) -> Sequence[Sequence[Floats]]:
        """Return the weights: of no chosen rule, of one; right and wrong of each."""
        free_right, free_wrong, sole_right, sole_wrong = self._chosen.sums()
        return (free_right, free_wrong), (sole_right, sole_wrong)

    def toggle(self, at: int, comes: bool) -> None:
        """Let a rule come or go."""
        self._chosen.toggle(rule=at, comes=comes)


def _entries(rows: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the pairs of rules and rows that they cover, by rule."""
    owner = np.repeat(np.arange(len(rows)), [len(covered) for covered in rows])
    return owner, np.concatenate(rows)


def _covered(rules: Sequence[Candidate], n_rows: int) -> Mask:
    """Return which rows fulfil any of the rules."""
    mask = np.zeros(n_rows, dtype=bool)
    if rules:
        mask[rows_of(np.bitwise_or.reduce([rule.bits for rule in rules]))] = True
    return mask


def _ordered(kept: dict[int, list[Candidate]], cases: Cases) -> list[Candidate]:
    """Put classes in order: the next claims fewest of the cases that are left wrongly.

    Of equals the first class comes first.
    """
    n_rows = len(cases.labels)
    claims = {label: _covered(rules, n_rows) for label, rules in kept.items()}
    left = np.ones(n_rows, dtype=bool)
    ordered: list[Candidate] = []
    while claims:
        wrong = {
            label: float(cases.weights[claim & left & (cases.labels != label)].sum())
            for label, claim in claims.items()
        }
        label = min(claims, key=lambda label: (wrong[label], label))
        left &= ~claims.pop(label)
        ordered += kept[label]
    return ordered


def _default(rules: Sequence[Candidate], cases: Cases) -> int:
    """Return the most frequent class of what no rule covers; of equals that of all."""
    n_classes = int(cases.labels.max(initial=0)) + 1
    left = ~_covered(rules, len(cases.labels))
    rest = add_up(cases.labels[left], cases.weights[left], n_classes)
    whole = add_up(cases.labels, cases.weights, n_classes)
    return int(np.lexsort((np.arange(n_classes), -whole, -rest))[0])


def _without_harm(
    rules: Sequence[Candidate], default: int, cases: Cases
) -> list[Candidate]:
    """Leave out rules without which the list errs less, one by one, the worst first.

    And in the end those that decide about no case.
    """
    if not rules:
        return []
    # Pairs of rows and rules that cover them, by row and then in the order of rules.
    owner, row = _entries([rule.rows for rule in rules])
    order = np.argsort(row.astype(np.min_scalar_type(len(cases.labels))), kind="stable")
    owner, row = owner[order], row[order]
    left = np.ones(len(rules), dtype=bool)
    prediction = np.array([*(rule.label for rule in rules), default])
    while left.any():
        used, change = _changes(owner, row, prediction, cases)
        change[~left] = np.inf
        if change.min() >= 0:
            left &= used
            break
        worst = int(np.argmin(change))
        left[worst] = False
        others = owner != worst
        owner, row = owner[others], row[others]
    return [rule for rule, stays in zip(rules, left, strict=True) if stays]


def _changes(
    owner: Ints, row: Ints, prediction: Ints, cases: Cases
) -> tuple[Mask, Floats]:
    """Return which rules decide any case, and the change of errors without each.

    ``prediction`` has the class of each rule, and of the default after them.
    """
    none = len(prediction) - 1
    first = np.full(len(cases.labels), none, dtype=np.intp)
    second = first.copy()
    starts = run_starts(row)
    first[row[starts]] = owner[starts]
    # The second rule of a row is the entry after its first one, if there are more.
    again = starts[np.diff(starts, append=len(row)) > 1] + 1
    second[row[again]] = owner[again]
    change = (prediction[second] != cases.labels) * cases.weights
    change -= (prediction[first] != cases.labels) * cases.weights
    used = np.bincount(first, minlength=none + 1)[:none] > 0
    return used, add_up(first, change, none + 1)[:none]
