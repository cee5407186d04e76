"""Stage 3: how good a split is, from class weights alone.

Comes in: :class:`Candidates`, ways to split open nodes. Goes out: a score for
each, the higher the better, and the gain that ``min_gain`` is held against.

The identity everything rests on: with the *mass* of a group being its weight
times its impurity, the gain of a split is

    (mass of the node - sum of the masses of its branches) / weight of the node.

Masses are int64 in fixed point. Integers add up exactly, so a gain does not
depend on the order of values, classes or rows, nor on who computes it: the
compiled twin and every engine get the same bits. The logarithm is spelled out in
basic floating-point operations for the same reason (library logarithms differ in
their last bit). Quinlan, "Induction of Decision Trees", Machine Learning 1
(1986), section 4; gain ratio: section 8 there; Gini: Breiman et al., "CART"
(1984), section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.errors import ParameterError
from branchwise.grow.counts import Counts
from branchwise.recipe import CriterionFunction, Recipe

Masses = NDArray[np.int64]


#: Sums of a few hundred rounded masses are off by less than this many units, ...
_NOISE_UNITS = 256
#: ... plus this share of the largest of them, which float64 cannot tell apart.
_NOISE_SHIFT = 46
#: Bits that are no weight are at most so many units: twice any sum of masses.
_MOST_BITS = 2.0**62
#: The largest table of masses of whole numbers that is kept.
_TABLE_SIZE = 1 << 22
_TABLE_PIECE = 1 << 16
#: Scores of a user's criterion closer than this are equal, whatever their size.
_CUSTOM_RESOLUTION = 1e-12


@dataclass(frozen=True)
class Candidates:
    """Ways to split open nodes, all on one column.

    ``node[k]`` is the node that candidate ``k`` would split; its branches are the
    rows of ``branches`` from ``starts[k]`` to the next start. ``known`` are the
    class weights of the cases that the branches share out, ``unknown`` the weight
    of the others, both by node.
    """

    node: Ints
    branches: Floats
    starts: Ints
    known: Floats
    unknown: Floats


@dataclass(frozen=True)
class Scores:
    """Per candidate the score and the gain; per node what counts as noise.

    ``drop`` is the mass that each candidate takes away, ``information`` its weight
    times its split information; a user's criterion has neither.
    """

    score: Floats
    gain: Floats
    resolution: Floats
    drop: Masses
    information: Masses


class Masses64:
    """Weight times impurity as int64 in units of 2**-bits."""

    #: Whether statistics are moments of numbers, not class weights.
    for_numbers = False
    #: What a gain of 1 is, in the units of what is predicted.
    gain_unit = 1.0

    def __init__(self, total: float, whole: bool, table: bool = True) -> None:
        logarithm = math.log2(total) if total > 0 else 0.0
        # Bounds the sum of |x log2 x| over any partition of the total: fractions
        # of a weight can be as small as 2**-54 of it.
        largest = total * (max(logarithm, 1.0) if whole else abs(logarithm) + 54)
        self.bits = 61 - math.frexp(largest)[1]
        self.unit = math.ldexp(1.0, -self.bits)
        self._table: Masses | None = None
        if table and whole and total < _TABLE_SIZE:
            self._table = self._all_masses(int(total) + 1)

    def _all_masses(self, n: int) -> Masses:
        """Return the masses of whole numbers; in pieces, which take little memory."""
        masses = np.empty(n, dtype=np.int64)
        for begin in range(0, n, _TABLE_PIECE):
            numbers = np.arange(begin, min(begin + _TABLE_PIECE, n), dtype=np.float64)
            masses[begin : begin + _TABLE_PIECE] = self._x_log2_x(numbers)
        return masses

    def x_log2_x(self, weights: Floats) -> Masses:
        """X log2 x, the building block of entropy."""
        if self._table is None:
            return self._x_log2_x(weights)
        return self._table[weights.astype(np.intp)]

    def _x_log2_x(self, weights: Floats) -> Masses:
        return self._fixed(weights * log2(weights))

    def _fixed(self, values: Floats) -> Masses:
        fixed: Masses = np.rint(np.ldexp(values, self.bits)).astype(np.int64)
        return fixed

    def statistics(self, counts: Counts) -> Counts:
        """Return counts in terms of what masses are made of: class weights are."""
        return counts

    def squares(self, statistics: Floats) -> Floats:
        """Return the squared distances of counted numbers from their mean."""
        raise NotImplementedError("classes have no mean")

    def at(self, nodes: Ints) -> Masses64:  # noqa: ARG002
        """Return the masses of some of the nodes that these are for."""
        return self

    def in_units(self, amounts: Floats, node: Ints) -> Floats:  # noqa: ARG002
        """Return scores of nodes in units that all nodes share."""
        return amounts

    def weight(self, statistics: Floats) -> Floats:
        """Return the weight of each row of class weights."""
        weight: Floats = statistics.sum(axis=-1)
        return weight

    def mixed(self, statistics: Floats) -> NDArray[np.bool_]:
        """Tell which rows of class weights have more than one class."""
        mixed: NDArray[np.bool_] = np.count_nonzero(statistics, axis=-1) > 1
        return mixed

    def log2(self, values: Floats) -> Masses:
        """Binary logarithms in the units of masses."""
        return self._bounded(log2(values))

    def of_bits(self, bits: float) -> int:
        """Return a number of bits in the units of masses."""
        return int(self._bounded(np.array(bits)))

    def _bounded(self, bits: Floats) -> Masses:
        """Keep bits at twice what any sum of masses can be: weights may be small."""
        with np.errstate(over="ignore"):
            units = np.rint(np.ldexp(bits, self.bits))
        bounded: Masses = np.minimum(units, _MOST_BITS).astype(np.int64)
        return bounded

    def noise(self, totals: Floats) -> Masses:
        """Return how many units sums of masses may be off in nodes of these weights."""
        largest = np.abs(self.x_log2_x(totals)) >> _NOISE_SHIFT
        noise: Masses = largest + _NOISE_UNITS
        return noise

    def entropy(self, weights: Floats) -> Masses:
        """Weight times entropy in bits of each row of class weights."""
        inner: Masses = self.x_log2_x(weights).sum(axis=-1)
        return self.x_log2_x(weights.sum(axis=-1)) - inner

    def gini(self, weights: Floats) -> Masses:
        """Weight times Gini impurity of each row of class weights."""
        total = weights.sum(axis=-1, keepdims=True)
        # Not weight * weight / total, which may overflow.
        squares = weights * (weights / np.where(total > 0, total, 1.0))
        kept: Masses = self._fixed(squares).sum(axis=-1)
        return self._fixed(total[..., 0]) - kept


def log2(values: Floats) -> Floats:
    """Binary logarithm from basic IEEE operations; 0 where the value is 0.

    With the mantissa m in [sqrt(1/2), sqrt(2)) and z = (m - 1) / (m + 1), the
    series log2(m) = 2 / ln 2 * (z + z**3 / 3 + z**5 / 5 + ...) is cut off where
    its terms fall below the last bit. Powers of two come out exact.
    """
    mantissa, exponent = np.frexp(values)
    low = mantissa < math.sqrt(0.5)
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

    def mass(self, masses: Masses64) -> Callable[[Floats], Masses]:
        """Return what gives groups of cases their mass; a user's function has none."""
        mass: Callable[[Floats], Masses] = getattr(masses, _IMPURITY[self.name])
        return mass

    def allows(self, branches: Floats) -> NDArray[np.bool_]:
        """Tell which branches a split may make, from their statistics.

        A rate of 0 is none that a leaf may predict: the deviance of any event is
        infinite there. scikit-learn makes no such branch, either. A branch without
        cases is not made at all.
        """
        if self.name != "poisson":
            return np.ones(len(branches), dtype=bool)
        weight, events = branches[:, 0], branches[:, 1:].sum(axis=1)
        allowed: NDArray[np.bool_] = (events > 0) | (weight == 0)
        return allowed

    def score(self, candidates: Candidates, masses: Masses64) -> Scores:
        """Score every candidate."""
        if self.function is not None:
            return _score_by_function(self, self.function, candidates)
        impurity = self.mass(masses)
        known = candidates.known
        total = masses.weight(known) + candidates.unknown
        node = candidates.node
        in_branches = np.add.reduceat(impurity(candidates.branches), candidates.starts)
        drop = np.maximum(impurity(known)[node] - in_branches, 0)
        gain = drop * masses.unit / total[node]
        if self.name == "poisson":
            allowed = self.allows(candidates.branches)
            possible = np.logical_and.reduceat(allowed, candidates.starts)
            gain = np.where(possible, gain, -np.inf)
        resolution = masses.noise(total) * masses.unit / total
        if self.name != "gain_ratio":
            return Scores(gain, gain, resolution, drop, np.ones_like(drop))
        information = _split_information(candidates, total, masses)
        # A ratio is at most 1 or so, and as noisy as its gain.
        noise = np.full_like(total, 1e-12) + resolution
        return Scores(drop / information, gain, noise, drop, information)


