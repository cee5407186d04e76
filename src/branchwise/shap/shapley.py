"""Shapley values of sums of trees: the definition, and how it is evaluated.

The players are the columns. Of a set of columns the game is worth what is predicted for
the row if only these columns are known (``products``): a sum of products

    v(S) = sum over ends e: value(e) * product over columns c: own(e, c) if c is in S,
                                                                other(e, c) if not,

averaged over the background. The Shapley value of a game is an integral of the
gradient of its multilinear extension along the diagonal (Owen, 1972), for a product

    own(i) - other(i)  times  the integral over t from 0 to 1 of
        the product over c other than i: t * own(c) + (1 - t) * other(c),

a polynomial, which Gauss-Legendre quadrature integrates without error. All terms of
the quadrature are products and sums of shares, so nothing cancels. The interaction of
two columns is the same with two columns left out (Grabisch and Roubens, 1999).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Column, Columns
from branchwise.native import available, extension, plain_array, plain_arrays
from branchwise.shap.products import Product, Term, Tests, products
from branchwise.tree.apply import (
    Walker,
    native_arrays,
    native_surrogates,
    native_values,
)
from branchwise.tree.tree import Tree

#: Numbers in the largest array that is made at a time.
_BLOCK = 2**21
#: What rounding may amount to, relative to the numbers that are added up.
_LARGEST_RESIDUAL = 1e-9
#: Sums of probabilities this close, relative to the largest, are the same.
_SAME_SUM = 1e-14


@dataclass(frozen=True)
class Background:
    """Rows whose cells stand in for unknown columns, and their weights, of sum 1."""

    data: Columns
    weights: Floats


@dataclass(frozen=True)
class Shapley:
    """Shapley values: of (row, column, output); interactions of two columns, if any.

    ``base`` is what is predicted if no column is known, for each output;
    ``predictions`` is what is predicted for each row.
    """

    values: Floats
    interactions: Floats | None
    base: Floats
    predictions: Floats


def shapley_values(
    columns: Sequence[Column],
    terms: Sequence[Term],
    data: Columns,
    background: Background | None = None,
    interactions: bool = False,
    predictions: Floats | None = None,
    threads: int = 1,
) -> Shapley:
    """Return the Shapley values of the predictions of a sum of trees.

    Parameters
    ----------
    columns : sequence of Column
        The columns of the schema.
    terms : sequence of Term
        The trees, the values of their nodes, and their weights in the sum.
    data : Columns
        The encoded rows to explain.
    background : Background or None
        Rows to average over; None is by the weights of the training cases in the trees.
    interactions : bool
        Whether to return interactions, too.
    predictions : array or None
        What the model predicts for the rows, to the last bit; None is the sum.
    threads : int
        How many threads to use; the result is the same.
    """
    add_up = partial(_native_sum, threads=threads) if available() else sum_of_products
    values = add_up(columns, terms, data, background, pairs=False)
    if predictions is None:
        predictions = predicted(columns, terms, data)
    base = base_values(columns, terms, background)
    used = [int(term.tree.column[0]) for term in terms if not term.tree.is_leaf[0]]
    corrected(values, base, predictions, used[0] if used else None)
    matrix = None
    if interactions:
        matrix = add_up(columns, terms, data, background, pairs=True)
        # Half of an interaction is each column's; its main effect is what is left.
        matrix /= 2.0
        diagonal = np.arange(len(columns))
        matrix[:, diagonal, diagonal] = values - matrix.sum(axis=2)
    return Shapley(values, matrix, base, predictions)


def predicted(
    columns: Sequence[Column], terms: Sequence[Term], data: Columns
) -> Floats:
    """Return the sum of the trees' predictions."""
    total = np.zeros((data.n_rows, terms[0].values.shape[1]))
    for term in terms:
        walker = Walker(columns, term.tree)
        total += term.weight * walker.blend(data, term.values)
    return total


def base_values(
    columns: Sequence[Column], terms: Sequence[Term], background: Background | None
) -> Floats:
    """Return what is predicted if no column is known."""
    if background is not None:
        at_rows = predicted(columns, terms, background.data)
        # From the first one on: the mean of equal predictions is that prediction.
        base: Floats = at_rows[0] + background.weights @ (at_rows - at_rows[0])
        return base
    total = np.zeros(terms[0].values.shape[1])
    for term in terms:
        total += term.weight * (training_reach(columns, term.tree) @ term.values)
    return total


def training_reach(columns: Sequence[Column], tree: Tree) -> Floats:
    """Return which share of the training cases ended at each node."""
    tests = Tests(columns, tree)
    reach = np.zeros(len(tree))
    reach[0] = 1.0
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        *branches, _, stopped = tests.training_shares(node)[0].tolist()
        for child, share in zip(tree.children(node), branches, strict=True):
            reach[child] = reach[node] * share
        reach[node] *= stopped
    return reach


def sum_of_products(
    columns: Sequence[Column],
    terms: Sequence[Term],
    data: Columns,
    background: Background | None,
    pairs: bool,
) -> Floats:
    """Add up the values (or interactions) of all nodes where cases may end."""
    n, width = len(columns), terms[0].values.shape[1]
    total = np.zeros((data.n_rows, *([n] * (1 + pairs)), width))
    others = None if background is None else background.data
    weights = np.ones(1) if background is None else background.weights
    for term in terms:
        for product in products(columns, term.tree, data, others):
            if not product.columns:
                continue
            value = term.weight * term.values[product.node]
            effects = _effects(product, weights, pairs)[product.rows.of_row]
            index = np.array(product.columns)
            if pairs:
                cells = np.ix_(np.arange(data.n_rows), index, index)
                total[cells] += effects[..., np.newaxis] * value
            else:
                total[:, index] += effects[..., np.newaxis] * value
    return total


