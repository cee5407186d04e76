"""How sure a leaf is: confidence intervals of a share and of a mean."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from branchwise.errors import ParameterError
from branchwise.significance import log_f_tail

#: Newton's method for Student's t stops here; five steps are usual.
_MOST_STEPS = 60
_CLOSE = 1e-13
#: Degrees of freedom from which on a series is as exact, and does not take longer.
_MANY = 1e6


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
    1927. It stays within 0 and 1, and says something of 3 cases out of 3, too.

    Examples
    --------
    >>> [round(end, 4) for end in share_interval(1.0, 3, 0.95)]
    [0.4385, 1.0]
    """
    if n <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    # Nothing is divided by n: of tiny weights it would be beyond all numbers.
    whole = n + z * z
    middle = (share * n + z * z / 2) / whole
    half = z * math.sqrt(share * (1 - share) * n + z * z / 4) / whole
    low = 0.0 if share <= 0 else max(0.0, middle - half)
    high = 1.0 if share >= 1 else min(1.0, middle + half)
    return low, high


def mean_interval(
    mean: float, deviation: float, n: float, level: float
) -> tuple[float, float] | None:
    """Return Student's interval of the mean of ``n`` numbers; None for one alone.

    ``deviation`` is that of the numbers themselves (the sum of squares divided by
    ``n``), as a tree has it.
    """
    if n <= 1:
        return None
    half = student(level, n - 1) * deviation / math.sqrt(n - 1)
    return mean - half, mean + half


@lru_cache(maxsize=1024)
def student(level: float, freedom: float) -> float:
    """Return how far from 0 Student's t stays with this probability.

    Examples
    --------
    >>> round(student(0.95, 4), 4)
    2.7764
    """
    t = NormalDist().inv_cdf((1 + level) / 2)
    if freedom > _MANY:
        # Cornish and Fisher's series: what it leaves out is below all digits.
        second = (5 * t**5 + 16 * t**3 + 3 * t) / (96 * freedom) / freedom
        return t + (t**3 + t) / (4 * freedom) + second
    wanted = math.log1p(-level)
    front = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    front -= math.log(freedom * math.pi) / 2
    # Newton's method on logarithms, where the tail is nearly a straight line.
    for _ in range(_MOST_STEPS):
        tail = float(log_f_tail(np.array([t * t]), np.ones(1), np.array([freedom]))[0])
        density = front - (freedom + 1) / 2 * math.log1p(t * t / freedom)
        slope = 2 * t * math.exp(density - tail)
        step = (tail - wanted) / slope
        t *= math.exp(min(step, 5.0))
        if abs(step) < _CLOSE:
            break
    return t
