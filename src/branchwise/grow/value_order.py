"""The order of values in which the best grouping in two splits them."""

from __future__ import annotations

from branchwise.data.arrays import Floats
from branchwise.grow.criteria import ImpuritySums64
from branchwise.grow.moments import mean_order


def have_one_order(weights: Floats, impurity_sums: ImpuritySums64) -> bool:
    """Whether the best of all groupings splits values in one order."""
    return impurity_sums.for_numbers or weights.shape[-1] <= 2


def order_of_values(weights: Floats, impurity_sums: ImpuritySums64) -> Floats:
    """Return a sort key of values: their means, or their shares of the last class."""
    if impurity_sums.for_numbers:
        return mean_order(weights)
    share: Floats = weights[..., -1] / weights.sum(axis=-1)
    return share
