"""Criteria: scores and gains of splits, from class weights alone, and importances.

:class:`Candidates` are ways to split open nodes. Each gets a score, the higher the
better, and a gain, which is compared with ``min_gain``.

With the *weighted impurity* of a group being its weight times its impurity, the gain
of a split is

    (weighted impurity of the node - sum of those of its branches) / weight of the node.

Weighted impurities are int64 in fixed point. Integers add up exactly, so a gain does
not depend on the order of values, classes or rows: the native kernel and every engine
get the same bits. The logarithm is computed with basic floating-point operations for
the same reason (library logarithms differ in their last bit). Quinlan, "Induction of
Decision Trees", Machine Learning 1 (1986), section 4; gain ratio: section 8 there;
Gini: Breiman et al., "CART" (1984), section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.errors import ParameterError
from branchwise.grow.counts import Counts
from branchwise.recipe import Recipe
from branchwise.recipe.parameters import CriterionFunction
from branchwise.tree.tree import Tree

ImpuritySums = NDArray[np.int64]


#: The rounding error of a few hundred weighted impurities is less than so many units,
_NOISE_UNITS = 256
#: plus this share of the largest of them, which float64 cannot tell apart.
_NOISE_SHIFT = 46
#: The largest penalty in bits, in units: twice any sum of weighted impurities.
_MOST_BITS = 2.0**62
#: The size of the largest table of x log2 x of whole numbers that is kept.
_TABLE_SIZE = 1 << 22
_TABLE_PIECE = 1 << 16
#: Scores of a user's criterion closer than this are equal, whatever their size.
_CUSTOM_RESOLUTION = 1e-12
#: A gain ratio is at most about 1, with this rounding error beside that of its gain.
_RATIO_RESOLUTION = 1e-12
#: Up to so many classes, weights are added up class by class.
_FEW_CLASSES = 8
_SQRT_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class Candidates:
    """Ways to split open nodes, all on one column.

    ``node[k]`` is the node that candidate ``k`` would split; its branches are the
    rows of ``branches`` from ``starts[k]`` to the next start. ``known`` are the
    class weights of the cases in the branches, ``unknown`` the weight of the others,
    both by node.
    """

    node: Ints
    branches: Floats
    starts: Ints
    known: Floats
    unknown: Floats


@dataclass(frozen=True)
class Scores:
    """Per candidate the score and the gain; per node the rounding error of scores.

    ``drop`` is the decrease of the weighted impurity by each candidate, ``information``
    its weight times its split information; a user's criterion has neither.
    """

    score: Floats
    gain: Floats
    resolution: Floats
    drop: ImpuritySums
    information: ImpuritySums


class ImpuritySums64:
    """Weight times impurity as int64 in units of 2**-bits."""

    #: Whether statistics are moments of numbers, not class weights.
    for_numbers = False
    #: A gain of 1 in the unit of the target.
    gain_unit = 1.0

    def __init__(self, total: float, whole: bool, table: bool = True) -> None:
        logarithm = math.log2(total) if total > 0 else 0.0
        # Bounds the sum of |x log2 x| over any partition of the total: fractions
        # of a weight can be as small as 2**-54 of it.
        largest = total * (max(logarithm, 1.0) if whole else abs(logarithm) + 54)
        self.bits = 61 - math.frexp(largest)[1]
        self.unit = math.ldexp(1.0, -self.bits)
        self._table: ImpuritySums | None = None
        if table and whole and total < _TABLE_SIZE:
            self._table = self._all_impurity_sums(int(total) + 1)

    def _all_impurity_sums(self, n: int) -> ImpuritySums:
        """Return x log2 x of whole numbers, computed in blocks to save memory."""
        impurity_sums = np.empty(n, dtype=np.int64)
        for begin in range(0, n, _TABLE_PIECE):
            numbers = np.arange(begin, min(begin + _TABLE_PIECE, n), dtype=np.float64)
            impurity_sums[begin : begin + _TABLE_PIECE] = self._x_log2_x(numbers)
        return impurity_sums

    @property
    def whole_terms(self) -> ImpuritySums | None:
        """X log2 x of all whole weights from 0, if they are kept."""
        return self._table

    def x_log2_x(self, weights: Floats) -> ImpuritySums:
        """X log2 x, the building block of entropy."""
        if self._table is None:
            return self._x_log2_x(weights)
        return self._table[weights.astype(np.intp)]

    def _x_log2_x(self, weights: Floats) -> ImpuritySums:
        return self._fixed(weights * log2(weights))

    def _fixed(self, values: Floats) -> ImpuritySums:
        fixed: ImpuritySums = np.rint(np.ldexp(values, self.bits)).astype(np.int64)
        return fixed

    def statistics(self, counts: Counts) -> Counts:
        """Return the statistics that impurities need: the counts themselves here."""
        return counts

    def squares(self, statistics: Floats) -> Floats:
        """Return the squared distances of counted numbers from their mean."""
        raise NotImplementedError("classes have no mean")

    def at(self, nodes: Ints) -> ImpuritySums64:  # noqa: ARG002
        """Return the weighted impurities for some of the nodes."""
        return self

    def in_units(self, amounts: Floats, node: Ints) -> Floats:  # noqa: ARG002
        """Return scores of nodes in a common unit."""
        return amounts

    def weight(self, statistics: Floats) -> Floats:
        """Return the weight of each row of class weights."""
        return row_sums(statistics)

    def impurity(
        self,
        weighted_impurity: Callable[[ImpuritySums64], Callable[[Floats], ImpuritySums]],
        weights: Floats,
    ) -> Floats:
        """Return the impurity of the nodes of a level, from their class weights."""
        sums = weighted_impurity(self)(weights)
        impurity: Floats = sums * self.unit / self.weight(weights)
        return impurity

    def mixed(self, statistics: Floats) -> NDArray[np.bool_]:
        """Tell which rows of class weights have more than one class."""
        mixed: NDArray[np.bool_] = np.count_nonzero(statistics, axis=-1) > 1
        return mixed

    def log2(self, values: Floats) -> ImpuritySums:
        """Binary logarithms in the units of weighted impurities."""
        return self._bounded(log2(values))

    def of_bits(self, bits: float) -> int:
        """Return a number of bits in the units of weighted impurities."""
        return int(self._bounded(np.array(bits)))

    def _bounded(self, bits: Floats) -> ImpuritySums:
        """Limit bits to twice the largest weighted impurity: weights may be small."""
        with np.errstate(over="ignore"):
            units = np.rint(np.ldexp(bits, self.bits))
        bounded: ImpuritySums = np.minimum(units, _MOST_BITS).astype(np.int64)
        return bounded

    def noise(self, totals: Floats) -> ImpuritySums:
        """Return the rounding error of weighted impurities, by weight of the node."""
        largest = np.abs(self.x_log2_x(totals)) >> _NOISE_SHIFT
        noise: ImpuritySums = largest + _NOISE_UNITS
        return noise

    def entropy(self, weights: Floats) -> ImpuritySums:
        """Weight times entropy in bits of each row of class weights."""
        inner: ImpuritySums = row_sums(self.x_log2_x(weights))
        return self.x_log2_x(row_sums(weights)) - inner

    def gini(self, weights: Floats) -> ImpuritySums:
        """Weight times Gini impurity of each row of class weights."""
        total = weights.sum(axis=-1, keepdims=True)
        # Not weight * weight / total, which may overflow.
        squares = weights * (weights / np.where(total > 0, total, 1.0))
        kept: ImpuritySums = self._fixed(squares).sum(axis=-1)
        return self._fixed(total[..., 0]) - kept


def row_sums(rows: NDArray[Any]) -> NDArray[Any]:
    """Add up each row; all sums are exact, in any order."""
    if not 0 < rows.shape[-1] <= _FEW_CLASSES:
        total: NDArray[Any] = rows.sum(axis=-1)
        return total
    # Column by column is faster than short row after short row.
    total = rows[..., 0].copy()
    for at in range(1, rows.shape[-1]):
        total += rows[..., at]
    return total


def log2(values: Floats) -> Floats:
    """Binary logarithm from basic IEEE operations; 0 where the value is 0.

    With the mantissa m in [sqrt(1/2), sqrt(2)) and z = (m - 1) / (m + 1), the
    series log2(m) = 2 / ln 2 * (z + z**3 / 3 + z**5 / 5 + ...) is truncated where
    its terms fall below the last bit. Powers of two come out exact.
    """
    mantissa, exponent = np.frexp(values)
    low = mantissa < _SQRT_HALF
    mantissa = np.where(low, mantissa * 2, mantissa)
    mantissa = np.where(values > 0, mantissa, 1.0)
    z = (mantissa - 1.0) / (mantissa + 1.0)
    square = z * z
    series = np.full_like(z, SERIES[-1])
    for coefficient in SERIES[-2::-1]:
        series *= square
        series += coefficient
    series *= z
    series += exponent - low
    return np.where(values > 0, series, 0.0)


SERIES = tuple(2 / math.log(2) / (2 * k + 1) for k in range(12))


@dataclass(frozen=True)
class Criterion:
    """A criterion by name, or a user's function of class weights."""

    name: str
    function: CriterionFunction | None = None

    @classmethod
    def of(cls, recipe: Recipe) -> Criterion:
        """Return the criterion of a recipe, ready to score candidates."""
        function = None if isinstance(recipe.criterion, str) else recipe.criterion
        return cls(recipe.criterion_name, function)

    def weighted_impurity(
        self, impurity_sums: ImpuritySums64
    ) -> Callable[[Floats], ImpuritySums]:
        """Return the function that computes weighted impurities of groups of cases."""
        weighted_impurity: Callable[[Floats], ImpuritySums] = getattr(
            impurity_sums, _IMPURITY[self.name]
        )
        return weighted_impurity

    def allows(self, branches: Floats) -> NDArray[np.bool_]:
        """Tell which branches a split may have, from their statistics.

        A leaf must not predict a rate of 0, where the deviance of an event is infinite;
        branches without cases are absent.
        """
        if self.name != "poisson":
            return np.ones(len(branches), dtype=bool)
        weight, events = branches[:, 0], branches[:, 1:].sum(axis=1)
        allowed: NDArray[np.bool_] = (events > 0) | (weight == 0)
        return allowed

    def score(self, candidates: Candidates, impurity_sums: ImpuritySums64) -> Scores:
        """Score every candidate."""
        if self.function is not None:
            return _score_by_function(self, self.function, candidates)
        impurity = self.weighted_impurity(impurity_sums)
        known = candidates.known
        total = impurity_sums.weight(known) + candidates.unknown
        node = candidates.node
        in_branches = np.add.reduceat(impurity(candidates.branches), candidates.starts)
        drop = np.maximum(impurity(known)[node] - in_branches, 0)
        gain = drop * impurity_sums.unit / total[node]
        if self.name == "poisson":
            allowed = self.allows(candidates.branches)
            possible = np.logical_and.reduceat(allowed, candidates.starts)
            gain = np.where(possible, gain, -np.inf)
        resolution = impurity_sums.noise(total) * impurity_sums.unit / total
        if self.name != "gain_ratio":
            return Scores(gain, gain, resolution, drop, np.ones_like(drop))
        information = _split_information(candidates, total, impurity_sums)
        noise = np.full_like(total, _RATIO_RESOLUTION) + resolution
        return Scores(drop / information, gain, noise, drop, information)


