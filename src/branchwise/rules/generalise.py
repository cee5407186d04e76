"""C4.5's rules: the rows that they cover, and their generalisation.

Each rule loses conditions, one at a time, as long as the pessimistic estimate of its
error rate does not rise: the estimate of error-based pruning, per case that the rule
covers (Quinlan, "Simplifying decision trees", 1987; "C4.5", 1993, chapter 5). Sets of
rows are bits, 64 a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Column, Columns, Value
from branchwise.grow.counts import add_up
from branchwise.native import available, extension, optional_array, plain_array
from branchwise.prune.estimates import Estimate
from branchwise.rules.rule import PathRule
from branchwise.text.conditions import Condition

Mask = NDArray[np.bool_]
#: The most cells of cached conditions; consecutive rules share many conditions.
_KEPT_CELLS = 2**26


class Coverage:
    """Evaluates conditions on encoded rows, each condition once.

    ``unseen_is_missing`` takes a value that training did not have for a missing one.
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


#: Rows of a word.
_WORD = 64
#: Words of a set of rows are padded to a multiple of this.
_WORDS = 8
#: The most bytes of the bit sets of conditions, and of those computed at a time.
_MOST_BYTES = 2**26
_CHUNK_BYTES = 2**19

Bits = NDArray[np.uint64]


