"""p-values of splits: chi-square and F tests, and counts of groupings.

The branches of a split and the classes make a contingency table, whose chi-square
statistic tests whether class and branch are independent; regression has the F test of
the means. The best of many candidates has a small p-value even if nothing is
significant, so it is multiplied by their number (Bonferroni): the columns, the
thresholds of a number, the groupings of values (Kass, "An Exploratory Technique for
Investigating Large Quantities of Categorical Data", 1980).

All p-values are natural logarithms, so that very small ones do not underflow and
large numbers of candidates do not overflow.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.stats import log_chi_square_tail, log_f_tail

#: The ways to group more values than this are not counted one by one.
_COUNTED_VALUES = 256


def log_p_values_of_classes(branches: Floats, starts: Ints, cases: Floats) -> Floats:
    """Return the logarithms of p-values of chi-square tests of splits.

    Parameters
    ----------
    branches : array
        Class weights, a row for each branch, one split after the other.
    starts : array
        Where each split begins.
    cases : array
        How many cases each split has; weights are scaled to that number.
    """
    n_branches = np.diff(starts, append=len(branches))
    owner = np.repeat(np.arange(len(starts)), n_branches)
    # In a unit near the weight of each split, squares neither overflow nor vanish.
    units = np.frexp(np.add.reduceat(branches.sum(axis=1), starts))[1]
    branches = np.ldexp(branches, -units[owner, np.newaxis])
    size = branches.sum(axis=1)
    classes = np.add.reduceat(branches, starts, axis=0)
    total = classes.sum(axis=1)
    expected = size[:, np.newaxis] * (classes / total[:, np.newaxis])[owner]
    distance = (branches - expected) ** 2 / np.where(expected > 0, expected, 1.0)
    statistic = np.add.reduceat(distance.sum(axis=1), starts) * cases / total
    freedom = (n_branches - 1) * (np.count_nonzero(classes, axis=1) - 1)
    return log_chi_square_tail(statistic, freedom.astype(np.float64))


def log_p_values_of_numbers(
    whole: Floats, within: Floats, n_branches: Ints, cases: Floats
) -> Floats:
    """Return the logarithms of p-values of F tests of splits.

    Parameters
    ----------
    whole, within : array
        For each split the squared distances of its numbers from their mean, and from
        the means of their branches, added up.
    n_branches, cases : array
        How many branches and cases each split has.
    """
    between = np.maximum(whole - within, 0.0)
    apart = (n_branches - 1).astype(np.float64)
    free = cases - n_branches
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = between / apart / (within / free)
    # Without degrees of freedom there is no test: the p-value is 1.
    telling = (free > 0) & (between > 0)
    return log_f_tail(np.where(telling, ratio, 0.0), apart, np.maximum(free, 1.0))


@lru_cache(maxsize=4096)
def log_groupings(n_values: int, n_groups: int) -> float:
    """Return the logarithm of the number of groupings of values.

    These are Stirling's numbers of the second kind; for very many values the bound
    groups ** values / groups! stands for them.

    Examples
    --------
    >>> round(math.exp(log_groupings(5, 2))), 2**4 - 1
    (15, 15)
    """
    if n_values > _COUNTED_VALUES:
        return n_values * math.log(n_groups) - math.lgamma(n_groups + 1)
    onto = sum(
        (-1) ** (n_groups - j) * math.comb(n_groups, j) * j**n_values
        for j in range(1, n_groups + 1)
    )
    return math.log(onto // math.factorial(n_groups))
