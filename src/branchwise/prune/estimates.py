"""Pessimistic estimates of the errors of leaves, and of what they cost.

The formulas for errors are those of J48 and of release 8 of C4.5. With a matrix of
costs a leaf predicts the class of the least expected cost. The errors among its cases
are estimated as without costs, and an error that is added to those seen costs what
these cost on average. With two classes that is what C5.0 does, which takes the weights
that costs have given to cases out of the estimate.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from branchwise.data.arrays import Floats, Ints, first_best_of_rows
from branchwise.errors import DataError
from branchwise.grow.criteria import ImpuritySums
from branchwise.recipe import Recipe
from branchwise.recipe.costs import Costs

#: An estimate that is at most this much higher is no worse.
_PRUNE_SLACK = 0.1
#: With more cases than this products of their numbers would overflow.
_MOST_CASES = 1e100
#: Halvings after which a short series gives the exponential of a log probability.
_HALVINGS = 7
_TERMS = 12


class Estimate:
    """Pessimistic numbers of errors, in whole units, so that sums are exact."""

    def __init__(self, confidence: float, total: float, most: float = 1.0) -> None:
        if total > _MOST_CASES:
            raise DataError(
                "Error-based pruning treats weights as numbers of cases, and estimates "
                f"errors among up to {_MOST_CASES:g} of them. Got weights that add up "
                f"to {total:g}; divide sample_weight by a constant."
            )
        self.confidence = confidence
        self.z = -NormalDist().inv_cdf(confidence)
        #: Errors are at most the weight, and estimates not much more; an error counts
        #: as at most ``most``.
        self.bits = 59 - math.frexp((total + self.z * self.z + 1) * most)[1]
        self.slack = int(np.rint(math.ldexp(_PRUNE_SLACK, self.bits)))

    def of(self, weights: Floats) -> ImpuritySums:
        """Estimate the errors of leaves with these class weights."""
        total = weights.sum(axis=1)
        errors = total - weights.max(axis=1)
        return self.in_units(errors + self.added(total, errors))

    def in_units(self, expected: Floats) -> ImpuritySums:
        """Return estimates as whole numbers."""
        units: ImpuritySums = np.rint(np.ldexp(expected, self.bits)).astype(np.int64)
        return units

    def added(self, total: Floats, errors: Floats) -> Floats:
        """Return the errors to be added to those seen, by weight and errors."""
        some = self._extra_for_some(total, np.maximum(errors, 1.0))
        with np.errstate(divide="ignore", over="ignore"):  # expm1 has -1 from -40 on
            probability = np.where(total > 0, math.log(self.confidence) / total, 0.0)
        # The upper limit without errors: n (1 - confidence ** (1 / n)).
        none = -total * expm1(probability)
        return np.where(errors < 1, none + errors * (some - none), some)

    def _extra_for_some(self, total: Floats, errors: Floats) -> Floats:
        """Use the normal approximation, with a correction for continuity."""
        seen = errors + 0.5
        square = self.z * self.z
        safe = np.maximum(total, seen)
        spread = np.sqrt(seen * (1.0 - seen / safe) + square / 4)
        limit = safe * (seen + square / 2 + self.z * spread) / (safe + square)
        rest = np.maximum(total - errors, 0.0)
        return np.where(seen >= total, rest, limit - errors)


def expm1(x: Floats) -> Floats:
    """Return exp(x) - 1 for x <= 0, from basic IEEE operations.

    Library functions differ in their last bit, which the native implementation must
    not. With m = exp(u) - 1, doubling u gives m (m + 2).
    """
    u = np.maximum(x, -40.0) / 2**_HALVINGS
    m = np.full_like(u, 1.0)
    for k in range(_TERMS, 1, -1):
        m = 1.0 + m * (u / k)
    m = m * u
    for _ in range(_HALVINGS):
        m = m * (m + 2.0)
    result: Floats = m
    return result


class CostEstimate(Estimate):
    """Pessimistic costs, in units of the mean cost of an error.

    Parameters
    ----------
    confidence, total : float
        As in :class:`Estimate`.
    cases : array of shape (classes,)
        The cases of each class in the table.
    costs : tuple of tuple of float
        What each prediction costs, a row for each true class.
    factors : array of shape (classes,)
        What turns the class weights of nodes into cases.
    """

    def __init__(
        self,
        confidence: float,
        total: float,
        cases: Floats,
        costs: Costs,
        factors: Floats,
    ) -> None:
        self.factors = factors
        matrix = np.where(cases[:, np.newaxis] > 0, np.array(costs), 0.0)
        shares = cases / cases.sum()
        mean = (matrix.sum(axis=1) * shares).sum() / (len(cases) - 1)
        self.costs: Floats = matrix / mean
        #: What predicting a class for the rows of all others costs on average.
        self.usual = _mean_costs(shares, self.costs)
        super().__init__(confidence, total, max(1.0, float(self.costs.max())))

    def of(self, weights: Floats) -> ImpuritySums:
        """Estimate the costs of leaves with these class weights."""
        expected, prediction = self.seen(weights)
        each = np.arange(len(weights))
        cases = weights * self.factors
        total = np.zeros(len(weights))
        for column in cases.T:
            total += column  # in this order, as the native implementation does
        errors = total - cases[each, prediction]
        cost = expected[each, prediction]
        # As the errors added do, their mean cost passes from none to one error seen.
        few = cost + (1.0 - errors) * self.usual[prediction]
        mean = np.where(errors < 1, few, cost / np.maximum(errors, 1.0))
        return self.in_units(cost + self.added(total, errors) * mean)

    def seen(self, weights: Floats) -> tuple[Floats, Ints]:
        """Return what each prediction would have cost, and the cheapest one."""
        expected = np.zeros(weights.shape)
        for weight, row in zip((weights * self.factors).T, self.costs, strict=True):
            expected += weight[:, np.newaxis] * row
        return expected, first_best_of_rows(-expected)


def cost_estimate(
    recipe: Recipe, root: Floats, costs: Costs, by_costs: bool
) -> CostEstimate | None:
    """Return the estimate for a tree; None if errors need only be counted.

    That is so where all of them cost the same. ``root`` are the class weights of all
    rows; ``by_costs`` says that these weigh by the costs of their classes.
    """
    matrix = np.array(costs)
    wrong = matrix[~np.eye(len(matrix), dtype=bool)]
    if (wrong == wrong[:1]).all():
        return None
    factors = case_factors(root, costs) if by_costs else np.ones(len(root))
    cases = root * factors
    # Collapsing needs no estimate, and so no limit of the weight.
    total = float(cases.sum()) if recipe.pruning == "error-based" else 0.0
    return CostEstimate(recipe.confidence, total, cases, costs, factors)


def case_factors(root: Floats, costs: Costs) -> Floats:
    """Return what turns class weights by costs into those of cases.

    ``root`` are the class weights of all rows; their sum stays.
    """
    sums: Floats = np.array(costs, dtype=np.float64).sum(axis=1)
    if (sums == sums[0]).all():
        return np.ones(len(sums))
    factors: Floats = root.sum() / (root / sums).sum() / sums
    return factors


def _mean_costs(shares: Floats, costs: Floats) -> Floats:
    """Return the mean cost of each prediction for rows of other classes."""
    others = np.where(np.eye(len(shares), dtype=bool), 0.0, shares[:, np.newaxis])
    weight = others.sum(axis=0)
    means: Floats = np.ones(len(shares))
    np.divide((others * costs).sum(axis=0), weight, out=means, where=weight > 0)
    return means