def _split_information(
    candidates: Candidates, total: Floats, impurity_sums: ImpuritySums64
) -> ImpuritySums:
    """Weight times the entropy of the branch sizes, the unknown cases as one more."""
    sizes = impurity_sums.x_log2_x(candidates.branches.sum(axis=1))
    whole = impurity_sums.x_log2_x(total) - impurity_sums.x_log2_x(candidates.unknown)
    information: ImpuritySums = whole[candidates.node] - np.add.reduceat(
        sizes, candidates.starts
    )
    return np.maximum(information, 1)


def lowered(
    criterion: Criterion,
    scores: Scores,
    units: int,
    total: Floats,
    impurity_sums: ImpuritySums64,
) -> Floats:
    """Score candidates whose impurity decrease is reduced by so many units."""
    left = np.maximum(scores.drop - units, 0)
    if criterion.name == "gain_ratio":
        ratio: Floats = left / scores.information
        return ratio
    gain: Floats = left * impurity_sums.unit / total
    return np.where(scores.score > -np.inf, gain, -np.inf)


def merger_scores(
    criterion: Criterion,
    impurity_sums: ImpuritySums64,
    groups: Floats,
    pairs: Ints,
    unknown: Floats,
) -> Floats:
    """Score splits of nodes in groups, two of which are merged; one score a pair.

    ``groups`` has shape (nodes, groups, classes), ``pairs`` has two groups a row.
    """
    impurity = criterion.weighted_impurity(impurity_sums)
    first, second = pairs.T
    joined = groups[:, first] + groups[:, second]

    def sums(weighted_impurity_of: Callable[[Floats], ImpuritySums]) -> ImpuritySums:
        weighted_impurity = weighted_impurity_of(groups)
        apart = weighted_impurity[:, first] + weighted_impurity[:, second]
        total: ImpuritySums = (
            weighted_impurity.sum(axis=1)[:, np.newaxis]
            - apart
            + weighted_impurity_of(joined)
        )
        return total

    whole = groups.sum(axis=1)
    weight = impurity_sums.weight(whole) + unknown
    drop = np.maximum(impurity(whole)[:, np.newaxis] - sums(impurity), 0)
    if criterion.name != "gain_ratio":
        gain: Floats = drop * impurity_sums.unit / weight[:, np.newaxis]
        return gain
    outside = impurity_sums.x_log2_x(weight) - impurity_sums.x_log2_x(unknown)
    inside = sums(lambda piece: impurity_sums.x_log2_x(impurity_sums.weight(piece)))
    ratio: Floats = drop / np.maximum(outside[:, np.newaxis] - inside, 1)
    return ratio


