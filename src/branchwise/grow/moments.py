"""Weighted impurities of regression (variance, Poisson), from exact moments.

Counts of numbers have weights and exact sums in limbs (``data/exact_sums.py``). The
variance decrease of a split needs only these: with ``d`` being the sum of a branch
less its weight times *any* number near the node's mean, it is

    sum over branches of d**2 / weight - (sum of d)**2 / (sum of weights).

So before scoring, the counts of every node are centred at the node's own mean and
scaled by its own spread. Numbers in other nodes, however large, do not affect the
digits by which the splits of this one are compared. The distances ``d`` are rounded
once, to two limbs of the node, so that they add up exactly from there on; weighted
impurities are int64 as those of classes are.

Poisson's criterion compares rates. It uses the sums themselves, scaled likewise.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.exact_sums import two_product, two_sum
from branchwise.data.target import Scale
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import ImpuritySums, ImpuritySums64, log2

#: Scaled distances and sums need so many bits of their first limb.
_BITS = 50
#: In these units the weighted impurities of a node are less than 1, or less than 64
#: for Poisson's criterion, which has logarithms.
_VARIANCE_BITS = 60
_POISSON_BITS = 54
#: Rounding error of weighted impurities in units: d * d / weight is rounded three
#: times, and to whole units.
_NOISE_UNITS = 1 << 11
_BY_NODE = ("_variance", "_centre", "_exponent", "_factor", "_step", "_low_step")


class Moments64(ImpuritySums64):
    """Weighted impurities of numbers at the nodes of a level.

    Statistics are weight and distance, or sum, in two limbs.
    """

    for_numbers = True

    def __init__(self, scale: Scale, moments: Floats, poisson: bool) -> None:
        self.bits = _POISSON_BITS if poisson else _VARIANCE_BITS
        self.unit = 2.0**-self.bits
        self._table = None
        self.gain_unit = gain_unit(scale, "poisson" if poisson else "variance")
        self._scale = scale
        self._variance = scale.variances(moments)
        mean = scale.means(moments, unit=False)
        weight = moments[:, 0]
        if poisson:
            size = np.frexp(mean * weight)[1]
            self._centre = np.zeros_like(mean)
            self._exponent = size
            widest = np.zeros_like(size)
        else:
            # Numbers are taken from a rounded mean, so that may add to their spread.
            spread = self._variance + np.spacing(np.abs(mean)) ** 2
            size = -(-np.frexp(spread * weight)[1] // 2)
            self._centre = mean
            self._exponent = 2 * size
            # By Cauchy and Schwarz distances add up to at most sqrt(weight).
            widest = np.frexp(weight)[1] // 2 + 1
        self._factor = np.ldexp(1.0, -size)
        self._step = np.ldexp(1.0, widest - _BITS)
        spare = np.frexp(scale.n_cases)[1]
        self._low_step = self._step * np.ldexp(1.0, spare - _BITS)

    def statistics(self, counts: Counts) -> Counts:
        """Return counts with weights and distances from the means of their nodes."""
        node, moments = counts.node, counts.weights
        weight = moments[:, 0]
        total, rest = self._distances(moments, self._centre[node])
        factor, step, low_step = (
            each[node] for each in (self._factor, self._step, self._low_step)
        )
        total, rest = total * factor, rest * factor
        high = np.rint(total / step) * step
        low = np.rint(((total - high) + rest) / low_step) * low_step
        return replace(counts, weights=np.stack([weight, high, low], axis=1))

    def _distances(self, moments: Floats, centre: Floats) -> tuple[Floats, Floats]:
        """Return sums less weight times centre, with twice the digits of a float."""
        total, rest = two_product(-centre, moments[:, 0])
        for limb in self._scale.sums.normal(self._scale.sum_limbs(moments)):
            total, left = two_sum(total, limb)
            rest = rest + left
        return total, rest

    def at(self, nodes: Ints) -> Moments64:
        """Return the weighted impurities for some of the nodes."""
        some = copy(self)
        for name in _BY_NODE:
            setattr(some, name, getattr(self, name)[nodes])
        return some

    def in_units(self, amounts: Floats, node: Ints) -> Floats:
        """Return scores in the unit of the numbers (squared, but for Poisson's)."""
        scaled: Floats = np.ldexp(amounts, self._exponent[node])
        return scaled

    @property
    def steps(self) -> dict[str, float]:
        """What the statistics of the only node are rounded by."""
        return {
            "centre": float(self._centre[0]),
            "factor": float(self._factor[0]),
            "step": float(self._step[0]),
            "low_step": float(self._low_step[0]),
        }

    def squares(self, statistics: Floats) -> Floats:
        """Return the squared distances of counted numbers from their mean."""
        squares: Floats = self._scale.variances(statistics) * statistics[:, 0]
        return squares

    def weight(self, statistics: Floats) -> Floats:
        """Return the weights."""
        weight: Floats = statistics[..., 0]
        return weight

    def impurity(
        self,
        weighted_impurity: object,  # noqa: ARG002
        weights: Floats,  # noqa: ARG002
    ) -> Floats:
        """Return the variance of the numbers at the nodes of the level."""
        return self._variance

    def mixed(self, statistics: Floats) -> NDArray[np.bool_]:  # noqa: ARG002
        """Tell which nodes of the level have numbers that differ."""
        return self._variance > 0

    def noise(self, totals: Floats) -> ImpuritySums:
        """Return the rounding error of weighted impurities."""
        return np.full(totals.shape, _NOISE_UNITS, dtype=np.int64)

    def variance(self, statistics: Floats) -> ImpuritySums:
        """Weight times variance, up to a constant that all splits of a node share."""
        weight, total = self._amounts(statistics)
        return -self._fixed(total * (total / weight))

    def poisson(self, statistics: Floats) -> ImpuritySums:
        """Half the Poisson deviance, up to a constant that all splits share."""
        weight, total = self._amounts(statistics)
        return -self._fixed(total * log2(total / weight))

    def _amounts(self, statistics: Floats) -> tuple[Floats, Floats]:
        weight = statistics[..., 0]
        total: Floats = statistics[..., 1] + statistics[..., 2]
        return np.where(weight > 0, weight, 1.0), total


def gain_unit(scale: Scale, criterion: object) -> float:
    """Return a gain of 1 in the unit of the target."""
    power = scale.unit if criterion == "poisson" else 2 * scale.unit
    return max(math.ldexp(1.0, power), math.ulp(0.0))


def mean_order(statistics: Floats) -> Floats:
    """Return a sort key of groups of one node by their means."""
    order: Floats = (statistics[..., 1] + statistics[..., 2]) / statistics[..., 0]
    return order


def have_one_order(weights: Floats, impurity_sums: ImpuritySums64) -> bool:
    """Whether the best of all groupings splits values in one order."""
    return impurity_sums.for_numbers or weights.shape[-1] <= 2


def order_of_values(weights: Floats, impurity_sums: ImpuritySums64) -> Floats:
    """Return a sort key of values: their means, or their shares of the last class."""
    if impurity_sums.for_numbers:
        return mean_order(weights)
    share: Floats = weights[..., -1] / weights.sum(axis=-1)
    return share
