"""Distribution tails, confidence intervals, and p-values of splits.

The branches of a split and the classes make a contingency table, whose chi-square
statistic tests whether class and branch are independent; regression has the F test of
the means. The best of many candidates has a small p-value even if nothing is
significant, so it is multiplied by their number (Bonferroni): the columns, the
thresholds of a number, the groupings of values (Kass, "An Exploratory Technique for
Investigating Large Quantities of Categorical Data", 1980). p-values are natural
logarithms, so that very small ones do not underflow and large numbers of candidates
do not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.errors import ParameterError


def check_level(level: object) -> float:
    """Return the level of an interval: above 0 and below 1."""
    if isinstance(level, (int, float)) and 0 < level < 1:
        return float(level)
    raise ParameterError(
        f"level must be a share above 0 and below 1, such as 0.95. Got {level!r}."
    )


def share_interval(share: float, n: float, level: float) -> tuple[float, float]:
    """Return Wilson's interval of a share that was found in ``n`` cases.

    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference",
    1927. It stays within 0 and 1, and is not empty for 3 cases out of 3.

    Examples
    --------
    >>> [round(end, 4) for end in share_interval(1.0, 3, 0.95)]
    [0.4385, 1.0]
    """
    if n <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    # No division by n, which would overflow for tiny weights.
    whole = n + z * z
    middle = (share * n + z * z / 2) / whole
    half = z * math.sqrt(share * (1 - share) * n + z * z / 4) / whole
    low = 0.0 if share <= 0 else max(0.0, middle - half)
    high = 1.0 if share >= 1 else min(1.0, middle + half)
    return low, high


def mean_interval(
    mean: float, deviation: float, n: float, level: float
) -> tuple[float, float] | None:
    """Return Student's interval of the mean of ``n`` numbers; None for a single one.

    ``deviation`` is that of the numbers themselves (the sum of squares divided by
    ``n``), as a tree has it.
    """
    if n <= 1:
        return None
    half = student(level, n - 1) * deviation / math.sqrt(n - 1)
    return mean - half, mean + half


@lru_cache(maxsize=1024)
def student(level: float, freedom: float) -> float:
    """Return the two-sided quantile of Student's t distribution.

    Examples
    --------
    >>> round(student(0.95, 4), 4)
    2.7764
    """
    from scipy.special import stdtrit  # noqa: PLC0415, imported where it is needed

    return -float(stdtrit(freedom, (1 - level) / 2))


# The tails below are not those of scipy, which has them as numbers, not as logarithms:
# p-values of splits are far below the smallest float, and must still be compared.
#: Continued fractions stop where a step changes less than this, or after so many.
_LAST_BIT = 1e-15
_MOST_STEPS = 100_000
_TINY = 1e-300


def log_chi_square_tail(statistic: Floats, freedom: Floats) -> Floats:
    """Return log P(chi-square >= statistic); 0 without any degree of freedom."""
    a, x = np.where(freedom > 0, freedom, 1.0) / 2, statistic / 2
    possible = (freedom > 0) & (x > 0)
    x = np.where(possible, x, 1.0)
    front = a * np.log(x) - x - _log_gamma(a)
    left = x < a + 1
    lower = np.minimum(np.exp(front) * _gamma_series(a, np.where(left, x, 0.0)), 1.0)
    with np.errstate(divide="ignore"):
        tail = np.where(
            left,
            np.log1p(-lower),
            front + np.log(_gamma_fraction(a, np.where(left, a + 1, x))),
        )
    return np.where(possible, np.minimum(tail, 0.0), 0.0)


def log_f_tail(ratio: Floats, between: Floats, within: Floats) -> Floats:
    """Return log P(F >= ratio) for two degrees of freedom."""
    certain = np.isinf(ratio)
    odds = np.where(certain, 1.0, ratio) * between / within
    # The tail is the incomplete beta function of a, b at x; y is 1 - x.
    a, b = within / 2, between / 2
    x, y = 1.0 / (1.0 + odds), odds / (1.0 + odds)
    tail = np.zeros(len(ratio))
    known = y > 0
    a, b, x, y = a[known], b[known], x[known], y[known]
    front = _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    front = front + a * np.log(x) + b * np.log(y)
    turned = x > (a + 1) / (a + b + 2)
    fraction = _beta_fraction(
        np.where(turned, b, a), np.where(turned, a, b), np.where(turned, y, x)
    )
    other = np.minimum(np.exp(front) * fraction / b, 1.0)
    with np.errstate(divide="ignore"):
        tail[known] = np.where(
            turned, np.log1p(-other), front + np.log(fraction) - np.log(a)
        )
    return np.where(certain, -np.inf, np.minimum(tail, 0.0))


def _log_gamma(values: Floats) -> Floats:
    distinct, position = np.unique(values, return_inverse=True)
    logs: Floats = np.array([math.lgamma(v) for v in distinct.tolist()])[position]
    return logs


def _gamma_series(a: Floats, x: Floats) -> Floats:
    """Sum 1/a + x/(a(a+1)) + x^2/(a(a+1)(a+2)) + ..."""
    term = 1.0 / a
    total = term.copy()
    for step in range(1, _MOST_STEPS):
        term = term * (x / (a + step))
        total += term
        if not (term > total * _LAST_BIT).any():  # NaN changes no more, either
            break
    return total


def _gamma_fraction(a: Floats, x: Floats) -> Floats:
    """Compute 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...)))."""
    return _continued(
        x + 1 - a,
        lambda step: -step * (step - a),
        lambda step: x + 2 * step + 1 - a,
    )


def _beta_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Compute the continued fraction of the incomplete beta function."""

    def numerator(step: int) -> Floats:
        m, odd = divmod(step, 2)
        if odd:
            return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))

    return _continued(np.ones_like(x), numerator, lambda _: np.ones_like(x))


def _continued(
    first: Floats,
    numerator: Callable[[int], Floats],
    denominator: Callable[[int], Floats],
) -> Floats:
    """Compute 1/(first + n1/(d1 + n2/(d2 + ...))) from the front (Lentz 1976)."""
    c = np.full_like(first, 1 / _TINY)
    d = 1.0 / _not_zero(first)
    result = d.copy()
    for step in range(1, _MOST_STEPS):
        top, bottom = numerator(step), denominator(step)
        d = 1.0 / _not_zero(bottom + top * d)
        c = _not_zero(bottom + top / c)
        change = c * d
        result *= change
        if not (np.abs(change - 1.0) > _LAST_BIT).any():
            break
    return result


def _not_zero(values: Floats) -> Floats:
    return np.where(np.abs(values) < _TINY, _TINY, values)


#: The ways to group more values than this are not counted one by one.
_COUNTED_VALUES = 256


def log_p_values_of_classes(branches: Floats, starts: Ints, cases: Floats) -> Floats:
    """Return the logarithms of p-values of chi-square tests of splits.

    ``branches`` are class weights, a row for each branch, one split after the other;
    ``starts`` is where each split begins; weights are scaled to its number of cases.
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

    ``whole`` and ``within`` are, for each split, the sums of squared distances of its
    numbers from their mean, and from the means of their branches.
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


def log_adjacent_groupings(n_values: int, n_groups: int) -> float:
    """Return the logarithm of the number of groupings of neighbouring values.

    Examples
    --------
    >>> round(math.exp(log_adjacent_groupings(5, 2)))
    4
    """
    return math.log(math.comb(n_values - 1, n_groups - 1))