def _score_by_function(
    criterion: Criterion, function: CriterionFunction, candidates: Candidates
) -> Scores:
    """Call a user's function with dense arrays; absent branches are rows of zeros."""
    known = candidates.known[candidates.node]
    size = np.diff(candidates.starts, append=len(candidates.branches))
    owner = np.repeat(np.arange(len(size)), size)
    within = np.arange(len(owner)) - candidates.starts[owner]
    dense = np.zeros((len(size), size.max(initial=0), known.shape[1]))
    dense[owner, within] = candidates.branches
    score = np.asarray(function(known, dense), dtype=np.float64)
    if score.shape != (len(size),):
        raise ParameterError(
            f"criterion {criterion.name!r} must return one score for each of the "
            f"{len(size)} nodes it is given. Got an array of shape {score.shape}."
        )
    if np.isnan(score).any():
        raise ParameterError(
            f"criterion {criterion.name!r} returned NaN. Scores must be numbers; "
            "branches without cases are rows of zeros and need care."
        )
    share = known.sum(axis=1) / (
        known.sum(axis=1) + candidates.unknown[candidates.node]
    )
    resolution = np.full(len(candidates.known), _CUSTOM_RESOLUTION)
    nothing = np.zeros(len(size), dtype=np.int64)
    return Scores(score * share, score * share, resolution, nothing, nothing)


