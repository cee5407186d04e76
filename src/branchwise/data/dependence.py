"""Dependence between columns: equal partitions, equal order, errors of a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats
from branchwise.data.arrow import number_cells
from branchwise.data.columns import Coded, RawColumn

Codes = NDArray[np.integer[Any]]

#: Integers are used as codes if their range is at most this times the rows.
WITHOUT_MISSING = 1.5
#: Size of the sample that is checked before all rows are.
_SAMPLE = 1000
#: Size of the sample whose order is compared.
_RANKED = 100_000
#: The share of the rows without the most frequent value that may differ.
_DIFFERENT = 0.01
#: The same for a sample.
_DIFFERENT_IN_SAMPLE = 0.05
_SAME_ORDER = 0.9999
#: Size of the sample that excludes columns which do not determine the class.
_SAMPLE_ROWS = 2000


@dataclass(frozen=True)
class Coding:
    """A code for each row, -1 where it is missing, and the rows of each code."""

    codes: Codes
    counts: NDArray[np.int64]

    @property
    def n_values(self) -> int:
        """How many values occur."""
        return int(np.count_nonzero(self.counts))

    @property
    def sizes(self) -> bytes:
        """The sizes of the groups: equal where partitions are, and fast to compute."""
        return np.sort(self.counts[self.counts > 0]).tobytes()

    @property
    def signature(self) -> bytes:
        """Bytes that are equal only for columns with the same partition of the rows."""
        return _by_appearance(self.codes).tobytes()


def codes_of(raw: RawColumn) -> Coding | None:
    """Encode the distinct values of a column; None for numbers that hardly repeat.

    Such numbers are measurements: which of them are equal carries no information.
    """
    if isinstance(raw, Coded):
        return _counted(raw.codes)
    values = raw.values
    missing = np.isnan(values)
    known = values[~missing]
    if not len(known):
        return _counted(np.full(len(values), -1, dtype=np.int32))
    least, largest = float(known.min()), float(known.max())
    dense = least > -np.inf and largest - least <= WITHOUT_MISSING * len(known)
    if dense and _all_whole(known):
        filled = np.where(missing, least - 1, values)
        return _counted((filled - least).astype(np.int32))
    if 2 * len(np.unique(_sample(known))) > len(_sample(known)):
        return None
    plain = np.where(missing, np.nan, values + 0.0)  # one zero, one missing value
    codes: Codes
    numbered = number_cells(plain)
    if numbered is None:
        codes = np.unique(plain, return_inverse=True)[1].reshape(-1)
    else:
        codes = numbered[0]
    return _counted(np.where(missing, -1, codes))


def _counted(codes: Codes) -> Coding:
    counts = np.bincount(codes.astype(np.int64) + 1, minlength=1)
    return Coding(codes, counts[1:])


def _all_whole(values: Floats) -> bool:
    piece = _sample(values)
    return bool((piece == np.rint(piece)).all() and (values == np.rint(values)).all())


def _sample(values: Floats) -> Floats:
    return values[:: max(1, len(values) // _SAMPLE)]


def _by_appearance(codes: Codes) -> NDArray[np.int32]:
    """Renumber codes in the order of their first appearance."""
    codes = codes.astype(np.int64)
    rows = np.flatnonzero(codes >= 0)[::-1]
    first = np.full(int(codes.max(initial=-1)) + 1, len(codes), dtype=np.int64)
    first[codes[rows]] = rows  # the last assignment to a repeated index wins
    rank = np.full(len(first) + 1, -1, dtype=np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first), dtype=np.int32)
    rank[-1] = -1
    appeared: NDArray[np.int32] = rank[codes]
    return appeared


def same_partition(one: Coding, other: Coding) -> bool:
    """Tell whether two columns give nearly the same partition, up to value names.

    At most 1 % of the rows without the most frequent value may differ: two columns are
    not equal just because both are nearly constant.
    """
    step = max(1, len(one.codes) // _SAMPLE)
    if step > 1:
        piece, other_sample = one.codes[::step], other.codes[::step]
        if not _alike(piece, other_sample, _DIFFERENT_IN_SAMPLE, len(piece) // 100):
            return False
    return _alike(one.codes, other.codes, _DIFFERENT, 0)


def _alike(one: Codes, other: Codes, share: float, slack: int) -> bool:
    n = len(one)
    a, b = one.astype(np.int64) + 1, other.astype(np.int64) + 1
    rest = n - max(int(np.bincount(a).max()), int(np.bincount(b).max()))
    allowed = share * rest + slack
    width = int(b.max()) + 1
    pairs, times = np.unique(a * width + b, return_counts=True)
    sides = (pairs // width, pairs % width)
    return all(n - _largest_of_groups(side, times) <= allowed for side in sides)


def _largest_of_groups(group: NDArray[np.int64], times: NDArray[np.int64]) -> int:
    """Add up the largest number of each group."""
    best = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(best, group, times)
    return int(best.sum())


def same_order(one: Floats, other: Floats) -> bool:
    """Tell whether two numeric columns have nearly the same, or the reverse, order.

    Both allow the same splits. Missing values must be in the same rows.
    """
    for limit in (_SAMPLE, _RANKED):
        step = max(1, len(one) // limit)
        if not _correlated(one[::step], other[::step]):
            return False
    return True


def _correlated(one: Floats, other: Floats) -> bool:
    missing = np.isnan(one)
    if not np.array_equal(missing, np.isnan(other)):
        return False
    a, b = _ranks(one[~missing]), _ranks(other[~missing])
    if len(a) < 2 or not a.std() or not b.std():
        return False
    return bool(abs(np.corrcoef(a, b)[0, 1]) >= _SAME_ORDER)


def _ranks(values: Floats) -> Floats:
    """Return ranks; equal numbers get their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = (ends - (counts - 1) / 2)[inverse.reshape(-1)]
    return ranks