def _native_sum(
    columns: Sequence[Column],
    terms: Sequence[Term],
    data: Columns,
    background: Background | None,
    pairs: bool,
    threads: int,
) -> Floats:
    """Add up the same with the compiled extension: tree by tree, in their order."""
    width = terms[0].values.shape[1]
    # What classes have together does not change: the last one has what others lose.
    constant = width > 1 and all(_has_constant_sums(term.values) for term in terms)
    n_outputs = width - constant
    shape = (data.n_rows, *([len(columns)] * (1 + pairs)), width)
    out = np.zeros((*shape[:-1], n_outputs))
    for term in terms:
        tree = term.tree
        extension().add_shap(
            tree=native_arrays(tree),
            surrogates=native_surrogates(tree),
            sizes=plain_array(tree.weights.sum(axis=1)),
            values=native_values(columns),
            node_values=plain_array(term.weight * term.values[:, :n_outputs]),
            columns=plain_arrays(data.data),
            n_rows=data.n_rows,
            background=None
            if background is None
            else plain_arrays(background.data.data),
            weights=None if background is None else plain_array(background.weights),
            pairs=pairs,
            n_threads=threads,
            out=out.reshape(-1),
        )
    if not constant:
        return out
    total = np.empty(shape)
    total[..., :-1] = out
    total[..., -1] = 0.0 - out.sum(axis=-1)
    return total


def _has_constant_sums(values: Floats) -> bool:
    sums = values.sum(axis=1)
    return bool(np.ptp(sums) <= _SAME_SUM * np.abs(sums).max())


@cache
def quadrature(n_factors: int) -> tuple[Floats, Floats]:
    """Return points and weights between 0 and 1 that integrate so many factors."""
    points, weights = np.polynomial.legendre.leggauss(max((n_factors + 1) // 2, 1))
    return (points + 1.0) / 2.0, weights / 2.0


def _effects(product: Product, weights: Floats, pairs: bool) -> Floats:
    """Return the effects of the columns, or of pairs, for each pattern of rows."""
    others = product.others
    by_pattern = np.bincount(others.of_row, weights, len(others.patterns))
    own, n = product.rows.patterns, len(product.columns)
    effects = np.zeros((len(own), *([n] * (1 + pairs))))
    some = np.flatnonzero(product.possible)
    step = max(_BLOCK // (len(by_pattern) * n), 1)
    for start in range(0, len(some), step):
        here = some[start : start + step]
        gain = own[here, np.newaxis] - others.patterns
        for point, weight in zip(*quadrature(n), strict=True):
            factors = others.patterns + point * gain
            for which, rest in _without(factors, pairs):
                change = gain[..., list(which)].prod(axis=-1) * rest
                cells: tuple[Any, ...] = (here, *which)
                effects[cells] += weight * (change @ by_pattern)
    if pairs:
        effects += effects.transpose(0, 2, 1)
    return effects


def _without(factors: Floats, pairs: bool) -> Iterator[tuple[tuple[int, ...], Floats]]:
    """Yield the products of all factors but one, or but two."""
    for i in range(factors.shape[-1]):
        rest = np.delete(factors, i, axis=-1)
        if not pairs:
            yield (i,), rest.prod(axis=-1)
            continue
        for j in range(i + 1, factors.shape[-1]):
            yield (i, j), np.delete(rest, j - 1, axis=-1).prod(axis=-1)


def corrected(
    values: Floats, base: Floats, predictions: Floats, column: int | None = None
) -> None:
    """Take what rounding left out of the values: base plus values is the prediction.

    The residual, of the size of the last bits, goes to the value that is largest; what
    its last bit cannot hold, to the next largest, and so on. Values of 0 stay 0, unless
    all are: a row of which nothing is known goes where the training cases went, and
    ``column``, which a tree splits on first, has the last bit that its prediction
    differs by.
    """
    total = np.broadcast_to(base, predictions.shape).copy()
    error = np.zeros_like(total)
    for j in range(values.shape[1]):
        total, lost = _two_sum(total, values[:, j])
        error += lost
    residual = (predictions - total) - error
    # Of a class that never occurs, all there is may be what is left of other classes.
    size = np.abs(values).sum(axis=1) + np.abs(base) + np.abs(predictions)
    size = size.max(axis=1, keepdims=True, initial=0.0)
    if (np.abs(residual) > _LARGEST_RESIDUAL * size).any():
        raise ValueError("predictions are not those of the trees that are explained")
    order = np.argsort(-np.abs(values), axis=1, kind="stable")
    for rank in range(values.shape[1]):
        at = order[:, rank : rank + 1]
        value = np.take_along_axis(values, at, axis=1)[:, 0]
        new, lost = _two_sum(value, residual)
        new = np.where(value == 0.0, value, new)
        residual = np.where(value == 0.0, residual, lost)
        np.put_along_axis(values, at, new[:, np.newaxis], axis=1)
    if column is not None:
        values[:, column] += np.where((values == 0.0).all(axis=1), residual, 0.0)


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a rounded sum and what rounding lost (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)