def entropy(weights: Sequence[float]) -> float:
    """Return the entropy, in bits, of one sequence of class weights.

    For illustration; growth uses :class:`ImpuritySums64`.

    Examples
    --------
    >>> round(entropy([9, 5]), 3)
    0.94
    """
    total = math.fsum(weights)
    shares = [weight / total for weight in weights if weight > 0]
    return math.fsum(-share * math.log2(share) for share in shares) + 0.0


_IMPURITY = {
    "gain": "entropy",
    "gain_ratio": "entropy",
    "gini": "gini",
    "variance": "variance",
    "poisson": "poisson",
}


#: A smaller share of a node's weight is a rounding error, not a case that stopped.
_STOPPED = 1e-9


_SMALLEST = 1e-290


def column_importances(tree: Tree, n_columns: int, gini: bool = False) -> Floats:
    """Sum weight times impurity decrease over the nodes of each column.

    Cases that stop at a node are a group of their own there. All zero for a tree that
    is a single leaf or whose splits gain nothing.
    """
    split = np.flatnonzero(tree.n_children)
    result = np.zeros(n_columns)
    if not len(split):
        return result
    if tree.mean is None:
        drop = _class_drop(tree, split, gini)
    else:
        drop = _variance_drop(tree, tree.mean, split)[0]
    np.add.at(result, tree.column[split], drop)
    return result / result.sum() if result.sum() > 0 else result


