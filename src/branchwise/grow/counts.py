"""Counts: class weights or moments of the open nodes by code of one column.

Rows have the open node they are in, a code and a class. Criteria and the search see
only their :class:`Counts`. Merging counts is associative and commutative, merged
counts are the counts of the union, and the totals of a node are the sum over its
codes. Weights are on a grid where sums are exact (``data/weights.py``), so counts do
not depend on the order of rows or on the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, run_starts, selected
from branchwise.native import extension, optional_array, plain_array, plain_arrays

#: Up to this many cells, or this many per row, a dense table beats sorting.
_DENSE_CELLS = 1 << 16
_DENSE_CELLS_PER_ROW = 2


@dataclass(frozen=True)
class Counts:
    """Non-empty (node, code) pairs of one column, sorted by node, then code.

    ``weights[p, c]`` is the weight of class ``c`` in pair ``p``; ``cases[p]`` is
    how many cases that is, whatever they weigh.
    """

    node: Ints
    code: Ints
    weights: Floats
    cases: Floats

    def merge(self, other: Counts) -> Counts:
        """Add the counts of other rows of the same nodes and column."""
        node = np.concatenate([self.node, other.node])
        code = np.concatenate([self.code, other.code])
        order = np.lexsort((code, node))
        node, code = node[order], code[order]
        first = run_starts(node, code)
        weights = np.concatenate([self.weights, other.weights])[order]
        cases = np.concatenate([self.cases, other.cases])[order]
        return Counts(
            node[first],
            code[first],
            np.add.reduceat(weights, first, axis=0) if len(first) else weights,
            np.add.reduceat(cases, first) if len(first) else cases,
        )

    def totals(self, n_nodes: int) -> tuple[Floats, Floats]:
        """Class weights and cases of each node, over all its codes."""
        weights = np.zeros((n_nodes, self.weights.shape[1]))
        cases = np.zeros(n_nodes)
        if len(self.node):
            starts = run_starts(self.node)
            present = self.node[starts]
            weights[present] = np.add.reduceat(self.weights, starts, axis=0)
            cases[present] = np.add.reduceat(self.cases, starts)
        return weights, cases

    def select(self, mask: NDArray[np.bool_]) -> Counts:
        """Keep some of the pairs."""
        return selected(self, mask)


@dataclass(frozen=True)
class Rows:
    """Rows (or fractions of rows) in open nodes, to be counted.

    ``weight`` and ``case`` are None where every row counts as one. Where numbers are
    predicted, rows have moments: weight, and limbs of the sum and of the sum of
    squares.
    """

    node: Ints
    label: Ints
    weight: Floats | None
    case: Floats | None
    moments: Floats | None = None


def count_cells(
    columns: Sequence[NDArray[Any]],
    n_codes: Sequence[int],
    labels: NDArray[np.uint32],
    n_classes: int,
    nodes: NDArray[np.int32],
    n_nodes: int,
    weights: Floats | None,
) -> list[Counts]:
    """Count the codes of columns in tables of all cells, in the compiled kernel.

    Rows of node -1 are left out; weights are on their grid.
    """
    weighted = weights is not None
    per_pair = 1 if weighted else n_classes
    rows = [np.zeros(n_nodes * n * per_pair, dtype=np.int64) for n in n_codes]
    sums = [np.zeros(n_nodes * n * n_classes) for n in n_codes if weighted]
    extension().tally(
        columns=plain_arrays(columns),
        n_codes=list(n_codes),
        labels=labels,
        n_classes=n_classes,
        nodes=nodes,
        n_nodes=n_nodes,
        weights=optional_array(weights),
        rows=rows,
        sums=sums,
    )
    found = []
    for at, n in enumerate(n_codes):
        by_class = rows[at].reshape(n_nodes * n, per_pair)
        cases = sum(by_class.T[1:], start=by_class[:, 0])
        pairs = np.flatnonzero(cases)
        table = sums[at] if weighted else rows[at]
        weight = table.reshape(-1, n_classes)[pairs].astype(np.float64)
        node, code = (
            np.divmod(pairs, n) if n_nodes > 1 else (np.zeros_like(pairs), pairs)
        )
        found.append(Counts(node, code, weight, cases[pairs].astype(np.float64)))
    return found


def count_moments(
    columns: Sequence[NDArray[Any]],
    n_codes: Sequence[int],
    rows: Ints | None,
    case: Floats | None,
    moments: Floats,
) -> list[Counts]:
    """Add up the moments of cases of one node by code, in the compiled kernel.

    Codes are by row of the table, moments and fractions of cases by case; ``rows`` are
    those of the cases, all in order if there are none.
    """
    counts = [np.zeros(n, dtype=np.int64) for n in n_codes]
    cases = [np.zeros(n) for n in n_codes if case is not None]
    sums = [np.zeros((n, moments.shape[1])) for n in n_codes]
    extension().tally_moments(
        columns=plain_arrays(columns),
        n_codes=list(n_codes),
        rows=optional_array(rows),
        shares=optional_array(case),
        moments=plain_array(moments),
        counts=counts,
        cases=cases,
        sums=[table.reshape(-1) for table in sums],
    )
    result = []
    for at, n in enumerate(counts):
        found = np.flatnonzero(n)
        shares = cases[at] if cases else n.astype(np.float64)
        node = np.zeros_like(found)
        result.append(Counts(node, found, sums[at][found], shares[found]))
    return result


def moments_below(
    columns: Sequence[NDArray[Any]],
    above: Sequence[int],
    rows: Ints | None,
    case: Floats | None,
    moments: Floats,
) -> tuple[Floats, Floats]:
    """Add up the moments of the cases whose codes are below one, and count them.

    By column; otherwise as :func:`count_moments`.
    """
    cases, sums = np.zeros(len(columns)), np.zeros((len(columns), moments.shape[1]))
    extension().moments_below(
        columns=plain_arrays(columns),
        above=list(above),
        rows=optional_array(rows),
        shares=optional_array(case),
        moments=plain_array(moments),
        cases=cases,
        sums=sums.reshape(-1),
    )
    return sums, cases


def tally(
    rows: Rows, codes: NDArray[Any], n_nodes: int, n_codes: int, n_classes: int
) -> Counts:
    """Add up the class weights, or the moments, of every (node, code) pair."""
    if rows.moments is not None:
        return _tally_moments(rows, rows.moments, codes, n_codes)
    cells = n_nodes * n_codes * n_classes
    key = rows.node * n_codes
    key += codes
    key *= n_classes
    key += rows.label
    if cells <= max(_DENSE_CELLS, _DENSE_CELLS_PER_ROW * len(key)):
        return _tally_dense(rows, key, n_codes, n_classes, cells)
    return _tally_sorted(rows, key, n_codes, n_classes)


def _tally_dense(
    rows: Rows, key: Ints, n_codes: int, n_classes: int, cells: int
) -> Counts:
    """Count into a table of all cells, then keep the pairs that have rows."""
    occupied = np.bincount(key, minlength=cells).reshape(-1, n_classes)
    rows_of_pair = occupied.sum(axis=1)
    pairs = np.flatnonzero(rows_of_pair)
    cases: Floats = rows_of_pair[pairs].astype(np.float64)
    if rows.weight is None:
        weights = occupied[pairs].astype(np.float64)
    else:
        weights = add_up(key, rows.weight, cells).reshape(-1, n_classes)[pairs]
        if rows.case is not None:
            cases = add_up(key // n_classes, rows.case, cells // n_classes)[pairs]
    node, code = np.divmod(pairs, n_codes)
    return Counts(node, code, weights, cases)


def add_up(key: Ints, amount: Floats, cells: int) -> Floats:
    """Add up amounts by cell."""
    return np.bincount(key, amount, cells).astype(np.float64, copy=False)


def _tally_sorted(rows: Rows, key: Ints, n_codes: int, n_classes: int) -> Counts:
    """Sort the cells that have rows and add up runs: for many codes or nodes."""
    if rows.weight is None:
        key = np.sort(key)
        first = run_starts(key)
        amount: Floats = np.diff(first, append=len(key)).astype(np.float64)
    else:
        order = np.argsort(key)
        key = key[order]
        first = run_starts(key)
        amount = np.add.reduceat(rows.weight[order], first)
    cell = key[first]
    pair, label = np.divmod(cell, n_classes)
    first_of_pair = run_starts(pair)
    index = np.repeat(
        np.arange(len(first_of_pair)), np.diff(first_of_pair, append=len(pair))
    )
    weights = np.zeros((len(first_of_pair), n_classes))
    weights[index, label] = amount
    if rows.weight is None:
        cases = weights.sum(axis=1)
    elif rows.case is None:
        cases = np.diff(first[first_of_pair], append=len(key)).astype(np.float64)
    else:
        cases = np.add.reduceat(rows.case[order], first[first_of_pair])
    node, code = np.divmod(pair[first_of_pair], n_codes)
    return Counts(node, code, weights, cases)


def _tally_moments(
    rows: Rows, moments: Floats, codes: NDArray[Any], n_codes: int
) -> Counts:
    key = rows.node * n_codes + codes
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = run_starts(key)
    node, code = np.divmod(key[first], n_codes)
    if not len(first):
        return Counts(node, code, moments[:0], np.empty(0))
    cases: Floats = np.diff(first, append=len(key)).astype(np.float64)
    if rows.case is not None:
        cases = np.add.reduceat(rows.case[order], first)
    return Counts(node, code, np.add.reduceat(moments[order], first, axis=0), cases)
