"""C4.5's rules: coverage, generalisation, and selection of a subset by MDL.

Each rule loses conditions, one at a time, as long as the pessimistic estimate of its
error rate does not rise: the estimate of error-based pruning, per case that the rule
covers (Quinlan, "Simplifying decision trees", 1987; "C4.5", 1993, chapter 5). The
rules of each class are then selected by the minimum description length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.schema import Column, Columns, Value
from branchwise.data.ties import TIE
from branchwise.grow.counts import add_up
from branchwise.prune.error_based import Estimate
from branchwise.rules.rule import Rule
from branchwise.text.conditions import Condition
from branchwise.tree.splits import ragged

Mask = NDArray[np.bool_]
#: The most cells of cached conditions; consecutive rules share many conditions.
_KEPT_CELLS = 2**26


class Coverage:
    """Evaluates conditions on rows, each condition once.

    Parameters
    ----------
    columns : sequence of Column
        What the columns are.
    data : Columns
        The encoded rows.
    unseen_is_missing : bool
        Whether a value that training did not have is taken for a missing one.
    """

    def __init__(
        self, columns: Sequence[Column], data: Columns, unseen_is_missing: bool = False
    ) -> None:
        self._columns = columns
        self._data = data
        self._unseen_is_missing = unseen_is_missing
        self._index = {column.name: at for at, column in enumerate(columns)}
        self._known: dict[Condition, Mask] = {}

    def holds(self, condition: Condition) -> Mask:
        """Return which rows fulfil a condition."""
        mask = self._known.get(condition)
        if mask is None:
            if len(self._known) * self._data.n_rows > _KEPT_CELLS:
                self._known.clear()
            mask = self._known[condition] = self._evaluated(condition)
        return mask

    def covered(self, conditions: Iterable[Condition]) -> Mask:
        """Return which rows fulfil all conditions."""
        mask = np.ones(self._data.n_rows, dtype=bool)
        for condition in conditions:
            mask &= self.holds(condition)
        return mask

    def first(self, rules: Sequence[Sequence[Condition]]) -> Ints:
        """Return the first rule that each row fulfils, one past the last for none."""
        first = np.full(self._data.n_rows, len(rules), dtype=np.intp)
        for number, conditions in enumerate(rules):
            first[self.covered(conditions) & (first == len(rules))] = number
        return first

    def _evaluated(self, condition: Condition) -> Mask:
        index = self._index[condition.column]
        column, cells = self._columns[index], self._data.data[index]
        if column.is_numeric:
            return _number_holds(condition, cells)
        table = np.zeros(column.unseen_code + 1, dtype=bool)
        _mark_codes(table, condition, column)
        table[column.unseen_code] = (
            self._unseen_is_missing and table[column.missing_code]
        )
        mask: Mask = table[cells]
        return mask


def _number_holds(condition: Condition, cells: NDArray[Any]) -> Mask:
    """Evaluate a condition on numbers; comparisons with NaN do not hold."""
    value: Any = condition.value
    match condition.op:
        case "is missing":
            mask: Mask = np.isnan(cells)
        case "is known":
            mask = ~np.isnan(cells)
        case "<=":
            mask = cells <= value
        case ">":
            mask = cells > value
        case _:
            above, at_most = value
            mask = (cells > above) & (cells <= at_most)
    return mask


def _mark_codes(table: Mask, condition: Condition, column: Column) -> None:
    """Mark the codes that fulfil a condition."""
    possible = slice(0, column.missing_code)
    if condition.op == "is missing":
        table[column.missing_code] = True
        return
    table[possible] = condition.op in ("not in", "is known")
    if condition.value is None:
        return
    value: Any = condition.value
    values: tuple[Value, ...] = value if isinstance(value, tuple) else (value,)
    table[[column.code_of[v] for v in values]] = condition.op != "not in"


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
    that it covers, as bits.
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
    has a higher expected error rate than predicting its class for every row.
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
        # Of equals the last is dropped: fewer cases reached its split.
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


#: Up to so many rules of a class all subsets are tried.
EXHAUSTIVE = 12
#: Bits of rules count less than those of exceptions: rules have much in common.
_RULE_WEIGHT = 0.5
_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


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
    n_rows = len(cases.labels)
    kept: dict[int, list[Candidate]] = {}
    for label, positions in sorted(by_class.items()):
        rows = [candidates[at].rows(n_rows) for at in positions]
        problem = Subsets(rows, cost[positions], cases.labels == label, cases.weights)
        rules = [candidates[positions[at]] for at in problem.best()]
        if rules:
            kept[label] = sorted(rules, key=lambda rule: rule.rate)
    ordered = _ordered(kept, cases)
    default = _default(ordered, cases)
    return Selection(tuple(_without_harm(ordered, default, cases)), default)


def _bits(candidates: Sequence[Candidate], columns: Sequence[Column]) -> Floats:
    """Return how many bits it takes to tell each rule.

    A condition names its column and, of a number, one of two sides of one of the
    thresholds that occur; of values one of them, or of each whether it is in the list.
    The order of conditions does not matter; its bits are subtracted.
    """
    thresholds: dict[str, set[object]] = {}
    for candidate in candidates:
        for condition in candidate.conditions:
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

    return np.array(
        [
            max(0.0, sum(map(bits, c.conditions)) - _log2_factorial(len(c.conditions)))
            for c in candidates
        ]
    )


def _log2_factorial(number: int) -> float:
    return math.lgamma(number + 1) / math.log(2)


class Subsets:
    """The rules of one class, of which a subset is to be chosen.

    Parameters
    ----------
    rows : sequence of int arrays
        The rows that each rule covers.
    bits : array
        What it takes to tell each rule.
    of_class : bool array
        Which rows have the class.
    weights : array
        The weights of all rows.
    """

    def __init__(
        self, rows: Sequence[Ints], bits: Floats, of_class: Mask, weights: Floats
    ) -> None:
        self._rows = rows
        self._bits = bits
        self._right = np.where(of_class, weights, 0.0)
        self._wrong = np.where(of_class, 0.0, weights)

    def best(self) -> list[int]:
        """Return the subset that takes the fewest bits; of equals one of few rules."""
        if len(self._rows) <= EXHAUSTIVE:
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
        n_rules = len(self._rows)
        which = np.zeros(len(self._right), dtype=np.intp)
        for at, rows in enumerate(self._rows):
            which[rows] |= 1 << at
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
        state = _Chosen(self._rows, self._right, self._wrong)
        now = float(self.cost(*_single(0.0, 0.0, 0.0, 0.0))[0])
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


def _single(*numbers: float) -> list[Floats]:
    return [np.array([number]) for number in numbers]


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
    """A growing and shrinking set of rules, and what each rule would change.

    For every rule: the weight of its rows that no chosen rule covers, and of those
    that one covers, which is lost with the rule if it is that one. Only rules that
    share rows with the one that comes or goes are counted again.
    """

    def __init__(self, rows: Sequence[Ints], right: Floats, wrong: Floats) -> None:
        self._rows = rows
        self._weights = (right, wrong)
        self.chosen = np.zeros(len(rows), dtype=bool)
        self._times = np.zeros(len(right), dtype=np.intp)
        self._covered = [0.0, 0.0]
        owner = np.repeat(np.arange(len(rows)), [len(piece) for piece in rows])
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        self._rule_of_entry = owner[order]
        self._first_entry = np.searchsorted(row[order], np.arange(len(right) + 1))
        #: By how many chosen rules cover a row (none, one), then right and wrong.
        self._sums: list[list[Floats]] = [
            [add_up(owner, weights[row], len(rows)) for weights in self._weights],
            [np.zeros(len(rows)) for _ in self._weights],
        ]

    def after_each(self) -> tuple[Floats, Floats]:
        """Return the covered weight, right and wrong, after a change of each rule."""
        free, sole = self._sums
        right, wrong = (
            covered + np.where(self.chosen, -lost, gained)
            for covered, gained, lost in zip(self._covered, free, sole, strict=True)
        )
        return right, wrong

    def toggle(self, at: int) -> None:
        """Let a rule come or go."""
        self._covered = [float(after[at]) for after in self.after_each()]
        self.chosen[at] = not self.chosen[at]
        rows = self._rows[at]
        before = self._times[rows]
        now = before + (1 if self.chosen[at] else -1)
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


def _ordered(kept: dict[int, list[Candidate]], cases: Cases) -> list[Candidate]:
    """Put classes in order: the next claims fewest of the cases that are left wrongly.

    Of equals the first class comes first.
    """
    n_rows = len(cases.labels)
    claims = {}
    for label, rules in kept.items():
        claims[label] = np.zeros(n_rows, dtype=bool)
        for rule in rules:
            claims[label][rule.rows(n_rows)] = True
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
    left = np.ones(len(cases.labels), dtype=bool)
    for rule in rules:
        left[rule.rows(len(left))] = False
    rest = add_up(cases.labels[left], cases.weights[left], n_classes)
    whole = add_up(cases.labels, cases.weights, n_classes)
    return int(np.lexsort((np.arange(n_classes), -whole, -rest))[0])


def _without_harm(
    rules: Sequence[Candidate], default: int, cases: Cases
) -> list[Candidate]:
    """Leave out rules without which the list errs less, one by one, the worst first.

    And in the end those that decide about no case.
    """
    left = list(rules)
    while left:
        used, change = _changes(left, default, cases)
        if change.min() >= 0:
            return [rule for rule, some in zip(left, used, strict=True) if some]
        del left[int(np.argmin(change))]
    return left


def _changes(
    rules: Sequence[Candidate], default: int, cases: Cases
) -> tuple[Mask, Floats]:
    """Return which rules decide any case, and the change of errors without each."""
    none = len(rules)
    first = np.full(len(cases.labels), none, dtype=np.intp)
    second = first.copy()
    for at, rule in enumerate(rules):
        rows = rule.rows(len(first))
        claimed = first[rows] != none
        again = rows[claimed]
        second[again[second[again] == none]] = at
        first[rows[~claimed]] = at
    prediction = np.array([*(rule.label for rule in rules), default])
    change = (prediction[second] != cases.labels) * cases.weights
    change -= (prediction[first] != cases.labels) * cases.weights
    used = np.bincount(first, minlength=none + 1)[:none] > 0
    return used, add_up(first, change, none + 1)[:none]