def split_gains(tree: Tree, gini: bool = False) -> Floats:
    """Return the impurity decrease of each node's split; 0 for leaves.

    In bits, in Gini impurity or, where numbers are predicted, in their units squared.
    """
    split = np.flatnonzero(tree.n_children)
    gains = np.zeros(len(tree))
    if not len(split):
        return gains
    if tree.mean is None:
        drop = _class_drop(tree, split, gini)
        gains[split] = drop / tree.weights[split].sum(axis=1)
    else:
        drop, scale = _variance_drop(tree, tree.mean, split)
        weight = tree.weights[split, 0] / tree.weights[:, 0].max()
        # A node of almost no weight, as files may have it, has almost no decrease.
        gain = np.divide(drop, weight, out=np.zeros_like(drop), where=weight > 0)
        gains[split] = gain * scale * scale
    return gains


def _class_drop(tree: Tree, split: Ints, gini: bool) -> Floats:
    """Return the weight times the impurity decrease of each split."""
    weights = tree.weights
    # The root has the largest weight, unless a tree was made by hand or is wrong.
    total = float(weights.sum(axis=1).max())
    impurity_sums = ImpuritySums64(total, bool((weights == np.rint(weights)).all()))
    impurity = impurity_sums.gini if gini else impurity_sums.entropy
    starts = tree.first_child[split]
    below = np.add.reduceat(weights, starts, axis=0)
    stopped = np.maximum(weights[split] - below, 0)
    weighted_impurity = impurity(weights)
    left = np.add.reduceat(weighted_impurity, starts) + impurity(stopped)
    drop: Floats = np.maximum(weighted_impurity[split] - left, 0) * impurity_sums.unit
    return drop


def _variance_drop(tree: Tree, mean: Floats, split: Ints) -> tuple[Floats, float]:
    """Return the weight times the variance decrease of each split.

    That is the squared distances of the groups' means from the mean of the node.
    Weights are shares of the root's; distances are in a unit, which is returned, too.
    """
    starts = tree.first_child[split]
    weight = tree.weights[:, 0] / tree.weights[:, 0].max()
    away = np.concatenate([[0.0], mean[1:] - mean[tree.parent[1:]]])
    unit = max(float(np.abs(away).max()), _SMALLEST)
    away /= unit  # squares that do not overflow
    drop: Floats = np.add.reduceat(weight * away * away, starts)
    stopped = weight[split] - np.add.reduceat(weight, starts)
    # The deviations of all groups sum to 0: those that stopped have the rest.
    balance = np.add.reduceat(weight * away, starts)
    some = stopped > _STOPPED * weight[split]
    drop[some] += balance[some] ** 2 / stopped[some]
    return drop, unit