def errors_in_sample(coding: Coding, classes: Coding) -> float:
    """Return a lower bound of the share of rows that the values do not classify."""
    step = max(1, len(classes.codes) // _SAMPLE_ROWS)
    labels = classes.codes[::step].astype(np.int64)
    rows = labels >= 0
    values = coding.codes[::step][rows].astype(np.int64) + 1
    n_classes = len(classes.counts)
    found, times = np.unique(values * n_classes + labels[rows], return_counts=True)
    right = _largest_of_groups(found // n_classes, times)
    return 1 - right / max(int(rows.sum()), 1)


def errors_without_own(coding: Coding, classes: Coding) -> int:
    """Count rows whose class is not the majority of the other rows with their value.

    Missing counts as a value. A unique value is an error: identifiers determine
    nothing.
    """
    n_classes = len(classes.counts)
    rows = classes.codes >= 0
    pairs = (coding.codes[rows].astype(np.int64) + 1) * n_classes + classes.codes[rows]
    found, times = _tallied(pairs, (len(coding.counts) + 1) * n_classes)
    value = found // n_classes
    # The two largest classes of every value.
    order = np.lexsort((times, value))
    value, times = value[order], times[order]
    last = np.append(value[1:] != value[:-1], True)
    ends = np.flatnonzero(last)
    largest = times[ends]
    has_second = np.append(False, ~last[:-1])[ends]
    second = np.where(has_second, times[ends - 1], 0)
    right = np.where(largest - 1 > second, largest, 0)
    return int(rows.sum() - right.sum())


def _tallied(
    keys: NDArray[np.int64], n_keys: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys that occur, and how often."""
    if n_keys <= 4 * len(keys) + 1024:
        times = np.bincount(keys, minlength=1)
        found = np.flatnonzero(times)
        return found, times[found]
    found, times = np.unique(keys, return_counts=True)
    return found, times


def in_order(values: Floats, classes: Codes) -> bool:
    """Tell whether each class has a range of numbers of its own, missing ones aside.

    A sample is checked first: if its ranges overlap, so do those of all rows.
    """
    step = len(values) // _SAMPLE_ROWS
    if step > 1 and not _in_order(values[::step], classes[::step]):
        return False
    return _in_order(values, classes)


def _in_order(values: Floats, classes: Codes) -> bool:
    labelled = classes >= 0
    known = ~np.isnan(values) & labelled
    order = np.argsort(values[known], kind="stable")
    numbers, labels = values[known][order], classes[known][order]
    without = np.unique(classes[labelled & ~known])
    if not len(numbers) or len(without) > 1 or np.isin(without, labels).any():
        return False
    changes = np.flatnonzero(labels[1:] != labels[:-1])
    if (numbers[changes] == numbers[changes + 1]).any():
        return False
    return len(changes) + 1 == len(np.unique(labels))
