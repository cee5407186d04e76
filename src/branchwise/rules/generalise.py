"""C4.5's rules: the rows that they cover, and their generalisation.

Each rule loses conditions, one at a time, as long as the pessimistic estimate of its
error rate does not rise: the estimate of error-based pruning, per case that the rule
covers (Quinlan, "Simplifying decision trees", 1987; "C4.5", 1993, chapter 5). Sets of
rows are bits, 64 a word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Column, Columns, Value
from branchwise.grow.counts import add_up
from branchwise.native import available, extension, optional_array, plain_array
from branchwise.prune.estimates import Estimate
from branchwise.rules.rule import PathRule
from branchwise.text.conditions import Condition
from branchwise.tree.apply import Walker
from branchwise.tree.tree import Tree

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

    def sets(self, conditions: Sequence[Condition]) -> Bits:
        """Return the rows that fulfil each of some conditions, as bits, a line each."""
        lines = np.empty((len(conditions), _n_words(self._data.n_rows)), np.uint64)
        bounds: dict[str, list[int]] = {}
        for at, condition in enumerate(conditions):
            if condition.op in ("<=", ">"):
                bounds.setdefault(condition.column, []).append(at)
            else:
                lines[at] = bits_of(self._evaluated(condition))
        for column, some in bounds.items():
            cells = self._data.data[self._index[column]]
            thresholds = np.array([conditions[at].value for at in some], np.float64)
            above = np.array([conditions[at].op == ">" for at in some])
            _mark_bounds(lines, np.array(some), cells, thresholds, above)
        return lines

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


def _mark_bounds(
    lines: Bits, at: Ints, cells: NDArray[Any], thresholds: Floats, above: Mask
) -> None:
    """Write the rows on a side of each threshold to lines of bits.

    Rows come in the order of their cells, so that each row is looked at once.
    """
    rows = np.argsort(cells)
    n_known = len(cells) - np.count_nonzero(np.isnan(cells))
    known = bits_of(~np.isnan(cells))
    order = np.argsort(thresholds)
    ends = np.searchsorted(cells[rows[:n_known]], thresholds[order], side="right")
    below = np.zeros(len(cells), dtype=bool)
    start = 0
    for number, end in zip(order.tolist(), ends.tolist(), strict=True):
        below[rows[start:end]] = True
        start = end
        found = bits_of(below)
        lines[at[number]] = known & ~found if above[number] else found


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


def leaf_order(columns: Sequence[Column], tree: Tree, data: Columns) -> Ints:
    """Return the rows in the order of the leaves where they arrive.

    So what a rule covers lies in few words of a set of rows, and near in memory.
    """
    arrivals = Walker(columns, tree).walk(data)
    rank = np.empty(len(tree.column), dtype=np.intp)
    rank[list(tree.preorder())] = np.arange(len(rank))
    first = np.searchsorted(arrivals.row, np.arange(data.n_rows))
    rows: Ints = np.argsort(rank[arrivals.node[first]], kind="stable")
    return rows


#: Rows of a word.
_WORD = 64
#: Words of a set of rows are padded to a multiple of this.
_WORDS = 8
#: The most bytes of the bit sets of conditions, and of those computed at a time.
MOST_BYTES = 2**26
_CHUNK_BYTES = 2**19

Bits = NDArray[np.uint64]


def bits_of(mask: Mask) -> Bits:
    """Return rows as bits, 64 a word."""
    cells = np.packbits(mask, bitorder="little")
    padded = np.zeros(_n_words(len(mask)) * _WORD // 8, dtype=np.uint8)
    padded[: len(cells)] = cells
    return padded.view(np.uint64)


def _n_words(n_rows: int) -> int:
    """Return the number of words of a set of rows."""
    return -(-max(n_rows, 1) // (_WORDS * _WORD)) * _WORDS


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

    def generalised(
        self, holds: Bits, rules: Sequence[Sequence[int]], labels: Ints, of: Estimate
    ) -> Iterator[_GeneralRule]:
        """Generalise rules natively; they have the numbers of their conditions."""
        ends = np.cumsum([0, *map(len, rules)])
        origins, starts, conditions, rates, sets = extension().generalise_rules(
            holds=holds,
            starts=ends.astype(np.int64, copy=False),
            conditions=np.fromiter(chain.from_iterable(rules), np.int64, ends[-1]),
            labels=plain_array(labels.astype(np.int64, copy=False)),
            of_class=self._of_class,
            counted=self._every,
            weights=optional_array(self._weights),
            log_confidence=math.log(of.confidence),
            z=of.z,
        )
        sets = sets.reshape(-1, holds.shape[1])
        codes, bounds = conditions.tolist(), starts.tolist()
        for at, (origin, rate) in enumerate(
            zip(origins.tolist(), rates.tolist(), strict=True)
        ):
            own = codes[bounds[at] : bounds[at + 1]]
            yield _GeneralRule(origin, own, rate, sets[at])


class _GeneralRule(NamedTuple):
    """What became of a rule: the numbers of its conditions, its rate and its rows."""

    origin: int
    codes: list[int]
    rate: float
    bits: Bits


class Candidate(NamedTuple):
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
    right = add_up(cases.labels, cases.weights, len(classes))
    bar = error_rates(estimate, np.full(len(classes), cases.total), right).tolist()
    numbers: dict[Condition, int] = {}
    kept: dict[tuple[int, frozenset[int]], Candidate | None] = {}
    for batch in _batches(rules, len(cases.labels)):
        labels = np.array([code[rule.label] for rule in batch.rules], dtype=np.intp)
        general = _Generalisation(batch, labels, cases, weights, estimate)
        number = [numbers.setdefault(c, len(numbers)) for c in batch.conditions]
        for origin, codes, rate, bits in general.run():
            label = int(labels[origin])
            key = label, frozenset(map(number.__getitem__, codes))
            if key in kept:
                continue
            conditions = tuple(map(batch.conditions.__getitem__, codes))
            node = batch.rules[origin].node
            found = Candidate(conditions, label, node, rate, bits)
            kept[key] = found if rate <= bar[label] else None
    return [candidate for candidate in kept.values() if candidate is not None]


@dataclass
class _Batch:
    """Rules that are generalised together, and the numbers of their conditions."""

    rules: list[PathRule]
    codes: list[list[int]]
    conditions: list[Condition]


def _batches(rules: Iterable[PathRule], n_rows: int) -> Iterator[_Batch]:
    """Yield rules together whose conditions take limited memory as bit sets."""
    most = max(1, 8 * MOST_BYTES // max(n_rows, 1))
    batch = _Batch([], [], [])
    number: dict[Condition, int] = {}
    # Paths share the conditions of their nodes, each of which is hashed once.
    shared: dict[int, int] = {}
    for rule in rules:
        batch.rules.append(rule)
        own = []
        for condition in rule.conditions:
            at = shared.get(id(condition))
            if at is None:
                at = number.setdefault(condition, len(number))
                shared[id(condition)] = at
            own.append(at)
        batch.codes.append(own)
        if len(number) >= most:
            batch.conditions = list(number)
            yield batch
            batch, number, shared = _Batch([], [], []), {}, {}
    if batch.rules:
        batch.conditions = list(number)
        yield batch


class _Generalisation:
    """Drops conditions of rules while that does not raise their estimated error rates.

    All rules with the same number of conditions are treated at once, from the most
    conditions down; rules that have become equal go on as one. What a rule covers
    without each of its conditions is the intersection of the bit sets of the others.
    """

    def __init__(
        self,
        batch: _Batch,
        labels: Ints,
        cases: Cases,
        weights: _RowWeights,
        estimate: Estimate,
    ) -> None:
        self._rules = batch.codes
        self._labels = labels
        self._weights = weights
        self._estimate = estimate
        self._every = bits_of(np.ones(len(cases.labels), dtype=bool))
        self._holds = cases.coverage.sets(batch.conditions)

    def run(self) -> Iterator[_GeneralRule]:
        """Yield the generalised rules that have conditions, in their order."""
        if available():
            return self._weights.generalised(
                self._holds, self._rules, self._labels, self._estimate
            )
        return self._by_levels()

    def _by_levels(self) -> Iterator[_GeneralRule]:
        states = [
            (label, *codes)
            for label, codes in zip(self._labels.tolist(), self._rules, strict=True)
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
        for origin, first in enumerate(states):
            state = first
            while state in after:
                state = after[state]
            final.setdefault(state, origin)
        for state, origin in final.items():
            codes = list(state[1:])
            if codes:
                bits = np.bitwise_and.reduce(self._holds[codes], axis=0)
                yield _GeneralRule(origin, codes, rates[state], bits)

    def _steps(
        self, states: list[tuple[int, ...]]
    ) -> Iterator[tuple[tuple[int, ...], float, int]]:
        """Yield the rate of each rule, and the condition to drop, -1 for none."""
        if not states:
            return
        table = np.array(states, dtype=np.intp)
        labels, codes = table[:, 0], table[:, 1:]
        size = max(1, _CHUNK_BYTES // (codes.shape[1] * self._holds[0].nbytes))
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