def _split_information(
    candidates: Candidates, total: Floats, masses: Masses64
) -> Masses:
    """Weight times the entropy of the branch sizes, the unknown cases as one more."""
    sizes = masses.x_log2_x(candidates.branches.sum(axis=1))
    whole = masses.x_log2_x(total) - masses.x_log2_x(candidates.unknown)
    information: Masses = whole[candidates.node] - np.add.reduceat(
        sizes, candidates.starts
    )
    return np.maximum(information, 1)


def lowered(
    criterion: Criterion, scores: Scores, units: int, total: Floats, masses: Masses64
) -> Floats:
    """Score candidates whose masses taken away are lowered by so many units."""
    left = np.maximum(scores.drop - units, 0)
    if criterion.name == "gain_ratio":
        ratio: Floats = left / scores.information
        return ratio
    gain: Floats = left * masses.unit / total
    return np.where(scores.score > -np.inf, gain, -np.inf)


def merger_scores(
    criterion: Criterion,
    masses: Masses64,
    groups: Floats,
    pairs: Ints,
    unknown: Floats,
) -> Floats:
    """Score splits of nodes in groups, two of which are merged; one score a pair.

    ``groups`` has shape (nodes, groups, classes), ``pairs`` has two groups a row.
    """
    impurity = criterion.mass(masses)
    first, second = pairs.T
    joined = groups[:, first] + groups[:, second]

    def sums(mass_of: Callable[[Floats], Masses]) -> Masses:
        mass = mass_of(groups)
        apart = mass[:, first] + mass[:, second]
        total: Masses = mass.sum(axis=1)[:, np.newaxis] - apart + mass_of(joined)
        return total

    whole = groups.sum(axis=1)
    weight = masses.weight(whole) + unknown
    drop = np.maximum(impurity(whole)[:, np.newaxis] - sums(impurity), 0)
    if criterion.name != "gain_ratio":
        gain: Floats = drop * masses.unit / weight[:, np.newaxis]
        return gain
    outside = masses.x_log2_x(weight) - masses.x_log2_x(unknown)
    inside = sums(lambda part: masses.x_log2_x(masses.weight(part)))
    ratio: Floats = drop / np.maximum(outside[:, np.newaxis] - inside, 1)
    return ratio


def _score_by_function(
    criterion: Criterion, function: CriterionFunction, candidates: Candidates
) -> Scores:
    """Hand a user's function dense arrays, absent branches being rows of zeros."""
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

    For reading and teaching; growth uses :class:`Masses64`.

    Examples
    --------
    >>> round(entropy([9, 5]), 3)
    0.94
    """
    total = math.fsum(weights)
    shares = [weight / total for weight in weights if weight > 0]
    return math.fsum(-share * math.log2(share) for share in shares) + 0.0


def information_gain(branches: Sequence[Sequence[float]]) -> float:
    """Return the gain, in bits, of a split into branches of class weights.

    Examples
    --------
    >>> round(information_gain([[2, 3], [4, 0], [3, 2]]), 3)
    0.247
    """
    parent = [math.fsum(weights) for weights in zip(*branches, strict=True)]
    total = math.fsum(parent)
    below = math.fsum(math.fsum(b) / total * entropy(b) for b in branches)
    return entropy(parent) - below


_IMPURITY = {
    "gain": "entropy",
    "gain_ratio": "entropy",
    "gini": "gini",
    "variance": "variance",
    "poisson": "poisson",
}