def bits_of(mask: Mask) -> Bits:
    """Return rows as bits, 64 a word."""
    cells = np.packbits(mask, bitorder="little")
    unit = _WORDS * _WORD // 8
    padded = np.zeros(-(-max(len(cells), 1) // unit) * unit, dtype=np.uint8)
    padded[: len(cells)] = cells
    return padded.view(np.uint64)


def rows_of(bits: Bits) -> Ints:
    """Return the rows of a bit set."""
    cells = bits.view(np.uint8)
    filled = np.flatnonzero(cells)
    at = np.flatnonzero(np.unpackbits(cells[filled], bitorder="little"))
    rows: Ints = filled[at >> 3] * 8 + (at & 7)
    return rows


def count_bits(bits: Bits) -> Floats:
    """Count the bits along the last axis."""
    if hasattr(np, "bitwise_count"):
        each = np.bitwise_count(bits)
    else:  # NumPy before 2
        each = np.unpackbits(bits.view(np.uint8), axis=-1)
    counts: Floats = each.sum(axis=-1, dtype=np.float64)
    return counts


class _RowWeights:
    """Adds up the weights of rows in bit sets.

    Rows of weight 1 are counted; sums of other weights are exact, too, in any order,
    because all of them are on a grid.
    """

    def __init__(self, cases: Cases, n_classes: int) -> None:
        weights = cases.weights
        counted = bool(((weights == 0) | (weights == 1)).all())
        self._weights = None if counted else weights
        self._every = bits_of(weights > 0)
        self._some = None if weights.all() else self._every
        self._of_class = np.stack(
            [bits_of((cases.labels == at) & (weights > 0)) for at in range(n_classes)]
        )

    def total(self, bits: Bits) -> Floats:
        """Return the weights of bit sets."""
        if self._weights is not None:
            n_rows = len(self._weights)
            cells = bits.view(np.uint8)
            rows = np.unpackbits(cells, axis=-1, count=n_rows, bitorder="little")
            sums: Floats = rows.astype(np.float64) @ self._weights
            return sums
        return count_bits(bits if self._some is None else bits & self._some)

    def right(self, bits: Bits, labels: Ints) -> Floats:
        """Return the weights of the rows that have the class of their set."""
        return self.total(bits & self._of_class[labels])

    def of_rules(self, holds: Bits, codes: Ints, labels: Ints) -> tuple[Floats, Floats]:
        """Return the weights that rules cover, and those of their class, natively.

        Each rule has a line: without each of its conditions, and last with all.
        """
        total, right = extension().count_rules(
            holds=holds,
            conditions=plain_array(codes.astype(np.int64, copy=False)),
            labels=plain_array(labels.astype(np.int64, copy=False)),
            of_class=self._of_class,
            counted=self._every,
            weights=optional_array(self._weights),
        )
        return total, right


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
    bits: Bits

    @property
    def rows(self) -> Ints:
        """The rows that the rule covers."""
        return rows_of(self.bits)


def candidates(
    rules: Iterable[PathRule],
    classes: Sequence[Value],
    cases: Cases,
    estimate: Estimate,
) -> list[Candidate]:
    """Generalise rules; what is no rule of its own any more is left out.

    That is: what equals a rule before it, what has lost all its conditions, and what
    has a higher expected error rate than predicting its class for every row.
    """
    code = {label: at for at, label in enumerate(classes)}
    weights = _RowWeights(cases, len(classes))
    numbers: dict[Condition, int] = {}
    kept: dict[tuple[int, frozenset[int]], Candidate] = {}
    for batch in _batches(rules, len(cases.labels)):
        labels = np.array([code[rule.label] for rule in batch], dtype=np.intp)
        shortened = _Generalisation(batch, labels, cases, weights, estimate)
        number = [numbers.setdefault(c, len(numbers)) for c in shortened.conditions]
        for codes, candidate in shortened.run():
            key = candidate.label, frozenset(map(number.__getitem__, codes))
            kept.setdefault(key, candidate)
    right = add_up(cases.labels, cases.weights, len(classes))
    bar = error_rates(estimate, np.full(len(classes), cases.total), right)
    return [c for c in kept.values() if c.rate <= bar[c.label]]


def _batches(rules: Iterable[PathRule], n_rows: int) -> Iterator[list[PathRule]]:
    """Yield rules together whose conditions take limited memory as bit sets."""
    most = max(1, 8 * _MOST_BYTES // max(n_rows, 1))
    batch: list[PathRule] = []
    shared: set[int] = set()  # paths share the conditions of their nodes
    conditions: set[Condition] = set()
    for rule in rules:
        batch.append(rule)
        conditions.update(c for c in rule.conditions if id(c) not in shared)
        shared.update(map(id, rule.conditions))
        if len(conditions) >= most:
            yield batch
            batch, shared, conditions = [], set(), set()
    if batch:
        yield batch


class _Generalisation:
    """Drops conditions of rules while that does not raise their estimated error rates.

    All rules with the same number of conditions are treated at once, from the most
    conditions down; rules that have become equal go on as one. What a rule covers
    without each of its conditions is the intersection of the bit sets of the others.
    """

    def __init__(
        self,
        rules: Sequence[PathRule],
        labels: Ints,
        cases: Cases,
        weights: _RowWeights,
        estimate: Estimate,
    ) -> None:
        self._rules = rules
        self._labels = labels
        self._weights = weights
        self._estimate = estimate
        position: dict[Condition, int] = {}
        # Paths share the conditions of their nodes, each of which is hashed once.
        shared = {id(c): c for rule in rules for c in rule.conditions}
        code = {at: position.setdefault(c, len(position)) for at, c in shared.items()}
        self._codes = [[code[id(c)] for c in rule.conditions] for rule in rules]
        self.conditions = list(position)
        self._every = bits_of(np.ones(len(cases.labels), dtype=bool))
        self._holds = np.empty((len(position), len(self._every)), dtype=np.uint64)
        for condition, at in position.items():
            self._holds[at] = bits_of(cases.coverage.holds(condition))

    def run(self) -> Iterator[tuple[list[int], Candidate]]:
        """Yield the generalised rules that have conditions, in their order.

        With each come the positions of its conditions.
        """
        states = [
            (label, *codes)
            for label, codes in zip(self._labels.tolist(), self._codes, strict=True)
        ]
        after: dict[tuple[int, ...], tuple[int, ...]] = {}
        rates: dict[tuple[int, ...], float] = {}
        by_length: dict[int, list[tuple[int, ...]]] = {}
        for state in states:
            by_length.setdefault(len(state), []).append(state)
        level: dict[tuple[int, ...], None] = {}
        for n_conditions in range(max(by_length) - 1, 0, -1):
            level |= dict.fromkeys(by_length.get(n_conditions + 1, []))
            dropped: dict[tuple[int, ...], None] = {}
            for state, rate, at in self._steps(list(level)):
                rates[state] = rate
                if at >= 0:
                    after[state] = shorter = (*state[: at + 1], *state[at + 2 :])
                    dropped[shorter] = None
            level = dropped
        final: dict[tuple[int, ...], int] = {}
        for rule, first in zip(self._rules, states, strict=True):
            state = first
            while state in after:
                state = after[state]
            final.setdefault(state, rule.node)
        for state, node in final.items():
            label, *codes = state
            if codes:
                conditions = tuple(self.conditions[code] for code in codes)
                bits = self._holds[codes[0]].copy()
                for code in codes[1:]:
                    bits &= self._holds[code]
                yield codes, Candidate(conditions, label, node, rates[state], bits)

    def _steps(
        self, states: list[tuple[int, ...]]
    ) -> Iterator[tuple[tuple[int, ...], float, int]]:
        """Yield the rate of each rule, and the condition to drop, -1 for none."""
        if not states:
            return
        table = np.array(states, dtype=np.intp)
        labels, codes = table[:, 0], table[:, 1:]
        size = max(1, _CHUNK_BYTES // (codes.shape[1] * self._holds[0].nbytes))
        if available():
            size = len(states)  # the compiled kernel takes no memory for sets of rows
        for start in range(0, len(states), size):
            chosen = slice(start, start + size)
            rates, without = self._rates(labels[chosen], codes[chosen])
            least = without.min(axis=1)
            # Of equals the last is dropped: fewer cases reached its split.
            last = without.shape[1] - 1 - (without == least[:, None])[:, ::-1].argmax(1)
            drop = np.where(least > rates, -1, last)
            yield from zip(states[chosen], rates.tolist(), drop.tolist(), strict=True)

    def _rates(self, labels: Ints, codes: Ints) -> tuple[Floats, Floats]:
        """Return the error rates of rules, and those without each condition."""
        if available():
            sums = self._weights.of_rules(self._holds, codes, labels)
            every = error_rates(self._estimate, *sums)
            return every[:, -1], every[:, :-1]
        n_rules, n_conditions = codes.shape
        # Before each condition: what the conditions up to there have in common.
        without = np.empty((n_conditions + 1, n_rules, self._holds.shape[1]), np.uint64)
        without[0] = self._every
        for at in range(n_conditions):
            np.bitwise_and(without[at], self._holds[codes[:, at]], out=without[at + 1])
        after = self._holds[codes[:, -1]]
        for at in range(n_conditions - 2, -1, -1):
            without[at] &= after
            after &= self._holds[codes[:, at]]
        rates = error_rates(
            self._estimate,
            self._weights.total(without),
            self._weights.right(without, labels),
        )
        return rates[-1], rates[:-1].T


def error_rates(estimate: Estimate, total: Floats, right: Floats) -> Floats:
    """Return the pessimistic error rates of rules; 1 for one that covers nothing.

    ``total`` is the weight that each rule covers, ``right`` that of its class.
    """
    errors = total - right
    expected = errors + estimate.added(total, errors)
    rates: Floats = np.where(total > 0, expected / np.where(total > 0, total, 1), 1.0)
    return rates
